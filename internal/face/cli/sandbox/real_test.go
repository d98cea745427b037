package sandbox

import (
	"context"
	"database/sql"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// box is a cluster of the test, with its connections.
type box struct {
	t   *testing.T
	s   *sandbox.Sandbox
	dbs map[*sandbox.Node]*sql.DB
}

func (b *box) turn(n *sandbox.Node, do sandbox.Turn) error {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 4*time.Minute)
	defer cancel()
	return turnNode(ctx, b.s, n, do)
}

// turned is turn, where it has to succeed.
func (b *box) turned(do sandbox.Turn, nodes ...*sandbox.Node) {
	b.t.Helper()
	for _, n := range nodes {
		if err := b.turn(n, do); err != nil {
			b.t.Fatalf("%s %s: %v: %s", do, n.Name, err, fleet.RemedyOf(err))
		}
	}
}

func (b *box) status(n *sandbox.Node, name string) string {
	var key, value string
	_ = b.dbs[n].QueryRowContext(b.t.Context(), "SHOW GLOBAL STATUS LIKE '"+name+"'").Scan(&key, &value) // it may be down
	return value
}

// refusedFor starts a node, which is refused for another one, and returns that.
func (b *box) refusedFor(n *sandbox.Node) *sandbox.Node {
	b.t.Helper()
	err := b.turn(n, sandbox.TurnStart)
	if err == nil {
		b.t.Fatalf("%s founds the cluster again; want it refused, since another one has more", n.Name)
	}
	_, name, _ := strings.Cut(fleet.RemedyOf(err), "start node ")
	name, _, _ = strings.Cut(name, " first")
	first, err2 := b.s.Node(name)
	if err2 != nil {
		b.t.Fatalf("%v: %s: %v", err, fleet.RemedyOf(err), err2)
	}
	return first
}

// TestClusterComesBack: a cluster of which all nodes crashed under load, and one that was stopped, goes on from the node that has all that was acknowledged, in its
// history; the others take what they lack.
func TestClusterComesBack(t *testing.T) {
	t.Parallel()
	b := &box{t: t, s: sandboxtest.Sandbox(t, sandbox.Options{Servers: []string{"mariadb"}, Topology: sandbox.TopologyGalera}), dbs: map[*sandbox.Node]*sql.DB{}}
	for _, n := range b.s.Nodes {
		db, err := n.DB()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		b.dbs[n] = db
	}
	one, two, three := b.s.Nodes[0], b.s.Nodes[1], b.s.Nodes[2]
	if _, err := b.dbs[one].ExecContext(t.Context(), "CREATE TABLE test.ledger (id INT PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	history := b.status(one, "wsrep_cluster_state_uuid")
	var mu sync.Mutex
	acknowledged := map[int]bool{}
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(acknowledged)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var writers sync.WaitGroup
	for i, n := range b.s.Nodes {
		writers.Go(func() {
			for id := i; ctx.Err() == nil; id += len(b.s.Nodes) {
				if _, err := b.dbs[n].ExecContext(ctx, "INSERT INTO test.ledger VALUES (?)", id); err == nil {
					mu.Lock()
					acknowledged[id] = true
					mu.Unlock()
				}
			}
		})
	}
	await.Until(t, func() bool { return count() > 100 }, "the ledger to grow")
	b.turned(sandbox.TurnKill, one)
	await.Until(t, func() bool { return b.status(two, "wsrep_cluster_size") == "2" }, "the others to go on")
	at := count()
	await.Until(t, func() bool { return count() > at+50 }, "the ledger to grow without node1")
	b.turned(sandbox.TurnKill, two, three)
	stop()
	writers.Wait()

	first := b.refusedFor(one)
	b.turned(sandbox.TurnStart, first, one, two, three)
	for _, n := range b.s.Nodes {
		if got := b.status(n, "wsrep_cluster_state_uuid"); got != history {
			t.Errorf("the history of %s is %s; want that of before, %s", n.Name, got, history)
		}
		await.Until(t, func() bool { return b.status(n, "wsrep_cluster_size") == "3" }, "%s to see three", n.Name)
		missing := 0
		for id := range acknowledged {
			var found int
			if err := b.dbs[n].QueryRowContext(t.Context(), "SELECT COUNT(*) FROM test.ledger WHERE id = ?", id).Scan(&found); err != nil {
				t.Fatal(err)
			}
			missing += 1 - found
		}
		if missing > 0 {
			t.Errorf("%s lacks %d of %d acknowledged rows", n.Name, missing, len(acknowledged))
		}
	}

	// Stopped in order, the last one is the first.
	b.turned(sandbox.TurnStop, one, two, three)
	if got := b.refusedFor(one); got != three {
		t.Errorf("after orderly shutdowns %s is to be the first; want node3, the last to stop", got.Name)
	}
	b.turned(sandbox.TurnRestart, three)
	b.turned(sandbox.TurnStart, one)
	if got := b.status(one, "wsrep_cluster_size"); got != "2" {
		t.Errorf("node1 sees %s members; want 2", got)
	}
}
