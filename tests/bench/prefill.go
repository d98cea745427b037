package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/series"
)

// chartKeys are the series that charts are asked for: they are in the data in any case.
var chartKeys = []string{
	"mysql_global_status_questions", "mysql_global_status_bytes_sent", "mysql_global_status_bytes_received", "mysql_global_status_threads_running",
	"mysql_global_status_innodb_data_writes", "mysql_global_status_innodb_os_log_written", "mysql_global_status_handlers_total{handler=\"read_key\"}",
	"mysql_global_status_commands_total{command=\"select\"}", "mysql_global_status_commands_total{command=\"commit\"}",
	"mysql_global_status_innodb_row_ops_total{operation=\"read\"}", "mysql_global_status_innodb_buffer_pool_read_requests",
	"mysql_global_status_innodb_buffer_pool_write_requests", "mysql_global_status_queries", "mysql_global_status_sort_rows",
	"mysql_global_status_innodb_row_lock_time", "mysql_global_status_innodb_log_writes", "mysql_global_status_binlog_commits",
	"mysql_global_status_handlers_total{handler=\"update\"}", "mysql_global_status_commands_total{command=\"update\"}", "mysql_global_status_innodb_data_written",
}

// loop repeats the ticks of one instance of a recording forever: counters go on from where they were, gauges start over.
type loop struct {
	metrics []fleet.Metric
	columns []int // positions in the recording
	ticks   []tick
	step    []float64 // what each counter grows by from one turn to the next
	keys    []string
}

// newLoop takes at most limit series; those of chartKeys first, of the others a part from all over the list. -1 takes all.
func newLoop(rec *recording, id string, limit int) (*loop, error) {
	ticks := rec.ticks[id]
	if len(ticks) < 30 {
		return nil, fmt.Errorf("the recording of %s has %d ticks", id, len(ticks))
	}
	l := &loop{ticks: ticks}
	all := rec.metrics[id]
	take := func(i int) {
		if !slices.Contains(l.columns, i) && (limit < 0 || len(l.columns) < limit) {
			l.columns = append(l.columns, i)
		}
	}
	for i, m := range all {
		if slices.Contains(chartKeys, m.Key()) {
			take(i)
			l.keys = append(l.keys, m.Key())
		}
	}
	if limit >= 0 {
		for k := range limit {
			take(k * len(all) / limit)
		}
	}
	for i := range all {
		take(i)
	}
	slices.Sort(l.columns)
	for _, c := range l.columns {
		l.metrics = append(l.metrics, all[c])
		l.step = append(l.step, l.growth(c, all[c].Counter))
	}
	return l, nil
}

// growth is how much a column grew over the recording, and one average second more; 0 for what is no counter.
func (l *loop) growth(c int, counter bool) float64 {
	first, last := math.NaN(), math.NaN()
	for _, k := range l.ticks {
		if c >= len(k.values) || math.IsNaN(k.values[c]) {
			continue
		}
		if math.IsNaN(first) {
			first = k.values[c]
		}
		last = k.values[c]
	}
	if !counter || !(last > first) {
		return 0
	}
	return last - first + math.Round((last-first)/float64(len(l.ticks)-1))
}

// values writes the values of the i-th second into v.
func (l *loop) values(i int, v []float64) {
	k, turn := l.ticks[i%len(l.ticks)].values, float64(i/len(l.ticks))
	for j, c := range l.columns {
		v[j] = math.NaN()
		if c < len(k) {
			v[j] = k[c] + turn*l.step[j]
		}
	}
}

// prefilled is a data folder of risso serve that holds days of one server's numbers.
type prefilled struct {
	dir      string
	instance string
	from, to int64 // whole hour to whole minute, the last that is over
	loop     *loop
	wall     time.Duration
	cpu      time.Duration
	bytes    int64
}

// prefill writes days of ticks through the store of numbers, sealing and merging as time would.
func (b *bench) prefill(ctx context.Context, l *loop, days int) (*prefilled, error) {
	p := &prefilled{dir: filepath.Join(b.work, "charts"), instance: "bench", loop: l}
	p.to = time.Now().Unix() / 60 * 60
	p.from = (p.to - int64(days)*86400) / hour * hour
	say("charts: writing %d s of %d series", p.to-p.from, len(l.metrics))
	began, cpu := time.Now(), ownTime()
	dir := filepath.Join(p.dir, "series")
	store, err := series.Open(series.Options{Dir: dir})
	if err != nil {
		return nil, err
	}
	defer store.Close()
	w, err := store.Writer(p.instance)
	if err != nil {
		return nil, err
	}
	for _, m := range l.metrics {
		w.Define(series.DescOf(m))
	}
	v := make([]float64, len(l.metrics))
	for t := p.from; t < p.to; t++ {
		i := int(t - p.from)
		l.values(i, v)
		if err := w.Append(t, v, false); err != nil {
			return nil, err
		}
		if i%600 == 599 {
			if err := errors.Join(ctx.Err(), w.Flush()); err != nil {
				return nil, err
			}
		}
		if i%(4*hour) == 0 {
			if err := store.Compact(ctx, time.Unix(t, 0)); err != nil {
				return nil, err
			}
			if i%(5*86400) == 0 {
				say("charts: day %d of %d", i/86400, days)
			}
		}
	}
	if err := errors.Join(w.Close(), store.Compact(ctx, time.Now())); err != nil {
		return nil, err
	}
	if err := store.Close(); err != nil {
		return nil, err
	}
	p.wall, p.cpu = time.Since(began), ownTime()-cpu
	p.bytes, err = sizeOf(dir)
	return p, err
}
