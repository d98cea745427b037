package scenario_test

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"fmt"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sandbox"
)

// lockCase is a session that holds a lock and one that waits for it.
type lockCase struct {
	name    string
	only    string   // the servers that have it
	holds   []string // what the holder runs; the last of it is what it ran last
	runs    string   // what it goes on running after these, asleep
	waits   string
	kind    read.LockKind
	object  string // schema.name, or a name
	index   string
	maybe   bool   // the server does not show the holder
	words   string // that the trace says
	weak    bool   // of a lock of the whole server: the holder is a statement
	release string
	after   string // the waiter's, when it has got what it waited for
}

func (c lockCase) last() string {
	if c.runs != "" {
		return c.runs
	}
	return c.holds[len(c.holds)-1]
}

var lockCases = []lockCase{
	{name: "row", holds: []string{"BEGIN", "UPDATE shop.orders SET note = 'held' WHERE id = 1"}, waits: "UPDATE shop.orders SET note = 'wanted' WHERE id = 1",
		kind: read.LockRow, object: "shop.orders", index: "PRIMARY", words: "a row lock in the index PRIMARY of shop.orders", release: "ROLLBACK"},
	// The lock of an inserted row is made by the session that waits for it; its holder is known by the transaction.
	{name: "inserted row", holds: []string{"BEGIN", "INSERT INTO shop.orders VALUES (99, 1, 'new')"}, waits: "UPDATE shop.orders SET note = 'wanted' WHERE id = 99",
		kind: read.LockRow, object: "shop.orders", index: "PRIMARY", words: "a row lock in the index PRIMARY of shop.orders", release: "ROLLBACK"},
	{name: "metadata", holds: []string{"BEGIN", "SELECT note FROM shop.orders WHERE id = 2"}, waits: "ALTER TABLE shop.orders COMMENT 'changed'",
		kind: read.LockMetadata, object: "shop.orders", words: "a metadata lock on the table shop.orders", release: "ROLLBACK"},
	{name: "locked table", holds: []string{"LOCK TABLES shop.orders WRITE"}, waits: "UPDATE shop.orders SET note = 'x' WHERE id = 3",
		kind: read.LockMetadata, object: "shop.orders", words: "a metadata lock on the table shop.orders", release: "UNLOCK TABLES"},
	{name: "global read lock", holds: []string{"FLUSH TABLES WITH READ LOCK"}, waits: "UPDATE shop.orders SET note = 'y' WHERE id = 3",
		kind: read.LockGlobal, words: "the global read lock", release: "UNLOCK TABLES"},
	{name: "backup stage", only: "mariadb mariadb-11.8", holds: []string{"BACKUP STAGE START", "BACKUP STAGE FLUSH", "BACKUP STAGE BLOCK_DDL", "BACKUP STAGE BLOCK_COMMIT"}, waits: "UPDATE shop.orders SET note = 'z' WHERE id = 3",
		kind: read.LockGlobal, words: "a backup lock", release: "BACKUP STAGE END"},
	{name: "instance for backup", only: "mysql-9.7 mysql-8.0", holds: []string{"LOCK INSTANCE FOR BACKUP"}, waits: "ALTER TABLE shop.orders ADD COLUMN other INT",
		kind: read.LockGlobal, words: "the backup lock", release: "UNLOCK INSTANCE"},
	// InnoDB's own locks of tables are not among those that it counts as current waits.
	{name: "AUTO_INCREMENT", runs: "INSERT INTO shop.invoices (n) SELECT IF(id = 1, 0, SLEEP(600)) FROM shop.orders ORDER BY id", waits: "INSERT INTO shop.invoices (n) VALUES (1)",
		kind: read.LockRow, object: "shop.invoices", words: "the AUTO_INCREMENT lock of the table shop.invoices"},
	{name: "InnoDB table, of a child", only: "mariadb mariadb-11.8", holds: []string{"SET autocommit = 0", "LOCK TABLES shop.parents WRITE"}, waits: "INSERT INTO shop.children VALUES (1, 1)",
		kind: read.LockRow, object: "shop.children", words: "an InnoDB lock on the whole table shop.children (IX)"},
	{name: "InnoDB table", only: "mysql-5.7", holds: []string{"SET autocommit = 0", "LOCK TABLES shop.parents WRITE"}, waits: "INSERT INTO shop.children VALUES (1, 1)",
		kind: read.LockRow, object: "shop.parents", words: "an InnoDB lock on the whole table shop.parents (IS)"},
	{name: "global read lock behind a statement", runs: "UPDATE shop.orders SET n = SLEEP(600) WHERE id = 1", waits: "FLUSH TABLES WITH READ LOCK",
		kind: read.LockGlobal, words: "the global read lock", weak: true, after: "UNLOCK TABLES"},
	{name: "flush by metadata lock", only: "mariadb mariadb-11.8", runs: "SELECT SLEEP(600) FROM shop.orders WHERE id = 1", waits: "FLUSH TABLES shop.orders",
		kind: read.LockMetadata, object: "shop.orders", words: "a metadata lock on the table shop.orders (EXCLUSIVE)"},
	{name: "table flush", only: "mysql-9.7 mysql-8.0 mysql-5.7", runs: "SELECT SLEEP(600) FROM shop.orders WHERE id = 1", waits: "FLUSH TABLES shop.orders",
		kind: read.LockFlush, object: "shop.orders", maybe: true, words: "the table shop.orders to be closed (table flush)"},
	{name: "user lock", holds: []string{"SELECT GET_LOCK('the job', 1)"}, waits: "SELECT GET_LOCK('the job', 300)",
		kind: read.LockUser, object: "the job", words: "the user lock 'the job'", release: "SELECT RELEASE_LOCK('the job')"},
}

// lockCopy is longer than MySQL 5.7 and MariaDB answer from an old copy when asked repeatedly.
const lockCopy = 300 * time.Millisecond

// lockServer is a server with a table, a session that holds and one that waits: the one that is traced.
type lockServer struct {
	*traced
	holder             *sql.Conn
	holderID, waiterID int64
}

func newLockServer(t *testing.T, kind string, settings ...string) *lockServer {
	t.Helper()
	n := single(t, kind, append([]string{"lock_wait_timeout=600", "innodb_lock_wait_timeout=600", "innodb_autoinc_lock_mode=1", "innodb_use_native_aio=OFF"}, settings...)...) // the kernel has contexts for some thirty servers with it
	execSQL(t, n, "CREATE DATABASE shop; CREATE TABLE shop.orders (id INT PRIMARY KEY, n INT, note VARCHAR(100), KEY (n)); INSERT INTO shop.orders VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c');"+
		"CREATE TABLE shop.invoices (id INT AUTO_INCREMENT PRIMARY KEY, n INT); CREATE TABLE shop.parents (id INT PRIMARY KEY); INSERT INTO shop.parents VALUES (1);"+
		"CREATE TABLE shop.children (id INT PRIMARY KEY, parent INT, FOREIGN KEY (parent) REFERENCES shop.parents (id))")
	home := tempDir(t)
	connector, err := mysqldriver.NewConnector(n.Config())
	if err != nil {
		t.Fatal(err)
	}
	s := &lockServer{traced: &traced{node: n, home: home, env: environment(home, "XDG_STATE_HOME="+home), db: sql.OpenDB(connector)}}
	t.Cleanup(func() { s.db.Close() })
	s.conn, s.waiterID = s.session(t)
	s.id = fmt.Sprint(s.waiterID)
	s.holder, s.holderID = s.session(t)
	return s
}

func (s *lockServer) session(t *testing.T) (*sql.Conn, int64) {
	t.Helper()
	c, err := s.db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var id int64
	if err := c.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&id); err != nil {
		t.Fatal(err)
	}
	return c, id
}

func runAll(t *testing.T, c *sql.Conn, statements ...string) {
	t.Helper()
	for _, q := range statements {
		if _, err := c.ExecContext(t.Context(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
}

// wait makes the one session hold a lock and the other wait for it, while f runs; then release ends that.
func (s *lockServer) wait(t *testing.T, c lockCase, release, f func()) {
	t.Helper()
	runAll(t, s.holder, c.holds...)
	if c.runs != "" {
		holder := s.holder
		go func() { _, _ = holder.ExecContext(context.WithoutCancel(t.Context()), c.runs) }() // until it is killed
		s.asleep(t, s.holderID)
	}
	done := make(chan error, 1)
	go func() {
		_, err := s.conn.ExecContext(context.WithoutCancel(t.Context()), c.waits)
		done <- err
	}()
	defer func() {
		release()
		if err := <-done; err != nil {
			t.Errorf("%s: %v", c.waits, err)
		}
		if c.after != "" {
			runAll(t, s.conn, c.after)
		}
	}()
	f()
}

// asleep waits until a session sleeps in a statement.
func (s *lockServer) asleep(t *testing.T, id int64) {
	t.Helper()
	await(t, "the statement sleeps", func() bool {
		return value(t, s.node, fmt.Sprintf("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = %d AND STATE = 'User sleep'", id)) == "1"
	})
}

// letGo makes the holder release the lock.
func (s *lockServer) letGo(t *testing.T, c lockCase) func() {
	return func() { runAll(t, s.holder, c.release) }
}

// kill ends the holder's session, and opens another when it has left: MySQL 5.7 closes the socket of a session while that still reads
// from it, and forgets the KILL when a new connection has got the number of the file.
func (s *lockServer) kill(t *testing.T, r *mysql.Conn) {
	t.Helper()
	there := true
	ask := func(statement string) {
		err := r.Query(t.Context(), statement, func(row []sqldriver.Value) error {
			there = mysql.Text(row[0]) != "0"
			return nil
		})
		if err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	ask(fmt.Sprintf("KILL %d", s.holderID))
	await(t, "the holder has left", func() bool {
		ask(fmt.Sprintf("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = %d", s.holderID))
		return !there
	})
	_ = s.holder.Raw(func(any) error { return sqldriver.ErrBadConn }) // so that it is not reused
	s.holder, s.holderID = s.session(t)
}

func lockReader(t *testing.T, n *sandbox.Node, account string) *mysql.Conn {
	t.Helper()
	target, err := mysql.ParseTarget(fmt.Sprintf("%s@unix(%s)/", account, n.Socket))
	if err != nil {
		t.Fatal(err)
	}
	c, err := mysql.Connect(t.Context(), target, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// end interrupts a trace and returns what it says.
func (s *lockServer) end(t *testing.T, trace *risso) string {
	t.Helper()
	if err := trace.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	res := s.result(t, trace)
	return strings.Join(append(res.Words, res.Notes...), " ")
}

// TestLockWaits: whom a session waits for is shown by LockWaits and by a trace, for each kind of lock.
func TestLockWaits(t *testing.T) {
	t.Parallel()
	eachKind(t, kinds, func(t *testing.T, kind string) {
		s := newLockServer(t, kind, "performance_schema=ON", "performance_schema_instrument='wait/lock/metadata/sql/mdl=ON'", "performance_schema_consumer_events_statements_current=ON")
		if kind == "mariadb" {
			execSQL(t, s.node, "UPDATE performance_schema.setup_instruments SET ENABLED = 'YES', TIMED = 'YES' WHERE NAME LIKE 'statement/%'")
		}
		for _, c := range lockCases {
			if c.only == "" || strings.Contains(c.only, kind) {
				t.Run(c.name, func(t *testing.T) { s.one(t, c) })
			}
		}
		t.Run("prepared", s.prepared)
		t.Run("queue", s.queue)
		t.Run("few privileges", s.fewPrivileges)
	})
}

// one holds a lock of one kind, which the KILL that the trace names ends.
func (s *lockServer) one(t *testing.T, c lockCase) {
	r := lockReader(t, s.node, "root")
	trace := s.begin(t, "--for", "5m", "--output", "json")
	holder := s.holderID
	s.wait(t, c, func() { s.kill(t, r) }, func() {
		var w read.LockWait
		await(t, "the wait is told", func() bool {
			time.Sleep(lockCopy)
			list, gaps, err := read.LockWaits(t.Context(), r, s.waiterID)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range list {
				if o.Blocker.ID != list[0].Blocker.ID {
					t.Errorf("two holders: got %+v, want o.Blocker.ID list[0].Blocker.ID", list)
				}
			}
			if len(list) > 0 {
				w = list[0]
				if len(gaps) > 0 {
					t.Errorf("gaps: got %v, want none", gaps)
				}
			}
			return len(list) > 0
		})
		if object := strings.Trim(w.Schema+"."+w.Name, "."); w.Kind != c.kind || object != c.object || w.Index != c.index || w.Blocker.ID != s.holderID || w.Maybe != c.maybe || w.Queued || w.Blocker.Idle() != (c.runs == "") || w.Blocker.User != "root" || w.Blocker.Statement != c.last() {
			t.Errorf("%+v; the holder is %d and ran %q last; want Kind %v, object %v, Index %v, Blocker.ID %v, Maybe %v, Queued false, Blocker.Idle() %v, Blocker.User \"root\", Blocker.Statement c.last()",
				w, s.holderID, c.last(), c.kind, c.object, c.index, s.holderID, c.maybe, c.runs == "")
		}
		all, _, err := read.LockWaits(t.Context(), r, 0)
		if err != nil || len(all) == 0 || all[0].Waiter != s.waiterID || all[0].Blocker.ID != s.holderID {
			t.Errorf("all waits: got %+v %v; want len(all) not 0, all[0].Waiter %v, all[0].Blocker.ID %v", all, err, s.waiterID, s.holderID)
		}
		looks(t, trace)
	})
	words := s.end(t, trace)
	if !regexp.MustCompile(`\b(100|[6-9]\d(\.\d+)?) % (of that was spent )?waiting for locks`).MatchString(words) {
		t.Errorf("the trace says of a wait for a lock that the time went elsewhere: %s", words)
	}
	who, kill := fmt.Sprintf("which connection %d (root@localhost) holds", holder), fmt.Sprintf("KILL %d makes it let go", holder)
	switch {
	case c.maybe:
		who, kill = fmt.Sprintf("it may be connection %d (root@localhost)", holder), ""
	case c.weak:
		who = fmt.Sprintf("which connection %d (root@localhost) blocks by what it does", holder)
	}
	for _, want := range []string{c.words, who, c.last(), kill} {
		if !strings.Contains(words, want) {
			t.Errorf("the trace does not say %q: %s", want, words)
		}
	}
}

// looks waits until a trace has looked at the lock tables again.
func looks(t *testing.T, trace *risso) {
	t.Helper()
	from := strings.Count(trace.err.String(), " event")
	await(t, "the trace looked several times", func() bool { return strings.Count(trace.err.String(), " event") > from+10 })
}

// prepared: a transaction that is prepared keeps its locks when its session is killed; only XA COMMIT and XA ROLLBACK end it.
func (s *lockServer) prepared(t *testing.T) {
	r := lockReader(t, s.node, "root")
	waits := []string{"UPDATE shop.orders SET note = 'wanted' WHERE id = 1"}
	if s.node.Program.Family == sandbox.FamilyMySQL && !strings.HasPrefix(s.node.Program.Version, "5.") { // it keeps metadata locks, too
		waits = append(waits, "ALTER TABLE shop.orders COMMENT 'wanted'")
	}
	var detached bool // MySQL takes it from its session as soon as it is prepared
	for _, row := range execSQL(t, s.node, "SHOW GLOBAL VARIABLES LIKE 'xa_detach_on_prepare'")[0].Rows {
		detached = *row[1] == "ON"
	}
	for _, waiting := range waits {
		trace := s.begin(t, "--for", "5m", "--output", "json")
		holder := s.holderID
		runAll(t, s.holder, "XA START 'x'", "UPDATE shop.orders SET note = 'held' WHERE id = 1", "XA END 'x'", "XA PREPARE 'x'")
		done := make(chan error, 1)
		go func() {
			_, err := s.conn.ExecContext(context.WithoutCancel(t.Context()), waiting)
			done <- err
		}()
		blockedBy := func(id int64) {
			await(t, fmt.Sprintf("the wait for connection %d is told", id), func() bool {
				time.Sleep(lockCopy)
				list, gaps, err := read.LockWaits(t.Context(), r, s.waiterID)
				if err != nil || len(gaps) > 0 {
					t.Fatalf("got %v, gaps %v; want none", err, gaps)
				}
				return len(list) > 0 && list[0].Blocker.ID == id
			})
			looks(t, trace)
		}
		if !detached {
			blockedBy(holder)
		}
		s.kill(t, r)
		blockedBy(0)
		execSQL(t, s.node, "XA ROLLBACK 'x'")
		if err := <-done; err != nil {
			t.Errorf("%s: %v", waiting, err)
		}
		words := s.end(t, trace)
		for _, want := range []string{fmt.Sprintf("Only XA COMMIT or XA ROLLBACK in connection %d releases it", holder), "held by a transaction without a connection: XA RECOVER lists prepared transactions; XA COMMIT or XA ROLLBACK ends them"} {
			if strings.Contains(words, want) == (detached && strings.HasPrefix(want, "Only")) {
				t.Errorf("%s (detached: %t): does the trace say %q? %s, want strings.Contains(words, want) not detached && strings.HasPrefix(want, \"Only\")",
					waiting, detached, want, words)
			}
		}
	}
}

// queue: a session that waits behind one that waits itself is shown both.
func (s *lockServer) queue(t *testing.T) {
	r := lockReader(t, s.node, "root")
	middle, middleID := s.session(t)
	defer middle.Close()
	trace := s.begin(t, "--for", "5m", "--output", "json")
	runAll(t, s.holder, "BEGIN", "SELECT note FROM shop.orders WHERE id = 2")
	done := make(chan error, 2)
	run := func(c *sql.Conn, q string) {
		go func() {
			_, err := c.ExecContext(context.WithoutCancel(t.Context()), q)
			done <- err
		}()
	}
	waits := func(id int64) (w read.LockWait) {
		time.Sleep(lockCopy)
		list, _, err := read.LockWaits(t.Context(), r, id)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) > 0 {
			w = list[0]
		}
		return w
	}
	running := 1
	defer func() {
		runAll(t, s.holder, "ROLLBACK")
		for range running {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}()
	run(middle, "ALTER TABLE shop.orders ADD COLUMN queued INT, ALGORITHM=COPY")
	await(t, "the ALTER waits", func() bool { return waits(middleID).Blocker.ID == s.holderID })
	running++
	run(s.conn, "SELECT COUNT(*) FROM shop.orders WHERE n > 0")
	await(t, "the SELECT waits behind it", func() bool { return waits(s.waiterID).Blocker.ID != 0 })
	if w := waits(s.waiterID); w.Blocker.ID != middleID || w.Blocker.Idle() || !strings.HasPrefix(w.Blocker.Statement, "ALTER TABLE") {
		t.Errorf("%+v; the ALTER is of %d; want Blocker.ID %v, Blocker.Idle() false, \"ALTER TABLE\" at the beginning of Blocker.Statement",
			w, middleID, middleID)
	}
	looks(t, trace)
	words := s.end(t, trace)
	for _, want := range []string{fmt.Sprintf(`connection %d \(root@localhost\)`, middleID), "it runs ALTER TABLE shop.orders", fmt.Sprintf(`KILL %d (makes it let go|takes that one out of the queue)`, middleID),
		fmt.Sprintf(`That one waits for a metadata lock on the table shop.orders \(\w+\), which connection %d \(root@localhost\) holds \(\w+\): idle`, s.holderID)} {
		if !regexp.MustCompile(want).MatchString(words) {
			t.Errorf("the trace does not say %q: %s", want, words)
		}
	}
}

// fewPrivileges: what an account may not see is reported with the GRANT that allows it, and with that GRANT it is seen.
func (s *lockServer) fewPrivileges(t *testing.T) {
	execSQL(t, s.node, "CREATE USER low@localhost IDENTIFIED BY 'x'; GRANT SELECT ON shop.* TO low@localhost")
	root := lockReader(t, s.node, "root")
	for _, c := range []lockCase{lockCases[0], lockCases[2]} {
		s.wait(t, c, s.letGo(t, c), func() {
			await(t, "root sees the wait", func() bool {
				time.Sleep(lockCopy)
				list, _, err := read.LockWaits(t.Context(), root, s.waiterID)
				return err == nil && len(list) > 0
			})
			for try := 0; ; try++ {
				time.Sleep(lockCopy)
				r := lockReader(t, s.node, "low:x")
				list, gaps, err := read.LockWaits(t.Context(), r, s.waiterID)
				if err != nil {
					t.Fatal(err)
				}
				if len(list) == 1 && list[0].Blocker.ID == s.holderID && list[0].Blocker.Statement == c.last() {
					break
				}
				if len(gaps) == 0 || try > 3 {
					t.Errorf("%s: seen is %+v, gaps %v; want len(gaps) not 0, try at most 3", c.name, list, gaps)
					break
				}
				for _, g := range gaps {
					if !strings.HasPrefix(g.Remedy, "GRANT ") {
						t.Errorf("%s: the remedy %q of %s (%s), want \"GRANT \" at its beginning", c.name, g.Remedy, g.What, g.Why)
						continue
					}
					execSQL(t, s.node, g.Remedy)
				}
			}
		})
		execSQL(t, s.node, "REVOKE ALL PRIVILEGES, GRANT OPTION FROM low@localhost; GRANT SELECT ON shop.* TO low@localhost")
	}
}

// TestLockWaitsAsTheyCome: servers that record no metadata locks by default show less, and what they do not show is reported.
func TestLockWaitsAsTheyCome(t *testing.T) {
	t.Parallel()
	eachKind(t, []string{"mariadb", "mysql-5.7"}, func(t *testing.T, kind string) {
		s := newLockServer(t, kind, "performance_schema=OFF")
		r := lockReader(t, s.node, "root")
		for _, c := range []lockCase{lockCases[0], lockCases[2], lockCases[4], lockCases[len(lockCases)-1]} {
			s.wait(t, c, s.letGo(t, c), func() {
				var list []read.LockWait
				var gaps []fleet.Trouble
				await(t, "the wait is seen", func() bool {
					time.Sleep(lockCopy)
					var err error
					if list, gaps, err = read.LockWaits(t.Context(), r, s.waiterID); err != nil {
						t.Fatal(err)
					}
					return len(list)+len(gaps) > 0
				})
				switch c.kind {
				case read.LockRow, read.LockUser:
					if len(list) != 1 || list[0].Blocker.ID != s.holderID || len(gaps) > 0 || list[0].Maybe {
						t.Errorf("%s: got %+v %v; want len(list) 1, list[0].Blocker.ID %v, no gaps, list[0].Maybe false", c.name, list, gaps, s.holderID)
					}
					return
				case read.LockGlobal: // MariaDB has the plugin now; for the other, the holder is the first of those that may be
					if kind == "mariadb" {
						if len(list) != 1 || list[0].Blocker.ID != s.holderID || list[0].Maybe || len(gaps) > 0 {
							t.Errorf("got %s, with the plugin: %+v %v; want len(list) 1, list[0].Blocker.ID %v, list[0].Maybe false, no gaps", c.name, list, gaps, s.holderID)
						}
						return
					}
					if len(list) == 0 || len(list) > 3 || list[0].Blocker.ID != s.holderID || !list[0].Maybe || list[0].Sign == "" || len(gaps) != 1 {
						t.Errorf("%s: got %+v %v; want at most three that may be it, first %d, which is, and the gap", c.name, list, gaps, s.holderID)
					}
				default:
					if len(list) != 1 || list[0].Blocker.ID != s.holderID || !list[0].Maybe || len(gaps) != 1 {
						t.Errorf("%s: got %+v %v; want len(list) 1, list[0].Blocker.ID %v, list[0].Maybe true, len(gaps) 1", c.name, list, gaps, s.holderID)
					}
				}
				if kind != "mariadb" || len(gaps) == 0 {
					return
				}
				plugin, _, _ := strings.Cut(gaps[0].Remedy, " shows it")
				if _, err := s.db.ExecContext(t.Context(), plugin); err != nil {
					t.Fatalf("the remedy %q: %v", gaps[0].Remedy, err)
				}
				list, gaps, err := read.LockWaits(t.Context(), r, s.waiterID)
				if err != nil || len(list) != 1 || list[0].Blocker.ID != s.holderID || list[0].Maybe || len(gaps) > 0 {
					t.Errorf("got %s, with the plugin: %+v %v %v; want len(list) 1, list[0].Blocker.ID %v, list[0].Maybe false, no gaps",
						c.name, list, gaps, err, s.holderID)
				}
			})
		}
	})
}
