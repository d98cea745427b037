package scenario_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/explain/differ"
	"github.com/rissodb/risso/internal/explain/differ/trial"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestDiffUpgrade runs risso diff on a real server: what changed since a moment, and an upgrade with the statements of its slow log, by an
// account that may read all, by one that may read little, and interrupted.
func TestDiffUpgrade(t *testing.T) {
	t.Parallel()
	sandboxtest.Need(t, "mysql-8.0")
	sandboxtest.Need(t, "mysql-9.7")
	n := single(t, "mysql-8.0", "slow_query_log=ON", "long_query_time=0", "log_output=FILE", "slow_query_log_file=slow.log", "log_slow_admin_statements=ON")
	execSQL(t, n, "CREATE DATABASE `odd ``name`; CREATE TABLE `odd ``name`.`a.b``ü` (id INT PRIMARY KEY, `qualify` INT, `order by` INT, KEY k (`order by`));"+
		"INSERT INTO `odd ``name`.`a.b``ü` WITH RECURSIVE s AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM s WHERE n < 900) SELECT n, n, n % 9 FROM s;"+
		"ANALYZE TABLE `odd ``name`.`a.b``ü`; CREATE VIEW `odd ``name`.broken AS SELECT id FROM `odd ``name`.`a.b``ü`; ALTER TABLE `odd ``name`.`a.b``ü` RENAME COLUMN id TO nr;"+
		"CREATE DEFINER = nobody@nowhere PROCEDURE `odd ``name`.p() SELECT 1; CREATE PROCEDURE `odd ``name`.old_words() SHOW SLAVE STATUS; CREATE USER poor@'%' IDENTIFIED WITH mysql_native_password BY 'x9-Poor'; GRANT SELECT ON `odd ``name`.* TO poor@'%'")
	execSQL(t, n, "SELECT COUNT(*) FROM `odd ``name`.`a.b``ü` WHERE `order by` = 4; SHOW SLAVE STATUS")

	boxes := tempDirIn(t, servers)
	env := environment(tempDir(t), "RISSO_SANDBOX_DIR="+boxes, "XDG_CACHE_HOME="+cacheHome(t))
	diff := func(code int, out any, args ...string) {
		t.Helper()
		p := launch(t, env, append([]string{"diff", "--output", "json"}, args...)...)
		if got := p.code(t); got != code {
			t.Fatalf("risso diff %s: got code %d, want %d; it says %s", strings.Join(args, " "), got, code, p.err)
		}
		if err := json.Unmarshal([]byte(p.out.String()), out); err != nil {
			t.Fatal(err)
		}
	}
	diffSince(t, n, diff)
	log := filepath.Join(strings.TrimSpace(value(t, n, "SELECT @@datadir")), "slow.log")
	if _, err := os.Stat(log); err != nil {
		t.Fatal(err)
	}
	has := func(a trial.Answer, id, object string) bool {
		for _, p := range a.Problems {
			if p.ID == id && strings.Contains(p.Object, object) {
				return true
			}
		}
		return false
	}
	var a trial.Answer
	diff(4, &a, n.DSN, "--upgrade-to", "mysql-9.7", "--slow-log", log, "--fail-on", "error")
	if !has(a, "name.reserved", "qualify") || !has(a, "syntax.replication", "old_words") || !has(a, "syntax.replication", "show slave status") || has(a, "object.refused", "`p`") {
		t.Errorf("problems: got %+v, want the column, the procedure and the statement, and not the procedure whose definer is gone", a.Problems)
	}
	if !slices.ContainsFunc(a.NotTried, func(n fleet.Trouble) bool { return strings.Contains(n.What, "broken") }) {
		t.Errorf("not tried: got %+v, want the view that does not work", a.NotTried)
	}
	if a.Compared < 1 || slices.ContainsFunc(a.Unknown, func(u trial.PlanUnknown) bool { return strings.Contains(u.SQL, "= 4") }) {
		t.Errorf("plans: got %d compared, unknown %+v, want the plan of the SELECT known", a.Compared, a.Unknown)
	}

	if slices.ContainsFunc(a.Unknown, func(u trial.PlanUnknown) bool { return strings.Contains(u.SQL, "CREATE") }) {
		t.Errorf("unknown plans: got %+v, want none of statements that have no plan", a.Unknown)
	}

	a = trial.Answer{}
	poor := strings.Replace(n.DSN, n.DSN[:strings.Index(n.DSN, "@")], "poor:x9-Poor", 1)
	diff(0, &a, poor, "--upgrade-to", "mysql-9.7", "--slow-log", log)
	if !has(a, "name.reserved", "qualify") || !slices.ContainsFunc(a.NotTried, func(n fleet.Trouble) bool {
		return strings.Contains(n.What, "innodb_table_stats") && strings.HasPrefix(n.Remedy, "GRANT SELECT")
	}) || len(a.Unknown) == 0 {
		t.Errorf("an account that may read little: got %+v, not tried %+v, unknown %+v", a.Problems, a.NotTried, a.Unknown)
	}

	p := launch(t, env, "diff", n.DSN, "--upgrade-to", "mysql-9.7")
	await(t, "the server of the trial", func() bool {
		list, err := sandbox.List(boxes)
		return err == nil && len(list) == 1
	})
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := p.code(t); code == 0 {
		t.Errorf("after Ctrl-C: got code 0; it says %s", p.err)
	}
	if list, err := sandbox.List(boxes); err != nil || len(list) != 0 {
		t.Errorf("after Ctrl-C: got %d servers, %v; want none", len(list), err)
	}
}

// diffSince changes a setting of a server that risso serve watches, and asks what changed since.
func diffSince(t *testing.T, n *sandbox.Node, diff func(code int, out any, args ...string)) {
	t.Helper()
	r := serve(t, dataDir(t), "--no-host", "--dsn", n.DSN)
	instance := ""
	await(t, "the server in the fleet", func() bool {
		var f struct{ Instances []struct{ ID string } }
		r.get(t, "/api/fleet", nil, &f)
		if len(f.Instances) == 1 {
			instance = f.Instances[0].ID
		}
		return instance != ""
	})
	setting := func(name string) (value string) {
		var list struct {
			Variables []struct{ Name, Value string }
		}
		r.get(t, "/api/variables", url.Values{"instance": {instance}}, &list)
		for _, v := range list.Variables {
			if v.Name == name {
				value = v.Value
			}
		}
		return value
	}
	await(t, "the settings of the server", func() bool { return setting("sync_binlog") == "1" })
	r.awaitTicks(t, instance, 6)
	changed := time.Now()
	execSQL(t, n, "SET GLOBAL sync_binlog = 0")
	await(t, "the changed setting", func() bool { return setting("sync_binlog") == "0" })
	var report differ.Report
	diff(4, &report, n.DSN, "--url", r.base, "--fail-on", "data", "--since", fmt.Sprintf("%ds", int(time.Since(changed).Seconds())+3))
	if i := slices.IndexFunc(report.Differences, func(d differ.Difference) bool { return d.Name == "sync_binlog" }); i < 0 || report.Differences[i].A != "1" || report.Differences[i].B != "0" {
		t.Errorf("what changed since: got %+v, want sync_binlog from 1 to 0", report.Differences)
	}
}
