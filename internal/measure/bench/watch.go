package bench

import (
	"context"
	"runtime"
	"time"

	"github.com/rissodb/risso/internal/measure/stats"
)

// steadySeconds is how long the figures have to be steady at the end of an automatic warm-up.
const steadySeconds = 10

// watch reports each second until the time is over; ended: the workers have ended by themselves. In an open loop they do
// when no moment is left; the time goes on, because the rate is per time. In a closed loop they do when they followed a
// recording to its end, and so does the run.
func (r *run) watch(ctx context.Context, done <-chan error) (interrupted, ended bool, err error) {
	tick := time.NewTimer(time.Until(r.epoch.Add(time.Duration(secondOf(r.now())+1) * time.Second)))
	defer tick.Stop()
	begin := (r.begin + time.Second - 1).Truncate(time.Second) // the part of a second before the first whole one is not reported
	r.told = secondOf(begin)
	for {
		finish := unknown
		if from := r.measuredFrom(); from != unknown {
			finish = max(from+r.Time-r.now(), 0)
		}
		end := time.NewTimer(finish)
		select {
		case <-ctx.Done():
			interrupted = true
		case <-end.C:
			return false, ended, nil
		case err = <-done:
			ended, done = true, nil
		case <-tick.C:
			now := r.now()
			second := secondOf(now)
			tick.Reset(time.Duration(second+1)*time.Second - now)
			if time.Duration(second)*time.Second <= r.measuredFrom() {
				r.beginUse() // the last time, when the measured time begins
			} else {
				r.aside(r.watcher.Look)
			}
			r.warm(secondOf(begin), second)
			r.tell(second - 1) // one second later, so that the sessions have handed it over
		}
		end.Stop()
		if interrupted || err != nil || ended && r.schedule == nil {
			return interrupted, ended, err
		}
	}
}

// beginUse begins to count what the measured time takes of the machine.
func (r *run) beginUse() {
	r.watcher.Begin()
	r.counter.begin()
	r.cpu = cpuTime()
}

// aside does something whose processor time is not the load's.
func (r *run) aside(do func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := threadTime()
	do()
	r.cpu += threadTime() - before
}

// tell passes the seconds before that one to the observer.
func (r *run) tell(before int) {
	if r.Progress == nil {
		return
	}
	for ; r.told < before; r.told++ {
		zero, warmup := 0, true
		if from := r.measuredFrom(); from != unknown && !(r.WarmupAuto && r.told < secondOf(from)) {
			zero, warmup = secondOf(from), r.told < secondOf(from)
		}
		x := r.tally.timeline(r.told, r.told+1, zero)[0]
		x.Warmup = warmup
		r.Progress(x)
	}
}

// warm ends an automatic warm-up when the figures are steady, or the limit is reached. The measured time then begins with
// the second after the next, so that every session learns of it before.
func (r *run) warm(begin, second int) {
	if !r.WarmupAuto || r.measuredFrom() != unknown {
		return
	}
	s := r.steadiness(r.tally.timeline(begin, second-1, second))
	reached := s.Reached && second-1-begin-s.From >= steadySeconds
	if !reached && r.now() < r.begin+r.Warmup-2*time.Second {
		return
	}
	r.steady = &reached
	from := time.Duration(second+2) * time.Second
	if r.schedule != nil {
		r.schedule.until(from + r.Time)
	}
	r.from.Store(int64(from))
}

// steadiness tests the figures of a row of seconds: how many transactions in a closed loop, how long they took in an open
// one, where their number is given.
func (r *run) steadiness(seconds []Second) stats.Steady {
	v := make([]float64, len(seconds))
	for i, s := range seconds {
		v[i] = float64(s.Transactions)
		if r.schedule != nil {
			v[i] = s.P50
		}
	}
	return stats.SteadyState(v)
}
