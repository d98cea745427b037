package compare

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/environ"
	"github.com/rissodb/risso/internal/measure/workload"
	"github.com/rissodb/risso/internal/measure/workload/replay"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestClasses judges classes by the servers' own times, in pairs, as many as there are runs for.
func TestClasses(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 32))
	make2 := func(runs, alike int) (a, b Side) {
		a, b = side("A", ten[:runs]...), side("B", ten[:runs]...)
		a.Paired, b.Paired = true, true
		for i := range runs {
			weather := math.Exp(rng.NormFloat64())
			for s, r := range []*bench.Result{a.Runs[i], b.Runs[i]} {
				kind := func(name string, median float64, calls int64) {
					now := &workload.ServerTime{Calls: calls, Median: median * weather * math.Exp(0.02*rng.NormFloat64()), Empty: 1e-6}
					r.Kinds = append(r.Kinds, bench.KindResult{Name: name, Transactions: calls, Latency: bench.Latency{Avg: median}, Recorded: &workload.Before{Now: now}})
				}
				kind("slow", []float64{1, 1.5}[s], 1000)
				kind("rare", 0.5, int64(20-i*3))
				kind("short", 1e-6, 1000) // as what does nothing
				for n := range alike {
					kind(fmt.Sprint("alike ", n), 0.1, 1000)
				}
				r.Kinds = append(r.Kinds, bench.KindResult{Name: "other classes"})
			}
		}
		return a, b
	}
	a, b := make2(10, 30)
	r := Judge(a, b, Terms{Seed: 1})
	if len(r.Classes) != 25 || r.Classes[0].Outcome != Slower || !strings.Contains(r.Classes[0].Words, "B's server time of slow is 1.4") || !strings.Contains(r.Classes[0].Words, "99.8 % interval") {
		t.Fatalf("got %d %+v; want len(r.Classes) 25, r.Classes[0].Outcome Slower, \"B's server time of slow is 1.4\" in r.Classes[0].Words, \"99.8 %% interval\" in r.Classes[0].Words",
			len(r.Classes), r.Classes)
	}
	told := 0
	for _, v := range r.Classes[1:] {
		if v.Outcome != Unclear {
			told++
		}
	}
	if notes := strings.Join(r.Notes, "; "); told > 0 || !strings.Contains(notes, "2 classes of statements were not judged: too short") || !strings.Contains(notes, "6 classes of statements were not judged: that takes more runs") {
		t.Errorf("got %d, %s; want told at most 0, \"2 classes of statements were not judged: too short\" in it, \"6 classes of statements were not judged: that takes more runs\" in it",
			told, notes)
	}
	var text, markdown strings.Builder
	if err := r.Text(&text); err != nil || !strings.Contains(text.String(), "B's server time of slow is 1.4") {
		t.Errorf("got %v; want \"B's server time of slow is 1.4\" in it\n%s", err, text.String())
	}
	if err := r.Markdown(&markdown); err != nil || !strings.Contains(markdown.String(), "B's server time of slow is 1.4") {
		t.Errorf("got %v; want \"B's server time of slow is 1.4\" in it\n%s", err, markdown.String())
	}
	for i := range a.Runs {
		a.Runs[i].Use, b.Runs[i].Use = &environ.Use{CPUs: 2, Foreign: new(0.0), Crowd: new(0.0)}, &environ.Use{CPUs: 2, Foreign: new(1.0), Crowd: new(6.0)}
	}
	if v := Judge(a, b, Terms{Seed: 1}).Classes[0]; v.Outcome != Withheld || v.Seems != Slower {
		t.Errorf("got %+v; want Outcome Withheld, Seems Slower", v)
	}
	a, b = make2(3, 2)
	if r := Judge(a, b, Terms{Seed: 1}); len(r.Classes) != 1 || r.Classes[0].Outcome != TooFew {
		t.Errorf("got %+v; want len(r.Classes) 1, r.Classes[0].Outcome TooFew", r.Classes)
	}
}

// TestReplayUnderNoise is the experiment: the same recording on the same server as both sides, with six busy loops during the runs
// of one of them, and then of the other. No class may be called faster or slower.
func TestReplayUnderNoise(t *testing.T) {
	t.Parallel()
	node := sandboxtest.Up(t, "mariadb", "sync_binlog=0")
	if _, err := node.Query(t.Context(), "CREATE DATABASE shop; CREATE TABLE shop.t (a INT PRIMARY KEY, b INT, c CHAR(100)); INSERT INTO shop.t SELECT seq, seq % 100, 'x' FROM shop.seq_1_to_2000"); err != nil {
		t.Fatal(err)
	}
	at, err := mysql.ParseTarget(node.DSN)
	if err != nil {
		t.Fatal(err)
	}
	e, err := environ.Take(t.Context(), environ.MySQL(at))
	if err != nil {
		t.Fatal(err)
	}
	class := func(fingerprint string, samples ...string) workload.RecordedClass {
		c := workload.RecordedClass{Before: workload.Before{Class: fmt.Sprintf("%08X", len(fingerprint)), Fingerprint: fingerprint, Calls: 100, Avg: 1e-3, Median: 1e-3, P95: 1e-3}}
		for _, s := range samples {
			c.Samples = append(c.Samples, workload.RecordedStatement{SQL: s, Schema: "shop"})
		}
		return c
	}
	recording := &workload.Recording{Classes: []workload.RecordedClass{
		class("select b, count(*) from t group by b order by ? desc", "SELECT b, COUNT(*) FROM t GROUP BY b ORDER BY 2 DESC"),
		class("select sum(a) from t where b between ? and ?", "SELECT SUM(a) FROM t WHERE b BETWEEN 1 AND 50", "SELECT SUM(a) FROM t WHERE b BETWEEN 20 AND 70"),
	}}
	runner := func(loops int) Runner {
		return func(ctx context.Context) (*bench.Result, error) {
			w, err := replay.New("replay", workload.Params{Recording: recording, ReplayMode: "mix", ReplaySpeed: 1})
			if err != nil {
				return nil, err
			}
			stop := noise(t, loops)
			defer stop()
			return bench.Run(ctx, bench.Options{Target: drive.ForMySQL(at), Workload: w, Threads: 1, Time: 400 * time.Millisecond, Seed: rand.Uint64(), Watch: environ.WatchOf(e)})
		}
	}
	// told are the verdicts that tell noise as a difference.
	told := func(loops [2]int) (list []string) {
		order, err := Order(OrderRandom, 6, 1)
		if err != nil {
			t.Fatal(err)
		}
		a, b := Side{Name: "A"}, Side{Name: "B"}
		InTurns(OrderRandom, 6, &a, &b)
		if _, err := Interleave(t.Context(), order, &a, &b, runner(loops[0]), runner(loops[1]), nil); err != nil {
			t.Fatal(err)
		}
		r := Judge(a, b, Terms{Seed: 1})
		if len(r.Classes) == 0 && !strings.Contains(strings.Join(r.Notes, " "), "2 classes of statements were not judged") {
			t.Errorf("classes are neither judged nor said not to be: %q", r.Notes)
		}
		for _, v := range append(r.Verdicts, r.Classes...) {
			t.Log(v.Words)
			if v.Outcome == Faster || v.Outcome == Slower {
				list = append(list, v.Words)
			}
		}
		return list
	}
	for _, loops := range [][2]int{{6, 0}, {0, 6}} {
		// A verdict is at p below 0.05: of comparisons in which nothing differs one in twenty may tell a difference by chance, as where six of six pairs fall to one side. What the noise
		// makes is told again.
		if list := told(loops); len(list) > 0 {
			if again := told(loops); len(again) > 0 {
				t.Errorf("noise is told as a difference, twice: %q, %q; want v.Outcome not Faster, v.Outcome not Slower", list, again)
			}
		}
	}
}
