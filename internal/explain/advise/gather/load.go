package gather

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/explain/digest"
	"github.com/rissodb/risso/internal/explain/digest/live"
	"github.com/rissodb/risso/internal/explain/plan"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sqltext"
)

// planned is how many classes, those that cost most, have their plans taken.
const planned = 30

const loadWhat = "what classes of statements cost"

// Load reads what classes of statements cost, from performance_schema or from a profile of the slow log, and what the plans of those say that
// cost most. missing is what could not be found out. Plans are asked for on sessions of their own: taking them changes a session.
func Load(ctx context.Context, target mysql.Target, slow *digest.Profile) (l *advise.Load, missing []fleet.Trouble, err error) {
	traffic := &mysql.Traffic{}
	c, err := mysql.Connect(ctx, target, traffic)
	if err != nil {
		return nil, nil, err
	}
	defer c.Close()
	l = &advise.Load{By: "the slow log", Writes: map[mysql.TableName]advise.Written{}}
	p := slow
	if p == nil {
		l.By = "performance_schema"
		off, err := read.CountsStatements(ctx, c)
		if err == nil && off != nil {
			return nil, []fleet.Trouble{{What: loadWhat, Why: off.Why, Remedy: off.Remedy + "; or give risso advise a slow log: --slow-log FILE"}}, nil
		}
		if err == nil {
			var r *live.Reader
			if r, err = live.New(c, traffic, live.Options{Samples: 3, NoLatency: true}); err == nil {
				p, err = r.Read(ctx)
			}
		}
		if err != nil {
			if number := mysql.ErrorNumber(err); number == errno.StatementTimeout || number == errno.StatementTimeoutMariaDB { // the server, or the account, lets none take so long
				return nil, []fleet.Trouble{{What: loadWhat, Why: err.Error()}}, nil
			}
			if class := mysql.ClassOf(err); class == mysql.ClassPrivilege || class == mysql.ClassMissing {
				return nil, []fleet.Trouble{{What: loadWhat, Why: err.Error(), Remedy: cmp.Or(fleet.RemedyOf(err), c.Server.GrantPerformanceSchema())}}, nil
			}
			return nil, nil, fmt.Errorf("%s: %w", loadWhat, err)
		}
	}
	l.Span = max(p.To.Sub(p.From), time.Second)
	l.Seconds = sum(p.Classes, "Query_time")
	v := &loader{target: target, load: l, indexes: map[mysql.TableName]int{}}
	for i := range p.Classes {
		v.class(c.Server, &p.Classes[i])
	}
	err = v.plans(ctx)
	v.writes(p)
	return l, v.missing, err
}

func sum(classes []digest.Class, metric string) (total float64) {
	for i := range classes {
		total += zero(classes[i].Metric(metric).Sum)
	}
	return total
}

func zero(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
}

// loader makes classes of a profile.
type loader struct {
	target  mysql.Target
	load    *advise.Load
	indexes map[mysql.TableName]int // how many a table has, where a plan's facts told it
	missing []fleet.Trouble
}

// class takes a class of a profile, if it costs enough to be looked at, reads tables, and they are not only the server's own.
func (v *loader) class(server mysql.Server, d *digest.Class) {
	if len(v.load.Classes) >= planned {
		return
	}
	c := advise.Class{ID: d.ID, Fingerprint: d.Fingerprint, Verb: strings.ToLower(d.Verb), Problem: "no statement of it is known as it was run"}
	count := func(name string) int64 { return int64(zero(d.Metric(name).Sum)) }
	c.Cost = fleet.Cost{Calls: d.Calls, Seconds: zero(d.Metric("Query_time").Sum), RowsSent: count("Rows_sent"), RowsExamined: count("Rows_examined"), RowsAffected: count("Rows_affected"), TmpTables: count("Tmp_tables"), TmpDiskTables: count("Tmp_disk_tables"), NoIndex: count("No_index_used")}
	for _, f := range d.Flags {
		switch f.Name {
		case "Full_scan":
			c.NoIndex = f.Yes
		case "Tmp_table_on_disk":
			c.TmpDiskTables = f.Yes
		}
	}
	for _, values := range d.Values {
		if values.Name == "db" && len(values.Top) > 0 {
			c.Database = values.Top[0].Value
		}
	}
	for _, s := range d.Samples {
		if s.Cut == 0 && s.Query != "" {
			if c.Sample == "" {
				c.Sample, c.Database, c.Problem = s.Query, cmp.Or(s.DB, c.Database), ""
			}
			if cmp.Or(s.DB, c.Database) == c.Database {
				c.Samples = append(c.Samples, s.Query)
			}
		}
	}
	c.Tables = tablesOf(server, d, c.Sample, c.Database)
	if len(c.Tables) > 0 && slices.ContainsFunc(c.Tables, func(t mysql.TableName) bool { return !mysql.SystemSchema(t.Schema) }) {
		v.load.Classes = append(v.load.Classes, c)
	}
}

// tablesOf are the tables that a class names: by its sample, for MySQL's DIGEST_TEXT does not double backticks in names.
func tablesOf(server mysql.Server, d *digest.Class, sample, database string) (out []mysql.TableName) {
	tables := d.Tables
	if sample != "" {
		tables = sqltext.Tables([]byte(server.Dialect().ForDefault(sample)))
	}
	for _, t := range tables {
		out = append(out, mysql.TableName{Schema: cmp.Or(t.Schema, database), Name: t.Name})
	}
	return out
}

// reads reports whether a class looks for rows, so that it has a plan.
func reads(c *advise.Class) bool {
	switch c.Verb {
	case "select", "with", "update", "delete":
		return true
	case "insert", "replace":
		return strings.Contains(c.Fingerprint, "select ")
	}
	return false
}

// plans takes the plan of each class.
func (v *loader) plans(ctx context.Context) error {
	blind := 0
	for _, c := range v.load.Classes {
		if c.Sample == "" && reads(&c) && (v.load.Seconds <= 0 || c.Seconds/v.load.Seconds >= advise.LeastShare) {
			blind++
		}
	}
	if blind > 0 {
		v.missing = append(v.missing, fleet.Trouble{What: "plans of " + digits.Plural(blind, "class of statements", "classes of statements"), Why: "no statement of them is known as it was run",
			Remedy: "UPDATE performance_schema.setup_consumers SET ENABLED = 'YES' WHERE NAME IN ('events_statements_current', 'events_statements_history'); or give risso advise a slow log: --slow-log FILE"})
	}
	for i := range v.load.Classes {
		c := &v.load.Classes[i]
		if c.Sample == "" || !reads(c) {
			continue
		}
		if err := v.plan(ctx, c); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			c.Problem = err.Error()
			v.missing = append(v.missing, fleet.Trouble{What: "the plan of class " + c.ID, Why: err.Error(), Remedy: fleet.RemedyOf(err)})
		}
	}
	return nil
}

func (v *loader) plan(ctx context.Context, c *advise.Class) error {
	conn, err := mysql.Connect(ctx, v.target, nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.Unobserved(ctx)
	taken, err := plan.Take(ctx, conn, plan.Request{SQL: c.Sample, Database: c.Database})
	if err != nil {
		return err
	}
	facts, err := plan.ReadFacts(ctx, conn, taken.Plan, taken.SQL)
	if err != nil {
		return err
	}
	c.Indexes = plan.Advise(taken.Plan, facts, taken.SQL)
	known := map[string]plan.TableFacts{}
	for _, f := range facts {
		known[strings.ToLower(f.Name)] = f
		v.indexes[mysql.TableName{Schema: f.Schema, Name: f.Table}] = len(f.Indexes)
	}
	taken.Plan.Root.Walk(func(n, _ *plan.Node, _ int) {
		if f, ok := known[strings.ToLower(n.Name())]; ok && n.Kind == plan.KindTable && n.Access == plan.AccessAll && f.Rows >= leastScanned {
			c.Scans = append(c.Scans, advise.Scan{Table: mysql.TableName{Schema: f.Schema, Name: f.Table}, Rows: f.Rows})
		}
	})
	c.Casts, err = casts(ctx, conn, taken.SQL)
	return err
}

// leastScanned is how many rows a table has at least if a scan of it is worth a finding.
const leastScanned = 1000

// casts asks the server for which comparisons it can use no index because of their types or collations: error 1739, a warning of EXPLAIN
// (ER_WARN_INDEX_NOT_APPLICABLE) of MySQL; MariaDB since 10.6.16 has a note of number 1105 if note_verbosity says so (MDEV-32203). The statement was explained just
// before, so that what EXPLAIN would run was looked for.
func casts(ctx context.Context, c *mysql.Conn, sql string) (out []string, err error) {
	if err := c.Exec(ctx, "SET SESSION /* risso: notes of EXPLAIN */ note_verbosity = 'basic,explain'"); err != nil && mysql.ClassOf(err) != mysql.ClassMissing {
		return nil, err
	}
	if err := c.Exec(ctx, "START TRANSACTION /* risso: plan */"); err != nil {
		return nil, err
	}
	defer func() { _ = c.Exec(context.WithoutCancel(ctx), "ROLLBACK /* risso: plan */") }()
	if err := c.Query(ctx, "EXPLAIN /* risso: plan */ "+sql, mysql.IgnoreRow); err != nil {
		return nil, fmt.Errorf("explain: %w", err)
	}
	rows, err := c.Maps(ctx, "SHOW /* risso: notes of EXPLAIN */ WARNINGS")
	for _, r := range rows {
		if (r["Code"] == "1739" || strings.HasPrefix(r["Message"], "Cannot use key")) && !slices.Contains(out, r["Message"]) {
			out = append(out, r["Message"])
		}
	}
	return out, err
}

// writes sums up how often tables are written.
func (v *loader) writes(p *digest.Profile) {
	type insert struct{ rows, seconds float64 }
	inserts := map[mysql.TableName]insert{}
	for i := range p.Classes {
		d := &p.Classes[i]
		verb := strings.ToLower(d.Verb)
		if len(d.Tables) == 0 || !slices.Contains([]string{"insert", "replace", "update", "delete"}, verb) {
			continue
		}
		database := ""
		for _, values := range d.Values {
			if values.Name == "db" && len(values.Top) > 0 {
				database = values.Top[0].Value
			}
		}
		t := mysql.TableName{Schema: cmp.Or(d.Tables[0].Schema, database), Name: d.Tables[0].Name}
		w, rows := v.load.Writes[t], zero(d.Metric("Rows_affected").Sum)
		w.Rows += rows
		if verb == "insert" && len(d.Tables) == 1 {
			x := inserts[t]
			inserts[t] = insert{x.rows + rows, x.seconds + zero(d.Metric("Query_time").Sum)}
		}
		if n := v.indexes[t]; n > 0 && inserts[t].rows > 0 {
			w.Indexes, w.Entry = n, inserts[t].seconds/inserts[t].rows/float64(n)
		}
		v.load.Writes[t] = w
	}
}

// load looks at classes of statements, if anybody wants to know of them.
func (g *gatherer) load(ctx context.Context) error {
	if g.o.NoLoad || g.o.Wanted != nil && !slices.ContainsFunc(advise.LoadChecks(), func(c advise.Check) bool { return g.o.Wanted(c.ID) }) {
		return nil
	}
	l, missing, err := Load(ctx, g.target, g.o.Slow)
	if err != nil {
		return err
	}
	for _, m := range missing {
		g.unread(m.What, m.Why, m.Remedy)
	}
	if l != nil {
		l.Classes = slices.DeleteFunc(l.Classes, func(c advise.Class) bool {
			return !slices.ContainsFunc(c.Tables, func(t mysql.TableName) bool { return g.o.Choice.Table(t.Schema, t.Name) })
		})
	}
	g.add(advise.OfLoad(g.server, l))
	return nil
}
