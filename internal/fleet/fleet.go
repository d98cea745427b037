// Package fleet is the vocabulary that every other package speaks: what a
// watched instance is, what happened to it and what is wrong with it. It does
// no input or output and imports nothing of Risso.
package fleet

import (
	"fmt"
	"strings"
	"time"
)

// Kind is the kind of an Instance.
type Kind string

// The kinds of instance.
const (
	KindServer Kind = "server" // a database server
	KindHost   Kind = "host"   // a Linux host, with or without a server on it
)

// Flavour is the family that a server belongs to; families differ in statements, tables and variables.
type Flavour string

// The flavours that Risso tells apart.
const (
	FlavourUnknown Flavour = ""
	FlavourMySQL   Flavour = "MySQL"
	FlavourMariaDB Flavour = "MariaDB"
	FlavourPercona Flavour = "Percona Server"
)

// Role is the part a server plays in replication.
type Role string

// The roles.
const (
	RoleUnknown    Role = ""           // not read yet
	RoleUnread     Role = "unknown"    // the account may not read what tells it
	RoleStandalone Role = "standalone" // no replica seen, no source configured
	RolePrimary    Role = "primary"    // others replicate from it, it replicates from none
	RoleReplica    Role = "replica"    // it replicates from another server
	RoleGalera     Role = "galera"     // a member of a Galera cluster
)

// Instance is one thing that Risso watches. ID never changes and is safe in a
// file name and a URL path; Name is what people call it.
type Instance struct {
	ID      string  `json:"id"`
	Name    string  `json:"name"`
	Kind    Kind    `json:"kind"`
	Address string  `json:"address"` // host:port or socket path; never with a password
	Flavour Flavour `json:"flavour,omitempty"`
	Version string  `json:"version,omitempty"`
	Role    Role    `json:"role,omitempty"`
	HostID  string  `json:"host_id,omitempty"` // the host it runs on, if Risso watches it as well
	Group   string  `json:"group,omitempty"`   // the group of servers that it belongs to, as the config file says
}

// Server is what the instance says it is, if it is a server.
func (i Instance) Server() Server {
	return Server{Flavour: i.Flavour, Version: i.Version, Number: ParseVersion(i.Version)}
}

// Severity orders findings and events: the higher, the sooner a person should look at it.
type Severity int

// The severities, as Nagios orders them.
const (
	SeverityInfo Severity = iota
	SeverityWarning
	SeverityCritical
)

// String is the word for a severity: info, warning or critical.
func (s Severity) String() string {
	switch s {
	case SeverityWarning:
		return "warning"
	case SeverityCritical:
		return "critical"
	default:
		return "info"
	}
}

// MarshalText writes a severity as its word.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the words that MarshalText writes; unknown words are info.
func (s *Severity) UnmarshalText(b []byte) error {
	switch string(b) {
	case "warning":
		*s = SeverityWarning
	case "critical":
		*s = SeverityCritical
	default:
		*s = SeverityInfo
	}
	return nil
}

// EventKind is a stable word for what happened.
type EventKind string

// The kinds of event. They are marks in the charts.
const (
	EventVariable   EventKind = "variable"   // a global variable changed: Subject, Old, New
	EventRestart    EventKind = "restart"    // the server was restarted
	EventVersion    EventKind = "version"    // the version or flavour changed: Old, New
	EventDown       EventKind = "down"       // collection stopped: Text says why
	EventUp         EventKind = "up"         // collection works again
	EventReset      EventKind = "reset"      // counters went backwards without a restart (FLUSH STATUS)
	EventClock      EventKind = "clock"      // the server's clock jumped
	EventRole       EventKind = "role"       // the replication role changed: Old, New
	EventStore      EventKind = "store"      // something about Risso's own files: full disk, damaged block
	EventObserver   EventKind = "observer"   // Risso itself started or stopped
	EventPlan       EventKind = "plan"       // a class of statements has another plan: Subject is its ID, Old and New are plan IDs
	EventStatements EventKind = "statements" // something about collecting statements: the server's table of digests is full
	EventFailover   EventKind = "failover"   // the primary of a group was replaced, or something stands against it: Subject is the group
	EventAction     EventKind = "action"     // somebody did something through Risso: New is the token's name, Subject what it was done to
	EventAlert      EventKind = "alert"      // a receiver of alerts takes no messages, or does again: Subject is its name
	EventFinding    EventKind = "finding"    // a finding began or ended: Subject is its ID; Old "open" at its end, New "open" at its begin
	EventIncident   EventKind = "incident"   // the time around a stall or a critical finding is kept: Subject is the incident's ID
	EventDeploy     EventKind = "deploy"     // somebody says that something was deployed: New is the token's or account's name
	EventNote       EventKind = "note"       // somebody notes something else: New is the token's or account's name
	EventProtect    EventKind = "protect"    // a backup, drill, mirror or the like began, ended, failed or is overdue: Subject is the kind of job
)

// Event is something that happened to an instance at a moment.
type Event struct {
	ID       int64     `json:"id"` // given by the store, ascending
	Time     time.Time `json:"time"`
	Instance string    `json:"instance"` // instance ID; empty for Risso itself
	Kind     EventKind `json:"kind"`
	Severity Severity  `json:"severity"`
	Subject  string    `json:"subject,omitempty"` // such as the variable's name
	Old      string    `json:"old,omitempty"`     // what it was before
	New      string    `json:"new,omitempty"`     // what it is from then on
	Text     string    `json:"text"`              // one sentence for a person
}

// AdvicePrefix begins the ID of a finding that advice makes among what is wrong now: advice.schema.autoinc.
const AdvicePrefix = "advice."

// Finding is a current problem, in words, with its remedy.
type Finding struct {
	ID       string    `json:"id"`                // stable word such as "repl.stopped"
	Subject  string    `json:"subject,omitempty"` // tells findings of one ID apart: the channel, the disk, the blocking connection
	Severity Severity  `json:"severity"`
	Since    time.Time `json:"since,omitzero"` // zero: unknown
	Trouble            // What is one sentence: what, how much, since when
	Chart    string    `json:"chart,omitempty"` // the chart on the server page that shows it
	Value    float64   `json:"value,omitempty"` // how bad it is, in the finding's own measure: the larger, the worse; 0: it has none
	Last     time.Time `json:"last,omitzero"`   // when it last held, if it does not hold now and counts as over only when it stays away; zero: it holds
	Case     string    `json:"case,omitempty"`  // what exactly it is about, where that can change while it holds: the error at which a channel stopped
}

// Other says whether f is about something else than g, an earlier state of the same finding, and no less bad: a channel that an error
// stopped went on, and stopped at another one.
func (f Finding) Other(g Finding) bool {
	return f.Severity >= g.Severity && f.Case != "" && g.Case != "" && f.Case != g.Case
}

// Worse says whether f is worse than g, an earlier state of the same finding.
func (f Finding) Worse(g Finding) bool {
	return f.Severity > g.Severity || f.Severity == g.Severity && f.Value > g.Value
}

// Channel is a replication channel as its replica tells it, in the words of SHOW REPLICA STATUS.
type Channel struct {
	Name       string       `json:"name"`                // empty for the only one
	Source     string       `json:"source"`              // host:port that it replicates from
	SourceID   string       `json:"source_id,omitempty"` // server_uuid of the source; empty if it never answered, and on MariaDB
	IORunning  string       `json:"io_running"`          // Yes, No, Connecting, Preparing
	SQLRunning string       `json:"sql_running"`         // Yes, No
	GTID       bool         `json:"gtid"`                // it finds its position by GTID
	Log        string       `json:"log,omitempty"`       // the source's binary log up to which it has applied
	Pos        int64        `json:"pos,omitempty"`       // and the position there, in bytes
	Unapplied  int64        `json:"unapplied,omitempty"` // bytes of the source's log that were received and not applied; -1: in other logs, so not known
	IO         ReplicaError `json:"io"`                  // why the thread that receives stopped, or cannot connect
	SQL        ReplicaError `json:"sql"`                 // why the thread that applies stopped; where several work, the one that failed first
}

// Error is the error that keeps the channel from going on: that of the thread that applies, or else of the one that receives.
func (c Channel) Error() ReplicaError {
	if c.SQL.Text != "" {
		return c.SQL
	}
	return c.IO
}

// ReplicaError is an error at which replication stopped, and where. What is unknown is empty.
type ReplicaError struct {
	Number int    `json:"number,omitempty"` // as in package errno; 0: no error, or one without a number
	Text   string `json:"text,omitempty"`
	GTID   string `json:"gtid,omitempty"`  // of the transaction that cannot be applied
	Log    string `json:"log,omitempty"`   // the source's binary log in which it failed
	Pos    int64  `json:"pos,omitempty"`   // and the position there, in bytes
	Table  string `json:"table,omitempty"` // schema.table that it is about
	Key    string `json:"key,omitempty"`   // the unique key that a row is in twice, by name
}

// Case tells the errors of a channel apart: by their number, and the transaction or the place in the source's log.
func (e ReplicaError) Case() string {
	switch {
	case e.GTID != "":
		return fmt.Sprintf("error %d in %s", e.Number, e.GTID)
	case e.Log != "":
		return fmt.Sprintf("error %d at %s:%d", e.Number, e.Log, e.Pos)
	}
	return fmt.Sprintf("error %d", e.Number)
}

// Words says at what a channel stopped, without the server's text: the number, the transaction, the table and the key; "" if it has no number.
func (e ReplicaError) Words() string {
	if e.Number == 0 {
		return ""
	}
	words := fmt.Sprintf("error %d", e.Number)
	for _, part := range [][2]string{{" in transaction ", e.GTID}, {" on table ", e.Table}, {", key ", e.Key}} {
		if part[1] != "" {
			words += part[0] + part[1]
		}
	}
	return words
}

// Slug turns a name into an ID: lower-case letters, digits, dots, dashes and underscores,
// everything else a dash. It is never empty and never starts with a dot.
func Slug(name string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			b.WriteRune(r)
		default:
			b.WriteByte('-')
		}
	}
	s := strings.Trim(b.String(), "-.")
	if s == "" {
		return "unnamed"
	}
	return s
}
