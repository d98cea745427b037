package reshard_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	groups "github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/avail/shard/keep"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/serve/reshard"
	"github.com/rissodb/risso/internal/store/state"
)

// childState names the state file by which a process goes on with the move of map shop, instead of testing; with childDies it kills itself when it has changed the
// map, before the journal says so.
const (
	childState = "RISSO_TEST_RESHARD_STATE"
	childDies  = "RISSO_TEST_RESHARD_DIES"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(childState); path != "" {
		os.Exit(child(path))
	}
	os.Exit(sandboxtest.Main(m))
}

func child(path string) int {
	ctx := context.Background()
	st, err := state.Open(ctx, path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer st.Close()
	m := newMover(st, func(text string) {
		if os.Getenv(childDies) != "" && strings.Contains(text, "has epoch") {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	})
	if _, err := m.Resume(ctx, "shop"); err != nil && !errors.Is(err, reshard.ErrNothing) {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// newMover moves rows in small steps, so that there is something to interrupt.
func newMover(st *state.Store, say func(string)) *reshard.Mover {
	limits := reshard.DefaultLimits()
	limits.Grace, limits.Pause, limits.Rows, limits.Whole = 0, time.Millisecond, 100, 500
	return &reshard.Mover{Groups: &groups.Room{Docs: st, Who: "test"}, Maps: &keep.Room{Docs: st, Who: "test"}, Limits: limits, Say: say}
}
