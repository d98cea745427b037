package galera

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql/wsrep"
)

// Node is what is known of a node when it is asked which one to bootstrap.
type Node struct {
	Name     string    `json:"name"`
	Datadir  string    `json:"datadir,omitempty"`
	Live     bool      `json:"live"`               // it answers
	Primary  bool      `json:"primary"`            // and is in a primary component
	Position Position  `json:"position"`           // where it is; -1: unknown
	AtLeast  Position  `json:"at_least"`           // it was there once
	From     string    `json:"from"`               // what tells the position
	Safe     bool      `json:"safe_to_bootstrap"`  // it was the last to be shut down
	Grastate *Grastate `json:"grastate,omitempty"` // nil: there is no such file
	View     *Gvwstate `json:"view,omitempty"`     // the last primary component that it was in; nil: unknown, or it was shut down in order
	ID       string    `json:"id,omitempty"`       // its UUID in the group when it last ran
	Problems []string  `json:"problems"`           // files that cannot be read
	Blank    Blank     `json:"blank,omitempty"`    // why it names no history; "": it does, or has no grastate.dat
	Logged   Position  `json:"logged_view"`        // of the last view that its error log has
	// Recovered is where the data of a node are whose grastate.dat names no history, by --wsrep-recover: for people; Galera does not go on from there.
	Recovered Position `json:"recovered"`
}

// What tells a position.
const (
	fromGrastate = "grastate.dat"
	fromLog      = "the error log, by --wsrep-recover"
	fromPerson   = "--position"
)

// Down makes a Node of what is in a data directory: the texts of its files, "" for one that is not there, and the lines of its error logs, before being those that
// are older than gvwstate.dat.
func Down(name, datadir, grastate, gvwstate string, before, log []string) Node {
	l := ReadLog(before, log)
	n := Node{Name: name, Datadir: datadir, Position: Position{Seqno: -1}, AtLeast: l.AtLeast, ID: l.ID, Logged: l.View, Recovered: Position{Seqno: -1}}
	if n.Name == "" {
		if n.Name = l.Name; n.Name == "" {
			n.Name = datadir
		}
	}
	if grastate != "" {
		g, err := ParseGrastate(grastate)
		if err != nil {
			n.Problems = append(n.Problems, "grastate.dat: "+err.Error())
		} else {
			n.Grastate, n.Safe, n.Position.UUID = &g, g.Safe, g.UUID
		}
	}
	if gvwstate != "" {
		v, err := ParseGvwstate(gvwstate)
		if err != nil {
			n.Problems = append(n.Problems, "gvwstate.dat: "+err.Error())
		} else {
			n.View, n.ID = &v, v.Own
		}
	}
	switch {
	case n.Grastate != nil && n.Grastate.UUID == wsrep.Undefined:
		n.Recovered = l.Recovered
		n.Blank = blankOf(&n, &l)
	case n.Grastate != nil && n.Grastate.Known():
		n.Position, n.From = n.Grastate.Position, fromGrastate
	case l.Recovered.Known():
		n.Position, n.From = l.Recovered, fromLog
		if l.When != "" {
			n.From += " of " + l.When // an old log that was copied without its time is told by it
		}
	}
	return n
}

// Running makes a Node of what a member says that answers. At is its address.
func Running(s *wsrep.Status, at string) Node {
	n := Node{Name: s.Name, Live: true, Primary: s.Primary(), Position: Position{s.StateUUID, s.Committed}, AtLeast: Position{Seqno: -1}, Recovered: Position{Seqno: -1}, Logged: Position{Seqno: -1}, From: "the running server", ID: s.ID}
	switch {
	case s.StateUUID != wsrep.Undefined:
	case s.State == wsrep.Inconsistent:
		n.Blank = BlankDiffers
	case s.State == wsrep.Joining:
		n.Blank = BlankCopy
	default:
		n.Blank = BlankUnknown
	}
	if n.Name == "" {
		n.Name = at
	}
	if len(s.Members) > 0 {
		v := Gvwstate{Own: s.ID, View: s.View}
		for _, m := range s.Members {
			v.Members = append(v.Members, m.ID)
		}
		n.View = &v
	}
	return n
}

// Told makes a Node of a position that a person found by --wsrep-recover.
func Told(name string, p Position) Node {
	n := Node{Name: name, Position: p, AtLeast: p, From: fromPerson, Recovered: Position{Seqno: -1}, Logged: Position{Seqno: -1}}
	if p.UUID == wsrep.Undefined {
		n.Blank, n.Recovered = BlankNew, p
	}
	return n
}

// Known is what a person says of a cluster.
type Known struct {
	Nodes       int // how many nodes with data it has; 0: what the nodes' files say
	Arbitrators int // how many of its members are arbitrators, which have no files
	Lost        int // how many nodes will never come back, and are done without
}

// Start is how a node is started, by one way of packaging.
type Start struct {
	With    string `json:"with"` // the packaging
	Command string `json:"command"`
}

// Decision is which node to bootstrap.
type Decision struct {
	Nodes     []Node          `json:"nodes"`
	Choice    string          `json:"choice"`              // the node's name; "": none, Refused says why
	Position  Position        `json:"position"`            // that it will go on from
	Refused   []fleet.Trouble `json:"refused"`             // why none is chosen
	Reasons   []string        `json:"reasons"`             // why this one
	Steps     []string        `json:"steps"`               // in their order; commands and statements
	Ways      []Start         `json:"ways"`                // how it is started, one of them
	Automatic string          `json:"automatic,omitempty"` // how the nodes may come back without a bootstrap
}

// Decide chooses the node that has all transactions that any has, or says what has to be known first. It never guesses: a node that was not seen may
// have gone further, unless the views show that it had dropped out before.
func Decide(nodes []Node, known Known) Decision {
	d := Decision{Position: Position{Seqno: -1}}
	if d.distinct(nodes); len(d.Refused) > 0 {
		return d
	}
	for _, n := range d.Nodes {
		if n.Primary {
			d.refuse(n.Name+" is in a primary component: the cluster lives", "a second one would be a split brain", "start the nodes that are down as usual: they join it")
			return d
		}
		for _, p := range n.Problems {
			d.refuse(n.Name+": "+p, "what the file says is not known", howToRecover(n))
		}
	}
	if d.histories(); len(d.Refused) > 0 {
		return d
	}
	best, required, again := d.furthest(known)
	d.Automatic = again
	if best < 0 || len(d.Refused) > 0 {
		switch {
		case len(d.Refused) > 0:
		case slices.ContainsFunc(d.Nodes, func(n Node) bool { return n.Blank != "" }):
			d.noHistory()
		default:
			d.refuse("no node tells a position", "no data directory of a member was given, or none has taken part in a cluster yet", "--datadir names a data directory, or a copy of grastate.dat, gvwstate.dat and the error log; --position what --wsrep-recover found")
		}
		return d
	}
	n := &d.Nodes[best]
	d.Choice, d.Position = n.Name, n.Position
	d.reasons(n, required)
	if known.Nodes > 0 {
		d.Reasons = append(d.Reasons, "counted as "+digits.Counted(len(d.Nodes), "node")+" of "+digits.Thousands(known.Nodes)+": "+strings.Join(d.names(), ", ")+"; if one of them is given twice, one was not seen")
	}
	d.steps(n)
	return d
}

func (d *Decision) names() (list []string) {
	for _, n := range d.Nodes {
		list = append(list, n.Name)
	}
	return list
}

// distinct takes a node once that is given twice, as by a statement and a data directory: what runs tells more than its files.
func (d *Decision) distinct(nodes []Node) {
	for _, n := range nodes {
		i := slices.IndexFunc(d.Nodes, func(o Node) bool {
			return n.ID != "" && n.ID == o.ID || n.Datadir != "" && n.Datadir == o.Datadir
		})
		switch {
		case i >= 0 && n.Live:
			d.Nodes[i] = n
		case i >= 0:
		case slices.Contains(d.names(), n.Name):
			d.refuse("two nodes are called "+n.Name, "if they are one, another one may not have been seen", "leave one of them out, or tell them apart: --datadir NAME=DIR")
		default:
			d.Nodes = append(d.Nodes, n)
		}
	}
}

func (d *Decision) refuse(what, why, remedy string) {
	d.Refused = append(d.Refused, fleet.Trouble{What: what, Why: why, Remedy: remedy})
}

// howToRecover is how a node's position is learned.
func howToRecover(n Node) string {
	if n.Datadir == "" {
		return "start its server with --wsrep-recover, as the user that owns its files: it writes \"WSREP: Recovered position: UUID:SEQNO\" and ends; pass that by --position " + n.Name + "=UUID:SEQNO"
	}
	return "mariadbd --wsrep-recover --datadir=" + fleet.ShellWord(n.Datadir) + " --log-error=" + fleet.ShellWord(strings.TrimSuffix(n.Datadir, "/")+"/recover.err") +
		" as the user that owns it (mysqld in place of mariadbd; with the server's other options): it writes the position and ends; risso galera bootstrap then reads it"
}

// history is the one that a node's data are of, "" or all zeros if that is not known.
func (n *Node) history() string {
	if n.mayHave() && n.Recovered.Known() {
		return n.Recovered.UUID
	}
	return n.Position.UUID
}

// histories finds nodes whose data do not come from one cluster.
func (d *Decision) histories() {
	var uuids []string
	for _, n := range d.Nodes {
		if u := n.history(); u != "" && u != wsrep.Undefined && !slices.Contains(uuids, u) {
			uuids = append(uuids, u)
		}
	}
	if len(uuids) < 2 {
		return
	}
	var list []string
	for _, u := range uuids {
		var names []string
		for _, n := range d.Nodes {
			if n.history() == u {
				names = append(names, n.Name)
			}
		}
		list = append(list, strings.Join(names, ", ")+" of "+u)
	}
	d.refuse("the nodes have data of "+digits.Plural(len(uuids), "history", "different histories")+": "+strings.Join(list, "; "),
		"sequence numbers of different histories cannot be compared: one of them was bootstrapped anew, and its data may lack what the others have",
		"find out which one the applications wrote to last, and keep a copy of the others before they join: they take a full copy of its data, and lose their own")
}

// missing are the members, by ID, that may have gone further than the node at i and were not seen; open: the views do not tell who else took part.
// seen are the nodes that matter.
func (d *Decision) missing(i int) (missing []string, seen []int, open bool) {
	byID := map[string]int{}
	for j, n := range d.Nodes {
		if n.ID != "" {
			byID[n.ID] = j
		}
	}
	if d.Nodes[i].View == nil {
		return nil, nil, true
	}
	done := map[string]bool{}
	next := slices.Clone(d.Nodes[i].View.Members)
	seen = append(seen, i)
	done[d.Nodes[i].ID] = true
	for len(next) > 0 {
		id := next[0]
		if next = next[1:]; done[id] {
			continue
		}
		done[id] = true
		j, ok := byID[id]
		if !ok {
			missing = append(missing, id)
			continue
		}
		seen = append(seen, j)
		if v := d.Nodes[j].View; v != nil {
			next = append(next, v.Members...)
		} else if !d.Nodes[j].Safe { // it was shut down while others went on
			open = true
		}
	}
	return missing, seen, open
}

// furthest is the node with the highest number. What keeps it from being certain is refused. required are the nodes that matter; again is said if
// they form their component again by themselves.
func (d *Decision) furthest(known Known) (best int, required []int, again string) {
	best = -1
	for i, n := range d.Nodes {
		if n.Position.Known() && (best < 0 || n.Position.Seqno > d.Nodes[best].Position.Seqno || n.Position.Seqno == d.Nodes[best].Position.Seqno && preferred(n, d.Nodes[best])) {
			best = i
		}
	}
	safe := d.safe()
	if len(d.Refused) > 0 {
		return -1, nil, ""
	}
	if safe >= 0 {
		required = []int{safe}
		if d.unknown(required); len(d.Refused) == 0 { // unknown: it was alone, and crashed
			d.contradicted(safe)
		}
		if d.stale(required); len(d.Refused) > 0 {
			return -1, nil, ""
		}
		return safe, required, ""
	}
	all := make([]int, len(d.Nodes))
	for i := range all {
		all[i] = i
	}
	start := best
	if start < 0 {
		start = d.latest()
	}
	if start < 0 {
		d.unknown(all)
		return -1, nil, ""
	}
	missing, seen, open := d.missing(start)
	switch spare := known.Arbitrators + known.Lost; {
	case known.Nodes > 0:
		required = all
		if n := known.Nodes - known.Lost - len(d.Nodes); n > 0 {
			d.refuse(digits.Counted(n, "node")+" of "+digits.Thousands(known.Nodes)+" not seen", "it may have transactions that the others do not have",
				"--datadir or --position of each; --lost if it will never come back, and what only it has is given up")
		}
	case open:
		required = all
		d.refuse("which nodes took part last is not known", d.Nodes[start].Name+", or one that was with it, was shut down in order while others went on: its files do not tell who they were", "--nodes says how many nodes the cluster has; all of them must be seen")
	default:
		required = seen
		if n := len(missing) - spare; n > 0 {
			d.refuse(fmt.Sprintf("%s of the last view not seen: %s", digits.Counted(n, "member"), strings.Join(missing, ", ")), "it may have transactions that the others do not have",
				"--datadir or --position of each, with --nodes; --arbitrators if some are arbitrators; --lost if some will never come back, and what only they have is given up")
		}
		again = d.again(missing, seen)
	}
	d.unknown(required)
	d.stale(required)
	d.blanks(required, best)
	return best, required, again
}

// contradicted refuses if another node shows that the one with the mark was not the last: it has gone further, or took part in a view without it.
func (d *Decision) contradicted(safe int) {
	s := &d.Nodes[safe]
	for i := range d.Nodes {
		n := &d.Nodes[i]
		at := n.Position
		for _, p := range []Position{n.AtLeast, n.Recovered} {
			if p.UUID == s.Position.UUID && p.Seqno > at.Seqno {
				at = p
			}
		}
		what := ""
		switch {
		case i == safe:
			continue
		case at.UUID == s.Position.UUID && at.Seqno > s.Position.Seqno:
			what = fmt.Sprintf("%s has gone further (%d)", n.Name, at.Seqno)
		case n.View != nil && d.without(n.View, safe):
			what = n.Name + " took part in a view after that, without it"
		default:
			continue
		}
		d.refuse(fmt.Sprintf("%s says that it was the last to stop (safe_to_bootstrap: 1, at %d), and %s", s.Name, s.Position.Seqno, what),
			"only one of both can be true: somebody may have set the mark by hand", "if it was set by hand, set safe_to_bootstrap: 0 in grastate.dat of "+s.Name+", and ask again")
		return
	}
}

// without reports whether a view was one without the node at i: where its ID is not known, all others of the view have to be.
func (d *Decision) without(v *Gvwstate, i int) bool {
	if id := d.Nodes[i].ID; id != "" {
		return !slices.Contains(v.Members, id)
	}
	return !slices.ContainsFunc(v.Members, func(id string) bool {
		return !slices.ContainsFunc(d.Nodes, func(n Node) bool { return n.ID == id })
	})
}

// stale refuses where a number is older than what the node's own error log speaks of.
func (d *Decision) stale(required []int) {
	for _, i := range required {
		n := d.Nodes[i]
		if !n.Position.Known() || n.AtLeast.UUID != n.Position.UUID || n.AtLeast.Seqno <= n.Position.Seqno || strings.HasPrefix(n.From, fromLog) {
			continue
		}
		remedy := "ask --wsrep-recover again"
		if n.From == fromGrastate {
			remedy = "copy both again, with their times (cp -p); if grastate.dat itself is so, set seqno: -1 in it, and " + howToRecover(n)
		}
		d.refuse(fmt.Sprintf("%s is at %d by %s, and its error log says that it was at %d", n.Name, n.Position.Seqno, n.From, n.AtLeast.Seqno), "one of both is old, or of another node", remedy)
	}
}

// latest is the node whose view needs the fewest others to be known: those that had dropped out before are in older views only. -1: none has a view.
func (d *Decision) latest() (found int) {
	found, least := -1, 0
	for i, n := range d.Nodes {
		if n.View == nil {
			continue
		}
		missing, seen, _ := d.missing(i)
		if of := len(missing) + len(seen); found < 0 || of < least {
			found, least = i, of
		}
	}
	return found
}

// preferred decides between two nodes that are equally far: one that still answers, then one that may be bootstrapped already.
func preferred(a, b Node) bool {
	if a.Live != b.Live {
		return a.Live
	}
	return a.Safe && !b.Safe
}

// safe is the node that was the last to stop, by its own word; -1 if there is none. A node without data can say so too: one that lost its state.
func (d *Decision) safe() int {
	found := -1
	for i, n := range d.Nodes {
		if !n.Safe || n.Position.UUID == "" || n.Position.UUID == wsrep.Undefined {
			continue
		}
		if found >= 0 {
			d.refuse(d.Nodes[found].Name+" and "+n.Name+" both say that they were the last to stop (safe_to_bootstrap: 1)", "only one can have been",
				"find out which one the applications wrote to last; set safe_to_bootstrap: 0 in grastate.dat of the other")
			return -1
		}
		found = i
	}
	return found
}

// unknown refuses for each node whose position has to be known.
func (d *Decision) unknown(required []int) {
	for _, i := range required {
		n := d.Nodes[i]
		if n.Position.Known() || n.Blank != "" || n.Position.UUID == "" && n.Grastate == nil && len(n.Problems) == 0 && n.View == nil && n.From == "" && !n.AtLeast.Known() && n.Datadir == "" {
			continue
		}
		what := n.Name + " does not tell where it is: it did not stop in order (seqno -1)"
		if n.AtLeast.Known() {
			what += fmt.Sprintf("; it was at %d at least", n.AtLeast.Seqno)
		}
		d.refuse(what, "it may have transactions that the others do not have", howToRecover(n))
	}
}

// again says that nodes form their component by themselves, if all members of one view crashed in it.
func (d *Decision) again(missing []string, seen []int) string {
	if len(missing) > 0 {
		return ""
	}
	first := d.Nodes[seen[0]].View
	for _, i := range seen {
		n := d.Nodes[i]
		if n.Live || n.Blank != "" || n.View == nil || first == nil || n.View.View != first.View || n.View.Maker != first.Maker || !slices.Equal(n.View.Members, first.Members) {
			return ""
		}
	}
	text := "all " + digits.Counted(len(seen), "member") + " of the last view crashed in it: all of them started as usual, at once, form it again by themselves (pc.recovery = yes, the default), and the one that is furthest gives the others what they lack. " +
		"systemd and mysqld_safe find out each node's position first, by --wsrep-recover; without them each needs its own"
	for i, j := range seen {
		if n := d.Nodes[j]; n.Position.Known() {
			text += []string{": ", ", "}[min(i, 1)] + n.Name + " --wsrep-start-position=" + n.Position.String()
		} else {
			text += " --wsrep-start-position"
			break
		}
	}
	return text + ". Started without positions they would form a component without a history: all say that they are synced, their data differ, and nothing is copied"
}

func (d *Decision) reasons(n *Node, required []int) {
	say := func(format string, a ...any) { d.Reasons = append(d.Reasons, fmt.Sprintf(format, a...)) }
	if n.Safe {
		say("%s was the last to stop: safe_to_bootstrap: 1", n.Name)
	}
	say("%s is at %s, from %s", n.Name, n.Position, n.From)
	for i, o := range d.Nodes {
		switch {
		case o.Name == n.Name && o.Datadir == n.Datadir:
		case o.Blank == BlankNew:
			say("%s: %s", o.Name, o.Blank.words())
		case o.Blank != "" && slices.Contains(required, i):
			text := o.Name + ": " + o.Blank.words()
			if o.Recovered.Known() {
				text += fmt.Sprintf("; its data are at %d", o.Recovered.Seqno)
			}
			say("%s; it takes a copy of all data", text)
		case o.Blank == "" && o.Position.Known() && strings.HasPrefix(o.From, fromLog) && o.AtLeast.UUID == o.Position.UUID && o.AtLeast.Seqno > o.Position.Seqno:
			say("%s was at %d, and is at %d: it lost its last transactions in the crash (innodb_flush_log_at_trx_commit is not 1?)", o.Name, o.AtLeast.Seqno, o.Position.Seqno)
		case !o.Position.Known() && !slices.Contains(required, i):
			say("%s dropped out before: the last view did not have it", o.Name)
		case o.Position.Known() && o.Position.Seqno == n.Position.Seqno:
			say("%s is at the same number", o.Name)
		case o.Position.Known():
			say("%s is %s behind", o.Name, digits.Counted(n.Position.Seqno-o.Position.Seqno, "transaction"))
		}
	}
}

// steps are what to do, in its order.
func (d *Decision) steps(n *Node) {
	var live []string
	for _, o := range d.Nodes {
		if o.Live {
			live = append(live, o.Name)
		}
	}
	if n.Live {
		d.Steps = append(d.Steps, "make sure that no other part of the cluster takes statements: every node that was not asked here",
			"on "+n.Name+", and on no other: "+wsrep.Bootstrap, "start the nodes that are down, one after the other, as usual")
		return
	}
	if len(live) > 0 {
		d.Steps = append(d.Steps, "shut down "+strings.Join(live, ", ")+": what runs without a majority cannot lead")
	}
	d.Steps = append(d.Steps, "make sure that no server of the cluster runs, on any node")
	if !n.Safe {
		d.Steps = append(d.Steps, "on "+n.Name+": "+n.mark())
	}
	d.Steps = append(d.Steps, "on "+n.Name+", and on no other, start it as the first of the cluster, in the one way that is its packaging's",
		"start the other nodes, one after the other, as usual")
	d.Ways = []Start{
		{"MariaDB with systemd", "galera_new_cluster"},
		{"Percona XtraDB Cluster with systemd", "systemctl start mysql@bootstrap.service"},
		{"MySQL of Codership", "mysqld_bootstrap"},
		{"no service manager", "mariadbd --wsrep-new-cluster --wsrep-start-position=" + n.Position.String() + " (or mysqld), with its other options"},
	}
}
