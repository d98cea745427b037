package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/rissodb/risso/internal/fleet"
)

// TestBackup: what was there at the moment is in it, whoever writes meanwhile, and what is not whole is refused.
func TestBackup(t *testing.T) {
	files, _ := shareStores(t, 1)
	s, ctx, dir := files[0], t.Context(), t.TempDir()
	for n := range 8 {
		if err := everything(ctx, s, n); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.AddEvents(ctx, fleet.Event{Text: "kept, too"}); err != nil {
		t.Fatal(err)
	}
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			if _, err := s.PutDocument(ctx, Document{Kind: "busy", Key: fmt.Sprint(n), Body: json.RawMessage("{}")}); err != nil {
				done <- err
				return
			}
		}
	}()
	xor := func(w io.Writer) (io.WriteCloser, error) { return endless{xorWriter{w}}, nil }
	unxor := func(r io.Reader) (io.Reader, error) { return xorReader{r}, nil }
	for _, sealed := range []bool{false, true} {
		file := filepath.Join(dir, fmt.Sprint("b", sealed))
		seal, unseal := xor, unxor
		if !sealed {
			seal, unseal = nil, nil
		}
		h, err := WriteBackup(ctx, s.path, file, "test", seal)
		if err != nil {
			t.Fatal(err)
		}
		if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("others may read the hashes: %v, %v", st.Mode(), err)
		}
		if _, err := WriteBackup(ctx, s.path, file, "test", seal); !errors.Is(err, os.ErrExist) {
			t.Errorf("a backup was overwritten: %v", err)
		}
		to := filepath.Join(t.TempDir(), "state.db")
		if err := RestoreBackup(ctx, file, to, unseal); err != nil {
			t.Fatal(err)
		}
		back := openStore(t, to)
		if list, err := back.Events(ctx, EventQuery{}); err != nil || len(list) != 1 {
			t.Errorf("got events %v, %v; want one", list, err)
		}
		if list, err := back.Tokens(ctx); err != nil || len(list) != 5 {
			t.Errorf("got %d tokens, %v; want 5", len(list), err)
		}
		if _, shared, err := back.Identity(ctx); shared || err != nil {
			t.Errorf("what was restored is shared: %v, %v", shared, err)
		}
		if err := RestoreBackup(ctx, file, to, unseal); !errors.Is(err, os.ErrExist) {
			t.Errorf("a state was overwritten: %v", err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		head, _ := json.Marshal(h)
		newer := h
		newer.Schema++
		newHead, _ := json.Marshal(newer)
		for name, bad := range map[string]struct {
			text []byte
			want error
		}{
			"half":    {text[:len(text)/2], ErrDamaged},
			"a bit":   {append(bytes.Clone(text[:len(text)-9]), text[len(text)-9]^1), ErrDamaged},
			"more":    {append(bytes.Clone(text), 'x'), ErrDamaged},
			"foreign": {[]byte("SQLite format 3\x00\n"), ErrForeign},
			"empty":   {nil, ErrForeign},
			"newer":   {append(newHead, text[len(head):]...), ErrNewer},
		} {
			broken := filepath.Join(t.TempDir(), "b")
			if err := os.WriteFile(broken, bad.text, 0o600); err != nil {
				t.Fatal(err)
			}
			to := filepath.Join(t.TempDir(), "state.db")
			if err := RestoreBackup(ctx, broken, to, unseal); !errors.Is(err, bad.want) {
				t.Errorf("%s: got %v, want %v", name, err, bad.want)
			}
			if _, err := os.Stat(to); err == nil {
				t.Errorf("%s: there is a state file", name)
			}
		}
	}
	t.Chdir(filepath.Dir(s.path))
	if _, err := WriteBackup(ctx, filepath.Base(s.path), filepath.Join(dir, "relative"), "test", nil); err != nil {
		t.Errorf("by a relative path: %v", err)
	}
	close(stop)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

type xorWriter struct{ w io.Writer }

func (x xorWriter) Write(p []byte) (int, error) {
	q := bytes.Clone(p)
	for i := range q {
		q[i] ^= 0x55
	}
	return x.w.Write(q)
}

type xorReader struct{ r io.Reader }

func (x xorReader) Read(p []byte) (int, error) {
	n, err := x.r.Read(p)
	for i := range p[:n] {
		p[i] ^= 0x55
	}
	return n, err
}
