// Package sandboxtest says which servers a test needs.
package sandboxtest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/rissodb/risso/internal/lack"
	"github.com/rissodb/risso/internal/sandbox"
)

// known are the servers that this program's tests have asked for.
var known struct {
	mu   sync.Mutex
	spec map[string]sandbox.Server
}

// Find is sandbox.Find, which asks all servers of this machine for their versions, once for each spec: ten programs run for every
// server of a test cost as much of a processor as its start.
func Find(ctx context.Context, spec string) (sandbox.Server, error) {
	known.mu.Lock()
	defer known.mu.Unlock()
	if s, ok := known.spec[spec]; ok {
		return s, nil
	}
	s, err := sandbox.Find(ctx, spec)
	if err != nil {
		return sandbox.Server{}, err
	}
	if known.spec == nil {
		known.spec = map[string]sandbox.Server{}
	}
	known.spec[spec] = s
	return s, nil
}

// Need skips a test whose server is not on this machine; in script/test it fails the test.
func Need(t testing.TB, spec string) {
	t.Helper()
	if _, err := Find(t.Context(), spec); errors.Is(err, sandbox.ErrNoServer) {
		lack.Server(t, spec)
	} else if err != nil {
		t.Fatal(err)
	}
}
