package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/data/load"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/restore"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestRestoreStory: somebody deletes all rows of a table. The transaction is found, and the one table restored to just before
// it. Then the same backup goes to other places: under another name, from an encrypted repository, as a replica, and with a
// manifest that does not agree with its rows.
func TestRestoreStory(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Setenv("XDG_STATE_HOME", t.TempDir())
			s := &restoreStory{t: t, spec: spec, here: sandboxtest.Up(t, spec, "event_scheduler=OFF", "local_infile=1", "log_bin_trust_function_creators=1"),
				there: sandboxtest.Up(t, spec, "local_infile=1", "log_bin_trust_function_creators=1"), place: filepath.Join(t.TempDir(), "bk"), secret: filepath.Join(t.TempDir(), "secret")}
			s.mistake()
			s.planned()
			s.backToBefore()
			s.inSandbox()
			s.toTime()
			s.renamed()
			s.encrypted()
			s.different()
			s.forgotten()
			s.asReplica()
		})
	}
}

type restoreStory struct {
	t             *testing.T
	spec          string
	here, there   *sandbox.Node // the server, and another one
	place, secret string        // two repositories, the second one encrypted
	identity      string
	before        string // the tables as they were before the mistake
	after         string // and as they are after it
	gtid          string // of the mistake
	at            string // a moment between the good transactions and it
}

const storyTables = "SELECT o.id, o.v, NULL FROM shop.orders o UNION ALL SELECT c.id, c.name, 'c' FROM shop.customers c ORDER BY 3, 1"

func (s *restoreStory) sql(n *sandbox.Node, statements string) string {
	s.t.Helper()
	res, err := n.Query(s.t.Context(), statements)
	if err != nil {
		s.t.Fatalf("%s: %v", statements, err)
	}
	if len(res) == 0 {
		return "[]"
	}
	var rows []string
	for _, row := range res[len(res)-1].Rows {
		var b []string
		for _, v := range row {
			if v == nil {
				b = append(b, "NULL")
			} else {
				b = append(b, *v)
			}
		}
		rows = append(rows, fmt.Sprint(b))
	}
	return fmt.Sprint(rows)
}

// refused runs a command that must fail, and returns what it prints.
func (s *restoreStory) refused(code int, args ...string) string {
	s.t.Helper()
	got, out, errs := call(s.t, args...)
	if got != code {
		s.t.Errorf("%s: exit %d, not %d: %s%s", strings.Join(args, " "), got, code, out, errs)
	}
	return out + errs
}

// says makes sure that a text has some words.
func (s *restoreStory) says(text string, words ...string) {
	s.t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			s.t.Errorf("nothing of %q in: %s", w, text)
		}
	}
}

// mistake takes backups, goes on, and makes the mistake.
func (s *restoreStory) mistake() {
	who, err := age.GenerateX25519Identity()
	if err != nil {
		s.t.Fatal(err)
	}
	s.identity = filepath.Join(s.t.TempDir(), "identity")
	if err := os.WriteFile(s.identity, []byte(who.String()+"\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.sql(s.here, `CREATE DATABASE shop CHARACTER SET utf8mb4; USE shop;
		CREATE TABLE customers (id INT PRIMARY KEY, name VARCHAR(20)); INSERT INTO customers VALUES (1, 'Ada'), (2, 'Grace');
		CREATE TABLE orders (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(200), c INT, KEY (v), FOREIGN KEY (c) REFERENCES customers (id));
		INSERT INTO orders (v, c) VALUES ('ö', 1), ('tab	', 2); INSERT INTO orders (v) SELECT CONCAT(a.v, b.v, c.v) FROM orders a, orders b, orders c;
		CREATE TABLE log (n INT); CREATE VIEW latest AS SELECT MAX(id) id FROM orders;
		CREATE FUNCTION twice (a INT) RETURNS INT DETERMINISTIC RETURN 2 * a;
		CREATE VIEW doubled AS SELECT twice(id) id FROM latest;
		CREATE TRIGGER note AFTER INSERT ON orders FOR EACH ROW INSERT INTO log VALUES (NEW.id)`)
	mustRun(s.t, "backup", "--dsn", s.here.DSN, "--to", s.place)
	mustRun(s.t, "backup", "--dsn", s.here.DSN, "--to", s.secret, "--encrypt-to", who.Recipient().String())
	s.sql(s.here, "UPDATE shop.orders SET v = CONCAT(v, '!') WHERE id = 1; FLUSH BINARY LOGS; INSERT INTO shop.orders (v) VALUES ('after the backup'); FLUSH BINARY LOGS")
	s.before = s.sql(s.here, storyTables)
	s.at = s.between()
	s.sql(s.here, "DELETE FROM shop.orders")
	s.sql(s.here, "INSERT INTO shop.customers VALUES (3, 'Edsger')")
	s.after = s.sql(s.here, storyTables)
	mustRun(s.t, "binlog", "follow", "--once", "--dsn", s.here.DSN, "--to", s.place)
	var found struct {
		Found []struct {
			GTID string
			Rows int
		}
	}
	out := mustRun(s.t, "binlog", "search", "--from", s.place, "--table", "shop.orders", "--kind", "delete", "-o", "json")
	if err := json.Unmarshal([]byte(out), &found); err != nil || len(found.Found) != 1 || found.Found[0].Rows != 11 {
		s.t.Fatalf("%v: %s", err, out)
	}
	s.gtid = found.Found[0].GTID
}

// between waits until the server's clock shows another second than the last transaction had, and again another than the one it returns.
func (s *restoreStory) between() string {
	now := func() string { return s.sql(s.here, "SELECT UTC_TIMESTAMP()") }
	first := now()
	await.Until(s.t, func() bool { return now() != first }, "the next second")
	return strings.Trim(now(), "[]")
}

// planned asks what would be read of the binary logs: two transactions in two logs. Then the second log is missing.
func (s *restoreStory) planned() {
	args := []string{"restore", "--from", s.place, "--into", s.there.DSN, "--schema", "shop", "--dry-run"}
	plan := func(text string) (p load.RollPlan) {
		var out struct {
			Plan   load.Plan
			DryRun bool `json:"dry_run"`
		}
		if err := json.NewDecoder(strings.NewReader(text)).Decode(&out); err != nil || out.Plan.Roll == nil || !out.DryRun {
			s.t.Fatalf("%v: %s", err, text)
		}
		return *out.Plan.Roll
	}
	logs := s.sql(s.here, "SHOW BINARY LOGS")
	for _, until := range [][]string{{"--before", s.gtid}, {"--to-time", s.at}} {
		s.says(mustRun(s.t, append(args, until...)...), "rolls forward from ", ": 2 transactions, ", "those of other tables are left out", ": 1 transaction, ",
			"the binary logs are those of series ", "ends before ", "Nothing was changed.")
		p := plan(mustRun(s.t, append(append(args, "-o", "json"), until...)...))
		if len(p.Logs) != 2 || p.Transactions != 2 || p.Logs[0].From <= 4 || p.Bytes != p.Logs[0].To-p.Logs[0].From+p.Logs[1].To-p.Logs[1].From || p.LastTime.IsZero() || p.Problem != "" {
			s.t.Errorf("%v: %+v", until, p)
		}
		for _, l := range p.Logs {
			if !strings.Contains(logs, l.Name) || l.Transactions != 1 || l.To <= l.From {
				s.t.Errorf("%+v; the server has %s", l, logs)
			}
		}
	}
	p := plan(mustRun(s.t, append(args, "--to-gtid", s.gtid, "-o", "json")...))
	if len(p.Logs) != 3 || p.Transactions != 3 || p.Last != s.gtid {
		s.t.Errorf("with the mistake: %+v", p)
	}
	s.says(mustRun(s.t, append(args, "--to-gtid", s.gtid, "--logs-dsn", s.here.DSN)...), ": 3 transactions, ", s.gtid, "the binary logs are those of root@")
	s.says(s.refused(fault.Failed, append(args, "--to-time", "2001-01-01")...), "cannot roll forward: the backup is from a later time than the one to stop at", "there is no earlier backup of that server here", "--backup names an older one")
	s.says(s.refused(fault.Usage, append(args, "--before", "the mistake")...), "--before: ")

	found, err := filepath.Glob(filepath.Join(s.place, "binlog", "*", p.Logs[1].Name+".*"))
	if err != nil || len(found) != 2 {
		s.t.Fatal(found, err)
	}
	for _, f := range found {
		if err := os.Rename(f, filepath.Join(s.place, filepath.Base(f))); err != nil {
			s.t.Fatal(err)
		}
	}
	args = append(args, "--before", s.gtid)
	s.says(s.refused(fault.Failed, args...), "cannot roll forward: ", "the log between "+p.Logs[0].Name+" and "+p.Logs[2].Name+" is missing", "up to the obstacle there is what lies from "+p.Logs[0].Name, ": 1 transaction, ",
		"the binary logs cannot be used", "nothing was changed")
	_, text, _ := call(s.t, append(args, "-o", "json")...)
	if got := plan(text); got.Problem == "" || len(got.Logs) != 1 || got.Transactions != 1 {
		s.t.Errorf("with a hole: %+v", got)
	}
	for _, f := range found {
		if err := os.Rename(filepath.Join(s.place, filepath.Base(f)), f); err != nil {
			s.t.Fatal(err)
		}
	}
	s.leavesNothing(s.there)
}

// backToBefore restores the one table to just before the mistake, over what is there.
func (s *restoreStory) backToBefore() {
	one := []string{"restore", "--from", s.place, "--into", s.here.DSN, "--table", "shop.orders"}
	s.says(s.refused(fault.Failed, append(one, "--before", s.gtid)...), "there is data in the way: table `shop`.`orders`", "nothing was changed")
	s.says(mustRun(s.t, append(one, "--before", s.gtid, "--overwrite", "--dry-run")...), "drops table `shop`.`orders`", "1 table with 10 rows", "Nothing was changed.")
	s.says(s.refused(fault.Failed, append(one, "--overwrite", "--before", "9-9-99999", "--dry-run")...), "the binary logs cannot be used")
	if got := s.sql(s.here, storyTables); got != s.after {
		s.t.Fatalf("what changed nothing changed %s to %s", s.after, got)
	}
	s.says(mustRun(s.t, append(one, "--before", s.gtid, "--overwrite")...), "1 table, 10 rows", "all as in the backup", "Rolled forward by 2 transactions", s.gtid)
	want := strings.Replace(s.before, "[2 Grace c]", "[2 Grace c] [3 Edsger c]", 1)
	if got := s.sql(s.here, storyTables); got != want {
		s.t.Errorf("there is %s; just before the mistake, with what came to other tables later, it is %s", got, want)
	}
	if got := s.sql(s.here, "SELECT COUNT(*) FROM shop.log"); got != "[[1]]" {
		s.t.Errorf("a trigger fired: %s rows", got)
	}
	s.sql(s.here, "INSERT INTO shop.orders (v) VALUES ('once more')") // the trigger is there again
	if got := s.sql(s.here, "SELECT COUNT(*) FROM shop.log"); got != "[[2]]" {
		s.t.Errorf("the trigger does not fire any more: %s rows", got)
	}
	out := mustRun(s.t, append(one, "--to-gtid", s.gtid, "--overwrite", "-o", "json")...)
	if got := s.sql(s.here, "SELECT COUNT(*) FROM shop.orders"); got != "[[0]]" {
		s.t.Errorf("with the mistake there are %s rows: %s", got, out)
	}
	s.leavesNothing(s.here)
}

// leavesNothing looks for the journal, and for what a rehearsal may leave.
func (s *restoreStory) leavesNothing(n *sandbox.Node) {
	s.t.Helper()
	if left := s.sql(n, `SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME LIKE 'risso\_re%'`); left != "[]" {
		s.t.Errorf("left behind: %s", left)
	}
}

// inSandbox restores a table into a throw-away server, whose name may be left out.
func (s *restoreStory) inSandbox() {
	if s.spec != "mariadb" {
		return
	}
	dir, err := os.MkdirTemp("", "rs-") // short: a socket's path has an end
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Setenv("RISSO_SANDBOX_DIR", dir)
	s.t.Cleanup(func() { os.RemoveAll(dir) })
	for name, args := range map[string][]string{"restored": {"--sandbox"}, "look": {"--sandbox", "look"}} {
		s.says(mustRun(s.t, append([]string{"restore", "--from", s.place, "--table", "shop.orders", "--before", s.gtid}, args...)...), "1 table, ", name)
		s.says(mustRun(s.t, "sandbox", "exec", name, "--", "SELECT CONCAT(COUNT(*), ' are there') FROM shop.orders"), "are there")
		s.says(mustRun(s.t, "sandbox", "down", name), name)
	}
	s.refused(fault.Usage, "restore", "--from", s.place, "look")
	s.refused(fault.Usage, "restore", "--from", s.place, "--sandbox=a", "b")
}

// toTime restores one schema up to a moment, into another server.
func (s *restoreStory) toTime() {
	s.says(mustRun(s.t, "restore", "--from", s.place, "--into", s.there.DSN, "--schema", "shop", "--to-time", s.at), "3 tables, 12 rows", "Rolled forward by 2 transactions")
	if got := s.sql(s.there, storyTables); got != s.before {
		s.t.Errorf("at %s it was %s, not %s", s.at, s.before, got)
	}
	s.sql(s.there, "DROP DATABASE shop")
	s.leavesNothing(s.there)
}

// renamed restores a schema next to itself: what belongs together is connected there.
func (s *restoreStory) renamed() {
	s.says(mustRun(s.t, "restore", "--from", s.place, "--into", s.here.DSN, "--schema", "shop", "--rename", "shop=`sh``op 2`"), "3 tables, 12 rows")
	const name = "`sh``op 2`"
	if got := s.sql(s.here, "SELECT id, (SELECT COUNT(*) FROM "+name+".log) FROM "+name+".doubled"); got != "[[20 0]]" {
		s.t.Errorf("the view of the renamed schema gives %s", got)
	}
	s.sql(s.here, "USE "+name+"; INSERT INTO orders (v, c) VALUES ('x', 2)")
	if got := s.sql(s.here, "SELECT COUNT(*), (SELECT COUNT(*) FROM shop.orders) FROM "+name+".log"); got != "[[1 0]]" {
		s.t.Errorf("the trigger of the renamed schema wrote elsewhere: %s", got)
	}
	if _, err := s.here.Query(s.t.Context(), "INSERT INTO "+name+".orders (v, c) VALUES ('x', 3)"); err == nil { // shop has this customer
		s.t.Error("the foreign key of the renamed schema does not point into it")
	}
	s.sql(s.here, "DROP DATABASE "+name)
}

// encrypted restores from a repository that only its owner can read.
func (s *restoreStory) encrypted() {
	other, err := age.GenerateX25519Identity()
	if err != nil {
		s.t.Fatal(err)
	}
	wrong := filepath.Join(s.t.TempDir(), "wrong")
	if err := os.WriteFile(wrong, []byte(other.String()+"\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	all := []string{"restore", "--from", s.secret, "--into", s.there.DSN, "--schema", "shop"}
	s.says(s.refused(fault.Failed, all...), "no identity opens it", "nothing was changed") // although this host knows the manifest
	s.says(s.refused(fault.Failed, append(all, "--identity", wrong)...), "no identity opens it", "nothing was changed")
	s.says(s.refused(fault.Usage, append(all, "--identity", wrong+".not")...), "no such file")
	if got := s.sql(s.there, "SHOW DATABASES LIKE 'shop'"); got != "[]" {
		s.t.Fatal("a repository that cannot be read was restored: ", got)
	}
	s.says(mustRun(s.t, append(all, "--identity", s.identity)...), "3 tables, 12 rows", "all as in the backup")
	if got := s.sql(s.there, "SELECT COUNT(*), MIN(v) FROM shop.orders"); !strings.HasPrefix(got, "[[10 ") {
		s.t.Error(got)
	}
	s.sql(s.there, "DROP DATABASE shop")
}

// different restores a backup whose manifest has another sum for one table than its rows have.
func (s *restoreStory) different() {
	r, closePlace, err := flags.Source{From: s.place}.Open(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	defer closePlace()
	m, err := r.Manifest(s.t.Context(), "")
	if err != nil {
		s.t.Fatal(err)
	}
	defer m.Close()
	h := m.Header
	h.ID = repo.NewID(h.Began.Add(time.Second))
	d := repo.NewDraft()
	defer d.Close()
	if err := r.Begin(s.t.Context(), h, nil); err != nil {
		s.t.Fatal(err)
	}
	err = m.Each(func(l repo.Line) error {
		if l.Table != nil && l.Table.Name == "customers" {
			l.Table.Sum = strings.Repeat("1", len(l.Table.Sum))
		}
		return d.Add(l)
	})
	if err == nil {
		err = r.Finish(s.t.Context(), h, d)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	args := []string{"restore", "--from", s.place, "--backup", h.ID, "--into", s.there.DSN, "--schema", "shop", "--overwrite"}
	s.says(s.refused(fault.Failed, args...), "it is not signed, so it is unknown who made it", "nothing was changed", "--allow-unsigned")
	s.says(s.refused(fault.Failed, "verify", "--from", s.place, "--backup", h.ID), "it is not signed", "not signed by a trusted key")
	s.says(s.refused(fault.Failed, "drill", "--from", s.place, "--backup", h.ID), "it is not signed", "--trust")
	args = append(args, "--allow-unsigned")
	s.says(s.refused(fault.Failed, args...), "Different: `shop`.`customers` has 2 rows, sum ", "the backup has 2 rows, sum 1111", "1 table differs", "1 of 3 tables")
	s.says(s.refused(fault.Failed, append(args, "--before", s.gtid)...), "1 table differs from the backup, and so nothing is rolled forward: `shop`.`customers`", "it continues where it stopped")
	var out struct {
		Result struct {
			Different []struct{ Table, Wants string }
		}
	}
	text := s.refused(fault.Failed, append(args, "-o", "json")...)
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&out); err != nil || len(out.Result.Different) != 1 || out.Result.Different[0].Table != "customers" {
		s.t.Errorf("%v: %s", err, text)
	}
	if err := os.RemoveAll(filepath.Join(s.place, "backups", h.ID)); err != nil {
		s.t.Fatal(err)
	}
	s.sql(s.there, "DROP DATABASE shop")
}

// forgotten cuts a restore off when its first table is whole; another one is refused until the journal is taken away.
func (s *restoreStory) forgotten() {
	r, closePlace, err := flags.Source{From: s.place}.Open(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	defer closePlace()
	into, err := mysql.ParseTarget(s.there.DSN)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	res, err := load.Restore(ctx, load.Options{Repo: r, Into: into, Schemas: []string{"shop"}, Threads: 1, Table: func(load.TableResult) { cancel() }})
	if err == nil || !res.Changed {
		s.t.Fatalf("%+v, %v", res, err)
	}
	s.says(restore.Failure(ctx, err, res.Changed, nil).Error(), "interrupted")
	forget := []string{"restore", "--forget", "--into", s.there.DSN}
	s.says(s.refused(fault.Failed, "restore", "--from", s.place, "--into", s.there.DSN, "--table", "shop.orders"), "an earlier restore into this server was not finished", res.Backup.ID, "--forget")
	s.says(s.refused(fault.Usage, append(forget, "--overwrite")...), "--forget and --overwrite")
	s.says(mustRun(s.t, append(forget, "--dry-run")...), res.Backup.ID, "1 table is complete", "Nothing was changed")
	s.says(mustRun(s.t, append(forget, "--dry-run", "-o", "json")...), `"found": true`)
	s.says(mustRun(s.t, forget...), "Its journal has been removed")
	s.leavesNothing(s.there)
	s.says(mustRun(s.t, forget...), "No restore")
	s.says(s.refused(fault.Failed, "restore", "--from", s.place, "--into", s.there.DSN, "--schema", "shop"), "there is data in the way")
	s.sql(s.there, "DROP DATABASE shop")
}

// asReplica restores everything up to just before the mistake and lets it follow from there.
func (s *restoreStory) asReplica() {
	mustRun(s.t, "restore", "--from", s.place, "--into", s.there.DSN, "--before", s.gtid, "--set-gtid", "--overwrite")
	if got := s.sql(s.there, storyTables); got != s.before {
		s.t.Errorf("just before the mistake it was %s, not %s", s.before, got)
	}
	own := "SELECT @@GLOBAL.gtid_binlog_pos = @@GLOBAL.gtid_slave_pos"
	if s.spec != "mariadb" {
		own = "SELECT GTID_SUBSET(@@GLOBAL.gtid_executed, '" + strings.Trim(s.sql(s.here, "SELECT @@GLOBAL.gtid_executed"), "[]") + "')"
	}
	if got := s.sql(s.there, own); got != "[[1]]" {
		s.t.Error("it has transactions of its own")
	}
	c, err := s.here.TCPConfig()
	if err != nil {
		s.t.Fatal(err)
	}
	follow := `SET GLOBAL server_id = 4711; CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT=%d, SOURCE_USER='%s', SOURCE_PASSWORD='%s', SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1; START REPLICA UNTIL SQL_AFTER_GTIDS = '%s'`
	if s.spec == "mariadb" {
		follow = `SET GLOBAL server_id = 4711; CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=%d, MASTER_USER='%s', MASTER_PASSWORD='%s', MASTER_USE_GTID=slave_pos; START SLAVE UNTIL MASTER_GTID_POS = '%s'`
	}
	s.sql(s.there, fmt.Sprintf(follow, s.here.Port, c.User, c.Passwd, s.gtid))
	await.Until(s.t, func() bool { return s.sql(s.there, "SELECT COUNT(*) FROM shop.orders") == "[[0]]" }, "the copy to follow")
	if got := s.sql(s.there, storyTables); got != strings.Replace(s.before[strings.Index(s.before, "[1 Ada"):], "[1 Ada", "[[1 Ada", 1) {
		s.t.Errorf("with the mistake there is %s", got)
	}
}
