package carry

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/semisync"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// acknowledgers are the members that would acknowledge commits of one that becomes the primary. Those left out do not follow it yet.
func acknowledgers(g *group.Group, t *topology.Topology, winner string, without ...string) (names []string) {
	skip := map[string]bool{winner: true}
	for _, name := range without {
		skip[name] = true
	}
	for _, m := range g.Members {
		if i := t.Find(m.Name); !skip[m.Name] && m.Status != group.Faulty && i >= 0 && t.Nodes[i].Seen && t.Nodes[i].SemiSync.ReplicaEnabled {
			names = append(names, m.Name)
		}
	}
	return names
}

// waitFor is for how many replicas each commit of a new primary is to wait: as many as the old one waited for, if there are so many; more would let each commit wait for
// good. words say that it is fewer; "": it is not.
func waitFor(k failover.Known, there []string) (count int, words string) {
	want := max(1, k.WaitFor)
	if len(there) == 0 {
		return 1, "writes of the new primary wait until a replica that acknowledges is back: of the members that would follow it none that answers could"
	}
	if count = min(want, len(there)); count == want {
		return count, ""
	}
	return count, fmt.Sprintf("each commit waits for %s, and not for %d as on %s: only %s can acknowledge", digits.Counted(count, "replica"), want, k.Name, strings.Join(there, ", "))
}

// sideOf is the side of a server on which its commits wait, by the name of the variable that switches it on.
func sideOf(s mysql.Server, setting string) (mysql.SemiSyncSide, bool) {
	sides, _ := s.SemiSyncSides()
	for _, side := range sides {
		if side.Prefix+"_enabled" == setting {
			return side, true
		}
	}
	return mysql.SemiSyncSide{}, false
}

// waits are the statements by which commits wait for so many replicas, however long that takes.
func waits(side mysql.SemiSyncSide, count int) (list []string) {
	set := func(name, value string) {
		list = append(list, "SET GLOBAL /* risso: commits wait for replicas */ "+side.Prefix+"_"+name+" = "+value)
	}
	set("wait_point", "AFTER_SYNC")
	set(side.None, "ON")
	set("timeout", strconv.FormatInt(semisync.Forever, 10))
	if side.Count != "" {
		set(side.Count, strconv.Itoa(count))
	}
	set("enabled", "ON")
	return list
}

// planWaits are the statements by which commits of a new primary will wait, and what is to be said of it.
func planWaits(g *group.Group, t *topology.Topology, k failover.Known, winner string, without ...string) (statements []string, words string) {
	n := &t.Nodes[t.Find(winner)]
	if !g.Policy.SemiSync {
		if k.SemiSync {
			words = "commits of " + k.Name + " wait for replicas; those of " + winner + " wait as it is set itself: the policy of the group is without semi-sync"
		}
		return nil, words
	}
	side, ok := sideOf(mysql.Of(n.Server), n.SemiSync.SourceSetting)
	if !ok {
		return nil, winner + noSemiSync + g.Name
	}
	k.WaitFor = wanted(g, k.WaitFor)
	count, words := waitFor(k, acknowledgers(g, t, winner, without...))
	return waits(side, count), words
}

// noSemiSync is said of a member on which commits cannot wait.
const noSemiSync = " has no semi-sync, which the group wants: its commits would wait for nobody; risso group prepare "

// acknowledges lets a member acknowledge what it receives, if the group wants that: one that was the primary did not need to.
func (r *run) acknowledges(ctx context.Context, n *node) error {
	if !r.g.Policy.SemiSync {
		return nil
	}
	s, err := read.SemiSyncNow(ctx, n.c)
	if err != nil {
		return fmt.Errorf("ask %s for semi-sync: %w", n.name, err)
	}
	if !s.Replica.Loaded || s.Replica.Enabled {
		return nil
	}
	return r.do(ctx, n, letsAcknowledge(s.Replica.Names.Prefix+"_enabled"))
}

// toWait writes down for how many replicas each commit of the new primary is to wait.
func (r *run) toWait(t *topology.Topology, winner string, without ...string) {
	if !r.g.Policy.SemiSync {
		return
	}
	k := r.j.Known
	k.WaitFor = wanted(r.g, k.WaitFor)
	count, words := waitFor(k, acknowledgers(r.g, t, winner, without...))
	if r.j.WaitFor = count; words != "" {
		r.caution("%s", words)
	}
}

// waitForAcks lets the new primary wait for acknowledgements before it takes writes.
func (r *run) waitForAcks(ctx context.Context, n *node) error {
	s, err := read.SemiSyncNow(ctx, n.c)
	if err != nil {
		return fmt.Errorf("ask %s for semi-sync: %w", n.name, err)
	}
	if !s.Source.Loaded { // better than no primary
		r.caution("%s", n.name+noSemiSync+r.g.Name)
		return nil
	}
	for _, set := range waits(s.Source.Names, max(1, r.j.WaitFor)) {
		if err := r.do(ctx, n, set); err != nil {
			return err
		}
	}
	return nil
}

// waitsForNobody lets a member that was the primary apply what it receives without waiting for acknowledgements: nobody replicates from it any more, and it would wait
// for good. It waits again when it is the primary again; one of which Risso would not know that is left as it is set.
func (r *run) waitsForNobody(ctx context.Context, n *node) error {
	if i := r.g.Find(n.name); !r.g.Policy.SemiSync && (i < 0 || len(r.g.Members[i].Fenced) == 0) {
		return nil
	}
	s, err := read.SemiSyncNow(ctx, n.c)
	if err != nil {
		return fmt.Errorf("ask %s for semi-sync: %w", n.name, err)
	}
	if !s.Source.Enabled {
		return nil
	}
	return r.do(ctx, n, waitsForNone(s.Source.Names.Prefix+"_enabled"))
}
