package carry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/semisync/turn"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// This file looks after what commits of a primary wait for, between changes of the primary.

// Lack is what is wrong with how commits of a primary wait for replicas.
type Lack struct {
	fleet.Trouble
	Blocks bool `json:"blocks"` // commits wait for good; else they can be acknowledged without a replica
}

// Words are one line.
func (l Lack) Words() string { return l.What + ": " + l.Why + " (" + l.Remedy + ")" }

// longWait is how long a commit waits, though enough replicas acknowledge, before the primary is told what they have, and missed before that is said.
const (
	longWait = 2 * time.Second
	missed   = 10 * time.Second
)

// lacks says what is wrong with how commits of the primary wait. It is pure.
func lacks(g *group.Group, t *topology.Topology) (list []Lack) {
	i := g.Primary()
	if i < 0 {
		return nil
	}
	p := t.Find(g.Members[i].Name)
	if p < 0 || !t.Nodes[p].Seen || len(t.Nodes[p].Channels) > 0 {
		return nil
	}
	n := &t.Nodes[p]
	s, prepare := &n.SemiSync, prepares(g)
	if !g.Policy.SemiSync {
		prepare = "risso semisync status --dsn says what to do"
	}
	add := func(blocks bool, remedy, what, why string, args ...any) {
		list = append(list, Lack{fleet.Trouble{What: what, Why: fmt.Sprintf(why, args...), Remedy: remedy}, blocks})
	}
	need := max(1, s.WaitFor)
	hang := "commits of " + n.Name + " hang"
	switch {
	case s.SourceActive && s.Replicas < need && s.WaitNobody:
		remedy := prepare
		if g.Policy.SemiSync {
			remedy = acknowledging(g, t, n)
		}
		add(true, remedy, hang, "%s, and %d needed%s", digits.Plural(s.Replicas, "replica acknowledges", "replicas acknowledge"), need, silentMembers(g, t, n))
	case s.SourceActive && s.WaitSessions > 0 && s.Waited >= missed:
		add(true, prepare, hang, "one waits for %s for an acknowledgement, though %s: of what replicas received before they acknowledged none comes", digits.Span(s.Waited), digits.Plural(s.Replicas, "replica acknowledges", "replicas acknowledge"))
	}
	if !g.Policy.SemiSync || !n.Writes.Open() {
		return list
	}
	alone := "commits of " + n.Name + " can be acknowledged without a replica"
	switch {
	case s.SourceSetting == "":
		add(false, prepare, alone, "it has no semi-sync, which the group wants")
	case !s.SourceEnabled:
		add(false, prepare, alone, "%s is OFF, and the policy of %s is semi-sync", s.SourceSetting, g.Name)
	default:
		var words []string
		if s.Timeout < time.Hour {
			words = append(words, "they wait for "+digits.Span(s.Timeout)+" at most")
		}
		if s.Point != "AFTER_SYNC" {
			words = append(words, "they wait after others see them ("+s.Point+")")
		}
		if !s.WaitNobody {
			words = append(words, "they wait only while enough replicas are connected")
		}
		if !s.SourceActive {
			words = append(words, "semi-sync is switched on, and not in force now")
		}
		if len(words) > 0 {
			add(false, prepare, alone, "%s, and the policy of %s is semi-sync", strings.Join(words, "; "), g.Name)
		}
	}
	return list
}

// prepares is the command that makes a group ready.
func prepares(g *group.Group) string { return "risso group prepare " + g.Name }

// acknowledging is what lets enough members acknowledge: that they are prepared, if enough answer; else those that do not have to be started.
func acknowledging(g *group.Group, t *topology.Topology, primary *topology.Node) string {
	need, answer := max(1, primary.SemiSync.WaitFor), 0
	var down []string
	for _, m := range g.Members {
		i := t.Find(m.Name)
		switch {
		case m.Name == primary.Name:
		case i < 0 || !t.Nodes[i].Seen:
			down = append(down, m.Name)
		case m.Status != group.Faulty:
			answer++
		}
	}
	side, ok := sideOf(mysql.Of(primary.Server), primary.SemiSync.SourceSetting)
	switch {
	case answer >= need:
		return prepares(g)
	case answer > 0 && ok && side.Count != "":
		fewer := fmt.Sprintf("let commits wait for %d: SET GLOBAL %s = %d on %s", answer, side.Prefix+"_"+side.Count, answer, primary.Name)
		if len(down) > 0 {
			return "start " + strings.Join(down, ", ") + ", or " + fewer
		}
		return fewer
	case len(down) > 0:
		return "start " + strings.Join(down, ", ")
	}
	return "risso group show " + g.Name
}

// silentMembers says of which members it is known why they do not acknowledge.
func silentMembers(g *group.Group, t *topology.Topology, primary *topology.Node) string {
	var words []string
	for _, m := range g.Members {
		i := t.Find(m.Name)
		if m.Name == primary.Name || i < 0 {
			continue
		}
		switch n := &t.Nodes[i]; {
		case !n.Seen:
			words = append(words, m.Name+" does not answer")
		case m.Status == group.Faulty:
			words = append(words, m.Name+" is FAULTY")
		case n.SemiSync.ReplicaSetting == "":
			words = append(words, m.Name+" has no semi-sync")
		case !n.SemiSync.ReplicaEnabled:
			words = append(words, n.SemiSync.ReplicaSetting+" is OFF on "+m.Name)
		case len(n.Channels) == 1 && mysql.LoginRefused(n.Channels[0].Channel, n.Channels[0].Tries):
			words = append(words, m.Name+" is not let in by the primary ("+n.Channels[0].IO.Words()+")")
		case len(n.Channels) != 1 || !n.Channels[0].Receiving():
			words = append(words, m.Name+" does not receive")
		case !n.SemiSync.ReplicaActive:
			words = append(words, m.Name+" connected before it was switched on there")
		}
	}
	if len(words) == 0 {
		return ""
	}
	return "; " + strings.Join(words, ", ")
}

// commitChores are what a group needs whose commits are to wait for replicas: those that came back acknowledge, a primary that waits for what they have already is told so,
// and it waits for as many as it was to.
func commitChores(g *group.Group, t *topology.Topology, primary *topology.Node) (list []chore) {
	if !g.Policy.SemiSync {
		return nil
	}
	for _, m := range g.Members {
		i := t.Find(m.Name)
		if i < 0 || !t.Nodes[i].Seen || m.Name == primary.Name || m.Status == group.Faulty || m.Rebuild.Running(t.Time) {
			continue
		}
		if n := &t.Nodes[i]; silent(n, primary, g.Members[g.Primary()].Address) {
			list = append(list, chore{member: m.Name, what: "acknowledge", node: n})
		}
	}
	s := &primary.SemiSync
	if s.SourceActive && s.Waited >= longWait && (len(list) > 0 || s.Replicas >= max(1, s.WaitFor)) {
		list = append(list, chore{member: primary.Name, what: "vouch", node: primary})
	}
	if g.Acks != nil && s.SourceEnabled && (s.WaitFor != g.Acks.Set || s.Replicas > g.Acks.Set) {
		list = append(list, chore{member: primary.Name, what: "raise", node: primary})
	}
	return list
}

// silent reports whether a member that replicates does not acknowledge, or lets its own applier wait for replicas that it does not have.
func silent(n, primary *topology.Node, address string) bool {
	s := &n.SemiSync
	if s.ReplicaSetting == "" || n.Writes.Open() || !followsNode(n, address, primary) || !n.Channels[0].Receiving() || !n.Channels[0].Applying() {
		return false // one that applies nothing throws away what it received when it connects anew, as MariaDB does
	}
	return s.SourceEnabled || !s.ReplicaEnabled || primary.SemiSync.SourceEnabled && !s.ReplicaActive
}

// acknowledge lets a member acknowledge what it receives from now on, which it does on a connection that was made after that only.
func (r *run) acknowledge(ctx context.Context, ch chore) (string, error) {
	n, err := r.node(ctx, ch.member)
	if err != nil {
		return "", err
	}
	if err := r.waitsForNobody(ctx, n); err != nil {
		return "", err
	}
	if ch.node.SemiSync.ReplicaEnabled && ch.node.SemiSync.ReplicaActive {
		return fmt.Sprintf("%s, which replicates in %s, applies without waiting for replicas of its own", ch.member, r.g.Name), nil
	}
	if err := r.acknowledges(ctx, n); err != nil {
		return "", err
	}
	stop, start, _ := strings.Cut(n.c.Server.RestartReceiver(ch.node.Channels[0].Name), "; ")
	err = r.do(ctx, n, stop)
	if mysql.Answered(err) {
		return "", err
	}
	whatever, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.Limits.Stop) // it would not replicate
	defer cancel()
	if serr := r.do(whatever, n, start); serr != nil {
		return "", errors.Join(err, serr)
	}
	if err := r.receives(ctx, n); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s acknowledges again what it receives from the primary of %s", ch.member, r.g.Name), nil
}

// vouch tells the primary what its replicas have, when enough of them acknowledge.
func (r *run) vouch(ch chore) (string, error) {
	ctx := r.looks // it changes nothing that has to be written down
	n, err := r.node(ctx, ch.member)
	if err != nil {
		return "", err
	}
	for end := time.Now().Add(r.Limits.Stop); ; {
		s, err := read.SemiSyncNow(ctx, n.c)
		if err != nil {
			return "", fmt.Errorf("ask %s for semi-sync: %w", n.name, err)
		}
		if s.Source.Clients >= max(1, s.Source.Count) {
			break
		}
		if time.Now().After(end) {
			return "", nil // a finding says so
		}
		if err := delay.For(ctx, 50*time.Millisecond); err != nil {
			return "", err
		}
	}
	target := r.targets[ch.member]
	if a := r.access.Replication; a.User != "" {
		as, c, err := asReplica(ctx, target, a)
		if err != nil {
			return "", fmt.Errorf("log in at %s as replicas do: %w", n.name, err)
		}
		c.Close()
		target = as
	}
	told, err := turn.Vouch(ctx, target, n.c, r.places, r.Limits.Stop)
	if err != nil || !told {
		return "", err
	}
	return fmt.Sprintf("commits of %s, the primary of %s, waited for an acknowledgement of what replicas had received before they acknowledged: it was told that they have it", ch.member, r.g.Name), nil
}

// places asks the members that replicate from the primary how far they have received.
func (r *run) places(ctx context.Context) (list []turn.Place, err error) {
	primary := r.g.Members[r.g.Primary()]
	for _, m := range r.g.Members {
		if m.Name == primary.Name || m.Status == group.Faulty {
			continue
		}
		n, nerr := r.node(ctx, m.Name)
		if nerr != nil {
			err = errors.Join(err, nerr) // others may have it
			continue
		}
		channels, cerr := read.ReplicaChannels(ctx, n.c)
		if cerr != nil {
			err = errors.Join(err, fmt.Errorf("ask %s how far it is: %w", m.Name, cerr))
			continue
		}
		if len(channels) == 1 && strings.EqualFold(channels[0].Status.Source, primary.Address) && channels[0].IORunning && channels[0].SourceLog != "" {
			list = append(list, turn.Place{Replica: m.Name, File: channels[0].SourceLog, Pos: channels[0].SourcePos})
		}
	}
	if len(list) > 0 {
		err = nil
	}
	return list, err
}

// wanted is for how many replicas commits of the primary were to wait, where fewer could acknowledge when it became that, and nobody set another number since.
func wanted(g *group.Group, waitFor int) int {
	if a := g.Acks; a != nil && a.Set == waitFor {
		return a.Want
	}
	return waitFor
}

// lowered is what is kept with a group whose primary waits for so many; nil: it waits for as many as it is to.
func lowered(want, set int) *group.Acks {
	if set >= want {
		return nil
	}
	return &group.Acks{Want: want, Set: set}
}

// raise lets commits wait for as many replicas as they were to, as far as so many acknowledge; where somebody set another number that stays.
func (r *run) raise(ctx context.Context, ch chore) (text string, err error) {
	s, was := &ch.node.SemiSync, r.g.Acks
	var now *group.Acks
	if s.WaitFor == was.Set {
		count := min(was.Want, s.Replicas)
		if count <= was.Set {
			return "", nil
		}
		n, err := r.node(ctx, ch.member)
		if err != nil {
			return "", err
		}
		side, ok := sideOf(n.c.Server, s.SourceSetting)
		if !ok || side.Count == "" {
			return "", nil
		}
		set := waits(side, count)
		at := slices.IndexFunc(set, func(one string) bool { return strings.Contains(one, side.Count) })
		if err := r.do(r.looks, n, set[at]); err != nil {
			return "", err
		}
		now = lowered(was.Want, count)
		text = fmt.Sprintf("each commit of %s, the primary of %s, waits for %s again, as so many acknowledge", ch.member, r.g.Name, digits.Counted(count, "replica"))
	}
	return text, r.keepAcks(ctx, now)
}

// keepAcks writes down for how many replicas commits are to wait.
func (r *run) keepAcks(ctx context.Context, a *group.Acks) error {
	return r.change(ctx, func(g *group.Group) { g.Acks = a })
}

// reopen lets the primary take writes again, which came back without: its commits wait for replicas before, where the group wants that.
func (r *run) reopen(ctx context.Context, member string, t *topology.Topology) error {
	n, err := r.node(ctx, member)
	if err != nil {
		return err
	}
	if r.g.Policy.SemiSync {
		r.j.Known = KnownOf(r.g, t, member)
		r.toWait(t, member)
		if err := r.waitForAcks(ctx, n); err != nil {
			return err
		}
		if err := r.keepAcks(ctx, lowered(wanted(r.g, cmp.Or(r.j.Known.WaitFor, 1)), r.j.WaitFor)); err != nil {
			return err
		}
	}
	if err := r.alone(ctx, member, true); err != nil {
		return err
	}
	if err := r.confirm(ctx, member, r.g.Lease.Epoch); err != nil {
		return err
	}
	return r.open(ctx, n, r.g.Policy.SemiSync)
}
