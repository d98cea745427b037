// Package serve is the daemon: it joins watching, statements and protection, and keeps them running until it is stopped.
package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/avail/health"
	"github.com/rissodb/risso/internal/avail/publish"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/explain/history"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/home"
	"github.com/rissodb/risso/internal/serve/advice"
	"github.com/rissodb/risso/internal/serve/alerts"
	"github.com/rissodb/risso/internal/serve/config"
	"github.com/rissodb/risso/internal/serve/failover"
	"github.com/rissodb/risso/internal/serve/incidents"
	"github.com/rissodb/risso/internal/serve/protect"
	"github.com/rissodb/risso/internal/serve/publishing"
	"github.com/rissodb/risso/internal/serve/topology"
	"github.com/rissodb/risso/internal/store/agree"
	"github.com/rissodb/risso/internal/store/events"
	"github.com/rissodb/risso/internal/store/series"
	"github.com/rissodb/risso/internal/store/series/mapped"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/live"
	"github.com/rissodb/risso/internal/watch/own"
)

// gcPercent is how much the heap may grow between two collections of garbage.
const gcPercent = 50

// Parts are what the daemon keeps running, for those that show them.
type Parts struct {
	Settings   config.Settings
	Numbers    *series.Store
	PromQL     *mapped.Store // the same numbers as PromQL sees them
	Facts      *state.Store
	Board      *live.Board
	Statements events.Store            // nil: there is none
	Missing    fleet.Trouble           // why there is none, and how to fix it
	Sources    func() []history.Status // how collecting statements goes, by instance
	Guard      *protect.Guard
	Alerts     *alerts.Desk
	Incidents  *incidents.Desk
	Sizes      *Sizes
	Advice     *advice.Room
	Topology   *topology.Room
	Rules      *own.Rules
	Health     *health.Desk
	Views      *publish.Board   // where the clients of groups go
	Publishing *publishing.Room // tells others so
	Groups     *failover.Desk
	Lead       agree.Leadership   // whether this process acts
	Did        func(state.Action) // takes what somebody did; it is written down when this returns
	Logger     *slog.Logger
}

// Face shows the parts to those who connect to ln, until ctx ends.
type Face func(ctx context.Context, ln net.Listener, p Parts) error

// loggerOf is the log of the daemon: what goes wrong, and with verbose what it does.
func loggerOf(out io.Writer, verbose bool) *slog.Logger {
	level := slog.LevelWarn
	if verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: level}))
}

// parts makes what the face shows, but for what rings.
func (w *watch) parts(set config.Settings, numbers *series.Store, facts *state.Store, rows *statements, guard *protect.Guard) Parts {
	p := Parts{Settings: set, Sizes: newSizes(w.servers, numbers, w.board), Numbers: numbers, Facts: facts, Board: w.board, Statements: rows.store, Missing: rows.missing, Sources: rows.sources, Guard: guard, Did: w.did(facts), Lead: w.lead, Logger: w.logger}
	p.Advice = advice.New(advice.Options{Servers: w.servers, Config: set.Advice, Facts: facts, Board: w.board, Logger: w.logger, Traffic: w.trafficOf, Uses: filepath.Join(set.Data, indexUse)})
	p.Health = newHealth(w.servers, set.NoHealth, w.trafficOf, w.logger)
	p.Topology = topology.New(topology.Options{Servers: w.servers, Config: set.Topology, Retention: set.Retention, Facts: facts, Logger: w.logger, Now: time.Now, Traffic: w.trafficOf,
		Found: func(instance string, list []fleet.Finding) { w.board.Note(instance, "topology", list) }})
	w.follows = p.Topology
	p.Views = publish.StartingBoard()
	var peers failover.Peers
	if n, ok := w.lead.(*agree.Node); ok {
		peers = n
	}
	p.Groups = failover.New(failover.Options{Peers: peers, Room: &keep.Room{Docs: facts, Who: "risso serve"}, Board: p.Views, Auto: set.Failover, Rebuilds: filepath.Join(set.Data, "rebuild"), Found: w.groupFound, Lead: w.lead, Event: w.Event, Logger: w.logger})
	return p
}

// Run is the story of risso serve: open what is kept, take the address, watch, serve, and end in order. Messages for the
// user who started it go to out.
func Run(ctx context.Context, out io.Writer, f config.Flags, face Face) error {
	set, err := settled(f)
	if err != nil {
		return err
	}
	hup := hearHangup()
	if err := makeData(out, set.Data); err != nil {
		return err
	}
	ln, err := Listen(ctx, set.Listen)
	if err != nil {
		return err
	}
	defer ln.Close()

	tune(set.Limits)
	w := newWatch(loggerOf(out, f.Verbose))
	w.redact = set.Statements.Redact
	numbers, err := w.openNumbers(set)
	if err != nil {
		return err
	}
	defer numbers.Close()
	facts, err := openFacts(ctx, set, w.logger)
	if err != nil {
		return FolderFailure(set.Data, fmt.Errorf("open the store of facts: %w", err))
	}
	defer facts.Close()
	grouped, err := withMembers(ctx, f, &set, facts.Store)
	if err != nil {
		return err
	}
	w.watchAlso(set.Servers)
	w.lead = facts.lead
	if err := requireToken(ctx, set, facts); err != nil {
		return err
	}
	if !grouped { // else nothing waits for servers that do not answer, least of all who fails over from them
		if err := FirstContact(ctx, out, set.Servers, Hopeless); err != nil {
			return err
		}
	}

	rows, err := openStatements(ctx, set)
	if err != nil {
		return err
	}
	defer rows.close()

	guard, err := protect.New(protect.Options{Servers: set.Servers, ConfigFile: f.ConfigFile, Facts: facts.Store, Board: w.board, Event: w.Event, Lead: facts.lead, Logger: w.logger})
	if err != nil {
		return err
	}

	parts := w.parts(set, numbers, facts.Store, rows, guard)
	if parts.Publishing, err = publishing.New(ctx, publishing.Options{Config: set.Publish, Views: parts.Views, Lead: w.lead, Docs: facts, Logger: w.logger}); err != nil {
		return err
	}
	defer parts.Publishing.Close()
	parts.Groups.Hooks = parts.Publishing.Hooks()
	ruled, err := w.speak(ctx, &parts)
	if err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return facts.run(gctx) })
	if grouped {
		g.Go(func() error { return FirstContact(gctx, out, set.Servers, Hopeless) })
	}
	g.Go(func() error { return w.lookAtControllers(gctx, facts) })
	mctx, stopMoments := context.WithCancel(context.WithoutCancel(ctx))
	g.Go(func() error {
		defer stopMoments() // when no collector notes any more
		return w.run(gctx, set, numbers, facts.Store, rows, guard, ruled)
	})
	g.Go(func() error { return w.moments.Run(mctx) })
	g.Go(func() error { return face(gctx, ln, parts) })
	parts.keepRunning(gctx, g)
	g.Go(func() error { return w.advise(gctx, parts.Advice) })
	g.Go(func() error { return w.retire(gctx, rows.store, facts.Store) })
	c := newConfigWatch(f, set, guard, ruled.Rules, w, hup, out)
	g.Go(func() error { return c.run(gctx) })
	select {
	case <-w.begun: // requests now see every server
	case <-gctx.Done():
		return inOrder(ctx, g.Wait())
	}
	fmt.Fprintf(out, "risso: ready on http://%s watching %s, data in %s\n", ln.Addr(), digits.Counted(len(set.Servers), "server"), set.Data)
	return inOrder(ctx, g.Wait())
}

// makeData makes the data folder.
func makeData(out io.Writer, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return FolderFailure(dir, fmt.Errorf("data folder: %w", err))
	}
	home.WarnOfOwner(out, dir)
	return nil
}

// keepRunning starts the parts that need nothing but themselves.
func (p *Parts) keepRunning(ctx context.Context, g *errgroup.Group) {
	for _, run := range []func(context.Context) error{p.Health.Run, p.Alerts.Run, p.Topology.Run, p.Groups.Run, p.Publishing.Run} {
		g.Go(func() error { return run(ctx) })
	}
}

// openNumbers opens the store of metrics.
func (w *watch) openNumbers(set config.Settings) (*series.Store, error) {
	numbers, err := series.Open(series.Options{Dir: filepath.Join(set.Data, "series"), Retention: set.Retention, Logger: w.logger, OnEvent: w.Event})
	if errors.Is(err, series.ErrLocked) {
		return nil, fault.New(fault.InUse, "give each its own folder with --data", fmt.Errorf("another risso serve uses %s", set.Data))
	}
	if err != nil {
		return nil, FolderFailure(set.Data, fmt.Errorf("open the store of metrics: %w", err))
	}
	return numbers, nil
}

// advise looks for advice from when servers are on the board: what is wrong is noted about them there.
func (w *watch) advise(ctx context.Context, room *advice.Room) error {
	select {
	case <-w.begun:
		return room.Run(ctx)
	case <-ctx.Done():
		return nil
	}
}

// tune sets how Go works for Risso.
func tune(l config.Limits) {
	// Risso makes little garbage: to collect it at half the usual growth costs next to nothing and keeps the process small.
	debug.SetGCPercent(gcPercent)
	// Questions take as many of Go's processors as may be worked on at once. So many more let collectors begin at once; the
	// system shares the machine's own among them, and favours those that slept.
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + max(l.AtOnce, 2))
}

// speak makes what keeps and tells what happens: alerts, the user's own rules, incidents.
func (w *watch) speak(ctx context.Context, p *Parts) (ruled *ruling, err error) {
	if p.Alerts, err = w.newDesk(ctx, p.Settings.Alerts, p.Facts, p.Numbers); err != nil {
		return nil, err
	}
	names, err := newLabeller(ctx, p.Settings.Labels, w.board, p.Facts)
	if err != nil {
		return nil, err
	}
	p.PromQL = mapped.New(p.Numbers, names.labels)
	if ruled, err = w.newRules(ctx, p.Settings, p.Numbers, names, p.Facts); err != nil {
		return nil, err
	}
	p.Rules = ruled.Rules
	w.moments, err = incidents.New(ctx, incidents.Options{Dir: p.Settings.Data, Facts: p.Facts, Redact: p.Settings.Statements.Redact, Event: w.Event, Host: w.board.HostNumbers, Logger: w.logger})
	if err != nil {
		return nil, FolderFailure(p.Settings.Data, err)
	}
	p.Incidents = w.moments
	return ruled, nil
}

// inOrder is how serve ended: to be stopped while something only begins is no failure either.
func inOrder(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// Listen takes an address; one that is in use is fault.InUse.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fault.New(fault.InUse, "choose another with --listen, or 127.0.0.1:0 for any free port", fmt.Errorf("the address %s is in use", addr))
	case err != nil:
		return nil, fault.New(fault.Failed, "", fmt.Errorf("listen: %w", err))
	}
	return ln, nil
}

// requireToken refuses to show numbers to a network without asking who is there.
func requireToken(ctx context.Context, set config.Settings, facts facts) error {
	if set.Open || facts.node != nil { // whose tokens are those of all controllers; until it has them nobody gets in
		return nil
	}
	any, err := facts.AnyAccess(ctx)
	if err != nil {
		return err
	}
	if !any {
		return fault.New(fault.Usage, "make one first: risso user add NAME, or risso token create NAME, with --data "+set.Data, fmt.Errorf("%s can be reached from other machines, and there is no user and no token", set.Listen))
	}
	return nil
}
