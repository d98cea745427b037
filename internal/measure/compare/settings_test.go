package compare

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/workload"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
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
			t.Run("companions", func(t *testing.T) { settingsCompanions(t, target) })
			t.Run("locked out", func(t *testing.T) { settingsLockedOut(t, n) })
			t.Run("strays", func(t *testing.T) { settingsStrays(t, target) })
			t.Run("wrong use", func(t *testing.T) { settingsWrongUse(t, target) })
			t.Run("killed", func(t *testing.T) { settingsKilled(t, target, n) })
		})
	}
}

func settingsPutBack(t *testing.T, target mysql.Target) {
	dir := t.TempDir()
	before := []string{variable(t, target, "sync_binlog"), variable(t, target, "sql_mode"), variable(t, target, "max_heap_table_size"), variable(t, target, "long_query_time")}
	s, plan, err := PlanSettings(t.Context(), target,
		[]Setting{{Name: "sync_binlog", Value: "3"}, {Name: "sql_mode", Value: "ANSI_QUOTES"}},
		[]Setting{{Name: "max_heap_table_size", Value: "1048576"}, {Name: "long_query_time", Value: "33.5"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.A) != 4 || len(plan.B) != 4 || len(plan.Back) != 4 {
		t.Errorf("plan: got %+v; want len(A) 4, len(B) 4, len(Back) 4", plan)
	}
	check := func(when string, want ...string) {
		t.Helper()
		for i, name := range []string{"sync_binlog", "sql_mode", "max_heap_table_size", "long_query_time"} {
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
				t.Errorf("set: got %v, want length 4", now)
			}
			if made++; made == 4 {
				cancel() // Ctrl-C in the middle of a run
			}
			return &bench.Result{TransactionsPerSecond: 1}, nil
		}
	}
	interrupted, err := Interleave(ctx, order, &a, &b, run(false), run(true), nil)
	if err != nil || !interrupted || len(a.Runs)+len(b.Runs) != 3 {
		t.Errorf("interrupted %v, %d and %d runs, %v; want interrupted true, len(a.Runs) + len(b.Runs) 3", interrupted, len(a.Runs), len(b.Runs), err)
	}
	if err := s.PutBack(ctx); err != nil { // ctx is over
		t.Fatal(err)
	}
	check("put back", before...)
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("left behind: got %v, want none", left)
	}
}

// set sets a global variable on the server.
func set(t *testing.T, target mysql.Target, list ...Setting) {
	t.Helper()
	c, err := mysql.Connect(t.Context(), target, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := apply(t.Context(), c, list); err != nil {
		t.Fatal(err)
	}
}

// What a server changes along with a setting is as before at the end, and between the runs of the other side.
func settingsCompanions(t *testing.T, target mysql.Target) {
	set(t, target, Setting{Name: "character_set_server", Value: "utf8mb4"}, Setting{Name: "collation_server", Value: "utf8mb4_unicode_ci"},
		Setting{Name: "innodb_io_capacity", Value: "200"}, Setting{Name: "innodb_io_capacity_max", Value: "2000"},
		Setting{Name: "innodb_max_dirty_pages_pct", Value: "75"}, Setting{Name: "innodb_max_dirty_pages_pct_lwm", Value: "50"})
	for _, side := range [][]Setting{
		{{Name: "character_set_server", Value: "latin1"}},
		{{Name: "collation_server", Value: "latin1_bin"}},
		{{Name: "innodb_io_capacity", Value: "100000"}},
		{{Name: "innodb_io_capacity_max", Value: "150"}},
		{{Name: "innodb_max_dirty_pages_pct", Value: "10"}},
		{{Name: "innodb_max_dirty_pages_pct", Value: "10"}, {Name: "innodb_max_dirty_pages_pct_lwm", Value: "5"}},
		{{Name: "super_read_only", Value: "ON"}},
		{{Name: "read_only", Value: "ON"}},
	} {
		s, _, err := PlanSettings(t.Context(), target, side, nil)
		if errors.Is(err, workload.ErrUsage) && side[0].Name == "super_read_only" {
			continue // MariaDB has none
		}
		if err != nil {
			t.Fatal(err)
		}
		was := map[string]string{}
		for _, o := range s.old {
			was[o.Name] = o.Value
		}
		as := func(when string, not []Setting) {
			t.Helper()
			for name, want := range was {
				if slices.ContainsFunc(not, func(v Setting) bool { return v.Name == name }) || movesWith(name, not) {
					continue
				}
				if got := variable(t, target, name); got != want {
					t.Errorf("%v, %s: got %s=%s, want %s", side, when, name, got, want)
				}
			}
		}
		dir := t.TempDir()
		if err := s.Begin(t.Context(), dir); err != nil {
			t.Fatalf("%v: %v", side, err)
		}
		as("begun", nil)
		for _, second := range []bool{false, true, false, true} {
			now, err := s.Apply(t.Context(), second)
			if err != nil {
				t.Fatalf("%v: %v", side, err)
			}
			if second {
				as("B", nil)
			} else if a, _ := s.Stands(); !slices.Equal(now, a) || variable(t, target, side[0].Name) == was[side[0].Name] {
				t.Errorf("A: got %v, want %v as when it was tried, and not %s", now, a, was[side[0].Name])
			}
		}
		if _, err := s.Apply(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		if err := s.PutBack(t.Context()); err != nil {
			t.Fatalf("%v: %v", side, err)
		}
		as("put back", nil)
	}
}

// Settings with which no session could log in any more are refused, and put back by the session that is there.
func settingsLockedOut(t *testing.T, n *sandbox.Node) {
	for _, side := range []Setting{{Name: "require_secure_transport", Value: "ON"}, {Name: "init_connect", Value: "no statement"}} {
		rights := "ALL"
		if side.Name == "init_connect" {
			if strings.HasPrefix(n.Server, "mariadb") {
				continue // the account that may set it there is exempt from it
			}
			rights = "SELECT, SYSTEM_VARIABLES_ADMIN"
		}
		if _, err := n.Query(t.Context(), "DROP USER IF EXISTS plain@'127.0.0.1'; CREATE USER plain@'127.0.0.1' IDENTIFIED BY 'p'; GRANT "+rights+" ON *.* TO plain@'127.0.0.1'"); err != nil {
			t.Fatal(err)
		}
		target, err := mysql.ParseTarget(fmt.Sprintf("plain:p@tcp(127.0.0.1:%d)/", n.Port))
		if err != nil {
			t.Fatal(err)
		}
		was := variable(t, parse(t, n), side.Name)
		s, _, err := PlanSettings(t.Context(), target, nil, []Setting{side})
		if err != nil {
			t.Fatal(err)
		}
		err = s.Begin(t.Context(), t.TempDir())
		if !errors.Is(err, workload.ErrUsage) || !strings.Contains(err.Error(), "the server takes no new session") || errors.Is(err, ErrNotRestored) {
			t.Errorf("%v: got %v, want that the server takes no new session", side, err)
		}
		if got := variable(t, parse(t, n), side.Name); got != was {
			t.Errorf("%v: got %s, want it put back to %s", side, got, was)
		}
	}
}

// A variable that moves unexpectedly is put back, and named; what somebody else changed in the meantime stays.
func settingsStrays(t *testing.T, target mysql.Target) {
	c, err := mysql.Connect(t.Context(), target, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	before, err := read.StillVariables(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	move := func(ctx context.Context) error {
		return apply(ctx, c, []Setting{{Name: "max_length_for_sort_data", Value: "2048"}})
	}
	if err := move(t.Context()); err != nil {
		t.Fatal(err)
	}
	err = strays(t.Context(), c, before, move)
	if !errors.Is(err, workload.ErrUsage) || !strings.Contains(err.Error(), "max_length_for_sort_data along") {
		t.Errorf("a variable that moves each time: got %v; want workload.ErrUsage, \"max_length_for_sort_data along\" in the error", err)
	}
	if got, want := variable(t, target, "max_length_for_sort_data"), before["max_length_for_sort_data"]; got != want {
		t.Errorf("a variable that moves each time: left at %s, want %s", got, want)
	}
	if err := move(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := strays(t.Context(), c, before, func(context.Context) error { return nil }); err != nil {
		t.Errorf("a variable that somebody else changed: got %v, want no error", err)
	}
	if got := variable(t, target, "max_length_for_sort_data"); got != "2048" {
		t.Errorf("a variable that somebody else changed: got %s, want 2048", got)
	}
	set(t, target, Setting{Name: "max_length_for_sort_data", Value: before["max_length_for_sort_data"]})
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
			t.Errorf("%s: got %v, want workload.ErrUsage", bad, err)
		}
		if got := variable(t, target, "sync_binlog"); got != before {
			t.Errorf("%s: sync_binlog is left at %s, want %s", bad, got, before)
		}
	}
	if _, _, err := PlanSettings(t.Context(), target, []Setting{{Name: "sync_binlog", Value: "1"}, {Name: "sync_binlog", Value: "2"}}, nil); !errors.Is(err, workload.ErrUsage) {
		t.Errorf("twice: got %v, want workload.ErrUsage", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("left behind: got %v, want none", left)
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
			t.Fatalf("the process says %q, want \"held\\n\"", line[:k])
		}
		// While it lives, no other process puts back or begins.
		if _, err := Restore(t.Context(), target, dir, false); !errors.Is(err, ErrLeft) {
			t.Errorf("restore beside a living process: got %v, want ErrLeft", err)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
	}
	killed()
	if got := variable(t, target, "sync_binlog"); got != "77" {
		t.Fatalf("the killed process left sync_binlog at %s, want \"77\"", got)
	}
	s, _, err := PlanSettings(t.Context(), target, []Setting{{Name: "sync_binlog", Value: "2"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Begin(t.Context(), dir); !errors.Is(err, ErrLeft) || !strings.Contains(err.Error(), "--restore") {
		t.Errorf("begun on what a killed one left: got %v; want ErrLeft, \"--restore\" in the error", err)
	}
	left, err := Restore(t.Context(), target, dir, true)
	if err != nil || left == nil || len(left.Statements) != 1 || variable(t, target, "sync_binlog") != "77" {
		t.Fatalf("dry run: got %+v, %v; want left not nil, len(Statements) 1, variable(t, target, \"sync_binlog\") \"77\"", left, err)
	}
	if left, err = Restore(t.Context(), target, dir, false); err != nil || left == nil || left.Restarted {
		t.Fatalf("restore: got %+v, %v; want left not nil, Restarted false", left, err)
	}
	if got := variable(t, target, "sync_binlog"); got != before {
		t.Errorf("sync_binlog is %s, was %s", got, before)
	}
	if left, err = Restore(t.Context(), target, dir, false); err != nil || left != nil {
		t.Errorf("restored twice: got %+v, %v; want nil", left, err)
	}
	killed()
	time.Sleep(3 * time.Second) // the two lives must differ by more than the clocks may
	if err := errors.Join(n.Stop(t.Context()), n.Start(t.Context())); err != nil {
		t.Fatal(err)
	}
	if left, err = Restore(t.Context(), target, dir, false); err != nil || left == nil || !left.Restarted {
		t.Errorf("after a restart: got %+v, %v; want left not nil, Restarted true", left, err)
	}
	if got := variable(t, target, "sync_binlog"); got != before {
		t.Errorf("after a restart sync_binlog is %s, was %s", got, before)
	}
}
