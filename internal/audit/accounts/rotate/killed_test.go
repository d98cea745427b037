package rotate

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/audit/accounts/read"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// muted stands before a server: once a client has sent words, nothing that the server says to that client arrives any more.
type muted struct {
	socket string
	server string
	words  []byte
	sent   atomic.Bool
}

func mute(t *testing.T, server, words string) *muted {
	t.Helper()
	m := &muted{socket: filepath.Join(t.TempDir(), "s"), server: server, words: []byte(words)}
	l, err := net.Listen("unix", m.socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go m.pass(c)
		}
	}()
	return m
}

func (m *muted) pass(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("unix", m.server)
	if err != nil {
		return
	}
	defer server.Close()
	var quiet atomic.Bool
	go func() {
		b := make([]byte, 1<<16)
		for {
			n, err := server.Read(b)
			if !quiet.Load() {
				if _, err := client.Write(b[:n]); err != nil {
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	b := make([]byte, 1<<16)
	for {
		n, err := client.Read(b)
		if bytes.Contains(b[:n], m.words) {
			quiet.Store(true)
			m.sent.Store(true)
		}
		if _, e := server.Write(b[:n]); e != nil || err != nil {
			return
		}
	}
}

// TestRotator is no test: it is the process that is killed. Its environment says what it rotates.
func TestRotator(t *testing.T) {
	socket := os.Getenv("ROTATOR_SOCKET")
	if socket == "" {
		t.Skip("it is run by TestKilled")
	}
	target, err := mysql.ParseTarget("root@unix(" + socket + ")/")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Prepare(context.Background(), Options{Source: read.Source{Name: "db1", Target: target}, Account: "shop@%", Store: os.Getenv("ROTATOR_STORE"), Discard: os.Getenv("ROTATOR_STORE") == ""})
	if err == nil {
		_, err = r.Run(context.Background(), os.Getenv("ROTATOR_DIR"))
	}
	t.Fatalf("it went on: %v", err)
}

// killAfter runs a rotation in a process of its own, and kills that when the server has carried out a statement and nobody knows it yet.
func killAfter(t *testing.T, c *mysql.Conn, server, words, store, dir string, changed func() bool) {
	t.Helper()
	m := mute(t, server, words)
	cmd := exec.Command(os.Args[0], "-test.run=^TestRotator$", "-test.v")
	cmd.Env = append(os.Environ(), "ROTATOR_SOCKET="+m.socket, "ROTATOR_STORE="+store, "ROTATOR_DIR="+dir)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, io.Discard
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	await.Until(t, func() bool {
		select {
		case err := <-ended:
			t.Fatalf("it ended before: %v\n%s", err, said.String())
		default:
		}
		return m.sent.Load() && changed()
	}, "%s to be carried out", words)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-ended
	await.Until(t, func() bool {
		free, err := c.Text(t.Context(), "SELECT IS_FREE_LOCK('risso.accounts.rotate')")
		return err == nil && free == "1"
	}, "the server to free the lock of the killed process")
}

// TestKilled: a rotation that is killed when the server has just got the new password leaves both passwords good, the new one in the store,
// and a journal that the next one tells of; one that is killed when the old one was just discarded leaves the new one.
func TestKilled(t *testing.T) {
	for _, spec := range []string{"mariadb-10.11", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			n := sandboxtest.Lend(t, spec)
			c := sandboxtest.Connect(t, n)
			ctx := t.Context()
			if err := c.Exec(ctx, "CREATE USER shop@'%' IDENTIFIED BY 'the old one'"); err != nil {
				t.Fatal(err)
			}
			logs := func(password string) bool {
				s, err := as(t, n, "shop", password).ConnectStream(ctx, mysql.StreamOptions{Patience: 10 * time.Second})
				if err == nil {
					s.Close()
				}
				return err == nil
			}
			dir, kept := t.TempDir(), filepath.Join(t.TempDir(), "kept")
			o := Options{Source: read.Source{Name: "db1", Target: sandboxtest.Target(t, n)}, Account: "shop@%"}
			password := func() string {
				text, _ := os.ReadFile(kept)
				return strings.TrimSuffix(string(text), "\n")
			}
			killAfter(t, c, sandboxtest.Target(t, n).Socket(), "ALTER USER", "cat >'"+kept+"'", dir, func() bool { return logs(password()) })
			if !logs("the old one") {
				t.Error("the old password is void after the rotation was cut off")
			}
			if _, err := Prepare(ctx, o); err == nil || !strings.Contains(err.Error(), "several passwords") {
				t.Errorf("the next rotation: got %v, want that there are several passwords", err)
			}
			o.Discard = true
			d, err := Prepare(ctx, o)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			if words := d.CutOff(dir); !strings.Contains(words, "was cut off") || !strings.Contains(words, "begun: ALTER USER") {
				t.Errorf("got %q, want that it was cut off in ALTER USER", words)
			}
			killAfter(t, c, sandboxtest.Target(t, n).Socket(), "ALTER USER", "", dir, func() bool { return !logs("the old one") })
			if !logs(password()) {
				t.Error("the new password is void after the old one was discarded")
			}
			if _, err := d.Run(ctx, dir); err == nil || !strings.Contains(err.Error(), "has been changed since") {
				t.Errorf("a plan from before: got %v, want that the account has been changed", err)
			}
			if _, err := Prepare(ctx, o); err == nil || !strings.Contains(err.Error(), "one password") {
				t.Errorf("another --discard: got %v, want that there is one password", err)
			}
			if words := d.CutOff(dir); !strings.Contains(words, "was cut off") {
				t.Errorf("got %q, want that it was cut off", words)
			}
		})
	}
}
