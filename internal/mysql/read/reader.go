// Package read asks a connected server what it does: its numbers each second, what its sessions run and wait for, which
// statements cost the most, how it replicates, how it is set. DESIGN.md says which file has which question.
package read

import (
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"slices"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// Reader reads a server's numbers, tick by tick, into one Sample. It outlives connections: what it
// knows of the server's metrics stays valid over a reconnect. It belongs to one goroutine.
type Reader struct {
	Sample    fleet.Sample
	Variables map[string]string // all global variables at the last minute read; nil before
	Fresh     bool              // this tick read the variables
	StatusAt  time.Time         // when the global status was last answered

	StatusAsked time.Time // and when it was queried

	Locks []LockWait // who waits for whose lock, as it was asked last; nil where nobody does

	Transactions []Transaction // of InnoDB that are open, at this tick
	Engine       string        // SHOW ENGINE INNODB STATUS, where it was read at this tick
	Deadlocked   bool          // a deadlock was counted since the tick before
	WantEngine   bool          // it is to be read at the next tick

	status    statusReader
	innodb    innodbReader
	replica   replicaReader
	waits     waitReader
	latency   latencyReader
	groups    []group
	traffic   *mysql.Traffic
	metered   meterMetrics
	locksRest time.Time        // who waits for whose lock is not asked before
	locked    map[int64]locked // by connection: who was seen locking the whole server
	started   []string         // keys of the counters of newChannel
	starts    float64          // their sum at the last reading
	lookIn    int              // readings until replication is looked for anyway
	off       int              // InnoDB metrics that are switched off
	watched   settingsReader
	flushes   flushWatch
	open      transactionReader
	deadlocks float64         // that the server counted at the last reading; -1: none was read
	states    map[string]bool // commands and states of threads that have a metric
}

// group is one question to the server.
type group struct {
	name    string // label of risso_collect_seconds
	what    string // for people
	every   int64  // seconds between two readings
	phase   int64  // second within every at which it falls due, so that the slow ones do not meet
	wanted  func(*Reader, mysql.Server) bool
	read    func(*Reader, context.Context, *mysql.Conn) error
	remedy  func(mysql.Server) string // how to grant a missing privilege
	asked   bool                      // on this connection
	pos     int                       // of risso_collect_seconds in the sample, plus one
	gap     *fleet.Trouble            // why it could not be read
	denied  bool                      // by the account's privileges
	retryAt int64                     // unix second from which it is tried again
	extra   bool                      // only dashboards of others ask for it: that the account may not is no gap
	rest    time.Time                 // it is not asked before, because it took long
	failed  int                       // times in a row
}

// Groups that others ask for: that of the channels, and one that needs PROCESS.
const (
	groupReplication = "replication"
	groupInnoDB      = "innodb_metrics"
)

// retryGap is how long a question that the server refused is not asked again.
const retryGap = 60

// extraShare bounds what it may cost that only dashboards of others ask for: it is asked again after so many times as long as it took.
const extraShare = 500

// NewReader makes a reader; traffic is what its connections count into.
func NewReader(traffic *mysql.Traffic) *Reader {
	always := func(*Reader, mysql.Server) bool { return true }
	grant := func(privilege string) func(mysql.Server) string {
		return func(s mysql.Server) string { return s.Grant(privilege) }
	}
	none := func(mysql.Server) string { return "" }
	return &Reader{traffic: traffic, deadlocks: -1, groups: []group{
		{name: "status", what: "global status", every: 1, wanted: always, remedy: none,
			read: (*Reader).readStatus},
		{name: groupInnoDB, what: "InnoDB metrics", every: 1, wanted: always, remedy: grant("PROCESS"),
			read: (*Reader).readInnoDB},
		{name: groupReplication, what: "replication status", every: 1, wanted: (*Reader).mayReplicate,
			remedy: func(s mysql.Server) string { return s.Grant(s.ReplicaPrivilege()) }, read: (*Reader).readReplication},
		{name: "waits", what: WhatWaits, every: 1, wanted: always, remedy: mysql.Server.GrantPerformanceSchema, read: (*Reader).readWaits},
		{name: "transactions", what: "open transactions", every: 1, wanted: (*Reader).transactionsDue, remedy: grant("PROCESS"), read: (*Reader).readTransactions},
		{name: "locks", what: "who waits for whose lock", every: 1, wanted: (*Reader).somebodyWaits, remedy: mysql.Server.GrantPerformanceSchema, read: (*Reader).readLocks},
		{name: "engine", what: "the status of InnoDB", every: 1, wanted: (*Reader).engineDue, remedy: grant("PROCESS"), read: (*Reader).readEngine},
		{name: "clock", what: "the server's clock", every: 10, phase: 7, wanted: always, remedy: none, read: (*Reader).readClock},
		{name: "latency", what: "statement latency", every: 1, wanted: func(_ *Reader, s mysql.Server) bool { return s.PerformanceSchema }, remedy: mysql.Server.GrantPerformanceSchema,
			read: (*Reader).readLatency},
		{name: "latency_histogram", what: "statement latency quantiles", every: 10, phase: 3, wanted: hasStatementHistogram, remedy: mysql.Server.GrantPerformanceSchema,
			read: (*Reader).readQuantiles},
		{name: "replicas", what: "connected replicas", every: 10, phase: 6, wanted: always, remedy: grant("PROCESS"),
			read: (*Reader).countReplicas},
		{name: "variables", what: "global variables", every: 60, phase: 8, wanted: always, remedy: none, read: (*Reader).readVariables},
		{name: "settings", what: "settings that findings depend on", every: 1, wanted: (*Reader).mayBeSet, remedy: none, read: (*Reader).readSettings},
		{name: "innodb_metrics_off", what: "which InnoDB metrics are off", every: 60, phase: 9, wanted: always, remedy: none, read: (*Reader).countDisabled},
		{name: "threads", what: "threads by state", every: 10, phase: 1, wanted: always, read: (*Reader).readThreads, extra: true},
		{name: "file_events", what: "uses of files", every: 10, phase: 4, wanted: instrumented, read: (*Reader).readFileEvents, extra: true},
		{name: "event_waits", what: "waits by event", every: 10, phase: 7, wanted: instrumented, read: (*Reader).readEventWaits, extra: true},
		{name: "compression", what: "compressed pages", every: 60, phase: 11, wanted: always, read: (*Reader).readCompression, extra: true},
		{name: "binlogs", what: "size of the binary logs", every: 60, phase: 12, wanted: (*Reader).keepsLog, read: (*Reader).readBinlogs, extra: true},
		{name: "tables", what: "sizes of tables", every: 240, phase: 13, wanted: always, read: (*Reader).readTables, extra: true},
	}}
}

// WhatWaits is what a gap names if the server does not tell what its sessions do.
const WhatWaits = "who waits for what"

// statusTime is how long a server may take to tell its counters. They come out of its memory: one that does not tell them by then hangs.
const statusTime = 3500 * time.Millisecond

func (r *Reader) readStatus(ctx context.Context, c *mysql.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	asked := time.Now()
	err := r.status.read(ctx, c, &r.Sample)
	if err == nil {
		r.StatusAsked, r.StatusAt = asked, time.Now()
		r.flushes.look(&r.Sample)
	}
	return err
}

func (r *Reader) readInnoDB(ctx context.Context, c *mysql.Conn) error {
	return r.innodb.read(ctx, c, &r.Sample)
}

func (r *Reader) readReplication(ctx context.Context, c *mysql.Conn) error {
	return r.replica.read(ctx, c, &r.Sample)
}

// newChannel are the counters of the statements that give a server its first channel, in all servers' words.
var newChannel = []string{"change_master", "change_replication_source", "start_slave", "start_all_slaves", "slave_start", "replica_start", "group_replication_start"}

// mayReplicate reports whether there is replication to be asked for: there was some, a statement that starts it was
// counted since, or it is time to look anyway. So a server that does not replicate is spared a statement each second.
func (r *Reader) mayReplicate(mysql.Server) bool {
	if r.started == nil {
		for _, c := range newChannel {
			m := fleet.Metric{Name: "mysql_global_status_commands_total", Labels: []fleet.Label{{Name: "command", Value: c}}}
			r.started = append(r.started, m.Key())
		}
	}
	sum := 0.0
	for _, key := range r.started {
		v, _ := r.Sample.Value(key)
		sum += v
	}
	due := sum != r.starts || len(r.replica.Channels) > 0 || r.lookIn <= 0
	r.starts = sum
	if r.lookIn--; due {
		r.lookIn = lookEvery
	}
	return due
}

// lookEvery is how many readings pass at most until a server that does not replicate is asked whether it does.
const lookEvery = 10

func (r *Reader) readLatency(ctx context.Context, c *mysql.Conn) error {
	return r.latency.readTotals(ctx, c, &r.Sample)
}

func (r *Reader) readQuantiles(ctx context.Context, c *mysql.Conn) error {
	return r.latency.readQuantiles(ctx, c, &r.Sample)
}

// countReplicas takes MariaDB's own count of its dump threads; other servers' process list has to be searched.
func (r *Reader) countReplicas(ctx context.Context, c *mysql.Conn) error {
	if n, ok := r.Sample.Value("mysql_global_status_slaves_connected"); ok && c.Server.MariaDB() {
		r.waits.setDumpers(int(n), &r.Sample)
		return nil
	}
	return r.waits.countDumpers(ctx, c, &r.Sample)
}

func (r *Reader) readVariables(ctx context.Context, c *mysql.Conn) (err error) {
	r.Variables, err = readVariables(ctx, c, &r.Sample)
	r.Fresh = err == nil
	s := c.Server
	r.Sample.Values[r.Sample.Position(fleet.Metric{Name: "mysql_version_info", Source: "SELECT VERSION()", Help: "1; the labels hold the version", Labels: []fleet.Label{
		{Name: "innodb_version", Value: r.Variables["innodb_version"]}, {Name: "version", Value: s.Version}, {Name: "version_comment", Value: s.Comment}}})] = 1
	return err
}

// readWaits asks what the threads do only when some thread besides Risso's runs.
func (r *Reader) readWaits(ctx context.Context, c *mysql.Conn) error {
	running, known := r.Sample.Value("mysql_global_status_threads_running")
	if known && running <= 1 {
		r.waits.none(&r.Sample)
		return nil
	}
	locks, _ := r.Sample.Value("mysql_global_status_innodb_row_lock_current_waits")
	err := r.waits.read(ctx, c, &r.Sample, locks)
	r.remember(time.Now())
	return err
}

// lockShare bounds what asking for locks may cost: the time until it is asked again is so many times as long as the answer took. A server
// with very many locks takes long to list them, and holds a latch for a part of it.
const lockShare = 20

// somebodyWaits says whether a thread was seen waiting for a lock, so that a server without such threads is spared the question. Appliers of
// replication are in no list of sessions that run a statement; InnoDB counts theirs as well.
func (r *Reader) somebodyWaits(mysql.Server) bool {
	rows, _ := r.Sample.Value("mysql_global_status_innodb_row_lock_current_waits")
	waits := rows+r.waits.counts["row_lock"]+r.waits.counts["metadata_lock"]+r.waits.counts["table_lock"] > 0
	if !waits {
		r.Locks = nil
	}
	return waits && !time.Now().Before(r.locksRest)
}

func (r *Reader) readLocks(ctx context.Context, c *mysql.Conn) (err error) {
	asked := time.Now()
	open := r.Transactions
	if !r.open.read {
		if open, _, err = transactionsNow(ctx, c); err != nil {
			return err
		}
	}
	r.Locks, _, err = lockWaits(ctx, c, 0, open, r.locked)
	if took := time.Since(asked); took > time.Second/lockShare {
		r.locksRest = asked.Add(took * lockShare)
	}
	return err
}

// Connected tells the reader that a new connection is in use: what depends on the server is queried again.
func (r *Reader) Connected() {
	r.innodb.byName = nil
	r.Locks, r.Transactions, r.locked = nil, nil, nil
	r.deadlocks = -1
	r.open.forget()
	r.latency.buckets = nil
	r.Variables = nil
	clear(r.status.Texts)
	r.lookIn, r.off = 0, 0
	r.watched, r.flushes = settingsReader{}, flushWatch{}
	for i := range r.groups {
		r.groups[i].retryAt, r.groups[i].gap, r.groups[i].asked = 0, nil, false
	}
}

// NeedsConnection reports whether a question that was denied is due again, at tick t. A session has the privileges on the whole server that
// its account had when it was opened, so that only a new one can find out whether they were granted.
func (r *Reader) NeedsConnection(t int64) bool {
	return slices.ContainsFunc(r.groups, func(g group) bool { return g.denied && g.gap != nil && t >= g.retryAt })
}

// Read reads all that is due at tick t (unix seconds) into the Sample, which is cleared first. An
// error means that the connection is useless; what was read before it is in the Sample. A
// question that the server refuses is no error but a gap.
func (r *Reader) Read(ctx context.Context, c *mysql.Conn, t int64) error {
	r.Sample.Clear()
	r.Fresh, r.Engine, r.Deadlocked = false, "", false
	for i := range r.groups {
		g := &r.groups[i]
		due := t%g.every == g.phase%g.every || !g.asked
		if !due || time.Now().Before(g.rest) || t < g.retryAt || !g.wanted(r, c.Server) {
			continue
		}
		g.asked = true
		start := time.Now()
		err := g.read(r, ctx, c)
		if g.pos == 0 {
			g.pos = 1 + r.Sample.Position(fleet.Metric{Name: "risso_collect_seconds", Labels: []fleet.Label{{Name: "group", Value: g.name}}, Unit: "seconds",
				Help: "how long the server took to answer, including the round trip", Source: "Risso"})
		}
		took := time.Since(start)
		if r.Sample.Values[g.pos-1] = took.Seconds(); g.extra {
			g.rest = start.Add(took * extraShare)
		}
		if err = r.settle(g, c, t, err); err != nil {
			return err
		}
	}
	r.takeSeen()
	r.metered.emit(&r.Sample, r.traffic)
	return nil
}

// Denied ends the reason of a gap that is one for want of a privilege.
const Denied = " is missing a privilege"

// settle turns a refusal into a gap and passes on what ends the connection.
func (r *Reader) settle(g *group, c *mysql.Conn, t int64, err error) error {
	if err == nil {
		g.gap, g.denied, g.failed = nil, false, 0
		return nil
	}
	class := mysql.ClassOf(err)
	g.denied = class == mysql.ClassPrivilege || class == mysql.ClassLogin
	if g.extra && slices.Contains([]mysql.Class{mysql.ClassPrivilege, mysql.ClassLogin, mysql.ClassMissing, mysql.ClassOther}, class) {
		g.settleExtra(class, t, err)
		return nil
	}
	switch class {
	case mysql.ClassPrivilege, mysql.ClassLogin:
		g.gap = &fleet.Trouble{What: g.what, Why: "the account " + c.Server.Account + Denied, Remedy: g.remedy(c.Server)}
	case mysql.ClassMissing:
		g.gap = &fleet.Trouble{What: g.what, Why: "this server does not have it: " + err.Error()}
	case mysql.ClassOther:
		g.gap = &fleet.Trouble{What: g.what, Why: err.Error()}
	default:
		return fmt.Errorf("read %s: %w", g.what, err)
	}
	g.retryAt = t + retryGap
	return nil
}

// settleExtra lets a question rest for longer and longer that only dashboards of others depend on: a server that took too long once may be
// faster soon, one that always does is left alone. What an account may not see is no gap.
func (g *group) settleExtra(class mysql.Class, t int64, err error) {
	const tell = 3 // failures in a row
	g.retryAt = t + retryGap<<min(g.failed, 6)
	g.failed++
	if g.gap = nil; class == mysql.ClassOther && g.failed >= tell {
		g.gap = &fleet.Trouble{What: g.what, Why: err.Error(), Remedy: "nothing: Risso asks again, at most once an hour, and no finding depends on it"}
	}
}

// Channels is the replication channels at the last reading; none where the server refused to tell them since.
func (r *Reader) Channels() []fleet.Channel {
	if r.refused(groupReplication) {
		return nil
	}
	return r.replica.Channels
}

// Sessions are those that ran a statement at the last reading; more says that there were others. The list is never changed.
func (r *Reader) Sessions() (list []Session, more bool) { return r.waits.sessions, r.waits.more }

// Texts are the status variables that are no numbers, as they last were.
func (r *Reader) Texts() map[string]string { return r.status.Texts }

// Role is the part that the server plays, by what it last showed.
func (r *Reader) Role() fleet.Role {
	size, _ := r.Sample.Value("mysql_global_status_wsrep_cluster_size")
	switch {
	case size > 0:
		return fleet.RoleGalera
	case len(r.replica.Channels) > 0:
		return fleet.RoleReplica
	case r.refused(groupReplication):
		return fleet.RoleUnread // it may be a replica, even one that others replicate from
	case r.waits.dumpers > 0:
		return fleet.RolePrimary
	}
	// Without PROCESS the threads that serve replicas are not seen, unless the server counts them itself.
	if _, counted := r.Sample.Value("mysql_global_status_slaves_connected"); !counted && r.refused(groupInnoDB) {
		return fleet.RoleUnread
	}
	return fleet.RoleStandalone
}

// refused reports whether the server refuses to answer a question.
func (r *Reader) refused(group string) bool {
	for i := range r.groups {
		if g := &r.groups[i]; g.name == group {
			return g.gap != nil
		}
	}
	return false
}

// Gaps is what could not be read, and what this server would show if it were configured to.
func (r *Reader) Gaps(s mysql.Server) []fleet.Trouble {
	var out []fleet.Trouble
	for i := range r.groups {
		if g := r.groups[i].gap; g != nil {
			out = append(out, *g)
		}
	}
	if !s.PerformanceSchema {
		out = append(out, fleet.Trouble{What: "statement latency", Why: "performance_schema is off on this server",
			Remedy: "add performance_schema=ON to the [mysqld] section of the option file and restart the server"})
	}
	if r.off > 0 {
		out = append(out, fleet.Trouble{What: digits.Counted(r.off, "InnoDB metric"), Why: "switched off on this server, as it is by default",
			Remedy: "SET GLOBAL innodb_monitor_enable = 'all'"})
	}
	return append(out, r.instrumentGap()...)
}

func (r *Reader) instrumentGap() []fleet.Trouble {
	n, ok := r.Sample.Value("risso_statements_total")
	if questions, q := r.Sample.Value("mysql_global_status_questions"); !ok || !q || n > 0 || questions < 100 {
		return nil
	}
	return []fleet.Trouble{{What: "statement latency", Why: "performance_schema is on, but its statement instruments are off",
		Remedy: "UPDATE performance_schema.setup_instruments SET ENABLED = 'YES', TIMED = 'YES' WHERE NAME LIKE 'statement/%'"}}
}

// countDisabled asks how many InnoDB metrics are switched off. An account that may not see them has that gap already.
func (r *Reader) countDisabled(ctx context.Context, c *mysql.Conn) error {
	r.off = 0
	err := c.Query(ctx, "SELECT /* risso: metrics switched off */ COUNT(*) FROM information_schema.INNODB_METRICS WHERE NOT ("+innodbEnabled(c.Server)+")", func(row []sqldriver.Value) error {
		r.off = int(whole(row[0]))
		return nil
	})
	if mysql.ClassOf(err) == mysql.ClassPrivilege {
		return nil
	}
	return err
}

// meterMetrics says what watching costs, as metrics of the watched server.
type meterMetrics struct{ pos []int }

func (m *meterMetrics) emit(s *fleet.Sample, t *mysql.Traffic) {
	if m.pos == nil {
		direction := func(d string) []fleet.Label { return []fleet.Label{{Name: "direction", Value: d}} }
		for _, metric := range []fleet.Metric{
			{Name: "risso_collect_queries_total", Counter: true, Help: "statements that Risso sent to this server", Source: "Risso"},
			{Name: "risso_collect_server_seconds_total", Counter: true, Unit: "seconds", Help: "time from sending each statement to its last row: an upper bound of the server's work", Source: "Risso"},
			{Name: "risso_collect_bytes_total", Labels: direction("received"), Counter: true, Unit: "bytes", Help: "bytes received from this server", Source: "Risso"},
			{Name: "risso_collect_bytes_total", Labels: direction("sent"), Counter: true, Unit: "bytes", Help: "bytes sent to this server", Source: "Risso"},
		} {
			m.pos = append(m.pos, s.Position(metric))
		}
	}
	s.Values[m.pos[0]] = float64(t.Queries.Load())
	s.Values[m.pos[1]] = time.Duration(t.Nanoseconds.Load()).Seconds()
	s.Values[m.pos[2]] = float64(t.Received.Load())
	s.Values[m.pos[3]] = float64(t.Sent.Load())
}
