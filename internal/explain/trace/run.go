package trace

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// Connection is one row of the process list, as performance_schema.threads has it.
type Connection struct {
	ID      int64   `json:"id"` // as shown by SHOW PROCESSLIST and CONNECTION_ID()
	Thread  uint64  `json:"thread_id"`
	User    string  `json:"user,omitempty"`
	Host    string  `json:"host,omitempty"`
	DB      string  `json:"db,omitempty"`
	Command string  `json:"command,omitempty"`
	State   string  `json:"state,omitempty"`
	Info    string  `json:"info,omitempty"`
	Seconds float64 `json:"seconds"` // since it entered its current state

	Instrumented bool `json:"instrumented"`
	History      bool `json:"history"`
}

// Options say what to trace.
type Options struct {
	Target     mysql.Target
	Connection int64 // processlist ID
	For        time.Duration
	Enable     *Wanted // nil: change nothing on the server
	StateDir   string  // where the journal of changed settings is
	// Say gets a sentence at each step that a person should know of. Nil: silence.
	Say func(string)
	// Progress is called at every poll with how many events there are. Nil: silence.
	Progress func(elapsed time.Duration, events int)
}

// Cost is the load that tracing put on the server.
type Cost struct {
	Queries int64   `json:"queries"`
	Seconds float64 `json:"seconds"` // from sending each statement to its last row
	Bytes   int64   `json:"bytes"`   // bytes in both directions
	Polls   int     `json:"polls"`
}

// Ring is how many events of one kind the server keeps for all connections.
type Ring struct {
	Table string `json:"table"`
	Rows  int    `json:"rows"`
}

// Trace is what one connection did.
type Trace struct {
	Server        string            `json:"server"` // flavour and version
	Connection    Connection        `json:"connection"`
	After         *Connection       `json:"after,omitempty"` // the connection at the end of the trace, if it was still there
	Began         time.Time         `json:"began"`
	Seconds       float64           `json:"seconds"` // how long it was watched
	Ended         string            `json:"ended"`   // why it ended: time (time was up), connection (it was closed), full (200,000 events), interrupted
	Zero          uint64            `json:"zero"`    // beginning of the trace, in picoseconds since the server started
	Now           uint64            `json:"now"`     // end of the trace, in the same unit
	Events        []Event           `json:"events"`
	Missing       uint64            `json:"missing"` // events that happened but were not read; NewReport counts them
	Totals        []Total           `json:"totals"`  // the server's own counters, most expensive first
	Rings         []Ring            `json:"rings"`
	LockWaits     []LockWait        `json:"lock_waits"`   // locks that the connection was observed waiting for
	NotRecorded   []string          `json:"not_recorded"` // what is switched off, in words
	Changed       []string          `json:"changed"`      // statements run because of Enable
	SQLTextLength int               `json:"sql_text_length"`
	Nested        uint64            `json:"nested_lost"` // statements nested too deeply for performance_schema_max_statement_stack
	Bodies        map[string]string `json:"-"`           // source text of the stored programs that ran, by "FUNCTION schema.name"; never shown: it may hold anything
	Cost          Cost              `json:"cost"`

	locked   map[uint64]float64 // which part of an event's own time was spent waiting for a lock
	lockGaps []fleet.Trouble    // what the server did not show of locks
	partly   bool               // not all statements are recorded
	known    uint64             // events up to this number had begun before the trace

	// Picoseconds until when, and since when, the connection was busy with what the server has no event of; 0: it was not.
	busyBefore, busyAfter uint64
	left                  bool // what was changed could not be put back

	countedOnly uint64 // statements that the counters have and the tables of events do not
}

// ErrNoConnection is an unknown processlist ID.
var ErrNoConnection = errors.New("no such connection")

// ErrOff is a server that records nothing of the connection.
var ErrOff = errors.New("nothing is recorded")

const threadColumns = `THREAD_ID, PROCESSLIST_ID, PROCESSLIST_USER, PROCESSLIST_HOST, PROCESSLIST_DB, PROCESSLIST_COMMAND, PROCESSLIST_STATE, PROCESSLIST_INFO, PROCESSLIST_TIME, INSTRUMENTED, HISTORY`

func connection(row []sqldriver.Value) Connection {
	return Connection{Thread: unsigned(row[0]), ID: signed(row[1]), User: mysql.Text(row[2]), Host: mysql.Text(row[3]), DB: mysql.Text(row[4]), Command: mysql.Text(row[5]),
		State: mysql.Text(row[6]), Info: guard(strings.ToValidUTF8(mysql.Text(row[7]), "\uFFFD")), Seconds: float64(signed(row[8])), Instrumented: mysql.Text(row[9]) == "YES", History: mysql.Text(row[10]) == "YES"}
}

// Candidates lists the connections that could be traced, the busy ones first; user limits them, "" does not. Risso's own are
// left out.
func Candidates(ctx context.Context, t mysql.Target, user string) ([]Connection, error) {
	c, err := connect(ctx, t)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var list []Connection
	own, err := ownConnections(ctx, c)
	if err != nil {
		return nil, err
	}
	err = ask(ctx, c, "SELECT /* risso: connections that can be traced */ "+threadColumns+" FROM performance_schema.threads WHERE TYPE = 'FOREGROUND' AND PROCESSLIST_ID IS NOT NULL", func(row []sqldriver.Value) error {
		if k := connection(row); !own[k.ID] && k.Command != "Daemon" && !strings.HasPrefix(k.Command, "Binlog Dump") && (user == "" || k.User == user) {
			list = append(list, k)
		}
		return nil
	})
	slices.SortStableFunc(list, func(a, b Connection) int {
		if ab, bb := a.Command != "Sleep", b.Command != "Sleep"; ab != bb {
			if ab {
				return -1
			}
			return 1
		}
		if a.Command == "Sleep" { // who was active last
			return int(a.Seconds - b.Seconds)
		}
		return int(b.Seconds - a.Seconds)
	})
	if err != nil {
		return nil, needs(c, "list the connections", err)
	}
	return list, nil
}

func connect(ctx context.Context, t mysql.Target) (*mysql.Conn, error) {
	cctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	c, err := mysql.Connect(cctx, t, nil)
	if err != nil {
		return nil, err
	}
	if err := read.Traceable(c.Server); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// find returns the thread of a processlist ID.
func find(ctx context.Context, c *mysql.Conn, id int64) (Connection, error) {
	var k Connection
	if id == c.Server.ConnectionID {
		return k, fmt.Errorf("%w: %d is Risso's own", ErrNoConnection, id)
	}
	err := ask(ctx, c, fmt.Sprintf("SELECT /* risso: the thread of a connection */ %s FROM performance_schema.threads WHERE PROCESSLIST_ID = %d", threadColumns, id), func(row []sqldriver.Value) error {
		k = connection(row)
		return nil
	})
	if err != nil {
		return k, needs(c, "find the connection's thread", err)
	}
	if k.Thread == 0 {
		return k, fmt.Errorf("%w: %d; it may have ended", ErrNoConnection, id)
	}
	own, err := ownConnections(ctx, c)
	if err == nil && own[id] {
		err = fmt.Errorf("%w: %d is Risso's own", ErrNoConnection, id)
	}
	return k, err
}

// ownConnections are those of this and other Rissos.
func ownConnections(ctx context.Context, c *mysql.Conn) (map[int64]bool, error) {
	own := map[int64]bool{c.Server.ConnectionID: true}
	err := ask(ctx, c, `SELECT /* risso: Risso's own connections */ PROCESSLIST_ID FROM performance_schema.session_connect_attrs
 WHERE ATTR_NAME = 'program_name' AND ATTR_VALUE = 'risso'`, func(row []sqldriver.Value) error {
		own[signed(row[0])] = true
		return nil
	})
	if err != nil && mysql.ClassOf(err) != mysql.ClassPrivilege { // not everybody may read the attributes
		return own, fmt.Errorf("find Risso's own connections: %w", err)
	}
	return own, nil
}

// Run traces a connection until the time is over, the connection ends, or ctx ends: in all cases it returns the trace so far. What it
// switched on is put back before it returns; an error that wraps ErrNotRestored says that this failed.
func Run(ctx context.Context, o Options) (t *Trace, err error) {
	if o.Say == nil {
		o.Say = func(string) {}
	}
	if o.Progress == nil {
		o.Progress = func(time.Duration, int) {}
	}
	c, err := connect(ctx, o.Target)
	if err != nil {
		return nil, err
	}
	p := &poller{o: o, conn: c, events: map[uint64][]Event{}, open: map[uint64]Kind{}, over: map[uint64]bool{}, seen: map[uint64]int{}, clock: clock{anchor: time.Now()}}
	defer func() { p.conn.Close() }()
	if p.who, err = find(ctx, c, o.Connection); err != nil {
		return nil, err
	}
	var setup *Setup
	if o.Enable != nil {
		if setup, err = Enable(ctx, c, o.Target, p.who, *o.Enable, o.StateDir, o.Say); err != nil {
			return nil, err
		}
		defer func() {
			c2, rerr := setup.PutBack(ctx, p.conn)
			if t != nil {
				t.left = rerr != nil
				if c2 == p.conn {
					t.Cost = p.cost()
				}
			}
			p.conn = c2
			if rerr != nil {
				err = errors.Join(err, rerr)
				return
			}
			o.Say(setup.Summary())
		}()
	}
	t, err = p.run(ctx)
	if t != nil && setup != nil {
		t.Changed = setup.Statements
	}
	return t, err
}
