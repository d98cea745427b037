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
	eachKind(t, []string{"mariadb", "mysql-9.7"}, func(t *testing.T, kind string) { fullPrimary(t, kind, true) })
}

// TestFullPrimaryWaitsForNobody: so it is where commits do not wait for replicas. A MariaDB counts what it cannot write then, which is not called lost: its binary logs tell.
func TestFullPrimaryWaitsForNobody(t *testing.T) {
	eachKind(t, []string{"mariadb"}, func(t *testing.T, kind string) { fullPrimary(t, kind, false) })
}

func fullPrimary(t *testing.T, kind string, semiSync bool) {
	t.Helper()
	q := newSquad(t, sandbox.Options{Servers: []string{kind}, SemiSync: true, Settings: []string{"max_binlog_size=1048576"}}, "--semi-sync")
	first := q.box.Nodes[0]
	dir := q.smallBinlog(first, "16m")
	if semiSync { // which the restart forgot
		if err := first.WaitForReplicas(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	q.whole()
	s := serve(t, q.data, "--failover", "auto", "--host-only", "--no-statements")
	q.stays(first)

	execSQL(t, first, "CREATE TABLE app.large (v LONGTEXT)")
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	q.fill(ctx, first, &all)
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
	told, none := context.WithCancel(t.Context())
	all.Go(func() { // from here on nobody is told that the old primary committed something
		db := q.app(first)
		for id := 10_000_000; told.Err() == nil; id++ {
			if _, err := db.ExecContext(told, "INSERT INTO ledger VALUES (?)", id); err == nil {
				t.Errorf("the old primary took %d", id)
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
	defer none()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=256m"); err != nil {
		t.Fatal(err)
	}
	closed := false
	if kind == "mariadb" {
		closed = q.roomAgain(first)
	}
	none()
	all.Wait()
	if kind != "mariadb" {
		q.startEnded(first)
	}
	if cost := q.fullCost(closed, semiSync); cost.Outage < 3*time.Second || cost.Outage > time.Since(began) { // commits have to wait for so long before it is asked why
		t.Errorf("the receipt says that nobody took writes for %s", cost.Outage)
	}
	out := false // a MariaDB counts what it could not write; a MySQL that goes on writes it
	await(t, "it stays out, or comes back", func() bool {
		list, _ := q.members()
		out = list[0].Status == "FAULTY" && (list[0].Errant != "" || closed && strings.Contains(list[0].Fault, "no binary log"))
		return out || kind != "mariadb" && list[0].Status == "SECONDARY"
	})
	if out {
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
		t.Log(mustCommand(t, "receipt", "--group", "g", "--data", q.data))
		mustCommand(t, "group", "rebuild", "g", first.Name, "--data", q.data, "--yes")
	}
	q.whole()
}

// startEnded starts a MySQL whose disk was full: it ends itself when what waits for room is ended (binlog_error_action), unless that was written to the binary log before.
func (q *squad) startEnded(n *sandbox.Node) {
	q.Helper()
	await(q.T, "the old primary takes no writes", func() bool {
		select {
		case <-n.Ended():
			return true
		default:
			r, err := n.Query(q.Context(), "SELECT @@GLOBAL.read_only")
			return err == nil && *r[0].Rows[0][0] == "1"
		}
	})
	select {
	case <-n.Ended():
		if err := n.Start(q.Context()); err != nil {
			q.Fatal(err)
		}
	case <-time.After(5 * time.Second):
		q.Logf("%s went on", n.Name)
	}
}

// fill writes large rows, and rows of the ledger, until ctx ends or one of them fails.
func (q *squad) fill(ctx context.Context, n *sandbox.Node, all *sync.WaitGroup) {
	db := q.app(n)
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
}

// roomAgain waits until an old primary, a MariaDB, whose disk was full goes on. closed says that it writes no binary log any more: it was to begin another one as it was ended.
func (q *squad) roomAgain(old *sandbox.Node) (closed bool) {
	q.Helper()
	// While its own thread waits for room, which nobody can end, writes are kept from it by ending all sessions again and again.
	await(q.T, "the old primary takes no writes", func() bool { return !q.open(old) })
	await(q.T, "the old primary tells of its binary log", func() bool {
		ctx, stop := context.WithTimeout(q.Context(), 2*time.Second)
		defer stop()
		r, err := old.Query(ctx, "SHOW MASTER STATUS")
		closed = err == nil && len(r[0].Rows) == 0
		return err == nil
	})
	return closed
}

type fullReceipt struct {
	Outage         time.Duration `json:"outage_ns"`
	Verdict, Words string
	Contents       struct {
		Unseen       string
		Transactions []any
	}
}

// fullCost is what it cost that a primary's disk was full. What was counted is not called lost before it is found in a binary log: what was written as there was room again, nobody was
// told of either.
func (q *squad) fullCost(closed, semiSync bool) (r fullReceipt) {
	q.Helper()
	await(q.T, "a receipt that knows", func() bool {
		var list struct{ Receipts []fullReceipt }
		said := mustCommand(q.T, "receipt", "--group", "g", "--data", q.data, "-o", "json")
		if json.Unmarshal([]byte(said), &list) != nil || len(list.Receipts) != 1 {
			return false
		}
		r = list.Receipts[0]
		if r.Verdict == "lost" && (semiSync || len(r.Contents.Transactions) == 0) {
			q.Fatalf("the receipt says %s", r.Words)
		}
		torn := !semiSync && strings.Contains(r.Contents.Unseen, "could not be read") && strings.Contains(r.Words, "its disk was full") // it went on behind half an event
		return r.Verdict == "nothing_lost" || r.Verdict == "lost" || torn || closed && strings.Contains(r.Words, "writes no binary log any more")
	})
	q.Logf("%s: %s; nobody took writes for %s", r.Verdict, r.Words, r.Outage)
	if r.Verdict == "nothing_lost" && (!strings.Contains(r.Words, "zero acknowledged transactions lost") || strings.Contains(r.Words, "not write") == semiSync) {
		q.Errorf("the receipt says %s: %s", r.Verdict, r.Words)
	}
	return r
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
