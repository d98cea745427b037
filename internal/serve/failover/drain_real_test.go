package failover

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/failover/carry"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/store/agree"
)

// TestDrainFound: replicas that would apply for minutes what they received are a finding, of which the page tells, too; once they have nothing to apply it is over.
func TestDrainFound(t *testing.T) {
	s := newStage(t, "mariadb", 2, group.Policy{Automatic: true})
	first, replicas := s.box.Nodes[0], s.box.Nodes[1:]
	const pause = "CREATE OR REPLACE FUNCTION test.pause() RETURNS INT DETERMINISTIC NO SQL RETURN SLEEP(%g)"
	s.sql(first, "SET GLOBAL log_bin_trust_function_creators = ON", "CREATE TABLE test.slow (id INT PRIMARY KEY, v INT)", "SET sql_log_bin = 0", fmt.Sprintf(pause, 0.0))
	for _, n := range replicas { // each transaction takes half a second there, as each server calls a function of its own
		await.Until(t, func() bool {
			return s.sql(n, "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_NAME = 'slow'") == "1"
		}, "the table on %s", n.Name)
		s.sql(n, "SET GLOBAL log_bin_trust_function_creators = ON", "SET sql_log_bin = 0", fmt.Sprintf(pause, 0.5))
	}
	s.watch(failover.DefaultPatience())
	c := sandboxtest.Connect(t, first)
	for i := range 400 {
		for _, q := range []string{"SET SESSION binlog_format = 'STATEMENT'", fmt.Sprintf("INSERT INTO test.slow VALUES (%d, test.pause())", i)} {
			if err := c.Exec(t.Context(), q); err != nil {
				t.Fatal(err)
			}
		}
	}
	await.Until(t, func() bool {
		return strings.Contains(s.finding("failover.unready").What, "a failover of g would wait for about ")
	}, "it to be said that a failover would wait")
	f := s.finding("failover.unready")
	if !strings.Contains(f.Why, " transactions to apply; nobody takes writes meanwhile, and after 60 s it is given up") {
		t.Errorf("got %+v", f)
	}
	h := &Hand{Docs: s.room.Docs, Limits: carry.DefaultLimits(), Lead: agree.Alone{}, Logger: slog.New(slog.DiscardHandler)}
	page, err := h.Forecast(t.Context(), "g")
	if d := page.Choice.Drain; err != nil || d == nil || d.Seconds == nil || *d.Seconds < drainLong.Seconds() || page.Choice.Handover == nil {
		t.Errorf("the page: got %+v, %v", page.Choice, err)
	}
	for _, n := range replicas {
		s.sql(n, "SET sql_log_bin = 0", fmt.Sprintf(pause, 0.0))
	}
	await.Until(t, func() bool { f = s.finding("failover.unready"); return f.What == "" }, "the finding to be over: %+v", &f)
}
