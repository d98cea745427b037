package ask

import (
	_ "embed"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/explain/alter"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

var (
	//go:embed testdata/tables.sql
	tables string
	//go:embed testdata/statements.txt
	statements string
)

// cheap is a server that does not wait for its disk.
var cheap = []string{"innodb_flush_log_at_trx_commit=0", "sync_binlog=0", "innodb_doublewrite=OFF", "skip-log-bin"}

// truthRows is how many rows the tables have: more than no server copies without telling.
const truthRows = 1000

// rows fill a table of tables.sql.
var rows = map[string]string{
	"parent": "(id, name) SELECT n, n FROM seq", "t": "(id, a, b, c, d, e, txt, dt, m) SELECT n, n % 100, n, n, n, 'x', CONCAT('word', n), '2026-11-27', n FROM seq",
	"tg": "(id, a) SELECT n, n FROM seq", "tf": "(id, a, txt) SELECT n, n, CONCAT('word', n) FROM seq", "tp": "(id, a, c) SELECT n, n, n FROM seq", "tc": "(id, a, c) SELECT n, n, n FROM seq",
	"tr": "(id, a, c) SELECT n, n, n FROM seq", "tm": "(id, a, c) SELECT n, n, n FROM seq", "tn": "(a, c) SELECT n, n FROM seq", "child": "(id, p, q) SELECT n, n, n FROM seq", "tt": "(id, a, c) SELECT n, n, n FROM seq",
}

// truth is a server with the tables.
type truth struct {
	t      *testing.T
	c      *mysql.Conn
	target mysql.Target
	create map[string]string
}

func newTruth(t *testing.T, spec string) *truth {
	n := sandboxtest.Lend(t, spec, cheap...)
	w := &truth{t: t, c: sandboxtest.Connect(t, n), target: sandboxtest.Target(t, n).WithDatabase("alter test"), create: map[string]string{}}
	w.exec("SET SESSION sql_log_bin = 0")
	w.exec("CREATE DATABASE `alter test` DEFAULT CHARACTER SET utf8mb4")
	w.exec("USE `alter test`")
	w.exec("CREATE TABLE seq (n INT NOT NULL PRIMARY KEY)")
	var list []string
	for i := range truthRows {
		list = append(list, "("+strconv.Itoa(i+1)+")")
	}
	w.exec("INSERT INTO seq VALUES " + strings.Join(list, ","))
	for line := range strings.Lines(tables) {
		w.create[strings.Fields(line)[2]] = strings.TrimSpace(line)
	}
	return w
}

func (w *truth) exec(statement string) {
	w.t.Helper()
	if err := w.c.Exec(w.t.Context(), statement); err != nil {
		w.t.Fatalf("%s: %v", statement, err)
	}
}

// fresh makes a table, and those that foreign keys join with it, anew.
func (w *truth) fresh(table string) {
	w.t.Helper()
	w.exec("SET SESSION foreign_key_checks = 0")
	list := []string{table}
	if table == "child" || table == "parent" {
		list = []string{"parent", "child"}
	} else if table == "t" {
		list = []string{"parent", "t"}
	}
	drop := []string{"child", "parent", "t", "t_other"}
	if !slices.Contains(drop, table) {
		drop = append(drop, table)
	}
	w.exec("DROP TABLE IF EXISTS " + strings.Join(drop, ", "))
	for _, name := range list {
		w.exec(w.create[name])
		w.exec("INSERT INTO " + name + " " + rows[name])
	}
	if table == "tt" {
		w.exec("CREATE TRIGGER `a trigger` BEFORE INSERT ON tt FOR EACH ROW SET NEW.a = NEW.a + 1")
	}
	w.exec("SET SESSION foreign_key_checks = 1")
}

// did is what the server did.
func (w *truth) did(k *clone, statement string) (e alter.Effect, copied bool, err error) {
	before, err := k.files(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.c.Exec(w.t.Context(), statement); err != nil {
		return e, false, err
	}
	n, err := w.c.Text(w.t.Context(), "SELECT ROW_COUNT()") // an ALTER TABLE that copies says how many rows
	if err != nil {
		w.t.Fatal(err)
	}
	after, err := k.files(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	rows, _ := strconv.Atoi(n)
	return before.effect(after), rows > 0, nil
}

// TestTruth compares what a plan says with what the server does with rows in the table, for all statements: what is refused, what is cheapest,
// whether rows are copied, the table written anew, an index built. Older servers get every fifth of them, unless RISSO_TEST_ALTER is all.
func TestTruth(t *testing.T) {
	for _, c := range []struct {
		spec  string
		every int
	}{{"mariadb", 1}, {"mysql-9.7", 1}, {"mysql-8.0", 5}, {"mysql-5.7", 5}} {
		if os.Getenv("RISSO_TEST_ALTER") == "all" {
			c.every = 1
		}
		t.Run(c.spec, func(t *testing.T) { truthOf(t, c.spec, c.every) })
	}
}

func truthOf(t *testing.T, spec string, every int) {
	w := newTruth(t, spec)
	box := sandboxtest.Target(t, sandboxtest.Lend(t, spec, cheap...))
	seen, asked, kinds := 0, 0, map[alter.Kind]int{}
	for line := range strings.Lines(statements) {
		line = strings.TrimSpace(line)
		if only, rest, ok := strings.Cut(line, ": "); ok && (only == "mysql" || only == "mariadb") {
			if only == "mariadb" != w.c.Server.MariaDB() {
				continue
			}
			line = rest
		}
		table, body, _ := strings.Cut(line, " ")
		if strings.HasPrefix(line, "#") || body == "" {
			continue
		}
		if seen++; seen%every != 0 {
			continue
		}
		statement := "ALTER TABLE " + table + " " + body
		w.fresh(table)
		p, err := Plan(t.Context(), Options{Target: w.target, Statement: statement, Box: &box})
		if err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
		asked++
		kinds[p.Kind]++
		w.check(p, table, statement, asked%3 == 0)
	}
	t.Logf("%d statements: %v", asked, kinds)
	if seen < 60 || asked < 60/every {
		t.Errorf("only %d of %d statements, want 60", asked, seen)
	}
}

// check lets the server do what was planned.
func (w *truth) check(p Planned, table, statement string, itself bool) {
	t := w.t
	k := &clone{b: &Box{c: w.c}, f: &p.Facts, st: p.Statement}
	if p.Kind == alter.KindRefused {
		if err := w.c.Exec(t.Context(), statement); err == nil {
			t.Errorf("%s: planned as refused (%s), but the server did it", statement, p.Refused)
		}
		return
	}
	if !p.Tried || !p.Runs() {
		t.Errorf("%s: it was not tried: %+v", statement, p.Lines)
		return
	}
	for _, a := range p.Attempts {
		if a.Number == 0 { // the last, or one whose word the server ignores
			continue
		}
		if err := w.c.Exec(t.Context(), p.Statement.With("test", a.Algorithm, a.Lock)); mysql.ErrorNumber(err) != a.Number {
			t.Errorf("%s by %s %s: refused by the clone (%s), the server says %v", statement, a.Algorithm, a.Lock, a.Refused, err)
			return
		}
	}
	e, copied, err := w.did(k, p.Plan.Statement)
	if err != nil {
		t.Errorf("%s: the clone did it as %s, the server says %v", statement, p.Kind, err)
		return
	}
	untold := p.Algorithm == "" && p.Rebuilds // MySQL 5.7 does not say how many rows it has copied between partitions
	if copied != (p.Kind == alter.KindCopy) && !untold {
		t.Errorf("%s: planned as %s; copied %t", statement, p.Kind, copied)
	}
	if p.Empties {
		return
	}
	moved := p.Facts.Table.Engine != "InnoDB" || strings.Contains(statement, "MyISAM") // InnoDB has no number before, or after
	if e.Rebuilt != p.Rebuilds && !moved || !slices.Equal(e.Built, p.Builds) {
		t.Errorf("%s: planned %s, rebuilds %t, builds %v; the server did %+v", statement, p.Kind, p.Rebuilds, p.Builds, e)
	}
	if !itself || untold {
		return
	}
	w.fresh(table)
	e, copied, err = w.did(k, statement)
	if err != nil || copied != (p.Kind == alter.KindCopy) || e.Rebuilt != p.Rebuilds && !moved {
		t.Errorf("%s: planned %s, rebuilds %t; without ALGORITHM the server did %+v, copied %t, %v", statement, p.Kind, p.Rebuilds, e, copied, err)
	}
}
