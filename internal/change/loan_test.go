package change

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

var (
	errBusy = errors.New("busy")
	errKept = errors.New("kept")
)

func loans(back func() error) Kind[[]string] {
	return Kind[[]string]{Name: "test", Command: "risso give back", Busy: errBusy, Kept: errKept, Within: time.Second, Final: func(error) bool { return false },
		Back: func(context.Context, *mysql.Conn, []string) error { return back() },
		Check: func(old []string) error {
			if slices.Contains(old, "evil") {
				return errors.New("it is evil")
			}
			return nil
		}}
}

// TestBorrow: who borrows is alone with it, and what he leaves when he is killed is found.
func TestBorrow(t *testing.T) {
	dir, server, target := t.TempDir(), mysql.Of(fleet.Server{Seat: fleet.Seat{Hostname: "db1", Port: 3306, DataDir: "/data"}}), mysql.Target{}
	k := loans(nil)
	if l, err := k.found(dir, target, server); l != nil || err != nil {
		t.Fatalf("found %v, %v, want nothing", l, err)
	}
	l, err := k.Borrow(dir, target, server, 42, []string{"a"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Borrow(dir, target, server, 42, nil); !errors.Is(err, errBusy) || !strings.HasSuffix(err.Error(), l.file.path+"; run risso give back") {
		t.Errorf("borrowed twice: %v, want that it is busy, where that is noted, and what to run", err)
	}
	if _, err := k.found(dir, target, server); !errors.Is(err, errBusy) {
		t.Errorf("what a living process has borrowed was found: %v, want that it is busy", err)
	}
	l.file.release() // as if killed
	again, err := k.found(dir, target, server)
	if err != nil || again == nil || again.record.Started != 42 || !slices.Equal(again.record.Old, []string{"a"}) {
		t.Fatalf("got %+v, %v, want what was borrowed", again, err)
	}
	again.file.release()
	if err := os.WriteFile(pathOf(dir, "test", server), []byte(`{"version":1,"old":["evil"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // it is not held after an error
		if l, err := k.found(dir, target, server); l != nil || err == nil || !strings.Contains(err.Error(), "it is evil") || errors.Is(err, errBusy) {
			t.Errorf("got %v, %v, want that the journal is evil", l, err)
		}
	}
}

// TestOlderJournal: the file of a process of an older Risso that was killed is found under its name, and read.
func TestOlderJournal(t *testing.T) {
	const name, text = "test-d42b04da27d36a13.json", `{
 "version": 1,
 "time": "2026-11-20T08:15:00.5Z",
 "pid": 4711,
 "host": "db1",
 "port": 3306,
 "data_dir": "/data",
 "started": 1789000000,
 "old": [
  "a",
  "b"
 ]
}`
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := loans(nil).found(dir, mysql.Target{}, mysql.Of(fleet.Server{Seat: fleet.Seat{Hostname: "db1", Port: 3306, DataDir: "/data"}}))
	if err != nil || l == nil {
		t.Fatalf("got %v, %v, want what %s says", l, err, name)
	}
	defer l.file.release()
	want := record[[]string]{Version: 1, Time: time.Date(2026, 11, 20, 8, 15, 0, 5e8, time.UTC), PID: 4711, Host: "db1", Port: 3306, DataDir: "/data", Started: 1789000000, Old: []string{"a", "b"}}
	if got := l.record; !slices.Equal(got.Old, want.Old) || !got.Time.Equal(want.Time) || got.Started != want.Started || got.PID != want.PID || got.DataDir != want.DataDir {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestGone: what was borrowed from a server that is gone stays noted and is reported; Return tries until its time is over.
func TestGone(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	target, err := mysql.ParseTarget("u@tcp(" + address + ")/")
	if err != nil {
		t.Fatal(err)
	}
	for _, final := range []bool{false, true} {
		dir := t.TempDir()
		k := loans(func() error { return nil })
		k.Final = func(error) bool { return final }
		loan, err := k.Borrow(dir, target, mysql.Of(fleet.Server{Seat: fleet.Seat{Hostname: "db1"}}), 42, []string{"a"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // it is given back nevertheless
		began := time.Now()
		err = loan.Execute(ctx, nil, Plan{{What: "x"}}, Log{})
		if !errors.Is(err, context.Canceled) || !errors.Is(err, errKept) || !strings.Contains(err.Error(), loan.file.path+": run risso give back") {
			t.Errorf("got %v, want why, where it is noted, and what to run", err)
		}
		if took := time.Since(began); (took < k.Within) != final {
			t.Errorf("an error that is final (%t) was told after %s; tried for %s", final, took, k.Within)
		}
		if left, err := k.found(dir, target, mysql.Of(fleet.Server{Seat: fleet.Seat{Hostname: "db1"}})); err != nil || left == nil {
			t.Errorf("got %v, %v, want what was borrowed", left, err)
		}
	}
}

// TestTake: who takes over a journal goes on with what it said last, alone.
func TestTake(t *testing.T) {
	dir, server, target := t.TempDir(), mysql.Of(fleet.Server{Seat: fleet.Seat{Hostname: "db1", Port: 3306, DataDir: "/data"}}), mysql.Target{}
	k := loans(nil)
	if l, err := k.Take(dir, target, server); l != nil || err != nil {
		t.Fatalf("took %v, %v, want nothing", l, err)
	}
	l, err := k.Borrow(dir, target, server, 0, []string{"a"})
	if err != nil {
		t.Fatal(err)
	}
	early, err := os.Open(l.Path()) // as somebody has it who looks at it just before it is replaced
	if err != nil {
		t.Fatal(err)
	}
	defer early.Close()
	since := l.Since()
	for _, text := range []string{"b", "c"} {
		if err := l.Note([]string{text}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := k.Take(dir, target, server); !errors.Is(err, errBusy) || lock(early) == nil {
		t.Errorf("took what a living process has: %v, want that it is busy, also the file that it replaced", err)
	}
	if err := l.Restarted(43); err != nil {
		t.Fatal(err)
	}
	l.Leave()
	again, err := k.Take(dir, target, server)
	if err != nil || again == nil || !slices.Equal(again.Old(), []string{"c"}) || !again.Since().Equal(since) || again.Started() != 43 {
		t.Fatalf("got %+v, %v, want what was noted last, since %s", again, err, since)
	}
	if err := again.Done(); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
