package host

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Family is a process with its children, such as a server that has a process for each session. It is for one goroutine.
type Family struct {
	h    *Host
	pid  int
	buf  []byte
	stat procFile
}

// Family looks at a process and its children.
func (h *Host) Family(pid int) *Family {
	return &Family{h: h, pid: pid, buf: make([]byte, 4096), stat: newProcFile(h.path(fmt.Sprintf("/proc/%d/stat", pid)))}
}

// Used is the processor time of the process, of its children, and of those that it had before. It returns ErrGone once the
// process has ended.
func (f *Family) Used() (time.Duration, error) {
	b, err := f.stat.read(&f.buf)
	if err != nil {
		return 0, fmt.Errorf("process %d: %w", f.pid, ErrGone)
	}
	st, ok := parseStat(b)
	if !ok || st.state == 'Z' || st.state == 'X' {
		return 0, fmt.Errorf("process %d: %w", f.pid, ErrGone)
	}
	own, ticks := ofTicks(st.utime+st.stime), st.cutime+st.cstime
	if fine, ok := f.fine(); ok {
		own = fine
	}
	// Without the file, which only some kernels lack, the children's time comes when they have ended.
	for child := range strings.FieldsSeq(f.h.text(fmt.Sprintf("/proc/%d/task/%d/children", f.pid, f.pid))) {
		if _, err := strconv.Atoi(child); err != nil {
			continue
		}
		file := newProcFile(f.h.path("/proc/" + child + "/stat"))
		if b, err := file.read(&f.buf); err == nil {
			if st, ok := parseStat(b); ok {
				ticks += st.utime + st.stime
			}
		}
		file.close()
	}
	return own + ofTicks(ticks), nil
}

func ofTicks(n uint64) time.Duration { return time.Duration(n) * time.Second / userHZ }

// fine is the processor time of the process by its clock, in nanoseconds, where /proc tells hundredths of a second: a server that was
// given less in a short run has not done nothing. See clock_getcpuclockid(3) for what the number of such a clock is made of.
func (f *Family) fine() (time.Duration, bool) {
	if f.h.root != "/" {
		return 0, false // there a number of a process may mean another one
	}
	const scheduled = 2 // CPUCLOCK_SCHED: what its threads ran, and had run when they ended
	var ts unix.Timespec
	if unix.ClockGettime(int32(^f.pid)<<3|scheduled, &ts) != nil {
		return 0, false
	}
	return time.Duration(ts.Nano()), true
}

// Close closes the file.
func (f *Family) Close() {
	f.stat.close()
}
