package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/fault"
)

// TestChaos: a run on servers of its own leaves a certificate that is verified, by its page, too, and nothing else; a folder is used once; and what is no certificate is none.
func TestChaos(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make network namespaces and mount file systems")
	}
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	out := mustRun(t, "chaos", "--sandbox", "mariadb", "--replicas", "1", "--controllers", "0", "--count", "1", "--only", "stall", "--seed", "3", "--dir", dir)
	for _, want := range []string{"1. stall", "0 lost, 0 taken by a second writer", "passed", filepath.Join(dir, "certificate.html")} {
		if !strings.Contains(out, want) {
			t.Errorf("no word of %q in:\n%s", want, out)
		}
	}
	for _, name := range []string{"certificate.html", "certificate.json"} {
		if out := mustRun(t, "chaos", "verify", filepath.Join(dir, name)); !strings.Contains(out, "the ledger says the same") || !strings.Contains(out, "the key of this account") {
			t.Errorf("%s: %s", name, out)
		}
	}
	if left, err := os.ReadDir(filepath.Join(dir, "servers")); err != nil || len(left) > 1 {
		t.Errorf("left are %v, %v; want at most a lock", left, err)
	}
	if out := mustRun(t, "chaos", "heal", dir); !strings.Contains(out, "0 open faults and 0 controllers") {
		t.Errorf("something is left: %s", out)
	}
	for _, c := range []struct {
		code int
		says string
		args string
	}{
		{fault.Usage, "another run", "--sandbox mariadb --controllers 0 --count 1 --only stall --dir " + dir},
		{fault.Usage, "meteor", "--sandbox mariadb --only meteor"},
		{fault.Usage, "there is no controller", "--sandbox mariadb --controllers 0 --only kill-controller"},
		{fault.Usage, "repeat its name", "--group shop --on shops"},
		{fault.Usage, "--sandbox", "--count 1"},
		{fault.Failed, "no such group", "--group shop --on shop --data " + t.TempDir()},
		{fault.Failed, "no certificate", "verify " + filepath.Join(dir, "ledger.jsonl")},
		{fault.Usage, "no journal", "heal " + t.TempDir()},
	} {
		if code, out, said := call(t, append([]string{"chaos"}, strings.Fields(c.args)...)...); code != c.code || !strings.Contains(said, c.says) {
			t.Errorf("%s: exit %d, want %d with %q: %s%s", c.args, code, c.code, c.says, out, said)
		}
	}
}
