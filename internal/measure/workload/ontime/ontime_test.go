package ontime

import (
	"context"
	"errors"
	"math"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m)) }

// target returns an empty database on a server.
func target(t *testing.T, kind string) drive.Target {
	t.Helper()
	if kind == "postgres" {
		to, err := drive.ForPostgres(sandboxtest.LendPostgres(t).URL(""))
		if err != nil {
			t.Fatal(err)
		}
		return to
	}
	node := sandboxtest.Lend(t, kind)
	if _, err := node.Query(t.Context(), "CREATE DATABASE bench"); err != nil {
		t.Fatal(err)
	}
	to, err := mysql.ParseTarget(node.DSN + "bench")
	if err != nil {
		t.Fatal(err)
	}
	return drive.ForMySQL(to)
}

func open(t *testing.T, to drive.Target) drive.Session {
	t.Helper()
	s, err := to.Open(t.Context(), new(drive.Stop))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func exec(t *testing.T, s drive.Session, sql string) {
	t.Helper()
	if _, err := s.Exec(drive.Other, sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func make1(t *testing.T, scale float64, change func(*workload.Params)) *ontime {
	t.Helper()
	p := workload.Defaults()
	p.Scale, p.Seed = scale, 7
	if change != nil {
		change(&p)
	}
	w, err := New("ontime", p)
	if err != nil {
		t.Fatal(err)
	}
	return w.(*ontime)
}

// TestServers loads flights by several sessions, compares both answers with what was made, finds a row that was changed,
// and measures both questions.
func TestServers(t *testing.T) {
	for _, kind := range []string{"mariadb", "mysql-9.7", "mysql-5.7", "postgres"} {
		t.Run(kind, func(t *testing.T) {
			to := target(t, kind)
			o := make1(t, 0.0343, nil)
			var most atomic.Int64
			po := workload.PrepareOptions{Target: to, Threads: 3, Progress: func(done, total int64) {
				if total != 34300 {
					t.Errorf("got %d rows in all, want 34300", total)
				}
				for old := most.Load(); done > old && !most.CompareAndSwap(old, done); old = most.Load() {
				}
			}}
			if err := o.Prepare(t.Context(), po); err != nil {
				t.Fatal(err)
			}
			if most.Load() != 34300 {
				t.Errorf("progress ended at %d, want 34300", most.Load())
			}
			if err := o.Prepare(t.Context(), po); err == nil || !strings.Contains(err.Error(), "exists") {
				t.Errorf("a second prepare: got %v; want an error, \"exists\" in the error", err)
			}
			check(t, o, to, true, true)
			for _, unprepared := range []bool{false, true} {
				o.p.Unprepared = unprepared
				r, err := bench.Run(t.Context(), bench.Options{Target: to, Workload: o, Threads: 2, Time: 500 * time.Millisecond})
				if err != nil {
					t.Fatal(err)
				}
				if len(r.Kinds) != 2 || r.Kinds[0].Name != "q1" || r.Kinds[0].Transactions == 0 || r.Kinds[1].Transactions == 0 || len(r.Errors) > 0 || r.Writes > 0 {
					t.Errorf("got %+v; want len(Kinds) 2, Kinds[0].Name \"q1\", Kinds[0].Transactions not 0, Kinds[1].Transactions not 0, no r.Errors, Writes at most 0",
						r)
				}
			}
			s := open(t, to)
			exec(t, s, "UPDATE ontime SET ArrDelayMinutes = 31 WHERE id = (SELECT x.i FROM (SELECT min(id) AS i FROM ontime WHERE Carrier = 'WN' AND DayOfWeek = 2 AND ArrDelayMinutes <= 30 AND YearD = 2001 AND OriginState NOT IN ('AK','HI','PR','VI') AND DestState NOT IN ('AK','HI','PR','VI')) x)")
			check(t, o, to, true, false)
			exec(t, s, "DELETE FROM ontime WHERE id = 5")
			check(t, o, to, false, false)
			po.Progress = nil
			if err := o.Cleanup(t.Context(), po); err != nil {
				t.Fatal(err)
			}
			if _, exists, err := comment(s); err != nil || exists {
				t.Errorf("after cleanup: exists %v, %v", exists, err)
			}
			exec(t, s, "CREATE TABLE ontime (a INTEGER)")
			if err := o.Cleanup(t.Context(), po); err == nil || !strings.Contains(err.Error(), "left alone") {
				t.Errorf("cleanup of somebody else's table: got %v; want an error, \"left alone\" in the error", err)
			}
			exec(t, s, "DROP TABLE ontime") // it is still there
			ctx, cancel := context.WithCancel(t.Context())
			po.Progress = func(int64, int64) { cancel() }
			if err := o.Prepare(ctx, po); err == nil {
				t.Error("a cancelled prepare said nothing")
			}
			if _, exists, err := comment(s); err != nil || exists {
				t.Errorf("after a cancelled prepare: exists %v, %v", exists, err)
			}
		})
	}
}

func check(t *testing.T, o *ontime, to drive.Target, want ...bool) {
	t.Helper()
	findings, err := o.Check(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range findings {
		if f.OK != want[i] {
			t.Errorf("got %+v, want OK want[i]", f)
		}
	}
}

// TestQuestions holds the text of the questions as they were published.
func TestQuestions(t *testing.T) {
	my, pg := questions(drive.MySQL), questions(drive.Postgres)
	if my[0] != pg[0] || my[0] != question1 || my[1] != question2 {
		t.Error("the questions differ where they need not")
	}
	if strings.Contains(pg[1], "if(") || !strings.Contains(pg[1], "HAVING count(*) > 100000 and max(yeard) > 1990 ORDER by rate DESC, cnt desc LIMIT 1000") {
		t.Errorf("got %v; want no \"if(\" in it, \"HAVING count(*) > 100000 and max(yeard) > 1990 ORDER by rate DESC, cnt desc LIMIT 1000\" in it", pg[1])
	}
}

// TestDistributions compares a million rows with what is known of the real ones.
func TestDistributions(t *testing.T) {
	g := newGenerator(1e6, 3)
	perYear, carrier, state, day := map[int]int64{}, map[string]int{}, map[string]int{}, [8]int{}
	var ended, late, long, tail, cancelled, last int64
	for n := range g.chunks() {
		g.each(n, func(x *flight) {
			if x.id != last+1 {
				t.Fatalf("row %d follows row %d, want %d", x.id, last, last+1)
			}
			last = x.id
			perYear[x.date.Year()]++
			c := carriers[x.carrier]
			if y := x.date.Year(); y < c.first || y > c.last {
				t.Fatalf("%s flies in %d, want from %v to %v", c.code, y, c.first, c.last)
			}
			carrier[c.code]++
			state[airports[x.origin].state]++
			day[x.dayOfWeek()]++
			if x.cancelled {
				cancelled++
			}
			if x.reachedEnd {
				ended++
				late += int64(truth(x.arrivalDelay > 15))
				long += int64(truth(x.arrivalDelay > 30))
				tail += int64(truth(x.arrivalDelay > 240))
			}
		})
	}
	if len(perYear) != 27 || perYear[2007] < perYear[1988]*13/10 {
		t.Errorf("flights per year %v; want len(perYear) 27, perYear[2007] at least perYear[1988] * 13 / 10", perYear)
	}
	for y, n := range g.perYear() {
		if perYear[y] != n {
			t.Errorf("%d: %d rows, foretold %d", y, perYear[y], n)
		}
	}
	share := func(name string, n int64, of int64, from, to float64) {
		t.Helper()
		if x := float64(n) / float64(of); x < from || x > to {
			t.Errorf("%s: a share of %.4f, not %v to %v", name, x, from, to)
		}
	}
	share("cancelled", cancelled, 1e6, 0.015, 0.022)
	share("over 15 minutes late", late, ended, 0.14, 0.24)
	share("over 30 minutes late", long, ended, 0.07, 0.14)
	share("over 4 hours late", tail, ended, 0.001, 0.006)
	share("Saturdays", int64(day[6]), 1e6, 0.115, 0.135)
	share("Delta", int64(carrier["DL"]), 1e6, 0.11, 0.16)
	share("from outside the states", int64(state["AK"]+state["HI"]+state["PR"]+state["VI"]), 1e6, 0.015, 0.04)
	if len(carrier) != len(carriers) || len(state) < 35 {
		t.Errorf("got %d carriers, %d states; want len(carrier) %d, len(state) at least 35", len(carrier), len(state), len(carriers))
	}
}

// TestSeed makes the same rows from the same seed, whichever session makes them, and others from another.
func TestSeed(t *testing.T) {
	row := func(seed uint64, n int64) (b []byte) {
		newGenerator(25000, seed).each(n, func(x *flight) { b = x.appendRow(b) })
		return b
	}
	if one, again := string(row(1, 2)), string(row(1, 2)); one != again || one == string(row(2, 2)) || len(row(1, 3)) > 0 {
		t.Error("rows do not follow the seed")
	}
}

func TestUsage(t *testing.T) {
	for _, scale := range []float64{0, -1, math.NaN(), math.Inf(1), 1e9} {
		p := workload.Defaults()
		p.Scale = scale
		if _, err := New("ontime", p); !errors.Is(err, workload.ErrUsage) {
			t.Errorf("--scale %v: got %v, want workload.ErrUsage", scale, err)
		}
	}
}

func BenchmarkRows(b *testing.B) {
	g := newGenerator(int64(max(b.N, chunk)), 1)
	var buf []byte
	for n := range g.chunks() {
		g.each(n, func(x *flight) { buf = x.appendRow(buf[:0]) })
	}
	b.SetBytes(int64(len(buf)))
}
