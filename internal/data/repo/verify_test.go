package repo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestVerify: any changed bit, in any file, with an identity or without, is found and blamed on the backups that
// need it; so is any missing file. What no backup needs is counted.
func TestVerify(t *testing.T) {
	for _, encrypted := range []bool{false, true} {
		t.Run(fmt.Sprintf("encrypted %t", encrypted), func(t *testing.T) {
			dir := t.TempDir()
			var write, read Keys
			if encrypted {
				_, write, read = keys(t)
			}
			now := time.Now()
			r := made(t, dir, write)
			one := back(t, r, now.Add(-2*time.Hour), map[string][]string{"s.t": {"rows 1", "rows 2"}, "s.empty": nil}, "files")
			two := back(t, r, now.Add(-time.Hour), map[string][]string{"s.t": {"rows 1", "rows 3"}, "s.other": {strings.Repeat("x", 5000)}})
			if err := r.AddProof(t.Context(), Proof{Backup: one, Time: now, JSON: []byte(`{"whole":true}`)}); err != nil {
				t.Fatal(err)
			}
			k, err := r.NewKeeper()
			if err != nil {
				t.Fatal(err)
			}
			nobody, err := k.Keep(t.Context(), "s", "t", []byte("of a backup that was killed"))
			if err != nil {
				t.Fatal(err)
			}
			ways := map[string]Keys{"keys": read}
			if encrypted {
				ways["no identity"] = Keys{}
			}
			for way, k := range ways {
				r := opened(t, dir, k)
				v, err := r.Verify(t.Context(), VerifyOptions{})
				if err != nil || !v.Whole() || v.Objects != 5 || v.Superfluous != 1 || v.SuperBytes != nobody.Stored || !slices.Equal(v.Backups, []string{one, two}) || v.SealsOnly != (way == "no identity") {
					t.Fatalf("%s: got %+v, %v; want Whole() true, Objects 5, Superfluous 1, SuperBytes %v, Backups %v, SealsOnly %v",
						way, v, err, nobody.Stored, []string{one, two}, way == "no identity")
				}
				if v, err := r.Verify(t.Context(), VerifyOptions{Backups: []string{two}}); err != nil || !v.Whole() || v.Objects != 3 || v.Superfluous != 1 {
					t.Errorf("%s: got %+v, %v; want Whole() true, Objects 3, Superfluous 1", way, v, err)
				}
				damageAll(t, dir, k, nobody.Hash, one, two)
			}
		})
	}
}

// damageAll flips bits of every file, and takes each away.
func damageAll(t *testing.T, dir string, k Keys, nobody, one, two string) {
	for name, b := range files(t, dir) {
		if strings.HasSuffix(name, nobody) {
			continue
		}
		path := filepath.Join(dir, name)
		step := max(1, len(b)/9)
		for i := -1; i < len(b); i += step {
			what := "bit of byte " + fmt.Sprint(i)
			damaged := bytes.Clone(b)
			if i < 0 {
				what = "gone"
				os.Remove(path)
			} else {
				damaged[i] ^= 1 << (i % 8)
				os.WriteFile(path, damaged, 0o600)
			}
			r, err := openedAgain(dir, k)
			var v *Verified
			if err == nil {
				v, err = r.Verify(context.Background(), VerifyOptions{})
			}
			switch {
			case name == "risso.json" && errors.Is(err, ErrDamaged), name == "risso.json" && i < 0 && errors.Is(err, ErrHeadless):
			case name == namesKey && len(k.Identities) > 0 && err != nil: // opening needs it
			case strings.HasSuffix(name, "/head") && i < 0, strings.HasSuffix(name, "/objects") && i < 0 && v != nil && !v.SealsOnly, strings.HasPrefix(name, "proofs/") && i < 0: // it goes without
			case err != nil || v.Whole():
				t.Fatalf("%s: %s is not found: %+v, %v", name, what, v, err)
			default:
				checkBlame(t, name, v, one, two)
			}
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func openedAgain(dir string, k Keys) (*Repo, error) {
	return OpenWith(context.Background(), folder(dir), k)
}

// checkBlame: chunk "rows 1" is both backups', other chunks and parts one's.
func checkBlame(t *testing.T, name string, v *Verified, one, two string) {
	t.Helper()
	p := v.Problems[0]
	if len(v.Problems) != 1 || p.Key != name {
		t.Fatalf("%s: got %+v; want len(v.Problems) 1, p.Key %v", name, v.Problems, name)
	}
	switch {
	case strings.HasPrefix(name, "physical/") || strings.Contains(name, one):
		if !slices.Equal(p.Backups, []string{one}) && !strings.HasPrefix(name, "proofs/") {
			t.Fatalf("%s is blamed on %q", name, p.Backups)
		}
	case strings.HasPrefix(name, "data/s/other/"):
		if !slices.Equal(v.Broken, []string{two}) {
			t.Fatalf("%s breaks %q, want %q", name, v.Broken, []string{two})
		}
	case strings.HasPrefix(name, "data/"):
		if len(v.Broken) == 0 || len(v.Broken) != len(p.Backups) {
			t.Fatalf("%s breaks %q, concerns %q; want len(v.Broken) not 0, len(v.Broken) %v", name, v.Broken, p.Backups, len(p.Backups))
		}
	}
}

// TestVerifyResumes: an interrupted run goes on, and what it goes on with is what it verified.
func TestVerifyResumes(t *testing.T) {
	dir := t.TempDir()
	r := made(t, dir, Keys{})
	tables := map[string][]string{}
	for i := range 300 {
		tables[fmt.Sprintf("s.t%d", i)] = []string{fmt.Sprint("rows ", i)}
	}
	back(t, r, time.Now(), tables)
	journal := filepath.Join(t.TempDir(), "sub", "journal")
	ctx, cancel := context.WithCancel(t.Context())
	done := 0
	_, err := r.Verify(ctx, VerifyOptions{Journal: journal, Threads: 1, Progress: func(int64, int64) {
		if done++; done == 200 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want context.Canceled", err)
	}
	st, err := os.Stat(journal)
	if err != nil || st.Size() < 100*8 {
		t.Fatalf("got %v, %v; want Size() at least 100 * 8", st, err)
	}
	// The end is torn, as a kill may leave it.
	if err := os.Truncate(journal, st.Size()-3); err != nil {
		t.Fatal(err)
	}
	var last, total int64
	v, err := r.Verify(t.Context(), VerifyOptions{Journal: journal, Progress: func(d, n int64) { last, total = max(last, d), n }, Threads: 1})
	if err != nil || !v.Whole() || v.Again < 100 || v.Again >= 300 || v.Objects != 300 || last != total || total != v.Bytes {
		t.Fatalf("got %+v, %v; %d of %d; want v.Whole() true, v.Again at least 100, v.Again less than 300, v.Objects 300, last %d, total %d",
			v, err, last, total, total, v.Bytes)
	}
	if _, err := os.Stat(journal); err == nil {
		t.Error("the journal of a run that has ended is still there")
	}
	if err := os.WriteFile(journal, []byte("something else that is there already, longer than the head of a journal"), 0o600); err != nil {
		t.Fatal(err)
	}
	if v, err := r.Verify(t.Context(), VerifyOptions{Journal: journal}); err != nil || v.Again != 0 {
		t.Fatalf("got %+v, %v; want Again 0", v, err)
	}
	link := filepath.Join(t.TempDir(), "journal") // on a full disk
	if err := os.Symlink("/dev/full", link); err != nil {
		t.Fatal(err)
	}
	if v, err := r.Verify(t.Context(), VerifyOptions{Journal: link}); err != nil || !v.Whole() || v.Objects != 300 {
		t.Fatalf("where the journal has no room: %+v, %v; want Whole() true, Objects 300", v, err)
	}
}

// TestVerifyNothing: no backup is no success.
func TestVerifyNothing(t *testing.T) {
	r := made(t, t.TempDir(), Keys{})
	if _, err := r.Verify(t.Context(), VerifyOptions{}); !errors.Is(err, ErrNoBackup) {
		t.Errorf("got %v, want ErrNoBackup", err)
	}
	id := back(t, r, time.Now(), map[string][]string{"s.t": {"x"}})
	if _, err := r.Verify(t.Context(), VerifyOptions{Backups: []string{id, "20200101T000000Z-000000"}}); !errors.Is(err, ErrNoBackup) {
		t.Errorf("got %v, want ErrNoBackup", err)
	}
}

// TestMend: a damaged object is set aside; a copy from a second place, or the next backup that has the rows, brings it back.
func TestMend(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	r := made(t, first, Keys{})
	tables := map[string][]string{"s.t": {"rows 1", "rows 2"}}
	one := back(t, r, time.Now().Add(-time.Hour), tables)
	if _, err := r.CopyTo(t.Context(), at(t, second), CopyOptions{}); err != nil {
		t.Fatal(err)
	}
	damage := func() {
		list, _ := filepath.Glob(filepath.Join(first, "data", "s", "t", "*"))
		b, err := os.ReadFile(list[0])
		if err != nil || len(list) != 2 {
			t.Fatalf("got %v, %v; want length 2", list, err)
		}
		b[9] ^= 1
		if err := os.WriteFile(list[0], b, 0o600); err != nil {
			t.Fatal(err)
		}
		v, err := r.Verify(t.Context(), VerifyOptions{SetAside: true})
		if err != nil || len(v.Problems) != 1 || v.Problems[0].Aside == "" {
			t.Fatalf("got %+v, %v; want len(Problems) 1, Problems[0].Aside not \"\"", v, err)
		}
		if aside, err := os.ReadFile(filepath.Join(first, v.Problems[0].Aside)); err != nil || !bytes.Equal(aside, b) {
			t.Fatalf("set aside: got %q, %v; want %q", aside, err, b)
		}
		if v, err := r.Verify(t.Context(), VerifyOptions{SetAside: true}); err != nil || len(v.Problems) != 1 || v.Problems[0].Kind != Missing {
			t.Fatalf("got %+v, %v; want len(Problems) 1, Problems[0].Kind Missing", v, err)
		}
	}
	damage()
	if c, err := opened(t, second, Keys{}).CopyTo(t.Context(), at(t, first), CopyOptions{}); err != nil || c.Mended != 1 || c.Objects != 1 || len(c.There) != 1 {
		t.Fatalf("got %+v, %v; want Mended 1, Objects 1, len(There) 1", c, err)
	}
	whole(t, r, one)
	damage()
	two := back(t, r, time.Now(), tables)
	whole(t, r, one, two)
}
