package group

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/avail/failover/carry"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/home"
	"github.com/rissodb/risso/internal/oneline"
	worker "github.com/rissodb/risso/internal/serve/rebuild"
)

// RebuildAnswer is what is to be done to a member that is rebuilt, and was.
type RebuildAnswer struct {
	worker.Planned
	DryRun  bool          `json:"dry_run"`
	Rebuilt *keep.Rebuilt `json:"rebuilt,omitempty"` // what became of it, as it is written down
}

// rebuild is risso group rebuild.
type rebuild struct {
	command
	flags.Throttle
	from, state string
	threads     int
	wait        time.Duration
	dryRun, yes bool
}

func newRebuild(s screen.Streams) *cobra.Command {
	c := &rebuild{}
	cmd := &cobra.Command{Use: "rebuild GROUP MEMBER", Short: "Give a FAULTY member the data of another one, and let it come back", Args: cobra.ExactArgs(2),
		Long: `Replaces all that a FAULTY member has by a copy of another one, as risso replica rebuild does, also where
it was the primary and replicates from nobody. What only it has is written down before, and stays in the
group's state. Then it is compared with the primary, is SPARE, and becomes SECONDARY when it has caught
up. If that is cut off, the same command, or risso serve, goes on.

risso serve does the same by itself in a group whose policy says so: risso group create --rebuild, or
risso group set-policy --rebuild.

` + fault.Help,
		Example: "  risso group rebuild shop db1 --dry-run\n  risso group rebuild shop db1 --from db3 --yes\n  risso group rebuild shop db1 --from clone --wait 10m",
		RunE:    func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args[0], args[1]) },
	}
	c.bind(cmd, s)
	fl := cmd.Flags()
	fl.StringVar(&c.from, "from", "", "the member whose data it gets, or clone or clone=MEMBER (MySQL); default: a fit replica of the primary, or the primary")
	fl.IntVar(&c.threads, "threads", min(runtime.NumCPU(), 8), "sessions that read, and load")
	flags.DurationVar(fl, &c.wait, "wait", time.Minute, "how long each thing may take that is waited for, such as applying what was received")
	fl.StringVar(&c.state, "state", "", "folder of the journals (default "+home.State("replica")+")")
	fl.BoolVar(&c.dryRun, "dry-run", false, "show what would be done, and change nothing")
	fl.BoolVar(&c.yes, "yes", false, "do not ask")
	c.Throttle.Bind(cmd)
	return cmd
}

func (c *rebuild) run(ctx context.Context, name, member string) error {
	if c.threads < 1 || c.threads > 64 {
		return fault.Usagef("--threads %d: 1 to 64", c.threads)
	}
	limits, err := c.Limits(c.threads)
	if err != nil {
		return err
	}
	if c.state == "" {
		c.state = home.State("replica")
	}
	return c.With(ctx, func(r *keep.Room) error {
		line := screen.NewProgress(c.Err)
		defer line.End()
		m := &worker.Members{Room: r, Holder: carry.NewHolder("rebuild"), Dir: c.state, Limits: limits, Threads: c.threads, Wait: c.wait, Say: screen.Says(c.Err), Line: line}
		a := worker.Asked{Group: name, Member: member, From: c.from, By: r.Who}
		p, err := m.Plan(ctx, a)
		if err != nil {
			return err
		}
		c.tell(p)
		answer := RebuildAnswer{Planned: p, DryRun: c.dryRun}
		if c.dryRun {
			return c.answer(answer, nil)
		}
		if err := screen.Agreed(c.Streams, c.yes); err != nil {
			return err
		}
		answer.Rebuilt, err = m.Do(ctx, a)
		line.End()
		if err = c.Did(ctx, name, "the rebuild of "+member+" of group "+name, err); err == nil && c.output != "json" {
			fmt.Fprintln(c.Out, oneline.Of(worker.Words(answer.Rebuilt)))
		}
		return c.answer(answer, err)
	})
}

// tell shows what is to be done.
func (c *rebuild) tell(p worker.Planned) {
	out := c.Out
	if c.output == "json" {
		out = c.Err
	}
	fmt.Fprintf(out, "%s of %s, whose primary is %s, is rebuilt from %s: %s\n", oneline.Of(p.Member), oneline.Of(p.Group), oneline.Of(p.Primary), oneline.Of(p.From), oneline.Of(p.Because))
	for _, l := range p.Loses {
		fmt.Fprintln(out, "  lost:", oneline.Of(l))
	}
	for _, n := range p.Notes {
		fmt.Fprintln(out, "  note:", oneline.Of(n))
	}
	for i, step := range p.Plan {
		fmt.Fprintf(out, "  %d. %s\n", i+1, oneline.Of(step))
	}
}

// answer writes it, if it is asked for; err is what came of it.
func (c *rebuild) answer(a RebuildAnswer, err error) error {
	if c.output == "json" {
		if werr := render.JSON(c.Out, a); err == nil {
			err = werr
		}
	}
	return err
}

// RebuildsAnswer is what became of members that were rebuilt.
type RebuildsAnswer struct {
	Rebuilds []keep.Rebuilt `json:"rebuilds"`
}

func newRebuilds(s screen.Streams) *cobra.Command {
	c := &command{}
	cmd := &cobra.Command{Use: "rebuilds GROUP", Short: "List members that were rebuilt, with the transactions that only they had", Args: cobra.ExactArgs(1),
		Long: "What only a member had is written down before it is rebuilt, by risso serve or by hand, and stays.\n\n" + fault.Help, Example: "  risso group rebuilds shop",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.With(cmd.Context(), func(r *keep.Room) error {
				if _, err := r.Group(cmd.Context(), args[0]); err != nil {
					return err
				}
				list, err := r.AllRebuilt(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				if c.output == "json" {
					return render.JSON(c.Out, RebuildsAnswer{append([]keep.Rebuilt{}, list...)})
				}
				for _, b := range list {
					fmt.Fprintf(c.Out, "%s  %s, from %s, by %s: %s\n", screen.Clock(b.Began), oneline.Of(b.Member), oneline.Of(b.From), oneline.Of(b.By), oneline.Of(outcome(b)))
					if b.Errant != "" {
						fmt.Fprintln(c.Out, "  only it had", oneline.Of(b.Errant))
					}
					c.contents(b)
				}
				return nil
			})
		}}
	return c.bind(cmd, s)
}

// contents shows what transactions changed that only a member had.
func (c *command) contents(b keep.Rebuilt) {
	k := b.Contents
	if k == nil {
		return
	}
	for _, t := range k.Transactions {
		var words []string
		for _, ch := range t.Changes {
			text := strings.TrimSpace(ch.Kind + " " + strings.TrimSpace(ch.Other+" "+ch.Table))
			if ch.Rows > 0 {
				text += ", " + digits.Counted(ch.Rows, "row")
			}
			words = append(words, text)
		}
		fmt.Fprintf(c.Out, "    %s of %s: %s\n", t.GTID, screen.Clock(t.Time), oneline.Of(strings.Join(words, "; ")))
	}
	if k.More > 0 {
		fmt.Fprintf(c.Out, "    and %s\n", digits.Counted(k.More, "more transaction"))
	}
	if k.Unseen != "" {
		fmt.Fprintln(c.Out, "    not seen:", oneline.Of(k.Unseen))
	}
}

// outcome is how a rebuild went.
func outcome(b keep.Rebuilt) string {
	switch {
	case b.Ended.IsZero():
		return "it was cut off, or is at work"
	case b.Problem != "":
		return b.Problem
	}
	return "done; " + b.Compare
}
