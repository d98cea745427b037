package binlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/binlogevent"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// marked is a text in a log in whose place a test puts another one, as long as it.
var marked = "CREATE TABLE test.marked (a INT) COMMENT='" + strings.Repeat("m", 120) + "'"

// forgeText writes a log with another text of a statement, and its checksum. in finds the bytes, which with has, filled up with blanks.
func forgeText(t *testing.T, log []byte, in, with string) string {
	t.Helper()
	if len(with) > len(in) {
		t.Fatalf("%q is longer than %q, want at most %v", with, in, len(in))
	}
	log = bytes.Clone(log)
	found := false
	for at := len(binlogevent.Magic); at < len(log); {
		h := binlogevent.ParseHeader(log[at:])
		e := log[at : at+int(h.Length)]
		if i := bytes.Index(e, []byte(in)); i >= 0 && h.Type == binlogevent.TypeQuery {
			copy(e[i:], with+strings.Repeat(" ", len(in)-len(with)))
			binary.LittleEndian.PutUint32(e[len(e)-4:], crc32.ChecksumIEEE(e[:len(e)-4]))
			found = true
		}
		at += len(e)
	}
	if !found {
		t.Fatalf("no %q in the log", in)
	}
	path := filepath.Join(t.TempDir(), "binlog.000002")
	if err := os.WriteFile(path, log, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestForgedLog: whatever is written into a log, each of its statements stays one statement for the server that it is applied to, and sets
// nothing there; the session's settings are no way in either. What no log has is an error.
func TestForgedLog(t *testing.T) {
	for _, spec := range flavours {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			src := sandboxtest.Up(t, spec, "sync_binlog=0", "innodb_flush_log_at_trx_commit=2", "binlog_format=STATEMENT", "binlog_checksum=CRC32", "character_set_server=utf8mb4")
			dst := sandboxtest.Lend(t, spec, fast...)
			sdb, ddb := openDB(t, src), openDB(t, dst)
			c := conn(t, sdb)
			run(t, c, "FLUSH BINARY LOGS", marked, "CREATE TABLE test.z (at TIMESTAMP NULL, v VARCHAR(50) CHARACTER SET utf8mb4)",
				"SET time_zone = '+11:11'", "INSERT INTO test.z (at) VALUES ('2017-07-14 13:51:00')", "SET time_zone = DEFAULT",
				// Each in the character set of its client: what Risso itself sends in between is in its own.
				"CREATE DATABASE `k\u00e4se`", "USE `k\u00e4se`", "CREATE TABLE brot (v VARCHAR(50) CHARACTER SET utf8mb4)",
				"SET character_set_client = sjis, collation_connection = sjis_japanese_ci, @v = 'x', @`a\u0081\u8d7e` = _utf8mb4 0xe8a1a8", "INSERT INTO brot VALUES ('\x95\x5c; x'), (@v), (@`v`)", "SET NAMES utf8mb4", "USE test", "INSERT INTO z (v) VALUES (CONCAT('y', @v))", "FLUSH BINARY LOGS")
			c.Close()
			log, err := os.ReadFile(filepath.Join(src.Datadir, "binlog.000002"))
			if err != nil {
				t.Fatal(err)
			}
			roll := func(path string) (RollResult, error) {
				files, err := FromPaths([]string{path})
				if err != nil {
					t.Fatal(err)
				}
				return Roll(t.Context(), RollOptions{Files: files, From: repo.Position{File: "binlog.000002", Offset: 4}, Into: targetOf(t, dst), Again: PendingAgain})
			}
			const state = "SELECT CONCAT_WS(' ', (SELECT GROUP_CONCAT(SCHEMA_NAME ORDER BY 1) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME NOT LIKE 'risso%'), (SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'test'), (SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = 'test'), @@GLOBAL.max_connections)"
			before := value(t, ddb, state)
			for _, f := range []struct{ in, with string }{
				{marked, "CREATE PROCEDURE test.p() SELECT 1; CREATE DATABASE pwned"},
				{marked, "CREATE PROCEDURE test.p() BEGIN SELECT 1; END; CREATE DATABASE pwned"},
				{marked, "CREATE TABLE test.p (a INT) COMMENT='\\'; CREATE DATABASE pwned; -- '' '; SET GLOBAL max_connections = 7"},
				{marked, "ALTER DATABASE test COMMENT='x'; CREATE DATABASE pwned"},
				{marked, "CREATE EVENT test.e ON SCHEDULE EVERY 1 DAY DO SELECT 1; CREATE DATABASE pwned"},
				{marked, "BEGIN; CREATE DATABASE pwned"},
				{marked, "DROP TABLE IF EXISTS test.p; CREATE DATABASE pwned"},
				{marked, "DROP TABLE IF EXISTS test.p /*! ; CREATE DATABASE pwned */"},
				{marked, "SET GLOBAL max_connections = 7"},
				{marked, "/*!50000 SET */ /* x */ GLOBAL max_connections = 7"},
				{marked, "SET STATEMENT max_statement_time = 1 FOR SET GLOBAL max_connections = 7"},
				{marked, "SET STATEMENT sql_mode = CONCAT('FOR INSERT', (SELECT 1)) FOR SET STATEMENT a = 1 FOR SHUTDOWN"},
				{marked, "SET PASSWORD = 'x'; CREATE DATABASE pwned"},
				{"+11:11", "\\'; #"},
				{"+11:11", "',x=7"},
			} {
				_, err := roll(forgeText(t, log, f.in, f.with))
				if err == nil && !strings.HasPrefix(f.with, "BEGIN") { // a BEGIN is never sent
					t.Errorf("%s: no error", f.with)
				}
				if (f.in != marked || strings.HasPrefix(f.with, "SET G") || strings.HasPrefix(f.with, "SET S")) && !errors.Is(err, ErrContents) {
					t.Errorf("%s: %v", f.with, err)
				}
				if f.in != marked { // what comes before it is right
					run(t, ddb, "DROP TABLE test.marked, test.z")
				}
				run(t, ddb, "DROP TABLE IF EXISTS test.marked, test.z", "DROP DATABASE IF EXISTS `k\u00e4se`", "DROP DATABASE IF EXISTS "+repo.RollSchema)
				if after := value(t, ddb, state); after != before {
					t.Fatalf("%s: the server was changed: %s, was %s", f.with, after, before)
				}
			}
			if _, err := roll(filepath.Join(src.Datadir, "binlog.000002")); err != nil {
				t.Fatal(err)
			}
			for _, q := range []string{"SELECT GROUP_CONCAT(HEX(v) ORDER BY v) FROM `k\u00e4se`.brot", "SELECT GROUP_CONCAT(CONCAT_WS('|', UNIX_TIMESTAMP(at), v) ORDER BY at) FROM test.z", "SELECT TABLE_COMMENT FROM information_schema.TABLES WHERE TABLE_NAME = 'marked'"} {
				if got, want := value(t, ddb, q), value(t, sdb, q); got != want || got == "" {
					t.Errorf("%s: %s, want %s", q, got, want)
				}
			}
			// The server itself takes a text for one statement.
			s, err := connectReplayer(t.Context(), targetOf(t, dst))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if err := s.Exec(t.Context(), "DO 1; CREATE DATABASE several"); err != nil {
				t.Error(err)
			}
			if err := s.ExecOne(t.Context(), "DO 1; CREATE DATABASE pwned"); mysql.ErrorNumber(err) != errno.ParseError {
				t.Errorf("two statements as one: got %v, want errno.ParseError", err)
			}
			if err := s.Exec(t.Context(), "DO 1; DROP DATABASE several"); err != nil {
				t.Error(err)
			}
			if err := s.ExecOne(t.Context(), "DO 1;"); err != nil {
				t.Errorf("one with its end: %v", err)
			}
			if after := value(t, ddb, "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME IN ('pwned', 'several')"); after != "0" {
				t.Errorf("a second statement ran: got %v, want \"0\"", after)
			}
		})
	}
}
