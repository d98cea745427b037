package alert

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/state"
)

var midnight = time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)

// after is a moment so many seconds after midnight.
func after(seconds int) time.Time { return midnight.Add(time.Duration(seconds) * time.Second) }

// night is what was wrong on some servers, and how the engine takes it.
type night struct {
	policy   Policy
	records  []state.FindingRecord
	causes   map[string]Cause // by instance
	open     map[string]int   // until when it is not known whether there is one
	silences []Silence
	acks     []Ack
}

// wrong adds a finding that holds from begin to end; end 0: it does not end.
func (n *night) wrong(instance, finding string, severity fleet.Severity, begin, end int) {
	id, subject, _ := strings.Cut(finding, ":")
	f := fleet.Finding{ID: id, Subject: subject, Severity: severity, Since: after(begin), Trouble: fleet.Trouble{What: id + " holds"}}
	r := state.FindingRecord{ID: int64(len(n.records) + 1), Instance: instance, First: f, Worst: f, Told: after(begin)}
	if end != 0 {
		r.Ended = after(end)
	}
	n.records = append(n.records, r)
}

// run looks each second until a moment, and says who was told what: "12 ops critical a/server.down".
func (n *night) run(until int, each func(State) State) (told []string) {
	slices.SortStableFunc(n.records, func(a, b state.FindingRecord) int { return a.Ended.Compare(b.Ended) })
	var s State
	for t := range until {
		var open []state.FindingRecord
		for i, r := range n.records {
			if r.Told.After(after(t)) {
				continue
			}
			if r.Ended.After(after(t)) {
				r.Ended = time.Time{}
			} else if !r.Ended.IsZero() {
				r.Closed = int64(i + 1)
			}
			if r.Closed == 0 || r.Closed > s.Cursor {
				open = append(open, r)
			}
		}
		d := n.policy.Look(after(t), s, Input{Records: open, Silences: n.silences, Acks: n.acks, Because: func(r state.FindingRecord) (Cause, bool) {
			if t < n.open[r.Instance] {
				return Cause{Open: true}, true
			}
			c, ok := n.causes[r.Instance]
			return c, ok
		}})
		if s = d.State; each != nil {
			s = each(s)
		}
		for _, o := range d.Out {
			told = append(told, words(t, o))
		}
	}
	return told
}

func words(t int, o Out) string {
	var list []string
	for _, a := range o.Message.Alerts {
		w := a.Instance + "/" + a.Finding
		if a.Phase == Resolved {
			w = "ok:" + w
		}
		if a.Times > 1 {
			w += fmt.Sprintf("×%d", a.Times)
		}
		if len(a.Affected) > 0 {
			w += "(" + strings.Join(a.Affected, ",") + ")"
		}
		list = append(list, w)
	}
	again := ""
	if o.Message.Again {
		again = "again "
	}
	if q := o.Message.Quiet; !q.IsZero() {
		again += fmt.Sprintf("quiet since %.0f: ", q.Sub(midnight).Seconds())
	}
	return fmt.Sprintf("%d %s %s%s", t, o.Receiver, again, strings.Join(list, " "))
}

const (
	info     = fleet.SeverityInfo
	warning  = fleet.SeverityWarning
	critical = fleet.SeverityCritical
)

func TestLook(t *testing.T) {
	ops := Policy{Receivers: []string{"ops"}}
	for name, c := range map[string]struct {
		night night
		plan  func(n *night)
		until int
		want  []string
	}{
		"critical rings at once, and its end is told": {plan: func(n *night) { n.wrong("a", "server.down", critical, 10, 50) },
			until: 200, want: []string{"10 ops a/server.down", "80 ops ok:a/server.down"}},
		"a warning rings when it lasts": {plan: func(n *night) {
			n.wrong("a", "threads.pileup", warning, 10, 0)
			n.wrong("b", "threads.pileup", warning, 10, 60)
		},
			until: 300, want: []string{"135 ops a/threads.pileup"}},
		"what is only worth knowing does not ring": {plan: func(n *night) { n.wrong("a", "x", info, 10, 0) }, until: 3000},
		"what is over before it could be told is told once": {plan: func(n *night) { n.wrong("a", "lock.global", critical, 10, 10) },
			until: 300, want: []string{"10 ops ok:a/lock.global"}},
		"what comes back soon is the same alert": {plan: func(n *night) {
			n.wrong("a", "server.down", critical, 10, 20)
			n.wrong("a", "server.down", critical, 40, 50)
		},
			until: 300, want: []string{"10 ops a/server.down", "80 ops ok:a/server.down×2"}},
		"something else is told at once, the same again after a lull": {plan: func(n *night) {
			n.wrong("a", "lock.blocker:1", critical, 10, 0)
			n.wrong("a", "lock.blocker:2", critical, 20, 0)
			n.wrong("a", "repl.stopped", critical, 30, 0)
		}, until: 600, want: []string{"10 ops a/lock.blocker", "30 ops a/lock.blocker a/repl.stopped a/lock.blocker"}},
		"a replica does not ring for its primary": {plan: func(n *night) {
			n.wrong("p", "server.down", critical, 10, 100)
			n.wrong("r", "repl.stopped", critical, 10, 105)
			n.causes = map[string]Cause{"r": {Instance: "p", Finding: "server.down"}}
		}, until: 300, want: []string{"10 ops p/server.down(r)", "130 ops ok:p/server.down(r)"}},
		"a dead host rings once for its six servers, and for what hangs on them": {plan: func(n *night) {
			n.wrong("h", "server.down", critical, 10, 100)
			n.causes = map[string]Cause{"r": {Instance: "s0", Finding: "server.down"}}
			for i := range 6 {
				s := fmt.Sprint("s", i)
				n.wrong(s, "server.down", critical, 10, 100)
				n.causes[s] = Cause{Instance: "h", Finding: "server.down"}
			}
			n.wrong("r", "repl.stopped", critical, 12, 100)
		}, until: 600, want: []string{"10 ops h/server.down(s0,s1,s2,s3,s4,s5)", "130 ops ok:h/server.down(s0,s1,s2,s3,s4,s5,r)"}},
		"the first of a machine's servers rings for all, once it is known that all are silent; the others where it does not": {night: night{
			policy: Policy{Receivers: []string{"ops", "mail"}, Routes: []Route{{Match: Match{Server: "s0"}, To: []string{"ops"}}, {To: []string{"ops", "mail"}}}}}, plan: func(n *night) {
			n.causes = map[string]Cause{}
			n.open = map[string]int{"s0": 12, "s1": 12}
			for i := range 3 {
				s := fmt.Sprint("s", i)
				n.wrong(s, "server.down", critical, 10+i, 100)
				n.causes[s] = Cause{Instance: "s0", Finding: "server.down", Peer: true, Common: "all 3 servers of h are down"}
			}
		}, until: 300, want: []string{"12 ops s0/server.down(s1,s2)", "12 mail s1/server.down", "12 mail s2/server.down", "130 ops ok:s0/server.down(s1,s2)", "130 mail ok:s1/server.down", "130 mail ok:s2/server.down"}},
		"one that may turn out to be a machine's does not wait for long": {plan: func(n *night) {
			n.wrong("a", "server.down", critical, 10, 0)
			n.open = map[string]int{"a": 1000}
		}, until: 60, want: []string{"15 ops a/server.down"}},
		"the first of a machine's servers is silenced, the others ring": {plan: func(n *night) {
			n.wrong("s0", "server.down", critical, 10, 0)
			n.wrong("s1", "server.down", critical, 10, 0)
			n.causes = map[string]Cause{"s1": {Instance: "s0", Finding: "server.down", Peer: true, Common: "all 2 servers of h are down"}}
			n.silences = []Silence{{Match: Match{Server: "s0"}, Begin: after(0), End: after(1000)}}
		}, until: 60, want: []string{"10 ops s1/server.down"}},
		"of two that explain each other one rings": {plan: func(n *night) {
			n.wrong("a", "repl.stopped", critical, 10, 0)
			n.wrong("b", "repl.stopped", critical, 10, 0)
			n.causes = map[string]Cause{"a": {Instance: "b", Finding: "repl.stopped"}, "b": {Instance: "a", Finding: "repl.stopped"}}
		}, until: 600, want: []string{"10 ops a/repl.stopped(b)"}},
		"what is told of in a lull and ends in it is told": {plan: func(n *night) {
			n.wrong("a", "server.hung", critical, 5, 0)
			n.wrong("a", "lock.blocker:1", critical, 10, 0)
			n.wrong("a", "lock.blocker:2", critical, 20, 25)
		}, until: 600, want: []string{"5 ops a/server.hung", "10 ops a/lock.blocker a/server.hung", "130 ops a/server.hung a/lock.blocker ok:a/lock.blocker"}},
		"silenced until it is not": {plan: func(n *night) {
			n.wrong("a", "server.down", critical, 10, 0)
			n.silences = []Silence{{Match: Match{Server: "a"}, Begin: after(0), End: after(100)}}
		}, until: 300, want: []string{"100 ops a/server.down"}},
		"a silence does not hold back the end of what was told": {plan: func(n *night) {
			n.wrong("a", "server.down", critical, 10, 40)
			n.silences = []Silence{{Match: Match{Server: "a"}, Begin: after(20), End: after(1000)}}
		}, until: 300, want: []string{"10 ops a/server.down", "70 ops ok:a/server.down"}},
		"told again, until somebody knows": {plan: func(n *night) {
			n.policy.Repeat = 100 * time.Second
			n.wrong("a", "server.down", critical, 10, 0)
			n.acks = []Ack{{Key: "a/server.down", At: after(150), By: "ann"}}
		}, until: 500, want: []string{"10 ops a/server.down", "110 ops again a/server.down"}},
		"many servers at once are one message": {plan: func(n *night) {
			for i := range 9 {
				n.wrong(fmt.Sprint("s", i), "server.down", critical, 10, 0)
			}
		}, until: 60, want: []string{"10 ops s0/server.down s1/server.down s2/server.down s3/server.down s4/server.down s5/server.down s6/server.down s7/server.down s8/server.down"}},
		"routes and quiet hours": {night: night{policy: Policy{Receivers: []string{"pager", "mail"}, Routes: []Route{
			{Match: Match{Severity: critical}, To: []string{"pager"}, On: true},
			{Match: Match{Server: "test-*"}},
			{To: []string{"mail"}, Quiet: []Hours{{From: 0, To: 200 * time.Second}}, Loud: critical}}}},
			plan: func(n *night) {
				n.wrong("a", "server.down", critical, 10, 0)
				n.wrong("b", "protect.late", warning, 10, 0)
				n.wrong("test-1", "server.down", critical, 10, 0)
			}, until: 300, want: []string{"10 pager a/server.down", "10 pager test-1/server.down", "10 mail a/server.down", "200 mail quiet since 10: b/protect.late"}},
		"after quiet hours one message tells what still fires and what ended": {night: night{policy: Policy{Receivers: []string{"mail"}, Routes: []Route{
			{To: []string{"mail"}, Quiet: []Hours{{From: 0, To: 900 * time.Second}}, Loud: critical}}}},
			plan: func(n *night) {
				n.wrong("a", "protect.late", warning, 10, 100)
				n.wrong("a", "protect.late", warning, 300, 400)
				n.wrong("b", "cert.expires", warning, 20, 0)
				n.wrong("c", "protect.late", warning, 30, 0)
				n.wrong("d", "server.down", critical, 40, 60)
				n.wrong("e", "trx.long", warning, 200, 300)
				n.wrong("e", "trx.long", warning, 850, 1000)
				n.silences = []Silence{{Match: Match{Server: "c"}, Begin: after(500), End: after(2000)}}
			}, until: 1990, want: []string{"40 mail d/server.down", "90 mail ok:d/server.down",
				"900 mail quiet since 10: b/cert.expires e/trx.long ok:a/protect.late×2", "1060 mail ok:e/trx.long"}},
		"what gets worse in quiet hours rings": {night: night{policy: Policy{Receivers: []string{"mail"}, Routes: []Route{
			{To: []string{"mail"}, Quiet: []Hours{{From: 0, To: 900 * time.Second}}, Loud: critical}}}},
			plan: func(n *night) {
				n.wrong("a", "protect.late", warning, 10, 100)
				n.wrong("a", "protect.late", critical, 110, 0)
			}, until: 1000, want: []string{"110 mail a/protect.late×2"}},
		"what ended in quiet hours waits for a silence": {night: night{policy: Policy{Receivers: []string{"mail"}, Routes: []Route{
			{To: []string{"mail"}, Quiet: []Hours{{From: 0, To: 900 * time.Second}}, Loud: critical}}}},
			plan: func(n *night) {
				n.wrong("a", "protect.late", warning, 10, 100)
				n.wrong("b", "protect.late", warning, 10, 100)
				n.silences = []Silence{{Match: Match{Server: "a"}, Begin: after(500), End: after(1500)}, {Match: Match{Server: "b"}, Begin: after(0), End: after(800)}}
			}, until: 3000, want: []string{"1500 mail quiet since 10: ok:a/protect.late"}},
		"thresholds": {plan: func(n *night) {
			n.policy.Thresholds = []Threshold{{Match: Match{Finding: "repl.*"}, For: seconds(40)}, {Match: Match{Finding: "server.down", Server: "b"}, Off: true}}
			n.wrong("a", "repl.stopped", critical, 10, 0)
			n.wrong("b", "server.down", critical, 10, 0)
		}, until: 300, want: []string{"50 ops a/repl.stopped"}},
	} {
		n := c.night
		if n.policy.Receivers == nil {
			n.policy = ops
		}
		c.plan(&n)
		if got := n.run(c.until, nil); !slices.Equal(got, c.want) {
			t.Errorf("%s: got\n\t%s\nwant\n\t%s", name, strings.Join(got, "\n\t"), strings.Join(c.want, "\n\t"))
		}
	}
}

// TestKept: an engine that is stopped after each look, and goes on with what was written, tells the same.
func TestKept(t *testing.T) {
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 1))
		fresh := func() *night {
			r := rand.New(rand.NewPCG(seed, 2))
			n := &night{policy: Policy{Receivers: []string{"ops", "mail"}, Repeat: 5 * time.Minute}, causes: map[string]Cause{"c": {Instance: "a", Finding: "server.down"}}}
			for range 20 {
				begin := r.IntN(900)
				n.wrong(string(rune('a'+r.IntN(3))), []string{"server.down", "repl.stopped", "lock.blocker:1", "lock.blocker:2"}[r.IntN(4)], warning+fleet.Severity(r.IntN(2)), begin, begin+r.IntN(300))
			}
			return n
		}
		want := fresh().run(1500, nil)
		got := fresh().run(1500, func(s State) State {
			if r.IntN(3) > 0 {
				return s
			}
			text, err := json.Marshal(s)
			if err != nil {
				t.Fatalf("write the state: %v", err)
			}
			var again State
			if err := json.Unmarshal(text, &again); err != nil {
				t.Fatalf("read the state: %v", err)
			}
			return again
		})
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: got %d messages, want the %d that an engine without stops tells:\n%s\n\n%s", seed, len(got), len(want), strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		for _, a := range []string{"a", "b", "c"} {
			if len(want) == 0 || !told(want, a+"/") && a != "c" {
				t.Errorf("seed %d: nothing was told of %s", seed, a)
			}
		}
	}
}

func told(list []string, part string) bool {
	return slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, part) })
}

// TestStorm: what comes and goes all night rings seldom, and what is new is told nevertheless.
func TestStorm(t *testing.T) {
	n := &night{policy: Policy{Receivers: []string{"ops"}}}
	for begin := 10; begin < 3*3600; begin += 90 {
		n.wrong("a", fmt.Sprint("lock.blocker:connection ", begin), critical, begin, begin+20)
	}
	n.wrong("a", "repl.stopped", critical, 5000, 0)
	got := n.run(4*3600, nil)
	if len(got) > 50 {
		t.Errorf("got %d messages of 120 locks in three hours, want at most 50", len(got))
	}
	if !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "5000 ops") && strings.Contains(s, "a/repl.stopped") }) {
		t.Errorf("got %d messages, want one in second 5000 of the replica that stopped", len(got))
	}
}

func TestHours(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	night := Hours{Days: []time.Weekday{time.Friday}, From: 22 * time.Hour, To: 7 * time.Hour, Zone: zone}
	for at, want := range map[string]bool{
		"2026-11-20T22:00:00+01:00": true, "2026-11-20T21:59:59+01:00": false, "2026-11-21T06:59:59+01:00": true, "2026-11-21T07:00:00+01:00": false,
		"2026-11-21T22:00:00+01:00": false, "2026-11-20T21:30:00Z": true,
	} {
		moment, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		if got := night.Contain(moment); got != want {
			t.Errorf("%s is in Friday night: got %t, want %t", at, got, want)
		}
	}
}

// TestReplay: a replay of what was kept rings as often as it rang, and a threshold of its own changes that.
func TestReplay(t *testing.T) {
	n := &night{policy: Policy{Receivers: []string{"ops"}}}
	n.wrong("a", "server.down", critical, 100, 160)
	n.wrong("a", "threads.pileup", warning, 300, 500)
	n.wrong("b", "threads.pileup", warning, 300, 330)
	n.wrong("b", "server.down", critical, 900, 0)
	want := n.run(2000, nil)
	got := n.policy.Replay(n.records, nil, after(0), after(2000))
	if got.Rang != 3 || got.Messages != len(want) || got.Findings != 4 {
		t.Errorf("got %+v, want 3 alerts of 4 findings in %d messages: %q", got, len(want), want)
	}
	n.policy.Thresholds = []Threshold{{Match: Match{Finding: "threads.*"}, For: seconds(10)}}
	if got := n.policy.Replay(n.records, nil, after(0), after(2000)); got.Rang != 4 {
		t.Errorf("with a threshold of 10 s: got %d alerts, want 4", got.Rang)
	}
}

// TestAwaits: one that stands for others is told when these are written down, too, so that it names them; it does not wait for long.
func TestAwaits(t *testing.T) {
	for second, want := range map[int]int{2: 2, 60: 5} { // when the other is written down, and when it is told
		n := night{}
		n.wrong("a", "server.down", fleet.SeverityCritical, 0, 0)
		n.wrong("b", "server.down", fleet.SeverityCritical, 0, 0)
		var s State
		told, names := -1, 0
		for at := range 10 {
			records := n.records[:1]
			if at >= second {
				records = n.records
			}
			d := (&Policy{Receivers: []string{"ops"}}).Look(after(at), s, Input{Records: slices.Clone(records), Because: func(r state.FindingRecord) (Cause, bool) {
				if r.Instance == "a" {
					return Cause{Awaits: []string{"b/server.down"}}, true
				}
				return Cause{Instance: "a", Finding: "server.down", Peer: true, Common: "both are down"}, true
			}})
			if s = d.State; told < 0 && len(d.Out) > 0 {
				told, names = at, len(d.Out[0].Message.Alerts[0].Affected)
			}
		}
		if told != want || (names == 1) != (second == 2) {
			t.Errorf("the other is written down in second %d: told in %d, naming %d; want %d", second, told, names, want)
		}
	}
}

// TestLingering: what no longer holds, and is listed only because it may come back at once, has not held for as long as it is listed.
func TestLingering(t *testing.T) {
	p := Policy{Receivers: []string{"ops"}}
	for name, c := range map[string]struct {
		last  map[int]int // by second: when it last held
		rings int         // when it rings; -1: never
	}{
		"it holds":            {nil, 3},
		"it held for 2 s":     {map[int]int{3: 2, 4: 2, 5: 2, 6: 2, 7: 2, 8: 2, 9: 2}, -1},
		"it came back":        {map[int]int{3: 2, 4: 2}, 5},
		"it held for just 3s": {map[int]int{4: 3, 5: 3}, 3},
	} {
		n := night{}
		n.wrong("a", "server.stall", fleet.SeverityCritical, 0, 0)
		var s State
		rings := -1
		for at := range 10 {
			d := p.Look(after(at), s, Input{Records: n.records, Last: func(*Alert) time.Time {
				if last, ok := c.last[at]; ok {
					return after(last)
				}
				return time.Time{}
			}})
			if s = d.State; rings < 0 && len(d.Out) > 0 {
				rings = at
			}
			if !d.Next.IsZero() && !d.Next.After(after(at)) {
				t.Errorf("%s, second %d: the next look is at %v, want a time to come", name, at, d.Next)
			}
		}
		if rings != c.rings {
			t.Errorf("%s: it rings in second %d, want %d", name, rings, c.rings)
		}
	}
}

// TestAnotherErrorIsTold: who was told of an error at which a channel stopped hears of the next one, whose remedy is another, when the lull
// is over; an alert of a version that did not keep that is not told again.
func TestAnotherErrorIsTold(t *testing.T) {
	for _, c := range []struct {
		first string
		want  []int
	}{{"error 1146 in 1", []int{0, 60}}, {"", []int{0}}} {
		r := state.FindingRecord{ID: 1, Instance: "r", First: fleet.Finding{ID: "repl.stopped", Severity: fleet.SeverityCritical, Since: midnight, Case: c.first}, Told: midnight}
		r.Worst = r.First
		p := Policy{Receivers: []string{"ops"}}
		var s State
		var at []int
		for n := range 200 {
			if n == 10 {
				r.Worst.Case, r.Worst.Remedy = "error 1062 in 2", "START REPLICA"
			}
			d := p.Look(after(n), s, Input{Records: []state.FindingRecord{r}})
			s = d.State
			for _, o := range d.Out {
				at = append(at, n)
				if o.Message.Again || n > 0 && o.Message.Alerts[0].Remedy != r.Worst.Remedy {
					t.Errorf("at %d: got %+v, want the new remedy as news", n, o.Message)
				}
			}
		}
		if !slices.Equal(at, c.want) {
			t.Errorf("after %q: told at %v, want %v", c.first, at, c.want)
		}
	}
}
