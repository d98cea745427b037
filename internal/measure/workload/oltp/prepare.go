package oltp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
	"github.com/rissodb/risso/internal/measure/workload/crew"
	"github.com/rissodb/risso/internal/measure/workload/draw"
)

const (
	rowSize    = 230             // of a row as text, at most
	unitRows   = 25_000          // rows of a key range that one session loads in one transaction
	packetRoom = 1 << 10         // left of max_allowed_packet
	undoLimit  = 2 * time.Minute // for removing what was begun
)

// loading is one prepare.
type loading struct {
	*oltp
	workload.PrepareOptions
	crew  *crew.Crew
	batch int // bytes of an INSERT
	ids   draw.Range
	units []unit
	left  []atomic.Int32 // units of each table that are not loaded yet
	total int64
	done  atomic.Int64

	mu   sync.Mutex
	made []string // tables that this prepare made
}

// unit is a range of ids of one table.
type unit struct{ table, from, to int }

// Prepare makes the tables, fills them by key ranges on all sessions, and builds the index on k of a table when its last
// rows are in. After an error it removes what it made.
func (o *oltp) Prepare(ctx context.Context, opt workload.PrepareOptions) error {
	c, err := crew.Hire(ctx, opt.Target, opt.Threads)
	if err != nil {
		return err
	}
	defer c.Close()
	l := &loading{oltp: o, PrepareOptions: opt, crew: c, ids: o.ids.Over(1, int64(o.p.TableSize))}
	if err := l.plan(); err != nil {
		return err
	}
	err = c.Work(ctx, len(l.left), func(s drive.Session, table int) error { return l.create(s, table+1) })
	if err == nil {
		err = c.Work(ctx, len(l.units), l.load)
	}
	if err != nil {
		return l.undo(ctx, err)
	}
	return nil
}

// plan looks at the server and lays the work out. It refuses where a table exists.
func (l *loading) plan() error {
	s := l.crew.Session()
	there, err := workload.Tables(s, tablePrefix)
	if err != nil {
		return err
	}
	tables, rows := l.p.Tables, l.p.TableSize
	switch {
	case l.name == "bulk_insert":
		tables, rows = max(1, l.Threads), 0
	case l.name == "insert" && l.p.NoAutoInc:
		rows = 0 // else the ids that the run draws may be there
	}
	var taken []string
	for t := 1; t <= tables; t++ {
		if _, ok := there[name(t)]; ok {
			taken = append(taken, name(t))
		}
	}
	if len(taken) > 0 {
		return fmt.Errorf("%s there already: nothing was created; drop them (risso bench cleanup %s drops those that risso created) or use another database", are(taken), l.name)
	}
	l.left = make([]atomic.Int32, tables)
	for t := 1; t <= tables; t++ {
		for from := 1; from <= max(1, rows); from += unitRows {
			l.units = append(l.units, unit{t, from, min(from+unitRows-1, rows)})
			l.left[t-1].Add(1)
		}
	}
	l.total = int64(tables) * int64(rows)
	l.batch = bulkSize
	if l.Target.Dialect() == drive.MySQL {
		limit, err := workload.Ask(s, "SELECT /* risso: how long may a statement be? */ @@max_allowed_packet")
		if err != nil {
			return err
		}
		l.batch = min(l.batch, int(limit[0][0].Int)-packetRoom)
	}
	if l.batch < 2*rowSize {
		return fmt.Errorf("max_allowed_packet is too small for a row: raise it to 1 MiB")
	}
	return nil
}

func name(table int) string { return tablePrefix + strconv.Itoa(table) }

// are names tables in a sentence.
func are(names []string) string {
	switch n := len(names); {
	case n == 1:
		return names[0] + " is"
	case n > 3:
		return fmt.Sprintf("%s and %d other tables are", names[0], n-1)
	}
	return strings.Join(names, ", ") + " are"
}

// create makes one table.
func (l *loading) create(s drive.Session, table int) error {
	_, err := s.Exec(drive.Other, l.definition(s.Dialect(), table))
	var server *drive.ServerError
	if err == nil || !errors.As(err, &server) {
		l.mu.Lock()
		l.made = append(l.made, name(table)) // also if it is unknown whether it was made
		l.mu.Unlock()
	}
	if err != nil {
		return fmt.Errorf("make the table %s: %w", name(table), err)
	}
	return nil
}

// definition is a table as sysbench makes it, with the mark.
func (l *loading) definition(d drive.Dialect, table int) string {
	id, columns := "INTEGER NOT NULL", ",\n  c CHAR(120) DEFAULT '' NOT NULL,\n  pad CHAR(60) DEFAULT '' NOT NULL"
	key := ",\n  PRIMARY KEY (id)"
	switch {
	case l.name == "bulk_insert":
		columns = ""
	case keyless(l.p):
		key = ""
	case l.p.Secondary && d == drive.MySQL:
		key = ",\n  KEY xid (id)"
	case l.p.Secondary:
		key = ""
	}
	if l.name != "bulk_insert" && !l.p.NoAutoInc {
		switch {
		case d == drive.Postgres:
			id = "SERIAL"
		case !keyless(l.p): // MySQL generates numbers for the column of a key only
			id += " AUTO_INCREMENT"
		}
	}
	sql := "CREATE TABLE " + name(table) + " (\n  id " + id + ",\n  k INTEGER DEFAULT '0' NOT NULL" + columns + key + "\n)"
	if d == drive.Postgres {
		sql += " " + l.p.TableOptions + ";\nCOMMENT ON TABLE " + name(table) + " IS '" + workload.Mark + "'"
		if l.p.Secondary && key == "" && !keyless(l.p) {
			sql += fmt.Sprintf(";\nCREATE INDEX xid_%d ON %s (id)", table, name(table))
		}
		return sql // all of it is one transaction, as the simple protocol has it
	}
	return sql + " ENGINE=" + l.p.Engine + " " + l.p.TableOptions + " COMMENT='" + workload.Mark + "'"
}

// load fills one key range, and finishes the table if it was the last.
func (l *loading) load(s drive.Session, job int) error {
	u := l.units[job]
	if u.from <= u.to {
		if err := l.insert(s, u); err != nil {
			return fmt.Errorf("fill the table %s: %w", name(u.table), err)
		}
	}
	if l.left[u.table-1].Add(-1) > 0 || l.name == "bulk_insert" {
		return nil
	}
	if l.Target.Dialect() == drive.Postgres && !l.p.NoAutoInc && u.from <= u.to {
		sql := fmt.Sprintf("SELECT setval(pg_get_serial_sequence('%s', 'id'), %d)", name(u.table), l.p.TableSize)
		if _, err := s.Exec(drive.Other, sql); err != nil {
			return fmt.Errorf("set the sequence of %s: %w", name(u.table), err)
		}
	}
	if l.p.NoIndex {
		return nil
	}
	if _, err := s.Exec(drive.Other, fmt.Sprintf("CREATE INDEX k_%d ON %s(k)", u.table, name(u.table))); err != nil {
		return fmt.Errorf("index the table %s: %w", name(u.table), err)
	}
	return nil
}

// insert sends the rows of a range, in one transaction.
func (l *loading) insert(s drive.Session, u unit) error {
	rng := rand.New(rand.NewPCG(l.p.Seed, uint64(u.table)<<32|uint64(u.from)))
	head := "INSERT INTO " + name(u.table) + "(id, k, c, pad) VALUES"
	b := append(make([]byte, 0, l.batch), head...)
	if _, err := s.Exec(drive.Other, "START TRANSACTION"); err != nil {
		return err
	}
	rows := int64(0)
	for id := u.from; id <= u.to; id++ {
		if len(b) > len(head) {
			b = append(b, ',')
		}
		b = appendRow(b, rng, int64(id), l.ids.Draw(rng))
		rows++
		if len(b)+rowSize < l.batch && id < u.to {
			continue
		}
		if _, err := s.Exec(drive.Write, string(b)); err != nil {
			return err
		}
		b = b[:len(head)]
		if done := l.done.Add(rows); l.Progress != nil {
			l.Progress(done, l.total)
		}
		rows = 0
	}
	_, err := s.Exec(drive.Other, "COMMIT")
	return err
}

// appendRow writes one row as SQL.
func appendRow(b []byte, rng *rand.Rand, id, k int64) []byte {
	b = strconv.AppendInt(append(b, '('), id, 10)
	b = strconv.AppendInt(append(b, ','), k, 10)
	b = append(b, ",'"...)
	n := len(b)
	b = b[:n+cSize]
	fillGroups(rng, b[n:])
	b = append(b, "','"...)
	n = len(b)
	b = b[:n+padSize]
	fillGroups(rng, b[n:])
	return append(b, "')"...)
}

// undo removes what was made, and says what it could not remove.
func (l *loading) undo(ctx context.Context, why error) error {
	if len(l.made) == 0 {
		return why
	}
	left := slices.Sorted(slices.Values(l.made))
	err := l.crew.Undo(ctx, undoLimit, func(s drive.Session) error {
		for len(left) > 0 {
			if _, err := s.Exec(drive.Other, "DROP TABLE IF EXISTS "+left[0]); err != nil {
				return err
			}
			left = left[1:]
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%w; left behind, because of %q: %s (risso bench cleanup %s)", why, err.Error(), strings.Join(left, ", "), l.name)
	}
	return fmt.Errorf("%w; what was created has been removed", why)
}

// Cleanup drops all tables of the database that Prepare made. It keeps those without the mark, and names them in an
// error if the workload's own tables are among them.
func (o *oltp) Cleanup(ctx context.Context, opt workload.PrepareOptions) error {
	c, err := crew.Hire(ctx, opt.Target, opt.Threads)
	if err != nil {
		return err
	}
	defer c.Close()
	there, err := workload.Tables(c.Session(), tablePrefix)
	if err != nil {
		return err
	}
	tables := o.p.Tables
	if o.name == "bulk_insert" {
		tables = opt.Threads
	}
	var ours, foreign []string
	for _, table := range slices.Sorted(maps.Keys(there)) {
		number, err := strconv.Atoi(strings.TrimPrefix(table, tablePrefix))
		switch {
		case err != nil: // sbtest_of_mine
		case there[table]:
			ours = append(ours, table)
		case number <= tables:
			foreign = append(foreign, table)
		}
	}
	var dropped atomic.Int64
	err = c.Work(ctx, len(ours), func(s drive.Session, i int) error {
		if _, err := s.Exec(drive.Other, "DROP TABLE "+ours[i]); err != nil {
			return fmt.Errorf("drop the table %s: %w", ours[i], err)
		}
		if n := dropped.Add(1); opt.Progress != nil {
			opt.Progress(n, int64(len(ours)))
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case len(foreign) > 0:
		return fmt.Errorf("%s not risso's, and kept; what risso created was dropped (%s)", are(foreign), digits.Counted(len(ours), "table"))
	}
	return nil
}
