package schemas

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

func mysqlTarget(t *testing.T, kind string) drive.Target {
	t.Helper()
	at, err := mysql.ParseTarget(sandboxtest.Up(t, kind).DSN)
	if err != nil {
		t.Fatal(err)
	}
	return drive.ForMySQL(at)
}

// TestTenants makes schemas, accesses them, is interrupted while it makes more, and drops them.
func TestTenants(t *testing.T) {
	check := func(t *testing.T, target drive.Target) {
		p := workload.Defaults()
		p.Schemas, p.SchemaTables = 4, 5
		made, err := New("schemas", p)
		if err != nil {
			t.Fatal(err)
		}
		w := made.(*schemas)
		o := workload.PrepareOptions{Target: target, Threads: 2}
		if err := w.Prepare(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		counts := map[string]int{}
		for _, s := range w.Timings() {
			counts[s.Step] = s.Count
			if s.Mean <= 0 || s.Median > s.P95 || s.P95 > s.Max {
				t.Errorf("got %+v; want Mean more than 0, Median at most %v, P95 at most %v", s, s.P95, s.Max)
			}
		}
		if counts[makeTable] != 20 || counts[fillTable] != 20 || counts[makeSchema] != 4 {
			t.Errorf("steps %v; want counts[makeTable] 20, counts[fillTable] 20, counts[makeSchema] 4", counts)
		}
		var stop drive.Stop
		s, err := target.Open(t.Context(), &stop)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		c, err := w.Client(s, 0, rand.New(rand.NewPCG(1, 2)))
		if err != nil {
			t.Fatal(err)
		}
		var kinds [2]int
		for range 500 {
			if err := c.Transaction(); err != nil {
				t.Fatal(err)
			}
			kinds[c.(workload.KindedClient).Kind()]++
		}
		if kinds != [2]int{20, 480} {
			t.Errorf("first and later accesses of 20 tables: got %v, want [2]int{20, 480}", kinds)
		}
		if n, first, err := workload.Others(t.Context(), target); n != 0 || err != nil {
			t.Errorf("the guard sees %d, %s, %v; want 0", n, first, err)
		}
		if err := w.Cleanup(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		o.Progress = func(done, total int64) {
			if done > total/2 {
				cancel()
			}
		}
		if err := w.Prepare(ctx, o); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "has been removed") {
			t.Errorf("interrupted: got %v; want context.Canceled, \"has been removed\" in the error", err)
		}
		if left, err := there(s); err != nil || len(left) != 0 {
			t.Errorf("left: got %v, %v; want none", left, err)
		}
	}
	for _, kind := range []string{"mariadb", "mysql-9.7"} {
		t.Run(kind, func(t *testing.T) { check(t, mysqlTarget(t, kind)) })
	}
	t.Run("postgres", func(t *testing.T) {
		target, err := drive.ForPostgres(sandboxtest.Postgres(t).URL(""))
		if err != nil {
			t.Fatal(err)
		}
		check(t, target)
	})
}
