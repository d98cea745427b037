package read_test

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"testing"

	driver "github.com/go-sql-driver/mysql"

	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestBackupLockPairs tries which statements MariaDB lets through during each stage of a backup and FLUSH TABLES WITH READ LOCK, and
// compares the table of such pairs with it.
func TestBackupLockPairs(t *testing.T) {
	held := []struct{ mode, prepare, statement string }{
		{"BACKUP_START", "", "BACKUP STAGE START"},
		{"BACKUP_FLUSH", "BACKUP STAGE START", "BACKUP STAGE FLUSH"},
		{"BACKUP_WAIT_DDL", "BACKUP STAGE START", "BACKUP STAGE BLOCK_DDL"},
		{"BACKUP_WAIT_COMMIT", "BACKUP STAGE START", "BACKUP STAGE BLOCK_COMMIT"},
		{"BACKUP_FTWRL2", "", "FLUSH TABLES WITH READ LOCK"},
	}
	wanted := []struct{ mode, statement string }{
		{"BACKUP_TRANS_DML", "UPDATE d.i SET b = b + 1"}, {"BACKUP_DML", "UPDATE d.m SET b = b + 1"}, {"BACKUP_DDL", "CREATE OR REPLACE TABLE d.x (a INT) ENGINE=InnoDB"},
		{"BACKUP_DDL", "ALTER TABLE d.j COMMENT 'x'"}, {"BACKUP_START", "BACKUP STAGE START"}, {"BACKUP_FTWRL1", "FLUSH TABLES WITH READ LOCK"}, {"", "SELECT COUNT(*) FROM d.i"},
		{"BACKUP_COMMIT", "COMMIT"},
	}
	for _, spec := range []string{"mariadb", "mariadb-11.8"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			n := sandboxtest.Up(t, spec, "performance_schema=ON", "performance_schema_instrument='wait/lock/metadata/sql/mdl=ON'")
			db, err := n.DB()
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			ctx := t.Context()
			session := func(statements ...string) *sql.Conn {
				t.Helper()
				c, err := db.Conn(ctx)
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range statements {
					if _, err := c.ExecContext(ctx, s); err != nil {
						t.Fatalf("%s: %v", s, err)
					}
				}
				return c
			}
			end := func(c *sql.Conn) { // with all that it holds, which the server lets go only after the client has left
				t.Helper()
				var id int64
				if err := c.QueryRowContext(ctx, "SELECT CONNECTION_ID()").Scan(&id); err != nil {
					t.Fatal(err)
				}
				_ = c.Raw(func(any) error { return sqldriver.ErrBadConn })
				for there := 1; there > 0; {
					if err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = ?", id).Scan(&there); err != nil {
						t.Fatal(err)
					}
				}
			}
			end(session("CREATE DATABASE d", "CREATE TABLE d.i (a INT PRIMARY KEY, b INT) ENGINE=InnoDB", "CREATE TABLE d.j (a INT) ENGINE=InnoDB", "CREATE TABLE d.m (a INT, b INT) ENGINE=MyISAM", "INSERT INTO d.i VALUES (1, 1), (2, 1)", "INSERT INTO d.m VALUES (1, 1)"))
			for _, h := range held {
				for _, w := range wanted {
					// lock_wait_timeout=0 is not to wait at all.
					waiter := session("SET lock_wait_timeout = 0")
					if w.mode == "BACKUP_COMMIT" || w.mode == "BACKUP_TRANS_DML" { // else it commits itself
						if _, err := waiter.ExecContext(ctx, "BEGIN"); err != nil {
							t.Fatal(err)
						}
					}
					if w.mode == "BACKUP_COMMIT" {
						if _, err := waiter.ExecContext(ctx, "UPDATE d.i SET b = b + 1"); err != nil {
							t.Fatal(err)
						}
					}
					holder := session()
					if h.mode == "BACKUP_FTWRL2" && w.mode == "BACKUP_COMMIT" { // it waits for the transaction itself
						end(holder)
						end(waiter)
						continue
					}
					for _, s := range []string{h.prepare, h.statement} {
						if s == "" {
							continue
						}
						if _, err := holder.ExecContext(ctx, s); err != nil {
							t.Fatalf("%s: %v", s, err)
						}
					}
					has := backupMode(t, ctx, db, holder)
					_, err := waiter.ExecContext(ctx, w.statement)
					var e *driver.MySQLError
					waits := errors.As(err, &e) && e.Number == errno.LockWaitTimeout
					if err != nil && !waits {
						t.Errorf("%s beside %s: %v", w.statement, has, err)
					}
					if w.mode == "" { // it takes no backup lock, and waits for none
						if waits {
							t.Errorf("%s waits beside %s, want waits false", w.statement, h.statement)
						}
					} else if says := read.LocksCollide("BACKUP", w.mode, h.mode, false); says != waits || waits && !read.LocksCollide("BACKUP", w.mode, has, false) {
						t.Errorf("%s (%s) beside %s (%s, shown as %s): it waits: %v; the table says: %v", w.statement, w.mode, h.statement, h.mode, has, waits, says)
					}
					end(waiter)
					end(holder)
				}
			}
		})
	}
}

// backupMode is the backup lock that a session has.
func backupMode(t *testing.T, ctx context.Context, db *sql.DB, c *sql.Conn) (mode string) {
	t.Helper()
	var id int64
	if err := c.QueryRowContext(ctx, "SELECT CONNECTION_ID()").Scan(&id); err != nil {
		t.Fatal(err)
	}
	if err := db.QueryRowContext(ctx, "SELECT l.LOCK_TYPE FROM performance_schema.metadata_locks l JOIN performance_schema.threads t ON t.THREAD_ID = l.OWNER_THREAD_ID WHERE l.OBJECT_TYPE = 'BACKUP' AND l.LOCK_STATUS = 'GRANTED' AND t.PROCESSLIST_ID = ?", id).Scan(&mode); err != nil {
		t.Fatal(err)
	}
	return mode
}
