package chaos

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/rissodb/risso/internal/avail/chaos"
	"github.com/rissodb/risso/internal/avail/chaos/ledger"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
)

// staging is the word that a group's --about has to have.
const staging = "staging"

// inGroup causes the faults in a group of the user's.
func (c *command) inGroup(ctx context.Context, kinds []chaos.Kind) error {
	if c.on != c.Group {
		return fault.New(fault.Usage, "--on "+c.Group+" says so", fmt.Errorf("group %s would be broken on purpose: repeat its name", c.Group))
	}
	if c.primary != "" && c.through != "" {
		return fault.Usagef("clients find the primary by --primary, or --through, not both")
	}
	return c.With(ctx, func(r *keep.Room) error {
		own, err := c.own(ctx, r)
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
		return c.breakOwn(ctx, own, plan, left)
	})
}

// breakOwn causes the planned faults.
func (c *command) breakOwn(ctx context.Context, own *chaos.Own, plan []chaos.Fault, left []chaos.Fact) error {
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
	if err := own.Prepare(ctx); err != nil {
		return err
	}
	switch {
	case c.through != "":
		own.Where = own.Through(c.through, names)
	case c.primary != "":
		client := &http.Client{}
		own.Where = func(ctx context.Context) (ledger.Server, error) { return chaos.AskPrimary(ctx, client, c.primary) }
	}
	facts := []chaos.Fact{}
	for _, k := range chaos.Kinds() {
		if own.Breaks[k] != "" {
			facts = append(facts, chaos.Fact{Name: string(k), Value: own.Breaks[k]})
		}
	}
	_, err = c.do(ctx, work{dir: dir, group: c.Group, cluster: own, names: names, plan: plan, facts: append(facts, left...), journal: journal, failover: !c.manual,
		heal: func(f chaos.Fault, target string) string { return own.Filled(own.Heals[f.Kind], target) }})
	fmt.Fprintln(c.Err, "the ledger's table and account are left; these statements remove them: "+strings.Join(own.Leftovers(), "; ")+";")
	return err
}

// own reads the group, and refuses one that is not for this. Until it is said otherwise, clients find the primary as the group has it.
func (c *command) own(ctx context.Context, r *keep.Room) (*chaos.Own, error) {
	o := &chaos.Own{At: map[string]string{}, Admin: map[string]mysql.Target{}}
	var err error
	if o.Breaks, err = chaos.ParseHooks("fault", c.breaks); err != nil {
		return nil, err
	}
	if o.Heals, err = chaos.ParseHooks("heal", c.heals); err != nil {
		return nil, err
	}
	g, err := r.Group(ctx, c.Group)
	if err != nil {
		return nil, err
	}
	about := strings.ToLower(g.About)
	if (!strings.Contains(about, staging) || strings.Contains(about, "production")) && !c.yesReally {
		return nil, fault.New(fault.Usage, "risso group set-policy "+g.Name+" --about 'staging: …' says that it may be broken; --yes-really does it all the same",
			fmt.Errorf("nothing says that group %s is for staging: %q", g.Name, g.About))
	}
	access, err := r.Access(ctx, g.Name)
	if err != nil {
		return nil, err
	}
	for _, m := range g.Members {
		t, err := access.Target(m.Name)
		if err != nil {
			return nil, err
		}
		o.Names, o.At[m.Name], o.Admin[m.Name] = append(o.Names, m.Name), m.Address, t
	}
	o.Where = func(ctx context.Context) (ledger.Server, error) {
		g, err := r.Group(ctx, c.Group)
		if err != nil {
			return ledger.Server{}, err
		}
		i := g.Primary()
		if i < 0 {
			return ledger.Server{}, errors.New("the group has no primary")
		}
		return ledger.Server{Name: g.Members[i].Name, Address: g.Members[i].Address, Epoch: g.Epoch}, nil
	}
	return o, nil
}
