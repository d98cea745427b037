// Package blobtest holds the conformance suite for adapters of blob, real servers to run it on, and a network in front of them that
// fails on demand.
package blobtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/store/blob"
)

// Bytes makes n bytes from a seed that do not compress.
func Bytes(seed uint64, n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)})
	_, _ = r.Read(b) // never fails
	return b
}

// Stream hides that a source could be read again.
func Stream(b []byte) io.Reader { return struct{ io.Reader }{bytes.NewReader(b)} }

// Run tests an adapter of the interface. open returns a store in an empty place, the same place for each name; size is one that
// the adapter moves in several pieces.
func Run(t *testing.T, size int, open func(t *testing.T, name string) blob.Store) {
	for name, f := range map[string]func(*testing.T, int, blob.Store){
		"round trip": roundTrip, "ranges": ranges, "names": names, "replace": replace, "list": list, "delete": remove,
		"not found": notFound, "broken source": brokenSource, "cancelled": cancelled, "at once": atOnce, "same name at once": sameName, "fresh at once": freshAtOnce,
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, strings.ReplaceAll(name, " ", "-"))
			defer s.Close()
			f(t, size, s)
		})
	}
}

// Get reads a blob whole.
func Get(ctx context.Context, s blob.Store, name string) ([]byte, error) {
	r, err := s.Get(ctx, name, 0, -1)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// Put keeps bytes and fails the test when that fails.
func Put(t *testing.T, s blob.Store, name string, b []byte) {
	t.Helper()
	if _, err := s.Put(t.Context(), name, bytes.NewReader(b), blob.PutOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Names lists all names of a store.
func Names(t *testing.T, s blob.Store, prefix string) []string {
	t.Helper()
	names := []string{}
	for i, err := range s.List(t.Context(), prefix) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, i.Name)
	}
	return names
}

// Leftovers lists what uploads left behind.
func Leftovers(t *testing.T, s blob.Store) []blob.Leftover {
	t.Helper()
	var all []blob.Leftover
	for l, err := range s.Leftovers(t.Context(), time.Now().Add(24*time.Hour)) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, l)
	}
	return all
}

func roundTrip(t *testing.T, size int, s blob.Store) {
	for _, n := range []int{0, 1, 1000, size - 1, size, size + 1, 2*size + 12345} {
		want := Bytes(uint64(n), n)
		for kind, r := range map[string]io.Reader{"bytes": bytes.NewReader(want), "a stream": Stream(want)} {
			name := fmt.Sprintf("trip/%d", n)
			put, err := s.Put(t.Context(), name, r, blob.PutOptions{})
			if err != nil || put.Size != int64(n) || put.Name != name {
				t.Fatalf("put %d bytes of %s: got %+v, %v; want put.Size %v, put.Name %v", n, kind, put, err, int64(n), name)
			}
			got, err := Get(t.Context(), s, name)
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("put %d bytes of %s, got %d bytes back (equal %t), %v", n, kind, len(got), bytes.Equal(got, want), err)
			}
			st, err := s.Stat(t.Context(), name)
			if err != nil || st.Size != int64(n) || st.Name != name || time.Since(st.Modified).Abs() > time.Minute {
				t.Fatalf("stat %+v, %v; want Size %v, Name %v, time.Since(st.Modified).Abs() at most time.Minute", st, err, int64(n), name)
			}
		}
	}
	if left := Leftovers(t, s); len(left) > 0 {
		t.Errorf("left over: got %v, want none", left)
	}
	// The part of a source that was read already is not stored.
	r := bytes.NewReader([]byte("headbody"))
	r.Seek(4, io.SeekStart)
	if _, err := s.Put(t.Context(), "trip/rest", r, blob.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, err := Get(t.Context(), s, "trip/rest"); err != nil || string(got) != "body" {
		t.Errorf("the rest of a source is %q, %v; want \"body\"", got, err)
	}
}

func ranges(t *testing.T, size int, s blob.Store) {
	n := size + 1000
	want := Bytes(7, n)
	Put(t, s, "r", want)
	for _, c := range []struct{ offset, length int }{{0, -1}, {0, 0}, {0, 1}, {1, 1}, {5, 100}, {n - 1, 1}, {n - 1, 100}, {n, -1}, {n, 10}, {n + 10, -1}, {n + 10, 5}, {100, -1}, {0, n}, {0, n + 1}, {1, size}} {
		r, err := s.Get(t.Context(), "r", int64(c.offset), int64(c.length))
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		got, err := io.ReadAll(r)
		from := min(c.offset, n)
		to := n
		if c.length >= 0 {
			to = min(n, from+c.length)
		}
		if err != nil || !bytes.Equal(got, want[from:to]) {
			t.Errorf("%+v: %d bytes, want %d, %v", c, len(got), to-from, err)
		}
		r.Close()
	}
	if r, err := s.Get(t.Context(), "r", -1, 5); err == nil {
		r.Close()
		t.Error("a negative offset is read")
	}
	// One that is not read to the end does no harm.
	r, err := s.Get(t.Context(), "r", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(r, make([]byte, 10)); err != nil {
		t.Error(err)
	}
	r.Close()
	if got, err := Get(t.Context(), s, "r"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("after that: %d bytes, %v", len(got), err)
	}
}

func names(t *testing.T, _ int, s blob.Store) {
	for _, name := range []string{"a", "data/odd%20%60name%2Ex/t%22/0123", "%C3%BC", "a.b,c=d+e@f-g_h", strings.Repeat("x", 240), "deep/" + strings.Repeat("d/", 40) + "er", "risso.json", "A/Å"[:2] + "b"} {
		want := []byte("content of " + name)
		Put(t, s, name, want)
		if got, err := Get(t.Context(), s, name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%q: got %q, %v; want %q", name, got, err, want)
		}
		if list := Names(t, s, name); !slices.Contains(list, name) {
			t.Errorf("%q is not in its list %q", name, list)
		}
	}
	for _, name := range []string{"", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/./b", "a b", "a\x00b", "ü", ".risso-x", "a/.risso-1/b", strings.Repeat("x", 256), strings.Repeat("x/", 500) + "x", "a?b", "a*b", `a\b`} {
		if _, err := s.Put(t.Context(), name, strings.NewReader("x"), blob.PutOptions{}); err == nil {
			t.Errorf("%.40q is taken", name)
		}
		if r, err := s.Get(t.Context(), name, 0, -1); err == nil {
			r.Close()
			t.Errorf("%.40q is given", name)
		}
		if err := s.Delete(t.Context(), name); err == nil {
			t.Errorf("%.40q is deleted", name)
		}
	}
}

func replace(t *testing.T, size int, s blob.Store) {
	for i, n := range []int{100, size + 5, 7, 0, 2000} {
		want := Bytes(uint64(i), n)
		Put(t, s, "one", want)
		if got, err := Get(t.Context(), s, "one"); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("after replacing: %d bytes, want %d, %v", len(got), n, err)
		}
	}
	if list := Names(t, s, ""); !slices.Equal(list, []string{"one"}) {
		t.Errorf("list %q, want []string{\"one\"}", list)
	}
}

func list(t *testing.T, _ int, s blob.Store) {
	if list := Names(t, s, ""); len(list) != 0 {
		t.Errorf("an empty place lists %q, want none", list)
	}
	all := []string{"a", "a-b", "a.b", "a/a", "a/b/c", "a0", "ab/c", "b/%2F", "b/a", "b/a/", "c"}
	all = slices.DeleteFunc(all, func(s string) bool { return blob.ValidName(s) != nil || s == "a" })
	for i := range 30 {
		all = append(all, fmt.Sprintf("n/%02d/%d", i%3, i))
	}
	for _, name := range all {
		if name == "b/a" {
			continue // a folder cannot hold a file and a folder of one name
		}
		Put(t, s, name, []byte(name))
	}
	all = slices.DeleteFunc(all, func(s string) bool { return s == "b/a" })
	slices.Sort(all)
	for _, prefix := range []string{"", "a", "a/", "a/b", "a/b/", "a/b/c", "a/b/cd", "b", "n/", "n/0", "n/01/", "n/01/1", "x", "x/y", "../", "..", "/"} {
		want := slices.DeleteFunc(slices.Clone(all), func(s string) bool { return !strings.HasPrefix(s, prefix) })
		if got := Names(t, s, prefix); !slices.Equal(got, want) {
			t.Errorf("list %q gives\n%q\nnot\n%q", prefix, got, want)
		}
	}
	for i, err := range s.List(t.Context(), "n/01/") {
		if err != nil || i.Size != int64(len(i.Name)) || time.Since(i.Modified).Abs() > time.Minute {
			t.Errorf("got %+v, %v; want Size %v, time.Since(i.Modified).Abs() at most time.Minute", i, err, int64(len(i.Name)))
		}
	}
	n := 0
	for range s.List(t.Context(), "n/") {
		if n++; n == 3 {
			break
		}
	}
	if n != 3 {
		t.Errorf("a list that was left after three gave %d, want 3", n)
	}
}

func remove(t *testing.T, _ int, s blob.Store) {
	for _, name := range []string{"d/e/f", "d/e/g", "d/h", "i"} {
		Put(t, s, name, []byte(name))
	}
	for _, name := range []string{"d/e/f", "d/e/f", "never/was", "i", "d/e/g"} {
		if err := s.Delete(t.Context(), name); err != nil {
			t.Errorf("delete %s: %v", name, err)
		}
	}
	if list := Names(t, s, ""); !slices.Equal(list, []string{"d/h"}) {
		t.Errorf("left: got %q, want []string{\"d/h\"}", list)
	}
	Put(t, s, "d/e/f", []byte("again"))
	if got, err := Get(t.Context(), s, "d/e/f"); err != nil || string(got) != "again" {
		t.Errorf("put again: got %q, %v; want \"again\"", got, err)
	}
}

func notFound(t *testing.T, _ int, s blob.Store) {
	Put(t, s, "dir/file", []byte("x"))
	for _, name := range []string{"nothing", "dir", "dir/other", "no/such/folder"} {
		if _, err := s.Stat(t.Context(), name); !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("stat %s: got %v, want blob.ErrNotFound", name, err)
		}
		for _, length := range []int64{-1, 0, 5} {
			r, err := s.Get(t.Context(), name, 0, length)
			if !errors.Is(err, blob.ErrNotFound) {
				t.Errorf("get %s: got %v, want blob.ErrNotFound", name, err)
			}
			if err == nil {
				r.Close()
			}
		}
	}
}

// failing returns n bytes and then an error.
type failing struct {
	r   io.Reader
	err error
}

func (f *failing) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if err == io.EOF {
		err = f.err
	}
	return n, err
}

func brokenSource(t *testing.T, size int, s blob.Store) {
	broken := errors.New("the source broke")
	Put(t, s, "there", []byte("old"))
	for _, n := range []int{0, 10, size, 2*size + 10} {
		for _, name := range []string{"there", "new"} {
			if _, err := s.Put(t.Context(), name, &failing{Stream(Bytes(1, n)), broken}, blob.PutOptions{}); !errors.Is(err, broken) {
				t.Errorf("got %d bytes, then an error: %v; want broken", n, err)
			}
		}
	}
	if got, err := Get(t.Context(), s, "there"); err != nil || string(got) != "old" {
		t.Errorf("what was there is now %d bytes, %v; want string(got) \"old\"", len(got), err)
	}
	if list := Names(t, s, ""); !slices.Equal(list, []string{"there"}) {
		t.Errorf("list %q, want []string{\"there\"}", list)
	}
	if left := Leftovers(t, s); len(left) > 0 {
		t.Errorf("left over: got %+v, want none", left)
	}
}

func cancelled(t *testing.T, size int, s blob.Store) {
	for _, n := range []int{10, 2*size + 10} {
		ctx, cancel := context.WithCancel(t.Context())
		src := &failing{Stream(Bytes(1, n)), io.EOF}
		r := readerFunc(func(p []byte) (int, error) {
			k, err := src.Read(p)
			if err == io.EOF {
				cancel() // all was read, nothing has its name yet
			}
			return k, err
		})
		if _, err := s.Put(ctx, "never", r, blob.PutOptions{}); !errors.Is(err, context.Canceled) {
			t.Errorf("a put that was cancelled ends with %v, want context.Canceled", err)
		}
		cancel()
	}
	if list := Names(t, s, ""); len(list) != 0 {
		t.Errorf("list %q, want none", list)
	}
	if left := Leftovers(t, s); len(left) > 0 {
		t.Errorf("left over: got %+v, want none", left)
	}
	Put(t, s, "big", Bytes(3, 2*size))
	ctx, cancel := context.WithCancel(t.Context())
	r, err := s.Get(ctx, "big", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := io.ReadFull(r, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := io.Copy(io.Discard, r); !errors.Is(err, context.Canceled) {
		t.Errorf("a get that was cancelled ends with %v, want context.Canceled", err)
	}
	if _, err := s.Stat(t.Context(), "big"); err != nil {
		t.Errorf("another call after that: %v", err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// Parallel runs f n times concurrently and returns the first error.
func Parallel(n int, f func(i int) error) error {
	errs := make(chan error, n)
	for i := range n {
		go func() { errs <- f(i) }()
	}
	var first error
	for range n {
		if err := <-errs; first == nil {
			first = err
		}
	}
	return first
}

func atOnce(t *testing.T, size int, s blob.Store) {
	err := Parallel(12, func(i int) error {
		for j := range 4 {
			want := Bytes(uint64(i*10+j), []int{100, size / 2, 3000, 0}[j])
			name := fmt.Sprintf("p/%d/%d", i, j)
			if _, err := s.Put(t.Context(), name, Stream(want), blob.PutOptions{}); err != nil {
				return err
			}
			got, err := Get(t.Context(), s, name)
			if err != nil || !bytes.Equal(got, want) {
				return fmt.Errorf("%s: %d bytes of %d: %w", name, len(got), len(want), err)
			}
			if j == 2 {
				if err := s.Delete(t.Context(), name); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(Names(t, s, "p/")); n != 36 {
		t.Errorf("got %d blobs, want 36", n)
	}
}

// sameName puts and gets one blob from many sides: readers see one of them, complete.
func sameName(t *testing.T, size int, s blob.Store) {
	var whole sync.Map
	contents := make([][]byte, 4)
	for i := range contents {
		contents[i] = Bytes(uint64(i), size/8+i)
		whole.Store(sha256.Sum256(contents[i]), true)
	}
	Put(t, s, "same", contents[0])
	err := Parallel(8, func(i int) error {
		for j := range 6 {
			if i%2 == 0 {
				if _, err := s.Put(t.Context(), "same", bytes.NewReader(contents[(i+j)%4]), blob.PutOptions{}); err != nil {
					return err
				}
				continue
			}
			got, err := Get(t.Context(), s, "same")
			if err != nil {
				return err
			}
			if _, ok := whole.Load(sha256.Sum256(got)); !ok {
				return fmt.Errorf("read %d bytes that nobody put", len(got))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// freshAtOnce puts one name from many sides, each only if there is none: one wins, and its bytes stay.
func freshAtOnce(t *testing.T, _ int, s blob.Store) {
	var won atomic.Int64
	won.Store(-1)
	err := Parallel(8, func(i int) error {
		_, err := s.Put(t.Context(), "in/fresh", bytes.NewReader(Bytes(uint64(i), 300)), blob.PutOptions{Fresh: true})
		switch {
		case errors.Is(err, blob.ErrExists):
			return nil
		case err == nil && !won.CompareAndSwap(-1, int64(i)):
			return errors.New("two have won")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := Get(t.Context(), s, "in/fresh")
	if err != nil || won.Load() < 0 || !bytes.Equal(got, Bytes(uint64(won.Load()), 300)) {
		t.Fatalf("%d won, and its bytes are not there: %v", won.Load(), err)
	}
	if list := Leftovers(t, s); len(list) > 0 {
		t.Errorf("left: got %v, want none", list)
	}
}
