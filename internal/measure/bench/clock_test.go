package bench

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/measure/drive"
)

// BenchmarkTimer reports how late waits of an open loop end, in nanoseconds: go test -bench Timer ./internal/measure/bench.
func BenchmarkTimer(b *testing.B) {
	for _, wait := range []time.Duration{100 * time.Microsecond, time.Millisecond, 10 * time.Millisecond} {
		b.Run(wait.String(), func(b *testing.B) {
			done := make(chan []time.Duration)
			go func() { // on a thread that ends with it
				late, err := timerErrors(b.N, wait)
				if err != nil {
					b.Error(err)
				}
				done <- late
			}()
			late := <-done
			slices.Sort(late)
			for name, p := range map[string]float64{"p50-ns": .5, "p90-ns": .9, "p99-ns": .99} {
				b.ReportMetric(float64(late[int(p*float64(len(late)-1))]), name)
			}
		})
	}
}

// timerErrors waits n times as sessions of an open loop do, and tells how late each wait ended.
func timerErrors(n int, wait time.Duration) ([]time.Duration, error) {
	runtime.LockOSThread() // permanently, because its timer slack is changed
	if err := sharpen(); err != nil {
		return nil, err
	}
	var stop drive.Stop
	clock := newWaker()
	epoch, out := time.Now(), make([]time.Duration, n)
	for i := range out {
		due := time.Since(epoch) + wait
		clock.until(epoch, due, &stop)
		out[i] = time.Since(epoch) - due
	}
	return out, nil
}

// BenchmarkAccount is what one transaction costs besides the server: the clock, the histogram, the marks.
func BenchmarkAccount(b *testing.B) {
	for name, rate := range map[string]float64{"closed": 0, "open": 1e12} {
		b.Run(name, func(b *testing.B) {
			var none drive.Stop
			r := newRun(Options{Target: &scripted{answer: func(int64, *drive.Stop) error { return nil }}, Workload: work{}, Threads: 1, Time: time.Hour, Rate: rate})
			r.startClock(time.Now())
			w := &worker{run: r, clock: newWaker(), unfinished: unknown}
			if err := w.connect(b.Context()); err != nil {
				b.Fatal(err)
			}
			go r.tally.gather(r.measuredFrom)
			w.last = r.now()
			w.slice = r.tally.blank(secondOf(w.last), rate > 0)
			before := cpuTime()
			for b.Loop() {
				due, _ := w.next()
				if err := w.account(due, due, w.transaction()); err != nil || none.IsSet() {
					b.Fatalf("got %v; want none.IsSet() false", err)
				}
			}
			b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op")
			close(r.tally.handed)
			<-r.tally.done
		})
	}
}

// TestWaitsEndWhenStopped must not wait for a moment far away.
func TestWaitsEndWhenStopped(t *testing.T) {
	var stop drive.Stop
	time.AfterFunc(50*time.Millisecond, stop.Set)
	began, clock := time.Now(), newWaker()
	if clock.until(began, time.Hour, &stop) || time.Since(began) > 5*time.Second {
		t.Errorf("came back after %v; want clock.until(began, time.Hour, &stop) false, time.Since(began) at most 5 * time.Second", time.Since(began))
	}
	if began := time.Now(); !clock.until(began, 20*time.Millisecond, new(drive.Stop)) || time.Since(began) < 20*time.Millisecond {
		t.Errorf("came back after %v; want clock.until(began, 20*time.Millisecond, new(drive.Stop)) true, time.Since(began) at least 20 * time.Millisecond",
			time.Since(began))
	}
}

// TestWakerLearns: it looks at the clock for longer where threads wake late, and for less again where they do not; what
// looking could not have helped teaches nothing.
func TestWakerLearns(t *testing.T) {
	w := newWaker()
	w.learn(60 * time.Microsecond)
	late := w.spin
	if late < 60*time.Microsecond || late > mostSpin {
		t.Errorf("after a wake-up 60 µs late it spins for %v, want from 60 * time.Microsecond to %v", late, mostSpin)
	}
	if w.learn(4 * time.Millisecond); w.spin != late {
		t.Errorf("a lost processor makes it spin for %v, want %v", w.spin, late)
	}
	if w.learn(900 * time.Microsecond); w.spin != mostSpin {
		t.Errorf("900 µs late make it spin for %v, want %v", w.spin, mostSpin)
	}
	for range 1000 {
		w.learn(2 * time.Microsecond)
	}
	if w.spin > 15*time.Microsecond || w.spin < leastSpin {
		t.Errorf("after a thousand wake-ups on time it spins for %v; want w.spin at most 15 * time.Microsecond, w.spin at least %v", w.spin, leastSpin)
	}
}
