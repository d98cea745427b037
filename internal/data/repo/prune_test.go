package repo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestRetention: what stays, and why.
func TestRetention(t *testing.T) {
	at := func(s string) time.Time {
		v, err := time.Parse("2006-01-02 15", s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	daily := func(from string, n int) (list []Candidate) {
		for i := range n {
			d := at(from).AddDate(0, 0, i)
			list = append(list, Candidate{ID: d.Format("0102-15"), Time: d, Group: "g", Server: "s"})
		}
		return list
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		p    Retention
		zone *time.Location
		list []Candidate
		want string // IDs that stay
	}{
		{"none", Retention{Last: 3}, time.UTC, nil, ""},
		{"last", Retention{Last: 2}, time.UTC, daily("2026-03-01 02", 5), "0304-02 0305-02"},
		{"within", Retention{Within: 48 * time.Hour}, time.UTC, daily("2026-03-01 02", 5), "0303-02 0304-02 0305-02"},
		{"daily takes the last of a day", Retention{Daily: 2}, time.UTC, append(daily("2026-03-01 02", 3), daily("2026-03-01 22", 3)...), "0302-22 0303-22"},
		{"days without a backup do not count", Retention{Daily: 3}, time.UTC, append(daily("2026-01-01 02", 2), daily("2026-03-01 02", 1)...), "0101-02 0102-02 0301-02"},
		{"weekly", Retention{Weekly: 2}, time.UTC, daily("2026-03-02 02", 14), "0308-02 0315-02"}, // Sundays
		{"monthly and daily", Retention{Daily: 1, Monthly: 3}, time.UTC, daily("2026-01-30 02", 40), "0131-02 0228-02 0310-02"},
		{"yearly", Retention{Yearly: 2}, time.UTC, daily("2025-12-30 02", 5), "1231-02 0103-02"},
		{"days of a zone", Retention{Daily: 1}, berlin, append(daily("2026-03-01 22", 1), daily("2026-03-01 23", 1)...), "0301-23"},
		{"days of a zone, two", Retention{Daily: 2}, berlin, append(daily("2026-03-01 22", 1), daily("2026-03-01 23", 1)...), "0301-22 0301-23"},
		{"proven", Retention{Last: 1}, time.UTC, func() []Candidate {
			l := daily("2026-03-01 02", 4)
			l[0].Proven, l[1].Proven = true, true
			return l
		}(), "0302-02 0304-02"},
		{"proven of each server", Retention{Last: 1}, time.UTC, func() []Candidate {
			l := daily("2026-03-01 02", 4)
			l[0].Proven, l[1].Proven, l[0].Server, l[0].Group = true, true, "other", "other"
			return l
		}(), "0301-02 0302-02 0304-02"},
		{"parents", Retention{Last: 1}, time.UTC, func() []Candidate {
			l := daily("2026-03-01 02", 5)
			l[4].Parent, l[3].Parent, l[2].Parent = l[2].ID, l[1].ID, l[0].ID
			return l
		}(), "0301-02 0303-02 0305-02"},
		{"groups", Retention{Last: 1}, time.UTC, func() []Candidate {
			l := daily("2026-03-01 02", 4)
			l[0].Group = "physical"
			return l
		}(), "0301-02 0304-02"},
		{"kept whatever the rules", Retention{Last: 1}, time.UTC, func() []Candidate {
			l := daily("2026-03-01 02", 3)
			l[0].Keep = "damaged"
			return l
		}(), "0301-02 0303-02"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rand.Shuffle(len(c.list), func(i, j int) { c.list[i], c.list[j] = c.list[j], c.list[i] })
			var kept []string
			for _, d := range c.p.Decide(c.list, c.zone, time.Now()) {
				if len(d.Reasons) == 0 {
					t.Errorf("%s: no reason, want len(d.Reasons) not 0", d.ID)
				}
				if d.Keep {
					kept = append(kept, d.ID)
				}
			}
			if got := strings.Join(kept, " "); got != c.want {
				t.Errorf("stay %q, not %q", got, c.want)
			}
		})
	}
}

// older makes a file of a repository look as if it was put earlier.
func older(t *testing.T, dir, key string, by time.Duration) {
	t.Helper()
	when := time.Now().Add(-by)
	if err := os.Chtimes(filepath.Join(dir, key), when, when); err != nil {
		t.Fatal(err)
	}
}

// five takes five backups, a day apart, that share chunks.
func five(t *testing.T, r *Repo) (ids []string) {
	t.Helper()
	now := time.Now()
	for i := range 5 {
		ids = append(ids, back(t, r, now.AddDate(0, 0, i-5), map[string][]string{"s.t": {"always", fmt.Sprint("rows of day ", i), fmt.Sprint("rows of days ", i/2)}}, fmt.Sprint("part of day ", i)))
	}
	return ids
}

// whole fails the test unless exactly these backups are there, whole.
func whole(t *testing.T, r *Repo, ids ...string) *Verified {
	t.Helper()
	v, err := r.Verify(context.Background(), VerifyOptions{})
	if err != nil || !v.Whole() || !slices.Equal(v.Backups, ids) {
		t.Fatalf("not whole, or not %q: got %+v, %v; want Whole() true, Backups %v", ids, v, err, ids)
	}
	return v
}

// TestPrune: what no rule keeps goes, what it shared with others stays; a dry run says the same and does nothing.
func TestPrune(t *testing.T) {
	for _, encrypted := range []bool{false, true} {
		dir := t.TempDir()
		var write Keys
		if encrypted {
			_, write, _ = keys(t)
		}
		ids := five(t, made(t, dir, write))
		if err := made(t, dir, write).AddProof(t.Context(), Proof{Backup: ids[1], Time: time.Now(), JSON: []byte(`{"passed":true}`)}); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "data", "s", "t", ".risso-killed"), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
		older(t, dir, "data/s/t/.risso-killed", 48*time.Hour)
		r := opened(t, dir, Keys{}) // no identity is needed
		o := PruneOptions{Retention: Retention{Last: 2}, DryRun: true}
		before := files(t, dir)
		dry, err := r.Prune(t.Context(), o)
		if err != nil || !slices.Equal(dry.Removed, []string{ids[0], ids[2]}) {
			t.Fatalf("got %+v, %v; want Removed []string{ids[0], ids[2]}", dry, err)
		}
		if after := files(t, dir); len(after) != len(before) {
			t.Fatalf("a dry run leaves %d of %d files", len(after), len(before))
		}
		o.DryRun = false
		done, err := r.Prune(t.Context(), o)
		if err != nil || !slices.Equal(done.Removed, dry.Removed) || done.Objects != dry.Objects || done.Bytes != dry.Bytes || done.Objects != 4 || done.Leftovers != 1 {
			t.Fatalf("%+v, %v; the dry run said %+v; want Removed %v, Objects %v, Bytes %v, Objects 4, Leftovers 1",
				done, err, dry, dry.Removed, dry.Objects, dry.Bytes)
		}
		if v := whole(t, r, ids[1], ids[3], ids[4]); v.Superfluous != 0 {
			t.Errorf("got %+v, want Superfluous 0", v)
		}
		for name := range files(t, dir) {
			if strings.Contains(name, ids[0]) || strings.Contains(name, "locks/") || strings.Contains(name, ".risso-") {
				t.Errorf("%s stayed; want no ids[0] in it, no \"locks/\" in it, no \".risso-\" in it", name)
			}
		}
		// By name; the proven one stays.
		if done, err := r.Prune(t.Context(), PruneOptions{Remove: []string{ids[1], ids[4]}}); err != nil || !slices.Equal(done.Removed, []string{ids[4]}) {
			t.Errorf("got %+v, %v; want Removed []string{ids[4]}", done, err)
		}
		if _, err := r.Prune(t.Context(), PruneOptions{Remove: []string{"20200101T000000Z-000000"}}); !errors.Is(err, ErrNoBackup) {
			t.Errorf("got %v, want ErrNoBackup", err)
		}
		if done, err := r.Prune(t.Context(), PruneOptions{}); err != nil || len(done.Removed) > 0 {
			t.Errorf("without rules: got %+v, %v; want none", done, err)
		}
		whole(t, r, ids[1], ids[3])
	}
}

// TestPruneBeside: what a running backup wrote, or found there, stays; when it is killed it goes; when it was only asleep, it
// learns that it is lost.
func TestPruneBeside(t *testing.T) {
	dir := t.TempDir()
	r := made(t, dir, Keys{})
	ids := five(t, r)
	now := time.Now()
	h, d := Header{Format: Format, ID: NewID(now), Kind: Logical, Began: now}, NewDraft()
	defer d.Close()
	if err := r.Begin(t.Context(), h, nil); err != nil {
		t.Fatal(err)
	}
	k, err := r.NewKeeper()
	if err != nil {
		t.Fatal(err)
	}
	line := &Table{Schema: "s", Name: "t"}
	for _, raw := range []string{"rows of day 0", "new rows"} { // the first is there, of a backup that goes
		kept, err := k.Keep(t.Context(), "s", "t", []byte(raw))
		if err != nil || kept.New != (raw == "new rows") {
			t.Fatalf("got %+v, %v; want New %v", kept, err, raw == "new rows")
		}
		line.Chunks = append(line.Chunks, Chunk{Hash: kept.Hash, Stored: kept.Stored})
	}
	other := opened(t, dir, Keys{})
	o := PruneOptions{Retention: Retention{Last: 1}}
	p, err := other.Prune(t.Context(), o)
	if err != nil || len(p.Removed) != 4 || p.Objects != 0 || !slices.Equal(p.Running, []string{h.ID}) {
		t.Fatalf("got %+v, %v; want len(Removed) 4, Objects 0, Running %v", p, err, []string{h.ID})
	}
	if err := d.Add(Line{Table: line}); err != nil {
		t.Fatal(err)
	}
	if err := r.Finish(t.Context(), h, d); err != nil {
		t.Fatal(err)
	}
	whole(t, other, ids[4], h.ID)
	if p, err := other.Prune(t.Context(), o); err != nil || p.Objects == 0 {
		t.Fatalf("got %+v, %v; want Objects not 0", p, err)
	}
	whole(t, other, ids[4], h.ID) // two servers

	// One that stalls.
	late, d2 := Header{Format: Format, ID: NewID(now.Add(time.Second)), Kind: Logical, Began: now}, NewDraft()
	defer d2.Close()
	if err := r.Begin(t.Context(), late, nil); err != nil {
		t.Fatal(err)
	}
	older(t, dir, unfinishedKey(late.ID), time.Hour)
	if p, err := other.Prune(t.Context(), o); err != nil || !slices.Equal(p.Dead, []string{late.ID}) {
		t.Fatalf("got %+v, %v; want Dead %v", p, err, []string{late.ID})
	}
	if err := r.Finish(t.Context(), late, d2); !errors.Is(err, ErrLost) {
		t.Errorf("a backup that stood still ends with %v, want ErrLost", err)
	}
	whole(t, other, ids[4], h.ID)
}

// TestPruneAndBegin: a backup waits for a prune that lives, not for one that was killed; a second prune gives way.
func TestPruneAndBegin(t *testing.T) {
	dir := t.TempDir()
	r := made(t, dir, Keys{})
	ids := five(t, r)
	lock := filepath.Join(dir, pruneLockPrefix+"x")
	if err := os.MkdirAll(filepath.Dir(lock), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(lock, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Prune(t.Context(), PruneOptions{}); !errors.Is(err, ErrPruning) {
		t.Errorf("beside another prune: got %v, want ErrPruning", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := r.Begin(ctx, Header{ID: NewID(time.Now())}, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a backup beside a prune begins: got %v, want context.DeadlineExceeded", err)
	}
	older(t, dir, pruneLockPrefix+"x", time.Hour)
	h := Header{ID: NewID(time.Now())}
	if err := r.Begin(t.Context(), h, nil); err != nil {
		t.Errorf("a backup after a killed prune: %v", err)
	}
	if err := r.Abandon(t.Context(), h.ID); err != nil {
		t.Error(err)
	}
	if _, err := r.Prune(t.Context(), PruneOptions{}); err != nil {
		t.Errorf("a prune after a killed one: %v", err)
	}
	whole(t, r, ids...)
}

// TestPruneCut: a prune that ends at any moment leaves whole backups, and the next one does the rest.
func TestPruneCut(t *testing.T) {
	model := t.TempDir()
	ids := five(t, made(t, model, Keys{}))
	for n := 0; n < 60; n += 2 {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(model)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		s := &cutting{Store: folder(dir), cut: cancel}
		s.left.Store(int64(n))
		r, err := Open(ctx, s)
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.Prune(ctx, PruneOptions{Retention: Retention{Last: 1}})
		cancel()
		left := opened(t, dir, Keys{})
		v, verr := left.Verify(t.Context(), VerifyOptions{})
		if verr != nil || !v.Whole() || !slices.Contains(v.Backups, ids[4]) {
			t.Fatalf("cut after %d changes: got %+v, %v; want Whole() true, ids[4] in Backups", n, v, verr)
		}
		if err == nil {
			if n < 10 {
				t.Errorf("after %d changes it was not cut, want at least 10", n)
			}
			return
		}
		os.RemoveAll(filepath.Join(dir, "locks")) // as if time had passed
		if _, err := left.Prune(t.Context(), PruneOptions{Retention: Retention{Last: 1}}); err != nil {
			t.Fatal(err)
		}
		if v := whole(t, left, ids[4]); v.Superfluous != 0 {
			t.Fatalf("got %+v, want Superfluous 0", v)
		}
	}
}

// cutting ends a context after so many changes.
type cutting struct {
	Store
	left atomic.Int64
	cut  func()
}

func (c *cutting) Delete(ctx context.Context, key string) error {
	if c.left.Add(-1) < 0 {
		c.cut()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return c.Store.Delete(ctx, key)
}
