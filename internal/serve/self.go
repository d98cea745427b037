package serve

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/release"
	"github.com/rissodb/risso/internal/store/series"
	"github.com/rissodb/risso/internal/watch/collect"
	"github.com/rissodb/risso/internal/watch/live"
)

// selfID is the instance under which Risso's own cost is kept.
const selfID = "risso"

// selfMeter measures what Risso itself costs, once a second, for the page and as metrics.
type selfMeter struct {
	started time.Time
	sink    collect.Sink
	sample  fleet.Sample
	pos     []int
	logger  *slog.Logger
	numbers *series.Store
	own     *ownLook // may be nil

	mu   sync.Mutex
	past []selfPoint // the last seconds
}

// selfPoint is the totals at one moment.
type selfPoint struct {
	at                       time.Time
	cpu, rss, written, disk  float64 // seconds and bytes
	samples, blocks, damaged float64
}

// selfSpan is over how many seconds the page's rates are taken.
const selfSpan = 10

func newSelfMeter() *selfMeter { return &selfMeter{started: time.Now()} }

var selfMetrics = []fleet.Metric{
	{Name: "process_cpu_seconds_total", Counter: true, Unit: "seconds", Help: "processor time of Risso", Source: "getrusage"},
	{Name: "process_resident_memory_bytes", Unit: "bytes", Help: "memory of Risso", Source: "/proc/self/statm"},
	{Name: "risso_store_written_bytes_total", Counter: true, Unit: "bytes", Help: "bytes of metrics that Risso handed to the file system", Source: "Risso"},
	{Name: "risso_store_disk_bytes", Unit: "bytes", Help: "size of the metrics on disk", Source: "Risso"},
	{Name: "risso_store_samples_total", Counter: true, Help: "values stored", Source: "Risso"},
	{Name: "risso_store_blocks", Help: "finished hours and days on disk", Source: "Risso"},
	{Name: "risso_store_damaged_total", Counter: true, Help: "files set aside because they were damaged", Source: "Risso"},
}

// watchSelf begins to measure.
func (w *watch) watchSelf(ctx context.Context, group *collect.Group, numbers *series.Store) error {
	wr, err := numbers.Writer(selfID)
	if err != nil {
		return fmt.Errorf("write Risso's own metrics: %w", err)
	}
	w.self.sink, w.self.logger = &seriesSink{w: wr}, w.logger
	for _, m := range selfMetrics {
		w.self.pos = append(w.self.pos, w.self.sample.Position(m))
	}
	group.Go(ctx, closing{w.self, wr, 0})
	return nil
}

// Run measures every second until ctx ends.
func (m *selfMeter) Run(ctx context.Context) { collect.Every(ctx, 900*time.Millisecond, m.tick) }

func (m *selfMeter) tick(due time.Time) time.Time {
	p := m.measure()
	if m.own != nil && due.Unix()%ownEvery == 0 {
		m.own.look(p.at, m.numbers.Stats())
	}
	due = due.Add(max(p.at.Sub(due).Round(time.Second), 0)) // what was read late has its own time
	for i, v := range []float64{p.cpu, p.rss, p.written, p.disk, p.samples, p.blocks, p.damaged} {
		m.sample.Values[m.pos[i]] = v
	}
	if err := m.sink.Append(due.Unix(), m.sample.Metrics, m.sample.Values, false); err != nil {
		m.logger.Debug("Risso's own metrics were not stored", "err", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.past = append(m.past, p)
	if len(m.past) > selfSpan+1 {
		m.past = append(m.past[:0], m.past[1:]...)
	}
	return due
}

func (m *selfMeter) measure() selfPoint {
	st := m.numbers.Stats()
	return selfPoint{at: time.Now(), cpu: ownCPU(), rss: ownMemory(), written: float64(st.BytesWritten()), disk: float64(st.DiskBytes),
		samples: float64(st.Samples), blocks: float64(st.Blocks), damaged: float64(st.Damaged)}
}

// Self is what Risso costs, over the last seconds.
func (m *selfMeter) Self() live.Self {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := live.Self{Version: release.Version(), Started: m.started.Unix(), Findings: []fleet.Finding{}}
	if m.own != nil {
		s.Findings = append(s.Findings, m.own.findings()...)
	}
	if len(m.past) == 0 {
		return s
	}
	a, b := m.past[0], m.past[len(m.past)-1]
	s.RSSBytes, s.DiskBytes = b.rss, b.disk
	if dt := b.at.Sub(a.at).Seconds(); dt > 0 {
		s.CPUCores = (b.cpu - a.cpu) / dt
		s.BytesWrittenPerSecond = (b.written - a.written) / dt
		s.SamplesPerSecond = (b.samples - a.samples) / dt
	}
	return s
}

// ownCPU is the processor time that this process used, in seconds.
func ownCPU() float64 {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		return math.NaN()
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()).Seconds()
}

// ownMemory is the resident memory of this process, in bytes.
func ownMemory() float64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return math.NaN()
	}
	f := strings.Fields(string(b))
	if len(f) < 2 {
		return math.NaN()
	}
	pages, err := strconv.ParseFloat(f[1], 64)
	if err != nil {
		return math.NaN()
	}
	return pages * float64(os.Getpagesize())
}
