package compare

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/environ"
	"github.com/rissodb/risso/internal/measure/stats"
	"github.com/rissodb/risso/internal/measure/workload"
	"github.com/rissodb/risso/internal/measure/workload/all"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// noise keeps processors busy until stop is called, and returns what they took then.
func noise(t *testing.T, loops int) (stop func() time.Duration) {
	t.Helper()
	var list []*exec.Cmd
	for range loops {
		c := exec.Command("sh", "-c", "while :; do :; done")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		list = append(list, c)
	}
	return func() (took time.Duration) {
		for _, c := range list {
			if err := c.Process.Kill(); err != nil {
				t.Error(err)
			}
			_ = c.Wait() // it was killed
			took += c.ProcessState.UserTime() + c.ProcessState.SystemTime()
		}
		return took
	}
}

// TestNoiseOnOneSide is the experiment: one server, one workload, A against A; in the runs of the first side six busy loops
// run besides. Judged by the figures alone the second side is faster; Risso must not say so.
func TestNoiseOnOneSide(t *testing.T) {
	node := sandboxtest.Up(t, "mariadb", "sync_binlog=0", "innodb_flush_log_at_trx_commit=0")
	if _, err := node.Query(t.Context(), "CREATE DATABASE sbtest"); err != nil {
		t.Fatal(err)
	}
	at, err := mysql.ParseTarget(node.DSN + "sbtest")
	if err != nil {
		t.Fatal(err)
	}
	target := drive.ForMySQL(at)
	p := workload.Defaults()
	p.TableSize = 1000
	w, err := all.New("point_select", p)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.(workload.Preparer).Prepare(t.Context(), workload.PrepareOptions{Target: target, Threads: 1}); err != nil {
		t.Fatal(err)
	}
	e, err := environ.Take(t.Context(), environ.MySQL(at))
	if err != nil {
		t.Fatal(err)
	}
	runner := func(loops int) Runner {
		return func(ctx context.Context) (*bench.Result, error) {
			began, stop := time.Now(), noise(t, loops)
			r, err := bench.Run(ctx, bench.Options{Target: target, Workload: w, Threads: 1, Time: 400 * time.Millisecond, Seed: rand.Uint64(), Watch: environ.WatchOf(e)})
			// They go on before and after the measured time, on a busy machine for long: what counts is what they take a second.
			busy := stop().Seconds() / time.Since(began).Seconds()
			if err == nil && loops > 0 && (r.Use == nil || r.Use.Foreign == nil || *r.Use.Foreign < 0.5*busy-0.25) {
				err = fmt.Errorf("the loops took %.2f processors, told is: %s", busy, r.Use.Line())
			}
			return r, err
		}
	}
	order, err := Order(OrderABBA, 7, 1)
	if err != nil {
		t.Fatal(err)
	}
	a, b := Side{Name: "A", Paired: true}, Side{Name: "B", Paired: true}
	if _, err := Interleave(t.Context(), order, &a, &b, runner(6), runner(0), nil); err != nil {
		t.Fatal(err)
	}
	r := Judge(a, b, Terms{Seed: 1})
	for _, v := range r.Verdicts {
		t.Log(v.Words)
		if v.Outcome == Faster {
			t.Errorf("noise is told as a difference: %s, want v.Outcome not Faster", v.Words)
		}
	}
	var crowds [2][]float64
	for i, side := range []Side{a, b} {
		for _, run := range side.Runs {
			if run.Use.Server == nil || *run.Use.Server <= 0 || run.Use.Client <= 0 || run.Use.Crowd == nil {
				t.Fatalf("not all is seen: %+v; want Server not nil, *run.Use.Server more than 0, Client more than 0, Crowd not nil", run.Use)
			}
			crowds[i] = append(crowds[i], *run.Use.Crowd)
		}
	}
	if more := stats.Median(crowds[0]) - stats.Median(crowds[1]); more < 3 {
		t.Errorf("six loops are told as %.1f threads: %.1f against %.1f, want at least 3", more, crowds[0], crowds[1])
	}
	var text strings.Builder
	if err := r.Text(&text); err != nil || strings.Count(text.String(), "DISTURBED by other programs") < 7 {
		t.Errorf("%v: a disturbed run is not told so; want strings.Count(text.String(), \"DISTURBED by other programs\") at least 7:\n%s",
			err, text.String())
	}
	// What the figures alone would have said.
	for _, side := range []*Side{&a, &b} {
		for _, run := range side.Runs {
			run.Use = nil
		}
	}
	t.Log("without a look at the machine:", Judge(a, b, Terms{Seed: 1}).Verdicts[0].Words)
}
