package lag

import (
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// TestDrain: how long a backlog takes is the rate that was seen; what is not known is not given a number.
func TestDrain(t *testing.T) {
	// applies is a replica that has received up to a transaction, and has applied some of that at both moments, two seconds apart.
	applies := func(received, before, after string) Facts {
		f := running(t)
		f.Before.Received, f.After.Received = gtids(t, uuid+":1-"+received), gtids(t, uuid+":1-"+received)
		f.Before.Applied, f.After.Applied = gtids(t, uuid+":1-"+before), gtids(t, uuid+":1-"+after)
		return f
	}
	delayed := func(f Facts) Facts {
		f.Before.Delay, f.After.Delay = 3600, 3600
		return seen(f, 5, applier(read.ApplierCoordinates, read.ApplierDelayed))
	}
	stopped := applies("900", "100", "100")
	stopped.After.SQLRunning = "No"
	locked := seen(applies("900", "100", "100"), 5, applier(read.ApplierCoordinates, read.ApplierBusy))
	for i := range locked.Looks {
		locked.Looks[i].Locks = []read.LockWait{{Waiter: 7, Kind: read.LockRow, Schema: "shop", Name: "t", Index: "PRIMARY", Blocker: read.Blocker{ID: 9, User: "app", Command: "Sleep"}}}
	}
	large := applies("900", "100", "300") // 600 are left: 6 s, if they were as small as those before
	large.After.Unapplied, large.Before.Pos, large.After.Pos = 50_000, 1000, 2000
	maria := delayed(applies("900", "100", "300"))
	maria.Server = mysql.Of(fleet.ServerOf("10.11.6-MariaDB", ""))
	slow := maria
	slow.Before.Applied = gtids(t, uuid+":1-299")
	slow.After.Delay = 10
	mute := running(t)
	mute.Before.Received, mute.Before.Applied, mute.After.Received, mute.After.Applied = mysql.GTIDSet{}, mysql.GTIDSet{}, mysql.GTIDSet{}, mysql.GTIDSet{}
	for name, c := range map[string]struct {
		f       Facts
		more    int64
		left    int64   // -1: not known
		seconds float64 // -1: not known
		atMost  bool
		stands  bool
		words   string
	}{
		"nothing":                             {applies("900", "100", "900"), 0, 0, 0, false, false, "nothing to apply"},
		"nothing, and it stands":              {func() Facts { f := applies("9", "9", "9"); f.After.SQLRunning = "No"; return f }(), 0, 0, 0, false, false, "nothing to apply"},
		"as fast as it is":                    {applies("900", "100", "300"), 0, 600, 6, false, false, "about 6 s"},
		"with what its source has":            {applies("900", "100", "300"), 400, 1000, 10, false, false, "about 10 s"},
		"it had too little to apply":          {applies("900", "800", "890"), 0, 10, 2.0 / 9, false, false, "about 1 s"},
		"more came than it had":               {func() Facts { f := applies("900", "800", "890"); f.Before.Received = gtids(t, uuid+":1-820"); return f }(), 0, 10, 2.0 / 9, true, false, "at most 1 s"},
		"what is left is larger":              {large, 0, 600, 100, false, false, "about 100 s"},
		"it finished nothing":                 {applies("900", "100", "100"), 0, 800, -1, false, false, "it is not known how long: it finished nothing within 2 s"},
		"a lock":                              {locked, 0, 800, -1, false, false, "it is not known how long: it finished nothing within 2 s: "},
		"its applier stands":                  {stopped, 0, 800, -1, false, true, "never, as it is: its applier does not run"},
		"late on purpose":                     {delayed(applies("900", "100", "300")), 0, 600, 6, true, false, "at most 6 s without its delay of 1 h"},
		"late on purpose, and nothing is due": {delayed(applies("900", "100", "100")), 0, 800, -1, false, false, "it is not known how long: how fast it is without its delay of 1 h was not seen"},
		"a MariaDB keeps its delay":           {maria, 0, 600, 3600, true, false, "at most 60 min, as it applies what it received no sooner than after its delay"},
		"a MariaDB that is slower than that":  {slow, 0, 600, 1200, true, false, "at most 20 min, as"},
		"no GTIDs":                            {mute, 0, -1, -1, false, false, "it is not known how long: the server does not tell by GTIDs"},
	} {
		d := c.f.Drain(c.more)
		left, seconds := int64(-1), -1.0
		if d.Transactions != nil {
			left = *d.Transactions
		}
		if d.Seconds != nil {
			seconds = *d.Seconds
		}
		if left != c.left || seconds < c.seconds-1e-6 || seconds > c.seconds+1e-6 || d.AtMost != c.atMost || d.Stands != c.stands || !strings.HasPrefix(d.Words, c.words) {
			t.Errorf("%s: got %d transactions, %g s, at most %t, stands %t, %q; want %d, %g s, %t, %t, %q", name, left, seconds, d.AtMost, d.Stands, d.Words, c.left, c.seconds, c.atMost, c.stands, c.words)
		}
	}
	if d := locked.Drain(0); !strings.Contains(d.Words, "lock") {
		t.Errorf("a lock that was seen is not named: %q", d.Words)
	}
}
