package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/store/state"
)

// answerRun is a command line, and which of the answers it gives.
type answerRun struct {
	answer, line string // PLACE, SECOND, DSN, REPLICA, DIR, GTID and BACKUP are replaced by those of the test
	code         int
}

// answerRuns are run in this order: what one makes the next needs.
var answerRuns = []answerRun{
	{"version", "version", 0},
	{"doctor", "doctor --dsn DSN --data DIR/data --listen 127.0.0.1:0", 0},
	{"accounts", "accounts --dsn DSN --budget 100ms", 0},
	{"accounts rotate", "accounts rotate risso@% --dsn DSN --dry-run", 0},
	{"galera", "galera --dsn CLUSTER --look 0", 0},
	{"galera plan", "galera plan --nodes 5 --dcs 2,2,1", 0},
	{"galera bootstrap", "galera bootstrap --dsn CLUSTER", 1},
	{"grants", "grants --dsn DSN --for serve,backup", 0},
	{"config check", "config check DIR/risso.yaml", 0},
	{"token create", "token create grafana --data DIR/data", 0},
	{"token create", "token create ci --role change --only server=db1 --expires 90d --data DIR/data", 0},
	{"token create", "token create old --role act --data DIR/data", 0},
	{"user add", "user add ann --role admin --password-file DIR/password.txt --data DIR/data", 0},
	{"user role", "user role ann failover --only group=shop* --data DIR/data", 0},
	{"user password", "user password ann --password-file DIR/password.txt --data DIR/data", 0},
	{"user logout", "user logout ann --data DIR/data", 0},
	{"user list", "user list --data DIR/data", 0},
	{"user remove", "user remove ann --data DIR/data", 0},
	{"audit actions", "audit actions --data DIR/data", 0},
	{"token list", "token list --data DIR/data", 0},
	{"token revoke", "token revoke grafana --data DIR/data", 0},
	{"state backup", "state backup DIR/facts --data DIR/data", 0},
	{"state restore", "state restore DIR/facts --data DIR/restored", 0},
	{"controller init", "controller init --name c1 --address 127.0.0.1:1 --data DIR/restored", 0},
	{"controller leave", "controller leave --data DIR/restored", 0},
	{"controller list", "controller list --data CONTROLLER", 0},
	{"controller invite", "controller invite DIR/invitation --data CONTROLLER", 0},
	{"controller join", "controller join DIR/invitation --name c9 --address 127.0.0.1:1 --data DIR/joined", 0},
	{"controller lead", "controller lead c2 --data CONTROLLER", 0},
	{"controller remove", "controller remove c1 --data CONTROLLER", 0},
	{"token off", "token off --data DIR/data", 0},
	{"gtid count", "gtid count 3e11fa47-71ca-11e1-9e33-c80aa9429562:1-9", 0},
	{"gtid count", "gtid normalize 0-1-5", 0},
	{"gtid errant", "gtid errant --dsn REPLICA --source DSN", 0},
	{"gtid errant", "gtid errant --dsn REPLICA", 1}, // nobody else was asked
	{"gtid repair", "gtid repair --dsn REPLICA --source DSN --dry-run", 0},
	{"gtid back", "gtid back --dsn REPLICA --state DIR/gtid", 0},
	{"gtid where", "gtid where 0-1-1 --dsn REPLICA --dsn DSN", 0},
	{"gtid intersect", "gtid intersect 3e11fa47-71ca-11e1-9e33-c80aa9429562:1-9 3e11fa47-71ca-11e1-9e33-c80aa9429562:7", 0},
	{"gtid normalize", "gtid normalize 3e11fa47-71ca-11e1-9e33-c80aa9429562:1:2", 0},
	{"gtid subset", "gtid subset 0-1-7 0-1-5", 1},
	{"gtid subtract", "gtid subtract 0-1-5,0-2-7 0-1-6", 0},
	{"gtid union", "gtid union 0-1-5 0-1-7", 0},
	{"sandbox servers", "sandbox servers", 0},
	{"sandbox up", "sandbox up answers", 0},
	{"sandbox list", "sandbox list", 0},
	{"sandbox exec", "sandbox exec answers -o json -- 'SELECT 1, NULL; DO 1'", 0},
	{"sandbox stop", "sandbox stop --sandbox answers NODE", 0},
	{"sandbox start", "sandbox start --sandbox answers NODE", 0},
	{"sandbox kill", "sandbox kill --sandbox answers NODE", 0},
	{"sandbox restart", "sandbox restart --sandbox answers NODE", 0},
	{"sandbox down", "sandbox down answers", 0},
	{"top", "top --dsn DSN --count 2", 0},
	{"check", "check freshness --dsn DSN --look 4s", 0},
	{"top --at", "top --at 10m --url MOMENTS", 0},
	{"digest", "digest DIR/slow.log", 0},
	{"digest", "digest --dsn DSN --for 1s", 0},
	{"digest --plan-parallel", "digest --plan-parallel DIR/slow.log", 0},
	{"explain", "explain 'SELECT * FROM shop.orders o JOIN shop.orders p USING (id) WHERE o.v > 1 ORDER BY p.v' --dsn DSN", 0},
	{"advise", "advise --dsn DSN", 0},
	{"advise --checks", "advise --checks", 0},
	{"advise prove", "advise prove index.redundant:shop.orders.kw --dsn DSN --slow-log DIR/selects.log --pairs 4 --state DIR/advise", 0},
	{"index retire", "index retire shop.orders.kw --dsn DSN --yes --state DIR/index", 0},
	{"index check", "index check --dsn DSN --state DIR/index", 0},
	{"index list", "index list --state DIR/index", 0},
	{"index drop", "index drop shop.orders.kw --dsn DSN --state DIR/index", 0},
	{"index back", "index back shop.orders.kw --dsn DSN --state DIR/index", 0},
	{"diff", "diff DSN DSN --schema", 0},
	{"diff three and more servers", "diff DSN DSN DSN", 0},
	{"diff --save", "diff DSN --save DIR/described.json --schema", 0},
	{"diff --upgrade-to", "diff DIR/described.json --upgrade-to mysql-8.4", 0},
	{"alter plan", "alter plan --dsn DSN 'ALTER TABLE shop.orders ALTER v SET DEFAULT 5'", 0},
	{"alter run", "alter run --dsn DSN --yes 'ALTER TABLE shop.orders ALTER v SET DEFAULT 5'", 0},
	{"alter status", "alter status --dsn DSN", 0},
	{"lag", "lag --dsn REPLICA --source DSN --for 300ms", 0},
	{"publish haproxy", "publish haproxy --group shop --member db1=127.0.0.1:3306 --member db2=127.0.0.1:3307", 0},
	{"publish proxysql", "publish proxysql --group shop --member db1=127.0.0.1:3306 --member db2=127.0.0.1:3307 --by-read-only", 0},
	{"semisync on", "semisync on --dsn DSN --replica REPLICA --yes --state DIR/semisync", 0},
	{"semisync status", "semisync status --dsn DSN --replica REPLICA --measure-commits 2", 0},
	{"semisync off", "semisync off --dsn DSN --replica REPLICA --yes --state DIR/semisync", 0},
	{"agent --once", "agent --once --group g --member db1 --server URL --dsn DSN", 1},
	{"health --ask", "health --ask /primary --dsn DSN", 0},
	{"route status", "route status --status ROUTER", 0},
	{"map --faults", "map --faults --dsn DSN", 0},
	{"size", "size --dsn DSN", 0},
	{"topology", "topology --dsn DSN", 0},
	{"topology codes", "topology codes", 0},
	{"topology --url", "topology --url URL", 0},
	{"trace no connection", "trace --dsn DSN", 0},
	{"trace --dry-run", "trace --dsn DSN --enable --dry-run CONNECTION", 0},
	{"trace CONNECTION", "trace --dsn DSN --enable --for 1s --state DIR/state CONNECTION", 0},
	{"trace --restore", "trace --dsn DSN --restore --state DIR/state", 0},
	{"backup --dry-run", "backup --dsn DSN --to PLACE --dry-run", 0},
	{"backup", "backup --dsn DSN --to PLACE", 0},
	{"backup key", "backup key", 0},
	{"backup list", "backup list --from PLACE", 0},
	{"backup show", "backup show --from PLACE --all", 0},
	{"backup copy", "backup copy --from PLACE --to SECOND", 0},
	{"backup accept", "backup accept --from PLACE BACKUP", 0},
	{"verify", "verify --from PLACE", 0},
	{"binlog follow", "binlog follow --dsn DSN --to PLACE --once", 0},
	{"binlog list", "binlog list --from PLACE", 0},
	{"binlog search", "binlog search --from PLACE --table shop.orders", 0},
	{"appliers", "appliers --from PLACE", 0},
	{"appliers --live", "appliers --live --for 300ms --dsn REPLICA", 0},
	{"binlog undo", "binlog undo --from PLACE --gtid GTID", 0},
	{"binlog apply", "binlog apply --from PLACE --into REPLICA --after GTID --dry-run", 0},
	{"binlog purge", "binlog purge --from PLACE --keep 1d --dry-run", 0},
	{"drill", "drill --from PLACE --no-roll", 0},
	{"restore --into, --sandbox", "restore --from PLACE --into DSN --schema shop --rename shop=shop2 --dry-run", 0},
	{"restore --into, --sandbox", "restore --from PLACE --into DSN --schema shop --rename shop=shop2", 0},
	{"restore --forget", "restore --forget --into DSN", 0},
	{"checksum", "checksum --dsn DSN --replica REPLICA --schema shop", 0},
	{"replica detach", "replica detach r --dsn p=DSN --dsn r=REPLICA --yes --state DIR/replica", 0},
	{"replica move", "replica move r --below p --dsn p=DSN --dsn r=REPLICA --yes --state DIR/replica", 0},
	{"replica delay", "replica delay r 1h --dsn r=REPLICA --yes --state DIR/replica", 0},
	{"replica delay", "replica delay r 0 --dsn r=REPLICA --yes --state DIR/replica", 0},
	{"replica detach", "replica detach r --dsn r=REPLICA --yes --state DIR/replica", 0},
	{"replica attach", "replica attach r --dsn p=DSN --dsn r=REPLICA --yes --state DIR/replica", 0},
	{"replica rebuild", "replica rebuild r --dsn p=DSN --dsn r=REPLICA --yes --state DIR/replica", 0},
	{"replica back", "replica back --dsn r=REPLICA --state DIR/replica", 0},
	{"group create", "group create g --dsn p=DSN --dsn r=REPLICA --replication-user repl --replication-password-file DIR/repl --data DIR/groups", 0},
	{"group list", "group list --data DIR/groups", 0},
	{"group show", "group show g --data DIR/groups", 0},
	{"group set-status", "group set-status g r SPARE --data DIR/groups", 0},
	{"group set-weight", "group set-weight g r 0.5 --data DIR/groups", 0},
	{"group set-rule", "group set-rule g r prefer --data DIR/groups", 0},
	{"group set-center", "group set-center g r east --data DIR/groups", 0},
	{"group set-policy", "group set-policy g --pause 30m --center east --data DIR/groups", 0},
	{"group set-access", "group set-access g --dsn r=REPLICA --data DIR/groups", 0},
	{"shard define", "shard define m --kind list --keys text --table shop.orders:v --shard a=g@DE,FR --data DIR/groups", 0},
	{"shard add", "shard add m b --group g --values US --data DIR/groups", 0},
	{"shard list", "shard list --data DIR/groups", 0},
	{"shard lookup", "shard lookup m US --data DIR/groups", 0},
	{"shard remove", "shard remove m b --data DIR/groups", 0},
	{"failover", "failover --group g --to r --dry-run --data DIR/groups", 1},
	{"switchover", "switchover --group g --to r --yes --data DIR/groups", 0},
	{"switchover", "switchover --group g --to p --yes --data DIR/groups", 0},
	{"group promote", "group promote g r --yes --data DIR/groups", 0},
	{"group demote", "group demote g --yes --data DIR/groups", 0},
	{"group promote", "group promote g p --yes --data DIR/groups", 0},
	{"receipt", "receipt --group g --data DIR/groups", 0},
	{"receipt apply", "receipt apply --group g --dry-run --data DIR/groups", 1},
	{"group health", "group health g --data DIR/groups", 0},
	{"group prepare", "group prepare g --dry-run --data DIR/groups", 0},
	{"group set-status", "group set-status g r FAULTY --data DIR/groups", 0},
	{"group rebuild", "group rebuild g r --dry-run --data DIR/groups --state DIR/rebuild", 0},
	{"group rebuilds", "group rebuilds g --data DIR/groups", 0},
	{"group set-status", "group set-status g r SPARE --data DIR/groups", 0},
	{"group deactivate", "group deactivate g --data DIR/groups", 0},
	{"group activate", "group activate g --data DIR/groups", 0},
	{"failover codes", "failover codes", 0},
	{"failover resume", "failover resume --group g --data DIR/groups", 0},
	{"chaos --dry-run", "chaos --group g --on g --yes-really --data DIR/groups --fault kill-replica=true --count 1 --dry-run", 0},
	{"chaos", "chaos --group g --on g --yes-really --data DIR/groups --fault kill-replica=true --count 1 --yes --dir DIR/chaos", 0},
	{"chaos verify", "chaos verify DIR/chaos/certificate.html", 0},
	{"chaos heal", "chaos heal DIR/chaos", 0},
	{"group remove", "group remove g r --data DIR/groups", 0},
	{"group add", "group add g --dsn r=REPLICA --data DIR/groups", 0},
	{"backup prune", "backup prune --from PLACE --keep-last 1 --dry-run", 0},
	{"backup --physical --dry-run", "backup --physical --dsn DSN --to DIR/files --dry-run", 0},
	{"backup --physical", "backup --physical --dsn DSN --to DIR/files", 0},
	{"backup list", "backup list --from DIR/files", 0},
	{"restore --datadir --dry-run", "restore --from DIR/files --datadir DIR/datadir --dry-run", 0},
	{"restore --datadir", "restore --from DIR/files --datadir DIR/datadir", 0},
	{"restore --sandbox of a physical backup", "restore --from DIR/files --sandbox files", 0},
	{"sandbox down", "sandbox down files", 0},
	{"advise --kept", "advise --kept --also all --url URL", 0},
	{"advise accept", "advise accept schema.no_pk shop.log --reason known --url URL", 0},
	{"advise postpone", "advise postpone schema.no_pk shop.log --server gone --for 30d --reason known --url URL", 0},
	{"advise silence", "advise silence index.* --reason known --url URL", 0},
	{"advise undo", "advise undo schema.no_pk shop.log --url URL", 0},
	{"check datadir", "check datadir DIR", 3},
	{"check advice", "check advice --url URL", 1},
	{"alert list", "alert list --url URL", 0},
	{"alert ack", "alert ack gone/server.down --url URL", 0},
	{"alert history", "alert history --url URL", 0},
	{"alert replay", "alert replay server.* --url URL", 0},
	{"alert rules check", "alert rules check DIR/rules.yml", 0},
	{"alert rules list", "alert rules list --url URL", 0},
	{"alert silence", "alert silence --server gone --for 1h --reason known --url URL", 0},
	{"alert unsilence", "alert unsilence 1 --url URL", 0},
	{"alert test", "alert test nobody --url URL", 0},
	{"event", "event 'deploy 1.4' --url URL", 0},
	{"events", "events --url URL", 0},
	{"events --after", "events --after 1 --url URL", 0},
	{"events --findings", "events --findings --url URL", 0},
	{"incident list", "incident list --url URL", 0},
	{"incident show", "incident show --url URL", 0},
	{"bench list", "bench list", 0},
	{"bench prepare", "bench prepare read_write --dsn DSN/sbtest --table-size 100 --yes", 0},
	{"bench run", "bench run read_write --dsn DSN/sbtest --table-size 100 --for 300ms --yes --ledger --threads 2", 0},
	{"bench report one file", "bench report DIR/run.json", 0},
	{"bench report several files", "bench report DIR/run.json DIR/run.json", 0},
	{"bench compare --dry-run", "bench compare point_select --dsn DSN/sbtest --table-size 100 --set-a max_connections=100 --set-b max_connections=120 --dry-run --yes", 0},
	{"bench compare --restore", "bench compare --restore --dsn DSN --state DIR/state", 0},
	{"bench compare", "bench compare point_select --dsn DSN/sbtest --table-size 100 --set-a max_connections=100 --set-b max_connections=120 --runs 5 --for 100ms --warmup 0s --yes --state DIR/state", 0},
	{"bench scale", "bench scale point_select --dsn DSN/sbtest --table-size 100 --threads 1,2,3,4 --runs 2 --for 100ms --warmup 0s --yes", 0},
	{"bench cleanup", "bench cleanup read_write --dsn DSN/sbtest --yes", 0},
	{"bench prepare", "bench prepare ontime --dsn DSN/sbtest --scale 0.001 --yes", 0},
	{"bench check", "bench check ontime --dsn DSN/sbtest --scale 0.001", 0},
	{"bench matrix --dry-run", "bench matrix DIR/m.yaml --dry-run", 0},
	{"bench matrix", "bench matrix DIR/m.yaml", 0},
}

// TestJSONAnswers runs every command with -o json on a real server and holds what it wrote against docs/json.schema.json.
func TestJSONAnswers(t *testing.T) {
	t.Parallel()
	pair := sandboxtest.Pair(t, "mariadb", "performance_schema=ON", "performance_schema_consumer_events_statements_current=ON", "binlog_row_metadata=FULL")
	n, replica, dir := pair.Nodes[0], pair.Nodes[1], t.TempDir()
	schemas := compileSchema(t)
	db := openNode(t, n)
	for _, q := range []string{"CREATE DATABASE sbtest", "CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY, v INT, KEY kv (v), KEY kw (v))", "INSERT INTO shop.orders VALUES (1, 1), (2, 2)",
		"CREATE USER repl@'%' IDENTIFIED BY 'Secret-1'", "GRANT REPLICATION SLAVE ON *.* TO repl@'%'", "CREATE VIEW shop.v AS SELECT * FROM shop.orders", "CREATE PROCEDURE shop.p() SELECT 1"} {
		mustExec(t, db, q)
	}
	for name, text := range map[string]string{
		"repl":         "Secret-1\n",
		"password.txt": "correct horse battery staple\n",
		"rules.yml":    "groups: [{name: g, rules: [{alert: Busy, expr: 'mysql_global_status_threads_running > 100'}]}]\n",
		"risso.yaml":   "servers:\n  - name: db1\n    dsn: 'root@tcp(127.0.0.1:3306)/'\n",
		"m.yaml":       "workloads: point_select\ntable_size: 100\noptions: {a: [innodb_doublewrite=ON], b: [innodb_doublewrite=OFF]}\ntime: 100ms\nwarmup: 0s\nsettle: 0s\nruns: 1\n",
		"selects.log":  "# Time: 2026-03-01T10:00:00.000000Z\n# User@Host: app[app] @ localhost []  Id: 8\n# Query_time: 0.5  Lock_time: 0.1 Rows_sent: 1  Rows_examined: 9\nuse shop;\nSET timestamp=1772359200;\nSELECT id FROM orders WHERE v = 1;\n",
		"slow.log":     "# Time: 2026-03-01T10:00:00.000000Z\n# User@Host: app[app] @ localhost []  Id: 8\n# Query_time: 0.5  Lock_time: 0.1 Rows_sent: 1  Rows_examined: 9\nuse shop;\nSET timestamp=1772359200;\nUPDATE orders SET v = 1 WHERE id = 7;\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cluster := sandboxtest.Sandbox(t, sandbox.Options{Servers: []string{"mariadb"}, Topology: sandbox.TopologyGalera, Replicas: 1}).Primary()
	busy := openNode(t, n)
	busy.SetMaxOpenConns(1)
	words := []string{"PLACE", filepath.Join(dir, "place"), "SECOND", filepath.Join(dir, "second"), "DSN/sbtest", n.DSN + "sbtest", "CLUSTER", cluster.DSN, "DSN", n.DSN, "REPLICA", replica.DSN, "NODE", "mariadb-10.11", "MOMENTS", momentsDouble(t), "CONTROLLER", controllers(t), "ROUTER", routing(t), "DIR", dir, "URL", ringing(t)}
	var connection, gtid string
	if err := busy.QueryRow("SELECT CONNECTION_ID()").Scan(&connection); err != nil {
		t.Fatal(err)
	}
	words = append(words, "CONNECTION", connection)
	seen, backup := map[string]bool{}, ""
	for _, r := range answerRuns {
		line := strings.NewReplacer(append(words, "BACKUP", backup, "GTID", gtid)...).Replace(r.line)
		args := shellWords(line)
		if !strings.Contains(line, "-o json") {
			args = append(args, "-o", "json")
		}
		code, out, said := call(t, args...)
		if code != r.code {
			t.Errorf("%s: exit code %d: %s %s, want %d", line, code, out, said, r.code)
			continue
		}
		seen[r.answer] = true
		for _, problem := range schemas.check(t, r.answer, out) {
			t.Errorf("risso %s: %s\n%.2000s", line, problem, out)
		}
		switch r.answer {
		case "backup":
			backup = regexp.MustCompile(`"id": "([^"]+)"`).FindStringSubmatch(out)[1]
			mustExec(t, db, "DELETE FROM shop.orders WHERE id = 2")
			if err := db.QueryRow("SELECT @@gtid_binlog_pos").Scan(&gtid); err != nil {
				t.Fatal(err)
			}
			mustExec(t, db, "INSERT INTO shop.orders VALUES (3, 3)")
		case "bench run":
			if err := os.WriteFile(filepath.Join(dir, "run.json"), []byte(out), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	seen["replica skip"] = true // a replica that stopped is in TestReplica
	for _, name := range []string{"confirm", "split", "move", "resume", "undo"} {
		seen["shard "+name] = true // they need two groups: TestShard runs them
	}
	seen["binlog follow how far it is, a line each second"] = true // they come from the same run
	seen["binlog follow what happens, a line each"], seen["top a line each second"] = seen["binlog follow"], seen["top"]
	for _, a := range answers() {
		if name := strings.TrimPrefix(a.name(), "risso "); !seen[name] {
			t.Errorf("no run here gives the answer of %s", name)
		}
	}
}

// advised keeps a finding of advice about the server gone, as a look leaves it.
func advised(t *testing.T, data string) {
	t.Helper()
	facts, err := state.Open(t.Context(), filepath.Join(data, "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer facts.Close()
	now := time.Now()
	row := state.AdviceRow{Instance: "gone", ID: "schema.no_pk", Object: "shop.log", Severity: fleet.SeverityWarning, First: now, Seen: now,
		Body: json.RawMessage(`{"id": "schema.no_pk", "object": "shop.log", "severity": "warning", "what": "table shop.log has no primary key", "evidence": [], "sure": "certain", "cost": {}}`)}
	look := state.AdviceLook{Instance: "gone", Looked: now, Tried: now, Body: json.RawMessage(`{"tables": 1, "seconds": 0.1, "missing": [], "more": {}}`)}
	if err := facts.KeepAdvice(t.Context(), look, []state.AdviceRow{row}, nil); err != nil {
		t.Fatal(err)
	}
}

// ringing is the address of a risso serve in which the alert gone/server.down fires, and which keeps a finding of advice.
func ringing(t *testing.T) (address string) {
	t.Helper()
	dir := t.TempDir()
	conf := filepath.Join(dir, "ring.yaml")
	if err := os.WriteFile(conf, []byte("alerts: {receivers: [{name: nobody, command: {run: ['true']}}]}\nservers: [{name: gone, dsn: 'root@tcp(127.0.0.1:1)/'}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	advised(t, filepath.Join(dir, "data"))
	ctx, cancel := context.WithCancel(t.Context())
	said, w := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		Main(ctx, []string{"serve", "--no-host", "--listen", "127.0.0.1:0", "--config", conf, "--data", filepath.Join(dir, "data")}, screen.Streams{In: strings.NewReader(""), Out: io.Discard, Err: w})
		w.Close()
	}()
	t.Cleanup(func() { cancel(); <-ended })
	ready := regexp.MustCompile(`ready on (http://\S+)`)
	for lines := bufio.NewScanner(said); address == "" && lines.Scan(); {
		if m := ready.FindStringSubmatch(lines.Text()); m != nil {
			address = m[1]
		}
	}
	go func() { _, _ = io.Copy(io.Discard, said) }()
	await.Until(t, func() bool {
		_, out, _ := call(t, "alert", "list", "--url", address)
		return strings.Contains(out, "firing critical gone/server.down")
	}, "the alert fires")
	return address
}

// controllers is the data folder of the second of two risso serve that share their state.
func controllers(t *testing.T) (data string) {
	t.Helper()
	dir := t.TempDir()
	start := func(name string) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			Main(ctx, []string{"serve", "--host-only", "--no-statements", "--listen", "127.0.0.1:0", "--data", filepath.Join(dir, name)}, screen.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
		}()
		t.Cleanup(func() { cancel(); <-ended })
	}
	mustRun(t, "controller", "init", "--name", "c1", "--address", sandboxtest.FreeAddress(t), "--data", filepath.Join(dir, "c1"))
	start("c1")
	file := filepath.Join(dir, "invitation")
	await.Until(t, func() bool {
		code, _, _ := call(t, "controller", "invite", file, "--data", filepath.Join(dir, "c1"))
		return code == 0
	}, "the first controller")
	data = filepath.Join(dir, "c2")
	mustRun(t, "controller", "join", file, "--name", "c2", "--address", sandboxtest.FreeAddress(t), "--data", data)
	start("c2")
	await.Until(t, func() bool {
		_, out, _ := call(t, "controller", "list", "-o", "json", "--data", data)
		return strings.Count(out, `"votes": true`) == 2
	}, "two controllers that vote")
	return data
}

// momentsDouble stands for a risso serve that has kept a moment of one server.
func momentsDouble(t *testing.T) (address string) {
	t.Helper()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/fleet" {
			io.WriteString(w, `{"instances": [{"id": "db1", "name": "db1", "kind": "server"}]}`)
			return
		}
		io.WriteString(w, `{"instance": "db1", "asked": 9, "oldest": 1, "newest": 20, "missing": [{"from": 2, "to": 3, "why": "not kept"}], "moment": {"tick": 8, "connected": 2, "sleeping": 1,
 "sessions": [{"id": 8, "user": "app", "host": "web", "command": "Query", "wait": "running", "seconds": 1.5, "statement": "SELECT 1"}],
 "transactions": [{"session": 8, "trx": "420", "seconds": 41, "state": "RUNNING"}], "locks": [{"waiter": 9, "kind": "row_lock", "blocker": {"id": 8, "seconds": 1}}],
 "numbers": {"threads_running": 1}, "deadlock": {"at": "2026-11-24T02:23:40Z", "drawn": "(1)"}}}`)
	}))
	t.Cleanup(site.Close)
	return site.URL
}

// shellWords splits a line at blanks outside of quotes.
func shellWords(line string) (args []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			args = append(args, part)
		} else {
			args = append(args, strings.Fields(part)...)
		}
	}
	return args
}

// compiled are the schemas of docs/json.schema.json.
type compiled map[string]*jsonschema.Schema

func compileSchema(t *testing.T) compiled {
	t.Helper()
	text, err := os.ReadFile("../../../docs/json.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("risso.json", doc); err != nil {
		t.Fatal(err)
	}
	out := compiled{}
	for _, a := range answers() {
		s, err := c.Compile("risso.json#/$defs/" + url.PathEscape(a.name()))
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimPrefix(a.name(), "risso ")] = s
	}
	return out
}

// check says what in a command's output is not as its schema has it. A command that writes lines writes several values, each of
// one of its schemas.
func (c compiled) check(t *testing.T, name, out string) (problems []string) {
	t.Helper()
	var fit []*jsonschema.Schema
	for known, s := range c {
		if known == name || (name == "top" || name == "binlog follow") && strings.HasPrefix(known, name) {
			fit = append(fit, s)
		}
	}
	d := json.NewDecoder(strings.NewReader(out))
	d.UseNumber()
	count := 0
	for {
		var v any
		if err := d.Decode(&v); err == io.EOF {
			break
		} else if err != nil {
			return append(problems, err.Error())
		}
		count++
		var wrong []string
		for _, s := range fit {
			if err := s.Validate(v); err != nil {
				wrong = append(wrong, err.Error())
			}
		}
		if len(wrong) == len(fit) {
			problems = append(problems, strings.Join(wrong, "\nor "))
		}
	}
	if count == 0 || len(fit) == 0 || count > 1 && len(fit) == 1 && name != "top" {
		problems = append(problems, fmt.Sprintf("%d values, %d schemas", count, len(fit)))
	}
	return problems
}
