package scenario_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/sandbox"
)

// TestFullPrimary: commits of a primary wait for room for its binary log, while it answers as if all were well. Another one takes over with all that was acknowledged; the old one
// is closed, and replicates once there is room.
func TestFullPrimary(t *testing.T) {
	eachKind(t, []string{"mariadb", "mysql-9.7"}, func(t *testing.T, kind string) {
		q := newSquad(t, sandbox.Options{Servers: []string{kind}, SemiSync: true, Settings: []string{"max_binlog_size=1048576"}}, "--semi-sync")
		first := q.box.Nodes[0]
		dir := q.smallBinlog(first, "16m")
		q.whole()
		s := serve(t, q.data, "--failover", "auto", "--host-only", "--no-statements")
		q.stays(first)

		execSQL(t, first, "CREATE TABLE app.large (v LONGTEXT)")
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		db := q.app(first)
		for range 3 {
			all.Go(func() {
				for ctx.Err() == nil {
					if _, err := db.ExecContext(ctx, "INSERT INTO large VALUES (REPEAT('x', 100000))"); err != nil {
						return
					}
					if err := q.write(db, patience); err != nil {
						return
					}
				}
			})
		}
		t.Cleanup(func() {
			if data, err := os.ReadFile(first.ErrorLog); t.Failed() && err == nil {
				t.Logf("the last that %s said: %s", first.Name, data[max(0, len(data)-4000):])
			}
		})
		began := time.Now()
		var p *sandbox.Node
		await(t, "another primary", func() bool { _, p = q.members(); return p != first && q.open(p) })
		t.Logf("another primary %s after the first write", time.Since(began).Round(100*time.Millisecond))
		cancel()
		all.Wait()
		if q.heard(s, "its disk is full") == 0 {
			t.Error("no event says that the disk is full")
		}
		q.complete(q.others(first)...)
		if kind == "mariadb" {
			await(t, "the old primary takes no writes", func() bool { return !q.open(first) })
		}
		// Whoever was to begin another binary log as it was ended left the server without one, which then is told.
		closed := kind == "mariadb" && len(execSQL(t, first, "SHOW MASTER STATUS")[0].Rows) == 0
		if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=256m"); err != nil {
			t.Fatal(err)
		}
		if kind != "mariadb" { // it ends itself when what waits for room is ended (binlog_error_action)
			<-first.Ended()
			if err := first.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		var receipt struct {
			Receipts []struct {
				Outage         time.Duration `json:"outage_ns"`
				Verdict, Words string
				Unwritten      bool
			}
		}
		await(t, "a receipt", func() bool {
			said := mustCommand(t, "receipt", "--group", "g", "--data", q.data, "-o", "json")
			return json.Unmarshal([]byte(said), &receipt) == nil && len(receipt.Receipts) == 1
		})
		r := receipt.Receipts[0]
		t.Logf("%s: %s; nobody took writes for %s", r.Verdict, r.Words, r.Outage)
		told := closed && r.Verdict == "perhaps_lost" && strings.Contains(r.Words, "writes no binary log any more")
		if !told && (r.Verdict != "nothing_lost" || !strings.Contains(r.Words, "zero acknowledged transactions lost")) {
			t.Errorf("the receipt says %s: %s", r.Verdict, r.Words)
		}
		if r.Outage < 3*time.Second || r.Outage > time.Since(began) { // commits have to wait for so long before it is asked why
			t.Errorf("the receipt says that nobody took writes for %s", r.Outage)
		}
		if kind == "mariadb" { // it counts what it could not write
			await(t, "it stays out", func() bool {
				list, _ := q.members()
				return list[0].Status == "FAULTY" && (list[0].Errant != "" || closed && strings.Contains(list[0].Fault, "no binary log"))
			})
			if t.Logf("its binary log is closed: %t", closed); closed {
				if code, said := command(t, "group", "rebuild", "g", first.Name, "--data", q.data, "--yes"); code != 1 || !strings.Contains(said, "start it again") {
					t.Errorf("risso group rebuild of one that writes no binary log: exit code %d: %s; want 1, and that it is to be started again", code, said)
				}
				err := first.Stop(t.Context())
				if err == nil {
					err = first.Start(t.Context())
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			said := mustCommand(t, "receipt", "--group", "g", "--data", q.data)
			t.Log(said)
			mustCommand(t, "group", "rebuild", "g", first.Name, "--data", q.data, "--yes")
		}
		q.whole()
	})
}

// smallBinlog starts a node with its binary log on a file system of its own, of a size.
func (q *squad) smallBinlog(n *sandbox.Node, size string) (dir string) {
	q.Helper()
	dir = q.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size+",mode=777"); err != nil {
		q.Skipf("SKIPPED: mounting a tmpfs needs root with CAP_SYS_ADMIN: %v", err)
	}
	q.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	must := func(err error) {
		q.Helper()
		if err != nil {
			q.Fatal(err)
		}
	}
	must(n.Stop(q.Context()))
	files, err := filepath.Glob(filepath.Join(n.Datadir, "binlog.*"))
	must(err)
	for _, f := range files {
		data, err := os.ReadFile(f)
		must(err)
		if strings.HasSuffix(f, ".index") {
			data = []byte(strings.ReplaceAll(string(data), "./", dir+"/"))
		}
		must(os.WriteFile(filepath.Join(dir, filepath.Base(f)), data, 0o600))
	}
	config := filepath.Join(filepath.Dir(n.Datadir), "my.cnf")
	data, err := os.ReadFile(config)
	must(err)
	must(os.WriteFile(config, []byte(string(data)+"\nlog_bin="+dir+"/binlog\n"), 0o600))
	must(n.Start(q.Context()))
	start := "START REPLICA" // some give up before a primary is there again
	if n.Program.Family == sandbox.FamilyMariaDB {
		start = "START SLAVE"
	}
	for _, r := range q.others(n) {
		execSQL(q.T, r, start)
	}
	return dir
}
