package cli

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/group"
	groups "github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/avail/shard"
	"github.com/rissodb/risso/internal/avail/shard/keep"
	"github.com/rissodb/risso/internal/await"
	clishard "github.com/rissodb/risso/internal/face/cli/shard"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/serve/reshard"
	"github.com/rissodb/risso/internal/store/state"
)

// TestShard defines maps, looks keys up, and splits, moves, and is refused, by the command.
func TestShard(t *testing.T) {
	t.Parallel()
	data, servers, run := twoGroups(t)
	run(0, "keys from 25", "shard define orders --kind range --table shop.orders:customer --shard low=west --shard high=west@25")
	run(1, "there is a map of shards of that name already", "shard define orders --table shop.orders:customer --shard low=west")
	run(2, "not behind", "shard define bad --table shop.orders:customer --shard a=west --shard b=west@9 --shard c=west@5")
	run(1, "there is no such group", "shard define bad --table shop.orders:customer --shard a=north")
	run(0, "shard high, group west, primary west1 at host-west:3306, epoch 1", "shard lookup orders 25")
	run(0, "shard low", "shard lookup orders -- -5")
	run(2, "a key that begins with a dash is named behind --: risso shard lookup MAP -- -57", "shard lookup orders -57")
	run(2, "not a key of this map", "shard lookup orders x")
	run(1, "group west has no column cust in shop.orders", "shard define bad --table shop.orders:cust --shard a=west")
	run(1, "group east has no table shop.order (create it there, or name another one", "shard define bad --table shop.order:customer --shard b=east")
	run(1, "group west has no table shopp.orders", "shard define bad --table shopp.orders:customer --shard a=west --shard b=east@5")
	run(1, "there is no such map", "shard lookup nothing 1")

	cutOffMove(t, data, servers, run)

	run(0, "1 row now, from group west to group east", "shard split orders low --at 15 --to east --dry-run")
	run(2, "nobody to ask", "shard split orders low --at 15 --to east")
	var m clishard.Moved
	if err := json.Unmarshal([]byte(run(0, "", "shard split orders low --at 15 --to east --grace 0s --yes -o json")), &m); err != nil {
		t.Fatal(err)
	}
	if m.Move == nil || m.Move.Stage != shard.Done || m.Move.Deleted != 1 || m.Move.Tables[0].Rows != 1 || m.Error != "" || len(m.Plan) != 7 {
		t.Errorf("%+v", m)
	}
	run(0, "shard low-east, group east", "shard lookup orders 20")
	run(0, "shard high, group west, primary west1 at host-west:3306, epoch 2", "shard lookup orders 25")
	run(0, "1 row, the same on both sides", "shard move orders high --to east --keep-rows --grace 0s --yes")
	run(1, "group west has 1 row with these keys already, and group east, which is to have them by map orders, 1 row (delete none before you have compared the two", "shard move orders high --to west --yes")
	mustExec(t, servers["east"], "DELETE FROM shop.orders WHERE customer = 30")
	run(1, "by map orders, 0 rows (delete none before you have compared the two: those in group west may be the only ones", "shard move orders high --to west --dry-run")
	run(1, "no move of the map is under way", "shard resume orders")
	run(1, "no move of the map is under way", "shard undo orders")

	run(0, "keys DE", "shard define sales --kind list --keys text --table shop.orders:country --shard eu=west@DE,FR")
	run(1, "no shard has this key", "shard lookup sales US")
	run(0, "epoch 2", "shard add sales us --group east --values US")
	run(2, "is in shard", "shard add sales us --group east --values DE")
	run(0, "shard us, group east", "shard lookup sales US")
	run(0, "epoch 3", "shard remove sales us")
	run(2, "each key of map orders has a shard", "shard add orders us --group east --values 5")
	run(0, "", "shard define loose --table shop.loose:customer --shard a=west")
	run(1, "no primary key", "shard move loose a --to east --dry-run")
	run(0, "sales: by list, text keys, epoch 3", "shard list")
	run(1, "the group east has shards of the map orders: low-east, high (risso shard move orders low-east --to another group, or risso shard remove orders)", "group remove east")
	run(0, "", "shard move orders low-east --to west --grace 0s --yes")
	run(1, "the group east has shards of the map orders: high (", "group remove east")
	twoResume(t, data, run)
	run(0, "", "shard remove orders")
	run(0, "", "group remove east")
	run(0, "", "shard remove sales")
	run(1, "there is no such map", "shard list sales")

	actions := run(0, "", "audit actions --limit 100")
	for _, what := range []string{"the definition of map orders was done", "the definition of map orders failed: ", "the addition of keys to shard us of map sales in group east was done",
		"the removal of shard us from map sales was done", "the removal of map sales was done"} {
		if !strings.Contains(actions, what) {
			t.Errorf("the actions lack %q:\n%s", what, actions)
		}
	}
}

// twoGroups are groups west and east of a server each, with the state that knows them; run runs a command on it, and holds its exit code and what it says.
func twoGroups(t *testing.T) (data string, servers map[string]*sql.DB, run func(code int, says, line string) string) {
	t.Helper()
	data = t.TempDir()
	st, err := state.Open(t.Context(), filepath.Join(data, "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	servers = map[string]*sql.DB{}
	for _, name := range []string{"west", "east"} {
		n := sandboxtest.Up(t, "mariadb", "binlog_format=ROW")
		target, db := sandboxtest.Target(t, n), openNode(t, n)
		servers[name] = db
		for _, q := range []string{"CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY, customer INT NOT NULL, country CHAR(2) NOT NULL)", "CREATE TABLE shop.loose (customer INT NOT NULL)"} {
			mustExec(t, db, q)
		}
		if name == "west" {
			mustExec(t, db, "INSERT INTO shop.orders VALUES (1, 10, 'DE'), (2, 20, 'FR'), (3, 30, 'DE')")
		}
		g := &group.Group{Name: name, Active: true, Members: []group.Member{{Name: name + "1", Address: "host-" + name + ":3306", Status: group.Primary}}}
		if err := (&groups.Room{Docs: st, Who: "test"}).Add(t.Context(), g, groups.Access{Members: map[string]string{name + "1": target.Secret()}}); err != nil {
			t.Fatal(err)
		}
	}
	st.Close()
	run = func(code int, says string, line string) string {
		t.Helper()
		words := shellWords(line)
		got, out, said := call(t, slices.Insert(words, 2, "--data", data)...)
		if got != code || !strings.Contains(out+said, says) {
			t.Errorf("risso %s: %d, want %d and %q\n%s%s", line, got, code, says, out, said)
		}
		return out
	}
	return data, servers, run
}

// cutOffMove asks what would become of moves that were cut off, and sees that nothing is changed by that.
func cutOffMove(t *testing.T, data string, servers map[string]*sql.DB, run func(code int, says, line string) string) {
	t.Helper()
	ctx := t.Context()
	st, err := state.Open(ctx, filepath.Join(data, "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	mover := &reshard.Mover{Groups: &groups.Room{Docs: st, Who: "test"}, Maps: &keep.Room{Docs: st, Who: "test"}, Limits: reshard.DefaultLimits()}
	begin := func(stage shard.Stage) *keep.Journal {
		t.Helper()
		p, err := mover.Plan(ctx, "orders", shard.Asked{Shard: "low", At: "15", To: "east", New: "low-east"}, false)
		if err != nil {
			t.Fatal(err)
		}
		p.Move.Stage = stage
		j, err := mover.Maps.Begin(ctx, p.Move)
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	is := func() (text string) {
		t.Helper()
		for _, name := range []string{"west", "east"} {
			at := ""
			if err := servers[name].QueryRow("SELECT @@GLOBAL.gtid_binlog_pos").Scan(&at); err != nil {
				t.Fatal(err)
			}
			text += name + " " + at + "\n"
		}
		j, err := mover.Maps.Last(ctx, "orders")
		if err != nil {
			t.Fatal(err)
		}
		body, err := json.Marshal(j)
		if err != nil {
			t.Fatal(err)
		}
		return text + string(body)
	}
	dry := func(code int, says, line string) {
		t.Helper()
		before := is()
		run(code, says, line)
		if out := run(code, "", line+" -o json"); code == 0 {
			var m clishard.Moved
			if err := json.Unmarshal([]byte(out), &m); err != nil || !m.DryRun || len(m.Plan) == 0 {
				t.Errorf("risso %s: %v: %+v", line, err, m)
			}
		}
		if after := is(); after != before {
			t.Errorf("risso %s changed something: it was\n%s\nand is\n%s", line, before, after)
		}
	}
	late := begin(shard.Cleaning)
	dry(0, "delete the old rows in group west", "shard resume orders --dry-run")
	dry(1, "risso shard resume orders brings it to its end", "shard undo orders --dry-run")
	late.Stage, late.Ended = shard.Undone, time.Now()
	if err := late.Save(ctx); err != nil {
		t.Fatal(err)
	}
	dry(1, "no move of the map is under way", "shard undo orders --dry-run")
	other := begin(shard.Copying)
	dry(0, "go on with the copy of shop.orders", "shard resume orders --dry-run")
	dry(0, "drop the triggers in group west: writes of the rows are taken as before", "shard undo orders --dry-run")
	for _, name := range []string{"west", "east"} {
		run(1, "rows of the map orders are being moved from the group "+name+", or to it (risso shard resume orders brings that to its end, risso shard undo orders takes it back)", "group remove "+name)
	}
	other.Log.Server = "a server that is no longer the primary"
	if err := other.Save(ctx); err != nil {
		t.Fatal(err)
	}
	// The rows of a move that is under way are not taken for ones that are in the way, whichever shard is to move.
	mustExec(t, servers["east"], "INSERT INTO shop.orders VALUES (2, 20, 'FR')")
	for _, line := range []string{"shard move orders low --to east --dry-run", "shard move orders low --to east --yes", "shard split orders low --at 15 --to east --yes", "shard move orders high --to east --yes"} {
		run(1, "rows of the map are being moved (risso shard resume orders brings that to its end, risso shard undo orders takes it back)", line)
	}
	mustExec(t, servers["east"], "DELETE FROM shop.orders")
	run(1, "risso shard undo orders takes it back", "shard resume orders")
	run(0, "taken back", "shard undo orders")
}

// twoResume goes on with a move by two commands at once: the first one hears that the other one does.
func twoResume(t *testing.T, data string, run func(code int, says, line string) string) {
	t.Helper()
	ctx := t.Context()
	st, err := state.Open(ctx, filepath.Join(data, "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	mover := &reshard.Mover{Groups: &groups.Room{Docs: st, Who: "test"}, Maps: &keep.Room{Docs: st, Who: "test"}, Limits: reshard.DefaultLimits()}
	mover.Limits.Grace = 8 * time.Second
	cut := errors.New("cut off")
	mover.Before = func(stage shard.Stage) error {
		if stage == shard.Cleaning {
			return cut
		}
		return nil
	}
	p, err := mover.Plan(ctx, "orders", shard.Asked{Shard: "low", New: "low", To: "east"}, false)
	if err == nil {
		_, err = mover.Run(ctx, p)
	}
	if !errors.Is(err, cut) {
		t.Fatal(err)
	}
	version := func() int64 {
		d, err := st.Document(ctx, "shard_move", "orders")
		if err != nil {
			t.Error(err)
		}
		return d.Version
	}
	was, ended := version(), make(chan string, 1)
	go func() {
		code, out, said := call(t, "shard", "resume", "--data", data, "orders")
		ended <- fmt.Sprint(code, out, said)
	}()
	await.Until(t, func() bool { return version() > was }, "the first one goes on")
	run(0, "the same on both sides", "shard resume orders")
	if text := <-ended; !strings.Contains(text, "map orders: another process has taken the move over (that one brings it to its end, or takes it back") || strings.Contains(text, "cut off") {
		t.Errorf("the first one says %s", text)
	}
}

// TestShardRestored holds that a map which a restore of the state brought back is told to nobody, and nothing is done by it, until it is known to be right, with
// an epoch that is higher than any that clients may have heard of.
func TestShardRestored(t *testing.T) {
	t.Parallel()
	data, servers, run := twoGroups(t)
	backup := filepath.Join(t.TempDir(), "state")
	run(0, "", "shard define orders --table shop.orders:customer --shard low=west --shard high=west@25")
	run(0, "", "shard define loose --table shop.loose:customer --shard a=west")
	run(0, "", "state backup "+backup)
	run(0, "1 row, the same on both sides", "shard move orders high --to east --grace 0s --yes")
	run(0, "shard high, group east, primary east1 at host-east:3306, epoch 2", "shard lookup orders 30")
	run(0, "map orders of shards may be an older one: clients are not told it, and no rows move, until it is confirmed (risso shard confirm orders)", "state restore "+backup)
	// The only row is in east, and the map says west.
	const unsure = "map orders: it is that of a restored backup, and nobody has confirmed that its rows are where it says (risso shard confirm orders looks where they are)"
	run(1, unsure, "shard lookup orders 30")
	run(1, unsure, "shard move orders high --to east --dry-run")
	run(1, unsure, "shard split orders high --at 28 --to east --yes")
	run(0, unsure[len("map orders: "):], "shard list orders")
	const wrong = "the map is wrong: shard high: group west has 0 rows, group east 1 row (risso shard remove orders, and risso shard define as it is, which change no rows)"
	run(1, wrong, "shard confirm orders")
	run(1, wrong, "shard confirm orders --yes")
	run(1, unsure, "shard lookup orders 30")
	epoch := func(name string) uint64 {
		t.Helper()
		var list clishard.Answer
		if err := json.Unmarshal([]byte(run(0, "", "shard list "+name+" -o json")), &list); err != nil {
			t.Fatal(err)
		}
		return list.Maps[0].Epoch
	}
	restored := epoch("orders")
	if now := uint64(time.Now().Unix()); restored > now || restored < now-600 {
		t.Errorf("the epoch of the map is %d, now is %d", restored, now)
	}
	run(0, "", "shard remove orders")
	run(0, "", "shard define orders --table shop.orders:customer --shard low=west --shard high=east@25")
	if e := epoch("orders"); e <= restored {
		t.Errorf("the map that was defined anew has epoch %d, and the one before had %d", e, restored)
	}
	run(0, "shard high, group east", "shard lookup orders 30")
	run(0, "map orders is right", "shard confirm orders")
	// Nobody can tell of a map without rows; a person can.
	run(1, "it is not sure that the map is right: shard a: no group has rows of it", "shard confirm loose")
	run(0, "map loose is right", "shard confirm loose --yes")
	run(0, "shard a, group west", "shard lookup loose 1")
	restoredAmid(t, data, servers, run)
}

// restoredAmid restores a backup that was written amid a move, which went on to its end.
func restoredAmid(t *testing.T, data string, servers map[string]*sql.DB, run func(code int, says, line string) string) {
	t.Helper()
	backup := filepath.Join(t.TempDir(), "state")
	st, err := state.Open(t.Context(), filepath.Join(data, "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	mover := &reshard.Mover{Groups: &groups.Room{Docs: st, Who: "test"}, Maps: &keep.Room{Docs: st, Who: "test"}, Limits: reshard.DefaultLimits()}
	mover.Limits.Grace = 0
	mover.Before = func(stage shard.Stage) error {
		if stage == shard.Switching {
			run(0, "", "state backup "+backup)
		}
		return nil
	}
	p, err := mover.Plan(t.Context(), "orders", shard.Asked{Shard: "low", New: "low", To: "east"}, false)
	if err == nil {
		_, err = mover.Run(t.Context(), p)
	}
	if err == nil {
		err = st.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	run(0, "", "state restore "+backup)
	run(1, "no move of the map is under way", "shard undo orders") // it would delete the only rows
	run(1, "no move of the map is under way", "shard resume orders")
	run(1, "shard low: group west has 0 rows, group east 2 rows", "shard confirm orders")
	mustExec(t, servers["west"], "INSERT INTO shop.orders VALUES (1, 10, 'DE')")
	mustExec(t, servers["west"], "CREATE TRIGGER shop.risso_shard_01020304_0_0 BEFORE DELETE ON shop.orders FOR EACH ROW SET @a = 1")
	run(1, "it is not sure that the map is right: shard low: group west has 1 row, group east 2 rows as well; group west: `shop`.`risso_shard_01020304_0_0`, a trigger of a move, refuses writes there", "shard confirm orders")
	var c clishard.Confirmed
	if err := json.Unmarshal([]byte(run(0, "", "shard confirm orders --yes -o json")), &c); err != nil || !c.Map.Restored.IsZero() || c.Shards[0].Groups["east"] != 2 {
		t.Errorf("%v: %+v", err, c)
	}
	run(0, "shard low, group west", "shard lookup orders 10")
	var n int
	if err := servers["east"].QueryRow("SELECT COUNT(*) FROM shop.orders").Scan(&n); err != nil || n != 3 {
		t.Errorf("east has %d rows, %v", n, err)
	}
}
