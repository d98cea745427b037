package trial

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/explain/differ/describe"
	"github.com/rissodb/risso/internal/explain/differ/upgrade"
	"github.com/rissodb/risso/internal/explain/plan"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sqltext"
)

// PlanChange is a statement whose plan is another on the new server, or that it refuses.
type PlanChange struct {
	Class  string   `json:"class"`
	SQL    string   `json:"sql"`
	Calls  int64    `json:"calls"`
	Before []string `json:"before,omitempty"` // the plan in text on the old version
	After  []string `json:"after,omitempty"`
	Error  string   `json:"error,omitempty"` // the new server refuses it, in its words
}

// PlanUnknown is a statement of which it is not known whether its plan changes.
type PlanUnknown struct {
	Class string `json:"class"`
	SQL   string `json:"sql"`
	Calls int64  `json:"calls"`
	fleet.Trouble
}

// statementsByRules looks at the application's statements with the rules.
func (t *trial) statementsByRules() {
	for _, s := range t.Statements {
		t.out.Problems = append(t.out.Problems, upgrade.Statement(t.d, t.kind, s.Class, s.SQL)...)
	}
}

// asked are the servers that plan a statement. Those of the throw-away servers have the definitions and the statistics of the old server,
// and no rows.
type asked struct {
	live   *mysql.Conn // the old server; nil: not at hand
	before *mysql.Conn // a throw-away one of its version; nil: none is installed
	after  *mysql.Conn // one of the new version
	old    string      // what before would be
}

// plans runs the application's statements through EXPLAIN on three servers. A difference between the two throw-away ones is the version's,
// if the one of the old version plans the statement as the old server itself does: see DESIGN.md.
func (t *trial) plans(ctx context.Context, b *box) (err error) {
	if len(t.Statements) == 0 {
		return nil
	}
	t.statementsByRules()
	a := asked{old: string(sandbox.FamilyOf(t.d.Server.Flavour)) + "-" + t.d.Server.Number.Series()}
	stats := &statistics{}
	if t.Live != nil {
		if a.live, err = mysql.Connect(ctx, *t.Live, nil); err != nil {
			return err
		}
		defer a.live.Close()
		if stats, err = t.readStatistics(ctx, a.live); err != nil {
			return err
		}
	}
	old, err := t.baseline(ctx, a.old)
	if err != nil && !errors.Is(err, sandbox.ErrNoServer) {
		return err
	}
	if err == nil {
		defer func() { err = errors.Join(err, old.End(ctx)) }()
		if a.before, _, err = stats.give(ctx, old); err != nil {
			return err
		}
		defer a.before.Close()
	}
	if a.after, t.out.Loaded.Statistics, err = stats.give(ctx, b); err != nil {
		return err
	}
	defer a.after.Close()
	t.Progress("compare plans")
	for _, s := range t.Statements {
		if !planned[sqltext.Verb([]byte(s.SQL))] { // the rules have looked at it
			continue
		}
		if err := t.plan(ctx, a, s); err != nil {
			return err
		}
	}
	return nil
}

// planned are the verbs of statements that have a plan.
var planned = setOf("SELECT", "WITH", "TABLE", "VALUES", "INSERT", "REPLACE", "UPDATE", "DELETE")

// baseline is a throw-away server of the old version with the settings and definitions.
func (t *trial) baseline(ctx context.Context, spec string) (*box, error) {
	b, err := t.up(ctx, spec)
	if err != nil {
		return nil, err
	}
	if err := t.likeOld(ctx, b); err != nil {
		return nil, errors.Join(err, b.End(ctx))
	}
	return b, nil
}

func (t *trial) likeOld(ctx context.Context, b *box) error {
	to, err := target(b.Primary())
	if err != nil {
		return err
	}
	quiet := *t // what it counts and notes is of the other server
	quiet.out = &Answer{}
	fresh, err := describe.Take(ctx, to, describe.Options{Now: t.Now})
	if err != nil {
		return err
	}
	if err := quiet.settings(ctx, b, fresh); err != nil {
		return err
	}
	l := &loader{trial: &quiet}
	defer l.close()
	if err := l.open(ctx, to); err != nil {
		return err
	}
	return l.load(ctx)
}

// unknown notes that nothing is known of a statement's plan.
func (t *trial) unknown(s Statement, why string) {
	t.out.Unknown = append(t.out.Unknown, PlanUnknown{Class: s.Class, SQL: s.SQL, Calls: s.Calls, Trouble: fleet.Trouble{Why: why}})
}

// plan compares the plans of one statement. All are asked for as tables, the one form that all versions have.
func (t *trial) plan(ctx context.Context, a asked, s Statement) error {
	take := func(c *mysql.Conn) (*plan.Plan, error) {
		taken, err := plan.Take(ctx, c, plan.Request{SQL: s.SQL, Database: s.Database, Form: "table"})
		if err != nil {
			return nil, err
		}
		return taken.Plan, nil
	}
	var was, live *plan.Plan
	var err error
	if a.before != nil {
		if was, err = take(a.before); err != nil {
			t.unknown(s, "the old version does not plan it either: "+err.Error())
			return ctx.Err()
		}
	}
	now, err := take(a.after)
	number := mysql.ErrorNumber(err)
	switch {
	case err != nil && (ctx.Err() != nil || number == 0):
		t.unknown(s, err.Error())
		return ctx.Err()
	case number == errno.NoSuchTable || number == errno.UnknownDatabase || number == errno.UnknownColumn:
		t.unknown(s, "what it uses is not on the new server, which refuses its definition: "+said(err))
		return nil
	case err != nil:
		t.out.Compared++
		t.out.Plans = append(t.out.Plans, PlanChange{Class: s.Class, SQL: s.SQL, Calls: s.Calls, Error: numbered(said(err), number)})
		return nil
	}
	if a.live == nil {
		t.unknown(s, "the server itself is not at hand: how large its tables are is not known")
		return nil
	}
	if live, err = take(a.live); err != nil {
		t.unknown(s, "the server does not tell its plan: "+err.Error())
		return ctx.Err()
	}
	changed, why := compare(live, was, now, a.old)
	switch {
	case why != "":
		t.unknown(s, why)
	case changed:
		t.out.Compared++
		t.out.Plans = append(t.out.Plans, PlanChange{Class: s.Class, SQL: s.SQL, Calls: s.Calls, Before: plan.Text(was, plan.TextOptions{}), After: plan.Text(now, plan.TextOptions{})})
	default:
		t.out.Compared++
	}
	return nil
}

// numbered is what a server said, with the number of the error.
func numbered(text string, number int) string {
	if strings.Contains(text, strconv.Itoa(number)) {
		return text
	}
	return fmt.Sprintf("%s (error %d)", text, number)
}

// compare says whether the version changes a plan, or why that is not known. live is the plan on the old server, was and now are those on
// servers of the old and the new version without rows; was is nil if there is no such server.
func compare(live, was, now *plan.Plan, old string) (changed bool, why string) {
	switch {
	case was == nil && alike(live, now):
		return false, ""
	case was == nil:
		return false, "it is another than the server's, but no " + old + " is installed here to tell whether that is the version's doing or comes of rows that are missing"
	case oneRow(live) && noRow(was) && noRow(now):
		return false, "" // a row by a unique key, which is read before anything is planned
	case !alike(live, was):
		return false, "with the statistics of the tables but not their rows the old version plans it otherwise than the server does"
	case shape(was) == shape(now):
		return false, ""
	case guessed(now, live):
		return false, "the new version would read a range of an index, and how many rows are in it is not known without the rows"
	}
	return true, ""
}

// shape is what of a plan has to be the same.
func shape(p *plan.Plan) string {
	var b strings.Builder
	b.WriteString(plan.Shape(p))
	p.Root.Walk(func(n, _ *plan.Node, _ int) { b.WriteString(n.KeyLength + "/") })
	return b.String()
}

// alike reports whether two plans are the same, and expect about as many rows of each table.
func alike(a, b *plan.Plan) bool {
	if shape(a) != shape(b) {
		return false
	}
	y := tablesOf(b)
	for i, n := range tablesOf(a) {
		if low, high := min(n.Rows.Or(0), y[i].Rows.Or(0)), max(n.Rows.Or(0), y[i].Rows.Or(0)); high > 2*low && high-low > fewRows {
			return false
		}
	}
	return true
}

// fewRows is a number of rows for which no plan is changed.
const fewRows = 10

// tablesOf are the accesses to tables in a plan.
func tablesOf(p *plan.Plan) (list []*plan.Node) {
	p.Root.Walk(func(n, _ *plan.Node, _ int) {
		if n.Kind == plan.KindTable {
			list = append(list, n)
		}
	})
	return list
}

// oneRow reports whether a plan reads one row of one table by a unique key.
func oneRow(p *plan.Plan) bool {
	list := tablesOf(p)
	return len(list) == 1 && list[0].Access == "const"
}

// noRow reports whether the server looked for that row and did not find it.
func noRow(p *plan.Plan) bool {
	found := false
	p.Root.Walk(func(n, _ *plan.Node, _ int) {
		m := strings.ToLower(n.Message + " " + n.Title)
		found = found || strings.Contains(m, "no matching row in const table") || strings.Contains(m, "impossible where noticed after reading const tables")
	})
	return found
}

// guessed reports whether a plan reads a range for which the empty index was looked into, where the other plan does not read the same.
func guessed(p, other *plan.Plan) bool {
	for _, n := range tablesOf(p) {
		if n.Access != "range" && n.Access != "index_merge" || n.Rows.Or(math.Inf(1)) > 1 {
			continue
		}
		same := false
		for _, o := range tablesOf(other) {
			same = same || o.Name() == n.Name() && o.Access == n.Access && o.Key == n.Key
		}
		if !same {
			return true
		}
	}
	return false
}
