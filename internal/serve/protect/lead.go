package protect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/store/state"
)

// runJobs runs jobs while this process acts, until ctx ends. What ran where the lead was lost is interrupted, and starts over where it is now.
func (p *Guard) runJobs(ctx context.Context) error {
	ctx, give := context.WithCancelCause(ctx)
	defer give(nil)
	var failed error
	p.lead.WhileLeader(ctx, func(lead context.Context) {
		for {
			failed = p.runner.Run(lead)
			switch {
			case failed == nil, lead.Err() != nil:
				return
			case errors.Is(failed, state.ErrNoLeader), errors.Is(failed, state.ErrUnsure):
				_ = delay.For(lead, time.Second)
			default:
				give(failed)
				return
			}
		}
	})
	if failed != nil && (errors.Is(failed, state.ErrNoLeader) || errors.Is(failed, state.ErrUnsure)) {
		return nil // it could not be noted any more, which the next leader does
	}
	return failed
}

// elsewhere says where jobs are started and stopped, if not here.
func (p *Guard) elsewhere() error {
	if p.lead.Leader() {
		return nil
	}
	name, url := p.lead.Leading()
	if name == "" {
		return fault.New(fault.Failed, "wait until more than half of the controllers reach each other", errors.New("no controller leads now, and jobs run where one does"))
	}
	remedy := "do it there"
	if url != "" {
		remedy += ": " + url
	}
	return fault.New(fault.Failed, remedy, fmt.Errorf("jobs run where controller %s is, which leads", name))
}
