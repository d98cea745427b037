package series

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"golang.org/x/sys/unix"
)

// loaded makes the values of a MySQL server under load, 1,300 series a second of which four in five do not change:
// counters that follow a common load with their own noise, gauges, pages, seconds of processor time, variables once a minute.
type loaded struct {
	r     *rand.Rand
	descs []Desc
	state []float64
	vals  []float64
	load  float64
}

const loadedSeries = 1300

func newLoaded(seed uint64) *loaded {
	l := &loaded{r: rand.New(rand.NewPCG(seed, 1)), state: make([]float64, loadedSeries), vals: make([]float64, loadedSeries), load: 500}
	for i := range loadedSeries {
		d := Desc{Name: fmt.Sprintf("mysql_global_status_innodb_something_%d", i), Type: Counter}
		if i%3 == 0 {
			d = Desc{Name: "mysql_global_status_commands_total", Labels: []Label{{Name: "command", Value: fmt.Sprintf("statement_%d", i)}}, Type: Counter}
		}
		if i >= 190 && i < 230 {
			d.Type = Gauge
		}
		l.descs = append(l.descs, d)
		l.state[i] = float64(l.r.IntN(1 << 20))
	}
	return l
}

// next returns the values of a second.
func (l *loaded) next(t int64) []float64 {
	l.load = max(50, l.load+l.r.NormFloat64()*20)
	q := math.Floor(l.load + l.r.NormFloat64()*30)
	for i := range l.vals {
		s := &l.state[i]
		switch {
		case i < 60: // follow the load exactly or nearly
			*s += q * float64(1+i%5)
			if i%3 == 1 {
				*s += float64(l.r.IntN(4))
			}
		case i < 120: // counters with their own noise
			*s += math.Floor(max(0, q*float64(i-59)/20+l.r.NormFloat64()*float64(i-50)/4))
		case i < 160: // bytes
			*s += math.Floor(q*1234 + l.r.NormFloat64()*300)
		case i < 190: // now and then
			if l.r.IntN(30) == 0 {
				*s++
			}
		case i < 210:
			*s = float64(l.r.IntN(8 + i - 190))
		case i < 230: // pages
			*s += 16384 * float64(l.r.IntN(21)-10)
		case i < 250: // seconds of processor time
			*s = math.Round(*s*100+float64(l.r.IntN(90))) / 100
		case i >= 700 && t%60 != 0:
			l.vals[i] = math.NaN()
			continue
		}
		l.vals[i] = *s
	}
	return l.vals
}

func (l *loaded) fill(b testing.TB, w *Writer, from, to int64) (samples int) {
	b.Helper()
	define(w, l.descs)
	for at := from; at < to; at++ {
		for _, v := range l.next(at) {
			if v == v {
				samples++
			}
		}
		if err := w.Append(at, l.vals, false); err != nil {
			b.Fatal(err)
		}
	}
	return samples
}

func BenchmarkAppend(b *testing.B) {
	s := openStore(b, b.TempDir())
	w := openWriterT(b, s, "db")
	l := newLoaded(1)
	define(w, l.descs)
	rows := make([][]float64, 600)
	for i := range rows {
		rows[i] = append([]float64(nil), l.next(t0+int64(i))...)
	}
	at := t0
	for b.Loop() {
		if err := w.Append(at, rows[at%600], false); err != nil {
			b.Fatal(err)
		}
		at++
	}
	b.ReportMetric(float64(s.Stats().WALBytes)/float64(at-t0), "walB/op")
}

// BenchmarkSealMinute is what the store's goroutine does each minute for a server.
func BenchmarkSealMinute(b *testing.B) {
	s := openStore(b, b.TempDir())
	w := openWriterT(b, s, "db")
	l := newLoaded(1)
	l.fill(b, w, t0, t0+120)
	in := s.instance("db")
	if err := in.sealPending(); err != nil {
		b.Fatal(err)
	}
	in.mu.RLock()
	m := in.cur
	in.mu.RUnlock()
	for b.Loop() {
		s.w.encodeFrame("db", in.schema, in.positions, m)
	}
}

// BenchmarkHour seals an hour and reports the size of all files a sample; every tick of every series counts where it has a value.
func BenchmarkHour(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		s := openStore(b, b.TempDir())
		w := openWriterT(b, s, "db")
		n := newLoaded(1).fill(b, w, t0, t0+hourSeconds)
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if err := s.Compact(context.Background(), time.Unix(t0+2*hourSeconds, 0)); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		b.ReportMetric(float64(s.Stats().DiskBytes)/float64(n), "B/sample")
		s.Close()
		b.StartTimer()
	}
}

// cpuTime is what the process has used, which a busy machine does not lengthen as it does the time on the clock.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// longStore has days of a server with few series, the kinds that charts show.
func longStore(b *testing.B, days int64) (*Store, []string, int64) {
	b.Helper()
	s := openStore(b, b.TempDir())
	w := openWriterT(b, s, "db")
	r := rand.New(rand.NewPCG(7, 7))
	const n = 30
	var keys []string
	for i := range n {
		d := Desc{Name: fmt.Sprintf("chart_%d", i), Type: Counter}
		if i%3 == 0 {
			d.Type = Gauge
		}
		w.Define(d)
		keys = append(keys, d.Key())
	}
	state, vals := make([]float64, n), make([]float64, n)
	start := floorTo(t0, daySeconds)
	end := start + days*daySeconds + 1800
	for at := start; at < end; at++ {
		q := 300 + 100*math.Sin(float64(at)/5000)
		for i := range vals {
			if i%3 == 0 {
				vals[i] = float64(r.IntN(40))
				continue
			}
			state[i] += math.Floor(max(0, q*float64(i)+r.NormFloat64()*float64(10*i)))
			vals[i] = state[i]
		}
		if err := w.Append(at, vals, false); err != nil {
			b.Fatal(err)
		}
		if at%hourSeconds == 0 {
			s.w.flushForTest(s)
			s.Compact(context.Background(), time.Unix(at, 0))
		}
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	if err := s.Compact(context.Background(), time.Unix(end, 0)); err != nil {
		b.Fatal(err)
	}
	runtime.GC()
	return s, keys, end
}

func BenchmarkRead(b *testing.B) {
	s, keys, end := longStore(b, 31)
	cpu := func(b *testing.B, f func()) {
		begin := cpuTime(b)
		n := 0
		for b.Loop() {
			f()
			n++
		}
		b.ReportMetric(float64(cpuTime(b)-begin)/float64(n)/1e6, "cpu-ms/op")
	}
	bands := func(name string, keys []string, span, step int64) {
		b.Run(name, func(b *testing.B) {
			cpu(b, func() {
				from := floorTo(end-span, step)
				if _, err := s.Bands(context.Background(), "db", keys, from, from+span, step); err != nil {
					b.Fatal(err)
				}
			})
		})
	}
	bands("Bands/LastHour/1s/1series", keys[1:2], 3600, 1)
	bands("Bands/LastHour/4s/30series", keys, 3600, 4)
	bands("Bands/Day/1m/30series", keys, daySeconds, 60)
	bands("Bands/Week/10m/30series", keys, 7*daySeconds, 600)
	bands("Bands/Week/1m/30series", keys, 7*daySeconds, 60)
	bands("Bands/30days/43m/1series", keys[1:2], 30*daySeconds, 2592)
	bands("Bands/30days/1h/1series", keys[1:2], 30*daySeconds, 3600)
	b.Run("Bands/30days/1h/1series/cold", func(b *testing.B) { // as in a year, whose files are not all open
		cpu(b, func() {
			s.blocks.clear()
			from := floorTo(end-30*daySeconds, daySeconds)
			if _, err := s.Bands(context.Background(), "db", keys[1:2], from, from+30*daySeconds, daySeconds); err != nil {
				b.Fatal(err)
			}
		})
	})
	b.Run("Raw/Hour", func(b *testing.B) {
		cpu(b, func() {
			if _, err := s.Raw(context.Background(), "db", keys[1], t0, t0+3600); err != nil {
				b.Fatal(err)
			}
		})
	})
	e := newEngine(b)
	query := func(name, expr string, span, step time.Duration) {
		b.Run("PromQL/"+name, func(b *testing.B) {
			cpu(b, func() {
				stop := time.Unix(end, 0)
				q, err := e.NewRangeQuery(context.Background(), s.Queryable(), promql.NewPrometheusQueryOpts(false, 0, nil), expr, stop.Add(-span), stop, step)
				if err != nil {
					b.Fatal(err)
				}
				if r := q.Exec(context.Background()); r.Err != nil {
					b.Fatal(r.Err)
				}
				q.Close()
			})
		})
	}
	query("Hour/1s", "chart_1", time.Hour, time.Second)
	query("Hour/15s/rate1m", "rate(chart_1[1m])", time.Hour, 15*time.Second)
	query("30days/1h", "chart_1", 720*time.Hour, time.Hour)
	query("30days/1h/rate5m", "rate(chart_1[5m])", 720*time.Hour, time.Hour)
	query("30days/43m/rate1h", "rate(chart_1[1h])", 720*time.Hour, 2592*time.Second)
}
