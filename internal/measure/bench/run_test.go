package bench

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
)

func mustRun(t *testing.T, o Options) *Result {
	t.Helper()
	if o.Workload == nil {
		o.Workload = work{"a"}
	}
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := json.Marshal(r); err != nil {
		t.Errorf("the result is no JSON: %v", err)
	}
	return r
}

// TestCountsAreExact compares with what the scripted server saw: with and without a warm-up, one and several statements.
func TestCountsAreExact(t *testing.T) {
	for _, c := range []struct {
		warmup time.Duration
		work   work
	}{{0, work{"a"}}, {0, work{"a", "b", "c"}}, {1300 * time.Millisecond, work{"a", "b"}}} {
		target := takes(500 * time.Microsecond)
		var progress, warm int64
		r := mustRun(t, Options{Target: target, Workload: c.work, Threads: 3, Time: 2 * time.Second, Warmup: c.warmup, Progress: func(s Second) {
			if s.Warmup {
				warm += s.Transactions
			} else {
				progress += s.Transactions
			}
		}})
		n := int64(len(c.work))
		if r.Queries != n*r.Transactions || r.Writes != r.Queries {
			t.Errorf("warm-up %v: got %d queries (%d writes) of %d transactions with %d each; want r.Queries %d, r.Writes %d",
				c.warmup, r.Queries, r.Writes, r.Transactions, n, n*r.Transactions, r.Queries)
		}
		if seen := target.n.Load() / n; c.warmup == 0 && seen != r.Transactions || seen < r.Transactions {
			t.Errorf("warm-up %v: %d transactions, the server saw %d", c.warmup, r.Transactions, seen)
		}
		var sum, queries int64
		for _, s := range r.Timeline {
			if !s.Warmup {
				sum, queries = sum+s.Transactions, queries+s.Queries
			}
		}
		// What ended in the part of a second after the end is not in the timeline: one of each session.
		if len(r.Timeline) != secondOf(c.warmup)+2 || r.Transactions-sum > 3 || sum > r.Transactions || queries != n*sum {
			t.Errorf("warm-up %v: the %d seconds have %d transactions and %d queries of %d; want len(r.Timeline) secondOf(c.warmup) + 2, r.Transactions - sum at most 3, sum at most %d, queries %d",
				c.warmup, len(r.Timeline), sum, queries, r.Transactions, r.Transactions, n*sum)
		}
		if progress != sum || (warm > 0) != (c.warmup > 0) {
			t.Errorf("warm-up %v: progress told of %d transactions and %d in the warm-up, the timeline has %d", c.warmup, progress, warm, sum)
		}
		if r.Seconds < 2 || math.Abs(r.TransactionsPerSecond*r.Seconds-float64(r.Transactions)) > 1e-6 {
			t.Errorf("%v seconds, %v a second", r.Seconds, r.TransactionsPerSecond)
		}
		if math.Abs(r.WarmupSeconds-c.warmup.Seconds()) > 1e-9 || r.ServerVersion != "scripted 1" {
			t.Errorf("got %+v; want math.Abs(r.WarmupSeconds - c.warmup.Seconds()) at most 1e-9, ServerVersion \"scripted 1\"", r)
		}
	}
}

// TestOverloadIsAccounted asks for three times what the sessions can do.
func TestOverloadIsAccounted(t *testing.T) {
	r := mustRun(t, Options{Target: takes(10 * time.Millisecond), Threads: 2, Time: 2 * time.Second, Rate: 600, Seed: 1})
	b := r.Backlog
	if r.Transactions < 250 || r.Transactions > 402 || b == nil {
		t.Fatalf("got %d transactions, backlog %+v; want r.Transactions from 250 to 402, b not nil", r.Transactions, b)
	}
	if due := r.Transactions + b.NeverStarted; math.Abs(float64(due)-1200) > 4*math.Sqrt(1200) {
		t.Errorf("%d were due, not about 1,200", due)
	}
	if b.AtEnd != b.NeverStarted || b.Max < b.AtEnd || b.MaxWait < 1 || b.MaxWait > 2.1 {
		t.Errorf("backlog %+v; want b.AtEnd %v, b.Max at least %v, b.MaxWait from 1 to 2.1", *b, b.NeverStarted, b.AtEnd)
	}
	// Latency grows by two thirds of the time that passes, and goes on growing for what never began.
	if p := r.Latency.At(50); p < 0.4 || p > 1.1 {
		t.Errorf("the median is %v, want from 0.4 to 1.1", p)
	}
	if p := r.Latency.At(99); p < 1.1 || p > 1.6 {
		t.Errorf("99 %%: got %v, want from 1.1 to 1.6", p)
	}
	if s := r.ServiceTime.At(50); s < 0.010 || s > 0.015 {
		t.Errorf("median of the service time: got %v, want from 0.010 to 0.015", s)
	}
	if len(r.Outages) != 0 || len(r.Errors) != 0 || r.Unfinished != 0 {
		t.Errorf("got %+v %+v %d; want no r.Outages, no r.Errors, r.Unfinished 0", r.Outages, r.Errors, r.Unfinished)
	}
	last := r.Timeline[len(r.Timeline)-1]
	if last.Backlog < 200 || last.P50 < r.Timeline[0].P50 {
		t.Errorf("last second %+v; want Backlog at least 200, P50 at least r.Timeline[0].P50", last)
	}
}

// TestIdleOpenLoopIsOnTime asks for far less than the session can do: nothing waits, no pause is a stall.
func TestIdleOpenLoopIsOnTime(t *testing.T) {
	r := mustRun(t, Options{Target: takes(0), Threads: 2, Time: 3 * time.Second, Rate: 2, Seed: 3})
	if len(r.Outages) != 0 || r.Backlog.NeverStarted != 0 || r.Transactions == 0 || r.Latency.At(50) > 0.005 {
		t.Errorf("got %d transactions, %+v, %+v, %+v; want no r.Outages, r.Backlog.NeverStarted 0, r.Transactions not 0, r.Latency.At(50) at most 0.005",
			r.Transactions, r.Latency, r.Outages, r.Backlog)
	}
	if r.Seconds < 3 || r.Seconds > 3.5 || len(r.Timeline) != 3 { // a busy machine is late
		t.Errorf("%v seconds, %d in the timeline: the time counts, not the last transaction; want r.Seconds from 3 to 3.5, len(r.Timeline) 3",
			r.Seconds, len(r.Timeline))
	}
}

// TestHangAtTheEnd has a server that answers no more.
func TestHangAtTheEnd(t *testing.T) {
	for _, rate := range []float64{0, 100} {
		target := &scripted{answer: func(n int64, stop *drive.Stop) error {
			if n > 50 {
				return hang(stop)
			}
			time.Sleep(time.Millisecond)
			return nil
		}}
		r := mustRun(t, Options{Target: target, Threads: 2, Time: 2 * time.Second, Rate: rate, Seed: 1, Grace: 300 * time.Millisecond})
		if r.Transactions != 50 || r.Unfinished != 2 || r.Latency.Max < 1 || r.Seconds > 2.1 {
			t.Errorf("rate %v: got %d transactions in %v s, %d unfinished, longest %v; want r.Transactions 50, r.Unfinished 2, r.Latency.Max at least 1, r.Seconds at most 2.1",
				rate, r.Transactions, r.Seconds, r.Unfinished, r.Latency.Max)
		}
		if len(r.Outages) != 1 || r.Outages[0].Errors || r.Outages[0].Milliseconds < 1000 {
			t.Errorf("rate %v: got %+v; want len(r.Outages) 1, r.Outages[0].Errors false, r.Outages[0].Milliseconds at least 1000", rate, r.Outages)
		}
		if rate > 0 && (r.Backlog.NeverStarted < 50 || r.Backlog.MaxWait < 1) {
			t.Errorf("backlog %+v", *r.Backlog)
		}
	}
}

// TestErrorsByKind counts those of the measured time, by label, and keeps the first message.
func TestErrorsByKind(t *testing.T) {
	var full, gone atomic.Int64
	target := &scripted{answer: func(n int64, _ *drive.Stop) error {
		time.Sleep(time.Millisecond)
		switch {
		case n%10 == 0:
			full.Add(1)
			return errFull
		case n%25 == 3:
			gone.Add(1)
			return lost()
		}
		return nil
	}}
	r := mustRun(t, Options{Target: target, Threads: 1, Warmup: time.Second, Time: time.Second})
	if len(r.Errors) != 2 || r.Errors[0].Label != "1114" || r.Errors[1].Label != "lost" || r.Errors[0].Message != errFull.Error() {
		t.Fatalf("got %+v; want len(r.Errors) 2, r.Errors[0].Label \"1114\", r.Errors[1].Label \"lost\", r.Errors[0].Message errFull.Error()", r.Errors)
	}
	warm, counted, all := r.Timeline[0].Errors, r.Errors[0].Count+r.Errors[1].Count, full.Load()+gone.Load()
	if warm == 0 || counted == 0 || warm+counted != all || r.Timeline[1].Errors < counted-1 {
		t.Errorf("got %d errors in the warm-up, %d counted, %d in the measured second, the server gave %d; want warm not 0, counted not 0, warm + counted %v, r.Timeline[1].Errors at least %d",
			warm, counted, r.Timeline[1].Errors, all, all, counted-1)
	}
	if r.Reconnects != gone.Load() {
		t.Errorf("got %d reconnects after %d lost connections, want gone.Load()", r.Reconnects, gone.Load())
	}
}

// TestSenselessEndsTheRun has a table that somebody drops midway.
func TestSenselessEndsTheRun(t *testing.T) {
	missing := &drive.ServerError{Code: 1146, State: "42S02", Message: "Table 'x' doesn't exist"}
	target := &scripted{answer: func(n int64, _ *drive.Stop) error {
		time.Sleep(time.Millisecond)
		if n > 200 {
			return missing
		}
		return nil
	}}
	began := time.Now()
	r, err := Run(t.Context(), Options{Target: target, Workload: work{"a"}, Threads: 2, Time: time.Minute})
	var server *drive.ServerError
	if !errors.As(err, &server) || server.Code != 1146 || time.Since(began) > 10*time.Second {
		t.Fatalf("%v after %v", err, time.Since(began))
	}
	if r == nil || r.Transactions != 200 || r.Seconds > 10 {
		t.Errorf("what was measured so far is lost: %+v; want r not nil, Transactions 200, Seconds at most 10", r)
	}
}

// TestServerThatTakesNoWritesIsNotFlooded counts the attempts at a server that is read-only.
func TestServerThatTakesNoWritesIsNotFlooded(t *testing.T) {
	target := &scripted{answer: func(int64, *drive.Stop) error {
		return &drive.ServerError{Code: 1290, State: "HY000", Message: "--read-only"}
	}}
	r := mustRun(t, Options{Target: target, Threads: 1, Time: 2 * time.Second})
	if n := target.n.Load(); n < 4 || n > 120 || r.Transactions != 0 {
		t.Errorf("got %d attempts in 2 s; want n from 4 to 120, r.Transactions 0", n)
	}
	if len(r.Outages) != 1 || !r.Outages[0].Errors || r.Outages[0].Milliseconds < 1990 {
		t.Errorf("got %+v; want len(r.Outages) 1, r.Outages[0].Errors true, r.Outages[0].Milliseconds at least 1990", r.Outages)
	}
}

// TestFailoverTakesTheNext goes on with the second server when the first is gone, and with the first again. Each goes down
// after 300 statements and takes the other up.
func TestFailoverTakesTheNext(t *testing.T) {
	var down [2]atomic.Bool
	server := func(i int) *scripted {
		return &scripted{
			answer: func(n int64, _ *drive.Stop) error {
				time.Sleep(time.Millisecond)
				if n == 300 {
					down[1-i].Store(false)
					down[i].Store(true)
				}
				if down[i].Load() {
					return lost()
				}
				return nil
			},
			open: func(int64) error {
				if down[i].Load() {
					return errors.New("refused")
				}
				return nil
			},
		}
	}
	a, b := server(0), server(1)
	r := mustRun(t, Options{Target: a, Failover: []drive.Target{b}, Threads: 4, Time: 3 * time.Second})
	if b.n.Load() < 300 || b.n.Load() > 310 || a.n.Load() < 320 || r.Reconnects != 8 || len(r.Errors) != 1 || r.Errors[0].Label != "lost" || r.Errors[0].Count != 8 {
		t.Errorf("got %d statements at the first, %d at the second, %d reconnects, %+v; want b.n.Load() from 300 to 310, a.n.Load() at least 320, r.Reconnects 8, len(r.Errors) 1, r.Errors[0].Label \"lost\", r.Errors[0].Count 8",
			a.n.Load(), b.n.Load(), r.Reconnects, r.Errors)
	}
	if r.Transactions != a.n.Load()+b.n.Load()-8 {
		t.Errorf("got %d transactions of %d and %d, want a.n.Load() + b.n.Load() - 8", r.Transactions, a.n.Load(), b.n.Load())
	}
}

func TestInterrupted(t *testing.T) {
	for _, c := range []struct{ warmup, after time.Duration }{{0, 1500 * time.Millisecond}, {time.Minute, 1500 * time.Millisecond}} {
		for _, rate := range []float64{0, 100} {
			ctx, cancel := context.WithTimeout(t.Context(), c.after)
			r, err := Run(ctx, Options{Target: takes(time.Millisecond), Workload: work{"a"}, Threads: 2, Time: time.Minute, Warmup: c.warmup, Rate: rate})
			cancel()
			if err != nil || !r.Interrupted {
				t.Fatalf("got %+v, %v; want Interrupted true", r, err)
			}
			if _, err := json.Marshal(r); err != nil {
				t.Error(err)
			}
			// What is done before the clock runs takes its part of the time, more on a busy machine.
			if c.warmup == 0 && (r.Seconds < 1 || r.Seconds > 1.8 || r.Transactions == 0 || len(r.Timeline) != 1) {
				t.Errorf("%v seconds, %d transactions, %d seconds", r.Seconds, r.Transactions, len(r.Timeline))
			}
			if c.warmup > 0 && (r.Seconds != 0 || r.Transactions != 0 || r.WarmupSeconds < 1 || r.WarmupSeconds > 1.8) {
				t.Errorf("in the warm-up: %v seconds, %d transactions, %v", r.Seconds, r.Transactions, r.WarmupSeconds)
			}
		}
	}
}

// TestWarmupEndsWhenSteady feeds rows of seconds: one that settles, one that goes on rising.
func TestWarmupEndsWhenSteady(t *testing.T) {
	for _, c := range []struct {
		name   string
		tps    func(s int) int
		limit  time.Duration
		least  int
		most   int
		steady bool
	}{
		{"settles after 5 s", func(s int) int { return 1000 - 800/(1+s*s*s) }, time.Minute, 12, 25, true},
		{"settles after 30 s", func(s int) int { return min(1000, 100+30*s) }, 2 * time.Minute, 40, 80, true},
		{"goes on rising", func(s int) int { return 100 + 30*s }, time.Minute, 59, 61, false},
	} {
		r := newRun(Options{Target: takes(0), Workload: work{"a"}, Threads: 1, Time: time.Second, Warmup: c.limit, WarmupAuto: true})
		r.startClock(time.Now())
		second := 1
		for ; r.measuredFrom() == unknown && second < 200; second++ {
			s := r.tally.blank(second-1, false)
			for range c.tps(second - 1) {
				s.add(0, int64(time.Millisecond))
			}
			r.tally.take(s, false)
			r.epoch = time.Now().Add(-time.Duration(second) * time.Second)
			r.warm(0, second)
		}
		from := secondOf(r.measuredFrom())
		if from < c.least || from > c.most || *r.steady != c.steady {
			t.Errorf("%s: measured from second %d on, steady %v; want from from %v to %v, *r.steady %v", c.name, from, *r.steady, c.least, c.most, c.steady)
		}
	}
}

// TestLateSecondsAreCounted hands over a second long after it has passed: in a long run its histogram is gone by then.
func TestLateSecondsAreCounted(t *testing.T) {
	tally := newTally(1, 1)
	hand := func(second int, took time.Duration) {
		s := tally.blank(second, false)
		s.add(0, int64(took))
		s.queries[drive.Read] = 2
		tally.take(s, true)
	}
	for second := range 200 {
		hand(second, time.Millisecond)
	}
	hand(199, 3*time.Second)
	hand(5, 2*time.Second)
	open := 0
	for _, s := range tally.seconds {
		if s.hist != nil {
			open++
		}
	}
	line := tally.timeline(0, 200, 0)
	if open > keptOpen+1 || line[199].Transactions != 2 || line[199].P99 != 3 || line[5].Transactions != 2 || line[5].Queries != 4 || line[5].Max != 2 || line[5].P50 != 0.001 {
		t.Errorf("got %d open, %+v, %+v; want open at most %d, Transactions 2, P99 3, Transactions 2, Queries 4, Max 2, P50 0.001",
			open, line[199], line[5], keptOpen+1)
	}
	if h := tally.latency[0]; h.n != 202 || h.max != int64(3*time.Second) {
		t.Errorf("got %d transactions, longest %v; want h.n 202, h.max %v", h.n, h.max, int64(3*time.Second))
	}
}

func TestOptionsAreChecked(t *testing.T) {
	good := Options{Target: takes(0), Workload: work{"a"}, Threads: 1, Time: time.Second}
	for name, f := range map[string]func(*Options){
		"threads":    func(o *Options) { o.Threads = 0 },
		"time":       func(o *Options) { o.Time = -1 },
		"warm-up":    func(o *Options) { o.Warmup = -1 },
		"long":       func(o *Options) { o.Time = longestTime + 1 },
		"both":       func(o *Options) { o.Time, o.Warmup = longestTime, math.MaxInt64-longestTime },
		"rate":       func(o *Options) { o.Rate = math.NaN() },
		"percentile": func(o *Options) { o.Percentiles = []float64{101} },
	} {
		o := good
		f(&o)
		if _, err := Run(t.Context(), o); !errors.Is(err, workload.ErrUsage) {
			t.Errorf("%s: got %v, want workload.ErrUsage", name, err)
		}
	}
}
