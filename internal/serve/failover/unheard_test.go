package failover

import (
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/publish"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/store/agree"
)

// unheard is a controller that may have heard from the others.
type unheard struct {
	agree.Alone
	heard time.Time
}

func (u unheard) Heard() time.Time { return u.heard }

// Sole is false: there are others.
func (unheard) Sole() bool { return false }

// TestUnheard: a controller that was started names no primary before it has heard what was agreed on meanwhile.
func TestUnheard(t *testing.T) {
	g := &group.Group{Name: "g", Active: true, Epoch: 3, Members: []group.Member{{Name: "a", Address: "db1:3306", Status: group.Primary}, {Name: "b", Address: "db2:3306", Status: group.Secondary}}}
	for heard, want := range map[time.Time]bool{{}: false, time.Now(): true} {
		w := &watcher{d: &Desk{Options: Options{Lead: unheard{heard: heard}}}, g: g, primary: "a", belief: failover.Belief{State: failover.Alive}, last: map[string]seen{"a": {open: true}}}
		if v := w.viewOf(g, heard); (v.Primary != nil) != want || (v.NoPrimary == "") != want {
			t.Errorf("heard at %s: %+v, want a primary: %t", heard, v, want)
		}
	}
}

// TestLookBefore: a look at a member from before it was the primary says nothing of the primary.
func TestLookBefore(t *testing.T) {
	g := &group.Group{Name: "g", Active: true, Epoch: 3, Members: []group.Member{{Name: "a", Address: "db1:3306", Status: group.Primary}}}
	now := time.Now()
	for at, want := range map[time.Time]bool{now.Add(-time.Millisecond): true, now.Add(time.Millisecond): false} {
		w := &watcher{d: &Desk{Options: Options{Lead: unheard{heard: now}}}, g: g, primary: "a", named: now, belief: failover.Belief{State: failover.Alive},
			last: map[string]seen{"a": {at: at, channels: make([]read.ReplicaChannel, 1)}}}
		if v := w.viewOf(g, now); (v.Primary != nil) != want {
			t.Errorf("a look %s after it became the primary: %+v", at.Sub(now), v)
		}
	}
}

// TestSupplanted: clients that write are not told a primary that takes no writes while another member takes them from which all others replicate.
func TestSupplanted(t *testing.T) {
	now := time.Now()
	from := func(address string) []read.ReplicaChannel {
		return []read.ReplicaChannel{{Status: fleet.Channel{Source: address}}}
	}
	for _, c := range []struct {
		name   string
		change func(g *group.Group, last map[string]seen)
		told   bool
	}{
		{"all others follow it", func(*group.Group, map[string]seen) {}, false},
		{"nobody else answers", func(_ *group.Group, last map[string]seen) { last["c"] = seen{at: now, kind: "timeout"} }, false},
		{"one that is out follows nobody", func(g *group.Group, last map[string]seen) {
			g.Members[2].Status, last["c"] = group.Faulty, seen{at: now}
		}, false},
		{"the primary takes writes", func(_ *group.Group, last map[string]seen) { last["a"] = seen{at: now, open: true} }, true},
		{"it takes none", func(_ *group.Group, last map[string]seen) { last["b"] = seen{at: now} }, true},
		{"it replicates", func(_ *group.Group, last map[string]seen) {
			last["b"] = seen{at: now, open: true, channels: from("db1:3306")}
		}, true},
		{"another one follows the primary", func(_ *group.Group, last map[string]seen) {
			last["c"] = seen{at: now, channels: from("db1:3306")}
		}, true},
		{"it is out", func(g *group.Group, _ map[string]seen) { g.Members[1].Status = group.Faulty }, true},
		{"it took writes before the primary was it", func(_ *group.Group, last map[string]seen) {
			last["b"] = seen{at: now.Add(-time.Hour), open: true}
		}, true},
		{"nobody looks after the group", func(g *group.Group, _ map[string]seen) { g.Active = false }, true},
	} {
		g := &group.Group{Name: "g", Active: true, Epoch: 3, Members: []group.Member{{Name: "a", Address: "db1:3306", Status: group.Primary},
			{Name: "b", Address: "db2:3306", Status: group.Secondary}, {Name: "c", Address: "db3:3306", Status: group.Secondary}}}
		last := map[string]seen{"a": {at: now}, "b": {at: now, open: true, uuid: "2"}, "c": {at: now, channels: from("db2:3306")}}
		c.change(g, last)
		w := &watcher{d: &Desk{Options: Options{Lead: unheard{heard: now}}}, g: g, primary: "a", named: now.Add(-time.Minute), belief: failover.Belief{State: failover.Alive}, last: last}
		if v := w.viewOf(g, now); (v.Primary != nil) != c.told {
			t.Errorf("%s: %+v, want the primary told: %t", c.name, v, c.told)
		}
	}
}

// TestReadBefore: a group that was read before this controller had heard what was agreed on meanwhile is told to nobody, though it has heard that since: the old primary may have just come back.
func TestReadBefore(t *testing.T) {
	g := &group.Group{Name: "g", Active: true, Epoch: 3, Members: []group.Member{{Name: "a", Address: "db1:3306", Status: group.Primary}, {Name: "b", Address: "db2:3306", Status: group.Secondary}}}
	d := &Desk{Options: Options{Lead: unheard{heard: time.Now()}, Board: publish.NewBoard()}}
	w := &watcher{d: d, g: g, primary: "a", belief: failover.Belief{State: failover.Alive}, last: map[string]seen{"a": {open: true}}}
	w.show()
	if v, ok := d.Board.View("g"); !ok || v.Primary != nil || v.NoPrimary == "" {
		t.Errorf("read before: got %+v, want no primary", v)
	}
	w.knew = time.Now()
	w.show()
	if v, ok := d.Board.View("g"); !ok || v.Primary == nil || v.Seen != w.knew {
		t.Errorf("read after: got %+v, want the primary, as it was known at %s", v, w.knew)
	}
}

// TestSeenByMonotonicClock: how old a view is does not change as somebody sets the clock of the machine.
func TestSeenByMonotonicClock(t *testing.T) {
	monotonic := func(at time.Time) bool { return strings.Contains(at.String(), " m=") }
	g := &group.Group{Name: "g", Active: true, Epoch: 3, Members: []group.Member{{Name: "a", Address: "db1:3306", Status: group.Primary}}}
	w := &watcher{d: &Desk{Options: Options{Lead: agree.Alone{}, Board: publish.NewBoard()}}, g: g, primary: "a", belief: failover.Belief{State: failover.Alive}, last: map[string]seen{"a": {open: true}}}
	w.show()
	if v, _ := w.d.Board.View("g"); !monotonic(v.Seen) {
		t.Errorf("alive: it was seen at %s, without the monotonic clock", v.Seen)
	}
	w.belief = failover.Belief{State: failover.Suspect, Since: time.Now()}
	if v := w.viewOf(g, time.Now()); v.Seen != w.belief.Since {
		t.Errorf("suspected: it was seen at %s, want %s", v.Seen, w.belief.Since)
	}
}
