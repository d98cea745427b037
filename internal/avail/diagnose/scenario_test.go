package diagnose_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/diagnose"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/fleet"
)

// uuid is the server_uuid of the nth server of a test.
func uuid(n int) string { return fmt.Sprintf("%08d-0000-0000-0000-%012d", n, n) }

// server is one of which nothing is wrong.
func server(n int) topology.Node {
	name := string(rune('a' + n%26))
	if n >= 26 {
		name = fmt.Sprintf("n%d", n)
	}
	node := topology.Node{Name: name, Addresses: []string{name + ":3306"}, Asked: true, Seen: true, Compared: true}
	node.Server = fleet.ServerOf("8.0.40", "MySQL Community Server")
	node.UUID, node.ServerID, node.Hostname, node.Facts.Port, node.DataDir = uuid(n), fmt.Sprint(n+1), name, 3306, "/data/"
	node.Seat = fleet.Seat{ID: node.UUID, Hostname: name, Port: 3306, DataDir: "/data/"}
	node.Log = topology.BinaryLog{On: true, Updates: true, Format: "ROW", Image: "FULL", Checksum: "CRC32", File: "binlog.000003", Pos: 900}
	node.GTID = topology.GTIDs{Mode: "ON", Executed: uuid(0) + ":1-100", Later: uuid(0) + ":1-100"}
	node.Durable = topology.Durable{SyncLog: "1", FlushRedo: "1"}
	node.Numbers = topology.Numbers{Step: 1, Offset: 1}
	node.Connections = topology.Connections{Now: 10, Most: 100}
	node.Applier = topology.Applier{Workers: 4, Ordered: true, Recovery: true, ExecMode: "STRICT"}
	node.Writes = topology.Writes{ReadOnly: true, Super: true}
	return node
}

func channel(source *topology.Node) *topology.Channel {
	behind := 0
	return &topology.Channel{Channel: fleet.Channel{Source: source.Addresses[0], SourceID: source.UUID, IORunning: "Yes", SQLRunning: "Yes", GTID: true}, Behind: &behind, TLS: true,
		IOState: "Waiting for source to send event", SourceLog: "binlog.000003", SourcePos: 900}
}

// replication is a primary a with the replicas b and c.
func replication() *topology.Topology {
	t := &topology.Topology{}
	for n := range 3 {
		t.Nodes = append(t.Nodes, server(n))
	}
	t.Nodes[0].Writes = topology.Writes{}
	link(t, 1, 0)
	link(t, 2, 0)
	return t
}

func link(t *topology.Topology, replica, source int) {
	missing := uint64(0)
	t.Links = append(t.Links, topology.Link{Replica: replica, Source: source, Channel: channel(&t.Nodes[source]), Missing: &missing})
}

// ring is a ring of a, b and c, all writable, whose numbers are apart.
func ring() *topology.Topology {
	t := replication()
	t.Links = nil
	for n := range t.Nodes {
		t.Nodes[n].Writes = topology.Writes{}
		t.Nodes[n].Numbers = topology.Numbers{Step: 3, Offset: n + 1}
		link(t, n, (n+2)%3)
	}
	return t
}

// chain is a, b behind it, and c behind b.
func chain() *topology.Topology {
	t := replication()
	t.Links = t.Links[:1]
	link(t, 2, 1)
	return t
}

// lose makes a server one that does not answer.
func lose(t *topology.Topology, n int, kind string) {
	node := &t.Nodes[n]
	*node = topology.Node{Name: node.Name, Addresses: node.Addresses, Asked: true, Facts: topology.Facts{UUID: node.UUID}, Unseen: &topology.Failure{Kind: kind, Text: "dial tcp: " + kind}}
	t.Links = slices.DeleteFunc(t.Links, func(l topology.Link) bool { return l.Replica == n && l.Channel != nil })
	for k := range t.Links {
		t.Links[k].Missing = nil
	}
}

// fail makes a channel one that an error stopped.
func fail(t *topology.Topology, link int, io bool, number int, text string) {
	ch := t.Links[link].Channel
	ch.Behind = nil
	if io {
		ch.IORunning, ch.IO = "No", fleet.ReplicaError{Number: number, Text: text}
		if number >= 2000 && number < 2100 || number == 1045 || number == 1040 || number == 1129 {
			ch.IORunning = "Connecting"
		}
		return
	}
	ch.SQLRunning, ch.SQL = "No", fleet.ReplicaError{Number: number, Text: text, GTID: uuid(0) + ":90", Table: "shop.orders"}
}

func maria(t *topology.Topology) {
	for n := range t.Nodes {
		node := &t.Nodes[n]
		node.Server = fleet.ServerOf("10.11.6-MariaDB", "")
		node.UUID = ""
		node.GTID = topology.GTIDs{ByDomain: true, Strict: true, Executed: "0-1-100", State: "0-1-100", Logged: "0-1-100", Applied: "0-1-100", Later: "0-1-100"}
	}
}

func galera(n int, name string, members ...string) *topology.Group {
	g := &topology.Group{Kind: "galera", Name: name, Title: "shop", State: "Synced", Primary: true, Writer: true, Size: n}
	for _, m := range members {
		g.Members = append(g.Members, topology.Member{Address: m})
	}
	return g
}

func cluster() *topology.Topology {
	t := replication()
	t.Links = nil
	maria(t)
	for n := range t.Nodes {
		t.Nodes[n].Group, t.Nodes[n].Writes = galera(3, "u", "a:3306", "b:3306", "c:3306"), topology.Writes{}
	}
	return t
}

func group() *topology.Topology {
	t := replication()
	t.Links = nil
	for n := range t.Nodes {
		g := &topology.Group{Kind: "group_replication", Name: "g", State: "ONLINE", Primary: true, Writer: n == 0, Size: 3}
		for m := range 3 {
			g.Members = append(g.Members, topology.Member{UUID: uuid(m), Address: t.Nodes[m].Addresses[0], State: "ONLINE", Role: "SECONDARY"})
		}
		t.Nodes[n].Group = g
	}
	return t
}

// scenario is a code, what makes it hold, and something near it in which it does not.
type scenario struct {
	code string
	is   func(*topology.Topology)
	near func(*topology.Topology)
	base func() *topology.Topology // nil: replication
}

func made(code string, base func() *topology.Topology, is, near func(*topology.Topology)) scenario {
	return scenario{code, is, near, base}
}

// broken is a scenario of an error that stopped a channel; one with another number is near.
func broken(kind string, io bool, number int, text string) scenario {
	return scenario{code: "repl.stopped:" + kind, is: func(t *topology.Topology) { fail(t, 0, io, number, text) }, near: func(t *topology.Topology) { fail(t, 0, io, 9999, "something else") }}
}

// TestBase: where nothing is wrong, nothing is said.
func TestBase(t *testing.T) {
	for name, base := range map[string]func() *topology.Topology{"replication": replication, "chain": chain, "cluster": cluster, "group": group, "empty": func() *topology.Topology { return &topology.Topology{} }} {
		if got := diagnose.Diagnose(base()); len(got) > 0 {
			t.Errorf("%s: got %+v, want nothing", name, got)
		}
	}
}

// TestScenarios: each code is found where it holds, and not where something near it does. None is without a scenario.
func TestScenarios(t *testing.T) {
	tried := map[string]bool{}
	for _, s := range scenarios() {
		tried[s.code] = true
		if s.base == nil {
			s.base = replication
		}
		if s.code == "" {
			t.Fatal("a scenario without a code")
		}
		top := s.base()
		s.is(top)
		found := diagnose.Diagnose(top)
		i := slices.IndexFunc(found, func(d diagnose.Diagnosis) bool { return d.Code == s.code })
		if i < 0 {
			t.Errorf("%s is not found; got %s", s.code, codesOf(found))
			continue
		}
		d := found[i]
		if d.What == "" || len(d.Evidence) == 0 || d.Certain == "" || d.NotSeen == "" || d.Next == "" || len(d.Nodes) == 0 || d.Nodes[0] == "" || (d.On == "") != (d.Statements == "") {
			t.Errorf("%s says too little: %+v", s.code, d)
		}
		if f := d.Finding(); f.ID != strings.SplitN(s.code, ":", 2)[0] || f.What != d.What || f.Severity != d.Severity {
			t.Errorf("%s as a finding: got %+v", s.code, f)
		}
		top = s.base()
		s.near(top)
		if found := diagnose.Diagnose(top); slices.ContainsFunc(found, func(d diagnose.Diagnosis) bool { return d.Code == s.code }) {
			t.Errorf("%s is found where only something near it holds: %s", s.code, codesOf(found))
		}
	}
	for _, c := range diagnose.Codes() {
		if !tried[c.ID] {
			t.Errorf("%s has no scenario", c.ID)
		}
	}
	if len(diagnose.Codes()) < 40 {
		t.Errorf("got %d codes", len(diagnose.Codes()))
	}
}

func codesOf(found []diagnose.Diagnosis) string {
	var list []string
	for _, d := range found {
		words := d.Code + " of " + d.Nodes[0]
		if d.Because != nil {
			words += " because of " + d.Because.Code + " of " + d.Because.Node
		}
		list = append(list, words)
	}
	return strings.Join(list, ", ")
}

// TestCauses: what follows from something else says so, and comes after it.
func TestCauses(t *testing.T) {
	lag := 700
	for _, c := range []struct {
		name string
		base func() *topology.Topology
		do   func(*topology.Topology)
		want string
	}{
		{"a dead primary explains its replicas' errors", replication, func(t *topology.Topology) {
			lose(t, 0, "refused")
			fail(t, 0, true, 2003, "error reconnecting to source")
			fail(t, 1, true, 2003, "error reconnecting to source")
		}, "primary.dead of a, repl.stopped:cannot_connect of b because of primary.dead of a, repl.stopped:cannot_connect of c because of primary.dead of a"},
		{"a late source explains its late replica", chain, func(t *topology.Topology) {
			t.Links[0].Channel.Behind, t.Links[1].Channel.Behind = &lag, &lag
		}, "repl.lag of b, repl.lag of c because of repl.lag of b"},
		{"in a ring where all are late nothing is lost in a circle", ring, func(t *topology.Topology) {
			for k := range t.Links {
				t.Links[k].Channel.Behind = &lag
			}
		}, "repl.lag of a, ring.two_writable of a, repl.lag of b because of repl.lag of a, repl.lag of c because of repl.lag of b"},
		{"a stopped replica explains why semi-sync fell back", replication, func(t *topology.Topology) {
			t.Nodes[0].SemiSync = topology.SemiSync{SourceEnabled: true, WaitFor: 1, Timeout: 10 * time.Second}
			t.Links[0].Channel.IORunning, t.Links[0].Channel.SQLRunning = "No", "No"
			t.Nodes[2].SemiSync.ReplicaActive = true
		}, "repl.stopped:by_command of b, semisync.off of a because of repl.stopped:by_command of b"},
		{"parted servers explain errant transactions and a writable replica", replication, func(t *topology.Topology) { part(t) },
			"repl.split_brain of b, repl.stopped:by_command of b, repl.errant_gtid of b because of repl.split_brain of b, repl.writable of b because of repl.split_brain of b"},
	} {
		top := c.base()
		c.do(top)
		if got := codesOf(diagnose.Diagnose(top)); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

// TestLeftOver: of what is likely the primary nothing is advised that stops its writes, or starts its old channel; nor of what Risso keeps from its source.
func TestLeftOver(t *testing.T) {
	for _, c := range []struct {
		name  string
		do    func(*topology.Topology)
		want  string
		words string
	}{
		{"a primary with a channel", leftOver, "repl.stopped:left_over of b", "RESET REPLICA ALL FOR CHANNEL 'old' removes it"},
		{"the source was not asked", func(t *topology.Topology) { leftOver(t); t.Nodes[0].Unseen.Kind = "not_asked" }, "repl.stopped:left_over of b", "RESET REPLICA ALL"},
		{"stopped at an error", func(t *topology.Topology) { leftOver(t); fail(t, 0, false, 1062, "Duplicate entry") }, "repl.stopped:left_over of b", "error 1062"},
		{"detached", from("a.detached.invalid:3306"), "repl.stopped:detached of b", "risso replica attach b"},
		{"rebuilt", from("a.rebuilding.invalid:3306"), "repl.stopped:rebuilding of b", "risso replica rebuild b"},
	} {
		top := chain()
		top.Links[0].Channel.Name = "old"
		c.do(top)
		found := diagnose.Diagnose(top)
		if got := codesOf(found); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
			continue
		}
		if b, err := json.Marshal(found[0]); err != nil || !strings.Contains(string(b), c.words) || strings.Contains(string(b), "START ") || found[0].Statements != "" {
			t.Errorf("%s: got %s, %v; want %q in it, and nothing to run", c.name, b, err, c.words)
		}
	}
}

// refuse makes a replica one that refuses the account.
func refuse(text string) func(*topology.Topology) {
	return func(t *topology.Topology) { lose(t, 2, "login"); t.Nodes[2].Unseen.Text = text }
}

// untold lets the primary not tell something.
func untold(what string) func(*topology.Topology) {
	return func(t *topology.Topology) {
		t.Nodes[0].Unknown = []fleet.Trouble{{What: what, Why: "Error 1227 (42000): Access denied", Remedy: "GRANT REPLICATION SLAVE ON *.* TO 'risso'@'%'"}}
	}
}

// reported lists a replica that does not answer, by a source from which these hosts read.
func reported(readers ...string) func(*topology.Topology) {
	return func(t *topology.Topology) {
		lose(t, 2, "timeout")
		t.Nodes[2].Asked, t.Nodes[2].ToldBy, t.Nodes[0].Readers = false, []string{"a"}, readers
		t.Links = append(t.Links, topology.Link{Replica: 2, Source: 0})
	}
}

// TestWords: how much is said, and how bad it is, where that depends on what was seen.
func TestWords(t *testing.T) {
	refused := func(t *topology.Topology) { fail(t, 0, true, 1045, "Access denied for user 'repl'") }
	for _, c := range []struct {
		name, code string
		base       func() *topology.Topology
		do         func(*topology.Topology)
		severity   fleet.Severity
		words, not string // in the diagnosis as JSON
	}{
		{"a replica heard from the primary a moment ago", "primary.unreachable", replication, heard(4*time.Second, 50*time.Second), fleet.SeverityWarning, "1 replica heard from it, last 4 s ago, 1 replica still says", "dead:"},
		{"replicas only say that they are connected", "primary.unreachable", replication, func(t *topology.Topology) { lose(t, 0, "timeout") }, fleet.SeverityCritical, "2 replicas still say that they are connected", "one of them last heard"},
		{"a replica was refused", "primary.unreachable", replication, func(t *topology.Topology) { lose(t, 0, "timeout"); refused(t); t.Links = t.Links[:1] }, fleet.SeverityWarning, "refused by it when it last tried", "still say"},
		{"nobody heard", "primary.silent", replication, heard(50*time.Second, 40*time.Second), fleet.SeverityCritical, "for 40 s, though 2 replicas count as connected", "unreachable"},
		{"replicas that were not seen", "primary.no_replica_runs", replication, func(t *topology.Topology) {
			t.Links[0].Channel.SQLRunning, t.Links[1].Channel.SQLRunning = "No", "No"
			t.Nodes = append(t.Nodes, topology.Node{Name: "d", Unseen: &topology.Failure{Kind: "timeout"}})
			t.Links = append(t.Links, topology.Link{Replica: 3, Source: 0})
		}, fleet.SeverityWarning, "none of the 2 replicas of a that were seen", ""},
		{"one that hangs", "server.hung", replication, func(t *topology.Topology) { lose(t, 0, "hung"); t.Nodes[0].Unseen.Patience = 5 * time.Second }, fleet.SeverityWarning, "did not answer within 5 s", "this machine first"},
		{"one that hangs, and its replicas lost it", "server.hung", replication, func(t *topology.Topology) {
			lose(t, 0, "hung")
			fail(t, 0, true, 2003, lostWords)
			fail(t, 1, true, 2003, lostWords)
		}, fleet.SeverityCritical, "cannot connect to it", "this machine first"},
		{"many that hang", "server.hung", replication, func(t *topology.Topology) { lose(t, 0, "hung"); lose(t, 1, "hung") }, fleet.SeverityWarning, "look at this machine first", ""},
		{"this host is blocked", "server.no_access", replication, func(t *topology.Topology) {
			lose(t, 2, "login")
			t.Nodes[2].Unseen.Text = "Error 1129 (HY000): Host '10.0.0.1' is blocked because of many connection errors"
		}, fleet.SeverityWarning, "FLUSH HOSTS", "risso grants"},
		{"its password has expired", "server.no_access", replication, refuse("Error 1862 (HY000): Your password has expired. To log in you must change it using a client that supports expired passwords."), fleet.SeverityWarning, "PASSWORD EXPIRE NEVER", "risso grants"},
		{"it is locked", "server.no_access", replication, refuse("Error 4151 (HY000): Access denied, this account is locked"), fleet.SeverityWarning, "ACCOUNT UNLOCK", "risso grants"},
		{"its password is wrong", "server.no_access", replication, refuse("Error 1045 (28000): Access denied for user 'risso'@'localhost'"), fleet.SeverityWarning, "risso grants", "UNLOCK"},
		{"its replicas cannot be listed", "topology.not_all_seen", replication, untold("its replicas"), fleet.SeverityWarning, "Error 1227", ""},
		{"its clock cannot be read", "topology.not_all_seen", replication, untold("its clock"), fleet.SeverityInfo, "Error 1227", ""},
		{"a replica that is not where it says", "server.down", replication, reported("10.0.0.9"), fleet.SeverityWarning, "--reach c:3306=HOST:PORT", ""},
		{"a replica that nobody reads for", "server.down", replication, reported(), fleet.SeverityWarning, "look at its machine", "--reach"},
		{"a restart by nobody", "repl.config:relay_log_recovery", replication, func(t *topology.Topology) { t.Nodes[1].Applier.Recovery = false }, fleet.SeverityWarning, "restarted by hand", ""},
		{"this machine's clock", "clock.skew", replication, func(t *topology.Topology) {
			for i := range t.Nodes {
				t.Nodes[i].Skew = -10*time.Second - time.Duration(i)*100*time.Millisecond
			}
		}, fleet.SeverityWarning, "this machine's clock is 10.1 s ahead of those of 3 servers", "the clock of"},
		{"one that was both written to", "repl.split_brain", replication, part, fleet.SeverityCritical, "whether the replica's own are newer than its stop", "both written to"},
		{"errant transactions, not compared", "repl.errant_gtid", replication, func(t *topology.Topology) { t.Nodes[1].Errant = uuid(1) + ":1" }, fleet.SeverityWarning, "risso gtid repair", "GTID_NEXT"},
		{"a fragmented set", "repl.errant_gtid", replication, func(t *topology.Topology) { t.Nodes[1].Errant = uuid(1) + strings.Repeat(":1", 100_000) }, fleet.SeverityWarning, "…", strings.Repeat(":1", 500)},
		{"one alone of a Galera cluster", "galera.non_primary", cluster, func(t *topology.Topology) {
			lose(t, 0, "timeout")
			lose(t, 1, "timeout")
			t.Nodes[2].Group.Primary = false
		}, fleet.SeverityCritical, "risso galera bootstrap", "pc.bootstrap"},
		{"what waits for room goes on by itself", "server.no_room", replication, func(t *topology.Topology) { t.Links[0].Channel.SQLState = "Waiting for disk space" }, fleet.SeverityCritical, "goes on by itself", "START REPLICA"},
		{"another may have taken the place of a read-only one", "primary.none", replication, func(t *topology.Topology) { t.Nodes[0].Writes.ReadOnly = true }, fleet.SeverityCritical, "has taken its place", ""},
		{"MariaDB's histories", "repl.split_brain", replication, mariaSeveral("0-1-90,0-3-95"), fleet.SeverityWarning, "servers of two replications may have the same server_id", ""},
	} {
		top := c.base()
		c.do(top)
		found := diagnose.Diagnose(top)
		i := slices.IndexFunc(found, func(d diagnose.Diagnosis) bool { return d.Code == c.code })
		if i < 0 {
			t.Errorf("%s: got %s, want %s", c.name, codesOf(found), c.code)
			continue
		}
		b, err := json.Marshal(found[i])
		if text := string(b); err != nil || found[i].Severity != c.severity || !strings.Contains(text, c.words) || c.not != "" && strings.Contains(text, c.not) {
			t.Errorf("%s: got %s, %s; want %s, %q in it, and not %q", c.name, found[i].Severity, text[:min(len(text), 3000)], c.severity, c.words, c.not)
		}
		if remedy := found[i].Finding().Remedy; !strings.HasPrefix(remedy, found[i].Next) {
			t.Errorf("%s: the finding's remedy is %q, without what to do first", c.name, remedy)
		}
	}
}

// part makes a and b two that were both written to since b was stopped.
func part(t *topology.Topology) {
	missing := uint64(5)
	t.Links[0].Channel.IORunning, t.Links[0].Channel.SQLRunning, t.Links[0].Missing = "No", "No", &missing
	t.Nodes[1].Writes, t.Nodes[1].Errant = topology.Writes{}, uuid(1)+":1-2"
}

// TestHostile: names and errors of servers may contain anything, and what is not there is not needed.
func TestHostile(t *testing.T) {
	top := replication()
	odd := "x\x1b[2J\n\u202e'; DROP TABLE t; --"
	top.Nodes[1].Name, top.Links[0].Channel.Name, top.Links[0].Channel.Source = odd, odd, odd
	fail(top, 0, false, 1062, odd+strings.Repeat("é", 10_000))
	top.Links[0].Channel.SQL.GTID = odd
	top.Nodes[2].GTID.Executed, top.Nodes[2].Errant = "no set", "no set"
	top.Nodes = append(top.Nodes, topology.Node{Name: odd, Unseen: &topology.Failure{Kind: odd, Text: odd}}, topology.Node{Name: "z"})
	top.Links = append(top.Links, topology.Link{Replica: 3, Source: 4}, topology.Link{Replica: 4, Source: 4, Channel: &topology.Channel{}}, topology.Link{Replica: 0, Source: 4, Channel: &topology.Channel{}})
	top.Surprises = append(top.Surprises, topology.Surprise{Kind: odd, Node: odd}, topology.Surprise{Kind: "other_server", Node: "nobody", Text: odd})
	for _, d := range diagnose.Diagnose(top) {
		for _, text := range append(slices.Clone(d.Evidence), d.What) {
			if strings.ContainsAny(text, "\x1b\n\u202e") {
				t.Errorf("%s: %q", d.Code, text)
			}
			if len(text) > 4000 {
				t.Errorf("%s: %d bytes", d.Code, len(text))
			}
		}
		d.Finding()
	}
}

// many is a replication of n servers: a primary, intermediates behind it, and the rest behind those; a tenth is broken in some way.
func many(n int) *topology.Topology {
	t := &topology.Topology{}
	lag := 100
	for i := range n {
		t.Nodes = append(t.Nodes, server(i))
	}
	t.Nodes[0].Writes = topology.Writes{}
	for i := 1; i < n; i++ {
		source := 0
		if i > 10 {
			source = i%10 + 1
		}
		link(t, i, source)
		switch i % 40 {
		case 5:
			fail(t, i-1, false, 1062, "Could not execute Write_rows event on table shop.orders; Duplicate entry")
		case 6:
			t.Links[i-1].Channel.Behind = &lag
		case 7:
			t.Nodes[i].Writes = topology.Writes{}
		case 8:
			t.Nodes[i].Errant = uuid(i) + ":1-5"
		}
	}
	return t
}

// copied is n servers that were made from one image, stand alone, and are written to.
func copied(n int) *topology.Topology {
	t := &topology.Topology{}
	for i := range n {
		t.Nodes = append(t.Nodes, server(i))
		t.Nodes[i].Writes = topology.Writes{}
		t.Nodes[i].GTID.Executed = uuid(0) + ":1-90," + uuid(i+1000) + ":1-50"
	}
	return t
}

// TestCopied: of many copies it is said once.
func TestCopied(t *testing.T) {
	if found := diagnose.Diagnose(copied(300)); len(found) != 1 || found[0].Code != "primary.several" || len(found[0].Nodes) != 300 {
		t.Errorf("got %d: %s", len(found), codesOf(found[:min(len(found), 3)]))
	}
	if found := diagnose.Diagnose(copied(3)); len(found) != 3 || found[0].Code != "repl.split_brain" {
		t.Errorf("of three: got %s", codesOf(found))
	}
}

// BenchmarkCopied: nor do 300 copies take longer.
func BenchmarkCopied(b *testing.B) {
	t := copied(300)
	for b.Loop() {
		diagnose.Diagnose(t)
	}
}

// BenchmarkDiagnose: 300 servers take less than 5 ms.
func BenchmarkDiagnose(b *testing.B) {
	t := many(300)
	for b.Loop() {
		diagnose.Diagnose(t)
	}
}

// TestMany: of 300 servers those that are broken are found, and no others.
func TestMany(t *testing.T) {
	found := map[string]int{}
	for _, d := range diagnose.Diagnose(many(300)) {
		found[d.Code]++
	}
	want := map[string]int{"repl.stopped:duplicate_row": 8, "repl.lag": 8, "repl.writable": 8, "repl.errant_gtid": 8}
	for code, n := range want {
		if found[code] != n {
			t.Errorf("%s: got %d, want %d", code, found[code], n)
		}
	}
	if len(found) != len(want) {
		t.Errorf("got %v, want %v", found, want)
	}
}
