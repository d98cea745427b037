package load

import (
	"context"
	"sync"
)

// task is a piece of work that needs a session. It may get other ones under way by pool.push.
type task func(ctx context.Context, s **session) error

// pool hands tasks to sessions: those that are ready first, so that a table is finished before many are begun, then new ones
// from the source.
type pool struct {
	source func() (task, error) // nil when there is no more; called under the lock

	mu     sync.Mutex
	wake   *sync.Cond
	ready  []task
	active int
	empty  bool // the source
	failed error
}

// push makes tasks ready.
func (p *pool) push(list ...task) {
	p.mu.Lock()
	p.ready = append(p.ready, list...)
	p.mu.Unlock()
	p.wake.Broadcast()
}

// next waits for a task; nil when all is done or something failed.
func (p *pool) next() task {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.failed != nil:
			return nil
		case len(p.ready) > 0:
			t := p.ready[0]
			p.ready = p.ready[1:]
			p.active++
			return t
		case !p.empty:
			t, err := p.source()
			if err != nil {
				p.failed = err
				p.wake.Broadcast()
				return nil
			}
			if t != nil {
				p.active++
				return t
			}
			p.empty = true
		case p.active == 0:
			p.wake.Broadcast()
			return nil
		default:
			p.wake.Wait()
		}
	}
}

func (p *pool) done(err error) {
	p.mu.Lock()
	p.active--
	if err != nil && p.failed == nil {
		p.failed = err
	}
	p.mu.Unlock()
	p.wake.Broadcast()
}

// runTasks runs all tasks by n sessions and gives the first trouble.
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
			for t := p.next(); t != nil; t = p.next() {
				err := t(ctx, &s)
				if err != nil {
					defer cancel() // others are stopped when the first trouble is noted
				}
				p.done(err)
				if err != nil {
					return
				}
			}
		})
	}
	all.Wait()
	return p.failed
}
