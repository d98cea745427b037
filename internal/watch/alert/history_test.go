package alert

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/state"
)

// randomNight is a night of findings on some servers, with causes, also in circles, and silences. Everything is over in the end.
func randomNight(seed uint64) (n *night, over int) {
	r := rand.New(rand.NewPCG(seed, 7))
	n = &night{policy: Policy{Receivers: []string{"ops", "mail"}, Repeat: time.Duration(5+r.IntN(30)) * time.Minute}, causes: map[string]Cause{}}
	if r.IntN(4) > 0 { // quiet hours of one of the two
		from := time.Duration(r.IntN(1000)) * time.Second
		quiet := []Hours{{From: from, To: from + time.Duration(1+r.IntN(3000))*time.Second}}
		n.policy.Routes = []Route{{To: []string{"ops"}, On: true}, {To: []string{"mail"}, Quiet: quiet, Loud: critical}}
	}
	servers := 1 + r.IntN(14)
	kinds := []string{"server.down", "repl.stopped", "lock.blocker:1", "lock.blocker:2", "lock.blocker:3", "disk.full", "threads.pileup"}
	busy := map[string]int{} // until when a finding of a server holds
	for range 5 + r.IntN(60) {
		server, kind := fmt.Sprint("s", r.IntN(servers)), kinds[r.IntN(len(kinds))]
		begin := max(1+r.IntN(2500), busy[server+kind]+1)
		end := begin + r.IntN(1+[]int{5, 60, 900}[r.IntN(3)])
		busy[server+kind], over = end, max(over, end)
		n.wrong(server, kind, []fleet.Severity{warning, critical}[r.IntN(2)], begin, end)
	}
	for range r.IntN(4) {
		n.causes[fmt.Sprint("s", r.IntN(servers))] = Cause{Instance: fmt.Sprint("s", r.IntN(servers)), Finding: kinds[r.IntN(2)]}
	}
	for range r.IntN(3) {
		begin := r.IntN(2500)
		n.silences = append(n.silences, Silence{Match: Match{Server: fmt.Sprint("s", r.IntN(servers))}, Begin: after(begin), End: after(begin + r.IntN(900))})
	}
	slices.SortStableFunc(n.records, func(a, b state.FindingRecord) int { return a.Ended.Compare(b.Ended) })
	return n, over
}

// at is what the store has at a second, for an engine that looked at what was closed up to cursor.
func (n *night) at(second int, cursor int64) (list []state.FindingRecord) {
	for i, r := range n.records {
		if r.Told.After(after(second)) {
			continue
		}
		if r.Ended.After(after(second)) {
			r.Ended = time.Time{}
		} else {
			r.Closed = int64(i + 1)
		}
		if r.Closed == 0 || r.Closed > cursor {
			list = append(list, r)
		}
	}
	return list
}

// witness sees what an engine does, and what is wrong with it.
type witness struct {
	t     *testing.T
	seed  uint64
	ids   map[string]bool
	heard map[string]Alert // by receiver and key: what it was told last
	held  map[string]bool  // by key and when it rang: something held it back at some time
	rang  []Standing       // that are over

	policy    *Policy
	waits     map[string]time.Time // by receiver and key: what ended in quiet hours, and is still to be told; when it ended
	summaries int                  // messages after quiet hours
}

func newWitness(t *testing.T, seed uint64, p *Policy) *witness {
	return &witness{t: t, seed: seed, ids: map[string]bool{}, heard: map[string]Alert{}, held: map[string]bool{}, policy: p, waits: map[string]time.Time{}}
}

// quiet says whether an alert is not to be told at a second.
func (w *witness) quiet(second int, receiver string, a *Alert) bool {
	return w.policy.receivers(a, after(second))[receiver] != ""
}

func (w *witness) message(second int, o Out) {
	if w.ids[o.Message.ID] {
		w.t.Errorf("seed %d, second %d: there are two messages %s", w.seed, second, o.Message.ID)
	}
	w.ids[o.Message.ID] = true
	news := o.Message.Again
	for _, a := range o.Message.Alerts {
		key := o.Receiver + " " + a.Key
		before, known := w.heard[key]
		same := known && before.Rang.Equal(a.Rang) && before.Phase == a.Phase && before.Severity >= a.Severity
		news = news || !same
		if again := before.Rang.Equal(a.Rang); w.quiet(second, o.Receiver, &a) && !(known && again) {
			w.t.Errorf("seed %d, second %d: %s is told %s in quiet hours", w.seed, second, o.Receiver, a.Key)
		}
		if a.Phase == Resolved && !o.Message.Quiet.IsZero() && same {
			w.t.Errorf("seed %d, second %d: %s is told again after quiet hours that %s ended", w.seed, second, o.Receiver, a.Key)
		}
		if ended, waits := w.waits[key]; waits && (a.Phase == Firing || a.Ended.After(ended) || !o.Message.Quiet.IsZero()) { // a later ring that is known says enough
			if a.Phase == Resolved && a.Ended.Before(ended) {
				w.t.Errorf("seed %d, second %d: %s is told that %s ended at %s, want the last end %s", w.seed, second, o.Receiver, a.Key, a.Ended, ended)
			}
			delete(w.waits, key)
		}
		if a.Phase == Resolved && (a.Ended.IsZero() || a.Ended.After(after(second)) || a.Ended.Before(a.Began)) {
			w.t.Errorf("seed %d, second %d: %s ended %s, which is not between its begin %s and now", w.seed, second, a.Key, a.Ended, a.Began)
		}
		if known && !before.Rang.Equal(a.Rang) && before.Phase != Resolved {
			w.t.Errorf("seed %d, second %d: %s rings anew for %s, which was not told that it ended", w.seed, second, a.Key, o.Receiver)
		}
		w.heard[key] = a
	}
	if !o.Message.Quiet.IsZero() {
		w.summaries++
	}
	if !news && o.Message.Held == 0 {
		w.t.Errorf("seed %d, second %d: message %s says nothing new", w.seed, second, o.Message.ID)
	}
}

func (w *witness) look(second int, d Decision) {
	for _, o := range d.Out {
		w.message(second, o)
	}
	for _, a := range d.Changed {
		id := a.Key + a.Rang.String()
		w.held[id] = w.held[id] || a.Held != ""
		if a.Phase != Resolved {
			continue
		}
		if slices.ContainsFunc(w.rang, func(b Standing) bool { return b.Key == a.Key && b.Rang.Equal(a.Rang) }) {
			continue // somebody heard of it after quiet hours
		}
		w.rang = append(w.rang, a)
		for _, name := range []string{"ops", "mail"} {
			told, ok := a.Told[name]
			switch {
			case ok || w.held[id] || !w.quiet(second, name, &a.Alert):
			default:
				w.waits[name+" "+a.Key] = a.Ended
				continue
			}
			if !w.held[id] && (!ok || !told.Over) {
				w.t.Errorf("seed %d, second %d: %s is over, and %s was not told of it: %+v", w.seed, second, a.Key, name, a)
			}
		}
	}
}

// spend lets an engine look at a night, at random moments, and be killed now and then before or after it wrote down what follows.
func (w *witness) spend(n *night, over int) (told []string) {
	r := rand.New(rand.NewPCG(w.seed, 8))
	var s State
	for second := 0; second < over+3*3600; second += 1 + r.IntN(3)*r.IntN(2)*r.IntN(40) {
		if second > over && second < over+3600 && s.Idle() {
			second = over + 3600
		}
		for range 1 + r.IntN(2) { // also twice in one second
			d := n.policy.Look(after(second), s, Input{Records: n.at(second, s.Cursor), Silences: n.silences, Because: func(r state.FindingRecord) (Cause, bool) {
				c, ok := n.causes[r.Instance]
				return c, ok
			}})
			if r.IntN(9) == 0 { // killed before it was written
				continue
			}
			w.look(second, d)
			for _, o := range d.Out {
				told = append(told, words(second, o))
			}
			text, err := json.Marshal(d.State)
			if err != nil {
				w.t.Fatal(err)
			}
			s = State{}
			if err := json.Unmarshal(text, &s); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	for key, a := range s.Standing {
		w.t.Errorf("seed %d: %s is not over in the end: %+v", w.seed, key, a)
	}
	for key := range w.waits {
		w.t.Errorf("seed %d: it ended in quiet hours, and was not told after them: %s", w.seed, key)
	}
	if !s.Idle() {
		w.t.Errorf("seed %d: something waits for quiet hours in the end: %+v", w.seed, s.Quiet)
	}
	if w.summaries > 1+len(n.silences) { // what is silenced when they end is told after the silence
		w.t.Errorf("seed %d: got %d messages after one time of quiet hours and %d silences", w.seed, w.summaries, len(n.silences))
	}
	for key, a := range w.heard {
		if a.Phase != Resolved {
			w.t.Errorf("seed %d: %s was told last as %s", w.seed, key, a.Phase)
		}
	}
	return told
}

// TestHistories: over random nights no alert is lost, none is told twice, no end comes before its begin, all ends are told, those in quiet
// hours after them in one message, and the same night is told in the same words again.
func TestHistories(t *testing.T) {
	t.Parallel()
	alerts, summaries := 0, 0
	for seed := range uint64(25) {
		n, over := randomNight(seed)
		w := newWitness(t, seed, &n.policy)
		told := w.spend(n, over)
		alerts, summaries = alerts+len(w.rang), summaries+w.summaries
		for _, r := range n.records {
			if r.First.Severity < critical && r.Ended.Sub(r.Told) < 6*time.Minute {
				continue // it need not ring
			}
			key := Key(r.Instance, r.First.ID, r.First.Subject)
			if !slices.ContainsFunc(w.rang, func(a Standing) bool {
				return a.Key == key && !a.Began.After(r.Told) && !a.Ended.Before(r.Ended)
			}) {
				t.Errorf("seed %d: %s from %s to %s never rang", seed, key, r.Told.Format("15:04:05"), r.Ended.Format("15:04:05"))
			}
		}
		again := newWitness(t, seed, &n.policy)
		if second := again.spend(n, over); !slices.Equal(told, second) {
			t.Errorf("seed %d: the same night is told in %d messages, then in %d others", seed, len(told), len(second))
		}
		if t.Failed() {
			return
		}
	}
	if summaries < 5 {
		t.Errorf("only %d messages came after quiet hours, want more", summaries)
	}
	if alerts < 200 {
		t.Errorf("only %d alerts rang in all nights, want far more", alerts)
	}
}
