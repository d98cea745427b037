package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/series"
)

// stored is what a store made of the samples.
type stored struct {
	name    string
	bytes   int64
	samples int64
	wall    time.Duration
	cpu     time.Duration
}

func (s stored) perSample() float64 { return float64(s.bytes) / float64(s.samples) }

// disk feeds the same samples to three stores and compares the sizes of their files, all indexes included.
func (b *bench) disk(ctx context.Context, s *section) error {
	rec, err := b.recorded(ctx)
	if err != nil {
		return err
	}
	// The samples are moved to the first hour of an afternoon that is over: an hour is one block then, and
	// lies within one block of Prometheus, whose blocks begin at even hours.
	base := time.Now().UTC().Truncate(24 * time.Hour).Add(-12 * time.Hour).Unix()
	s.note("%d samples: %d instances, %d series, %d s", rec.samples, len(rec.instances), rec.series(), rec.seconds)
	if rec.seconds < hour {
		s.note("The recording is shorter than an hour: compression suffers, all the more Risso's, whose block is an hour.")
	}
	t := s.table("", "store", "bytes", "bytes a sample", "to Risso", "processor s", "s", "samples read back")
	var all []stored
	for _, f := range []func(context.Context, *recording, int64, *section) ([]stored, error){b.diskRisso, b.diskVictoria, b.diskPrometheus} {
		list, err := f(ctx, rec, base, s)
		if err != nil {
			return err
		}
		all = append(all, list...)
	}
	for _, st := range all {
		t.row(st.name, strconv.FormatInt(st.bytes, 10), fmt.Sprintf("%.4f", st.perSample()), fmt.Sprintf("%.2f", st.perSample()/all[0].perSample()),
			figure(st.cpu.Seconds()), figure(st.wall.Seconds()), strconv.FormatInt(st.samples, 10))
	}
	for _, st := range all {
		if st.samples != rec.samples {
			return fmt.Errorf("%s holds %d samples of %d", st.name, st.samples, rec.samples)
		}
	}
	risso, victoria, prom := all[0].perSample(), all[len(all)-2].perSample(), all[len(all)-1].perSample()
	s.Figures["samples"] = float64(rec.samples)
	s.Figures["risso_bytes"], s.Figures["victoria_bytes"], s.Figures["prometheus_bytes"] = risso, victoria, prom
	s.below("bytes a sample, as an hour's block", risso, 0.25, "")
	s.below("part of VictoriaMetrics'", risso/victoria, 1, "")
	s.below("part of Prometheus'", risso/prom, 0.333, "")
	return nil
}

func (r *recording) series() (n int) {
	for _, m := range r.metrics {
		n += len(m)
	}
	return n
}

// diskRisso feeds the samples to the store of numbers, tick by tick as collectors do.
func (b *bench) diskRisso(ctx context.Context, rec *recording, base int64, s *section) ([]stored, error) {
	say("disk: Risso")
	dir := filepath.Join(b.work, "disk-risso")
	began, cpu := time.Now(), ownTime()
	store, err := series.Open(series.Options{Dir: dir})
	if err != nil {
		return nil, err
	}
	defer store.Close()
	if err := feed(ctx, store, rec, base-rec.first); err != nil {
		return nil, err
	}
	if err := store.Compact(ctx, time.Unix(base+hour+600, 0)); err != nil {
		return nil, err
	}
	hourly := stored{name: "Risso, hour's blocks", wall: time.Since(began), cpu: ownTime() - cpu}
	if err := store.Close(); err != nil {
		return nil, err
	}
	if hourly.bytes, err = sizeOf(dir); err != nil {
		return nil, err
	}
	parts(s, dir, rec)
	if store, err = series.Open(series.Options{Dir: dir}); err != nil {
		return nil, err
	}
	if hourly.samples, err = readBack(ctx, store, rec, base); err != nil {
		return nil, err
	}
	if err := store.Compact(ctx, time.Now()); err != nil {
		return nil, err
	}
	daily := stored{name: "Risso, day's blocks", wall: time.Since(began), cpu: ownTime() - cpu}
	if daily.samples, err = readBack(ctx, store, rec, base); err != nil {
		return nil, err
	}
	if err := store.Close(); err != nil {
		return nil, err
	}
	daily.bytes, err = sizeOf(dir)
	return []stored{hourly, daily}, err
}

// parts notes what each instance takes.
func parts(s *section, dir string, rec *recording) {
	for _, id := range rec.instances {
		n := int64(0)
		for _, k := range rec.ticks[id] {
			for _, v := range k.values {
				if v == v {
					n++
				}
			}
		}
		size, err := sizeOf(filepath.Join(dir, "instances", id))
		if err == nil && n > 0 {
			s.note("Risso, %s: %d bytes, %d samples, %.4f bytes each; %d series", id, size, n, float64(size)/float64(n), len(rec.metrics[id]))
		}
	}
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if info, err := d.Info(); err == nil {
			rel, _ := filepath.Rel(dir, path)
			s.note("  file %s %d", rel, info.Size())
		}
		return nil
	})
}

// feed appends all ticks, shifted in time, and seals each minute when it is over.
func feed(ctx context.Context, store *series.Store, rec *recording, shift int64) error {
	for _, id := range rec.instances {
		w, err := store.Writer(id)
		if err != nil {
			return err
		}
		defined := 0
		for i, k := range rec.ticks[id] {
			for ; defined < len(k.values); defined++ {
				w.Define(series.DescOf(rec.metrics[id][defined]))
			}
			if err := w.Append(k.t+shift, k.values, k.late); err != nil {
				return err
			}
			if i%60 == 59 {
				if err := errors.Join(ctx.Err(), w.Flush()); err != nil {
					return err
				}
			}
		}
		if err := w.Close(); err != nil {
			return err
		}
	}
	return nil
}

// readBack compares what the store returns with what it got, and counts.
func readBack(ctx context.Context, store *series.Store, rec *recording, base int64) (total int64, err error) {
	for _, id := range rec.instances {
		for i, m := range rec.metrics[id] {
			p, err := store.Raw(ctx, id, m.Key(), base, base+hour)
			if err != nil {
				return 0, err
			}
			at := 0
			for _, k := range rec.ticks[id] {
				if i >= len(k.values) || k.values[i] != k.values[i] {
					continue
				}
				if at >= len(p.T) || p.T[at] != k.t-rec.first+base || p.V[at] != k.values[i] {
					return 0, fmt.Errorf("%s %s: value %d: %v", id, m.Key(), at, differ(p, at, k.t-rec.first+base, k.values[i]))
				}
				at++
			}
			if at != len(p.T) {
				return 0, fmt.Errorf("%s %s has %d values, not %d", id, m.Key(), len(p.T), at)
			}
			total += int64(at)
		}
	}
	return total, nil
}

func ownTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// eachSeries calls f with every series of the recording that has values: its labels in two forms, its times and values.
func (r *recording) eachSeries(f func(id string, m fleet.Metric, t []int64, v []float64) error) error {
	var ts []int64
	var vs []float64
	for _, id := range r.instances {
		for i, m := range r.metrics[id] {
			ts, vs = ts[:0], vs[:0]
			for _, k := range r.ticks[id] {
				if i < len(k.values) && k.values[i] == k.values[i] {
					ts, vs = append(ts, k.t), append(vs, k.values[i])
				}
			}
			if len(ts) == 0 {
				continue
			}
			if err := f(id, m, ts, vs); err != nil {
				return err
			}
		}
	}
	return nil
}

// importLine is a series as /api/v1/import of VictoriaMetrics takes it.
func importLine(b []byte, id string, m fleet.Metric, t []int64, v []float64, shift int64) []byte {
	b = append(b, `{"metric":{"__name__":`...)
	b = strconv.AppendQuote(b, m.Name)
	b = append(b, `,"instance":`...)
	b = strconv.AppendQuote(b, id)
	for _, l := range m.Labels {
		if l.Value == "" {
			continue
		}
		b = append(b, ',')
		b = strconv.AppendQuote(b, l.Name)
		b = append(b, ':')
		b = strconv.AppendQuote(b, l.Value)
	}
	b = append(b, `},"values":[`...)
	for i, x := range v {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendFloat(b, x, 'g', -1, 64)
	}
	b = append(b, `],"timestamps":[`...)
	for i, x := range t {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, (x+shift)*1000, 10)
	}
	return append(b, "]}\n"...)
}

// post sends what write writes, as it comes.
func post(ctx context.Context, address string, write func(io.Writer) error) error {
	r, w := io.Pipe()
	go func() {
		bw := bufio.NewWriterSize(w, 1<<20)
		err := write(bw)
		if err == nil {
			err = bw.Flush()
		}
		w.CloseWithError(err)
	}()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, r)
	if err != nil {
		return err
	}
	_, err = answer(req)
	return err
}

// diskVictoria feeds the samples to VictoriaMetrics and lets it merge all parts.
func (b *bench) diskVictoria(ctx context.Context, rec *recording, base int64, _ *section) ([]stored, error) {
	say("disk: VictoriaMetrics")
	dir := filepath.Join(b.work, "disk-victoria")
	p, url, err := b.victoria(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer p.stop()
	began := time.Now()
	err = post(ctx, url+"/api/v1/import", func(w io.Writer) error {
		var line []byte
		return rec.eachSeries(func(id string, m fleet.Metric, t []int64, v []float64) error {
			line = importLine(line[:0], id, m, t, v, base-rec.first)
			_, err := w.Write(line)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	if err := settle(ctx, url); err != nil {
		return nil, err
	}
	st := stored{name: "VictoriaMetrics", wall: time.Since(began)}
	if st.cpu, err = cpuTime(p.pid()); err != nil {
		return nil, err
	}
	counts, err := instant(ctx, url, `sum(count_over_time({__name__!=""}[1h]))`, "", time.Unix(base+hour-1, 0))
	if err != nil {
		return nil, err
	}
	st.samples = int64(counts[""])
	p.stop()
	for _, part := range []string{"data", "indexdb"} { // caches and locks are no data
		n, err := sizeOf(filepath.Join(dir, part))
		if errors.Is(err, fs.ErrNotExist) && part == "indexdb" {
			continue // 1.145 keeps its indexes within data
		}
		if err != nil {
			return nil, err
		}
		st.bytes += n
	}
	return []stored{st}, nil
}

// settle makes VictoriaMetrics write and merge all it has, and waits until that is done.
func settle(ctx context.Context, url string) error {
	for _, path := range []string{"/internal/force_flush", "/internal/force_merge"} {
		if err := get(ctx, url+path, nil); err != nil {
			return err
		}
	}
	quiet := 0
	for deadline := time.Now().Add(5 * time.Minute); quiet < 5; {
		if time.Now().After(deadline) {
			return errors.New("VictoriaMetrics goes on merging")
		}
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
		active, err := metricSum(ctx, url+"/metrics", "vm_active_merges")
		if err != nil {
			return err
		}
		quiet++
		if active > 0 {
			quiet = 0
		}
	}
	return nil
}

// metricSum adds all values of a metric in the text format.
func metricSum(ctx context.Context, address, name string) (sum float64, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	for sc := bufio.NewScanner(resp.Body); sc.Scan(); {
		if rest, ok := strings.CutPrefix(sc.Text(), name); ok && (rest[0] == '{' || rest[0] == ' ') {
			v, err := strconv.ParseFloat(rest[strings.LastIndexByte(rest, ' ')+1:], 64)
			if err != nil {
				return 0, err
			}
			sum += v
		}
	}
	return sum, nil
}

// openMetrics writes a series in the text format that promtool reads.
func openMetrics(w io.Writer, b []byte, id string, m fleet.Metric, t []int64, v []float64, shift int64) ([]byte, error) {
	m.Labels = append([]fleet.Label{{Name: "instance", Value: id}}, m.Labels...)
	key := m.Key()
	b = b[:0]
	for i := range t {
		b = append(b, key...)
		b = append(b, ' ')
		b = strconv.AppendFloat(b, v[i], 'g', -1, 64)
		b = append(b, ' ')
		b = strconv.AppendInt(b, t[i]+shift, 10)
		b = append(b, '\n')
	}
	_, err := w.Write(b)
	return b, err
}

// blocks lets promtool make Prometheus' blocks of what write writes.
func (b *bench) blocks(ctx context.Context, dir string, flags []string, write func(io.Writer) error) (wall, cpu time.Duration, err error) {
	file := filepath.Join(b.work, "openmetrics")
	f, err := os.Create(file)
	if err != nil {
		return 0, 0, err
	}
	defer os.Remove(file)
	w := bufio.NewWriterSize(f, 1<<20)
	err = write(w)
	if err == nil {
		_, err = w.WriteString("# EOF\n")
	}
	if err = errors.Join(err, w.Flush(), f.Close()); err != nil {
		return 0, 0, err
	}
	began := time.Now()
	cmd := exec.CommandContext(ctx, "promtool", append(append([]string{"tsdb", "create-blocks-from", "openmetrics", "-q"}, flags...), file, dir)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, 0, fmt.Errorf("promtool: %w: %s", err, bytes.TrimSpace(out))
	}
	return time.Since(began), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}

// diskPrometheus makes a block of the samples with Debian's promtool.
func (b *bench) diskPrometheus(ctx context.Context, rec *recording, base int64, s *section) ([]stored, error) {
	say("disk: Prometheus")
	dir := filepath.Join(b.work, "disk-prometheus")
	st := stored{name: "Prometheus"}
	var err error
	st.wall, st.cpu, err = b.blocks(ctx, dir, nil, func(w io.Writer) (err error) {
		var buf []byte
		return rec.eachSeries(func(id string, m fleet.Metric, t []int64, v []float64) error {
			buf, err = openMetrics(w, buf, id, m, t, v, base-rec.first)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	metas, err := filepath.Glob(filepath.Join(dir, "*", "meta.json"))
	if err != nil {
		return nil, err
	}
	for _, path := range metas {
		n, err := samplesOf(path)
		if err != nil {
			return nil, err
		}
		st.samples += n
	}
	s.note("Prometheus: %d block(s), without its write-ahead log", len(metas))
	st.bytes, err = sizeOf(dir)
	return []stored{st}, err
}

// differ says how a point that was read differs from what was written.
func differ(p series.Points, at int, t int64, v float64) string {
	if at >= len(p.T) {
		return fmt.Sprintf("not there; %v at %d was written", v, t)
	}
	return fmt.Sprintf("%v at %d was written, %v at %d read", v, t, p.V[at], p.T[at])
}
