package diagnose

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql/errno"
)

// sight is what a channel shows of its source.
type sight int

const (
	blind     sight = iota // its thread that receives does not run, and tells nothing
	hears                  // it is connected, and heard from the source within the time after which a heartbeat is due
	deaf                   // it is connected, and a heartbeat was due and did not come
	connected              // it says that it is connected; when it last heard is not known
	answered               // the source refused it in words, when it last tried
	lost                   // it cannot connect, or the connection broke
	sights
)

// words are what replicas of each sight say, as evidence.
func (s sight) words() string {
	return [...]string{"do not try", "heard from it", "are connected to it, and heard nothing for longer than they should", "say that they are connected to it", "were answered by it, with an error, when they last tried",
		"cannot connect to it, or lost it"}[s]
}

// beatSlack is by how much a heartbeat may be late.
const beatSlack = 3 * time.Second

func sightOf(ch *topology.Channel) sight {
	switch {
	case ch.Receiving() && (ch.Silence == nil || ch.Beat == 0):
		return connected
	case ch.Receiving() && *ch.Silence <= ch.Beat+beatSlack:
		return hears
	case ch.Receiving():
		return deaf
	case ch.IORunning == "No": // it does not try: what it tells may be old
		return blind
	case slices.Contains([]int{errno.CannotConnectSocket, errno.CannotConnect, errno.UnknownHost, errno.ConnectionGone, errno.ConnectionLost}, ch.IO.Number):
		return lost
	case slices.Contains([]int{errno.AccessDenied, errno.DatabaseDenied, errno.TooManyConnections, errno.TooManyUserConnections, errno.HostBlocked, errno.HostNotPrivileged},
		ch.IO.Number):
		return answered
	case ch.IORunning == "Connecting" && ch.IO.Text != "":
		return lost
	case ch.IORunning == "Connecting" && strings.Contains(strings.ToLower(ch.IOState), "reconnect"):
		return lost
	}
	return blind
}

// witnesses are the replicas of a server, by what their channels show of it.
type witnesses struct {
	by     [sights][]string
	latest time.Duration // since one of them heard from it, the least
}

func (v *view) witnesses(i int) (w witnesses) {
	for _, k := range v.down[i] {
		ch := v.Links[k].Channel
		if ch == nil {
			continue
		}
		s := sightOf(ch)
		if len(w.by[s]) == 0 || ch.Silence != nil && *ch.Silence < w.latest {
			if s == hears || s == deaf && len(w.by[hears]) == 0 {
				w.latest = *ch.Silence
			}
		}
		w.by[s] = append(w.by[s], v.name(v.Links[k].Replica))
	}
	return w
}

// tell adds what the witnesses say, as evidence.
func (w *witnesses) tell(d *Diagnosis) {
	var words []string
	for s := range sights {
		if len(w.by[s]) > 0 {
			words = append(words, s.words()+": "+listed(w.by[s]))
		}
	}
	if len(w.by[hears])+len(w.by[deaf]) > 0 {
		words = append(words, "one of them last heard from it "+digits.Span(w.latest.Truncate(time.Second))+" ago")
	}
	slices.Sort(words)
	for _, text := range words {
		d.see("%s", text)
	}
	for _, s := range []sight{hears, deaf, connected, answered, lost, blind} {
		d.with(w.by[s]...)
	}
}

// sources is about servers that replicas tell of, and which did not answer; and about those that answered, and have no replica that runs.
func (v *view) sources() {
	for i := range v.Nodes {
		n := &v.Nodes[i]
		switch {
		case n.Seen:
			v.noReplica(i)
		case n.Unseen == nil || !v.toldByReplicas(i) || slices.Contains([]string{"hung", "login", "privilege", "tls", "full", "other_server", "no_address", "not_asked"}, n.Unseen.Kind), v.onlyLeftOver(i):
		default:
			v.lostSource(i)
		}
	}
}

// lostSource is about a source that does not answer. Only what replicas heard lately says that it lives: a connection to a machine that vanished counts as
// running for long.
func (v *view) lostSource(i int) {
	n := &v.Nodes[i]
	role := "primary"
	if len(v.up[i]) > 0 {
		role = "intermediate"
	}
	w := v.witnesses(i)
	others := v.unseenBeside(i)
	receiving := len(w.by[hears]) + len(w.by[deaf]) + len(w.by[connected])
	var d *Diagnosis
	switch {
	case len(w.by[deaf]) > 0 && len(w.by[hears])+len(w.by[connected])+len(w.by[answered]) == 0:
		d = v.add(role+".silent", i, -1, "%s is not reached from here, and none of its replicas has heard from it for %s, though %s as connected", n.Name, digits.Span(w.latest.Truncate(time.Second)),
			digits.Plural(len(w.by[deaf]), "replica counts", "replicas count"))
	case receiving > 0 && len(w.by[lost]) > 0 && role == "primary":
		d = v.add("primary.partition", i, -1, "%s is not reached from here: %s of its replicas still say that they receive, and %s lost it", n.Name, digits.Thousands(receiving), digits.Thousands(len(w.by[lost])))
	case receiving+len(w.by[answered]) > 0:
		d = v.add(role+".unreachable", i, -1, "%s is not reached from here; %s", n.Name, w.alive())
		if len(w.by[hears])+len(w.by[answered]) > 0 {
			d.Severity = warning
		}
	case len(w.by[lost]) == 0:
		d = v.add("primary.unknown", i, -1, "%s does not answer, and no replica tries to reach it", n.Name)
	case role == "primary" && len(others) > 0:
		d = v.add("primary.dead_with_replicas", i, -1, "%s is dead, or cut off from all: nobody reaches it; nor does %s answer that should", n.Name, digits.Counted(len(others), "other server")).
			see("no answer from %s; whether they are its replicas is not known", listed(others)).with(others...)
	default:
		d = v.add(role+".dead", i, -1, "%s is dead, or cut off from all: nobody reaches it", n.Name)
	}
	d.see("from here: %s", n.Unseen.Text)
	w.tell(d)
	if d.Code == "intermediate.dead" {
		d.see("it replicated from %s", v.name(v.Links[v.up[i][0]].Source))
	}
}

// alive is what speaks for a server that is not reached from here.
func (w *witnesses) alive() string {
	var words []string
	if n := len(w.by[hears]); n > 0 {
		words = append(words, fmt.Sprintf("%s from it, last %s ago", digits.Plural(n, "replica heard", "replicas heard"), digits.Span(w.latest.Truncate(time.Second))))
	}
	if n := len(w.by[connected]) + len(w.by[deaf]); n > 0 {
		words = append(words, digits.Plural(n, "replica still says that it is connected", "replicas still say that they are connected"))
	}
	if n := len(w.by[answered]); n > 0 {
		words = append(words, digits.Plural(n, "replica was refused by it when it last tried", "replicas were refused by it when they last tried"))
	}
	return strings.Join(words, ", ")
}

// unseenBeside are servers that were given, do not answer, and of which nobody tells.
func (v *view) unseenBeside(i int) (names []string) {
	for j := range v.Nodes {
		if n := &v.Nodes[j]; j != i && !n.Seen && n.Asked && n.Unseen != nil && n.Unseen.Kind != "login" && len(v.up[j])+len(v.down[j]) == 0 {
			names = append(names, n.Name)
		}
	}
	return names
}

// noReplica finds a server of whose replicas, two or more, none runs.
func (v *view) noReplica(i int) {
	var down, unseen []string
	for _, k := range v.down[i] {
		switch ch := v.Links[k].Channel; {
		case ch == nil:
			unseen = append(unseen, v.name(v.Links[k].Replica))
		case ch.Receiving() && ch.Applying():
			return
		default:
			down = append(down, v.name(v.Links[k].Replica))
		}
	}
	if len(down) < 2 {
		return
	}
	words := digits.Counted(len(down), "replica") + " of " + v.name(i)
	if len(unseen) > 0 {
		words += " that were seen"
	}
	d := v.add("primary.no_replica_runs", i, -1, "none of the %s replicates", words).see("not both receiving and applying: %s", listed(down)).with(down...)
	if len(unseen) > 0 {
		d.see("listed by it, and not seen: %s", listed(unseen))
		d.Severity = warning
	}
}

// hung is about one that takes connections and did not answer: it, or what is in between, or this machine. What its replicas say of it counts.
func (v *view) hung(i int) {
	n := &v.Nodes[i]
	within := ""
	if n.Unseen.Patience > 0 {
		within = " within " + digits.Span(n.Unseen.Patience)
	}
	d := v.add("server.hung", i, -1, "%s accepts connections, but did not answer%s", n.Name, within).see("asked at %s: %s", strings.Join(n.Addresses, ", "), n.Unseen.Text)
	w := v.witnesses(i)
	if len(w.by[lost])+len(w.by[deaf]) == 0 || len(w.by[hears])+len(w.by[connected])+len(w.by[answered]) > 0 { // one look from here is no proof
		d.Severity = warning
	}
	w.tell(d)
	v.manyHang(d)
}

// manyHang says where to look if it is not one server alone that hangs.
func (v *view) manyHang(d *Diagnosis) {
	hung := 0
	for i := range v.Nodes {
		if u := v.Nodes[i].Unseen; u != nil && u.Kind == "hung" {
			hung++
		}
	}
	if hung > 1 && 2*hung >= len(v.Nodes) {
		d.see("so do %s of %s", digits.Thousands(hung), digits.Counted(len(v.Nodes), "server"))
		d.Next = "look at this machine first, at the network, and at the DNS by which servers look up who connects (skip_name_resolve); then ask again"
	}
}
