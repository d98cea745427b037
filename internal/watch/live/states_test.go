package live_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/watch/rules"
)

// TestAborted: clients with a wrong password are reported, with a remedy that the server takes, and it ends.
func TestAborted(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			n := sandboxtest.Up(t, spec)
			w := watch(t, rootDSN(n))
			w.awaitTicks(t, 2)
			target, err := mysql.ParseTarget(fmt.Sprintf("nobody:wrong@tcp(127.0.0.1:%d)/", n.Port))
			if err != nil {
				t.Fatal(err)
			}
			for range 90 { // few enough that they are soon forgotten
				if c, err := mysql.Connect(t.Context(), target, nil); err == nil {
					c.Close()
					t.Fatal("a wrong password was taken")
				}
			}
			asCopied(t, n, w.awaitFinding(t, "conn.aborted", "fail before they are established").Remedy)
			w.awaitNone(t, "conn.aborted")
		})
	}
}

// writeCertificate writes one that ends after some time, with its key.
func writeCertificate(t *testing.T, dir string, left time.Duration) (settings []string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "localhost"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(left)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string]*pem.Block{"cert": {Type: "CERTIFICATE", Bytes: der}, "key": {Type: "PRIVATE KEY", Bytes: key}} {
		file := filepath.Join(dir, name+".pem")
		if err := os.WriteFile(file, pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
		settings = append(settings, "ssl_"+name+"="+file)
	}
	return settings
}

// TestCertificate: a certificate that ends soon is reported, whatever way Risso connects; with a new one in its place the remedy ends it.
func TestCertificate(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			n := sandboxtest.Up(t, spec, writeCertificate(t, dir, 10*24*time.Hour)...)
			w := watch(t, rootDSN(n))
			f := w.awaitFinding(t, "cert.server", "the server's TLS certificate ends on ", dir)
			if f.Severity != fleet.SeverityWarning {
				t.Errorf("got %+v, want a warning", f)
			}
			writeCertificate(t, dir, 365*24*time.Hour)
			asCopied(t, n, f.Remedy)
			w.awaitNone(t, "cert.server")
		})
	}
}

// TestOldTransactions: a transaction that stays open is reported with whose it is and what it holds; the remedy ends it. The time passes
// faster for the rules than for the server.
func TestOldTransactions(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7", "mysql-5.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			n := sandboxtest.Up(t, spec)
			db := open(t, n)
			holder := conn(t, db)
			run(t, db, "CREATE DATABASE shop", "CREATE TABLE shop.stock (id INT PRIMARY KEY, v INT)", "INSERT INTO shop.stock VALUES (0, 0), (1, 1), (2, 2)")
			run(t, holder, "SET SESSION time_zone = '+11:00'", "BEGIN", "UPDATE shop.stock SET v = 7 WHERE id = 1")
			var id int64
			if err := holder.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&id); err != nil {
				t.Fatal(err)
			}
			target, err := mysql.ParseTarget(rootDSN(n))
			if err != nil {
				t.Fatal(err)
			}
			c, err := mysql.Connect(t.Context(), target, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			var judge rules.Judge
			r := read.NewReader(c.Traffic())
			look := func() (found *fleet.Finding) {
				if err := r.Read(t.Context(), c, time.Now().Unix()); err != nil {
					t.Fatal(err)
				}
				list := r.Old(0)
				for i := range list {
					list[i].Session.Open += 700
				}
				for _, f := range judge.Judge(&rules.Snapshot{Now: time.Now(), Up: true, Instance: fleet.Instance{Kind: fleet.KindServer}, Old: list}).Findings {
					if f.ID == "trx.long" {
						found = &f
					}
				}
				return found
			}
			f := look()
			for deadline := time.Now().Add(patience); f == nil && time.Now().Before(deadline); f = look() {
				time.Sleep(200 * time.Millisecond) // what these servers show is copied once in 0.1 s
			}
			if f == nil || !strings.Contains(f.What, fmt.Sprintf("connection %d (root@localhost", id)) || !strings.Contains(f.What, "undo of 1 row and locks of about 1 row") || f.Remedy != fmt.Sprintf("KILL %d", id) {
				t.Fatalf("got %+v; want connection %d with undo and locks of 1 row, and its KILL", f, id)
			}
			asCopied(t, n, f.Remedy)
			for deadline := time.Now().Add(patience); look() != nil; time.Sleep(200 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("it did not end")
				}
			}
			if list := r.Old(time.Minute); len(list) > 0 {
				t.Errorf("got %+v; want none of a minute", list)
			}
		})
	}
}

// TestBlind: that a privilege was taken from Risso's account is reported, and the remedy gives it back.
func TestBlind(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			n := sandboxtest.Up(t, spec)
			db := open(t, n)
			run(t, db, "CREATE USER watcher@localhost IDENTIFIED BY 'x'", "GRANT PROCESS ON *.* TO watcher@localhost")
			w := watch(t, fmt.Sprintf("watcher:x@unix(%s)/", n.Socket))
			w.awaitTicks(t, 2)
			if list := w.finding("observer.blind"); len(list) > 0 {
				t.Errorf("got %+v before anything was taken, want nothing", list)
			}
			run(t, db, "REVOKE PROCESS ON *.* FROM watcher@localhost")
			killAll(t, n, "watcher")
			f := w.awaitFinding(t, "observer.blind", "can no longer read", "missing a privilege")
			asCopied(t, n, f.Remedy)
			w.awaitNone(t, "observer.blind")
		})
	}
}

// TestRestarted: a server that is down is so with the end of its error log; one that was killed or shut down is reported with
// that. One that hangs is told apart.
func TestRestarted(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7", "mysql-5.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			n := sandboxtest.Up(t, spec)
			w := watch(t, rootDSN(n))
			w.awaitTicks(t, 2)
			for _, how := range []struct{ name, cause string }{{"shutdown", "it was shut down"}, {"SIGKILL", "it was killed"}} {
				w.awaitTicks(t, 6) // one that ran for two seconds and runs for two is not known to be another run
				end := func() error { return n.Stop(t.Context()) }
				if how.name == "SIGKILL" {
					end = func() error { return n.Kill(syscall.SIGKILL) }
				}
				err := end()
				if err != nil {
					t.Fatal(err)
				}
				f := w.awaitFinding(t, "server.down", "refuses connections", "its error log ends with: ")
				if f.Remedy != "" {
					t.Errorf("got the remedy %q, want none that cannot be run", f.Remedy)
				}
				if err := n.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
				w.awaitNone(t, "server.down")
				w.awaitFinding(t, "server.restarted", how.cause)
			}
			goOn := sandboxtest.Pause(t, n)
			w.awaitFinding(t, "server.hung", "accepts connections, but does not answer")
			if list := w.finding("server.down"); len(list) > 0 {
				t.Errorf("got %+v, want that it hangs only", list)
			}
			goOn()
			w.awaitNone(t, "server.hung")
		})
	}
}

// TestSaturated: connections that run out are told with the limit as it is now, and the remedy ends that.
func TestSaturated(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			n := sandboxtest.Up(t, spec, "max_connections=30")
			db := open(t, n)
			w := watch(t, rootDSN(n))
			w.awaitTicks(t, 2)
			for range 25 {
				defer conn(t, db).Close()
			}
			f := w.awaitFinding(t, "conn.saturation", " of 30 connections are in use")
			asCopied(t, n, f.Remedy)
			w.awaitNone(t, "conn.saturation")
			run(t, db, "SET GLOBAL max_connections = 29")
			w.awaitFinding(t, "conn.saturation", " of 29 connections are in use")
		})
	}
}
