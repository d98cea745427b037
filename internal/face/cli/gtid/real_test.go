package gtid

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m)) }

// call runs a command; text is what it wrote, and its error.
func call(t *testing.T, args ...string) (code int, text string) {
	t.Helper()
	var out bytes.Buffer
	cmd := New(screen.Streams{In: strings.NewReader(""), Out: &out, Err: &out})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	if err == nil {
		return fault.OK, out.String()
	}
	if told := (*fault.Told)(nil); !errors.As(err, &told) {
		out.WriteString(err.Error())
	}
	return fault.Code(err), out.String()
}

// TestErrantEnds: errant transactions are found, told, located and repaired by the commands, on both flavours.
func TestErrantEnds(t *testing.T) {
	for _, spec := range []string{"mysql-9.7", "mariadb"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			pair := sandboxtest.Pair(t, spec)
			source, replica := "db1="+pair.Nodes[0].DSN, "db2="+pair.Nodes[1].DSN
			db1, db2 := sandboxtest.Connect(t, pair.Nodes[0]), sandboxtest.Connect(t, pair.Nodes[1])
			wants := func(code int, args []string, words ...string) {
				t.Helper()
				got, text := call(t, args...)
				if got != code {
					t.Errorf("%s: got exit code %d: %s; want %d", args, got, text, code)
				}
				for _, w := range words {
					if !strings.Contains(text, w) {
						t.Errorf("%s: got %s, want %q in it", args, text, w)
					}
				}
			}
			errantArgs := []string{"errant", "--dsn", replica, "--source", source}
			run(t, db1, "CREATE DATABASE shop", "CREATE TABLE shop.o (id INT PRIMARY KEY)", "INSERT INTO shop.o VALUES (1), (2), (3)")
			await.Until(t, func() bool {
				n, err := db2.Text(t.Context(), "SELECT COUNT(*) FROM shop.o")
				return err == nil && n == "3"
			}, "the replica has the rows")
			wants(fault.OK, errantArgs, "db2 against db1: it has nothing that the others have not")
			run(t, db2, "SET GLOBAL read_only = 0", "FLUSH BINARY LOGS", "DELETE FROM shop.o WHERE id > 1")
			wants(fault.Differs, errantArgs, "errant, certain, 1 transaction", "committed on db2 itself", "delete shop.o: 2 rows", ".000002:")
			wants(fault.Differs, []string{"errant", "--dsn", replica, "--dsn", source, "--no-logs"}, "db2 against db1:\n  errant, certain")
			wants(fault.Differs, []string{"errant", "--dsn", replica, "--source", "x@tcp(nosuch.invalid)/"}, "db2 without its source:\n  errant, likely", "nosuch.invalid", "delete shop.o: 2 rows")
			var a ErrantAnswer
			_, text := call(t, append(errantArgs, "-o", "json")...)
			if err := json.Unmarshal([]byte(text), &a); err != nil || len(a.Servers) != 1 || len(a.Servers[0].Parts) != 1 || len(a.Servers[0].Parts[0].Transactions) != 1 {
				t.Fatalf("got %s, %v, want one errant transaction", text, err)
			}
			gtid := a.Servers[0].Parts[0].Transactions[0].GTID.String()
			wants(fault.OK, []string{"where", gtid, "--dsn", replica, "--dsn", source}, "db2: in its binary log", "delete shop.o: 2 rows", "db1: ")
			wants(fault.Failed, []string{"where", gtid, "--dsn", replica, "--dsn", "db3=x@tcp(nosuch.invalid)/"}, "db2: in its binary log", "db3: not known: it could not be asked")

			run(t, db2, db2.Server.Thread("STOP", "SQL_THREAD", ""))
			run(t, db1, "INSERT INTO shop.o VALUES (7)")
			last := lastOf(t, db1)
			await.Until(t, func() bool {
				list, err := read.ReplicaMoments(t.Context(), db2)
				return err == nil && len(list) == 1 && list[0].Received.Contains(last)
			}, "db2 has received it")
			wants(fault.OK, []string{"where", last.String(), "--dsn", replica, "--dsn", source}, "db2: received, not applied", "db1: in its binary log")
			run(t, db2, db2.Server.Thread("START", "SQL_THREAD", ""))

			saved, journals := filepath.Join(t.TempDir(), "plan"), t.TempDir()
			repair := []string{"repair", "--dsn", pair.Nodes[1].DSN, "--source", pair.Nodes[0].DSN, "--state", journals}
			wants(fault.Usage, repair, "nobody is there to say yes")
			wants(fault.OK, append(repair, "--dry-run"), "plan: ", "shop.o")
			wants(fault.OK, append(repair, "--save", saved), "nothing was changed")
			run(t, db2, "DELETE FROM shop.o WHERE id = 1")
			wants(fault.Failed, append(repair, "--plan", saved, "--yes"), "things have changed since the plan was saved, and nothing was done: what is errant was")
			wants(fault.Differs, errantArgs, "errant, certain, 2 transactions")
			wants(fault.OK, append(repair, "--save", saved), "nothing was changed")
			wants(fault.OK, append(repair, "--plan", saved, "--yes"), "done; journal: "+journals)
			wants(fault.OK, errantArgs, "it has nothing that the others have not")
			wants(fault.OK, append(repair, "--yes"), "plan: nothing")
			run(t, db2, "XA START 'x'", "INSERT INTO shop.o VALUES (9)", "XA END 'x'", "XA PREPARE 'x'")
			wants(fault.Differs, errantArgs, "insert shop.o: 1 row", "      XA PREPARE\n")
			if _, text := call(t, append(repair, "--dry-run")...); strings.Contains(text, "binlog undo") || !strings.Contains(text, "plan: ") {
				t.Errorf("got %s, want nothing about setting back what is only prepared", text)
			}
			run(t, db2, "XA COMMIT 'x'")
			wants(fault.Differs, errantArgs, "      XA COMMIT X'78'")
			wants(fault.Failed, append(repair, "--yes"), "plan: rebuild: only a rebuild helps for certain, because", "had prepared (XA COMMIT X'78'")
			wants(fault.OK, append(repair, "--yes", "--rows-equal"), "done")
			run(t, db2, "ALTER TABLE shop.o ADD v INT")
			wants(fault.Failed, append(repair, "--yes"), "plan: rebuild: only a rebuild helps, because", "(alter shop.o)")
			wants(fault.Differs, errantArgs, "alter shop.o")
			purge(t, db2)
			wants(fault.Failed, append(repair, "--yes"), "only a rebuild helps for certain, because nobody can say what all of them changed")
		})
	}
}

// lastOf is the last transaction that a primary without other history has committed.
func lastOf(t *testing.T, c *mysql.Conn) mysql.GTID {
	t.Helper()
	set, err := mysql.LoggedGTIDs(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	text := set.String()
	if !set.ByDomain() {
		source, numbers, _ := strings.Cut(text, ":")
		text = source + ":" + numbers[strings.LastIndexByte(numbers, '-')+1:]
	}
	g, err := mysql.ParseGTID(text)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestSourceGone: when the source is gone, what came from it is told apart from what a replica wrote itself, by what the replicas know.
func TestSourceGone(t *testing.T) {
	for _, c := range []struct{ spec, stop, ahead, change string }{{"mysql-9.7", "STOP REPLICA IO_THREAD", "ahead, certain, 1 transaction", "CHANGE REPLICATION SOURCE TO SOURCE_PORT"},
		{"mariadb", "STOP SLAVE IO_THREAD", "ahead, likely, 1 transaction", "CHANGE MASTER TO MASTER_PORT"}} {
		t.Run(c.spec, func(t *testing.T) {
			t.Parallel()
			box := sandboxtest.Sandbox(t, sandbox.Options{Servers: []string{c.spec}, Topology: sandbox.TopologyReplication, Replicas: 2})
			db1, db2, db3 := sandboxtest.Connect(t, box.Nodes[0]), sandboxtest.Connect(t, box.Nodes[1]), sandboxtest.Connect(t, box.Nodes[2])
			reach := func(c *mysql.Conn, rows string) {
				t.Helper()
				await.Until(t, func() bool {
					n, err := c.Text(t.Context(), "SELECT COUNT(*) FROM shop.o")
					return err == nil && n == rows
				}, "%s rows are there", rows)
			}
			run(t, db1, "CREATE DATABASE shop", "CREATE TABLE shop.o (id INT PRIMARY KEY)", "INSERT INTO shop.o VALUES (1)")
			reach(db2, "1")
			reach(db3, "1")
			run(t, db3, c.stop) // it stays behind
			run(t, db1, "INSERT INTO shop.o VALUES (2)")
			reach(db2, "2")
			run(t, db2, "SET GLOBAL read_only = 0", "DELETE FROM shop.o WHERE id = 1")
			if err := box.Nodes[0].Kill(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			code, text := call(t, "errant", "--dsn", "db2="+box.Nodes[1].DSN, "--dsn", "db3="+box.Nodes[2].DSN, "--source", box.Nodes[0].DSN)
			if code != fault.Differs {
				t.Errorf("got exit code %d: %s", code, text)
			}
			for _, want := range []string{"db2 without its source, beside db3:", c.ahead, "insert shop.o: 1 row", "errant, certain, 1 transaction", "delete shop.o: 1 row", "committed on db2 itself", "db3 without its source, beside db2: it has nothing that the others have not"} {
				if !strings.Contains(text, want) {
					t.Errorf("got %s, want %q in it", text, want)
				}
			}
			if code, text := call(t, "repair", "--dsn", box.Nodes[1].DSN, "--source", box.Nodes[0].DSN, "--yes", "--state", t.TempDir()); code != fault.Failed {
				t.Errorf("repair: got exit code %d: %s", code, text)
			}
			if code, text := call(t, "errant", "--dsn", "db3="+box.Nodes[2].DSN, "--source", box.Nodes[0].DSN); code != fault.Failed || !strings.Contains(text, "not known") {
				t.Errorf("nobody can tell: got exit code %d: %s", code, text)
			}
			// db3 goes below db2, and gets its transaction: it is no witness that db2's transaction is anywhere else.
			run(t, db3, db3.Server.StopReplica(""), strings.ReplaceAll(c.change, "PORT", fmt.Sprint("PORT = ", box.Nodes[1].Port)), db3.Server.StartReplica(""))
			await.Until(t, func() bool {
				n, err := db3.Text(t.Context(), "SELECT COUNT(*) FROM shop.o WHERE id = 1")
				return err == nil && n == "0"
			}, "db3 has what db2 wrote")
			code, text = call(t, "errant", "--dsn", "db2="+box.Nodes[1].DSN, "--dsn", "db3="+box.Nodes[2].DSN)
			if code != fault.Differs || !strings.Contains(text, "errant, likely, 1 transaction") || !strings.Contains(text, "delete shop.o: 1 row") {
				t.Errorf("beside its own replica: got exit code %d: %s", code, text)
			}
		})
	}
}

// TestPrivileges: what docs/gtid.md says is enough is enough.
func TestPrivileges(t *testing.T) {
	const client = "REPLICATION CLIENT, REPLICATION SLAVE"
	for _, c := range []struct{ spec, see, repair, forget string }{
		{"mysql-9.7", client, "REPLICATION_APPLIER, TRANSACTION_GTID_TAG", "PROCESS, RELOAD, REPLICATION_SLAVE_ADMIN, SYSTEM_VARIABLES_ADMIN"}, {"mysql-8.0", client, "SYSTEM_VARIABLES_ADMIN", "PROCESS, RELOAD, REPLICATION_SLAVE_ADMIN, SYSTEM_VARIABLES_ADMIN"}, {"mysql-5.7", client, "SUPER", "PROCESS, RELOAD, SUPER"},
		{"mariadb", "REPLICA MONITOR, BINLOG MONITOR, REPLICATION SLAVE", "", "PROCESS, RELOAD, BINLOG ADMIN, REPLICATION SLAVE ADMIN, REPLICATION MASTER ADMIN"},
	} {
		t.Run(c.spec, func(t *testing.T) {
			t.Parallel()
			pair := sandboxtest.Pair(t, c.spec)
			db1, db2 := sandboxtest.Connect(t, pair.Nodes[0]), sandboxtest.Connect(t, pair.Nodes[1])
			run(t, db1, "CREATE USER see@localhost", "CREATE USER mend@localhost", "CREATE USER forgets@localhost", "GRANT "+c.see+" ON *.* TO see@localhost, mend@localhost, forgets@localhost", "GRANT "+c.forget+" ON *.* TO forgets@localhost")
			if c.repair != "" {
				run(t, db1, "GRANT "+c.repair+" ON *.* TO mend@localhost")
			}
			as := func(account string, node int) string { return account + "@unix(" + pair.Nodes[node].Socket + ")/" }
			await.Until(t, func() bool {
				code, _ := call(t, "where", "0-1-1", "--dsn", as("mend", 1))
				return code == fault.OK
			}, "the accounts are on the replica")
			run(t, db2, "SET GLOBAL read_only = 0", "CREATE DATABASE IF NOT EXISTS only", "DROP DATABASE only")
			ends := func(code int, word string, args ...string) {
				t.Helper()
				if got, text := call(t, args...); got != code || !strings.Contains(text, word) {
					t.Errorf("%s: got exit code %d: %s; want %d, %q", args, got, text, code, word)
				}
			}
			state := t.TempDir()
			seen := []string{"errant", "--dsn", as("see", 1), "--source", as("see", 0)}
			repair := func(account string, more ...string) []string {
				return append([]string{"repair", "--dsn", as(account, 1), "--source", as(account, 0), "--rows-equal", "--yes", "--state", state}, more...)
			}
			ends(fault.Differs, "drop database only", seen...)
			if c.repair == "" {
				ends(fault.Failed, "may not see other sessions (PROCESS)", repair("mend")...)
			} else {
				ends(fault.Failed, "may not see other sessions (PROCESS)", repair("mend", "--forget")...)
				ends(fault.OK, "done", repair("mend")...)
				ends(fault.OK, "", seen...)
				run(t, db2, "CREATE DATABASE IF NOT EXISTS only", "DROP DATABASE only")
			}
			if c.spec == "mysql-9.7" {
				run(t, db2, "SET GTID_NEXT = 'AUTOMATIC:mine'", "CREATE DATABASE IF NOT EXISTS only", "DROP DATABASE only", "SET GTID_NEXT = 'AUTOMATIC'")
				ends(fault.Differs, ":mine:1-2", seen...)
				run(t, db1, "REVOKE TRANSACTION_GTID_TAG ON *.* FROM mend@localhost")
				ends(fault.Failed, "TRANSACTION_GTID_TAG", repair("mend")...)
				run(t, db1, "GRANT TRANSACTION_GTID_TAG ON *.* TO mend@localhost")
				ends(fault.OK, "done", repair("mend")...)
				run(t, db2, "CREATE DATABASE IF NOT EXISTS only", "DROP DATABASE only")
			}
			if c.spec == "mysql-9.7" { // some that stay have a tag
				ends(fault.Failed, "lacks TRANSACTION_GTID_TAG; nothing was changed", repair("forgets", "--forget")...)
				run(t, db1, "GRANT TRANSACTION_GTID_TAG ON *.* TO forgets@localhost")
				await.Until(t, func() bool {
					n, err := db2.Text(t.Context(), "SELECT COUNT(*) FROM mysql.global_grants WHERE USER = 'forgets' AND PRIV = 'TRANSACTION_GTID_TAG'")
					return err == nil && n == "1"
				}, "the privilege on the replica")
			}
			ends(fault.OK, "plan: forget", repair("forgets", "--forget")...)
			ends(fault.OK, "", seen...)
			ends(fault.OK, "nothing is left", "back", "--dsn", as("forgets", 1), "--state", state)
		})
	}
}

// TestInterrupted: an interrupted repair says how the replica is.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	pair := sandboxtest.Pair(t, "mariadb")
	db2, locks := sandboxtest.Connect(t, pair.Nodes[1]), sandboxtest.Connect(t, pair.Nodes[1])
	await.Until(t, func() bool {
		code, _ := call(t, "errant", "--dsn", pair.Nodes[1].DSN, "--source", pair.Nodes[0].DSN)
		return code == fault.OK
	}, "both servers agree")
	run(t, db2, "SET GLOBAL read_only = 0", "CREATE DATABASE only", "CREATE TABLE only.t (id INT)")
	run(t, locks, "LOCK TABLES only.t WRITE")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out bytes.Buffer
	cmd := New(screen.Streams{In: strings.NewReader(""), Out: &out, Err: &out})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs([]string{"repair", "--dsn", pair.Nodes[1].DSN, "--source", pair.Nodes[0].DSN, "--rows-equal", "--yes", "--state", t.TempDir()})
	ended := make(chan error, 1)
	go func() { ended <- cmd.ExecuteContext(ctx) }()
	await.Until(t, func() bool {
		n, err := db2.Text(t.Context(), "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'FLUSH TABLES%'")
		return err == nil && n == "1"
	}, "the repair waits for the lock")
	cancel()
	await.Until(t, func() bool { // the server notices that the session is gone
		n, err := db2.Text(t.Context(), "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'FLUSH TABLES%'")
		return err == nil && n == "0"
	}, "the lock is not asked for any more")
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if !strings.Contains(out.String(), "is as it was before") {
		t.Errorf("got %s, want how the replica is", out.String())
	}
}

// TestLogsBeginLate: a MariaDB whose logs no longer have the first of its errant transactions does not say what all of them changed.
func TestLogsBeginLate(t *testing.T) {
	t.Parallel()
	pair := sandboxtest.Pair(t, "mariadb")
	db1, db2 := sandboxtest.Connect(t, pair.Nodes[0]), sandboxtest.Connect(t, pair.Nodes[1])
	run(t, db1, "CREATE DATABASE shop", "CREATE TABLE shop.o (id INT PRIMARY KEY)")
	await.Until(t, func() bool {
		_, err := db2.Text(t.Context(), "SELECT COUNT(*) FROM shop.o")
		return err == nil
	}, "the table is there")
	run(t, db2, "SET GLOBAL read_only = 0", "CREATE TABLE shop.secret (id INT PRIMARY KEY)")
	id, err := db2.Text(t.Context(), "SELECT @@server_id")
	if err != nil {
		t.Fatal(err)
	}
	purge(t, db2)
	run(t, db2, "INSERT INTO shop.o VALUES (1)")
	code, text := call(t, "errant", "--dsn", pair.Nodes[1].DSN, "--source", pair.Nodes[0].DSN)
	if code != fault.Differs || !strings.Contains(text, "insert shop.o: 1 row") || !strings.Contains(text, "not seen: its binary logs begin behind 0-"+id+"-") {
		t.Errorf("got exit code %d: %s", code, text)
	}
	if code, text = call(t, "repair", "--dsn", pair.Nodes[1].DSN, "--source", pair.Nodes[0].DSN, "--yes", "--state", t.TempDir()); code != fault.Failed || !strings.Contains(text, "nobody can say what all of them changed") {
		t.Errorf("repair: got exit code %d: %s", code, text)
	}
}

// purge begins a new binary log, and waits until the older ones are gone: a MariaDB keeps those that a crash would need.
func purge(t *testing.T, c *mysql.Conn) {
	t.Helper()
	if err := c.Exec(t.Context(), "FLUSH BINARY LOGS"); err != nil {
		t.Fatal(err)
	}
	await.Until(t, func() bool {
		logs, err := mysql.Logs(t.Context(), c)
		if err != nil || len(logs) == 0 {
			t.Fatalf("got %v, %v, want binary logs", logs, err)
		}
		if err := c.Exec(t.Context(), "PURGE BINARY LOGS TO '"+logs[len(logs)-1].Name+"'"); err != nil {
			t.Fatal(err)
		}
		return len(logs) == 1
	}, "the older logs are gone")
}

// run runs statements.
func run(t *testing.T, c *mysql.Conn, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if err := c.Exec(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}
