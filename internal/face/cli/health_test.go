package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestHealthAsk: an account without privileges is told which one a question needs, and nothing where it needs none.
func TestHealthAsk(t *testing.T) {
	n := sandboxtest.Up(t, "mariadb")
	if _, err := n.Query(t.Context(), "CREATE USER probe@localhost IDENTIFIED BY 'Secret-1'"); err != nil {
		t.Fatal(err)
	}
	for ask, c := range map[string]struct {
		code int
		told bool
	}{"/up": {0, false}, "/": {1, false}, "/primary": {1, true}, "/replica": {1, true}} {
		code, out, errs := call(t, "health", "--max-age", "1m", "--ask", ask, "--dsn", "probe:Secret-1@unix("+n.Socket+")/")
		if code != c.code || strings.Contains(errs, "GRANT ") != c.told {
			t.Errorf("%s: got %d %s%s; want %d, and a GRANT: %v", ask, code, out, errs, c.code, c.told)
		}
	}
}

// TestNoDatadir: a data directory that is not named, as by an empty variable of a script, is not the one in which the script happens to be.
func TestNoDatadir(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ibdata1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	if code, out, _ := call(t, "check", "datadir", ""); code != 3 || !strings.HasPrefix(out, "DATADIR UNKNOWN") {
		t.Errorf("got %d %s; want 3 and UNKNOWN", code, out)
	}
	if code, out, _ := call(t, "check", "datadir", "."); code != 0 {
		t.Errorf("the directory named: got %d %s; want 0", code, out)
	}
}
