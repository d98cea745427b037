package describe_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/explain/differ"
	"github.com/rissodb/risso/internal/explain/differ/describe"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m)) }

func do(t *testing.T, n *sandbox.Node, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := n.Query(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func take(t *testing.T, dsn, name string) *differ.Description {
	t.Helper()
	target, err := mysql.ParseTarget(dsn)
	if err != nil {
		t.Fatal(err)
	}
	d, err := describe.Take(t.Context(), target, describe.Options{Schemas: true, Now: time.Now(), Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// shop is the same on both servers; planted is done to one of them.
var shop = []string{
	"CREATE DATABASE shop CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", "CREATE TABLE shop.orders (id INT PRIMARY KEY, v INT, w VARCHAR(20), KEY v (v), UNIQUE KEY w (w))",
	"CREATE TABLE shop.`it's a \"näme\"` (id INT PRIMARY KEY)", "CREATE VIEW shop.seen AS SELECT id FROM shop.orders", "CREATE PROCEDURE shop.p() SELECT 1",
	"CREATE TRIGGER shop.tr BEFORE INSERT ON shop.orders FOR EACH ROW SET NEW.v = 1", "CREATE USER app@localhost IDENTIFIED BY 'x9-Secret'", "GRANT SELECT ON shop.* TO app@localhost",
}

var planted = []struct{ statement, name, rank string }{
	{"SET GLOBAL sync_binlog = 0", "sync_binlog", "data"},
	{"SET GLOBAL innodb_flush_log_at_trx_commit = 2", "innodb_flush_log_at_trx_commit", "data"},
	{"SET GLOBAL sql_mode = 'NO_ENGINE_SUBSTITUTION'", "sql_mode", "behaviour"},
	{"SET GLOBAL optimizer_switch = 'mrr=on,index_merge=off'", "optimizer_switch", "performance"},
	{"SET GLOBAL time_zone = '+03:00'", "time_zone", "behaviour"},
	{"ALTER TABLE shop.orders DROP KEY v", "`shop`.`orders`", "performance"},
	{"ALTER TABLE shop.orders DROP KEY w", "`shop`.`orders`", "data"},
	{"ALTER TABLE shop.orders ADD extra INT", "`shop`.`orders`", "data"},
	{"DROP TRIGGER shop.tr", "trigger `shop`.`tr`", "data"},
	{"CREATE TABLE shop.more (id INT PRIMARY KEY)", "`shop`.`more`", "data"},
	{"DROP PROCEDURE shop.p", "procedure `shop`.`p`", "behaviour"},
	{"GRANT INSERT ON shop.* TO app@localhost", "app@localhost", "behaviour"},
	{"CREATE USER `o'brien`@localhost", "o'brien@localhost", "behaviour"},
}

// TestPlanted: twins differ in paths and names only; each planted difference is found, with its rank; an account with few privileges never
// makes anything the same, or missing, that it does not see.
func TestPlanted(t *testing.T) {
	for _, kind := range []string{"mariadb", "mysql-9.7"} {
		t.Run(kind, func(t *testing.T) {
			a, b := sandboxtest.Lend(t, kind), sandboxtest.Lend(t, kind)
			do(t, a, shop...)
			do(t, b, shop...)
			x, twin := take(t, a.DSN, "a"), take(t, b.DSN, "b")
			for name := range x.Accounts { // the sandbox's own has another password each
				if strings.HasPrefix(name, "risso@") || strings.HasPrefix(name, "app@") && kind != "mariadb" { // salted
					delete(x.Accounts, name)
					delete(twin.Accounts, name)
				}
			}
			if r := differ.Compare(x, twin, true); r.Worst(differ.RankVersion) > 0 || len(r.NotCompared) > 0 {
				t.Errorf("twins: got %+v, not compared %+v, want names only", worst(r), r.NotCompared)
			}
			for _, p := range planted {
				do(t, b, p.statement)
			}
			x, y := take(t, a.DSN, "a"), take(t, b.DSN, "b")
			r := differ.Compare(x, y, true)
			for _, p := range planted {
				if !slices.ContainsFunc(r.Differences, func(d differ.Difference) bool {
					return d.Name == p.name && string(d.Rank) == p.rank && d.Why != ""
				}) {
					t.Errorf("%s: want %s of rank %s in %+v", p.statement, p.name, p.rank, worst(r))
				}
			}
			few(t, a, x)
			file(t, x)
		})
	}
}

func worst(r *differ.Report) (list []differ.Difference) {
	for _, d := range r.Differences {
		if d.Rank != differ.RankNames {
			list = append(list, d)
		}
	}
	return list
}

// few looks with an account that may only connect.
func few(t *testing.T, n *sandbox.Node, all *differ.Description) {
	t.Helper()
	do(t, n, "CREATE USER few@localhost IDENTIFIED BY 'x9-Few'", "GRANT SELECT ON shop.orders TO few@localhost")
	d := take(t, "few:x9-Few@unix("+n.Socket+")/", "few")
	r := differ.Compare(all, d, true)
	if slices.Contains(r.Compared, differ.AreaAccounts) {
		t.Errorf("accounts that cannot be read: got compared %v, want them not among these", r.Compared)
	}
	for _, area := range []string{differ.AreaAccounts, differ.AreaSchemas} {
		if !slices.ContainsFunc(r.NotCompared, func(o differ.NotCompared) bool { return o.Server == "few" && o.Area == area && o.Why != "" }) {
			t.Errorf("%s: got not compared %+v, want it told", area, r.NotCompared)
		}
	}
	for _, x := range r.Differences {
		if x.Area == differ.AreaSchemas && x.B == "" && len(x.What) == 0 {
			t.Errorf("what the account does not see is told as missing: %+v", x)
		}
	}
}

// file: a saved description is the same as the server, but for passwords, of which it holds nothing.
func file(t *testing.T, d *differ.Description) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.json")
	if err := describe.Save(path, d); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, a := range d.Accounts {
		quoted, _ := json.Marshal(a.Secret)
		if len(a.Secret) > 10 && strings.Contains(string(text), strings.Trim(string(quoted), `"`)) {
			t.Errorf("the file holds the hash of %s", name)
		}
	}
	if strings.Contains(string(text), "IDENTIFIED") {
		t.Error("the file says how accounts are identified")
	}
	back, err := describe.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	r := differ.Compare(back, d, true)
	if len(r.Differences) > 0 || !slices.ContainsFunc(r.NotCompared, func(o differ.NotCompared) bool { return o.What == "passwords" }) {
		t.Errorf("file and server: got %+v, not compared %+v; want no difference, and passwords not compared", r.Differences, r.NotCompared)
	}
}

// TestFlavoursApart: MariaDB and MySQL differ in what matters, and neither side's defaults are told as settings.
func TestFlavoursApart(t *testing.T) {
	r := differ.Compare(take(t, sandboxtest.Lend(t, "mariadb").DSN, "a"), take(t, sandboxtest.Lend(t, "mysql-9.7").DSN, "b"), true)
	if len(r.Differences) == 0 || r.Differences[0].Name != "flavour" || r.Counts[differ.RankVersion] < 50 {
		t.Errorf("got %+v first, counts %v; want the flavour, and many defaults", r.Differences[:1], r.Counts)
	}
}
