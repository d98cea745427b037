package load

import (
	"context"
	"slices"
	"sync"
)

// task is a piece of work that needs a session. It may get other ones under way by pool.push.
type task func(ctx context.Context, s **session) error

// lane lets one task at a time pass. It is guarded by the pool's lock.
type lane struct{ busy bool }

// readyTask is a task that waits for a session.
type readyTask struct {
	do   task
	lane *lane // nil: it waits for no other
}

// pool hands tasks to sessions: those that are ready first, so that a table is finished before many are begun, then new ones
// from the source.
type pool struct {
	source func() (task, error) // nil when there is no more; called under the lock

	mu     sync.Mutex
	wake   *sync.Cond
	ready  []readyTask
	active int
	empty  bool // the source
	failed error
}

// push makes tasks ready. Of those of a lane one runs at a time.
func (p *pool) push(l *lane, list ...task) {
	p.mu.Lock()
	for _, t := range list {
		p.ready = append(p.ready, readyTask{t, l})
	}
	p.mu.Unlock()
	p.wake.Broadcast()
}

// next waits for a task; false when all is done or something failed.
func (p *pool) next() (readyTask, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		if p.failed != nil {
			return readyTask{}, false
		}
		if t, ok := p.take(); ok {
			p.active++
			return t, true
		}
		if !p.empty {
			t, err := p.source()
			if err != nil {
				p.failed = err
				p.wake.Broadcast()
				return readyTask{}, false
			}
			if t != nil {
				p.active++
				return readyTask{do: t}, true
			}
			p.empty = true
			continue
		}
		if p.active == 0 && len(p.ready) == 0 {
			p.wake.Broadcast()
			return readyTask{}, false
		}
		p.wake.Wait()
	}
}

// take takes the first ready task whose lane is free.
func (p *pool) take() (readyTask, bool) {
	var seen *lane // most waiting tasks are of one lane
	for i, t := range p.ready {
		if t.lane != nil && (t.lane == seen || t.lane.busy) {
			seen = t.lane
			continue
		}
		if t.lane != nil {
			t.lane.busy = true
		}
		if i == 0 {
			p.ready[0] = readyTask{}
			p.ready = p.ready[1:]
		} else {
			p.ready = slices.Delete(p.ready, i, i+1)
		}
		return t, true
	}
	return readyTask{}, false
}

func (p *pool) done(t readyTask, err error) {
	p.mu.Lock()
	p.active--
	if t.lane != nil {
		t.lane.busy = false
	}
	if err != nil && p.failed == nil {
		p.failed = err
	}
	p.mu.Unlock()
	p.wake.Broadcast()
}

// runTasks runs all tasks in n sessions and returns the first error.
func (r *run) runTasks(ctx context.Context, n int, p *pool) error {
	p.wake = sync.NewCond(&p.mu)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			var s *session
			defer func() {
				if s != nil {
					s.Close()
				}
			}()
			for t, ok := p.next(); ok; t, ok = p.next() {
				err := t.do(ctx, &s)
				p.done(t, err)
				if err != nil {
					cancel()
					return
				}
			}
		})
	}
	all.Wait()
	return p.failed
}
