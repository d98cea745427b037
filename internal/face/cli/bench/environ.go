package bench

import (
	"context"

	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/environ"
)

// environment writes down what a run is about to run under; nil, and why, when the server cannot be asked. A run needs no
// environment: without one it only cannot be explained later.
func environment(ctx context.Context, f flags.Server, t drive.Target) (*environ.Environment, error) {
	if t.Dialect() == drive.Postgres {
		return environ.Take(ctx, environ.Postgres(t))
	}
	at, err := f.Target()
	if err != nil {
		return nil, err
	}
	return environ.Take(ctx, environ.MySQL(at))
}
