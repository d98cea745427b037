package sandboxtest

import (
	"testing"
	"time"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
)

// Target is where a server is found, as its root.
func Target(t testing.TB, n *sandbox.Node) mysql.Target {
	t.Helper()
	at, err := mysql.ParseTarget(n.DSN)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// Connect opens a session as a server's root, which ends with the test.
func Connect(t testing.TB, n *sandbox.Node) *mysql.Conn {
	t.Helper()
	c, err := mysql.Connect(t.Context(), Target(t, n).WithPatience(time.Minute), nil) // a machine that runs many tests may let it wait
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}
