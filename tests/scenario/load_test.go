package scenario_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/store/series"
)

// memory reads a line of a process' status in bytes: VmRSS, or VmHWM, the most that VmRSS ever was.
func (r *risso) memory(t *testing.T, line string) int64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(b), line+":")
	if !ok {
		t.Fatalf("no %s in %s, want ok true", line, b)
	}
	n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n << 10
}

// largeStore writes an hour of many series of some servers, which ends now.
func largeStore(t *testing.T, dir string, servers, count int) (from, to int64) {
	t.Helper()
	st, err := series.Open(series.Options{Dir: filepath.Join(dir, "series"), Logger: slog.New(slog.DiscardHandler), OnEvent: func(fleet.Event) {}})
	if err != nil {
		t.Fatal(err)
	}
	to = time.Now().Unix() - 60
	from = to - 3600
	var wg sync.WaitGroup
	for i := range servers {
		w, err := st.Writer(fmt.Sprintf("old%d", i))
		if err != nil {
			t.Fatal(err)
		}
		for k := range count {
			w.Define(series.Desc{Name: fmt.Sprintf("large_store_counter_number_%d", k/4), Labels: []series.Label{{Name: "part", Value: strconv.Itoa(k)}}, Type: series.Counter})
		}
		wg.Go(func() {
			values := make([]float64, count)
			for at := from; at < to; at++ {
				for k := range values {
					values[k] += float64(k * int(at%7))
				}
				if err := w.Append(at, values, false); err != nil {
					t.Error(err)
					return
				}
			}
			w.Close()
		})
	}
	wg.Wait()
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	return from, to
}

// largest are the queries that cost most, each in its own way.
func largest(from, to int64) []string {
	all := `{__name__=~".+"}`
	prom := func(path string, form ...string) string {
		v := url.Values{}
		for i := 0; i < len(form); i += 2 {
			v.Add(form[i], form[i+1])
		}
		return "/api/v1/" + path + "?" + v.Encode()
	}
	ranged := func(query string) string {
		return prom("query_range", "query", query, "start", fmt.Sprint(from), "end", fmt.Sprint(to), "step", "1")
	}
	instant := func(query string) string { return prom("query", "query", query, "time", fmt.Sprint(to-1)) }
	list := []string{
		ranged(all), ranged("sum(" + all + ")"), ranged("rate(" + all + "[5m])"), ranged("timestamp(" + all + ")"),
		ranged(`count_values("n", vector(time()))`), ranged(all + " * on(instance, part) group_left() " + all), ranged("sort(" + all + " or " + all + ")"),
		instant(all + "[1h]"), instant("max_over_time(" + all + "[1h])"), instant("quantile_over_time(0.9, " + all + "[1h:1s])"),
		instant("count_over_time(vector(1)[1y:1s])"), instant("timestamp(" + all + ")"), instant(`label_replace(` + all + `,"x","` + strings.Repeat("y", 4000) + `","","")`),
		prom("series", "match[]", all, "start", fmt.Sprint(from), "end", fmt.Sprint(to)),
	}
	chart := url.Values{"instance": {"old0"}, "from": {fmt.Sprint(from)}, "to": {fmt.Sprint(to)}, "step": {"1"}}
	for k := range 500 {
		chart.Add("key", fmt.Sprintf(`large_store_counter_number_%d{part="%d"}`, k/4, k))
	}
	return append(list, "/api/chart?"+chart.Encode())
}

// TestLargestQuestions asks all large queries at the same time, also by slow readers. Risso stays within its memory, answers or
// refuses in good form, and goes on watching: no healthy server is called down, or its clock wrong.
func TestLargestQuestions(t *testing.T) {
	n := single(t, "mariadb")
	data := dataDir(t)
	from, to := largeStore(t, data, 4, 1500)
	largeStatements(t, data, to)
	config := filepath.Join(tempDir(t), "risso.yaml")
	write(t, config, "limits: {wait: 5m}\n") // each is worked on, however busy the machine is
	r := serve(t, data, "--no-host", "--dsn", "db="+n.DSN, "--config", config)
	r.awaitTicks(t, "db", 2)
	before := r.memory(t, "VmRSS")
	questions := append(largest(from, to), largestOfStatements(to)...)
	address := strings.TrimPrefix(r.base, "http://")
	var idle []net.Conn
	// Readers that do not read.
	for _, q := range questions {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		idle = append(idle, c)
		if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", q); err != nil {
			t.Fatal(err)
		}
	}
	codes := make([]string, len(questions))
	var wg sync.WaitGroup
	for i, q := range questions {
		wg.Go(func() {
			resp, err := http.Get(r.base + q)
			if err != nil {
				t.Errorf("%.100s: %v", q, err)
				return
			}
			b, err := io.ReadAll(io.LimitReader(resp.Body, 200<<20))
			resp.Body.Close()
			codes[i] += fmt.Sprintf(" %d (%d bytes)", resp.StatusCode, len(b))
			var said struct{ Status, ErrorType, Error string }
			switch {
			case err != nil:
				t.Errorf("%.100s: %v", q, err)
			case resp.StatusCode == http.StatusOK:
			case resp.StatusCode != http.StatusUnprocessableEntity && resp.StatusCode != http.StatusServiceUnavailable:
				t.Errorf("%.100s: %d %.300s", q, resp.StatusCode, b)
			case json.Unmarshal(b, &said) != nil || said.Error == "" || strings.HasPrefix(q, "/api/v1/") && (said.Status != "error" || said.ErrorType == ""):
				t.Errorf("%.100s: %d %.300s", q, resp.StatusCode, b)
			case strings.Contains(said.Error, "as many questions"):
				t.Errorf("%.100s: it was not worked on, want no \"as many questions\" in it", q)
			case resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") == "":
				t.Errorf("%.100s: 503 without Retry-After", q)
			}
		})
	}
	wg.Wait()
	for i, q := range questions {
		t.Logf("%.90s:%s", q, codes[i])
	}
	peak := r.memory(t, "VmHWM")
	t.Logf("resident: %d MB before, %d MB at the most", before>>20, peak>>20)
	if took := peak - before; took > 400e6 {
		t.Errorf("questions took %d MB, not 400 at the most", took/1e6)
	}
	for _, c := range idle {
		c.Close()
	}
	await(t, "an answer to an ordinary question, when the others are gone", func() bool {
		resp, err := http.Get(r.base + "/api/v1/query?query=mysql_global_status_questions")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	r.awaitTicks(t, "db", 2)
	noEvent(t, r, "db", fleet.EventDown, fleet.EventClock, fleet.EventRestart)
	if d := r.instance(t, "db"); d.State == "down" {
		t.Errorf("a healthy server is %q: %s, want not \"down\"", d.State, d.Words)
	}
}

// TestRissoStoodStill stops Risso itself for longer than any server may take to answer: it says that it did not look, and
// nothing of the servers, which were well.
func TestRissoStoodStill(t *testing.T) {
	t.Parallel()
	s := up(t, sandbox.Options{Name: "s", Servers: []string{"mariadb", "mariadb"}})
	r := serve(t, dataDir(t), "--dsn", "a="+s.Nodes[0].DSN, "--dsn", "b="+s.Nodes[1].DSN)
	r.awaitTicks(t, "a", 3)
	for i := range 3 {
		// At another part of the second each time: within a question, too.
		await(t, "a part of the second", func() bool { return time.Now().Nanosecond()/250e6 == i })
		if err := r.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		time.Sleep(6500 * time.Millisecond) // longer than what counts as hung: that is what is tested
		if err := r.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		await(t, "Risso says that it did not look", func() bool {
			told := 0
			for _, e := range r.events(t, "", fleet.EventObserver) {
				if strings.HasPrefix(e.Text, "Risso took no readings from ") {
					told++
				}
			}
			return told > i
		})
	}
	r.awaitTicks(t, "a", 3)
	r.awaitTicks(t, "b", 3)
	for _, id := range []string{"a", "b"} {
		noEvent(t, r, id, fleet.EventDown, fleet.EventUp, fleet.EventClock, fleet.EventRestart, fleet.EventReset)
	}
	// What was read late has its own time: nothing was busy for more than all of a second.
	now := time.Now().Unix()
	for _, kind := range []string{"cpu", "io", "memory"} {
		for _, p := range r.steps(t, `max(rate(node_pressure_`+kind+`_waiting_seconds_total[2s]))`, now-60, now) {
			if p.v > 2.2 { // on a machine that is always busy a reading may come most of a second late; 6.5 s in one would be more than 3
				t.Errorf("at %d something waited for %s for %.0f %% of the time, want p.v at most 2.2", p.t, kind, p.v*100)
			}
		}
	}
}

// TestHangupWithoutConfig: a closed terminal and logrotate send SIGHUP even if there is nothing to reread; watching goes on.
func TestHangupWithoutConfig(t *testing.T) {
	t.Parallel()
	r := serve(t, dataDir(t), "--host-only")
	for range 2 {
		if err := r.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		await(t, "it says what it did", func() bool {
			return bytes.Contains([]byte(r.err.String()), []byte("SIGHUP: there is no config file to reread; watching continues"))
		})
	}
	if code, _, _ := r.request(t, http.MethodGet, "/healthz", nil, nil); code != http.StatusOK {
		t.Errorf("after SIGHUP: got %d, want http.StatusOK", code)
	}
	r.stop(t, syscall.SIGTERM)
}
