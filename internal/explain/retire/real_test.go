package retire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// dieAt is what tells a process that runs this test's binary where to kill itself.
const dieAt = "RISSO_TEST_RETIRE"

// order is what such a process is to do.
type order struct{ DSN, Dir, Do, At string }

func TestMain(m *testing.M) {
	if text := os.Getenv(dieAt); text != "" {
		os.Exit(obey(text))
	}
	os.Exit(sandboxtest.Main(m))
}

// obey does one thing and kills itself in the middle of it.
func obey(text string) int {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return 3
	}
	target, err := mysql.ParseTarget(o.DSN)
	if err != nil {
		return 3
	}
	r := &Retirer{Folder: Open(o.Dir), Server: Server{Name: "s", Target: target}, Watch: time.Hour, Now: time.Now}
	r.At = func(point string) {
		if point == o.At {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	ctx := context.Background()
	if o.Do == "begin" {
		rec, err := r.Prepare(ctx, table, "ka")
		if err == nil {
			err = r.Begin(ctx, rec)
		}
		fmt.Fprintln(os.Stderr, err)
		return 4
	}
	list, err := r.Folder.List()
	if err != nil || len(list) != 1 {
		return 5
	}
	if o.Do == "drop" {
		err = r.Drop(ctx, list[0])
	} else {
		err = r.Back(ctx, list[0])
	}
	fmt.Fprintln(os.Stderr, err)
	return 4
}

var table = mysql.TableName{Schema: "d`é", Name: "t\"1"}

// made fills the table, with an index that a class of statements needs, one that nothing needs, and those that must stay.
func made(t *testing.T, c *mysql.Conn) {
	t.Helper()
	for _, s := range []string{"DROP DATABASE IF EXISTS `d``é`", "CREATE DATABASE `d``é`", "USE `d``é`", "CREATE TABLE n (d INT PRIMARY KEY)", "INSERT INTO n VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)",
		"CREATE TABLE p (id INT PRIMARY KEY) ENGINE=InnoDB", "INSERT INTO p SELECT d FROM n",
		"CREATE TABLE `t\"1` (id INT AUTO_INCREMENT PRIMARY KEY, a INT, b INT, u INT, f INT, h INT, pad CHAR(50), KEY ka (a), KEY kb (b), UNIQUE KEY ku (u), KEY kf (f), KEY kh (h), FOREIGN KEY (f) REFERENCES p (id)) ENGINE=InnoDB",
		"INSERT INTO `t\"1` (a, b, u, f, h, pad) SELECT x.d*100+y.d*10+z.d, x.d, x.d*1000+y.d*100+z.d*10+w.d, x.d, 1, 'x' FROM n x, n y, n z, n w",
		"CREATE VIEW v AS SELECT pad, a FROM `t\"1`", "CREATE VIEW vh AS SELECT pad FROM `t\"1` FORCE INDEX (kh) WHERE h = 1"} {
		if err := c.Exec(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	if err := c.Query(t.Context(), "ANALYZE TABLE "+table.String(), mysql.IgnoreRow); err != nil { // else plans depend on when the server looks at the rows
		t.Fatal(err)
	}
}

// work looks up rows by ka, through a view.
func work(t *testing.T, c *mysql.Conn) {
	t.Helper()
	for i := range 25 {
		if err := c.Query(t.Context(), fmt.Sprintf("SELECT pad FROM `d``é`.v WHERE a = %d", i), mysql.IgnoreRow); err != nil {
			t.Fatal(err)
		}
	}
}

// create is the definition of the table.
func create(t *testing.T, c *mysql.Conn) string {
	t.Helper()
	rows, err := c.Maps(t.Context(), "SHOW CREATE TABLE "+table.String())
	if err != nil {
		t.Fatal(err)
	}
	return rows[0]["Create Table"]
}

var kinds = []string{"mysql-9.7", "mariadb"} // MySQL 8.0 hides as 9.7 does; 5.7 cannot: TestPlainDrop

// TestRetire: one index is taken back because a class got slower, one is retired to the end; what a foreign key, a unique rule or a hint
// needs is refused; what was dropped can be made again.
func TestRetire(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			node := sandboxtest.Lend(t, kind, "performance_schema=ON")
			c := sandboxtest.Connect(t, node)
			made(t, c)
			before := create(t, c)
			now := time.Now()
			r := &Retirer{Folder: Open(t.TempDir()), Server: Server{Name: "s", Target: sandboxtest.Target(t, node)}, Watch: 21 * 24 * time.Hour, Now: func() time.Time { return now }}
			for _, index := range []string{"PRIMARY", "ku", "kf", "kh"} {
				if _, err := r.Prepare(t.Context(), table, index); !errors.Is(err, ErrRefused) {
					t.Errorf("%s: got %v, want that it must stay", index, err)
				}
			}
			work(t, c)
			rec, err := r.Prepare(t.Context(), table, "KA")
			if err == nil {
				err = r.Begin(t.Context(), rec)
			}
			if err != nil {
				t.Fatal(err)
			}
			for index, want := range map[string]string{"ka": "already", "kb": "one index of a table after the other"} {
				if _, err := r.Prepare(t.Context(), table, index); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s meanwhile: got %v, want %s", index, err, want)
				}
			}
			work(t, c)
			got, err := r.Check(t.Context(), rec, false)
			if err != nil || len(got.Worse) != 1 || got.Worse[0].What != "examines 10,000 rows by a call, 10 before" || rec.Phase != Back {
				t.Fatalf("ka: got %+v, %v, %s; want that it is back", got, err, rec.Phase)
			}
			if create(t, c) != before {
				t.Errorf("after it is back: got %s, want %s", create(t, c), before)
			}
			rec, err = r.Prepare(t.Context(), table, "kb")
			if err == nil {
				err = r.Begin(t.Context(), rec)
			}
			if err != nil {
				t.Fatal(err)
			}
			work(t, c)
			if got, err = r.Check(t.Context(), rec, false); err != nil || rec.Phase != Watching || got.Watched != 1 {
				t.Fatalf("kb: got %+v, %v, %s; want that it is watched on", got, err, rec.Phase)
			}
			now = now.AddDate(0, 0, 22)
			if err := c.Query(t.Context(), "SELECT pad FROM "+table.String()+" WHERE b = 3", mysql.IgnoreRow); err != nil { // a report that nobody saw before
				t.Fatal(err)
			}
			if got, err = r.Check(t.Context(), rec, false); err != nil || rec.Phase != Watching || !strings.Contains(got.Did, "not dropped: class ") || !strings.Contains(got.Did, "did not run before") {
				t.Errorf("kb, with a class that is not known: got %+v, %v, %s", got, err, rec.Phase)
			}
			if err := c.Exec(t.Context(), "TRUNCATE performance_schema.events_statements_summary_by_digest"); err != nil { // it is forgotten
				t.Fatal(err)
			}
			if got, err = r.Check(t.Context(), rec, false); err != nil || rec.Phase != Watching || len(got.Unseen) != 1 {
				t.Errorf("kb, after what was counted is gone: got %+v, %v, %s", got, err, rec.Phase)
			}
			now = now.Add(time.Hour)
			if got, err = r.Check(t.Context(), rec, true); err != nil || rec.Phase != Watching || !strings.Contains(got.Did, "not dropped: class ") {
				t.Errorf("kb, dry run: got %+v, %v, %s; want that the class is not forgotten", got, err, rec.Phase)
			}
			if err = r.Drop(t.Context(), rec); err != nil || rec.Phase != Dropped || strings.Contains(create(t, c), "`kb`") {
				t.Fatalf("kb: got %v, %s; want that somebody may drop it nevertheless", err, rec.Phase)
			}
			if err := r.Back(t.Context(), rec); err != nil || rec.Phase != Back || !strings.Contains(create(t, c), "KEY `kb` (`b`)") {
				t.Errorf("kb: got %v, %s; want that it is made again", err, rec.Phase)
			}
		})
	}
}

// TestHintFails: a statement that names the hidden index in a hint fails, with error 1176; the index comes back.
func TestHintFails(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			node := sandboxtest.Lend(t, kind, "performance_schema=ON")
			c := sandboxtest.Connect(t, node)
			made(t, c)
			r := &Retirer{Folder: Open(t.TempDir()), Server: Server{Name: "s", Target: sandboxtest.Target(t, node)}, Watch: time.Hour, Now: time.Now}
			rec, err := r.Prepare(t.Context(), table, "kb")
			if err == nil {
				err = r.Begin(t.Context(), rec)
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Query(t.Context(), "SELECT pad FROM "+table.String()+" FORCE INDEX (kb) WHERE b = 1", mysql.IgnoreRow); mysql.ErrorNumber(err) != 1176 {
				t.Fatalf("got %v, want error 1176", err)
			}
			got, err := r.Check(t.Context(), rec, false)
			if err != nil || rec.Phase != Back || len(got.Worse) != 1 || !strings.Contains(got.Worse[0].What, "1176") {
				t.Errorf("got %+v, %v, %s; want that it is back", got, err, rec.Phase)
			}
		})
	}
}

// TestKilled: a process that is killed at any step leaves behind what the next one makes whole.
func TestKilled(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			node := sandboxtest.Lend(t, kind, "performance_schema=ON")
			c := sandboxtest.Connect(t, node)
			for _, x := range []struct {
				do, at string
				want   Phase
				index  string // what of it stands in the definition after the next check
			}{
				{"begin", "hiding written", Watching, "hidden"}, {"begin", "hiding done", Watching, "hidden"},
				{"drop", "dropping written", Watching, "hidden"}, {"drop", "dropping done", Dropped, ""},
				{"back", "returning written", Back, "shown"}, {"back", "returning done", Back, "shown"},
			} {
				made(t, c)
				dir := filepath.Join(t.TempDir(), "index")
				r := &Retirer{Folder: Open(dir), Server: Server{Name: "s", Target: sandboxtest.Target(t, node)}, Watch: time.Hour, Now: time.Now}
				if x.do != "begin" {
					rec, err := r.Prepare(t.Context(), table, "ka")
					if err == nil {
						err = r.Begin(t.Context(), rec)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				text, _ := json.Marshal(order{node.DSN, dir, x.do, x.at})
				cmd := exec.CommandContext(t.Context(), os.Args[0])
				cmd.Env = append(os.Environ(), dieAt+"="+string(text))
				out, err := cmd.CombinedOutput()
				if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != -1 {
					t.Fatalf("%s at %s: it was not killed: %v: %s", x.do, x.at, err, out)
				}
				list, err := r.Folder.List()
				if err != nil || len(list) != 1 {
					t.Fatalf("%s at %s: got %d records, %v; want 1", x.do, x.at, len(list), err)
				}
				if _, err := r.Check(t.Context(), list[0], false); err != nil || list[0].Phase != x.want {
					t.Errorf("%s at %s: got %s, %v; want %s", x.do, x.at, list[0].Phase, err, x.want)
				}
				is := ""
				for line := range strings.Lines(create(t, c)) {
					if strings.Contains(line, "`ka`") {
						if is = "shown"; strings.Contains(line, "INVISIBLE") || strings.Contains(line, "IGNORED") {
							is = "hidden"
						}
					}
				}
				if is != x.index {
					t.Errorf("%s at %s: the index is %q, want %q", x.do, x.at, is, x.index)
				}
			}
		})
	}
}

// TestPlainDrop: a server that cannot hide an index has only the drop, and its undo.
func TestPlainDrop(t *testing.T) {
	node := sandboxtest.Lend(t, "mysql-5.7")
	c := sandboxtest.Connect(t, node)
	made(t, c)
	for _, s := range []string{"SET SESSION sql_mode = ''", "ALTER TABLE " + table.String() + " ADD COLUMN z DATE NOT NULL DEFAULT '0000-00-00'", "SET GLOBAL sql_mode = 'STRICT_TRANS_TABLES,NO_ZERO_DATE,ANSI_QUOTES'"} {
		if err := c.Exec(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	before := create(t, c)
	r := &Retirer{Folder: Open(t.TempDir()), Server: Server{Name: "s", Target: sandboxtest.Target(t, node)}, Watch: time.Hour, Now: time.Now}
	rec, err := r.Prepare(t.Context(), table, "kb")
	if err != nil {
		t.Fatal(err)
	}
	if plan := r.Plan(rec).Words(); len(plan) != 1 || !strings.Contains(plan[0], "DROP INDEX `kb`") || !strings.Contains(plan[0], "cannot hide") || !strings.Contains(plan[0], "ADD KEY `kb` (`b`)") {
		t.Errorf("got %q; want a drop with its undo", plan)
	}
	if err := r.Begin(t.Context(), rec); err != nil || rec.Phase != Dropped || strings.Contains(create(t, c), "`kb`") {
		t.Fatalf("got %v, %s; want that it is dropped", err, rec.Phase)
	}
	list, err := r.Folder.List()
	if err != nil || len(list) != 1 {
		t.Fatalf("got %d records, %v; want 1", len(list), err)
	}
	if err := r.Back(t.Context(), list[0]); err != nil || list[0].Phase != Back {
		t.Errorf("got %v, %s; want that it is back", err, list[0].Phase)
	}
	if after := create(t, c); len(after) != len(before) {
		t.Errorf("got %s, want %s", after, before)
	}
}
