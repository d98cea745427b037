package failover

import (
	"cmp"
	"strings"

	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// Deaf says why a channel does not receive, whether its source lives or not: somebody stopped its receiver, or it stands in an error that is not about the way to the
// source. "": it receives, or would if the source were there.
func Deaf(ch fleet.Channel) string {
	switch {
	case ch.IORunning == "Yes":
		return ""
	case ch.IORunning == "No" && ch.IO.Text == "":
		return "its receiver is stopped"
	case ch.IO.Text != "" && (ch.IORunning == "No" || !mysql.AboutTheWay(ch.IO.Number)):
		return "its receiver has " + cmp.Or(ch.IO.Words(), "an error")
	}
	return ""
}

// receivers are the members that receive from the primary, by number, and those that answer and do not, each with why; the remedy is for the first of these.
func (ch *chooser) receivers() (hear int, deaf []string, remedy string) {
	for i := range ch.c.Candidates {
		c := &ch.c.Candidates[i]
		if c.node < 0 || !ch.Topology.Nodes[c.node].Seen || len(ch.Topology.Nodes[c.node].Channels) != 1 {
			continue
		}
		n := &ch.Topology.Nodes[c.node]
		l := &n.Channels[0]
		why := Deaf(l.Channel)
		if why == "" {
			hear++
			continue
		}
		c.Notes = append(c.Notes, "it does not receive: "+why)
		if deaf = append(deaf, c.Name+": "+why); remedy == "" {
			remedy = ch.hears(n, l)
		}
	}
	return hear, deaf, remedy
}

// receiving says that nobody receives from a primary that lives: it would be followed by one that has nothing of what it wrote since.
func (ch *chooser) receiving() {
	if ch.old == nil || ch.Alive { // nobody receives from one that is dead
		return
	}
	hear, deaf, remedy := ch.receivers()
	if hear > 0 || len(deaf) == 0 {
		return
	}
	if remedy == "" {
		remedy = "risso topology shows it"
	}
	no := NewRefusal("not_receiving", remedy, "no member receives from %s: what it writes would be lost (%s)", ch.Old, strings.Join(deaf, "; "))
	ch.c.Deaf, ch.c.Notes = &no, append(ch.c.Notes, no.Why)
}

// agreeing says that nobody would be promoted by itself if a primary that lives died, as too few replicas could say that it did: by the rule of Watch.
func (ch *chooser) agreeing() {
	if ch.old == nil || ch.Alive || ch.c.Deaf != nil || !ch.Group.Policy.Automatic {
		return
	}
	expected, hear, down, remedy := Expected(ch.Group), 0, 0, ""
	var others []string
	for _, name := range expected {
		why, gone, mends := ch.mute(name)
		if why == "" {
			hear++
			continue
		}
		if gone {
			down++
		}
		others, remedy = append(others, name+": "+why), cmp.Or(remedy, mends)
	}
	if len(expected) == down || enough(hear, len(expected), down) { // of the former nobody could follow at all
		return
	}
	no := NewRefusal("too_few_receive", cmp.Or(remedy, "risso topology shows it"), "of %s only %s from %s: if it died, they could not agree that it is dead, and nobody would be promoted by itself (%s)",
		digits.Counted(len(expected), "replica"), digits.Plural(hear, "receives", "receive"), ch.Old, strings.Join(others, "; "))
	ch.c.Few = &no
}

// mute is why a member could not say that the primary is dead, and what mends that; "": it could. gone says that nothing listens at its address.
func (ch *chooser) mute(name string) (why string, gone bool, remedy string) {
	i := ch.Topology.Find(name)
	if i < 0 {
		return "it was not asked", false, ""
	}
	n := &ch.Topology.Nodes[i]
	switch {
	case !n.Seen && n.Unseen == nil:
		return "it does not answer in time", false, ""
	case !n.Seen:
		return "it does not answer: " + n.Unseen.Words(), n.Unseen.Kind == "refused", ""
	case len(n.Channels) != 1:
		return "it replicates from " + digits.Plural(len(n.Channels), "server", "servers"), false, ""
	}
	l := &n.Channels[0]
	if !ch.fromPrimary(l) {
		return "it replicates from " + l.Source, false, ""
	}
	if why = Deaf(l.Channel); why != "" {
		remedy = ch.hears(n, l)
	}
	return why, false, remedy
}

// hears is what lets a member receive again; "": it is not known.
func (ch *chooser) hears(n *topology.Node, l *topology.Channel) string {
	switch {
	case mysql.LoginRefused(l.Channel, l.Tries): // it gets the account that Risso knows
		return "risso group prepare " + ch.Group.Name
	case l.IORunning == "No":
		return mysql.Of(n.Server).StartThread(l.Name, mysql.Receiver) + " on " + n.Name
	}
	return ""
}

// fromPrimary reports whether a channel leads to the primary itself.
func (ch *chooser) fromPrimary(l *topology.Channel) bool {
	i := ch.Group.Find(ch.Old)
	return i >= 0 && strings.EqualFold(l.Source, ch.Group.Members[i].Address) || l.SourceID != "" && strings.EqualFold(l.SourceID, ch.Known.UUID) || l.SourceServerID != "" && l.SourceServerID == ch.Known.ServerID
}
