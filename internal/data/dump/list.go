package dump

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/mysql/snapshot"
	"github.com/rissodb/risso/internal/pattern"
)

// Selection is what is dumped. Patterns know * and ?, and quotes as pattern.Name; without any, all of it.
type Selection struct {
	Schemas []string // patterns of schemas
	Tables  []string // patterns schema.table
	Exclude []string // patterns of schemas, or schema.table
}

// Words say what was asked for if it was not everything.
func (s Selection) Words() []string {
	out := slices.Concat(s.Schemas, s.Tables)
	for _, e := range s.Exclude {
		out = append(out, "not "+e)
	}
	return out
}

// All says that nothing is left out.
func (s Selection) All() bool { return len(s.Schemas)+len(s.Tables)+len(s.Exclude) == 0 }

// Check finds patterns that cannot be read.
func (s Selection) Check() error {
	for _, p := range slices.Concat(s.Schemas, s.Tables, s.Exclude) {
		if _, err := path.Match(p, ""); err != nil || p == "" {
			return fmt.Errorf("%q is not a pattern: a name with * and ?", p)
		}
	}
	for _, p := range s.Tables {
		if _, table, err := pattern.Name(p); err != nil || table == "" {
			return fmt.Errorf("%q is not a table: write schema.table, with dotted names in backticks", p)
		}
	}
	return nil
}

// whole reports whether everything of a schema is taken, not only some of its tables.
func (s Selection) whole(schema string) bool {
	if s.excluded(schema, "") {
		return false
	}
	return len(s.Schemas) == 0 && len(s.Tables) == 0 || matchesAny(s.Schemas, schema)
}

// some reports whether anything of a schema may be taken.
func (s Selection) some(schema string) bool {
	if s.whole(schema) {
		return true
	}
	return !s.excluded(schema, "") && slices.ContainsFunc(s.Tables, func(p string) bool { return matchesTable(p, schema, "") })
}

// table reports whether a table is taken.
func (s Selection) table(schema, name string) bool {
	if s.excluded(schema, name) {
		return false
	}
	return s.whole(schema) || slices.ContainsFunc(s.Tables, func(p string) bool { return matchesTable(p, schema, name) })
}

// excluded reports whether a schema (table "") or a table is left out.
func (s Selection) excluded(schema, table string) bool {
	return slices.ContainsFunc(s.Exclude, func(p string) bool {
		return matches(pattern.Schema(p), schema) || table != "" && matchesTable(p, schema, table)
	})
}

// matchesTable matches schema.table; where a name has dots itself any of them may be the one. An empty table: the schema may match.
func matchesTable(p, schema, table string) bool {
	if a, b, err := pattern.Name(p); err == nil && p != a+"."+b { // in backticks
		return b != "" && matches(a, schema) && (table == "" || matches(b, table))
	}
	for i, c := range p {
		if c == '.' && matches(p[:i], schema) && (table == "" || matches(p[i+1:], table)) {
			return true
		}
	}
	return false
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(pattern.Schema(p), name) })
}

// unmet are patterns of a Selection that nothing has met.
type unmet struct{ schemas, tables, exclude []string }

// meet takes out what a schema (table "") or a table meets.
func (u *unmet) meet(schema, table string) {
	named := func(p string) bool { return matches(pattern.Schema(p), schema) }
	listed := func(p string) bool { return table != "" && matchesTable(p, schema, table) }
	u.schemas = slices.DeleteFunc(u.schemas, named)
	u.tables = slices.DeleteFunc(u.tables, listed)
	u.exclude = slices.DeleteFunc(u.exclude, func(p string) bool { return named(p) || listed(p) })
}

// notes say what is left out although all names exist. A name that is wanted and does not exist is an error: see listing.missing.
func (u *unmet) notes() (out []string) {
	patterns := slices.DeleteFunc(slices.Concat(u.schemas, u.tables), exact)
	if len(patterns) > 0 {
		out = append(out, "There is no "+strings.Join(patterns, ", no ")+": nothing is backed up for it.")
	}
	if len(u.exclude) > 0 {
		out = append(out, "There is no "+strings.Join(u.exclude, ", no ")+" in what is backed up: nothing is left out for it.")
	}
	return out
}

// matches compares without path.Match's care for slashes.
func matches(pattern, name string) bool {
	ok, _ := path.Match(strings.ReplaceAll(pattern, "/", "\x00"), strings.ReplaceAll(name, "/", "\x00"))
	return ok || pattern == name
}

// listing is what is going to be dumped.
type listing struct {
	there   []string // all schemas that the account sees and a backup may hold
	schemas []string
	tables  []define.TableInfo // with transactions, the largest first
	plain   []define.TableInfo // without
	away    []define.TableInfo // whose rows are elsewhere; at the end of tables, too
	views   []mysql.TableName
	seqs    []mysql.TableName
	closed  []mysql.TableName // that the server could not open when it listed them
	whole   map[string]bool   // schemas of which all is taken
	bytes   int64
	blind   *define.BlindError // what the account may not see; nil: it sees all
	rights  *mysql.Rights      // the account's, if a part will do; nil: all is wanted
	unread  []string           // with Partial: what it may not read, of what is there or was named
	at      define.Moment      // when it was read, by the server's clock
	unmet   unmet              // patterns that nothing has met until now
}

// list reads what a server has. It uses all sessions.
func list(ctx context.Context, sessions []*mysql.Stream, server mysql.Server, o Options) (*listing, error) {
	sel := o.Select
	l := &listing{whole: map[string]bool{}, unmet: unmet{slices.Clone(sel.Schemas), slices.Clone(sel.Tables), slices.Clone(sel.Exclude)}}
	all, err := define.Schemas(ctx, sessions[0])
	if err == nil {
		l.at, err = define.Now(ctx, sessions[0])
	}
	if err != nil {
		return nil, err
	}
	l.there = slices.DeleteFunc(slices.Clone(all), repo.Journals)
	for _, s := range all {
		l.unmet.meet(s, "")
		if !repo.Journals(s) && sel.some(s) {
			l.schemas = append(l.schemas, s)
			l.whole[s] = sel.whole(s)
		}
	}
	if len(l.schemas) > manySchemas && sel.All() {
		n, err := define.TablesAtMost(ctx, sessions[0])
		if err != nil {
			return nil, err
		}
		l.tables = make([]define.TableInfo, 0, n)
	}
	took, err := l.read(ctx, sessions, sel)
	if err != nil {
		return nil, err
	}
	if err := l.reopen(ctx, sessions[0], sel); err != nil {
		return nil, err
	}
	kept := l.schemas[:0]
	for i, s := range l.schemas {
		if took[i] || l.whole[s] {
			kept = append(kept, s)
		}
	}
	l.schemas = kept
	if l.blind, err = lookAround(ctx, sessions[0], server, o, l); err != nil {
		return nil, err
	}
	if l.blind != nil && (!o.Partial || len(l.unread) > 0 && !l.blind.Part) {
		return nil, l.blind
	}
	if len(l.schemas) == 0 && !sel.All() {
		return nil, fmt.Errorf("%w: %s", ErrNothing, strings.Join(sel.Words(), ", "))
	}
	if missing := l.missing(sel); len(missing) > 0 {
		return nil, fmt.Errorf("%w: %s", ErrNothing, strings.Join(missing, ", "))
	}
	bySize := func(a, b define.TableInfo) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), compareNames(a.TableName, b.TableName))
	}
	slices.SortFunc(l.tables, bySize)
	slices.SortFunc(l.plain, bySize)
	l.tables = append(l.tables, l.away...)
	slices.SortFunc(l.views, compareNames)
	slices.SortFunc(l.seqs, compareNames)
	return l, nil
}

// ClosedError says that there are tables which the server cannot open: nothing of them can be read, not even their definitions, and a lock on them
// fails as a whole.
type ClosedError struct {
	Tables []mysql.TableName
	Why    string // of the first, in the server's words
}

func (e *ClosedError) Error() string {
	return fmt.Sprintf("the server cannot open %s: %s", firstOf(e.Tables, mysql.TableName.String), strings.TrimSuffix(e.Why, "."))
}

// reopen tries the tables that the server could not open once more: one may have been dropped in the meantime.
func (l *listing) reopen(ctx context.Context, st *mysql.Stream, sel Selection) error {
	bad := &ClosedError{}
	for _, name := range l.closed {
		info, why, err := define.FindTable(ctx, st, name)
		switch {
		case err != nil:
			return err
		case info == nil:
		case info.Engine != "":
			l.add([]define.TableInfo{*info}, sel)
		default:
			bad.Tables = append(bad.Tables, name)
			bad.Why = cmp.Or(bad.Why, why)
		}
	}
	if l.closed = bad.Tables; len(bad.Tables) == 0 {
		return nil
	}
	return bad
}

// missing are the schemas and tables that were named and do not exist, or cannot be seen.
func (l *listing) missing(sel Selection) (out []string) {
	schemas, tables, _ := sel.named()
	for _, s := range schemas {
		if !slices.Contains(l.there, s) && !sel.excluded(s, "") && !l.hides(s, "", "SELECT") {
			out = append(out, s)
		}
	}
	for _, t := range tables {
		if l.hides(t.Schema, t.Name, "SELECT") || slices.Contains(l.unread, t.String()) {
			continue
		}
		is := func(i define.TableInfo) bool { return i.TableName == t }
		if !slices.ContainsFunc(l.tables, is) && !slices.ContainsFunc(l.plain, is) && !slices.ContainsFunc(l.away, is) && !slices.Contains(l.views, t) && !slices.Contains(l.seqs, t) && !sel.excluded(t.Schema, t.Name) {
			out = append(out, t.Schema+"."+t.Name)
		}
	}
	return out
}

// With more schemas than this, memory for their tables is reserved first: a slice that grows to 650,000 of them leaves as much
// garbage as it holds.
const manySchemas = 100

func compareNames(a, b mysql.TableName) int {
	return cmp.Or(strings.Compare(a.Schema, b.Schema), strings.Compare(a.Name, b.Name))
}

// read lists the tables of the schemas with all sessions, and says of which schemas it took any.
func (l *listing) read(ctx context.Context, sessions []*mysql.Stream, sel Selection) (took []bool, err error) {
	took = make([]bool, len(l.schemas))
	var mu sync.Mutex
	next := 0
	g, ctx := errgroup.WithContext(ctx)
	for _, st := range sessions {
		g.Go(func() error {
			for {
				mu.Lock()
				i := next
				next++
				mu.Unlock()
				if i >= len(l.schemas) {
					return nil
				}
				tables, err := define.Tables(ctx, st, l.schemas[i])
				if err != nil {
					return err
				}
				mu.Lock()
				took[i] = l.add(tables, sel)
				mu.Unlock()
			}
		})
	}
	return took, g.Wait()
}

// add takes what is selected of one schema and says whether it took anything.
func (l *listing) add(tables []define.TableInfo, sel Selection) bool {
	took := false
	for _, t := range tables {
		l.unmet.meet(t.Schema, t.Name)
		if !sel.table(t.Schema, t.Name) {
			continue
		}
		took = true
		switch {
		case t.View:
			l.views = append(l.views, t.TableName)
		case t.Sequence:
			l.seqs = append(l.seqs, t.TableName)
		case t.Engine == "":
			l.closed = append(l.closed, t.TableName)
		case mysql.Elsewhere(t.Engine):
			l.away = append(l.away, t)
		case mysql.Transactional(t.Engine):
			l.tables = append(l.tables, t)
			l.bytes += t.Bytes
		default:
			l.plain = append(l.plain, t)
			l.bytes += t.Bytes
		}
	}
	return took
}

// locks are what a snapshot has to know.
func (l *listing) locks() snapshot.Lists {
	out := snapshot.Lists{Tables: make([]mysql.TableName, 0, len(l.tables)+len(l.plain))}
	for _, t := range l.plain {
		out.Plain = append(out.Plain, t.TableName)
		out.Tables = append(out.Tables, t.TableName)
	}
	for _, t := range l.tables {
		if !mysql.Elsewhere(t.Engine) { // a lock would be on its underlying tables, or on another server
			out.Tables = append(out.Tables, t.TableName)
		}
	}
	return out
}

// notes say what a person should know of the tables.
func (l *listing) notes() (out []string) {
	if len(l.plain) > 0 {
		out = append(out, fmt.Sprintf("Tables without transactions: %s. They were locked against writes until they had been read, so they are consistent with the rest.", someOf(l.plain)))
	}
	if len(l.away) > 0 {
		out = append(out, fmt.Sprintf("Definitions only: %s. Their rows are in other tables, or on another server.", someOf(l.away)))
	}
	if len(l.unread) > 0 {
		out = append(out, "Not in the backup, because the account may not read them (or lock them, without transactions): "+firstOf(l.unread, func(s string) string { return s })+".")
	}
	return append(out, l.unmet.notes()...)
}

// someOf names the first of some tables with their engines.
func someOf(list []define.TableInfo) string {
	return firstOf(list, func(t define.TableInfo) string { return fmt.Sprintf("%s (%s)", t.TableName, t.Engine) })
}

// firstOf names the first of a list.
func firstOf[T any](list []T, name func(T) string) string {
	names := make([]string, 0, 5)
	for _, t := range list[:min(len(list), 5)] {
		names = append(names, name(t))
	}
	more := ""
	if n := len(list) - len(names); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(names, ", ") + more
}
