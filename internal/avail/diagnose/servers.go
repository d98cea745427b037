package diagnose

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql/errno"
)

// sight is what a channel shows of its source.
type sight int

const (
	blind    sight = iota // its thread that receives does not run, and tells nothing
	receives              // it is connected
	answered              // the source runs: it refused in words
	lost                  // it cannot connect, or the connection broke
)

func sightOf(ch *topology.Channel) sight {
	switch {
	case ch.Receiving():
		return receives
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

// unseen is about servers that did not answer.
func (v *view) unseen() {
	for i := range v.Nodes {
		n := &v.Nodes[i]
		if n.Seen || n.Unseen == nil {
			continue
		}
		switch n.Unseen.Kind {
		case "hung":
			v.add("server.hung", i, -1, "%s accepts connections, but does not answer", n.Name).see("asked at %s: %s", strings.Join(n.Addresses, ", "), n.Unseen.Text)
		case "login", "privilege", "tls":
			v.add("server.no_access", i, -1, "%s refuses the account that Risso uses", n.Name).see("%s", n.Unseen.Text)
		case "full":
			v.add("conn.saturation", i, -1, "%s refuses connections: all are taken", n.Name).see("%s", n.Unseen.Text)
		case "no_address":
			d := v.add("topology.no_address", i, -1, "nobody tells the address of %s", n.Name).see("it is listed by %s, without a host", listed(n.ToldBy))
			d.Next = "put report_host into its option file, which takes a restart; or name it in a --dsn"
		case "other_server": // seeing tells of it
		default:
			if !v.toldByReplicas(i) {
				v.down1(i)
			}
		}
	}
}

// toldByReplicas reports whether replicas that were asked say that they replicate from a node.
func (v *view) toldByReplicas(node int) bool {
	return slices.ContainsFunc(v.down[node], func(k int) bool { return v.Links[k].Channel != nil })
}

// down1 is about one that does not answer, of which no replica tells.
func (v *view) down1(i int) {
	n := &v.Nodes[i]
	if slices.ContainsFunc(v.Nodes, func(o topology.Node) bool {
		return o.Group != nil && slices.ContainsFunc(o.Group.Members, func(m topology.Member) bool {
			return m.UUID != "" && m.UUID == n.UUID || slices.Contains(n.Addresses, m.Address)
		})
	}) {
		v.add("group.member_missing", i, -1, "%s, a member of the group, does not answer: %s", n.Name, n.Unseen.Words()).see("%s lists it", listed(n.ToldBy)).see("%s", n.Unseen.Text)
		return
	}
	d := v.add("server.down", i, -1, "%s does not answer: %s", n.Name, n.Unseen.Words()).see("%s", n.Unseen.Text)
	if !n.Asked {
		d.Severity = warning
		d.see("%s lists it as a replica, perhaps still", listed(n.ToldBy))
	}
}

// sources is about servers that replicas tell of, and which did not answer; and about those that answered, and have no replica that runs.
func (v *view) sources() {
	for i := range v.Nodes {
		n := &v.Nodes[i]
		var by [4][]string
		for _, k := range v.down[i] {
			if ch := v.Links[k].Channel; ch != nil {
				s := sightOf(ch)
				by[s] = append(by[s], v.name(v.Links[k].Replica))
			}
		}
		switch {
		case n.Seen:
			v.noReplica(i)
		case n.Unseen == nil || !v.toldByReplicas(i) || slices.Contains([]string{"hung", "login", "privilege", "tls", "full", "other_server", "no_address"}, n.Unseen.Kind):
		default:
			v.lostSource(i, by)
		}
	}
}

func (v *view) lostSource(i int, by [4][]string) {
	n := &v.Nodes[i]
	role := "primary"
	if len(v.up[i]) > 0 {
		role = "intermediate"
	}
	others := v.unseenBeside(i)
	var d *Diagnosis
	switch alive := append(slices.Clone(by[receives]), by[answered]...); {
	case len(by[receives]) > 0 && len(by[lost]) > 0 && role == "primary":
		d = v.add("primary.partition", i, -1, "%s is not reached from here: %s of its replicas still receive, and %s lost it", n.Name, digits.Thousands(len(by[receives])), digits.Thousands(len(by[lost])))
	case len(alive) > 0:
		d = v.add(role+".unreachable", i, -1, "%s is not reached from here, and it is not dead: %s", n.Name, digits.Counted(len(alive), "replica")+" reached it")
	case len(by[lost]) == 0:
		d = v.add("primary.unknown", i, -1, "%s does not answer, and no replica tries to reach it", n.Name)
	case role == "primary" && len(others) > 0:
		d = v.add("primary.dead_with_replicas", i, -1, "%s is dead, or cut off from all: nobody reaches it; nor does %s answer that should", n.Name, digits.Counted(len(others), "other server")).
			see("no answer from %s; whether they are its replicas is not known", listed(others)).with(others...)
	default:
		d = v.add(role+".dead", i, -1, "%s is dead, or cut off from all: nobody reaches it", n.Name)
	}
	d.see("from here: %s", n.Unseen.Text)
	for s, words := range map[sight]string{receives: "receive from it", answered: "were answered by it, with an error, when they last tried", lost: "cannot connect to it, or lost it", blind: "do not try"} {
		if len(by[s]) > 0 {
			d.see("%s: %s", words, listed(by[s]))
		}
	}
	slices.Sort(d.Evidence)
	d.with(slices.Concat(by[receives], by[answered], by[lost], by[blind])...)
	if d.Code == "intermediate.dead" {
		d.see("it replicated from %s", v.name(v.Links[v.up[i][0]].Source))
	}
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
	var down []string
	for _, k := range v.down[i] {
		ch := v.Links[k].Channel
		if ch == nil {
			continue
		}
		if ch.Receiving() && ch.Applying() {
			return
		}
		down = append(down, v.name(v.Links[k].Replica))
	}
	if len(down) < 2 {
		return
	}
	v.add("primary.no_replica_runs", i, -1, "none of the %s of %s replicates", digits.Counted(len(down), "replica"), v.name(i)).see("not both receiving and applying: %s", listed(down)).with(down...)
}

// writers is about where can be written to.
func (v *view) writers() {
	type part struct {
		open, roots []int
		unseen      int
		linked      bool
	}
	parts := map[int]*part{}
	for i := range v.Nodes {
		p := parts[v.part[i]]
		if p == nil {
			p = &part{}
			parts[v.part[i]] = p
		}
		n := &v.Nodes[i]
		p.linked = p.linked || len(v.up[i])+len(v.down[i]) > 0
		switch {
		case !n.Seen:
			p.unseen++
		case n.Writes.Open():
			p.open = append(p.open, i)
		}
		if n.Seen && len(v.up[i]) == 0 && len(v.down[i]) > 0 {
			p.roots = append(p.roots, i)
		}
	}
	for i := range v.Nodes {
		p := parts[i] // of the node that stands for the part
		if p == nil || !p.linked {
			continue
		}
		for _, r := range p.roots {
			n := &v.Nodes[r]
			if n.Writes.Open() || n.Group != nil {
				continue
			}
			if len(p.open) > 0 {
				v.add("primary.read_only", r, -1, "%s, which replicates from none, is read-only, and %s can be written to", n.Name, listed(v.names(p.open))).see("%s", writesWords(n)).with(v.names(p.open)...)
			}
		}
		if len(p.open) > 0 || p.unseen > 0 {
			continue
		}
		at := i
		if len(p.roots) > 0 {
			at = p.roots[0]
		}
		d := v.add("primary.none", at, -1, "no server of the replication of %s can be written to", v.name(at)).see("%s: %s", v.name(at), writesWords(&v.Nodes[at]))
		if w := v.Nodes[at].Writes; len(p.roots) == 1 && !w.InnoDB && !v.openElsewhere(at) {
			statement := "SET GLOBAL read_only = OFF"
			if w.Offline {
				statement += "; SET GLOBAL offline_mode = OFF"
			}
			d.remedy(v.name(at), statement)
		}
	}
	v.openReplicas()
}

// openElsewhere reports whether a server that is no part of this replication can be written to: another one may have taken this one's place.
func (v *view) openElsewhere(i int) bool {
	for k := range v.Nodes {
		if n := &v.Nodes[k]; k != i && n.Seen && n.Writes.Open() {
			return true
		}
	}
	return false
}

func writesWords(n *topology.Node) string {
	var set []string
	for name, on := range map[string]bool{"read_only": n.Writes.ReadOnly, "super_read_only": n.Writes.Super, "offline_mode": n.Writes.Offline, "innodb_read_only": n.Writes.InnoDB} {
		if on {
			set = append(set, name+" is on")
		}
	}
	slices.Sort(set)
	return strings.Join(set, ", ")
}

// openReplicas finds replicas that accept writes, but for those of rings and groups.
func (v *view) openReplicas() {
	for i := range v.Nodes {
		n := &v.Nodes[i]
		if !n.Seen || !n.Writes.Open() || len(v.up[i]) == 0 || v.ring[i] >= 0 || n.Group != nil || !slices.ContainsFunc(v.up[i], func(k int) bool { return v.Links[k].Channel != nil && v.Links[k].Source != i }) {
			continue
		}
		v.add("repl.writable", i, -1, "the replica %s accepts writes: read_only is off", n.Name).see("it replicates from %s", v.name(v.Links[v.up[i][0]].Source)).
			remedy(n.Name, "SET GLOBAL "+v.server(i).ReadOnlyVariable()+" = ON")
	}
}

// servers is about each server that answered, by itself.
func (v *view) servers() {
	for i := range v.Nodes {
		n := &v.Nodes[i]
		if !n.Seen {
			continue
		}
		if n.Unseen != nil && n.Unseen.Kind == "hung" {
			v.add("server.hung", i, -1, "%s stopped answering while it was asked", n.Name).see("%s", n.Unseen.Text)
		}
		if n.Writes.Offline {
			v.add("server.offline", i, -1, "%s is in offline mode", n.Name).see("offline_mode is ON").remedy(n.Name, "SET GLOBAL offline_mode = OFF")
		}
		v.connections(i)
		v.locks(i)
		v.clock(i)
	}
}

func (v *view) connections(i int) {
	const much, most = 0.85, 0.95
	c := v.Nodes[i].Connections
	if c.Most == 0 || float64(c.Now) < much*float64(c.Most) {
		return
	}
	d := v.add("conn.saturation", i, -1, "%s has %s of %s connections taken", v.name(i), digits.Thousands(c.Now), digits.Thousands(c.Most)).see("Threads_connected %d, max_connections %d", c.Now, c.Most)
	if float64(c.Now) < most*float64(c.Most) {
		d.Severity = warning
	}
	d.remedy(v.name(i), v.server(i).SetLasting("max_connections", strconv.Itoa(c.Most+c.Most/2+1)))
}

func (v *view) locks(i int) {
	n := &v.Nodes[i]
	waiting, words := 0, []string(nil)
	for state, count := range n.Waiting {
		switch low := strings.ToLower(state); {
		case strings.Contains(low, "clean disk"):
			v.add("disk.full", i, -1, "%s waits for room on a disk", n.Name).see("%s: %s", digits.Counted(count, "session"), state)
		case strings.Contains(low, "semi-sync"), !strings.HasPrefix(low, "waiting for global") && !strings.HasPrefix(low, "waiting for commit lock") && !strings.HasPrefix(low, "waiting for backup") && !strings.HasPrefix(low, "waiting for table flush"):
		default:
			waiting += count
			words = append(words, strconv.Itoa(count)+" "+state)
		}
	}
	if waiting == 0 {
		return
	}
	slices.Sort(words)
	v.add("lock.global", i, -1, "%s of %s wait for a lock of the whole server", digits.Counted(waiting, "session"), n.Name).see("%s", strings.Join(words, ", "))
}

func (v *view) clock(i int) {
	const some, much = 2 * time.Second, 300 * time.Second
	skew := v.Nodes[i].Skew
	where := "ahead of"
	if skew < 0 {
		skew, where = -skew, "behind"
	}
	if skew < some {
		return
	}
	d := v.add("clock.skew", i, -1, "the clock of %s is %s %s this machine's", v.name(i), digits.Span(skew), where).see("at the least: what the question took is left out")
	if skew < much {
		d.Severity = warning
	}
}
