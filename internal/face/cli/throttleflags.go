package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/throttle"
)

// throttleFlags say how much load a command may put on a server.
type throttleFlags struct {
	maxLag     time.Duration
	maxRunning int
	maxRate    string
}

// bind adds the flags to a command.
func (f *throttleFlags) bind(cmd *cobra.Command) {
	fl := cmd.Flags()
	durationVar(fl, &f.maxLag, "max-lag", 0, "wait while a replica, or the server as a replica, is further behind than this; 0: never")
	fl.IntVar(&f.maxRunning, "max-threads-running", 0, "wait while the server runs more statements than this at once, Risso's own left out; 0: never")
	fl.StringVar(&f.maxRate, "max-rate", "", "read or write no more than so many bytes a second: 50MB, 1GiB (default: no limit)")
}

// gate gives what work has to pass. own is how many sessions of Risso's work on the server. The caller closes it.
func (f throttleFlags) gate(ctx context.Context, own int, server mysql.Target, replicas ...mysql.Target) (*throttle.Gate, error) {
	limits, err := f.limits(own)
	if err != nil {
		return nil, err
	}
	g, err := throttle.New(ctx, limits, server, replicas...)
	if err != nil {
		return nil, serverFailure(err)
	}
	return g, nil
}

func (f throttleFlags) limits(own int) (throttle.Limits, error) {
	l := throttle.Limits{MaxLag: f.maxLag, MaxThreadsRunning: f.maxRunning, Own: own}
	if f.maxLag < 0 || f.maxRunning < 0 {
		return l, usageError("--max-lag and --max-threads-running must not be negative")
	}
	if f.maxRate != "" {
		var err error
		if l.MaxRate, err = digits.ParseBytes(f.maxRate); err != nil || l.MaxRate == 0 {
			return l, usageError("--max-rate %q: bytes a second, such as 50MB or 1GiB", f.maxRate)
		}
	}
	return l, nil
}
