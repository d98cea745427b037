package scenario_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/sandbox"
)

// benchServer is a server with the tables of the oltp workloads.
func benchServer(t *testing.T, kind string) (n *sandbox.Node, dsn string) {
	t.Helper()
	n = single(t, kind)
	execSQL(t, n, "CREATE DATABASE sbtest")
	dsn = n.DSN + "sbtest"
	if _, said, code := runRisso(t, nil, "bench", "prepare", "update_index", "--dsn", dsn, "--table-size", "1000"); code != 0 {
		t.Fatalf("got %v, want code 0", said)
	}
	return n, dsn
}

// TestBenchWrongUse: each wrong use of compare, scale and matrix ends with code 2 and one line.
func TestBenchCompareWrongUse(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	yaml, sweep, result := filepath.Join(dir, "m.yaml"), filepath.Join(dir, "s.csv"), filepath.Join(dir, "r.json")
	write(t, yaml, "workloads: point_select\nthread: 3\n")
	write(t, sweep, "1,2\nx,y\n")
	write(t, result, "{}")
	none := filepath.Join(dir, "none")
	for _, c := range []struct {
		says string
		args []string
	}{
		{"what to compare", []string{"compare"}},
		{"what to compare", []string{"compare", "point_select"}},
		{"no such file", []string{"compare", none, none}},
		{"not a result", []string{"compare", result, result}},
		{"accepts", []string{"compare", "a", "b", "c"}},
		{"both --dsn-a and --dsn-b", []string{"compare", "point_select", "--dsn-a", "u@tcp(h:1)/"}},
		{"either", []string{"compare", "point_select", "--dsn-a", "u@tcp(h:1)/", "--dsn-b", "u@tcp(h:1)/", "--set-a", "x=1"}},
		{"variable=value", []string{"compare", "point_select", "--dsn", "u@tcp(h:1)/", "--set-a", "x"}},
		{"PostgreSQL", []string{"compare", "point_select", "--dsn", "postgres://u@h/d", "--set-a", "x=1"}},
		{"runs", []string{"compare", "point_select", "--set-a", "x=1", "--runs", "0"}},
		{"order", []string{"compare", "point_select", "--set-a", "x=1", "--order", "baab"}},
		{"threads", []string{"compare", "point_select", "--set-a", "x=1", "--threads", "-1"}},
		{"output", []string{"compare", "a", "b", "--output", "xml"}},
		{"no workload", []string{"compare", "nonsense", "--dsn", "u@tcp(h:1)/", "--set-a", "x=1"}},
		{"--restore", []string{"compare", "a", "--restore"}},
		{"name a workload", []string{"scale"}},
		{"either", []string{"scale", "point_select", "--file", sweep}},
		{"line 2", []string{"scale", "--file", sweep}},
		{"no such file", []string{"scale", "--file", none}},
		{"threads", []string{"scale", "point_select", "--threads", "1,0"}},
		{"invalid argument", []string{"scale", "point_select", "--threads", "one"}},
		{"--predict", []string{"scale", "--file", sweep, "--predict", "0"}},
		{"--threads is for running a sweep", []string{"scale", "--file", sweep, "--threads", "4"}},
		{"--runs is for running a workload", []string{"compare", none, none, "--runs", "20"}},
		{"--dry-run is for running a workload", []string{"compare", none, none, "--dry-run"}},
		{"--runs means nothing to --restore", []string{"compare", "--restore", "--dsn", "u@tcp(h:1)/", "--runs", "20"}},
		{"accepts", []string{"matrix"}},
		{"no such file", []string{"matrix", none}},
		{"thread is unknown", []string{"matrix", yaml}},
		{"output", []string{"matrix", yaml, "--output", "csv"}},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			out, said, code := runRisso(t, nil, append([]string{"bench"}, c.args...)...)
			if code != 2 || out != "" || !strings.Contains(said, c.says) {
				t.Errorf("code %d, said %q, wrote %q; want code 2, out \"\", %q in it", code, said, out, c.says)
			}
			oneLine(t, said)
		})
	}
}

// TestCompareSettings compares two settings, cut off by Ctrl-C and by a kill.
func TestCompareSettings(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"mariadb", "mysql-9.7"} {
		t.Run(kind, func(t *testing.T) {
			n, dsn := benchServer(t, kind)
			home := tempDir(t)
			state := filepath.Join(home, ".local", "state", "risso", "bench") // the default
			const ask = "SELECT @@GLOBAL.innodb_flush_log_at_trx_commit"
			args := []string{"bench", "compare", "update_index", "--dsn", dsn, "--table-size", "1000", "--set-a", "innodb_flush_log_at_trx_commit=1", "--set-b", "innodb_flush_log_at_trx_commit=0",
				"--warmup", "50ms", "--state", state, "--output", "json"}

			out, said, code := runRisso(t, nil, append(args, "--order", "abba", "--runs", "4", "--time", "200ms")...)
			var r struct {
				A, B     struct{ Runs []json.RawMessage }
				Order    string
				Verdicts []struct{ Words string }
			}
			if err := json.Unmarshal([]byte(out), &r); code != 0 || said != "" || err != nil || len(r.A.Runs) != 4 || len(r.B.Runs) != 4 || r.Order != "ABBAABBA" || len(r.Verdicts) != 3 {
				t.Fatalf("code %d, said %q, %v, %+v; want code 0, said \"\", len(A.Runs) 4, len(B.Runs) 4, r.Order \"ABBAABBA\", len(Verdicts) 3",
					code, said, err, r)
			}
			if v := value(t, n, ask); v != "1" {
				t.Errorf("left at %s, want \"1\"", v)
			}
			// What compare writes, and what run writes, can be compared again.
			a, b := filepath.Join(state, "a.json"), filepath.Join(state, "b.json")
			join := func(runs []json.RawMessage) string {
				var all strings.Builder
				for _, x := range runs {
					all.Write(x)
				}
				return all.String()
			}
			write(t, a, join(r.A.Runs))
			write(t, b, join(r.B.Runs))
			first, _, _ := strings.Cut(r.Verdicts[0].Words, ";") // what would show is an estimate, drawn again
			again, said, code := runRisso(t, nil, "bench", "compare", a, b)
			if code != 0 || !strings.Contains(again, first) {
				t.Errorf("from files: code %d, %s, %q is not in; want code 0, %q in it:\n%s", code, said, first, first, again)
			}

			args = slices.Clip(args)
			long := append(args, "--runs", "40", "--time", "1s")
			// held waits until B is set for so many looks: at the beginning it is tried, for a moment.
			held := func(p *risso, looks int) {
				deadline := time.Now().Add(patience)
				for set := 0; set < looks; time.Sleep(10 * time.Millisecond) {
					if set++; value(t, n, ask) != "0" {
						set = 0
					}
					if time.Now().After(deadline) {
						t.Fatalf("B was never set: %s", p.err)
					}
				}
			}
			p := launch(t, environment(tempDir(t)), long...)
			held(p, 1)
			if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			if code := p.code(t); code != 130 || !strings.Contains(p.err.String(), "interrupted") {
				t.Errorf("Ctrl-C: code %d, %s; want code 130, \"interrupted\" in it", code, p.err)
			}
			if v := value(t, n, ask); v != "1" {
				t.Errorf("Ctrl-C left it at %s, want \"1\"", v)
			}
			// A busy machine has to kill it before a run of B is over.
			p = launch(t, environment(tempDir(t)), append(args, "--runs", "40", "--time", "6s")...)
			held(p, 100)
			p.kill(t)
			if v := value(t, n, ask); v != "0" {
				t.Fatalf("the kill came too late: %s, want \"0\"", v)
			}
			if _, said, code := runRisso(t, nil, long...); code != 1 || !strings.Contains(said, "--restore") {
				t.Errorf("after a kill: code %d, %s; want code 1, \"--restore\" in it", code, said)
			}
			begins := func(args ...string) (int, string) {
				p := launch(t, environment(home), append(append([]string{"bench"}, args...), "--table-size", "1000", "--for", "100ms")...)
				return p.code(t), p.err.String()
			}
			for _, args := range [][]string{{"run", "update_index", "--dsn", dsn}, {"scale", "update_index", "--dsn", dsn, "--threads", "1", "--runs", "1"}, {"compare", "update_index", "--dsn-a", dsn, "--dsn-b", dsn, "--runs", "1"}} {
				if code, said := begins(args...); code != 1 || !strings.Contains(said, "--restore") {
					t.Errorf("%s on what a kill left: code %d, %s; want code 1, \"--restore\" in it", args, code, said)
				}
			}
			if out, said, code := runRisso(t, nil, "bench", "compare", "--restore", "--dsn", dsn, "--state", state); code != 0 || !strings.Contains(out, "put back") {
				t.Errorf("restore: code %d, %s%s; want code 0, \"put back\" in it", code, out, said)
			}
			if v := value(t, n, ask); v != "1" {
				t.Errorf("restored to %s, want \"1\"", v)
			}
			if code, said := begins("run", "update_index", "--dsn", dsn); code != 0 {
				t.Errorf("run when all is put back: code %d, %s; want 0", code, said)
			}
		})
	}
}

// TestScaleSweep sweeps a real server, then is cut off.
func TestScaleSweep(t *testing.T) {
	t.Parallel()
	_, dsn := benchServer(t, "mariadb")
	args := []string{"bench", "scale", "point_select", "--dsn", dsn, "--table-size", "1000", "--warmup", "50ms"}
	out, said, code := runRisso(t, nil, append(args, "--threads", "1,2,3,4,6", "--runs", "2", "--time", "200ms", "--output", "json")...)
	var r struct {
		Processors int
		Points     []struct {
			Threads int
			Runs    []float64
		}
		Law   *struct{ Lambda float64 }
		Words []string
	}
	if err := json.Unmarshal([]byte(out), &r); code != 0 || err != nil || len(r.Points) != 5 || r.Law == nil || r.Law.Lambda <= 0 || len(r.Words) < 4 || r.Processors < 1 {
		t.Fatalf("code %d, %s, %v, %+v; want code 0, len(Points) 5, r.Law not nil, r.Law.Lambda more than 0, len(Words) at least 4, r.Processors at least 1",
			code, said, err, r)
	}
	for _, p := range r.Points {
		if len(p.Runs) != 2 || p.Runs[0] <= 0 {
			t.Errorf("got %+v; want len(Runs) 2, Runs[0] more than 0", p)
		}
	}
	p := launch(t, environment(tempDir(t)), append(args, "--threads", "1,2,4,8", "--runs", "9", "--time", "500ms")...)
	time.Sleep(3 * time.Second)
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := p.code(t); code != 130 || !strings.Contains(p.out.String(), "Interrupted: this is what was measured so far") {
		t.Errorf("Ctrl-C: code %d, %s%s; want code 130, \"Interrupted: this is what was measured so far\" in it", code, p.err, p.out)
	}
}

// TestMatrixIsCutOff: Ctrl-C takes the servers down, a kill leaves them to the next start, and that one goes on.
func TestMatrixIsCutOff(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	file, boxes := filepath.Join(dir, "m.yaml"), filepath.Join(dir, "boxes")
	write(t, file, "workloads: point_select\ntable_size: 200\noptions: {a: [innodb_doublewrite=ON], b: [innodb_doublewrite=OFF]}\ntime: 300ms\nwarmup: 0s\nsettle: 0s\nruns: 4\n")
	cache, err := sandbox.DefaultCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	env := environment(dir, "RISSO_SANDBOX_DIR="+boxes, "XDG_CACHE_HOME="+filepath.Dir(cache))
	there := func() int {
		list, err := filepath.Glob(filepath.Join(dir, "m-results", "*", "run-*.json"))
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	begin := func(want int) *risso {
		p := launch(t, env, "bench", "matrix", file)
		await(t, fmt.Sprintf("%d runs; it said %s", want, p.err), func() bool { return there() >= want })
		return p
	}
	sandboxes := func() int {
		list, err := sandbox.List(boxes)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	p := begin(2)
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := p.code(t); code != 130 || sandboxes() != 0 || !strings.Contains(p.err.String(), "continues") {
		t.Errorf("Ctrl-C: code %d, %d sandboxes are left; %s; want code 130, sandboxes() 0, \"continues\" in it", code, sandboxes(), p.err)
	}
	p = begin(there() + 1)
	p.kill(t)
	if sandboxes() == 0 {
		t.Error("a killed matrix had no server")
	}
	had := there()
	if had == 8 {
		t.Fatal("the kill came too late")
	}
	p = launch(t, env, "bench", "matrix", file, "--output", "json")
	if code := p.code(t); code != 0 || there() != 8 || sandboxes() != 0 {
		t.Errorf("gone on: code %d, %d runs, %d sandboxes; %s; want code 0, there() 8, sandboxes() 0", code, there(), sandboxes(), p.err)
	}
	var r struct{ Questions []struct{ Axis string } }
	if err := json.Unmarshal([]byte(p.out.String()), &r); err != nil || len(r.Questions) != 1 || r.Questions[0].Axis != "options" {
		t.Errorf("got %v, %+v; want len(Questions) 1, Questions[0].Axis \"options\"", err, r)
	}
	if _, err := os.Stat(filepath.Join(dir, "m-results", "servers.json")); err == nil {
		t.Error("the list of servers is left")
	}
}
