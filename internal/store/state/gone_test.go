package state

import (
	"os"
	"path/filepath"
	"testing"
)

// TestGone: of a file that is removed, or replaced, under whoever has it open all is in the copy, and the copy is a state.
func TestGone(t *testing.T) {
	for name, take := range map[string]func(path string) error{
		"removed": func(path string) error { return os.Remove(path) },
		"replaced": func(path string) error {
			if err := os.Remove(path); err != nil {
				return err
			}
			other, err := Open(t.Context(), path)
			if err != nil {
				return err
			}
			return other.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "state.db")
			s, err := Open(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			put := func(key string) {
				t.Helper()
				if _, err := s.PutDocument(t.Context(), Document{Kind: "k", Key: key, By: "test", Body: []byte("{}")}); err != nil {
					t.Fatal(err)
				}
			}
			put("before")
			if copied, err := s.Gone(t.Context()); copied != "" || err != nil {
				t.Errorf("of one that is there: %s, %v", copied, err)
			}
			for _, end := range []string{"-wal", "-shm"} {
				if err := os.Remove(path + end); err != nil {
					t.Fatal(err)
				}
			}
			if err := take(path); err != nil {
				t.Fatal(err)
			}
			copied, err := s.Gone(t.Context())
			if copied == "" || err != nil {
				t.Fatalf("got %q, %v", copied, err)
			}
			put("after")
			if _, err := s.Gone(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			for _, end := range []string{"-wal", "-shm"} {
				_ = os.Remove(path + end)
			}
			if err := os.Rename(copied, path); err != nil {
				t.Fatal(err)
			}
			if s, err = Open(t.Context(), path); err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			list, err := s.Documents(t.Context(), "k")
			if err != nil || len(list) != 2 {
				t.Errorf("the copy has %+v, %v", list, err)
			}
			if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
				t.Errorf("%v, %v", st.Mode(), err)
			}
		})
	}
}
