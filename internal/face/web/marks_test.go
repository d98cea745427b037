package web

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/store/state"
)

// TestMarks: a deployment is noted once by who may change, and what cannot be noted is refused.
func TestMarks(t *testing.T) {
	s := newSite(t, true)
	post := func(body, token string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/api/events", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		b, err := io.ReadAll(a.Body)
		if err != nil {
			t.Fatal(err)
		}
		return a.StatusCode, string(b)
	}
	for _, role := range []state.Role{state.RoleLook, state.RoleChange} {
		_, secret, err := s.facts.CreateToken(t.Context(), string(role), role)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			body, says string
			code       int
		}{
			{`{"text": "deploy 1.4", "servers": ["db*"], "key": "7"}`, `"new":true`, 200},
			{`{"text": "deploy 1.4", "servers": ["db1"], "key": "7"}`, `"new":false`, 200},
			{`{"text": "deploy 1.5", "key": "7"}`, "another mark", 409},
			{`{"text": " "}`, "text must have", 400},
			{`{"text": "x", "kind": "down"}`, "deploy or note", 400},
			{`{"text": "x", "servers": ["nosuch"]}`, "no server", 400},
			{`{"text": "x", "time": "2999-01-01T00:00:00Z"}`, "future", 400},
		} {
			if role == state.RoleLook {
				c.code, c.says = 403, "needs the role change"
			}
			if code, body := post(c.body, secret); code != c.code || !strings.Contains(body, c.says) {
				t.Errorf("%s %s: got %d %s, want %d and %q", role, c.body, code, body, c.code, c.says)
			}
		}
		want := map[state.Role]int{state.RoleLook: 0, state.RoleChange: 1}[role]
		_, body := s.get(t, fmt.Sprintf("/api/events?kind=deploy&instance=db1&from=%d", s.from), "Authorization", "Bearer "+secret)
		if got := strings.Count(body, "deploy 1.4"); got != want {
			t.Errorf("%s: got %d marks in %s, want %d", role, got, body, want)
		}
	}
}
