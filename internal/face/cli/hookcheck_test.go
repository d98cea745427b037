package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestConfigCheckHooks: a hook whose program is not here is told; one that is here is not.
func TestConfigCheckHooks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "risso.yaml")
	text := "publish:\n  hooks:\n    - name: off\n      at: [fence]\n      run: [/nonexistent/power-off]\n    - name: told\n      at: [after_failover]\n      run: [/bin/sh, -c, 'true']\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out := mustRun(t, "config", "check", file)
	if !strings.Contains(out, "the hook off would fail on this machine: there is no program /nonexistent/power-off") || strings.Contains(out, "the hook told") || !strings.Contains(out, file+" is right") {
		t.Errorf("got %q", out)
	}
	if out := mustRun(t, "config", "check", file, "--output", "json"); !strings.Contains(out, `"notes"`) {
		t.Errorf("as JSON: %s", out)
	}
}
