package agent

import (
	"golang.org/x/sys/unix"
)

// now reads the clock of leases: since the machine was booted, with the time for which it slept.
func now() Moment {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil { // a kernel before 2.6.39
		_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	}
	return Moment(ts.Nano())
}
