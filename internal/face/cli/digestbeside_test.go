package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/explain/digest"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// besideLogs are the files of a pattern, and which of them are no binary logs.
func besideLogs(t *testing.T, pattern string) (files, beside []string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		st, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		// The index of the log that is being written may be empty still.
		if st.Size() > 0 && (strings.HasSuffix(f, ".idx") || strings.HasSuffix(f, ".index") || strings.HasSuffix(f, ".state")) {
			beside = append(beside, f)
		}
	}
	return files, beside
}

// TestDigestBesideLogs: what a server keeps next to its binary logs matches the same pattern of names; it is skipped
// and named, and what of it is no log is refused if given alone.
func TestDigestBesideLogs(t *testing.T) {
	for _, spec := range []string{"mariadb-11.8", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			node := sandboxtest.Up(t, spec)
			for _, sql := range []string{"CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)", "INSERT INTO shop.t VALUES (1)", "FLUSH BINARY LOGS", "INSERT INTO shop.t VALUES (2)", "FLUSH BINARY LOGS"} {
				if _, err := node.Query(t.Context(), sql); err != nil {
					t.Fatal(err)
				}
			}
			logs, err := node.Query(t.Context(), "SHOW BINARY LOGS")
			if err != nil {
				t.Fatal(err)
			}
			base, _, _ := strings.Cut(*logs[0].Rows[0][0], ".")
			var files, beside []string
			await.Until(t, func() bool { // MariaDB fills the index of a log some time after it began the next one
				files, beside = besideLogs(t, filepath.Join(node.Datadir, base+".*"))
				mariadb := spec != "mysql-9.7"
				return len(files) >= 4 && mariadb == strings.Contains(strings.Join(beside, " "), ".idx")
			}, "logs, and what is written beside them, of MariaDB an index: %v", &files)
			for _, more := range [][]string{nil, {"--format", "binlog"}} {
				code, out, errs := call(t, append(append([]string{"digest", "--output", "json"}, more...), files...)...)
				if code != 0 || errs != "" {
					t.Fatalf("exit %d: got %s; want code 0, errs \"\"", code, errs)
				}
				var p struct {
					Sources []digest.SourceInfo `json:"sources"`
				}
				if err := json.Unmarshal([]byte(out), &p); err != nil {
					t.Fatal(err)
				}
				passed, events := 0, int64(0)
				for _, s := range p.Sources {
					if events += s.Events; s.PassedOver != "" {
						passed++
					}
				}
				if passed < len(beside) || events < 4 {
					t.Errorf("%d of %v were passed over, %d events: %.300s; want passed at least %d, events at least 4", passed, beside, events, out, len(beside))
				}
			}
			code, out, _ := call(t, append([]string{"digest"}, files...)...)
			flat := strings.Join(strings.Fields(out), "")
			for _, f := range beside {
				if !strings.Contains(flat, strings.Join(strings.Fields(f), "")) {
					t.Errorf("exit %d: %s is passed over silently, want strings.Join(strings.Fields(f), \"\") in it:\n%s", code, f, out)
				}
			}
			if _, _, errs := call(t, append([]string{"digest", "--output", "csv"}, files...)...); !strings.Contains(errs, beside[0]) {
				t.Errorf("in CSV %s is passed over silently: %s, want beside[0] in it", beside[0], errs)
			}
			for _, f := range beside {
				if code, _, errs := call(t, "digest", f); code != 1 || !strings.Contains(errs, "is not a log: it is ") {
					t.Errorf("%s alone: exit %d, %s; want code 1, \"is not a log: it is \" in it", f, code, errs)
				}
			}
		})
	}
}

// TestDigestListOfLogs: a list of logs that is longer than what is looked at, or ends without a line end, is known still; a log is none.
func TestDigestListOfLogs(t *testing.T) {
	list := filepath.Join(t.TempDir(), "binlog.index")
	if err := os.WriteFile(list, []byte(strings.Repeat("./binlog.000001\n", 5000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := call(t, "digest", list); code != 1 || !strings.Contains(errs, "list of a server's logs") {
		t.Errorf("exit %d, %s; want code 1, \"list of a server's logs\" in it", code, errs)
	}
}
