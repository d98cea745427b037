package protect

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/data/checksum"
	"github.com/rissodb/risso/internal/data/jobs"
	"github.com/rissodb/risso/internal/data/verdict"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/serve/config"
	"github.com/rissodb/risso/internal/store/state"
)

// checksumJob is a Risso whose clock is set by hand, with a primary and its replica.
type checksumJob struct {
	*testing.T
	facts *state.Store
	nodes []*sandbox.Node

	mu     sync.Mutex
	now    time.Time
	events []string
}

func newChecksumJob(t *testing.T, spec string) *checksumJob {
	box := sandboxtest.Pair(t, spec)
	facts, err := state.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { facts.Close() })
	c := &checksumJob{T: t, facts: facts, nodes: box.Nodes, now: time.Date(2026, 11, 21, 2, 0, 0, 0, time.UTC)}
	c.do(0, "CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY, state CHAR(1))", "CREATE TABLE shop.goods LIKE shop.orders", "INSERT INTO shop.orders VALUES (1, 'n'), (2, 'n'), (3, 'p')")
	password, err := box.Password()
	if err != nil {
		t.Fatal(err)
	}
	target, err := mysql.ParseTarget(fmt.Sprintf("risso:%s@tcp(127.0.0.1:%d)/", password, box.Nodes[0].Port))
	if err != nil {
		t.Fatal(err)
	}
	c.run(target)
	return c
}

func (c *checksumJob) clock() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *checksumJob) set(day, hour, minute int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = time.Date(2026, 11, day, hour, minute, 0, 0, time.UTC)
}

func (c *checksumJob) do(node int, statements ...string) {
	c.Helper()
	for _, q := range statements {
		if _, err := c.nodes[node].Query(c.Context(), q); err != nil {
			c.Fatalf("%s: %v", q, err)
		}
	}
}

// run runs the job as risso serve does, until the test ends.
func (c *checksumJob) run(primary mysql.Target) {
	p := &Guard{facts: c.facts, logger: slog.New(slog.DiscardHandler)}
	j, ok := p.job(config.Watched{Instance: fleet.Instance{ID: "db1", Name: "db1"}, Target: primary, Protect: &config.Protection{Protect: config.Protect{Checksum: "daily at 03:00"}}}, state.JobChecksum)
	if !ok {
		c.Fatal("there is no job for checksums")
	}
	runner, err := jobs.New(jobs.Options{Facts: c.facts, Jobs: []jobs.Job{j}, Logger: p.logger, Now: c.clock, Event: func(e fleet.Event) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.events = append(c.events, fmt.Sprintf("%s %s %s", e.Severity, e.Instance, e.Text))
	}})
	if err != nil {
		c.Fatal(err)
	}
	ctx, cancel := context.WithCancel(c.Context())
	ended := make(chan error, 1)
	go func() { ended <- runner.Run(ctx) }()
	c.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			c.Error(err)
		}
	})
	await.Until(c, func() bool {
		list, err := c.facts.Jobs(c.Context())
		return err == nil && len(list) == 1 && !list[0].NextDue.IsZero()
	}, "a job that knows when it is due")
}

// runs waits until so many runs have ended, and returns the last.
func (c *checksumJob) runs(n int) (last state.Run) {
	c.Helper()
	await.Until(c, func() bool {
		list, err := c.facts.Runs(c.Context(), state.RunQuery{Kind: state.JobChecksum})
		if err != nil || len(list) > n {
			c.Fatalf("%v: %d runs, not %d: %+v", err, len(list), n, list)
		}
		if len(list) == n {
			last = list[0]
		}
		return len(list) == n && last.Outcome != state.OutcomeRunning
	}, "the end of %d runs", n)
	return last
}

// findings are what the page says about the server.
func (c *checksumJob) findings() string {
	c.Helper()
	list, err := c.facts.Protections(c.Context())
	if err != nil || len(list) != 1 {
		c.Fatalf("%v: %+v", err, list)
	}
	words := ""
	for _, f := range verdict.Judge(verdict.Facts{Protection: list[0]}, &verdict.Want{}, c.clock()).Findings {
		words += fmt.Sprintf("%s: %s\n", f.ID, f.What)
	}
	return words
}

// TestChecksumJob runs checksums by schedule with a replica that is equal, differs in one row, and is stopped.
func TestChecksumJob(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			c := newChecksumJob(t, spec)
			where := fmt.Sprintf("risso@127.0.0.1:%d", c.nodes[1].Port)
			c.set(21, 3, 0)
			if r := c.runs(1); r.Outcome != state.OutcomeOK || r.Text != "2 tables with 3 rows on 1 replica: all are equal" {
				t.Errorf("got %+v; want Outcome state.OutcomeOK, Text \"2 tables with 3 rows on 1 replica: all are equal\"", r)
			}
			if w := c.findings(); strings.Contains(w, "checksum") {
				t.Errorf("all is equal, and the page says %q; want no \"checksum\" in it", w)
			}
			secretly := "SET sql_log_bin = 0; "
			if spec == "mysql-9.7" {
				secretly = "SET GLOBAL super_read_only = 0; " + secretly
			}
			c.do(1, secretly+"UPDATE shop.orders SET state = 'x' WHERE id = 2")
			c.set(22, 3, 0)
			want := "of 2 tables with 3 rows on 1 replica 1 table differs: shop.orders on " + where + ": differs, 1 with other values"
			r := c.runs(2)
			if r.Outcome != state.OutcomeFailed || r.Text != want || !strings.Contains(string(r.Result), `"different":1`) || strings.Contains(string(r.Result), `"x"`) {
				t.Errorf("got %+v; want Outcome state.OutcomeFailed, Text %v, \"\\\"different\\\":1\" in string(r.Result), no \"\\\"x\\\"\" in string(r.Result)",
					r, want)
			}
			c.set(22, 4, 0) // what was found is not looked for again before the next night
			if w := c.findings(); !strings.Contains(w, "protect.failed_checksum: the last checksum, at 03:00, found: "+want) {
				t.Errorf("got %q, want %q in it", w, "protect.failed_checksum: the last checksum, at 03:00, found: "+want)
			}
			c.mu.Lock()
			if last := c.events[len(c.events)-1]; last != "warning db1 checksum failed: "+want {
				t.Errorf("got %q, want last %v", c.events, "warning db1 checksum failed: "+want)
			}
			c.mu.Unlock()
			c.do(1, secretly+"UPDATE shop.orders SET state = 'n' WHERE id = 2")
			c.set(23, 3, 0)
			if r := c.runs(3); r.Outcome != state.OutcomeOK {
				t.Errorf("got %+v, want Outcome state.OutcomeOK", r)
			}
			if w := c.findings(); strings.Contains(w, "checksum") {
				t.Errorf("it is mended, and the page says %q; want no \"checksum\" in it", w)
			}
		})
	}
}

// What is unknown is not called equal, and not called different.
func TestCompared(t *testing.T) {
	on := func(v checksum.Verdict) checksum.Table {
		return checksum.Table{Schema: "s", Name: "t", On: []checksum.On{{Server: "r", Verdict: v}}}
	}
	for _, c := range []struct {
		tables []checksum.Table
		want   string
		failed bool
	}{
		{[]checksum.Table{on("equal"), on("filtered")}, "2 tables with 7 rows on 1 replica: all are equal", false},
		{[]checksum.Table{on("changing")}, "1 table with 7 rows on 1 replica: no difference; some rows changed each time they were read: s.t on r: changing", false},
		{[]checksum.Table{on("changing"), on("behind"), on("failed")}, "of 3 tables with 7 rows on 1 replica not all rows could be compared: s.t on r: changing; and 2 more", true},
		{[]checksum.Table{on("behind"), on("differs"), on("missing table")}, "of 3 tables with 7 rows on 1 replica 2 tables differ: s.t on r: differs; and 1 more", true},
	} {
		var says compared
		for _, table := range c.tables {
			says.table(table, t.Logf)
		}
		text, err := says.end(checksum.Result{Tables: int64(len(c.tables)), Rows: 7, Others: make([]checksum.Side, 1)})
		if text != c.want || (err != nil) != c.failed {
			t.Errorf("%q, %v", text, err)
		}
	}
}
