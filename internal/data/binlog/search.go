package binlog

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rissodb/risso/internal/binlogevent"
	"github.com/rissodb/risso/internal/mysql"
)

// Damage describes what is looked for. What is left at its zero matches everything.
type Damage struct {
	Tables  TableFilter
	Schemas func(schema string) bool // whether it may have wanted tables; nil: as Tables says of "*" in it
	Kinds   []string                 // of delete, update, insert, drop, truncate, alter, create, rename, other
	Rows    int64                    // at least this many rows in one transaction
	From    time.Time
	To      time.Time // before then
	GTID    mysql.GTIDSet
	Wanted  func(mysql.GTID) bool // nil: all
	Thread  uint32                // of the connection
	User    string                // who ran it, if the log says
	Text    string                // part of the statement's text, in any case
	Images  int                   // rows to show of each change, as they were before; negative: all
	Limit   int                   // transactions to keep, the worst; 0: all
	Workers int                   // logs that are read at the same time; 0: processors
	Columns Columns
	Counts  Counts                                                        // how many rows tables had, for the share that was removed; nil: unknown
	Now     func(ctx context.Context, schema, table string) (Count, bool) // and how many they have, after the logs
	Tell    func(Progress)
}

// Found is a transaction that matches.
type Found struct {
	GTID       mysql.GTID  `json:"gtid"`
	File       string      `json:"file"`
	Pos        int64       `json:"position"`
	End        int64       `json:"end_position"`
	Time       time.Time   `json:"time"` // time of its commit, as precise as the log has it
	Thread     uint32      `json:"thread,omitempty"`
	User       string      `json:"user,omitempty"`
	Server     uint32      `json:"server_id"`
	Bytes      int64       `json:"bytes"`
	Rows       int64       `json:"rows"`
	Changes    []Change    `json:"changes"`
	Statements []Statement `json:"statements,omitempty"` // the first statements, if the log has them
	More       int         `json:"more_statements,omitempty"`
	Whole      string      `json:"whole_table,omitempty"` // why it looks like a forgotten WHERE
	Sure       Sureness    `json:"sure,omitempty"`        // how certain that is
}

// Change is what a transaction did to one table.
type Change struct {
	Table   string   `json:"table"` // schema.table; the name alone for objects outside schemas
	Kind    string   `json:"kind"`
	Object  string   `json:"object,omitempty"` // what Table names if it is not a table: view, trigger, procedure, database, user, temporary table …
	To      string   `json:"to,omitempty"`     // its new name, if it was renamed
	Rows    int64    `json:"rows,omitempty"`
	Columns []string `json:"columns,omitempty"`
	Before  [][]any  `json:"before,omitempty"` // rows as they were before; for an INSERT, as inserted
	After   [][]any  `json:"after,omitempty"`  // for an UPDATE: rows as they are afterwards
	Share   *Share   `json:"share,omitempty"`  // share of the table's rows, if known
	matches bool
	emptied bool // its rows are gone, and not logged
	state   *tableState
	renamed *tableState // of the table that is called To
	effect  effect      // of statements
	was     tally       // of the table's rows before the transaction, as far as the log itself shows
}

// Statement is the text of a statement.
type Statement struct {
	Text string `json:"text"`
}

const (
	maxStatements = 5
	maxTextShown  = 4096
)

// Columns returns what a log does not have: the columns of a table as it is now. ok is false if there is no such table, or it has
// another number of columns than the log.
type Columns func(ctx context.Context, schema, table string) (list []binlogevent.Column, ok bool)

// SearchResult is the result of a search.
type SearchResult struct {
	Found        []Found  `json:"found"`
	Fit          int64    `json:"total"`        // how many match, including those beyond Damage.Limit
	Transactions int64    `json:"transactions"` // transactions examined
	Bytes        int64    `json:"bytes"`        // read
	Skipped      int      `json:"logs_skipped"` // logs skipped because their indexes show that nothing in them matches
	Incomplete   bool     `json:"incomplete"`   // not everything could be read: Notes say what was not searched
	Notes        []string `json:"notes,omitempty"`
}

// Search reads logs and returns the transactions that fit the description: statements that destroy everything first, then by
// rows. Logs are read at the same time, and not at all if their index says that nothing in them fits; rows are counted,
// and decoded only if they are shown.
func Search(ctx context.Context, files []File, d Damage) (SearchResult, error) {
	results := make([]searcher, len(files))
	var total, read atomic.Int64
	skip := d.unneeded(files)
	for i, f := range files {
		if !skip[i] {
			total.Add(f.Size)
		}
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(cmp.Or(d.Workers, runtime.GOMAXPROCS(0)))
	for i, f := range files {
		s := &results[i]
		*s = searcher{ctx: gctx, d: &d, file: f.Name, hole: skip[i], last: i+1 == len(files)}
		if skip[i] {
			continue
		}
		g.Go(func() error {
			s.tell = func(n int64) {
				if now := read.Add(n); d.Tell != nil {
					d.Tell(Progress{Bytes: now, Total: total.Load(), File: f.Name})
				}
			}
			return s.run(f)
		})
	}
	if err := g.Wait(); err != nil {
		return SearchResult{}, err
	}
	all := SearchResult{Found: []Found{}}
	shares(ctx, &d, results)
	for i := range results {
		r := &results[i].out
		all.Found = append(all.Found, r.Found...)
		all.Notes = append(all.Notes, r.Notes...)
		all.Fit += r.Fit
		all.Transactions += r.Transactions
		all.Bytes += r.Bytes
		all.Incomplete = all.Incomplete || r.Incomplete
		if skip[i] {
			all.Skipped++
		}
	}
	sortFound(all.Found)
	if d.Limit > 0 {
		all.Found = all.Found[:min(len(all.Found), d.Limit)]
	}
	return all, nil
}

// sortFound puts the worst first.
func sortFound(list []Found) {
	slices.SortStableFunc(list, func(a, b Found) int { return cmp.Or(cmp.Compare(b.weight(), a.weight()), a.Time.Compare(b.Time)) })
}

// weight orders findings: what drops or empties a table destroys more than any number of rows that are logged.
func (f *Found) weight() int64 {
	w := f.Rows
	for _, c := range f.Changes {
		if c.emptied {
			w += 1 << 40
		}
	}
	return w
}

// FillColumns adds what a log does not have but the table, as it is now, does.
func FillColumns(ctx context.Context, t *binlogevent.Table, columns Columns) {
	if columns == nil {
		return
	}
	now, ok := columns(ctx, t.Schema, t.Name)
	if !ok || len(now) != len(t.Columns) {
		return
	}
	for i := range t.Columns {
		if t.Named && !strings.EqualFold(t.Columns[i].Name, now[i].Name) || !t.Columns[i].Fits(now[i].Declared) {
			return // columns were changed since
		}
	}
	for i := range t.Columns {
		c, n := &t.Columns[i], now[i]
		if !c.Known {
			c.Known, c.Unsigned = true, n.Unsigned
		}
		if c.Collation == 0 {
			c.Collation, c.Binary = n.Collation, n.Binary
		}
		c.Name, c.Generated, c.Declared = n.Name, n.Generated, n.Declared
		c.Key = n.Key
	}
	t.Named = true
}

// unneeded says which files need not be read, because their indexes show that no transaction in them fits.
func (d *Damage) unneeded(files []File) []bool {
	out := make([]bool, len(files))
	for i, f := range files {
		x := f.Index
		if x == nil {
			continue
		}
		switch {
		case !d.GTID.Empty() && !x.mayHave(d.GTID):
			out[i] = true
		case x.Earliest.IsZero():
		case !d.From.IsZero() && !x.Latest.Add(time.Second).After(d.From), !d.To.IsZero() && !x.Earliest.Before(d.To):
			out[i] = true
		}
	}
	return out
}
