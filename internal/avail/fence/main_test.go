package fence

import (
	"os"
	"testing"

	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == killedArg {
		os.Exit(killed(os.Args[2:]))
	}
	os.Exit(sandboxtest.Main(m))
}
