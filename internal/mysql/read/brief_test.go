package read_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestBriefLook: while no session runs a statement, servers that are asked for their process list make no table of it; a session that
// begins to run one is found at the very next reading, with everything known about it, and from then on all is asked for together.
func TestBriefLook(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		spec     string
		settings []string
	}{{"mariadb", nil}, {"mariadb-11.8", []string{"performance_schema=ON"}}, {"mysql-5.7", []string{"performance_schema=OFF"}}} {
		t.Run(c.spec, func(t *testing.T) {
			t.Parallel()
			n := sandboxtest.Up(t, c.spec, append(c.settings, "general_log=ON", "log_output=TABLE")...)
			db, err := n.DB()
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			conn := sandboxtest.Connect(t, n)
			r, err := read.NewActivityReader(t.Context(), conn)
			if err != nil {
				t.Fatal(err)
			}
			read := func(want int) []read.Session {
				t.Helper()
				list, more, err := r.Read(t.Context())
				if err != nil || more || len(list) != want {
					t.Fatalf("got %d sessions, more %v, %v: %+v; want more false, len(list) %d", len(list), more, err, list, want)
				}
				return list
			}
			tables := func() (n int) {
				t.Helper()
				const question = "SELECT COUNT(*) FROM mysql.general_log WHERE argument LIKE 'SELECT /* risso: what sessions run%' AND command_type = 'Query'"
				if err := db.QueryRowContext(t.Context(), question).Scan(&n); err != nil {
					t.Fatal(err)
				}
				return n
			}
			// settle waits until so many sessions run something: a session that has had its answer still counts as busy for a moment.
			settle := func(running int) {
				t.Helper()
				n := -1
				await.Until(t, func() bool {
					if err := conn.Query(t.Context(), "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE COMMAND = 'Query' AND ID <> CONNECTION_ID()", func(row []driver.Value) (err error) {
						n, err = strconv.Atoi(mysql.Text(row[0]))
						return err
					}); err != nil {
						t.Fatal(err)
					}
					return n == running
				}, "%d sessions that run something", running)
			}
			before := tables()
			settle(0)
			for range 40 {
				read(0)
			}
			if n := tables() - before; n != 0 {
				t.Errorf("an idle server made %d tables of its process list, want 0", n)
			}
			ctx, end := context.WithCancel(t.Context())
			defer end()
			done := make(chan struct{})
			statement := "SELECT SLEEP(600) /* " + strings.Repeat("é", 60) + " */"
			go func() {
				defer close(done)
				_, _ = db.ExecContext(ctx, statement) // until it is killed
			}()
			awaitStatement(t, db, statement)
			settle(1)
			s := read(1)[0]
			if s.Text != statement || s.Wait != "other" || s.User != "root" || s.Host != "localhost" || c.spec != "mysql-5.7" && s.Run == 0 {
				t.Errorf("found %+v", s)
			}
			before = tables()
			settle(1)
			for range 30 {
				read(1)
			}
			if n := tables() - before; n != 30 {
				t.Errorf("got %d of 30 readings asked for all at once, want 30", n)
			}
			if _, err := db.ExecContext(t.Context(), fmt.Sprintf("KILL QUERY %d", s.ID)); err != nil {
				t.Fatal(err)
			}
			<-done
			before = tables()
			settle(0)
			for range 40 {
				read(0)
			}
			if n := tables() - before; n != 30 {
				t.Errorf("got %d of 40 readings asked for all when nothing ran any more, want 30", n)
			}
		})
	}
}

// awaitStatement waits until a session runs a statement.
func awaitStatement(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	await.Until(t, func() bool {
		var n int
		if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO = '"+statement+"' AND STATE = 'User sleep'").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n > 0
	}, "%s to run", statement)
}
