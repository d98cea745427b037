package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is a program that the bench started and ends.
type process struct {
	name string
	log  string // path of what it wrote
	cmd  *exec.Cmd
	done chan struct{}
}

// launch starts a program; what it writes goes to a file of the work folder. It dies with the bench.
func (b *bench) launch(name string, env []string, path string, args ...string) (*process, error) {
	f, err := os.CreateTemp(b.work, name+"-*.log")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p := &process{name: name, log: f.Name(), cmd: exec.Command(path, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = f, f
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		defer close(p.done)
		p.cmd.Wait() // those that wait for something from it see how it ended
	}()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// stop asks the process to end, and kills it if it does not.
func (p *process) stop() {
	if p == nil {
		return
	}
	p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	select {
	case <-p.done:
	case <-time.After(20 * time.Second):
		p.cmd.Process.Kill()
		<-p.done
	}
}

// tail is the end of what the process wrote.
func (p *process) tail() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(b[max(0, len(b)-600):]))
}

// await calls ready until it is true; a process that ends before is an error.
func (p *process) await(ctx context.Context, limit time.Duration, ready func() bool) error {
	deadline := time.Now().Add(limit)
	for !ready() {
		select {
		case <-p.done:
			return fmt.Errorf("%s ended: %s", p.name, p.tail())
		default:
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s was not ready within %s: %s", p.name, limit, p.tail())
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// pause sleeps unless ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// cpuTime is the processor time that a process has used since it started, ended threads included, to the nanosecond.
// A process' clock is clock number (^pid)<<3 | 2 (clock_getcpuclockid(3)); /proc/PID/stat knows ticks of 10 ms only.
func cpuTime(pid int) (time.Duration, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|2), &ts); err != nil {
		return 0, fmt.Errorf("processor time of process %d: %w", pid, err)
	}
	return time.Duration(ts.Nano()), nil
}

// threadTime is the processor time of one thread of a process.
func threadTime(pid, tid int) (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/schedstat", pid, tid))
	if err != nil {
		return 0, err
	}
	f := strings.Fields(string(b))
	if len(f) == 0 {
		return 0, errors.New("schedstat is empty")
	}
	n, err := strconv.ParseInt(f[0], 10, 64)
	return time.Duration(n), err
}

// cores measures, over a time, how much of a processor each of some processes uses.
func cores(ctx context.Context, d time.Duration, pids ...int) ([]float64, error) {
	before := make([]time.Duration, len(pids))
	began := time.Now()
	for i, pid := range pids {
		var err error
		if before[i], err = cpuTime(pid); err != nil {
			return nil, err
		}
	}
	if err := pause(ctx, d); err != nil {
		return nil, err
	}
	out := make([]float64, len(pids))
	for i, pid := range pids {
		after, err := cpuTime(pid)
		if err != nil {
			return nil, err
		}
		out[i] = (after - before[i]).Seconds() / time.Since(began).Seconds()
	}
	return out, nil
}

// resident is the resident memory of a process in bytes.
func resident(pid int) (float64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	f := strings.Fields(string(b))
	if len(f) < 2 {
		return 0, errors.New("statm is cut")
	}
	n, err := strconv.ParseFloat(f[1], 64)
	return n * float64(os.Getpagesize()), err
}

// freePort is a TCP port of loopback that is free now.
func freePort() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer ln.Close()
	return ln.Addr().String(), nil
}

// sizeOf is the sum of the sizes of all files below a folder.
func sizeOf(dir string) (total int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	return total, err
}
