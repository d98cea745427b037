package web

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rissodb/risso/internal/avail/failover/carry"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/publish"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/serve/failover"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/live"
)

const goodPassword = "correct horse battery staple"

// pathsWanted is every path with the role that it needs; * behind it: it is about servers or groups, and its handler asks whether its caller may touch
// them. Who adds a path says here who may use it.
const pathsWanted = `
DELETE /api/benchmark            change
DELETE /api/sessions             admin
DELETE /api/silences             change
DELETE /api/thresholds           change
DELETE /api/tokens               admin
GET /api/access                  admin
GET /api/actions                 admin
GET /api/advice                  look
GET /api/alerts                  look
GET /api/alerts/history          look
GET /api/alerts/replay           look
GET /api/benchmark               look
GET /api/benchmarks              look
GET /api/chart                   look
GET /api/clients                 look
GET /api/controllers             look
GET /api/events                  look
GET /api/events/after            look
GET /api/findings                look
GET /api/fleet                   look
GET /api/groups                  look
GET /api/groups/forecast         look
GET /api/groups/journals         look
GET /api/groups/standing         look
GET /api/incident                look
GET /api/incident.html           look
GET /api/incidents               look
GET /api/instance                look
GET /api/metrics                 look
GET /api/moment                  look
GET /api/moments                 look
GET /api/plan                    look
GET /api/protect                 look
GET /api/protect/run             look
GET /api/protect/server          look
GET /api/queries                 look
GET /api/queries/compare         look
GET /api/queries/schemas         look
GET /api/query                   look
GET /api/rules                   look
GET /api/self                    look
GET /api/size                    look
GET /api/size/growth             look
GET /api/thresholds              look
GET /api/topology                look
GET /api/topology/changes        look
GET /api/v1/alerts               look
GET /api/v1/label/{name}/values  look
GET /api/v1/labels               look
GET /api/v1/metadata             look
GET /api/v1/query                look
GET /api/v1/query_exemplars      look
GET /api/v1/query_range          look
GET /api/v1/rules                look
GET /api/v1/series               look
GET /api/v1/status/buildinfo     look
GET /api/variables               look
GET /api/whoami                  look
GET /federate                    look
GET /healthz                     everybody
POST /api/advice/accept          change
POST /api/advice/look            change*
POST /api/advice/postpone        change
POST /api/advice/silence         change
POST /api/advice/undo            change
POST /api/alerts/ack             change*
POST /api/benchmarks             change
POST /api/events                 change*
POST /api/groups/failover        failover*
POST /api/groups/member          failover*
POST /api/groups/policy          failover*
POST /api/groups/switchover      failover*
POST /api/login                  everybody
POST /api/logout                 everybody
POST /api/logout/everywhere      look
POST /api/password               look
POST /api/protect/start          change*
POST /api/protect/stop           change*
POST /api/receivers/test         change
POST /api/silences               change
POST /api/v1/alerts              look
POST /api/v1/label/{name}/values look
POST /api/v1/labels              look
POST /api/v1/metadata            look
POST /api/v1/query               look
POST /api/v1/query_exemplars     look
POST /api/v1/query_range         look
POST /api/v1/read                look
POST /api/v1/rules               look
POST /api/v1/series              look
POST /api/v1/status/buildinfo    look
POST /federate                   look
PUT /api/thresholds              change
/api/view                        everybody
/primary                         everybody
/replicas                        everybody
/                                everybody
/api/                            look`

// everything is a server whose every path is there, over a real store; what is behind the paths is not.
func everything(t *testing.T) (*server, *state.Store) {
	t.Helper()
	facts, err := state.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { facts.Close() })
	return newServer(Options{Facts: facts, Live: live.New(func() live.Self { return live.Self{} }), Advice: struct{ Advice }{}, Topology: struct{ Topology }{}, Alerts: struct{ Alerts }{}, Groups: stubGroups{}, Clients: new(publish.Desk), Views: struct{ publish.Views }{}, Logger: slog.New(slog.DiscardHandler)}), facts
}

// stubGroups is there, and does nothing.
type stubGroups struct{ others }

type others = Groups

func (stubGroups) Groups(context.Context) ([]group.Group, error) { return nil, nil }

func (stubGroups) Switchover(context.Context, carry.Asked, bool) (failover.Changed, error) {
	return failover.Changed{}, nil
}

func (stubGroups) Failover(context.Context, carry.Asked, bool) (failover.Changed, error) {
	return failover.Changed{}, nil
}

// TestEveryPathHasItsRole walks all paths there are with each role, and with none: no path is reached with less than it needs.
func TestEveryPathHasItsRole(t *testing.T) {
	s, facts := everything(t)
	mux := s.routes()
	var got []string
	for pattern, needed := range mux.needed {
		if slices.Contains(programPaths, pattern) {
			if needed != "" {
				t.Errorf("%s, where there is nothing, needs %s", pattern, needed)
			}
			continue
		}
		word := string(needed)
		if word == "" {
			word = "everybody"
		}
		if mux.part[pattern] {
			word += "*"
		}
		got = append(got, strings.TrimSpace(fmt.Sprintf("%-32s %s", pattern, word)))
	}
	slices.Sort(got)
	want := strings.Split(strings.TrimSpace(pathsWanted), "\n")
	slices.Sort(want)
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("not in the list of this test: %s", line)
		}
	}
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("there is no such path, or it needs another role: %s", line)
		}
	}
	tokens := map[state.Role]string{"": ""}
	for _, role := range state.Roles() {
		_, secret, err := facts.CreateToken(t.Context(), string(role), role)
		if err != nil {
			t.Fatal(err)
		}
		tokens[role] = secret
	}
	for pattern, needed := range mux.needed {
		method, path, ok := strings.Cut(pattern, " ")
		if !ok {
			method, path = http.MethodGet, pattern
		}
		if needed == "" {
			continue
		}
		for role, secret := range tokens {
			r := httptest.NewRequestWithContext(t.Context(), method, strings.ReplaceAll(path, "{name}", "x"), strings.NewReader("?"))
			if secret != "" {
				r.Header.Set("Authorization", "Bearer "+secret)
			}
			code, body := reached(mux, r)
			if role == "" && code != http.StatusUnauthorized || role != "" && (code == http.StatusForbidden && strings.Contains(body, "needs the role "+string(needed))) == role.Allows(needed) || role != "" && code == http.StatusUnauthorized {
				t.Errorf("%s, which needs %s, with the role %q: %d %.200s", pattern, needed, role, code, body)
			}
		}
	}
}

// reached asks a path. What is behind it may not be there: then it was reached.
func reached(h http.Handler, r *http.Request) (code int, body string) {
	defer func() {
		if recover() != nil {
			code = http.StatusOK
		}
	}()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// TestLimitsHold: who is limited to a group or a server touches no other, and changes nothing that is about all.
func TestLimitsHold(t *testing.T) {
	k := &keeper{}
	s := newSiteOf(t, true, func(o *Options) {
		o.Protect, o.Advice = k, struct{ Advice }{}
		o.Live.Add(fleet.Instance{ID: "db2", Name: "db2", Kind: fleet.KindServer})
	})
	put := func(key, body string) {
		t.Helper()
		if _, err := s.facts.PutDocument(t.Context(), state.Document{Kind: "group", Key: key, Body: json.RawMessage(body)}); err != nil {
			t.Fatal(err)
		}
	}
	put("shop", `{"name":"shop","members":[{"name":"db1","status":"PRIMARY"}]}`)
	put("crm", `{"name":"crm","members":[{"name":"db2"}]}`)
	put("later", `["a form of a later Risso"]`)
	token := func(only ...string) string {
		t.Helper()
		_, secret, err := s.facts.AddToken(t.Context(), state.Token{Name: strings.Join(only, " "), Role: state.RoleAdmin, Only: only})
		if err != nil {
			t.Fatal(err)
		}
		return "Bearer " + secret
	}
	db1, shop, crm, db2 := token("server=db1"), token("group=sho*"), token("group=crm"), token("server=db2")
	mine := []struct{ method, path, body string }{
		{"POST", "/api/protect/start?job=db1/backup", ""}, {"POST", "/api/events", `{"text":"x","servers":["db1"]}`},
	}
	for _, a := range mine {
		for who, want := range map[string]int{db1: 200, shop: 200, crm: 403, db2: 403} {
			if code, body := s.send(t, a.method, a.path, a.body, "Authorization", who); code != want || want == 403 && !strings.Contains(body, "may only change") {
				t.Errorf("%s %s: got %d %s, want %d", a.method, a.path, code, body, want)
			}
		}
	}
	if len(k.started) != 2 {
		t.Errorf("%d were started, want 2", len(k.started))
	}
	for _, a := range []struct{ method, path, body string }{
		{"POST", "/api/protect/stop?id=7", ""}, {"POST", "/api/alerts/ack?key=db2/x", ""}, {"POST", "/api/advice/look?instance=db2", ""}, {"POST", "/api/advice/look", ""},
		{"POST", "/api/events", `{"text":"x"}`}, {"POST", "/api/events", `{"text":"x","servers":["*"]}`}, {"POST", "/api/events", `{"text":"x","servers":["db1","db2"]}`},
		{"POST", "/api/benchmarks", aRun}, {"POST", "/api/silences", `{"server":"db1","for":"1h","reason":"x"}`}, {"DELETE", "/api/benchmark?id=1", ""}, {"GET", "/api/actions", ""}, {"DELETE", "/api/tokens?name=x", ""},
	} {
		if code, body := s.send(t, a.method, a.path, a.body, "Authorization", db1); code != http.StatusForbidden || !strings.Contains(body, "may only change server=db1") {
			t.Errorf("%s %s %s: got %d %s, want http.StatusForbidden", a.method, a.path, a.body, code, body)
		}
	}
	if code, _ := s.get(t, "/api/events", "Authorization", db1); code != http.StatusOK || len(k.stopped) > 0 {
		t.Errorf("looking, which is not limited: got %d, and %v was stopped", code, k.stopped)
	}
}

// signing is a site with two users, and what it wrote down.
type signing struct {
	*site
	mu   sync.Mutex
	told []state.Action
}

func newSigning(t *testing.T) *signing {
	t.Helper()
	g := &signing{}
	g.site = newSiteOf(t, false, func(o *Options) {
		o.Did = func(a state.Action) { g.mu.Lock(); defer g.mu.Unlock(); g.told = append(g.told, a) }
	})
	for name, role := range map[string]state.Role{"ann": state.RoleAdmin, "bob": state.RoleLook} {
		if _, err := g.facts.AddUser(t.Context(), state.User{Name: name, Role: role}, goodPassword); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// ask makes a request with the cookies of a browser.
func (g *signing) ask(t *testing.T, method, path, body string, jar map[string]string, header ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, g.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range jar {
		r.AddCookie(&http.Cookie{Name: k, Value: v})
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range resp.Cookies() {
		if c.MaxAge < 0 {
			delete(jar, c.Name)
		} else if jar != nil {
			jar[c.Name] = c.Value
		}
	}
	return resp, string(b)
}

func (g *signing) signIn(t *testing.T, user, password string, jar map[string]string, header ...string) *http.Response {
	t.Helper()
	resp, _ := g.ask(t, "POST", "/api/login", fmt.Sprintf(`{"user":%q,"password":%q}`, user, password), jar, header...)
	return resp
}

// TestSession follows browsers from signing in to signing out: cookies, a session planted before, the password changed, ended from elsewhere.
func TestSession(t *testing.T) {
	g := newSigning(t)
	status := func(jar map[string]string) int {
		t.Helper()
		resp, _ := g.ask(t, "GET", "/api/whoami", "", jar)
		return resp.StatusCode
	}
	planted := map[string]string{sessionCookie: "planted-by-somebody-else"}
	resp := g.signIn(t, "Ann", goodPassword, planted)
	if resp.StatusCode != http.StatusOK || planted[sessionCookie] == "planted-by-somebody-else" || len(planted[sessionCookie]) < 43 {
		t.Fatalf("got %d %v; want another session than the planted one", resp.StatusCode, planted)
	}
	for _, c := range resp.Cookies() {
		if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || c.Secure {
			t.Errorf("cookie: %+v", c)
		}
	}
	jar := map[string]string{}
	for _, c := range g.signIn(t, "ann", goodPassword, jar, "X-Forwarded-Proto", "https").Cookies() {
		if !c.Secure || !c.HttpOnly || c.Name != deviceCookie && c.Name != sessionCookieSecure {
			t.Errorf("by TLS: %+v; want Secure, and the session's to begin with __Host-", c)
		}
	}
	if resp, _ := g.ask(t, "GET", "/api/whoami", "", map[string]string{sessionCookie: jar[sessionCookieSecure]}, "X-Forwarded-Proto", "https"); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a cookie that an unencrypted page may have set: %d over TLS; want http.StatusUnauthorized", resp.StatusCode)
	}
	first := map[string]string{}
	g.signIn(t, "ann", goodPassword, first)
	old := first[sessionCookie]
	g.signIn(t, "ann", goodPassword, first)
	if status(map[string]string{sessionCookie: old}) != http.StatusUnauthorized || status(first) != http.StatusOK {
		t.Error("signing in again keeps the session of before, or begins none")
	}
	if resp, body := g.ask(t, "GET", "/api/whoami", "", first); resp.Header.Get(whoHeader) != "ann" || resp.Header.Get(roleHeader) != "admin" || !strings.Contains(body, `"via":"password"`) || strings.Contains(body, old) {
		t.Errorf("got %v %s", resp.Header, body)
	}
	for _, c := range []struct {
		body string
		code int
	}{{`{"current":"wrong","new":"another long password"}`, 403}, {`{"current":"` + goodPassword + `","new":"short"}`, 400}, {`{"current":"` + goodPassword + `","new":"another long password"}`, 200}} {
		if resp, body := g.ask(t, "POST", "/api/password", c.body, first); resp.StatusCode != c.code || strings.Contains(body, goodPassword) {
			t.Errorf("%s: got %d %s, want %d", c.body, resp.StatusCode, body, c.code)
		}
	}
	if status(planted) != http.StatusUnauthorized || status(first) != http.StatusOK {
		t.Error("after the password was changed, want other sessions ended and this one not")
	}
	second := map[string]string{}
	g.signIn(t, "ann", "another long password", second)
	if resp, _ := g.ask(t, "POST", "/api/logout", "", second, "Origin", "https://evil.example"); resp.StatusCode != http.StatusForbidden {
		t.Errorf("another page signs out: %d", resp.StatusCode)
	}
	kept := second[sessionCookie]
	if resp, _ := g.ask(t, "POST", "/api/logout", "", second); resp.StatusCode != http.StatusOK || second[sessionCookie] != "" || status(map[string]string{sessionCookie: kept}) != http.StatusUnauthorized {
		t.Errorf("signing out: %d, cookies %v; want the session ended, not only forgotten", resp.StatusCode, second)
	}
	if second[deviceCookie] == "" {
		t.Error("the browser is not known any more after signing out")
	}
	g.signIn(t, "ann", "another long password", second)
	if resp, body := g.ask(t, "POST", "/api/logout/everywhere", "", second); resp.StatusCode != http.StatusOK || status(first) != http.StatusUnauthorized || status(second) != http.StatusUnauthorized {
		t.Errorf("signing out everywhere: %d %s", resp.StatusCode, body)
	}
	bob := map[string]string{}
	g.signIn(t, "bob", goodPassword, bob)
	if err := g.facts.RemoveUser(t.Context(), "bob"); err != nil || status(bob) != http.StatusUnauthorized {
		t.Errorf("removed within a session: %v", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, a := range g.told {
		if b, err := json.Marshal(a); err != nil || strings.Contains(string(b), "password\":\"correct") || strings.Contains(string(b), goodPassword) || strings.Contains(string(b), "another long") {
			t.Errorf("a password is written down: %s", b)
		}
	}
	if !slices.ContainsFunc(g.told, func(a state.Action) bool {
		return a.Who == "ann" && a.Outcome == state.ActionRefused && a.Address == "127.0.0.1" && strings.Contains(a.Text, "the present one was wrong")
	}) {
		t.Errorf("the refused change of a password is not written down: %+v", g.told)
	}
}

// TestSignInTellsNothing: a wrong name and a wrong password have one answer, and guesses do not keep out who has signed in before.
func TestSignInTellsNothing(t *testing.T) {
	g := newSigning(t)
	jar := map[string]string{}
	g.signIn(t, "ann", goodPassword, jar)
	delete(jar, sessionCookie)
	var answers []string
	for _, user := range []string{"ann", "nobody-is-called-so", goodPassword} {
		resp, body := g.ask(t, "POST", "/api/login", fmt.Sprintf(`{"user":%q,"password":"a wrong password"}`, user), nil)
		answers = append(answers, fmt.Sprint(resp.StatusCode, body, len(resp.Cookies())))
	}
	if answers[0] != answers[1] || answers[1] != answers[2] || !strings.HasPrefix(answers[0], "401") {
		t.Errorf("got %q; want the same for all", answers)
	}
	for range 2 * freeTries {
		g.signIn(t, "ann", "a wrong password", nil)
	}
	resp, body := g.ask(t, "POST", "/api/login", `{"user":"ann","password":"`+goodPassword+`"}`, nil)
	if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" {
		t.Errorf("after many wrong ones: %d %s; want http.StatusTooManyRequests", resp.StatusCode, body)
	}
	if resp := g.signIn(t, "ann", goodPassword, jar); resp.StatusCode != http.StatusOK {
		t.Errorf("from a browser that has signed in before: %d, want http.StatusOK", resp.StatusCode)
	}
	if resp := g.signIn(t, "bob", goodPassword, nil); resp.StatusCode != http.StatusOK {
		t.Errorf("another user, from the same address: %d, want http.StatusOK", resp.StatusCode)
	}
	if resp := g.signIn(t, "ann", goodPassword, nil, "X-Forwarded-For", "192.0.2.1, 198.51.100.7"); resp.StatusCode != http.StatusOK {
		t.Errorf("from another address, through a proxy: %d, want http.StatusOK", resp.StatusCode)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	refused := 0
	for _, a := range g.told {
		if a.Outcome == state.ActionRefused {
			refused++
		}
		if strings.Contains(a.Text, "nobody-is-called-so") || strings.Contains(a.Text, goodPassword) {
			t.Errorf("a name that nobody has, which may be a password, is written down: %s", a.Text)
		}
	}
	if refused == 0 || refused > 4 {
		t.Errorf("%d refusals were written down, want some and not all", refused)
	}
}

// TestTokenSignsIn: a token is traded for a session, which ends with it; the browser does not keep the token.
func TestTokenSignsIn(t *testing.T) {
	g := newSigning(t)
	_, secret, err := g.facts.CreateToken(t.Context(), "wall", state.RoleLook)
	if err != nil {
		t.Fatal(err)
	}
	jar := map[string]string{tokenCookie: "as older pages kept it"}
	g.ask(t, "POST", "/api/login", `{"token":"`+secret+`"}`, jar)
	if jar[sessionCookie] == "" || jar[sessionCookie] == secret || jar[tokenCookie] != "" {
		t.Errorf("cookies %v; want a session, and no token", jar)
	}
	if resp, _ := g.ask(t, "GET", "/api/fleet", "", jar); resp.StatusCode != http.StatusOK || resp.Header.Get(whoHeader) != "wall" {
		t.Errorf("got %d %v", resp.StatusCode, resp.Header)
	}
	if resp, _ := g.ask(t, "GET", "/api/fleet", "", map[string]string{tokenCookie: secret}); resp.StatusCode != http.StatusOK {
		t.Errorf("a browser that signed in before there were sessions: %d, want http.StatusOK", resp.StatusCode)
	}
	if err := g.facts.RevokeToken(t.Context(), "wall"); err != nil {
		t.Fatal(err)
	}
	if resp, _ := g.ask(t, "GET", "/api/fleet", "", jar); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("after the token was revoked: %d, want http.StatusUnauthorized", resp.StatusCode)
	}
}

// TestAdminPaths: who has access, who did what, and how it ends.
func TestAdminPaths(t *testing.T) {
	g := newSigning(t)
	jar, bob := map[string]string{}, map[string]string{}
	g.signIn(t, "ann", goodPassword, jar)
	g.signIn(t, "bob", goodPassword, bob)
	if _, _, err := g.facts.AddToken(t.Context(), state.Token{Name: "ci", User: "bob", Role: state.RoleLook}); err != nil {
		t.Fatal(err)
	}
	g.mu.Lock()
	for _, a := range g.told {
		if _, err := g.facts.AddAction(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	g.mu.Unlock()
	if resp, body := g.ask(t, "GET", "/api/access", "", jar); resp.StatusCode != http.StatusOK || !strings.Contains(body, `"name":"bob","role":"look"`) || !strings.Contains(body, `"name":"ci"`) || strings.Contains(body, "argon2") {
		t.Errorf("got %d %s", resp.StatusCode, body)
	}
	if resp, body := g.ask(t, "GET", "/api/actions?who=bob&limit=1", "", jar); resp.StatusCode != http.StatusOK || !strings.Contains(body, `a session was begun with a password, from 127.0.0.1, by bob`) {
		t.Errorf("got %d %s", resp.StatusCode, body)
	}
	for _, query := range []string{"from=x", "limit=0", "limit=1e9", "to=-1"} {
		if resp, _ := g.ask(t, "GET", "/api/actions?"+query, "", jar); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: got %d, want http.StatusBadRequest", query, resp.StatusCode)
		}
	}
	if resp, body := g.ask(t, "DELETE", "/api/sessions?user=bob", "", jar); resp.StatusCode != http.StatusOK || !strings.Contains(body, `"ended":1`) {
		t.Errorf("got %d %s", resp.StatusCode, body)
	}
	if resp, _ := g.ask(t, "GET", "/api/fleet", "", bob); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("bob's session after it was ended: %d", resp.StatusCode)
	}
	for _, want := range []int{http.StatusOK, http.StatusNotFound} {
		if resp, _ := g.ask(t, "DELETE", "/api/tokens?name=ci", "", jar); resp.StatusCode != want {
			t.Errorf("revoking: got %d, want %d", resp.StatusCode, want)
		}
	}
}

// TestManyGuessesAtOnce: to guess all at once is no way around the wait.
func TestManyGuessesAtOnce(t *testing.T) {
	g := newSigning(t)
	var mu sync.Mutex
	codes := map[int]int{}
	var wg sync.WaitGroup
	for range 60 {
		wg.Go(func() {
			resp := g.signIn(t, "ann", "a wrong password", nil)
			mu.Lock()
			defer mu.Unlock()
			codes[resp.StatusCode]++
		})
	}
	wg.Wait()
	// One more may be tried after a second, and after two.
	if codes[http.StatusUnauthorized] < 1 || codes[http.StatusUnauthorized] > freeTries+4 || codes[http.StatusUnauthorized]+codes[http.StatusTooManyRequests]+codes[http.StatusServiceUnavailable] != 60 {
		t.Errorf("got %v; want about %d compared, and the others refused", codes, freeTries)
	}
}
