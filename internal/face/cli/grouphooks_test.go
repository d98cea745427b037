package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/store/state"
)

// TestFenceStops: where the primary is frozen, and a hook that is to fence it fails, nobody is promoted, by whichever command.
func TestFenceStops(t *testing.T) {
	d := newDryPair(t, "mysql-9.7")
	config := filepath.Join(t.TempDir(), "risso.yaml")
	if err := os.WriteFile(config, []byte("publish:\n  hooks:\n    - {name: off, at: [fence], run: [/bin/false]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	st, err := state.Open(t.Context(), filepath.Join(d.data, "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	sandboxtest.Pause(t, d.box.Nodes[0])
	for i, line := range []string{"failover --group g --yes", "group promote g --yes", "failover resume --group g"} {
		if strings.Contains(line, "resume") {
			if _, err := (&keep.Room{Docs: st, Who: "test"}).Begin(t.Context(), failover.Journal{Group: "g", Epoch: 1 << 20, Kind: failover.Failover, Stage: failover.Stopping, Old: "db1", Began: time.Now().UTC(), Before: map[string]failover.Was{}}); err != nil {
				t.Fatal(err)
			}
		}
		if code, out, said := call(t, append(strings.Fields(line), "--data", d.data, "--config", config)...); code != fault.Failed || !strings.Contains(said, "hook off") {
			t.Errorf("%d. risso %s: exit code %d: %s%s", i, line, code, out, said)
		}
		if out := mustRun(t, "group", "show", "g", "--data", d.data, "-o", "json"); !strings.Contains(out, `"PRIMARY"`) || strings.Index(out, `"PRIMARY"`) > strings.Index(out, `"db2"`) {
			t.Fatalf("after risso %s: %s", line, out)
		}
	}
}
