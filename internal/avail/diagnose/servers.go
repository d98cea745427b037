package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
)

// unseen is about servers that did not answer.
func (v *view) unseen() {
	for i := range v.Nodes {
		n := &v.Nodes[i]
		if n.Seen || n.Unseen == nil {
			continue
		}
		switch n.Unseen.Kind {
		case "hung":
			v.hung(i)
		case "login", "privilege", "tls":
			v.noAccess(i)
		case "full":
			v.add("conn.saturation", i, -1, "%s refuses connections: all are taken", n.Name).see("%s", n.Unseen.Text)
		case "no_address":
			d := v.add("topology.no_address", i, -1, "nobody tells the address of %s", n.Name).see("it is listed by %s, without a host", listed(n.ToldBy))
			d.Next = "put report_host into its option file, which takes a restart; or name it in a --dsn"
		case "other_server", "not_asked": // seeing tells of it
		default:
			if !v.toldByReplicas(i) {
				v.down1(i)
			}
		}
	}
}

// noAccess is about one that refuses Risso: its account, or this machine.
func (v *view) noAccess(i int) {
	n := &v.Nodes[i]
	if !strings.Contains(n.Unseen.Text, "1129") && !strings.Contains(strings.ToLower(n.Unseen.Text), "is blocked because of many connection errors") {
		d := v.add("server.no_access", i, -1, "%s refuses the account that Risso uses", n.Name).see("%s", n.Unseen.Text)
		d.Next = cmp.Or(mysql.LetIn(errorIn(n.Unseen.Text)), d.Next)
		return
	}
	d := v.add("server.no_access", i, -1, "%s refuses this machine, because of many connection errors", n.Name).see("%s", n.Unseen.Text)
	d.Next = "from another machine, on " + n.Name + ": FLUSH HOSTS, or from MySQL 8.0.23 on TRUNCATE TABLE performance_schema.host_cache"
	d.NotSeen = "all of its state; which connections failed: a monitor that only knocks, or a broken network"
}

// errorIn is the number of the server's error in a text, as the driver writes it; 0: there is none.
func errorIn(text string) (number int) {
	if _, rest, is := strings.Cut(text, "Error "); is {
		fmt.Sscan(strings.TrimRight(strings.SplitN(rest, " ", 2)[0], ":"), &number)
	}
	return number
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
		v.wrongReport(d, i)
	}
}

// wrongReport says that a server may run, and be listed under an address that is not its own: a source that lists it is read from.
func (v *view) wrongReport(d *Diagnosis, i int) {
	n := &v.Nodes[i]
	for _, k := range v.down[i] { // it has replicas of its own, which know where they come from
		if v.Links[k].Channel != nil {
			return
		}
	}
	for _, k := range v.up[i] {
		s := &v.Nodes[v.Links[k].Source]
		if v.Links[k].Channel != nil || len(s.Readers) == 0 || len(n.Addresses) == 0 {
			continue
		}
		d.see("%s counts a replica that says that it is at %s, and sends its binary log to %s", s.Name, n.Addresses[0], listed(s.Readers))
		d.Next = "if it runs, its report_host or report_port is wrong, or does not lead there from here: correct it in its option file, or say where it is reached by --reach " + n.Addresses[0] + "=HOST:PORT; else look at its machine"
		return
	}
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
		if !n.Seen || !n.Writes.Open() || len(v.up[i]) == 0 || v.ring[i] >= 0 || n.Group != nil || v.LikelyPrimary(i) || !slices.ContainsFunc(v.up[i], func(k int) bool { return v.Links[k].Channel != nil && v.Links[k].Source != i }) {
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
			d := v.add("server.hung", i, -1, "%s did not answer all that it was asked", n.Name).see("%s", n.Unseen.Text)
			d.Severity = warning
			v.manyHang(d)
			for state := range n.Waiting {
				if strings.HasPrefix(state, "Queueing ") {
					d.see("its thread that receives: %s", state).Next = "see whether the disk of its relay logs is full: a MySQL 5.7 that waits for room says nothing else"
				}
			}
		}
		if n.Writes.Offline {
			v.add("server.offline", i, -1, "%s is in offline mode", n.Name).see("offline_mode is ON").remedy(n.Name, "SET GLOBAL offline_mode = OFF")
		}
		if n.Log.Closed {
			v.add("server.log_closed", i, -1, "%s writes no binary log any more", n.Name).see("log_bin is ON, and SHOW MASTER STATUS, or SHOW BINARY LOG STATUS, is empty").remedy(n.Name, v.server(i).Shut())
		}
		v.connections(i)
		v.locks(i)
	}
	v.clocks()
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
		case mysql.WaitsForRoom(state):
			v.add("server.no_room", i, -1, "%s waits for room on a disk", n.Name).see("%s: %s", digits.Counted(count, "session"), state)
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

// Clocks that differ by less than someSkew are well; by muchSkew or more it is critical.
const (
	someSkew = 2 * time.Second
	muchSkew = 300 * time.Second
)

// clocks is about clocks that differ from this machine's. Where most of the servers differ from it alike, it is this machine's that is wrong.
func (v *view) clocks() {
	var skews []time.Duration
	for i := range v.Nodes {
		if v.Nodes[i].Seen {
			skews = append(skews, v.Nodes[i].Skew)
		}
	}
	if len(skews) == 0 {
		return
	}
	slices.Sort(skews)
	usual := skews[len(skews)/2]
	var alike []int
	for i := range v.Nodes {
		if n := &v.Nodes[i]; n.Seen && n.Skew.Abs() >= someSkew && (n.Skew-usual).Abs() < someSkew {
			alike = append(alike, i)
		}
	}
	const few = 3
	if len(alike) >= few && 2*len(alike) > len(skews) {
		names := v.names(alike)
		d := v.add("clock.skew", alike[0], -1, "this machine's clock is %s %s those of %s", digits.Span(usual.Abs()), behindOrAhead(usual > 0), digits.Counted(len(alike), "server")).
			see("%s of %s that were asked agree: %s", digits.Thousands(len(alike)), digits.Thousands(len(skews)), listed(names)).with(names[1:]...)
		d.Subject, d.NotSeen, d.Next = "this machine", "whether all those are wrong alike", "set this machine's clock by NTP"
		d.skew(usual.Abs())
	} else {
		alike = nil
	}
	for i := range v.Nodes {
		n := &v.Nodes[i]
		if !n.Seen || n.Skew.Abs() < someSkew || slices.Contains(alike, i) {
			continue
		}
		v.add("clock.skew", i, -1, "the clock of %s is %s %s this machine's", n.Name, digits.Span(n.Skew.Abs()), behindOrAhead(n.Skew < 0)).see("at the least: what the question took is left out").skew(n.Skew.Abs())
	}
}

func behindOrAhead(behind bool) string {
	if behind {
		return "behind"
	}
	return "ahead of"
}

// skew lessens the severity of a difference that is small.
func (d *Diagnosis) skew(by time.Duration) {
	if by < muchSkew {
		d.Severity = warning
	}
}
