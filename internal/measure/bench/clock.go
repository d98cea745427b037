package bench

import (
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/measure/drive"
)

// The last part of a wait is spent looking at the clock: a sleeping thread is woken some microseconds late.
const (
	spin     = 30 * time.Microsecond
	longNap  = 100 * time.Millisecond
	slackOff = 1 // nanoseconds; the kernel's default lets a sleeper wait 50 µs longer
)

// sharpen lets the kernel wake this thread on time. Source: prctl(2), PR_SET_TIMERSLACK.
func sharpen() error { return unix.Prctl(unix.PR_SET_TIMERSLACK, slackOff, 0, 0, 0) }

// until waits until due, counted from start, on this thread. It says false when stop came first.
func until(start time.Time, due time.Duration, stop *drive.Stop) bool {
	for {
		left := due - time.Since(start)
		switch {
		case stop.IsSet():
			return false
		case left <= 0:
			return true
		case left > spin:
			ts := syscall.NsecToTimespec(int64(min(left-spin, longNap)))
			// A raw call: the runtime need not know, the session has its thread for itself.
			_, _, _ = syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&ts)), 0, 0)
		}
	}
}
