package host

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// RunQueue measures how long the threads of a process ran, and how long they waited for a processor although they could have
// run: what a busy machine takes from a process. It is for one goroutine.
type RunQueue struct {
	dir    string // of the threads
	buf    []byte
	last   map[int][2]uint64
	ran    uint64
	waited uint64
	began  bool
}

// mostThreads is how many threads of a process are looked at: of more, an even part of them.
const mostThreads = 1000

// RunQueue looks at a process of this host; 0 is the own one.
func (h *Host) RunQueue(pid int) *RunQueue {
	who := "self"
	if pid > 0 {
		who = strconv.Itoa(pid)
	}
	return &RunQueue{dir: h.path("/proc/" + who + "/task"), buf: make([]byte, 256), last: map[int][2]uint64{}}
}

// Read returns both times since the first Read, summed over the threads. For threads that ended the time until the previous Read
// counts. Kernels that were built or booted without scheduling statistics cause an error, or nothing but zeros.
func (q *RunQueue) Read() (ran, waited time.Duration, err error) {
	entries, err := os.ReadDir(q.dir)
	if err != nil {
		return 0, 0, fmt.Errorf("read the threads of a process: %w", err)
	}
	step, seen := len(entries)/mostThreads+1, map[int][2]uint64{}
	for _, e := range entries {
		tid, err := strconv.Atoi(e.Name())
		if err != nil || tid%step != 0 && step > 1 {
			continue
		}
		now, err := q.thread(e.Name())
		if err != nil {
			if os.IsNotExist(err) && exists(filepath.Join(q.dir, e.Name())) {
				return 0, 0, fmt.Errorf("read when threads waited: %w", err)
			}
			continue // it ended in the meantime
		}
		seen[tid] = now
		before, known := q.last[tid]
		if !known && !q.began {
			before = now
		}
		if now[0] >= before[0] && now[1] >= before[1] {
			q.ran += now[0] - before[0]
			q.waited += now[1] - before[1]
		}
	}
	q.last, q.began = seen, true
	return time.Duration(q.ran), time.Duration(q.waited), nil
}

// thread reads the nanoseconds of one thread: those on a processor, and those in the queue. Source: the kernel's
// Documentation/scheduler/sched-stats.rst, /proc/PID/schedstat.
func (q *RunQueue) thread(tid string) (v [2]uint64, err error) {
	f := newProcFile(filepath.Join(q.dir, tid, "schedstat"))
	b, err := f.read(&q.buf)
	f.close()
	if err != nil {
		return v, err
	}
	c := cursor{b: b}
	v[0], _ = c.uint()
	v[1], _ = c.uint()
	return v, nil
}

// mostClocks is how many processors are asked for their frequency: on some machines each of them has to be woken for it.
const mostClocks = 16

// MHz is the mean frequency of the processors now, of an even part of many; 0 if the host does not say: most virtual
// machines do not.
func (h *Host) MHz() float64 {
	files, err := filepath.Glob(h.path("/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_cur_freq"))
	if err != nil || len(files) == 0 {
		return 0
	}
	step := (len(files) + mostClocks - 1) / mostClocks
	sum, n := 0.0, 0.0
	for i := 0; i < len(files); i += step {
		b, err := os.ReadFile(files[i])
		if err != nil {
			continue
		}
		if kHz, ok := parseUint(bytes.TrimSpace(b)); ok {
			sum, n = sum+float64(kHz)/1000, n+1
		}
	}
	if n == 0 {
		return 0
	}
	return sum / n
}

// Crowd measures how long all processes of a host except some waited for a processor. It is for one goroutine.
type Crowd struct {
	h       *Host
	without []int
	buf     []byte
	first   map[int]uint64
}

// mostCrowd is how many threads are examined; if there are more, nothing is measured: each costs some microseconds.
const mostCrowd = 20000

// Crowd looks at all processes but these and their children.
func (h *Host) Crowd(without ...int) *Crowd {
	return &Crowd{h: h, without: without, buf: make([]byte, 256)}
}

// Begin notes how long each thread has waited so far.
func (c *Crowd) Begin() (err error) {
	c.first, err = c.look()
	return err
}

// Waited is how long they waited since Begin, all together. Threads that began or ended in between are not in it.
func (c *Crowd) Waited() (time.Duration, error) {
	now, err := c.look()
	if err != nil {
		return 0, err
	}
	var sum uint64
	for tid, waited := range now {
		if before, ok := c.first[tid]; ok && waited > before {
			sum += waited - before
		}
	}
	return time.Duration(sum), nil
}

// look returns the nanoseconds that each thread has waited.
func (c *Crowd) look() (map[int]uint64, error) {
	if !exists(c.h.path("/proc/1/task")) {
		return nil, errors.New("processes of others are hidden")
	}
	skip := map[int]bool{}
	for _, pid := range c.without {
		skip[pid] = true
		for child := range strings.FieldsSeq(c.h.text(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))) {
			if n, err := strconv.Atoi(child); err == nil {
				skip[n] = true
			}
		}
	}
	processes, err := os.ReadDir(c.h.path("/proc"))
	if err != nil {
		return nil, fmt.Errorf("read the processes: %w", err)
	}
	out := map[int]uint64{}
	for _, p := range processes {
		pid, err := strconv.Atoi(p.Name())
		if err != nil || skip[pid] {
			continue
		}
		q := &RunQueue{dir: c.h.path("/proc/" + p.Name() + "/task"), buf: c.buf}
		threads, err := os.ReadDir(q.dir)
		if err != nil {
			continue // it ended in the meantime
		}
		for _, t := range threads {
			tid, err := strconv.Atoi(t.Name())
			if err != nil {
				continue
			}
			if v, err := q.thread(t.Name()); err == nil {
				out[tid] = v[1]
			}
		}
		if len(out) > mostCrowd {
			return nil, fmt.Errorf("more than %d threads", mostCrowd)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("this kernel keeps no scheduling statistics")
	}
	return out, nil
}
