package advise

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
)

// Server is what was read of a server as a whole.
type Server struct {
	mysql.Server
	Now       time.Time          // by the server's clock, in UTC
	Variables map[string]string  // global variables; nil: they could not be read
	Status    map[string]float64 // global status by its names in small letters, of what is a number; nil: it could not be read
	Texts     map[string]string  // global status that is no number

	Recovery    time.Duration // for how long a restore must be able to roll forward; 0: nobody said
	Memory      float64       // bytes that the server may use: its machine's, or its control group's; 0: unknown
	Channels    []Channel     // through which it replicates; empty also if they could not be read
	Replicas    int           // that are connected; 0 also if unknown
	TimeZones   int           // time zones by name; -1: unknown
	Certificate time.Time     // when its TLS certificate ends; zero: unknown, or there is none
	Tables      Totals        // of all that were looked at
	Whole       bool          // all its tables were looked at, not only some that were asked for

	// References are the foreign keys that refer to a table. On a server that ignores letters' case in names they are in small letters.
	References map[mysql.TableName][]Reference
	Hinted     map[string]string // where a hint names an index: its name in small letters to what has the hint
	Blind      string            // what of foreign keys and hints the account may not see, so that an index may be needed; "" if it sees all
	Views      []View            // that do not work
	Programs   []Program
	Accounts   map[string]bool // user@host; nil: they could not be read

	Runtime  []RuntimeSetting // global variables that were set while it runs
	Counting Counting         // of how indexes are used

	Missing []fleet.Trouble // what could not be read, so that nothing was looked for in it
}

// Channel is a replication channel of the server.
type Channel struct {
	Name, Source string
	GTID         bool // it finds its position by GTID

	SourceUUID, SourceID string // server_uuid and server_id of the source; "" if they are not told
}

// Totals are sums over all tables that were looked at.
type Totals struct {
	Data, Index float64        // bytes
	Engines     map[string]int // how many tables, by engine
}

// View is a view that does not work.
type View struct {
	mysql.TableName
	Fault string // in the server's words
}

// Program is a stored program, or a view, as far as it depends on others.
type Program struct {
	Kind     string // view, procedure, function, trigger, event
	Schema   string
	Name     string
	Definer  string // user@host
	Invoker  bool   // it runs with the rights of whoever calls it
	Disabled string // of an event that does not run: DISABLED, SLAVESIDE_DISABLED; "" if it is enabled
	Orphan   bool   // its schema does not exist
}

// Reference is a foreign key of another table, or of the same, as the table sees it to which it refers.
type Reference struct {
	define.ForeignKey
	Table mysql.TableName // that has it
}

// Table is what was read of a table. Sizes are bytes, and estimates of the server.
type Table struct {
	define.Table
	Rows       float64
	Data       float64 // of the clustered index, or of the rows
	Next       float64 // the next AUTO_INCREMENT value; 0: it has none
	RowFormat  string  // as the server says it: Dynamic
	Merge      string  // the MERGE table that it is a part of, or is itself; "" none
	Created    time.Time
	Bytes      map[string]float64 // of each index, by its name, where the server tells it
	Different  map[string]float64 // different values of the first part of each index, by its name, where InnoDB's statistics tell it
	Unmeasured bool               // there are no statistics of it that stay
	Partitions []Partition        // in their order
	Use        *Use               // of its indexes; nil: not known
	Tested     map[string]bool    // whether the values of columns differ, by their names separated by commas, where somebody tested it
}

// Partition is a partition of a table.
type Partition struct {
	Method     string // RANGE, RANGE COLUMNS, LIST …
	Expression string
	Name       string
	Bound      string // VALUES LESS THAN; MAXVALUE
	Rows       float64
}

// name is the table's name.
func (t *Table) name() mysql.TableName { return mysql.TableName{Schema: t.Schema, Name: t.Name} }

// object is how findings name the table.
func (t *Table) object() string { return t.Schema + "." + t.Name }

// primary returns the primary key, or nil.
func (t *Table) primary() *define.TableKey {
	i := slices.IndexFunc(t.Keys, func(k define.TableKey) bool { return k.Name == "PRIMARY" })
	if i < 0 {
		return nil
	}
	return &t.Keys[i]
}

// clustered is the index that InnoDB keeps the rows in: the primary key, or the first unique index over whole columns that are never NULL
// (MySQL manual, "Clustered and Secondary Indexes"); nil if there is neither.
func (t *Table) clustered() *define.TableKey {
	if p := t.primary(); p != nil {
		return p
	}
	if i := implicitKey(t); i >= 0 {
		return &t.Keys[i]
	}
	return nil
}

// innodb reports whether it is a table of InnoDB.
func (t *Table) innodb() bool { return strings.EqualFold(t.Engine, "InnoDB") }

// alter begins a statement that changes the table.
func (t *Table) alter() string { return "ALTER TABLE " + t.name().String() + " " }

// referencesTo are the foreign keys that refer to a table.
func (s *Server) referencesTo(t mysql.TableName) []Reference {
	if list := s.References[t]; list != nil {
		return list
	}
	return s.References[mysql.TableName{Schema: strings.ToLower(t.Schema), Name: strings.ToLower(t.Name)}]
}

// text is a variable's value, "" if there is none.
func (s *Server) text(variable string) string { return s.Variables[variable] }

// on reports whether a variable is ON.
func (s *Server) on(variable string) bool {
	v := s.Variables[variable]
	return v == "ON" || v == "1" || v == "YES"
}

// number is a variable's value; false if it is none.
func (s *Server) number(variable string) (float64, bool) {
	v, err := strconv.ParseFloat(s.Variables[variable], 64)
	return v, err == nil
}

// status is a counter's value, 0 if there is none.
func (s *Server) status(name string) float64 { return s.Status[name] }

// counts reports whether the server has all of some counters.
func (s *Server) counts(names ...string) bool {
	return !slices.ContainsFunc(names, func(n string) bool { _, ok := s.Status[n]; return !ok })
}

// uptime is for how long the server runs, and started when it was started; zero: unknown.
func (s *Server) uptime() time.Duration { return time.Duration(s.status("uptime")) * time.Second }

func (s *Server) started() (t time.Time) {
	if up := s.uptime(); up > 0 {
		return s.Now.Add(-up).Truncate(time.Second)
	}
	return t
}

// galera reports whether the server is a member of a Galera cluster.
func (s *Server) galera() bool {
	return s.on("wsrep_on") && s.text("wsrep_provider") != "" && s.text("wsrep_provider") != "none"
}

// logs reports whether the server writes a binary log.
func (s *Server) logs() bool { return s.on("log_bin") }
