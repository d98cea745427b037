// Package group holds the command risso group: a primary and the servers that replicate from it, under one name.
package group

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/failover/carry"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/avail/repoint"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/avail/topology/look"
	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/oneline"
)

// command is what all below risso group have.
type command struct {
	screen.Streams
	flags.Groups
	output string
	cutOff map[string]string // by group: a change that is under way, or was cut off
	dryRun bool              // of those that have it: show what would be done, and change nothing
	plan   change.Plan       // of a promotion or demotion
	hooks  flags.Hooks       // of a promotion
}

// New is risso group and all below it.
func New(s screen.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "group",
		Short: "Name a primary and its replicas as a group that can be switched over and failed over",
		Long: `A group is a primary and the servers that replicate from it, under one name. Its servers have a
status: PRIMARY takes writes; SECONDARY may follow it; SPARE is promoted only by name; FAULTY gets
nothing, and comes back only as SPARE. Groups are kept in the data folder, which risso serve uses too,
with the accounts by which their servers are reached.`,
		Example: `  risso group create shop --dsn 'db1=risso:secret@tcp(db1:3306)/' --dsn 'db2=risso:secret@tcp(db2:3306)/'
  risso group list
  risso group show shop
  risso group set-status shop db2 SPARE`,
	}
	cmd.AddCommand(newCreate(s), newList(s), newShow(s), newSetStatus(s), newSetWeight(s), newSetRule(s), newSetCenter(s), newSetPolicy(s), newSetAccess(s), newRemove(s), newHealth(s), newActivate(s), newDeactivate(s), newAdd(s), newPrepare(s), newPromote(s), newDemote(s), newRebuild(s), newRebuilds(s))
	return cmd
}

// bind adds the flags that all have.
func (c *command) bind(cmd *cobra.Command, s screen.Streams) *cobra.Command {
	c.Streams = s
	c.Groups.Bind(cmd, false)
	flags.OutputVar(cmd.Flags(), &c.output, "", "text", "json")
	return cmd
}

// Answer is a group, or several.
type Answer struct {
	Groups []group.Group `json:"groups"`
	// CutOff are, by group, changes of the primary that are under way, or were cut off, with what goes on with them.
	CutOff map[string]string `json:"cut_off,omitempty"`
	DryRun bool              `json:"dry_run,omitempty"` // nothing was changed
	Plan   []string          `json:"plan,omitempty"`    // of a promotion or demotion: what is done, step by step
}

type create struct {
	command
	servers      flags.Servers
	replUser     string
	replPassword string
	policy
}

func newCreate(s screen.Streams) *cobra.Command {
	c := &create{}
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a group of a primary and its replicas",
		Long: `Asks the servers who replicates from whom, and keeps them as a group. One of them must be the primary,
and the others replicate from it, by GTID. Nothing is changed on them.

Servers are given by --dsn, each with a name of its own as in db1=user@tcp(db1:3306)/, or come from the
config file. Their accounts are kept in the data folder, readable by its owner only. The account must be
allowed to replicate: a primary that becomes a replica logs in with it, unless --replication-user names
another one (its password is read from --replication-password-file).

` + fault.Help,
		Example: `  risso group create shop --dsn 'db1=risso:secret@tcp(db1:3306)/' --dsn 'db2=risso:secret@tcp(db2:3306)/'
  risso group create shop --config risso.yaml --semi-sync --lossless`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args[0]) },
	}
	c.bind(cmd, s)
	c.Makes = true
	c.servers.Bind(cmd)
	fl := cmd.Flags()
	fl.StringVar(&c.replUser, "replication-user", "", "account by which members replicate (default: that of the first --dsn)")
	fl.StringVar(&c.replPassword, "replication-password-file", "", "file with its password")
	c.flags(fl)
	return cmd
}

func (c *create) run(ctx context.Context, name string) error {
	if err := errors.Join(group.CheckName(name), c.policy.check()); err != nil {
		return err
	}
	list, err := c.servers.Watched()
	if err != nil {
		return err
	}
	if len(list) < 2 {
		return fault.Usagef("a group needs a primary and at least one replica: name them with --dsn")
	}
	var targets []mysql.Target
	var starts []topology.Start
	access := keep.Access{Members: map[string]string{}}
	for _, w := range list {
		targets = append(targets, w.Target)
		starts = append(starts, topology.Start{Name: w.Instance.Name, Address: w.Target.Address()})
		access.Members[w.Instance.Name] = w.Target.Secret()
	}
	access.Replication = keep.Account{User: targets[0].User(), Password: targets[0].Password()}
	if c.replUser != "" {
		password, err := flags.Secret(c.replPassword)
		if err != nil {
			return fault.Usagef("--replication-password-file: %w", err)
		}
		access.Replication = keep.Account{User: c.replUser, Password: password}
	}
	if c.agentPort != 0 {
		if access.Agents, err = flags.Secret(c.agentToken); err != nil {
			return fault.Usagef("--agent-token-file: %w", err)
		}
	}
	patience := carry.DefaultLimits().Look
	search := look.Search(targets)
	search.Alone = true
	t := search.Discover(ctx, starts)
	now := time.Now().UTC()
	reached, addresses := map[string]mysql.Target{}, map[string]string{}
	for i, w := range list {
		reached[w.Instance.Name], addresses[w.Instance.Name] = targets[i], targets[i].Address()
	}
	if no := failover.Twice(t, addresses); len(no) > 0 {
		return repoint.Refused("group "+name, refusals(no))
	}
	members, no := failover.Members(t, now)
	if len(no) > 0 {
		return repoint.Refused("group "+name, refusals(no))
	}
	g := &group.Group{Name: name, Active: true, Members: members, Since: now}
	c.policy.apply(g, func(string) bool { return true })
	if no := carry.CheckReplication(ctx, g, reached, access.Replication, patience, names(members)...); len(no) > 0 {
		return repoint.Refused("group "+name, refusals(no))
	}
	return c.With(ctx, func(r *keep.Room) error {
		if err := c.Did(ctx, name, "the creation of group "+name, r.Add(ctx, g, access)); err != nil {
			return err
		}
		lacks(c.Err, carry.Lacking(ctx, g, reached, patience))
		return c.tell([]group.Group{*g})
	})
}

func names(list []group.Member) (out []string) {
	for _, m := range list {
		out = append(out, m.Name)
	}
	return out
}

func refusals(list []failover.Refusal) (out []repoint.Refusal) {
	for _, r := range list {
		out = append(out, repoint.Refusal{Code: r.Code, Trouble: r.Trouble})
	}
	return out
}

// tellAll shows groups, and which changes of them wait.
func (c *command) tellAll(ctx context.Context, r *keep.Room, list []group.Group) error {
	c.cutOff = map[string]string{}
	for i := range list {
		if err := c.carrier(r).CutOff(ctx, &list[i]); err != nil {
			c.cutOff[list[i].Name] = fault.Line(err.Error(), fleet.RemedyOf(err))
		}
	}
	return c.tell(list)
}

// tell shows groups.
func (c *command) tell(list []group.Group) error {
	if c.output == "json" {
		if list == nil {
			list = []group.Group{}
		}
		return render.JSON(c.Out, Answer{list, c.cutOff, c.dryRun, c.plan.Words()})
	}
	for i, g := range list {
		if i > 0 {
			fmt.Fprintln(c.Out)
		}
		fmt.Fprintf(c.Out, "%s: epoch %d%s\n", g.Name, g.Epoch, words(g))
		if cut := c.cutOff[g.Name]; cut != "" {
			fmt.Fprintln(c.Out, " ", oneline.Of(cut))
		}
		w := tabwriter.NewWriter(c.Out, 0, 0, 2, ' ', 0)
		for _, m := range g.Members {
			fault := m.Fault
			if words := m.Rebuild.Words(time.Now()); words != "" {
				fault += "; " + words
			}
			if m.Rebuild.Running(time.Now()) && m.Rebuild.Stage != "" {
				fault += ": " + m.Rebuild.Stage
			}
			fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\n", oneline.Of(m.Name), oneline.Of(m.Address), m.Status, chances(m), oneline.Of(fault))
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// chances are how gladly a member is promoted, where it is, and which share of the reads it gets, as far as that is not as usual.
func chances(m group.Member) string {
	out := string(m.Rule)
	if m.Center != "" {
		out += ", in " + m.Center
	}
	if m.Weight != 1 {
		out += fmt.Sprintf(", weight %g", m.Weight)
	}
	return out
}

func words(g group.Group) string {
	out := ""
	if !g.Active {
		out += ", not active: nobody looks after it until risso group activate " + g.Name
	}
	if !g.Policy.Automatic {
		out += ", failed over by hand only"
	}
	for _, s := range []struct {
		holds bool
		words string
	}{
		{g.Policy.Lossless, "not failed over where that is known to lose transactions"},
		{g.Policy.SemiSync, "commits wait for a replica"},
		{g.Policy.Pause != group.DefaultPause, digits.Span(g.Policy.Pause) + " between two automatic failovers"},
		{g.Policy.Center != "", "members in " + g.Policy.Center + " follow before others"},
		{g.Policy.Rebuild, "members with transactions of their own are rebuilt"},
		{!g.Policy.Rejoin, "an old primary does not come back by itself"},
		{g.Policy.Unwritten, "not verified by a row"},
		{g.Policy.Agents > 0, "agents fence after " + digits.Span(g.Policy.Agents)},
	} {
		if s.holds {
			out += ", " + s.words
		}
	}
	if g.Lease.Holder != "" {
		out += ", being changed by " + g.Lease.Holder
	}
	return out
}

func newList(s screen.Streams) *cobra.Command {
	c := &command{}
	cmd := &cobra.Command{Use: "list", Short: "List groups", Args: cobra.NoArgs, Example: "  risso group list\n  risso group list --output json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.With(cmd.Context(), func(r *keep.Room) error {
				list, err := r.Groups(cmd.Context())
				if err != nil {
					return err
				}
				return c.tellAll(cmd.Context(), r, list)
			})
		}}
	return c.bind(cmd, s)
}

func newShow(s screen.Streams) *cobra.Command {
	c := &command{}
	cmd := &cobra.Command{Use: "show NAME", Short: "Show a group", Aliases: []string{"lookup"}, Args: cobra.ExactArgs(1), Example: "  risso group show shop",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.With(cmd.Context(), func(r *keep.Room) error {
				g, err := r.Group(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return c.tellAll(cmd.Context(), r, []group.Group{*g})
			})
		}}
	return c.bind(cmd, s)
}
