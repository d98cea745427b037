package change

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

func TestJournal(t *testing.T) {
	dir, server := filepath.Join(t.TempDir(), "state of [db1]"), mysql.Of(fleet.Server{Seat: fleet.Seat{Hostname: "db1", Port: 3306, DataDir: "/data"}})
	if f, _, err := take[[]string](dir, "test", server); f != nil || err != nil {
		t.Fatalf("%v, %v where there is nothing; want nil", f, err)
	}
	f, err := write(dir, "test", server, 42, []string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	if !anyOf(dir, "test") || anyOf(dir, "tes") || anyOf(filepath.Join(dir, "nowhere"), "test") {
		t.Error("whether there is a journal")
	}
	if _, err := write(dir, "test", server, 42, []string{"c"}); !errors.Is(err, errExists) {
		t.Errorf("a second journal: got %v, want errExists", err)
	}
	if _, _, err := take[[]string](dir, "test", server); !errors.Is(err, errHeld) {
		t.Errorf("a journal that is held was taken: %v, want errHeld", err)
	}
	other := server
	other.Port = 3307
	if g, _, err := take[[]string](dir, "test", other); g != nil || err != nil {
		t.Errorf("another server has the journal: %v, %v; want nil", g, err)
	}
	f.release() // as if killed
	g, c, err := take[[]string](dir, "test", server)
	if err != nil || g == nil {
		t.Fatalf("got %v, %v; want not nil", g, err)
	}
	if c.Started != 42 || c.PID != os.Getpid() || c.Host != "db1" || !slices.Equal(c.Old, []string{"a", "b"}) || time.Since(c.Time) > time.Minute {
		t.Errorf("got %+v; want Started 42, PID os.Getpid(), Host \"db1\", Old []string{\"a\", \"b\"}, time.Since(c.Time) at most time.Minute", c)
	}
	if err := g.remove(); err != nil {
		t.Fatal(err)
	}
	if list, _ := os.ReadDir(dir); len(list) != 0 {
		t.Errorf("%v is left, want none", list)
	}
}

func TestDamagedJournal(t *testing.T) {
	dir, server := t.TempDir(), mysql.Of(fleet.Server{Seat: fleet.Seat{Hostname: "db1"}})
	for _, content := range []string{"", "{", `{"version": 99}`} {
		if err := os.WriteFile(pathOf(dir, "test", server), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if f, _, err := take[[]string](dir, "test", server); f != nil || !errors.Is(err, errDamage) {
			t.Errorf("%q: got %v, %v; want f nil, errDamage", content, f, err)
		}
	}
}

// TestSweep removes what is half written and old, and nothing else.
func TestSweep(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "of [db1]")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	old, fresh := filepath.Join(dir, ".test-1"), filepath.Join(dir, ".test-2")
	for _, path := range []string{old, fresh} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	long := time.Now().Add(-2 * halfWritten)
	if err := os.Chtimes(old, long, long); err != nil {
		t.Fatal(err)
	}
	f, err := write(dir, "test", mysql.Server{}, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer f.release()
	if _, err := os.Stat(old); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the old one: got %v, want os.ErrNotExist", err)
	}
	if _, err := os.Stat(fresh); err != nil {
		t.Error(err)
	}
}
