package binlog

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rissodb/risso/internal/binlogevent"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/sqltext"
)

// Conflict is why a change of a transaction cannot be done once more as it was done.
type Conflict struct {
	Table     string `json:"table,omitempty"`
	Row       string `json:"row,omitempty"` // a condition that finds it
	Why       string `json:"why"`
	Unchecked bool   `json:"unchecked,omitempty"` // it cannot be compared with what is there now, and is done only when that is accepted
}

// mostConflicts are kept of each transaction; the others are counted.
const mostConflicts = 10

// guard compares the rows that a log has with those that are there now: a row that was changed or deleted must be as it was then, and one that was inserted
// must not be there. A row that an earlier change of these touched is as that left it, and not compared again.
type guard struct {
	ask     func(ctx context.Context, statement string, row func([][]byte) error) error
	exists  func(ctx context.Context, schema, table string) (bool, error)
	tables  *rowTables
	touched map[[16]byte]bool
	made    map[string]bool // tables that an earlier statement of these makes
	lock    string          // appended to questions about rows
	relearn func() Columns  // what tables are like now
	found   []Conflict
	more    int
}

// guardSession is for the literals of rows; see binlogevent.Column.Literal.
const guardSession = "SET /* risso: compare rows */ SESSION character_set_client = utf8mb4, SESSION collation_connection = utf8mb4_general_ci, SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES', SESSION time_zone = '+00:00'"

func (g *guard) conflict(c Conflict) {
	if len(g.found) == mostConflicts {
		g.more++
		return
	}
	g.found = append(g.found, c)
}

// take returns the conflicts since the last time, and forgets them.
func (g *guard) take() (list []Conflict, more int) {
	list, more = g.found, g.more
	g.found, g.more = nil, 0
	return list, more
}

// question is what is asked about a row: whether the condition holds for one.
type question struct {
	cond, key string
	there     bool // it must
	row       []binlogevent.Value
}

// mostAsked are the questions of one statement.
const mostAsked = 100

// rows compares the rows of an event.
func (g *guard) rows(ctx context.Context, e binlogevent.Event) error {
	t, err := g.tables.of(e)
	if t == nil || err != nil {
		return err
	}
	if g.made[t.plain()] {
		return nil
	}
	if t.Err != nil {
		g.conflict(Conflict{Table: t.plain(), Why: t.Err.Error()})
		return nil
	}
	r, err := binlogevent.OpenRows(g.tables.format, e, &t.Table)
	if err != nil {
		return err
	}
	var list []question
	size := 0
	for {
		before, after, more, err := r.Next()
		if err != nil {
			return err
		}
		if more {
			add, err := g.questions(t, r.Kind, before, after)
			if err != nil {
				g.conflict(Conflict{Table: t.plain(), Why: "a row cannot be compared: " + err.Error(), Unchecked: true})
				continue
			}
			for _, q := range add {
				size += len(q.cond)
			}
			list = append(list, add...)
		}
		if len(list) >= mostAsked || size > 1<<20 || !more {
			if err := g.put(ctx, t, list); err != nil {
				return err
			}
			list, size = nil, 0
		}
		if !more {
			return nil
		}
	}
}

// questions are those about one row.
func (g *guard) questions(t *rowTable, kind binlogevent.Kind, before, after []binlogevent.Value) (list []question, err error) {
	keyed := t.keyed()
	if kind != binlogevent.Insert && !g.touch(t, before, nil) {
		if missing := t.unseen(kind, before, after); missing != "" {
			key, err := t.key(before, nil)
			if err != nil {
				return nil, err
			}
			g.conflict(Conflict{Table: t.plain(), Row: oneline.Cut(key, 200), Unchecked: true, Why: "the log does not say what " + missing + " was before (binlog_row_image): whether it has been changed since cannot be seen"})
		}
		q := question{there: true, row: before}
		if q.key, err = t.key(before, nil); err == nil {
			q.cond, err = t.whole(before)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, q)
	}
	if kind == binlogevent.Delete || !keyed {
		return list, nil
	}
	was, err := g.id(t, after, before)
	if err != nil || kind == binlogevent.Update && was == g.mustID(t, before) || g.touched[was] {
		return list, err
	}
	g.touched[was] = true
	q := question{row: after}
	q.key, err = t.key(after, before)
	q.cond = q.key
	if err != nil || q.cond == "" {
		return list, err
	}
	return append(list, q), nil
}

// unseen names a column of which a log does not have what it was before its change.
func (t *rowTable) unseen(kind binlogevent.Kind, before, after []binlogevent.Value) string {
	for i, c := range t.Columns {
		if c.Generated || before[i].Present {
			continue
		}
		if kind == binlogevent.Delete || after[i].Present {
			return mysql.Quote(c.Name)
		}
	}
	return ""
}

// touch marks a row, and reports whether it was marked before.
func (g *guard) touch(t *rowTable, row, or []binlogevent.Value) bool {
	id, err := g.id(t, row, or)
	if err != nil || g.touched[id] {
		return err == nil
	}
	g.touched[id] = true
	return false
}

// id names a row: by its primary key, else by all its values.
func (g *guard) id(t *rowTable, row, or []binlogevent.Value) (id [16]byte, err error) {
	keyed := t.keyed()
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00", t.name())
	for i, c := range t.Columns {
		if keyed && !c.Key {
			continue
		}
		v := row[i]
		if !v.Present && or != nil {
			v = or[i]
		}
		fmt.Fprintf(h, "%v %d:", v.Null, len(v.Raw))
		h.Write(v.Raw)
	}
	copy(id[:], h.Sum(nil))
	return id, nil
}

func (g *guard) mustID(t *rowTable, row []binlogevent.Value) [16]byte {
	id, _ := g.id(t, row, nil)
	return id
}

// put asks: all at once, and one by one where something is not as it should be.
func (g *guard) put(ctx context.Context, t *rowTable, list []question) error {
	for _, there := range []bool{true, false} {
		var conds []string
		for _, q := range list {
			if q.there == there && q.key != "" {
				conds = append(conds, "("+q.cond+")")
			}
		}
		if len(conds) == 0 {
			continue
		}
		n := ""
		err := g.ask(ctx, "SELECT /* risso: are these rows as they were? */ COUNT(*) FROM "+t.name()+" WHERE "+strings.Join(conds, " OR ")+g.lock, func(row [][]byte) error {
			n = string(row[0])
			return nil
		})
		if err != nil {
			return fmt.Errorf("compare rows of %s: %w", t.plain(), err)
		}
		if there && n == fmt.Sprint(len(conds)) || !there && n == "0" {
			list = withoutKeyed(list, there)
		}
	}
	for _, q := range list {
		if err := g.one(ctx, t, q); err != nil {
			return fmt.Errorf("compare a row of %s: %w", t.plain(), err)
		}
	}
	return nil
}

func withoutKeyed(list []question, there bool) (left []question) {
	for _, q := range list {
		if q.there != there || q.key == "" {
			left = append(left, q)
		}
	}
	return left
}

// one asks about one row, and says what is not as it should be.
func (g *guard) one(ctx context.Context, t *rowTable, q question) error {
	found := false
	err := g.ask(ctx, "SELECT /* risso: is this row as it was? */ 1 FROM "+t.name()+" WHERE "+q.cond+" LIMIT 1"+g.lock, func([][]byte) error {
		found = true
		return nil
	})
	if err != nil || found == q.there {
		return err
	}
	c := Conflict{Table: t.plain(), Row: oneline.Cut(oneline.Of(q.key), 200)}
	if q.key == "" {
		c.Why = "no row has all the values that it had: it was changed or deleted since"
		g.conflict(c)
		return nil
	}
	now, err := g.differences(ctx, t, q)
	if err != nil {
		return err
	}
	switch {
	case !q.there:
		c.Why = "a row with this key is there now" + listed(": ", now)
	case now == nil:
		c.Why = "the row is not there any more"
	default:
		c.Why = "the row was changed since" + listed(": ", now)
	}
	g.conflict(c)
	return nil
}

func listed(before string, list []string) string {
	if len(list) == 0 {
		return ""
	}
	return before + strings.Join(list, ", ")
}

// differences says, of the row that has the key now, which values differ from those of the log; nil: there is none.
func (g *guard) differences(ctx context.Context, t *rowTable, q question) (list []string, err error) {
	var ask []string
	var of []int
	for i := range t.Columns {
		c := &t.Columns[i]
		if c.Generated || c.Key || !q.row[i].Present || q.row[i].Partial {
			continue
		}
		cond, err := c.Equals(q.row[i])
		if err != nil {
			continue
		}
		ask, of = append(ask, "("+cond+") IS TRUE, "+mysql.Quote(c.Name)), append(of, i)
	}
	ask = append(ask, "1")
	err = g.ask(ctx, "SELECT /* risso: what is this row now? */ "+strings.Join(ask, ", ")+" FROM "+t.name()+" WHERE "+q.key+" LIMIT 1", func(row [][]byte) error {
		list = []string{}
		for n, i := range of {
			if string(row[2*n]) == "1" {
				continue
			}
			c := &t.Columns[i]
			was, err := c.Shown(q.row[i])
			if err != nil {
				was = "another value"
			}
			list = append(list, fmt.Sprintf("%s is %s, in the log %s", mysql.Quote(c.Name), shownBytes(row[2*n+1]), oneline.Cut(oneline.Of(was), 60)))
		}
		return nil
	})
	return list, err
}

// shownBytes is a value as a server sent it.
func shownBytes(b []byte) string {
	switch {
	case b == nil:
		return "NULL"
	case !utf8.Valid(b):
		return fmt.Sprintf("X'%.60X'", b)
	}
	if _, err := strconv.ParseFloat(string(b), 64); err == nil {
		return oneline.Cut(oneline.Of(string(b)), 60)
	}
	return oneline.Cut(mysql.Literal(oneline.Of(string(b))), 60)
}

// statement looks at a statement that was logged as text. One that makes what is not there yet does no harm; of no other can it be seen what it does now.
func (g *guard) statement(ctx context.Context, q binlogevent.Query) error {
	c, ok := dialectOf(q).ReadChange(string(q.Text))
	shown := oneline.Cut(oneline.Of(strings.ToValidUTF8(string(q.Text), "?")), 200)
	if ok && c.Kind == "TABLE" && c.Verb == "CREATE" && len(c.Names) == 1 {
		schema := c.Names[0].Schema
		if schema == "" {
			schema = q.Schema
		}
		table := schema + "." + c.Names[0].Name
		there, err := g.exists(ctx, schema, c.Names[0].Name)
		if err != nil {
			return err
		}
		if there && !g.made[table] {
			g.conflict(Conflict{Table: table, Why: "it is there now; the statement was: " + shown})
			return nil
		}
		g.made[table] = true
		if !filledByQuery(string(q.Text)) {
			return nil
		}
	}
	g.conflict(Conflict{Unchecked: true, Why: "it was logged as a statement, without its rows: what it would do now cannot be seen: " + shown})
	return nil
}

// filledByQuery reports whether a CREATE TABLE takes rows from other tables.
func filledByQuery(text string) bool {
	return sqltext.Dialect{}.Has(text, "SELECT")
}
