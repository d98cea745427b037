package applier

import (
	"testing"

	"github.com/rissodb/risso/internal/mysql/read"
)

// TestWatch: verdicts of what was seen, in the states of both flavours.
func TestWatch(t *testing.T) {
	const idle, allRead = "Waiting for an event from Coordinator", "Replica has read all relay log; waiting for more updates"
	thread := func(session int64, role read.ApplierRole, doing read.ApplierDoing, state string) read.Applier {
		return read.Applier{Session: session, Role: role, Doing: doing, State: state, Open: -1}
	}
	feeder := func(doing read.ApplierDoing, state string) read.Applier {
		return thread(1, read.ApplierCoordinates, doing, state)
	}
	work := func(session int64, doing read.ApplierDoing, state string) read.Applier {
		return thread(session, read.ApplierWorks, doing, state)
	}
	atRest, busy := feeder(read.ApplierIdle, allRead), feeder(read.ApplierBusy, "Reading event from the relay log")
	resting := func(session int64) read.Applier { return work(session, read.ApplierIdle, idle) }
	applying := func(session int64) read.Applier {
		return work(session, read.ApplierBusy, "Applying batch of row changes (update)")
	}
	waiting := func(session int64) read.Applier {
		return work(session, read.ApplierInOrder, "Waiting for preceding transaction to commit")
	}
	for name, c := range map[string]struct {
		looks [][]read.Applier
		want  Verdict
		busy  float64
	}{
		"no thread":                    {[][]read.Applier{{thread(9, read.ApplierReceives, read.ApplierIdle, "")}}, Stopped, 0},
		"threads that may not be seen": {[][]read.Applier{nil, nil}, Unseen, 0},
		"at rest":                      {[][]read.Applier{{atRest, resting(2), resting(3)}}, KeepsUp, 0},
		"now and then":                 {[][]read.Applier{{atRest, resting(2)}, {atRest, resting(2)}, {busy, applying(2)}, {atRest, resting(2)}}, KeepsUp, 0.25},
		"one thread at rest":           {[][]read.Applier{{atRest}}, KeepsUp, 0},
		"one thread":                   {[][]read.Applier{{busy}, {busy}, {atRest}}, OneThread, 2.0 / 3},
		"a long one, nothing else":     {[][]read.Applier{{atRest, applying(2), resting(3), resting(4)}}, OneBusy, 1},
		"a long one, others behind":    {[][]read.Applier{{atRest, applying(2), waiting(3), waiting(4)}}, Ordered, 1},
		"all busy":                     {[][]read.Applier{{feeder(read.ApplierFeeds, "Waiting for replica workers to process their queues"), applying(2), applying(3)}}, AllBusy, 2},
		"all have some (MariaDB)":      {[][]read.Applier{{atRest, applying(2), applying(3), waiting(4)}}, AllBusy, 2},
		"what the next depends on":     {[][]read.Applier{{feeder(read.ApplierFeeds, "Waiting for dependent transaction to commit"), applying(2), resting(3)}}, Dependent, 1},
		"the group before (MariaDB)":   {[][]read.Applier{{atRest, applying(2), work(3, read.ApplierInOrder, "Waiting for prior transaction to start commit before starting next transaction"), work(4, read.ApplierInOrder, "Waiting for prior transaction to start commit before starting next transaction")}}, Dependent, 1},
		"locks":                        {[][]read.Applier{{atRest, work(2, read.ApplierLocked, "Waiting for table metadata lock"), resting(3)}}, LockWaits, 0},
		"feeding":                      {[][]read.Applier{{busy, applying(2), resting(3), resting(4), resting(5)}}, Feeding, 1},
	} {
		w := NewWatch()
		for _, look := range c.looks {
			w.Add(look, nil)
		}
		if l := w.Live(name != "no thread"); l.Verdict != c.want || !near(l.BusyWorkers, c.busy) || l.Looks != len(c.looks) {
			t.Errorf("%s: got %s, %v busy; want %s, %v", name, l.Verdict, l.BusyWorkers, c.want, c.busy)
		}
	}
	if l := NewWatch().Live(false); l.Verdict != Stopped || l.Workers == nil {
		t.Errorf("no look: got %+v", l)
	}

	w := NewWatch()
	for i, tx := range []string{"u:1", "u:1", "u:2", "u:3", "u:3"} {
		long := applying(2)
		long.Open, long.Transaction, long.Rows = float64(i), "u:9", 7
		w.Add([]read.Applier{busy, long}, []read.Applied{{Session: 2, Transaction: tx, Seconds: float64(i), Retries: 1}, {Session: 77, Transaction: "u:4"}})
	}
	l := w.Live(true)
	if x := l.Workers[0]; x.Seen != 2 || x.Seconds != 2.5 || x.Retries != 2 || l.Oldest == nil || l.Oldest.Transaction != "u:9" || l.Oldest.Open != 4 {
		t.Errorf("got %+v %+v, want two transactions of 2.5 s each, and u:9 open for 4 s", x, l.Oldest)
	}
}
