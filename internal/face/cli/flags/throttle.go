package flags

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/throttle"
)

// Throttle say how much load a command may put on a server.
type Throttle struct {
	MaxLag     time.Duration
	maxRunning int
	maxRate    string
}

// Bind adds the flags to a command.
func (f *Throttle) Bind(cmd *cobra.Command) {
	fl := cmd.Flags()
	DurationVar(fl, &f.MaxLag, "max-lag", 0, "pause while a replica, or this server as a replica, is further behind than this; 0: never pause")
	fl.IntVar(&f.maxRunning, "max-threads-running", 0, "pause while the server runs more statements than this at once, not counting Risso's own; 0: never pause")
	fl.StringVar(&f.maxRate, "max-rate", "", "read or write at most this many bytes a second: 50MB, 1GiB (default: no limit)")
}

// Gate returns the gate that work has to pass. own is how many sessions of Risso's work on the server. The caller closes it.
func (f Throttle) Gate(ctx context.Context, own int, server mysql.Target, replicas ...mysql.Target) (*throttle.Gate, error) {
	limits, err := f.Limits(own)
	if err != nil {
		return nil, err
	}
	g, err := throttle.New(ctx, limits, server, replicas...)
	if err != nil {
		return nil, err
	}
	return g, nil
}

// Limits are the flags, checked; own is how many sessions of Risso's work on the server.
func (f Throttle) Limits(own int) (throttle.Limits, error) {
	l := throttle.Limits{MaxLag: f.MaxLag, MaxThreadsRunning: f.maxRunning, Own: own}
	if f.MaxLag < 0 || f.maxRunning < 0 {
		return l, fault.Usagef("--max-lag and --max-threads-running must not be negative")
	}
	if f.maxRate != "" {
		var err error
		if l.MaxRate, err = digits.ParseBytes(f.maxRate); err != nil || l.MaxRate == 0 {
			return l, fault.Usagef("--max-rate %q: bytes a second, such as 50MB or 1GiB", f.maxRate)
		}
	}
	return l, nil
}
