package web

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/serve/advice"
	"github.com/rissodb/risso/internal/serve/config"
	"github.com/rissodb/risso/internal/store/state"
)

// TestAdvice: who may change decides about what a look found, with a reason, which is an event; what makes no sense is refused.
func TestAdvice(t *testing.T) {
	s := newSiteOf(t, true, func(o *Options) {
		facts := o.Facts.(*state.Store)
		o.Did = func(e state.Action) {
			if _, err := facts.AddAction(context.Background(), e); err != nil {
				t.Error(err)
			}
		}
		o.Advice = advice.New(advice.Options{Servers: func() []config.Watched {
			return []config.Watched{{Instance: fleet.Instance{ID: "db1", Name: "db1", Kind: fleet.KindServer}}}
		}, Facts: facts, Board: o.Live, Logger: slog.New(slog.DiscardHandler)})
	})
	now := time.Now()
	row := state.AdviceRow{Instance: "db1", ID: "schema.no_pk", Object: "d`'é.t", Severity: fleet.SeverityWarning, First: now.Add(-48 * time.Hour), Seen: now, Body: json.RawMessage(`{"id": "schema.no_pk", "object": "d` + "`" + `'é.t", "severity": "warning", "what": "<b>no key</b>", "evidence": [], "sure": "certain", "cost": {}}`)}
	if err := s.facts.KeepAdvice(t.Context(), state.AdviceLook{Instance: "db1", Looked: now, Tried: now, Body: json.RawMessage(`{}`)}, []state.AdviceRow{row}, nil); err != nil {
		t.Fatal(err)
	}
	tokens := map[state.Role]string{}
	for _, role := range []state.Role{state.RoleLook, state.RoleChange} {
		_, secret, err := s.facts.CreateToken(t.Context(), string(role), role)
		if err != nil {
			t.Fatal(err)
		}
		tokens[role] = secret
	}
	post := func(path, body string, role state.Role) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+tokens[role])
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
	const about = "\"id\": \"schema.no_pk\", \"object\": \"d`'é.t\""
	for _, c := range []struct {
		path, body, says string
		code             int
		role             state.Role
	}{
		{"accept", `{` + about + `, "reason": "known"}`, "needs the role change", 403, state.RoleLook},
		{"look?instance=db1", ``, "needs the role change", 403, state.RoleLook},
		{"look?instance=db9", ``, "nothing is watched", 404, state.RoleChange},
		{"look?instance=db1", ``, `"queued":["db1"]`, 200, state.RoleChange},
		{"accept", `{` + about + `, "reason": " "}`, "has a reason", 400, state.RoleChange},
		{"accept", `[]`, "no JSON", 400, state.RoleChange},
		{"accept", `{"id": "schema.no_pk", "object": "d.other", "reason": "known"}`, "no finding", 404, state.RoleChange},
		{"accept", `{` + about + `, "servers": ["db9"], "reason": "known"}`, "nothing is watched", 404, state.RoleChange},
		{"accept", `{` + about + `, "for": "3d", "reason": "known"}`, "no end", 400, state.RoleChange},
		{"postpone", `{` + about + `, "reason": "known"}`, "has an end", 400, state.RoleChange},
		{"postpone", `{` + about + `, "for": "soon", "reason": "known"}`, "write it as", 400, state.RoleChange},
		{"postpone", `{` + about + `, "until": "2001-01-01T00:00:00Z", "reason": "known"}`, "in the past", 400, state.RoleChange},
		{"silence", `{"id": "*", "reason": "known"}`, "silence all advice", 400, state.RoleChange},
		{"undo", `{"number": 77}`, "no such decision", 404, state.RoleChange},
		{"undo", `{}`, "not said which", 400, state.RoleChange},
		{"accept", `{` + about + `, "servers": ["db1"], "reason": "a queue"}`, `"servers":["db1"]`, 200, state.RoleChange},
	} {
		if code, body := post("/api/advice/"+c.path, c.body, c.role); code != c.code || !strings.Contains(body, c.says) {
			t.Errorf("%s %s: got %d %s, want %d and %q", c.path, c.body, code, body, c.code, c.says)
		}
	}
	get := func(path string) string {
		t.Helper()
		_, body := s.get(t, path, "Authorization", "Bearer "+tokens[state.RoleLook])
		return body
	}
	if body := get("/api/advice"); !strings.Contains(body, `"findings":[]`) || !strings.Contains(body, `"decided":1`) {
		t.Errorf("what is open: got %s, want nothing, and one that is decided", body)
	}
	if body := get("/api/advice?state=decided&q=NO+KEY"); !strings.Contains(body, `"reason":"a queue"`) || !strings.Contains(body, `"who":"change"`) {
		t.Errorf("what is decided: got %s, want it with who and why", body)
	}
	if body := get("/api/events?kind=action"); !strings.Contains(body, "advice was accepted on db1") || !strings.Contains(body, "a queue by change") {
		t.Errorf("events: got %s, want who accepted what", body)
	}
	for path, want := range map[string]string{"?severity=bad": "info, warning or critical", "?state=x": "open, decided", "?limit=0": "limit must be", "?instance=nobody": "nothing is watched", "?severity=critical": `"findings":[]`} {
		if body := get("/api/advice" + path); !strings.Contains(body, want) {
			t.Errorf("%s: got %s, want %q", path, body, want)
		}
	}
	if code, body := post("/api/advice/undo", `{`+about+`}`, state.RoleChange); code != 200 {
		t.Errorf("undo: got %d %s", code, body)
	}
	if body := get("/api/advice?id=schema.*"); !strings.Contains(body, `"warning":1`) {
		t.Errorf("after undo: got %s, want the finding again", body)
	}
}
