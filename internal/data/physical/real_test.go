package physical

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/store/blob"
)

// openRepo opens the repository in a folder, and makes it if there is none.
func openRepo(t *testing.T, dir string) *repo.Repo {
	t.Helper()
	store, err := blob.Open(t.Context(), dir, blob.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	r, err := repo.CreateWith(t.Context(), repo.On(store), repo.Keys{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func newRepo(t *testing.T) (*repo.Repo, string) {
	t.Helper()
	dir := t.TempDir()
	return openRepo(t, dir), dir
}

// files counts what is in a folder.
func files(t *testing.T, dir string) (n int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// rewrite puts other bytes into a file of a repository, which is not writable.
func rewrite(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func target(t *testing.T, n *sandbox.Node) mysql.Target {
	t.Helper()
	d, err := mysql.ParseTarget(n.DSN)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func run(t *testing.T, n *sandbox.Node, statements string) []sandbox.Result {
	t.Helper()
	r, err := n.Query(t.Context(), statements)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func one(t *testing.T, n *sandbox.Node, query string) string {
	t.Helper()
	r := run(t, n, query)
	if len(r[0].Rows) == 0 || r[0].Rows[0][0] == nil {
		return ""
	}
	return *r[0].Rows[0][0]
}

// startOn restores a backup into a sandbox and starts it.
func startOn(t *testing.T, spec string, r *repo.Repo, id string) (*sandbox.Node, Restored) {
	t.Helper()
	dir, err := os.MkdirTemp("", "rt-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	var got Restored
	s, err := sandbox.Up(t.Context(), sandbox.Options{Name: "t", Dir: dir, Servers: []string{spec}, Data: func(ctx context.Context, dir string) ([]string, error) {
		var err error
		got, err = Restore(ctx, RestoreOptions{Repo: r, Backup: id, Datadir: dir})
		return got.Settings, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Down(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return s.Primary(), got
}

// checksums are what a server holds in the schema shop.
func checksums(t *testing.T, n *sandbox.Node) string {
	t.Helper()
	var b strings.Builder
	for _, row := range run(t, n, "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'shop' AND TABLE_TYPE = 'BASE TABLE' ORDER BY 1")[0].Rows {
		r := run(t, n, "CHECKSUM TABLE shop."+*row[0])[0].Rows[0]
		fmt.Fprintf(&b, "%s %s\n", *r[0], *r[1])
	}
	return b.String()
}

const shop = `CREATE DATABASE shop; CREATE DATABASE nothing; USE shop;
	CREATE TABLE a (id INT AUTO_INCREMENT PRIMARY KEY, t TEXT);
	INSERT INTO a (t) WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT REPEAT(SHA2(i, 256), 20) FROM n;
	INSERT INTO a (t) SELECT CONCAT(t, id) FROM a; INSERT INTO a (t) SELECT CONCAT(t, id) FROM a; INSERT INTO a (t) SELECT CONCAT(t, id) FROM a;
	CREATE VIEW v AS SELECT COUNT(*) FROM a; CREATE TABLE ticks (at TIMESTAMP); CREATE EVENT e ON SCHEDULE EVERY 1 SECOND DO INSERT INTO shop.ticks VALUES (NOW())`

func TestMariaDB(t *testing.T) {
	n := sandboxtest.Up(t, "mariadb")
	run(t, n, shop+`; CREATE TABLE m (id INT PRIMARY KEY, t TEXT) ENGINE=Aria TRANSACTIONAL=0; INSERT INTO m SELECT id, SHA2(id, 256) FROM a`)
	r, place := newRepo(t)
	o := Options{Target: target(t, n), Repo: r, Name: "db1", Incremental: true}
	full, err := Take(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	want := checksums(t, n)
	run(t, n, `USE shop; INSERT INTO a (t) SELECT SHA2(id, 256) FROM a WHERE id < 500; UPDATE a SET t='x' WHERE id=7; CREATE TABLE later (id INT PRIMARY KEY); INSERT INTO later VALUES (1); DELETE FROM m WHERE id < 10`)
	second, err := Take(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if second.Parent != full.ID || second.Bytes >= full.Bytes {
		t.Errorf("got %+v on %+v; want Parent %v, Bytes less than %v", second, full, full.ID, full.Bytes)
	}
	wantSecond := checksums(t, n)
	if got := one(t, n, "SELECT @@gtid_binlog_pos"); got != second.Position.GTIDSet || got == full.Position.GTIDSet {
		t.Errorf("the position is %+v, the server at %s", second.Position, got)
	}
	t.Run("guard", func(t *testing.T) { testGuard(t, n, o) })
	t.Run("interrupted", func(t *testing.T) { testInterrupted(t, o, place) })
	t.Run("damaged", func(t *testing.T) { testDamaged(t, r, place, full.ID) })
	t.Run("whole", func(t *testing.T) {
		back, _ := startOn(t, "mariadb", r, full.ID)
		if got := checksums(t, back); got != want {
			t.Errorf("restored:\n%s\nnot\n%s", got, want)
		}
	})
	t.Run("incremental", func(t *testing.T) {
		back, got := startOn(t, "mariadb", r, second.ID)
		if len(got.Chain) != 2 {
			t.Errorf("got %v, want length 2", got.Chain)
		}
		if got := checksums(t, back); got != wantSecond {
			t.Errorf("restored:\n%s\nnot\n%s", got, wantSecond)
		}
		if got := one(t, back, "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 'nothing'"); got != "1" {
			t.Errorf("the empty schema is gone: got %v, want \"1\"", got)
		}
	})
}

// TestMariaDBTLS: a server that takes encrypted connections only, and an account that needs a certificate, are backed up over TCP as
// the option file or the DSN says.
func TestMariaDBTLS(t *testing.T) {
	settings, _ := sandboxtest.TLS(t)
	n := sandboxtest.Up(t, "mariadb", append(settings, "require_secure_transport=ON")...)
	run(t, n, shop+`; CREATE USER any@'127.0.0.1' IDENTIFIED BY 'p'; GRANT ALL ON *.* TO any@'127.0.0.1'; CREATE USER known@'127.0.0.1' IDENTIFIED BY 'p' REQUIRE X509; GRANT ALL ON *.* TO known@'127.0.0.1'`)
	cert, key := strings.TrimPrefix(settings[0], "ssl_cert="), strings.TrimPrefix(settings[1], "ssl_key=")
	for _, c := range []struct{ user, parameter, lines string }{
		{"any", "?tls=skip-verify", ""},
		{"any", "", "ssl-mode=REQUIRED"},
		{"any", "", "ssl-ca=" + cert},
		{"any", "", "ssl-verify-server-cert\nssl-ca=" + cert},
		{"known", "", "ssl-ca=" + cert + "\nssl-cert=" + cert + "\nssl-key=" + key},
	} {
		path := filepath.Join(t.TempDir(), "my.cnf")
		if err := os.WriteFile(path, []byte("[client]\n"+c.lines+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := mysql.ReadDefaults(path)
		if err != nil {
			t.Fatal(err)
		}
		to, err := mysql.ParseTarget(fmt.Sprintf("%s:p@tcp(127.0.0.1:%d)/%s", c.user, n.Port, c.parameter))
		if err != nil {
			t.Fatal(err)
		}
		r, _ := newRepo(t)
		if h, err := Take(t.Context(), Options{Target: to.WithFallback(d), Repo: r, Name: "db1"}); err != nil || h.Stream.Files == 0 {
			t.Errorf("%s %s%q: got %v; want h.Stream.Files not 0", c.user, c.parameter, c.lines, err)
		}
	}
	plain, err := mysql.ParseTarget(fmt.Sprintf("any:p@tcp(127.0.0.1:%d)/?tls=false", n.Port))
	if err != nil {
		t.Fatal(err)
	}
	r, _ := newRepo(t)
	if _, err := Take(t.Context(), Options{Target: plain, Repo: r, Name: "db1"}); err == nil {
		t.Error("in plain text: got no error")
	}
}

func TestClone(t *testing.T) {
	if dsn := os.Getenv("RISSO_TEST_CLONE_DSN"); dsn != "" {
		d, err := mysql.ParseTarget(dsn)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Take(t.Context(), Options{Target: d, Repo: openRepo(t, os.Getenv("RISSO_TEST_CLONE_PLACE")), WorkDir: os.Getenv("RISSO_TEST_CLONE_WORK"), JournalDir: os.Getenv("RISSO_TEST_CLONE_JOURNAL"), Install: true})
		t.Fatalf("it came to its end: %v, want dsn \"\"", err)
	}
	n := sandboxtest.Up(t, "mysql-9.7")
	run(t, n, shop+"; CREATE TABLE m (id INT PRIMARY KEY) ENGINE=MyISAM; INSERT INTO m VALUES (1)")
	r, place := newRepo(t)
	work := t.TempDir()
	o := Options{Target: target(t, n), Repo: r, Name: "db1", WorkDir: work, JournalDir: t.TempDir()}
	if _, err := Take(t.Context(), o); !errors.Is(err, ErrConsent) {
		t.Fatalf("without consent: got %v, want ErrConsent", err)
	}
	if list, err := r.Backups(t.Context()); err != nil || len(list) != 0 {
		t.Fatalf("got %v, %v; want none", list, err)
	}
	if plan, err := Prepare(t.Context(), o); !errors.Is(err, ErrConsent) {
		t.Fatalf("without consent a plan is made: %+v, %v; want ErrConsent", plan, err)
	}
	o.Install = true
	plan, err := Prepare(t.Context(), o)
	if err != nil || len(plan.Changes) != 2 || len(plan.Notes) != 1 || !strings.Contains(plan.Notes[0], "shop.m (MyISAM)") || !strings.Contains(plan.Needs, "mysql.plugin") {
		t.Fatalf("got %+v, %v; want len(Changes) 2, len(Notes) 1, \"shop.m (MyISAM)\" in Notes[0], \"mysql.plugin\" in Needs", plan, err)
	}
	run(t, n, "DROP EVENT shop.e; DROP TABLE shop.m")
	testCloneKilled(t, n, o, place)
	h, err := Take(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if got := one(t, n, "SELECT @@gtid_executed"); got != h.Position.GTIDSet || got == "" || h.Position.File != "binlog.000001" || h.Position.Offset == 0 {
		t.Errorf("the position is %+v, the server at %s", h.Position, got)
	}
	if got := one(t, n, "SELECT COUNT(*) FROM information_schema.PLUGINS WHERE PLUGIN_NAME = 'clone'"); got != "0" {
		t.Errorf("the plug-in stays: got %v, want \"0\"", got)
	}
	for _, dir := range []string{work, o.JournalDir} {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%v is left, %v; want none", left, err)
		}
	}
	want := checksums(t, n)
	run(t, n, "DELETE FROM shop.a")
	back, _ := startOn(t, "mysql-9.7", r, "")
	if got := checksums(t, back); got != want {
		t.Errorf("restored:\n%s\nnot\n%s", got, want)
	}
	if got := one(t, back, "SELECT @@gtid_executed"); got != h.Position.GTIDSet {
		t.Errorf("the restored server is at %s, not %s", got, h.Position.GTIDSet)
	}
	if one(t, back, "SELECT @@server_uuid") == one(t, n, "SELECT @@server_uuid") {
		t.Error("both servers have one identity")
	}
	run(t, back, "CREATE TABLE nothing.t (id INT PRIMARY KEY)")
	testCloneLimit(t, n, o)
	testCloneWatched(t, n, o)
	testLogsUnknown(t, n, o)
}

// testLogsUnknown: if the account may not ask what the binary logs leave out the backup says that it is unknown, and names the GRANT that helps.
func testLogsUnknown(t *testing.T, n *sandbox.Node, o Options) {
	run(t, n, "CREATE USER few@localhost; GRANT BACKUP_ADMIN, SELECT ON *.* TO few@localhost")
	var err error
	if o.Target, err = mysql.ParseTarget(strings.Replace(n.DSN, "root", "few", 1)); err != nil {
		t.Fatal(err)
	}
	said := func() (string, string) {
		t.Helper()
		j, err := newJob(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer j.conn.Close()
		if err := j.describe(t.Context()); err != nil {
			t.Fatal(err)
		}
		return strings.Join(j.header.Notes, "\n"), j.plan.Needs
	}
	notes, grant := said()
	if !strings.Contains(notes, "and so whether rolling forward is complete (before the next backup run "+grant+")") {
		t.Errorf("got %q, want %q in it", notes, "and so whether rolling forward is complete (before the next backup run "+grant+")")
	}
	run(t, n, grant)
	if notes, _ := said(); strings.Contains(notes, "nobody knows") {
		t.Errorf("behind %s: got %q, want no \"nobody knows\" in it", grant, notes)
	}
}

// testCloneWatched ends CLONE while the question how far it is has no answer yet: the backup goes on with its connection.
func testCloneWatched(t *testing.T, n *sandbox.Node, o Options) {
	looked := make(chan struct{}, 100)
	o.Progress = func(Progress) { looked <- struct{}{} }
	j, err := newJob(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer j.conn.Close()
	watch, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { // ends with stop
		defer close(done)
		j.watchClone(watch)
	}()
	<-looked
	asked := &j.conn.Traffic().Queries
	before := asked.Load()
	goOn := sandboxtest.Pause(t, n)
	await.Until(t, func() bool { return asked.Load() != before }, "the next look")
	stop()
	<-done
	goOn()
	if _, err := read.Variables(t.Context(), j.conn, []string{"basedir"}); err != nil {
		t.Errorf("the backup's connection: %v", err)
	}
}

// testCloneLimit limits the copy of a server whose plug-in is its own, on which a killed backup left its limit: then it has
// its own limit again.
func testCloneLimit(t *testing.T, n *sandbox.Node, o Options) {
	run(t, n, "INSTALL PLUGIN clone SONAME 'mysql_clone.so'; SET GLOBAL clone_max_data_bandwidth = 95")
	conn, err := mysql.Connect(t.Context(), o.Target, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := new(job).lent().Borrow(o.JournalDir, o.Target, conn.Server, 0, cloneOld{Dir: filepath.Join(o.WorkDir, cloneDirPrefix+"killed"), Limit: 95, Was: 500}); err != nil {
		t.Fatal(err)
	}
	journals, err := filepath.Glob(filepath.Join(o.JournalDir, "clone-*.json"))
	if err != nil || len(journals) != 1 {
		t.Fatalf("journals: %q, %v; want one", journals, err)
	}
	kept, err := os.ReadFile(journals[0])
	if err == nil {
		err = errors.Join(os.Remove(journals[0]), os.WriteFile(journals[0], kept, 0o600)) // the new one is not locked, as after a kill
	}
	if err != nil {
		t.Fatal(err)
	}
	limit := func() string { return one(t, n, "SELECT @@GLOBAL.clone_max_data_bandwidth") }
	var planned []string
	meanwhile := ""
	o.Install, o.Rate = false, 300_000_000
	o.Planned = func(p Plan) error {
		if got := limit(); got != "95" {
			t.Errorf("the plan has changed the limit to %s, want \"95\"", got)
		}
		planned = p.Changes
		return nil
	}
	o.Progress = func(p Progress) {
		if p.Stage == "recovering the copy" {
			meanwhile = limit()
		}
	}
	if _, err := Take(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if meanwhile != "287" || limit() != "500" || len(planned) != 1 || !strings.Contains(planned[0], "clone_max_data_bandwidth = 287") {
		t.Errorf("the limit was %s, and is %s; planned was %q; want meanwhile \"287\", limit() \"500\", len(planned) 1, \"clone_max_data_bandwidth = 287\" in planned[0]",
			meanwhile, limit(), planned)
	}
	errNo := errors.New("no")
	o.Planned = func(Plan) error { return errNo }
	if _, err := Take(t.Context(), o); !errors.Is(err, errNo) {
		t.Errorf("against the plan: got %v, want errNo", err)
	}
}

// testGuard lets a statement block the tool's lock: the request is withdrawn in time, or the statement ended
// if that is asked for.
func testGuard(t *testing.T, n *sandbox.Node, o Options) {
	o.LockWait, o.Incremental = time.Second, false
	long := make(chan error, 1)
	stand := func() {
		go func() { // ends when the statement is killed, or after five minutes
			_, err := n.Query(context.Background(), "INSERT INTO shop.m SELECT 1000000 + SLEEP(300), 'x'")
			long <- err
		}()
		await.Until(t, func() bool {
			return one(t, n, "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'INSERT INTO shop.m%'") == "1"
		}, "the long statement")
	}
	stand()
	began := time.Now()
	_, err := Take(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "withdrew") || !strings.Contains(fleet.RemedyOf(err), "--kill-long-queries") {
		t.Errorf("got %v; want an error, \"withdrew\" in the error, \"--kill-long-queries\" in it", err)
	}
	if took := time.Since(began); took > 2*time.Minute {
		t.Errorf("it waited for %s, want at most 2 * time.Minute", took)
	}
	if got := one(t, n, "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'INSERT INTO shop.m%'"); got != "1" {
		t.Errorf("the statement was ended, unasked: got %v, want \"1\"", got)
	}
	o.KillLongQueries = true
	h, err := Take(t.Context(), o)
	if err != nil || len(h.Notes) != 1 || !strings.Contains(h.Notes[0], "ended a statement") {
		t.Errorf("got %+v, %v; want len(h.Notes) 1, \"ended a statement\" in h.Notes[0]", h.Notes, err)
	}
	<-long
}

// testInterrupted ends a backup in the middle: nothing of it is left, neither here nor on the server.
func testInterrupted(t *testing.T, o Options, place string) {
	t.Setenv("TMPDIR", t.TempDir()) // others make backups meanwhile
	before := files(t, place)
	for _, at := range []int64{1, 20 << 20} {
		ctx, cancel := context.WithCancel(t.Context())
		o.Incremental, o.Progress = false, func(p Progress) {
			if p.Done >= at {
				cancel()
			}
		}
		if _, err := Take(ctx, o); !errors.Is(err, context.Canceled) {
			t.Errorf("at %d: got %v, want context.Canceled", at, err)
		}
		cancel()
		if after := files(t, place); after != before {
			t.Errorf("at %d: %d files, there were %d", at, after, before)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "*")); len(left) > 0 {
		t.Errorf("got %v, want none", left)
	}
}

// testDamaged flips a bit, cuts and loses parts: a restore says so and leaves nothing; one into a directory that holds
// something refuses; one that was killed starts over.
func testDamaged(t *testing.T, r *repo.Repo, place, id string) {
	dir := filepath.Join(t.TempDir(), "data")
	part := filepath.Join(place, "physical", id, "000000")
	whole, err := os.ReadFile(part)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(whole)
	flipped[len(whole)/2] ^= 1
	for what, b := range map[string][]byte{"a changed bit": flipped, "a cut": whole[:len(whole)-1], "nothing": nil} {
		rewrite(t, part, b)
		if _, err := Restore(t.Context(), RestoreOptions{Repo: r, Backup: id, Datadir: dir}); !errors.Is(err, repo.ErrDamaged) {
			t.Errorf("%s: got %v, want repo.ErrDamaged", what, err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s leaves %s, want fs.ErrNotExist", what, dir)
		}
	}
	rewrite(t, part, whole)
	testRestorePlan(t, r, id, dir, "make data directory "+dir)
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a plan makes %s, want fs.ErrNotExist", dir)
	}
	if err := os.MkdirAll(filepath.Join(dir, "shop"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(t.Context(), RestoreOptions{Repo: r, Backup: id, Datadir: dir}); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("over something: got %v, want ErrNotEmpty", err)
	}
	if _, err := PrepareRestore(t.Context(), RestoreOptions{Repo: r, Backup: id, Datadir: dir}); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("plan over something: got %v, want ErrNotEmpty", err)
	}
	if err := os.WriteFile(filepath.Join(dir, unfinishedFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	testRestorePlan(t, r, id, dir, "empty directory "+dir+": an interrupted restore left files there")
	if _, err := os.Stat(filepath.Join(dir, "shop")); err != nil {
		t.Errorf("a plan removes files: %v", err)
	}
	got, err := Restore(t.Context(), RestoreOptions{Repo: r, Backup: id, Datadir: dir})
	if err != nil || got.Header.ID != id {
		t.Errorf("after a killed one: got %+v, %v; want Header.ID %v", got, err, id)
	}
	for _, name := range []string{unfinishedFile, "xtrabackup_info", "backup-my.cnf"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Error(name, "stays")
		}
	}
}

// testRestorePlan: a plan has a step for each backup of the chain and each run of the tool.
func testRestorePlan(t *testing.T, r *repo.Repo, id, dir, first string) {
	t.Helper()
	p, err := PrepareRestore(t.Context(), RestoreOptions{Repo: r, Backup: id, Datadir: dir})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{first}
	for _, link := range p.Chain {
		want = append(want, "fetch backup "+link)
		if tool := p.Header.Stream.Tool; tool != string(mysql.ToolClone) {
			want = append(want, "apply redo log "+link+": by "+tool)
		}
	}
	want = append(want, "finish data directory "+dir)
	if got := p.Steps.Words(); !slices.EqualFunc(got, want, strings.HasPrefix) || p.Header.ID != id || p.Datadir != dir || p.Bytes == 0 {
		t.Errorf("got %q, %s in %s, %d bytes; want %q, %s in %s", got, p.Header.ID, p.Datadir, p.Bytes, want, id, dir)
	}
}

// testCloneKilled kills a backup with SIGKILL, once while the server copies itself, once after that; the next backup, which
// the rest of the test takes, puts everything back.
func testCloneKilled(t *testing.T, n *sandbox.Node, o Options, place string) {
	for _, stage := range []string{"data", "data/#clone/#status_recovery"} {
		cmd := osexec.Command(os.Args[0], "-test.run=^TestClone$")
		cmd.Env = append(os.Environ(), "RISSO_TEST_CLONE_DSN="+n.DSN, "RISSO_TEST_CLONE_PLACE="+place, "RISSO_TEST_CLONE_WORK="+o.WorkDir, "RISSO_TEST_CLONE_JOURNAL="+o.JournalDir)
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		await.Until(t, func() bool {
			found, _ := filepath.Glob(filepath.Join(o.WorkDir, cloneDirPrefix+"*", stage))
			return len(found) > 0
		}, "%s", stage)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		if left, err := os.ReadDir(o.WorkDir); err != nil || len(left) != 1 {
			t.Fatalf("%s: got %v, %v; want length 1", stage, left, err)
		}
		if left, err := os.ReadDir(o.JournalDir); err != nil || len(left) != 1 {
			t.Fatalf("%s: got %v, %v; want length 1", stage, left, err)
		}
	}
	list, err := o.Repo.Backups(t.Context())
	if err != nil || len(list) > 0 {
		t.Errorf("got %v, %v; want none", list, err)
	}
}
