package aside

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestMove(t *testing.T) {
	path := filepath.Join(t.TempDir(), "facts.db")
	now := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	for _, want := range []string{path + ".damaged-20261121T140000Z", path + ".damaged-20261121T140000Z-1", path + ".damaged-20261121T140000Z-2"} {
		for _, suffix := range []string{"", "-wal"} {
			if err := os.WriteFile(path+suffix, []byte("bytes"+suffix), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		to, err := Move(path, now, "-wal", "-shm")
		if err != nil || to != want {
			t.Fatalf("moved to %s, %v; want %s", to, err, want)
		}
		for _, suffix := range []string{"", "-wal"} {
			if b, err := os.ReadFile(to + suffix); err != nil || string(b) != "bytes"+suffix {
				t.Errorf("%s holds %q, %v; want %v", to+suffix, b, err, "bytes"+suffix)
			}
			if _, err := os.Stat(path + suffix); err == nil {
				t.Errorf("%s is still there", path+suffix)
			}
		}
	}
	if _, err := Move(path, now); err == nil {
		t.Error("a file that is not there was moved")
	}
}
