package binlog

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// Roll plans, and carries that out.
func Roll(ctx context.Context, o RollOptions) (RollResult, error) {
	p, err := PlanRoll(ctx, o)
	if err != nil {
		return p.Result, err
	}
	return p.Execute(ctx, change.Log{})
}

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m)) }

var fast = []string{"sync_binlog=0", "innodb_flush_log_at_trx_commit=2", "max_binlog_size=64K", "performance_schema=OFF"}

// seed makes a server without data of its own say that it has a set.
func seed(t *testing.T, db *sql.DB, spec string, set mysql.GTIDSet) {
	t.Helper()
	switch spec {
	case "mariadb", "mariadb-11.8":
		run(t, db, "RESET MASTER", "SET GLOBAL gtid_binlog_state = '"+set.String()+"'")
	case "mysql-9.7":
		run(t, db, "RESET BINARY LOGS AND GTIDS", "SET GLOBAL gtid_purged = '"+set.String()+"'")
	default:
		run(t, db, "RESET MASTER", "SET GLOBAL gtid_purged = '"+set.String()+"'")
	}
}

func logged(t *testing.T, n *sandbox.Node) []File {
	t.Helper()
	files, err := FromServer(t.Context(), targetOf(t, n))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestRoll replays random changes, of all types of columns, into a second server.
func TestRoll(t *testing.T) {
	for _, spec := range flavours {
		t.Run(spec, func(t *testing.T) {
			settings := fast
			switch spec {
			case "mysql-9.7":
				settings = append(slices.Clone(fast), "binlog_transaction_compression=ON", "binlog_row_value_options=PARTIAL_JSON")
			case "mariadb", "mariadb-11.8":
				settings = append(slices.Clone(fast), "log_bin_compress=ON", "log_bin_compress_min_len=10")
			}
			r := rolling{t: t, spec: spec, src: sandboxtest.Up(t, spec, settings...), dst: sandboxtest.Up(t, spec, fast...)}
			r.sdb, r.ddb = openDB(t, r.src), openDB(t, r.dst)
			r.write()
			t.Run("refuses", r.refuses)
			t.Run("keep", r.keep)
			t.Run("journal", r.journal)
			t.Run("does", r.does)
			t.Run("stops", r.stops)
			t.Run("one table", r.oneTable)
			t.Run("another name", r.anotherName)
		})
	}
}

type rolling struct {
	t         *testing.T
	spec      string
	src, dst  *sandbox.Node
	sdb, ddb  *sql.DB
	w         *workload
	start     mysql.GTIDSet
	file      string
	pos       int64
	created   mysql.GTIDSet // the position after the tables were made
	middle    []string      // sums before the mistake
	mistake   mysql.GTID    // which deletes everything
	justAfter mysql.GTID    // the transaction after it
}

func (r *rolling) write() {
	t := r.t
	r.start, r.file, r.pos = position(t, r.src)
	c := conn(t, r.sdb)
	r.w = newWorkload(t, c, r.spec, 7)
	run(t, c, "CREATE TABLE test.s (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(99), at DATETIME(6)) ENGINE=InnoDB", "CREATE TABLE test.many (id INT PRIMARY KEY, v LONGTEXT)")
	r.created, _, _ = position(t, r.src)
	for range 60 {
		r.w.change(t, c)
	}
	// Statements, with all that their session brings.
	run(t, c, "SET SESSION binlog_format = STATEMENT", "SET @v = 'k\u00e4se', @n = 12.5, timestamp = 1500000000.25, auto_increment_increment = 5",
		"INSERT INTO test.s (v, at) VALUES (@v, NOW(6)), (CONCAT('x', @n), NOW(6))", "BEGIN", "INSERT INTO test.s (v) VALUES (LAST_INSERT_ID())", "SAVEPOINT a",
		"INSERT INTO test.s (v) VALUES (RAND())", "COMMIT", "SET SESSION binlog_format = ROW, timestamp = DEFAULT, auto_increment_increment = 1",
		"CREATE PROCEDURE test.p() BEGIN UPDATE test.s SET v = CONCAT(v, ';'); DELETE FROM test.s WHERE id > 100; END", "CALL test.p()",
		map[bool]string{true: "CREATE TABLE test.copy AS SELECT * FROM test.s", false: "CREATE TABLE test.copy LIKE test.s"}[strings.HasPrefix(r.spec, "mariadb") || r.spec == "mysql-9.7"],
		"SET SESSION sql_log_bin = 0", "CREATE EVENT test.gone ON SCHEDULE EVERY 1 DAY DO SELECT 1", "SET SESSION sql_log_bin = 1", "DROP EVENT test.gone", // as a server drops one whose time is past
		"FLUSH BINARY LOGS", "XA START 'x1'", "INSERT INTO test.s (v) VALUES ('xa')", "XA END 'x1'", "XA PREPARE 'x1'")
	c.Close()
	c = conn(t, r.sdb)
	run(t, c, "XA COMMIT 'x1'")
	r.restored(c)
	run(t, c, "SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES'", "SET NAMES utf8mb4", "BEGIN")
	for i := range 30 { // one transaction that does not fit in a statement
		run(t, c, fmt.Sprintf("INSERT INTO test.many VALUES (%d, REPEAT('%d abcdefgh', 10000))", i, i))
	}
	run(t, c, "UPDATE test.many SET v = CONCAT(v, 'x')", "COMMIT")
	// What alters the one table is done under its other name, too.
	run(t, c, "USE test", "ALTER TABLE many ADD COLUMN w INT NOT NULL DEFAULT 3, ADD COLUMN `test.many` INT COMMENT 'test.many'", "CREATE INDEX k ON test.many (w)", "INSERT INTO many (id, v, w) VALUES (99, 'x', 4)",
		"ALTER TABLE `test`.`many` DROP INDEX k", "UPDATE many SET `test.many` = id")
	r.middle = r.sums(r.sdb)
	before, _, _ := position(t, r.src)
	time.Sleep(1100 * time.Millisecond) // the second of the mistake is not that of the log's first event: some logs know seconds only
	run(t, c, "FLUSH BINARY LOGS", "DELETE FROM test.many")
	after, _, _ := position(t, r.src)
	r.mistake = only(t, after.Subtract(before))
	run(t, c, "INSERT INTO test.s (v) VALUES ('behind')")
	last, _, _ := position(t, r.src)
	r.justAfter = only(t, last.Subtract(after))
}

// restored logs what a restore into the source leaves in its log, in rows and in statements: the journals of Risso, which are not what
// anybody wants back, and would be in the way of those of the roll forward.
func (r *rolling) restored(c *sql.Conn) {
	journal := []string{"CREATE DATABASE IF NOT EXISTS " + repo.JournalSchema + " /* risso: journal of a restore */", "CREATE TABLE IF NOT EXISTS risso_restore.tables (id INT PRIMARY KEY, state INT)",
		"INSERT INTO risso_restore.tables VALUES (1, 1)", "BEGIN", "INSERT INTO test.s (v) VALUES ('restored')", "UPDATE risso_restore.tables SET state = 2", "COMMIT",
		"CREATE DATABASE IF NOT EXISTS " + repo.RollSchema, "CREATE TABLE " + repo.RollSchema + ".progress (id CHAR(32) PRIMARY KEY, file VARCHAR(255), pos BIGINT, pending LONGBLOB)",
		"INSERT INTO " + repo.RollSchema + ".progress VALUES ('x', 'y', 1, NULL)", "DROP DATABASE IF EXISTS " + repo.RollSchema,
		"DROP DATABASE IF EXISTS " + repo.JournalSchema}
	run(r.t, c, journal...)
	run(r.t, c, "SET SESSION binlog_format = STATEMENT")
	run(r.t, c, journal...)
	run(r.t, c, "SET SESSION binlog_format = ROW")
}

// only is the one transaction of a set, of MariaDB's the last.
func only(t *testing.T, s mysql.GTIDSet) mysql.GTID {
	t.Helper()
	g, err := mysql.ParseGTID(s.String())
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func (r *rolling) sums(db *sql.DB) []string {
	out := r.w.sums(r.t, db)
	for _, name := range []string{"test.s", "test.many", "test.copy"} {
		var n string
		var sum sql.NullString
		if err := db.QueryRowContext(r.t.Context(), "CHECKSUM TABLE "+name).Scan(&n, &sum); err != nil {
			r.t.Fatal(err)
		}
		out = append(out, name+" "+sum.String)
	}
	return out
}

// empty makes the target as it was. A transaction that an interrupted roll forward prepared would keep its locks for good.
func (r *rolling) empty(t *testing.T) {
	prepared, err := r.ddb.QueryContext(t.Context(), "XA RECOVER")
	if err != nil {
		t.Fatal(err)
	}
	defer prepared.Close()
	for prepared.Next() {
		var format, global, branch int
		var id string
		if err := prepared.Scan(&format, &global, &branch, &id); err != nil {
			t.Fatal(err)
		}
		run(t, r.ddb, fmt.Sprintf("XA ROLLBACK X'%X',X'%X',%d", id[:global], id[global:], format))
	}
	if err := prepared.Err(); err != nil {
		t.Fatal(err)
	}
	run(t, r.ddb, "DROP DATABASE IF EXISTS `odd ``name.x`", "DROP DATABASE test", "CREATE DATABASE test")
	seed(t, r.ddb, r.spec, r.start)
}

func (r *rolling) options(t *testing.T) RollOptions {
	return RollOptions{Files: logged(t, r.src), From: repo.Position{GTIDSet: r.start.String()}, Into: targetOf(t, r.dst)}
}

// planned is what would be done.
func planned(t *testing.T, o RollOptions) (RollResult, error) {
	t.Helper()
	p, err := PlanRoll(t.Context(), o)
	return p.Result, err
}

// does what its plan says, in these words and this order; the plan alone changes nothing.
func (r *rolling) does(t *testing.T) {
	r.empty(t)
	o := r.options(t)
	o.Stop = Stop{GTID: r.mistake, Before: true}
	const there = "SELECT CONCAT(COUNT(*), ' ', COALESCE(SUM(table_rows), 0)) FROM information_schema.tables WHERE table_schema NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')"
	before := value(t, r.ddb, there)
	p, err := PlanRoll(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if got := value(t, r.ddb, there); got != before {
		t.Errorf("behind the plan: got %s tables and rows, want %s", got, before)
	}
	r.noJournal(t)
	var did []string
	if _, err := p.Execute(t.Context(), change.Log{After: func(_ context.Context, s change.Step) error {
		did = append(did, s.String())
		return nil
	}}); err != nil {
		t.Fatal(err)
	}
	if want := p.Steps().Words(); !slices.Equal(did, want) || len(want) < 3 {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(did, "\n"), strings.Join(want, "\n"))
	}
	if got := r.sums(r.ddb); !slices.Equal(got, r.middle) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(r.middle, "\n"))
	}
}

// TestSteps: what a plan says is done, by what the logs hold and how the server notes it.
func TestSteps(t *testing.T) {
	logs := []Stretch{{File: "b.1", From: 4, To: 4}, {File: "b.2", From: 200, To: 1200, Transactions: 2}, {File: "b.3", From: 4, To: 4, skipped: 1}, {File: "b.4", From: 4, To: 2004, Transactions: 1, skipped: 2}, {File: "b.5", From: 4, To: 4}}
	applied := []string{"apply b.2 from 200 to 1200: 2 transactions, 1000 B", "apply b.3 from 4 to 4: 0 transactions, 0 B, 1 left out", "apply b.4 from 4 to 2004: 1 transaction, 1.95 KiB, 2 left out"}
	const make, remove, compare = "make schema risso_roll_forward: it notes how far this is", "remove schema risso_roll_forward: all is applied", "compare GTIDs: the server has to say that it has all of them"
	for _, c := range []struct {
		name string
		o    RollOptions
		logs []Stretch
		want []string
	}{
		{"nothing to apply", RollOptions{}, logs[:1], []string{make, remove}},
		{"no logs", RollOptions{Keep: true}, nil, []string{compare}},
		{"by a journal", RollOptions{}, logs, slices.Concat([]string{make}, applied, []string{remove})},
		{"which stays", RollOptions{Leave: true}, logs, slices.Concat([]string{make}, applied)},
		{"by GTIDs", RollOptions{Keep: true}, logs, slices.Concat(applied, []string{compare})},
		{"by GTIDs, where there is nothing to leave", RollOptions{Keep: true, Leave: true}, logs[:2], []string{applied[0], compare}},
	} {
		p := &Plan{o: c.o, Result: RollResult{Stretches: c.logs}}
		if got := p.Steps().Words(); !slices.Equal(got, c.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// refuses finds out in advance what cannot be done.
func (r *rolling) refuses(t *testing.T) {
	r.empty(t)
	o := r.options(t)
	o.Stop = Stop{GTID: mysql.GTID{Source: "3e11fa47-71ca-11e1-9e33-c80aa9429562", Number: 5}}
	if _, err := Roll(t.Context(), o); !errors.Is(err, ErrNoStop) {
		t.Errorf("a stop that is not there: %v, want ErrNoStop", err)
	}
	o.Stop = Stop{}
	o.Files = o.Files[len(o.Files)-1:]
	if _, err := Roll(t.Context(), o); !errors.Is(err, ErrGap) {
		t.Errorf("logs that begin too late: got %v, want ErrGap", err)
	}
	o = r.options(t)
	if len(o.Files) < 3 {
		t.Fatalf("only %d logs, want at least 3", len(o.Files))
	}
	o.Files = append(o.Files[:1:1], o.Files[2:]...)
	if _, err := Roll(t.Context(), o); !errors.Is(err, ErrGap) {
		t.Errorf("a log is missing in the middle: %v, want ErrGap", err)
	}
	if n := value(t, r.ddb, "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name LIKE 'odd%' OR schema_name LIKE 'risso%'"); n != "0" {
		t.Errorf("something was changed all the same: got %v, want \"0\"", n)
	}
}

// keep rolls to just before the mistake, then on without it, keeping GTIDs, with cuts in between.
func (r *rolling) keep(t *testing.T) {
	r.empty(t)
	o := r.options(t)
	o.Keep, o.Stop = true, Stop{GTID: r.mistake, Before: true}
	cut(t, o, 4)
	res, err := Roll(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.sums(r.ddb); !slices.Equal(got, r.middle) {
		t.Errorf("just before the mistake:\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(r.middle, "\n"))
	}
	if res.Next.GTID != r.mistake {
		t.Errorf("stopped before %s, not %s", res.Next, r.mistake)
	}
	r.noJournal(t)
	have, _, _ := position(t, r.dst)
	if !have.Equal(res.GTIDs) || have.Contains(r.mistake) {
		t.Errorf("the server has %s, the result says %s", have, res.GTIDs)
	}
	o.Stop, o.Skip = Stop{GTID: r.justAfter}, []mysql.GTID{r.mistake}
	if res, err = Roll(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if n := value(t, r.ddb, "SELECT COUNT(*) FROM test.many"); n != "31" {
		t.Errorf("the mistake was not skipped: %s rows, want \"31\"", n)
	}
	if n := value(t, r.ddb, "SELECT COUNT(*) FROM test.s WHERE v = 'behind'"); n != "1" {
		t.Errorf("the stop is not inclusive: %s, want \"1\"", n)
	}
	if have, _, _ := position(t, r.dst); !have.Contains(r.justAfter) || !strings.HasPrefix(r.spec, "mariadb") && !have.Contains(r.mistake) {
		t.Errorf("the server has %s", have)
	}
	if res.Transactions != 1 || res.LeftOut != 1 {
		t.Errorf("got %d applied, %d left out; want res.Transactions 1, res.LeftOut 1", res.Transactions, res.LeftOut)
	}
}

// cut interrupts a roll forward several times.
func cut(t *testing.T, o RollOptions, times int) {
	t.Helper()
	for i := range times {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(40+i*35)*time.Millisecond)
		_, err := Roll(ctx, o)
		cancel()
		if err == nil {
			return
		}
		if ctx.Err() == nil {
			t.Fatalf("got %v, want ctx.Err() not nil", err)
		}
	}
}

// journal does the same without keeping GTIDs, from a file and an offset.
func (r *rolling) journal(t *testing.T) {
	r.empty(t)
	o := r.options(t)
	o.From = repo.Position{File: r.file, Offset: r.pos}
	o.Stop = Stop{GTID: r.mistake, Before: true}
	o.Again = PendingRefuse
	for i := range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(40+i*35)*time.Millisecond)
		if i >= 4 {
			ctx = t.Context()
		}
		_, err := Roll(ctx, o)
		cancel()
		if errors.Is(err, ErrPending) {
			t.Logf("cut %d: %.200v", i, err)
			r.empty(t) // it says that it cannot: start over
			run(t, r.ddb, "DROP DATABASE risso_roll_forward")
			continue
		}
		if err == nil {
			break
		}
		if ctx.Err() == nil {
			t.Fatalf("got %v, want ctx.Err() not nil", err)
		}
	}
	if got := r.sums(r.ddb); !slices.Equal(got, r.middle) {
		t.Errorf("just before the mistake:\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(r.middle, "\n"))
	}
	r.noJournal(t)
}

func (r *rolling) noJournal(t *testing.T) {
	t.Helper()
	if n := value(t, r.ddb, "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name LIKE 'risso%'"); n != "0" {
		t.Errorf("a journal was left, or came back: got %v, want \"0\"", n)
	}
}

// stops are exclusive for times and places, and for GTIDs as they say.
func (r *rolling) stops(t *testing.T) {
	o := r.options(t)
	plan := func(s Stop) RollResult {
		t.Helper()
		o.Stop = s
		res, err := planned(t, o)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	before := plan(Stop{GTID: r.mistake, Before: true})
	with := plan(Stop{GTID: r.mistake})
	if with.Transactions != before.Transactions+1 || with.LastGTID != r.mistake || before.Next.GTID != r.mistake {
		t.Errorf("with %+v, before %+v; want Transactions %v, LastGTID %v, Next.GTID %v", with, before, before.Transactions+1, r.mistake, r.mistake)
	}
	if p := plan(Stop{File: before.Next.File, Pos: before.Next.Pos}); p.Transactions != before.Transactions {
		t.Errorf("before the place: %d transactions, not %d", p.Transactions, before.Transactions)
	}
	// The time of a transaction excludes that transaction; a time one step later includes it.
	all := plan(Stop{})
	step := time.Second
	if r.spec == "mysql-9.7" || r.spec == "mysql-8.0" {
		step = time.Microsecond
	}
	at, behind := plan(Stop{Time: with.LastTime}), plan(Stop{Time: with.LastTime.Add(step)})
	if at.GTIDs.Contains(r.mistake) || !behind.GTIDs.Contains(r.mistake) || step < time.Second && (at.Transactions != before.Transactions || behind.Transactions != with.Transactions) {
		t.Errorf("at %s: %d transactions, behind it: %d; of %d", with.LastTime, at.Transactions, behind.Transactions, all.Transactions)
	}
}

// oneTable rolls one table forward and leaves the others alone.
func (r *rolling) oneTable(t *testing.T) {
	r.empty(t)
	o := r.options(t)
	o.Stop = Stop{GTID: r.mistake, Before: true}
	o.Only = func(schema, table string) bool { return schema == "test" && table == "s" }
	res, err := Roll(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	sum := value2(t, r.ddb, "CHECKSUM TABLE test.s")
	if i := slices.IndexFunc(r.middle, func(s string) bool { return strings.HasPrefix(s, "test.s ") }); r.middle[i] != "test.s "+sum {
		t.Errorf("%s, not %s", sum, r.middle[i])
	}
	if n := value(t, r.ddb, "SELECT GROUP_CONCAT(table_name) FROM information_schema.tables WHERE table_schema NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')"); n != "s" {
		t.Errorf("there are the tables %s, want \"s\"", n)
	}
	if res.LeftOut == 0 {
		t.Errorf("nothing was left out: %+v, want LeftOut not 0", res)
	}
}

// anotherName rolls a table forward that has another name on the server; a statement that knows the old name is refused before
// anything is changed.
func (r *rolling) anotherName(t *testing.T) {
	r.empty(t)
	o := r.options(t)
	o.Stop = Stop{GTID: r.mistake, Before: true}
	o.Only = func(schema, table string) bool { return schema == "test" && table == "many" }
	o.Names = func(schema, table string) (string, string) { return "odd `name.x", table + " before" }
	run(t, r.ddb, "CREATE DATABASE `odd ``name.x`", "CREATE TABLE `odd ``name.x`.`many before` (id INT PRIMARY KEY, v LONGTEXT)")
	if _, err := Roll(t.Context(), o); !errors.Is(err, ErrRenamed) || !strings.Contains(err.Error(), "CREATE TABLE test.many") {
		t.Errorf("a CREATE TABLE of the old name: got %v; want ErrRenamed, \"CREATE TABLE test.many\" in the error", err)
	}
	if n := value(t, r.ddb, "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = 'risso_roll_forward'"); n != "0" {
		t.Errorf("something was changed before it was refused: got %v, want \"0\"", n)
	}
	o.From = repo.Position{GTIDSet: r.created.String()}
	res, err := Roll(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	sum := value2(t, r.ddb, "CHECKSUM TABLE `odd ``name.x`.`many before`")
	if i := slices.IndexFunc(r.middle, func(s string) bool { return strings.HasPrefix(s, "test.many ") }); r.middle[i] != "test.many "+sum {
		t.Errorf("%s, not %s; %+v", sum, r.middle[i], res)
	}
	if n := value(t, r.ddb, "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'test'"); n != "0" {
		t.Errorf("there are %s tables of the old names, want \"0\"", n)
	}
}

// value2 is the second value of a row.
func value2(t *testing.T, db *sql.DB, query string) string {
	t.Helper()
	var a, b string
	if err := db.QueryRowContext(t.Context(), query).Scan(&a, &b); err != nil {
		t.Fatal(err)
	}
	return b
}
