package failover

import (
	"strings"
	"testing"
	"time"

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
}

// TestCleared: a receipt is completed once by an old primary that has nothing of its own; what it may have forgotten itself is not taken for nothing.
func TestCleared(t *testing.T) {
	durable := Known{Settings: map[string]string{"sync_binlog": "1", "innodb_flush_log_at_trx_commit": "1"}}
	for _, c := range []struct {
		was  Verdict
		k    Known
		want Verdict
		says string
	}{
		{NothingToLose, durable, NothingLost, "zero acknowledged transactions lost: a came back, and has nothing that b has not"},
		{PerhapsLost, Known{}, NothingToLose, "a came back, and has nothing that b has not; what it lost itself"},
		{NothingLost, Known{}, NothingLost, "proven; a came back"},
		{Lost, durable, Lost, "proven; a came back"},
	} {
		r := &Receipt{Verdict: c.was, Words: "proven", Old: "a", New: "b", Checked: "what was last seen of a"}
		if !Cleared(r, c.k) || r.Verdict != c.want || !strings.HasPrefix(r.Words, c.says) || r.Checked != theOld || Cleared(r, c.k) {
			t.Errorf("%s: %+v; want %s, %q", c.was, r, c.want, c.says)
		}
	}
}
