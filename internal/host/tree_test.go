package host

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/await"
)

var update = flag.Bool("update", false, "write the golden files anew")

// dump lists what a reader sees, one value a line, then its gaps.
func dump(r *reader, root string) string {
	var lines []string
	r.Each(func(m *Metric, v float64) {
		kind := "gauge"
		if m.Counter {
			kind = "counter"
		}
		value := fmt.Sprintf("%.10g", v)
		if m.Source == "statfs" {
			value = "(of the machine)"
		}
		lines = append(lines, fmt.Sprintf("%s %s %s %s", kind, m.Unit, m.Key(), value))
	})
	// Metrics of a map are defined in any order.
	slices.Sort(lines)
	for _, g := range r.Gaps() {
		lines = append(lines, fmt.Sprintf("gap: %s: %s → %s", g.What, strings.ReplaceAll(g.Why, root, "ROOT"), g.Remedy))
	}
	return strings.Join(lines, "\n") + "\n"
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test -update writes it anew):\n%s", path, diff(string(want), got))
	}
}

func diff(want, got string) string {
	in := map[string]int{}
	for l := range strings.SplitSeq(want, "\n") {
		in[l]++
	}
	var b strings.Builder
	for l := range strings.SplitSeq(got, "\n") {
		if in[l]--; in[l] < 0 {
			b.WriteString("+ " + l + "\n")
		}
	}
	for l := range strings.SplitSeq(want, "\n") {
		if in[l] > 0 {
			in[l]--
			b.WriteString("- " + l + "\n")
		}
	}
	return b.String()
}

func treeHost(t *testing.T, root string) *Host {
	t.Helper()
	h, err := New(Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func TestTrees(t *testing.T) {
	for _, c := range []struct {
		tree string
		pid  int
	}{{"plain", 4242}, {"odd", 77}} {
		t.Run(c.tree, func(t *testing.T) {
			root := filepath.Join("testdata", c.tree)
			h := treeHost(t, root)
			h.Read()
			golden(t, c.tree, dump(&h.reader, root))
			p, err := h.Process(c.pid)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			p.page = 4096 // of the made-up process, regardless of the machine the test runs on
			if _, err := p.Read(); err != nil {
				t.Fatal(err)
			}
			golden(t, c.tree+"-process", dump(&p.reader, root))
			// A second read must say the same.
			first := dump(&p.reader, root)
			p.Read()
			if again := dump(&p.reader, root); again != first {
				t.Errorf("the second read differs:\n%s", diff(first, again))
			}
		})
	}
}

func TestNoProc(t *testing.T) {
	_, err := New(Options{Root: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "is /proc mounted") {
		t.Errorf("an empty tree: got %v; want an error, \"is /proc mounted\" in the error", err)
	}
}

func TestIdentityOfTree(t *testing.T) {
	id := treeHost(t, "testdata/plain").Identity()
	want := Identity{Hostname: "db1.example", MachineID: "5d41402abc4b2a76b9719d911017c592", BootID: "0b4a2a54-6b3f-4f0e-9a51-2f3c1d9b7e11",
		Kernel: "6.1.0-18-amd64", OS: "Debian GNU/Linux 12 (bookworm)", CPUs: 2, CPUModel: "Made-up CPU @ 2.00GHz", Memory: 24684092 * 1024}
	if id != want {
		t.Errorf("got %+v, want %+v", id, want)
	}
	if id.ID() != "db1.example" {
		t.Errorf("ID %q, want \"db1.example\"", id.ID())
	}
}

// tree is a small host in a temporary folder whose files a test changes.
type tree struct {
	t    *testing.T
	root string
}

func newTree(t *testing.T) *tree {
	tr := &tree{t: t, root: t.TempDir()}
	tr.write("proc/stat", "cpu  1 1 1 1 1 1 1 1\ncpu0 1 1 1 1 1 1 1 1\nbtime 1700000000\n")
	tr.write("proc/self/mounts", "")
	return tr
}

// write keeps the file in place, as /proc does: an open file sees the new text.
func (tr *tree) write(name, text string) {
	tr.t.Helper()
	path := filepath.Join(tr.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		tr.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		tr.t.Fatal(err)
	}
}

func diskLine(name string, readMS, flushMS uint64) string {
	return fmt.Sprintf("8 0 %s 10 0 80 %d 10 0 80 5 0 6 7 0 0 0 0 3 %d\n", name, readMS, flushMS)
}

func TestDisksComeAndGo(t *testing.T) {
	tr := newTree(t)
	tr.write("proc/diskstats", diskLine("sda", 4294967000, 4294967295)+diskLine("sdb", 50, 1))
	h := treeHost(t, tr.root)
	key := func(metric, dev string) string { return "node_disk_" + metric + `{device="` + dev + `"}` }
	v := values(h)
	positions := len(h.Metrics())
	near(t, "before the wrap", v[key("read_time_seconds_total", "sda")], 4294967.0, 0, 1e-6)

	tr.write("proc/diskstats", diskLine("sda", 704, 4)) // 1000 ms and 5 ms later
	v = values(h)
	near(t, "after the wrap", v[key("read_time_seconds_total", "sda")], 4294968.0, 0, 1e-6)
	near(t, "flushes after the wrap", v[key("flush_requests_time_seconds_total", "sda")], 4294967.3, 0, 1e-6)
	if _, ok := v[key("reads_completed_total", "sdb")]; ok {
		t.Error("a disk that was pulled still has values")
	}
	tr.write("proc/diskstats", diskLine("sda", 705, 5)+diskLine("sdb", 2, 0)+diskLine("sdc", 9, 9))
	v = values(h)
	near(t, "a disk that came back", v[key("read_time_seconds_total", "sdb")], 0.002, 0, 1e-9)
	near(t, "a disk that stayed", v[key("read_time_seconds_total", "sda")], 4294968.001, 0, 1e-6)
	if len(h.Metrics()) != positions+len(diskColumns) {
		t.Errorf("%d metrics, want %d: only sdc is new", len(h.Metrics()), positions+len(diskColumns))
	}
	if h.Metrics()[positions].Labels[0].Value != "sdc" {
		t.Errorf("position %d became %s, want h.Metrics()[positions].Labels[0].Value \"sdc\"", positions, h.Metrics()[positions].Key())
	}
	// A small step back is a reset, not a wrap.
	tr.write("proc/diskstats", diskLine("sda", 3, 5))
	near(t, "a reset", values(h)[key("read_time_seconds_total", "sda")], 0.003, 0, 1e-9)
}

func TestProcessorsComeAndGo(t *testing.T) {
	tr := newTree(t)
	h := treeHost(t, tr.root)
	idle := func(cpu int) string { return fmt.Sprintf(`node_cpu_seconds_total{cpu="%d",mode="idle"}`, cpu) }
	tr.write("proc/stat", "cpu  0 0 0 9000 0 0 0 0\ncpu0 0 0 0 5000 0 0 0 0\ncpu1 0 0 0 4000 0 0 0 0\n")
	near(t, "idle", values(h)[idle(0)], 50, 0, 0)
	tr.write("proc/stat", "cpu  0 0 0 9000 0 0 0 0\ncpu0 0 0 0 4998 0 0 0 0\n")
	v := values(h)
	near(t, "a step back of two ticks is held", v[idle(0)], 50, 0, 0)
	if _, ok := v[idle(1)]; ok {
		t.Error("a processor that was switched off still has values")
	}
	tr.write("proc/stat", "cpu  0 0 0 9000 0 0 0 0\ncpu0 0 0 0 100 0 0 0 0\n")
	near(t, "a large step back is a reset", values(h)[idle(0)], 1, 0, 0)
}

func TestProcessNumberUsedAgain(t *testing.T) {
	tr := newTree(t)
	stat := "9 (mysqld) S 1 1 1 0 -1 0 5 0 6 0 100 200 0 0 20 0 9 0 %d 1000 10\n"
	tr.write("proc/9/stat", fmt.Sprintf(stat, 100))
	h := treeHost(t, tr.root)
	p, err := h.Process(9)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Read(); err != nil {
		t.Fatal(err)
	}
	if want := time.Unix(1700000001, 0); !p.Started().Equal(want) {
		t.Errorf("started %v, want %v", p.Started(), want)
	}
	if gaps := p.Gaps(); len(gaps) == 0 {
		t.Error("a process without io and fd has no gap")
	}
	tr.write("proc/9/stat", fmt.Sprintf(stat, 777))
	if v, err := p.Read(); !errors.Is(err, ErrGone) || !math.IsNaN(v[0]) {
		t.Errorf("another process took the number: got %v, %v; want ErrGone, math.IsNaN(v[0]) true", v[0], err)
	}
	tr.write("proc/9/stat", fmt.Sprintf(stat, 100))
	if _, err := p.Read(); !errors.Is(err, ErrGone) {
		t.Errorf("gone is for good: %v, want ErrGone", err)
	}
	tr.write("proc/10/stat", "rubbish")
	if _, err := h.Process(10); err == nil {
		t.Error("rubbish is read as a process")
	}
}

// A mount whose statfs hangs is reported as a gap; nothing waits for it.
func TestHungMount(t *testing.T) {
	tr := newTree(t)
	tr.write("proc/self/mounts", "nas:/export /nas nfs4 rw 0 0\n/dev/sda1 / ext4 rw 0 0\n")
	var gaps gapList
	f := newFilesystems(tr.root, &gaps)
	release := make(chan struct{})
	asked := make(chan struct{}, 8)
	f.statfs = func(path string, st *unix.Statfs_t) error {
		if strings.HasSuffix(path, "/nas") {
			asked <- struct{}{}
			<-release
		}
		return unix.Statfs(tr.root, st)
	}
	h := &Host{root: tr.root, fs: f}
	await.Until(t, func() bool { // the other answers within a pass, unless this machine is busy
		f.pass(20 * time.Millisecond)
		h.clear()
		h.readFilesystems()
		return len(h.Metrics()) == len(filesystemTemplates) && h.values[0] > 0
	}, "the metrics of the other file system")
	got := fmt.Sprint(gaps.list())
	if !strings.Contains(got, "nfs4 from nas:/export does not answer") || !strings.Contains(got, "umount -f -l /nas") {
		t.Errorf("gaps: got %s; want \"nfs4 from nas:/export does not answer\" in it, \"umount -f -l /nas\" in it", got)
	}
	f.pass(20 * time.Millisecond)
	if len(asked) != 1 {
		t.Errorf("the hung mount was asked %d times, want 1", len(asked))
	}
	close(release)
	await.Until(t, func() bool { // the pass that notices the late answer does not ask again yet
		f.pass(time.Second)
		h.clear()
		h.readFilesystems()
		return len(gaps.list()) == 0 && len(h.Metrics()) == 2*len(filesystemTemplates)
	}, "the metrics of the mount that answers again")
	// Hung again and then unmounted: the gap goes.
	release = make(chan struct{})
	defer close(release)
	f.pass(20 * time.Millisecond)
	tr.write("proc/self/mounts", "/dev/sda1 / ext4 rw 0 0\n")
	f.pass(20 * time.Millisecond)
	if g := gaps.list(); len(g) != 0 {
		t.Errorf("it is unmounted, and still: %v; want none", g)
	}
}

func TestGapEndsWhenTheFileComes(t *testing.T) {
	tr := newTree(t)
	h := treeHost(t, tr.root)
	h.Read()
	has := func() (found bool) {
		for _, g := range h.Gaps() {
			found = found || g.What == "memory"
		}
		return
	}
	if !has() {
		t.Fatalf("no gap for memory: %v", h.Gaps())
	}
	tr.write("proc/meminfo", "MemTotal: 1 kB\n")
	for range retryReads + 1 {
		h.Read()
	}
	if has() {
		t.Error("the gap stays after the file came")
	}
}

func TestWantedDisks(t *testing.T) {
	tr := newTree(t)
	for _, d := range []string{"sda/sda1", "sda/sda2", "nvme0n1/nvme0n1p1", "cciss!c0d0/x", "dm-0/x"} {
		tr.write("sys/block/"+d+"/size", "")
	}
	h := treeHost(t, tr.root)
	h.fs.mounted = map[string]bool{"sda1": true, "sda2": true, "nvme0n1p1": true}
	d := &disks{h: h}
	for name, want := range map[string]bool{
		"sda": true, "sda1": true, "sda2": true, "sda3": false, // two parts are mounted: each has its own
		"nvme0n1": true, "nvme0n1p1": false, // the whole tells the part
		"cciss/c0d0": true, "dm-0": true, "loop3": false, "ram0": false, "sr0": false, "zram1": false,
	} {
		if got := d.wanted(name); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

func TestKeyEscapes(t *testing.T) {
	m := Metric{Name: "x", Labels: []Label{{Name: "a", Value: "b\"c\\d\ne"}, {Name: "f"}}}
	if got, want := m.Key(), `x{a="b\"c\\d\ne",f=""}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func FuzzParsers(f *testing.F) {
	for _, p := range []string{"plain/proc/stat", "odd/proc/diskstats", "plain/proc/net/dev", "plain/proc/net/netstat", "odd/proc/meminfo"} {
		b, err := os.ReadFile(filepath.Join("testdata", p))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h := &Host{root: "/nonexistent"}
		h.fs = newFilesystems(h.root, &h.gaps)
		h.addCPU()
		h.addPressure()
		h.addMemory()
		h.addNetwork()
		h.addDisks()
		h.clear()
		for _, g := range h.groups {
			g.parse(b)
		}
		parseStat(b)
		realMounts(string(b))
	})
}
