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
	if !AmendByLogs(r, errant(uuid+":7")) || !Amend(r, errant(uuid+":7-8")) {
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
