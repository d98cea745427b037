// Package sandbox starts throw-away database servers on this machine: one
// server, a primary with replicas, or a Galera cluster. Everything a sandbox
// is made of is in one folder, and everything it runs can be found again from
// that folder, so that nothing is left behind after Down, after a killed Up or
// after a reboot.
//
// A sandbox is safe to look at from several processes. Up and Down of the same
// sandbox exclude each other with a file lock.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/pattern"
)

// Topology is how the servers of a sandbox replicate.
type Topology string

// The topologies.
const (
	TopologySingle      Topology = "single"      // servers that know nothing of each other
	TopologyReplication Topology = "replication" // a primary and its replicas, by GTID
	TopologyGalera      Topology = "galera"      // a MariaDB Galera cluster
)

// The roles of a node.
const (
	RoleStandalone = "standalone" // the server of a single topology
	RolePrimary    = "primary"    // the source of all replicas
	RoleReplica    = "replica"    // read-only, follows the primary
	RoleGalera     = "galera"     // a member of a Galera cluster
)

// State says whether something is running.
type State string

// The states of a node; a sandbox has StateStarting, StateRunning, StateStopped or StatePartial.
const (
	StateStarting State = "starting" // an up of a live process works on it
	StateRunning  State = "running"
	StateStopped  State = "stopped"
	StatePaused   State = "paused"  // the process was stopped by SIGSTOP
	StatePartial  State = "partial" // some nodes run, others do not; or an up was cut off
)

// Options say what Up makes.
type Options struct {
	Dir      string   // root folder of all sandboxes; empty: DefaultDir
	CacheDir string   // where data directory templates are kept; empty: DefaultCacheDir
	Name     string   // empty: a free name made from the first server's
	Servers  []string // what Find understands, the first for the first node, the last for all that remain; empty: mariadb
	Topology Topology // empty: TopologySingle
	Replicas int      // replicas of a replication topology (0: 2); nodes besides the first of a Galera cluster (0: 2)
	Settings []string // "key=value" for the [mysqld] section of every node

	// SemiSync lets the primary of a replication topology wait, without a time-out, until a replica has what it acknowledges. Who promotes a replica switches that on
	// there.
	SemiSync bool
	// Network puts each node into a network namespace of its own; Disk, in bytes, gives each a file system of its own, and Clock a clock of its own, which can
	// jump (by libfaketime). For faults that harm nothing else; the first two need root.
	Network bool
	Disk    int64
	Clock   bool

	// Find finds the servers. Nil: the function Find, which asks each program on this machine for its version.
	Find func(ctx context.Context, spec string) (Server, error)

	// Data fills the data directory of a single server, which is then started on that instead of on an empty one,
	// and returns further settings that these files need. Root logs in as always; what the data would do by itself,
	// replicate or run events, it does not. No account for TCP is made. Nil: an empty server.
	Data func(ctx context.Context, dir string) (settings []string, err error)

	// Progress receives one short sentence per step. It may be called from
	// several goroutines. Nil: silence.
	Progress func(string)
	// StartTimeout bounds the start of one node. 0: one minute.
	StartTimeout time.Duration
	// AnswerTimeout bounds each Query, so that a server that hangs does not hold its caller for good. 0: nothing does.
	AnswerTimeout time.Duration
}

// Sandbox is a set of servers in a folder. Its fields are those of the record on disk; Refresh updates the state.
type Sandbox struct {
	Name     string    `json:"name"`
	Topology Topology  `json:"topology"`
	Dir      string    `json:"dir"`
	Created  time.Time `json:"created"`
	State    State     `json:"state"`
	User     string    `json:"user"` // the account created for this sandbox; see Password
	Nodes    []*Node   `json:"nodes"`

	// SocketDir is a second folder for the sockets, used if the path of Dir is too long for them. Down removes it.
	SocketDir string `json:"socket_dir,omitempty"`
	// Network, Disk and Clock are what faults need; see Options.
	Network *Network `json:"network,omitempty"`
	Disk    int64    `json:"disk,omitempty"`  // bytes of each node's own file system
	Clock   bool     `json:"clock,omitempty"` // each node has a clock of its own

	// Ready is false in the record until Up has finished.
	Ready bool `json:"ready"`

	mu       sync.Mutex    // guards the record on disk and the process fields of all nodes
	timeout  time.Duration // of a start
	answer   time.Duration // of a Query
	progress func(string)
}

// nodeTimeout is how long one node may take to start when Options say nothing.
const nodeTimeout = time.Minute

var nameForm = pattern.Lazy(`^[a-z0-9][a-z0-9._-]{0,39}$`)

// Up makes a sandbox and returns it when every node answers and, with
// replication, when every replica has applied what the primary wrote. When it
// fails, or when ctx ends, it takes everything down again.
func Up(ctx context.Context, o Options) (*Sandbox, error) {
	p, err := newPlan(ctx, o)
	if err != nil {
		return nil, err
	}
	s, unlock, err := create(ctx, p)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := s.bringUp(ctx, p); err != nil {
		// The clean-up must happen even though ctx may be over.
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		if derr := s.remove(clean); derr != nil {
			return nil, errors.Join(fmt.Errorf("sandbox %s: %w", s.Name, err), fmt.Errorf("clean up: %w", derr))
		}
		return nil, fmt.Errorf("sandbox %s: %w", s.Name, err)
	}
	return s, nil
}

// Node returns the node of that name.
func (s *Sandbox) Node(name string) (*Node, error) {
	names := make([]string, 0, len(s.Nodes))
	for _, n := range s.Nodes {
		if n.Name == name {
			return n, nil
		}
		names = append(names, n.Name)
	}
	return nil, fault.New(fault.Usage, fmt.Sprintf("it has %v", names), fmt.Errorf("sandbox %s has no node %q", s.Name, name))
}

// Primary is the node that takes writes: the primary, or the first one.
func (s *Sandbox) Primary() *Node { return s.Nodes[0] }

// Down ends every server of the sandbox and removes its folder. Data is thrown
// away, so the servers are killed, not shut down.
func (s *Sandbox) Down(ctx context.Context) error {
	unlock, err := lockSandbox(ctx, s.Dir, 0)
	if err != nil {
		return err
	}
	defer unlock()
	return s.remove(ctx)
}

// Password is the password of User, read from the sandbox's folder.
func (s *Sandbox) Password() (string, error) {
	b, err := os.ReadFile(filepath.Join(s.Dir, secretFile))
	if err != nil {
		return "", fmt.Errorf("read the password of sandbox %s: %w", s.Name, err)
	}
	return string(b), nil
}

// Down ends and removes the sandbox of that name under dir (empty: DefaultDir).
func Down(ctx context.Context, dir, name string) error {
	s, err := Open(dir, name)
	if err != nil {
		return err
	}
	return s.Down(ctx)
}

// DefaultDir is the root folder of all sandboxes: $RISSO_SANDBOX_DIR, or
// risso/sandboxes under $XDG_STATE_HOME or ~/.local/state.
func DefaultDir() (string, error) {
	if d := os.Getenv("RISSO_SANDBOX_DIR"); d != "" {
		return filepath.Abs(d)
	}
	if d := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "risso", "sandboxes"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find a folder for sandboxes: %w; set RISSO_SANDBOX_DIR", err)
	}
	return filepath.Join(home, ".local", "state", "risso", "sandboxes"), nil
}

// DefaultCacheDir is where templates of data directories are kept, and where
// script/setup puts servers: risso under $XDG_CACHE_HOME or ~/.cache.
func DefaultCacheDir() (string, error) {
	if d := os.Getenv("XDG_CACHE_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "risso"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find a cache folder: %w; set XDG_CACHE_HOME", err)
	}
	return filepath.Join(home, ".cache", "risso"), nil
}
