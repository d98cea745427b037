package serve

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/serve/config"
)

// TestDamagedStateIsTold: who starts risso serve on a damaged state is told at once, and how it comes back.
func TestDamagedStateIsTold(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "state.db"), make([]byte, 8192), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	f, err := openFacts(t.Context(), config.Settings{Data: dir}, slog.New(slog.NewTextHandler(&out, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d := f.Damage()
	if d == nil {
		t.Fatal("the damage was not seen")
	}
	for _, want := range []string{"level=ERROR", "the state file was damaged", d.MovedTo, "risso state restore FILE"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got %q, want %q in it", out.String(), want)
		}
	}
}
