package read_test

import (
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestActivityOfUncountedLocks: who waits for InnoDB's lock of AUTO_INCREMENT, which InnoDB does not count among its waits, and for a
// user lock, is found with the session that has it, and in the class of its wait.
func TestActivityOfUncountedLocks(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{"mariadb", "mariadb-11.8", "mysql-9.7", "mysql-8.0", "mysql-5.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			n := sandboxtest.Up(t, spec, "performance_schema=ON", "performance_schema_instrument='wait/lock/metadata/sql/mdl=ON'", "innodb_autoinc_lock_mode=1", "innodb_lock_wait_timeout=600")
			db, err := n.DB()
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			c := sandboxtest.Connect(t, n)
			r, err := read.NewActivityReader(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			found := func(what string, is func(read.Session) bool) {
				t.Helper()
				var list []read.Session
				for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
					var err error
					if list, _, err = r.Read(t.Context()); err != nil {
						t.Fatal(err)
					}
					for _, s := range list {
						if is(s) {
							return
						}
					}
				}
				t.Errorf("not found: %s; sessions: %+v", what, list)
			}
			numbers, numbersID := session(t, db)
			job, jobID := session(t, db, "CREATE DATABASE d", "CREATE TABLE d.ai (id INT AUTO_INCREMENT PRIMARY KEY, a INT) ENGINE=InnoDB", "CREATE TABLE d.t (id INT PRIMARY KEY) ENGINE=InnoDB", "INSERT INTO d.t VALUES (1), (2)", "DO GET_LOCK('job', 1)")
			inserter, inserterID := session(t, db)
			locker, lockerID := session(t, db)
			done := make(chan struct{}, 3)
			background := func(c *sql.Conn, statement string) {
				go func() {
					_, _ = c.ExecContext(t.Context(), statement) // until it is killed
					done <- struct{}{}
				}()
			}
			background(numbers, "INSERT INTO d.ai (a) SELECT IF(id = 1, 0, SLEEP(600)) FROM d.t ORDER BY id")
			found("the statement that holds AUTO_INCREMENT", func(s read.Session) bool { return s.ID == numbersID && s.State == "User sleep" })
			background(inserter, "INSERT INTO d.ai (a) VALUES (1)")
			background(locker, "SELECT GET_LOCK('job', 600)")
			found("the wait for AUTO_INCREMENT", func(s read.Session) bool {
				return s.ID == inserterID && s.Wait == "row_lock" && s.BlockerID == numbersID
			})
			found("the wait for the user lock", func(s read.Session) bool {
				known := spec != "mysql-8.0" // 8.0.15 finds no pair of user locks if both have no schema; IS_USED_LOCK shows them
				return s.ID == lockerID && s.Wait == "table_lock" && (s.BlockerID == jobID || !known && s.BlockerID == 0)
			})
			for _, statement := range []string{fmt.Sprintf("KILL QUERY %d", numbersID), "DO RELEASE_LOCK('job')"} {
				if _, err := job.ExecContext(t.Context(), statement); err != nil {
					t.Fatalf("%s: %v", statement, err)
				}
			}
			for range 3 {
				<-done
			}
		})
	}
}
