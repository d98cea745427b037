package scenario_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
)

// buffer takes what a process writes and can be read at the same time.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// risso is a running program.
type risso struct {
	cmd      *exec.Cmd
	out, err *buffer
	data     string
	base     string // http://127.0.0.1:PORT
	token    string
	done     chan struct{}
}

// environment is what the program inherits: nothing of the person's own settings.
func environment(home string, extra ...string) []string {
	// One account takes and reads all backups: its key is not in the home, which is new for each program.
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "USER=nobody", "TZ=UTC", "XDG_CONFIG_HOME=" + config}
	if mark := os.Getenv("RISSO_TEST_RUN"); mark != "" { // by which script/lib/run.sh knows what it has to end
		env = append(env, "RISSO_TEST_RUN="+mark)
	}
	return append(env, extra...)
}

// launch starts the program with arguments.
func launch(t *testing.T, env []string, args ...string) *risso {
	t.Helper()
	return launchProgram(t, binary, env, args...)
}

func launchProgram(t *testing.T, program string, env []string, args ...string) *risso {
	t.Helper()
	return launchCommand(t, exec.Command(program, args...), env)
}

func launchCommand(t *testing.T, cmd *exec.Cmd, env []string) *risso {
	t.Helper()
	r := &risso{cmd: cmd, out: &buffer{}, err: &buffer{}, done: make(chan struct{})}
	if env == nil {
		env = environment(tempDir(t))
	}
	r.cmd.Env, r.cmd.Stdout, r.cmd.Stderr = env, r.out, r.err
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { defer close(r.done); _ = r.cmd.Wait() }() // how it ended is in ProcessState
	t.Cleanup(func() { r.kill(t) })
	return r
}

// kill ends the program as kill -9 does.
func (r *risso) kill(t *testing.T) {
	t.Helper()
	if err := r.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
	<-r.done
}

// code waits for the end and returns the exit code.
func (r *risso) code(t *testing.T) int {
	t.Helper()
	select {
	case <-r.done:
		return r.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		t.Fatalf("it did not end within %s; it said: %s", patience, r.err)
		return -1
	}
}

// stop ends the program cleanly.
func (r *risso) stop(t *testing.T, sig syscall.Signal) {
	t.Helper()
	start := time.Now()
	if err := r.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	if code := r.code(t); code != 0 {
		t.Errorf("%s: exit code %d, not 0; it said: %s", sig, code, r.err)
	}
	// docker stop, for one, kills what has not ended by then.
	if d := time.Since(start); d > 10*time.Second+stalled(start) {
		t.Errorf("%s: it took %s to end, not 10 s", sig, d)
	}
}

var readyForm = regexp.MustCompile(`risso: ready on (http://[^ ]+)`)

// serve starts risso serve and waits until it is ready.
func serve(t *testing.T, data string, args ...string) *risso {
	t.Helper()
	return serveEnv(t, nil, data, args...)
}

func serveEnv(t *testing.T, env []string, data string, args ...string) *risso {
	t.Helper()
	return serveProgram(t, binary, env, data, args...)
}

func serveProgram(t *testing.T, program string, env []string, data string, args ...string) *risso {
	t.Helper()
	r := launchProgram(t, program, env, append([]string{"serve", "--listen", "127.0.0.1:0", "--data", data}, args...)...)
	r.data = data
	t.Cleanup(func() {
		if t.Failed() {
			said := strings.Split(strings.TrimSpace(r.err.String()), "\n")
			t.Logf("the last that risso serve of %s said: %s", data, strings.Join(said[max(0, len(said)-60):], "\n"))
		}
	})
	r.awaitReady(t)
	return r
}

// awaitReady waits until the API answers.
func (r *risso) awaitReady(t *testing.T) {
	t.Helper()
	await(t, "ready", func() bool {
		select {
		case <-r.done:
			t.Fatalf("risso serve ended: %s", r.err)
		default:
		}
		m := readyForm.FindStringSubmatch(r.err.String())
		if m == nil {
			return false
		}
		r.base = m[1]
		return true
	})
}

// request asks the API and returns status and body.
func (r *risso) request(t *testing.T, method, path string, form url.Values, change func(*http.Request)) (int, []byte, http.Header) {
	t.Helper()
	var body io.Reader
	if form != nil && method == http.MethodGet {
		path += "?" + form.Encode()
	} else if form != nil {
		body = strings.NewReader(form.Encode())
	}
	req, err := http.NewRequestWithContext(t.Context(), method, r.base+path, body)
	if err != nil {
		t.Fatal(err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	if change != nil {
		change(req)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v; risso said: %s", method, path, err, r.err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, b, resp.Header
}

// get reads JSON from the API.
func (r *risso) get(t *testing.T, path string, form url.Values, out any) {
	t.Helper()
	status, b, _ := r.request(t, http.MethodGet, path, form, nil)
	if status != http.StatusOK {
		t.Fatalf("GET %s %v: got %d %s, want http.StatusOK", path, form, status, b)
	}
	if err := json.Unmarshal(b, out); err != nil {
		t.Fatalf("GET %s: %v in %.300s", path, err, b)
	}
}

// point is a value at a second.
type point struct {
	t int64
	v float64
}

// line is one series of an answer.
type line struct {
	labels map[string]string
	points []point
}

// key is the series' name with its labels but the instance's.
func (l line) key() string {
	var names []string
	for n := range l.labels {
		if !slices.Contains(ownLabels, n) {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	for i, n := range names {
		names[i] = fmt.Sprintf("%s=%q", n, l.labels[n])
	}
	if len(names) == 0 {
		return l.labels["__name__"]
	}
	return l.labels["__name__"] + "{" + strings.Join(names, ",") + "}"
}

// prom asks query or query_range.
func (r *risso) prom(t *testing.T, what string, form url.Values) []line {
	t.Helper()
	var a struct {
		Status string
		Data   struct {
			Result []struct {
				Metric map[string]string
				Value  *[2]any
				Values [][2]any
			}
		}
	}
	r.get(t, "/api/v1/"+what, form, &a)
	var out []line
	for _, s := range a.Data.Result {
		l := line{labels: s.Metric}
		if s.Value != nil {
			s.Values = append(s.Values, *s.Value)
		}
		for _, v := range s.Values {
			at, ok := v[0].(float64)
			text, ok2 := v[1].(string)
			f, err := strconv.ParseFloat(text, 64)
			if !ok || !ok2 || err != nil {
				t.Fatalf("%s %v: odd value %v; want ok true, ok2 true", what, form, v)
			}
			l.points = append(l.points, point{int64(math.Round(at)), f})
		}
		out = append(out, l)
	}
	return out
}

// at reads all series that a selector names, as they were at one second and not before.
func (r *risso) at(t *testing.T, selector string, second int64) []line {
	t.Helper()
	return r.prom(t, "query", url.Values{"query": {selector}, "time": {strconv.FormatInt(second, 10)}, "lookback_delta": {"1s"}})
}

// raw reads the stored points of one series within [from, to].
func (r *risso) raw(t *testing.T, selector string, from, to int64) []point {
	t.Helper()
	lines := r.prom(t, "query", url.Values{"query": {fmt.Sprintf("%s[%ds]", selector, to-from+1)}, "time": {strconv.FormatInt(to, 10)}})
	switch len(lines) {
	case 0:
		return nil
	case 1:
		return lines[0].points
	}
	t.Fatalf("%s: %d series", selector, len(lines))
	return nil
}

// steps reads a query_range, a point a second.
func (r *risso) steps(t *testing.T, query string, from, to int64) []point {
	t.Helper()
	lines := r.prom(t, "query_range", url.Values{"query": {query}, "start": {strconv.FormatInt(from, 10)}, "end": {strconv.FormatInt(to, 10)}, "step": {"1"}})
	if len(lines) > 1 {
		t.Fatalf("%s: got %d series, want at most 1", query, len(lines))
	}
	if len(lines) == 0 {
		return nil
	}
	return lines[0].points
}

func of(metric, instance string) string { return fmt.Sprintf("%s{instance=%q}", metric, instance) }

// newest is the newest second that an instance has a value of a metric for; 0 when there is none.
func (r *risso) newest(t *testing.T, metric, instance string) int64 {
	t.Helper()
	now := time.Now().Unix()
	p := r.raw(t, of(metric, instance), now-60, now+1)
	if len(p) == 0 {
		return 0
	}
	return p[len(p)-1].t
}

// questions is a counter that each server has.
const questions = "mysql_global_status_questions"

// awaitTicks waits until an instance has values of n further seconds, and returns the newest.
func (r *risso) awaitTicks(t *testing.T, instance string, n int64) int64 {
	t.Helper()
	var at int64
	from := time.Now().Unix()
	await(t, fmt.Sprintf("%d seconds of %s; risso said: %s", n, instance, r.err), func() bool {
		at = r.newest(t, questions, instance)
		return at >= from+n
	})
	return at
}

// missing lists the seconds within [from, to] that have no point, without those in which this machine stalled.
func missing(p []point, from, to int64) (list []int64) {
	have := map[int64]bool{}
	for _, x := range p {
		have[x.t] = true
	}
	for s := from; s <= to; s++ {
		if !have[s] && !stood(s) {
			list = append(list, s)
		}
	}
	return list
}

// events reads the events of an instance, or Risso's own for "".
func (r *risso) events(t *testing.T, instance string, kind fleet.EventKind) (list []fleet.Event) {
	t.Helper()
	var a struct{ Events []fleet.Event }
	r.get(t, "/api/events", url.Values{"instance": {instance}, "limit": {"5000"}}, &a)
	for _, e := range a.Events {
		if e.Instance == instance && (kind == "" || e.Kind == kind) {
			list = append(list, e)
		}
	}
	return list
}

// awaitEvent waits for an event and returns it.
func (r *risso) awaitEvent(t *testing.T, instance string, kind fleet.EventKind, fits func(fleet.Event) bool) fleet.Event {
	t.Helper()
	var found fleet.Event
	await(t, fmt.Sprintf("event %s of %q", kind, instance), func() bool {
		for _, e := range r.events(t, instance, kind) {
			if fits == nil || fits(e) {
				found = e
				return true
			}
		}
		return false
	})
	return found
}

// detail is what /api/instance says.
type detail struct {
	fleet.Instance
	State    string
	Words    string
	Seen     int64
	Findings []fleet.Finding
	Gaps     []fleet.Trouble
	Facts    map[string]string
	Lag      *float64
}

func (r *risso) instance(t *testing.T, id string) detail {
	t.Helper()
	var d detail
	r.get(t, "/api/instance", url.Values{"id": {id}}, &d)
	return d
}

// rates reads a counter's rate a second from /api/chart; a gap is NaN. The index is the second since from.
func (r *risso) rates(t *testing.T, instance, key string, from, to int64) []float64 {
	t.Helper()
	var a struct {
		From, Step int64
		Series     []struct{ Avg []*float64 }
	}
	r.get(t, "/api/chart", url.Values{"instance": {instance}, "key": {key}, "from": {strconv.FormatInt(from, 10)}, "to": {strconv.FormatInt(to, 10)}, "step": {"1"}}, &a)
	if len(a.Series) != 1 || a.From != from || a.Step != 1 {
		t.Fatalf("chart of %s: got %+v; want len(Series) 1, From %v, Step 1", key, a, from)
	}
	out := make([]float64, len(a.Series[0].Avg))
	for i, v := range a.Series[0].Avg {
		out[i] = math.NaN()
		if v != nil {
			out[i] = *v
		}
	}
	return out
}

var (
	stallMu sync.Mutex
	stalls  []stall
)

// stall is a time in which this process did not run: no more can be expected of Risso.
type stall struct{ from, to time.Time }

// watchStalls notes, until the process ends, when this machine stalled.
func watchStalls() {
	go func() {
		last := time.Now()
		for range time.Tick(50 * time.Millisecond) {
			now := time.Now()
			if now.Sub(last) > 400*time.Millisecond {
				stallMu.Lock()
				stalls = append(stalls, stall{last, now})
				stallMu.Unlock()
			}
			last = now
		}
	}()
}

// stood reports whether the machine stalled in a second or just before or after it.
func stood(second int64) bool {
	stallMu.Lock()
	defer stallMu.Unlock()
	for _, s := range stalls {
		if s.from.Unix()-1 <= second && second <= s.to.Unix()+1 {
			return true
		}
	}
	return false
}

// stalled is for how long the machine stalled since a moment.
func stalled(since time.Time) (d time.Duration) {
	stallMu.Lock()
	defer stallMu.Unlock()
	for _, s := range stalls {
		if s.to.After(since) {
			d += s.to.Sub(s.from)
		}
	}
	return d
}

// dataDir is a new folder for Risso's data.
func dataDir(t *testing.T) string { return filepath.Join(tempDir(t), "data") }
