package cli

import (
	"cmp"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/explain/digest/report"
)

// TestDigestQuiet: a log in which nothing happened, as after a rotation, is no failure, and is reported in every form; what is no log,
// or misses what it announces, fails nevertheless.
func TestDigestQuiet(t *testing.T) {
	t.Parallel()
	const header = "/usr/sbin/mysqld, Version: 8.4.3 (MySQL Community Server - GPL). started with:\nTcp port: 3306  Unix socket: /tmp/mysql.sock\n"
	const event = "# Time: 2026-11-22T01:00:00.000000Z\n# User@Host: a[a] @ h []  Id: 1\n# Query_time: 1.0  Lock_time: 0.0 Rows_sent: 1  Rows_examined: 1\nSELECT 1;\n"
	dir := t.TempDir()
	for name, c := range map[string]struct {
		text string
		code int
		want string // in the report, or after the error
	}{
		"empty.log":   {"", 0, "empty.log is empty"},
		"echo.log":    {"\n", 0, "echo.log has only whitespace"},
		"blanks.log":  {strings.Repeat(" \r\n\t", 100), 0, "blanks.log has only whitespace"},
		"header.log":  {header + "Time                 Id Command    Argument\n", 0, "header.log has only the lines that a server writes when it opens a log"},
		"twice.log":   {strings.Repeat(header+"Time                 Id Command    Argument\n", 2), 0, "twice.log has only the lines that a server writes when it opens a log"},
		"one.log":     {event, 0, ""},
		"text.log":    {"hello\n", 1, "no statement of a log in 6 bytes"},
		"long.log":    {strings.Repeat("\n", 20<<10) + "hello\n", 1, "no statement of a log"},
		"zeros.log":   {strings.Repeat("\x00", 100), 1, "no statement of a log"},
		"cut.log":     {header + "# Time: 2026-11-22T01:00:00.000000Z\n# Query_time: 1.0  Lock_time: 0.0", 1, "1 events cut off by the end of the file"},
		"headed.log":  {header + "lost\n", 1, "no statement of a log"},
		"packed.gz":   {"", 0, "packed.gz is empty"},
		"binlog.1.gz": {header, 0, "binlog.1.gz has only the lines that a server writes when it opens a log"},
	} {
		path := filepath.Join(dir, name)
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".gz") {
			z := gzip.NewWriter(f)
			z.Write([]byte(c.text))
			z.Close()
		} else if _, err := f.WriteString(c.text); err != nil {
			t.Fatal(err)
		}
		f.Close()
		for _, more := range [][]string{{"-o", "text"}, {"-o", "json"}, {"-o", "csv"}, {"-o", "markdown"}, {"-o", "html"}, {"--plan-parallel"}} {
			code, out, errs := call(t, append([]string{"digest", path}, more...)...)
			told := strings.Join(strings.Fields(strings.NewReplacer(`\`, "", "<wbr>", "").Replace(out+errs)), " ") // text is wrapped
			asJSON := more[0] == "-o" && more[1] == "json" && c.code == 0
			if code != c.code || !asJSON && !strings.Contains(told, c.want) || c.want == "" && strings.Contains(told, "No statements") {
				t.Errorf("%s %v: exit %d\n%s\n%s", name, more, code, out, errs)
			}
			if !asJSON {
				continue
			}
			var p report.ProfileJSON
			if err := json.Unmarshal([]byte(out), &p); err != nil || len(p.Sources) != 1 || strings.TrimSpace(name+" "+p.Sources[0].Quiet) != cmp.Or(c.want, name) {
				t.Errorf("%s: got %v, %+v; want len(p.Sources) 1, strings.TrimSpace(name + \" \" + p.Sources[0].Quiet) cmp.Or(c.want, name)",
					name, err, p.Sources)
			}
		}
	}
	// One of several logs may be quiet.
	if code, out, errs := call(t, "digest", filepath.Join(dir, "one.log"), filepath.Join(dir, "empty.log")); code != 0 || !strings.Contains(strings.Join(strings.Fields(out), " "), "empty.log is empty") {
		t.Errorf("exit %d; want code 0, \"empty.log is empty\" in strings.Join(strings.Fields(out), \" \")\n%s\n%s", code, out, errs)
	}
}
