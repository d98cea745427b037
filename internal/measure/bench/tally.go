package bench

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// tally gathers what the sessions hand over once a second. A session hands over when its first transaction in a new second
// has ended, so one that hangs does it late; its figures then go to the seconds in which its transactions ended.
type tally struct {
	kinds int

	mu      sync.Mutex
	latency []*hist // by kind
	service *hist
	queries [3]int64
	seconds map[int]*second
	closed  int             // seconds before this one are closed
	minutes map[int][]*hist // of the measured time, by kind; only if there are several kinds
	errors  map[string]*ErrorCount
	maxWait time.Duration
	backlog int64

	handed chan *slice // from the sessions
	done   chan struct{}
	free   chan *slice // to be used again
}

// keptOpen is for how many seconds the histogram of a second is kept, so that it can take what a session hands over late.
// Later only its figures are kept: what comes then is counted and changes its longest, but no percentiles.
const keptOpen = 60

// second is one second while it is being gathered.
type second struct {
	hist   *hist  // nil: closed
	figure Second // without the histogram's, while that is there
}

// read returns the figures.
func (s *second) read() Second {
	x := s.figure
	if h := s.hist; h != nil {
		at := func(p float64) float64 { return float64(h.at(p)) / 1e9 }
		x.Transactions, x.P50, x.P95, x.P99, x.Max = h.n, at(50), at(95), at(99), float64(h.max)/1e9
	}
	return x
}

func (s *second) add(h *hist) {
	if s.hist != nil {
		s.hist.merge(h)
		return
	}
	s.figure.Transactions += h.n
	s.figure.Max = max(s.figure.Max, float64(h.max)/1e9)
}

func newTally(kinds, sessions int) *tally {
	t := &tally{
		kinds: kinds, service: newHist(), seconds: map[int]*second{}, minutes: map[int][]*hist{}, errors: map[string]*ErrorCount{},
		handed: make(chan *slice, 2*sessions), free: make(chan *slice, 2*sessions), done: make(chan struct{}),
	}
	for range kinds {
		t.latency = append(t.latency, newHist())
	}
	return t
}

// slice is what one session did in one second.
type slice struct {
	second  int
	latency []*hist // by kind; nil if there was none yet
	service *hist   // nil in a closed loop
	queries [3]int64
	errors  map[string]*ErrorCount
	backlog int64
	maxWait time.Duration
}

// blank returns an empty slice.
func (t *tally) blank(second int, open bool) *slice {
	var s *slice
	select {
	case s = <-t.free:
	default:
		s = &slice{latency: make([]*hist, t.kinds)}
	}
	if open && s.service == nil {
		s.service = newHist()
	}
	s.second = second
	return s
}

// clear makes the slice ready for another second.
func (s *slice) clear() {
	for _, h := range s.latency {
		if h != nil {
			h.clear()
		}
	}
	if s.service != nil {
		s.service.clear()
	}
	s.queries, s.errors, s.backlog, s.maxWait = [3]int64{}, nil, 0, 0
}

// add counts a transaction that succeeded.
func (s *slice) add(kind int, took int64) {
	h := s.latency[kind]
	if h == nil {
		h = newHist()
		s.latency[kind] = h
	}
	h.add(took)
}

// failed counts an error.
func (s *slice) failed(label string, err error) {
	e := s.errors[label]
	if e == nil {
		if s.errors == nil {
			s.errors = map[string]*ErrorCount{}
		}
		e = &ErrorCount{Label: label, Message: err.Error()}
		s.errors[label] = e
	}
	e.Count++
}

// retried counts an error after which a client tried the same transaction again.
func (s *slice) retried(label string, err error) {
	s.failed(label, err)
	s.errors[label].Retried++
}

// gather takes slices until handed is closed. from tells when the measured time begins.
func (t *tally) gather(from func() time.Duration) {
	defer close(t.done)
	for s := range t.handed {
		zero := from()
		measured := time.Duration(s.second)*time.Second >= zero
		if measured && t.kinds > 1 {
			t.addMinute((s.second-secondOf(zero))/60, s.latency)
		}
		t.take(s, measured)
		s.clear()
		select {
		case t.free <- s:
		default:
		}
	}
}

// take adds a slice. measured is false for the warm-up: its seconds are shown, its figures not counted.
func (t *tally) take(s *slice, measured bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	sec := t.seconds[s.second]
	if sec == nil {
		sec = &second{hist: newHist()}
		t.seconds[s.second] = sec
		t.close(s.second - keptOpen)
	}
	sec.figure.Queries += s.queries[0] + s.queries[1] + s.queries[2]
	sec.figure.Backlog = max(sec.figure.Backlog, s.backlog)
	for _, e := range s.errors {
		sec.figure.Errors += e.Count
	}
	for i, h := range s.latency {
		if h == nil {
			continue
		}
		sec.add(h)
		if measured {
			t.latency[i].merge(h)
		}
	}
	if !measured {
		return
	}
	for i, n := range s.queries {
		t.queries[i] += n
	}
	for label, e := range s.errors {
		if sum := t.errors[label]; sum != nil {
			sum.Count += e.Count
			sum.Retried += e.Retried
		} else {
			t.errors[label] = e
		}
	}
	if s.service != nil {
		t.service.merge(s.service)
	}
	t.maxWait = max(t.maxWait, s.maxWait)
	t.backlog = max(t.backlog, s.backlog)
}

// close drops the histograms of the seconds before that one.
func (t *tally) close(before int) {
	for ; t.closed < before; t.closed++ {
		if sec := t.seconds[t.closed]; sec != nil && sec.hist != nil {
			sec.figure, sec.hist = sec.read(), nil
		}
	}
}

// addMinute adds what one session did in one second, by kind, to its minute.
func (t *tally) addMinute(minute int, latency []*hist) {
	kinds := t.minutes[minute]
	if kinds == nil {
		kinds = make([]*hist, t.kinds)
		t.minutes[minute] = kinds
	}
	for i, h := range latency {
		if h == nil || h.n == 0 {
			continue
		}
		if kinds[i] == nil {
			kinds[i] = newHist()
		}
		kinds[i].merge(h)
	}
}

// minutesOf are the minutes of one kind up to the end of the measured time. What is less than a second of a further
// minute, and what ended later, belongs to the last one. All slices have been gathered.
func (t *tally) minutesOf(kind int, end time.Duration) []Minute {
	if t.kinds == 1 {
		return nil
	}
	n := int(end / time.Minute)
	if n == 0 || end%time.Minute >= time.Second {
		n++
	}
	sums := make([]*hist, n)
	for at, kinds := range t.minutes {
		if kinds[kind] == nil {
			continue
		}
		i := min(at, n-1)
		if sums[i] == nil {
			sums[i] = newHist()
		}
		sums[i].merge(kinds[kind])
	}
	out := make([]Minute, n)
	for i, h := range sums {
		m := Minute{Minute: i, Seconds: 60}
		if i == n-1 {
			m.Seconds = (end - time.Duration(i)*time.Minute).Seconds()
		}
		if h != nil && m.Seconds > 0 {
			m.Transactions, m.PerMinute = h.n, float64(h.n)/m.Seconds*60
			m.P95, m.P99, m.Max = float64(h.at(95))/1e9, float64(h.at(99))/1e9, float64(h.max)/1e9
		}
		out[i] = m
	}
	return out
}

// timeline returns the seconds from the first to the last; empty ones too, because those are the ones that matter. They are
// counted from the second zero.
func (t *tally) timeline(from, to, zero int) []Second {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]Second, 0, max(to-from, 0))
	for s := from; s < to; s++ {
		var x Second
		if sec := t.seconds[s]; sec != nil {
			x = sec.read()
		}
		x.Second, x.Warmup = s-zero, s < zero
		out = append(out, x)
	}
	return out
}

// errorCounts are the errors, the most frequent first.
func (t *tally) errorCounts() []ErrorCount {
	var out []ErrorCount
	for _, e := range t.errors {
		out = append(out, *e)
	}
	slices.SortFunc(out, func(a, b ErrorCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Label, b.Label))
	})
	return out
}
