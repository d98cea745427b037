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

// TestUpgrade: each trap on the way from 5.7 to 8.0 and 9.7 is found, and what is sound is not accused; the statements printed as remedies
// run on the old server, and what they mend is gone afterwards.
func TestUpgrade(t *testing.T) {
	// Not parallel to others: each answer starts two servers.
	n := sandboxtest.Lend(t, "mysql-5.7", "query_cache_size=1048576", "innodb_file_format=Barracuda", "log_warnings=1")
	sandboxtest.Need(t, "mysql-8.0")
	sandboxtest.Need(t, "mysql-9.7")
	run(t, n, append([]string{"SET sql_mode = 'STRICT_TRANS_TABLES'"}, sound...)...)
	for to, least := range map[string]int{"mysql-8.0": 80, "mysql-9.7": 97} {
		_ = least
		if words := ofSchemas(upgraded(t, n, to, trial.Options{})); words != "" {
			t.Errorf("to %s, what is sound is accused:\n%s", to, words)
		}
	}
	lay := []string{old}
	for _, tr := range traps() {
		lay = append(lay, tr.make...)
	}
	run(t, n, lay...)
	t.Cleanup(func() { run(t, n, "DROP DATABASE lending", "DROP TABLE IF EXISTS mysql.parameters, mysql.parameters_old", "DROP TABLESPACE shared") })
	for to, level := range map[string]int{"mysql-8.0": 80, "mysql-9.7": 97} {
		a := upgraded(t, n, to, trial.Options{})
		for _, tr := range traps() {
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
		for _, name := range []string{"query_cache_size", "log_warnings"} {
			if p := has(a, "variable.removed", name); p == nil || !p.Tried || !strings.Contains(p.Said, name) {
				t.Errorf("to %s: removed variable %s: got %+v, want it with the server's words", to, name, p)
			}
		}
		if p := has(a, "default.changed", "event_scheduler"); p == nil || !p.Tried {
			t.Errorf("to %s: the default of event_scheduler: got %v, want that it changes", to, p)
		}
		t.Log(to, "\n"+ofSchemas(a))
	}
	_ = differ.Format
}
