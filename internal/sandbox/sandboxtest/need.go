// Package sandboxtest says which servers a test has to have.
package sandboxtest

import (
	"errors"
	"os"
	"testing"

	"github.com/rissodb/risso/internal/sandbox"
)

// Need skips a test whose server is not on this machine. With RISSO_NEED_SERVERS=1, as script/test sets it, a lack of
// MariaDB or MySQL 9.7 fails the test.
func Need(t testing.TB, spec string) {
	t.Helper()
	_, err := sandbox.Find(t.Context(), spec)
	switch {
	case err == nil:
	case !errors.Is(err, sandbox.ErrNoServer):
		t.Fatal(err)
	case os.Getenv("RISSO_NEED_SERVERS") == "1" && (spec == "mariadb" || spec == "mysql-9.7"):
		t.Fatalf("server %s is needed and not installed: run script/setup", spec)
	default:
		t.Skipf("server %s is not installed: run script/setup", spec)
	}
}
