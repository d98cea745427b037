package failover

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/failover/carry"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/avail/publish"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/store/agree"
	"github.com/rissodb/risso/internal/store/state"
)

// Hand changes the primary of a group for somebody who asks risso serve to.
type Hand struct {
	Docs   keep.Documents
	Limits carry.Limits
	Hooks  *publish.Hooks // run when something happens; nil: there are none
	Lead   agree.Leadership
	Desk   *Desk // that watches the groups; nil: nobody does
	// Others asks all processes that share the state how they are; nil: there is this one alone.
	Others func(ctx context.Context) agree.Overview
	Logger *slog.Logger
}

func (h *Hand) room(by string) *keep.Room { return &keep.Room{Docs: h.Docs, Who: by} }

// Changed is a change of the primary of a group: what would be done, or what was.
type Changed struct {
	Group   string            `json:"group"`
	DryRun  bool              `json:"dry_run"`
	Old     string            `json:"old"`
	New     string            `json:"new"`
	Plan    []string          `json:"plan"`
	Receipt *failover.Receipt `json:"receipt,omitempty"`
}

// Groups lists the groups.
func (h *Hand) Groups(ctx context.Context) ([]group.Group, error) {
	return h.room("").Groups(ctx)
}

func (h *Hand) carrier(a carry.Asked) *carry.Carrier {
	return &carry.Carrier{Room: h.room(a.By), Holder: carry.NewHolder("serve"), Limits: h.Limits, Hooks: h.Hooks, Lead: h.Lead,
		Say: func(text string) { h.Logger.Info("group", "group", a.Group, "text", text) }}
}

// leads refuses where another controller leads.
func (h *Hand) leads() error {
	if h.Lead.Leader() {
		return nil
	}
	hint := "try again: controllers are about to agree who leads"
	if name, url := h.Lead.Leading(); name != "" && name != h.Lead.Name() {
		hint = strings.TrimSpace("ask controller " + name + ", which leads " + url)
	}
	return fault.New(fault.Failed, hint, fmt.Errorf("controller %s does not lead: %w", h.Lead.Name(), state.ErrNoLeader))
}

// Switchover lets another member be the primary, while the old one hands over.
func (h *Hand) Switchover(ctx context.Context, a carry.Asked, dryRun bool) (Changed, error) {
	c := h.carrier(a)
	p, err := c.Plan(ctx, a)
	if err != nil {
		return Changed{Group: a.Group, DryRun: dryRun}, err
	}
	out := Changed{Group: a.Group, DryRun: dryRun, Old: p.Old, New: p.Choice.Winner, Plan: p.Plan.Words()}
	if dryRun {
		return out, nil
	}
	if err := h.leads(); err != nil {
		return out, err
	}
	a.From, a.To = p.Old, p.Choice.Winner
	j, err := c.Switchover(ctx, a)
	return out.ended(j), err
}

// Failover lets a replica be the primary, since the old one is dead.
func (h *Hand) Failover(ctx context.Context, a carry.Asked, dryRun bool) (Changed, error) {
	c := h.carrier(a)
	f, err := c.Forecast(ctx, a)
	if err != nil {
		return Changed{Group: a.Group, DryRun: dryRun}, err
	}
	out := Changed{Group: a.Group, DryRun: dryRun, Old: f.Old, New: f.Choice.Winner, Plan: f.Plan.Words()}
	if err := f.Refused(); err != nil || dryRun {
		return out, err
	}
	if err := h.leads(); err != nil {
		return out, err
	}
	a.From, a.Known, a.Because = f.Old, f.Known, f.Because
	j, err := c.Failover(ctx, a)
	return out.ended(j), err
}

// ended adds what the journal knows.
func (c Changed) ended(j *failover.Journal) Changed {
	if j != nil {
		c.New, c.Receipt = j.New, j.Receipt
	}
	return c
}
