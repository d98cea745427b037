package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/sandbox"
)

// turns are the commands for one node.
var turns = []struct {
	turn              sandbox.Turn
	short, long, done string
	state             sandbox.State // that it has afterwards; in which nothing is to do
}{
	{sandbox.TurnStop, "Shut one server of a sandbox down", "Shuts a node down cleanly, and waits until it is gone. Its data stays.", "stopped", sandbox.StateStopped},
	{sandbox.TurnStart, "Start a server of a sandbox that is stopped", "Starts a node that is stopped, with its data, on its port, and waits until it answers; one of a\ncluster until it is synced. If no other member of its cluster runs, it founds the cluster again, and is\nrefused if another one has changes that it lacks.", "runs", sandbox.StateRunning},
	{sandbox.TurnRestart, "Stop and start a server of a sandbox", "Shuts a node down cleanly and starts it again, as stop and start do.", "runs again", ""},
	{sandbox.TurnKill, "Let a server of a sandbox crash", "Ends a node by SIGKILL, as a crash would. Its data stays; start makes it recover.", "killed", sandbox.StateStopped},
}

func exampleOf(t sandbox.Turn) string {
	const then = " && risso sandbox start replica1 --sandbox mine"
	line := "  risso sandbox " + string(t) + " replica1 --sandbox mine"
	if t == sandbox.TurnStop || t == sandbox.TurnKill {
		line += then
	}
	return line
}

// newSandboxTurnCmds are stop, start, restart and kill.
func newSandboxTurnCmds(output *string) (list []*cobra.Command) {
	for _, t := range turns {
		var box string
		cmd := &cobra.Command{
			Use:     string(t.turn) + " NODE",
			Short:   t.short,
			Long:    t.long + "\nNODE is a name that risso sandbox list shows; --sandbox says which is meant if several sandboxes\nhave such a node.",
			Example: exampleOf(t.turn),
			Args:    cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
				defer stop()
				s, n, err := nodeNamed(box, args[0])
				if err != nil {
					return err
				}
				was := n.State
				if err := turnNode(ctx, s, n, t.turn); err != nil {
					return err
				}
				if *output == "json" {
					return render.JSON(cmd.OutOrStdout(), NodeAnswer{s.Name, was, n})
				}
				words := t.done
				if was == t.state {
					words = "is " + string(was) + " already"
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "node %s of sandbox %s %s\n", n.Name, s.Name, words)
				return err
			},
		}
		cmd.Flags().StringVar(&box, "sandbox", "", "name of its sandbox (default: the only one with such a node)")
		list = append(list, cmd)
	}
	return list
}

// turnNode does it; what breaks off says in which state the node is.
func turnNode(ctx context.Context, s *sandbox.Sandbox, n *sandbox.Node, t sandbox.Turn) error {
	err := n.TurnBack(ctx, t, cluster{s}.back)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("interrupted; risso sandbox list shows in which state it is: %w", err)
	}
	return err
}

// nodeNamed finds a node by its name.
func nodeNamed(box, node string) (*sandbox.Sandbox, *sandbox.Node, error) {
	if box != "" {
		s, err := sandbox.Open("", box)
		if err != nil {
			return nil, nil, err
		}
		n, err := s.Node(node)
		return s, n, err
	}
	all, err := sandbox.List("")
	if err != nil {
		return nil, nil, err
	}
	var names, nodes []string
	var found *sandbox.Sandbox
	for _, s := range all {
		for _, n := range s.Nodes {
			nodes = append(nodes, n.Name)
			if n.Name == node {
				found, names = s, append(names, s.Name)
			}
		}
	}
	switch slices.Sort(nodes); len(names) {
	case 0:
		return nil, nil, fault.New(fault.Usage, "there are: "+strings.Join(slices.Compact(nodes), ", "), fmt.Errorf("no sandbox has a node %q", node))
	case 1:
		n, err := found.Node(node)
		return found, n, err
	}
	return nil, nil, fault.New(fault.Usage, "--sandbox is one of "+strings.Join(names, ", "), errors.New("several sandboxes have a node "+node))
}
