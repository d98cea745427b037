package mirror

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/binlogevent"
	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/store/blob"
)

// helperEnv makes the test program a separate mirror, which a test can kill: folder, folder of keys or nothing, semi-sync or
// nothing, DSN.
const helperEnv = "RISSO_TEST_MIRROR"

func TestMain(m *testing.M) {
	if o := strings.SplitN(os.Getenv(helperEnv), "|", 4); len(o) == 4 {
		t, err := mysql.ParseTarget(o[3])
		if err == nil {
			err = Follow(context.Background(), Options{Target: t, Place: keyed(o[0], repo.Keys{CacheDir: o[1]}), Dir: o[0], SemiSync: o[2] != "",
				Heartbeat: 200 * time.Millisecond, Note: func(n Note) { fmt.Fprintln(os.Stderr, n.Text) }})
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// testKey signs what tests mirror, in separate processes, too.
var testKey = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))

// onlyKey is a policy that trusts one key; unsigned: also what is not signed.
type onlyKey struct {
	key      repo.PublicKey
	unsigned bool
}

func (o onlyKey) Accept(_, _ string, signer repo.PublicKey) error {
	switch {
	case signer == o.key, signer == "" && o.unsigned:
		return nil
	case signer == "":
		return repo.ErrUnsigned
	}
	return repo.ErrForeign
}

func (o onlyKey) Counts(repository string, signer repo.PublicKey) error {
	return o.Accept(repository, "", signer)
}

// folder is a place on this machine.
func folder(dir string) Place { return keyed(dir, repo.Keys{}) }

// keyed is a place on this machine, and the repository in it if there is one or recipients are given.
func keyed(dir string, k repo.Keys) Place {
	s, err := blob.Open(context.Background(), dir, blob.Options{})
	if err != nil {
		panic(err)
	}
	p := Place{Store: repo.On(s), Signer: testKey}
	open := repo.OpenWith
	if len(k.Recipients) > 0 {
		open = repo.CreateWith
	}
	if p.Repo, err = open(context.Background(), p.Store, k); err != nil && !errors.Is(err, repo.ErrNoRepository) {
		panic(err)
	}
	return p
}

// process starts a mirror that a test can kill.
func process(t *testing.T, dir, keys, semi, dsn string) *exec.Cmd {
	t.Helper()
	return processIn(t, t.Output(), dir, keys, semi, dsn)
}

// processIn starts it within another command, such as ip netns exec.
func processIn(t *testing.T, said io.Writer, dir, keys, semi, dsn string, within ...string) *exec.Cmd {
	t.Helper()
	command := append(within, os.Args[0])
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), helperEnv+"="+dir+"|"+keys+"|"+semi+"|"+dsn)
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd
}

var flavours = []string{"mariadb", "mariadb-11.8", "mysql-9.7", "mysql-8.0", "mysql-5.7"}

func settings(spec string) []string {
	if strings.HasPrefix(spec, "mariadb") {
		return []string{"max_binlog_size=64K", "sync_binlog=0", "innodb_flush_log_at_trx_commit=2"}
	}
	return []string{"max_binlog_size=64K", "sync_binlog=0", "innodb_flush_log_at_trx_commit=2", "binlog_rows_query_log_events=ON"}
}

func target(t *testing.T, n *sandbox.Node) mysql.Target {
	t.Helper()
	tg, err := mysql.ParseTarget(n.DSN)
	if err != nil {
		t.Fatal(err)
	}
	return tg
}

func open(t *testing.T, n *sandbox.Node) *sql.DB {
	t.Helper()
	db, err := n.DB()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func exec1(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// load writes rows of many sizes.
func load(t *testing.T, db *sql.DB, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		exec1(t, db, fmt.Sprintf("INSERT INTO test.t VALUES (%d, REPEAT('x', %d))", i, i*37%3000))
	}
}

// serverLogs are the logs in a server's folder, with the flag for a log that is being written cleared.
func serverLogs(t *testing.T, n *sandbox.Node) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(n.Datadir, "binlog.[0-9]*[0-9]")) // MariaDB 11.4 also has indexes of GTIDs, .idx
	if err != nil || len(paths) == 0 {
		t.Fatalf("no binary logs in %s: got %v; want len(paths) not 0", n.Datadir, err)
	}
	out := map[string][]byte{}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		if len(b) > 4+binlogevent.HeaderLen {
			binlogevent.ClearInUse(b[4:])
		}
		out[filepath.Base(p)] = b
	}
	return out
}

// same compares the mirrored logs of the newest series of a server with the server's own files.
func same(t *testing.T, dir string, logs map[string][]byte) (compared int) {
	t.Helper()
	return sameIn(t, folder(dir), dir, logs)
}

func sameIn(t *testing.T, place Place, dir string, logs map[string][]byte) (compared int) {
	t.Helper()
	list, err := List(t.Context(), place, dir)
	if err != nil {
		t.Fatal(err)
	}
	return sameSeries(t, list[len(list)-1], place, dir, logs)
}

func sameSeries(t *testing.T, s Series, place Place, dir string, logs map[string][]byte) (compared int) {
	t.Helper()
	if gaps := s.Gaps(); len(gaps) > 0 {
		t.Errorf("gaps: got %v, want none", gaps)
	}
	place.Policy = onlyKey{key: repo.PublicOf(testKey)} // all of it was signed
	for i, f := range s.Files(place, dir) {
		in, err := f.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		_, err = b.ReadFrom(in)
		in.Close()
		if err != nil {
			t.Fatal(err)
		}
		want, ok := logs[f.Name]
		if !ok {
			t.Errorf("%s is not the server's", f.Name)
			continue
		}
		if rest, ok := bytes.CutPrefix(want, b.Bytes()); !ok || s.Logs[i].Finished && len(rest) > 0 || !onlyCheckpoints(rest) {
			t.Errorf("%s differs: %d bytes, the server has %d", f.Name, b.Len(), len(want))
		}
		if s.Logs[i].Finished {
			if err := Verify(t.Context(), place, s.Key, s.Logs[i]); err != nil {
				t.Error(err)
			}
		}
		compared++
	}
	if compared != len(logs) {
		t.Errorf("%d logs mirrored, the server has %d", compared, len(logs))
	}
	return compared
}

// onlyCheckpoints reports whether there is nothing but what MariaDB writes after a rotation in its own time.
func onlyCheckpoints(events []byte) bool {
	for len(events) >= binlogevent.HeaderLen {
		h := binlogevent.ParseHeader(events)
		if h.Type != binlogevent.TypeBinlogCheckpoint || int(h.Length) > len(events) {
			return false
		}
		events = events[h.Length:]
	}
	return len(events) == 0
}

// mirrored waits until the mirror has everything that the server has.
func mirrored(t *testing.T, dir string, n *sandbox.Node) {
	t.Helper()
	c, err := mysql.Connect(t.Context(), target(t, n), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	file, pos := sandboxtest.LogPosition(t, c)
	await.Until(t, func() bool {
		paths, _ := filepath.Glob(filepath.Join(dir, "binlog", "*", file))
		return slices.ContainsFunc(paths, func(p string) bool {
			st, err := os.Stat(p)
			key := filepath.Base(filepath.Dir(p))
			parts, serr := folder(dir).signedParts(key, p)
			return err == nil && serr == nil && st.Size() >= pos && len(parts) > 0 && parts[0].Size >= pos && (Series{Key: key}).Of(c.Server.ID)
		})
	}, "mirrored up to %s:%d", file, pos)
}

// follow mirrors in the background until the returned function is called.
func follow(t *testing.T, o Options) (stop func()) {
	t.Helper()
	return followWith(t, o, func(n Note) { t.Log(n.Text) })
}

func followWith(t *testing.T, o Options, note func(Note)) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	o.Note = note
	if o.Place.Store == nil {
		o.Place = folder(o.Dir)
	}
	done := make(chan error, 1)
	go func() { done <- Follow(ctx, o) }()
	end := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("follow: %v", err)
		}
	})
	t.Cleanup(end)
	return end
}

func TestFollow(t *testing.T) {
	for _, spec := range flavours {
		t.Run(spec, func(t *testing.T) {
			n := sandboxtest.Up(t, spec, settings(spec)...)
			db := open(t, n)
			exec1(t, db, "CREATE TABLE test.t (id INT PRIMARY KEY, v TEXT)")
			dir := t.TempDir()
			tg := target(t, n)
			load(t, db, 0, 100)
			stop := follow(t, Options{Target: tg, Dir: dir})
			load(t, db, 100, 200)
			mirrored(t, dir, n)
			t.Run("second process", func(t *testing.T) {
				if err := Follow(t.Context(), Options{Target: tg, Place: folder(dir), Dir: dir}); !errors.Is(err, ErrInUse) {
					t.Errorf("got %v, want ErrInUse", err)
				}
			})
			// The server dies and comes back.
			if err := n.Kill(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if err := n.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			load(t, db, 200, 300)
			mirrored(t, dir, n)
			stop()
			tearTail(t, dir)
			load(t, db, 300, 350)
			if err := Follow(t.Context(), Options{Target: tg, Place: folder(dir), Dir: dir, Once: true}); err != nil {
				t.Fatal(err)
			}
			t.Logf("%d logs are the same", same(t, dir, serverLogs(t, n)))

			t.Run("reset", func(t *testing.T) { resetKeeps(t, db, n, dir) })
		})
	}
}

// tearTail cuts into the last event of the log that is being written, and puts half an event after it, as a crash may.
func tearTail(t *testing.T, dir string) {
	t.Helper()
	logs, err := localLogs(dir)
	if err != nil || len(logs) == 0 {
		t.Fatalf("no log is being written: %v; want len(logs) not 0", err)
	}
	p := logs[len(logs)-1].path
	b, err := os.ReadFile(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, b[:len(b)-7], 0o600); err != nil {
		t.Fatal(err)
	}
}

// resetKeeps empties the server's logs, which then begin with the same names: nothing of the mirror may be lost.
func resetKeeps(t *testing.T, db *sql.DB, n *sandbox.Node, dir string) {
	before, err := List(t.Context(), folder(dir), dir)
	if err != nil {
		t.Fatal(err)
	}
	reset := "RESET MASTER"
	if strings.Contains(n.Program.Name, "9.") {
		reset = "RESET BINARY LOGS AND GTIDS"
	}
	exec1(t, db, reset)
	load(t, db, 350, 370)
	if err := Follow(t.Context(), Options{Target: target(t, n), Place: folder(dir), Dir: dir, Once: true}); err != nil {
		t.Fatal(err)
	}
	same(t, dir, serverLogs(t, n))
	after, err := List(t.Context(), folder(dir), dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(after) != len(before)+1 {
		t.Fatalf("got %d series before the reset, %d after it; want %d", len(before), len(after), len(before)+1)
	}
	for i, l := range before[0].Logs {
		if got := after[0].Logs[i]; got.SHA256 != l.SHA256 {
			t.Errorf("%s was overwritten, want got.SHA256 %v", l.Name, l.SHA256)
		}
	}
}

// TestFollowKilled kills the mirrors' processes again and again under load: one writes in the clear, one encrypts.
func TestFollowKilled(t *testing.T) {
	n := sandboxtest.Up(t, "mariadb", settings("mariadb")...)
	db := open(t, n)
	exec1(t, db, "CREATE TABLE test.t (id INT PRIMARY KEY, v TEXT)")
	dir := t.TempDir()
	who, sealed, cache := encrypted(t)
	for round := range 6 {
		plain, secret := process(t, dir, "", "", n.DSN), process(t, sealed, cache, "", n.DSN)
		load(t, db, round*60, round*60+60)
		time.Sleep(time.Duration(round*37%50) * time.Millisecond)
		for _, p := range []*exec.Cmd{plain, secret} {
			p.Process.Kill()
			p.Wait()
		}
	}
	for _, o := range []Options{{Place: folder(dir), Dir: dir}, {Place: keyed(sealed, repo.Keys{CacheDir: cache}), Dir: sealed}} {
		o.Target, o.Once = target(t, n), true
		if err := Follow(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	logs := serverLogs(t, n)
	same(t, dir, logs)
	sameIn(t, keyed(sealed, who), sealed, logs)
	noSecrets(t, sealed)
	t.Run("without a key", func(t *testing.T) { withoutKey(t, sealed, len(logs)) })
	t.Run("damage", func(t *testing.T) { sealedDamage(t, n, db, sealed, cache, who) })
}

// encrypted makes an encrypted repository: its reader, its folder, and that of the keys of the host that writes.
func encrypted(t *testing.T) (who repo.Keys, dir, cache string) {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	dir, cache = t.TempDir(), t.TempDir()
	keyed(dir, repo.Keys{Recipients: []string{id.Recipient().String()}, CacheDir: cache})
	return repo.Keys{Identities: []age.Identity{id}}, dir, cache
}

// noSecrets looks for what the tests write to the server in every file of a folder.
func noSecrets(t *testing.T, dir string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		b, err := os.ReadFile(path)
		for _, text := range []string{"INSERT INTO", "xxxxxxxx"} {
			if bytes.Contains(b, []byte(text)) {
				t.Errorf("%s has %q in it, want no []byte(text) in it", path, text)
			}
		}
		return err
	})
	if err != nil || files < 3 {
		t.Fatalf("got %d files: %v; want at least 3", files, err)
	}
}

// withoutKey looks at encrypted logs with nothing in hand.
func withoutKey(t *testing.T, dir string, logs int) {
	list, err := List(t.Context(), folder(dir), dir)
	if err != nil || len(list) != 1 || len(list[0].Logs) != logs {
		t.Fatalf("got %+v: %v; want len(list) 1, len(list[0].Logs) %v", list, err, logs)
	}
	s := list[0]
	newest := s.Logs[logs-1]
	if newest.Finished || !newest.Locked || newest.Size == 0 || newest.Last.IsZero() {
		t.Errorf("the log that is being written: %+v; want Finished false, Locked true, Size not 0, Last.IsZero() false", newest)
	}
	for i, f := range s.Files(folder(dir), dir) {
		if in, err := f.Open(t.Context()); !errors.Is(err, repo.ErrNoKey) {
			t.Errorf("%s can be opened: %v %v, want repo.ErrNoKey", f.Name, in, err)
		}
		if l := s.Logs[i]; l.Finished {
			if err := Verify(t.Context(), folder(dir), s.Key, l); err != nil {
				t.Error(err)
			}
		}
	}
}

// sealedDamage changes a bit of the encrypted log that is being written, and of a finished one.
func sealedDamage(t *testing.T, n *sandbox.Node, db *sql.DB, dir, cache string, who repo.Keys) {
	writer := keyed(dir, repo.Keys{CacheDir: cache})
	growing, err := localLogs(dir)
	if err != nil || len(growing) != 1 {
		t.Fatalf("%v: got %v; want length 1", growing, err)
	}
	flip := func(path string, from int64) {
		t.Helper()
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b[from] ^= 4
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var notes []Note
	again := func(from int) {
		t.Helper()
		load(t, db, from, from+3)
		if err := Follow(t.Context(), Options{Target: target(t, n), Place: writer, Dir: dir, Once: true, Note: func(n Note) { notes = append(notes, n) }}); err != nil {
			t.Fatal(err)
		}
	}
	again(1000)                // a second frame
	flip(growing[0].path, 600) // after the head, in the first frame
	again(1010)
	if aside, _ := filepath.Glob(growing[0].path + setAside + "*"); len(aside) != 1 {
		t.Errorf("the damaged log was not set aside: %+v, want len(aside) 1", notes)
	}
	sameIn(t, keyed(dir, who), dir, serverLogs(t, n))
	list, err := List(t.Context(), writer, dir)
	if err != nil {
		t.Fatal(err)
	}
	s := list[0]
	flip(filepath.Join(dir, root, s.Key, s.Logs[0].Name+extSealed), s.Logs[0].Stored/2)
	for name, p := range map[string]Place{"with an identity": keyed(dir, who), "without": writer} {
		if err := Verify(t.Context(), p, s.Key, s.Logs[0]); err == nil {
			t.Errorf("%s the damage is not found", name)
		}
	}
}

// TestEncryptLater makes a place encrypted when a log is already being written there in the clear.
func TestEncryptLater(t *testing.T) {
	n := sandboxtest.Up(t, "mariadb", settings("mariadb")...)
	db := open(t, n)
	exec1(t, db, "CREATE TABLE test.t (id INT PRIMARY KEY, v TEXT)")
	load(t, db, 0, 20)
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	dir, cache := t.TempDir(), t.TempDir()
	write := repo.Keys{Recipients: []string{id.Recipient().String()}, CacheDir: cache}
	for i, p := range []func() Place{func() Place { return folder(dir) }, func() Place { return keyed(dir, write) }, func() Place { return keyed(dir, write) }} {
		if err := Follow(t.Context(), Options{Target: target(t, n), Place: p(), Dir: dir, Once: true}); err != nil {
			t.Fatal(err)
		}
		sameIn(t, p(), dir, serverLogs(t, n))
		load(t, db, 100*i+100, 100*i+105)
	}
	noSecrets(t, dir)
	if err := Follow(t.Context(), Options{Target: target(t, n), Place: folder(dir), Dir: dir, Once: true}); err == nil {
		t.Error("a host without the repository's keys goes on")
	}
}

func TestExpired(t *testing.T) {
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	log := func(name string, days int, finished bool) Log {
		return Log{Index: binlog.Index{Name: name, Last: now.AddDate(0, 0, -days)}, Finished: finished}
	}
	s := Series{Key: "k", Logs: []Log{log("b.1", 20, true), log("b.2", 15, true), log("b.3", 3, true), log("b.4", 30, true), log("b.5", 30, false)}}
	var names []string
	for _, d := range Expired([]Series{s}, 14*24*time.Hour, now) {
		names = append(names, d.Name)
	}
	if got := strings.Join(names, " "); got != "b.1 b.2" { // b.4 is old by its clock, but b.3 in front of it stays
		t.Errorf("%s may go, want \"b.1 b.2\"", got)
	}
	if got := Expired([]Series{{Logs: []Log{log("b.1", 99, true)}}}, time.Hour, now); len(got) > 0 {
		t.Errorf("the newest of a series may go: got %v, want none", got)
	}
}
