package alter

import (
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/mysql/read"
)

// Facts are what a server says about a table that is to be altered, and about itself.
type Facts struct {
	Server    mysql.Server
	Variables map[string]string // global ones, by name
	Session   map[string]string // those of mysql.Server.AlterVariables, as sessions have them

	Table      define.Table
	RowFormat  string
	Rows       int64 // estimated
	Data       int64 // bytes of the rows, estimated
	Index      int64 // bytes of secondary indexes, estimated
	File       int64 // bytes of its files; 0: not known
	Unused     int64 // bytes of them that hold nothing, estimated
	Versions   int   // instant changes that it has had (TOTAL_ROW_VERSIONS); -1: not known, or there are none
	Schema     string
	Triggers   []define.Definition
	Neighbours []Neighbour
	Views      []View // that select from it; only for a statement that TakesNames

	Login    Login
	Place    Place
	Replicas Replicas
	Traffic  Traffic
	InTheWay []Holder
	Gaps     []fleet.Trouble // what could not be learned
}

// Size is how many bytes the rows and indexes take. The server's estimates may be those of before rows came: then its files tell.
func (f *Facts) Size() int64 {
	size := f.Data + f.Index
	if used := f.File - f.Unused; used > size+size/2 && used > 4<<20 {
		return used
	}
	return size
}

// Neighbour is a table that decides with what may be done: a foreign key joins them, or the statement names it.
type Neighbour struct {
	Name   mysql.TableName
	Create string
	Schema string // CREATE DATABASE of its schema
	Parent bool   // the table has a foreign key to it
	Child  bool   // it has a foreign key to the table
	Named  bool   // the statement names it
}

// Login is how tools reach the server.
type Login struct {
	Host   string // of a server that is reached by its socket: 127.0.0.1
	Port   int
	Socket string
	User   string
	File   string // the option file with the password, as a shell expands it
}

// Place is where the server's files are, as far as it can be seen from here.
type Place struct {
	Here     bool   // the server runs on this machine
	DataDir  string // of the server
	DataFree int64  // bytes; -1: not known
	TmpDir   string // where ALTER TABLE sorts
	TmpFree  int64  // -1: not known
	SameDisk bool   // both are on one file system
}

// Replicas are those that follow the server.
type Replicas struct {
	Addresses []string
	Known     bool
	TwoPhase  bool // they begin with an ALTER TABLE when their primary does (MariaDB, binlog_alter_two_phase)
	Replica   bool // the server is itself one
	Cluster   bool // Galera or Group Replication
}

// Traffic is what goes on with the table now.
type Traffic struct {
	Known    bool
	Seconds  float64 // for which it was watched
	Uses     float64 // statements that used the table, each second
	RowReads float64 // rows read each second
	RowEdits float64 // rows written each second
}

// Holder is a session that a metadata lock of the table has, or may have, so that the ALTER TABLE waits for it, or that keeps it away otherwise.
type Holder struct {
	Session read.Blocker `json:"session"`
	Mode    string       `json:"mode,omitempty"`   // of the lock
	Maybe   bool         `json:"maybe,omitempty"`  // the server does not say; the session has an open transaction
	Backup  bool         `json:"backup,omitempty"` // it locks the whole server against changes of definitions
}

// Attempt is a way that was tried on the empty clone.
type Attempt struct {
	Algorithm string `json:"algorithm"`         // ALGORITHM=
	Lock      string `json:"lock,omitempty"`    // LOCK=
	Number    int    `json:"error,omitempty"`   // the server's; 0: it did it
	Refused   string `json:"refused,omitempty"` // in the server's words
}

// Effect is what an ALTER TABLE did to the clone's files.
type Effect struct {
	Rebuilt bool     // the table was written anew, or one of its partitions
	Built   []string // indexes that were built in a table that was not
}

// Answer is what an empty clone of the table on a server of the same kind answered.
type Answer struct {
	Tried     bool
	On        string // flavour and version of that server; "the server itself"
	Exact     bool   // of the same version
	Attempts  []Attempt
	Algorithm string // the cheapest that it took; "" none
	Lock      string // the weakest lock that it took with it; "" where none may be named
	Unnamed   bool   // it takes no ALGORITHM with this statement: it did what it always does
	Effect    Effect
	Error     error  // it refuses the statement, whatever the algorithm
	After     string // the table's definition afterwards
	Notes     []string
}

// Sample is an ALTER TABLE timed on parts of the real rows.
type Sample struct {
	Parts      []Part
	Reads      []float64 // seconds that the same reading of the same rows took on the sandbox and on the server
	Elsewhere  bool      // the server is on another machine
	Fails      string    // what the server said to the change of these rows; "" it did it
	Unmeasured string    // why it is not measured; "" it is
	MorePool   float64   // by how much the sandbox has more than its share of the server's memory for pages, which cannot be cut further; 0: not known
}

// Part is some of the rows, in a table of their own that was changed.
type Part struct {
	Rows    int64
	Bytes   int64 // data and indexes before
	Grown   int64 // and afterwards
	Seconds float64
}
