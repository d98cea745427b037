// Package agree lets several controllers share their state: hashicorp/raft over the state file of each. One of them leads and acts.
//
// DESIGN.md explains the design.
package agree

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/store/state"
)

// errEnded says that this controller is being stopped.
var errEnded = fmt.Errorf("%w: this controller ends", state.ErrUnsure)

// Options are what a Node needs.
type Options struct {
	Store  *state.Store // shared: see Prepare
	Folder Folder
	URL    string // of this controller's page, for the others' users; empty: it has none that they reach
	Dialer Dialer // to other controllers; nil: the network's own
	Keep   uint64 // so many changes are kept in the log; then the tables are, in a snapshot; 0: DefaultKeep
	Logger *slog.Logger
}

// DefaultKeep is how many changes the log has at most before it is cut. snapshotEvery is how often that is looked at.
const (
	DefaultKeep   = 4096
	snapshotEvery = time.Minute
)

// Node is one of several controllers. It is a state.Sharing and a Leadership.
type Node struct {
	Options
	wire      *wire
	log       *logStore
	snapshots raft.SnapshotStore
	raft      *raft.Raft // nil until it takes part
	assents   *assents   // of the others, for as long as raft
	client    caller
	fresh     bool // it has to be let in first
	life      context.Context
	end       context.CancelFunc
	turn      chan struct{}                                                                    // held while a change is proposed
	changes   stride                                                                           // of the state file, that others agreed on
	seen      atomic.Pointer[func(ctx context.Context, question json.RawMessage) (any, error)] // what other controllers ask; nil: nobody does yet

	mu      sync.Mutex
	reached uint64          // the last change that is in the file
	moved   chan struct{}   // closed when that changes
	trouble error           // what keeps it from its work; nil: nothing
	acting  *acting         // nil: it does not lead
	changed chan struct{}   // closed when acting changes
	heard   time.Time       // when it last heard from the leader, or led, and had what was agreed on
	isLevel bool            // it had all that was agreed on since it last did not hear from the leader, or could not keep what came from there
	looked  time.Time       // when keepLevel saw that last
	removed map[string]bool // fingerprints of certificates that do not count any more

	yielding int // more than 0: it hands over the lead, and must not act
}

// Prepare opens the state file of a data folder as one that is shared by who the folder says, and marks it so if it is not yet. A
// damaged one is moved aside: what is shared comes from the other controllers.
func Prepare(ctx context.Context, path string, f Folder) (*state.Store, error) {
	s, err := state.OpenAnyway(ctx, path)
	if err != nil {
		return nil, err
	}
	return prepared(ctx, s, f)
}

// prepared is s as one that is shared by who the folder says.
func prepared(ctx context.Context, s *state.Store, f Folder) (*state.Store, error) {
	i, shared, err := s.Identity(ctx)
	switch {
	case err != nil:
	case shared && i.Cluster == f.Cluster && i.Node == f.Name:
		return s, nil
	case shared:
		err = fmt.Errorf("the state file is that of controller %s of cluster %s, the folder %s that of %s of %s", i.Node, i.Cluster, f.Path, f.Name, f.Cluster)
	default:
		err = s.BeginSharing(ctx, state.Identity{Cluster: f.Cluster, Node: f.Name})
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s.Reopen(ctx)
}

// Found makes the first controller of a cluster from a state file: what is in it is what the others get. The file must not be open elsewhere.
func Found(ctx context.Context, path string, f Folder) error {
	s, err := state.Open(ctx, path)
	if err != nil {
		return err
	}
	if s, err = prepared(ctx, s, f); err != nil {
		return err
	}
	defer s.Close()
	if err := s.BeginSharing(ctx, state.Identity{Cluster: f.Cluster, Node: f.Name, Applied: 1}); err != nil {
		return err
	}
	l, err := openLog(ctx, filepath.Join(f.Path, logFile))
	if err != nil {
		return err
	}
	defer l.Close()
	snaps, err := snapshotsOf(f, hclog.NewNullLogger())
	if err != nil {
		return err
	}
	c, err := s.SharedCopy(ctx)
	if err != nil {
		return err
	}
	defer c.Release()
	// A snapshot as if it were that of the first entry: so everything that is there reaches the others.
	one := raft.Configuration{Servers: []raft.Server{{ID: raft.ServerID(f.Name), Address: raft.ServerAddress(f.Address)}}}
	_, trans := raft.NewInmemTransport(raft.ServerAddress(f.Address))
	sink, err := snaps.Create(raft.SnapshotVersionMax, 1, 1, one, 1, trans)
	if err != nil {
		return fmt.Errorf("found the cluster: %w", err)
	}
	if err := (frozen{c, ctx}).Persist(sink); err != nil {
		return fmt.Errorf("found the cluster: %w", err)
	}
	return l.SetUint64([]byte("CurrentTerm"), 1)
}

func snapshotsOf(f Folder, logger hclog.Logger) (raft.SnapshotStore, error) {
	s, err := raft.NewFileSnapshotStoreWithLogger(f.Path, 2, logger)
	if err != nil {
		return nil, fmt.Errorf("open the controllers' snapshots: %w", err)
	}
	return s, nil
}

// Open lets a controller take part; Run keeps it at work.
func Open(ctx context.Context, o Options) (_ *Node, err error) {
	n := &Node{Options: o, turn: make(chan struct{}, 1), moved: make(chan struct{}), changed: make(chan struct{}), removed: map[string]bool{}}
	n.life, n.end = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			n.Close()
		}
	}()
	i, shared, err := o.Store.Identity(ctx)
	if err != nil {
		return nil, err
	}
	if !shared {
		return nil, errors.New("the state file is not marked as shared")
	}
	n.reached = i.Applied
	if n.log, err = openLog(ctx, filepath.Join(o.Folder.Path, logFile)); err != nil {
		return nil, err
	}
	logger := raftLogger{hclog.NewNullLogger(), o.Logger}
	if n.snapshots, err = snapshotsOf(o.Folder, logger); err != nil {
		return nil, err
	}
	known, err := raft.HasExistingState(n.log, n.log, n.snapshots)
	if err != nil {
		return nil, fmt.Errorf("read the controllers' log: %w", err)
	}
	if n.fresh = !known; n.fresh && i.Applied > 0 {
		return nil, fmt.Errorf("the state is that after change %d, and the controllers' log %s is gone: this controller may have forgotten what it promised to the others; risso controller leave, then let it join again", i.Applied, filepath.Join(o.Folder.Path, logFile))
	}
	if err := n.readRemoved(ctx); err != nil {
		return nil, err
	}
	if n.Keep == 0 {
		n.Keep = DefaultKeep
	}
	if n.Dialer == nil {
		n.Dialer = &net.Dialer{}
	}
	if n.wire, err = listen(o.Folder, n.isRemoved, n.Dialer, o.Logger); err != nil {
		return nil, err
	}
	n.client = newCaller(n.wire, o.Folder.heartbeat())
	o.Store.Share(n)
	return n, nil
}

// startRaft takes part in elections and takes what others agreed on.
func (n *Node) startRaft(ctx context.Context) error {
	beat := n.Folder.heartbeat()
	logger := raftLogger{hclog.NewNullLogger(), n.Logger}
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(n.Folder.Name)
	c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = beat, beat, beat
	c.CommitTimeout = min(c.CommitTimeout, beat/10)
	c.SnapshotThreshold, c.TrailingLogs, c.SnapshotInterval = n.Keep, n.Keep/2, snapshotEvery
	if n.Keep < DefaultKeep {
		c.SnapshotInterval = time.Second
	}
	c.Logger, c.NoLegacyTelemetry, c.ShutdownOnRemove = logger, true, false
	if list, err := n.snapshots.List(); err != nil {
		return fmt.Errorf("list the controllers' snapshots: %w", err)
	} else if len(list) > 0 {
		// The file has what it had when Risso ended. Only what a crash of the machine took from it comes from the snapshot.
		has, err := n.snapshotHas(list[0].ID)
		if err != nil {
			return err
		}
		c.NoSnapshotRestoreOnStart = n.place() >= has
	}
	cache, err := raft.NewLogCache(512, n.log)
	if err != nil {
		return fmt.Errorf("open the controllers' log: %w", err)
	}
	transport := &assents{NetworkTransport: raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{Stream: stream{n.wire}, MaxPool: 3, Timeout: n.answerTime(), Logger: logger})}
	// A controller that voted, ended and is back must not elect a second leader while the first one's lease lasts.
	if err := delay.For(ctx, beat); err != nil {
		return err
	}
	r, err := raft.NewRaft(c, machine{n}, cache, n.log, n.snapshots, transport)
	if err != nil {
		return fmt.Errorf("take part in the controllers' agreement: %w", err)
	}
	n.mu.Lock()
	n.raft, n.assents = r, transport
	n.mu.Unlock()
	return nil
}

// snapshotHas is up to which change a snapshot is.
func (n *Node) snapshotHas(id string) (uint64, error) {
	_, r, err := n.snapshots.Open(id)
	if err != nil {
		return 0, fmt.Errorf("open the controllers' snapshot: %w", err)
	}
	defer r.Close()
	return state.CopyApplied(r)
}

// Close ends taking part. One that leads hands that over first.
func (n *Node) Close() error {
	n.endActing()
	if n.leads() == nil && len(n.servers()) > 1 {
		done := make(chan struct{})
		go func() { defer close(done); n.yield() }()
		select {
		case <-done:
		case <-time.After(max(time.Second, 3*n.Folder.heartbeat())):
		}
	}
	n.end()
	var err error
	if r := n.now(); r != nil {
		err = r.Shutdown().Error()
	}
	if n.wire != nil {
		n.wire.Close()
	}
	if n.log != nil {
		err = errors.Join(err, n.log.Close())
	}
	return err
}

// now is Raft; nil while this controller does not take part.
func (n *Node) now() *raft.Raft {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.raft
}

// Name is this controller's.
func (n *Node) Name() string { return n.Folder.Name }

// Propose has a change agreed on; see state.Sharing.
func (n *Node) Propose(ctx context.Context, c state.Change) error {
	text, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("%w: write down the change: %w", state.ErrRejected, err)
	}
	at, err := n.byLeader(ctx, "/propose", text, func() (uint64, error) { return n.lead(ctx, c, text) })
	if err == nil || errors.Is(err, state.ErrStale) {
		if waited := n.await(ctx, at); waited != nil {
			return fmt.Errorf("%w: %w", state.ErrUnsure, waited)
		}
	}
	return err
}

// Level returns when this file has all that was agreed on before the call; see state.Sharing.
func (n *Node) Level(ctx context.Context) error {
	at, err := n.byLeader(ctx, "/level", nil, n.level)
	if err != nil {
		return err
	}
	return n.await(ctx, at)
}

// place is the answer of a leader: up to which change its file is.
type place struct {
	At uint64 `json:"at"`
}

// leaderWait bounds how long somebody waits for a leader: what asks at the door gives up after 10 s, and would not hear why.
const leaderWait = 8 * time.Second

// byLeader has something done by the leader: here, or by asking it. It waits for one a few elections long.
func (n *Node) byLeader(ctx context.Context, path string, body []byte, here func() (uint64, error)) (at uint64, err error) {
	err = state.ErrNoLeader
	for end := time.Now().Add(min(10*n.Folder.heartbeat(), leaderWait)); time.Now().Before(end); {
		if r := n.now(); r != nil {
			address, id := r.LeaderWithID()
			switch string(id) {
			case "":
			case n.Folder.Name:
				at, err = here()
			default:
				var p place
				err = n.ask(ctx, string(address), path, body, &p)
				at = p.At
			}
			if !errors.Is(err, state.ErrNoLeader) {
				return at, err
			}
		}
		if delay.For(ctx, n.Folder.heartbeat()/20) != nil {
			break
		}
	}
	return 0, err
}

// ask asks the leader. What takes long is taken to have failed: it may be cut off, and another one may lead.
func (n *Node) ask(ctx context.Context, address, path string, body []byte, p *place) error {
	if path == "/propose" || path == "/level" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, max(10*n.Folder.heartbeat(), 2*time.Second))
		defer cancel()
	}
	return n.client.ask(ctx, address, path, body, p)
}

// lead proposes a change as the leader. It returns up to which change the file is then.
func (n *Node) lead(ctx context.Context, c state.Change, text []byte) (uint64, error) {
	select {
	case n.turn <- struct{}{}:
		defer func() { <-n.turn }()
	case <-ctx.Done():
		return 0, fmt.Errorf("%w: %w", state.ErrNoLeader, ctx.Err())
	}
	if err := n.Store.Stale(ctx, c); err != nil { // no need to ask anybody
		return n.place(), err
	}
	f := n.now().Apply(text, time.Second)
	if err := f.Error(); err != nil {
		return 0, outcome(err)
	}
	if err, refused := f.Response().(error); refused {
		return n.place(), err
	}
	return max(f.Index(), n.place()), nil
}

// level is up to which change everything is that was agreed on so far, as the leader knows it.
func (n *Node) level() (uint64, error) {
	if err := n.now().Barrier(2 * time.Second).Error(); err != nil {
		return 0, outcome(err)
	}
	return n.place(), nil
}

func (n *Node) place() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.reached
}

// outcome says what an error of Raft means for a proposal.
func outcome(err error) error {
	switch {
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress), errors.Is(err, raft.ErrEnqueueTimeout):
		return fmt.Errorf("%w: %w", state.ErrNoLeader, err)
	}
	return fmt.Errorf("%w: %w", state.ErrUnsure, err)
}

// Exists reports whether a data folder's state is shared.
func Exists(data string) bool {
	_, err := os.Stat(filepath.Join(data, FolderName, settingsFile))
	return err == nil
}
