package lag

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/channels"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

const uuid = "8e349184-0000-0000-0000-000000000000"

func gtids(t *testing.T, text string) mysql.GTIDSet {
	t.Helper()
	s, err := mysql.ParseGTIDSet(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// running is a replica both of whose threads run, one transaction behind.
func running(t *testing.T) Facts {
	m := read.ReplicaMoment{Channel: fleet.Channel{Source: "db1:3306", IORunning: "Yes", SQLRunning: "Yes", Log: "binlog.1", Pos: 100, Unapplied: 0},
		ReadLog: "binlog.1", ReadPos: 100, RelayLog: "relay.1", RelayPos: 4, Said: 0, DelayLeft: -1, Heartbeat: -1, HeartbeatEvery: -1}
	m.Received, m.Applied = gtids(t, uuid+":1-5"), gtids(t, uuid+":1-5")
	return Facts{Server: mysql.Of(fleet.ServerOf("8.0.36", "")), Before: m, After: m, Span: 2, Settings: map[string]string{}}
}

// against has a source that has more.
func against(f Facts) Facts {
	f.Source = &Source{Missing: 3, Unapplied: 3000, UnappliedBefore: 3000, Written: 1000, FirstAge: 40, FirstRows: -1}
	return f
}

// seen are looks at threads.
func seen(f Facts, n int, list ...read.Applier) Facts {
	for range n {
		f.Looks = append(f.Looks, Look{Appliers: slices.Clone(list)})
	}
	return f
}

func applier(role read.ApplierRole, doing read.ApplierDoing) read.Applier {
	return read.Applier{Session: 7, Role: role, Doing: doing, State: string(doing), Age: -1, Open: -1, Rows: -1, Locked: -1}
}

// TestCodes: each cause comes from the facts that it is about, and first; all causes are in docs/lag.md.
func TestCodes(t *testing.T) {
	one, worker := read.ApplierCoordinates, read.ApplierWorks
	long := applier(one, read.ApplierBusy)
	long.Open, long.Rows = 60, 100
	cases := []struct {
		code  string
		state State
		make  func(Facts) Facts
		words string // in the first cause's words, next step or evidence
	}{
		{"applier.error", Stopped, func(f Facts) Facts {
			f.After.SQLRunning, f.After.Said = "No", -1
			f.After.SQL = fleet.ReplicaError{Number: 1062, Text: "Could not execute Write_rows event on table shop.t; Duplicate entry", Table: "shop.t", GTID: uuid + ":6"}
			return f
		}, "replica_exec_mode = 'IDEMPOTENT'"},
		{"applier.stopped", Stopped, func(f Facts) Facts { f.After.SQLRunning, f.After.Said = "No", -1; return f }, "START REPLICA"},
		{"applier.stopped", Stopped, func(f Facts) Facts {
			f.Server = mysql.Of(fleet.ServerOf("10.11.6-MariaDB", ""))
			f.After.IORunning, f.After.SQLRunning, f.After.GTID, f.After.Unapplied, f.After.Said = "No", "No", true, 300, -1
			return f
		}, "START SLAVE (START throws away what it received and did not apply, and fetches it again: make sure that db1:3306 still has it)"},
		{"receiver.error", Stopped, func(f Facts) Facts {
			f.After.IORunning, f.After.IO = "No", fleet.ReplicaError{Number: 1236, Text: "purged"}
			return f
		}, "rebuild"},
		{"receiver.connecting", Stopped, func(f Facts) Facts { f.After.IORunning = "Connecting"; return f }, "tries again"},
		{"detached", Stopped, func(f Facts) Facts {
			f.After.IORunning, f.After.SQLRunning, f.After.Channel.Source = "No", "No", "db1.detached.invalid:3306"
			return f
		}, "risso replica attach"},
		{"rebuilding", Stopped, func(f Facts) Facts {
			f.After.IORunning, f.After.Channel.Source = "No", "db1.rebuilding.invalid:3306"
			return f
		}, "risso replica rebuild"},
		{"receiver.stopped", Stopped, func(f Facts) Facts { f.After.IORunning = "No"; return f }, "START REPLICA"},
		{"receiver.silent", Behind, func(f Facts) Facts {
			f = against(f)
			f.Source.Unreceived, f.Source.UnreceivedBefore, f.Source.Silent = 3000, 2000, true
			return f
		}, "0 seconds behind"},
		{"receiver.silent", Applied, func(f Facts) Facts { f.After.Heartbeat, f.After.HeartbeatEvery = 100, 30; return f }, "the last heartbeat came 100 s ago"},
		{"relay.disk", Behind, func(f Facts) Facts { // nothing is received while it writes
			f = seen(against(f), 5, applier(read.ApplierReceives, read.ApplierQueues))
			f.Source.Unreceived, f.Source.UnreceivedBefore, f.Source.Silent = 3000, 2000, true
			return f
		}, "sync_relay_log"},
		{"server.no_room", Behind, func(f Facts) Facts {
			f = against(f)
			f.Source.Unreceived, f.Source.UnreceivedBefore, f.Source.Silent, f.After.IOState = 3000, 2000, true, "Waiting for disk space"
			return f
		}, "goes on by itself"},
		{"delayed", Delayed, func(f Facts) Facts { f = against(f); f.After.Delay, f.After.DelayLeft = 60, 20; return f }, "SOURCE_DELAY = 0"},
		{"lock", Behind, func(f Facts) Facts {
			f = seen(against(f), 5, applier(one, read.ApplierBusy))
			for i := range f.Looks {
				f.Looks[i].Locks = []read.LockWait{{Waiter: 7, Kind: read.LockRow, Schema: "shop", Name: "t", Index: "PRIMARY", Blocker: read.Blocker{ID: 9, User: "app", Command: "Sleep"}}}
			}
			return f
		}, "KILL 9"},
		{"lock", Behind, func(f Facts) Facts { return seen(against(f), 5, applier(one, read.ApplierLocked)) }, "risso top"},
		{"table.no_key", Behind, func(f Facts) Facts {
			f = seen(against(f), 5, long)
			f.Stuck = Stuck{Same: true, Tables: []Table{{"shop.log", read.TableKeys{Known: true, Any: true}}}}
			return f
		}, "ALTER TABLE `shop`.`log`"},
		{"transaction.long", Behind, func(f Facts) Facts {
			f = seen(against(f), 5, long)
			f.Stuck = Stuck{Same: true, Tables: []Table{{"shop.t", read.TableKeys{Known: true, Any: true, Primary: true}}}, Statement: "UPDATE t SET v = 'secret'"}
			return f
		}, "UPDATE t SET v = ?"},
		{"relay.full", Behind, func(f Facts) Facts {
			f = seen(against(f), 5, applier(read.ApplierReceives, read.ApplierRelayFull))
			f.Settings["relay_log_space_limit"] = "1048576"
			return f
		}, "the limit is 1 MiB"},
		{"relay.disk", Behind, func(f Facts) Facts {
			f = seen(against(f), 5, applier(read.ApplierReceives, read.ApplierQueues))
			f.Source.Unreceived, f.Source.UnreceivedBefore = 2000, 2000
			return f
		}, "sync_relay_log"},
		{"network", Behind, func(f Facts) Facts {
			f = against(f)
			f.Source.Unreceived, f.Source.UnreceivedBefore = 2900, 2500
			return f
		}, "SOURCE_COMPRESSION_ALGORITHMS"},
		{"commit", Behind, func(f Facts) Facts {
			return seen(against(f), 5, applier(worker, read.ApplierCommits), applier(worker, read.ApplierIdle))
		}, "sync_binlog = 0"},
		{"order", Behind, func(f Facts) Facts {
			return seen(against(f), 5, applier(one, read.ApplierFeeds), applier(worker, read.ApplierBusy), applier(worker, read.ApplierInOrder), applier(worker, read.ApplierInOrder))
		}, "67 %"},
		{"semisync", Behind, func(f Facts) Facts {
			return seen(against(f), 5, applier(worker, read.ApplierSemiSync), applier(worker, read.ApplierIdle))
		}, "risso semisync status"},
		{"applier.single", Behind, func(f Facts) Facts {
			f = seen(against(f), 5, applier(one, read.ApplierBusy))
			f.Settings["replica_parallel_workers"] = "0"
			return f
		}, "SET GLOBAL replica_parallel_workers = 4"},
		{"applier.all", Behind, func(f Facts) Facts {
			return seen(against(f), 5, applier(one, read.ApplierFeeds), applier(worker, read.ApplierBusy), applier(worker, read.ApplierBusy))
		}, "all 2 appliers"},
		{"applier.few", Behind, func(f Facts) Facts {
			return seen(against(f), 5, applier(one, read.ApplierFeeds), applier(worker, read.ApplierBusy), applier(worker, read.ApplierIdle), applier(worker, read.ApplierIdle))
		}, "of 3 appliers"},
		{"catching_up", Behind, func(f Facts) Facts { f = against(f); f.Source.UnappliedBefore = 9000; return f }, "catches up in about"},
		{"unexplained", Behind, func(f Facts) Facts { return seen(against(f), 5, applier(one, read.ApplierIdle)) }, "--for 30s"},
	}
	page, err := os.ReadFile("../../../docs/lag.md")
	if err != nil {
		t.Fatal(err)
	}
	reached := map[string]bool{}
	for _, c := range cases {
		r := Judge("db2", c.make(running(t)))
		if len(r.Causes) == 0 || r.Causes[0].Code != c.code || r.State != c.state {
			t.Errorf("%s: got %s, causes %+v, want %s", c.code, r.State, r.Causes, c.state)
			continue
		}
		reached[c.code] = true
		first := r.Causes[0]
		if c.code == "receiver.silent" && first.Certain {
			t.Errorf("%s is told as certain: %+v", c.code, first)
		}
		if text := first.Words + first.Next + strings.Join(first.Evidence, " "); !strings.Contains(text, c.words) {
			t.Errorf("%s: got %q, want %q in it", c.code, text, c.words)
		}
	}
	for _, c := range Codes() {
		if !reached[c.Code] {
			t.Errorf("no case has the cause %s", c.Code)
		}
		if !strings.Contains(string(page), "| `"+c.Code+"` | "+c.Meaning) {
			t.Errorf("docs/lag.md lacks the row: | `%s` | %s", c.Code, c.Meaning)
		}
	}
}

// TestMeasure: how late it is comes from what knows it best, and what is not known stays so.
func TestMeasure(t *testing.T) {
	level := against(running(t))
	level.Source.Level, level.Source.Missing, level.Source.Unapplied = true, 0, 0
	applying := seen(running(t), 1, read.Applier{Role: read.ApplierCoordinates, Doing: read.ApplierBusy, Age: 12})
	mute := running(t)
	mute.After.Said, mute.After.Unapplied, mute.After.Received, mute.After.Applied = -1, -1, mysql.GTIDSet{}, mysql.GTIDSet{}
	behind := against(running(t))
	behind.After.Said = 3
	for name, c := range map[string]struct {
		f       Facts
		state   State
		seconds float64 // -1: not known
		by      string
		course  channels.Way
	}{
		"level":         {level, Level, 0, "all that the source has", channels.Unsettled},
		"source's log":  {behind, Behind, 40, "the source's log", channels.Unsettled},
		"commit times":  {applying, Applied, 12, "committed first", channels.Unsettled},
		"server":        {running(t), Applied, 0, "Seconds_Behind_Source", channels.Unsettled},
		"nothing known": {mute, Unknown, -1, "", channels.Unsettled},
	} {
		r := Judge("db2", c.f)
		got := -1.0
		if r.Seconds != nil {
			got = *r.Seconds
		}
		if r.State != c.state || got != c.seconds || !strings.Contains(r.SecondsBy, c.by) || r.Course.Way != c.course {
			t.Errorf("%s: got %s, %g by %q, %q, want %s, %g, %q, %q", name, r.State, got, r.SecondsBy, r.Course.Way, c.state, c.seconds, c.by, c.course)
		}
		if r.Forecast == "" {
			t.Errorf("%s: no forecast", name)
		}
	}
	if r := Judge("db2", mute); r.Transactions != nil || r.Bytes != nil {
		t.Errorf("nothing known: got %v transactions, %v bytes, want none", r.Transactions, r.Bytes)
	}
}

// TestForecast: the course of a backlog, and of the transaction that the applier is in.
func TestForecast(t *testing.T) {
	in := func(rows ...int64) Facts {
		f := against(running(t))
		f.Stuck.Same, f.Source.Missing, f.Source.FirstRows, f.Source.UnappliedBefore, f.Source.Written = true, 1, 1000, 3000, 0
		for _, n := range rows {
			a := applier(read.ApplierCoordinates, read.ApplierBusy)
			a.Open, a.Rows = 5, n
			f.Looks = append(f.Looks, Look{Appliers: []read.Applier{a}})
		}
		return f
	}
	faster, slower, still := against(running(t)), against(running(t)), against(running(t))
	faster.Source.UnappliedBefore, slower.Source.UnappliedBefore = 5000, 2500
	still.Source.Written = 0
	received := running(t)
	received.After.Received, received.Before.Received, received.Before.Applied = gtids(t, uuid+":1-9"), gtids(t, uuid+":1-9"), gtids(t, uuid+":1-3")
	for name, c := range map[string]struct {
		f     Facts
		way   channels.Way
		level float64
		words string
	}{
		"faster":       {faster, channels.CatchesUp, 3, "in about 3 s"},
		"received":     {received, channels.CatchesUp, 4, "that is about what it received: its source was not asked"},
		"slower":       {slower, channels.FallsBack, 0, "falling behind"},
		"still":        {still, channels.StandsFast, 0, "finished nothing"},
		"last one":     {in(200, 400), channels.CatchesUp, 6, "in about 6 s, when the transaction"},
		"not counting": {in(400, 400), channels.StandsFast, 0, "finished nothing"},
	} {
		if r := Judge("db2", c.f); r.Course != (channels.Course{Way: c.way, Level: c.level}) || !strings.Contains(r.Forecast, c.words) {
			t.Errorf("%s: got %+v, %q, want %s, %g, %q", name, r.Course, r.Forecast, c.way, c.level, c.words)
		}
	}
}

// TestDelayedUnreceived: where nothing is received, no statement is printed that lets both threads stand.
func TestDelayedUnreceived(t *testing.T) {
	f := against(running(t))
	f.After.Delay, f.After.DelayLeft, f.After.IORunning = 60, 20, "No"
	r := Judge("db2", f)
	i := slices.IndexFunc(r.Causes, func(c Cause) bool { return c.Code == "delayed" })
	if i < 0 || !strings.Contains(r.Causes[i].Next, "risso replica delay looks for that first") || strings.Contains(r.Causes[i].Next, "DELAY = 0") {
		t.Errorf("got %+v", r.Causes)
	}
}
