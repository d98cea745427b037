package main

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
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
func record(ctx context.Context, path, servers string, d time.Duration) error {
	sb, err := sandbox.Up(ctx, sandbox.Options{Servers: []string{servers}, Topology: sandbox.TopologyReplication, Replicas: 2})
	if err != nil {
		return err
	}
	defer sb.Down(context.WithoutCancel(ctx))
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r := &recorder{tickWriter: tickWriter{bufio.NewWriterSize(f, 1<<20)}}
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var group collect.Group
	for i, n := range sb.Nodes {
		target, err := mysql.ParseTarget("root@unix(" + n.Socket + ")/")
		if err != nil {
			return err
		}
		inst := fleet.Instance{ID: n.Name, Name: n.Name, Kind: fleet.KindServer}
		group.Go(ctx, collect.NewServer(target, inst, collect.Options{Sink: &recordSink{r: r, instance: n.Name}, Recorder: r, Logger: slog.Default(), Phase: time.Duration(i) * 8 * time.Millisecond}))
	}
	if err := sb.Load(ctx, sandbox.LoadOptions{}, nil); err != nil {
		return err
	}
	group.Wait()
	return r.w.Flush()
}
