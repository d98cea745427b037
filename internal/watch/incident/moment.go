// Package incident is the memory of what a server did second by second: moments, how they are written down, and the story
// that moments tell. It does no input or output; DESIGN.md says why it is as it is.
package incident

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/rissodb/risso/internal/blockers"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sqltext"
	"github.com/rissodb/risso/internal/watch/collect"
)

// Moment is what a server did in one second.
type Moment struct {
	Tick         int64              `json:"tick"`           // unix seconds
	Down         string             `json:"down,omitempty"` // why nothing could be read: "refuses connections"
	Connected    int                `json:"connected"`      // connections that the server has
	Sleeping     int                `json:"sleeping"`       // connections that run nothing
	More         int                `json:"more,omitempty"` // sessions that were left out
	Sessions     []Session          `json:"sessions"`       // the longest first
	Transactions []read.Transaction `json:"transactions"`
	Locks        []read.LockWait    `json:"locks"`
	Blockers     []Blocker          `json:"blockers"` // the roots of Locks, worst first
	Numbers      map[string]float64 `json:"numbers"`  // of the server and its host, by name; what is not known is left out
	Deadlock     *Deadlock          `json:"deadlock,omitempty"`
	report       string             // the section of InnoDB's status about the deadlock of this second
}

// Session is a session that runs a statement, or is idle in a transaction or in others' way.
type Session struct {
	ID           int64   `json:"id"`
	User         string  `json:"user"`
	Host         string  `json:"host"`
	Schema       string  `json:"schema,omitempty"`
	Command      string  `json:"command"` // Query; Sleep: it is idle
	State        string  `json:"state,omitempty"`
	Wait         string  `json:"wait"`    // what it was found doing: running, commit, row_lock, metadata_lock … or idle
	Seconds      float64 `json:"seconds"` // of the statement, or of idling
	Statement    string  `json:"statement,omitempty"`
	Transaction  float64 `json:"transaction,omitempty"`   // seconds since it began; 0: none, or not known
	Trx          string  `json:"trx,omitempty"`           // number of the transaction
	RowsLocked   int64   `json:"rows_locked,omitempty"`   // by the transaction
	RowsModified int64   `json:"rows_modified,omitempty"` // by the transaction
	Blocker      int64   `json:"blocker,omitempty"`       // connection that it waits for
}

// Blocker is a session at the root of lock waits, in words.
type Blocker struct {
	ID     int64  `json:"id"`
	Blocks int    `json:"blocks"` // how many wait for it, directly or not
	What   string `json:"what"`
	Ends   string `json:"ends,omitempty"` // the statement that ends it
}

// Limits of a moment.
const (
	maxSessions  = 200
	maxLocks     = 300
	maxStatement = read.MomentText
)

// Idle is the wait of a session that runs nothing.
const Idle = "idle"

// Keeping says which literals of statements are kept.
type Keeping struct {
	Redact bool // none
	Thrift bool // of less: their statements ran for a second, not for a tenth
}

// Of is the moment of a tick; host is numbers of its host.
func Of(v collect.View, host map[string]float64, k Keeping) *Moment {
	m := &Moment{Tick: v.Tick, Numbers: numbersOf(v)}
	maps.Copy(m.Numbers, host)
	if !v.Up {
		m.Down = cmp.Or(v.Down.Why, "the server does not answer")
		m.normal()
		return m
	}
	idle := map[int64]*read.Blocker{}
	for i := range v.Open {
		if b := v.Open[i].Idle; b != nil {
			idle[v.Open[i].Session] = b
		}
	}
	m.Locks = slices.Clone(v.Locks[:min(len(v.Locks), maxLocks)])
	for i := range m.Locks {
		b := &m.Locks[i].Blocker
		b.Statement = clip(b.Statement)
		if b.ID != 0 && b.Idle() && !m.Locks[i].Maybe {
			idle[b.ID] = b
		}
	}
	for _, s := range v.Sessions {
		m.Sessions = append(m.Sessions, Session{ID: s.ID, User: s.User, Host: s.Host, Schema: s.Schema, Command: "Query", State: s.State, Wait: s.Wait, Seconds: math.Max(s.Seconds, 0), Statement: clip(s.Text), Blocker: s.BlockerID})
		delete(idle, s.ID)
	}
	running := len(m.Sessions)
	for id, b := range idle {
		m.Sessions = append(m.Sessions, Session{ID: id, User: b.User, Host: b.Host, Command: cmp.Or(b.Command, "Sleep"), State: b.State, Wait: Idle, Seconds: math.Max(b.Seconds, 0), Statement: clip(b.Statement)})
	}
	connected, _ := v.Sample.Value("mysql_global_status_threads_connected")
	m.Connected = int(connected)
	m.Sleeping = max(m.Connected-running, 0)
	slices.SortFunc(m.Sessions, func(a, b Session) int { return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.ID, b.ID)) })
	if n := len(m.Sessions) - maxSessions; n > 0 {
		m.More, m.Sessions = n, m.Sessions[:maxSessions]
	}
	if v.More {
		m.More++
	}
	m.Transactions = slices.Clone(v.Open)
	if v.Deadlock { // else the latest one is an old one
		m.report = deadlockSection(v.Engine)
	}
	if k.Redact {
		m.Redact()
	}
	m.normal()
	if k.Thrift {
		m.hidePassing(passingThrift)
	} else {
		m.hidePassing(passing)
	}
	return m
}

// How long a statement must have run for its literals to be kept, in seconds.
const (
	passing       = 0.1
	passingThrift = 1
)

// hidePassing leaves out the literals of statements that just pass by: they were seen by chance, and would take most of the space. Those that
// wait for others, or keep others waiting, are not among them.
func (m *Moment) hidePassing(shortest float64) {
	for i := range m.Sessions {
		s := &m.Sessions[i]
		least := s.Seconds
		if shortest == passingThrift && least == math.Trunc(least) { // MySQL may tell whole seconds by its clock: it may have run for nearly one less
			least--
		}
		if least < shortest && s.Blocker == 0 && s.Wait != Idle && !slices.ContainsFunc(m.Blockers, func(b Blocker) bool { return b.ID == s.ID }) {
			s.Statement = string(sqltext.Redact(nil, []byte(s.Statement)))
		}
	}
}

func clip(s string) string { return s[:min(len(s), maxStatement)] }

// normal fills in what follows from the rest.
func (m *Moment) normal() {
	open, waits := map[int64]read.Transaction{}, map[int64]*read.LockWait{}
	for _, t := range m.Transactions {
		open[t.Session] = t
	}
	for i := range m.Locks {
		if w := &m.Locks[i]; !w.Maybe {
			waits[w.Waiter] = w
		}
	}
	for i := range m.Sessions {
		s := &m.Sessions[i]
		if t, ok := open[s.ID]; ok && s.ID != 0 {
			s.Transaction, s.Trx, s.RowsLocked, s.RowsModified = t.Seconds, t.Trx, t.RowsLocked, t.RowsModified
		}
		if w := waits[s.ID]; w != nil {
			s.Blocker = cmp.Or(s.Blocker, w.Blocker.ID)
			if s.Wait == "running" || s.Wait == "other" {
				s.Wait = waitOf(w.Kind)
			}
		}
	}
	m.Blockers = []Blocker{}
	for _, root := range blockers.Roots(m.Locks) {
		w := root.Wait
		m.Blockers = append(m.Blockers, Blocker{ID: w.Blocker.ID, Blocks: len(root.Waiters), Ends: blockers.Kill(&w), What: rootWords(root)})
	}
	m.Sessions, m.Transactions, m.Locks = noNil(m.Sessions), noNil(m.Transactions), noNil(m.Locks)
	if m.report != "" {
		m.Deadlock = ParseDeadlock(m.report)
		m.Deadlock.Tick = m.Tick
	}
}

// waitOf is the class of a wait for a lock: no state of a session shows a row lock.
func waitOf(k read.LockKind) string {
	switch k {
	case read.LockRow:
		return "row_lock"
	case read.LockUser:
		return "table_lock"
	}
	return "metadata_lock"
}

// rootWords says who keeps how many waiting, for what, and what it does.
func rootWords(root blockers.Root) string {
	w := root.Wait
	who := blockers.Session(&w.Blocker)
	if w.Maybe {
		who = "somebody whom the server does not name, maybe " + who + ","
	}
	s := root.Keeps(who)
	if w.Blocker.ID != 0 {
		s += ": " + blockers.Doing(&w.Blocker)
	}
	return s
}

func noNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// Redact leaves out the literals of statements, and the keys of locked records.
func (m *Moment) Redact() {
	hide := func(s *string) {
		if *s != "" {
			*s = string(sqltext.Redact(nil, []byte(*s)))
		}
	}
	for i := range m.Sessions {
		hide(&m.Sessions[i].Statement)
	}
	for i := range m.Locks {
		w := &m.Locks[i]
		hide(&w.Blocker.Statement)
		w.HideKey()
	}
	if m.report != "" {
		m.report = redactReport(m.report)
	}
	if m.Deadlock != nil {
		m.Deadlock = m.Deadlock.Redacted()
	}
	if m.Blockers != nil { // their words are made of what is redacted now
		m.normal()
	}
}

// Blocked is how many sessions wait for a lock that another one has.
func (m *Moment) Blocked() int {
	n := map[int64]bool{}
	for i := range m.Locks {
		n[m.Locks[i].Waiter] = true
	}
	return len(n)
}

// Running is how many sessions run a statement.
func (m *Moment) Running() (n int) {
	for i := range m.Sessions {
		if m.Sessions[i].Wait != Idle {
			n++
		}
	}
	return n + m.More
}

// InLocks is how many sessions wait for a lock.
func (m *Moment) InLocks() (n int) {
	for i := range m.Sessions {
		switch m.Sessions[i].Wait {
		case "row_lock", "metadata_lock", "table_lock":
			n++
		}
	}
	return max(n, m.Blocked())
}

// number is a number of a moment, and where it comes from.
type number struct {
	key   string
	rate  bool     // it is the growth of a counter
	from  []string // the first that there is
	words string   // its name for people
	unit  string
}

const statusPrefix, engine = "mysql_global_status_", "mysql_info_schema_innodb_metrics_"

// numbers are those of a moment. A new one is added at the end: what is on disk knows them by their place.
var numbers = []number{
	{"questions_per_second", true, []string{statusPrefix + "questions"}, "questions per second", ""},
	{"commits_per_second", true, []string{statusPrefix + `commands_total{command="commit"}`}, "commits per second", ""},
	{"rows_read_per_second", true, []string{statusPrefix + `innodb_row_ops_total{operation="read"}`}, "rows read per second", ""},
	{"rows_inserted_per_second", true, []string{statusPrefix + `innodb_row_ops_total{operation="inserted"}`}, "rows inserted per second", ""},
	{"threads_running", false, []string{statusPrefix + "threads_running"}, "threads running", ""},
	{"threads_connected", false, []string{statusPrefix + "threads_connected"}, "connections", ""},
	{"row_lock_waits", false, []string{statusPrefix + "innodb_row_lock_current_waits"}, "transactions that wait for row locks", ""},
	{"deadlocks", true, []string{statusPrefix + "innodb_deadlocks", engine + "lock_lock_deadlocks_total"}, "deadlocks per second", ""},
	{"history_list", false, []string{statusPrefix + "innodb_history_list_length", engine + "transaction_trx_rseg_history_len"}, "history list length", ""},
	{"dirty_pages", false, []string{statusPrefix + "buffer_pool_dirty_pages"}, "dirty pages", ""},
	{"buffer_pool_waits", true, []string{statusPrefix + "innodb_buffer_pool_wait_free"}, "waits for a free page per second", ""},
	{"redo_bytes_per_second", true, []string{statusPrefix + "innodb_os_log_written"}, "redo log written", "bytes/s"},
	{"checkpoint_age", false, []string{statusPrefix + "innodb_checkpoint_age", engine + "log_log_lsn_checkpoint_age"}, "checkpoint age", "bytes"},
	{"replication_lag", false, nil, "replication lag", "s"},
	{"cpu_busy", false, nil, "host: processors busy", "%"},
	{"io_pressure", false, nil, "host: stalled by input and output", "%"},
	{"statements_per_second", true, []string{"risso_statements_total"}, "statements finished per second", ""},
}

// numbersOf picks the numbers of a tick.
func numbersOf(v collect.View) map[string]float64 {
	out := map[string]float64{}
	for _, n := range numbers {
		for _, key := range n.from {
			x, ok := 0.0, false
			if n.rate {
				x, ok = v.Rate(key)
			} else {
				x, ok = v.Sample.Value(key)
			}
			if ok && v.Up {
				out[n.key] = math.Round(x*10) / 10
				break
			}
		}
	}
	if v.Up {
		for i, metric := range v.Sample.Metrics {
			if x := v.Sample.Values[i]; metric.Name == "mysql_slave_status_seconds_behind_master" && !math.IsNaN(x) {
				out["replication_lag"] = max(out["replication_lag"], x)
			}
		}
	}
	return out
}
