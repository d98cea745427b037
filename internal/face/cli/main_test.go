package cli

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/face/cli/screen"
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

// call runs a command as main does, and returns its exit code and what it wrote.
func call(t *testing.T, args ...string) (code int, out, err string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	var o, e bytes.Buffer
	code = Main(ctx, args, screen.Streams{In: strings.NewReader(""), Out: &o, Err: &e})
	return code, o.String(), e.String()
}
