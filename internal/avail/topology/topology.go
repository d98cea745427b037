// Package topology is a set of servers and who replicates from whom, as they tell it: the nodes, the links between them, roots, rings and clusters, drawn as a
// tree or a graph. It is pure but for Discover, which asks servers by a function that it is given. What was not seen is drawn as not seen; nothing is guessed.
package topology

import (
	"fmt"
	"slices"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// Topology is what was found, at one moment.
type Topology struct {
	Time  time.Time `json:"time"`
	Nodes []Node    `json:"nodes"` // by name
	Links []Link    `json:"links"` // by replica, then by source
	// Surprises are what does not fit together: servers told of where another one answers, and the like.
	Surprises []Surprise `json:"surprises,omitempty"`
	// Left is how many addresses were told of and not asked, as there were too many.
	Left int `json:"left,omitempty"`
}

// Node is a server: one that answered, or one that others tell of.
type Node struct {
	Name      string   `json:"name"`                // as it was given, or the address under which it was found first
	Addresses []string `json:"addresses,omitempty"` // host:port, or the path of a socket, under which it answered, or is said to be
	ToldBy    []string `json:"told_by,omitempty"`   // names of the servers that tell of it
	Asked     bool     `json:"asked"`               // it was given, and not only told of by others
	Seen      bool     `json:"seen"`                // it answered
	// Unseen is why it did not answer; of one that answered, why not all of it is known.
	Unseen *Failure `json:"unseen,omitempty"`
	// Errant are transactions that it has and none of its sources, which were asked later; in a ring those of the ring's servers are none. "": none, or not known.
	Errant string `json:"errant,omitempty"`
	// Compared says that Errant is known.
	Compared bool `json:"compared"`
	Facts    `json:"facts"`
}

// Failure is why a server, or a part of what it knows, was not seen.
type Failure struct {
	Kind string `json:"kind"` // refused, timeout, hung (it takes connections and says nothing), login, unreachable, full, dropped, tls, privilege, other; no_address: nobody tells it; other_server: another one answers there
	Text string `json:"text"`
	// Patience is how long an answer was waited for, of one that hangs.
	Patience time.Duration `json:"patience_ns,omitempty"`
}

// Facts is what a server told of itself. What it did not tell is empty, and Unknown says why.
type Facts struct {
	fleet.Server
	UUID     string        `json:"server_uuid,omitempty"` // of MySQL; MariaDB has none
	ServerID string        `json:"server_id,omitempty"`
	Hostname string        `json:"hostname,omitempty"`
	Port     int           `json:"port,omitempty"`
	DataDir  string        `json:"datadir,omitempty"`
	Reported string        `json:"reported,omitempty"` // report_host:report_port, under which it wants to be known
	Started  time.Time     `json:"started,omitzero"`   // when it was started
	Here     bool          `json:"-"`                  // it runs on this machine, by the address under which it was asked
	Inside   bool          `json:"-"`                  // its address is one of this machine's
	Asked    time.Time     `json:"asked_at,omitzero"`  // when, by this machine's clock
	Took     time.Duration `json:"took_ns,omitempty"`  // how long it took to answer all
	// Skew is by how much its clock is ahead of this machine's, at the least: what may be the network's is left out.
	Skew        time.Duration   `json:"skew_ns,omitempty"`
	Writes      Writes          `json:"writes"`
	Log         BinaryLog       `json:"binary_log"`
	GTID        GTIDs           `json:"gtid"`
	SemiSync    SemiSync        `json:"semi_sync"`
	Applier     Applier         `json:"applier"`
	Channels    []Channel       `json:"channels,omitempty"`
	Listed      []Listed        `json:"listed,omitempty"`  // replicas that it lists
	Readers     []string        `json:"readers,omitempty"` // hosts whose connections read its binary log
	Group       *Group          `json:"group,omitempty"`   // the cluster that it belongs to
	Connections Connections     `json:"connections"`
	Waiting     map[string]int  `json:"waiting,omitempty"` // sessions by their state, as far as it says that they cannot go on
	Durable     Durable         `json:"durable"`
	Numbers     Numbers         `json:"auto_increment"`
	Unknown     []fleet.Trouble `json:"unknown,omitempty"` // what it did not tell
	// Settings are variables in which a server that takes the place of another one is to be like it, by name.
	Settings map[string]string `json:"-"`
}

// Writes is who may write.
type Writes struct {
	ReadOnly bool `json:"read_only"`        // accounts without special privileges may not
	Super    bool `json:"super_read_only"`  // those with SUPER may not, either
	Offline  bool `json:"offline_mode"`     // clients without special privileges are sent away
	InnoDB   bool `json:"innodb_read_only"` // InnoDB was started read-only
}

// Open reports whether accounts without special privileges may write. Super says nothing without ReadOnly: mysql.Server.ClosedToAll has why.
func (w Writes) Open() bool { return !w.ReadOnly && !w.Offline && !w.InnoDB }

// BinaryLog is how a server logs what changes.
type BinaryLog struct {
	On       bool   `json:"on"`                                // it writes one
	Closed   bool   `json:"closed,omitempty"`                  // it is to, and does not since it could not, until it is started again; On is false
	Updates  bool   `json:"log_replica_updates"`               // it logs what it applies as a replica
	Format   string `json:"format,omitempty"`                  // ROW, MIXED, STATEMENT
	Image    string `json:"row_image,omitempty"`               // FULL, MINIMAL, NOBLOB: what of a row is logged
	Checksum string `json:"checksum,omitempty"`                // CRC32, NONE
	File     string `json:"file,omitempty"`                    // where it writes now
	Pos      int64  `json:"pos,omitempty"`                     // bytes
	Packed   bool   `json:"compressed_transactions,omitempty"` // transactions are compressed
	Filter   string `json:"filter,omitempty"`                  // binlog_do_db and binlog_ignore_db
}

// GTIDs is which transactions a server has.
type GTIDs struct {
	ByDomain bool   `json:"by_domain"`          // as MariaDB's are
	Mode     string `json:"mode,omitempty"`     // gtid_mode
	Strict   bool   `json:"strict,omitempty"`   // gtid_strict_mode
	Domain   string `json:"domain,omitempty"`   // gtid_domain_id
	Executed string `json:"executed,omitempty"` // gtid_executed; of MariaDB gtid_current_pos
	State    string `json:"state,omitempty"`    // MariaDB's gtid_binlog_state
	Logged   string `json:"logged,omitempty"`   // MariaDB's gtid_binlog_pos
	Applied  string `json:"applied,omitempty"`  // MariaDB's gtid_slave_pos
	Purged   string `json:"purged,omitempty"`   // gtid_purged
	Later    string `json:"later,omitempty"`    // Executed, or State, of a source once more after its replicas were asked
	Again    bool   `json:"-"`                  // Later was read
}

// All is what a server has executed and logged, by its own record: gtid_executed; of MariaDB gtid_binlog_state.
func (g *GTIDs) All() string {
	if g.ByDomain {
		return g.State
	}
	return g.Executed
}

// Newest is All as it was read last.
func (g *GTIDs) Newest() string {
	if g.Again {
		return g.Later
	}
	return g.All()
}

// SemiSync is semi-synchronous replication. Enabled is what is set, Active what is in force now.
type SemiSync struct {
	SourceEnabled  bool          `json:"source_enabled"`       // as a source, it is to wait
	SourceActive   bool          `json:"source_active"`        // it waits now
	ReplicaEnabled bool          `json:"replica_enabled"`      // as a replica, it is to acknowledge
	ReplicaActive  bool          `json:"replica_active"`       // it acknowledges now
	Point          string        `json:"wait_point,omitempty"` // AFTER_SYNC, AFTER_COMMIT
	Timeout        time.Duration `json:"timeout_ns,omitempty"` // how long a commit waits, in nanoseconds
	WaitFor        int           `json:"wait_for,omitempty"`   // acknowledgements that a commit waits for
	WaitNobody     bool          `json:"wait_no_replica"`      // commits wait though fewer replicas are connected
	Replicas       int           `json:"replicas"`             // that acknowledge
	Unacknowledged int64         `json:"unacknowledged"`       // commits since the start that were not waited for
	WaitSessions   int           `json:"wait_sessions"`        // that wait for an acknowledgement now
	Waited         time.Duration `json:"waited_ns,omitempty"`  // how long the statement runs at most that waits so, in nanoseconds
	// SourceSetting and ReplicaSetting are the variables that switch it on, which have names of two ages; "": the server does not know them.
	SourceSetting  string `json:"source_setting,omitempty"`
	ReplicaSetting string `json:"replica_setting,omitempty"` // likewise
}

// Applier is how a replica is set to apply.
type Applier struct {
	Workers  int    `json:"workers"`               // threads; 0: one
	Mode     string `json:"mode,omitempty"`        // how it applies in parallel: LOGICAL_CLOCK, DATABASE; of MariaDB optimistic and the like
	Ordered  bool   `json:"preserve_commit_order"` // it commits in the order of the source
	Recovery bool   `json:"relay_log_recovery"`    // after a crash it fetches its relay logs again
	SkipErr  string `json:"skip_errors,omitempty"` // errors that it passes over
	ExecMode string `json:"exec_mode,omitempty"`   // STRICT; IDEMPOTENT: it passes over rows that are missing, or there already
}

// Channel is a source that a server replicates from.
type Channel struct {
	fleet.Channel
	SourceServerID string `json:"source_server_id,omitempty"` // "": it never answered
	Behind         *int   `json:"behind_seconds,omitempty"`   // as the server says; nil: it does not
	Delay          int    `json:"delay_seconds,omitempty"`    // that it is configured to stay behind
	IOState        string `json:"io_state,omitempty"`         // in the server's words
	SQLState       string `json:"sql_state,omitempty"`        // what the thread that applies does, likewise
	Received       string `json:"received,omitempty"`         // GTIDs: Retrieved_Gtid_Set; of MariaDB Gtid_IO_Pos
	SourceLog      string `json:"source_log,omitempty"`       // up to which of the source's binary logs it received
	SourcePos      int64  `json:"source_pos,omitempty"`       // and the position there, in bytes
	RelayBytes     int64  `json:"relay_bytes,omitempty"`      // of relay logs on its disk
	RelayLog       string `json:"relay_log,omitempty"`        // from which of these it applies next
	RelayPos       int64  `json:"relay_pos,omitempty"`        // and the position there, in bytes
	Filter         string `json:"filter,omitempty"`           // what it leaves out
	TLS            bool   `json:"tls"`                        // it is set to use TLS
	// Silence is for how long nothing came from the source, neither a transaction nor a heartbeat; nil: the server does not tell.
	Silence *time.Duration `json:"silence_ns,omitempty"`
	// Tries is after how many tries to connect it gives up, and stands; 0: never, or it is not known.
	Tries int `json:"connect_tries,omitempty"`
	// Retry is how often it tries to connect, in nanoseconds.
	Retry time.Duration `json:"connect_retry_ns,omitempty"`
	// Beat is how often the source says that it lives while it has nothing to send; 0: not known.
	Beat time.Duration `json:"heartbeat_ns,omitempty"`
}

// Receiving reports whether the channel is connected to its source.
func (c Channel) Receiving() bool { return c.IORunning == "Yes" }

// Applying reports whether the channel applies what it received.
func (c Channel) Applying() bool { return c.SQLRunning == "Yes" }

// Replicates is what Unknown calls what a server replicates.
const Replicates = "what it replicates"

// Untold is why a server that answers does not tell what it replicates; nil: it tells. Its Channels are empty then, and that says nothing.
func (n *Node) Untold() *fleet.Trouble {
	if i := slices.IndexFunc(n.Unknown, func(u fleet.Trouble) bool { return u.What == Replicates }); n.Seen && i >= 0 {
		return &n.Unknown[i]
	}
	return nil
}

// Unapplied reports whether a server has received something by a channel, and not applied it, or may have.
func (n *Node) Unapplied(ch *Channel) bool {
	if !ch.GTID {
		return ch.Channel.Unapplied != 0
	}
	received, err := mysql.ParseGTIDSet(ch.Received)
	have, herr := mysql.ParseGTIDSet(n.GTID.Executed)
	if n.GTID.ByDomain {
		have, herr = mysql.ParseGTIDSet(n.GTID.Applied)
	}
	return err != nil || herr != nil || !have.ContainsSet(received)
}

// StartDrops reports whether any START of a channel would throw away what was received by it: see mysql.Server.StartDrops.
func (n *Node) StartDrops(ch *Channel) bool {
	return mysql.Of(n.Server).StartDrops(ch.Channel) && n.Unapplied(ch)
}

// Listed is a replica as its source lists it.
type Listed struct {
	ServerID string `json:"server_id"`
	UUID     string `json:"server_uuid,omitempty"` // of MySQL
	Host     string `json:"host,omitempty"`        // that it reports; "": none
	Port     int    `json:"port,omitempty"`
}

// Group is a cluster, as one of its members sees it.
type Group struct {
	Kind    string   `json:"kind"` // galera, group_replication
	Name    string   `json:"name"` // of Galera the UUID of its state
	Title   string   `json:"title,omitempty"`
	State   string   `json:"state"`   // of the member: Synced, Donor/Desynced …; ONLINE, RECOVERING …
	Primary bool     `json:"primary"` // it belongs to the part that has quorum
	Writer  bool     `json:"writer"`  // it may be written to: in a group with a single primary, that one
	Size    int      `json:"size"`    // how many members it sees
	Members []Member `json:"members,omitempty"`
}

// Member is another member of a group, as one sees it.
type Member struct {
	UUID    string `json:"server_uuid,omitempty"` // of Group Replication
	Address string `json:"address"`
	State   string `json:"state,omitempty"`
	Role    string `json:"role,omitempty"` // PRIMARY, SECONDARY
}

// Connections is how many there are.
type Connections struct {
	Now  int `json:"now"`  // that are open
	Most int `json:"most"` // max_connections
}

// Durable is what of commits is on disk at once.
type Durable struct {
	SyncLog   string `json:"sync_binlog,omitempty"`             // after how many commits the binary log is flushed; 0: when the system likes
	FlushRedo string `json:"flush_log_at_trx_commit,omitempty"` // 1: InnoDB's log is flushed at each commit
	LogError  string `json:"binlog_error_action,omitempty"`     // what a MySQL does that cannot write its binary log: ABORT_SERVER, or IGNORE_ERROR
}

// Numbers is which AUTO_INCREMENT numbers a server gives: Offset, and from there on each Step.
type Numbers struct {
	Step   int `json:"increment"` // 0: not known
	Offset int `json:"offset"`
}

// Link is that a node replicates from another.
type Link struct {
	Replica int `json:"replica"` // index into Nodes
	Source  int `json:"source"`
	// Channel is how the replica sees it; nil: only the source tells of it.
	Channel *Channel `json:"channel,omitempty"`
	// Missing is how many of the source's transactions the replica has not applied, by GTID; nil: not known.
	Missing *uint64 `json:"missing,omitempty"`
	// Frozen is for how long, at the least, nothing at all came, though the source had more and the channel says that it receives; 0: something came, or it is not known.
	Frozen time.Duration `json:"frozen_ns,omitempty"`
}

// Surprise is something that does not fit together.
type Surprise struct {
	Kind  string `json:"kind"` // other_server, not_a_replica, perhaps_copy, one_address, changed
	Node  string `json:"node"` // whom it is about
	Other string `json:"other,omitempty"`
	Text  string `json:"text"`
}

// Find is the index of a node by its name or one of its addresses, or -1.
func (t *Topology) Find(name string) int {
	return slices.IndexFunc(t.Nodes, func(n Node) bool { return n.Name == name || slices.Contains(n.Addresses, name) })
}

// Unreached is an error if none of the servers that were given answered: what is drawn is nothing then.
func (t *Topology) Unreached() error {
	if slices.ContainsFunc(t.Nodes, func(n Node) bool { return n.Seen }) {
		return nil
	}
	return fmt.Errorf("no server answered: %s", t.Nodes[0].Unseen.Text)
}

// Sources are the links by which a node replicates.
func (t *Topology) Sources(node int) (out []Link) {
	for _, l := range t.Links {
		if l.Replica == node {
			out = append(out, l)
		}
	}
	return out
}

// Replicas are the links of those that replicate from a node.
func (t *Topology) Replicas(node int) (out []Link) {
	for _, l := range t.Links {
		if l.Source == node {
			out = append(out, l)
		}
	}
	return out
}

// Below are the links of a node's replicas, of theirs, and so on, the nearest first; each replica once.
func (t *Topology) Below(node int) (out []Link) {
	reached := map[int]bool{node: true}
	for queue := []int{node}; len(queue) > 0; queue = queue[1:] {
		for _, l := range t.Replicas(queue[0]) {
			if !reached[l.Replica] {
				reached[l.Replica] = true
				queue, out = append(queue, l.Replica), append(out, l)
			}
		}
	}
	return out
}

// Role is what a node is, by its links: primary (it has replicas and no source), replica, intermediate (both), member of a group, or single.
func (t *Topology) Role(node int) string {
	up, down := len(t.Sources(node)) > 0, len(t.Replicas(node)) > 0
	switch {
	case t.LikelyPrimary(node):
		return "primary"
	case up && down:
		return "intermediate"
	case up:
		return "replica"
	case t.Nodes[node].Group != nil:
		return "member"
	case down:
		return "primary"
	case !t.Nodes[node].Seen:
		return "unknown"
	}
	return "single"
}

// LikelyPrimary reports whether a node that has channels is likely the primary: it can be written to, a replica receives from it, and its own channels are stopped and
// lead to servers that were not seen, as those of a replica that was promoted and kept its channel.
func (t *Topology) LikelyPrimary(node int) bool {
	up := t.Sources(node)
	if n := &t.Nodes[node]; !n.Seen || !n.Writes.Open() || n.Group != nil || len(up) == 0 {
		return false
	}
	for _, l := range up {
		if l.Channel == nil || l.Channel.IORunning != "No" || l.Channel.Applying() || t.Nodes[l.Source].Seen {
			return false
		}
	}
	return slices.ContainsFunc(t.Replicas(node), func(l Link) bool { return l.Channel != nil && l.Channel.Receiving() })
}

// Rings are the groups of nodes that replicate from each other in a circle, each in the order of the names.
func (t *Topology) Rings() (rings [][]int) {
	index, low, on := make([]int, len(t.Nodes)), make([]int, len(t.Nodes)), make([]bool, len(t.Nodes))
	down := make([][]int, len(t.Nodes))
	itself := make([]bool, len(t.Nodes))
	for _, l := range t.Links {
		down[l.Source] = append(down[l.Source], l.Replica)
		itself[l.Source] = itself[l.Source] || l.Source == l.Replica
	}
	var stack []int
	next := 0
	var visit func(v int)
	visit = func(v int) { // Tarjan's strongly connected components
		next++
		index[v], low[v], on[v] = next, next, true
		stack = append(stack, v)
		for _, w := range down[v] {
			switch {
			case index[w] == 0:
				visit(w)
				low[v] = min(low[v], low[w])
			case on[w]:
				low[v] = min(low[v], index[w])
			}
		}
		if low[v] != index[v] {
			return
		}
		at := slices.Index(stack, v)
		ring := slices.Clone(stack[at:])
		stack = stack[:at]
		for _, w := range ring {
			on[w] = false
		}
		if len(ring) > 1 || itself[v] {
			slices.Sort(ring)
			rings = append(rings, ring)
		}
	}
	for v := range t.Nodes {
		if index[v] == 0 {
			visit(v)
		}
	}
	slices.SortFunc(rings, func(a, b []int) int { return a[0] - b[0] })
	return rings
}

// Roots are the nodes from which all others can be reached along the links, as few as possible: those without a source, and the first of each ring
// that no other node feeds.
func (t *Topology) Roots() (roots []int) {
	for v := range t.Nodes {
		if len(t.Sources(v)) == 0 {
			roots = append(roots, v)
		}
	}
	for _, ring := range t.Rings() {
		fed := slices.ContainsFunc(t.Links, func(l Link) bool { return slices.Contains(ring, l.Replica) && !slices.Contains(ring, l.Source) })
		if !fed {
			roots = append(roots, ring[0])
		}
	}
	slices.Sort(roots)
	return roots
}
