package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"syscall"

	"github.com/rissodb/risso/internal/fault"
)

// Turn is what is done with one node of a sandbox.
type Turn string

// The turns.
const (
	TurnStop    Turn = "stop"    // shut it down cleanly
	TurnStart   Turn = "start"   // start it, and wait until it answers
	TurnRestart Turn = "restart" // both
	TurnKill    Turn = "kill"    // let it crash
)

// Turn stops, starts, restarts or kills the node; it returns when the server is gone or answers, and in a cluster when it is synced. A
// node that is so already is left. Nobody else can work on the sandbox meanwhile.
func (n *Node) Turn(ctx context.Context, t Turn) error {
	unlock, err := lockSandbox(ctx, n.sandbox.Dir, 0)
	if err != nil {
		return err
	}
	defer unlock()
	if t == TurnStop || t == TurnRestart {
		err = n.Stop(ctx)
	} else if t == TurnKill {
		err = n.Kill(syscall.SIGKILL)
	}
	if err != nil || t == TurnStop || t == TurnKill {
		return err
	}
	if n.refresh() == StatePaused {
		err := n.Kill(syscall.SIGCONT)
		n.refresh()
		return err
	}
	args, err := n.rejoin()
	if err != nil {
		return err
	}
	return n.Start(ctx, args...)
}

// rejoin returns the arguments by which a node comes back: the first of a cluster of which no member runs founds it again.
func (n *Node) rejoin() ([]string, error) {
	if n.Galera == nil {
		return nil, nil
	}
	for _, other := range n.sandbox.Nodes {
		if other != n && other.refresh() != StateStopped {
			return nil, nil
		}
	}
	own, err := n.lastOfCluster()
	if err != nil {
		return nil, err
	}
	for i := len(n.sandbox.Nodes) - 1; i >= 0 && !own; i-- {
		other := n.sandbox.Nodes[i]
		o, err := other.lastOfCluster()
		if err != nil {
			return nil, err
		}
		if o {
			return nil, fault.New(fault.Failed, fmt.Sprintf("start node %s first: it was the last to stop, so it has all changes", other.Name),
				fmt.Errorf("no member of the cluster runs, and node %s may lack changes", n.Name))
		}
	}
	if err := n.allowFounding(); err != nil {
		return nil, err
	}
	return []string{newCluster}, nil
}

var grastateSafe = regexp.MustCompile(`(?m)^safe_to_bootstrap:\s*1`)

func (n *Node) grastate() string { return filepath.Join(n.Datadir, "grastate.dat") }

// lastOfCluster reports whether the node was the last of its cluster to stop, by what it has written; after a crash none was.
func (n *Node) lastOfCluster() (bool, error) {
	b, err := os.ReadFile(n.grastate())
	if err != nil {
		return false, fmt.Errorf("node %s: %w", n.Name, err)
	}
	return grastateSafe.Match(b), nil
}

// allowFounding lets a node found its cluster again that was not the last to stop, or crashed: its data is the cluster's then.
func (n *Node) allowFounding() error {
	b, err := os.ReadFile(n.grastate())
	if err != nil {
		return fmt.Errorf("node %s: %w", n.Name, err)
	}
	return os.WriteFile(n.grastate(), bytes.Replace(b, []byte("safe_to_bootstrap: 0"), []byte("safe_to_bootstrap: 1"), 1), 0o600)
}
