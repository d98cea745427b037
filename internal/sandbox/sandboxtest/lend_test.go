package sandboxtest

import (
	"os"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/sandbox"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

// TestLend: a borrowed server is as it was made, whatever the test before did to it.
func TestLend(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			ask := func(t *testing.T, n *sandbox.Node, statements string) string {
				t.Helper()
				results, err := n.Query(t.Context(), statements)
				if err != nil {
					t.Fatal(err)
				}
				var out []string
				for _, row := range results[len(results)-1].Rows {
					out = append(out, *row[0])
				}
				return strings.Join(out, "\n")
			}
			const all = `SELECT CONCAT('schema ', SCHEMA_NAME) AS is_there FROM information_schema.SCHEMATA UNION ALL SELECT CONCAT(User, '@', Host) FROM mysql.user
				UNION ALL SELECT CONCAT_WS(' ', @@GLOBAL.max_connections, @@GLOBAL.sql_mode, @@GLOBAL.event_scheduler)
				UNION ALL SELECT CONCAT(NAME, ENABLED) FROM performance_schema.setup_consumers
				UNION ALL SELECT CONCAT(NAME, ENABLED, TIMED) FROM performance_schema.setup_instruments WHERE NAME LIKE 'statement/sql/s%'
				UNION ALL SELECT DIGEST_TEXT FROM performance_schema.events_statements_summary_by_digest WHERE DIGEST_TEXT LIKE '%remember_me%' ORDER BY 1`
			var port int
			var before string
			t.Run("a mess", func(t *testing.T) {
				n := Lend(t, spec, "performance_schema=ON")
				port, before = n.Port, ask(t, n, all)
				ask(t, n, "CREATE DATABASE `odd ``name`; CREATE TABLE `odd ``name`.t (remember_me INT); CREATE DATABASE other; CREATE TABLE other.k (id INT PRIMARY KEY); DROP DATABASE test;"+
					"CREATE USER `o'd d`@localhost IDENTIFIED BY 'x'; CREATE ROLE reader; GRANT SELECT ON other.* TO reader; GRANT reader TO `o'd d`@localhost;"+
					"UPDATE performance_schema.setup_consumers SET ENABLED = 'NO' WHERE NAME = 'statements_digest'; UPDATE performance_schema.setup_instruments SET ENABLED = 'NO' WHERE NAME = 'statement/sql/select';"+
					"SET GLOBAL max_connections = 77, GLOBAL sql_mode = 'ANSI_QUOTES', GLOBAL event_scheduler = OFF")
			})
			n := Lend(t, spec, "performance_schema=ON")
			if n.Port != port {
				t.Fatalf("it is another server: got %v, want %v", n.Port, port)
			}
			if after := ask(t, n, all); after != before {
				t.Errorf("there was\n%s\nthere is\n%s", before, after)
			}
			if other := Lend(t, spec, "performance_schema=ON"); other.Port == port {
				t.Error("it is lent twice at a time")
			}
		})
	}
}

// TestPause: a server that a test stops goes on when the test ends, however that does.
func TestPause(t *testing.T) {
	n := Lend(t, "mariadb", "performance_schema=ON")
	t.Run("a test that forgets it", func(t *testing.T) {
		Pause(t, n)
		t.SkipNow()
	})
	if _, err := n.Query(t.Context(), "DO 1"); err != nil {
		t.Error(err)
	}
}
