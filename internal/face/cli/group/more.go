package group

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/failover/carry"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/avail/semisync/turn"
	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/home"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/serve/config"
)

// carrier changes groups for a command.
func (c *command) carrier(r *keep.Room) *carry.Carrier {
	return &carry.Carrier{Room: r, Holder: carry.NewHolder("risso"), Limits: carry.DefaultLimits(), Say: screen.Says(c.Err)}
}

// HealthAnswer is how ready a group is: who would follow its primary now, and what stands against each.
type HealthAnswer struct {
	Group   string          `json:"group"`
	Primary string          `json:"primary"`
	Alive   bool            `json:"alive"`             // the primary answers
	Because string          `json:"because,omitempty"` // why it does not
	Ready   bool            `json:"ready"`             // it does, and somebody could follow it now, and receives what it writes; of a group that is failed over by itself, would do so
	Choice  failover.Choice `json:"choice"`
	Closed  string          `json:"closed,omitempty"`  // why the primary takes no writes, though it answers
	CutOff  string          `json:"cut_off,omitempty"` // a change of the primary is under way, or was cut off
	// Lacking are, by member, the statements that give Risso's account there what a change of the primary needs.
	Lacking map[string][]string `json:"lacking,omitempty"`
	// Agents is what the agents beside the members tell.
	Agents []carry.AgentSaid `json:"agents,omitempty"`
	// Commits is what is wrong with how commits of the primary wait for replicas.
	Commits []carry.Lack `json:"commits,omitempty"`
	// Beside is, of a group that is failed over by itself, what is wrong where the only controller is on the machine of the primary, and other members are not.
	Beside *fleet.Trouble `json:"beside,omitempty"`
}

// lacks says what accounts may not do that a change of the primary needs.
func lacks(w io.Writer, lacking map[string][]string) {
	for _, name := range slices.Sorted(maps.Keys(lacking)) {
		fmt.Fprintln(w, oneline.Of(name+": Risso's account may not do all that a change of the primary needs: run "+strings.Join(lacking[name], "; ")))
	}
}

// beside is what is wrong where the only controller is on the machine of the primary: it is where the data folder is.
func (c *command) beside(ctx context.Context, f *carry.Forecast) (*fleet.Trouble, error) {
	if f.Beside == nil || !f.Group.Policy.Automatic {
		return nil, nil
	}
	shared, err := c.Shared(ctx)
	if err != nil || shared {
		return nil, err
	}
	return f.Beside, nil
}

func newHealth(s screen.Streams) *cobra.Command {
	c := &command{}
	cmd := &cobra.Command{Use: "health GROUP", Short: "Say who would follow the primary now, and what stands against each member", Args: cobra.ExactArgs(1),
		Long:    "Asks all members, and changes nothing. How long a member takes to apply what it received is seen by a look of a\nsecond at how fast it is. The exit code is 1 if the group has no primary, if\nthat does not answer or takes no writes, if nobody could follow it, if no member receives what it writes, or, in a\ngroup that is failed over by itself, too few to agree that it is dead, if its commits hang or do not wait for\nreplicas though the group was created with --semi-sync, and if a change of it was cut off.\n\n" + fault.Help,
		Example: "  risso group health shop", RunE: func(cmd *cobra.Command, args []string) error {
			return c.With(cmd.Context(), func(r *keep.Room) error {
				f, err := c.carrier(r).Forecast(cmd.Context(), carry.Asked{Group: args[0], Drains: true})
				if err != nil {
					return err
				}
				access, err := r.Access(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				a := HealthAnswer{Agents: carry.AskAgents(cmd.Context(), f.Group, access), Group: args[0], Primary: f.Old, Alive: f.Alive, Because: f.Because, Ready: f.Ready(), Choice: f.Choice, Commits: f.Commits}
				if a.Lacking, err = c.carrier(r).Lacking(cmd.Context(), f.Group); err != nil {
					return err
				}
				if a.Beside, err = c.beside(cmd.Context(), f); err != nil {
					return err
				}
				if a.CutOff = f.CutOff(); f.Closed != nil {
					a.Closed = f.Closed.Why
				}
				if c.output == "json" {
					err = render.JSON(c.Out, a)
				} else {
					for _, line := range f.Words() {
						fmt.Fprintln(c.Out, oneline.Of(line))
					}
					lacks(c.Out, a.Lacking)
					if a.Beside != nil {
						fmt.Fprintln(c.Out, oneline.Of("note: "+a.Beside.What+": "+fault.Line(a.Beside.Why, a.Beside.Remedy)))
					}
					for _, said := range a.Agents {
						if said.Report != nil {
							fmt.Fprintln(c.Out, oneline.Of("the agent of "+said.Member+": sees its server; it claims to be the primary: "+string(said.Report.Claims)))
						}
						if said.Error != "" {
							fmt.Fprintln(c.Out, oneline.Of("the agent of "+said.Member+": "+said.Error))
						}
					}
				}
				if err == nil {
					err = f.Unwell()
				}
				return err
			})
		}}
	return c.bind(cmd, s)
}

// changesGroup is a command that changes a group as a whole.
func changesGroup(s screen.Streams, use, short, long, example string, do func(g *group.Group)) *cobra.Command {
	c := &command{}
	cmd := &cobra.Command{Use: use + " GROUP", Short: short, Long: long + "\n\n" + fault.Help, Example: example, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.With(cmd.Context(), func(r *keep.Room) error {
				g, err := r.Change(cmd.Context(), args[0], func(g *group.Group) error { do(g); return nil })
				if err := c.Did(cmd.Context(), args[0], "the change of group "+args[0]+" ("+use+")", err); err != nil {
					return err
				}
				return c.tell([]group.Group{*g})
			})
		}}
	return c.bind(cmd, s)
}

func newActivate(s screen.Streams) *cobra.Command {
	return changesGroup(s, "activate", "Let risso serve look after a group again", "risso serve looks after the group, tells clients where they go, and fails it over if that was asked for.",
		"  risso group activate shop", func(g *group.Group) { g.Active = true })
}

func newDeactivate(s screen.Streams) *cobra.Command {
	return changesGroup(s, "deactivate", "Let risso serve leave a group alone, as during maintenance", `risso serve goes on to look at the group, and changes nothing: it is not failed over, no member is shut, opened,
pointed or rebuilt, and nothing that is wrong with the group is told. Clients stay: the primary that it has is
told to them, whatever becomes of it, with "unattended" in /api/view. What a person does by risso switchover,
risso failover or risso group promote is done, and clients follow.`,
		"  risso group deactivate shop", func(g *group.Group) { g.Active = false })
}

func newAdd(s screen.Streams) *cobra.Command {
	c := &command{}
	servers := flags.Servers{}
	cmd := &cobra.Command{Use: "add GROUP", Short: "Add members to a group", Args: cobra.ExactArgs(1),
		Long: "A new member has to replicate from the group's primary already. Nothing is changed on it.\n\n" + fault.Help, Example: "  risso group add shop --dsn 'db4=risso:secret@tcp(db4:3306)/'",
		RunE: func(cmd *cobra.Command, args []string) error {
			list, err := servers.Watched()
			if err != nil {
				return err
			}
			if err := tried(cmd.Context(), list); err != nil {
				return err
			}
			return c.With(cmd.Context(), func(r *keep.Room) error {
				var g *group.Group
				for _, w := range list {
					if g, err = c.carrier(r).Adopt(cmd.Context(), args[0], w.Instance.Name, w.Target); err != nil {
						return c.Did(cmd.Context(), args[0], "the addition of "+w.Instance.Name+" to group "+args[0], err)
					}
				}
				if err := c.Did(cmd.Context(), args[0], "the addition of members to group "+args[0], nil); err != nil {
					return err
				}
				return c.tell([]group.Group{*g})
			})
		}}
	c.bind(cmd, s)
	servers.Bind(cmd)
	return cmd
}

// tried connects to servers, before anything is said of their group.
func tried(ctx context.Context, list []config.Watched) error {
	for _, w := range list {
		conn, err := mysql.Connect(ctx, w.Target, nil)
		if err != nil {
			return err
		}
		conn.Close()
	}
	return nil
}

// PrepareAnswer is what makes a group ready to be failed over.
type PrepareAnswer struct {
	Group  string       `json:"group"`
	DryRun bool         `json:"dry_run"`
	Plan   []string     `json:"plan"`  // what is done, step by step
	Lines  []turn.Lines `json:"lines"` // for option files, as servers do not keep these settings themselves
	Notes  []string     `json:"notes"`
	Done   bool         `json:"done"`
}

func newPrepare(s screen.Streams) *cobra.Command {
	c := &command{}
	var dryRun, yes bool
	dir := ""
	cmd := &cobra.Command{Use: "prepare GROUP", Short: "Make a group ready to be failed over", Args: cobra.ExactArgs(1),
		Long: `Lets replicas hear from the primary twice a second, so that one that is frozen is noticed; lets no member
take writes when it starts, as risso serve opens the primary; and, in a group created with --semi-sync,
lets commits wait for a replica. A member that the primary does not let in gets the account of the group.
One that does not answer is left as it is. What servers do not keep themselves is printed, for their option
files.

` + fault.Help,
		Example: "  risso group prepare shop --dry-run\n  risso group prepare shop --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.With(cmd.Context(), func(r *keep.Room) error {
				p, err := c.carrier(r).Prepare(cmd.Context(), args[0], dir)
				if err != nil {
					return err
				}
				defer p.Close()
				return c.prepare(cmd.Context(), args[0], p, dryRun, yes)
			})
		}}
	c.bind(cmd, s)
	fl := cmd.Flags()
	fl.BoolVar(&dryRun, "dry-run", false, "show what would be done, and change nothing")
	fl.BoolVar(&yes, "yes", false, "do not ask")
	fl.StringVar(&dir, "state", home.State("semisync"), "folder of the journals")
	return cmd
}

// prepare shows the plan, asks, and carries it out.
func (c *command) prepare(ctx context.Context, name string, p *carry.Prepared, dryRun, yes bool) error {
	out := c.Streams
	if c.output == "json" {
		out.Out = out.Err
	}
	a := PrepareAnswer{Group: name, DryRun: dryRun, Plan: append([]string{}, p.Plan.Words()...), Lines: append([]turn.Lines{}, p.Lines...), Notes: append([]string{}, p.Notes...)}
	screen.Steps(out.Out, p.Plan)
	if len(p.Plan) == 0 {
		fmt.Fprintln(out.Out, name+": nothing is to be done")
	}
	for _, l := range p.Lines {
		for _, line := range l.Lines {
			fmt.Fprintf(out.Out, "for the option file of %s: %s\n", oneline.Of(l.Server), line)
		}
	}
	for _, n := range p.Notes {
		fmt.Fprintln(out.Out, "note:", oneline.Of(n))
	}
	if !dryRun && len(p.Plan) > 0 {
		if err := screen.Agreed(c.Streams, yes); err != nil {
			return err
		}
		_, err := change.Execute(ctx, p.Plan, change.Log{})
		if err = c.Did(ctx, name, "the preparation of group "+name, err); err != nil {
			return err
		}
	}
	a.Done = !dryRun
	if c.output == "json" {
		return render.JSON(c.Out, a)
	}
	return nil
}
