package blockers

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/mysql/read"
)

// waits reads "1>2 3>2? 4>3*": 1 waits for 2; ? the server only says that it may be that one; * that one is ahead in the queue.
func waits(text string) (list []read.LockWait) {
	for _, f := range strings.Fields(text) {
		w := read.LockWait{Kind: read.LockRow, Maybe: strings.HasSuffix(f, "?"), Queued: strings.HasSuffix(f, "*")}
		fmt.Sscanf(f, "%d>%d", &w.Waiter, &w.Blocker.ID)
		list = append(list, w)
	}
	return list
}

func TestRoots(t *testing.T) {
	for _, c := range []struct{ waits, want string }{
		{"", ""},
		{"1>2", "2:[1]"},
		{"1>2 3>2 4>2", "2:[1 3 4]"},
		{"1>2 2>3 4>3", "3:[1 2 4]"},     // who waits for somebody that waits is kept waiting by the last one
		{"1>2 3>4 5>4", "4:[3 5] 2:[1]"}, // the most waiters first
		{"1>2 1>3", "2:[1] 3:[1]"},       // two hold a shared lock
		{"1>2 2>1", "1:[2]"},             // a deadlock that the server does not see
		{"1>2 2>3 3>1 4>1", "1:[2 3 4]"}, // and one with a queue
		{"5>9? 1>2*", "2:[1] 9:[5]"},     // what is certain first
		{"1>0", "0:[1]"},                 // a prepared transaction
		{"1>2 2>1 2>7", "7:[1 2]"},       // a cycle with a way out
		{"1>1", ""},
	} {
		var got []string
		for _, r := range Roots(waits(c.waits)) {
			got = append(got, fmt.Sprintf("%d:%v", r.Wait.Blocker.ID, r.Waiters))
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: got %s, want %s", c.waits, s, c.want)
		}
	}
}

func TestKill(t *testing.T) {
	for _, c := range []struct {
		w    read.LockWait
		want string
	}{
		{read.LockWait{Blocker: read.Blocker{ID: 812, Command: "Sleep", Open: 41}}, "KILL 812"},
		{read.LockWait{Blocker: read.Blocker{ID: 812, Command: "Query"}}, "KILL 812"},
		{read.LockWait{Maybe: true, Blocker: read.Blocker{ID: 812, Command: "Sleep"}}, ""},
		{read.LockWait{Blocker: read.Blocker{ID: 5, Command: "Slave_SQL"}}, ""}, // KILL would stop replication
		{read.LockWait{Blocker: read.Blocker{ID: 5, Command: "Sleep", Statement: "xa  prepare 'x'"}}, ""},
		{read.LockWait{}, "XA RECOVER"},
	} {
		if got := Kill(&c.w); got != c.want {
			t.Errorf("%+v: got %q, want %q", c.w.Blocker, got, c.want)
		}
	}
}

func TestUntouchable(t *testing.T) {
	for _, c := range []struct {
		p    read.Process
		want string
	}{
		{read.Process{ID: 812, User: "app", Command: "Sleep"}, ""},
		{read.Process{ID: 812, User: "app", Command: "Query"}, ""},
		{read.Process{ID: 812, User: "risso", Command: "Sleep", Own: true}, "Risso"},
		{read.Process{ID: 5, User: "system user", Command: "Slave_SQL"}, "replication"}, // MariaDB
		{read.Process{ID: 5, User: "system user", Command: "Query"}, "replication"},     // MySQL's applier
		{read.Process{ID: 7, User: "repl", Command: "Binlog Dump GTID"}, "replication"},
		{read.Process{ID: 5, User: "event_scheduler", Command: "Daemon"}, "server"},
		{read.Process{Command: "Sleep"}, "no connection"},
	} {
		if got := Untouchable(c.p); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%+v: got %q, want %q in it", c.p, got, c.want)
		}
	}
}

// TestKeeps: those that wait for something else behind are not said to wait for the same lock; who alone can be meant by a flush is named.
func TestKeeps(t *testing.T) {
	row := func(waiter, blocker int64) read.LockWait {
		return read.LockWait{Waiter: waiter, Kind: read.LockRow, Schema: "shop", Name: "t", Index: "PRIMARY", Blocker: read.Blocker{ID: blocker}}
	}
	flush := func(waiter, blocker int64) read.LockWait {
		return read.LockWait{Waiter: waiter, Kind: read.LockFlush, Maybe: true, Blocker: read.Blocker{ID: blocker}}
	}
	for _, c := range []struct {
		list []read.LockWait
		want string
	}{
		{[]read.LockWait{row(1, 9), row(2, 9)}, "it keeps 2 others waiting for a row lock in the index PRIMARY of shop.t"},
		{[]read.LockWait{row(1, 9), row(2, 9), {Waiter: 3, Kind: read.LockMetadata, Blocker: read.Blocker{ID: 1}}}, "it keeps 3 others waiting, 2 of them for a row lock in the index PRIMARY of shop.t"},
	} {
		roots := Roots(c.list)
		if len(roots) != 1 || roots[0].Keeps("it") != c.want {
			t.Errorf("got %+v, %q; want %q", roots, roots[0].Keeps("it"), c.want)
		}
	}
	if roots := Roots([]read.LockWait{flush(1, 9), flush(2, 9)}); len(roots) != 1 || roots[0].Wait.Maybe {
		t.Errorf("one may use the table: got %+v, want it named", roots)
	}
	if roots := Roots([]read.LockWait{flush(1, 9), flush(1, 8)}); len(roots) != 2 || !roots[0].Wait.Maybe || !roots[1].Wait.Maybe {
		t.Errorf("two may use the table: got %+v, want neither named", roots)
	}
}

// TestWithoutKeys: whatever Lock says of values is left out.
func TestWithoutKeys(t *testing.T) {
	for _, w := range []read.LockWait{
		{Kind: read.LockRow, Schema: "shop", Name: "t", Index: "PRIMARY", Data: "'s3cret (X)', 4", Mode: "X,REC_NOT_GAP"},
		{Kind: read.LockRow, Schema: "shop", Name: "t", Index: "PRIMARY", Data: "'s3cret'"},
		{Kind: read.LockUser, Name: "s3cret o'clock"},
	} {
		for _, after := range []string{"", " since 10:32:07: idle for 4 s"} {
			text := "connection 9 keeps 2 others waiting for " + Lock(&w) + after
			if got := WithoutKeys(text); strings.Contains(got, "s3cret") || !strings.HasPrefix(got, "connection 9 keeps 2 others waiting for ") {
				t.Errorf("%q: got %q, want no value", text, got)
			}
		}
	}
}
