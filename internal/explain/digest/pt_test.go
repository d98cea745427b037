package digest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// longLog has statements of more bytes than are kept of a sample.
func longLog() []byte {
	var in, rows, text strings.Builder
	for i := range 9000 {
		fmt.Fprintf(&in, ", %d", i)
		fmt.Fprintf(&rows, ", (%d, 'x')", i)
	}
	text.WriteString(strings.Repeat("it is long; ", 3000))
	var b bytes.Buffer
	for n, q := range []string{
		"SELECT a FROM t WHERE id IN (0" + in.String() + ") AND b = 7",
		"INSERT INTO t (a, b) VALUES (0, 'x')" + rows.String(),
		"INSERT INTO t (a, b) VALUES (0, 'x')" + rows.String() + " ON DUPLICATE KEY UPDATE b = 5",
		"UPDATE t SET doc = '" + text.String() + "' WHERE id = 5",
		"SELECT " + strings.Repeat("some_column, ", 3000) + "b FROM t",
		"SELECT 1",
	} {
		fmt.Fprintf(&b, "# Time: 2026-01-02T03:04:%02d.000000Z\n# User@Host: a[a] @ h []  Id: 7\n# Query_time: 0.%d  Lock_time: 0.000000 Rows_sent: 1  Rows_examined: 1\nSET timestamp=1767323040;\n%s;\n", n, n+1, q)
	}
	return b.Bytes()
}

// TestPtIDOfLongStatements: a class is called in pt-query-digest as that program calls it, however long its statement and however
// little of it is kept.
func TestPtIDOfLongStatements(t *testing.T) {
	path := filepath.Join(t.TempDir(), "long.log")
	if err := os.WriteFile(path, longLog(), 0o600); err != nil {
		t.Fatal(err)
	}
	theirs := ptDigest(t, path)
	for _, o := range []Options{{}, {SampleBytes: 10}, {SampleBytes: -1}, {Samples: 3, Workers: 3, blockSize: 4096}} {
		p := digest(t, o, longLog())
		names := map[string]bool{}
		for _, c := range p.Classes {
			for _, id := range append(c.PtIDs, c.PtID) {
				if id == "" {
					continue
				}
				names[id] = true
				if _, ok := theirs[id]; !ok {
					t.Errorf("keeping %d bytes: %s of %.60q is none of pt-query-digest's", o.SampleBytes, id, c.Fingerprint)
				}
			}
		}
		if len(names) != len(theirs) {
			t.Errorf("keeping %d bytes: %d names, pt-query-digest has %d", o.SampleBytes, len(names), len(theirs))
		}
	}
}
