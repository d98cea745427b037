package prove_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/data/dump"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/explain/digest"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/serve/prove"
	"github.com/rissodb/risso/internal/store/blob"
)

// shop makes a table of ten thousand rows.
func shop(t *testing.T, c *mysql.Conn) {
	t.Helper()
	const ten = "(SELECT 0 AS n UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9)"
	for _, s := range []string{"CREATE DATABASE shop", "USE shop", "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a INT NOT NULL, b INT NOT NULL, pad CHAR(100) NOT NULL) ENGINE=InnoDB",
		"INSERT INTO t (a, b, pad) SELECT n % 997, n, 'x' FROM (SELECT a.n + 10 * b.n + 100 * c.n + 1000 * d.n AS n FROM " + ten + " a, " + ten + " b, " + ten + " c, " + ten + " d) x", "ANALYZE TABLE t"} {
		if err := c.Query(t.Context(), s, mysql.IgnoreRow); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// recorded is a slow log of statements.
func recorded(t *testing.T, statements ...string) *digest.Profile {
	t.Helper()
	var b strings.Builder
	for i, s := range statements {
		fmt.Fprintf(&b, "# Time: 2026-11-28T03:00:%02d.000000Z\n# User@Host: app[app] @ localhost []  Id: 1\n# Query_time: 1.0  Lock_time: 0.0 Rows_sent: 1  Rows_examined: 10000\nuse shop;\nSET timestamp=%d;\n%s;\n", i, 1795834800+i, s)
	}
	path := filepath.Join(t.TempDir(), "slow.log")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	source, err := digest.File(path)
	if err != nil {
		t.Fatal(err)
	}
	p, err := digest.Run(t.Context(), digest.Options{Samples: 3}, source)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// byA is an index that helps.
var byA = advise.Finding{ID: "index.missing", Object: "shop.t.a", Statement: "CREATE INDEX a ON shop.t (a)", Undo: "DROP INDEX a ON shop.t"}

const looks = "SELECT pad FROM t WHERE a = 5"

// folder is one for sandboxes, in which none is at the end.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := sandboxtest.Folder("prove")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		none(t, dir)
		os.RemoveAll(dir)
	})
	return dir
}

func none(t *testing.T, dir string) {
	t.Helper()
	if list, err := sandbox.List(dir); err != nil || len(list) > 0 {
		t.Errorf("got %d sandboxes, %v; want none left", len(list), err)
	}
	if left, err := os.ReadDir(filepath.Join(dir, ".prove")); err != nil && !os.IsNotExist(err) || len(left) > 0 {
		t.Errorf("got %d claims, %v; want none left", len(left), err)
	}
}

// same holds that the user's table is as it was.
func same(t *testing.T, c *mysql.Conn) {
	t.Helper()
	got, err := c.Text(t.Context(), "SELECT CONCAT_WS(' ', COUNT(*), SUM(b), (SELECT COUNT(*) FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = 'shop' AND TABLE_NAME = 't')) FROM shop.t")
	if err != nil || got != "10000 49995000 1" {
		t.Errorf("the table on the server has %s, %v; want what it had", got, err)
	}
}

func said(list []string, words ...string) bool {
	return slices.ContainsFunc(list, func(s string) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(s, w) })
	})
}

// TestWorse: what makes writes slower and nothing faster is called that; of classes that cannot be measured it is said why, and they keep the
// others from nothing.
func TestWorse(t *testing.T) {
	n := sandboxtest.Lend(t, "mariadb")
	c := sandboxtest.Connect(t, n)
	shop(t, c)
	f := advise.Finding{ID: "x", Object: "shop.t", Statement: "ALTER TABLE shop.t ADD INDEX b1 (b), ADD INDEX b2 (b, a), ADD INDEX b3 (b, pad), ADD INDEX b4 (pad, b), ADD INDEX b5 (b, id, pad), ADD INDEX b6 (b, id, a)",
		Undo: "ALTER TABLE shop.t DROP INDEX b1, DROP INDEX b2, DROP INDEX b3, DROP INDEX b4, DROP INDEX b5, DROP INDEX b6"}
	p, err := prove.Run(t.Context(), prove.Options{Target: sandboxtest.Target(t, n), Finding: f, Pairs: 12, Most: 200_000, Dir: folder(t), Patience: 6 * time.Second,
		Slow: recorded(t, looks, "UPDATE t SET b = b + 1 WHERE id BETWEEN 1 AND 3000", "SELECT id FROM t WHERE no_such_function(a) = 1", "SELECT SLEEP(3600) FROM t WHERE a = 7", "SELECT COUNT(*) FROM t x JOIN t y ON x.b <> y.b JOIN t z ON z.a <> x.a + y.a")})
	if err != nil {
		t.Fatal(err)
	}
	if p.Outcome != "worse" || !said(p.Worse, "class ") && !said(p.Worse, "INSERT") {
		t.Errorf("got %s (%s), %q; want that the UPDATE or the INSERT is slower", p.Outcome, p.Words, p.Worse)
	}
	if i := slices.IndexFunc(p.Classes, func(x advise.ProvenClass) bool { return strings.HasPrefix(x.Fingerprint, "select pad") }); i < 0 || p.Classes[i].Outcome != "no difference can be shown" || !strings.Contains(p.Classes[i].Verdict, "same plan") {
		t.Errorf("got %+v; want that the SELECT runs by the same plan", p.Classes)
	}
	if len(p.Classes) != 3 || !said(p.Notes, "was not measured", "no_such_function") || !said(p.Notes, "was not measured", "it took longer than 6 s") || !said(p.Notes, "was not measured", "sleep()") {
		t.Errorf("got %d classes, %q; want the SELECT, the UPDATE, the INSERT, and why the others were not measured", len(p.Classes), p.Notes)
	}
	same(t, c)
	for words, slow := range map[string]*digest.Profile{"no class of statements could be measured: ": recorded(t, "SELECT id FROM t WHERE no_such_function(a) = 1"), "no class of statements of ": recorded(t, "SELECT 1 FROM mysql.user")} {
		if _, err := prove.Run(t.Context(), prove.Options{Target: sandboxtest.Target(t, n), Finding: byA, Pairs: 4, Most: 200_000, Dir: folder(t), Slow: slow}); !errors.Is(err, prove.ErrNothing) || !strings.Contains(err.Error(), words) {
			t.Errorf("got %v, want %s", err, words)
		}
	}
}

// TestStopped: whatever ends a proof, its throw-away server is gone, at once or with the next proof, which says so; the user's table is as it was.
func TestStopped(t *testing.T) {
	n := sandboxtest.Lend(t, "mariadb")
	c := sandboxtest.Connect(t, n)
	shop(t, c)
	dir := folder(t)
	o := prove.Options{Target: sandboxtest.Target(t, n), Finding: byA, Pairs: 4, Most: 200_000, Dir: dir, Slow: recorded(t, looks)}
	for _, stage := range []string{"a throw-away server", "copy of", "turn 2 "} {
		ctx, cancel := context.WithCancel(t.Context())
		o.Progress = func(text string) {
			if strings.HasPrefix(text, stage) {
				cancel()
			}
		}
		if _, err := prove.Run(ctx, o); !errors.Is(err, context.Canceled) {
			t.Errorf("stopped at %q: got %v, want context.Canceled", stage, err)
		}
		none(t, dir)
	}
	for _, stage := range []string{"copy of", "turn 2 "} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilledChild$")
		cmd.Env = append(os.Environ(), "RISSO_TEST_PROVE="+n.DSN, "RISSO_TEST_PROVE_DIR="+dir, "RISSO_TEST_PROVE_STAGE="+stage)
		out, err := cmd.CombinedOutput()
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() {
			t.Fatalf("%v, %s; want that the process kills itself", err, out)
		}
		if list, err := sandbox.List(dir); err != nil || len(list) != 1 {
			t.Errorf("killed at %q: got %d sandboxes, %v; want one left", stage, len(list), err)
		}
		same(t, c)
		o.Progress, o.Most = nil, 2000
		p, err := prove.Run(t.Context(), o)
		if p.Data != "a sample of the server's own rows" || len(p.Tables) != 1 || p.Tables[0].All || p.Tables[0].Rows > 3000 || !said(p.Notes, "a sample was copied") || p.Outcome != "better" {
			t.Errorf("with --copy-rows 2000: got %s, %+v, %q, %s; want a sample that says so, and better", p.Data, p.Tables, p.Notes, p.Outcome)
		}
		if err != nil || !said(p.Notes, "of a proof that was killed was thrown away") {
			t.Errorf("after a kill at %q: got %q, %v; want that it says what it threw away", stage, p.Notes, err)
		}
		none(t, dir)
	}
	same(t, c)
}

// TestKilledChild is the process that TestStopped has killed.
func TestKilledChild(t *testing.T) {
	dsn := os.Getenv("RISSO_TEST_PROVE")
	if dsn == "" {
		t.Skip("only for TestStopped")
	}
	target, err := mysql.ParseTarget(dsn)
	if err != nil {
		t.Fatal(err)
	}
	_, err = prove.Run(t.Context(), prove.Options{Target: target, Finding: byA, Pairs: 4, Most: 200_000, Dir: os.Getenv("RISSO_TEST_PROVE_DIR"), Slow: recorded(t, looks), Progress: func(text string) {
		if strings.HasPrefix(text, os.Getenv("RISSO_TEST_PROVE_STAGE")) {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	}})
	t.Fatal("it went on", err)
}

// TestKeepKilled: a process that is killed while it writes a proof leaves the old one or the new one whole, and what is half written goes later.
func TestKeepKilled(t *testing.T) {
	if dir := os.Getenv("RISSO_TEST_PROVE_KEEP"); dir != "" {
		for i := range 1_000_000 {
			if err := prove.Keep(dir, "db1", byA, advise.Proof{Outcome: "better", Words: strings.Repeat("x", i%5000)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	dir := t.TempDir()
	for range 5 {
		list, _ := filepath.Glob(filepath.Join(dir, "proof-*"))
		for _, path := range list {
			_ = os.Remove(path)
		}
		cmd := exec.Command(os.Args[0], "-test.run=^TestKeepKilled$")
		cmd.Env = append(os.Environ(), "RISSO_TEST_PROVE_KEEP="+dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		await.Until(t, func() bool {
			list, _ := filepath.Glob(filepath.Join(dir, "proof-*"))
			return len(list) > 0
		}, "a proof")
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		found := []advise.Finding{byA}
		if err := prove.Hang(dir, "db1", found); err != nil || found[0].Proof == nil || found[0].Proof.Outcome != "better" {
			t.Fatalf("got %+v, %v; want a whole proof", found[0].Proof, err)
		}
	}
	half := filepath.Join(dir, ".proof-1")
	if err := os.WriteFile(half, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-2 * time.Minute)
	if err := os.Chtimes(half, old, old); err != nil {
		t.Fatal(err)
	}
	if err := prove.Keep(dir, "db1", byA, advise.Proof{}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(half); !os.IsNotExist(err) {
		t.Errorf("what was half written is still there: %v", err)
	}
}

// TestNoServer: without a server of the same series it is said which is missing, and what to do.
func TestNoServer(t *testing.T) {
	n := sandboxtest.Lend(t, "mysql-5.7")
	shop(t, sandboxtest.Connect(t, n))
	o := prove.Options{Target: sandboxtest.Target(t, n), Finding: byA, Pairs: 4, Most: 200_000, Dir: folder(t), Slow: recorded(t, looks)}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("RISSO_SERVERS", "")
	if _, err := prove.Run(t.Context(), o); !errors.Is(err, sandbox.ErrNoServer) || !strings.Contains(err.Error(), "mysql-5.7") || !strings.Contains(fleet.RemedyOf(err), "--on") {
		t.Errorf("got %v, want that mysql-5.7 is missing, and --on", err)
	}
}

// TestFails: a server that goes away while its rows are read, and a disk that is too small for the copy, end a proof with the reason.
func TestFails(t *testing.T) {
	n := sandboxtest.Up(t, "mariadb")
	c := sandboxtest.Connect(t, n)
	for _, s := range []string{"CREATE DATABASE shop", "USE shop", "CREATE TABLE t (id INT PRIMARY KEY, a INT NOT NULL, pad CHAR(200) CHARACTER SET latin1 NOT NULL) ENGINE=InnoDB", "INSERT INTO t SELECT seq, seq % 997, SHA2(seq, 512) FROM seq_1_to_200000", "ANALYZE TABLE t"} {
		if err := c.Query(t.Context(), s, mysql.IgnoreRow); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	o := prove.Options{Target: sandboxtest.Target(t, n), Finding: byA, Pairs: 4, Most: 200_000, Slow: recorded(t, looks)}
	small := t.TempDir()
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=64m"); err != nil {
		t.Logf("SKIPPED: mounting a tmpfs needs root with CAP_SYS_ADMIN: %v", err)
	} else {
		defer func() { _ = syscall.Unmount(small, syscall.MNT_DETACH) }()
		o.Dir = small
		_, err := prove.Run(t.Context(), o)
		t.Logf("a disk of 64 MiB: %v", err)
		if err == nil || !strings.Contains(err.Error(), "the disk of "+small+" has only ") || !strings.Contains(fleet.RemedyOf(err), "--dir") {
			t.Errorf("a disk of 64 MiB: got %v (%s), want that it is full, and --dir", err, fleet.RemedyOf(err))
		}
		none(t, small)
	}
	o.Dir = folder(t)
	ended := make(chan error, 1)
	o.Progress = func(text string) {
		if strings.HasPrefix(text, "copy of") {
			go func() {
				for {
					rows, err := c.Maps(t.Context(), "SELECT ID FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SELECT /* risso: a copy to prove%'")
					if err != nil || len(rows) > 0 {
						ended <- errors.Join(err, n.Kill(syscall.SIGKILL))
						return
					}
				}
			}()
		}
	}
	_, err := prove.Run(t.Context(), o)
	t.Logf("the server was killed: %v", err)
	if err == nil || !strings.Contains(err.Error(), "copy `shop`.`t`: ") || strings.Contains(err.Error(), "closed pipe") {
		t.Errorf("the server was killed while its rows were read: got %v, want that it says so", err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

// TestFrom: a proof on the newest backup says which one, and that all rows are there.
func TestFrom(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			n := sandboxtest.Lend(t, spec)
			c := sandboxtest.Connect(t, n)
			shop(t, c)
			store, err := blob.Open(t.Context(), t.TempDir(), blob.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			r, err := repo.CreateWith(t.Context(), repo.On(store), repo.Keys{})
			if err != nil {
				t.Fatal(err)
			}
			b, err := dump.Run(t.Context(), r, dump.Options{Target: sandboxtest.Target(t, n), Threads: 2})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Exec(t.Context(), "DELETE FROM shop.t WHERE id > 10"); err != nil { // the server is not asked for rows
				t.Fatal(err)
			}
			p, err := prove.Run(t.Context(), prove.Options{Target: sandboxtest.Target(t, n), Finding: byA, Repo: r, Pairs: 4, Most: 1000, Dir: folder(t), Slow: recorded(t, looks)})
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(p.Data, "the newest backup, ") || p.Outcome != "better" || len(p.Tables) != 1 || p.Tables[0].Rows != 10_000 || !p.Tables[0].All {
				t.Errorf("of %v: got %s (%s) with %s, %+v, %q; want better, of all 10,000 rows of the backup", b, p.Outcome, p.Words, p.Data, p.Tables, p.Notes)
			}
			if p.Classes[0].RowsBefore < 10_000 || p.Classes[0].RowsAfter > 30 {
				t.Errorf("got %+v, want 10,000 rows before and 11 after", p.Classes[0])
			}
			q, err := prove.Run(t.Context(), prove.Options{Target: sandboxtest.Target(t, n), Finding: byA, Repo: r, Pairs: 4, Most: 1000, Dir: folder(t), Slow: recorded(t, "SELECT o.x FROM t JOIN gone o ON o.id = t.a")})
			if err == nil {
				t.Errorf("with a table that is in no backup: got %+v, want an error", q)
			} else {
				t.Log(err)
			}
		})
	}
}
