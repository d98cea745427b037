package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/audit/accounts"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestPrintedRotation: the commands that risso accounts prints are run as a shell takes them, with a COMMAND of the reader's; then what they
// were printed for is gone.
func TestPrintedRotation(t *testing.T) {
	for spec, wrong := range map[string][][2]string{ // a rule, and how the account comes to break it
		"mariadb-10.11": {{"sec.weak_password", "BY 'letmein'"}},
		"mysql-9.7":     {{"sec.weak_password", "BY 'letmein'"}, {"sec.weak_auth", "WITH sha256_password BY 'aG00d-one'"}},
		"mysql-5.7":     {{"sec.weak_password", "BY 'letmein'"}, {"sec.no_password", "BY ''"}},
	} {
		t.Run(spec, func(t *testing.T) {
			n := sandboxtest.Up(t, spec)
			dir := t.TempDir()
			dsn := "root@unix(" + sandboxtest.Target(t, n).Socket() + ")/"
			config := filepath.Join(dir, "risso's.yaml")
			if err := os.WriteFile(config, []byte("servers:\n  - name: db1\n    dsn: "+dsn+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			c := sandboxtest.Connect(t, n)
			for i, w := range wrong {
				host := fmt.Sprintf("10.%d.%%", i)
				if err := c.Exec(t.Context(), `CREATE USER 'we''ak "ü'@'`+host+"' IDENTIFIED "+w[1]); err != nil {
					t.Fatal(err)
				}
				if r := remedy(t, w[0], `we'ak "ü@`+host, "--dsn", "db1", "--config", config); !strings.Contains(r, `--dsn db1 --config '`+filepath.Join(dir, `risso'\''s.yaml`)+"'") {
					t.Errorf("of a server with a name: got %s, want the name and the file", r)
				}
				runPrinted(t, w[0], `we'ak "ü@`+host, dsn, dir)
			}
		})
	}
}

// remedy is what risso accounts prints for a finding; "" if there is no such finding.
func remedy(t *testing.T, id, account string, server ...string) string {
	t.Helper()
	code, out, told := call(t, append([]string{"accounts", "-o", "json", "--budget", "1m"}, server...)...)
	var r accounts.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 {
		t.Fatalf("exit %d, %v: %s", code, err, told)
	}
	for _, f := range r.Findings {
		if f.ID == id && f.Object == account {
			return f.Remedy
		}
	}
	return ""
}

func runPrinted(t *testing.T, id, account, dsn, dir string) {
	t.Helper()
	printed := remedy(t, id, account, "--dsn", dsn)
	kept := filepath.Join(t.TempDir(), "kept")
	words, err := exec.Command("sh", "-c", `risso() { printf '%s\0' "$@"; }; `+strings.ReplaceAll(printed, "COMMAND", "cat >"+kept)).Output()
	if err != nil || printed == "" {
		t.Fatalf("%s of %s: got %q, %v; want a command", id, account, printed, err)
	}
	args := strings.Split(strings.TrimSuffix(string(words), "\x00"), "\x00")
	if code, _, told := call(t, append(args, "--yes", "--state", dir)...); code != 0 {
		t.Fatalf("%s: exit %d: %s", printed, code, told)
	}
	if text, err := os.ReadFile(kept); err != nil || len(text) < 20 {
		t.Errorf("the command got %d bytes, %v", len(text), err)
	}
	if id == "sec.weak_password" && !strings.Contains(printed, "--at-once") {
		if r := remedy(t, id, account, "--dsn", dsn); r != "" && !strings.Contains(r, "--discard") && !strings.Contains(r, "several passwords") {
			t.Errorf("while the old password is good, too: got %s", r)
		}
		if code, _, told := call(t, "accounts", "rotate", account, "--dsn", dsn, "--discard", "--yes", "--state", dir); code != 0 {
			t.Fatalf("--discard: exit %d: %s", code, told)
		}
	}
	if again := remedy(t, id, account, "--dsn", dsn); again != "" {
		t.Errorf("after %s: still %s", printed, again)
	}
}

// TestDiffFiles: a file that is not there, or is no description, is told as one, once.
func TestDiffFiles(t *testing.T) {
	dir := t.TempDir()
	cut := filepath.Join(dir, "cut.json")
	if err := os.WriteFile(cut, []byte(`{"format": 1, "name": "a", "varia`), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{cut: "no description of a server that risso diff --save wrote: ", filepath.Join(dir, "gone.json"): "no such file"} {
		code, _, told := call(t, "diff", path, path)
		if code == 0 || !strings.Contains(told, want) || strings.Count(told, path) != 1 {
			t.Errorf("exit %d, %q; want %q, and the file named once", code, told, want)
		}
	}
}
