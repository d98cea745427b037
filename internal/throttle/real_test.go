package throttle_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/throttle"
)

// pair is a primary with a replica.
type pair struct {
	*testing.T
	nodes []*sandbox.Node
	stop  string // what servers call the end of replication
	start string
}

func newPair(t *testing.T, spec string) *pair {
	box := sandboxtest.Pair(t, spec)
	word := "REPLICA"
	if spec == "mariadb" {
		word = "SLAVE"
	}
	return &pair{t, box.Nodes, "STOP " + word, "START " + word}
}

func (p *pair) do(i int, statement string) {
	p.Helper()
	if _, err := p.nodes[i].Query(p.Context(), statement); err != nil {
		p.Fatalf("%s: %v", statement, err)
	}
}

func (p *pair) target(i int) mysql.Target {
	p.Helper()
	t, err := mysql.ParseTarget("root@unix(" + p.nodes[i].Socket + ")/?timeout=1s&readTimeout=1s")
	if err != nil {
		p.Fatal(err)
	}
	return t
}

// gate makes a gate that looks often.
func (p *pair) gate(l throttle.Limits) *throttle.Gate {
	p.Helper()
	l.Every = 20 * time.Millisecond
	g, err := throttle.New(p.Context(), l, p.target(0), p.target(1))
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(g.Close)
	return g
}

// says waits until the gate returns a reason that contains a word; "": until it is open.
func (p *pair) says(g *throttle.Gate, word string) {
	p.Helper()
	await.Until(p, func() bool {
		_, why := g.Held()
		return word == "" && why == "" || word != "" && strings.Contains(why, word)
	}, "the gate to say %q", word)
}

// closed checks that nothing passes now.
func (p *pair) closed(g *throttle.Gate) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), 50*time.Millisecond)
	defer cancel()
	if err := g.Pass(ctx, 1); err == nil {
		p.Error("the gate is open")
	}
}

func (p *pair) open(g *throttle.Gate) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), 2*time.Minute)
	defer cancel()
	if err := g.Pass(ctx, 1); err != nil {
		p.Error(err)
	}
}

// TestServers lets a replica lag and a server be busy.
func TestServers(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			p := newPair(t, spec)
			lag := p.gate(throttle.Limits{MaxLag: time.Second})
			p.open(lag)
			p.do(1, p.stop)
			p.says(lag, "does not replicate")
			p.closed(lag)
			p.do(1, p.start)
			p.says(lag, "")
			p.open(lag)
			if spec == "mariadb" { // what follows is the same for all
				testBehind(p, lag)
				testBusy(p)
				testHung(p, lag)
			}
		})
	}
}

// testBehind makes the replica wait for a lock, so that it is behind though both its threads run.
func testBehind(p *pair, lag *throttle.Gate) {
	p.do(0, "CREATE DATABASE g")
	p.do(0, "CREATE TABLE g.t (id INT PRIMARY KEY)")
	p.says(lag, "")
	db, err := p.nodes[1].DB()
	if err != nil {
		p.Fatal(err)
	}
	defer db.Close()
	await.Until(p, func() bool {
		_, err := db.ExecContext(p.Context(), "SELECT * FROM g.t")
		return err == nil
	}, "the table on the replica")
	c, err := db.Conn(p.Context())
	if err != nil {
		p.Fatal(err)
	}
	defer c.Close()
	if _, err := c.ExecContext(p.Context(), "LOCK TABLES g.t READ"); err != nil {
		p.Fatal(err)
	}
	p.do(0, "INSERT INTO g.t VALUES (1)")
	p.says(lag, "s behind")
	p.closed(lag)
	if _, err := c.ExecContext(p.Context(), "UNLOCK TABLES"); err != nil {
		p.Fatal(err)
	}
	p.says(lag, "")
	p.open(lag)
}

// testBusy runs statements on the primary. Sessions that are Risso's own do not count, nor does a replica's.
func testBusy(p *pair) {
	ctx, cancel := context.WithCancel(p.Context())
	defer cancel()
	const sessions = 12
	db, err := p.nodes[0].DB()
	if err != nil {
		p.Fatal(err)
	}
	defer db.Close()
	few := p.gate(throttle.Limits{MaxThreadsRunning: 8})
	own := p.gate(throttle.Limits{MaxThreadsRunning: 8, Own: 100})
	p.says(few, "")
	ended := make(chan error)
	for range sessions {
		go func() {
			_, err := db.ExecContext(ctx, "SELECT SLEEP(600)")
			ended <- err
		}()
	}
	p.says(few, "statements at once")
	p.closed(few)
	p.open(own)
	cancel()
	for range sessions {
		<-ended
	}
	endSleepers(p)
	p.says(few, "")
	p.open(few)
}

// endSleepers ends what is still asleep: a client that goes away is not noticed before.
func endSleepers(p *pair) {
	p.Helper()
	r, err := p.nodes[0].Query(p.Context(), "SELECT ID FROM information_schema.PROCESSLIST WHERE INFO = 'SELECT SLEEP(600)'")
	if err != nil {
		p.Fatal(err)
	}
	const gone = 1094 // it has just been noticed
	for _, row := range r[0].Rows {
		if _, err := p.nodes[0].Query(p.Context(), "KILL "+*row[0]); err != nil && mysql.ErrorNumber(err) != gone {
			p.Fatal(err)
		}
	}
}

// testHung stops the replica's process: what cannot be asked cannot be spared, so nothing passes until it answers again.
func testHung(p *pair, lag *throttle.Gate) {
	goOn := sandboxtest.Pause(p, p.nodes[1])
	p.says(lag, "cannot be queried")
	p.closed(lag)
	goOn()
	p.says(lag, "")
	p.open(lag)
}

// A server that cannot be asked is reported immediately, not waited for.
func TestUnreachable(t *testing.T) {
	target, err := mysql.ParseTarget("x@tcp(127.0.0.1:1)/?timeout=1s")
	if err != nil {
		t.Fatal(err)
	}
	if g, err := throttle.New(t.Context(), throttle.Limits{MaxLag: time.Second}, target); err == nil {
		g.Close()
		t.Error("a gate before a server that is not there")
	}
	g, err := throttle.New(t.Context(), throttle.Limits{MaxRate: 1 << 40}, target) // no server has to be asked
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if err := g.Pass(t.Context(), 1); err != nil {
		t.Error(err)
	}
}
