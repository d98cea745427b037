package scenario_test

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// explain runs the command with standard input and returns what it wrote and its exit code.
func explain(t *testing.T, stdin string, args ...string) (out, errors string, code int) {
	t.Helper()
	cmd := exec.Command(binary, append([]string{"explain"}, args...)...)
	var o, e buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = strings.NewReader(stdin), &o, &e, environment(tempDir(t))
	_ = cmd.Run() // the exit code is looked at
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

// TestExplain: the command from statement to picture, and its exit codes.
func TestExplain(t *testing.T) {
	t.Parallel()
	eachKind(t, kinds, func(t *testing.T, kind string) {
		n := single(t, kind)
		execSQL(t, n, `CREATE DATABASE d; USE d; CREATE TABLE t (id INT PRIMARY KEY, a INT NOT NULL, secret VARCHAR(40) NOT NULL);
INSERT INTO t VALUES (1,1,'x'),(2,2,'y'),(3,3,'z')`)
		dsn := "root@unix(" + n.Socket + ")/d"
		const sql = "SELECT a, COUNT(*) FROM t WHERE secret <> 'hunter2' GROUP BY a ORDER BY COUNT(*)"
		out, _, code := explain(t, "", sql, "--dsn", dsn)
		if code != 0 || !strings.Contains(out, "t ALL") || !strings.Contains(out, "hunter2") {
			t.Errorf("exit %d: got %s; want code 0, \"t ALL\" in it, \"hunter2\" in it", code, out)
		}
		if stdin, _, code := explain(t, sql, "-", "--dsn", "root@unix("+n.Socket+")/", "--database", "d"); code != 0 || stdin != out {
			t.Errorf("from standard input, exit %d: got %s; want code 0, stdin %s", code, stdin, out)
		}
		for _, output := range []string{"text", "json", "svg", "dot"} {
			out, _, code := explain(t, "", sql, "--dsn", dsn, "--output", output, "--redact")
			if code != 0 || strings.Contains(out, "hunter2") {
				t.Errorf("%s redacted, exit %d: %s; want code 0, no \"hunter2\" in it", output, code, out)
			}
			switch output {
			case "json":
				var e struct {
					ID   string
					Plan struct{ Root struct{ Kind string } }
				}
				if err := json.Unmarshal([]byte(out), &e); err != nil || len(e.ID) != 16 || e.Plan.Root.Kind == "" {
					t.Errorf("%v in %s; want len(e.ID) 16, e.Plan.Root.Kind not \"\"", err, out)
				}
			case "svg":
				for d := xml.NewDecoder(strings.NewReader(out)); ; {
					if _, err := d.Token(); errors.Is(err, io.EOF) {
						break
					} else if err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		raw := value(t, n, "USE d; EXPLAIN FORMAT=JSON "+sql)
		file := filepath.Join(tempDir(t), "plan.json")
		if err := os.WriteFile(file, []byte(raw), 0o600); err != nil {
			t.Fatal(err)
		}
		byFile, _, code := explain(t, "", "--file", file)
		if again, _, _ := explain(t, raw, "--file", "-"); code != 0 || !strings.Contains(byFile, "t ALL") || again != byFile {
			t.Errorf("from a file, exit %d: %s", code, byFile)
		}
		for _, c := range []struct {
			code int
			says string
			args []string
		}{
			{2, "writes", []string{"DELETE FROM t", "--analyze", "--dsn", dsn}},
			{2, "more than one", []string{"SELECT 1; DELETE FROM t", "--dsn", dsn}},
			{2, "placeholder", []string{"SELECT * FROM t WHERE id = ?", "--dsn", dsn}},
			{0, "", []string{"SELECT * FROM t WHERE id = ?", "--sample", "--dsn", dsn}},
			{2, "no statement", []string{"--dsn", dsn}},
			{2, "no server", []string{"SELECT 1"}},
			{2, "--output", []string{"SELECT 1", "--dsn", dsn, "--output", "png"}},
			{1, "--database", []string{"SELECT * FROM t", "--dsn", "root@unix(" + n.Socket + ")/"}},
			{1, "doesn't exist", []string{"SELECT * FROM nowhere", "--dsn", dsn}},
			{1, "no query plan", []string{"--file", "/etc/hostname"}},
			{2, "no such file", []string{"--file", "/nowhere"}},
		} {
			if _, said, code := explain(t, "", c.args...); code != c.code || !strings.Contains(said, c.says) || strings.Count(said, "\n") > 1 {
				t.Errorf("%v: exit %d, %q; want %d and %q", c.args, code, said, c.code, c.says)
			}
		}
		if got := value(t, n, "SELECT COUNT(*) FROM d.t"); got != "3" {
			t.Errorf("%s rows of 3 are left, want \"3\"", got)
		}
		if strings.HasPrefix(kind, "mariadb") || kind == "mysql-9.7" {
			explainInterrupted(t, dsn, func() string {
				return value(t, n, "SELECT COUNT(*) FROM information_schema.processlist WHERE INFO LIKE '%ANALYZE%HEX%' AND INFO NOT LIKE '%processlist%'")
			})
		}
	})
}

// explainInterrupted: Ctrl-C ends the statement on the server, too.
func explainInterrupted(t *testing.T, dsn string, running func() string) {
	t.Helper()
	var many []string // 3 to the power of 20 combinations take longer than anybody waits
	for i := range 20 {
		many = append(many, fmt.Sprintf("t t%d", i+1))
	}
	r := launch(t, nil, "explain", "SELECT SUM(LENGTH(HEX(t1.a + t20.a))) FROM "+strings.Join(many, ", "), "--analyze", "--timeout", "60s", "--dsn", dsn)
	await(t, "the statement runs", func() bool { return running() == "1" })
	if err := r.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := r.code(t); code == 0 {
		t.Error("exit 0 after Ctrl-C")
	}
	awaitWithin(t, 30*time.Second, "nothing is left behind", func() bool { return running() == "0" })
}
