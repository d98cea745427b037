package repo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/store/blob"
)

func at(t *testing.T, dir string) Store {
	t.Helper()
	s, err := blob.Open(t.Context(), dir, blob.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return On(s)
}

// TestCopy: a second place gets the same files, only those that are missing, without an identity; what is damaged does not arrive.
func TestCopy(t *testing.T) {
	for _, encrypted := range []bool{false, true} {
		from, to := t.TempDir(), t.TempDir()
		var write, read Keys
		if encrypted {
			_, write, read = keys(t)
		}
		r := made(t, from, write)
		ids := five(t, r)
		if err := r.AddProof(t.Context(), Proof{Backup: ids[0], Time: time.Now(), JSON: []byte(`{"passed":true}`)}); err != nil {
			t.Fatal(err)
		}
		blind := opened(t, from, Keys{})
		dry, err := blind.CopyTo(t.Context(), at(t, to), CopyOptions{DryRun: true})
		if err != nil || len(files(t, to)) != 0 {
			t.Fatalf("got %+v, %v; a dry run wrote %d files; want none", dry, err, len(files(t, to)))
		}
		var last, total int64
		done, err := blind.CopyTo(t.Context(), at(t, to), CopyOptions{Threads: 1, Progress: func(d, n int64) { last, total = d, n }})
		if err != nil || !slices.Equal(done.Backups, ids) || done.Objects != 14 || done.Objects != dry.Objects || done.Bytes != dry.Bytes || last != total || total != done.Bytes {
			t.Fatalf("%+v, %v; the dry run said %+v; progress %d of %d; want done.Backups %v, done.Objects 14, done.Objects %v, done.Bytes %v, last %d, total %d",
				done, err, dry, last, total, ids, dry.Objects, dry.Bytes, total, done.Bytes)
		}
		words := dry.Steps.Words()
		if got := done.Steps.Words(); !slices.Equal(got, words) {
			t.Errorf("did\n%s\nwant what the dry run said:\n%s", strings.Join(got, "\n"), strings.Join(words, "\n"))
		}
		if len(words) != 7 || words[0] != "make repository "+r.ID || words[6] != "copy what drills found, and what was accepted: 1 object" ||
			!slices.EqualFunc(words[1:6], ids, func(got, id string) bool { return strings.HasPrefix(got, "copy backup "+id+": ") }) {
			t.Errorf("got the steps\n%s", strings.Join(words, "\n"))
		}
		if !maps.EqualFunc(files(t, from), files(t, to), slices.Equal) {
			t.Error("the files are not the same")
		}
		whole(t, opened(t, to, read), ids...)
		// One more backup: only what is new.
		more := back(t, r, time.Now(), map[string][]string{"s.t": {"always", "rows of today"}})
		if done, err = blind.CopyTo(t.Context(), at(t, to), CopyOptions{}); err != nil || !slices.Equal(done.Backups, []string{more}) || done.Objects != 1 || len(done.There) != 5 {
			t.Fatalf("got %+v, %v; want Backups %v, Objects 1, len(There) 5", done, err, []string{more})
		}
		if got := done.Steps.Words(); len(got) != 1 || !strings.HasPrefix(got[0], "copy backup "+more+": 1 object, ") {
			t.Errorf("got the steps %q; want len(got) 1, %q at the beginning of got[0]", got, "copy backup "+more+": 1 object, ")
		}
		copyStates(t, blind, to, ids[0])
		// Another repository is not written into.
		other := t.TempDir()
		made(t, other, Keys{})
		if _, err := blind.CopyTo(t.Context(), at(t, other), CopyOptions{}); !errors.Is(err, ErrOther) {
			t.Errorf("into another repository: got %v, want ErrOther", err)
		}
		if _, err := blind.CopyTo(t.Context(), at(t, to), CopyOptions{Backups: []string{"20200101T000000Z-000000"}}); !errors.Is(err, ErrNoBackup) {
			t.Errorf("got %v, want ErrNoBackup", err)
		}
		copyDamaged(t, from, ids[4])
	}
}

// copyStates are states of a second place, each made from the one before, and what a copy says that it will do; saying it changes nothing.
func copyStates(t *testing.T, r *Repo, to, id string) {
	t.Helper()
	for _, c := range []struct {
		name   string
		change func() error
		want   []string // how the steps begin
	}{
		{"all is there", func() error { return nil }, nil},
		{"a proof is missing", func() error { return os.RemoveAll(filepath.Join(to, "proofs")) }, []string{"copy what drills found, and what was accepted: 1 object"}},
		{"a backup is missing, too", func() error { return os.Remove(filepath.Join(to, "backups", id, "manifest")) }, []string{"copy backup " + id + ": 0 objects, 0 B", "copy what drills found"}},
		{"nothing is there", func() error { return errors.Join(os.RemoveAll(to), os.Mkdir(to, 0o700)) }, []string{"make repository", "copy backup " + id, "copy backup", "copy backup", "copy backup", "copy backup", "copy backup", "copy what drills found"}},
	} {
		if err := c.change(); err != nil {
			t.Fatal(err)
		}
		before := files(t, to)
		dry, err := r.CopyTo(t.Context(), at(t, to), CopyOptions{DryRun: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := dry.Steps.Words(); !slices.EqualFunc(got, c.want, strings.HasPrefix) {
			t.Errorf("%s: got the steps\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
		if !maps.EqualFunc(files(t, to), before, slices.Equal) {
			t.Errorf("%s: a dry run changed files", c.name)
		}
	}
}

// copyDamaged flips a bit of a part of a backup: that backup does not arrive, the others do.
func copyDamaged(t *testing.T, from, id string) {
	path := filepath.Join(from, "physical", id, "000000")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	c, err := opened(t, from, Keys{}).CopyTo(t.Context(), at(t, to), CopyOptions{})
	if err != nil || c.Whole() || len(c.Refused) != 1 || c.Refused[0].Kind != Damaged || c.Refused[0].What != "backup "+id {
		t.Errorf("what is damaged is copied: %+v, %v; want Whole() false, len(Refused) 1, Refused[0].Kind Damaged, Refused[0].What %v",
			c, err, "backup "+id)
	}
	list, err := opened(t, to, Keys{}).Backups(t.Context())
	if err != nil || len(list) != 5 { // the others, those after it, too
		t.Errorf("%d backups are there, %v; want 5", len(list), err)
	}
	for name := range files(t, to) {
		if strings.Contains(name, id) || strings.Contains(name, ".risso-") || strings.Contains(name, "unfinished") {
			t.Errorf("%s is there; want no %q in it, no \".risso-\" in it, no \"unfinished\" in it", name, id)
		}
	}
}

// failingPuts fails after so many.
type failingPuts struct {
	Store
	left atomic.Int64
}

func (f *failingPuts) Put(ctx context.Context, key string, r io.Reader) error {
	if f.left.Add(-1) < 0 {
		return errors.New("cut")
	}
	return f.Store.Put(ctx, key, r)
}

// TestCopyCut: a copy that is cut at any moment leaves whole backups or none, and goes on where it was.
func TestCopyCut(t *testing.T) {
	from := t.TempDir()
	r := made(t, from, Keys{})
	ids := five(t, r)
	for n := 1; n < 40; n += 3 {
		to := t.TempDir()
		cut := &failingPuts{Store: folder(to)}
		cut.left.Store(int64(n))
		_, err := r.CopyTo(t.Context(), cut, CopyOptions{})
		if err == nil && n < 20 {
			t.Fatal("it was not cut")
		}
		if o, err := OpenWith(t.Context(), folder(to), Keys{}); err == nil {
			if v, err := o.Verify(t.Context(), VerifyOptions{}); err != nil && !errors.Is(err, ErrNoBackup) || v != nil && slices.ContainsFunc(v.Problems, func(p Problem) bool {
				return p.Kind != Missing || !strings.HasSuffix(p.Key, "/manifest") // all but the word that the copy was cut
			}) {
				t.Fatalf("cut after %d puts: %+v, %v", n, v, err)
			}
		} else if !errors.Is(err, ErrNoRepository) {
			t.Fatalf("got %v, want ErrNoRepository", err)
		}
		have := int64(0)
		for name := range files(t, to) {
			if strings.HasPrefix(name, "data/") || strings.HasPrefix(name, "physical/") {
				have++
			}
		}
		done, err := r.CopyTo(t.Context(), folder(to), CopyOptions{})
		if err != nil || done.Objects != 14-have {
			t.Fatalf("%d objects were there; then %+v, %v; want Objects %v", have, done, err, 14-have)
		}
		o, err := Open(t.Context(), folder(to))
		if err != nil {
			t.Fatal(err)
		}
		whole(t, o, ids...)
	}
}

// TestCopyBesidePrune: what a concurrent copy brings is not removed before its manifest is there.
func TestCopyBesidePrune(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	r := made(t, from, Keys{})
	ids := five(t, r)
	if _, err := r.CopyTo(t.Context(), at(t, to), CopyOptions{Backups: ids[:1]}); err != nil {
		t.Fatal(err)
	}
	var p *Pruned
	var perr error
	n := 0
	_, err := r.CopyTo(t.Context(), at(t, to), CopyOptions{Backups: ids[1:2], Threads: 1, Progress: func(int64, int64) {
		if n++; n == 1 {
			p, perr = opened(t, to, Keys{}).Prune(t.Context(), PruneOptions{})
		}
	}})
	if err != nil || perr != nil || p.Objects != 0 || len(p.Running) != 1 {
		t.Fatalf("got %v; prune: %+v, %v; want Objects 0, len(Running) 1", err, p, perr)
	}
	whole(t, opened(t, to, Keys{}), ids[:2]...)
	if list, err := opened(t, to, Keys{}).Catalogue(t.Context()); err != nil || len(list) != 2 {
		t.Errorf("got %s, %v; want len(list) 2", fmt.Sprint(list), err)
	}
}

// TestCopyLogs: finished mirrored logs are copied, each once; one that is being written does not.
func TestCopyLogs(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	r := made(t, from, Keys{})
	back(t, r, time.Now(), map[string][]string{"s.t": {"x"}})
	write := func(name, text string) {
		p := filepath.Join(from, "binlog", "server", name)
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("b.000001.zst", "packed")
	write("b.000001.json", "{}")
	write("b.000002", "plain")
	write("b.000002.json", "{}")
	write("b.000003", "growing")
	for _, want := range []int64{2, 0} {
		if c, err := r.CopyTo(t.Context(), at(t, to), CopyOptions{}); err != nil || c.Logs != want {
			t.Fatalf("%+v, %v; want %d logs", c, err, want)
		}
	}
	all := files(t, to)
	if _, ok := all["binlog/server/b.000003"]; ok || string(all["binlog/server/b.000001.zst"]) != "packed" || string(all["binlog/server/b.000002"]) != "plain" || all["binlog/server/b.000002.json"] == nil {
		t.Errorf("got %q; want ok false, string(all[\"binlog/server/b.000001.zst\"]) \"packed\", string(all[\"binlog/server/b.000002\"]) \"plain\", all[\"binlog/server/b.000002.json\"] not nil",
			slices.Sorted(maps.Keys(all)))
	}
}
