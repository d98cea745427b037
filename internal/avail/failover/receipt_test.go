package failover

import (
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/errant"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/mysql"
)

// TestAmend: what the logs of an old primary tell is replaced by what it tells itself, and said once.
func TestAmend(t *testing.T) {
	errant := func(text string) mysql.Errant {
		t.Helper()
		e, err := mysql.ParseErrant(text, "")
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	const uuid = "00000000-0000-0000-0000-00000000000a"
	r := &Receipt{Verdict: NothingLost, Old: "a", New: "b", Words: "zero acknowledged transactions lost: so it was proven"}
	if !AmendByLogs(r, errant(uuid+":7")) || !Amend(r, errant(uuid+":7-8"), Returned{}) {
		t.Fatal("nothing new is said")
	}
	if AmendByLogs(r, errant(uuid+":7-9")) {
		t.Error("the logs overrule the server itself")
	}
	want := "zero acknowledged transactions lost: so it was proven; a has 2 transactions that were never acknowledged: " + uuid + ":7-8"
	if r.Verdict != NothingLost || r.Words != want || r.Count != 2 {
		t.Errorf("got %s, %d, %q; want %q", r.Verdict, r.Count, r.Words, want)
	}
}

// TestCounted: what a MariaDB whose disk was full counted is not called lost before its binary logs were read, also when it has counted more since.
func TestCounted(t *testing.T) {
	e := func(to string) mysql.Errant {
		t.Helper()
		e, err := mysql.ParseErrant(to, "0-1-6")
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	r := &Receipt{Verdict: NothingToLose, Old: "a", New: "b", Full: true}
	says := func(v Verdict, words string) {
		t.Helper()
		if r.Verdict != v || !strings.Contains(r.Words, words) {
			t.Errorf("got %s, %q; want %s, %q", r.Verdict, r.Words, v, words)
		}
	}
	Amend(r, e("0-1-7"), Returned{})
	says(PerhapsLost, "not known whether transactions are lost: a counted up to 0-1-7, which b has not; its disk was full")
	r.Read(&Contents{Unseen: "its binary logs have none", Unwritten: true})
	says(NothingLost, "a could not write to its binary log what it counted up to 0-1-7")
	Amend(r, e("0-1-9"), Returned{})
	says(PerhapsLost, "a counted up to 0-1-9")
	r.Read(&Contents{Unseen: "its binary logs could not be read"})
	says(PerhapsLost, "a counted up to 0-1-9")
	closed := *r
	if !Unlogged(&closed, Known{}) || Unlogged(&closed, Known{}) {
		t.Error("that it writes no binary log any more is to be said once")
	}
	if closed.Read(&Contents{Unseen: "its binary logs have none", Unwritten: true}); closed.Verdict != PerhapsLost || !strings.Contains(closed.Words, "writes no binary log any more") {
		t.Errorf("logs clear what is in no log: %s, %q", closed.Verdict, closed.Words)
	}
	r.Read(&Contents{Transactions: make([]errant.Transaction, 2)})
	says(Lost, "2 transactions of a not on b: 0-1-9")
}

// TestOutageWords: what is not known of an outage is not claimed.
func TestOutageWords(t *testing.T) {
	for _, c := range []struct {
		r    Receipt
		says string
	}{
		{Receipt{}, ""},
		{Receipt{Outage: 1500 * time.Millisecond}, "nobody took writes for 1.5 s"},
		{Receipt{Outage: 1500 * time.Millisecond, Longer: true}, "nobody took writes for at least 1.5 s, since the failover was asked for"},
	} {
		if got := c.r.OutageWords(); strings.ReplaceAll(got, "\u00a0", " ") != c.says {
			t.Errorf("%+v: %q, want %q", c.r, got, c.says)
		}
	}
	// The old primary came back in between, and took writes.
	again := time.Date(2026, 11, 30, 14, 42, 8, 0, time.UTC)
	back := Receipt{Old: "a", Verdict: PerhapsLost, Outage: 31 * time.Second, Again: again, Contents: &Contents{Transactions: []errant.Transaction{{Time: again.Add(time.Second)}}}}
	if !back.settled() || back.Verdict != Lost || back.OutageWords() != "" {
		t.Errorf("somebody took writes in between: got %+v, and %q; want Lost, and no words of an outage", back, back.OutageWords())
	}
}

// TestCleared: a receipt is completed once by an old primary that has nothing of its own; what it may have forgotten itself is not taken for nothing.
func TestCleared(t *testing.T) {
	const uuid = "aaaaaaaa-0000-0000-0000-000000000001"
	durable := Known{UUID: uuid, Executed: uuid + ":1-100", Settings: map[string]string{"sync_binlog": "1", "innodb_flush_log_at_trx_commit": "1"}}
	loose := durable
	loose.Settings = nil
	n := &topology.Node{}
	n.UUID, n.GTID.Executed = uuid, uuid+":1-103"
	for _, c := range []struct {
		was  Verdict
		k    Known
		want Verdict
		says string
	}{
		{NothingToLose, durable, NothingLost, "zero acknowledged transactions lost: a came back, and has nothing that b has not"},
		{PerhapsLost, loose, NothingToLose, "a came back, and has nothing that b has not; what it lost itself"},
		{NothingLost, loose, NothingLost, "proven; a came back"},
		{Lost, durable, Lost, "proven; a came back"},
	} {
		r := &Receipt{Verdict: c.was, Words: "proven", Old: "a", New: "b", Checked: "what was last seen of a"}
		if !Cleared(r, c.k, n) || r.Verdict != c.want || !strings.HasPrefix(r.Words, c.says) || r.Checked != theOld || Cleared(r, c.k, n) {
			t.Errorf("%s: %+v; want %s, %q", c.was, r, c.want, c.says)
		}
	}
}

// TestOtherData: an old primary that comes back with the data of another server, or without some that it had, proves nothing.
func TestOtherData(t *testing.T) {
	const uuid, other = "aaaaaaaa-0000-0000-0000-000000000001", "aaaaaaaa-0000-0000-0000-000000000002"
	for _, c := range []struct {
		what, known, uuid, has string
		is                     bool
	}{
		{"MySQL: it is the same", uuid + ":1-100", uuid, uuid + ":1-101", true},
		{"MySQL: another one, with all", uuid + ":1-100", other, uuid + ":1-101", false},
		{"MySQL: it lost some", uuid + ":1-100", uuid, uuid + ":1-99", false},
		{"MySQL: nothing was known", "", uuid, uuid + ":1-99", false},
		{"MariaDB: it is the same", "0-1-100,0-2-7", "", "0-1-101,0-2-7", true},
		{"MariaDB: it lost some", "0-1-100", "", "0-1-99", false},
		{"MariaDB: it is empty", "0-1-100", "", "", false},
		{"MariaDB: a copy of who followed", "0-1-100", "", "0-1-100,0-2-101", false},
	} {
		n := &topology.Node{}
		n.UUID, n.ServerID, n.GTID.Executed, n.GTID.State, n.GTID.ByDomain = c.uuid, "1", c.has, c.has, c.uuid == ""
		r := &Receipt{Verdict: PerhapsLost, Words: "not certain", Old: "a", New: "b"}
		k := Known{UUID: uuid, ServerID: "1", Executed: c.known, Settings: map[string]string{"sync_binlog": "1", "innodb_flush_log_at_trx_commit": "1"}}
		if !Cleared(r, k, n) || (r.Verdict == NothingLost) != c.is || strings.Contains(r.Words, "not proven") == c.is || Cleared(r, k, n) {
			t.Errorf("%s: %+v", c.what, r)
		}
	}
}
