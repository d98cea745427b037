package serve

import (
	"context"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/state"
)

// TestVariablesWithoutLiterals: the statements that a server runs for each session are kept without their literals where none may be kept.
func TestVariablesWithoutLiterals(t *testing.T) {
	for _, redact := range []bool{true, false} {
		facts, err := state.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
		if err != nil {
			t.Fatal(err)
		}
		defer facts.Close()
		w := newWatch(slog.New(slog.NewTextHandler(io.Discard, nil)))
		w.redact = redact
		now := time.Now()
		w.Variables("db", now.Add(-time.Minute), map[string]string{"init_connect": "", "tmpdir": "/tmp"})
		w.Variables("db", now, map[string]string{"init_connect": "SET @x = 's3cret'", "tmpdir": "/tmp"})
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // it ends when the queue is empty
		w.journal(ctx, facts, 0)
		list, err := facts.Events(t.Context(), state.EventQuery{Kinds: []fleet.EventKind{fleet.EventVariable}})
		if err != nil || len(list) != 1 {
			t.Fatalf("redact %v: got %+v, %v; want one event", redact, list, err)
		}
		if said := strings.Contains(list[0].Text+list[0].New, "s3cret"); said == redact {
			t.Errorf("redact %v: the event says %q", redact, list[0].Text)
		}
	}
}
