package reshard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/shard"
	"github.com/rissodb/risso/internal/binlogevent"
	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/wire"
	"github.com/rissodb/risso/internal/sqltext"
)

// patience is how long a server that has more of its binary log to send may be silent.
const patience = time.Minute

// end is where a server writes its binary log now.
func (s *side) end(ctx context.Context) (p shard.Place, err error) {
	rows, err := s.conn.Maps(ctx, s.conn.Server.LogStatusStatement())
	if err != nil {
		return p, fmt.Errorf("ask how far the binary log is: %w", err)
	}
	if len(rows) == 0 {
		return p, errors.New("the server writes no binary log")
	}
	p.Server, p.File = s.conn.Server.ID, rows[0]["File"]
	p.Pos, err = strconv.ParseInt(rows[0]["Position"], 10, 64)
	return p, err
}

// tail is what a server wrote into one binary log from a position on, as if it were a file of its own.
type tail struct {
	dump *mysql.Dump
	at   shard.Place // behind the last event that was read
	next string      // the log that follows; "": this one is written
	rest []byte
	sum  bool
	end  bool
}

// Read returns the bytes of events until the server goes on to another log or has no more.
func (s *tail) Read(b []byte) (int, error) {
	for len(s.rest) == 0 {
		if s.end {
			return 0, io.EOF
		}
		e, _, err := s.dump.Next(patience)
		if errors.Is(err, wire.ErrEndOfLogs) {
			s.end = true
			continue
		}
		if err != nil {
			return 0, err
		}
		if len(e) < binlogevent.HeaderLen {
			return 0, fmt.Errorf("%w: the server sent %d bytes", binlogevent.ErrDamaged, len(e))
		}
		h := binlogevent.ParseHeader(e)
		switch {
		case h.Type == binlogevent.TypeRotate && (h.Flags&binlogevent.FlagArtificial != 0 || h.Seconds == 0):
			if r, err := binlogevent.ParseRotate(binlogevent.TrimChecksum(e)[binlogevent.HeaderLen:]); err == nil && r.Name != s.at.File {
				s.next, s.end = r.Name, true
			}
			continue
		case h.Type == binlogevent.TypeFormatDescription:
			f, err := binlogevent.ParseFormat(e)
			if err != nil {
				return 0, err
			}
			s.sum = f.Checksum
			if s.at.Pos <= int64(len(binlogevent.Magic)) {
				s.at.Pos += int64(len(e))
			} // else it is sent again, ahead of the position
		case h.Artificial():
			continue
		default:
			s.at.Pos += int64(len(e))
		}
		s.rest = binlogevent.Readable(e, s.sum)
	}
	n := copy(b, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// followed is the binary log of one of the primaries.
type followed struct {
	*side
	at   *shard.Place // it was read up to there
	live *binlog.Live
	note func(t *table, key string) // is told each row that changed
}

// ours is the log of the old primary: what changes is copied.
func (r *run) ours() *followed {
	return &followed{side: r.from, at: &r.j.Log, live: r.live, note: func(t *table, key string) {
		t.dirty[key] = true
		if t.seen != nil {
			t.seen[key] = true
		}
	}}
}

// watch begins with the log of the new primary: what somebody else changes there is compared again. One that does not log rows, or may not be read, is not
// followed; rows are counted then.
func (r *run) watch(ctx context.Context) error {
	r.theirs = nil
	rows, err := r.to.conn.Maps(ctx, "SELECT /* risso: does it log rows? */ @@log_bin AS log, @@binlog_format AS format")
	if err != nil {
		return fmt.Errorf("ask group %s: %w", r.to.group, err)
	}
	if rows[0]["log"] != "1" || rows[0]["format"] != "ROW" {
		r.say("the primary of group %s does not log rows: they are counted before the map is changed", r.to.group)
		return nil
	}
	at, err := r.to.end(ctx)
	l := &followed{side: r.to, at: &at, live: binlog.NewLive(r.to.conn), note: func(t *table, key string) {
		if t.seen != nil {
			t.seen[key] = true
		}
	}}
	if err == nil {
		_, err = r.poll(ctx, l)
	}
	if err != nil {
		r.say("rows are counted before the map is changed, as the binary log of group %s cannot be read: %v", r.to.group, err)
		return ctx.Err()
	}
	r.theirs = l
	return nil
}

// poll reads a binary log from where it was read up to to its end, and notes the rows that changed.
func (r *run) poll(ctx context.Context, l *followed) (changed int, err error) {
	for {
		n, next, err := r.pollLog(ctx, l)
		changed += n
		if err != nil {
			return changed, fmt.Errorf("read the binary log %s of group %s from %d: %w", l.at.File, l.group, l.at.Pos, err)
		}
		if next == "" {
			return changed, nil
		}
		l.at.File, l.at.Pos = next, int64(len(binlogevent.Magic))
	}
}

func (r *run) pollLog(ctx context.Context, l *followed) (changed int, next string, err error) {
	at := *l.at
	d, err := l.target.Dump(ctx, mysql.DumpOptions{Identity: at.Server, File: at.File, Pos: at.Pos})
	if err != nil {
		return 0, "", err
	}
	defer d.Close()
	t := &tail{dump: d, at: at, rest: binlogevent.Magic}
	in, err := binlogevent.NewReader(t, binlogevent.Options{})
	if err != nil {
		return 0, "", err
	}
	defer in.Close()
	var maps binlogevent.Tables[*table]
	for {
		e, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return changed, "", err
		}
		n, err := r.event(ctx, l, in.Format(), &maps, e)
		if err != nil {
			return changed, "", err
		}
		changed += n
	}
	l.at.Pos = t.at.Pos
	return changed, t.next, nil
}

// event notes the rows that an event changes.
func (r *run) event(ctx context.Context, l *followed, f binlogevent.Format, maps *binlogevent.Tables[*table], e binlogevent.Event) (int, error) {
	if e.Type == binlogevent.TypeTableMap {
		m, fresh, err := maps.Map(f, e.Body)
		if err != nil || !fresh {
			return 0, err
		}
		m.User = nil
		for _, t := range r.tables {
			if t.Schema == m.Schema && t.Name == m.Name {
				m.User = t
				binlog.FillColumns(ctx, &m.Table, l.live.Columns)
			}
		}
		return 0, nil
	}
	if !e.Type.IsRows() {
		hides, err := r.hides(e)
		r.blind = r.blind || hides
		return 0, err
	}
	id, _, err := binlogevent.RowsHead(f, e)
	if err != nil {
		return 0, err
	}
	m := maps.Get(id)
	if m == nil {
		return 0, fmt.Errorf("%w: rows of a table that was not named", binlogevent.ErrDamaged)
	}
	if m.User == nil {
		return 0, nil
	}
	rows, err := binlogevent.OpenRows(f, e, &m.Table)
	if err != nil {
		return 0, err
	}
	for n := 0; ; n++ {
		before, after, more, err := rows.Next()
		if err != nil || !more {
			return n, err
		}
		for _, image := range [][]binlogevent.Value{before, after} {
			key, err := m.User.keyOf(&m.Table, image)
			if err != nil {
				return n, err
			}
			if key != "" {
				l.note(m.User, key)
			}
		}
	}
}

// hides reports whether an event may be a change of rows that does not say of which: one that was logged as a statement.
func (r *run) hides(e binlogevent.Event) (bool, error) {
	switch e.Type {
	case binlogevent.TypeExecuteLoadQuery, binlogevent.TypeIncident:
		return true, nil
	case binlogevent.TypeQuery, binlogevent.TypeQueryZip:
		q, err := binlogevent.ParseQuery(e)
		return err == nil && !bytes.Contains(q.Text, []byte("risso_shard_"+r.j.ID)) && r.changes(q.Text), err
	}
	return false, nil
}

// changes reports whether a statement in a log may change rows of the tables. What defines something does so only if it names one of them, or drops them all.
func (r *run) changes(text []byte) bool {
	switch sqltext.Verb(text) {
	case "", "BEGIN", "START", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "XA":
		return false
	case "CREATE", "ALTER", "DROP", "TRUNCATE", "RENAME", "ANALYZE", "OPTIMIZE", "REPAIR", "FLUSH", "GRANT", "REVOKE":
		first, names := sqltext.NamesIn(string(text))
		return first == "drop" && (names["database"] || names["schema"]) ||
			slices.ContainsFunc(r.j.Tables, func(p shard.Progress) bool { return names[strings.ToLower(p.Table.Name)] })
	}
	return true
}

// keyOf is the key of a row in SQL; "" of an image that does not have it.
func (t *table) keyOf(logged *binlogevent.Table, image []binlogevent.Value) (string, error) {
	if image == nil {
		return "", nil
	}
	var values []string
	for _, k := range t.key.Order {
		for i := range logged.Columns {
			c := &logged.Columns[i]
			if c.Name != k.Name || i >= len(image) {
				continue
			}
			if !image[i].Present {
				return "", nil // as it was before
			}
			text, err := c.Literal(image[i])
			if err != nil {
				return "", fmt.Errorf("column %s of %s: %w", c.Name, t.full(), err)
			}
			values = append(values, text)
		}
	}
	if len(values) != len(t.key.Order) {
		return "", refused("risso shard undo, and begin again when the table is at rest", "%s was altered during the move", t.full())
	}
	return tuple(values), nil
}

// tuple is the values of a key as SQL compares them.
func tuple(values []string) string {
	if len(values) == 1 {
		return values[0]
	}
	return "(" + strings.Join(values, ", ") + ")"
}
