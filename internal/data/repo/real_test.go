package repo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/store/blob"
	"github.com/rissodb/risso/internal/store/blob/blobtest"
)

// TestMain is also the process that a test kills: with RISSO_TEST_BACKUPS set it takes backups there until that happens.
func TestMain(m *testing.M) {
	if place := os.Getenv("RISSO_TEST_BACKUPS"); place != "" {
		fmt.Println(backUntilKilled(context.Background(), place))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func backUntilKilled(ctx context.Context, place string) error {
	s, err := blob.Open(ctx, place, blob.Options{})
	if err != nil {
		return err
	}
	r, err := CreateWith(ctx, On(s), Keys{})
	if err != nil {
		return err
	}
	for {
		if err := oneBackup(ctx, r); err != nil {
			return err
		}
	}
}

// oneBackup takes a backup of twelve tables, of which a half changed.
func oneBackup(ctx context.Context, r *Repo) error {
	now := time.Now()
	h, d := Header{Format: Format, ID: NewID(now), Kind: Logical, Began: now, Snapshot: now, Server: Server{Identity: "s"}}, NewDraft()
	defer d.Close()
	if err := r.Begin(ctx, h, nil); err != nil {
		return err
	}
	k, err := r.NewKeeper()
	if err != nil {
		return err
	}
	for i := range 12 {
		seed := uint64(i)
		if i%2 == 0 {
			seed = rand.Uint64()
		}
		name := fmt.Sprint("t", i)
		kept, err := k.Keep(ctx, "s", name, blobtest.Bytes(seed, 20000))
		if err != nil {
			return err
		}
		if err := d.Add(Line{Table: &Table{Schema: "s", Name: name, Chunks: []Chunk{{Hash: kept.Hash, Stored: kept.Stored}}}}); err != nil {
			return err
		}
	}
	return r.Finish(ctx, h, d)
}

// TestKill: a process that takes backups is killed at any moment; what is listed as a backup is whole, and the next process
// goes on. Then all that was half done is pruned.
func TestKill(t *testing.T) {
	s3 := blobtest.S3(t)
	for name, place := range map[string]string{"folder": t.TempDir(), "s3": s3.Place(t, "kill", "x")} {
		t.Run(name, func(t *testing.T) {
			var list []Header
			for try := 0; try < 8 || len(list) == 0 && try < 60; try++ {
				cmd := exec.Command(os.Args[0], "-test.run=^$")
				cmd.Env = append(os.Environ(), "RISSO_TEST_BACKUPS="+place)
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				moment := 200*time.Millisecond + rand.N(400*time.Millisecond)
				if len(list) == 0 { // a busy machine needs longer for the first
					moment += time.Duration(try) * 200 * time.Millisecond
				}
				time.Sleep(moment)
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
					t.Fatalf("it ended by itself: %v", err)
				}
				r, err := Open(t.Context(), at(t, place))
				if errors.Is(err, ErrNoRepository) {
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				v, err := r.Verify(t.Context(), VerifyOptions{})
				if err != nil && !errors.Is(err, ErrNoBackup) || v != nil && !v.Whole() {
					t.Fatalf("%+v, %v", v, err)
				}
				if list, err = r.Backups(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if len(list) == 0 {
				t.Fatal("no backup came to its end: nothing was tried")
			}
			t.Logf("%d whole backups", len(list))
		})
	}
}

// TestUnreliable: a place of which every sixth request fails in some way takes backups, is verified, pruned and copied as if it
// were a good one.
func TestUnreliable(t *testing.T) {
	s3 := blobtest.S3(t)
	proxy := blobtest.NewHTTPProxy(t, s3.Addr)
	faults := []func(http.ResponseWriter, *http.Request, http.Handler){
		func(w http.ResponseWriter, r *http.Request, _ http.Handler) { blobtest.Broken(w, r) },
		func(w http.ResponseWriter, r *http.Request, _ http.Handler) { blobtest.Slow(w, r) },
		blobtest.CutRequest(500), blobtest.LoseAnswer, blobtest.Cut(300), blobtest.FlipRequest(50),
	}
	proxy.Disturb(func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		if rand.N(6) == 0 {
			faults[rand.N(len(faults))](w, r, pass)
			return
		}
		pass.ServeHTTP(w, r)
	})
	r, err := CreateWith(t.Context(), at(t, s3.PlaceBy(t, proxy.Addr, "unreliable", "x")), Keys{})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := oneBackup(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	if c, err := r.CopyTo(t.Context(), at(t, dir), CopyOptions{}); err != nil || len(c.Backups) != 3 || c.Objects != 24 {
		t.Errorf("copy: got %+v, %v; want len(Backups) 3, Objects 24", c, err)
	}
	if p, err := r.Prune(t.Context(), PruneOptions{Retention: Retention{Last: 1}}); err != nil || len(p.Removed) != 2 || p.Objects != 12 {
		t.Errorf("prune: got %+v, %v; want len(Removed) 2, Objects 12", p, err)
	}
	if v, err := r.Verify(t.Context(), VerifyOptions{}); err != nil || !v.Whole() || v.Objects != 12 || v.Superfluous != 0 {
		t.Errorf("verify: got %+v, %v; want Whole() true, Objects 12, Superfluous 0", v, err)
	}
	if v, err := opened(t, dir, Keys{}).Verify(t.Context(), VerifyOptions{}); err != nil || !v.Whole() || v.Objects != 24 {
		t.Errorf("verify the copy: got %+v, %v; want Whole() true, Objects 24", v, err)
	}
}
