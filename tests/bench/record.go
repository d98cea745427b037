package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/watch/collect"
)

// recorder is the sink and recorder of all collectors: everything goes to one tick file.
type recorder struct {
	mu sync.Mutex
	tickWriter
}

type recordSink struct {
	r        *recorder
	instance string
	defined  int
}

// Append writes a tick.
func (s *recordSink) Append(t int64, metrics []fleet.Metric, values []float64, late bool) error {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	if s.defined < len(metrics) {
		if err := s.r.metrics(s.instance, metrics[s.defined:]); err != nil {
			return err
		}
		s.defined = len(metrics)
	}
	return s.r.tick(tick{instance: s.instance, t: t, late: late, values: values})
}

// Event prints what happened: a recording should be quiet.
func (r *recorder) Event(e fleet.Event) { fmt.Fprintln(os.Stderr, "event:", e.Instance, e.Text) }

// Variables are not recorded beyond the numbers among them.
func (r *recorder) Variables(string, time.Time, map[string]string) {}

// record starts a primary and two replicas with a load and writes what the collectors read for a while.
func (b *bench) record(ctx context.Context, path string, d time.Duration) (err error) {
	say("recording a primary and two replicas under load for %s", d)
	sb, err := sandbox.Up(ctx, sandbox.Options{Dir: filepath.Join(b.work, "sb"), Servers: []string{"mariadb"}, Topology: sandbox.TopologyReplication, Replicas: 2})
	if err != nil {
		return err
	}
	defer down(ctx, sb)
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r := &recorder{tickWriter: tickWriter{bufio.NewWriterSize(f, 1<<20)}}
	rctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var group collect.Group
	defer group.Wait()
	for i, n := range sb.Nodes {
		target, err := mysql.ParseTarget("root@unix(" + n.Socket + ")/")
		if err != nil {
			cancel()
			return err
		}
		inst := fleet.Instance{ID: n.Name, Name: n.Name, Kind: fleet.KindServer}
		group.Go(rctx, collect.NewServer(target, inst, collect.Options{Sink: &recordSink{r: r, instance: n.Name}, Recorder: r, Logger: slog.Default(), Phase: time.Duration(i) * 8 * time.Millisecond}))
	}
	if err := sb.Load(rctx, sandbox.LoadOptions{}, nil); err != nil {
		cancel()
		return err
	}
	group.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return r.w.Flush()
}

// hour is as many ticks as a recording's samples may have: one hour.
const hour = 3600

// recording is at most an hour of ticks of several instances.
type recording struct {
	instances []string
	metrics   map[string][]fleet.Metric
	ticks     map[string][]tick
	first     int64 // unix seconds of the first tick of any
	seconds   int64 // from there to the last
	samples   int64 // values that are there
}

// recorded reads the tick file, recording it before if need be. Later calls give the same.
func (b *bench) recorded(ctx context.Context) (*recording, error) {
	if b.source != nil {
		return b.source, nil
	}
	path := b.ticks
	if path == "" {
		path = filepath.Join(b.work, "ticks")
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		// Some seconds more: the load is prepared first.
		if err := b.record(ctx, path, time.Duration(b.minutes)*time.Minute+10*time.Second); err != nil {
			return nil, fmt.Errorf("record: %w", err)
		}
	}
	r := &recording{metrics: map[string][]fleet.Metric{}, ticks: map[string][]tick{}}
	err := readTicks(path, func(h tickHead) error {
		if r.metrics[h.Instance] == nil {
			r.instances = append(r.instances, h.Instance)
		}
		r.metrics[h.Instance] = append(r.metrics[h.Instance], h.Metrics...)
		return nil
	}, func(k tick) error {
		if r.first == 0 {
			r.first = k.t
		}
		if k.t < r.first || k.t >= r.first+hour {
			return nil
		}
		if old := r.ticks[k.instance]; len(old) > 0 && old[len(old)-1].t >= k.t {
			return nil // the clock went back
		}
		r.seconds = max(r.seconds, k.t-r.first+1)
		for _, v := range k.values {
			if v == v {
				r.samples++
			}
		}
		r.ticks[k.instance] = append(r.ticks[k.instance], k)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if r.samples == 0 {
		return nil, fmt.Errorf("%s holds no ticks", path)
	}
	b.source = r
	return r, nil
}
