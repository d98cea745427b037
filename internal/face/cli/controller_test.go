package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestControllerActions holds that commands about controllers are kept with who gave them, as others are.
func TestControllerActions(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	risso := func(code int, line string) string {
		t.Helper()
		got, out, said := call(t, append(shellWords(line), "--data", data)...)
		if got != code {
			t.Errorf("risso %s: %d, want %d: %s%s", line, got, code, out, said)
		}
		return out + said
	}
	risso(0, "controller init --name c1 --address "+sandboxtest.FreeAddress(t))
	running(t, data)
	risso(0, "controller invite "+filepath.Join(dir, "invitation"))
	risso(1, "controller invite "+filepath.Join(dir, "invitation"))
	risso(1, "controller remove c9")
	risso(0, "controller lead c1")
	actions := risso(0, "audit actions")
	for _, what := range []string{"the making of the first controller, c1 was done", "the writing of an invitation, which has the controllers' key, to ", "file exists", "the removal of controller c9 failed: ",
		"the handing of the lead to controller c1 was done"} {
		if !strings.Contains(actions, what) {
			t.Errorf("the actions lack %q:\n%s", what, actions)
		}
	}
}
