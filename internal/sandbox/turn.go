package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"
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

// Return says how a node of a cluster comes back: the arguments that it is started with, and whether it founds the cluster again; alone: no other member runs. An
// error refuses it.
type Return func(ctx context.Context, n *Node, alone bool) (args []string, founds bool, err error)

// Turn stops, starts, restarts or kills the node; it returns when the server is gone or answers, and in a cluster when it is synced. A
// node that is so already is left. Nobody else can work on the sandbox meanwhile. A node of a cluster joins members that run.
func (n *Node) Turn(ctx context.Context, t Turn) error { return n.TurnBack(ctx, t, nil) }

// TurnBack is Turn where nodes of a cluster come back as back says.
func (n *Node) TurnBack(ctx context.Context, t Turn, back Return) error {
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
	switch n.refresh() {
	case StatePaused:
		err := n.Kill(syscall.SIGCONT)
		n.refresh()
		return err
	case StateRunning:
		return nil
	}
	args, err := n.rejoin(ctx, back)
	if err != nil {
		return err
	}
	return n.Start(ctx, args...)
}

// rejoin returns the arguments by which a node comes back.
func (n *Node) rejoin(ctx context.Context, back Return) ([]string, error) {
	if n.Galera == nil || back == nil {
		return nil, nil
	}
	alone := !slices.ContainsFunc(n.sandbox.Nodes, func(o *Node) bool { return o != n && o.refresh() != StateStopped })
	args, founds, err := back(ctx, n, alone)
	if err != nil || !founds {
		return args, err
	}
	if err := n.allowFounding(); err != nil {
		return nil, err
	}
	return append([]string{newCluster}, args...), nil
}

// Recover lets a server of a cluster that is stopped find its position, which it writes into its error log (--wsrep-recover).
func (n *Node) Recover(ctx context.Context) error {
	if err := n.unused(ctx); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, n.Program.Binary, "--defaults-file="+n.configPath(), "--datadir="+n.Datadir, "--wsrep-recover")
	cmd.Env, cmd.Dir = n.Environ(), n.dir()
	cmd.WaitDelay = 2 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("node %s: --wsrep-recover: %w: %s%s", n.Name, err, lastErrors(string(out)), n.logErrors())
	}
	return nil
}

func (n *Node) grastate() string { return filepath.Join(n.Datadir, "grastate.dat") }

// allowFounding lets a node found its cluster again that was not the last to stop, or crashed: its data is the cluster's then.
func (n *Node) allowFounding() error {
	b, err := os.ReadFile(n.grastate())
	if err != nil {
		return fmt.Errorf("node %s: %w", n.Name, err)
	}
	return os.WriteFile(n.grastate(), bytes.Replace(b, []byte("safe_to_bootstrap: 0"), []byte("safe_to_bootstrap: 1"), 1), 0o600)
}
