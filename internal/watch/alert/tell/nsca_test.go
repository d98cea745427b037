package tell

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/lack"
	"github.com/rissodb/risso/internal/watch/alert"
)

// freeAddress is an address at which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// TestNSCA sends results to the real daemon, by each way to encrypt, and reads what it would give Nagios.
func TestNSCA(t *testing.T) {
	t.Parallel()
	program := "/usr/sbin/nsca"
	if _, err := os.Stat(program); err != nil {
		lack.Of(t, "nsca is not installed: run script/setup")
	}
	for method, number := range map[string]int{"none": 0, "xor": 1, "3des": 3, "aes256": 14} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			dir, at := t.TempDir(), freeAddress(t)
			_, port, _ := net.SplitHostPort(at)
			commands := filepath.Join(dir, "commands")
			config := filepath.Join(dir, "nsca.cfg")
			text := fmt.Sprintf("pid_file=%s/pid\nserver_address=127.0.0.1\nserver_port=%s\ncommand_file=%s\nalternate_dump_file=%[1]s/dump\nappend_to_file=1\nmax_packet_age=30\npassword=s3cret word\ndecryption_method=%[4]d\n", dir, port, commands, number)
			for name, text := range map[string]string{config: text, commands: ""} {
				if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			run := exec.CommandContext(t.Context(), program, "-f", "-c", config)
			if err := run.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = run.Process.Kill(); _ = run.Wait() })
			n := &NSCA{Server: at, Method: method, Password: "s3cret word"}
			await.Until(t, func() bool {
				return n.Submit(t.Context(), []Passive{{Host: "db1", Service: "first", Code: 0, Text: "RISSO OK - well | 'age'=1s\n"}}) == nil
			}, "NSCA listens")
			if err := n.Submit(t.Context(), []Passive{
				{Host: "db1", Service: "Risso; x", Code: 2, Text: "RISSO CRITICAL - it is\n[CRITICAL] a\\b\nnext: x"}, {Host: "größe", Service: "Risso", Code: 3, Text: strings.Repeat("ü", 5000)},
			}); err != nil {
				t.Fatal(err)
			}
			said := func() string { b, _ := os.ReadFile(commands); return string(b) }
			await.Until(t, func() bool { return strings.Count(said(), "\n") >= 3 }, "three commands are written")
			for _, want := range []string{
				"PROCESS_SERVICE_CHECK_RESULT;db1;first;0;RISSO OK - well | 'age'=1s\n", `PROCESS_SERVICE_CHECK_RESULT;db1;Risso, x;2;RISSO CRITICAL - it is\n[CRITICAL] a\\b\nnext: x` + "\n",
				"PROCESS_SERVICE_CHECK_RESULT;größe;Risso;3;" + strings.Repeat("ü", 2047) + "\n",
			} {
				if !strings.Contains(said(), want) {
					t.Errorf("got %.1000q, want %.200q in it", said(), want)
				}
			}
		})
	}
}

// TestNSCAReceiver: an alert that ended is OK, and a message that is a test is no failure.
func TestNSCAReceiver(t *testing.T) {
	t.Parallel()
	if err := (Config{Name: "x", NSCA: &NSCA{Server: "h", Method: "rot13"}}).Check(); err == nil || !strings.Contains(err.Error(), "rot13") {
		t.Errorf("got %v, want that there is no such method", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := make(chan []byte, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = c.Write(make([]byte, nscaVector+4))
		b := make([]byte, 4*nscaPacket)
		n := 0
		for {
			m, err := c.Read(b[n:])
			if n += m; err != nil {
				break
			}
		}
		got <- b[:n]
	}()
	r, err := Open(Config{Name: "x", NSCA: &NSCA{Server: l.Addr().String(), Method: "none"}})
	if err != nil {
		t.Fatal(err)
	}
	m := &alert.Message{Alerts: []alert.Alert{{Server: "a", Finding: "repl.lag", Severity: fleet.SeverityWarning, Phase: alert.Firing, Began: time.Now()},
		{Server: "a", Finding: "server.down", Severity: fleet.SeverityCritical, Phase: alert.Firing}, {Server: "a", Finding: "lock.user", Severity: fleet.SeverityCritical, Phase: alert.Resolved}}}
	if err := r.Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	b := <-got
	var codes []byte
	for i := 13; i < len(b); i += nscaPacket {
		codes = append(codes, b[i])
	}
	if string(codes) != "\x01\x02\x00" {
		t.Errorf("got states %v, want 1, 2, 0", codes)
	}
}
