package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	change "github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/face/cli/failover"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/store/state"
)

// TestReceiptOfLostTransactions kills a primary whose replica did not receive its last three transactions, fails over, and looks at the receipt: by files of the
// data folder while the server is down, and by the server when it came back. The command that the receipt names applies them: the tables are equal then, and a
// second time it refuses.
func TestReceiptOfLostTransactions(t *testing.T) {
	for spec, stop := range map[string]string{"mariadb": "STOP SLAVE IO_THREAD", "mysql-9.7": "STOP REPLICA IO_THREAD"} {
		t.Run(spec, func(t *testing.T) { lostAndApplied(t, spec, stop) })
	}
}

func lostAndApplied(t *testing.T, spec, stop string) {
	box := sandboxtest.Pair(t, spec)
	old, now := box.Nodes[0], box.Nodes[1]
	db, data := openNode(t, old), filepath.Join(t.TempDir(), "data")
	dsn := func(name string, n *sandbox.Node) string {
		c, err := n.TCPConfig()
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%s=%s:%s@tcp(%s)/", name, c.User, c.Passwd, c.Addr)
	}
	for _, q := range []string{"CREATE DATABASE shop", "CREATE TABLE shop.t (id INT UNSIGNED PRIMARY KEY, v VARCHAR(40), b BLOB, d DATE, j JSON, g BIGINT AS (id + 1) STORED)",
		"INSERT INTO shop.t (id, v, b, d, j) VALUES (1, 'one', X'00', NULL, NULL), (2, 'two', NULL, '2020-02-29', NULL)"} {
		mustExec(t, db, q)
	}
	replica := openNode(t, now)
	await.Until(t, func() bool {
		var n int
		return replica.QueryRow("SELECT COUNT(*) FROM shop.t").Scan(&n) == nil && n == 2
	}, "the rows on the replica")
	mustRun(t, "group", "create", "shop", "--data", data, "--dsn", dsn("db1", old), "--dsn", dsn("db2", now))
	mustExec(t, replica, stop)
	for _, q := range []string{`INSERT INTO shop.t (id, v, b, d, j) VALUES (4294967295, 'O''Neill; top-secret \\ "x"', X'00FF27', NULL, '{"a": [1, null, "é"]}')`, "UPDATE shop.t SET v = NULL, b = X'2700' WHERE id = 1", "DELETE FROM shop.t WHERE id = 2"} {
		mustExec(t, db, q)
	}
	sum := func(n *sandbox.Node) (text string) {
		t.Helper()
		var table string
		if err := openNode(t, n).QueryRow("CHECKSUM TABLE shop.t").Scan(&table, &text); err != nil {
			t.Fatal(err)
		}
		return text
	}
	want := sum(old)
	if err := old.Kill(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	mustRun(t, "failover", "--group", "shop", "--data", data, "--yes")
	if code, _, said := call(t, "receipt", "apply", "--group", "shop", "--data", data, "--dry-run"); code != fault.Failed || !strings.Contains(said, "no receipt lists lost transactions") {
		t.Errorf("nothing is known yet: %d %s", code, said)
	}

	told(t, spec, mustRun(t, "receipt", "--group", "shop", "--data", data, "--binlog", filepath.Join(old.Datadir, "binlog.0*")), "while it is down")

	if err := old.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "lost.sql")
	told(t, spec, mustRun(t, "receipt", "--group", "shop", "--data", data, "--sql", script), "when it is back")
	if b, err := os.ReadFile(script); err != nil || !strings.Contains(string(b), "DELETE FROM `shop`.`t` WHERE `id` = 2 LIMIT 1;") {
		t.Errorf("the script: %v\n%s", err, b)
	}
	kept := mustRun(t, "receipt", "--group", "shop", "--data", data, "--no-logs", "-o", "json")
	var a failover.ReceiptsAnswer
	if err := json.Unmarshal([]byte(kept), &a); err != nil || len(a.Receipts) != 1 || a.Receipts[0].Contents == nil || len(a.Receipts[0].Contents.Transactions) != 3 || a.Receipts[0].Contents.Rows != 3 || strings.Contains(kept, "top-secret") {
		t.Errorf("what is kept (%v): %s", err, kept)
	}

	apply := []string{"receipt", "apply", "--group", "shop", "--data", data}
	before := sum(now)
	if said := mustRun(t, append(apply, "--dry-run")...); strings.Count(said, "nothing is in its way") != 3 || sum(now) != before {
		t.Errorf("a plan: %s", said)
	}
	chosen(t, apply, a.Receipts[0].Contents.Transactions[1].GTID.String(), now)
	mustExec(t, replica, "UPDATE shop.t SET v = 'other' WHERE id = 1")
	if code, out, said := call(t, append(apply, "--yes")...); code != fault.Differs || !strings.Contains(out, "shop.t `id` = 1: the row was changed since: `v` is 'other', in the log 'one'") || !strings.Contains(said, "2 transactions") && !strings.Contains(said, "nothing is against") {
		t.Errorf("a conflict: %d %s%s", code, out, said)
	}
	mustExec(t, replica, "UPDATE shop.t SET v = 'one' WHERE id = 1")
	applied := time.Now()
	if said := mustRun(t, append(apply, "--yes")...); !strings.Contains(said, "applied 3 transactions to db2") {
		t.Errorf("applied: %s", said)
	}
	if got := sum(now); got != want {
		t.Errorf("the table is %s on the new primary, %s on the old one", got, want)
	}
	code, out, said := call(t, append(apply, "--yes")...)
	if code != fault.Failed || !strings.Contains(said, "it was applied before") {
		t.Errorf("a second time: %d %s", code, said)
	}
	at := regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`).FindString(out + said)
	if when, err := time.Parse(time.RFC3339, at); err != nil || when.Before(applied.Truncate(time.Second)) {
		t.Errorf("it was applied after %s, and it says %q: %s%s", applied.UTC(), at, out, said)
	}
	if said := mustRun(t, "receipt", "--group", "shop", "--data", data); strings.Count(said, "applied to db2 at") != 3 || strings.Contains(said, "next: risso receipt apply") {
		t.Errorf("the receipt afterwards: %s", said)
	}
	if said := mustRun(t, "audit", "actions", "--data", data); !strings.Contains(said, "the application of 3 transactions lost with db1 to db2 was done by ") {
		t.Errorf("what was written down: %s", said)
	}
}

// chosen applies one transaction of a receipt, in a plan; what the receipt does not list is refused by its name, and so is what the logs do not have.
func chosen(t *testing.T, apply []string, one string, now *sandbox.Node) {
	t.Helper()
	if said := mustRun(t, append(apply, "--dry-run", "--gtid", one)...); strings.Count(said, "nothing is in its way") != 1 || !strings.Contains(said, one+"  nothing is in its way") {
		t.Errorf("a plan of %s: %s", one, said)
	}
	strange := one[:strings.LastIndexAny(one, ":-")+1] + "999999"
	for _, list := range []string{strange, one + "," + strange} {
		if code, _, said := call(t, append(apply, "--dry-run", "--gtid", list)...); code != fault.Failed || !strings.Contains(said, "the receipt does not list "+strange+": it lists ") || !strings.Contains(said, "(risso receipt --group shop)") {
			t.Errorf("a plan of %s, which is not in the receipt: %d %s", list, code, said)
		}
	}
	if code, _, said := call(t, append(apply, "--dry-run", "--gtid", one, "--binlog", filepath.Join(now.Datadir, "binlog.0*"))...); code != fault.Failed || !strings.Contains(said, "the logs do not have the transaction: "+one+" (") {
		t.Errorf("a plan of %s by logs that do not have it: %d %s", one, code, said)
	}
}

// told looks for the three transactions in a receipt.
func told(t *testing.T, spec, said, when string) {
	t.Helper()
	for _, want := range []string{"3 transactions of db1 not on db2", "insert shop.t: 1 row", "(`id`, `v`, `b`, `d`, `j`) VALUES (4294967295, ", "top-secret", "UPDATE `shop`.`t` SET ", "DELETE FROM `shop`.`t` WHERE `id` = 2", "next: risso receipt apply --group shop --dry-run"} {
		if !strings.Contains(said, want) {
			t.Errorf("%s: no %q in\n%s", when, want, said)
		}
	}
}

// TestReceiptOfNoGroup: a group that never was has no receipts, and that is an error as with the other commands; one that was removed is still known by its own.
func TestReceiptOfNoGroup(t *testing.T) {
	data := t.TempDir()
	st, err := state.Open(t.Context(), filepath.Join(data, "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	room := &keep.Room{Docs: st, Who: "test"}
	for _, name := range []string{"new", "gone"} {
		if err := room.Add(t.Context(), &group.Group{Name: name}, keep.Access{}); err != nil {
			t.Fatal(err)
		}
	}
	ended := time.Now().UTC()
	if _, err := room.Begin(t.Context(), change.Journal{Group: "gone", Epoch: 1, Kind: change.Switchover, Stage: change.Done, Ended: ended,
		Receipt: &change.Receipt{Group: "gone", Epoch: 1, Kind: change.Switchover, Time: ended, Old: "db1", New: "db2", Words: "all went well"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := room.Begin(t.Context(), change.Journal{Group: "gone", Epoch: 2, Kind: change.Failover, Stage: change.Done, Ended: ended, Old: "db2", New: "db1",
		Receipt: &change.Receipt{Group: "gone", Epoch: 2, Kind: change.Failover, Time: ended, Old: "db2", New: "db1", Words: "one is lost", Lost: "0-2-7", Behind: "0-2-6", Count: 1}}); err != nil {
		t.Fatal(err)
	}
	if err := room.Remove(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"receipt --group typo", fault.Failed, "there is no such group"},
		{"receipt --group typo -o json", fault.Failed, "risso group list shows those that there are"},
		{"receipt --group typo --no-logs", fault.Failed, "there is no such group"},
		{"receipt --group new", 0, "there is none"},
		{"receipt --group gone", 0, "all went well"},
		{"receipt --group gone", 0, "the group gone was removed"},
		{"receipt --group gone --no-logs -o json", 0, `"all went well"`},
		{"receipt", 0, "all went well"},
	} {
		if code, out, said := call(t, append(strings.Fields(c.args), "--data", data)...); code != c.code || !strings.Contains(out+said, c.says) {
			t.Errorf("risso %s: exit code %d, want %d and %q: %s%s", c.args, code, c.code, c.says, out, said)
		}
	}
}
