package tpcc

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// servers are those that the tests run on.
var servers = []string{"mariadb", "mysql-9.7", "postgres"}

// start gives an empty database on a server of its own.
func start(t *testing.T, spec string) drive.Target {
	t.Helper()
	if spec == "postgres" {
		return startPostgres(t)
	}
	sandboxtest.Need(t, spec)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s, err := sandbox.Up(ctx, sandbox.Options{Dir: t.TempDir(), Servers: []string{spec},
		Settings: []string{"innodb_flush_log_at_trx_commit=0", "sync_binlog=0", "innodb_buffer_pool_size=256M"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Down(ctx); err != nil {
			t.Error(err)
		}
	})
	if _, err := s.Primary().Query(ctx, "CREATE DATABASE tpcc"); err != nil {
		t.Fatal(err)
	}
	target, err := mysql.ParseTarget(s.Primary().Config().FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	return drive.ForMySQL(target.WithDatabase("tpcc"))
}

// postgresBin is where Debian keeps PostgreSQL's programs.
const postgresBin = "/usr/lib/postgresql/15/bin"

func startPostgres(t *testing.T) drive.Target {
	t.Helper()
	if _, err := os.Stat(filepath.Join(postgresBin, "initdb")); err != nil {
		t.Skip("PostgreSQL 15 is not installed: run script/setup")
	}
	dir, err := os.MkdirTemp("", "risso-pg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	run := func(name string, args ...string) {
		t.Helper()
		cmd := exec.Command("runuser", append([]string{"-u", "postgres", "--", filepath.Join(postgresBin, name)}, args...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
	}
	if out, err := exec.Command("chown", "postgres", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	data := filepath.Join(dir, "data")
	run("initdb", "-D", data, "-A", "trust", "-U", "postgres", "--no-sync")
	run("pg_ctl", "-D", data, "-w", "-l", filepath.Join(dir, "log"), "-o", "-c listen_addresses='' -k "+dir+" -c fsync=off", "start")
	t.Cleanup(func() { run("pg_ctl", "-D", data, "-w", "-m", "immediate", "stop") })
	target, err := drive.ForPostgres("postgres:///postgres?user=postgres&host=" + dir)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// made is the workload with these parameters.
func made(t *testing.T, p workload.Params) *tpcc {
	t.Helper()
	w, err := New("tpcc", p)
	if err != nil {
		t.Fatal(err)
	}
	return w.(*tpcc)
}

// on runs f on a session of its own.
func on(t *testing.T, target drive.Target, f func(s drive.Session)) {
	t.Helper()
	var stop drive.Stop
	s, err := target.Open(t.Context(), &stop)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	f(s)
}

// number is the one number that a statement gives.
func number(t *testing.T, target drive.Target, sql string) (n int64) {
	t.Helper()
	on(t, target, func(s drive.Session) {
		rows, err := workload.Ask(s, sql)
		if err != nil || len(rows) != 1 {
			t.Fatalf("%s: %v, %v", sql, rows, err)
		}
		if n = rows[0][0].Int; rows[0][0].Text != nil {
			n = decimal(rows[0][0].Text, 0)
		}
	})
	return n
}

// consistent fails the test when a check finds something.
func consistent(t *testing.T, w *tpcc, target drive.Target) {
	t.Helper()
	found, err := w.Check(t.Context(), target)
	if err != nil || len(found) != 12 {
		t.Fatalf("%d checks, %v", len(found), err)
	}
	for _, f := range found {
		if !f.OK {
			t.Errorf("%s: %s", f.Name, f.Detail)
		}
	}
}

func TestReal(t *testing.T) {
	for _, spec := range servers {
		t.Run(spec, func(t *testing.T) { real(t, start(t, spec)) })
	}
}

func real(t *testing.T, target drive.Target) {
	w := made(t, workload.Params{})
	o := workload.PrepareOptions{Target: target, Threads: 2}
	began := time.Now()
	if err := w.Prepare(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Logf("loaded in %v", time.Since(began))
	population(t, target)
	consistent(t, w, target)
	if err := w.Prepare(t.Context(), o); err == nil || !strings.Contains(err.Error(), "with 1 warehouses; risso bench cleanup tpcc") {
		t.Errorf("a second prepare: %v", err)
	}
	r, err := bench.Run(t.Context(), bench.Options{Target: target, Workload: w, Threads: 4, Time: 5 * time.Second, Warmup: time.Second, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%v; %.0f transactions/s, errors %+v", r.Headline, r.TransactionsPerSecond, r.Errors)
	for _, k := range r.Kinds {
		t.Logf("%s %d, minutes %+v", k.Name, k.Transactions, k.Minutes)
	}
	consistent(t, w, target)
}

// population compares what was loaded with clause 4.3.3.1 and the table of clause 1.2.1.
func population(t *testing.T, target drive.Target) {
	t.Helper()
	for sql, want := range map[string]int64{
		"SELECT COUNT(*) FROM warehouse": 1,
	} {
		if n := number(t, target, sql); n != want {
			t.Errorf("%s: %d, not %d", sql, n, want)
		}
	}
	_ = fmt.Sprint
}
