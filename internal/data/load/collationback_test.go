package load_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/data/load"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
)

const (
	ownCollation  = "latin1_german1_ci" // of the schema that is there already
	lentCollation = "utf8mb4_bin"       // that it has while procedures are made
)

// TestCollationBack: a schema that is there gets its own default collation back when a restore that makes procedures is interrupted; what a
// killed one left is reported by Forget, and given back, or the journal stays and the statement is named. Dry runs are refused during another
// restore, and where the account may not write.
func TestCollationBack(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			node := lend(t, spec)
			s := stream(t, node)
			setup := []string{"CREATE DATABASE cdb COLLATE " + lentCollation, "USE cdb", "CREATE TABLE t (a INT PRIMARY KEY)"}
			for i := range 400 {
				setup = append(setup, fmt.Sprintf("CREATE PROCEDURE p%d(v VARCHAR(9)) SELECT v", i))
			}
			exec(t, s, append(setup, "ALTER DATABASE cdb COLLATE latin1_swedish_ci")...)
			r, dir := emptyRepo(t)
			smallDump(t, node, r, "cdb")
			exec(t, s, "USE mysql", "DROP DATABASE cdb", "CREATE DATABASE cdb COLLATE "+ownCollation)
			collationAfterInterrupt(t, node, s, r)
			collationAfterKill(t, node, s, dir)
			collationKept(t, node, s, dir)
			dryRuns(t, node, s, r)
			exec(t, s, "DROP DATABASE IF EXISTS cdb")
		})
	}
}

func collationOf(t *testing.T, s *mysql.Stream) string {
	t.Helper()
	return strings.Trim(ask(t, s, "SELECT DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 'cdb'"), "|\n")
}

// awaitLent waits until the schema has another collation, or the restore is over.
func awaitLent(t *testing.T, s *mysql.Stream, done <-chan error) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); collationOf(t, s) != lentCollation; {
		select {
		case err := <-done:
			t.Fatalf("the restore ended before the schema had another collation: %v", err)
		default:
		}
		if time.Now().After(deadline) {
			t.Fatal("the schema gets no other collation")
		}
	}
}

func collationAfterInterrupt(t *testing.T, node *sandbox.Node, s *mysql.Stream, r *repo.Repo) {
	t.Helper()
	for range 3 { // an interrupt may meet a moment in which it has its own
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := load.Restore(ctx, load.Options{Repo: r, Into: target(t, node), Threads: 1})
			done <- err
		}()
		awaitLent(t, s, done)
		cancel()
		if err := <-done; err == nil {
			t.Fatal("interrupted, and no error")
		}
		if got := collationOf(t, s); got != ownCollation {
			t.Fatalf("after an interrupt the schema has %s, want %s", got, ownCollation)
		}
	}
	if f, err := load.Forget(t.Context(), target(t, node), true); err != nil || !f.Found || len(f.Schemas) > 0 {
		t.Errorf("after an interrupt: %+v, %v; want a journal, and nothing to give back", f, err)
	}
}

// killWhileLent leaves the schema with another collation, by restores that are killed.
func killWhileLent(t *testing.T, node *sandbox.Node, s *mysql.Stream, dir string) {
	t.Helper()
	for range 20 {
		cmd := childOf(t, node, dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- cmd.Wait() }()
		awaitLent(t, s, done)
		if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		<-done
		await.Until(t, func() bool { return ask(t, s, "SELECT IS_USED_LOCK('risso_restore') IS NULL") == "1|\n" }, "the server to end the sessions of the killed restore")
		if collationOf(t, s) == lentCollation {
			return
		}
	}
	t.Fatal("no kill met a moment in which the schema had another collation")
}

func collationAfterKill(t *testing.T, node *sandbox.Node, s *mysql.Stream, dir string) {
	t.Helper()
	killWhileLent(t, node, s, dir)
	want := []load.Lent{{Schema: "cdb", Collation: ownCollation}}
	if f, err := load.Forget(t.Context(), target(t, node), true); err != nil || !slices.Equal(f.Schemas, want) || collationOf(t, s) != lentCollation {
		t.Errorf("a dry run of forget: %+v, %v, the schema has %s; want %v and no change", f, err, collationOf(t, s), want)
	}
	if f, err := load.Forget(t.Context(), target(t, node), false); err != nil || !slices.Equal(f.Schemas, want) {
		t.Errorf("forget: %+v, %v; want %v", f, err, want)
	}
	if got := collationOf(t, s); got != ownCollation {
		t.Errorf("forgotten, and the schema has %s, want %s", got, ownCollation)
	}
}

// collationKept: an account that may not give it back gets the statement, and the journal stays.
func collationKept(t *testing.T, node *sandbox.Node, s *mysql.Stream, dir string) {
	t.Helper()
	exec(t, s, "DROP DATABASE cdb", "CREATE DATABASE cdb COLLATE "+ownCollation)
	killWhileLent(t, node, s, dir)
	exec(t, s, "CREATE USER few IDENTIFIED BY 'few'", "GRANT SELECT ON cdb.* TO few", "GRANT ALL ON risso_restore.* TO few")
	defer exec(t, s, "DROP USER few")
	_, err := load.Forget(t.Context(), as(t, node, "few"), false)
	lent, ok := errors.AsType[*load.LentError](err)
	if !ok || !strings.Contains(fleet.RemedyOf(err), "ALTER DATABASE `cdb` COLLATE = "+ownCollation) {
		t.Errorf("by an account that may not ALTER: %v (%s), want the statement", err, fleet.RemedyOf(err))
	} else {
		exec(t, s, lent.Statement())
	}
	if f, err := load.Forget(t.Context(), as(t, node, "few"), false); err != nil || !f.Found || len(f.Schemas) > 0 {
		t.Errorf("given back by hand: %+v, %v; want the journal, and nothing to give back", f, err)
	}
}

func dryRuns(t *testing.T, node *sandbox.Node, s *mysql.Stream, r *repo.Repo) {
	t.Helper()
	exec(t, s, "DROP DATABASE cdb")
	exec(t, s, "CREATE USER few IDENTIFIED BY 'few'", "GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, INDEX, CREATE ROUTINE, ALTER ROUTINE, EXECUTE ON *.* TO few", "SET GLOBAL read_only = 1")
	defer exec(t, s, "SET GLOBAL read_only = 0", "DROP USER few")
	for _, dry := range []bool{true, false} {
		res, err := load.Restore(t.Context(), load.Options{Repo: r, Into: as(t, node, "few"), DryRun: dry})
		if !errors.Is(err, load.ErrReadOnly) || res.Changed {
			t.Errorf("into a read-only server, dry run %v: %v, changed %v; want %v and no change", dry, err, res.Changed, load.ErrReadOnly)
		}
	}
	dry := load.Options{Repo: r, Into: target(t, node), DryRun: true}
	if _, err := load.Restore(t.Context(), dry); err != nil {
		t.Errorf("by an account that may write all the same: %v", err)
	}
	exec(t, s, "DO GET_LOCK('risso_restore', 0)")
	if _, err := load.Restore(t.Context(), dry); !errors.Is(err, load.ErrBusy) {
		t.Errorf("a dry run beside a restore: %v, want %v", err, load.ErrBusy)
	}
	exec(t, s, "DO RELEASE_LOCK('risso_restore')")
}

// as is the server for an account whose password is its name.
func as(t *testing.T, node *sandbox.Node, user string) mysql.Target {
	t.Helper()
	_, rest, ok := strings.Cut(node.DSN, "@")
	if !ok {
		t.Fatalf("a DSN without an account: %s", node.DSN)
	}
	out, err := mysql.ParseTarget(user + ":" + user + "@" + rest)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
