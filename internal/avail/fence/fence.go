// Package fence lets a server take no writes: read-only for everybody, the sessions of its clients ended, and read back whether it is so. Nothing of it waits longer than it
// was told, for the server is one with which something is wrong. What was there before is kept, so that a server that is the primary again can be opened.
// See DESIGN.md for what each step is for, and for what it cannot do.
package fence

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// Options say how a server is fenced.
type Options struct {
	// Epoch is the one as of which the server is not the primary: Undo opens it in a higher one only.
	Epoch uint64
	// Unheard says that another server need not be the primary: nobody confirmed that this one is. Then Undo opens it in the same epoch, too.
	Unheard bool
	// Limit is how long all of it may take; 0: DefaultLimit.
	Limit time.Duration
	// Grace is how long what is being written may go on before sessions are ended; new writes wait meanwhile. 0: they are ended at once.
	Grace time.Duration
	// Keep are sessions of the caller that are not ended.
	Keep []int64
	// Offline turns ordinary accounts away too, where the server has offline_mode; replicas that read its binary log among them.
	Offline bool
	// Boot lets it take no writes after a restart either, where it can write that down itself.
	Boot bool
	// OnlyOpen leaves a server as it is that takes no writes of ordinary accounts already: somebody else has closed it, and may be at work there.
	OnlyOpen bool
	// Hold keeps a global read lock until Release, where read_only does not hold for all accounts. Nothing is written then, not by replication either.
	Hold bool
	// Note is given what was there before the first change, to keep it. It is waited for a moment only: a disk that hangs must not keep the server writable.
	Note func(mysql.Server, State) error
	// Closed is called, by another goroutine perhaps, as soon as nobody can write any more: sessions may still be being ended. nil: nobody wants to know so soon.
	Closed func()
}

// DefaultLimit is how long fencing may take.
const DefaultLimit = 2 * time.Second

// Parts of the limit.
const (
	noteTime  = 250 * time.Millisecond // for Options.Note
	cleanTime = time.Second            // for what has to be known or ended when the limit is over
	lookEvery = 5 * time.Millisecond   // at the sessions that are left, while something still keeps the server from being read-only
)

// connectTries is how often a connection may be dropped that is being made.
const connectTries = 20

// Step is something that was done to the server.
type Step struct {
	What  string        `json:"what"` // a statement, or what was done by many
	Done  bool          `json:"done"`
	Took  time.Duration `json:"took_ns"`
	Error string        `json:"error,omitempty"`
}

// Result is what became of it.
type Result struct {
	Server  string        `json:"server"`
	Epoch   uint64        `json:"epoch"`
	Proven  bool          `json:"proven"`            // no client can write
	Closed  bool          `json:"closed"`            // ordinary accounts cannot
	By      string        `json:"by"`                // what proves that, or why it is not proven
	Ended   int           `json:"ended"`             // sessions
	Skipped bool          `json:"skipped,omitempty"` // Options.OnlyOpen left it as it was
	Waited  int           `json:"waited,omitempty"`  // of these, whose commits waited for a semi-synchronous replica: they are in the binary log, and nobody was told so
	Left    []read.Client `json:"left,omitempty"`    // sessions of clients that are there still
	Writers []string      `json:"writers,omitempty"` // accounts that write though it is read-only
	Unknown string        `json:"unknown,omitempty"` // why these are not known
	Pending bool          `json:"pending,omitempty"` // the statement that makes it read-only may still wait on the server
	Steps   []Step        `json:"steps"`
	State   State         `json:"state"` // what was there before
	Took    time.Duration `json:"took_ns"`

	mu      sync.Mutex
	holding *mysql.Conn
}

// Release gives the global read lock up that Options.Hold keeps. It may be called from any goroutine, as those below.
func (r *Result) Release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.release()
}

func (r *Result) release() {
	if r.holding != nil {
		_ = r.holding.Close()
		r.holding = nil
	}
}

// Holds reports whether a global read lock is kept.
func (r *Result) Holds() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.holding != nil
}

// Holding makes sure that the global read lock is still kept: the session that has it may have been ended.
func (r *Result) Holding(ctx context.Context) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.holding == nil {
		return false
	}
	if err := r.holding.Exec(ctx, "SELECT /* risso: is the lock still held? */ 1"); err != nil {
		r.release()
	}
	return r.holding != nil
}

// Statements are those that Fence sends, in words for people; those that depend on what it finds are left out.
func Statements(s mysql.Server, o Options) []string {
	list := []string{s.CloseWrites()[0], "KILL each session of a client"}
	if o.Hold && !s.CanBeClosedToAll() {
		list = append(list, Lock)
	}
	if o.Offline && s.HasOfflineMode() {
		list = append(list, goOffline)
	}
	if o.Boot && s.KeepsSettings() {
		for _, set := range s.StartSettings() {
			list = append(list, s.SetForStart(set[0], set[1]))
		}
	}
	return list
}

// Statements that are the same on all servers: nobody writes, clients are turned away, no events run.
const (
	Lock      = "FLUSH TABLES /* risso: nobody writes */ WITH READ LOCK"
	goOffline = "SET GLOBAL /* risso: turn clients away */ offline_mode = ON"
	NoEvents  = "SET GLOBAL /* risso: the primary runs events */ event_scheduler = OFF"
)

// fencing is the work on one server.
type fencing struct {
	o        Options
	target   mysql.Target
	control  *mysql.Conn // lists and ends sessions
	setter   *mysql.Conn // makes it read-only, and waits for that perhaps, longer than the limit: who ends it decides
	triedOff bool        // semi-sync was to be switched off
	away     bool        // clients may be turned away meanwhile
	released bool        // commits may not wait for replicas any more
	// unrestored is why that is so still, though the server is not read-only; nil: it is not so.
	unrestored error
	endSetter  context.CancelFunc // ends what waits there
	closed     chan error         // has what came of the setter
	closedErr  error              // and that it is: nil if it is read-only
	own        map[int64]bool
	told       map[int64]bool // sessions that were told to end

	mu     sync.Mutex // holds result's steps
	over   bool       // nothing is added to them any more
	result *Result
}

// Fence lets a server take no writes. The error says that it could not be asked at all; what could not be done else is in the result, which is proven or not.
func Fence(ctx context.Context, target mysql.Target, o Options) (*Result, error) {
	if target.IsZero() {
		return nil, errors.New("nothing says how the server is reached")
	}
	if o.Limit == 0 {
		o.Limit = DefaultLimit
	}
	began := time.Now()
	whole := ctx
	ctx, cancel := context.WithTimeout(ctx, o.Limit)
	defer cancel()
	f := &fencing{o: o, target: target.WithPatience(o.Limit + cleanTime), endSetter: func() {}, closed: make(chan error, 1), own: map[int64]bool{}, told: map[int64]bool{}, result: &Result{Server: target.Address(), Epoch: o.Epoch}}
	for _, id := range o.Keep {
		f.own[id] = true
	}
	if err := f.begin(ctx); err != nil {
		return nil, err
	}
	defer func() { _ = f.control.Close() }()
	if o.OnlyOpen && !f.result.State.Open() {
		f.result.Skipped, f.result.Closed, f.result.By = true, true, "not asked: somebody else has closed it"
		return f.result, nil
	}
	f.note(ctx)
	f.close(ctx)
	f.settle(ctx)
	f.end(context.WithoutCancel(whole))
	clean, end := context.WithTimeout(context.WithoutCancel(whole), cleanTime)
	defer end()
	f.prove(clean)
	f.result.Took = time.Since(began)
	return f.result, nil
}

// begin connects, and learns how the server is. Another process that fences it ends this session, too: then once more.
func (f *fencing) begin(ctx context.Context) (err error) {
	for {
		if f.control, err = connect(ctx, f.target); err != nil {
			return err
		}
		f.own[f.control.Server.ConnectionID] = true
		f.alone(ctx)
		if f.result.State, err = stateOf(ctx, f.control, f.o); err == nil {
			return nil
		}
		_ = f.control.Close()
		if mysql.Answered(err) || ctx.Err() != nil {
			return fmt.Errorf("ask %s how it is: %w", f.target.Address(), err)
		}
	}
}

// connect connects. Another process that fences the server ends a session that is just being opened, too: then once more, but not for ever, as a proxy whose server is gone
// takes connections only to drop them.
func connect(ctx context.Context, target mysql.Target) (c *mysql.Conn, err error) {
	for range connectTries {
		c, err = mysql.Connect(ctx, target, nil)
		if mysql.ClassOf(err) != mysql.ClassDropped || delay.For(ctx, lookEvery) != nil {
			break
		}
	}
	return c, err
}

// note gives the caller what was there.
func (f *fencing) note(ctx context.Context) {
	if f.o.Note == nil {
		return
	}
	done := make(chan error, 1)
	began := time.Now()
	go func() { done <- f.o.Note(f.control.Server, f.result.State) }()
	late, cancel := context.WithTimeout(ctx, noteTime)
	defer cancel()
	select {
	case err := <-done:
		f.step("write down what was there", began, err)
	case <-late.Done():
		f.step("write down what was there", began, errLate)
	}
}

var errLate = errors.New("not done in time")

// step notes something that was done.
func (f *fencing) step(what string, began time.Time, err error) {
	s := Step{What: what, Done: err == nil, Took: time.Since(began)}
	if err != nil {
		s.Error = err.Error()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.over {
		f.result.Steps = append(f.result.Steps, s)
	}
}

// do runs a statement on the control connection.
func (f *fencing) do(ctx context.Context, statement string) error {
	began := time.Now()
	err := f.control.Exec(ctx, statement)
	f.step(statement, began, err)
	return err
}
