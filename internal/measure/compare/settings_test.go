package compare

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/workload"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestMain is also the process that is killed while it has changed settings.
func TestMain(m *testing.M) {
	if dsn := os.Getenv("COMPARE_TEST_HOLD"); dsn != "" {
		hold(dsn, os.Getenv("COMPARE_TEST_STATE"))
		return
	}
	os.Exit(m.Run())
}

func hold(dsn, dir string) {
	target, err := mysql.ParseTarget(dsn)
	if err == nil {
		var s *Settings
		s, _, err = PlanSettings(context.Background(), target, []Setting{{Name: "sync_binlog", Value: "1"}}, []Setting{{Name: "sync_binlog", Value: "77"}})
		if err == nil {
			err = s.Begin(context.Background(), dir)
		}
		if err == nil {
			_, err = s.Apply(context.Background(), true)
		}
	}
	if err != nil {
		os.Stdout.WriteString(err.Error())
		os.Exit(1)
	}
	os.Stdout.WriteString("held\n")
	time.Sleep(time.Hour)
}

func parse(t *testing.T, n *sandbox.Node) mysql.Target {
	t.Helper()
	target, err := mysql.ParseTarget(n.DSN)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// variable is a global variable as the server holds it.
func variable(t *testing.T, target mysql.Target, name string) string {
	t.Helper()
	c, err := mysql.Connect(t.Context(), target, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := readVariable(t.Context(), c, name)
	if err != nil {
		t.Fatal(err)
	}
	return s.Value
}

func TestSettingsOnRealServers(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			n := sandboxtest.Up(t, spec)
			target := parse(t, n)
			t.Run("put back", func(t *testing.T) { settingsPutBack(t, target) })
			t.Run("wrong use", func(t *testing.T) { settingsWrongUse(t, target) })
			t.Run("killed", func(t *testing.T) { settingsKilled(t, target, n) })
		})
	}
}

func settingsPutBack(t *testing.T, target mysql.Target) {
	dir := t.TempDir()
	before := []string{variable(t, target, "sync_binlog"), variable(t, target, "sql_mode"), variable(t, target, "max_heap_table_size"), variable(t, target, "innodb_max_dirty_pages_pct")}
	s, plan, err := PlanSettings(t.Context(), target,
		[]Setting{{Name: "sync_binlog", Value: "3"}, {Name: "sql_mode", Value: "ANSI_QUOTES"}},
		[]Setting{{Name: "max_heap_table_size", Value: "1048576"}, {Name: "innodb_max_dirty_pages_pct", Value: "33.5"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.A) != 4 || len(plan.B) != 4 || len(plan.Back) != 4 {
		t.Errorf("plan: %+v", plan)
	}
	check := func(when string, want ...string) {
		t.Helper()
		for i, name := range []string{"sync_binlog", "sql_mode", "max_heap_table_size", "innodb_max_dirty_pages_pct"} {
			if got := variable(t, target, name); got != want[i] {
				t.Errorf("%s: %s is %q, not %q", when, name, got, want[i])
			}
		}
	}
	check("planned", before...)
	if err := s.Begin(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	check("begun", before...)
	ctx, cancel := context.WithCancel(t.Context())
	order, _ := Order(OrderABBA, 3, 1)
	var a, b Side
	made := 0
	run := func(second bool) Runner {
		return func(ctx context.Context) (*bench.Result, error) {
			now, err := s.Apply(ctx, second)
			if err != nil {
				return nil, err
			}
			if second {
				check("B", before[0], before[1], "1048576", "33.5")
			} else {
				check("A", "3", "ANSI_QUOTES", before[2], before[3])
			}
			if len(now) != 4 {
				t.Errorf("set: %v", now)
			}
			if made++; made == 4 {
				cancel() // Ctrl-C in the middle of a run
			}
			return &bench.Result{TransactionsPerSecond: 1}, nil
		}
	}
	interrupted, err := Interleave(ctx, order, &a, &b, run(false), run(true), nil)
	if err != nil || !interrupted || len(a.Runs)+len(b.Runs) != 3 {
		t.Errorf("interrupted %v, %d and %d runs, %v", interrupted, len(a.Runs), len(b.Runs), err)
	}
	if err := s.PutBack(ctx); err != nil { // ctx is over
		t.Fatal(err)
	}
	check("put back", before...)
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func settingsWrongUse(t *testing.T, target mysql.Target) {
	dir := t.TempDir()
	for _, bad := range []Setting{
		{Name: "no_such_variable", Value: "1"}, {Name: "innodb_flush_log_at_trx_commit", Value: "many"}, {Name: "innodb_log_file_size", Value: "1"}, {Name: "port", Value: "1"}, {Name: "sql_mode", Value: "NONSENSE"},
	} {
		before := variable(t, target, "sync_binlog")
		s, _, err := PlanSettings(t.Context(), target, []Setting{{Name: "sync_binlog", Value: "5"}}, []Setting{bad})
		if err == nil {
			err = s.Begin(t.Context(), dir)
		}
		if !errors.Is(err, workload.ErrUsage) {
			t.Errorf("%s: %v", bad, err)
		}
		if got := variable(t, target, "sync_binlog"); got != before {
			t.Errorf("%s: sync_binlog is left at %s", bad, got)
		}
	}
	if _, _, err := PlanSettings(t.Context(), target, []Setting{{Name: "sync_binlog", Value: "1"}, {Name: "sync_binlog", Value: "2"}}, nil); !errors.Is(err, workload.ErrUsage) {
		t.Errorf("twice: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func settingsKilled(t *testing.T, target mysql.Target, n *sandbox.Node) {
	dir, before := t.TempDir(), variable(t, target, "sync_binlog")
	killed := func() {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "COMPARE_TEST_HOLD="+n.DSN, "COMPARE_TEST_STATE="+dir)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		line := make([]byte, 200)
		if k, _ := out.Read(line); string(line[:k]) != "held\n" {
			t.Fatalf("the process says %q", line[:k])
		}
		// While it lives, nobody puts back or begins.
		if _, err := Restore(t.Context(), target, dir, false); !errors.Is(err, ErrLeft) {
			t.Errorf("restore beside a living process: %v", err)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
	}
	killed()
	if got := variable(t, target, "sync_binlog"); got != "77" {
		t.Fatalf("the killed process left sync_binlog at %s", got)
	}
	s, _, err := PlanSettings(t.Context(), target, []Setting{{Name: "sync_binlog", Value: "2"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Begin(t.Context(), dir); !errors.Is(err, ErrLeft) || !strings.Contains(err.Error(), "--restore") {
		t.Errorf("begun on what a killed one left: %v", err)
	}
	left, err := Restore(t.Context(), target, dir, true)
	if err != nil || left == nil || len(left.Statements) != 1 || variable(t, target, "sync_binlog") != "77" {
		t.Fatalf("dry run: %+v, %v", left, err)
	}
	if left, err = Restore(t.Context(), target, dir, false); err != nil || left == nil || left.Restarted {
		t.Fatalf("restore: %+v, %v", left, err)
	}
	if got := variable(t, target, "sync_binlog"); got != before {
		t.Errorf("sync_binlog is %s, was %s", got, before)
	}
	if left, err = Restore(t.Context(), target, dir, false); err != nil || left != nil {
		t.Errorf("restored twice: %+v, %v", left, err)
	}
	killed()
	time.Sleep(3 * time.Second) // the two lives must differ by more than the clocks may
	if err := errors.Join(n.Stop(t.Context()), n.Start(t.Context())); err != nil {
		t.Fatal(err)
	}
	if left, err = Restore(t.Context(), target, dir, false); err != nil || left == nil || !left.Restarted {
		t.Errorf("after a restart: %+v, %v", left, err)
	}
	if got := variable(t, target, "sync_binlog"); got != before {
		t.Errorf("after a restart sync_binlog is %s, was %s", got, before)
	}
}
