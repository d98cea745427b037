package repo

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// child starts a process that lives until end is called, and returns what a lease of it says.
func child(t *testing.T) (p *Process, end func()) {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end = func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	t.Cleanup(end)
	p = ownProcess()
	p.PID, p.Started = cmd.Process.Pid, startOf(cmd.Process.Pid)
	return p, end
}

// TestPruneKilled: a backup that begins during a prune reports at once what it waits for; a prune that was killed on this machine is
// not waited for.
func TestPruneKilled(t *testing.T) {
	dir := t.TempDir()
	r := made(t, dir, Keys{})
	process, end := child(t)
	b, err := json.Marshal(pruneNote{process})
	if err != nil {
		t.Fatal(err)
	}
	lock := filepath.Join(dir, pruneLockPrefix+"x")
	if err := errors.Join(os.MkdirAll(filepath.Dir(lock), 0o700), os.WriteFile(lock, b, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Prune(t.Context(), PruneOptions{}); !errors.Is(err, ErrPruning) {
		t.Errorf("beside a prune that lives: got %v, want ErrPruning", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var told []Holder
	h := Header{ID: NewID(time.Now())}
	if err := r.Begin(ctx, h, func(h Holder) { told = append(told, h); cancel() }); !errors.Is(err, context.Canceled) {
		t.Errorf("a backup beside a prune that lives: got %v, want context.Canceled", err)
	}
	if len(told) != 1 || told[0].Process == nil || told[0].Process.PID != process.PID || !strings.Contains(told[0].String(), process.Host) {
		t.Errorf("it waits for %v; want len(told) 1, told[0].Process not nil, told[0].Process.PID %v, %q in told[0].String()",
			told, process.PID, process.Host)
	}
	if _, err := r.begun(t.Context(), h.ID); err == nil {
		t.Error("its note stays when it gives up")
	}
	end()
	if err := r.Begin(t.Context(), h, func(h Holder) { t.Errorf("a killed prune is waited for: %v", h) }); err != nil {
		t.Error(err)
	}
	if err := r.Abandon(t.Context(), h.ID); err != nil {
		t.Error(err)
	}
	if _, err := r.Prune(t.Context(), PruneOptions{}); err != nil {
		t.Errorf("a prune behind a killed one: %v", err)
	}
}

// TestDeadAlike: what the catalogue calls killed prune takes for dead, and removes what it left.
func TestDeadAlike(t *testing.T) {
	dir := t.TempDir()
	r := made(t, dir, Keys{})
	five(t, r)
	h := Header{Format: Format, ID: NewID(time.Now()), Kind: Logical, Began: time.Now()}
	if err := r.Begin(t.Context(), h, nil); err != nil {
		t.Fatal(err)
	}
	k, err := r.NewKeeper()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Keep(t.Context(), "s", "t", []byte("of nobody")); err != nil {
		t.Fatal(err)
	}
	process, end := child(t)
	b, err := json.Marshal(beginning{h, process})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, unfinishedKey(h.ID)), b, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dead := range []bool{false, true} {
		if dead {
			end()
		}
		list, err := r.Catalogue(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			if e.ID == h.ID && e.Killed(time.Now()) != dead {
				t.Errorf("its process ended: %t, the catalogue says killed: %t", dead, e.Killed(time.Now()))
			}
		}
		p, err := r.Prune(t.Context(), PruneOptions{})
		if err != nil || slices.Contains(p.Dead, h.ID) != dead || slices.Contains(p.Running, h.ID) == dead || (p.Objects > 0) != dead {
			t.Errorf("its process ended: %t, prune says: %+v, %v", dead, p, err)
		}
	}
}

// TestOneSecond: backups that began within one second have one order: in the list, in what prune keeps, and as the newest.
func TestOneSecond(t *testing.T) {
	second := time.Now().UTC().Truncate(time.Second).Add(-time.Hour)
	for range 8 { // the rest of an ID is random: it must not decide
		r := made(t, t.TempDir(), Keys{})
		var ids []string
		for i := range 4 {
			ids = append(ids, back(t, r, second.Add(time.Duration(i)*time.Millisecond), nil))
		}
		list, err := r.Backups(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i, h := range list {
			if h.ID != ids[i] {
				t.Fatalf("the list has %s where %s should be, want ids[i]", h.ID, ids[i])
			}
		}
		m, err := r.Manifest(t.Context(), "")
		if err != nil || m.Header.ID != ids[3] {
			t.Fatalf("%v, the newest is not %s; want m.Header.ID ids[3]", err, ids[3])
		}
		m.Close()
		if h, ok := Newest(list, time.Now(), func(Header) bool { return true }); !ok || h.ID != ids[3] {
			t.Fatalf("%s is taken for the newest; want ok true, h.ID ids[3]", h.ID)
		}
		p, err := r.Prune(t.Context(), PruneOptions{Retention: Retention{Last: 1}})
		if err != nil || !slices.Equal(p.Removed, ids[:3]) {
			t.Fatalf("got %+v, %v; want Removed ids[:3]", p, err)
		}
	}
}

// TestDatedAhead: a backup that a wrong clock dated ahead changes nothing for any other, under any rules; it stays, it is not the
// newest, and it can be removed by name.
func TestDatedAhead(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 1))
	rounds := 2000
	if testing.Short() {
		t.Log("short: a twentieth of the histories, all in one goroutine")
		rounds /= 20
	}
	for i := range rounds {
		p := Retention{Last: random.IntN(3), Daily: random.IntN(4), Weekly: random.IntN(3), Monthly: random.IntN(3), Yearly: random.IntN(2), Within: time.Duration(random.IntN(500)) * time.Hour}
		if p.Empty() {
			continue
		}
		list := history(random)
		now := slices.MaxFunc(list, func(a, b Candidate) int { return a.Time.Compare(b.Time) }).Time.Add(time.Minute)
		before := p.Decide(list, time.UTC, now)
		wrong := Candidate{ID: "wrong", Time: now.Add(time.Duration(1+random.IntN(1e5)) * time.Hour), Group: list[0].Group, Server: list[0].Server, Proven: random.IntN(2) == 0}
		for _, d := range p.Decide(append(list, wrong), time.UTC, now) {
			at := slices.IndexFunc(before, func(b Decision) bool { return b.ID == d.ID })
			if at < 0 && !d.Keep || at >= 0 && d.Keep != before[at].Keep {
				t.Fatalf("seed %d, round %d, %+v: %+v beside a backup of %s", seed, i, p, d, wrong.Time)
			}
		}
		// While the clock is wrong it is unknown that the backup is ahead: it alone does not end --keep-within.
		within := Retention{Within: max(p.Within, time.Hour)}
		if wrong.Time.Sub(now) <= within.Within {
			continue
		}
		newest := now.Add(-time.Minute)
		for _, d := range within.Decide(append(list, wrong), time.UTC, wrong.Time) {
			at := slices.IndexFunc(list, func(c Candidate) bool { return c.ID == d.ID && c.Group == wrong.Group })
			if at >= 0 && newest.Sub(list[at].Time) <= within.Within && !d.Keep {
				t.Fatalf("seed %d, round %d, %+v: %+v", seed, i, within, d)
			}
		}
	}
	r := made(t, t.TempDir(), Keys{})
	ids := five(t, r)
	ahead := back(t, r, time.Now().AddDate(1, 0, 0), nil)
	if m, err := r.Manifest(t.Context(), ""); err != nil || m.Header.ID != ids[4] {
		t.Errorf("%v: the newest is not %s; want m.Header.ID ids[4]", err, ids[4])
	} else {
		m.Close()
	}
	if note, err := r.SetBackNote(t.Context(), time.Now()); err != nil || !strings.Contains(note, "but dated later, are "+ahead+".") {
		t.Errorf("who takes the next one hears %q, %v; want %q in it", note, err, "but dated later, are "+ahead+".")
	}
	if note, err := r.SetBackNote(t.Context(), time.Now().AddDate(1, 0, 0)); err != nil || note != "" {
		t.Errorf("by a clock that is right: %q, %v; want \"\"", note, err)
	}
	if note, err := r.AheadNote(t.Context(), ids[4], time.Now()); err != nil || !strings.HasSuffix(note, "not considered the newest: "+ahead) {
		t.Errorf("dated ahead: got %q, %v; want %q at its end", note, err, "not considered the newest: "+ahead)
	}
	p, err := r.Prune(t.Context(), PruneOptions{Retention: Retention{Within: 50 * time.Hour}})
	if err != nil || !slices.Equal(p.Removed, ids[:2]) {
		t.Errorf("got %+v, %v; want Removed ids[:2]", p, err)
	}
	if p, err := r.Prune(t.Context(), PruneOptions{Remove: []string{ahead}}); err != nil || !slices.Equal(p.Removed, []string{ahead}) {
		t.Errorf("got %+v, %v; want Removed %v", p, err, []string{ahead})
	}
	only := made(t, t.TempDir(), Keys{})
	ahead = back(t, only, time.Now().AddDate(1, 0, 0), nil)
	if m, err := only.Manifest(t.Context(), ""); err != nil || m.Header.ID != ahead { // this host's clock may be the wrong one
		t.Errorf("%v: where there is no other it is the newest; want m.Header.ID %v", err, ahead)
	} else {
		m.Close()
	}
}
