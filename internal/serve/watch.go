package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/host"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/release"
	"github.com/rissodb/risso/internal/serve/alerts"
	"github.com/rissodb/risso/internal/serve/config"
	"github.com/rissodb/risso/internal/serve/incidents"
	"github.com/rissodb/risso/internal/serve/protect"
	"github.com/rissodb/risso/internal/serve/topology"
	"github.com/rissodb/risso/internal/sqltext"
	"github.com/rissodb/risso/internal/store/agree"
	"github.com/rissodb/risso/internal/store/series"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/collect"
	"github.com/rissodb/risso/internal/watch/incident"
	"github.com/rissodb/risso/internal/watch/keep"
	"github.com/rissodb/risso/internal/watch/live"
	"github.com/rissodb/risso/internal/watch/rules"
)

// watch joins collectors, stores and board while risso serve runs.
type watch struct {
	logger *slog.Logger
	board  *live.Board
	queue  chan func(context.Context, *state.Store) error // what the journal still has to write
	self   *selfMeter
	pulse  *collect.Pulse
	lead   agree.Leadership

	stateGone   atomic.Pointer[gone]              // nil: the file of the state is there
	controllers atomic.Pointer[rules.Controllers] // that share their state with this one; nil: none do
	redact      bool                              // keep no literals
	begun       chan struct{}                     // closed when all that is watched is on the board
	lost        atomic.Int64                      // events for which the queue had no room, and that were not told yet

	lostEver atomic.Int64 // all of these

	desk    *alerts.Desk
	moments *incidents.Desk
	follows *topology.Room                   // looks at who replicates from whom
	keepers sync.Map                         // *keep.Keeper by instance; each is used by its collector's goroutine alone
	held    map[string][]state.FindingRecord // what was open in the store when Risso was started, by instance

	heldByRules map[string][]state.FindingRecord // the same, of what the user's own rules found
	turned      map[string]fleet.Event           // the newest events that say that an instance was down or is up, by instance

	host   atomic.Pointer[host.Host] // of this machine, once it is watched
	hostID atomic.Pointer[string]    // its instance

	traffic sync.Map // *mysql.Traffic of all sessions to a server, by instance

	ends sync.Map // by instance: a func() that ends watching one that is watched as a member of a group

	listed sync.Mutex
	list   []config.Watched // servers that are watched, also those that came later
}

// journalQueue is how many events and variable readings may wait while the store of facts is slow or its disk full.
const journalQueue = 4096

func newWatch(logger *slog.Logger) *watch {
	w := &watch{logger: logger, queue: make(chan func(context.Context, *state.Store) error, journalQueue), self: newSelfMeter(), begun: make(chan struct{}),
		held: map[string][]state.FindingRecord{}, heldByRules: map[string][]state.FindingRecord{}, turned: map[string]fleet.Event{}}
	w.board = live.New(w.self.Self)
	w.board.OnVerdict(w.verdict)
	w.pulse = &collect.Pulse{Tell: w.notLooked}
	w.board.Heed(w.pulse)
	return w
}

// notLooked reports that Risso itself was late: what servers did meanwhile is not known.
func (w *watch) notLooked(from, to time.Time) {
	form := "15:04:05"
	if to.Sub(from) > 12*time.Hour {
		form = time.DateTime
	}
	w.Event(fleet.Event{Time: from, Kind: fleet.EventObserver, Severity: fleet.SeverityWarning, Subject: "late",
		Text: fmt.Sprintf("Risso took no readings from %s to %s (%s): it was stalled itself, its machine too busy or asleep", from.Local().Format(form), to.Local().Format(form), digits.Span(to.Sub(from)))})
}

// Event takes what happened; it never blocks.
func (w *watch) Event(e fleet.Event) {
	w.logger.Info("event", "instance", e.Instance, "kind", e.Kind, "text", e.Text)
	switch e.Kind {
	case fleet.EventDown, fleet.EventUp, fleet.EventRole, fleet.EventRestart:
		if w.follows != nil {
			w.follows.Poke()
		}
	}
	if !w.enqueue(func(ctx context.Context, s *state.Store) error {
		_, err := s.AddEvents(ctx, e)
		return err
	}) {
		w.lost.Add(1)
		w.lostEver.Add(1)
	}
}

// didPatience is how long somebody waits until what they did is written down.
const didPatience = 2 * time.Second

// did returns what takes what somebody did: it is written down before they are answered, so that a kill then does not lose who did it. What
// cannot be written soon is left to the journal.
func (w *watch) did(facts *state.Store) func(state.Action) {
	return func(a state.Action) {
		ctx, cancel := context.WithTimeout(context.Background(), didPatience)
		defer cancel()
		if _, err := facts.AddAction(ctx, a); err != nil {
			w.Event(a.Event)
			return
		}
		w.logger.Info("event", "instance", a.Instance, "kind", a.Kind, "text", a.Text, "outcome", a.Outcome, "address", a.Address)
	}
}

// tellLost writes down how many events were lost since it was last said. What cannot be written is said later.
func (w *watch) tellLost(ctx context.Context, facts *state.Store) {
	n := w.lost.Swap(0)
	if n == 0 {
		return
	}
	e := fleet.Event{Time: time.Now(), Kind: fleet.EventStore, Severity: fleet.SeverityCritical, Subject: "lost",
		Text: digits.Counted(n, "event") + " could not be kept: too many waited while the store of facts could not be written"}
	if _, err := facts.AddEvents(ctx, e); err != nil {
		w.lost.Add(n)
	}
}

// takeUp reads which findings were open when Risso ended, however it did.
func (w *watch) takeUp(ctx context.Context, facts *state.Store) error {
	list, err := facts.Findings(ctx, state.FindingQuery{Open: true, Limit: 10000})
	if err != nil {
		return fmt.Errorf("read what was wrong when Risso ended: %w", err)
	}
	turns, err := facts.Events(ctx, state.EventQuery{Kinds: []fleet.EventKind{fleet.EventDown, fleet.EventUp}, Limit: 10000})
	if err != nil {
		return fmt.Errorf("read what was down when Risso ended: %w", err)
	}
	for _, e := range turns {
		w.turned[e.Instance] = e
	}
	for _, r := range list {
		if state.OfRules(r.First.ID) {
			w.heldByRules[r.Instance] = append(w.heldByRules[r.Instance], r)
			continue
		}
		w.held[r.Instance] = append(w.held[r.Instance], r)
	}
	return nil
}

// add puts an instance on the board, with what was found of it before.
func (w *watch) add(i fleet.Instance) {
	w.board.Add(i)
	k := new(keep.Keeper)
	k.Resume(w.held[i.ID])
	held := make([]fleet.Finding, len(w.held[i.ID]))
	for n, r := range w.held[i.ID] {
		held[n] = r.First
	}
	w.board.Resume(i.ID, held)
	w.keepers.Store(i.ID, k)
}

// downSince is since when a server was down when Risso ended, and whether it hung; zero: it was not. The events count: Risso may have been
// killed between one of them and its finding, and then the event is not told again.
func (w *watch) downSince(instance string) (since time.Time, hung bool) {
	switch e := w.turned[instance]; e.Kind {
	case fleet.EventUp:
		return time.Time{}, false
	case fleet.EventDown:
		since = e.Time
	}
	for _, r := range w.held[instance] {
		if r.First.ID == "server.down" || r.First.ID == "server.hung" {
			return r.Began(), r.First.ID == "server.hung"
		}
	}
	return since, false
}

// What of processes is evidence of a host's findings: the first few by each measure, in that time, by which its next reading must not be late.
const (
	topProcesses = 4
	topPause     = 200 * time.Millisecond
)

// verdict takes what the rules say of an instance at a tick.
func (w *watch) verdict(v collect.View, verdict rules.Verdict) {
	moment := w.moments.Observe(v, verdict)
	any, ok := w.keepers.Load(v.Instance.ID)
	if !ok {
		return
	}
	k := any.(*keep.Keeper)
	verdict.Findings = slices.DeleteFunc(slices.Clone(verdict.Findings), func(f fleet.Finding) bool { return state.OfRules(f.ID) }) // they are kept where they are made
	var top []host.Used                                                                                                             // read once, however much was found
	look, due := k.Look(v.Instance.ID, time.Unix(v.Tick, 0), verdict, func(f fleet.Finding) json.RawMessage {
		if h := w.host.Load(); h != nil && v.Instance.Kind == fleet.KindHost {
			if top == nil {
				top = h.Top(topProcesses, topPause)
			}
			return incident.HostEvidence(v, top, f)
		}
		return incident.EvidenceOf(moment, v.Channels, f)
	})
	if due && !w.enqueue(func(ctx context.Context, s *state.Store) error { return w.keepFindings(ctx, s, look) }) {
		k.Again()
	}
}

// keepFindings writes what was found, and lets it ring.
func (w *watch) keepFindings(ctx context.Context, s *state.Store, l state.Look) error {
	err := s.KeepFindings(ctx, l)
	if err == nil && w.desk != nil {
		w.desk.Poke()
	}
	return err
}

// Variables takes a reading of all global variables; those that changed become events.
func (w *watch) Variables(instance string, at time.Time, values map[string]string) {
	still := make(map[string]string, len(values))
	for name, value := range values {
		if read.Moving(name) {
			continue
		}
		if w.redact && holdsStatements(name) {
			value = string(sqltext.Redact(nil, []byte(value)))
		}
		still[name] = value
	}
	w.enqueue(func(ctx context.Context, s *state.Store) error {
		changes, err := s.SetVariables(ctx, instance, at, still)
		if err != nil {
			return err
		}
		for _, c := range changes {
			e := fleet.Event{Time: at, Instance: instance, Kind: fleet.EventVariable, Subject: c.Name, Old: c.Old, New: c.New,
				Text: fmt.Sprintf("%s: %s → %s", c.Name, orEmpty(c.Old), orEmpty(c.New))}
			if _, err := s.AddEvents(ctx, e); err != nil {
				return err
			}
		}
		return nil
	})
}

// holdsStatements says whether a variable's value is SQL.
func holdsStatements(variable string) bool {
	return variable == "init_connect" || variable == "init_slave" || variable == "init_replica"
}

func orEmpty(s string) string {
	if s == "" {
		return "(empty)"
	}
	return s
}

// enqueue leaves f to the journal; false: it is full, and f is lost.
func (w *watch) enqueue(f func(context.Context, *state.Store) error) bool {
	select {
	case w.queue <- f:
		return true
	default:
		w.logger.Warn("the journal is full")
		return false
	}
}

// pruneEvery is how often events older than the retention are taken away.
const pruneEvery = time.Hour

// journal writes what was queued until ctx ends and the queue is empty. A write that fails is tried again for
// a while, because a full disk may be emptied.
func (w *watch) journal(ctx context.Context, facts *state.Store, retention time.Duration) {
	prune := time.NewTicker(pruneEvery)
	defer prune.Stop()
	for {
		select {
		case f := <-w.queue:
			w.write(ctx, facts, f)
		case now := <-prune.C:
			if retention > 0 {
				w.write(ctx, facts, func(ctx context.Context, s *state.Store) error {
					_, err := s.PruneEvents(ctx, now.Add(-retention))
					return err
				})
			}
		case <-ctx.Done():
			for {
				select {
				case f := <-w.queue:
					w.write(ctx, facts, f)
				default:
					return
				}
			}
		}
	}
}

// journalPatience is how long a write is tried again: as long as the store of numbers keeps what cannot be
// written. The event that tells of a full disk is itself such a write.
const journalPatience = 30 * time.Minute

func (w *watch) write(ctx context.Context, facts *state.Store, f func(context.Context, *state.Store) error) {
	var err error
	for begin, try := time.Now(), 1; time.Since(begin) < journalPatience; try++ {
		wctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		err = f(wctx, facts)
		cancel()
		if err == nil || ctx.Err() != nil {
			break
		}
		_ = delay.For(ctx, time.Duration(min(try, 5))*time.Second)
	}
	if err != nil {
		w.logger.Warn("the journal could not be written", "err", err)
		return
	}
	tctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	w.tellLost(tctx, facts)
}

// run watches and protects until ctx ends.
func (w *watch) run(ctx context.Context, set config.Settings, numbers *series.Store, facts *state.Store, rows *statements, guard *protect.Guard, own *ruling) error {
	jctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() { defer close(done); w.journal(jctx, facts, set.Retention) }()
	defer func() { stop(); <-done }()

	if d := facts.Damage(); d != nil {
		w.Event(fleet.Event{Time: time.Now(), Kind: fleet.EventStore, Severity: fleet.SeverityCritical, Text: "the file of facts was damaged and moved to " + d.MovedTo + ": " + d.Reason})
	}
	if err := w.takeUp(ctx, facts); err != nil {
		return err
	}
	w.self.numbers = numbers
	var group collect.Group
	var h *host.Host
	defer func() { // when no collector reads it any more
		if h != nil {
			h.Close()
		}
	}()
	defer group.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group.Go(ctx, w.pulse)
	h, hostID, err := w.watchHost(ctx, &group, set, numbers, facts)
	if err != nil {
		return err
	}
	begin := func(ctx context.Context, s config.Watched, i int) error {
		if h != nil && s.Target.Local() {
			s.Instance.HostID = hostID
		}
		traffic, own := w.trafficOf(s.Instance.ID), &group
		if s.Joined {
			var end context.CancelFunc
			own = new(collect.Group)
			ctx, end = context.WithCancel(ctx)
			w.ends.Store(s.Instance.ID, func() { end(); own.Wait(); rows.leave(s.Instance.ID) })
			defer group.Go(ctx, awaited{own})
		}
		if err := w.watchServer(ctx, own, s, i, traffic, h, numbers, facts); err != nil {
			return err
		}
		rows.follow(ctx, own, w, s, traffic, i, set)
		return nil
	}
	for i, s := range set.Servers {
		if err := begin(ctx, s, i); err != nil {
			return err
		}
	}
	w.lookAfterSelf(set.Data)
	w.letGo()
	if !set.NoMembers {
		group.Go(ctx, w.newcomers(facts, begin))
	}
	rows.begin(ctx, &group, w, set, facts)
	if err := w.watchSelf(ctx, &group, numbers); err != nil {
		return err
	}
	group.Go(ctx, own)
	w.Event(fleet.Event{Time: time.Now(), Kind: fleet.EventObserver, Text: "Risso " + release.Version() + " began watching"})
	close(w.begun)
	err = guard.Run(ctx) // ends when ctx does; what its jobs have to say at the end still goes into the journal
	cancel()
	group.Wait()
	w.Event(fleet.Event{Time: time.Now(), Kind: fleet.EventObserver, Text: "Risso stopped"})
	return err
}

// PhaseOf spreads the readings of many servers over the first part of the second.
func PhaseOf(i int) time.Duration { return time.Duration(i%80) * 8 * time.Millisecond }

// afterOf lets no more than 80 servers be connected to for the first time within half a second: all at once, none of many would answer in time.
func afterOf(i int) time.Duration { return time.Duration(i/80) * 500 * time.Millisecond }

func (w *watch) watchServer(ctx context.Context, group *collect.Group, s config.Watched, i int, traffic *mysql.Traffic, h *host.Host, numbers *series.Store, facts *state.Store) error {
	wr, err := numbers.Writer(s.Instance.ID)
	if err != nil {
		return fmt.Errorf("write the metrics of %s: %w", s.Instance.Name, err)
	}
	if err := w.inventory(ctx, facts, s.Instance); err != nil {
		return fmt.Errorf("note the server: %w", err)
	}
	o := collect.Options{Sink: &seriesSink{w: wr}, Recorder: w, Observer: w.board, Logger: w.logger, Phase: PhaseOf(i), Pulse: w.pulse, Traffic: traffic, Wish: new(collect.Wish), Redact: w.redact}
	o.Down, o.Hung = w.downSince(s.Instance.ID)
	if s.Instance.HostID != "" {
		o.Extra = collect.NewProcess(h, s.Target.Socket(), s.Target.Port())
	}
	if err := w.moments.Add(s.Instance, o.Wish); err != nil {
		return fmt.Errorf("keep the moments of %s: %w", s.Instance.Name, err)
	}
	w.add(s.Instance)
	group.Go(ctx, closing{collect.NewServer(s.Target, s.Instance, o), wr, afterOf(i)})
	return nil
}

// watchHost begins to watch this machine, where it was not forbidden.
func (w *watch) watchHost(ctx context.Context, group *collect.Group, set config.Settings, numbers *series.Store, facts *state.Store) (*host.Host, string, error) {
	if !set.Host {
		return nil, "", nil
	}
	h, err := host.New(host.Options{})
	if err != nil {
		return nil, "", fmt.Errorf("watch this host: %w", err)
	}
	id := h.Identity()
	instance := fleet.Instance{ID: id.ID(), Name: id.Hostname, Kind: fleet.KindHost, Address: id.Hostname, Version: id.OS}
	for _, s := range set.Servers {
		if s.Instance.ID == instance.ID { // a server with the host's name
			instance.ID = "host-" + instance.ID
		}
	}
	wr, err := numbers.Writer(instance.ID)
	if err != nil {
		h.Close()
		return nil, "", fmt.Errorf("write the metrics of this host: %w", err)
	}
	if err := w.inventory(ctx, facts, instance); err != nil {
		h.Close()
		return nil, "", fmt.Errorf("note the host: %w", err)
	}
	w.add(instance)
	w.host.Store(h)
	w.hostID.Store(&instance.ID)
	group.Go(ctx, closing{collect.NewHost(h, instance, collect.Options{Sink: &seriesSink{w: wr}, Recorder: w, Observer: w.board, Logger: w.logger}), wr, 0})
	return h, instance.ID, nil
}

// closing closes the writer when its collector has ended.
type closing struct {
	run   interface{ Run(context.Context) }
	w     *series.Writer
	after time.Duration // that it waits before
}

// Run runs the collector.
func (c closing) Run(ctx context.Context) {
	defer c.w.Close()
	if delay.For(ctx, c.after) == nil {
		c.run.Run(ctx)
	}
}

// awaited lets a group of collectors be waited for by another one.
type awaited struct{ own *collect.Group }

// Run waits until they have ended.
func (a awaited) Run(context.Context) { a.own.Wait() }

// seriesSink writes ticks into the store of numbers.
type seriesSink struct {
	w       *series.Writer
	defined int
}

// Append defines metrics that are new and appends the tick.
func (s *seriesSink) Append(t int64, metrics []fleet.Metric, values []float64, late bool) error {
	for ; s.defined < len(metrics); s.defined++ {
		s.w.Define(series.DescOf(metrics[s.defined]))
	}
	err := s.w.Append(t, values, late)
	if errors.Is(err, series.ErrOldTick) { // the clock of this machine went back: what is kept stays
		return nil
	}
	return err
}

// firstContactTime is how long servers have to answer at the start.
const firstContactTime = 3 * time.Second

// FirstContact tries each server once, all at the same time, so that a wrong password is reported immediately and not
// found on a page. It fails only when the trouble of every server is hopeless.
func FirstContact(ctx context.Context, out io.Writer, servers []config.Watched, hopeless func(mysql.Class) bool) error {
	errs := make([]error, len(servers))
	var wg sync.WaitGroup
	for i, s := range servers {
		wg.Go(func() {
			cctx, cancel := context.WithTimeout(ctx, firstContactTime)
			defer cancel()
			conn, err := mysql.Connect(cctx, s.Target, nil)
			if err != nil {
				errs[i] = err
				return
			}
			conn.Close()
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if len(errs) > 0 && !slices.ContainsFunc(errs, func(err error) bool { return !hopeless(mysql.ClassOf(err)) }) {
		return errs[0]
	}
	for i, err := range errs {
		if err != nil {
			fmt.Fprintf(out, "risso: %s\n", fault.Line("cannot watch "+servers[i].Instance.Name+" now, will keep trying: "+err.Error(), fleet.RemedyOf(err)))
		}
	}
	return nil
}

// Hopeless says that waiting does not help against an error of a server.
func Hopeless(c mysql.Class) bool {
	return c == mysql.ClassLogin || c == mysql.ClassTLS || c == mysql.ClassUsage
}

// NotThere is Hopeless for interactive use: an unknown host and a port on which nothing listens are typos
// more often than a server that will come.
func NotThere(c mysql.Class) bool {
	return Hopeless(c) || c == mysql.ClassUnreachable || c == mysql.ClassRefused
}
