package failover

import (
	"cmp"
	"strings"

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
		if deaf = append(deaf, c.Name+": "+why); remedy == "" && l.IORunning == "No" {
			remedy = mysql.Of(n.Server).StartThread(l.Name, mysql.Receiver) + " on " + c.Name
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
