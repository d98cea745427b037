package replica

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/oneline"
)

func newDelay(s screen.Streams) *cobra.Command {
	c := &command{}
	cmd := &cobra.Command{
		Use:   "delay REPLICA TIME",
		Short: "Let a replica stay behind on purpose, or no longer (0)",
		Long: `Sets how long a replica waits before it applies what its source did, so that a mistake can be taken
from it before it happens there too. MariaDB throws away what it has received and not applied, and
fetches it again: refused is that if its source no longer has it.

` + fault.Help,
		Example: `  risso replica delay db3:3306 1h --dsn 'risso@tcp(db1:3306)/'
  risso replica delay db3:3306 0 --dsn 'risso@tcp(db1:3306)/' --yes`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return c.delay(cmd.Context(), args[0], args[1]) },
	}
	c.bind(cmd, s)
	c.bindChannel()
	return cmd
}

func (c *command) delay(ctx context.Context, name, text string) error {
	d, err := digits.ParseAge(text)
	if text == "0" {
		d, err = 0, nil
	}
	const longest = 1<<31 - 1 // seconds, of all servers
	if err != nil || d < 0 || d/time.Second > longest || d%time.Second != 0 {
		return fault.Usagef("%q: a time such as 1h, or 0", text)
	}
	t, i, err := c.found(ctx, name)
	if err != nil {
		return err
	}
	p, err := c.r.Delay(ctx, t, i, c.named(), int(d/time.Second))
	if err != nil {
		return err
	}
	out := c.told().Out
	one := Pointed{Replica: p.Replica.Name, Channel: p.Channel.Name, From: p.Channel.Source, Plan: p.Plan.Words(), Notes: append([]string{}, p.Notes...), Undo: p.Undo}
	for _, note := range p.Notes {
		fmt.Fprintln(out, "note:", oneline.Of(note))
	}
	screen.Steps(out, p.Plan)
	fmt.Fprintln(out, "  undo:", oneline.Of(p.Undo))
	if !c.dryRun {
		if err := screen.Agreed(c.Streams, c.yes); err != nil {
			return err
		}
		if t, err = c.look(ctx); err != nil { // judged again, by what is found now
			return err
		}
		if i, err = node(t, name); err != nil {
			return err
		}
		if p, err = c.r.Delay(ctx, t, i, c.named(), int(d/time.Second)); err != nil {
			return err
		}
		if !slices.Equal(p.Plan.Words(), one.Plan) || !slices.Equal(append([]string{}, p.Notes...), one.Notes) {
			return fault.New(fault.Failed, "run it again", fmt.Errorf("%s is not as it was when the plan was shown: nothing was done", one.Replica))
		}
		err = p.Do(ctx)
		if one.Journal = p.Journal; err != nil {
			one.Error = err.Error()
			return c.answer(Answer{Replicas: []Pointed{one}}, err)
		}
		one.Done = true
		fmt.Fprintf(out, "%s stays %s behind\njournal: %s\n", oneline.Of(one.Replica), digits.Span(d), p.Journal)
	}
	return c.answer(Answer{DryRun: c.dryRun, Replicas: []Pointed{one}}, nil)
}

func newSkip(s screen.Streams) *cobra.Command {
	c := &command{}
	cmd := &cobra.Command{
		Use:   "skip REPLICA",
		Short: "Let a replica pass over the one transaction at which it stopped",
		Long: `Names the transaction at which a replica stopped applying, with what it would have changed, and passes
over that one: by an empty transaction with its GTID on MySQL, by the counter of MariaDB. It is never
more than one; if the replica stops again at the next one, that is said. The rows may differ from the
source's afterwards: risso checksum compares them.

` + fault.Help,
		Example: `  risso replica skip db3:3306 --dsn 'risso@tcp(db3:3306)/' --dry-run
  risso replica skip db3:3306 --dsn 'risso@tcp(db3:3306)/' --yes`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return c.skip(cmd.Context(), args[0]) },
	}
	c.bind(cmd, s)
	c.bindChannel()
	return cmd
}

func (c *command) skip(ctx context.Context, name string) error {
	t, i, err := c.found(ctx, name)
	if err != nil {
		return err
	}
	k, err := c.r.Skip(ctx, t, i, c.named())
	if err != nil {
		return err
	}
	out := c.told().Out
	a := SkipAnswer{DryRun: c.dryRun, Replica: k.Replica.Name, Channel: k.Channel.Name, Error: k.Error.Text, Transaction: k.What, Would: append([]string{}, k.Would...), Unknown: k.WouldWhy,
		Plan: k.Plan.Words(), Notes: append([]string{}, k.Notes...)}
	fmt.Fprintf(out, "%s stopped: %s\nit stands at %s\n", oneline.Of(a.Replica), oneline.Of(a.Error), oneline.Of(a.Transaction))
	for _, would := range a.Would {
		fmt.Fprintln(out, "  it would have changed:", oneline.Of(would))
	}
	if a.Unknown != "" {
		fmt.Fprintln(out, "  what it would have changed is not known:", oneline.Of(a.Unknown))
	}
	screen.Steps(out, k.Plan)
	for _, note := range a.Notes {
		fmt.Fprintln(out, "note:", oneline.Of(note))
	}
	if !c.dryRun {
		if err := screen.Agreed(c.Streams, c.yes); err != nil {
			return err
		}
		err = k.Do(ctx)
		a.Done, a.After, a.Journal = err == nil, k.After, k.Journal
		if err == nil {
			fmt.Fprintf(out, "passed over; %s\njournal: %s\n", oneline.Of(a.After), a.Journal)
		}
	}
	return c.answer(a, err)
}

func newBack(s screen.Streams) *cobra.Command {
	c := &command{}
	cmd := &cobra.Command{
		Use:   "back",
		Short: "Give back what a risso replica that was killed left on servers",
		Long: `Looks on all servers that are found for what a risso replica left that was killed: threads that stand
still, and a replica that points elsewhere and has applied nothing from there. They are put back as
they were. A replica that applies from its new source stays there: risso replica move points it back.

` + fault.Help,
		Example: `  risso replica back --dsn 'risso@tcp(db1:3306)/' --dry-run
  risso replica back --dsn 'risso@tcp(db1:3306)/'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.back(cmd.Context()) },
	}
	return c.bind(cmd, s)
}

func (c *command) back(ctx context.Context) error {
	if err := c.open(); err != nil {
		return err
	}
	t, err := c.look(ctx)
	if err != nil {
		return err
	}
	out := c.told().Out
	a := BackAnswer{DryRun: c.dryRun, Servers: []Back{}}
	var at []int
	for i := range t.Nodes {
		n := &t.Nodes[i]
		if !n.Seen {
			fmt.Fprintf(out, "%s was not seen\n", oneline.Of(n.Name))
			continue
		}
		left, err := c.r.Back(ctx, c.r.Target(n.Addresses[0]), true)
		if err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
		if len(left) == 0 {
			continue
		}
		at = append(at, i)
		a.Servers = append(a.Servers, Back{Server: n.Name, Left: left})
		for _, l := range left {
			for _, step := range l.Steps {
				fmt.Fprintf(out, "%s, left since %s: %s\n", oneline.Of(n.Name), screen.Clock(l.Since), oneline.Of(step))
			}
		}
	}
	if len(at) == 0 {
		fmt.Fprintln(out, "nothing was left")
	}
	if c.dryRun || len(at) == 0 {
		return c.answer(a, nil)
	}
	if err := screen.Agreed(c.Streams, c.yes); err != nil {
		return err
	}
	for k, i := range at {
		if _, err := c.r.Back(ctx, c.r.Target(t.Nodes[i].Addresses[0]), false); err != nil {
			return c.answer(a, fmt.Errorf("%s: %w", t.Nodes[i].Name, err))
		}
		a.Servers[k].Done = true
		fmt.Fprintf(out, "%s: given back\n", oneline.Of(t.Nodes[i].Name))
	}
	return c.answer(a, nil)
}
