package galera

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/rissodb/risso/internal/avail/galera"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql/wsrep"
	"github.com/rissodb/risso/internal/sandbox"
)

// byCopy recovers and starts a node that crashed in a DDL statement: a copy of all data is told before and after, and it is one.
func (c *cluster) byCopy(at, n *sandbox.Node) {
	c.t.Helper()
	const words = "crashed in a DDL statement"
	if t := c.forecast(at, n); t.Kind != galera.SST || t.Sure != fleet.Certain || !strings.Contains(t.Words, words) {
		c.t.Errorf("%s crashed in a DDL statement: got %+v", n.Name, t)
	}
	d, text := c.decide(datadirs(n)...)
	if d.Choice != "" || !strings.Contains(text, n.Name+" does not tell where it is: it "+words) {
		c.t.Fatalf("%s alone: got %s", n.Name, text)
	}
	c.findPosition(n, text)
	d, _ = c.decide(datadirs(n)...)
	if !d.Nodes[0].Recovered.Known() {
		c.t.Fatalf("after --wsrep-recover: got %+v", d.Nodes[0])
	}
	if t := c.forecast(at, n); t.Kind != galera.SST || t.Sure != fleet.Certain || !strings.Contains(t.Words, words) {
		c.t.Errorf("%s is recovered: got %+v", n.Name, t)
	}
	before := logged(c.t, n)
	c.start(n, "--wsrep-start-position="+d.Nodes[0].Recovered.String())
	if got := came(c.t, n, before); got != galera.SST {
		c.t.Errorf("%s came by %s; want the SST that was told", n.Name, got)
	}
}

// alter runs an ALTER TABLE that takes some seconds, and lets something happen when given nodes are in the midst of it.
func (c *cluster) alter(at *sandbox.Node, in []*sandbox.Node, then func()) {
	c.t.Helper()
	c.exec(at, "DROP TABLE IF EXISTS shop.slow", "CREATE TABLE shop.slow (id INT PRIMARY KEY)", "INSERT INTO shop.slow SELECT seq FROM shop.seq_1_to_100")
	for _, n := range in { // else these are what it is in the midst of
		c.exec(n, "SET GLOBAL wsrep_sync_wait = 1")
		await.Until(c.t, func() bool {
			var rows int
			return c.dbs[n].QueryRowContext(c.t.Context(), "SELECT COUNT(*) FROM shop.slow").Scan(&rows) == nil && rows == 100
		}, "%s to have the table", n.Name)
		c.exec(n, "SET GLOBAL wsrep_sync_wait = 0")
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = c.dbs[at].ExecContext(c.t.Context(), "ALTER TABLE shop.slow ADD COLUMN h CHAR(128) AS (SHA2(REPEAT(id, 4000000), 512)) STORED, ALGORITHM=COPY") // its server may be killed
	})
	await.Until(c.t, func() bool {
		return !slices.ContainsFunc(in, func(n *sandbox.Node) bool {
			b, err := os.ReadFile(filepath.Join(n.Datadir, "grastate.dat"))
			return err != nil || !strings.Contains(string(b), wsrep.Undefined)
		})
	}, "the members to be in the midst of the statement")
	then()
	wg.Wait()
}

// inDDL: a node is killed in the midst of a DDL statement: the cluster goes on, and the node has no place in its history any more.
func (c *cluster) inDDL() {
	first, gone := c.s.Nodes[0], c.s.Nodes[2]
	c.alter(first, []*sandbox.Node{gone}, func() { c.kill(gone) })
	c.awaitStatus(first, "wsrep_cluster_size", "2")
	c.byCopy(first, gone)
	c.awaitStatus(first, "wsrep_cluster_size", "3")
}

var printedMark = regexp.MustCompile(`sed -i '[^']*' [^ ;]+`)

// allInDDL: all are killed in the midst of one: none has a history, none is chosen, and the one that is told to be the furthest by its data has all that was acknowledged.
func (c *cluster) allInDDL() {
	acknowledged := c.ledger(2_000_000, func(count func() int) {
		await.Until(c.t, func() bool { return count() > 100 }, "the ledger to grow")
		c.alter(c.s.Nodes[0], c.s.Nodes, func() { c.kill(c.s.Nodes...) })
	})
	d, text := c.decide(datadirs(c.s.Nodes...)...)
	if d.Choice != "" || len(d.Refused) != 3 || strings.Count(text, "crashed in a DDL statement") != 3 || d.Automatic != "" {
		c.t.Fatalf("all crashed in a DDL statement: got %s", text)
	}
	for i, n := range c.s.Nodes {
		c.findPosition(n, d.Refused[i].Remedy)
	}
	if d, text = c.decide(datadirs(c.s.Nodes...)...); d.Choice != "" || !strings.Contains(text, "no node has a history") || strings.Count(text, "its data are at") != 3 {
		c.t.Fatalf("all are recovered: got %s", text)
	}
	_, rest, _ := strings.Cut(text, "to keep those of ")
	name, _, _ := strings.Cut(rest, ": start ")
	chosen, err := c.s.Node(name)
	if err != nil {
		c.t.Fatalf("%v: %s", err, text)
	}
	mark := printedMark.FindString(text)
	if out, err := exec.CommandContext(c.t.Context(), "sh", "-c", mark).CombinedOutput(); err != nil {
		c.t.Fatalf("%q: %v: %s", mark, err, out)
	}
	c.start(chosen, "--wsrep-new-cluster")
	for _, n := range c.s.Nodes {
		if n == chosen {
			continue
		}
		at := logged(c.t, n)
		c.start(n)
		if got := came(c.t, n, at); got != galera.SST {
			c.t.Errorf("%s came by %s; want a copy of all data", n.Name, got)
		}
	}
	for _, n := range c.s.Nodes {
		c.awaitStatus(n, "wsrep_cluster_size", "3")
		c.kept(n, acknowledged)
	}
}

// inconsistent: a member has a row that was not replicated, and another one writes it: the group puts it out, and it is told what it is; a restart mends it, as is said.
func (c *cluster) inconsistent() {
	first, bad := c.s.Nodes[0], c.s.Nodes[1]
	conn, err := c.dbs[bad].Conn(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	defer conn.Close()
	for _, s := range []string{"SET wsrep_on = OFF", "INSERT INTO shop.stock VALUES (500, 1)"} {
		if _, err := conn.ExecContext(c.t.Context(), s); err != nil {
			c.t.Fatalf("%s: %v", s, err)
		}
	}
	c.exec(first, "INSERT INTO shop.stock VALUES (500, 0)")
	c.awaitStatus(bad, "wsrep_local_state_comment", "Inconsistent")
	c.awaitStatus(first, "wsrep_cluster_size", "2")
	r := c.report(bad, "--look", "0")
	if f := find(r, "galera.inconsistent", bad.Name); f == nil || f.Statement != "" || find(r, "galera.non_primary", bad.Name) != nil {
		c.t.Errorf("its data differ: got %+v", r.Findings)
	}
	if d, text := c.decide("--dsn", c.dsn(bad)); d.Choice != "" || d.Nodes[0].Blank != galera.BlankDiffers {
		c.t.Errorf("its data differ: got %s", text)
	}
	if err := bad.Stop(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	if t := c.forecast(first, bad); t.Kind != galera.SST || t.Sure != fleet.Certain || !strings.Contains(t.Words, "data differ") {
		c.t.Errorf("its data differ, and it is down: got %+v", t)
	}
	at := logged(c.t, bad)
	c.start(bad)
	if got := came(c.t, bad, at); got != galera.SST {
		c.t.Errorf("it came by %s; want a copy of all data", got)
	}
	c.awaitStatus(first, "wsrep_cluster_size", "3")
}
