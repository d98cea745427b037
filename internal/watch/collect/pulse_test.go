package collect

import (
	"context"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// TestPulseKnowsWhenItStoodStill: pauses between beats are what Risso did not see, joined and reported once when it goes on.
func TestPulseKnowsWhenItStoodStill(t *testing.T) {
	begin := time.Now()
	at := func(s float64) time.Time { return begin.Add(time.Duration(s * float64(time.Second))) }
	var told []string
	p := &Pulse{Tell: func(from, to time.Time) {
		told = append(told, from.Sub(begin).Round(time.Millisecond).String()+" to "+to.Sub(begin).Round(time.Millisecond).String())
	}}
	now := 0.0
	run := func(until float64) {
		for ; now < until-0.01; now += beat.Seconds() {
			p.beat(at(now))
		}
	}
	run(5)
	if d := p.Still(at(0), at(5)); d != 0 {
		t.Errorf("it beat as it should and stood still for %s, want 0", d)
	}
	now = 9 // stalled from 5.0
	run(10)
	now = 12 // and from 10.0
	run(13)
	if len(told) > 0 {
		t.Errorf("told while it may go on: got %v, want none", told)
	}
	if d := p.Still(at(6), at(8)).Round(100 * time.Millisecond); d != 2*time.Second {
		t.Errorf("within the first: got %s, want 2 * time.Second", d)
	}
	if d := p.Still(at(0), at(13)).Round(100 * time.Millisecond); d != 6*time.Second {
		t.Errorf("in all: got %s, want 6 * time.Second", d)
	}
	if d := p.Still(at(9.2), at(9.8)); d != 0 {
		t.Errorf("between them: got %s, want 0", d)
	}
	// Who asks may wake before the pulse does.
	if d := p.Still(at(13), at(20)).Round(100 * time.Millisecond); d != 7*time.Second {
		t.Errorf("now: got %s, want 7 * time.Second", d)
	}
	if w := p.NotLooking(at(13), at(20)); !strings.HasPrefix(w, "Risso has taken no readings since") {
		t.Errorf("in words: got %q, want \"Risso has taken no readings since\" at its beginning", w)
	}
	run(20)
	if len(told) != 1 || told[0] != "5s to 12s" {
		t.Errorf("told %v; want len(told) 1, told[0] \"5s to 12s\"", told)
	}
	now = 21.5
	run(30)
	if len(told) != 1 {
		t.Errorf("1.5 s were told: %v, want length 1", told)
	}
	var none *Pulse
	if none.Still(at(0), at(30)) != 0 || none.NotLooking(at(0), at(30)) != "" {
		t.Error("no pulse stood still")
	}
}

// TestPulseRuns: with a steady clock, nothing stalls.
func TestPulseRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Pulse{Tell: func(from, to time.Time) { t.Errorf("told %s to %s", from, to) }}
		var g Group
		begin := time.Now()
		g.Go(t.Context(), p)
		time.Sleep(30 * time.Second)
		if d := p.Still(begin, time.Now()); d != 0 {
			t.Errorf("got %v, want 0", d)
		}
	})
}

// TestSecondsBetweenReadings: what was read late has its own time.
func TestSecondsBetweenReadings(t *testing.T) {
	begin := time.Unix(100, 0)
	at := func(s float64) time.Time { return begin.Add(time.Duration(s * float64(time.Second))) }
	for _, c := range []struct {
		prev, tick int64
		a, b       float64
		want       float64
	}{{100, 101, 0, 1.05, 1}, {100, 101, 0, 1.9, 1.9}, {100, 101, 0.9, 1, 0.1}, {100, 105, 0, 5.32, 5.32}, {0, 100, 0, 1, 0}} {
		v := View{Tick: c.tick, PrevTick: c.prev, Seconds: between(c.prev, c.tick, at(c.a), at(c.b))}
		if got := v.Elapsed(); got < c.want-1e-6 || got > c.want+1e-6 {
			t.Errorf("got %+v: %v, want from %v to %v", c, got, c.want-1e-6, c.want+1e-6)
		}
	}
}

// TestSleepIsNoticed: a machine that slept was not looked at, though its own clock stopped. How long it slept is injected: a test
// cannot send its machine to sleep.
func TestSleepIsNoticed(t *testing.T) {
	var slept time.Duration
	var told []time.Duration
	p := &Pulse{Slept: func() time.Duration { return slept }, Tell: func(from, to time.Time) { told = append(told, to.Sub(from).Round(time.Second)) }}
	begin := time.Now()
	now := begin
	run := func(beats int) {
		for range beats {
			// The calendar goes on in sleep, Go's clock does not.
			p.beat(now)
			now = now.Add(beat)
		}
	}
	run(50)
	asked := now.Add(-beat)
	slept += time.Hour
	if d := p.Still(asked, now); d.Round(time.Second) != time.Hour {
		t.Errorf("who wakes before the pulse does is told %s, want Round(time.Second) time.Hour", d)
	}
	run(50)
	if d := p.Still(asked, now); d.Round(time.Second) != time.Hour {
		t.Errorf("it slept for an hour and stood still for %s, want Round(time.Second) time.Hour", d)
	}
	if d := p.Still(begin, begin.Add(time.Second)); d != 0 {
		t.Errorf("before it slept it stood still for %s, want 0", d)
	}
	if len(told) != 1 {
		t.Errorf("it was told %d times, want 1", len(told))
	}
	if w := p.NotLooking(asked, now); w == "" {
		t.Error("nothing speaks for that Risso did not look")
	}
	if a, b := machineSlept(), machineSlept(); (b-a).Abs() > time.Minute || a < 0 {
		t.Errorf("this machine slept for %s, then for %s; want (b - a).Abs() at most time.Minute, a at least 0", a, b)
	}
}

// TestClockJumpIsCertain: only what no delay of Risso explains is a jump of the server's clock.
func TestClockJumpIsCertain(t *testing.T) {
	begin := time.Now()
	at := func(s float64) time.Time { return begin.Add(time.Duration(s * float64(time.Second))) }
	for _, c := range []struct {
		asked0, told0, asked1, told1 float64
		grown, jump                  float64
	}{
		{0, 0, 1, 1, 1, 0},
		{0, 0, 1, 1, 3601, 3600},
		{0, 0, 1, 1, -1799, -1800},
		{0, 0, 1, 21, 1, 0},    // the answer was read twenty seconds late
		{0, 20, 21, 21, 20, 0}, // and that before
		{0, 20, 21, 21, 30, 9},
	} {
		s := &Server{uptime: 1000, uptimeAsked: at(c.asked0), uptimeAt: at(c.told0)}
		s.reader = newTestReader(at(c.asked1), at(c.told1))
		if got := s.clockJump(1000 + c.grown); got < c.jump-1e-6 || got > c.jump+1e-6 {
			t.Errorf("got %+v: %v, want from %v to %v", c, got, c.jump-1e-6, c.jump+1e-6)
		}
	}
}

func newTestReader(asked, told time.Time) *read.Reader {
	r := read.NewReader(new(mysql.Traffic))
	r.StatusAsked, r.StatusAt = asked, told
	return r
}

// TestLateOurselves: while Risso itself stalled, no one that did not answer in time is blamed, not the name server either; a host that
// is not known is not known nevertheless.
func TestLateOurselves(t *testing.T) {
	p := &Pulse{Slept: func() time.Duration { return 0 }}
	begin := time.Now().Add(-10 * time.Second)
	p.beat(begin)
	p.beat(begin.Add(8 * time.Second)) // stalled meanwhile
	s := &Server{opts: Options{Pulse: p}, up: true}
	for _, c := range []struct {
		err  error
		late bool
	}{
		{context.DeadlineExceeded, true}, {io.ErrUnexpectedEOF, true},
		{&net.OpError{Op: "dial", Err: &net.DNSError{Err: "i/o timeout", Name: "db1", IsTimeout: true}}, true},
		{&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "db1", IsNotFound: true}}, false},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, false},
	} {
		if late := s.lateOurselves(begin, c.err); late != c.late {
			t.Errorf("%v: Risso was late itself: %t, want %t", c.err, late, c.late)
		}
	}
}
