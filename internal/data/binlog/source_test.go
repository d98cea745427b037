package binlog

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/binlogevent"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestSources reads the same log as a file, over a socket, over TCP and over TLS, and then damages it in every way.
func TestSources(t *testing.T) {
	for _, spec := range []string{"mysql-9.7", "mysql-8.0", "mysql-5.7", "mariadb", "mariadb-11.8"} {
		t.Run(spec, func(t *testing.T) {
			settings, anyTLS := sandboxtest.TLS(t)
			n := sandboxtest.Up(t, spec, append(settings, "sync_binlog=0", "max_allowed_packet=64M", "innodb_flush_log_at_trx_commit=2")...)
			db := openDB(t, n)
			run(t, db, "CREATE TABLE test.t (id INT PRIMARY KEY, v LONGTEXT)", "INSERT INTO test.t VALUES (1, 'x'), (2, REPEAT('y', 20000000))", "DELETE FROM test.t WHERE id = 1", "FLUSH BINARY LOGS")
			want := sum(t, fileOf(t, filepath.Join(n.Datadir, "binlog.000001")))
			for name, dsn := range ways(t, n, anyTLS) {
				t.Run(name, func(t *testing.T) {
					tg, err := mysql.ParseTarget(dsn)
					if err != nil {
						t.Fatal(err)
					}
					files, err := FromServer(t.Context(), tg)
					if err != nil {
						t.Fatal(err)
					}
					if got := sum(t, files[0]); got != want {
						t.Errorf("%s, not %s", got, want)
					}
				})
			}
			if spec == "mysql-9.7" {
				tagged(t, n)
			}
			if spec == "mysql-5.7" {
				unnumbered(t, n)
			}
			if spec == "mariadb" {
				damaged(t, filepath.Join(n.Datadir, "binlog.000001"))
			}
		})
	}
}

// ways are DSNs that lead to a server.
func ways(t *testing.T, n *sandbox.Node, anyTLS string) map[string]string {
	t.Helper()
	c, err := n.TCPConfig()
	if err != nil {
		t.Fatal(err)
	}
	ways := map[string]string{"socket": n.DSN, "tcp": c.FormatDSN(), "compressed": n.DSN + "?compress=true"}
	if _, err := n.Query(t.Context(), "CREATE USER secure@'127.0.0.1' IDENTIFIED BY 'x' REQUIRE SSL; GRANT ALL ON *.* TO secure@'127.0.0.1'"); err != nil {
		t.Fatal(err)
	}
	c.User, c.Passwd, c.TLSConfig = "secure", "x", anyTLS
	ways["tls"] = c.FormatDSN()
	return ways
}

func fileOf(t *testing.T, path string) File {
	t.Helper()
	files, err := FromPaths([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	return files[0]
}

func sum(t *testing.T, f File) string {
	t.Helper()
	in, err := f.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	h := sha256.New()
	n, err := io.Copy(h, in)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d bytes, %x", n, h.Sum(nil))
}

// damaged flips bits and cuts: nothing of it may pass as whole, nothing may panic.
func damaged(t *testing.T, path string) {
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	whole = whole[:6000] // the first events
	scan := func(b []byte) (Index, error) {
		return Scan(t.Context(), "binlog.000001", bytes.NewReader(b))
	}
	x, err := scan(whole)
	if !errors.Is(err, binlogevent.ErrTorn) {
		t.Fatalf("cut: got %v, want binlogevent.ErrTorn", err)
	}
	good := whole[:x.Size]
	if _, err := scan(good); err != nil {
		t.Fatal(err)
	}
	const inUse = 4 + 17 // the flag that the log is being written is in no checksum
	for at := 0; at < len(good); at++ {
		if at == inUse {
			continue
		}
		for _, bit := range []int{0, at % 8} {
			b := append([]byte(nil), good...)
			b[at] ^= 1 << bit
			if _, err := scan(b); err == nil {
				t.Errorf("bit %d of byte %d was flipped, and nobody noticed", bit, at)
			}
		}
	}
	ends := map[int64]bool{}
	for end := 0; end < len(good); end++ {
		x, err := scan(good[:end])
		if err == nil {
			ends[x.Size] = true
		} else if !errors.Is(err, binlogevent.ErrTorn) {
			t.Errorf("cut at %d: got %v, want binlogevent.ErrTorn", end, err)
		}
	}
	if len(ends) < 3 || len(ends) > 20 {
		t.Errorf("cut at %d places, it seemed whole; want from 3 to 20", len(ends))
	}
}

// tagged writes transactions under GTIDs with a tag (MySQL 8.3) and expects them in the index, as the server counts them.
func tagged(t *testing.T, n *sandbox.Node) {
	c := conn(t, openDB(t, n))
	run(t, c, "SET SESSION gtid_next = 'AUTOMATIC:risso'", "INSERT INTO test.t VALUES (5, 'a')", "INSERT INTO test.t VALUES (6, 'b')", "SET SESSION gtid_next = 'AUTOMATIC'", "DELETE FROM test.t WHERE id > 4", "FLUSH BINARY LOGS")
	set, _, _ := position(t, n)
	if !strings.Contains(set.String(), ":risso:1-2") {
		t.Fatalf("the server has %s, want \":risso:1-2\" in it", set)
	}
	for i, f := range logged(t, n) {
		in, err := f.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		x, err := Scan(t.Context(), f.Name, in)
		in.Close()
		if err != nil {
			t.Fatal(err)
		}
		if i == 1 && !x.After.Equal(set) || i == 2 && !x.Before.Equal(set) {
			t.Errorf("%s: from %s to %s; the server has %s", f.Name, x.Before, x.After, set)
		}
	}
}

// unnumbered takes a log away from a server whose transactions have no GTIDs: only the logs' numbers show it.
func unnumbered(t *testing.T, n *sandbox.Node) {
	c := conn(t, openDB(t, n))
	for _, mode := range []string{"ON_PERMISSIVE", "OFF_PERMISSIVE", "OFF"} {
		run(t, c, "SET GLOBAL gtid_mode = "+mode)
	}
	_, file, pos := position(t, n)
	for i := 10; i < 14; i++ {
		run(t, c, fmt.Sprintf("INSERT INTO test.t VALUES (%d, 'x')", i), "FLUSH BINARY LOGS")
	}
	o := RollOptions{Files: logged(t, n), From: repo.Position{File: file, Offset: pos}}
	res, err := planned(t, o)
	if err != nil || res.Transactions != 4 || len(res.Stretches) != 5 || res.Stretches[0].From != pos || res.Stretches[3].Transactions != 1 {
		t.Fatalf("got %+v, %v; want Transactions 4, len(Stretches) 5, Stretches[0].From %v, Stretches[3].Transactions 1", res, err, pos)
	}
	at := slices.IndexFunc(o.Files, func(f File) bool { return f.Name == file })
	cut := slices.Clone(o.Files)
	path := filepath.Join(t.TempDir(), cut[at+1].Name)
	whole, err := os.ReadFile(filepath.Join(n.Datadir, cut[at+1].Name))
	if err != nil {
		t.Fatal(err)
	}
	if x, err := Scan(t.Context(), "", bytes.NewReader(whole[:len(whole)-1])); !errors.Is(err, binlogevent.ErrTorn) {
		t.Fatalf("got %v, want binlogevent.ErrTorn", err)
	} else if err := os.WriteFile(path, whole[:x.Size], 0o600); err != nil { // without the event that ends it
		t.Fatal(err)
	}
	cut[at+1] = fileOf(t, path)
	o2 := o
	o2.Files = cut
	if res, err := planned(t, o2); err != nil || len(res.Notes) != 1 || !strings.Contains(res.Notes[0], cut[at+1].Name+" does not end as a server ends a log") {
		t.Errorf("one that is cut between two events: %q, %v; want len(res.Notes) 1, cut[at+1].Name + \" does not end as a server ends a log\" in res.Notes[0]",
			res.Notes, err)
	}
	if len(res.Notes) > 0 {
		t.Errorf("nothing is wrong with these: %q, want none", res.Notes)
	}
	was, missing, next := o.Files[at+1].Name, o.Files[at+2].Name, o.Files[at+3].Name
	o.Files = slices.Delete(o.Files, at+2, at+3)
	res, err = planned(t, o)
	if !errors.Is(err, ErrGap) || !strings.Contains(err.Error(), fmt.Sprintf("the log between %s and %s is missing", was, next)) || res.Transactions != 2 {
		t.Errorf("without %s: got %+v, %v; want ErrGap, %q in the error, Transactions 2",
			missing, res, err, fmt.Sprintf("the log between %s and %s is missing", was, next))
	}
}
