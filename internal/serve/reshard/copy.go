package reshard

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/shard"
	"github.com/rissodb/risso/internal/data/chunk"
	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/mysql/wire"
)

// copying copies the rows, and what changes of them meanwhile, until little is left.
func (r *run) copying(ctx context.Context) error {
	if _, err := r.planned(ctx); err != nil {
		return err
	}
	if r.j.Log.File == "" {
		err := r.vacant(ctx)
		if err != nil {
			return err
		}
		if r.j.Log, err = r.from.end(ctx); err != nil {
			return err
		}
		if err := r.j.Save(ctx); err != nil {
			return err
		}
	}
	said := time.Now()
	for _, t := range r.tables {
		for !t.at.Copied {
			n, err := r.next(ctx, t)
			if err == nil {
				err = r.drain(ctx)
			}
			if err != nil {
				return err
			}
			t.at.Rows += int64(n)
			if err := r.note(ctx); err != nil {
				return err
			}
			if time.Since(said) > 5*time.Second {
				said = time.Now()
				r.say("%s of %s copied, %s changed meanwhile", digits.Counted(t.at.Rows, "row"), t.full(), digits.Counted(r.j.Changed, "row"))
			}
		}
	}
	for {
		before := r.j.Changed
		if err := r.drain(ctx); err != nil {
			return err
		}
		if err := r.note(ctx); err != nil {
			return err
		}
		if r.j.Changed-before <= int64(r.Limits.Near) && !r.left() {
			break
		}
	}
	if err := r.verify(ctx); err != nil {
		return err
	}
	r.j.Stage = shard.Switching
	return nil
}

// vacant refuses where the other group has rows with these keys. They may be the only ones, as where the map is an older one: nothing here tells to delete them.
func (r *run) vacant(ctx context.Context) error {
	there, err := r.count(ctx, r.to)
	if err != nil || there == 0 {
		return err
	}
	here, err := r.count(ctx, r.from)
	if err != nil {
		return err
	}
	return refused("delete none before you have compared the two: those in group "+r.to.group+" may be the only ones, and map "+r.j.Map+" wrong; only what group "+r.from.group+
		" has as well, as --keep-rows leaves it, is one too many", "group %s has %s with these keys already, and group %s, which is to have them by map %s, %s",
		r.to.group, digits.Counted(there, "row"), r.from.group, r.j.Map, digits.Counted(here, "row"))
}

// note writes the journal, unless changed rows are not copied: the journal may say that the log was read so far only when they are.
func (r *run) note(ctx context.Context) error {
	if r.left() {
		return nil
	}
	return r.j.Save(ctx)
}

// drain takes what changed by now to the other side.
func (r *run) drain(ctx context.Context) error {
	n, err := r.poll(ctx, r.ours())
	if err != nil {
		return err
	}
	r.j.Changed += int64(n)
	if r.theirs != nil {
		if _, err := r.poll(ctx, r.theirs); err != nil {
			return err
		}
	}
	return r.apply(ctx)
}

// next notes the next rows of a table as ones that are to be copied.
func (r *run) next(ctx context.Context, t *table) (int, error) {
	keys, err := r.keys(ctx, r.from, t, behind(t, t.at.After))
	for _, k := range keys {
		t.dirty[k], t.at.After = true, k
	}
	t.at.Copied = err == nil && len(keys) < r.Limits.Rows
	return len(keys), err
}

// keys are those of the first rows of a table that move, besides with a condition.
func (r *run) keys(ctx context.Context, s *side, t *table, and string) (keys []string, err error) {
	names := make([]string, len(t.key.Order))
	for i, c := range t.key.Order {
		names[i] = mysql.Quote(c.Name)
	}
	statement := fmt.Sprintf("SELECT /* risso: which rows move? */ %s FROM %s FORCE INDEX (PRIMARY) WHERE %s ORDER BY %s LIMIT %d LOCK IN SHARE MODE",
		strings.Join(names, ", "), t.full(), r.where(t)+and, t.key.OrderBy(), r.Limits.Rows)
	err = r.again(ctx, func() error {
		keys = nil
		return s.rows.Query(ctx, statement, func(row [][]byte) error {
			bound, err := t.key.Literals(row)
			keys = append(keys, tuple(bound))
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read keys of %s in group %s: %w", t.full(), s.group, err)
	}
	return keys, nil
}

// keyColumns is the key's columns as SQL compares them.
func keyColumns(t *table) string {
	names := make([]string, len(t.key.Order))
	for i, c := range t.key.Order {
		names[i] = mysql.Quote(c.Name)
	}
	return tuple(names)
}

// apply makes the rows that changed on the other side what they are on this one.
func (r *run) apply(ctx context.Context) error {
	for _, t := range r.tables {
		keys := make([]string, 0, len(t.dirty))
		for k := range t.dirty {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		fit := true
		for batch := range slices.Chunk(keys, r.Limits.Rows) {
			err := r.batch(ctx, t, batch)
			if n := mysql.ErrorNumber(err); n == errno.DuplicateEntry || n == errno.DuplicateEntryOf {
				fit = false // of two rows that changed places in a unique index one was not read: it has changed, too, and comes
				if t.again++; t.again > 20 {
					return fault.New(fault.Failed, "risso shard undo "+r.j.Map, fmt.Errorf("%w: a row of %s does not fit into group %s: %w", ErrRefused, t.full(), r.to.group, err))
				}
				continue
			} else if err != nil {
				return fmt.Errorf("copy rows of %s: %w", t.full(), err)
			}
			for _, k := range batch {
				delete(t.dirty, k)
			}
		}
		if fit {
			t.again = 0
		}
	}
	return nil
}

// tries is how often a statement that waited too long for a lock is tried again, fenceTries that of one behind which all who write the table wait.
const (
	tries      = 10
	fenceTries = 3
)

// again runs what a lock may keep from being done.
func (r *run) again(ctx context.Context, f func() error) (err error) {
	return retried(ctx, tries, 200*time.Millisecond, f)
}

// retried runs f up to n times while locks keep it from being done.
func retried(ctx context.Context, n int, pause time.Duration, f func() error) (err error) {
	for i := range n {
		err = f()
		if number := mysql.ErrorNumber(err); i == n-1 || number != errno.LockWaitTimeout && number != errno.Deadlock {
			return err
		}
		if err := delay.For(ctx, pause); err != nil {
			return err
		}
	}
	return err
}

// batch copies some rows as they are now.
func (r *run) batch(ctx context.Context, t *table, keys []string) error {
	columns := chunk.Columns(t.Table)
	names, read := make([]string, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		names[i], read[i] = mysql.Quote(c.Name), chunk.Expression(c)
	}
	in := keyColumns(t) + " IN (" + strings.Join(keys, ", ") + ") AND " + r.where(t)
	var rows []string
	err := r.again(ctx, func() error {
		rows = rows[:0]
		return r.from.rows.Query(ctx, "SELECT /* risso: rows that move */ "+strings.Join(read, ", ")+" FROM "+t.full()+" WHERE "+in+" LOCK IN SHARE MODE", func(row [][]byte) error {
			values := make([]string, len(row))
			for i, v := range row {
				values[i] = literal(columns[i], v)
			}
			rows = append(rows, "("+strings.Join(values, ", ")+")")
			return nil
		})
	})
	if err != nil {
		return fmt.Errorf("read them in group %s: %w", r.from.group, err)
	}
	return r.again(ctx, func() error {
		statements := []string{"START TRANSACTION", "DELETE /* risso: copy rows that move */ FROM " + t.full() + " WHERE " + in}
		head := "INSERT /* risso: copy rows that move */ INTO " + t.full() + " (" + strings.Join(names, ", ") + ") VALUES "
		for some := range inserts(rows) {
			statements = append(statements, head+strings.Join(some, ", "))
		}
		for _, q := range append(statements, "COMMIT") {
			if err := r.to.rows.Exec(ctx, q); err != nil {
				if r.to.rows.Broken() == nil {
					err = errors.Join(err, r.to.rows.Exec(ctx, "ROLLBACK"))
				}
				return fmt.Errorf("write them in group %s: %w", r.to.group, err)
			}
		}
		return nil
	})
}

// insertBytes is about how long an INSERT is: far below max_allowed_packet of any server, but for one row that is longer.
const insertBytes = 512 << 10

// inserts cuts rows into statements.
func inserts(rows []string) func(yield func([]string) bool) {
	return func(yield func([]string) bool) {
		from, size := 0, 0
		for i, row := range rows {
			if size += len(row); size > insertBytes && i > from {
				if !yield(rows[from:i]) {
					return
				}
				from, size = i, len(row)
			}
		}
		if from < len(rows) {
			yield(rows[from:])
		}
	}
}

// literal is a value, as a session for rows has it, in SQL.
func literal(c define.TableColumn, v []byte) string {
	if v == nil {
		return "NULL"
	}
	bytes := "''"
	if len(v) > 0 {
		bytes = "0x" + hex.EncodeToString(v)
	}
	switch c.Type {
	case "tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "year", "float", "double":
		return string(v)
	case "date", "datetime", "timestamp", "time", "uuid", "inet6", "inet4":
		return "'" + string(v) + "'"
	case "json":
		return "CONVERT(" + bytes + " USING utf8mb4)"
	}
	if c.Charset != "" {
		return "_" + c.Charset + " " + bytes
	}
	return bytes
}

// sum counts and sums the rows that move, on one side; besides with a condition.
func (r *run) sum(ctx context.Context, s *side, t *table, and string) (out chunk.Rows, err error) {
	var read []string
	for _, c := range chunk.Columns(t.Table) {
		read = append(read, chunk.Expression(c))
	}
	var to wire.RowSink = &out
	err = s.rows.Select(ctx, "SELECT /* risso: is the copy the same? */ "+strings.Join(read, ", ")+" FROM "+t.full()+" WHERE "+r.where(t)+and, to)
	if err != nil {
		err = fmt.Errorf("read %s in group %s: %w", t.full(), s.group, err)
	}
	return out, err
}
