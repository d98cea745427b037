package binlog

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sqltext"
)

// Count is how many rows a table had at some time.
type Count struct {
	Rows   int64
	Exact  bool          // counted; else the server's estimate
	Source string        // who says so, for people: "backup 20261121T183700Z-xxxxxx"
	Time   time.Time     // when that was
	Now    bool          // it is now, after all logs
	Before mysql.GTIDSet // else: transactions that had changed it already
}

// Counts returns how many rows a table had, the newest count first. It may be called from several goroutines.
type Counts func(ctx context.Context, schema, table string) []Count

// Sureness is how sure a finding is.
type Sureness string

// How sure a finding is.
const (
	Certain Sureness = "certain" // it was read or counted
	Likely  Sureness = "likely"  // rows were counted, but not everything that changed them since
	Guess   Sureness = "guess"   // by the server's estimate
)

// Share is how many of a table's rows a transaction changed.
type Share struct {
	Of    int64    `json:"of"`    // rows of the table before, including those that the transaction itself inserted
	Share float64  `json:"share"` // 1: all of them
	From  string   `json:"from"`  // where Of comes from
	Sure  Sureness `json:"sure"`
}

const (
	maxCounts = 3 // of a table that are looked at
	// minWhole is how many rows it takes before "all of them" says anything.
	minWhole = 5
	// wholeShare is how much of a table has to be changed to look as if nothing said which rows.
	wholeShare = 0.9
)

// tally is how a log changed a table's number of rows up to some place in it.
type tally struct {
	reset bool                 // the table was made or emptied in the log: net counts from there
	odd   bool                 // statements changed it whose rows the log does not have
	times int                  // it was reset
	net   [1 + maxCounts]int64 // of all transactions; of those that were not in the first, the second… of its counts
}

// then is what two logs say together, the second after the first.
func (t tally) then(o tally) tally {
	o.times += t.times
	if o.reset {
		return o
	}
	for i := range o.net {
		o.net[i] += t.net[i]
	}
	o.reset, o.odd = t.reset, t.odd || o.odd
	return o
}

// tableState is what one log says about a wanted table.
type tableState struct {
	schema, table string
	counts        []Count
	tally
}

// effect is what a statement does to a table's number of rows.
type effect int

const (
	effectNone  effect = iota // or its rows are logged, too
	effectReset               // none is left
	effectOdd                 // unknown
)

// effectOf is the effect of a statement on the tables that it changes.
func effectOf(c sqltext.Change) effect {
	switch {
	case c.Kind != "TABLE" || c.Temporary:
	case c.Verb == "DROP", c.Verb == "TRUNCATE", c.Verb == "CREATE" && !c.Filled && !c.Kept:
		return effectReset
	case c.Filled, c.Moves, len(c.To) > 0, c.Verb == "INSERT", c.Verb == "DELETE": // of statements the log has no rows
		return effectOdd
	}
	return effectNone
}

// add adds a change of a transaction.
func (t *tableState) add(id mysql.GTID, c *Change) {
	switch c.effect {
	case effectReset:
		t.tally = tally{reset: true, times: t.times + 1}
	case effectOdd:
		t.odd = true
	}
	rows := c.Rows
	if c.Kind == "delete" {
		rows = -rows
	} else if c.Kind != "insert" {
		return
	}
	t.net[0] += rows
	for i := range t.counts {
		if !t.counts[i].Before.Contains(id) {
			t.net[1+i] += rows
		}
	}
}

// shares says of the changes that were found how much of their table they are. The logs have to be in their order.
func shares(ctx context.Context, d *Damage, logs []searcher) {
	n := rowCounts{d: d, counts: map[string][]Count{}, now: map[string]Count{}}
	whole := true // no log is missing or was left out, and each was read to its end
	was, sofar := map[*Change]tally{}, map[string]tally{}
	for i := range logs {
		s := &logs[i]
		for c := range s.changed() {
			was[c] = sofar[c.Table].then(c.was)
		}
		for name, st := range s.states {
			sofar[name] = sofar[name].then(st.tally)
		}
		whole = whole && !s.hole && (i == 0 || Number(s.file) == Number(logs[i-1].file)+1)
	}
	for i := range logs {
		for c, f := range logs[i].changed() {
			w := weigh{whole: whole, before: logs[0].before, was: was[c], total: sofar[c.Table], known: len(c.state.counts) > 0}
			w.counts, w.now = n.of(ctx, c)
			c.Share = w.share(f, c)
			f.judge(c)
		}
	}
}

// changed returns the changes found for which it counts how many rows the table had.
func (s *searcher) changed() iter.Seq2[*Change, *Found] {
	return func(yield func(*Change, *Found) bool) {
		for i := range s.out.Found {
			f := &s.out.Found[i]
			for j := range f.Changes {
				if c := &f.Changes[j]; c.state != nil && c.Rows > 0 && (c.Kind == "delete" || c.Kind == "update") && !yield(c, f) {
					return
				}
			}
		}
	}
}

// rowCounts asks once for each table how many rows it had and has.
type rowCounts struct {
	d      *Damage
	counts map[string][]Count
	now    map[string]Count
}

func (n *rowCounts) of(ctx context.Context, c *Change) ([]Count, Count) {
	if _, ok := n.now[c.Table]; ok {
		return n.counts[c.Table], n.now[c.Table]
	}
	n.counts[c.Table] = c.state.counts
	if n.d.Counts != nil && c.state.counts == nil {
		n.counts[c.Table] = n.d.Counts(ctx, c.state.schema, c.state.table)
	}
	n.now[c.Table] = Count{}
	if n.d.Now != nil {
		if now, ok := n.d.Now(ctx, c.state.schema, c.state.table); ok {
			n.now[c.Table] = now
		}
	}
	return n.counts[c.Table], n.now[c.Table]
}

// weigh is what is known of a table's rows before a change.
type weigh struct {
	whole  bool          // no log is missing, and none was left out
	before mysql.GTIDSet // what came before the first log
	was    tally         // up to the change
	total  tally         // of all logs
	counts []Count
	now    Count
	known  bool // the counts were there when the logs were read: net is of them
}

// share compares a change with what its table had. nil: unknown.
func (w weigh) share(f *Found, c *Change) *Share {
	own := int64(0) // rows that the transaction itself inserted
	for i := range f.Changes {
		if o := &f.Changes[i]; o.Table == c.Table && o.Kind == "insert" {
			own += o.Rows
		}
	}
	make := func(had int64, from string, sure Sureness) *Share {
		had += own
		switch {
		case had >= c.Rows:
		case 5*had < 4*c.Rows: // it grew since, by more than an estimate errs: this means nothing
			return nil
		default: // an estimate, or cascades that were not logged
			had = c.Rows
			if sure == Certain {
				sure = Likely
			}
		}
		return &Share{Of: had, Share: float64(c.Rows) / float64(had), From: from, Sure: sure}
	}
	sure := func(ok bool) Sureness {
		if ok {
			return Certain
		}
		return Likely
	}
	if w.was.reset && w.whole {
		return make(w.was.net[0], "the logs have all its rows since it was created or emptied", sure(!w.was.odd))
	}
	for i, n := range w.counts {
		if n.Before.Contains(f.GTID) || n.Before.Empty() && !n.Time.Before(f.Time) || w.was.times > 0 {
			continue
		}
		if w.known && i < maxCounts && w.whole && !n.Before.Empty() && n.Before.ContainsSet(w.before) {
			return make(n.Rows+w.was.net[1+i], n.Source+" and the logs since", sure(n.Exact && !w.was.odd))
		}
		return make(n.Rows, n.Source, Likely)
	}
	if n := w.now; n.Now && w.total.times == w.was.times {
		how := Likely // others may have changed it since the logs were read
		if !n.Exact || !w.whole || w.total.odd {
			how = Guess
		}
		return make(n.Rows-(w.total.net[0]-w.was.net[0]), n.Source+" and the logs", how)
	}
	return nil
}

// judge says it where a change looks as if nothing said which rows.
func (f *Found) judge(c *Change) {
	s := c.Share
	if s == nil || c.Rows < minWhole || s.Share < wholeShare || f.Sure == Certain && f.Whole != "" {
		return
	}
	if f.Whole != "" && rank(f.Sure) >= rank(s.Sure) {
		return
	}
	how := "all"
	if s.Share < 1 {
		how = digits.Percent(s.Share) + " of the"
		if s.Share > 0.999 {
			how = "nearly all"
		}
	}
	f.Whole = fmt.Sprintf("%s of %s %s rows of %s", strings.ToUpper(c.Kind), how, digits.Thousands(s.Of), c.Table)
	f.Sure = s.Sure
}

func rank(s Sureness) int { return map[Sureness]int{Certain: 3, Likely: 2, Guess: 1}[s] }
