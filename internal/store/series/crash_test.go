package series

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/await"
)

const childEnv = "RISSO_SERIES_TEST_CHILD"

// TestMain is also the child process of the crash test: the same binary, which its environment makes append until it is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		if err := child(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// truth is the value that series i has at a second in the tests that cannot keep a model.
func truth(i int, t int64) float64 {
	switch i % 5 {
	case 0:
		return 7
	case 1:
		return float64(t*int64(i+3) + t%7)
	case 2:
		return float64((t*2654435761>>7)%1000) / 100
	case 3:
		if t%60 != 11 {
			return math.NaN()
		}
		return float64(t % 3)
	default:
		return math.Sin(float64(t) * float64(i))
	}
}

const truthSeries = 25

func truthDesc(i int) Desc {
	return Desc{Name: "truth", Type: Type(i % 2), Labels: []Label{{Name: "i", Value: strconv.Itoa(i)}}}
}

// checkTruth compares a store with truth and returns how many samples series 1 has.
func checkTruth(t testing.TB, s *Store, id string, from, to int64) int {
	t.Helper()
	n := 0
	for i := range truthSeries {
		p, err := s.Raw(context.Background(), id, truthDesc(i).Key(), from, to)
		if err != nil {
			t.Fatal(err)
		}
		for k, at := range p.T {
			if math.Float64bits(p.V[k]) != math.Float64bits(truth(i, at)) {
				t.Fatalf("%s series %d at %d is %v, want %v", id, i, at, p.V[k], truth(i, at))
			}
		}
		if i == 1 {
			n = len(p.T)
		}
	}
	return n
}

func child(dir string) error {
	s, err := Open(Options{Dir: dir})
	if err != nil {
		return err
	}
	w, err := s.Writer("db")
	if err != nil {
		return err
	}
	for i := range truthSeries {
		w.Define(truthDesc(i))
	}
	at := t0
	if last, _ := s.Last("db"); last > 0 {
		at = last + 1
	}
	var mu sync.Mutex
	last := at
	go func() {
		for {
			mu.Lock()
			now := last
			mu.Unlock()
			s.Compact(context.Background(), time.Unix(now, 0))
		}
	}()
	vals := make([]float64, truthSeries)
	for ; ; at++ {
		for i := range vals {
			vals[i] = truth(i, at)
		}
		if err := w.Append(at, vals, at%100 == 0); err != nil {
			return err
		}
		fmt.Println(at) // acknowledged
		mu.Lock()
		last = at
		mu.Unlock()
	}
}

// TestKill kills a process that appends, at random moments, and demands every acknowledged second but two.
func TestKill(t *testing.T) {
	rounds := 15
	if testing.Short() {
		t.Log("short: five kills of fifteen")
		rounds = 5
	}
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	from := t0
	for round := range rounds {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), childEnv+"="+dir)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Duration(20+r.IntN(500))*time.Millisecond, func() { cmd.Process.Kill() })
		acked := int64(0)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if n, err := strconv.ParseInt(lines.Text(), 10, 64); err == nil && len(lines.Text()) == 10 {
				acked = n
			}
		}
		cmd.Wait()
		ev := &events{}
		s, err := Open(Options{Dir: dir, OnEvent: ev.add})
		if err != nil {
			t.Fatal(err)
		}
		n := checkTruth(t, s, "db", from, t0+30*daySeconds)
		last, _ := s.Last("db")
		if acked > 0 && (last < acked-2 || int64(n) < acked-from+1-2) {
			t.Fatalf("round %d: acknowledged up to %d, the store has %d seconds and ends at %d\n%v", round, acked, n, last, ev)
		}
		if last > 0 && int64(n) != last-from+1 {
			t.Fatalf("round %d: %d of %d seconds are there\n%v", round, n, last-from+1, ev)
		}
		if strings.Contains(ev.String(), "damaged") {
			t.Fatalf("round %d: a kill is no damage, want no \"damaged\" in it:\n%v", round, ev)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		// Days that were read whole a few times need not be read in every round.
		from = max(from, last-daySeconds)
	}
}

// TestPowerCut checks that a log and a frames file that end anywhere are read up to there.
func TestPowerCut(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	w := openWriterT(t, s, "db")
	for i := range truthSeries {
		w.Define(truthDesc(i))
	}
	vals := make([]float64, truthSeries)
	for at := t0; at < t0+100; at++ {
		for i := range vals {
			vals[i] = truth(i, at)
		}
		if err := w.Append(at, vals, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, rel := range []string{walPath("instances/db", 1), framesPath("instances/db", t0)} {
		st, err := os.Stat(filepath.Join(dir, rel))
		if err != nil {
			t.Fatal(err)
		}
		for cut := int64(0); cut < st.Size(); cut += 1 + st.Size()/60 {
			copied := copyDir(t, dir)
			if err := os.Truncate(filepath.Join(copied, rel), cut); err != nil {
				t.Fatal(err)
			}
			c := openStore(t, copied)
			checkTruth(t, c, "db", t0, t0+daySeconds)
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestFullDisk fills a small file system below a store and frees it again.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=3m"); err != nil {
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
			t.Skipf("SKIPPED: mounting a tmpfs needs root with CAP_SYS_ADMIN: %v", err)
		}
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	ev := &events{}
	s := openStore(t, filepath.Join(dir, "data"), func(o *Options) { o.OnEvent = ev.add })
	w := openWriterT(t, s, "db")
	for i := range truthSeries {
		w.Define(truthDesc(i))
	}
	vals := make([]float64, truthSeries)
	at := t0
	ticks := func(n int) {
		t.Helper()
		for range n {
			for i := range vals {
				vals[i] = truth(i, at)
			}
			if err := w.Append(at, vals, false); err != nil {
				t.Fatal(err)
			}
			at++
		}
		if err := s.w.flushForTest(s); err != nil {
			t.Fatal(err)
		}
	}
	ticks(200)
	ballast := filepath.Join(dir, "ballast")
	fillDisk(t, ballast)
	ticks(1500) // 25 minutes in memory
	if !s.Stats().DiskFull || !strings.Contains(ev.String(), "disk is full") {
		t.Fatalf("nobody says that the disk is full: %v; want s.Stats().DiskFull true, \"disk is full\" in it", ev)
	}
	if n := checkTruth(t, s, "db", t0, at); int64(n) != at-t0 {
		t.Fatalf("%d seconds are readable, want %d", n, at-t0)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	await.Until(t, func() bool { return strings.Contains(ev.String(), "Risso can write its data again") }, "the recovery; events: %v", ev)
	ticks(100)
	if n := strings.Count(ev.String(), "\n"); n != 2 {
		t.Fatalf("%d events, want 2: %v", n, ev)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, filepath.Join(dir, "data"))
	if n := checkTruth(t, s, "db", t0, at); int64(n) != at-t0 {
		t.Fatalf("%d seconds are on disk, want %d", n, at-t0)
	}
	tooFullTooLong(t, s, ballast, at)
}

// tooFullTooLong checks that what is too much for the memory is dropped, oldest first.
func tooFullTooLong(t *testing.T, s *Store, ballast string, at int64) {
	t.Helper()
	w := openWriterT(t, s, "db")
	for i := range truthSeries {
		w.Define(truthDesc(i))
	}
	fillDisk(t, ballast)
	from := floorTo(at, minuteSeconds) + minuteSeconds
	vals := make([]float64, truthSeries)
	for range (memFrameMinutes + 20) * minuteSeconds {
		for i := range vals {
			vals[i] = truth(i, at)
		}
		if err := w.Append(at, vals, false); err != nil {
			t.Fatal(err)
		}
		at++
	}
	if err := s.w.flushForTest(s); err != nil {
		t.Fatal(err)
	}
	if lost := s.Stats().LostFrames; lost < 15 || lost > 25 {
		t.Fatalf("%d minutes were dropped, want from 15 to 25", lost)
	}
	if n := checkTruth(t, s, "db", from, at); n < memFrameMinutes*minuteSeconds-120 {
		t.Fatalf("only %d seconds are left, want at least %d", n, memFrameMinutes*minuteSeconds-120)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func fillDisk(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for {
		if _, err := f.Write(make([]byte, 4096)); err != nil {
			return
		}
	}
}
