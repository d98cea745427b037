package scenario_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/watch/alert"
	"github.com/rissodb/risso/internal/watch/alert/tell"
)

// hook is a receiver of webhooks.
type hook struct {
	*httptest.Server
	secret string
	heard  chan struct{} // may be nil: there was a message a moment ago

	mu  sync.Mutex
	got []alert.Message
	bad []string // what was wrong with what came
}

func newHook(t *testing.T, secret string) *hook {
	t.Helper()
	h := &hook{secret: secret}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil { // the sender was killed while it sent
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		select {
		case h.heard <- struct{}{}:
		default:
		}
		var m alert.Message
		err = json.Unmarshal(body, &m)
		h.mu.Lock()
		defer h.mu.Unlock()
		if want := tell.Sign(h.secret, r.Header.Get("Risso-Timestamp"), body); err != nil || r.Header.Get("Risso-Signature") != want || r.Header.Get("Idempotency-Key") != m.ID {
			h.bad = append(h.bad, fmt.Sprintf("%v: %s", err, r.Header))
		}
		h.got = append(h.got, m)
	}))
	t.Cleanup(h.Close)
	return h
}

// told is what came: "firing db/server.hung". What came twice with one ID counts once: Risso may be killed before it could note that it was taken.
func (h *hook) told() (list []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	had := map[string]bool{}
	for _, m := range h.got {
		if had[m.ID] {
			continue
		}
		had[m.ID] = true
		for _, a := range m.Alerts {
			list = append(list, string(a.Phase)+" "+a.Key)
		}
	}
	return list
}

// last is the newest that was told of an alert.
func (h *hook) last(key string) (last alert.Alert) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range h.got {
		for _, a := range m.Alerts {
			if a.Key == key {
				last = a
			}
		}
	}
	return last
}

// alertsNow is the answer of /api/alerts.
type alertsNow struct {
	Alerts    []alert.Standing
	Silences  []alert.Silence
	Receivers []struct {
		Name    string
		Waiting int
	}
}

func (r *risso) alerts(t *testing.T) (a alertsNow) {
	t.Helper()
	r.get(t, "/api/alerts", url.Values{}, &a)
	return a
}

func (r *risso) act(t *testing.T, method, path, body string) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, r.base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// TestAlerts: a server that hangs rings once with every receiver, whatever one of them does and however Risso ends meanwhile; what is
// silenced does not ring; the end is told.
func TestAlerts(t *testing.T) {
	t.Parallel()
	n := single(t, "mariadb")
	good := newHook(t, "s3cret")
	stuck, release := make(chan struct{}), sync.Once{}
	hangs := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stuck }))
	t.Cleanup(hangs.Close)
	t.Cleanup(func() { release.Do(func() { close(stuck) }) })
	dir := tempDir(t)
	said := filepath.Join(dir, "said")
	conf := filepath.Join(dir, "risso.yaml")
	write(t, conf, fmt.Sprintf(`
alerts:
  page: https://risso.example.com/
  receivers:
    - {name: hook, webhook: {url: %q, secret_env: HOOK_SECRET}}
    - {name: stuck, webhook: {url: %q}}
    - {name: program, command: {run: [sh, -c, 'cat >> %s; echo >> %[3]s']}}
servers:
  - {name: db, dsn: %[4]q}
  - {name: quiet, dsn: %[4]q}
`, good.URL, hangs.URL, said, n.DSN))
	env, data := environment(tempDir(t), "HOOK_SECRET=s3cret"), dataDir(t)
	start := func() *risso { return serveEnv(t, env, data, "--no-host", "--config", conf) }
	r := start()
	r.awaitTicks(t, "db", 3)
	for _, c := range []struct{ body, words string }{
		{`{"server": "quiet", "reason": "known"}`, "has an end"}, {`{"server": "quiet", "for": "1h"}`, "has a reason"}, {`{"server": "quiet", "for": "soon", "reason": "x"}`, "30m"},
		{`{"for": "1h", "reason": "x"}`, "names what is silent"}, {`{"finding": "nosuch.find", "for": "1h", "reason": "x"}`, "there is no finding"},
	} {
		if status, text := r.act(t, http.MethodPost, "/api/silences", c.body); status != http.StatusBadRequest || !strings.Contains(text, c.words) {
			t.Errorf("silence %s: got %d %s, want 400 and %q", c.body, status, text, c.words)
		}
	}
	if status, text := r.act(t, http.MethodPost, "/api/silences", `{"server": "qui*", "for": "1h", "reason": "known"}`); status != http.StatusOK || !strings.Contains(text, `"servers":["quiet"]`) {
		t.Fatalf("silence: got %d %s, want 200, and that it is about quiet", status, text)
	}
	if status, text := r.act(t, http.MethodPost, "/api/receivers/test?name=hook", ""); status != http.StatusOK {
		t.Errorf("test of a receiver: got %d %s, want 200", status, text)
	}

	goOn := sandboxtest.Pause(t, n)
	await(t, "a message of the server that hangs", func() bool { return slices.Contains(good.told(), "firing db/server.hung") })
	await(t, "the program's message", func() bool { text, _ := os.ReadFile(said); return strings.Contains(string(text), "db/server.hung") })
	r.kill(t)
	r = start()
	await(t, "the alert after a kill of Risso", func() bool {
		return slices.ContainsFunc(r.alerts(t).Alerts, func(a alert.Standing) bool { return a.Key == "db/server.hung" && a.Phase == alert.Firing })
	})
	for key, want := range map[string]int{"db/server.hung": http.StatusOK, "db/other": http.StatusNotFound} {
		if status, text := r.act(t, http.MethodPost, "/api/alerts/ack?key="+url.QueryEscape(key), ""); status != want {
			t.Errorf("acknowledge %s: got %d %s, want %d", key, status, text, want)
		}
	}
	await(t, "that it is known", func() bool {
		return slices.ContainsFunc(r.alerts(t).Alerts, func(a alert.Standing) bool { return a.Key == "db/server.hung" && !a.Acked.IsZero() })
	})
	now := r.alerts(t)
	if i := slices.IndexFunc(now.Alerts, func(a alert.Standing) bool { return a.Key == "quiet/server.hung" }); i < 0 || !strings.Contains(now.Alerts[i].Held, "known") {
		t.Errorf("got %+v, want an alert of the silenced server that says why nobody is told", now.Alerts)
	}
	for _, d := range now.Receivers {
		if waits := d.Name == "stuck"; (d.Waiting > 0) != waits {
			t.Errorf("%d messages wait for %s, want some for stuck alone", d.Waiting, d.Name)
		}
	}
	for want, args := range map[string][]string{
		"firing critical db/server.hung": {"list"},
		"nobody is told: silenced until": {"list"},
		"stuck has not taken 1 message":  {"list"},
		"took the message":               {"test", "hook"},
		"silence 2 until":                {"silence", "--finding", "trx.*", "--for", "1h", "--reason", "a try"},
		"2 findings since":               {"replay", "server.*"},
		"no silence 77 holds":            {"unsilence", "77"},
		`"key": "db/server.hung"`:        {"history", "-o", "json"},
	} {
		if out, said, _ := runRisso(t, nil, append(append([]string{"alert"}, args...), "--url", r.base)...); !strings.Contains(out+said, want) {
			t.Errorf("risso alert %s: got %s%s, want %q", args, out, said, want)
		}
	}
	goOn()
	await(t, "the end", func() bool { return slices.Contains(good.told(), "resolved db/server.hung") })
	want := []string{"firing risso/test", "firing db/server.hung", "firing risso/test", "resolved db/server.hung"}
	if got := good.told(); !slices.Equal(got, want) || len(good.bad) > 0 {
		t.Errorf("got %q, want %q; bad: %q", got, want, good.bad)
	}
	good.mu.Lock()
	if c := good.got[1].Chart; c == nil || c.Title != "questions" || !slices.ContainsFunc(c.Values, func(v *float64) bool { return v != nil }) {
		t.Errorf("got the chart %+v, want the server's questions", c)
	}
	good.mu.Unlock()
	var history struct{ Alerts []alert.Standing }
	r.get(t, "/api/alerts/history", url.Values{}, &history)
	if i := slices.IndexFunc(history.Alerts, func(a alert.Standing) bool { return a.Key == "db/server.hung" }); i < 0 || history.Alerts[i].Ended.IsZero() || history.Alerts[i].By == "" {
		t.Errorf("got %+v, want the alert with its end, and who knew of it", history.Alerts)
	}
	for _, c := range []struct {
		want string
		args []string
	}{
		{"marked: event ", []string{"event", "deploy 1.4", "--server", "d*", "--key", "pipeline 7"}},
		{"was marked already: event ", []string{"event", "deploy 1.4", "--server", "d*", "--key", "pipeline 7"}},
		{"another mark", []string{"event", "deploy 1.5", "--server", "d*", "--key", "pipeline 7"}},
		{"no server \"shop\"", []string{"event", "deploy 1.5", "--server", "shop"}},
		{"deploy 1.4", []string{"events", "--kind", "deploy", "--server", "db"}},
		{"does not answer", []string{"events", "--since", "1h"}},
		{"critical  db ", []string{"events", "--findings"}},
	} {
		if out, said, _ := runRisso(t, nil, append(c.args, "--url", r.base)...); !strings.Contains(out+said, c.want) {
			t.Errorf("risso %s: got %s%s, want %q", c.args, out, said, c.want)
		}
	}
	text, err := os.ReadFile(said)
	if err != nil {
		t.Fatal(err)
	}
	fires := map[string]bool{} // by the message's ID: the kill may come before it could be noted that one was taken, and then it is sent again
	for line := range strings.Lines(string(text)) {
		var m alert.Message
		if json.Unmarshal([]byte(line), &m) == nil && m.Firing() > 0 {
			fires[m.ID] = true
		}
	}
	if len(fires) != 1 {
		t.Errorf("the program was told by %d messages that it fires, want one: %s", len(fires), text)
	}
}

// TestRegroup: a server that gets another group in the config file, while Risso runs, rings by the thresholds of that group; the change is an event, and the
// cluster of its series.
func TestRegroup(t *testing.T) {
	t.Parallel()
	n := single(t, "mariadb")
	got := newHook(t, "s3cret")
	conf := filepath.Join(tempDir(t), "risso.yaml")
	config := func(group string) string {
		return fmt.Sprintf(`
alerts:
  receivers:
    - {name: hook, webhook: {url: %q, secret: s3cret}}
  thresholds:
    - {finding: server.hung, group: test, off: true}
servers:
  - {name: db, dsn: %q%s}
`, got.URL, n.DSN, group)
	}
	write(t, conf, config(", group: test"))
	r := serveEnv(t, environment(tempDir(t)), dataDir(t), "--no-host", "--config", conf)
	r.awaitTicks(t, "db", 3)
	goOn := sandboxtest.Pause(t, n)
	defer goOn()
	await(t, "the alert of a group that does not ring", func() bool {
		return slices.ContainsFunc(r.alerts(t).Alerts, func(a alert.Standing) bool {
			return a.Key == "db/server.hung" && a.Group == "test" && a.Phase == alert.Pending
		})
	})
	write(t, conf, config(", group: shop"))
	await(t, "a message of the server in its new group", func() bool { return slices.Contains(got.told(), "firing db/server.hung") })
	if a := got.last("db/server.hung"); a.Group != "shop" {
		t.Errorf("got the group %q, want shop", a.Group)
	}
	goOn()
	await(t, "the cluster of its series", func() bool {
		var answer struct {
			Data struct {
				Result []struct{ Metric map[string]string }
			}
		}
		r.get(t, "/api/v1/query", url.Values{"query": {"mysql_up"}}, &answer)
		return len(answer.Data.Result) == 1 && answer.Data.Result[0].Metric["cluster"] == "shop"
	})
	write(t, conf, config(""))
	for _, text := range []string{"config file reread: db is now in group shop, no longer in test\n", "config file reread: db is no longer in group shop\n"} {
		await(t, text, func() bool { return strings.Contains(r.err.String(), text) })
	}
	if text := r.err.String(); strings.Contains(text, "other changes") {
		t.Errorf("got %s, want no word of a restart", text)
	}
}
