package scenario_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
)

// TestFlipRings: an index that is dropped from a real server makes a class of statements slower by another plan. That is an event, an alert and advice
// (query.regressed), with the statement, how slow it is and was; it is over when the index, and with it the plan, is back. The plans are those of MariaDB's slow log: they are read each
// minute, where those that Risso takes itself are looked at again after ten.
func TestFlipRings(t *testing.T) {
	t.Parallel()
	n := single(t, "mariadb", "slow_query_log=ON", "long_query_time=0", "log_slow_verbosity=query_plan,explain")
	execSQL(t, n, "CREATE DATABASE shop; USE shop; CREATE TABLE shop.t (id INT PRIMARY KEY AUTO_INCREMENT, a INT, b CHAR(100), KEY ia (a)); INSERT INTO shop.t (a, b) SELECT seq, 'x' FROM seq_1_to_40000; ANALYZE TABLE shop.t")
	h, conf := newHook(t, "s3cret"), filepath.Join(tempDir(t), "risso.yaml")
	write(t, conf, fmt.Sprintf("alerts:\n  receivers:\n    - {name: hook, webhook: {url: %q, secret: s3cret}}\n  thresholds:\n    - {finding: plan.slower, for: 0s}\nservers:\n  - {name: db, dsn: %q}\n", h.URL, n.DSN))
	r := serve(t, dataDir(t), "--no-host", "--config", conf)
	db, err := n.DB()
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var load sync.WaitGroup
	load.Go(func() {
		for i := 1; ; i++ {
			select {
			case <-stop:
				db.Close()
				return
			case <-time.After(200 * time.Millisecond):
			}
			rows, err := db.Query(fmt.Sprintf("SELECT b FROM shop.t WHERE a = %d", i%1000))
			if err == nil {
				rows.Close()
			}
		}
	})
	defer load.Wait()
	defer close(stop)
	begun := time.Now().Truncate(time.Minute).Add(2 * time.Minute) // then there was a whole minute
	await(t, "a minute with the first plan", func() bool { return time.Now().After(begun.Add(5 * time.Second)) })
	execSQL(t, n, "ALTER TABLE shop.t DROP INDEX ia")
	event := r.awaitEvent(t, "db", fleet.EventPlan, nil)
	if !strings.Contains(event.Text, "the plan of a class of statements changed: select b from shop.t where a = ?") || event.Old == event.New {
		t.Errorf("got %+v, want the class and both plans", event)
	}
	key := "db/plan.slower/" + event.Subject
	a := h.fires(t, key)
	if !strings.Contains(a.What, "a class of statements has another plan since ") || !strings.HasSuffix(a.What, " on average: select b from shop.t where a = ?") || a.Value < 2 || a.Remedy != "ANALYZE TABLE `shop`.`t`" || a.Severity != fleet.SeverityWarning {
		t.Errorf("got %+v, want which class is slower, by how much, and the statement that renews its statistics", a)
	}
	t.Log(a.What)
	await(t, "query.regressed on db", func() bool { return slices.Equal(r.advisedOn(t, "query.regressed", event.Subject), []string{"db"}) })
	out, said, code := runRisso(t, nil, "advise", "--kept", "query.regressed", "--url", r.base)
	if code != 0 || !strings.Contains(out, "select b from shop.t where a = ?") || !strings.Contains(out, "ANALYZE TABLE `shop`.`t`") {
		t.Errorf("code %d, %s%s; want the class of statements, and what renews its statistics", code, out, said)
	}
	execSQL(t, n, "ALTER TABLE shop.t ADD INDEX ia (a)")
	h.ends(t, key)
	await(t, "no query.regressed", func() bool { return len(r.advisedOn(t, "query.regressed", "")) == 0 })
	if list := r.events(t, "db", fleet.EventPlan); len(list) != 2 || list[0].Old != list[1].New && list[0].New != list[1].Old {
		t.Errorf("got %+v, want the flip and the flip back", list)
	}
}
