package retire

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestNeeded: what a hint of a view, a routine, a trigger, an event or a statement names, and what a foreign key of another schema or a unique
// rule needs, is refused; so is everything if the account does not see all of these.
func TestNeeded(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			node := sandboxtest.Lend(t, kind, "performance_schema=ON")
			c := sandboxtest.Connect(t, node)
			if kind != "mariadb" {
				if err := c.Exec(t.Context(), "SET SESSION restrict_fk_on_non_standard_key = OFF"); err != nil {
					t.Fatal(err)
				}
			}
			for _, s := range []string{"CREATE DATABASE d", "CREATE DATABASE e", "USE e",
				"CREATE TABLE d.t (id INT PRIMARY KEY, a INT, u INT, KEY plain (a), UNIQUE KEY uni (u), KEY kv (a, id), KEY ko (a, u), KEY kr (a, u, id), KEY kt (a, id, u), KEY ke (u, id), KEY ks (u, a), KEY kf (u, id, a), KEY ki (id, a), KEY kx (id, u)) ENGINE=InnoDB",
				"CREATE TABLE d.parent (id INT PRIMARY KEY, x INT, KEY par (x)) ENGINE=InnoDB",
				"CREATE TABLE e.child (id INT PRIMARY KEY, p INT, KEY kp (p), FOREIGN KEY (p) REFERENCES d.parent (x)) ENGINE=InnoDB",
				"CREATE VIEW e.v AS SELECT a FROM d.t USE INDEX (kv)", "CREATE VIEW e.i AS SELECT a FROM d.t IGNORE INDEX (ki)",
				"CREATE PROCEDURE e.p() SELECT a FROM d.t FORCE INDEX (kr) WHERE a = 1", "CREATE FUNCTION e.f() RETURNS INT READS SQL DATA RETURN (SELECT MAX(a) FROM d.t FORCE KEY (kf))",
				"CREATE TRIGGER e.tr BEFORE INSERT ON e.child FOR EACH ROW SET @x = (SELECT MAX(a) FROM d.t FORCE INDEX FOR JOIN (kt))",
				"CREATE EVENT e.ev ON SCHEDULE EVERY 1 MONTH DO SELECT MAX(a) FROM d.t USE KEY (ke)",
				"TRUNCATE performance_schema.events_statements_summary_by_digest", "SELECT a FROM d.t FORCE INDEX (ks) WHERE u = 1", "CREATE USER eye@'%' IDENTIFIED BY 'Eye-1-see'", "GRANT SELECT, PROCESS ON *.* TO eye@'%'"} {
				if err := c.Query(t.Context(), s, mysql.IgnoreRow); err != nil {
					t.Fatalf("%s: %v", s, err)
				}
			}
			r := &Retirer{Folder: Open(t.TempDir()), Server: Server{Name: "s", Target: sandboxtest.Target(t, node)}, Watch: time.Hour, Now: time.Now}
			refused := func(table, index, why string) {
				t.Helper()
				rec, err := r.Prepare(t.Context(), mysql.TableName{Schema: table[:1], Name: table[2:]}, index)
				if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), why) {
					t.Errorf("%s: got %+v, %v; want that it must stay: %s", index, rec, err, why)
				}
			}
			for index, why := range map[string]string{"uni": "unique", "kv": "view e.v", "ki": "view e.i", "kr": "procedure e.p", "kf": "function e.f", "kt": "trigger e.tr", "ke": "event e.ev", "ks": "statement "} {
				refused("d.t", index, why)
			}
			refused("d.parent", "par", "foreign key")
			refused("e.child", "kp", "foreign key")
			if _, err := r.Prepare(t.Context(), mysql.TableName{Schema: "d", Name: "t"}, "plain"); err != nil {
				t.Errorf("plain: %v", err)
			}
			if kind != "mariadb" { // optimizer hints, which MariaDB 10.11 has not
				if err := c.Query(t.Context(), "SELECT /*+ INDEX(t kx) */ a FROM d.t t WHERE id = 1", mysql.IgnoreRow); err != nil {
					t.Fatal(err)
				}
				refused("d.t", "kx", "statement ")
			}
			eye, err := mysql.ParseTarget("eye:Eye-1-see@unix(" + node.Socket + ")/")
			if err != nil {
				t.Fatal(err)
			}
			r.Server.Target = eye
			refused("d.t", "plain", "does not see all views, triggers and events")
		})
	}
}
