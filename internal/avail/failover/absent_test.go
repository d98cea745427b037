package failover_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/fleet"
)

// TestAbsent: for whom a failover waits: who had, or may have, what nobody has who answers; nobody waits for one that has been away for long.
func TestAbsent(t *testing.T) {
	died := time.Now()
	a := uuidA + ":"
	had := func(before time.Duration, received string) map[string]failover.Had {
		return map[string]failover.Had{"c": {At: died.Add(-before), Received: received}}
	}
	for _, c := range []struct {
		what  string
		known failover.Known // of a, which died
		here  map[string]string
		wait  bool
		words string
	}{
		{"it had more", failover.Known{Executed: a + "1-5", Had: had(time.Hour, a+"1-10")}, map[string]string{"b": a + "1-5"}, true, "c had 5 transactions that nobody has who answers: " + a + "6-10"},
		{"it had more of another one: its own", failover.Known{Executed: a + "1-5", Had: had(0, a+"1-5,"+uuidC+":1-3")}, map[string]string{"b": a + "1-5"}, false, ""},
		{"one that answers has all", failover.Known{Executed: a + "1-10", Had: had(0, a+"1-10")}, map[string]string{"b": a + "1-5", "d": a + "1-10"}, false, ""},
		{"two that answer have all together", failover.Known{Executed: a + "1-10", Had: had(0, a+"1-10")}, map[string]string{"b": a + "1-5", "d": a + "6-10"}, false, ""},
		{"it fell silent with the primary, which had more", failover.Known{Executed: a + "1-10", Had: had(time.Second, a+"1-5")}, map[string]string{"b": a + "1-5"}, true, "c may have 5 transactions of a"},
		{"it was away before, and the primary had more", failover.Known{Executed: a + "1-10", Had: had(time.Minute, a+"1-5")}, map[string]string{"b": a + "1-5"}, false, ""},
		{"it was never seen beside the primary", failover.Known{Executed: a + "1-10", Had: map[string]failover.Had{"c": {}}}, map[string]string{"b": a + "1-5"}, false, ""},
		{"nobody knows when it was seen", failover.Known{Executed: a + "1-10"}, map[string]string{"b": a + "1-5"}, true, "c may have"},
		{"nothing is known of the primary", failover.Known{}, map[string]string{"b": a + "1-5"}, false, ""},
		{"each commit waited for one of two", failover.Known{Executed: a + "1-5", Told: true, Lossless: true, WaitFor: 1, Acks: []string{"b", "c"}, Had: had(0, a+"1-5")}, map[string]string{"b": a + "1-5"}, true, "c may have acknowledged"},
		{"each commit waited for both", failover.Known{Executed: a + "1-5", Told: true, Lossless: true, WaitFor: 2, Acks: []string{"b", "c"}, Had: had(0, a+"1-5")}, map[string]string{"b": a + "1-5"}, false, ""},
		{"MariaDB", failover.Known{ServerID: "1", Executed: "0-1-5", Had: had(time.Hour, "0-1-10")}, map[string]string{"b": "0-1-5"}, true, "c had 5 transactions"},
		{"MariaDB: another server's", failover.Known{ServerID: "1", Executed: "0-1-5", Had: had(0, "0-1-5,0-3-6")}, map[string]string{"b": "0-1-5"}, false, ""},
	} {
		c.known.Name, c.known.At = "a", died
		if c.known.ServerID == "" {
			c.known.UUID = uuidA
		}
		names, words := c.known.Absent(c.here, []string{"c"})
		if slices.Contains(names, "c") != c.wait || !strings.Contains(words, c.words) || (words != "") != c.wait {
			t.Errorf("%s: %v, %q; want %v, %q", c.what, names, words, c.wait, c.words)
		}
	}
}

// TestDeaf: which receivers stand, whether the primary lives or not, and that a forecast says so.
func TestDeaf(t *testing.T) {
	for _, c := range []struct {
		io     string
		number int
		deaf   bool
	}{{"Yes", 0, false}, {"No", 0, true}, {"No", 1236, true}, {"No", 2003, true}, {"Connecting", 0, false}, {"Connecting", 2003, false}, {"Connecting", 2013, false}, {"Connecting", 1045, true}, {"Connecting", 2061, true}} {
		ch := fleet.Channel{IORunning: c.io}
		if c.number > 0 {
			ch.IO = fleet.ReplicaError{Number: c.number, Text: "error"}
		}
		if got := failover.Deaf(ch); (got != "") != c.deaf {
			t.Errorf("%s with error %d: %q", c.io, c.number, got)
		}
	}
	s := mysqlScene()
	old := *s.node("b")
	old.Name, old.Addresses, old.Channels, old.UUID, old.ServerID, old.GTID.Executed = "a", []string{"a:3306"}, nil, uuidA, "9", uuidA+":1-103"
	s.Topology.Nodes = append(s.Topology.Nodes, old)
	s.Known.Executed = uuidA + ":1-103"
	if got := failover.Choose(s.Question); got.Winner != "b" || got.Ready() || got.Deaf == nil || got.Count != 3 || !slices.Contains(got.Candidates[0].Notes, "it does not receive: its receiver is stopped") {
		t.Errorf("nobody receives: %+v, %+v", got, got.Deaf)
	}
	s.node("d").Channels[0].IORunning = "Yes"
	if got := failover.Choose(s.Question); !got.Ready() || got.Deaf != nil {
		t.Errorf("one receives: %+v", got.Deaf)
	}
}

// TestAgreeing: of a group that is failed over by itself a forecast says whether its replicas could agree that the primary is dead, as they would then.
func TestAgreeing(t *testing.T) {
	for _, c := range []struct {
		b, c, d string // how the replicas stand: hears, deaf, away, gone, chained, spare
		few     bool
	}{
		{"hears", "hears", "hears", false}, {"hears", "hears", "deaf", false}, {"hears", "deaf", "deaf", true}, {"hears", "hears", "away", false}, {"hears", "deaf", "away", true},
		{"hears", "gone", "deaf", true}, {"hears", "gone", "gone", false}, {"hears", "chained", "chained", true}, {"hears", "hears", "chained", false}, {"hears", "deaf", "spare", false},
	} {
		s, now := mysqlScene(), time.Now()
		s.Group.Policy.Automatic = true
		old := *s.node("b")
		old.Name, old.Addresses, old.Channels, old.UUID, old.ServerID = "a", []string{"a:3306"}, nil, uuidA, "9"
		s.Topology.Nodes = append(s.Topology.Nodes, old)
		stands, names := map[string]string{"b": c.b, "c": c.c, "d": c.d}, []string{}
		for name, how := range stands {
			n := s.node(name)
			n.Channels[0].IORunning = "Yes"
			switch how {
			case "deaf":
				n.Channels[0].IORunning = "No"
				names = append(names, name+": its receiver is stopped")
			case "away", "gone":
				n.Seen, n.Unseen = false, &topology.Failure{Kind: map[string]string{"away": "timeout", "gone": "refused"}[how]}
				names = append(names, name+": it does not answer")
			case "chained":
				n.Channels[0].Source, n.Channels[0].SourceID = "b:3306", uuidB
				names = append(names, name+": it replicates from b:3306")
			case "spare":
				s.member(name).Status = group.Spare
			}
		}
		got := failover.Choose(s.Question)
		if (got.Few != nil) != c.few || got.Ready() == c.few {
			t.Errorf("%v: %+v, ready %t; want few %t", stands, got.Few, got.Ready(), c.few)
		}
		for _, name := range names {
			if c.few && !strings.Contains(got.Few.Why, name) {
				t.Errorf("%v: %s, want %q", stands, got.Few.Why, name)
			}
		}
		w := failover.NewWatch(failover.DefaultPatience(), failover.Expected(s.Group))
		for i := range 20 {
			w.Probed(failover.Probe{At: now.Add(time.Duration(i) * 100 * time.Millisecond), Kind: "refused"})
		}
		at := now.Add(2 * time.Second)
		for name, how := range stands {
			x := failover.Witness{Name: name, At: at, Answers: how != "away" && how != "gone", Down: how == "gone", Follows: how == "hears" || how == "spare"}
			if how == "deaf" {
				x.Deaf = "its receiver is stopped"
			}
			w.Heard(x)
		}
		if b := w.Belief(at); (b.State == failover.Dead) == c.few {
			t.Errorf("%v: when it is dead it is %s: %s", stands, b.State, b.Words)
		}
		s.Group.Policy.Automatic = false
		if got := failover.Choose(s.Question); got.Few != nil || !got.Ready() {
			t.Errorf("%v, by hand: %+v", stands, got.Few)
		}
	}
}

// TestAfter: what was acknowledged without a replica has to be there; what came after that, while no commit went on without one, need not.
func TestAfter(t *testing.T) {
	first := failover.Known{ServerID: "1", Executed: "0-1-90", Lossless: true, Acks: []string{"b", "c"}, Unacked: 4}.After(failover.Known{})
	if first.Covered != "0-1-90" || first.Owed() != "0-1-90" {
		t.Fatalf("at first: %+v", first)
	}
	next := first
	next.Executed = "0-1-103"
	had := func(k failover.Known, b string) failover.Known {
		k.Had = map[string]failover.Had{"b": {Received: b}}
		return k
	}
	loose, went, other := next, next, next
	loose.Lossless, went.Unacked, other.ServerID = false, 5, "7"
	for _, c := range []struct {
		what string
		was  failover.Known
		now  failover.Known
		owed string
	}{
		{"nobody has what it had", first, had(next, "0-1-80"), "0-1-90"},
		{"it is not known what anybody has", first, next, "0-1-90"},
		{"a replica has it", failover.Known{ServerID: "1", Executed: "0-1-99", Covered: "0-1-90", Lossless: true, Unacked: 4}, had(next, "0-1-99"), "0-1-99"},
		{"it waits for nobody", first, loose, "0-1-103"},
		{"a commit went on without a replica", first, went, "0-1-103"},
		{"another server", first, other, "0-1-103"},
		{"it did not wait before", failover.Known{ServerID: "1", Executed: "0-1-90", Covered: "0-1-90", Unacked: 4}, next, "0-1-103"},
	} {
		if got := c.now.After(c.was).Owed(); got != c.owed {
			t.Errorf("%s: %s, want %s", c.what, got, c.owed)
		}
	}
	if k := (failover.Known{Executed: "00000000-0000-0000-0000-00000000000a:1-9", Covered: "00000000-0000-0000-0000-00000000000a:1-5", Lossless: true}); k.Owed() != k.Executed {
		t.Error("a MySQL has a GTID only when a replica has acknowledged it")
	}
}

// TestReceived: of sets that overlap, what both have is there once.
func TestReceived(t *testing.T) {
	for _, c := range []struct {
		sets []string
		want string
	}{
		{[]string{"0-1-9,0-2-6", "0-1-9", "0-1-9,0-3-1"}, "0-1-9,0-2-6,0-3-1"},
		{[]string{uuidA + ":1-5,\n" + uuidC + ":1-185", "", uuidC + ":1-185"}, uuidA + ":1-5," + uuidC + ":1-185"},
		{[]string{uuidA + ":1-5", uuidA + ":1-6"}, uuidA + ":1-6"},
	} {
		if got := failover.Received(c.sets...); got != c.want {
			t.Errorf("Received(%q) = %q, want %q", c.sets, got, c.want)
		}
	}
}
