// Package sandboxtest says which servers a test needs.
package sandboxtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
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

// Find is sandbox.Find, which runs every server of this machine to ask for its version: to find one costs a third as much of a processor
// as to start it. It is asked once for each spec, and in script/test once for all packages, in the folder that RISSO_TEST_FOUND names.
func Find(ctx context.Context, spec string) (sandbox.Server, error) {
	known.mu.Lock()
	defer known.mu.Unlock()
	if s, ok := known.spec[spec]; ok {
		return s, nil
	}
	s, err := findOnce(ctx, os.Getenv("RISSO_TEST_FOUND"), spec)
	if err != nil {
		return sandbox.Server{}, err
	}
	if known.spec == nil {
		known.spec = map[string]sandbox.Server{}
	}
	known.spec[spec] = s
	return s, nil
}

// findOnce keeps what sandbox.Find has found in a folder, if there is one. Two programs may both find and keep the same.
func findOnce(ctx context.Context, dir, spec string) (s sandbox.Server, err error) {
	kept := filepath.Join(dir, url.PathEscape(spec))
	if dir != "" {
		if b, err := os.ReadFile(kept); err == nil && json.Unmarshal(b, &s) == nil {
			return s, nil
		}
	}
	if s, err = sandbox.Find(ctx, spec); err != nil || dir == "" {
		return s, err
	}
	b, err := json.Marshal(s)
	if err != nil {
		return s, err
	}
	half := fmt.Sprintf("%s.%d", kept, os.Getpid())
	if err := os.WriteFile(half, b, 0o600); err != nil {
		return s, err
	}
	return s, os.Rename(half, kept)
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
