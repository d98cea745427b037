package agree

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"golang.org/x/sync/errgroup"

	"github.com/rissodb/risso/internal/store/state"
)

// Run keeps a controller at work until ctx ends.
func (n *Node) Run(ctx context.Context) error {
	door, err := n.openDoor()
	if err != nil {
		return err
	}
	defer door.Close()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return n.answer(ctx, questions{n.wire}, n.peers()) })
	g.Go(func() error { return n.answer(ctx, door, n.commands()) })
	g.Go(func() error {
		if n.fresh {
			if err := n.askIn(ctx); err != nil {
				return ended(ctx, err)
			}
		}
		if err := n.startRaft(ctx); err != nil {
			return ended(ctx, err)
		}
		g.Go(func() error { return n.keepLease(ctx) })
		g.Go(func() error { n.keepLevel(ctx); return nil })
		g.Go(func() error { return n.introduce(ctx) })
		return nil
	})
	return g.Wait()
}

func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// openDoor makes the socket for commands on this machine. Only who owns the data folder gets in.
func (n *Node) openDoor() (net.Listener, error) {
	dir, err := os.Open(filepath.Dir(n.Store.Path()))
	if err != nil {
		return nil, fmt.Errorf("open the door for commands: %w", err)
	}
	defer dir.Close()
	path := state.ShortPath(dir, state.Door)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) { // of a process that was killed; another one that lives would hold the folder
		return nil, fmt.Errorf("open the door for commands: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("open the door for commands: %w", err)
	}
	l.SetUnlinkOnClose(false) // its path is that of this descriptor
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("open the door for commands: %w", err)
	}
	return l, nil
}

// answer answers requests until ctx ends.
func (n *Node) answer(ctx context.Context, l net.Listener, h http.Handler) error {
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, ErrorLog: log.New(io.Discard, "", 0),
		BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { s.Close() })
	defer stop()
	if err := s.Serve(l); ctx.Err() == nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("answer other controllers: %w", err)
	}
	return nil
}

// requestLimit bounds what is read of a request: a change with a benchmark's result is large.
const requestLimit = 64 << 20

// handle makes a handler from a function that takes a body of JSON and returns the answer.
func handle[T any](n *Node, f func(ctx context.Context, in T) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in T
		text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, requestLimit))
		if err == nil && len(text) > 0 {
			err = json.Unmarshal(text, &in)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		out, err := f(r.Context(), in)
		if err != nil {
			w.Header().Set(state.EndingHeader, state.Ending(err))
			w.Header().Set(state.AtHeader, strconv.FormatUint(n.place(), 10))
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(out) // who asked may be gone
	}
}

// none is the body of a request that has none.
type none struct{}

// leads returns an error where this controller is not the leader: who asks looks again.
func (n *Node) leads() error {
	if r := n.now(); r == nil || r.State() != raft.Leader {
		return fmt.Errorf("controller %s does not lead: %w", n.Folder.Name, state.ErrNoLeader)
	}
	return nil
}

// peers answers other controllers.
func (n *Node) peers() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("POST /propose", handle(n, func(ctx context.Context, c state.Change) (any, error) {
		if err := n.leads(); err != nil {
			return nil, err
		}
		text, err := json.Marshal(c)
		if err != nil {
			return nil, err
		}
		at, err := n.lead(ctx, c, text)
		return place{at}, err
	}))
	m.HandleFunc("POST /level", handle(n, func(context.Context, none) (any, error) {
		if err := n.leads(); err != nil {
			return nil, err
		}
		at, err := n.level()
		return place{at}, err
	}))
	m.HandleFunc("POST /join", handle(n, func(ctx context.Context, in Member) (any, error) {
		body, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		_, err = n.byLeader(ctx, "/let-in", body, func() (uint64, error) { return 0, n.join(ctx, in) })
		return place{}, err
	}))
	m.HandleFunc("POST /let-in", handle(n, func(ctx context.Context, in Member) (any, error) {
		if err := n.leads(); err != nil {
			return nil, err
		}
		return place{}, n.join(ctx, in)
	}))
	m.HandleFunc("POST /promote", handle(n, func(_ context.Context, in Member) (any, error) {
		if err := n.leads(); err != nil {
			return nil, err
		}
		return place{}, n.promote(in)
	}))
	m.HandleFunc("POST /remove", handle(n, func(ctx context.Context, in Member) (any, error) {
		if err := n.leads(); err != nil {
			return nil, err
		}
		return place{}, n.remove(ctx, in.Name)
	}))
	m.HandleFunc("POST /lead", handle(n, func(_ context.Context, in Member) (any, error) {
		if err := n.leads(); err != nil {
			return nil, err
		}
		return place{}, n.hand(in.Name)
	}))
	m.HandleFunc("POST /status", handle(n, func(context.Context, none) (any, error) { return n.Status(), nil }))
	m.HandleFunc("POST /ask", handle(n, n.answerPeer))
	return m
}

// commands answers commands on this machine.
func (n *Node) commands() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("POST /propose", handle(n, func(ctx context.Context, c state.Change) (any, error) { return place{}, n.Propose(ctx, c) }))
	m.HandleFunc("POST /level", handle(n, func(ctx context.Context, _ none) (any, error) { return place{}, n.Level(ctx) }))
	m.HandleFunc("POST /status", handle(n, func(ctx context.Context, _ none) (any, error) { return n.Overview(ctx), nil }))
	m.HandleFunc("POST /remove", handle(n, func(ctx context.Context, in Member) (any, error) {
		body, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		_, err = n.byLeader(ctx, "/remove", body, func() (uint64, error) { return 0, n.remove(ctx, in.Name) })
		return place{}, err
	}))
	m.HandleFunc("POST /lead", handle(n, func(ctx context.Context, in Member) (any, error) {
		body, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		_, err = n.byLeader(ctx, "/lead", body, func() (uint64, error) { return 0, n.hand(in.Name) })
		return place{}, err
	}))
	return m
}

// hand hands the lead to a controller; what acts here ends first. Empty: to any that is level.
func (n *Node) hand(name string) error {
	if name == n.Folder.Name {
		return nil
	}
	for _, s := range n.servers() {
		if string(s.ID) != name && name != "" || s.Suffrage != raft.Voter {
			continue
		}
		return n.transfer(func(r *raft.Raft) raft.Future {
			if name == "" {
				return r.LeadershipTransfer()
			}
			return r.LeadershipTransferToServer(s.ID, s.Address)
		})
	}
	return fmt.Errorf("%w: there is no controller %q that votes", state.ErrRejected, name)
}

// Status is how a controller is.
type Status struct {
	Member
	Cluster string `json:"cluster"`           // the same for all that share their state
	State   string `json:"state"`             // leader, follower, candidate, joining; unknown: it does not answer
	Leader  string `json:"leader"`            // who leads, as far as it knows
	Epoch   uint64 `json:"epoch"`             // under which it acts; 0: it does not
	Applied uint64 `json:"applied"`           // the number of the newest change that it has
	Trouble string `json:"trouble,omitempty"` // what keeps it from its work
	Error   string `json:"error,omitempty"`   // why it could not be asked
}

// Status is how this controller is.
func (n *Node) Status() Status {
	s := Status{Member: n.self(), Cluster: n.Folder.Cluster, State: "joining", Epoch: n.Epoch(), Applied: n.place()}
	if r := n.now(); r != nil {
		_, id := r.LeaderWithID()
		s.Leader, s.State = string(id), map[raft.RaftState]string{raft.Leader: "leader", raft.Follower: "follower", raft.Candidate: "candidate"}[r.State()]
	}
	if err := n.ailing(); err != nil {
		s.Trouble = err.Error()
	} else if why := n.log.full.Load(); why != nil {
		s.Trouble = *why
	}
	return s
}

// Overview is how all controllers are.
type Overview struct {
	Self    string   `json:"self"`
	Members []Status `json:"members"`
}

// Overview asks all controllers how they are.
func (n *Node) Overview(ctx context.Context) Overview {
	members := n.Members(ctx)
	o := Overview{Self: n.Folder.Name, Members: make([]Status, len(members))}
	if len(members) == 0 {
		o.Members = []Status{n.Status()}
	}
	var all errgroup.Group
	for i, m := range members {
		all.Go(func() error {
			if m.Name == n.Folder.Name {
				o.Members[i] = n.Status()
			} else {
				actx, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				s := Status{}
				if err := n.client.ask(actx, m.Address, "/status", nil, &s); err != nil {
					s = Status{Member: m, Cluster: n.Folder.Cluster, State: "unknown", Error: silence(err)}
				}
				o.Members[i] = s
			}
			o.Members[i].Votes = m.Votes
			return nil
		})
	}
	_ = all.Wait() // each has its own error
	return o
}

// silence says why a controller did not answer: that says nothing of who leads, as it would of a change.
func silence(err error) string {
	if u := (*url.Error)(nil); errors.As(err, &u) {
		return "it does not answer: " + u.Err.Error()
	}
	return err.Error()
}

// caller asks other controllers.
type caller struct{ client *http.Client }

func newCaller(w *wire, beat time.Duration) caller {
	return caller{w.client(max(3*beat, time.Second))}
}

// ask sends a request to the controller at an address, and reads the answer into out unless that is nil.
func (c caller) ask(ctx context.Context, address, path string, body []byte, out any) error {
	text, err := asker(c.client, address).Ask(ctx, http.MethodPost, path, body)
	if e := (*state.Ended)(nil); errors.As(err, &e) {
		if p, ok := out.(*place); ok {
			p.At = e.At
		}
	}
	if err != nil || out == nil {
		return err
	}
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(out); err != nil {
		return fmt.Errorf("%w: read the answer of %s: %w", state.ErrUnsure, address, err)
	}
	return nil
}

// raftLogger gives Raft's messages to Risso's log: what it warns of is ordinary while a controller is down.
type raftLogger struct {
	hclog.Logger
	to *slog.Logger
}

// Error is for what a person should see.
func (l raftLogger) Error(msg string, args ...any) { l.to.Debug("raft: "+msg, args...) }

// Warn is for who looks closely.
func (l raftLogger) Warn(msg string, args ...any) { l.to.Debug("raft: "+msg, args...) }

// Info is for who looks closely.
func (l raftLogger) Info(msg string, args ...any) { l.to.Debug("raft: "+msg, args...) }

// Debug is left out.
func (raftLogger) Debug(string, ...any) {}

// Named keeps the logger.
func (l raftLogger) Named(string) hclog.Logger { return l }

// With keeps the logger.
func (l raftLogger) With(...any) hclog.Logger { return l }
