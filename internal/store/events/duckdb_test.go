//go:build cgo

package events

import (
	"bufio"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestKilled kills a process that writes without a break: all minutes that were reported as stored are there, each whole
// and once, and the file needs no repair.
func TestKilled(t *testing.T) {
	const rows = 40
	if path := os.Getenv("RISSO_KILL"); path != "" {
		s, err := OpenEmbedded(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		var begin int
		fmt.Sscan(os.Getenv("RISSO_KILL_FROM"), &begin)
		for i := begin; ; i++ {
			m := Minute{Instance: "db1", Time: at(i)}
			for c := range rows {
				r := row(c, 1, 1)
				r.Latency = []Bucket{{100, 1}}
				m.Rows = append(m.Rows, r)
			}
			if _, err := s.AddMinutes(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			if err := s.AddClasses(t.Context(), class("db1", i%100, at(i))); err != nil {
				t.Fatal(err)
			}
			fmt.Println("stored", i)
		}
	}
	path := filepath.Join(t.TempDir(), "events.duckdb")
	next := 0
	for round := range 4 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
		cmd.Env = append(os.Environ(), "RISSO_KILL="+path, fmt.Sprintf("RISSO_KILL_FROM=%d", next))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		last := -1
		for n := 0; n < 100+90*round && lines.Scan(); n++ {
			fmt.Sscanf(lines.Text(), "stored %d", &last)
		}
		cmd.Process.Kill()
		for lines.Scan() { // what was still confirmed before the end
			fmt.Sscanf(lines.Text(), "stored %d", &last)
		}
		cmd.Wait() // it was killed
		if last < next {
			t.Fatal("the child stored nothing")
		}
		s, err := OpenEmbedded(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if s.Damage() != nil {
			t.Fatalf("damage: got %+v, want nil", s.Damage())
		}
		a := top(t, s, TopQuestion{Range: Range{at(0), at(100000)}, Limit: 100})
		stored := a.Total.Calls / rows
		if a.Total.Calls%rows != 0 || stored < int64(last)+1 || stored > int64(last)+2 {
			t.Fatalf("%d calls: %d minutes of %d rows; %d were confirmed; want a.Total.Calls %% rows 0, stored from %v to %v",
				a.Total.Calls, stored, rows, last+1, int64(last)+1, int64(last)+2)
		}
		for _, c := range a.Classes {
			if c.Calls != stored || c.Latency == nil || c.Latency.Calls != stored {
				t.Fatalf("class %s has %d calls and latency %+v, want %d of both", c.ID, c.Calls, c.Latency, stored)
			}
		}
		next = int(stored)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSecondProcess is refused while another process has the file, and let in afterwards.
func TestSecondProcess(t *testing.T) {
	if path := os.Getenv("RISSO_SECOND"); path != "" {
		_, err := OpenEmbedded(t.Context(), path)
		fmt.Println("in use:", errors.Is(err, ErrInUse), err)
		return
	}
	path := filepath.Join(t.TempDir(), "events.duckdb")
	s, err := OpenEmbedded(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	add(t, s, Minute{"db1", at(0), []Row{row(1, 1, 1)}})
	cmd := exec.Command(os.Args[0], "-test.run=^TestSecondProcess$")
	cmd.Env = append(os.Environ(), "RISSO_SECOND="+path)
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), "in use: true") {
		t.Errorf("the second process: got %s %v; want \"in use: true\" in it", out, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = OpenEmbedded(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if a := top(t, s, TopQuestion{Range: Range{at(0), at(1)}}); a.Total.Calls != 1 || s.Damage() != nil {
		t.Errorf("afterwards %+v, damage %+v; want Calls 1, s.Damage() nil", a.Total, s.Damage())
	}
}

// madeStore is a file with 300 minutes of a store that was closed cleanly.
func madeStore(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "events.duckdb")
	s, err := OpenEmbedded(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	var list []Minute
	for i := range 300 {
		list = append(list, Minute{"db1", at(i), []Row{row(i, 1, 1)}})
	}
	add(t, s, list...)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestDamaged sets a broken file aside with a word and begins a new one; what is not broken is left alone.
func TestDamaged(t *testing.T) {
	for name, harm := range map[string]func(b []byte) []byte{
		"a text":              func([]byte) []byte { return []byte(strings.Repeat("this is no database\n", 1000)) },
		"cut in the header":   func(b []byte) []byte { return b[:1000] },
		"cut":                 func(b []byte) []byte { return b[:len(b)/2/4096*4096] },
		"zeros in the middle": func(b []byte) []byte { clear(b[8192 : len(b)-4096]); return b },
		"header turned": func(b []byte) []byte {
			b[4096] ^= 0xff
			b[8192] ^= 0xff
			b[4096+20] ^= 0xff
			b[8192+20] ^= 0xff
			return b
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := madeStore(t)
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, harm(b), 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := OpenEmbedded(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			d := s.Damage()
			if d == nil || d.Reason == "" {
				t.Fatalf("damage %+v; want d not nil, Reason not \"\"", d)
			}
			if _, err := os.Stat(d.MovedTo); err != nil {
				t.Error(err)
			}
			add(t, s, Minute{"db1", at(0), []Row{row(1, 1, 1)}})
			if a := top(t, s, TopQuestion{Range: Range{at(0), at(1000)}}); a.Total.Calls != 1 {
				t.Errorf("the new store holds %d calls, want 1", a.Total.Calls)
			}
		})
	}
	t.Run("not damaged", func(t *testing.T) {
		s, err := OpenEmbedded(t.Context(), madeStore(t))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if a := top(t, s, TopQuestion{Range: Range{at(0), at(1000)}}); a.Total.Calls != 300 || s.Damage() != nil {
			t.Errorf("got %d calls, damage %+v; want a.Total.Calls 300, s.Damage() nil", a.Total.Calls, s.Damage())
		}
	})
}

// TestNewer leaves a newer Risso's file alone.
func TestNewer(t *testing.T) {
	path := madeStore(t)
	s, err := openEmbedded(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.Exec("UPDATE risso_meta SET value = 99 WHERE name = 'schema'"); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if _, err := OpenEmbedded(t.Context(), path); !errors.Is(err, ErrNewer) {
		t.Errorf("got %v, want ErrNewer", err)
	}
	if left, _ := filepath.Glob(path + ".damaged*"); len(left) > 0 {
		t.Errorf("moved aside: got %v, want none", left)
	}
}

// TestFullDisk fills a small file system: writing fails, and goes on when there is room again. All that was confirmed is there.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=6m"); err != nil {
		t.Skipf("a small file system cannot be mounted here (root is needed): %v", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	s, err := OpenEmbedded(t.Context(), filepath.Join(dir, "events", "statements.duckdb"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 3<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	const rows = 200
	write := func(i int) error {
		m := Minute{Instance: "db1", Time: at(i)}
		for c := range rows {
			m.Rows = append(m.Rows, row(i*rows+c, int64(i+1), float64(c)*1.37))
		}
		_, err := s.AddMinutes(t.Context(), m)
		return err
	}
	stored, failed := map[int]bool{}, 0
	for i := 0; i < 2000 && failed < 5; i++ {
		if err := write(i); err != nil {
			if failed++; failed == 1 {
				t.Logf("after %d minutes: %v", len(stored), err)
			}
			continue
		}
		stored[i] = true
	}
	if failed == 0 {
		t.Fatal("the disk was never full")
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	for try := 0; ; try++ { // at the latest the second one
		err := write(5000)
		if err == nil {
			stored[5000] = true
			break
		}
		if try > 2 {
			t.Fatalf("with room again: got %v, want try at most 2", err)
		}
	}
	if s.Damage() != nil {
		t.Errorf("damage %+v, want nil", s.Damage())
	}
	var want int64
	for i := range stored {
		want += int64(i+1) * rows
	}
	// A minute whose confirmation failed may be there nevertheless, whole.
	a := top(t, s, TopQuestion{Range: Range{at(0), at(6000)}})
	if a.Total.Calls < want || a.Total.Calls > want+int64(failed)*rows*2000 {
		t.Errorf("%d calls, %d were confirmed; want from %v to %v", a.Total.Calls, want, want, want+int64(failed)*rows*2000)
	}
}

// TestPrivate keeps the files unreadable to other users, whatever mode DuckDB sets.
func TestPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "it's a #dir")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s, err := OpenEmbedded(t.Context(), filepath.Join(dir, "events.duckdb"))
	if err != nil {
		t.Fatal(err)
	}
	add(t, s, Minute{"db1", at(0), []Row{row(1, 1, 1)}})
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder: got %v %v; want Perm() 0o700", info.Mode(), err)
	}
	s.Close()
}

// TestPruneToTheDay deletes minutes up to the whole hour, and all up to the whole day.
func TestPruneToTheDay(t *testing.T) {
	s := openDuckDB(t)
	var list []Minute
	for i := range 60 * 80 {
		list = append(list, Minute{"db1", at(i), []Row{row(1, 1, 1)}})
	}
	add(t, s, list...)
	all := Range{at(0), at(60 * 80)}
	for _, step := range []struct{ minutes, everything, left int }{{20*60 + 30, 0, 80}, {60, 30 * 60, 56}, {75 * 60, 30 * 60, 56}, {79 * 60, 47 * 60, 56}, {79 * 60, 48 * 60, 32}, {1000 * 60, 1000 * 60, 0}} {
		if err := s.Prune(t.Context(), time.Unix(at(step.minutes), 0), time.Unix(at(step.everything), 0)); err != nil {
			t.Fatal(err)
		}
		a := top(t, s, TopQuestion{Range: all})
		if a.Total.Calls != int64(60*step.left) {
			t.Errorf("%+v: %d calls are left, want %d", step, a.Total.Calls, int64(60*step.left))
		}
	}
	// A minute that is older than minutes are kept cannot come any more: its hour could not be rebuilt.
	if n := add(t, s, Minute{"db1", at(5), []Row{row(1, 1, 1)}}); n != 0 {
		t.Errorf("a minute from before the cut was stored: got %v, want 0", n)
	}
}

// TestManyClassesWithoutDigest keeps as many classes as a busy fleet has whose source knows no digests, and closes and opens again.
func TestManyClassesWithoutDigest(t *testing.T) {
	n := 21000
	if testing.Short() {
		t.Log("short: a tenth of the classes")
		n = 2100
	}
	var list []Class
	for i := range n {
		list = append(list, Class{Instance: "db", ID: fmt.Sprintf("%016X%016X", uint64(i)*0x9E3779B97F4A7C15, i), Fingerprint: fmt.Sprintf("select c%d", i), Verb: "SELECT", FirstSeen: at(0), LastSeen: at(0)})
	}
	for range 2 {
		path := filepath.Join(t.TempDir(), "events", "s.duckdb")
		for i := range 2 {
			s, err := OpenEmbedded(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				if err := s.AddClasses(t.Context(), list...); err != nil {
					t.Error(err)
				}
			}
			found, err := s.Classes(t.Context(), "db", 100000)
			if err != nil || len(found) != n || found[0].Digest != "" {
				t.Errorf("got %d classes: %v; want len(found) %d, found[0].Digest \"\"", len(found), err, n)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestFileWithoutActivity opens a file from before sessions were looked at: its minutes are there, and activity can be stored.
func TestFileWithoutActivity(t *testing.T) {
	path := t.TempDir() + "/events.duckdb"
	s, err := openEmbedded(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	add(t, s, Minute{"db1", at(0), []Row{row(1, 10, 2)}})
	if _, err := s.db.ExecContext(t.Context(), "DROP TABLE risso_activity"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := OpenEmbedded(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	addActivity(t, again, ActivityMinute{"db1", at(0), []Activity{{Class: id(1), Wait: "io", Calls: 1, Seconds: 1}}})
	a := top(t, again, TopQuestion{Range: Range{at(0), at(60)}})
	if again.Damage() != nil || len(a.Classes) != 1 || a.Classes[0].Calls != 10 || a.Classes[0].Wait == nil {
		t.Errorf("damage %v, classes %+v; want again.Damage() nil, len(a.Classes) 1, a.Classes[0].Calls 10, a.Classes[0].Wait not nil",
			again.Damage(), a.Classes)
	}
}

// TestFileWithoutReadings opens a file that was made before it was noted which minutes were read: those that hold rows were.
func TestFileWithoutReadings(t *testing.T) {
	path := t.TempDir() + "/events.duckdb"
	s, err := OpenEmbedded(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	add(t, s, Minute{"db1", at(0), []Row{row(1, 1, 1), row(2, 1, 1)}}, Minute{"db1", at(5), []Row{row(1, 1, 1)}})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("duckdb", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), "DROP TABLE risso_readings"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = OpenEmbedded(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got, err := s.Covered(t.Context(), Range{at(0), at(10)}, nil, 10)
	if want := []Covered{{"db1", Range{at(0), at(1)}}, {"db1", Range{at(5), at(6)}}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v %v, want %v", got, err, want)
	}
}
