package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/data/checksum"
)

// mendRows is how many rows of a table one run mends.
const mendRows = 10_000

type mendFlags struct{ mend, dryRun bool }

func (f *mendFlags) bind(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.BoolVar(&f.mend, "mend", false, "write the rows that differ once more on the primary, so that they replicate")
	fl.BoolVar(&f.dryRun, "dry-run", false, "with --mend: show the plan, change nothing")
}

func (f checksumFlags) runMend(ctx context.Context, s Streams, o checksum.Options, r checksum.Result, found []checksum.Table) error {
	return errors.New("not yet")
}

type throttleFlags struct{}

func (f *throttleFlags) bind(cmd *cobra.Command) {}

func (f throttleFlags) throttle(ctx context.Context, o *checksum.Options) (func(), error) {
	return func() {}, nil
}
