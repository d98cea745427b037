package change

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDiary: each line is there as soon as it is noted, and stays.
func TestDiary(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	d, err := NewDiary(dir, "test")
	if err != nil {
		t.Fatal(err)
	}
	want := ""
	for _, line := range []string{"a", "b"} {
		if err := d.Note(map[string]string{"was": line}); err != nil {
			t.Fatal(err)
		}
		want += `{"was":"` + line + "\"}\n"
		if got, err := os.ReadFile(d.Path()); err != nil || string(got) != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	if err := d.Note(func() {}); err == nil || !strings.Contains(err.Error(), "write the journal") {
		t.Errorf("what is no JSON: error %v, want one", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.Note(1); err == nil {
		t.Error("noted behind the end: no error, want one")
	}
	for range 3 {
		again, err := NewDiary(dir, "test")
		if err != nil {
			t.Fatalf("another one in the same second: %v", err)
		}
		again.Close()
	}
	if info, err := os.Stat(d.Path()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v, want a file that only this account reads", info, err)
	}
}
