package scenario_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/lack"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestCheck: the plug-in says of a true server what Risso knows, and never OK of what cannot be known.
func TestCheck(t *testing.T) {
	t.Parallel()
	n := single(t, "mariadb")
	r := serve(t, dataDir(t), "--no-host", "--dsn", "db="+n.DSN)
	r.awaitTicks(t, "db", 3)
	check := func(want int, words string, args ...string) string {
		t.Helper()
		out, said, code := runRisso(t, nil, append([]string{"check"}, args...)...)
		if code != want || !strings.HasPrefix(out, words) || said != "" {
			t.Errorf("risso check %s: got exit code %d, %s%s, want %d and %s", args, code, out, said, want, words)
		}
		return out
	}
	if out := check(0, "RISSO OK - db: no finding of repl.*, freshness | 'age'=", "repl.*", "freshness", "--url", r.base); !strings.Contains(out, "'questions_per_second'=") || strings.Count(out, "\n") != 1 {
		t.Errorf("got %s, want one line with questions per second", out)
	}
	check(2, "RISSO CRITICAL - db: never backed up, and nothing is planned | ", "protect.*", "--url", r.base)
	check(3, "RISSO UNKNOWN - db: it is not known how it is protected", "protect.stale", "--dsn", "db="+n.DSN, "--look", "3s")
	check(3, `RISSO UNKNOWN - there is no finding "repl.lagg"`, "repl.lagg", "--url", r.base)
	check(3, `RISSO UNKNOWN - nothing is watched that is called "db2"`, "--all", "--server", "db2", "--url", r.base)
	check(3, "RISSO UNKNOWN - nothing is watched that can have disk.*", "disk.*", "--url", r.base)
	check(0, "RISSO OK - db: readings arrive | ", "freshness", "--dsn", "db="+n.DSN, "--look", "4s")
	check(3, "RISSO UNKNOWN - ", "--all", "--dsn", strings.Replace(n.DSN, "root", "nobody", 1))

	program := "/usr/sbin/nsca"
	if _, err := os.Stat(program); err != nil {
		lack.Of(t, "nsca is not installed: run script/setup")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	_ = l.Close()
	_, port, _ := net.SplitHostPort(at)
	dir := tempDir(t)
	commands, password := filepath.Join(dir, "commands"), filepath.Join(dir, "password")
	write(t, commands, "")
	write(t, password, "s3cret\n")
	write(t, filepath.Join(dir, "nsca.cfg"), fmt.Sprintf("pid_file=%s/pid\nserver_address=127.0.0.1\nserver_port=%s\ncommand_file=%s\nalternate_dump_file=%[1]s/dump\nappend_to_file=1\npassword=s3cret\ndecryption_method=1\n", dir, port, commands))
	nsca := exec.CommandContext(t.Context(), program, "-f", "-c", filepath.Join(dir, "nsca.cfg"))
	if err := nsca.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nsca.Process.Kill(); _ = nsca.Wait() })
	await(t, "NSCA", func() bool {
		c, err := net.Dial("tcp", at)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})

	goOn := sandboxtest.Pause(t, n)
	defer goOn()
	await(t, "the finding", func() bool {
		_, _, code := runRisso(t, nil, "check", "server.down", "--url", r.base)
		return code == 2
	})
	check(2, "RISSO CRITICAL - db: ", "--all", "--url", r.base, "--nsca", at, "--nsca-password-file", password)
	check(2, "RISSO CRITICAL - db: ", "freshness", "--url", r.base)
	check(3, "RISSO UNKNOWN - db: it is not known: ", "repl.lag", "--url", r.base)
	if out := check(2, "{", "--all", "--url", r.base, "-o", "json"); !strings.Contains(out, `"state": "CRITICAL"`) {
		t.Errorf("got %s, want JSON with the state", out)
	}
	await(t, "the passive result", func() bool {
		text, _ := os.ReadFile(commands)
		return strings.Contains(string(text), "PROCESS_SERVICE_CHECK_RESULT;db;Risso;2;RISSO CRITICAL - db: ")
	})
	r.kill(t)
	check(3, "RISSO UNKNOWN - ask "+r.base, "--all", "--url", r.base)
}
