// Package sandboxtest says which servers a test has to have.
package sandboxtest

import (
	"errors"
	"testing"

	"github.com/rissodb/risso/internal/lack"
	"github.com/rissodb/risso/internal/sandbox"
)

// Need skips a test whose server is not on this machine; in script/test it fails the test.
func Need(t testing.TB, spec string) {
	t.Helper()
	if _, err := sandbox.Find(t.Context(), spec); errors.Is(err, sandbox.ErrNoServer) {
		lack.Server(t, spec)
	} else if err != nil {
		t.Fatal(err)
	}
}
