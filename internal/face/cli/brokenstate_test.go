package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/fault"
)

// TestBrokenState: a command that finds the state damaged says so and changes nothing: it once put an empty one there.
func TestBrokenState(t *testing.T) {
	for _, line := range []string{"group list", "group show g", "token list", "shard list", "audit actions", "failover --group g --dry-run"} {
		dir := t.TempDir()
		path := filepath.Join(dir, "state.db")
		bad := bytes.Repeat([]byte("no state at all\n"), 1024)
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		code, out, err := call(t, append(strings.Fields(line), "--data", dir)...)
		if code != fault.Failed || out != "" || !strings.Contains(err, path+": the state file is damaged") || !strings.Contains(err, "risso state restore") {
			t.Errorf("risso %s: got code %d, %q, %q; want code 1, the file and how to get it back", line, code, out, err)
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, bad) {
			t.Errorf("risso %s changed the file (%v)", line, err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
			t.Errorf("risso %s left %v (%v), want the file alone", line, left, err)
		}
	}
}
