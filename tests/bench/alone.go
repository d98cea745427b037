package main

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	measured "github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
)

// nothing is a server that answers immediately.
type nothing struct{}

func (nothing) Open(context.Context, *drive.Stop) (drive.Session, error) {
	return &nobody{}, nil
}
func (nothing) Dialect() drive.Dialect { return drive.MySQL }
func (nothing) String() string         { return "nothing" }

// nobody is a session with it.
type nobody struct{ counts [3]int64 }

func (s *nobody) Prepare(kind drive.Kind, sql string) (*drive.Stmt, error) {
	return &drive.Stmt{SQL: sql, Kind: kind}, nil
}

func (s *nobody) Do(st *drive.Stmt, _ ...drive.Arg) (drive.Result, error) {
	s.counts[st.Kind]++
	return drive.Result{Rows: 1}, nil
}

func (s *nobody) Exec(kind drive.Kind, _ string) (drive.Result, error) {
	s.counts[kind]++
	return drive.Result{}, nil
}
func (s *nobody) Dialect() drive.Dialect    { return drive.MySQL }
func (s *nobody) Counts() *[3]int64         { return &s.counts }
func (s *nobody) SetPatience(time.Duration) {}
func (s *nobody) Close() error              { return nil }

// work asks nothing and answers; with busy it keeps the processor for times that it remembers.
type work struct {
	busy bool
	took []float64 // seconds
}

func (w *work) Name() string { return "nothing" }

func (w *work) Client(s drive.Session, _ int, rng *rand.Rand) (workload.Client, error) {
	st, err := s.Prepare(drive.Read, "SELECT c FROM sbtest1 WHERE id=?")
	return &worker{work: w, session: s, statement: st, rng: rng}, err
}

type worker struct {
	*work
	session   drive.Session
	statement *drive.Stmt
	rng       *rand.Rand
	last      time.Time
	args      [1]drive.Arg
}

func (c *worker) Transaction() error {
	c.args[0] = drive.Int(1 + c.rng.Int64N(speedRows))
	if c.busy {
		d := time.Duration(math.Exp(math.Log(20e3) + c.rng.Float64()*math.Log(100))) // 20 µs to 2 ms
		for began := time.Now(); time.Since(began) < d; {
		}
		// As the run counts: from the end of the one before, so that what the scheduler takes is in both figures.
		now := time.Now()
		if !c.last.IsZero() {
			c.took = append(c.took, now.Sub(c.last).Seconds())
		}
		c.last = now
	}
	_, err := c.session.Do(c.statement, c.args[:]...)
	return err
}

// alone measures the driver itself: against nothing, its timer, its histogram.
func (b *bench) alone(ctx context.Context, s *section) error {
	t := s.table("medians", "what", "value", "least", "most")
	o := measured.Options{Target: nothing{}, Threads: 1, Time: b.window, Seed: 1}
	var events, late, wrong []float64
	for i := range b.rounds {
		say("alone: round %d of %d", i+1, b.rounds)
		o.Workload = &work{}
		r, err := measured.Run(ctx, o)
		if err != nil {
			return err
		}
		events = append(events, float64(r.Transactions)/r.ClientCPUSeconds)
		open := o
		open.Rate = 1000
		if r, err = measured.Run(ctx, open); err != nil {
			return err
		}
		late = append(late, r.Latency.At(50)*1e6)
		busy := &work{busy: true, took: make([]float64, 0, 1<<20)}
		o.Workload = busy
		if r, err = measured.Run(ctx, o); err != nil {
			return err
		}
		wrong = append(wrong, 100*histogramError(r, busy.took))
	}
	row := func(what string, v []float64) {
		t.row(what, figure(median(v)), figure(quantile(v, 0)), figure(quantile(v, 1)))
	}
	row("transactions a second of one thread's processor time, against nothing", events)
	row("µs from the due moment to the end, open loop of 1,000 a second against nothing, median", late)
	row("% that the worst of the 50, 90, 95 and 99 % points differs from the exact one", wrong)
	s.Figures["events_per_second"], s.Figures["timer_us"], s.Figures["histogram_percent"] = median(events), median(late), median(wrong)
	s.atLeast("million transactions a second against nothing", median(events)/1e6, 5, "")
	s.below("µs timer error at the median", median(late), 2, "")
	s.below("% histogram error", median(wrong), 1.0001, "")
	return nil
}

// histogramError compares percentiles with those of the exact times.
func histogramError(r *measured.Result, exact []float64) (worst float64) {
	exact = slices.Clone(exact)
	slices.Sort(exact)
	for _, p := range []float64{50, 90, 95, 99} {
		want := exact[min(len(exact)-1, max(0, int(math.Ceil(p/100*float64(len(exact))))-1))]
		worst = max(worst, math.Abs(r.Latency.At(p)-want)/want)
	}
	return worst
}
