package cli

import (
	"os"
	"testing"
)

// TestMain keeps the keys that backups are signed by, and sandboxes, apart from those of the account that runs the tests.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "risso-config-")
	if err != nil {
		panic(err)
	}
	os.Setenv("XDG_CONFIG_HOME", dir)
	os.Setenv("RISSO_SANDBOX_DIR", dir+"/sandboxes")
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}
