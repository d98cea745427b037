package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestRestoreTold: a restore tells whom it leaves without the rows that they refer to, which views do not work and which did not before, and
// what has a name of another kind; with exit codes that can be trusted.
func TestRestoreTold(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	node, place := sandboxtest.Up(t, "mariadb"), filepath.Join(t.TempDir(), "bk")
	sql := func(statements string) {
		t.Helper()
		if _, err := node.Query(t.Context(), statements); err != nil {
			t.Fatal(err)
		}
	}
	sql(`CREATE DATABASE shop; USE shop; CREATE TABLE customers (id INT PRIMARY KEY); INSERT INTO customers VALUES (1); CREATE TABLE away (id INT);
		CREATE VIEW gone AS SELECT id FROM away; DROP TABLE away; CREATE USER app@localhost; GRANT SELECT ON shop.* TO app@localhost;
		CREATE DEFINER = app@localhost VIEW names AS SELECT id FROM customers`)
	if code, out, errs := call(t, "backup", "--dsn", node.DSN, "--to", place); code != fault.OK || !strings.Contains(out+errs, "Views that do not work on the server") {
		t.Fatalf("%d: got %s%s; want code fault.OK, \"Views that do not work on the server\" in out + errs", code, out, errs)
	}
	sql(`INSERT INTO shop.customers VALUES (2); DROP VIEW shop.names; CREATE TABLE shop.names (id INT); CREATE DATABASE crm; USE crm;
		CREATE TABLE visits (id INT PRIMARY KEY, who INT, CONSTRAINT of_whom FOREIGN KEY (who) REFERENCES shop.customers (id)); INSERT INTO visits VALUES (1, 1), (2, 2)`)
	base := []string{"restore", "--from", place, "--into", node.DSN, "--schema", "shop"}
	tells := func(want int, words []string, args ...string) {
		t.Helper()
		code, out, errs := call(t, append(base, args...)...)
		for _, w := range words {
			if !strings.Contains(out+errs, w) {
				t.Errorf("%q: nothing of %q in %s%s", args, w, out, errs)
			}
		}
		if code != want {
			t.Errorf("%q: exit %d, not %d: %s%s", args, code, want, out, errs)
		}
	}
	const others = "table `crm`.`visits` is not restored and refers to `shop`.`customers`"
	tells(fault.OK, []string{others, "drops table `shop`.`names`, where the backup has a view", "drops table `shop`.`customers`", "broken when the backup was taken, and created only if what they need exists here: 1 view, `shop`.`gone`", "Nothing was changed."}, "--overwrite", "--dry-run")
	tells(fault.Failed, []string{"Orphans: 1 row of `crm`.`visits` refers to rows that `shop`.`customers` does not have (`of_whom`)", "SELECT c.* FROM `crm`.`visits` c WHERE", "Note: view `shop`.`gone` is not created: it was broken when the backup was taken", "; rows read back: all as in the backup", "restore their tables from the same backup"}, "--overwrite")
	sql("DELETE FROM crm.visits WHERE id = 2")
	tells(fault.OK, []string{others, "Note: view `shop`.`gone` is not created"}, "--overwrite")
	sql("DROP USER app@localhost")
	tells(fault.Failed, []string{"Broken: view `shop`.`names` was restored but does not work: ", "CREATE ALGORITHM", "--definer names another one"}, "--overwrite")
	tells(fault.OK, nil, "--overwrite", "--definer", "CURRENT_USER")
	tells(fault.Usage, []string{"it has 65 characters, and a name has at most 64"}, "--rename", "shop="+strings.Repeat("x", 65))
	tells(fault.Usage, []string{"it has no schema `shpo` (--rename)", "did you mean shop?", "nothing was changed"}, "--rename", "shpo=shop2", "--overwrite")
}
