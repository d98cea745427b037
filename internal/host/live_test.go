package host

import (
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/await"
)

// The tests of this file read the real /proc and compare it with another source.

func liveHost(t *testing.T) *Host {
	t.Helper()
	h, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// values reads a host once, by key.
func values(h *Host) map[string]float64 {
	h.Read()
	m := map[string]float64{}
	h.Each(func(d *Metric, v float64) { m[d.Key()] = v })
	return m
}

func processValues(t *testing.T, p *Process) map[string]float64 {
	t.Helper()
	if _, err := p.Read(); err != nil {
		t.Fatal(err)
	}
	m := map[string]float64{}
	p.Each(func(d *Metric, v float64) { m[d.Key()] = v })
	return m
}

// near fails when got is not within a share and an absolute slack of want.
func near(t *testing.T, what string, got, want, share, slack float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > math.Abs(want)*share+slack {
		t.Errorf("%s: got %v, another source says %v; want math.IsNaN(got) false, math.Abs(got - want) at most math.Abs(want)*share + slack",
			what, got, want)
	}
}

func TestLiveAgainstVmstat(t *testing.T) {
	path, err := exec.LookPath("vmstat")
	if err != nil {
		t.Skip("there is no vmstat (package procps) to compare with")
	}
	out, err := exec.Command(path, "-s", "-S", "K").Output()
	if err != nil {
		t.Fatal(err)
	}
	v := values(liveHost(t))
	other := map[string]float64{}
	for line := range strings.SplitSeq(string(out), "\n") {
		n, rest, ok := strings.Cut(strings.TrimSpace(line), " ")
		if f, err := strconv.ParseFloat(n, 64); ok && err == nil {
			other[strings.TrimPrefix(strings.TrimSpace(rest), "K ")] = f
		}
	}
	for _, c := range []struct {
		ours, theirs string
		scale        float64
		share, slack float64
	}{
		{`risso_host_cpu_seconds_total{mode="idle"}`, "idle cpu ticks", 100, 0.01, 200},
		{`risso_host_cpu_seconds_total{mode="system"}`, "system cpu ticks", 100, 0.01, 200},
		{`node_context_switches_total`, "CPU context switches", 1, 0.01, 50000},
		{`node_intr_total`, "interrupts", 1, 0.01, 50000},
		{`node_boot_time_seconds`, "boot time", 1, 0, 0},
		{`node_forks_total`, "forks", 1, 0.01, 100},
		{`node_memory_MemTotal_bytes`, "total memory", 1.0 / 1024, 0, 1},
		{`node_vmstat_pgpgout`, "K paged out", 1, 0.05, 20000},
	} {
		want, ok := other[c.theirs]
		if !ok {
			want, ok = other[strings.TrimPrefix(c.theirs, "K ")]
		}
		if !ok {
			t.Logf("this vmstat does not print %q", c.theirs)
			continue
		}
		near(t, c.ours, v[c.ours]*c.scale, want, c.share, c.slack)
	}
}

func TestLiveSumsAndPressure(t *testing.T) {
	h := liveHost(t)
	v := values(h)
	for _, mode := range cpuModes {
		sum := 0.0
		for key, x := range v {
			if strings.HasPrefix(key, "node_cpu_seconds_total{") && strings.Contains(key, `mode="`+mode+`"`) {
				sum += x
			}
		}
		near(t, mode, v[`risso_host_cpu_seconds_total{mode="`+mode+`"}`], sum, 0.01, 1)
	}
	if _, err := os.Stat("/proc/pressure/io"); err == nil {
		if _, ok := v["node_pressure_io_stalled_seconds_total"]; !ok {
			t.Error("PSI is there and is not read")
		}
	}
	var st syscall.Statfs_t
	if err := syscall.Statfs("/", &st); err != nil {
		t.Fatal(err)
	}
	found := false
	for key, x := range v {
		if strings.HasPrefix(key, "node_filesystem_size_bytes{") && strings.Contains(key, `mountpoint="/"`) {
			found = true
			near(t, key, x, float64(st.Blocks)*float64(st.Frsize), 0, 0)
		}
	}
	if !found {
		t.Error("no file system at /")
	}
	id := h.Identity()
	name, _ := os.Hostname()
	if id.Hostname != name || id.CPUs < 1 || id.Memory < 1<<20 || id.BootID == "" || id.Kernel == "" {
		t.Errorf("identity: got %+v; want Hostname %v, CPUs at least 1, Memory at least 1 << 20, BootID not \"\", Kernel not \"\"", id, name)
	}
}

// A file written with fsync must raise the flush count of the disk below.
func TestLiveFlushes(t *testing.T) {
	h := liveHost(t)
	before := values(h)
	f, err := os.CreateTemp(t.TempDir(), "flush")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const writes = 20
	for range writes {
		if _, err := f.Write(make([]byte, 4096)); err != nil {
			t.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	after := values(h)
	best, latency := 0.0, 0.0
	for key, x := range after {
		if rest, ok := strings.CutPrefix(key, "node_disk_flush_requests_total"); ok && x-before[key] > best {
			best = x - before[key]
			k := "node_disk_flush_requests_time_seconds_total" + rest
			latency = (after[k] - before[k]) / best
		}
	}
	if best < writes/2 {
		var st syscall.Statfs_t
		if syscall.Statfs(f.Name(), &st) == nil && st.Type == 0x01021994 {
			t.Skip("the temporary folder is a tmpfs: fsync reaches no disk")
		}
		t.Errorf("got %d fsyncs, %v flushes counted; want at least %v", writes, best, writes/2)
	}
	t.Logf("%d fsyncs, %v flushes of %.2f ms", writes, best, latency*1e3)
}

// A child burns processor time for a known time; getrusage is the other source.
func TestLiveProcess(t *testing.T) {
	if os.Getenv("RISSO_BURN") != "" {
		for begin := time.Now(); time.Since(begin) < 400*time.Millisecond; {
		}
		os.Stdout.WriteString("burnt\n")
		os.Stdin.Read(make([]byte, 1))
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestLiveProcess$")
	cmd.Env = append(os.Environ(), "RISSO_BURN=1")
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	h := liveHost(t)
	p, err := h.Process(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := out.Read(make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	v := processValues(t, p)
	cpu := v[`risso_process_cpu_seconds_total{mode="user"}`] + v[`risso_process_cpu_seconds_total{mode="system"}`]
	if v["risso_process_threads"] < 2 || v["risso_process_resident_memory_bytes"] < 1<<20 || v["risso_process_open_fds"] < 3 {
		t.Errorf("process: got %v; want v[\"risso_process_threads\"] at least 2, v[\"risso_process_resident_memory_bytes\"] at least 1 << 20, v[\"risso_process_open_fds\"] at least 3",
			v)
	}
	if d := time.Since(p.Started()); d < 0 || d > time.Minute {
		t.Errorf("began %v ago, want from 0 to time.Minute", d)
	}
	entries, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", cmd.Process.Pid))
	near(t, "open files", v["risso_process_open_fds"], float64(len(entries)), 0, 0)
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	used := (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	near(t, "processor seconds", cpu, used, 0.25, 0.05)
	if _, err := p.Read(); !errors.Is(err, ErrGone) {
		t.Errorf("after its end: got %v, want ErrGone", err)
	}
	if _, err := h.Process(cmd.Process.Pid); !errors.Is(err, ErrGone) {
		t.Errorf("opened anew after its end: %v, want ErrGone", err)
	}
}

// findAsNobody looks for a server of root as a user who may not see its files.
func findAsNobody(t *testing.T, program, dir string, port int) {
	if os.Getuid() != 0 {
		t.Skip("only root can become another user")
	}
	os.Chmod(filepath.Dir(dir), 0o755)            // the test's own folder, which is closed to others
	for d := dir; d != "/"; d = filepath.Dir(d) { // everybody must be able to reach the program
		if st, err := os.Stat(d); err != nil || st.Mode()&0o005 != 0o005 {
			t.Skipf("another user cannot reach %s", d)
		}
	}
	cmd := exec.Command(program, "-test.run=^TestLiveFindServer$")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), fmt.Sprintf("RISSO_FIND=%d", port))
	const nobody = 65534
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	for _, want := range []string{"no permission to read /proc/", "/io run Risso as root", "/fd run Risso as root"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q: %s", want, out)
		}
	}
	if err != nil || !strings.Contains(string(out), "found 0, no permission to see the open files of") || !strings.Contains(string(out), "setcap") {
		t.Errorf("%v: got %s; want \"found 0, no permission to see the open files of\" in it, \"setcap\" in it", err, out)
	}
}

// A copy of this test program with a server's name listens on a port and a socket.
func TestLiveFindServer(t *testing.T) {
	if dir := os.Getenv("RISSO_LISTEN"); dir != "" {
		tcp, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		sock, err := net.Listen("unix", filepath.Join(dir, "my sql.sock"))
		if err != nil {
			t.Fatal(err)
		}
		defer sock.Close()
		_, port, _ := net.SplitHostPort(tcp.Addr().String())
		os.Stdout.WriteString(port + "\n")
		os.Stdin.Read(make([]byte, 1))
		return
	}
	if port := os.Getenv("RISSO_FIND"); port != "" {
		n, _ := strconv.Atoi(port)
		h := liveHost(t)
		if p, err := h.Process(os.Getppid()); err == nil { // root's: what it may not read is a gap
			p.Read()
			fmt.Println(p.Gaps())
		}
		pid, gap, err := h.FindServer(Target{Port: n})
		if gap != nil {
			fmt.Printf("found %d, %s → %s (%v)\n", pid, gap.Why, gap.Remedy, err)
		}
		return
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "mysqld")
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, self, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-test.run=^TestLiveFindServer$")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "RISSO_LISTEN="+dir)
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { in.Close(); cmd.Wait() }()
	b := make([]byte, 16)
	n, err := out.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	port, _ := strconv.Atoi(strings.TrimSpace(string(b[:n])))
	pidFile := filepath.Join(dir, "x.pid")
	os.WriteFile(pidFile, []byte(strconv.Itoa(cmd.Process.Pid)+"\n"), 0o644)

	h := liveHost(t)
	for _, target := range []Target{
		{Port: port}, {Socket: filepath.Join(dir, "my sql.sock")}, {PIDFile: pidFile}, {DataDir: dir},
		{Socket: "/nowhere.sock", Port: port},
	} {
		pid, gap, err := h.FindServer(target)
		if pid != cmd.Process.Pid || gap != nil || err != nil {
			t.Errorf("%+v: process %d, %v, %v; want %d", target, pid, gap, err, cmd.Process.Pid)
		}
	}
	t.Run("as another user", func(t *testing.T) { findAsNobody(t, program, dir, port) })

	// This test itself listens too, and is no server.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, _, err = h.FindServer(Target{Port: l.Addr().(*net.TCPAddr).Port})
	if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "not a MySQL or MariaDB server") {
		t.Errorf("a port of another program: got %v; want ErrNotFound, \"not a MySQL or MariaDB server\" in the error", err)
	}
	_, _, err = h.FindServer(Target{Port: 1})
	if !errors.Is(err, ErrNotFound) {
		t.Errorf("a free port: got %v, want ErrNotFound", err)
	}
}

// A tick in steady state must not allocate: it happens every second, for good.
func TestLiveReadAllocatesNothing(t *testing.T) {
	h, err := New(Options{FilesystemEvery: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	p, err := h.Process(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	h.Read()
	if n := testing.AllocsPerRun(50, func() { h.Read() }); n > 0 {
		t.Errorf("a tick of the host allocates %v times, want at most 0", n)
	}
	if n := testing.AllocsPerRun(50, func() { p.Read() }); n > 0 {
		t.Errorf("a tick of a process allocates %v times, want at most 0", n)
	}
}

// BenchmarkReadCPU tells the processor time of a tick, the kernel's part included.
func BenchmarkReadCPU(b *testing.B) {
	h, err := New(Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close()
	p, err := h.Process(os.Getpid())
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	used := func() time.Duration {
		var r syscall.Rusage
		syscall.Getrusage(syscall.RUSAGE_SELF, &r)
		return time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	before := used()
	for b.Loop() {
		h.Read()
		p.Read()
	}
	b.ReportMetric(float64((used()-before).Microseconds())/float64(b.N), "cpu-µs/op")
}

// TestFamilyIsFine: what a process took is measured finer than the hundredths of a second of /proc, and is never less than those.
func TestFamilyIsFine(t *testing.T) {
	h := liveHost(t)
	c := exec.Command("sleep", "600")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Process.Kill(); _ = c.Wait() }() // it was killed
	f := h.Family(c.Process.Pid)
	defer f.Close()
	var took time.Duration
	await.Until(t, func() bool { // it may not have had a processor yet
		var err error
		if took, err = f.Used(); err != nil {
			t.Fatal(err)
		}
		return took > 0
	}, "the process to begin")
	if took%(time.Second/userHZ) == 0 {
		t.Errorf("a process that has just begun took %v, want a time that is finer than a tick", took)
	}
	self := h.Family(os.Getpid())
	defer self.Close()
	var before, after unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &before); err != nil {
		t.Fatal(err)
	}
	own, ok := self.fine()
	if err := unix.Getrusage(unix.RUSAGE_SELF, &after); err != nil {
		t.Fatal(err)
	}
	low, high := before.Utime.Nano()+before.Stime.Nano(), after.Utime.Nano()+after.Stime.Nano()
	if slack := int64(20 * time.Millisecond); !ok || own.Nanoseconds() < low-slack || own.Nanoseconds() > high+slack {
		t.Errorf("this process took %v, %t; getrusage says %v to %v; want ok true, own.Nanoseconds() from %v to %v",
			own, ok, time.Duration(low), time.Duration(high), low-slack, high+slack)
	}
}
