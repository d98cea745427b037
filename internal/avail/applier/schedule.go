package applier

import (
	"container/heap"
	"math"
)

// need is what has to be done before a transaction may be applied. Transactions are numbered in the order of the log, from 1, those of one
// domain without gaps of more than the log has itself.
type need struct {
	number int64  // of the transaction
	domain uint32 // transactions of different domains do not wait for each other
	after  int64  // all of its domain up to this number
	all    bool   // all that came before, of all domains
	holder int64  // and this one, which has a row that it wants; 0: none
}

// step says that all transactions of a domain up to a number are done at a time.
type step struct {
	number int64
	done   float64
	by     int32 // which of the window is the last of them; -1: one of an earlier window
}

// maxSteps bounds what a lane remembers. More transactions than that are never under way: the limit is for logs that were made to be odd.
const maxSteps = 1 << 14

// lane is a domain as a schedule sees it: when its transactions were done.
type lane struct{ steps []step }

// upTo is when all up to a number are done. What was done before the schedule's present moment is forgotten, and is 0.
func (l *lane) upTo(number int64) step {
	lo, hi := 0, len(l.steps)
	for lo < hi {
		if mid := (lo + hi) / 2; l.steps[mid].number <= number {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 {
		return step{by: -1}
	}
	return l.steps[lo-1]
}

// last is when everything so far is done.
func (l *lane) last() step {
	if len(l.steps) == 0 {
		return step{by: -1}
	}
	return l.steps[len(l.steps)-1]
}

// add notes that a transaction is done, and forgets what was before now.
func (l *lane) add(s step, now float64) {
	if s.done > l.last().done {
		l.steps = append(l.steps, s)
	}
	n := 0
	for n < len(l.steps)-1 && l.steps[n].done <= now {
		n++
	}
	if extra := len(l.steps) - n - maxSteps; extra > 0 {
		n += extra
		l.steps[n].number = l.steps[n-1].number // not sooner than it would have been
	}
	l.steps = l.steps[n:] // append gives up what is in front
}

// worker is when a worker will be free, and which transaction it is busy with until then.
type worker struct {
	free float64
	by   int32
}

type workers []worker

func (w workers) Len() int           { return len(w) }
func (w workers) Less(i, j int) bool { return w[i].free < w[j].free }
func (w workers) Swap(i, j int)      { w[i], w[j] = w[j], w[i] }
func (w *workers) Push(x any)        { *w = append(*w, x.(worker)) }
func (w *workers) Pop() any          { panic("a schedule never has fewer workers") }

// schedule applies transactions on a number of workers, in no more memory than there are workers. It does what servers do: one thread takes the
// transactions in the order of the log, and gives each to a worker that is free.
type schedule struct {
	most    int
	inOrder bool // commits are in the order of the log, and keep their workers until then
	ahead   bool // a transaction waits on its worker, and does not keep the next one from being given out
	free    workers
	lanes   map[uint32]*lane
	only    *lane // the lane of domain 0, without a look into the map
	now     float64
	nowBy   int32 // what made the thread that gives out wait until now
	nowFor  int32 // and which transaction it had in hand
	end     float64
}

func newSchedule(most int, inOrder, ahead bool) *schedule {
	s := &schedule{most: most, inOrder: inOrder, ahead: ahead, only: &lane{}, nowBy: -1, nowFor: -1}
	s.lanes = map[uint32]*lane{0: s.only}
	return s
}

func (s *schedule) lane(domain uint32) *lane {
	if domain == 0 {
		return s.only
	}
	l := s.lanes[domain]
	if l == nil {
		l = &lane{}
		s.lanes[domain] = l
	}
	return l
}

// everything is when all that was given out is done.
func (s *schedule) everything() step {
	at := s.only.last()
	for _, l := range s.lanes {
		if x := l.last(); x.done > at.done {
			at = x
		}
	}
	return at
}

// run gives out a transaction that takes so long. me is its place in the window. It tells what the beginning waited for, and on whose behalf.
func (s *schedule) run(n need, cost float64, me int32) (by, behalf int32) {
	l := s.lane(n.domain)
	ready := step{by: -1}
	switch {
	case n.all:
		ready = s.everything()
	case n.after > 0:
		ready = l.upTo(n.after)
	}
	if !s.ahead && ready.done > s.now {
		s.now, s.nowBy, s.nowFor = ready.done, ready.by, me
	}
	busy := len(s.free) == s.most
	if busy && s.free[0].free > s.now {
		s.now, s.nowBy, s.nowFor = s.free[0].free, s.free[0].by, -1
	}
	start, by, behalf := s.now, s.nowBy, s.nowFor
	if ready.done > start {
		start, by, behalf = ready.done, ready.by, me
	}
	if n.holder > 0 {
		if held := l.upTo(n.holder); held.done > start {
			start, by, behalf = held.done, held.by, me
		}
	}
	done := step{n.number, start + cost, me}
	if before := l.last(); s.inOrder && before.done > done.done {
		done.done, done.by = before.done, before.by
	}
	s.end = math.Max(s.end, done.done)
	l.add(done, s.now)
	if w := (worker{done.done, done.by}); busy {
		s.free[0] = w
		heap.Fix(&s.free, 0)
	} else {
		heap.Push(&s.free, w)
	}
	return by, behalf
}

// forget makes everything that was noted one of an earlier window.
func (s *schedule) forget() {
	s.nowBy, s.nowFor = -1, -1
	for i := range s.free {
		s.free[i].by = -1
	}
	for _, l := range s.lanes {
		for i := range l.steps {
			l.steps[i].by = -1
		}
	}
}
