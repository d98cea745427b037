package galera

import (
	"fmt"
	"strings"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql/wsrep"
)

// Blank is why a node's grastate.dat names no history: its UUID is all zeros. Galera writes zeros before it executes a DDL statement and before it asks for a
// state transfer, and the UUID again afterwards; zeros for good when its data differ from those of the others (saved_state.cpp, replicator_smm.cpp). A node with
// zeros takes a copy of all data when it joins, from whatever position it is started, since the provider compares that position's UUID with grastate.dat's.
type Blank string

// What a node that crashed with zeros was doing, as far as its files tell.
const (
	BlankNew     Blank = "new"      // it never took part: its data are of no cluster
	BlankDDL     Blank = "ddl"      // it executed a DDL statement
	BlankCopy    Blank = "transfer" // it was taking the state of another
	BlankDiffers Blank = "differs"  // the others found that its data differ from theirs
	BlankUnknown Blank = "unknown"
)

// zeros are the causes, for one whose files do not tell which.
const zeros = "grastate.dat names no history (its UUID is all zeros)"

// words say it of a node.
func (b Blank) words() string {
	switch b {
	case BlankNew:
		return "it has no data of a cluster"
	case BlankDDL:
		return "it crashed in a DDL statement (ALTER, TRUNCATE, GRANT and the like), so that " + zeros
	case BlankCopy:
		return "it crashed while it took the state of another, so that " + zeros + " and its data may be incomplete"
	case BlankDiffers:
		return "the others found that its data differ from theirs, so that " + zeros
	}
	return zeros + ": it never took part, or crashed in a DDL statement or a state transfer, or ran in a component without a history"
}

// blankOf judges zeros by what the error log said last. What was recovered, all zeros too, tells a node that never took part, unless there are traces of it.
func blankOf(n *Node, l *Log) Blank {
	switch {
	case l.Differs:
		return BlankDiffers
	case l.Copying:
		return BlankCopy
	case l.Synced.Known():
		return BlankDDL
	case n.Recovered.UUID == wsrep.Undefined && n.View == nil && n.ID == "" && !n.AtLeast.Known():
		return BlankNew
	}
	return BlankUnknown
}

// Tell takes a position that a person found by --wsrep-recover.
func (n *Node) Tell(p Position) {
	n.From = fromPerson
	if n.Blank == "" {
		n.Position = p
		return
	}
	n.Recovered = p
	if n.Blank == BlankUnknown {
		n.Blank = blankOf(n, new(Log))
	}
}

// mayHave reports whether a node without a history may have transactions that others do not have.
func (n *Node) mayHave() bool { return n.Blank == BlankDDL || n.Blank == BlankUnknown }

// blanks refuses for nodes without a history that may have more than the best of the others, or than nobody if best is -1.
func (d *Decision) blanks(required []int, best int) {
	for _, i := range required {
		n := &d.Nodes[i]
		if !n.mayHave() {
			continue
		}
		switch {
		case n.Recovered.Known() && best >= 0 && n.Recovered.UUID == d.Nodes[best].Position.UUID && n.Recovered.Seqno > d.Nodes[best].Position.Seqno:
			b := d.Nodes[best]
			d.refuse(fmt.Sprintf("%s has data up to %d at least, and %s, the furthest of the others, up to %d; but %s", n.Name, n.Recovered.Seqno, b.Name, b.Position.Seqno, n.Blank.words()),
				"it may have transactions that the others do not have, and its data may be inconsistent: which of both to keep, only a person can say",
				"to keep those of "+b.Name+": leave "+n.Name+" out, and ask again with --lost 1; to keep those of "+n.Name+": "+keep(n))
		case n.Recovered.Known():
		case n.Recovered.UUID == wsrep.Undefined:
			d.refuse(n.Name+" does not tell where it is: "+n.Blank.words()+"; its data name no position either", "it may have transactions that the others do not have, which no number tells",
				"compare its data; to do without what only it has: leave it out, and ask again with --lost 1; to keep its data: "+keep(n))
		default:
			d.refuse(n.Name+" does not tell where it is: "+n.Blank.words(), "it may have transactions that the others do not have", howToRecover(*n))
		}
	}
}

// keep is how the data of a node without a history become those of all.
func keep(n *Node) string {
	return "start " + n.Name + " as the first of a cluster, which begins a history (galera_new_cluster, systemctl start mysql@bootstrap.service, or mariadbd --wsrep-new-cluster), after " + n.mark() +
		"; the others then as usual: they take a copy of all its data, and lose their own"
}

// mark is the command that lets a node be bootstrapped.
func (n *Node) mark() string {
	if n.Datadir == "" {
		return "set safe_to_bootstrap: 1 in grastate.dat of its data directory"
	}
	return "sed -i 's/^safe_to_bootstrap: 0/safe_to_bootstrap: 1/' " + fleet.ShellWord(strings.TrimSuffix(n.Datadir, "/")+"/grastate.dat")
}

// noHistory refuses where no node has a history, and names those that are furthest by their data.
func (d *Decision) noHistory() {
	found, list, open := -1, "", false
	for i := range d.Nodes {
		n := &d.Nodes[i]
		if n.Blank == "" {
			continue
		}
		list += "; " + n.Name + ": " + n.Blank.words()
		open = open || n.mayHave() && n.Recovered.UUID == ""
		if n.mayHave() && n.Recovered.Known() {
			list += fmt.Sprintf("; its data are at %d", n.Recovered.Seqno)
			if found < 0 || n.Recovered.Seqno > d.Nodes[found].Recovered.Seqno {
				found = i
			}
		}
	}
	const what = "no node has a history: the UUID in grastate.dat is all zeros"
	if open {
		d.refuse(what+list, "where their data are is not known", "find out all positions first: on each of them, its server with --wsrep-recover, as the user that owns its files; risso galera bootstrap then reads it from the error log, or takes it by --position")
		return
	}
	if found >= 0 {
		n := &d.Nodes[found]
		d.refuse(what+list, n.Name+" is the furthest by its data; but a node that crashed in a DDL statement may have done half of it, so that its data can differ from the others'",
			"compare the data, above all the tables of that statement; to keep those of "+n.Name+": "+keep(n))
		return
	}
	d.refuse(what+list, "which data are the newest, no number tells", "compare the data; to keep those of one: set safe_to_bootstrap: 1 in its grastate.dat, and start it as the first of a cluster, which begins a history; the others take a copy of all its data, and lose their own")
}
