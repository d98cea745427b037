package failover

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/failover/carry"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/fleet"
)

// TestDraining: that a failover would wait long for the winner is told by what that finishes from look to look; a burst, or one look, says nothing of it.
func TestDraining(t *testing.T) {
	type look struct {
		after             time.Duration
		received, applied int
	}
	const s = time.Second
	for _, c := range []struct {
		what  string
		looks []look
		want  string // in the finding; "": there is none
	}{
		{"one look", []look{{0, 9000, 0}}, ""},
		{"all is applied", []look{{0, 100, 100}, {5 * s, 200, 200}, {10 * s, 300, 300}}, ""},
		{"it is fast enough", []look{{0, 9000, 0}, {5 * s, 9000, 3000}, {10 * s, 9000, 6000}}, ""},
		{"it takes long, by one look", []look{{0, 9000, 0}, {5 * s, 9000, 100}}, ""},
		{"it takes long", []look{{0, 9000, 0}, {5 * s, 9000, 100}, {10 * s, 9000, 200}}, "a failover of g would wait for about 7 min: b has 8,800 transactions to apply;"},
		{"a burst after a calm", []look{{0, 100, 100}, {5 * s, 9000, 110}}, ""},
		{"bursts", []look{{0, 100, 97}, {5 * s, 9000, 100}, {10 * s, 18000, 9000}, {15 * s, 18000, 18000}}, ""},
		{"bursts that grow", []look{{0, 100, 98}, {5 * s, 600, 103}, {10 * s, 10000, 601}}, ""},
		{"it finishes nothing", []look{{0, 9000, 10}, {10 * s, 9000, 10}, {20 * s, 9000, 10}, {31 * s, 9000, 10}, {36 * s, 9000, 10}}, "nobody knows how long: b has 8,990 transactions to apply, and has finished none for 36 s;"},
		{"it finishes nothing for a while", []look{{0, 9000, 10}, {10 * s, 9000, 10}, {20 * s, 9000, 10}, {29 * s, 9000, 10}}, ""},
		{"it goes on", []look{{0, 9000, 10}, {20 * s, 9000, 10}, {31 * s, 9000, 10}, {36 * s, 9000, 10}, {41 * s, 9000, 5000}}, ""},
	} {
		g := &group.Group{Name: "g", Active: true, Members: []group.Member{{Name: "a", Status: group.Primary}, {Name: "b", Address: "b:3306", Status: group.Secondary, Rule: group.Neutral}}}
		var st standing
		began := time.Now()
		for _, l := range c.looks {
			set := func(n int) string { return fmt.Sprintf("aaaaaaaa-0000-0000-0000-000000000000:1-%d", n+1) }
			n := topology.Node{Name: "b", Seen: true}
			n.Server = fleet.Server{Flavour: fleet.FlavourMySQL, Version: "8.4.0", Number: 80400}
			n.Facts.Asked, n.Log, n.Writes.ReadOnly = began.Add(l.after), topology.BinaryLog{On: true, Updates: true, Format: "ROW"}, true
			n.GTID = topology.GTIDs{Mode: "ON", Executed: set(l.applied)}
			n.Channels = []topology.Channel{{Channel: fleet.Channel{IORunning: "Yes", SQLRunning: "Yes", GTID: true}, Received: set(l.received)}}
			f := &carry.Forecast{Group: g, Old: "a", Alive: true}
			f.Choice = failover.Choose(failover.Question{Group: g, Topology: &topology.Topology{Nodes: []topology.Node{n}}, Old: "a", Alive: true})
			if f.Choice.Winner != "b" {
				t.Fatalf("%s: nobody would follow: %+v", c.what, f.Choice)
			}
			st.seen = f
			st.drains.see(f)
		}
		var got string
		for _, f := range findings(g, failover.Belief{State: failover.Alive}, st, carry.Looks) {
			got += f.ID + ": " + f.What + ": " + f.Why + " "
		}
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) || c.want != "" && !strings.Contains(got, "failover.unready: ") {
			t.Errorf("%s: got %q, want %q", c.what, got, c.want)
		}
	}
}

// TestControllerBeside: a finding of low severity tells of the only controller that would die with the primary, where it is to fail over.
func TestControllerBeside(t *testing.T) {
	g := &group.Group{Name: "g", Active: true, Members: []group.Member{{Name: "a", Status: group.Primary}, {Name: "b", Status: group.Secondary}}}
	f := &carry.Forecast{Old: "a", Alive: true, Choice: failover.Choice{Winner: "b"}, Beside: &fleet.Trouble{What: "beside", Why: "why", Remedy: "remedy"}}
	for _, c := range []struct {
		what string
		s    standing
		care carry.Care
		want bool
	}{
		{"it fails over", standing{seen: f, sole: true}, carry.Tends, true},
		{"it does not fail over", standing{seen: f, sole: true}, carry.Opens, false},
		{"there are other controllers", standing{seen: f}, carry.Tends, false},
	} {
		list := findings(g, failover.Belief{State: failover.Alive}, c.s, c.care)
		if (len(list) == 1) != c.want || c.want && (list[0].ID != "failover.controller" || list[0].Severity != fleet.SeverityInfo) {
			t.Errorf("%s: got %+v", c.what, list)
		}
	}
}
