// Package prepared reads the cost of executions of prepared statements in the binary protocol between two readings, on
// servers whose table of digests leaves them out: MySQL before 9 and MariaDB.
//
// The server counts for each statement that a session has prepared and not closed
// (performance_schema.prepared_statements_instances). What ran between the last reading and the closing of a statement
// cannot be read; the number of these executions is known, because the server also counts all executions in one counter.
package prepared

import (
	"context"
	"fmt"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sqltext"
)

// maxStatements is how many prepared statements are read. Servers allow 16,382 unless max_prepared_stmt_count says more.
const maxStatements = 20000

// Executions is the cost of executions of one text in one schema by one user between two readings.
type Executions struct {
	Text string // as it was prepared
	Cut  bool   // the server kept only its beginning
	read.Owner
	fleet.Cost
}

// Counters remembers a server's counters. The zero value is ready.
type Counters struct {
	Counting read.PreparedCounting // where the server counts; set by Connected

	base     map[read.PreparedKey]fleet.Cost // nil: nothing was read
	cut      bool                            // base is not all that there was
	executed int64                           // all executions at the last reading
	probes   int64                           // own executions since the last reading
	started  int64
	lost     int64
	tallies  []tally
	room     read.PreparedRoom
	nowLost  int64
}

// tally is how many executions a reading found, of how many there were.
type tally struct{ found, all int64 }

// Reading is what the server reported at one time.
type Reading struct {
	list     []read.Prepared
	owners   map[uint64]read.Owner
	cut      bool
	executed int64
	room     read.PreparedRoom
}

// Connected finds out where the server counts. It is called for each new connection: the server may have been restarted, and then all
// that it counts was done since.
func (c *Counters) Connected(ctx context.Context, conn *mysql.Conn) (err error) {
	if err = c.ask(ctx, conn); err != nil {
		return err
	}
	started, err := read.Started(ctx, conn)
	if err != nil {
		return err
	}
	if d := started - c.started; c.base != nil && (d > restartSlack || d < -restartSlack) {
		c.probes = 0
		c.base, c.cut, c.executed, c.lost, c.tallies = map[read.PreparedKey]fleet.Cost{}, false, 0, 0, nil
	}
	c.started = started
	return nil
}

func (c *Counters) ask(ctx context.Context, conn *mysql.Conn) (err error) {
	c.Counting, err = read.CountsPrepared(ctx, conn)
	c.probes++
	return err
}

// restartSlack is how many seconds two readings of the time of a server's start may differ.
const restartSlack = 2

// Forget makes the next reading the first.
func (c *Counters) Forget() {
	c.base, c.cut, c.executed, c.tallies = nil, false, 0, nil
}

// All makes the next reading count whole: all that was executed since the server began to count.
func (c *Counters) All() { c.base = map[read.PreparedKey]fleet.Cost{} }

// Read asks the server; nothing is remembered before Next.
func (c *Counters) Read(ctx context.Context, conn *mysql.Conn) (r Reading, err error) {
	if c.doubtful() {
		if err = c.ask(ctx, conn); err != nil {
			return r, err
		}
	}
	if !c.Counting.Instances {
		return r, nil
	}
	if r.executed, err = read.PreparedExecutions(ctx, conn); err != nil {
		return r, err
	}
	ranked := c.cut
	for {
		r.list = r.list[:0]
		r.cut, err = read.PreparedStatements(ctx, conn, maxStatements, ranked, func(p *read.Prepared) error {
			r.list = append(r.list, *p)
			return nil
		})
		if err != nil {
			return r, err
		}
		if !r.cut || ranked {
			break
		}
		ranked = true // there are too many: the heaviest
	}
	if r.room, err = read.PreparedRoomOf(ctx, conn); err != nil || len(r.list) == 0 {
		return r, err
	}
	r.owners, err = read.Owners(ctx, conn)
	return r, err
}

// doubtful reports whether the server may count elsewhere by now: somebody switched a consumer on or off.
func (c *Counters) doubtful() bool {
	n := len(c.tallies)
	return c.Counting.Why != "" || n > 0 && float64(c.tallies[n-1].all-c.tallies[n-1].found) > remedyShare*float64(c.tallies[n-1].all)
}

// Next returns what was added since the reading before; nothing for the first.
//
// A statement that was not there before counts whole, because it was prepared since; but not when there were more statements than
// were read: then it may have been there.
func (c *Counters) Next(r Reading) []Executions {
	if !c.Counting.Instances {
		c.Forget()
		return nil
	}
	first, base := c.base == nil, make(map[read.PreparedKey]fleet.Cost, len(r.list))
	sums := map[Executions]*Executions{}
	found := int64(0)
	for i := range r.list {
		p := &r.list[i]
		before, known := c.base[p.Key]
		base[p.Key] = p.Cost
		if first || !known && c.cut {
			continue
		}
		added := p.Cost.Since(before)
		found += added.Calls
		if added.Calls == 0 || own(p.Text) {
			continue
		}
		k := Executions{Text: p.Text, Cut: p.Cut, Owner: r.owners[p.Key.Thread]}
		if sums[k] == nil {
			sum := k
			sums[k] = &sum
		}
		sums[k].Add(added)
	}
	if all := r.executed - c.executed - c.probes; !first && all >= 0 {
		if c.tallies = append(c.tallies, tally{found, all}); len(c.tallies) > maxTallies {
			c.tallies = c.tallies[1:]
		}
	}
	if c.nowLost = r.room.Lost - c.lost; c.nowLost < 0 {
		c.nowLost = r.room.Lost
	}
	c.probes = 0
	c.base, c.cut, c.executed, c.lost, c.room = base, r.cut, r.executed, r.room.Lost, r.room
	out := make([]Executions, 0, len(sums))
	for _, s := range sums {
		out = append(out, *s)
	}
	return out
}

// own reports whether Risso prepared this, which it does to find out where executions are counted.
func own(text string) bool {
	i := strings.Index(text, "/* risso:")
	return i >= 0 && i < 16
}

// AppendPlain appends the plain fingerprint of what was prepared: that of the same statement run without being prepared. One that the
// server cut is a separate class, by its beginning.
func AppendPlain(dst []byte, f *sqltext.Fingerprinter, c Executions) []byte {
	dst = sqltext.AppendPlain(dst, f.Append(nil, []byte(c.Text)))
	if c.Cut {
		dst = append(dst, " ..."...)
	}
	return dst
}

// CutExecute removes the word by which MySQL 9's digest texts distinguish executions of prepared statements from the same statement run as
// text. EXECUTE `name` of the text protocol stays: digests quote names, so a verb is none.
func CutExecute(digestText string) string {
	rest, ok := strings.CutPrefix(digestText, "EXECUTE ")
	if !ok {
		return digestText
	}
	switch sqltext.Verb([]byte(rest)) {
	case "SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "CALL", "SET", "TABLE", "VALUES", "DO":
		return rest
	}
	return digestText
}

// Missing is how many executions of the last readings were not found, of how many.
func (c *Counters) Missing() (missing, all int64) {
	found := int64(0)
	for _, t := range c.tallies {
		found, all = found+t.found, all+t.all
	}
	return max(all-found, 0), all
}

// Limits of reporting missing executions.
const (
	maxTallies   = 10   // readings that the share is of
	tellShare    = 0.01 // below it is not worth reporting: readings of two tables are not of one moment
	remedyShare  = 0.10
	fullShare    = 0.95 // of max_prepared_stmt_count
	roomPerCount = 2    // a table that is full should have been so much larger
)

// Keep is how to keep prepared statements from being closed before they are read.
const Keep = "let the application reuse prepared statements: Connector/J cachePrepStmts=true&useServerPrepStmts=true, in Go one Prepare for all calls, or no server-side prepares (Go: interpolateParams=true; PDO: ATTR_EMULATE_PREPARES); a slow log has all executions"

// Gaps say what is missing. between says when the statements that are missing were closed.
func (c *Counters) Gaps(between string) []fleet.Trouble {
	const what = "executions of prepared statements"
	if c.Counting.Why != "" {
		return []fleet.Trouble{{What: what, Why: c.Counting.Why, Remedy: c.Counting.Remedy}}
	}
	if !c.Counting.Instances {
		return nil
	}
	var out []fleet.Trouble
	if missing, all := c.Missing(); float64(missing) > tellShare*float64(all) {
		g := fleet.Trouble{What: what, Why: fmt.Sprintf("%s of the executions of prepared statements (%s of %s) are not in the list: they were prepared and closed, or closed after they ran, %s", digits.Percent(float64(missing)/float64(all)), digits.Thousands(missing), digits.Thousands(all), between)}
		if float64(missing) >= remedyShare*float64(all) {
			g.Remedy = Keep
		}
		out = append(out, g)
	}
	if c.cut {
		out = append(out, fleet.Trouble{What: what, Why: fmt.Sprintf("more than %d prepared statements are open; the heaviest were read", maxStatements), Remedy: Keep})
	}
	if c.nowLost > 0 {
		out = append(out, fleet.Trouble{What: what, Why: digits.Counted(c.nowLost, "prepared statement") + " did not fit into the server's table of them since the previous reading",
			Remedy: fmt.Sprintf("performance_schema_max_prepared_statements_instances=%d in the [mysqld] section of the option file, and a restart", max(roomPerCount*c.room.Open, 1000))})
	}
	if c.room.Max > 0 && float64(c.room.Open) >= fullShare*float64(c.room.Max) {
		out = append(out, fleet.Trouble{What: "prepared statements", Why: fmt.Sprintf("%d of the %d that the server allows are open; clients that prepare more get error 1461", c.room.Open, c.room.Max),
			Remedy: fmt.Sprintf("SET GLOBAL max_prepared_stmt_count = %d; and see whether the application closes what it does not need", roomPerCount*c.room.Max)})
	}
	return out
}
