package gather_test

import (
	"testing"
	"time"

	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/explain/advise/gather"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestKeepUse: an index that was used before a restart of the server is not unused after it; without what is kept it would be.
func TestKeepUse(t *testing.T) {
	node := sandboxtest.Up(t, "mariadb", "performance_schema=ON")
	dir := t.TempDir()
	c := sandboxtest.Connect(t, node)
	for _, s := range []string{"CREATE DATABASE u", "CREATE TABLE u.t (id INT AUTO_INCREMENT PRIMARY KEY, a INT, b INT, KEY ka (a), KEY kb (b))", "INSERT INTO u.t (a, b) VALUES (1, 1), (2, 2)", "SELECT id FROM u.t FORCE INDEX (ka) WHERE a = 1"} {
		if err := c.Query(t.Context(), s, mysql.IgnoreRow); err != nil {
			t.Fatal(err)
		}
	}
	keep := func() {
		t.Helper()
		if err := gather.KeepUse(t.Context(), sandboxtest.Target(t, node), nil, dir); err != nil {
			t.Fatal(err)
		}
	}
	unused := func(kept string) (list []advise.Finding) {
		t.Helper()
		a, err := gather.Look(t.Context(), sandboxtest.Target(t, node), gather.Options{Unused: -time.Second, Kept: kept, Wanted: func(id string) bool { return id == "index.unused" }})
		if err != nil || len(a.Missing) > 0 {
			t.Fatal(a.Missing, err)
		}
		return a.Findings
	}
	keep()
	c.Close()
	if err := node.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := node.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	c = sandboxtest.Connect(t, node)
	if err := c.Query(t.Context(), "SELECT COUNT(*) FROM u.t IGNORE INDEX (ka, kb)", mysql.IgnoreRow); err != nil {
		t.Fatal(err)
	}
	if got := unused(dir); len(got) != 0 {
		t.Logf("hints keep both: %+v", got)
	}
	if err := c.Query(t.Context(), "TRUNCATE TABLE performance_schema.events_statements_summary_by_digest", mysql.IgnoreRow); err != nil { // so that no hint is known
		t.Fatal(err)
	}
	if got := unused(""); len(got) != 2 {
		t.Errorf("without what is kept: got %+v, want both indexes", got)
	}
	for range 2 { // with the counters as they are, and once they are read again
		if got := unused(dir); len(got) != 1 || got[0].Object != "u.t.kb" || got[0].Since.IsZero() {
			t.Errorf("with what is kept: got %+v, want kb only", got)
		}
		keep()
	}
}
