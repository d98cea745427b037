package reshard

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/avail/shard"
	"github.com/rissodb/risso/internal/avail/shard/keep"
	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/data/chunk"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/mysql/define/alike"
)

// side is the primary of a group, with a session for rows.
type side struct {
	group  string
	epoch  uint64 // of its primary
	target mysql.Target
	conn   *mysql.Conn
	rows   *mysql.Stream
}

func (s *side) close() {
	if s.rows != nil {
		_ = s.rows.Close()
	}
	if s.conn != nil {
		_ = s.conn.Close()
	}
}

// run is a move that is worked on.
type run struct {
	*Mover
	j        *keep.Journal
	from, to *side
	tables   []*table
	live     *binlog.Live
	theirs   *followed // the new primary's log since large tables are compared; nil: it is not followed
	blind    bool      // since large tables are compared a log had a change that does not say of which rows
}

// table is a table of the move.
type table struct {
	define.Table
	column shard.Table
	key    chunk.Key
	at     *shard.Progress
	dirty  map[string]bool // rows, by their key in SQL, that are to be copied
	again  int             // how often some of them did not fit
	seen   map[string]bool // rows that changed on either side since the copy was compared; nil: it was not
}

// full is the table's name, as SQL takes it.
func (t *table) full() string { return mysql.Quote(t.Schema) + "." + mysql.Quote(t.Name) }

func (r *run) close() {
	r.from.close()
	r.to.close()
}

// open connects to both primaries.
func (m *Mover) open(ctx context.Context, j *keep.Journal) (*run, error) {
	r := &run{Mover: m, j: j, from: &side{group: j.From}, to: &side{group: j.Asked.To}}
	for _, s := range []*side{r.from, r.to} {
		if err := m.connect(ctx, s, j.ID); err != nil {
			r.close()
			return nil, fmt.Errorf("group %s: %w", s.group, err)
		}
	}
	r.live = binlog.NewLive(r.from.conn)
	for i := range j.Tables {
		r.tables = append(r.tables, &table{column: j.Tables[i].Table, at: &j.Tables[i], dirty: map[string]bool{}})
	}
	return r, nil
}

// connect finds the primary of a group.
func (m *Mover) connect(ctx context.Context, s *side, id string) error {
	g, err := m.Groups.Group(ctx, s.group)
	if err != nil {
		return err
	}
	i := g.Primary()
	if s.epoch = g.Epoch; i < 0 {
		return errors.New("it has no primary")
	}
	access, err := m.Groups.Access(ctx, s.group)
	if err != nil {
		return err
	}
	if s.target, err = access.Target(g.Members[i].Name); err != nil {
		return err
	}
	if s.conn, err = mysql.Connect(ctx, s.target, nil); err != nil {
		return err
	}
	if s.rows, err = s.target.ConnectStream(ctx, mysql.StreamOptions{}); err != nil {
		return err
	}
	if err := s.rows.ForRows(ctx, s.conn.Server); err != nil {
		return err
	}
	for _, q := range []string{
		s.conn.Server.BoundLocks(m.Limits.Lock),
		// Foreign keys were checked where the rows come from, and the guards let this session alone.
		"SET SESSION /* risso: move rows as they are */ sql_mode = 'NO_AUTO_VALUE_ON_ZERO', foreign_key_checks = 0, @risso_shard = " + mysql.Literal(id),
		"SET SESSION /* risso: lock no more than what is read */ TRANSACTION ISOLATION LEVEL READ COMMITTED",
	} {
		if err := s.rows.Exec(ctx, q); err != nil {
			return fmt.Errorf("prepare the session: %w", err)
		}
	}
	return s.alone(ctx, id)
}

// alone ends the session of a process that worked on the move before, as one that was stopped and thaws: it must not write an old row over a newer one.
func (s *side) alone(ctx context.Context, id string) error {
	lock := mysql.Literal("risso_shard_" + id)
	for range tries {
		got := ""
		if err := s.rows.Query(ctx, "SELECT /* risso: one process moves the rows */ GET_LOCK("+lock+", 1)", func(row [][]byte) error {
			got = string(row[0])
			return nil
		}); err != nil {
			return fmt.Errorf("lock the move: %w", err)
		}
		if got == "1" {
			return nil
		}
		holder, err := s.conn.Text(ctx, "SELECT /* risso: which process moved them before? */ COALESCE(IS_USED_LOCK("+lock+"), 0)")
		if err != nil {
			return fmt.Errorf("ask who moves the rows: %w", err)
		}
		if n, err := strconv.ParseInt(holder, 10, 64); err == nil && n > 0 {
			if err := s.conn.KillSession(ctx, n, false); err != nil {
				return fmt.Errorf("end the session %d of the process that moved the rows before: %w", n, err)
			}
		}
	}
	return errors.New("another process moves the rows, and does not end")
}

// refused is why rows cannot be moved, and what helps.
func refused(remedy, format string, args ...any) error {
	return fault.New(fault.Failed, remedy, fmt.Errorf("%w: %s", ErrRefused, fmt.Sprintf(format, args...)))
}

// check looks at everything before a move begins.
func (r *run) check(ctx context.Context) error {
	for _, s := range []*side{r.from, r.to} {
		row, err := s.conn.Maps(ctx, "SELECT /* risso: does it take writes, and log rows? */ @@read_only AS ro, @@log_bin AS log, @@binlog_format AS format, @@server_id AS id")
		if err != nil {
			return fmt.Errorf("ask group %s: %w", s.group, err)
		}
		switch set := row[0]; {
		case set["ro"] != "0":
			return refused("risso group show "+s.group, "the primary of group %s is read-only", s.group)
		case s == r.from && set["log"] != "1":
			return refused("", "the primary of group %s writes no binary log", s.group)
		case s == r.from && set["format"] != "ROW":
			return refused("SET GLOBAL binlog_format = 'ROW', and let clients connect anew", "binlog_format of group %s is %s", s.group, set["format"])
		}
	}
	if r.from.conn.Server.ID == r.to.conn.Server.ID {
		return refused("", "groups %s and %s have the same primary", r.from.group, r.to.group)
	}
	r.j.Log.Server, r.j.Target = r.from.conn.Server.ID, r.to.conn.Server.ID
	for _, t := range r.tables {
		create, err := r.checkTable(ctx, t)
		if err != nil {
			return err
		}
		t.at.Create = create
	}
	return nil
}

// checkTable looks at one table on both sides.
func (r *run) checkTable(ctx context.Context, t *table) (string, error) {
	if err := r.define(ctx, t); err != nil {
		return "", err
	}
	name := mysql.TableName{Schema: t.Schema, Name: t.Name}
	there, err := define.CreateTable(ctx, r.to.rows, name)
	if err != nil {
		return "", refused("create the table there", "group %s: %v", r.to.group, err)
	}
	if differs, _ := alike.Tables(t.Create, there, false); len(differs) > 0 {
		return "", refused("risso diff shows it", "the definitions of %s differ: %s", name, strings.Join(differs, "; "))
	}
	c, ok := t.Column(t.column.Column)
	switch {
	case !ok:
		return "", refused("", "%s has no column %s", name, t.column.Column)
	case c.Nullable:
		return "", refused("make it NOT NULL", "column %s of %s may be NULL, which is no key", c.Name, name)
	case strings.Contains(c.FullType, "zerofill"):
		return "", refused("", "column %s of %s is ZEROFILL: its text is not that of the number", c.Name, name)
	case (r.j.Part.Keys == shard.Integer) != isInteger(c.Type) || r.j.Part.Keys == shard.Text && c.Charset == "":
		return "", refused("", "column %s of %s is %s, and keys of the map are of type %s", c.Name, name, c.FullType, r.j.Part.Keys)
	case !mysql.Transactional(t.Engine):
		return "", refused("", "%s has the engine %s, without transactions", name, t.Engine)
	case t.key.Name != "PRIMARY" || !t.key.Whole():
		return "", refused("", "%s has no primary key by which its rows can be read in order", name)
	}
	for _, s := range []*side{r.from, r.to} {
		if err := r.checkEffects(ctx, s, name); err != nil {
			return "", err
		}
	}
	return t.Create, nil
}

func isInteger(kind string) bool {
	switch kind {
	case "tinyint", "smallint", "mediumint", "int", "bigint":
		return true
	}
	return false
}

// checkEffects refuses what changes rows beside the rows themselves.
func (r *run) checkEffects(ctx context.Context, s *side, name mysql.TableName) error {
	at := "EVENT_OBJECT_SCHEMA = " + mysql.Literal(name.Schema) + " AND EVENT_OBJECT_TABLE = " + mysql.Literal(name.Name)
	rows, err := s.conn.Maps(ctx, "SELECT /* risso: what else would happen? */ TRIGGER_NAME AS n FROM INFORMATION_SCHEMA.TRIGGERS WHERE "+at)
	if err != nil {
		return fmt.Errorf("ask for triggers: %w", err)
	}
	if len(rows) > 0 {
		return refused("", "%s has the trigger %s in group %s: it would fire for rows that are moved", name, rows[0]["n"], s.group)
	}
	rows, err = s.conn.Maps(ctx, "SELECT /* risso: do rows change without being logged? */ CONSTRAINT_NAME AS n FROM INFORMATION_SCHEMA.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = "+
		mysql.Literal(name.Schema)+" AND TABLE_NAME = "+mysql.Literal(name.Name)+" AND (DELETE_RULE NOT IN ('RESTRICT', 'NO ACTION') OR UPDATE_RULE NOT IN ('RESTRICT', 'NO ACTION'))")
	if err != nil {
		return fmt.Errorf("ask for foreign keys: %w", err)
	}
	if len(rows) > 0 {
		return refused("", "the foreign key %s of %s changes rows by itself (CASCADE, SET NULL), which the binary log does not have", rows[0]["n"], name)
	}
	return nil
}

// define reads what a table is on the old primary.
func (r *run) define(ctx context.Context, t *table) error {
	create, err := define.CreateTable(ctx, r.from.rows, mysql.TableName{Schema: t.column.Schema, Name: t.column.Name})
	if err != nil {
		return fmt.Errorf("group %s: read the definition of %s.%s: %w", r.from.group, t.column.Schema, t.column.Name, err)
	}
	if t.Table, err = define.ParseTable(t.column.Schema, create); err != nil {
		return err
	}
	t.key, _ = chunk.KeyOf(t.Table)
	return nil
}

// prepare reads definitions again, and sees that the servers are those that the move began with.
func (r *run) prepare(ctx context.Context) error {
	for _, s := range []struct {
		*side
		want string
	}{{r.from, r.j.Log.Server}, {r.to, r.j.Target}} {
		if s.want != s.conn.Server.ID && r.j.Stage != shard.Cleaning && r.j.Stage != shard.Undoing {
			return fault.New(fault.Failed, "risso shard undo "+r.j.Map+", and begin again", fmt.Errorf("group %s: %w", s.group, ErrMoved))
		}
	}
	for _, t := range r.tables {
		if err := r.define(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// same sees that both groups have the primaries still that the sessions are with: another one may lack what was written last.
func (r *run) same(ctx context.Context) error {
	for _, s := range []*side{r.from, r.to} {
		g, err := r.Groups.Group(ctx, s.group)
		if err != nil {
			return err
		}
		if g.Epoch != s.epoch || g.Primary() < 0 {
			return fault.New(fault.Failed, "risso shard undo "+r.j.Map+", and begin again", fmt.Errorf("group %s, epoch %d: %w", s.group, g.Epoch, ErrMoved))
		}
	}
	return nil
}

// where is the condition for the rows of a table that move.
func (r *run) where(t *table) string { return r.j.Part.Where(t.column.Quoted()) }

// count counts the rows of all tables that move, on one side.
func (r *run) count(ctx context.Context, s *side) (all int64, err error) {
	for _, t := range r.tables {
		n, err := r.countOf(ctx, s, t)
		if err != nil {
			return 0, err
		}
		all += n
	}
	return all, nil
}

// countOf counts the rows of a table that move, on one side.
func (r *run) countOf(ctx context.Context, s *side, t *table) (n int64, err error) {
	err = s.rows.Query(ctx, "SELECT /* risso: how many rows move? */ COUNT(*) FROM "+t.full()+" WHERE "+r.where(t), func(row [][]byte) (err error) {
		n, err = strconv.ParseInt(string(row[0]), 10, 64)
		return err
	})
	if err != nil {
		err = fmt.Errorf("count the rows of %s in group %s: %w", t.full(), s.group, err)
	}
	return n, err
}

// Words is what a move did.
func Words(m shard.Move) string {
	var rows int64
	for _, t := range m.Tables {
		rows += t.Rows
	}
	switch m.Stage {
	case shard.Undone:
		return "taken back: " + digits.Counted(m.Deleted, "row") + " of the copy deleted, the map is as it was"
	case shard.Unknown:
		return "how it went on is not known: the state was restored from a backup that was written amid it"
	case shard.Done:
		return fmt.Sprintf("%s of shard %s are in group %s, epoch %d: %s, the same on both sides; writes of them were refused for %s; %s deleted from group %s",
			m.Part.Words(), m.Asked.New, m.Asked.To, m.After.Epoch, digits.Counted(rows, "row"), digits.Span(m.Blocked), digits.Counted(m.Deleted, "row"), m.From)
	}
	return "cut off while " + string(m.Stage)
}
