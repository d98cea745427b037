package applier

import (
	"sort"
	"strings"

	"github.com/rissodb/risso/internal/mysql/read"
)

// Watch gathers looks at the workers of a replica.
type Watch struct {
	looks   int
	workers map[int64]*Worker
	applied map[int64]string // the last transaction that was seen of each
	feeder  Feeder
	feeders int
	oldest  Oldest
}

// Worker is what one worker was seen doing, as shares of the looks.
type Worker struct {
	Session int64   `json:"session"`           // the worker's connection ID
	Channel string  `json:"channel,omitempty"` // replication channel that it works for, if the server says
	Busy    float64 `json:"busy"`              // it applies
	Commits float64 `json:"commits"`           // it waits for the disk of the logs
	Locked  float64 `json:"locked"`            // it waits for a lock of the server
	InOrder float64 `json:"in_order"`          // it is done, and waits for the commit of one before
	Depends float64 `json:"depends"`           // it may not begin before others are done
	Idle    float64 `json:"idle"`              // it has nothing to do
	Seen    int     `json:"seen"`              // different transactions that it was found to have finished; it may have finished more
	Seconds float64 `json:"seconds"`           // that those took on average; 0: not known
	Retries int64   `json:"retries"`           // how often those were tried again
}

// Feeder is what the thread that gives transactions to workers was seen doing; without workers it applies by itself.
type Feeder struct {
	Busy    float64 `json:"busy"`    // it reads and gives out, or applies by itself
	Idle    float64 `json:"idle"`    // there is nothing to give out
	Depends float64 `json:"depends"` // the next one depends on one that is being applied
	Full    float64 `json:"full"`    // all workers have as much as they can take
	Other   float64 `json:"other"`   // delayed, or it waits for a lock
}

// Oldest is the transaction in work that was seen most often.
type Oldest struct {
	Transaction string  `json:"transaction"`         // its GTID; empty if the server does not say
	Statement   string  `json:"statement,omitempty"` // that is being applied, if there is one
	Open        float64 `json:"open_seconds"`        // how long it had been open, in seconds
	Rows        int64   `json:"rows"`                // that it had changed; -1: not known
}

// Verdict is what keeps a replica from applying faster.
type Verdict string

// The verdicts.
const (
	Stopped   Verdict = "stopped"      // nothing applies
	Unseen    Verdict = "unseen"       // the thread that applies runs, and the account does not see what it does
	KeepsUp   Verdict = "keeps_up"     // most of the time there is nothing to apply
	OneThread Verdict = "one_thread"   // one thread applies, and is busy
	OneBusy   Verdict = "one_worker"   // one worker is busy with what came, and there is nothing else to apply
	Dependent Verdict = "dependent"    // transactions wait for those that they depend on, by the log
	Ordered   Verdict = "commit_order" // workers are done, and wait for the commit of one before
	AllBusy   Verdict = "all_busy"     // the workers are
	LockWaits Verdict = "locks"        // they wait for locks
	Feeding   Verdict = "feeding"      // the thread that reads and gives out is the limit
	Mixed     Verdict = "mixed"        // none of it stands out
)

// Live is what was seen of a replica.
type Live struct {
	Looks       int      `json:"looks"` // how often the replica was looked at
	Workers     []Worker `json:"workers"`
	Feeder      Feeder   `json:"coordinator"`
	BusyWorkers float64  `json:"busy_workers"` // that apply or commit at the same time, on average
	Oldest      *Oldest  `json:"oldest,omitempty"`
	Verdict     Verdict  `json:"verdict"`
}

// NewWatch begins.
func NewWatch() *Watch {
	return &Watch{workers: map[int64]*Worker{}, applied: map[int64]string{}}
}

// Add takes one look: what the threads do, and what workers finished last.
func (w *Watch) Add(threads []read.Applier, last []read.Applied) {
	w.looks++
	for _, a := range threads {
		switch a.Role {
		case read.ApplierCoordinates:
			w.feeders++
			w.feed(a)
		case read.ApplierWorks:
			x := w.workers[a.Session]
			if x == nil {
				x = &Worker{Session: a.Session, Channel: a.Channel}
				w.workers[a.Session] = x
			}
			*x.counter(a)++
		}
		if a.Role != read.ApplierReceives && a.Open > w.oldest.Open {
			w.oldest = Oldest{a.Transaction, a.Statement, a.Open, a.Rows}
		}
	}
	for _, a := range last {
		x := w.workers[a.Session]
		was, known := w.applied[a.Session]
		if w.applied[a.Session] = a.Transaction; x == nil || !known || was == a.Transaction {
			continue
		}
		x.Seen++
		x.Seconds += a.Seconds
		x.Retries += a.Retries
	}
}

// counter is where a look at a worker counts.
func (x *Worker) counter(a read.Applier) *float64 {
	switch {
	case strings.Contains(a.State, "to start commit"): // MariaDB: the group of commits before
		return &x.Depends
	case a.Doing == read.ApplierIdle:
		return &x.Idle
	case a.Doing == read.ApplierInOrder:
		return &x.InOrder
	case a.Doing == read.ApplierLocked:
		return &x.Locked
	case a.Doing == read.ApplierCommits || a.Doing == read.ApplierSemiSync:
		return &x.Commits
	}
	return &x.Busy
}

func (w *Watch) feed(a read.Applier) {
	f := &w.feeder
	switch a.Doing {
	case read.ApplierIdle:
		f.Idle++
	case read.ApplierFeeds:
		if strings.Contains(a.State, "dependent") {
			f.Depends++
		} else {
			f.Full++
		}
	case read.ApplierDelayed, read.ApplierLocked:
		f.Other++
	default:
		f.Busy++
	}
}

// Live is what was seen; running: the server says that its appliers run, whether or not their threads were seen.
func (w *Watch) Live(running bool) Live {
	l := Live{Looks: w.looks, Workers: []Worker{}, Feeder: w.feeder, Verdict: Stopped}
	if running {
		l.Verdict = Unseen
	}
	if w.looks == 0 {
		return l
	}
	n := float64(w.looks)
	for _, x := range w.workers {
		y := *x
		for _, p := range []*float64{&y.Busy, &y.Commits, &y.Locked, &y.InOrder, &y.Depends, &y.Idle} {
			*p /= n
		}
		if y.Seen > 0 {
			y.Seconds /= float64(y.Seen)
		}
		l.BusyWorkers += y.Busy + y.Commits
		l.Workers = append(l.Workers, y)
	}
	sort.Slice(l.Workers, func(i, j int) bool { return l.Workers[i].Session < l.Workers[j].Session })
	if w.feeders == 0 {
		return l
	}
	f := &l.Feeder
	for _, p := range []*float64{&f.Busy, &f.Idle, &f.Depends, &f.Full, &f.Other} {
		*p /= float64(w.feeders)
	}
	if len(l.Workers) == 0 {
		l.BusyWorkers = f.Busy
	}
	if w.oldest.Open > 0 {
		o := w.oldest
		l.Oldest = &o
	}
	l.Verdict = l.verdict()
	return l
}

// most is from which share of the looks on something is what keeps the replica.
const most = 0.4

func (l *Live) verdict() Verdict {
	f, n := l.Feeder, max(1, float64(len(l.Workers)))
	var mean Worker
	idlest, busiest := 1.0, 0.0
	for _, x := range l.Workers {
		idlest, busiest = min(idlest, x.Idle), max(busiest, x.Busy+x.Commits)
		mean.Idle += x.Idle / n
		mean.Busy += (x.Busy + x.Commits) / n
		mean.InOrder += x.InOrder / n
		mean.Depends += x.Depends / n
		mean.Locked += x.Locked / n
	}
	switch {
	case len(l.Workers) == 0 && f.Idle > 1-most || f.Idle > 1-most && idlest > most/2:
		return KeepsUp
	case len(l.Workers) == 0:
		return OneThread
	case f.Idle > 1-most && busiest > 1-most && mean.Idle+busiest/n > 1-most/n:
		return OneBusy
	case f.Depends > most || mean.Depends > most:
		return Dependent
	case mean.Locked > most:
		return LockWaits
	case mean.InOrder > most:
		return Ordered
	case mean.Busy > 1-most || f.Full > most:
		return AllBusy
	case f.Busy > 1-most:
		return Feeding
	}
	return Mixed
}
