package rules

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/follow"
	"github.com/rissodb/risso/internal/mysql"
)

// Member is what is known of an instance where causes are looked for among all. What is unknown is empty.
type Member struct {
	Instance fleet.Instance
	State    State
	Findings []fleet.Finding
	Channels []fleet.Channel
	Seat     fleet.Seat // who it says it is, as it last answered
	Reported string     // report_host:report_port, under which it wants to be known
	Answered time.Time  // the newest second in which it is known to have answered; zero: none
}

// Effect is a finding that is there because of something else.
type Effect struct {
	Instance string `json:"instance"`          // its ID
	Finding  string `json:"finding"`           // the ID of the finding
	Subject  string `json:"subject,omitempty"` // of that finding, such as the channel
}

// Cause is what findings of other instances come from.
type Cause struct {
	Instance string   `json:"instance"`          // the ID of the instance where it lies; empty: Risso does not watch that
	Name     string   `json:"name"`              // what people call it, or the address that replicas use
	Finding  string   `json:"finding,omitempty"` // what is wrong there, such as server.down; empty: only its replicas are known to have trouble
	Subject  string   `json:"subject,omitempty"` // of that finding
	What     string   `json:"what"`              // in a few words: "db1 is down"
	Peers    bool     `json:"-"`                 // the others are no consequence of it, but have the same cause: it stands for that
	Affected []Effect `json:"affected"`          // by instance
}

// Instances is how many other instances are affected.
func (c Cause) Instances() int {
	seen := map[string]bool{}
	for _, e := range c.Affected {
		if e.Instance != c.Instance {
			seen[e.Instance] = true
		}
	}
	return len(seen)
}

// Causes finds what findings have a common cause: a host that is down takes its servers with it, and if all servers of one machine fell
// silent together, the first of them stands for the machine; replicas of a server that is down cannot connect; several replicas of one server stop at the same error; a replica of one that is late, or has stopped, is late. A cause that is
// itself an effect is not listed: what lies behind it is. The most affected come first.
func Causes(members []Member) []Cause {
	f := newForest(members)
	for i := range members {
		f.downWithHost(i)
		f.diagnosed(i)
		f.hostFull(i)
		f.sourceDown(i)
		f.sourceLate(i)
	}
	f.machinesDown()
	f.together()
	return f.causes()
}

// place is a finding of a member, or what several have in common.
type place struct {
	member  int // -1: of none
	finding string
	subject string
	name    string // for member -1, and what it is
	what    string
}

// forest knows for each finding which one it comes from.
type forest struct {
	members []Member
	parent  map[place]place
	sources []map[string]int // by member and channel
	says    map[place]string // of those that stand for their machine: what is wrong
}

func newForest(members []Member) *forest {
	f := &forest{members: members, parent: map[place]place{}, says: map[place]string{}}
	known := followed(members)
	for i := range members {
		from := map[string]int{}
		for _, ch := range members[i].Channels {
			if s := sourceOf(known, i, ch); s >= 0 {
				from[ch.Name] = s
			}
		}
		f.sources = append(f.sources, from)
	}
	return f
}

// has reports whether a member has a finding of that ID and subject.
func (f *forest) has(member int, id, subject string) bool {
	return slices.ContainsFunc(f.members[member].Findings, func(g fleet.Finding) bool { return g.ID == id && g.Subject == subject })
}

func (f *forest) down(member int) bool { return f.members[member].State == StateDown }

// downID is the finding of a member that is down.
func (f *forest) downID(member int) string {
	if f.has(member, findingHung, "") {
		return findingHung
	}
	return findingDown
}

// fallTogether is how far apart two servers of a machine that dies are found to be silent, at the most: one waits for an answer when the
// next is not even asked.
const fallTogether = 15 * time.Second

const (
	findingDown    = "server.down"
	findingHung    = "server.hung"
	findingStopped = "repl.stopped"
	findingLag     = "repl.lag"

	findingRestarted = "server.restarted"
	findingFull      = "disk.full"
	findingNoRoom    = "server.no_room"
)

func (f *forest) downWithHost(i int) {
	m := f.members[i]
	if m.Instance.HostID == "" || !f.down(i) {
		return
	}
	for h := range f.members {
		if f.members[h].Instance.ID == m.Instance.HostID && h != i && f.down(h) {
			f.parent[place{member: i, finding: f.downID(i)}] = place{member: h, finding: f.downID(h)}
		}
	}
}

// diagnosed finds what the topology says of a server that is down: that it was a primary, and what its replicas have seen. It is told with that, not once more.
func (f *forest) diagnosed(i int) {
	if !f.silent(i) {
		return
	}
	for _, g := range f.members[i].Findings {
		if strings.HasPrefix(g.ID, "primary.") || strings.HasPrefix(g.ID, "intermediate.") {
			f.parent[place{member: i, finding: g.ID, subject: g.Subject}] = place{member: i, finding: f.downID(i)}
		}
	}
}

// hostFull finds servers that were refused room on a host of which a disk is full.
func (f *forest) hostFull(i int) {
	if f.members[i].Instance.HostID == "" {
		return
	}
	for h := range f.members {
		if f.members[h].Instance.ID != f.members[i].Instance.HostID || h == i {
			continue
		}
		full := slices.IndexFunc(f.members[h].Findings, func(g fleet.Finding) bool { return g.ID == findingFull })
		for _, g := range f.members[i].Findings {
			if full >= 0 && g.ID == findingNoRoom {
				f.parent[place{member: i, finding: g.ID, subject: g.Subject}] = place{member: h, finding: findingFull, subject: f.members[h].Findings[full].Subject}
			}
		}
	}
}

// machinesDown finds machines of which all servers fell silent together, or were started again: something happened to the machine, or to the
// way there.
func (f *forest) machinesDown() {
	for _, m := range machines(f.members) {
		f.alike(m, f.silent, f.downID, "are down")
		f.alike(m, func(i int) bool { return !f.down(i) && f.has(i, findingRestarted, "") }, func(int) string { return findingRestarted }, "were restarted")
	}
}

// alike makes, of the servers of a machine that have a finding since the same moment, the first stand for the others, if all servers have it.
func (f *forest) alike(machine []int, has func(int) bool, id func(int) string, words string) {
	list := slices.DeleteFunc(slices.Clone(machine), func(i int) bool { return !has(i) })
	if len(list) < len(machine) { // it is none of the machine's
		return
	}
	since := func(i int) time.Time { return f.since(i, id(i)) }
	slices.SortStableFunc(list, func(a, b int) int { return since(a).Compare(since(b)) })
	for len(list) > 0 {
		n := 1
		for n < len(list) && since(list[n]).Sub(since(list[n-1])) <= fallTogether {
			n++
		}
		first := slices.Min(list[:n])
		stands := place{member: first, finding: id(first)}
		if _, explained := f.parent[stands]; !explained && n > 1 {
			what := "all %d servers of %s %s"
			if n < len(machine) {
				what = "%d servers of %s %s at the same moment"
			}
			f.says[stands] = fmt.Sprintf(what, n, f.machine(first), words)
			for _, i := range list[:n] {
				if i != first {
					f.parent[place{member: i, finding: id(i)}] = stands
				}
			}
		}
		list = list[n:]
	}
}

// silent reports whether it was told that a member is down: one that is only overdue may answer yet.
func (f *forest) silent(i int) bool { return f.down(i) && f.has(i, f.downID(i), "") }

// since is when a finding of a member began.
func (f *forest) since(i int, id string) time.Time {
	for _, g := range f.members[i].Findings {
		if g.ID == id {
			return g.Since
		}
	}
	return time.Time{}
}

// machine is what to call the machine of a member.
func (f *forest) machine(i int) string {
	m := f.members[i]
	if host, _, err := net.SplitHostPort(m.Instance.Address); err == nil && !follow.Loopback(host) {
		return host
	}
	return cmp.Or(m.Seat.Hostname, "this machine")
}

// slowAnswer is how much later than its question an answer may be that a server gave before it fell silent.
const slowAnswer = 2 * time.Second

// Undecided are findings of servers that are down, or were started again, while it is unknown whether others on their machine are or were, too:
// these have not answered since. The same holds of channels that lost their source, while it is unknown whether that is down.
func Undecided(members []Member) []Effect {
	f := newForest(members)
	out := f.sourceSilent()
	for _, m := range machines(members) {
		for _, i := range m {
			id, open := findingRestarted, f.silent
			if f.silent(i) {
				id = f.downID(i)
				fell := f.since(i, id)
				if id == findingHung { // it is told seconds later, and an answer that was slow counts as one of the next second
					fell = fell.Add(slowAnswer)
				}
				open = func(k int) bool { return !f.silent(k) && !members[k].Answered.After(fell) }
			}
			if f.has(i, id, "") && slices.ContainsFunc(m, func(k int) bool { return k != i && open(k) }) {
				out = append(out, Effect{Instance: members[i].Instance.ID, Finding: id})
			}
		}
	}
	return out
}

// machines groups the servers of each machine that has several.
func machines(members []Member) (list [][]int) {
	for i, m := range members {
		if m.Instance.Kind == fleet.KindHost {
			continue
		}
		k := slices.IndexFunc(list, func(on []int) bool {
			return slices.ContainsFunc(on, func(j int) bool { return members[j].followed().SameMachine(m.followed()) || sameAddress(members[j], m) })
		})
		if k < 0 {
			list = append(list, nil)
			k = len(list) - 1
		}
		list[k] = append(list[k], i)
	}
	return slices.DeleteFunc(list, func(on []int) bool { return len(on) < 2 })
}

// sameAddress reports whether Risso reaches two servers by the same name or number of a machine.
func sameAddress(a, b Member) bool {
	ha, _, err := net.SplitHostPort(a.Instance.Address)
	if err != nil || follow.Loopback(ha) {
		return false
	}
	hb, _, err := net.SplitHostPort(b.Instance.Address)
	return err == nil && strings.EqualFold(ha, hb)
}

// sourceDown finds channels that receive nothing because their source is down. One that fails to apply has a cause of its own.
func (f *forest) sourceDown(i int) {
	for _, ch := range f.members[i].Channels {
		s, ok := f.sources[i][ch.Name]
		if !ok || !f.down(s) || !f.has(i, findingStopped, ch.Name) || strings.EqualFold(ch.IORunning, "Yes") || ch.SQL.Number != 0 {
			continue
		}
		f.parent[place{member: i, finding: findingStopped, subject: ch.Name}] = place{member: s, finding: f.downID(s)}
	}
}

// sourceSilent finds channels that lost a source that has not answered since, and is not known to be down: replicas may see that first.
func (f *forest) sourceSilent() (out []Effect) {
	for i, m := range f.members {
		for _, ch := range m.Channels {
			s, ok := f.sources[i][ch.Name]
			if !ok || f.silent(s) || !f.has(i, findingStopped, ch.Name) || strings.EqualFold(ch.IORunning, "Yes") || ch.SQL.Number != 0 {
				continue
			}
			for _, g := range m.Findings {
				if g.ID == findingStopped && g.Subject == ch.Name && !f.members[s].Answered.After(g.Since) {
					out = append(out, Effect{Instance: m.Instance.ID, Finding: findingStopped, Subject: ch.Name})
				}
			}
		}
	}
	return out
}

// sourceLate finds replicas that are late because they follow one that is late or has stopped.
func (f *forest) sourceLate(i int) {
	for _, finding := range f.members[i].Findings {
		if finding.ID != findingLag {
			continue
		}
		for _, ch := range f.members[i].Channels {
			if s, ok := f.sources[i][ch.Name]; ok && (finding.Subject == ch.Name || len(f.members[i].Channels) == 1) {
				if upstream, ok := f.lateness(s); ok {
					f.parent[place{member: i, finding: findingLag, subject: finding.Subject}] = upstream
				}
			}
		}
	}
}

// lateness is the finding that makes a server pass on late what it gets.
func (f *forest) lateness(s int) (place, bool) {
	if f.down(s) {
		return place{member: s, finding: f.downID(s)}, true
	}
	for _, id := range []string{findingStopped, findingLag} {
		for _, g := range f.members[s].Findings {
			if g.ID == id {
				return place{member: s, finding: id, subject: g.Subject}, true
			}
		}
	}
	return place{}, false
}

// together finds replicas of one server that stopped at the same error.
func (f *forest) together() {
	groups := map[place][]place{}
	for i, m := range f.members {
		for _, ch := range m.Channels {
			own := place{member: i, finding: findingStopped, subject: ch.Name}
			if _, explained := f.parent[own]; explained || !f.has(i, findingStopped, ch.Name) {
				continue
			}
			if p, ok := f.shared(i, ch); ok {
				groups[p] = append(groups[p], own)
			}
		}
	}
	for p, all := range groups {
		if len(all) < 2 {
			continue
		}
		p.what = fmt.Sprintf("%s of %s stopped at %s", digits.Counted(len(all), "replica"), p.name, p.what)
		for _, own := range all {
			f.parent[own] = p
		}
	}
}

// shared is what a channel that stopped may have in common with others: the source, the error, and, if it is one of applying, where.
func (f *forest) shared(i int, ch fleet.Channel) (place, bool) {
	e := ch.Error()
	if e.Number == 0 {
		return place{}, false
	}
	at := ""
	if ch.SQL.Text != "" {
		switch {
		case e.GTID != "":
			at = " at " + e.GTID
		case e.Log != "":
			at = fmt.Sprintf(" at %s:%d", e.Log, e.Pos)
		default:
			return place{}, false // the same number alone may be chance
		}
	}
	p := place{member: -1, name: ch.Source, what: fmt.Sprintf("error %d%s", e.Number, at)}
	if s, ok := f.sources[i][ch.Name]; ok {
		p.member, p.name = s, f.members[s].Instance.Name
	} else if host, _, err := net.SplitHostPort(ch.Source); err != nil || follow.Loopback(host) {
		return place{}, false // on each replica another one
	}
	return p, true
}

// root follows what a finding comes from to the end; false where servers follow each other in a circle.
func (f *forest) root(p place) (place, bool) {
	for range len(f.parent) + 1 {
		next, ok := f.parent[p]
		if !ok {
			return p, true
		}
		p = next
	}
	return place{}, false
}

func (f *forest) causes() []Cause {
	byRoot := map[place]*Cause{}
	for effect := range f.parent {
		root, ok := f.root(effect)
		if !ok {
			continue
		}
		c := byRoot[root]
		if c == nil {
			c = &Cause{Name: root.name, Finding: root.finding, Subject: root.subject, What: cmp.Or(root.what, f.says[root]), Peers: f.says[root] != ""}
			if root.member >= 0 {
				c.Instance, c.Name = f.members[root.member].Instance.ID, f.members[root.member].Instance.Name
			}
			if c.What == "" {
				c.What = c.Name + words[root.finding]
			}
			byRoot[root] = c
		}
		c.Affected = append(c.Affected, Effect{Instance: f.members[effect.member].Instance.ID, Finding: effect.finding, Subject: effect.subject})
	}
	out := make([]Cause, 0, len(byRoot))
	for _, c := range byRoot {
		slices.SortFunc(c.Affected, func(a, b Effect) int {
			return cmp.Or(strings.Compare(a.Instance, b.Instance), strings.Compare(a.Finding, b.Finding), strings.Compare(a.Subject, b.Subject))
		})
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b Cause) int {
		return cmp.Or(cmp.Compare(len(b.Affected), len(a.Affected)), strings.Compare(a.Name, b.Name), strings.Compare(a.What, b.What))
	})
	return out
}

// words say what is wrong with a server that others have trouble with.
var words = map[string]string{findingDown: " is down", findingHung: " hangs", findingStopped: " does not replicate", findingLag: " is late", findingFull: " has a full disk"}

// sourceOf is the member that a channel replicates from, or -1; see follow.Source.
func sourceOf(known []follow.Server, i int, ch fleet.Channel) int {
	return follow.Source(known, i, follow.Channel{Source: ch.Source, SourceUUID: ch.SourceID})
}

// followed are the members as replication knows them.
func followed(members []Member) []follow.Server {
	out := make([]follow.Server, len(members))
	for i, m := range members {
		out[i] = m.followed()
	}
	return out
}

func (m Member) followed() follow.Server {
	s := follow.Server{NoUUID: !mysql.Of(m.Instance.Server()).HasUUID(), Hostname: m.Seat.Hostname, Port: m.Seat.Port, Addresses: []string{m.Instance.Address}, Reported: m.Reported,
		Machine: m.Instance.HostID, Other: m.Instance.Kind == fleet.KindHost}
	if !s.NoUUID {
		s.UUID = m.Seat.ID
	}
	return s
}

// Follows says from which of these instances each one replicates, by their IDs.
func Follows(members []Member) map[string][]string {
	out := map[string][]string{}
	known := followed(members)
	for i := range members {
		for _, ch := range members[i].Channels {
			if s := sourceOf(known, i, ch); s >= 0 {
				out[members[i].Instance.ID] = append(out[members[i].Instance.ID], members[s].Instance.ID)
			}
		}
	}
	return out
}
