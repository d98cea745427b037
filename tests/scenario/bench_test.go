package scenario_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/lack"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// benchResult is what these tests read of `risso bench run --output json`.
type benchResult struct {
	Interrupted   bool
	WarmupSeconds float64 `json:"warmup_seconds"`
	WarmupSteady  *bool   `json:"warmup_steady"`
	Reconnects    int64
	Outages       []struct {
		From         float64
		Milliseconds int64
		Errors       bool
	}
	Seconds               float64
	Transactions, Queries int64
	TransactionsPerSecond float64 `json:"transactions_per_second"`
	QueriesPerSecond      float64 `json:"queries_per_second"`
	ServerVersion         string  `json:"server_version"`
	Parameters            map[string]any
	Latency               struct {
		Percentiles []struct{ Percentile, Seconds float64 }
	}
	Ledger *struct {
		Acknowledged, Missing int64
		Error                 string
	}
}

// benched is a server with tables of a benchmark.
func benched(t *testing.T, kind string) (n *sandbox.Node, dsn string) {
	t.Helper()
	n = single(t, kind)
	execSQL(t, n, "CREATE DATABASE sbtest")
	dsn = "root@unix(" + n.Socket + ")/sbtest"
	if _, said, code := runRisso(t, nil, "bench", "prepare", "point_select", "--dsn", dsn, "--tables", "2", "--table-size", "1000"); code != 0 || said != "" {
		t.Fatalf("prepare: exit %d: got %s; want code 0, said \"\"", code, said)
	}
	return n, dsn
}

// TestBenchGoesOnElsewhere kills the server in a run that names another one.
func TestBenchGoesOnElsewhere(t *testing.T) {
	t.Parallel()
	s := up(t, sandbox.Options{Servers: []string{"mariadb"}, Topology: sandbox.TopologyReplication, Replicas: 1})
	execSQL(t, s.Nodes[0], "CREATE DATABASE sbtest")
	dsn := func(i int) string { return "root@unix(" + s.Nodes[i].Socket + ")/sbtest" }
	if _, said, code := runRisso(t, nil, "bench", "prepare", "point_select", "--dsn", dsn(0)); code != 0 {
		t.Fatalf("prepare: exit %d: got %s, want 0", code, said)
	}
	await(t, "the table on the replica", func() bool {
		return value(t, s.Nodes[1], "SELECT COUNT(*) FROM information_schema.statistics WHERE index_name = 'k_1'") != "0"
	})
	killed := make(chan error, 1)
	time.AfterFunc(3*time.Second, func() { killed <- s.Nodes[0].Kill(syscall.SIGKILL) })
	out, said, code := runRisso(t, nil, "bench", "run", "point_select", "--dsn", dsn(0), "--failover", dsn(1), "--threads", "4", "--rate", "400", "--time", "8s", "--output", "json")
	if err := <-killed; err != nil {
		t.Fatal(err)
	}
	var r benchResult
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 {
		t.Fatalf("exit %d, %v: got %s; want 0", code, err, said)
	}
	var away int64
	for _, o := range r.Outages {
		if o.Errors {
			away += o.Milliseconds
		}
	}
	if r.Reconnects != 4 || r.Transactions < 100 || away > 2000 {
		t.Errorf("got %d reconnects, %d transactions, %+v; want r.Reconnects 4, r.Transactions at least 100, away at most 2000",
			r.Reconnects, r.Transactions, r.Outages)
	}
}

// TestBenchWarmsUp ends an automatic warm-up by its test or its limit, and says which.
func TestBenchWarmsUp(t *testing.T) {
	t.Parallel()
	_, dsn := benched(t, "mariadb")
	out, said, code := runRisso(t, nil, "bench", "run", "point_select", "--dsn", dsn, "--table-size", "1000", "--rate", "400", "--warmup", "auto", "--warmup-limit", "16s", "--time", "2s", "--output", "json")
	var r benchResult
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 {
		t.Fatalf("exit %d, %v: got %s; want 0", code, err, said)
	}
	if r.WarmupSteady == nil || r.WarmupSeconds < 11 || r.WarmupSeconds > 18 || !*r.WarmupSteady && r.WarmupSeconds < 15.5 || r.Seconds < 2 || r.Seconds > 4 {
		t.Errorf("%v s of warm-up, steady %v, %v s measured", r.WarmupSeconds, r.WarmupSteady != nil && *r.WarmupSteady, r.Seconds)
	}
}

// TestBenchShowsItself looks at the progress on a terminal.
func TestBenchShowsItself(t *testing.T) {
	t.Parallel()
	script, err := exec.LookPath("script")
	if err != nil {
		lack.Of(t, "script(1) is not installed: run script/setup")
	}
	_, dsn := benched(t, "mariadb")
	command := binary + " bench run point_select --dsn '" + dsn + "' --table-size 1000 --warmup 2s --time 3s --rate 100 --threads 2 >" + os.DevNull
	out, err := exec.CommandContext(t.Context(), script, "-qec", command, os.DevNull).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 5 || !strings.HasPrefix(lines[0], "warm-up") || !strings.Contains(lines[4], " 3 s ") || strings.Count(string(out), "waiting") != 5 || !strings.Contains(string(out), "█") {
		t.Errorf("on a terminal: want len(lines) 5, \"warm-up\" at the beginning of lines[0], \" 3 s \" in lines[4], strings.Count(string(out), \"waiting\") 5, \"█\" in it:\n%s",
			out)
	}
}

func TestBenchRun(t *testing.T) {
	t.Parallel()
	eachKind(t, kinds, func(t *testing.T, kind string) {
		n, dsn := benched(t, kind)
		run := []string{"bench", "run", "point_select", "--dsn", dsn, "--tables", "2", "--table-size", "1000", "--threads", "4", "--time", "2s"}
		out, said, code := runRisso(t, nil, append(run, "--output", "json", "--percentile", "12.5", "--percentiles", "99.5,99.999", "--ledger")...)
		var r benchResult
		if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 || said != "" {
			t.Fatalf("exit %d, %v: got %s; want code 0, said \"\"", code, err, said)
		}
		if r.Transactions == 0 || r.Queries != 2*r.Transactions || r.QueriesPerSecond < 2*r.TransactionsPerSecond*0.999 || r.Seconds < 2 || r.Interrupted {
			t.Errorf("got %+v; want Transactions not 0, Queries %v, QueriesPerSecond at least %v, Seconds at least 2, Interrupted false",
				r, 2*r.Transactions, 2*r.TransactionsPerSecond*0.999)
		}
		if l := r.Ledger; l == nil || l.Error != "" || l.Missing != 0 || l.Acknowledged == 0 {
			t.Errorf("ledger %+v; want l not nil, Error \"\", Missing 0, Acknowledged not 0", l)
		}
		if v := execSQL(t, n, "SELECT @@version"); !strings.HasPrefix(r.ServerVersion, *v[0].Rows[0][0]) {
			t.Errorf("version %q, want *v[0].Rows[0][0] at its beginning", r.ServerVersion)
		}
		if len(r.Latency.Percentiles) != 10 || r.Latency.Percentiles[0].Percentile != 12.5 || r.Latency.Percentiles[9].Percentile != 99.999 {
			t.Errorf("percentiles %+v; want len(r.Latency.Percentiles) 10, r.Latency.Percentiles[0].Percentile 12.5, r.Latency.Percentiles[9].Percentile 99.999",
				r.Latency.Percentiles)
		}
		if p := r.Parameters; p["tables"] != 2.0 || p["threads"] != 4.0 || p["ledger"] != true || p["time"] != "2s" || p["seed"] == 0.0 || p["dsn"] != nil || strings.Contains(out, dsn) {
			t.Errorf("parameters %v; want p[\"tables\"] 2.0, p[\"threads\"] 4.0, p[\"ledger\"] true, p[\"time\"] \"2s\", p[\"seed\"] not 0.0, and no DSN",
				p)
		}
		out, said, code = runRisso(t, nil, append(run, "--rate", "200", "--warmup", "1s")...)
		for _, word := range []string{"point_select", "open loop", "transactions", "queries", "SERVICE TIME", "99.9 %", "backlog", "steady", "warm-up of"} {
			if !strings.Contains(out, word) {
				t.Errorf("the text lacks %q:\n%s", word, out)
			}
		}
		if code != 0 || said != "" {
			t.Errorf("exit %d, said in a pipe: %s; want code 0, said \"\"", code, said)
		}
	})
}

// interrupt runs the program, sends it signals at these times, and returns what it wrote, its exit code (-1: it was killed by
// the signal) and how long it took.
func interrupt(t *testing.T, after []time.Duration, meanwhile func(), args ...string) (out, said string, code int, took time.Duration) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Env = environment(tempDir(t))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if meanwhile != nil {
		meanwhile()
	}
	for _, d := range after {
		time.Sleep(time.Until(began.Add(d)))
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Error(err)
		}
	}
	signalled := time.Now()
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode(), time.Since(signalled)
}

// TestBenchInterrupted sends Ctrl-C: while it runs, while the server hangs, and twice.
func TestBenchInterrupted(t *testing.T) {
	t.Parallel()
	n, dsn := benched(t, "mariadb")
	run := []string{"bench", "run", "point_select", "--dsn", dsn, "--tables", "2", "--table-size", "1000", "--threads", "4", "--time", "1m", "--ledger", "--output", "json"}
	ledgers := func() string {
		return *execSQL(t, n, "SELECT COUNT(*) FROM information_schema.tables WHERE table_name LIKE 'risso%'")[0].Rows[0][0]
	}

	out, said, code, _ := interrupt(t, []time.Duration{4 * time.Second}, nil, run...)
	var r benchResult
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 130 || !r.Interrupted || r.Transactions == 0 || r.Seconds > 50 || r.Ledger == nil || r.Ledger.Missing != 0 {
		t.Errorf("exit %d, %v: got %+v; want code 130, Interrupted true, Transactions not 0, Seconds at most 50, Ledger not nil, Ledger.Missing 0",
			code, err, r)
	}
	if strings.Count(said, "\n") != 1 || !strings.Contains(said, "interrupted after") {
		t.Errorf("said: %s; want strings.Count(said, \"\\n\") 1, \"interrupted after\" in it", said)
	}
	if got := ledgers(); got != "0" {
		t.Errorf("%s ledgers are left, want \"0\"", got)
	}

	// The server hangs from the third second on, and comes back some seconds after the signal.
	back := make(chan struct{}, 1)
	hang := func() {
		time.Sleep(3 * time.Second)
		goOn := sandboxtest.Pause(t, n)
		time.AfterFunc(9*time.Second, func() { goOn(); back <- struct{}{} })
	}
	out, said, code, took := interrupt(t, []time.Duration{5 * time.Second}, hang, run...)
	<-back
	r = benchResult{}
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 130 || !r.Interrupted || r.Ledger == nil || r.Ledger.Error != "" || took > 30*time.Second {
		t.Errorf("while it hangs: exit %d after %v, %v: got %+v %s; want code 130, r.Interrupted true, r.Ledger not nil, r.Ledger.Error \"\", took at most 30 * time.Second",
			code, took, err, r.Ledger, said)
	}
	if got := ledgers(); got != "0" {
		t.Errorf("%s ledgers are left after a hang, want \"0\"", got)
	}

	_, _, code, took = interrupt(t, []time.Duration{5 * time.Second, 5500 * time.Millisecond}, hang, run...)
	if code != -1 || took > 2*time.Second+stalled(time.Now().Add(-took)) {
		t.Errorf("twice: exit %d after %v; want code -1, took at most 2*time.Second + stalled(time.Now().Add(-took))", code, took)
	}
	<-back
	if _, said, code := runRisso(t, nil, append(run, "--time", "1s")...); code != 0 || ledgers() != "0" {
		t.Errorf("the next run: exit %d, %s; want code 0, ledgers() \"0\"", code, said)
	}
}

// TestBenchWrongUse: one line and exit code 2; what the server refuses: one line, a hint and exit code 1.
func TestBenchWrongUse(t *testing.T) {
	t.Parallel()
	n, dsn := benched(t, "mariadb")
	execSQL(t, n, "CREATE DATABASE empty; CREATE USER poor@localhost; GRANT SELECT ON sbtest.sbtest2 TO poor@localhost")
	for _, c := range []struct {
		args string
		code int
		word string
	}{
		{"", 2, "accepts 1 arg"},
		{"nonsense --dsn DSN", 2, "no workload"},
		{"point_select --dsn DSN --threads 0", 2, "threads"},
		{"point_select --dsn DSN --threads -1", 2, "threads"},
		{"point_select --dsn DSN --threads 2000000000", 2, "from 1 to 8000"},
		{"point_select --dsn DSN --distribution zipfian --distribution-param zipfian-exp=-1", 2, "wrong use: zipfian-exp is -1"},
		{"point_select --dsn DSN --rate -5", 2, "rate"},
		{"point_select --dsn DSN --rate NaN", 2, "rate"},
		{"point_select --dsn DSN --percentile 101", 2, "percentile"},
		{"point_select --dsn DSN --percentile x", 2, "percentile"},
		{"point_select --dsn DSN --warmup soon", 2, "warmup"},
		{"point_select --dsn DSN --warmup auto --warmup-limit 1s", 2, "warmup-limit"},
		{"point_select --dsn DSN --time 0s", 2, "time"},
		{"point_select --dsn DSN --output xml", 2, "text, json"},
		{"point_select --dsn DSN --failover postgres://x/y", 2, "failover"},
		{"point_select --dsn DSN --nonsense", 2, "unknown flag"},
		{"point_select --dsn DSN --table-size 1000 --tables 9", 1, "risso bench prepare point_select"},
		{"point_select --dsn root@unix(SOCKET)/empty", 1, "risso bench prepare point_select"},
		{"point_select --dsn root@unix(SOCKET)/nowhere", 1, "create the database, then: risso bench prepare"},
		{"point_select --dsn root@unix(SOCKET)/", 1, "name a database"},
		{"point_select --dsn poor@unix(SOCKET)/sbtest", 1, "GRANT SELECT"},
		{"point_select --dsn root@tcp(127.0.0.1:1)/sbtest", 1, "is the server running"},
		{"point_select --dsn DSN --table-size 1000 --tables 2 --threads 400", 1, "max_connections"},
	} {
		args := strings.Fields(strings.NewReplacer("DSN", dsn, "SOCKET", n.Socket).Replace(c.args))
		_, said, code := runRisso(t, nil, append([]string{"bench", "run"}, args...)...)
		if code != c.code || strings.Count(said, "\n") != 1 || !strings.Contains(said, c.word) {
			t.Errorf("%s: exit %d, %s; want code %d, strings.Count(said, \"\\n\") 1, %q in it", c.args, code, said, c.code, c.word)
		}
	}
}
