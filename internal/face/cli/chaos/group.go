package chaos

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/rissodb/risso/internal/avail/chaos"
	"github.com/rissodb/risso/internal/avail/chaos/ledger"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
)

// staging is the word that a group's --about has to have.
const staging = "staging"

// inGroup causes the faults in a group of the user's.
func (c *command) inGroup(ctx context.Context, kinds []chaos.Kind) error {
	own, err := c.own(ctx)
	if err != nil {
		return err
	}
	possible, left, err := c.possible(kinds, own.Can)
	if err != nil {
		return err
	}
	plan := chaos.Plan(c.seed, possible, c.faults)
	if err := c.show(PlanAnswer{Seed: c.seed, Faults: plan, Left: left, Statements: own.Statements()}); err != nil || c.dryRun {
		return err
	}
	if err := screen.Agreed(c.Streams, c.yes); err != nil {
		return err
	}
	dir, err := c.folder()
	if err != nil {
		return err
	}
	journal, err := chaos.NewJournal(dir)
	if err != nil {
		return err
	}
	defer journal.Close()
	names, err := own.Numbers(ctx)
	if err != nil {
		return err
	}
	if err := c.find(ctx, own, names); err != nil {
		return err
	}
	facts := []chaos.Fact{}
	for k, command := range own.Breaks {
		facts = append(facts, chaos.Fact{Name: string(k), Value: command})
	}
	_, err = c.do(ctx, work{dir: dir, group: c.Group, cluster: own, names: names, plan: plan, facts: append(facts, left...), journal: journal,
		heal: func(f chaos.Fault, target string) string { return own.Filled(own.Heals[f.Kind], target) }})
	c.say("what it made is left there; these statements remove it: " + strings.Join(own.Leftovers(), "; ") + ";")
	return err
}

// own reads the group, and refuses one that is not for this.
func (c *command) own(ctx context.Context) (*chaos.Own, error) {
	if c.on != c.Group {
		return nil, fault.New(fault.Usage, "--on "+c.Group+" says so", fmt.Errorf("group %s would be broken on purpose: repeat its name", c.Group))
	}
	if (c.primary == "") == (c.through == "") {
		return nil, fault.Usagef("say how clients find the primary: --primary, or --through")
	}
	o := &chaos.Own{At: map[string]string{}, Admin: map[string]mysql.Target{}}
	var err error
	if o.Breaks, err = chaos.ParseHooks("fault", c.breaks); err != nil {
		return nil, err
	}
	if o.Heals, err = chaos.ParseHooks("heal", c.heals); err != nil {
		return nil, err
	}
	return o, c.With(ctx, func(r *keep.Room) error {
		g, err := r.Group(ctx, c.Group)
		if err != nil {
			return err
		}
		if !strings.Contains(strings.ToLower(g.About), staging) && !c.yesReally {
			return fault.New(fault.Usage, "risso group create --about '… staging …' says that it may be broken; --yes-really does it all the same",
				fmt.Errorf("nothing says that group %s is for staging: %q", g.Name, g.About))
		}
		access, err := r.Access(ctx, g.Name)
		if err != nil {
			return err
		}
		return fill(o, g, access)
	})
}

func fill(o *chaos.Own, g *group.Group, access keep.Access) error {
	for _, m := range g.Members {
		t, err := access.Target(m.Name)
		if err != nil {
			return err
		}
		o.Names, o.At[m.Name], o.Admin[m.Name] = append(o.Names, m.Name), m.Address, t
	}
	if i := g.Primary(); i >= 0 { // until the writers' account is there
		o.Where = func(context.Context) (ledger.Server, error) {
			return ledger.Server{Name: g.Members[i].Name, Address: g.Members[i].Address, Epoch: g.Epoch}, nil
		}
		return nil
	}
	return fault.New(fault.Failed, "risso failover --group "+g.Name, fmt.Errorf("group %s has no primary", g.Name))
}

// find makes what the writers need, and how they find the primary.
func (c *command) find(ctx context.Context, o *chaos.Own, names map[uint64]string) error {
	if err := o.Prepare(ctx); err != nil {
		return err
	}
	if c.through != "" {
		o.Where = o.Through(c.through, names)
		return nil
	}
	client := &http.Client{}
	o.Where = func(ctx context.Context) (ledger.Server, error) { return chaos.AskPrimary(ctx, client, c.primary) }
	return nil
}
