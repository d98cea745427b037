package agree

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestAsk: a controller asks the others, whoever leads: one answers, one has nobody who would, and one that is gone says nothing.
func TestAsk(t *testing.T) {
	a := found(t, "a")
	until(t, "a leader of one", a.Leader)
	b := joinTo(t, a, "b", sandboxtest.FreeAddress(t))
	c := joinTo(t, a, "c", sandboxtest.FreeAddress(t))
	until(t, "three that vote", votes(a, 3))
	a.Answer(func(_ context.Context, q json.RawMessage) (any, error) {
		var name string
		err := json.Unmarshal(q, &name)
		if name == "" {
			err = errors.Join(err, errors.New("nobody has no name"))
		}
		return map[string]string{"hello": name}, err
	})
	ask := func(n *node, question any) map[string]Said {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		list, err := n.Ask(ctx, question)
		if err != nil || len(list) != 2 {
			t.Fatalf("%s asks: %v, %+v", n.Folder.Name, err, list)
		}
		m := map[string]Said{}
		for _, s := range list {
			m[s.Name] = s
		}
		return m
	}
	until(t, "b to know of all", votes(b, 3))
	said := ask(b, "b")
	if s := said["a"]; s.Err != nil || strings.TrimSpace(string(s.Body)) != `{"hello":"b"}` {
		t.Errorf("a answers %s, %v", s.Body, s.Err)
	}
	if s := said["c"]; s.Err == nil || !strings.Contains(s.Err.Error(), "nobody answers that here") {
		t.Errorf("c, where nobody answers: %s, %v", s.Body, s.Err)
	}
	if s := ask(b, "")["a"]; s.Err == nil || !strings.Contains(s.Err.Error(), "nobody has no name") {
		t.Errorf("a, asked amiss: %s, %v", s.Body, s.Err)
	}
	c.stop()
	if s := ask(b, "b"); s["c"].Err == nil || s["a"].Err != nil {
		t.Errorf("with c gone: %+v", s)
	}
}
