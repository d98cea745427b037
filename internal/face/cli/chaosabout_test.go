package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/store/state"
)

// TestChaosAbout: the command that says of a group that it may be broken can be run on a group that there is.
func TestChaosAbout(t *testing.T) {
	data := t.TempDir()
	st, err := state.Open(t.Context(), filepath.Join(data, "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if err := (&keep.Room{Docs: st, Who: "test"}).Add(t.Context(), &group.Group{Name: "g", Members: []group.Member{{Name: "db1", Address: "127.0.0.1:1", Status: group.Primary, Rule: group.Neutral, Weight: 1}}}, keep.Access{}); err != nil {
		t.Fatal(err)
	}
	refused := "nothing says that group g is for staging"
	chaos := []string{"chaos", "--group", "g", "--on", "g", "--data", data, "--dir", t.TempDir(), "--fault", "kill-replica=true", "--dry-run"}
	if code, _, said := call(t, chaos...); code != fault.Usage || !strings.Contains(said, refused) || !strings.Contains(said, "(risso group set-policy g --about 'staging: …' says") {
		t.Fatalf("code %d: %s", code, said)
	}
	if code, _, said := call(t, "group", "set-policy", "g", "--about", "staging: of a test", "--data", data); code != 0 {
		t.Fatalf("set-policy: code %d: %s", code, said)
	}
	if code, _, said := call(t, chaos...); strings.Contains(said, refused) {
		t.Errorf("after the remedy: code %d: %s", code, said)
	}
}
