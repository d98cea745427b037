package scenario_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/watch/alert"
)

// fires waits until a receiver was told that an alert fires, and returns it as it was told.
func (h *hook) fires(t *testing.T, key string) alert.Alert {
	t.Helper()
	await(t, "the alert "+key, func() bool { return slices.Contains(h.told(), "firing "+key) })
	return h.last(key)
}

// ends waits until a receiver was told that an alert is over.
func (h *hook) ends(t *testing.T, key string) {
	t.Helper()
	await(t, "the end of "+key, func() bool { return slices.Contains(h.told(), "resolved "+key) })
}

// TestProtectAlerts: of a real primary and its replica, that no backup was proven, that replicas differ, that a backup failed, and that the
// mirror of binary logs is behind, each arrive with what, since when, and what to do; and that each is over, once that was done.
func TestProtectAlerts(t *testing.T) {
	t.Parallel()
	s := up(t, sandbox.Options{Name: "s", Servers: []string{"mariadb"}, Topology: sandbox.TopologyReplication, Replicas: 1})
	primary, replica := s.Nodes[0], s.Nodes[1]
	execSQL(t, primary, `CREATE USER guard@'%' IDENTIFIED BY 'pw'; GRANT ALL ON *.* TO guard@'%'; CREATE DATABASE shop;
		CREATE TABLE shop.orders (id INT PRIMARY KEY, v INT); INSERT INTO shop.orders VALUES (1, 1), (2, 2), (3, 3)`)
	await(t, "the rows are on the replica", func() bool {
		return value(t, replica, "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'shop'") == "1" && value(t, replica, "SELECT COUNT(*) FROM shop.orders") == "3"
	})
	h, dir := newHook(t, "s3cret"), tempDir(t)
	place, conf := filepath.Join(dir, "backup"), filepath.Join(dir, "risso.yaml")
	write(t, conf, fmt.Sprintf(`
alerts:
  receivers:
    - {name: hook, webhook: {url: %q, secret: s3cret}}
servers:
  - name: shop
    dsn: guard:pw@tcp(127.0.0.1:%d)/
    protect: {place: %s, schedule: daily at 02:00, checksum: weekly on sunday at 05:00, mirror: true}
`, h.URL, primary.Port, place))
	env := environment(tempDir(t), "RISSO_SANDBOX_DIR="+filepath.Join(dir, "sb"), "XDG_CACHE_HOME="+cacheHome(t)) // one home: the key that signs is the one that is trusted
	r := serveEnv(t, env, filepath.Join(dir, "data"), "--no-host", "--config", conf)
	ran := func(job, outcome string) {
		t.Helper()
		before := len(strings.Fields(r.protected(t, "shop").outcomes(job)))
		r.start(t, "shop/"+job)
		await(t, job+" is "+outcome, func() bool {
			got := strings.Fields(r.protected(t, "shop").outcomes(job))
			return len(got) > before && got[0] == outcome
		})
	}
	do := func(remedy string) (said string, code int) {
		t.Helper()
		made := launch(t, env, strings.Fields(remedy)[1:]...)
		code = made.code(t)
		return made.out.String() + made.err.String(), code
	}

	ran("backup", "ok")
	unproven := h.fires(t, "shop/protect.unproven")
	if !strings.Contains(unproven.What, "no backup was ever proven") || unproven.Remedy != "risso drill --from "+place {
		t.Errorf("got %+v, want that no backup was proven, and the command of a drill", unproven)
	}

	execSQL(t, replica, "SET SESSION sql_log_bin = 0; SET GLOBAL read_only = OFF; UPDATE shop.orders SET v = 7 WHERE id = 2")
	ran("checksum", "failed")
	differs := h.fires(t, "shop/protect.failed_checksum")
	if !strings.Contains(differs.What, "1 table differs: shop.orders") || differs.Remedy != "risso checksum --dsn shop --config "+conf {
		t.Errorf("got %+v, want which table differs, and the command that lists the rows", differs)
	}

	if slices.Contains(h.told(), "firing shop/protect.mirror") {
		t.Errorf("got %q, want no word of the mirror while it begins", h.messages())
	}
	execSQL(t, primary, "REVOKE SELECT, REPLICATION SLAVE ON *.* FROM guard@'%'")
	execSQL(t, primary, "KILL USER guard")
	ran("backup", "failed")
	failed := h.fires(t, "shop/protect.failed_backup")
	if !strings.Contains(failed.What, "the last backup failed at ") || !strings.Contains(failed.What, "GRANT SELECT") || failed.Remedy != "risso backup --dsn shop --config "+conf+" --to "+place {
		t.Errorf("got %+v, want why the backup failed, and the command that makes one", failed)
	}
	behind := h.fires(t, "shop/protect.mirror")
	t.Logf("%s; next: %s; why: %s; all: %q", behind.What, behind.Remedy, behind.Why, h.messages())
	if !strings.Contains(behind.What, "the mirror of binary logs is 2 min behind") || !strings.Contains(behind.Why, "Access denied for user 'guard'") || behind.Remedy != "risso doctor --for serve,follow --dsn shop --config "+conf {
		t.Errorf("got %+v, want how far the mirror is behind, and what keeps it from following", behind)
	}
	if list := h.messages(); !strings.Contains(list[len(list)-1], "the mirror of binary logs") {
		t.Errorf("got %q, want what is new first", list)
	}

	execSQL(t, primary, "GRANT SELECT, REPLICATION SLAVE ON *.* TO guard@'%'")
	if said, code := do(failed.Remedy); code != 0 {
		t.Errorf("%s: got code %d, %s, want it to make a backup", failed.Remedy, code, said)
	}
	if said, code := do(unproven.Remedy); code != 0 {
		t.Errorf("%s: got code %d, %s, want it to prove a backup", unproven.Remedy, code, said)
	}
	if said, code := do(differs.Remedy); code != 4 || !strings.Contains(said, "shop.orders") {
		t.Errorf("%s: got code %d, %s, want the row that differs", differs.Remedy, code, said)
	}
	execSQL(t, replica, "SET SESSION sql_log_bin = 0; UPDATE shop.orders SET v = 2 WHERE id = 2")
	ran("checksum", "ok")
	ran("verify", "ok") // after a job, what is at the place is looked at
	for _, id := range []string{"failed_backup", "unproven", "failed_checksum", "mirror"} {
		h.ends(t, "shop/protect."+id)
	}
	if len(h.bad) > 0 {
		t.Errorf("bad messages: %q", h.bad)
	}
}
