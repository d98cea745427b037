package bench

import (
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// tally gathers what the sessions hand over once a second. A session that hangs hands over late; its figures then go to
// the seconds in which its transactions ended.
type tally struct {
	mu             sync.Mutex
	latency        []*hdrhistogram.Histogram // by kind
	moments        []moments                 // by kind
	service        *hdrhistogram.Histogram
	serviceMoments moments
	seconds        map[int]*second
	minutes        map[int][]minute // by kind; only where there are several kinds
	errors         map[string]*ErrorCount
	maxWait        time.Duration
	backlog        int64
	never          int64 // transactions of the schedule that never began; they stand in the latency
}

// second is one second while it is being gathered.
type second struct {
	hist    *hdrhistogram.Histogram
	max     int64
	errors  int64
	backlog int64
}

func newTally(kinds int) *tally {
	t := &tally{service: newHistogram(), seconds: map[int]*second{}, minutes: map[int][]minute{}, errors: map[string]*ErrorCount{}}
	for range kinds {
		t.latency = append(t.latency, newHistogram())
	}
	t.moments = make([]moments, kinds)
	return t
}

// slice is what one session did in one second.
type slice struct {
	second         int
	latency        []*hdrhistogram.Histogram // by kind
	moments        []moments
	service        *hdrhistogram.Histogram // nil in a closed loop
	serviceMoments moments
	errors         int64
	backlog        int64
	maxWait        time.Duration
}

func newSlice(kinds int, open bool) *slice {
	s := &slice{moments: make([]moments, kinds)}
	for range kinds {
		s.latency = append(s.latency, newHistogram())
	}
	if open {
		s.service = newHistogram()
	}
	return s
}

// clear makes the slice ready for another second.
func (s *slice) clear(second int) {
	for i, h := range s.latency {
		if s.moments[i].n > 0 {
			h.Reset()
			s.moments[i] = moments{}
		}
	}
	if s.service != nil && s.serviceMoments.n > 0 {
		s.service.Reset()
		s.serviceMoments = moments{}
	}
	s.errors, s.backlog, s.maxWait = 0, 0, 0
	s.second = second
}

// take adds a slice. measured is false for the warm-up: its seconds are shown, its figures not counted.
func (t *tally) take(s *slice, measured bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	sec := t.seconds[s.second]
	if sec == nil {
		sec = &second{hist: newHistogram()}
		t.seconds[s.second] = sec
	}
	sec.errors += s.errors
	sec.backlog = max(sec.backlog, s.backlog)
	for i, h := range s.latency {
		if s.moments[i].n == 0 {
			continue
		}
		sec.hist.Merge(h)
		sec.max = max(sec.max, s.moments[i].max)
		if measured {
			t.latency[i].Merge(h)
			t.moments[i].merge(s.moments[i])
			t.addMinute(s.second/60, i, h, s.moments[i])
		}
	}
	if !measured {
		return
	}
	if s.service != nil && s.serviceMoments.n > 0 {
		t.service.Merge(s.service)
		t.serviceMoments.merge(s.serviceMoments)
	}
	t.maxWait = max(t.maxWait, s.maxWait)
	t.backlog = max(t.backlog, s.backlog)
}

// minute is one minute of one kind while it is being gathered.
type minute struct {
	hist *hdrhistogram.Histogram
	max  int64
}

// addMinute adds what one session did of one kind in one second to its minute.
func (t *tally) addMinute(at, kind int, h *hdrhistogram.Histogram, m moments) {
	if len(t.latency) == 1 {
		return
	}
	if t.minutes[at] == nil {
		t.minutes[at] = make([]minute, len(t.latency))
	}
	x := &t.minutes[at][kind]
	if x.hist == nil {
		x.hist = newHistogram()
	}
	x.hist.Merge(h)
	x.max = max(x.max, m.max)
}

// minutesOf are the minutes of one kind up to the end of the measured time. What is less than a second of a further
// minute, and what ended later, belongs to the last one.
func (t *tally) minutesOf(kind int, end time.Duration) []Minute {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := int(end / time.Minute)
	if n == 0 || end%time.Minute >= time.Second {
		n++
	}
	hists, out := make([]*hdrhistogram.Histogram, n), make([]Minute, n)
	longest := make([]int64, n)
	for at, kinds := range t.minutes {
		x, i := kinds[kind], min(at, n-1)
		if x.hist == nil {
			continue
		}
		if hists[i] == nil {
			hists[i] = newHistogram()
		}
		hists[i].Merge(x.hist)
		longest[i] = max(longest[i], x.max)
	}
	for i := range out {
		m := &out[i]
		m.Minute, m.Seconds = i, 60
		if i == n-1 {
			m.Seconds = (end - time.Duration(i)*time.Minute).Seconds()
		}
		if h := hists[i]; h != nil {
			at := func(p float64) float64 { return float64(min(h.ValueAtPercentile(p), longest[i])) / 1e9 }
			m.Transactions, m.P95, m.P99, m.Max = h.TotalCount(), at(95), at(99), float64(longest[i])/1e9
			m.PerMinute = float64(m.Transactions) / m.Seconds * 60
		}
	}
	return out
}

// retried counts an error after which a client tried the same transaction again.
func (t *tally) retried(label, message string) {
	t.failed(label, message)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.errors[label].Retried++
}

// failed counts an error.
func (t *tally) failed(label, message string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.errors[label]
	if e == nil {
		e = &ErrorCount{Label: label, Message: message}
		t.errors[label] = e
	}
	e.Count++
}

// timeline gives the seconds from the first to the last; empty ones too, for those are the ones that matter.
func (t *tally) timeline(from, to int) []Second {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []Second
	for s := from; s < to; s++ {
		x := Second{Second: s}
		if sec := t.seconds[s]; sec != nil {
			x.fill(sec)
		}
		out = append(out, x)
	}
	return out
}

func (x *Second) fill(s *second) {
	x.Transactions, x.Errors, x.Backlog = s.hist.TotalCount(), s.errors, s.backlog
	at := func(p float64) float64 { return float64(min(s.hist.ValueAtPercentile(p), s.max)) / 1e9 }
	x.P50, x.P95, x.P99, x.Max = at(50), at(95), at(99), float64(s.max)/1e9
}

// errorCounts are the errors, the most frequent first.
func (t *tally) errorCounts() []ErrorCount {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []ErrorCount
	for _, e := range t.errors {
		out = append(out, *e)
	}
	slices.SortFunc(out, func(a, b ErrorCount) int {
		if a.Count != b.Count {
			return int(b.Count - a.Count)
		}
		return int(int64(len(a.Label)) - int64(len(b.Label)))
	})
	return out
}
