// Package bench runs a workload on sessions and measures it.
package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
)

// Options are how a workload is run.
type Options struct {
	Target   drive.Target
	Workload workload.Workload
	Threads  int           // sessions, each on a thread of its own
	Time     time.Duration // how long to measure
	Seed     uint64
}

// Result is what was measured.
type Result struct {
	Seconds      float64
	Transactions int64
	Queries      int64
	Latency      *hdrhistogram.Histogram // of transactions, in nanoseconds
}

type worker struct {
	session drive.Session
	client  workload.Client
	hist    *hdrhistogram.Histogram
	err     error
}

// Run measures a workload.
func Run(ctx context.Context, o Options) (*Result, error) {
	var stop drive.Stop
	workers := make([]*worker, o.Threads)
	for i := range workers {
		s, err := o.Target.Open(ctx, &stop)
		if err != nil {
			return nil, err
		}
		defer s.Close()
		c, err := o.Workload.Client(s, i, rand.New(rand.NewPCG(o.Seed, uint64(i))))
		if err != nil {
			return nil, fmt.Errorf("prepare the statements of %s: %w", o.Workload.Name(), err)
		}
		workers[i] = &worker{session: s, client: c, hist: hdrhistogram.New(1, int64(time.Hour), 2)}
		*s.Counts() = [3]int64{}
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(o.Threads + 2))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	start := time.Now()
	var group sync.WaitGroup
	for _, w := range workers {
		group.Go(func() { w.run(start, &stop) })
	}
	timer := time.NewTimer(o.Time)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	stop.Set()
	group.Wait()
	r := &Result{Seconds: time.Since(start).Seconds(), Latency: hdrhistogram.New(1, int64(time.Hour), 2)}
	for _, w := range workers {
		if w.err != nil && !errors.Is(w.err, drive.ErrStopped) {
			return nil, w.err
		}
		r.Transactions += w.hist.TotalCount()
		r.Latency.Merge(w.hist)
		for _, n := range w.session.Counts() {
			r.Queries += n
		}
	}
	return r, nil
}

func (w *worker) run(start time.Time, stop *drive.Stop) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	last := time.Since(start)
	for !stop.IsSet() {
		if err := w.client.Transaction(); err != nil {
			w.err = err
			return
		}
		now := time.Since(start)
		_ = w.hist.RecordValue(int64(now - last))
		last = now
	}
}
