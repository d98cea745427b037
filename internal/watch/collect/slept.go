package collect

import (
	"time"

	"golang.org/x/sys/unix"
)

// machineSlept is how long the machine has slept since it was started: CLOCK_BOOTTIME goes on then, CLOCK_MONOTONIC does not
// (clock_gettime(2)).
func machineSlept() time.Duration {
	var boot, awake unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &awake) != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil {
		return 0 // a system without them: how long it slept is unknown
	}
	// The two are asked one after the other: a processor that was taken away between looks like sleep, and is no different.
	return time.Duration(boot.Nano() - awake.Nano())
}
