package state

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/fleet"
)

func openStore(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func openAnyway(t *testing.T, path string) *Store {
	t.Helper()
	s, err := OpenAnyway(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func newStore(t *testing.T) *Store { return openStore(t, filepath.Join(t.TempDir(), "state.db")) }

// fill stores n events, so that the file has many pages.
func fill(t *testing.T, s *Store, n int) {
	t.Helper()
	events := make([]fleet.Event, n)
	for i := range events {
		events[i] = fleet.Event{Time: time.Unix(int64(1700000000+i), 0), Instance: fmt.Sprintf("db%d", i%3), Kind: fleet.EventVariable,
			Subject: "max_connections", Old: "1", New: "2", Text: strings.Repeat("x", 100)}
	}
	for batch := range slices.Chunk(events, 1000) { // each has a call's time limit to itself
		if _, err := s.AddEvents(t.Context(), batch...); err != nil {
			t.Fatal(err)
		}
	}
}

func TestReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "with ?odd%name", "state.db")
	ctx := t.Context()
	s := openStore(t, path)
	e := fleet.Event{Time: time.UnixMicro(1700000000123456).UTC(), Instance: "db1", Kind: fleet.EventVariable, Severity: fleet.SeverityWarning,
		Subject: "max_connections", Old: "151", New: "500", Text: "max_connections changed from 151 to 500"}
	stored, err := s.AddEvents(ctx, e)
	if err != nil || stored[0].ID == 0 {
		t.Fatalf("got %v, %v; want stored[0].ID not 0", stored, err)
	}
	i := fleet.Instance{ID: "db1", Name: "db1", Kind: fleet.KindServer, Address: "db1:3306", Flavour: fleet.FlavourMariaDB, Version: "10.11.6", Role: fleet.RolePrimary, HostID: "h1"}
	if err := s.SaveInstance(ctx, i, time.Unix(100, 0)); err != nil {
		t.Fatal(err)
	}
	i.Version = "10.11.9"
	if err := s.SaveInstance(ctx, i, time.Unix(200, 0)); err != nil {
		t.Fatal(err)
	}
	if err := s.SaveInstance(ctx, i, time.Unix(150, 0)); err != nil { // late news does not turn the clock back
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("others may read the hashes: got %v %v; want Perm() 0o600", st.Mode(), err)
	}

	s = openStore(t, path)
	if s.Damage() != nil {
		t.Errorf("damage: got %+v, want nil", s.Damage())
	}
	got, err := s.Events(ctx, EventQuery{})
	if err != nil || len(got) != 1 || got[0] != stored[0] {
		t.Errorf("%+v, want %+v (%v)", got, stored, err)
	}
	list, err := s.Instances(ctx)
	want := InstanceRecord{Instance: i, FirstSeen: time.Unix(100, 0).UTC(), LastSeen: time.Unix(200, 0).UTC()}
	if err != nil || len(list) != 1 || list[0] != want {
		t.Errorf("%+v, want %+v (%v)", list, want, err)
	}
}

func TestEventQueries(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	fill(t, s, 30)
	if _, err := s.AddEvents(ctx, fleet.Event{Kind: fleet.EventObserver, Text: "Risso started"}); err != nil {
		t.Fatal(err)
	}
	at := func(n int) time.Time { return time.Unix(int64(1700000000+n), 0) }
	for _, c := range []struct {
		name        string
		q           EventQuery
		n           int
		first, last int64
	}{
		{"all", EventQuery{}, 31, 1, 31},
		{"one instance", EventQuery{Instances: []string{"db1"}}, 10, 2, 29},
		{"two", EventQuery{Instances: []string{"db1", "db2"}}, 20, 2, 30},
		{"Risso itself", EventQuery{Instances: []string{""}}, 1, 31, 31},
		{"a range, its end left out", EventQuery{From: at(5), To: at(8)}, 3, 6, 8},
		{"the newest", EventQuery{To: at(100), Limit: 4}, 4, 27, 30},
		{"a kind", EventQuery{Kinds: []fleet.EventKind{fleet.EventObserver, fleet.EventUp}}, 1, 31, 31},
		{"after an id", EventQuery{AfterID: 28}, 3, 29, 31},
		{"nothing", EventQuery{Instances: []string{"' OR 1=1 --"}}, 0, 0, 0},
	} {
		got, err := s.Events(ctx, c.q)
		if err != nil || len(got) != c.n || c.n > 0 && (got[0].ID != c.first || got[c.n-1].ID != c.last) {
			t.Errorf("%s: %d events (%v): %+v", c.name, len(got), err, got)
		}
	}
	n, err := s.PruneEvents(ctx, at(20))
	if err != nil || n != 20 {
		t.Errorf("pruned %d, %v; want 20", n, err)
	}
	stored, err := s.AddEvents(ctx, fleet.Event{Text: "later"})
	if err != nil || stored[0].ID != 32 {
		t.Errorf("id %v after a prune, %v; want stored[0].ID 32", stored, err)
	}
}

func TestPruneInBatches(t *testing.T) {
	s := newStore(t)
	fill(t, s, pruneBatch*2+5)
	if n, err := s.PruneEvents(t.Context(), time.Unix(1800000000, 0)); err != nil || n != pruneBatch*2+5 {
		t.Errorf("pruned %d, %v; want %d", n, err, pruneBatch*2+5)
	}
}

func TestVariables(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	set := func(s *Store, at int64, m map[string]string) []VariableChange {
		t.Helper()
		c, err := s.SetVariables(ctx, "db1", time.Unix(at, 0), m)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if c := set(s, 100, map[string]string{"a": "1", "sql_mode": "X", "gone": "g"}); len(c) != 0 {
		t.Errorf("the first sight is a change: %v, want none", c)
	}
	if c := set(s, 110, map[string]string{"a": "1", "sql_mode": "X", "gone": "g"}); len(c) != 0 {
		t.Errorf("nothing changed: got %v, want none", c)
	}
	if c := set(s, 200, map[string]string{"a": "2", "sql_mode": "", "gone": "g"}); fmt.Sprint(c) != "[{a 1 2} {sql_mode X }]" {
		t.Errorf("got %v, want \"[{a 1 2} {sql_mode X }]\"", c)
	}
	// An upgrade: one goes, one comes; neither is a change that somebody made.
	if c := set(s, 300, map[string]string{"a": "2", "sql_mode": "", "new": "n"}); len(c) != 0 {
		t.Errorf("got %v, want none", c)
	}
	path := s.Path()
	s.Close()
	s = openStore(t, path) // the digest in memory is gone: the file knows
	if c := set(s, 390, map[string]string{"a": "2", "sql_mode": "", "new": "n"}); len(c) != 0 {
		t.Errorf("after a reopen: got %v, want none", c)
	}
	if c := set(s, 400, map[string]string{"a": "3", "sql_mode": "", "new": "n"}); fmt.Sprint(c) != "[{a 2 3}]" {
		t.Errorf("got %v, want \"[{a 2 3}]\"", c)
	}
	for _, c := range []struct {
		at   int64
		want string
	}{
		{50, ""}, {100, "a=1@0 gone=g@0 sql_mode=X@0"}, {199, "a=1@0 gone=g@0 sql_mode=X@0"},
		{200, "a=2@200 gone=g@0 sql_mode=@200"}, {300, "a=2@200 new=n@0 sql_mode=@200"},
		{400, "a=3@400 new=n@0 sql_mode=@200"}, {0, "a=3@400 new=n@0 sql_mode=@200"},
	} {
		at := time.Unix(c.at, 0)
		if c.at == 0 {
			at = time.Time{}
		}
		list, err := s.Variables(ctx, "db1", at)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, v := range list {
			changed := int64(0)
			if !v.Changed.IsZero() {
				changed = v.Changed.Unix()
			}
			got = append(got, fmt.Sprintf("%s=%s@%d", v.Name, v.Value, changed))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("at %d: %v, want %s", c.at, got, c.want)
		}
	}
	if list, err := s.Variables(ctx, "db2", time.Time{}); err != nil || len(list) != 0 {
		t.Errorf("of another instance: got %v, %v; want none", list, err)
	}
}

func TestTokens(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	if any, err := s.AnyAccess(ctx); any || err != nil {
		t.Errorf("access before any was given: %v, %v", any, err)
	}
	tok, secret, err := s.CreateToken(ctx, "grafana", RoleLook)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.CreateToken(ctx, "grafana", RoleLook); !errors.Is(err, ErrExists) {
		t.Errorf("a second one of that name: got %v, want ErrExists", err)
	}
	got, err := s.VerifyToken(ctx, secret)
	if err != nil || got.ID != tok.ID || got.Name != "grafana" {
		t.Errorf("got %+v, %v; want ID %v, Name \"grafana\"", got, err, tok.ID)
	}
	for _, wrong := range []string{"", "x", secret + "x", secret[:len(secret)-1], strings.ToUpper(secret), "risso_" + tok.ID + "_", "risso_00000000_abc", "risso__", "' OR 1=1"} {
		if _, err := s.VerifyToken(ctx, wrong); !errors.Is(err, ErrNotFound) {
			t.Errorf("%q: got %v, want ErrNotFound", wrong, err)
		}
	}
	list, err := s.Tokens(ctx)
	if err != nil || len(list) != 1 || list[0].LastUsed.IsZero() {
		t.Errorf("got %+v, %v; want len(list) 1, list[0].LastUsed.IsZero() false", list, err)
	}
	for _, f := range []string{s.Path(), s.Path() + "-wal"} {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(b, []byte(secret[len(secret)-20:])) {
			t.Errorf("the secret stands in %s, want no []byte(secret[len(secret)-20:]) in it", f)
		}
	}
	if any, _ := s.AnyAccess(ctx); !any {
		t.Error("a token is no access")
	}
	if err := s.RevokeToken(ctx, "grafana"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.VerifyToken(ctx, secret); !errors.Is(err, ErrNotFound) {
		t.Errorf("a revoked token: got %v, want ErrNotFound", err)
	}
	if err := s.RevokeToken(ctx, "grafana"); !errors.Is(err, ErrNotFound) {
		t.Errorf("revoked twice: got %v, want ErrNotFound", err)
	}
}

func TestDamagedFile(t *testing.T) {
	for name, harm := range map[string]func(b []byte) []byte{
		"not a database": func(b []byte) []byte { return []byte(strings.Repeat("this is no database\n", 300)) },
		"cut":            func(b []byte) []byte { return b[:len(b)/2/4096*4096] },
		"zeroed pages":   func(b []byte) []byte { clear(b[3*4096 : 6*4096]); return b },
		"a few bytes":    func([]byte) []byte { return []byte("not a database") },
		"torn header":    func(b []byte) []byte { copy(b[20:], "garbage garbage garbage"); return b },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "state.db")
			s := openStore(t, path)
			fill(t, s, 2000)
			s.Close()
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			b = harm(b)
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			// Who did not ask for another file gets none, and changes nothing.
			_, err = Open(t.Context(), path)
			if !errors.Is(err, ErrBroken) || !strings.Contains(err.Error(), path) || !strings.Contains(fleet.RemedyOf(err), "risso state restore") {
				t.Errorf("got %v (%s), want ErrBroken with the path and how to get the state back", err, fleet.RemedyOf(err))
			}
			left, err := os.ReadDir(filepath.Dir(path))
			if now, rerr := os.ReadFile(path); err != nil || rerr != nil || len(left) != 1 || !bytes.Equal(now, b) {
				t.Errorf("there is %v (%v, %v), want the damaged file alone, as it was", left, err, rerr)
			}
			s = openAnyway(t, path)
			d := s.Damage()
			if d == nil || d.Reason == "" || !strings.Contains(d.MovedTo, ".damaged-") {
				t.Fatalf("damage: got %+v; want d not nil, Reason not \"\", \".damaged-\" in MovedTo", d)
			}
			if _, err := os.Stat(d.MovedTo); err != nil {
				t.Error(err)
			}
			fill(t, s, 10)
			if got, err := s.Events(t.Context(), EventQuery{}); err != nil || len(got) != 10 {
				t.Errorf("the new file: got %d events, %v; want 10", len(got), err)
			}
			t.Log(d.Reason)
		})
	}
}

// What is whole, but not ours, is left alone.
func TestForeignFiles(t *testing.T) {
	dir := t.TempDir()
	for name, sqlText := range map[string]string{
		"other.db": "CREATE TABLE wallets (id INT)",
		"newer.db": fmt.Sprintf("CREATE TABLE x (id INT); PRAGMA application_id=%d; PRAGMA user_version=999", applicationID),
	} {
		path := filepath.Join(dir, name)
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec(sqlText); err != nil {
			t.Fatal(err)
		}
		db.Close()
		before, _ := os.ReadDir(dir)
		content, _ := os.ReadFile(path)
		if _, err := Open(t.Context(), path); !errors.Is(err, ErrForeign) {
			t.Errorf("%s: got %v, want ErrForeign", name, err)
		}
		after, _ := os.ReadDir(dir)
		if now, _ := os.ReadFile(path); len(after) != len(before) || !bytes.Equal(now, content) {
			t.Errorf("%s: files before %v, after %v; want len(after) %v, now %v", name, before, after, len(before), content)
		}
	}
}

// A small tmpfs is filled up: writes fail with a clear error, reads go on, and all
// is well again once there is room.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("a small file system cannot be mounted here (root is needed): %v", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	ctx := t.Context()
	s := openStore(t, filepath.Join(dir, "state.db"))
	defer s.Close()
	_, secret, err := s.CreateToken(ctx, "x", RoleChange)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, s, 100)
	ballast := filepath.Join(dir, "ballast")
	f, err := os.Create(ballast)
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := f.Write(make([]byte, 4096)); err != nil {
			break
		}
	}
	f.Close()
	failed := 0
	for range 50 {
		if _, err := s.AddEvents(ctx, fleet.Event{Text: strings.Repeat("y", 20000)}); err != nil {
			if failed++; !errors.Is(err, ErrDiskFull) {
				t.Errorf("a full disk says: %v, want ErrDiskFull", err)
			}
		}
	}
	if failed == 0 {
		t.Error("all writes went through on a full disk")
	}
	if got, err := s.Events(ctx, EventQuery{Instances: []string{"db0", "db1", "db2"}}); err != nil || len(got) != 100 {
		t.Errorf("reading on a full disk: got %d events, %v; want 100", len(got), err)
	}
	if _, err := s.VerifyToken(ctx, secret); err != nil {
		t.Errorf("a token on a full disk: %v", err)
	}
	if _, err := Open(ctx, filepath.Join(dir, "second.db")); err == nil {
		t.Error("a new store on a full disk opens")
	}
	os.Remove(ballast)
	fill(t, s, 1)
	s.Close()
	s2 := openStore(t, filepath.Join(dir, "state.db"))
	defer s2.Close()
	if s2.Damage() != nil {
		t.Errorf("damage: got %+v, want nil", s2.Damage())
	}
	if got, err := s2.Events(ctx, EventQuery{Instances: []string{"db0", "db1", "db2"}}); err != nil || len(got) != 101 {
		t.Errorf("afterwards: got %d events, %v; want 101", len(got), err)
	}
}

func TestManyAtOnce(t *testing.T) {
	s := newStore(t)
	var wg sync.WaitGroup
	for w := range 6 {
		wg.Go(func() {
			for i := range 15 {
				ctx := context.Background()
				id := fmt.Sprintf("db%d", w)
				if _, err := s.AddEvents(ctx, fleet.Event{Instance: id, Text: "t"}); err != nil {
					t.Error(err)
				}
				if _, err := s.SetVariables(ctx, id, time.Unix(int64(1000+i), 0), map[string]string{"a": fmt.Sprint(i), "b": "c"}); err != nil {
					t.Error(err)
				}
				if err := s.SaveInstance(ctx, fleet.Instance{ID: id}, time.Now()); err != nil {
					t.Error(err)
				}
				if _, err := s.Events(ctx, EventQuery{Instances: []string{id}}); err != nil {
					t.Error(err)
				}
				if _, err := s.Variables(ctx, id, time.Time{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got, err := s.Events(t.Context(), EventQuery{}); err != nil || len(got) != 90 {
		t.Errorf("got %d events, %v; want 90", len(got), err)
	}
}

func TestCancelled(t *testing.T) {
	s := newStore(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.AddEvents(ctx, fleet.Event{Text: "t"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if _, err := s.Events(ctx, EventQuery{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	// A writer who holds the file does not block a call forever.
	tx, err := s.write.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.AddEvents(short, fleet.Event{Text: "t"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want context.DeadlineExceeded", err)
	}
	if _, err := s.Events(short, EventQuery{}); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

// resident is the memory of this process that is in RAM, in bytes.
func resident(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("no /proc: resident memory is not known here")
	}
	var size, rss int
	fmt.Sscan(string(b), &size, &rss)
	return rss * os.Getpagesize()
}

// An open store is measured in a separate process, which has used none before.
func TestMemoryStaysSmall(t *testing.T) {
	if path := os.Getenv("RISSO_STATE"); path != "" {
		before := resident(t)
		s := openStore(t, path)
		for range 20 {
			if _, err := s.Events(t.Context(), EventQuery{Limit: 500}); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Variables(t.Context(), "db7", time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
		}
		fmt.Printf("resident +%d KiB\n", (resident(t)-before)>>10)
		return
	}
	if raceDetector {
		t.Skip("short: the race detector multiplies the memory of a process")
	}
	path := filepath.Join(t.TempDir(), "state.db")
	s := openStore(t, path)
	fill(t, s, 20000)
	vars := map[string]string{}
	for i := range 700 {
		vars[fmt.Sprintf("variable_%d", i)] = strings.Repeat("v", 20)
	}
	for i := range 20 {
		if _, err := s.SetVariables(t.Context(), fmt.Sprintf("db%d", i), time.Now(), vars); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	resident(t)
	cmd := exec.Command(os.Args[0], "-test.run=^TestMemoryStaysSmall$")
	cmd.Env = append(os.Environ(), "RISSO_STATE="+path)
	out, err := cmd.CombinedOutput()
	var grown int
	if _, scanErr := fmt.Sscanf(string(out), "resident +%d KiB", &grown); err != nil || scanErr != nil {
		t.Fatalf("%v: %s", errors.Join(err, scanErr), out)
	}
	st, _ := os.Stat(path)
	t.Logf("file %d KiB, resident +%d KiB", st.Size()>>10, grown)
	if grown > 16<<10 {
		t.Errorf("an open store takes %d KiB, want at most 16 << 10", grown)
	}
}

func BenchmarkAddEvent(b *testing.B) {
	s, err := Open(b.Context(), filepath.Join(b.TempDir(), "state.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for b.Loop() {
		if _, err := s.AddEvents(b.Context(), fleet.Event{Instance: "db1", Text: "t"}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSetVariables(b *testing.B) {
	s, err := Open(b.Context(), filepath.Join(b.TempDir(), "state.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	m := map[string]string{}
	for i := range 700 {
		m[fmt.Sprintf("variable_%d", i)] = "some value"
	}
	b.Run("unchanged", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.SetVariables(b.Context(), "db1", time.Now(), m); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("at=now", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Variables(b.Context(), "db1", time.Now()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkVerifyToken(b *testing.B) {
	s, err := Open(b.Context(), filepath.Join(b.TempDir(), "state.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	_, secret, err := s.CreateToken(b.Context(), "x", RoleChange)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := s.VerifyToken(b.Context(), secret); err != nil {
			b.Fatal(err)
		}
	}
}
