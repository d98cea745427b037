package mirror

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/binlogevent"
	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestSigned forges a mirror in every way: what the mirror did not sign is not read, unless what is unsigned was asked for; and a mirror
// that continues signs nothing that the server does not have.
func TestSigned(t *testing.T) {
	n := sandboxtest.Up(t, "mariadb", settings("mariadb")...)
	db := open(t, n)
	exec1(t, db, "CREATE TABLE test.t (id INT PRIMARY KEY, v TEXT)")
	load(t, db, 0, 200)
	at := 1000
	who, sealed, cache := encrypted(t)
	for name, c := range map[string]struct {
		dir         string
		write, read repo.Keys
	}{"plain": {t.TempDir(), repo.Keys{}, repo.Keys{}}, "encrypted": {sealed, repo.Keys{CacheDir: cache}, who}} {
		t.Run(name, func(t *testing.T) {
			o := Options{Target: target(t, n), Place: keyed(c.dir, c.write), Dir: c.dir, Once: true, Note: func(n Note) { t.Log(n.Text) }}
			if err := Follow(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			sameIn(t, keyed(c.dir, c.read), c.dir, serverLogs(t, n))
			forgedLogs(t, c.dir, keyed(c.dir, c.read))
			goesOn(t, o, func() { sameIn(t, keyed(c.dir, c.read), c.dir, serverLogs(t, n)) }, func() { load(t, db, at, at+40); at += 40 })
		})
	}
}

// readLog reads a log of a mirror to its end.
func readLog(t *testing.T, f binlog.File) ([]byte, error) {
	t.Helper()
	in, err := f.Open(t.Context())
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return io.ReadAll(in)
}

// forgedLogs tries the forgeries on copies of a mirror.
func forgedLogs(t *testing.T, model string, place Place) {
	list, err := List(t.Context(), place, model)
	if err != nil || len(list) != 1 || len(list[0].Logs) < 4 {
		t.Fatalf("got %+v, %v; want len(list) 1, len(list[0].Logs) at least 4", list, err)
	}
	s := list[0]
	first, second, last := s.Logs[0].Name, s.Logs[1].Name, len(s.Logs)-1
	ext := place.ext()
	put := func(dir, name string, b []byte) {
		t.Helper()
		p := filepath.Join(dir, root, s.Key, name)
		os.Remove(p) // files put there are not writable
		if err := os.WriteFile(p, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	get := func(dir, name string) []byte {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(dir, root, s.Key, name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	growing := s.Logs[last].Name
	for _, c := range []struct {
		name  string
		log   int
		forge func(dir string)
		want  error // nil: it is read, without what is not signed
		loose bool  // it is read where what is unsigned may be
	}{
		{"as it was", 0, func(string) {}, nil, true},
		{"another log in its place", 0, func(dir string) { put(dir, first+ext, get(dir, second+ext)) }, repo.ErrForged, false},
		{"another log with its index", 0, func(dir string) {
			put(dir, first+ext, get(dir, second+ext))
			put(dir, first+extIndex, bytes.Replace(get(dir, second+extIndex), []byte(second), []byte(first), 1))
		}, repo.ErrForged, false},
		{"another size in the index", 0, func(dir string) {
			put(dir, first+extIndex, bytes.Replace(get(dir, first+extIndex), []byte(`"size": `), []byte(`"size": 1`), 1))
		}, repo.ErrForged, false},
		{"no signature", 0, func(dir string) {
			put(dir, first+extIndex, bytes.Replace(get(dir, first+extIndex), []byte(`"signature": {`), []byte(`"was": {`), 1))
		}, repo.ErrUnsigned, true},
		{"bytes behind the last that is signed", last, func(dir string) {
			b := get(dir, growing)
			last := b[4:]
			for !place.encrypted() {
				h := binlogevent.ParseHeader(last)
				if int(h.Length) == len(last) {
					break
				}
				last = last[h.Length:]
			}
			put(dir, growing, append(b, last...)) // an event once more
		}, nil, true},
		{"a log that grows is cut", last, func(dir string) { b := get(dir, growing); put(dir, growing, b[:len(b)-30]) }, repo.ErrForged, false},
		{"a log that grows has another byte", last, func(dir string) { b := get(dir, growing); b[len(b)-30] ^= 1; put(dir, growing, b) }, repo.ErrForged, false},
		{"a log that grows is another one", last, func(dir string) {
			put(dir, growing+extSigned, bytes.ReplaceAll(get(dir, growing+extSigned), []byte(`"size":`), []byte(`"size":1`)))
		}, repo.ErrUnsigned, true},
		{"a log that grows without its signature", last, func(dir string) { os.Remove(filepath.Join(dir, root, s.Key, growing+extSigned)) }, repo.ErrUnsigned, true},
	} {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(model)); err != nil {
			t.Fatal(err)
		}
		c.forge(dir)
		for _, loose := range []bool{false, true} {
			p := keyed(dir, repo.Keys{})
			p.Repo, p.Policy = place.Repo, onlyKey{repo.PublicOf(testKey), loose}
			if p.Repo != nil {
				p.Store = keyed(dir, repo.Keys{}).Store
			}
			said := ""
			p.Said = func(text string) { said = text }
			series := s
			if list, err := List(t.Context(), p, dir); err == nil {
				series = list[0]
			} else if c.log != last {
				t.Fatalf("got %v, want c.log %v", err, last)
			}
			want, wantErr := get(model, growing), c.want
			if loose && c.loose {
				wantErr = nil
			}
			got, err := readLog(t, series.Files(p, dir)[c.log])
			switch {
			case !errors.Is(err, wantErr) && !(c.want == repo.ErrForged && errors.Is(err, repo.ErrDamaged)):
				t.Errorf("%s, unsigned allowed %t: %v, not %v", c.name, loose, err, wantErr)
			case strings.HasPrefix(c.name, "bytes behind") && !loose && !place.encrypted() && !bytes.Equal(got, want):
				t.Errorf("%s: %d bytes of %d are read", c.name, len(got), len(want))
			case strings.HasPrefix(c.name, "bytes behind") && !loose && !place.encrypted() && !strings.Contains(said, "its last "):
				t.Errorf("%s: it is not told: %q", c.name, said)
			}
		}
	}
	changedSince(t, model, place, s)
}

// changedSince reads a finished log that somebody else signed, that is finished while it is looked for, and that somebody changes
// between two readings.
func changedSince(t *testing.T, model string, place Place, s Series) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(model)); err != nil {
		t.Fatal(err)
	}
	p := keyed(dir, repo.Keys{})
	p.Repo, p.Policy = place.Repo, onlyKey{key: "ed25519:other", unsigned: true}
	if _, err := readLog(t, s.Files(p, dir)[0]); !errors.Is(err, repo.ErrForeign) {
		t.Errorf("by another key: got %v, want repo.ErrForeign", err)
	}
	p.Policy = onlyKey{key: repo.PublicOf(testKey)}
	first := filepath.Join(root, s.Key, s.Logs[0].Name)
	late := p
	late.Store = &lateIndex{Store: p.Store, key: first + extIndex}
	grew := Series{Key: s.Key, Logs: []Log{{Index: binlog.Index{Name: s.Logs[0].Name, Size: s.Logs[0].Size}}}}
	if got, err := readLog(t, grew.Files(late, dir)[0]); err != nil || int64(len(got)) != s.Logs[0].Size {
		t.Errorf("finished meanwhile: got %d bytes, %v; want s.Logs[0].Size", len(got), err)
	}
	f := s.Files(p, dir)[0]
	if _, err := readLog(t, f); err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile(filepath.Join(dir, root, s.Key, s.Logs[1].Name+place.ext()))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, first+place.ext())
	os.Remove(file) // files put there are not writable
	if err := os.WriteFile(file, other, 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := readLog(t, f); !errors.Is(err, repo.ErrForged) && !errors.Is(err, io.ErrUnexpectedEOF) || len(b) > 0 {
		t.Errorf("it has changed since: %d bytes, %v", len(b), err)
	}
}

// lateIndex is a place where an index is not there yet when it is asked for the first time.
type lateIndex struct {
	repo.Store
	key   string
	asked bool
}

func (l *lateIndex) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	if key == l.key && !l.asked {
		l.asked = true
		return nil, fs.ErrNotExist
	}
	return l.Store.Get(ctx, key)
}

// goesOn lets a mirror go on with a log that somebody changed while it was away, or that it had not signed.
func goesOn(t *testing.T, o Options, same, more func()) {
	newest := func() string {
		logs, err := localLogs(o.Dir)
		if err != nil || len(logs) == 0 {
			t.Fatalf("got %v, %v; want not 0", logs, err)
		}
		return logs[len(logs)-1].path
	}
	follow := func(says string) {
		t.Helper()
		said := ""
		o.Note = func(n Note) { said += n.Text + "\n" }
		if err := Follow(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(said, says) || says == "" && strings.Contains(said, "not signed") {
			t.Errorf("no %q in %q", says, said)
		}
		same()
	}
	for _, change := range []struct {
		says string
		do   func(path string) error
	}{
		{"", func(path string) error { return os.Remove(path + extSigned) }}, // as an older version left it
		{"", func(path string) error { return os.Truncate(path+extSigned, signedSlot/2) }},
		{"set aside", func(path string) error {
			b, err := os.ReadFile(path)
			if err == nil {
				b[len(b)/2] ^= 1
			}
			return errors.Join(err, os.WriteFile(path, b, 0o600))
		}},
	} {
		more()
		if err := Follow(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if err := change.do(newest()); err != nil {
			t.Fatal(err)
		}
		if o.Place.encrypted() { // what cannot be opened was cut off, and comes again
			change.says = ""
		}
		follow(change.says)
	}
}
