package sandboxtest

import (
	"syscall"
	"testing"

	"github.com/rissodb/risso/internal/sandbox"
)

// Pause stops the process of a server, which then hangs, until goOn is called, or else the test ends, however it does: a server that
// stays stopped would hold the tests after it.
func Pause(t testing.TB, n *sandbox.Node) (goOn func()) {
	t.Helper()
	goOn = func() {
		t.Helper()
		if err := n.Kill(syscall.SIGCONT); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(goOn)
	if err := n.Kill(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	return goOn
}
