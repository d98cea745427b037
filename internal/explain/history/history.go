// Package history records the cost of classes of statements on a server, minute by minute, with samples and plans.
//
// It reads performance_schema's table of digests once a minute, on a separate connection, so that the reading of every
// second is never delayed, and stores the differences.
package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/explain/digest"
	"github.com/rissodb/risso/internal/explain/prepared"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/store/events"
)

// Store is what the collector needs of the store of events.
type Store interface {
	AddMinutes(ctx context.Context, minutes ...events.Minute) (int, error)
	AddActivity(ctx context.Context, minutes ...events.ActivityMinute) (int, error)
	AddClasses(ctx context.Context, classes ...events.Class) error
	AddSamples(ctx context.Context, samples ...events.Sample) error
	AddPlan(ctx context.Context, p events.Plan) (*events.Flip, error)
}

// Options are what a collector needs.
type Options struct {
	Store   Store
	Event   func(fleet.Event) // must not block
	Logger  *slog.Logger
	Traffic *mysql.Traffic // shared with the other connections to this server: what they send is left out
	Phase   time.Duration  // how far into the minute this server is read
	Redact  bool           // hide literals before samples and plans are stored
	// PlanID returns the ID of a plan in JSON, equal for plans of equal shape; nil: no plans are taken.
	PlanID func(text string) (string, error)
}

// Limits of what one reading asks of a server.
const (
	heaviest       = 20               // classes of a minute whose latency, samples and plans are looked at
	sampleEvery    = 600              // seconds between two samples of a class in a schema
	readTimeout    = 30 * time.Second // of everything that is asked in a minute
	connectTimeout = 5 * time.Second
	maxShareOfTime = 0.1 // a reading that took more than this share of a minute makes the next ones rarer
	maxPending     = 60  // minutes that wait while the store cannot be written
	maxSampleText  = 1 << 16
	classesAtOnce  = 1000 // are stored in one transaction
	classEvery     = 3600 // seconds after which a class' last sighting is stored again
)

// Status is how collecting goes.
type Status struct {
	Instance      string          `json:"instance"`
	Source        string          `json:"source"`          // performance_schema, slow log, or none
	Working       bool            `json:"working"`         // statements are read
	Since         int64           `json:"since,omitempty"` // unix seconds of the first reading by this process
	Last          int64           `json:"last,omitempty"`  // of the newest
	fleet.Trouble                 // why it is not working
	Notes         []fleet.Trouble `json:"notes"` // what is missing although it works
	Digests       int             `json:"digests"`
	Seconds       float64         `json:"seconds"`             // how long the last reading took
	Resets        int64           `json:"resets"`              // how often a counter was reset: restarts and emptied tables, by digest
	Plans         bool            `json:"plans"`               // plans are taken
	PlanNote      string          `json:"plan_note,omitempty"` // why some are not

	Activity ActivityStatus `json:"activity"` // looking at the active sessions
}

// Collector follows one server.
type Collector struct {
	Options
	target   mysql.Target
	instance fleet.Instance
	conn     *mysql.Conn
	seat     fleet.Seat // of the server that answered last

	counters  counters
	prepared  follower
	latencies latencies
	names     identifier
	classes   map[digestKey]known
	sampled   map[sampleKey]int64
	named     map[string]bool       // classes whose ID in pt-query-digest was stored
	since     string                // the server's clock at the last reading
	readAt    time.Time             // ours
	waiting   []cost                // whose classes could not be found yet
	executed  []prepared.Executions // the same
	pending   []events.Minute
	tried     map[string]time.Time     // what is optional and failed, by its name: when it may be tried again
	gaps      map[string]fleet.Trouble // and what is missing for it; guarded by mu
	fullUntil int64                    // until when a full table is not reported again
	plans     planner
	explained explained
	activity  *sampler

	mu     sync.Mutex
	status Status
	absent atomic.Bool // the server answers, but does not count statements
}

// known is a class that was stored.
type known struct {
	class  string
	verb   string
	stored int64 // when its last sighting was stored
	own    bool
}

type sampleKey struct{ class, schema string }

// New makes a collector.
func New(target mysql.Target, instance fleet.Instance, o Options) *Collector {
	c := &Collector{Options: o, target: target, instance: instance, classes: map[digestKey]known{}, sampled: map[sampleKey]int64{}}
	if c.Traffic == nil {
		c.Traffic = new(mysql.Traffic)
	}
	c.status = Status{Instance: instance.ID, Source: "performance_schema", Trouble: fleet.Trouble{Why: "the first minute is not over"}, Notes: []fleet.Trouble{}, Plans: o.PlanID != nil}
	c.activity = newSampler(c)
	return c
}

// Status is how collecting goes now.
func (c *Collector) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.status
	activity, notes := c.activity.status()
	s.Activity, s.Notes = activity, slices.Concat([]fleet.Trouble{}, s.Notes, c.prepared.notes, c.missing(), notes)
	return s
}

func (c *Collector) setStatus(f func(*Status)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.status)
}

// Run reads the server once at the start and then in every minute until ctx ends.
func (c *Collector) Run(ctx context.Context) {
	defer c.disconnect()
	var sampling sync.WaitGroup
	defer sampling.Wait()
	sampling.Go(func() { c.activity.run(ctx) })
	c.Traffic.Turn(ctx)
	for ctx.Err() == nil {
		began := time.Now()
		c.Read(ctx, began)
		// A server that is slow to answer is asked less often.
		rest := time.Duration(float64(time.Since(began))/maxShareOfTime) - time.Minute
		next := began.Truncate(time.Minute).Add(time.Minute + c.Phase)
		if rest > 0 {
			next = next.Add(rest.Truncate(time.Minute) + time.Minute)
		}
		if c.Traffic.Rest(ctx, max(time.Until(next), time.Second)) {
			c.failed(errNotFirst)
			c.Traffic.Turn(ctx)
		}
	}
}

// Read reads the server once. What was added since the reading before is the minute in which that reading was.
func (c *Collector) Read(ctx context.Context, now time.Time) {
	if err := c.store(ctx); err != nil { // what could not be stored before
		c.Logger.Warn("statements are waiting to be stored", "instance", c.instance.ID, "err", err)
	}
	rctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	began := time.Now()
	err := c.read(rctx, now)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		c.failed(err)
		return
	}
	c.absent.Store(false)
	c.setStatus(func(s *Status) {
		s.Seconds, s.Resets, s.Digests = time.Since(began).Seconds(), c.counters.lost, len(c.counters.base)
	})
}

// unavailable says that the server does not count statements.
type unavailable struct{ fleet.Trouble }

func (u *unavailable) Error() string { return u.Why }

func (c *Collector) failed(err error) {
	trouble := fleet.Trouble{Why: err.Error()}
	var u *unavailable
	var e *mysql.Error
	switch {
	case errors.As(err, &u):
		c.absent.Store(true)
		trouble = u.Trouble
	case errors.As(err, &e):
		trouble = c.refused(e, "statements are")
	case mysql.ClassOf(err) == mysql.ClassPrivilege && c.conn != nil:
		trouble = fleet.Trouble{Why: "the account " + c.conn.Server.Account + " may not read performance_schema", Remedy: c.conn.Server.GrantPerformanceSchema()}
	}
	c.Logger.Debug("statements were not read", "instance", c.instance.ID, "err", err)
	c.disconnect()
	c.setStatus(func(s *Status) { s.Working, s.Trouble = false, trouble })
}

// refused says why there is no connection, and how to fix it: if the metrics are read nevertheless, there is no room for another one.
func (c *Collector) refused(e *mysql.Error, what string) fleet.Trouble {
	account := c.Traffic.FirstAccount()
	if e.Class != mysql.ClassFull || account == "" {
		return fleet.Trouble{Why: "the server " + e.Reason(), Remedy: fleet.RemedyOf(e)}
	}
	t := fleet.Trouble{Why: what + " not recorded because a second connection is missing: " + e.Reason(), Remedy: fleet.RemedyOf(e)}
	if e.OfAccount() {
		t.Remedy = mysql.MoreConnections(account)
	}
	return t
}

// enter makes a connection, unless the one that reads numbers, which goes first, has none itself.
func (c *Collector) enter(ctx context.Context) (*mysql.Conn, error) {
	if !c.Traffic.Enter() {
		return nil, errNotFirst
	}
	conn, err := mysql.Connect(ctx, c.target, c.Traffic)
	if err != nil {
		c.Traffic.Leave()
	}
	return conn, err
}

// leave ends a connection that enter made.
func (c *Collector) leave(conn *mysql.Conn) {
	conn.Close() // the connection is useless now, whatever Close returns
	c.Traffic.Leave()
}

var errNotFirst = errors.New("the server's metrics are read first, and there is no connection for them yet")

func (c *Collector) disconnect() {
	if c.conn != nil {
		c.leave(c.conn)
		c.conn = nil
	}
}

func (c *Collector) connect(ctx context.Context) error {
	cctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := c.enter(cctx)
	if err != nil {
		return err
	}
	c.conn = conn
	return nil
}

// begins makes sure that the server counts statements, and that it is the same one as before.
func (c *Collector) begins(ctx context.Context) error {
	off, err := read.CountsStatements(ctx, c.conn)
	if err != nil {
		return err
	}
	if off != nil {
		return &unavailable{*off}
	}
	seat := c.conn.Server.Seat
	if c.seat != (fleet.Seat{}) && c.seat != seat { // another server under the same address: its counters are others
		c.counters.begin()
		c.prepared.Forget()
		c.latencies = latencies{}
		c.waiting, c.executed = nil, nil
	}
	c.seat = seat
	return c.prepared.Connected(ctx, c.conn)
}

// read asks the server and stores the minute.
func (c *Collector) read(ctx context.Context, now time.Time) error {
	if c.conn == nil {
		if err := c.connect(ctx); err != nil {
			return err
		}
		if err := c.begins(ctx); err != nil {
			return err
		}
	}
	clock, err := read.ServerNow(ctx, c.conn)
	if err != nil {
		return err
	}
	var reading *prepared.Reading
	c.optional(ctx, now, optionalPrepared, func(ctx context.Context) error {
		r, err := c.prepared.Read(ctx, c.conn)
		reading = &r
		return err
	})
	if c.conn == nil { // it is asked again in a minute, without what was too slow; the counters wait
		return errBroken
	}
	if !c.counters.begun() {
		return c.begin(ctx, clock, now, reading)
	}
	var list []cost
	err = read.Digests(ctx, c.conn, c.since, func(d *read.Digest) error {
		if added, ok := c.counters.next(d); ok {
			list = append(list, added)
		}
		return nil
	})
	c.waiting = merge(c.waiting, list) // also what came before an error: the counters know that it was read
	if err != nil {
		return err
	}
	at := c.readAt
	c.since, c.readAt = clock, now
	if gone := now.Sub(at); gone > 90*time.Second { // readings failed between: what was added is of the newest minute
		at = now.Add(-time.Minute)
	}
	c.executed = append(c.executed, c.executions(reading)...)
	return c.minute(ctx, now, at.Unix()/60*60)
}

// begin reads all counters.
func (c *Collector) begin(ctx context.Context, clock string, now time.Time, reading *prepared.Reading) error {
	err := read.Digests(ctx, c.conn, "", func(d *read.Digest) error {
		c.counters.first(d)
		return nil
	})
	if err != nil {
		c.counters.begin()
		return err
	}
	if c.counters.base == nil { // a server on which nothing ran
		c.counters.base = map[digestKey]read.Digest{}
	}
	c.prepared.Forget()
	c.executions(reading)
	c.since, c.readAt = clock, now
	c.setStatus(func(s *Status) { s.Working, s.Trouble, s.Since, s.Last = true, fleet.Trouble{}, now.Unix(), now.Unix() })
	return nil
}

// minute stores what ran in a minute and looks closer at the heaviest. What it could not learn the names of waits for the
// next minute; nothing that was counted is lost.
func (c *Collector) minute(ctx context.Context, now time.Time, at int64) error {
	if err := c.identify(ctx, at, c.waiting); err != nil {
		return err
	}
	executions, err := c.identifyPrepared(ctx, at, c.executed)
	if err != nil {
		return err
	}
	list := slices.DeleteFunc(c.waiting, func(d cost) bool { return c.classes[d.digestKey].own })
	c.waiting, c.executed = nil, nil
	slices.SortFunc(list, func(a, b cost) int { return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.id, b.id)) })
	rows := make([]events.Row, 0, len(list))
	for _, d := range list {
		rows = append(rows, rowOf(c.classes[d.digestKey].class, d))
	}
	heavy := list[:min(len(list), heaviest)]
	if read.KeepsLatency(c.conn.Server) {
		c.optional(ctx, now, optionalLatency, func(ctx context.Context) error { return c.latency(ctx, at, heavy, rows) })
	}
	for _, e := range executions {
		rows = append(rows, e.row())
	}
	if len(c.pending) >= maxPending {
		c.pending = c.pending[1:]
	}
	c.pending = append(c.pending, events.Minute{Instance: c.instance.ID, Time: at, Rows: join(rows)})
	if err := c.store(ctx); err != nil {
		c.Logger.Warn("statements are waiting to be stored", "instance", c.instance.ID, "err", err)
	}
	c.setStatus(func(s *Status) { s.Working, s.Trouble, s.Last = true, fleet.Trouble{}, at+60 })
	c.optional(ctx, now, optionalRoom, func(ctx context.Context) error { return c.full(ctx, at, list) })
	c.optional(ctx, now, optionalSamples, func(ctx context.Context) error { return c.closer(ctx, at, heavy) })
	c.optional(ctx, now, optionalPreparedSamples, func(ctx context.Context) error {
		return c.samplePrepared(ctx, at, executions[:min(len(executions), heaviest)])
	})
	return nil
}

// latency reads the histograms of the heaviest classes, whose rows come first.
func (c *Collector) latency(ctx context.Context, at int64, heavy []cost, rows []events.Row) error {
	for i, d := range heavy {
		if d.id == "" {
			continue
		}
		h, err := read.Latency(ctx, c.conn, d.schema, d.id)
		if err != nil {
			return err
		}
		rows[i].Latency = c.latencies.next(d, at, h)
	}
	return nil
}

// store writes the minutes that wait.
func (c *Collector) store(ctx context.Context) error {
	if len(c.pending) == 0 {
		return nil
	}
	if _, err := c.Store.AddMinutes(ctx, c.pending...); err != nil {
		return err
	}
	c.pending = nil
	return nil
}

// identify finds the classes of digests that were not seen before and stores them.
func (c *Collector) identify(ctx context.Context, at int64, list []cost) error {
	c.names.note(append(c.Traffic.Texts(), c.explained.noted()...)...)
	marked := c.marked(ctx)
	if c.conn == nil {
		return errBroken
	}
	var ids []string
	for _, d := range list {
		if _, ok := c.classes[d.digestKey]; ok {
			continue
		}
		if d.id == "" {
			if err := c.Store.AddClasses(ctx, events.Class{Instance: c.instance.ID, ID: otherID, Fingerprint: otherFingerprint, FirstSeen: at, LastSeen: at}); err != nil {
				return err
			}
			c.classes[d.digestKey] = known{class: otherID, verb: "OTHER"}
			continue
		}
		ids = append(ids, d.id)
	}
	texts := map[digestKey]string{}
	if len(ids) > 0 {
		slices.Sort(ids)
		err := read.DigestTexts(ctx, c.conn, slices.Compact(ids), func(t read.DigestText) error {
			texts[digestKey{t.Schema, t.ID}] = t.Text
			if n := c.names.of(t.Text); digest.IsOwn([]byte(t.Sample)) && !everybodys[n.verb] { // another Risso's: a trace, a digest, a benchmark
				c.names.own[n.id] = true
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("read the texts of classes: %w", err)
		}
		c.names.note(c.Traffic.Texts()...) // that question as well
	}
	var found []events.Class
	var keys []digestKey // of found
	for _, d := range list {
		k, ok := c.classes[d.digestKey]
		if ok && marked[d.id] && !k.own && !everybodys[k.verb] {
			k.own = true
			c.classes[d.digestKey] = k
		}
		text, read := texts[d.digestKey]
		switch {
		case ok && k.own || d.id == "":
			continue
		case ok && at-k.stored < classEvery:
			continue
		case ok: // seen again after a while
			found = append(found, events.Class{Instance: c.instance.ID, ID: k.class, Digest: d.id, FirstSeen: at, LastSeen: at})
			keys = append(keys, d.digestKey)
			k.stored = at
			c.classes[d.digestKey] = k
			continue
		case !read: // evicted between two questions
			text = "(text evicted) " + d.id
		}
		n := c.names.of(text)
		k = known{class: n.id, verb: n.verb, stored: at, own: c.names.isOwn(n.id) || marked[d.id] && !everybodys[n.verb]}
		c.classes[d.digestKey] = k
		if !k.own {
			found = append(found, events.Class{Instance: c.instance.ID, ID: n.id, Digest: d.id, Fingerprint: n.fingerprint, Verb: n.verb, Tables: n.tables, FirstSeen: at, LastSeen: at})
			keys = append(keys, d.digestKey)
		}
	}
	if len(c.classes) > maxBase {
		c.classes = map[digestKey]known{}
	}
	return c.note(ctx, found, func(i int) { delete(c.classes, keys[i]) })
}

// note stores classes, some at a time: if 20,000 together take longer than a reading may, each reading stores more of them. Those that
// could not be stored must be forgotten: else they would never have a name.
func (c *Collector) note(ctx context.Context, found []events.Class, forget func(i int)) error {
	for i := 0; i < len(found); i += classesAtOnce {
		if err := c.Store.AddClasses(ctx, found[i:min(i+classesAtOnce, len(found))]...); err != nil {
			for ; i < len(found); i++ {
				forget(i)
			}
			return err
		}
	}
	return nil
}

// full reports when the server's table of digests has no more room.
func (c *Collector) full(ctx context.Context, at int64, list []cost) error {
	i := slices.IndexFunc(list, func(d cost) bool { return d.id == "" })
	if i < 0 {
		if at >= c.fullUntil {
			c.setStatus(func(s *Status) { s.Notes = []fleet.Trouble{} })
		}
		return nil
	}
	lost, size, err := read.DigestsLost(ctx, c.conn)
	if err != nil {
		return err
	}
	gap := fleet.Trouble{What: "classes of statements",
		Why:    fmt.Sprintf("the server's table of digests is full (%s): %s of the last minute fell into one unnamed row, %s since the server started", digits.Counted(size, "row"), digits.Counted(list[i].Calls, "statement"), digits.Thousands(lost)),
		Remedy: fmt.Sprintf("TRUNCATE performance_schema.events_statements_summary_by_digest; for good: performance_schema_digests_size=%d in the [mysqld] section of the option file, and a restart", max(2*size, 10000))}
	c.setStatus(func(s *Status) { s.Notes = []fleet.Trouble{gap} })
	if at >= c.fullUntil {
		c.Event(fleet.Event{Time: time.Unix(at, 0), Instance: c.instance.ID, Kind: fleet.EventStatements, Severity: fleet.SeverityWarning, Text: gap.Why})
	}
	c.fullUntil = at + 3600
	return nil
}
