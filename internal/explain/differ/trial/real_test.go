package trial_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/explain/differ"
	"github.com/rissodb/risso/internal/explain/differ/describe"
	"github.com/rissodb/risso/internal/explain/differ/trial"
	"github.com/rissodb/risso/internal/explain/differ/upgrade"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m)) }

func run(t *testing.T, n *sandbox.Node, statements ...string) {
	t.Helper()
	db, err := n.DB()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func at(t *testing.T, n *sandbox.Node) mysql.Target {
	t.Helper()
	target, err := mysql.ParseTarget(n.DSN)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// upgraded is the answer of an upgrade of a server.
func upgraded(t *testing.T, n *sandbox.Node, to string, o trial.Options) *trial.Answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	d, err := describe.Take(ctx, at(t, n), describe.Options{Schemas: true, Now: time.Now(), Want: func(s string) bool { return s != "test" }})
	if err != nil {
		t.Fatal(err)
	}
	facts, err := describe.Facts(ctx, at(t, n), d)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := sandboxtest.Folder("rt-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	o.To, o.Now, o.Dir, o.Find = to, time.Now(), dir, sandboxtest.Find
	a, err := trial.Run(ctx, d, facts, o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// has finds a problem.
func has(a *trial.Answer, id, object string) *upgrade.Problem {
	i := slices.IndexFunc(a.Problems, func(p upgrade.Problem) bool { return p.ID == id && p.Object == object })
	if i < 0 {
		return nil
	}
	return &a.Problems[i]
}

// ofSchemas are the problems of objects in schemas, in words.
func ofSchemas(a *trial.Answer) string {
	var b strings.Builder
	for _, p := range a.Problems {
		if !strings.HasPrefix(p.ID, "default.changed") && !strings.HasPrefix(p.ID, "variable.") && p.ID != "account.plugin" {
			b.WriteString(p.ID + " " + p.Object + ": " + p.What + " | " + p.Said + "\n")
		}
	}
	return b.String()
}

// TestUpgrade: each trap on the way from 5.7 to 8.0 and 9.7 is found, and what is sound beside it is not accused; settings that the new version
// does not know are found by its refusal.
func TestUpgrade(t *testing.T) {
	sandboxtest.Need(t, "mysql-8.0")
	sandboxtest.Need(t, "mysql-9.7")
	n := sandboxtest.Up(t, "mysql-5.7", "query_cache_size=2097152", "log_warnings=1")
	run(t, n, append([]string{"SET sql_mode = 'STRICT_TRANS_TABLES'"}, sound...)...)
	run(t, n, laid()...)
	for to, level := range map[string]int{"mysql-8.0": 80, "mysql-9.7": 97} {
		o := trial.Options{}
		if level == 80 { // with a third server, of the old version
			o.Statements = []trial.Statement{{Class: "sorted", SQL: "SELECT shelf, COUNT(*) FROM copy_of GROUP BY shelf DESC", Database: "lending", Calls: 7}, {Class: "by key", SQL: "SELECT name FROM title WHERE title_id = 1", Database: "lending", Calls: 1}, {Class: "no plan", SQL: "CREATE TABLE x (id INT)", Database: "lending", Calls: 1}}
			o.Live = live(t, n)
		}
		a := upgraded(t, n, to, o)
		if level == 80 && (a.Compared != 2 || len(a.Unknown) != 0 || !slices.ContainsFunc(a.Plans, func(p trial.PlanChange) bool { return p.Class == "sorted" && strings.Contains(p.Error, "1064") })) {
			t.Errorf("statements: got %d compared, %+v, not tried %+v; want 2, of which the sorted one is refused", a.Compared, a.Plans, a.NotTried)
		}
		accused := without(ofSchemas(a), " sorted:") // a statement
		for _, tr := range traps() {
			for _, name := range tr.objects() {
				accused = without(accused, name)
			}
			if tr.from == 0 || tr.from > level {
				continue
			}
			p := has(a, tr.id, tr.object)
			switch {
			case p == nil:
				t.Errorf("to %s: %s of %s is not found", to, tr.id, tr.object)
			case tr.sure && (!p.Tried || tr.id != "account.plugin" && p.Said == ""):
				t.Errorf("to %s: %s of %s: got tried %t, said %q; want true and the server's words", to, tr.id, tr.object, p.Tried, p.Said)
			}
		}
		if accused != "" {
			t.Errorf("to %s, what is sound is accused:\n%s", to, accused)
		}
		for _, name := range []string{"query_cache_size", "log_warnings"} {
			if p := has(a, "variable.removed", name); p == nil || !p.Tried || !strings.Contains(p.Said, name) {
				t.Errorf("to %s: removed variable %s: got %+v, want it with the server's words", to, name, p)
			}
		}
		if p := has(a, "default.changed", "event_scheduler"); p != nil {
			t.Errorf("to %s: event_scheduler, which the trial sets itself: got %v, want nothing", to, p)
		}
		if p := has(a, "default.changed", "local_infile"); p == nil || !p.Tried {
			t.Errorf("to %s: the default of local_infile: got %v, want that it changes", to, p)
		}
		if level == 97 {
			defer remedied(t, n, a)
		}
	}
}

// remedied runs the statements that are printed as remedies on the old server; what they mend is not found any more.
func remedied(t *testing.T, n *sandbox.Node, a *trial.Answer) {
	t.Helper()
	var mended []upgrade.Problem
	for _, p := range a.Problems {
		if len(p.Statements) > 0 {
			run(t, n, p.Statements...)
			mended = append(mended, p)
		}
	}
	if len(mended) < 6 {
		t.Errorf("got %d problems with statements that mend them, want 6 or more", len(mended))
	}
	d, err := describe.Take(t.Context(), at(t, n), describe.Options{Schemas: true, Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	facts, err := describe.Facts(t.Context(), at(t, n), d)
	if err != nil {
		t.Fatal(err)
	}
	kind, _ := sandbox.Named("mysql-9.7")
	left := &trial.Answer{Problems: upgrade.Find(d, facts, kind)}
	for _, p := range mended {
		if has(left, p.ID, p.Object) != nil {
			t.Errorf("%s of %s is still there after %v", p.ID, p.Object, p.Statements)
		}
	}
	chained(t, d, func(tr trap) bool {
		return slices.ContainsFunc(mended, func(p upgrade.Problem) bool { return p.ID == tr.id && p.Object == tr.object })
	})
}

// chained goes on with what came from 5.7, as far as 8.0 took it: on the way to 9.7 the traps for 9.7 are found that nobody mended.
func chained(t *testing.T, d *differ.Description, mended func(trap) bool) {
	t.Helper()
	n := sandboxtest.Lend(t, "mysql-8.0")
	db, err := n.DB()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	s := d.Schemas["lending"]
	list := []string{"SET foreign_key_checks = 0, sql_mode = ''", s.Create, "USE lending"}
	for _, create := range s.Tables {
		list = append(list, create)
	}
	for _, o := range s.Objects {
		list = append(list, o.Create)
	}
	refused := 0
	for i, create := range list {
		if _, err := db.ExecContext(t.Context(), create); err != nil && i > 2 {
			refused++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if refused > 20 {
		t.Errorf("8.0 refused %d of %d definitions", refused, len(list))
	}
	a := upgraded(t, n, "mysql-9.7", trial.Options{})
	found := 0
	for _, tr := range traps() {
		if tr.from != 97 || tr.id == "account.plugin" || mended(tr) {
			continue
		}
		if found++; has(a, tr.id, tr.object) == nil {
			t.Errorf("5.7 to 8.0 to 9.7: %s of %s is not found", tr.id, tr.object)
		}
	}
	if found < 6 {
		t.Errorf("5.7 to 8.0 to 9.7: got %d traps that were left, want 6 or more", found)
	}
}

// laid are the statements that lay all traps.
func laid() []string {
	list := []string{old}
	for _, tr := range traps() {
		list = append(list, tr.make...)
	}
	return list
}

// without leaves out the lines about an object.
func without(lines, object string) string {
	var b strings.Builder
	for l := range strings.Lines(lines) {
		if !strings.Contains(l, object) {
			b.WriteString(l)
		}
	}
	return b.String()
}
