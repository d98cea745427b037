package scenario_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/fleet"
)

// TestKilledRisso: kill -9 at random moments loses two seconds at most, and changes nothing of what was there.
func TestKilledRisso(t *testing.T) {
	t.Parallel()
	n := single(t, "mariadb")
	data := dataDir(t)
	type seen struct {
		selector string
		points   []point
	}
	var before []seen
	selectors := []string{of(questions, "db"), of("mysql_global_status_bytes_sent", "db"), of("mysql_global_status_threads_running", "db"),
		of(`risso_collect_seconds{group="status"}`, "db")}
	selectors[3] = `risso_collect_seconds{group="status",instance="db"}`
	var r *risso
	for round := range 4 {
		r = serve(t, data, "--no-host", "--dsn", "db="+n.DSN)
		for _, b := range before {
			if len(b.points) == 0 {
				continue
			}
			from, to := b.points[0].t, b.points[len(b.points)-1].t
			samePoints(t, fmt.Sprintf("round %d: %s", round, b.selector), r.raw(t, b.selector, from, to), b.points)
		}
		first := r.awaitTicks(t, "db", 1)
		time.Sleep(time.Duration(1500+rand.IntN(2500)) * time.Millisecond) // any moment
		killed := time.Now()
		for _, s := range selectors {
			before = append(before, seen{s, r.raw(t, s, first, killed.Unix()+1)})
		}
		r.kill(t)
		last := before[len(before)-4].points
		if len(last) == 0 || last[len(last)-1].t < time.Now().Unix()-2 && !stood(killed.Unix()) {
			t.Errorf("round %d: killed at %d, the newest value was of %v", round, killed.Unix(), last)
		}
	}
	r = serve(t, data, "--no-host", "--dsn", "db="+n.DSN)
	for _, b := range before {
		samePoints(t, "at the end: "+b.selector, r.raw(t, b.selector, b.points[0].t, b.points[len(b.points)-1].t), b.points)
	}
	if list, err := filepath.Glob(filepath.Join(data, "series", "damaged", "*")); err != nil || len(list) > 0 {
		for _, f := range list {
			if !strings.HasSuffix(f, ".tail") { // what kill -9 cut off midway
				t.Errorf("after kill -9 a file counts as damaged: got %s %v, want \".tail\" at its end", f, err)
			}
		}
	}
	for _, e := range r.events(t, "db", "") {
		if e.Severity > fleet.SeverityInfo {
			t.Errorf("kill -9 of Risso made the event %s: %s, want e.Severity at most fleet.SeverityInfo", e.Kind, e.Text)
		}
	}
}

func samePoints(t *testing.T, what string, got, want []point) {
	t.Helper()
	have := map[int64]float64{}
	for _, p := range got {
		have[p.t] = p.v
	}
	lost := 0
	for _, p := range want {
		v, ok := have[p.t]
		switch {
		case !ok:
			lost++
		case v != p.v:
			t.Errorf("%s: %v at %d, it was %v", what, v, p.t, p.v)
		}
	}
	if lost > 2 {
		t.Errorf("%s: %d of %d seconds are lost, want at most 2", what, lost, len(want))
	}
	if len(got) > len(want) {
		t.Errorf("%s: %d values, there were %d", what, len(got), len(want))
	}
}

// TestFullDisk: collection goes on, says so, and recovers.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a small disk")
	}
	n := single(t, "mariadb")
	disk := tempDir(t)
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=16m"); err != nil {
		t.Skipf("a small disk cannot be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(disk, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	data := filepath.Join(disk, "data")
	r := serve(t, data, "--no-host", "--dsn", "db="+n.DSN)
	t.Cleanup(func() { r.kill(t) }) // before the disk goes
	begin := r.awaitTicks(t, "db", 3)

	ballast := filepath.Join(disk, "ballast")
	fill(t, ballast)
	r.awaitLog(t, "isk is full")
	filled := time.Now().Unix()
	// The newest seconds are there, though they cannot be written. It lasts long enough for more than one retry.
	at := r.awaitTicks(t, "db", 9)
	if m := missing(r.raw(t, of(questions, "db"), begin, at), begin, at); len(m) > 0 {
		t.Errorf("with a full disk the seconds %v of %d to %d are missing; it was full at %d; want none", m, begin, at, filled)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	recovered := r.awaitEvent(t, "", fleet.EventStore, func(e fleet.Event) bool { return strings.Contains(e.Text, "can write its data again") })
	full := r.awaitEvent(t, "", fleet.EventStore, func(e fleet.Event) bool { return strings.Contains(e.Text, "disk is full") })
	if full.Severity != fleet.SeverityCritical {
		t.Errorf("a full disk is %s, want fleet.SeverityCritical", full.Severity)
	}
	// What waited in memory is written before this is said: a crash now costs nothing of it.
	end := r.awaitTicks(t, "db", 2)
	if end < recovered.Time.Unix() {
		end = recovered.Time.Unix()
	}
	want := r.raw(t, of(questions, "db"), begin, end)
	r.kill(t)
	r = serve(t, data, "--no-host", "--dsn", "db="+n.DSN)
	got := r.raw(t, of(questions, "db"), begin, end)
	samePoints(t, "after the disk was full and a crash", got, want)
	r.stop(t, syscall.SIGTERM)
}

// fill writes until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, size := range []int{1 << 20, 4096, 1} {
		b := make([]byte, size)
		for {
			if _, err := f.Write(b); err != nil {
				break
			}
		}
	}
}

// awaitLog waits until the log says something.
func (r *risso) awaitLog(t *testing.T, text string) {
	t.Helper()
	await(t, "it says "+text, func() bool { return strings.Contains(r.err.String(), text) })
}

// TestDamagedFile: a flipped bit is found, named and set aside; the rest is served.
func TestDamagedFile(t *testing.T) {
	t.Parallel()
	n := single(t, "mariadb")
	data := dataDir(t)
	args := []string{"--no-host", "--dsn", "db=" + n.DSN, "--dsn", "other=" + n.DSN}
	r := serve(t, data, args...)
	begin := r.awaitTicks(t, "db", 2)
	end := r.awaitTicks(t, "db", 2)
	r.stop(t, syscall.SIGTERM)

	// A second run makes a second set of files next to the first, or minutes after the first ones.
	r = serve(t, data, args...)
	begin2 := r.awaitTicks(t, "db", 1)
	end2 := r.awaitTicks(t, "db", 2)
	want, want2 := r.raw(t, of(questions, "db"), begin2, end2), r.raw(t, of(questions, "other"), begin, end)
	r.stop(t, syscall.SIGTERM)

	victim := flip(t, filepath.Join(data, "series", "instances", "db"))
	r = serve(t, data, args...)
	e := r.awaitEvent(t, "db", fleet.EventStore, func(e fleet.Event) bool { return strings.Contains(e.Text, "damaged") })
	if !strings.Contains(e.Text, filepath.Base(victim)) {
		t.Errorf("the event does not name %s: %s", filepath.Base(victim), e.Text)
	}
	list, err := filepath.Glob(filepath.Join(data, "series", "damaged", "*"))
	if err != nil || len(list) != 1 {
		t.Errorf("in the damaged folder are %v, not one file", list)
	}
	samePoints(t, "the undamaged server", r.raw(t, of(questions, "other"), begin, end), want2)
	// Of the damaged minute nothing is served, of another one all: what is there is what was there.
	have := map[int64]float64{}
	for _, p := range want {
		have[p.t] = p.v
	}
	for _, p := range r.raw(t, of(questions, "db"), begin2, end2) {
		if v, ok := have[p.t]; !ok || v != p.v {
			t.Errorf("a damaged value is served: %v at %d, it was %v; want ok true, v %v", p.v, p.t, v, p.v)
		}
	}
	r.awaitTicks(t, "db", 2)
}

// flip changes a byte in the middle of the greatest file of a folder.
func flip(t *testing.T, dir string) string {
	t.Helper()
	var victim string
	var size int64
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		i, err := e.Info()
		if err == nil && i.Size() > size {
			victim, size = path, i.Size()
		}
		return err
	})
	if err != nil || victim == "" {
		t.Fatalf("no file to damage in %s: got %v; want victim not \"\"", dir, err)
	}
	b, err := os.ReadFile(victim)
	if err != nil {
		t.Fatal(err)
	}
	old := bytes.Clone(b)
	b[len(b)-len(b)/8] ^= 0x10 // after the descriptions, within values
	if bytes.Equal(old, b) {
		t.Fatal("nothing was flipped")
	}
	if err := os.WriteFile(victim, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return victim
}
