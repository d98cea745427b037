// Package workload is what a benchmark does: the tables it needs and the transactions it runs. A workload knows nothing of
// threads, clocks and figures; package bench runs it.
package workload

import (
	"context"
	"math/rand/v2"

	"github.com/rissodb/risso/internal/measure/drive"
)

// Workload is one kind of work on one database.
type Workload interface {
	// Name is how users call it.
	Name() string
	// Client prepares the statements of one session. It is asked for again after a reconnect.
	Client(s drive.Session, id int, rng *rand.Rand) (Client, error)
}

// Client runs transactions on one session.
type Client interface {
	// Transaction runs one unit of work. After an error that is a *drive.ServerError the session lives on, and the
	// client has rolled back what it began.
	Transaction() error
}

// Preparer is a workload that needs tables.
type Preparer interface {
	Workload
	// Prepare makes and fills the tables. It refuses where they exist.
	Prepare(ctx context.Context, o PrepareOptions) error
	// Cleanup drops what Prepare made, and nothing else.
	Cleanup(ctx context.Context, o PrepareOptions) error
}

// PrepareOptions are how tables are made.
type PrepareOptions struct {
	Target   drive.Target
	Threads  int
	Progress func(done, total int64) // rows; may be nil
}
