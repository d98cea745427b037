package web

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/state"
)

// TestLoopbackAsksOnceThereIsAToken: behind a proxy on the same machine everybody comes from loopback. So the first token
// closes the door for all, and to revoke it does not open it again.
func TestLoopbackAsksOnceThereIsAToken(t *testing.T) {
	s := newSite(t, true)
	paths := []string{"/api/fleet", "/api/v1/labels", "/api/self", "/api/benchmarks"}
	for _, path := range paths {
		if code, body := s.get(t, path); code != http.StatusOK {
			t.Errorf("%s before there is a token: %d %s, want http.StatusOK", path, code, body)
		}
	}
	_, secret, err := s.facts.CreateToken(t.Context(), "ann", state.RoleLook)
	if err != nil {
		t.Fatal(err)
	}
	shut := func(when string) {
		t.Helper()
		// What was found out a moment ago is remembered that long.
		await.Until(t, func() bool {
			code, _ := s.get(t, "/api/fleet")
			return code == http.StatusUnauthorized
		}, "a refusal without a token %s", when)
		for _, path := range paths {
			if code, _ := s.get(t, path); code != http.StatusUnauthorized {
				t.Errorf("got %s, %s: %d without a token; want http.StatusUnauthorized", when, path, code)
			}
		}
	}
	shut("with a token")
	if code, _ := s.get(t, "/api/fleet", "Authorization", "Bearer "+secret); code != http.StatusOK {
		t.Errorf("with its token: got %d, want http.StatusOK", code)
	}
	if err := s.facts.RevokeToken(t.Context(), "ann"); err != nil {
		t.Fatal(err)
	}
	shut("after the last one was revoked")
}

// TestLookMayNotChange: a token that may look starts, stops, keeps and deletes nothing; one that may change does, under its name.
func TestLookMayNotChange(t *testing.T) {
	var mu sync.Mutex
	var told []fleet.Event
	var refused []state.Action
	k := &keeper{}
	s := newSiteOf(t, true, func(o *Options) {
		o.Protect = k
		o.Did = func(a state.Action) {
			mu.Lock()
			defer mu.Unlock()
			if a.Outcome == state.ActionRefused {
				refused = append(refused, a)
				return
			}
			told = append(told, a.Event)
		}
	})
	secret := map[state.Role]string{}
	for _, role := range []state.Role{state.RoleLook, state.RoleChange} {
		_, text, err := s.facts.CreateToken(t.Context(), map[state.Role]string{state.RoleLook: "the looker", state.RoleChange: "the changer"}[role], role)
		if err != nil {
			t.Fatal(err)
		}
		secret[role] = text
	}
	acts := []struct {
		method, path, body string
		code               int
		event              string
	}{
		{"POST", "/api/protect/start?job=db1/backup", "", http.StatusOK, "db1/backup was started by the changer"},
		{"POST", "/api/protect/stop?id=7", "", http.StatusOK, "run 7 was stopped by the changer"},
		{"POST", "/api/benchmarks", aRun, http.StatusOK, "was recorded by the changer"},
		{"DELETE", "/api/benchmark?id=1", "", http.StatusOK, "benchmark 1 was deleted by the changer"},
	}
	for role, text := range secret {
		req, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+"/api/fleet", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+text)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if told := resp.Header.Get(roleHeader); told != string(role) {
			t.Errorf("the page of who may %s is told %q, want %q", role, told, string(role))
		}
	}
	for _, a := range acts {
		code, body := s.send(t, a.method, a.path, a.body, "Authorization", "Bearer "+secret[state.RoleLook])
		if code != http.StatusForbidden || !strings.Contains(body, "--role change") {
			t.Errorf("%s %s by who may look: %d %s; want code http.StatusForbidden, \"--role change\" in it", a.method, a.path, code, body)
		}
	}
	if len(refused) != len(acts) || refused[0].Who != "the looker" || refused[0].Role != state.RoleLook || refused[0].Address != "127.0.0.1" || refused[0].Call != "POST /api/protect/start" {
		t.Errorf("got %+v; want %d that were refused, by the looker", refused, len(acts))
	}
	if len(told) > 0 || len(k.started)+len(k.stopped) > 0 {
		t.Errorf("it was done all the same: %v %v %v; want no told, no k.started) + len(k.stopped", told, k.started, k.stopped)
	}
	for _, a := range acts {
		if code, body := s.send(t, a.method, a.path, a.body, "Authorization", "Bearer "+secret[state.RoleChange]); code != a.code {
			t.Errorf("%s %s by who may change: %d %s, want %d", a.method, a.path, code, body, a.code)
		}
		mu.Lock()
		if !slices.ContainsFunc(told, func(e fleet.Event) bool {
			return e.Kind == fleet.EventAction && e.New == "the changer" && strings.Contains(e.Text, a.event)
		}) {
			t.Errorf("no event says %q: %v", a.event, told)
		}
		mu.Unlock()
	}
	if k.by != "the changer" {
		t.Errorf("the run's log would say it was %q, want \"the changer\"", k.by)
	}
	if code, _ := s.get(t, "/api/fleet", "Authorization", "Bearer "+secret[state.RoleLook]); code != http.StatusOK {
		t.Errorf("who may look cannot: got %d, want http.StatusOK", code)
	}
}

// TestHosts: names must be configured; beyond loopback they are checked only if they are.
func TestHosts(t *testing.T) {
	for _, c := range []struct {
		open  bool
		hosts []string
		host  string
		ok    bool
	}{
		{true, nil, "localhost", true},
		{true, nil, "LOCALHOST:1", true},
		{true, nil, "127.0.0.1", true},
		{true, nil, "risso.example", false},
		{true, nil, "10.0.0.1", false},
		{true, []string{"risso.example"}, "risso.example", true},
		{true, []string{"risso.example"}, "Risso.Example.:443", true},
		{true, []string{"risso.example"}, "evil.example", false},
		{false, nil, "risso.example", true},
		{false, []string{"risso.example"}, "risso.example", true},
		{false, []string{"risso.example"}, "evil.example", false},
		{false, []string{"risso.example"}, "10.0.0.1:8306", true},
	} {
		s := newSiteOf(t, c.open, func(o *Options) { o.Hosts = c.hosts })
		if code, _ := s.get(t, "/healthz", "Host", c.host); (code == http.StatusOK) != c.ok {
			t.Errorf("open %v, hosts %v, Host %s: %d", c.open, c.hosts, c.host, code)
		}
	}
}

// TestForeignPagesMayNotAct: a page elsewhere cannot let its reader's browser act, whatever cookie that has.
func TestForeignPagesMayNotAct(t *testing.T) {
	k := &keeper{}
	s := newSiteOf(t, false, func(o *Options) { o.Protect = k })
	_, secret, err := s.facts.CreateToken(t.Context(), "ann", state.RoleChange)
	if err != nil {
		t.Fatal(err)
	}
	for _, header := range [][]string{{"Origin", "https://evil.example"}, {"Sec-Fetch-Site", "same-site"}, {"Sec-Fetch-Site", "cross-site"}, {"Origin", "null"}} {
		code, _ := s.send(t, http.MethodPost, "/api/protect/start?job=db1/backup", "", append(header, "Cookie", tokenCookie+"="+secret)...)
		if code != http.StatusForbidden || len(k.started) > 0 {
			t.Errorf("%v: got %d; want code http.StatusForbidden, no k.started", header, code)
		}
	}
	code, body := s.send(t, http.MethodPost, "/api/protect/start?job=db1/backup", "", "Sec-Fetch-Site", "same-origin", "Origin", s.URL, "Cookie", tokenCookie+"="+secret)
	if code != http.StatusOK || len(k.started) != 1 {
		t.Errorf("Risso's own page: got %d %s; want code http.StatusOK, len(k.started) 1", code, body)
	}
}

// TestHeadersOfAnswers: no answer is taken for a page, whatever it contains.
func TestHeadersOfAnswers(t *testing.T) {
	s := newSite(t, true)
	for _, path := range []string{"/", "/healthz", "/api/fleet", "/api/nothing", "/api/v1/query?query=1", "/api/v1/query?query=(", "/api/plan?class=x", "/api/chart"} {
		resp, err := http.Get(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		h := resp.Header
		if h.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(h.Get("Content-Security-Policy"), "frame-ancestors 'none'") {
			t.Errorf("%s: got %v; want Get(\"X-Content-Type-Options\") \"nosniff\", \"frame-ancestors 'none'\" in Get(\"Content-Security-Policy\")", path, h)
		}
		if path != "/" && !strings.HasPrefix(h.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: %s", path, h.Get("Content-Security-Policy"))
		}
	}
}
