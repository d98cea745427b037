package own

import (
	"context"
	"errors"
	"fmt"
	"math"

	prom "github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"

	"github.com/rissodb/risso/internal/store/series"
)

// mostRecorded is how many series rules may record at a time.
const mostRecorded = 100_000

// Writer takes what rules record, as series.Writer does.
type Writer interface {
	Define(series.Desc) int
	Append(t int64, values []float64, late bool) error
	Close() error
}

// recorder keeps what rules return. A rule's value is repeated each second until its group is evaluated again: the store has all there is by
// the second, and a value that is not repeated has ended.
type recorder struct {
	open   func() (Writer, error)
	w      Writer
	pos    map[string]int // by the labels' bytes
	values []float64      // by position
	until  []int64        // to which second a value holds
	live   int            // values that hold, at the last write
	good   int64          // to which second what is appended now holds
	buf    []byte
}

// begin says for how long holds what is appended from now on.
func (r *recorder) begin(until int64) { r.good = until }

// write appends the tick of a second.
func (r *recorder) write(t int64) error {
	r.live = 0
	for i, until := range r.until {
		if until < t {
			r.values[i] = math.NaN()
		}
		if r.values[i] == r.values[i] {
			r.live++
		}
	}
	if len(r.values) > 2*r.live+10_000 { // most of what was ever recorded is gone
		if err := r.close(); err != nil {
			return err
		}
	}
	if r.w == nil {
		w, err := r.open()
		if err != nil {
			return err
		}
		r.w = w
	}
	err := r.w.Append(t, r.values, false)
	if errors.Is(err, series.ErrOldTick) { // this machine's clock went back, or it is the second in which Risso was restarted
		return nil
	}
	return err
}

func (r *recorder) close() error {
	w := r.w
	r.w, r.pos, r.values, r.until = nil, nil, nil, nil
	if w == nil {
		return nil
	}
	return w.Close()
}

// AppenderV2 implements storage.AppendableV2.
func (r *recorder) AppenderV2(context.Context) storage.AppenderV2 { return (*appender)(r) }

// appender takes the results of one rule.
type appender recorder

var errHistogram = errors.New("histograms are not kept")

// Append implements storage.AppenderV2.
func (a *appender) Append(_ storage.SeriesRef, ls labels.Labels, _, _ int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, _ storage.AOptions) (storage.SeriesRef, error) {
	if h != nil || fh != nil {
		return 0, errHistogram
	}
	a.buf = ls.Bytes(a.buf[:0])
	at, known := a.pos[string(a.buf)]
	switch {
	case !known && value.IsStaleNaN(v):
		return 0, nil
	case !known && a.live >= mostRecorded:
		return 0, fmt.Errorf("rules record more than %d series", mostRecorded)
	case !known:
		var err error
		if at, err = a.define(ls); err != nil {
			return 0, err
		}
	}
	a.values[at], a.until[at] = v, a.good
	if value.IsStaleNaN(v) {
		a.values[at] = math.NaN()
	}
	return 0, nil
}

func (a *appender) define(ls labels.Labels) (int, error) {
	if a.w == nil {
		w, err := a.open()
		if err != nil {
			return 0, err
		}
		a.w = w
	}
	if a.pos == nil {
		a.pos = map[string]int{}
	}
	d := series.Desc{Name: ls.Get(prom.MetricNameLabel)}
	ls.Range(func(l labels.Label) {
		if l.Name != prom.MetricNameLabel {
			d.Labels = append(d.Labels, series.Label{Name: l.Name, Value: l.Value})
		}
	})
	at := a.w.Define(d)
	for len(a.values) <= at {
		a.values, a.until = append(a.values, math.NaN()), append(a.until, 0)
	}
	a.pos[string(a.buf)] = at
	a.live++
	return at, nil
}

// Commit implements storage.AppenderV2; what was appended is written with the second's tick.
func (a *appender) Commit() error { return nil }

// Rollback implements storage.AppenderV2.
func (a *appender) Rollback() error { return nil }
