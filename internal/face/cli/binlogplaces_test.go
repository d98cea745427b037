package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/store/blob/blobtest"
)

// TestBinlogSearchPlaces mirrors encrypted logs into S3 and by SFTP, next to encrypted backups, of a server that logs no statements'
// texts; there it finds the DELETE without WHERE, and reads no log whose index says that it has nothing.
func TestBinlogSearchPlaces(t *testing.T) {
	n := sandboxtest.Up(t, "mariadb", "binlog_annotate_row_events=OFF")
	who, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	identity := filepath.Join(t.TempDir(), "identity")
	if err := os.WriteFile(identity, []byte(who.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sql := func(statements string) {
		t.Helper()
		if _, err := n.Query(t.Context(), statements); err != nil {
			t.Fatal(err)
		}
	}
	sftp := blobtest.SFTP(t)
	places := []string{blobtest.S3(t).Place(t, "risso", "db1"), sftp.Place(sftp.Addr, "db1")}
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	sql("CREATE TABLE test.orders (id INT PRIMARY KEY, note VARCHAR(20)); INSERT INTO test.orders SELECT seq, 'a' FROM test.seq_1_to_30; RESET MASTER; CREATE TABLE test.other (id INT)")
	for _, place := range places {
		mustRun(t, "backup", "--dsn", n.DSN, "--to", place, "--encrypt-to", who.Recipient().String())
	}
	sql("DELETE FROM test.orders WHERE id > 25; FLUSH BINARY LOGS; DELETE FROM test.orders WHERE id >= 0; FLUSH BINARY LOGS; INSERT INTO test.orders VALUES (1, 'b'); FLUSH BINARY LOGS")
	for _, place := range places {
		mustRun(t, "binlog", "follow", "--once", "--dsn", n.DSN, "--to", place)
		search := func(args ...string) (res binlog.SearchResult) {
			t.Helper()
			out := mustRun(t, append([]string{"binlog", "search", "--from", place, "--identity", identity, "--table", "test.*", "--rows-over", "10", "--kind", "delete", "-o", "json"}, args...)...)
			if err := json.Unmarshal([]byte(out), &res); err != nil {
				t.Fatal(err)
			}
			return res
		}
		res := search()
		if len(res.Found) != 1 || res.Found[0].Whole != "DELETE of all 25 rows of test.orders" || res.Found[0].Sure != binlog.Certain || !strings.HasSuffix(res.Found[0].Changes[0].Share.From, "and the logs since") {
			t.Errorf("%s: got %+v; want len(Found) 1, Found[0].Whole \"DELETE of all 25 rows of test.orders\", Found[0].Sure binlog.Certain, \"and the logs since\" at the end of Found[0].Changes[0].Share.From",
				place, res)
		}
		if res := search("--gtid", res.Found[0].GTID.String()); len(res.Found) != 1 {
			t.Errorf("by its GTID: got %+v, want length 1", res)
		}
		if res := search("--until", "2001-01-01"); len(res.Found) != 0 || res.Skipped < 3 || res.Bytes > 1000 {
			t.Errorf("before any log: got %+v; want no res.Found, Skipped at least 3, Bytes at most 1000", res)
		}
	}
}
