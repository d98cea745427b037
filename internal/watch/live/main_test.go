package live_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

func TestMain(m *testing.M) {
	if err := sandboxtest.Parallel(4); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
