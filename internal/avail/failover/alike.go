package failover

import (
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/digits"
)

// Room is how much a server can still write.
type Room struct {
	Free uint64 `json:"free_bytes"` // of the file system of its data directory
	By   string `json:"by"`         // who said so
}

// fewest is how much room a member has at least that is promoted gladly: a binary log grows to that by default (max_binlog_size).
const fewest = 1 << 30

// room looks at how much a member can still write. A full one is promoted in a switchover only by name, in a failover only when nobody else can.
func (ch *chooser) room(c *Candidate, no func(code, remedy, format string, args ...any)) {
	r, known := ch.Room[c.Name]
	switch {
	case !known:
		c.Notes = append(c.Notes, "how much room its disk has is not known")
	case r.Free >= fewest:
	case ch.Alive && ch.To != c.Name:
		no("disk", "make room, or name it with --to "+c.Name, "its disk has only %s left (%s)", digits.Bytes(r.Free), r.By)
	default:
		c.full = true
		c.Notes = append(c.Notes, "its disk has only "+digits.Bytes(r.Free)+" left ("+r.By+")")
	}
}

// same are settings with which statements mean the same, or fail alike, on two servers.
var same = []string{"sql_mode", "character_set_server", "collation_server", "default_storage_engine", "explicit_defaults_for_timestamp", "time_zone"}

// least are settings of which a server that takes the place of another one has at least as much.
var least = []string{"max_allowed_packet", "max_connections"}

// alike compares the settings of a member with those of the old primary.
func (ch *chooser) alike(c *Candidate, n *topology.Node, no func(code, remedy, format string, args ...any)) {
	for i := range ch.Topology.Nodes {
		if o := &ch.Topology.Nodes[i]; o.Seen && o.Name != n.Name && n.ServerID != "" && o.ServerID == n.ServerID {
			no("server_id", "another server_id for one of them, and a restart", "%s has the same server_id, %s: it could not replicate from it", o.Name, n.ServerID)
		}
	}
	old := ch.Known.Settings
	if ch.old != nil {
		old = ch.old.Settings
	}
	if len(old) == 0 || len(n.Settings) == 0 {
		if ch.Old != "" {
			c.Notes = append(c.Notes, "its settings could not be compared with those of "+ch.Old)
		}
		return
	}
	differs := func(name string) bool {
		a, known := old[name]
		b, too := n.Settings[name]
		return known && too && !strings.EqualFold(a, b)
	}
	note := func(name string) {
		c.Notes = append(c.Notes, name+" is "+n.Settings[name]+", and "+old[name]+" on "+ch.Old)
	}
	if name := "lower_case_table_names"; differs(name) {
		if ch.Alive && ch.To != c.Name {
			no("settings", "name it with --to "+c.Name, "%s is %s, and %s on %s: names of tables would not be found", name, n.Settings[name], old[name], ch.Old)
		} else {
			note(name)
		}
	}
	for _, name := range same {
		if differs(name) {
			note(name)
		}
	}
	if strings.EqualFold(n.Settings["time_zone"], "SYSTEM") && !differs("time_zone") && differs("system_time_zone") {
		note("system_time_zone")
	}
	for _, name := range least {
		if differs(name) && number(n.Settings[name]) < number(old[name]) {
			note(name)
		}
	}
	for _, name := range []string{"sync_binlog", "innodb_flush_log_at_trx_commit"} {
		if old[name] == "1" && differs(name) {
			note(name)
			c.Notes[len(c.Notes)-1] += ": after a crash of its machine commits may be lost"
		}
	}
}

func number(text string) uint64 {
	n, _ := strconv.ParseUint(text, 10, 64)
	return n
}
