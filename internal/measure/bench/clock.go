package bench

import (
	"math"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/measure/drive"
)

// unknown is a moment that is not known yet: later than all others.
const unknown = time.Duration(math.MaxInt64)

// A long wait returns the processor to the runtime, which may wake up a millisecond late. The rest is slept by the
// thread, which is woken some microseconds late; the last part is spent looking at the clock.
const (
	nap      = 3 * time.Millisecond
	longNap  = 100 * time.Millisecond
	slackOff = 1 // nanoseconds; the kernel's default lets a sleeper wait 50 µs longer

	leastSpin = 10 * time.Microsecond
	firstSpin = 40 * time.Microsecond
	mostSpin  = 120 * time.Microsecond
)

// waker waits for moments. How late a machine wakes a thread depends on it: 5 µs where processors do not sleep, 60 µs under
// some hypervisors. So it learns for how long it has to look at the clock. It belongs to one goroutine.
type waker struct{ spin time.Duration }

func newWaker() waker { return waker{spin: firstSpin} }

// learn takes how late a sleep ended. It adapts to a late one immediately and forgets it slowly.
func (w *waker) learn(late time.Duration) {
	want := late + late/4 + leastSpin/2
	switch {
	case late > time.Millisecond: // something else had the processor: looking at the clock would not have helped
	case want > w.spin:
		w.spin = min(want, mostSpin)
	default:
		w.spin = max(w.spin-(w.spin-want)/32, leastSpin)
	}
}

// sharpen lets the kernel wake this thread on time. Source: prctl(2), PR_SET_TIMERSLACK.
func sharpen() error { return unix.Prctl(unix.PR_SET_TIMERSLACK, slackOff, 0, 0, 0) }

// until waits until due, counted from epoch, on this thread. It says false when stop came first.
func (w *waker) until(epoch time.Time, due time.Duration, stop *drive.Stop) bool {
	for {
		left := due - time.Since(epoch)
		switch {
		case stop.IsSet():
			return false
		case left <= 0:
			return true
		case left > 2*nap:
			time.Sleep(min(left-nap, longNap))
			_ = sharpen() // the worker may have come back on another thread; at worst that one wakes late
		case left > w.spin:
			wake := due - w.spin
			ts := syscall.NsecToTimespec(int64(left - w.spin))
			// A raw call: the runtime need not know.
			_, _, _ = syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&ts)), 0, 0)
			w.learn(time.Since(epoch) - wake)
		}
	}
}

// secondOf is the second since the epoch in which a moment lies.
func secondOf(at time.Duration) int { return int(at / time.Second) }

// cpuTime is the processor time of this process so far, threadTime that of this thread.
func cpuTime() time.Duration    { return used(unix.RUSAGE_SELF) }
func threadTime() time.Duration { return used(unix.RUSAGE_THREAD) }

func used(who int) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(who, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
