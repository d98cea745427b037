package change

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/mysql"
)

// TestSameStart: two readings of one start are at most two seconds apart, whichever clock is ahead.
func TestSameStart(t *testing.T) {
	for apart, want := range map[int64]bool{0: true, 1: true, 2: true, 3: false, 1000: false} {
		for _, sign := range []int64{1, -1} {
			if got := sameStart(1_700_000_000, 1_700_000_000+sign*apart); got != want {
				t.Errorf("%d s apart: got one life %v, want %v", sign*apart, got, want)
			}
		}
	}
}

// TestKeptPrivate: nobody else can read a folder that Risso makes for journals.
func TestKeptPrivate(t *testing.T) {
	journals, diaries := filepath.Join(t.TempDir(), "journals"), filepath.Join(t.TempDir(), "diaries")
	f, err := write(journals, "test", mysql.Server{}, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	d, err := NewDiary(diaries, "test")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{journals, diaries} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("got %v, %v; want a folder of mode 700", info.Mode(), err)
		}
	}
	if err := errors.Join(f.remove(), f.remove(), d.Close()); err != nil {
		t.Errorf("removed twice: got %v, want none", err)
	}
	if f.file != nil {
		t.Errorf("got the file still open behind its end: got %v, want nil", f.file)
	}
}

// TestSweepAge: what is half written is left for a minute.
func TestSweepAge(t *testing.T) {
	for age, stays := range map[time.Duration]bool{0: true, 55 * time.Second: true, 61 * time.Second: false, 90 * time.Second: false} {
		dir := t.TempDir()
		path := filepath.Join(dir, ".test-1")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-age)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
		sweep(dir, "test")
		if _, err := os.Stat(path); (err == nil) != stays {
			t.Errorf("%v old: got %v, want it to stay %v", age, err, stays)
		}
	}
}
