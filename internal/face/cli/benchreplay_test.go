package cli

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	clibench "github.com/rissodb/risso/internal/face/cli/bench"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/workload"
	"github.com/rissodb/risso/internal/measure/workload/replay"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestReplayLog reads the slow log of a real server, runs it again on that server as a mix, along its time line, and from a
// digest of it, and compares what was run with what the log has.
func TestReplayLog(t *testing.T) {
	for _, kind := range []string{"mariadb", "mysql-9.7"} {
		t.Run(kind, func(t *testing.T) {
			node := sandboxtest.Up(t, kind, "slow_query_log=OFF", "slow_query_log_file=slow.log", "long_query_time=0")
			if _, err := node.Query(t.Context(), "CREATE DATABASE one; CREATE DATABASE two; CREATE TABLE one.t (a INT PRIMARY KEY, b INT); CREATE TABLE two.t (a INT PRIMARY KEY, b INT); INSERT INTO one.t VALUES (1,1),(2,2); INSERT INTO two.t VALUES (1,1); SET GLOBAL slow_query_log=ON"); err != nil {
				t.Fatal(err)
			}
			use(t, node.DSN, "one", 60, "SELECT b FROM t WHERE a = %d", "SELECT b FROM t WHERE a = %d")
			use(t, node.DSN, "two", 30, "SELECT a FROM t WHERE b > %d ORDER BY b", "UPDATE t SET b = b + %d")
			if _, err := node.Query(t.Context(), "SET GLOBAL slow_query_log=OFF"); err != nil {
				t.Fatal(err)
			}
			log := filepath.Join(node.Datadir, "slow.log")
			mix, err := clibench.ReadRecording(t.Context(), log, clibench.ReplayOf{})
			if err != nil {
				t.Fatal(err)
			}
			checkMix(t, mix)
			line, err := clibench.ReadRecording(t.Context(), log, clibench.ReplayOf{Timeline: true, Writes: true})
			if err != nil {
				t.Fatal(err)
			}
			checkLine(t, line)

			r := replayed(t, "--file", log, "--dsn", node.DSN, "--time", "1s")
			kinds := map[string]bench.KindResult{}
			for _, k := range r.Kinds {
				kinds[k.Recorded.Fingerprint] = k
			}
			one, two := kinds["select b from t where a = ?"], kinds["select a from t where b > ? order by b"]
			if one.Recorded == nil || one.Recorded.Calls != 120 || one.Recorded.Avg <= 0 || one.Recorded.RoundTrip <= 0 || one.Transactions < two.Transactions*2 || two.Transactions == 0 || otherErrors(r) {
				t.Errorf("got %+v; want one.Recorded not nil, one.Recorded.Calls 120, one.Recorded.Avg more than 0, one.Recorded.RoundTrip more than 0, one.Transactions at least %v, two.Transactions not 0, otherErrors(r) false",
					r, two.Transactions*2)
			}
			before, _ := node.Query(t.Context(), "SELECT b FROM two.t")
			r = replayed(t, "--file", log, "--dsn", node.DSN, "--mode", "timeline", "--speed", "5")
			if r.Writes != 0 || r.Reads < 150 || otherErrors(r) || r.Seconds > 50 {
				t.Errorf("got %+v; want Writes 0, Reads at least 150, otherErrors(r) false, Seconds at most 50", r)
			}
			if code, _, err := call(t, "bench", "run", "replay", "--file", log, "--dsn", node.DSN, "--writes"); code != fault.Usage || !strings.Contains(err, "--yes") {
				t.Errorf("writes beside other data: got %d %s; want code fault.Usage, \"--yes\" in it", code, err)
			}
			if after, _ := node.Query(t.Context(), "SELECT b FROM two.t"); *after[0].Rows[0][0] != *before[0].Rows[0][0] {
				t.Error("a replay without --writes wrote")
			}
			r = replayed(t, "--file", log, "--dsn", node.DSN, "--mode", "timeline", "--speed", "5", "--writes", "--yes")
			if r.Writes != 30 || otherErrors(r) {
				t.Errorf("got %+v; want Writes 30, otherErrors(r) false", r)
			}
			code, digest, text := call(t, "digest", log, "--output", "json", "--samples", "3")
			if code != 0 {
				t.Fatalf("got %v, want code 0", text)
			}
			file := filepath.Join(t.TempDir(), "digest.json")
			if err := os.WriteFile(file, []byte(digest), 0o600); err != nil {
				t.Fatal(err)
			}
			if r := replayed(t, "--file", file, "--dsn", node.DSN, "--time", "300ms"); r.Transactions == 0 || otherErrors(r) || !strings.Contains(strings.Join(r.Notes, ""), "30 calls that write") {
				t.Errorf("got %+v; want Transactions not 0, otherErrors(r) false, \"30 calls that write\" in strings.Join(r.Notes, \"\")", r)
			}
			if code, _, err := call(t, "bench", "run", "replay", "--file", file, "--dsn", node.DSN, "--mode", "timeline"); code != fault.Usage || !strings.Contains(err, "needs a log") {
				t.Errorf("got %d %s; want code fault.Usage, \"needs a log\" in it", code, err)
			}
			code, out, _ := call(t, "bench", "run", "replay", "--file", log, "--dsn", node.DSN, "--time", "300ms")
			if code != 0 || !strings.Contains(out, "NOW/THEN") || !strings.Contains(out, "Not replayed: ") {
				t.Errorf("got %d %s; want code 0, \"NOW/THEN\" in it, \"Not replayed: \" in it", code, out)
			}
		})
	}
}

// otherErrors reports whether there were errors other than that of the table that is not there.
func otherErrors(r bench.Result) bool {
	return len(r.Errors) > 1 || len(r.Errors) == 1 && r.Errors[0].Label != "1146" || r.Reconnects > 0
}

func replayed(t *testing.T, args ...string) (r bench.Result) {
	t.Helper()
	code, out, text := call(t, append([]string{"bench", "run", "replay", "--output", "json"}, args...)...)
	if code != 0 {
		t.Fatalf("got %d %s, want 0", code, text)
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// use runs statements on one connection, and then one that fails.
func use(t *testing.T, dsn, schema string, n int, statements ...string) {
	t.Helper()
	db, err := sql.Open("mysql", strings.TrimSuffix(dsn, "/")+"/"+schema)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for i := range n {
		for _, s := range statements {
			if _, err := db.ExecContext(t.Context(), fmt.Sprintf(s, i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := db.ExecContext(t.Context(), "SELECT b FROM gone WHERE a = 1"); err == nil {
		t.Fatal("a table that is not there")
	}
}

func checkMix(t *testing.T, m *workload.Recording) {
	t.Helper()
	found := 0
	for _, c := range m.Classes {
		switch c.Fingerprint {
		case "select b from t where a = ?":
			found++
			seen := map[string]bool{}
			for _, s := range c.Samples {
				seen[s.SQL] = true
				if s.Schema != "one" {
					t.Errorf("got %+v, want Schema \"one\"", s)
				}
			}
			if c.Calls != 120 || len(c.Samples) != 120 || len(seen) != 60 || !seen["SELECT b FROM t WHERE a = 59"] {
				t.Errorf("got %d calls, %d samples, %d different; want c.Calls 120, len(c.Samples) 120, len(seen) 60, seen[\"SELECT b FROM t WHERE a = 59\"] true",
					c.Calls, len(c.Samples), len(seen))
			}
		case "select a from t where b > ? order by b":
			found++
			if c.Calls != 30 || c.Samples[0].Schema != "two" {
				t.Errorf("got %+v; want Calls 30, Samples[0].Schema \"two\"", c)
			}
		case "update t set b = b + ?":
			t.Error("a statement that writes is among those that read")
		}
	}
	if found != 2 || m.LeftOut[replay.LeftWrites] != 30 {
		t.Errorf("got %d classes, left out %v; want found 2, m.LeftOut[replay.LeftWrites] 30", found, m.LeftOut)
	}
}

// checkLine checks whether each session's statements are there, in their order.
func checkLine(t *testing.T, m *workload.Recording) {
	t.Helper()
	sessions := map[int64][]string{}
	var last time.Duration
	for _, s := range m.Statements {
		if s.Began < last {
			t.Fatal("the statements are not in the order of their begin")
		}
		last = s.Began
		if s.Schema != "" {
			sessions[s.Session] = append(sessions[s.Session], s.SQL)
		}
	}
	var want []string
	for i := range 30 {
		want = append(want, fmt.Sprintf("SELECT a FROM t WHERE b > %d ORDER BY b", i), fmt.Sprintf("UPDATE t SET b = b + %d", i))
	}
	ok := false
	for _, list := range sessions {
		list = slices.DeleteFunc(list, func(s string) bool { return strings.Contains(s, "gone") })
		ok = ok || slices.Equal(list, want)
	}
	if !ok || last > 60*time.Second {
		t.Errorf("no session has its statements in order; the last began after %v: %v; want ok true, last at most 60 * time.Second", last, sessions)
	}
}

// pipeOf returns the name of a pipe with a text in it, as a shell's <(…) is.
func pipeOf(t *testing.T, text string) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	if _, err := w.WriteString(text); err != nil {
		t.Fatal(err)
	}
	w.Close()
	return fmt.Sprintf("/dev/fd/%d", r.Fd())
}

// TestReplayUsage reports wrong use in one line, with code 2.
func TestReplayUsage(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	slow := "# Time: 2026-03-01T10:00:00.000000Z\n# User@Host: a[a] @ b []  Id: 5\n# Query_time: 0.1  Lock_time: 0.0 Rows_sent: 1  Rows_examined: 1\nSELECT 1;\n"
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"replay"}, "--file"},
		{[]string{"replay", "--file", dir}, "a folder"},
		{[]string{"replay", "--file", filepath.Join(dir, "none")}, "no such file"},
		{[]string{"replay", "--file", write("empty", "")}, "it is empty"},
		{[]string{"replay", "--file", pipeOf(t, strings.Repeat(slow, 100))}, "no file that can be read twice"},
		{[]string{"replay", "--file", write("text", "hello\nworld\n")}, "no statement of a log"},
		{[]string{"replay", "--file", write("half.json", `{"classes": [`)}, "not what risso digest"},
		{[]string{"replay", "--file", write("other.json", `{"a": 1}`)}, "no classes"},
		{[]string{"replay", "--file", write("slow", slow), "--mode", "fast"}, "mix or timeline"},
		{[]string{"replay", "--file", write("slow", slow), "--speed", "0"}, "--speed 0"},
		{[]string{"replay", "--file", write("slow", slow), "--dsn", "postgres://a@b/c"}, "PostgreSQL"},
		{[]string{"script"}, "--file"},
		{[]string{"script", "--file", write("mix.yaml", "transactions:\n  - {statements: [SELECT :x]}\n")}, "mix.yaml:2: no value :x"},
		{[]string{"ontime", "--scale", "-1"}, "--scale -1"},
	} {
		code, out, err := call(t, append(append([]string{"bench", "run"}, c.args...), "--time", "1s")...)
		if code != fault.Usage || out != "" || strings.Count(err, "\n") != 1 || !strings.Contains(err, c.want) {
			t.Errorf("%v: got %d %q %q; want code fault.Usage, out \"\", strings.Count(err, \"\\n\") 1, %q in it", c.args, code, out, err, c.want)
		}
	}
}

// TestReplayServerTime: a log has the server's own times, so they are compared with the server's own times: what sleeps as
// long as before is as fast, what is over before it can be timed is not judged, and a slower server is reported.
func TestReplayServerTime(t *testing.T) {
	for _, kind := range []string{"mariadb", "mysql-9.7"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			node := sandboxtest.Up(t, kind, "slow_query_log=OFF", "slow_query_log_file=slow.log", "long_query_time=0")
			if _, err := node.Query(t.Context(), "CREATE DATABASE one; CREATE TABLE one.t (a INT PRIMARY KEY, d DOUBLE); INSERT INTO one.t VALUES (1, 0.04); SET GLOBAL slow_query_log=ON"); err != nil {
				t.Fatal(err)
			}
			use(t, node.DSN, "one", 15, "SELECT SLEEP(0.05), %d", "SELECT SLEEP(d) FROM t WHERE a = 1 OR a = %d + 1000")
			if _, err := node.Query(t.Context(), "SET GLOBAL slow_query_log=OFF; UPDATE one.t SET d = 0.12"); err != nil {
				t.Fatal(err)
			}
			r := replayed(t, "--file", filepath.Join(node.Datadir, "slow.log"), "--dsn", node.DSN, "--time", "3s", "--threads", "2", "--writes", "--yes")
			words := map[string]string{}
			for _, k := range r.Kinds {
				now := k.Recorded.Now
				if k.Transactions == 0 { // that of the table that is not there
					continue
				}
				if now == nil || now.Calls > k.Transactions+2 || now.Calls < k.Transactions-2 || now.Median > k.Latency.At(50)*1.02 || now.Empty <= 0 || now.Empty > 0.01 || k.Recorded.Median <= 0 {
					t.Errorf("%s: got %d transactions, %+v of %+v, median %v; want now not nil, now.Calls at most %v, now.Calls at least %v, now.Median at most k.Latency.At(50) * 1.02, now.Empty more than 0, now.Empty at most 0.01, k.Recorded.Median more than 0",
						k.Name, k.Transactions, now, k.Recorded, k.Latency.At(50), k.Transactions+2, k.Transactions-2)
				}
				words[k.Recorded.Fingerprint] = k.OfRecorded()
			}
			if w := words["select sleep(?), ?"]; ratio(w) < 0.8 || ratio(w) > 1.3 {
				t.Errorf("the same sleep: got %q of %q, want from 0.8 to 1.3", w, words)
			}
			if w := words["select sleep(d) from t where a = ? or a = ? + ?"]; ratio(w) < 2 || ratio(w) > 3.5 {
				t.Errorf("three times the sleep: got %q of %q, want from 2 to 3.5", w, words)
			}
			if _, err := node.Query(t.Context(), "TRUNCATE TABLE one.t; INSERT INTO one.t VALUES (1, 0)"); err != nil {
				t.Fatal(err)
			}
			r = replayed(t, "--file", filepath.Join(node.Datadir, "slow.log"), "--dsn", node.DSN, "--time", "300ms", "--writes", "--yes")
			if otherErrors(r) || r.Queries < r.Transactions {
				t.Errorf("got %+v; want otherErrors(r) false, Queries at least %v", r, r.Transactions)
			}
		})
	}
}

// ratio reads one; 0: it is none.
func ratio(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0
	}
	return v
}

// TestOfRecorded: what cannot be compared with each other has no figure, and nothing is called faster or slower than in the log.
func TestOfRecorded(t *testing.T) {
	before := func(calls int64, median, avg float64, now *workload.ServerTime) bench.KindResult {
		return bench.KindResult{Transactions: 100, Recorded: &workload.Before{Calls: calls, Avg: avg, Median: median, Now: now}}
	}
	now := func(calls int64, median, avg float64) *workload.ServerTime {
		return &workload.ServerTime{Calls: calls, Median: median, Avg: avg, Empty: 30e-6}
	}
	for _, c := range []struct {
		k    bench.KindResult
		says string
	}{
		{bench.KindResult{}, ""}, {before(100, 1e-3, 2e-3, nil), "not told"},
		{before(100, 1e-3, 2e-3, now(100, 1.05e-3, 9e-3)), "1.020"}, {before(100, 0, 2e-3, now(100, 1e-3, 4.03e-3)), "2.00"},
		{before(100, 2e-3, 2e-3, now(100, 1.03e-3, 1e-3)), "0.50"}, {before(100, 50e-6, 50e-6, now(100, 200e-6, 200e-6)), "too short"},
		{before(5, 1e-3, 2e-3, now(100, 9e-3, 9e-3)), "too few calls"}, {before(100, 1e-3, 2e-3, now(3, 9e-3, 9e-3)), "too few calls"},
		{before(100, 0, 0, now(30, 9e-3, 9e-3)), "too short"},
	} {
		if got := c.k.OfRecorded(); got != c.says {
			t.Errorf("%q, not %q", got, c.says)
		}
	}
}
