package rules

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
)

// member makes a server that Risso reaches by an address; findings are IDs, or ID/channel.
func member(id, address string, state State, findings ...string) Member {
	m := Member{Instance: fleet.Instance{ID: id, Name: id, Kind: fleet.KindServer, Address: address, Flavour: fleet.FlavourMySQL, Version: "9.7.0"}, State: state}
	for _, f := range findings {
		fid, subject, _ := strings.Cut(f, "/")
		m.Findings = append(m.Findings, fleet.Finding{ID: fid, Subject: subject})
	}
	return m
}

func (m Member) from(source, io, sql string, e fleet.ReplicaError) Member {
	ch := fleet.Channel{Source: source, IORunning: io, SQLRunning: sql}
	if sql == "No" {
		ch.SQL = e
	} else {
		ch.IO = e
	}
	m.Channels = append(m.Channels, ch)
	return m
}

func (m Member) at(host string, port int, uuid string) Member {
	m.Seat.Hostname, m.Seat.Port, m.Seat.ID = host, port, uuid
	return m
}

// since sets when it fell silent.
func (m Member) since(second int64) Member {
	m.Findings[0].Since = time.Unix(second, 0)
	return m
}

func TestCauses(t *testing.T) {
	cannot := fleet.ReplicaError{Number: 2003, Text: "cannot connect"}
	missing := func(gtid string) fleet.ReplicaError {
		return fleet.ReplicaError{Number: 1146, Text: "no table", GTID: gtid}
	}
	twenty := []Member{member("p", "db1:3306", StateDown, "server.down")}
	for i := range 20 {
		twenty = append(twenty, member(fmt.Sprintf("r%02d", i), fmt.Sprintf("db%d:3306", i+2), StateCritical, "repl.stopped").from("db1:3306", "Connecting", "Yes", cannot))
	}
	down := member("p", "127.0.0.1:3306", StateDown, "server.down").at("h", 3306, "")
	for _, c := range []struct {
		name    string
		members []Member
		want    string
	}{
		{"nothing is wrong", []Member{member("p", "db1:3306", StateOK), member("r", "db2:3306", StateOK).from("db1:3306", "Yes", "Yes", fleet.ReplicaError{})}, ""},
		{"20 replicas of one that is down", twenty, "p server.down 20: p is down"},
		{"what is diagnosed of one that is down", []Member{member("p", "db1:3306", StateDown, "server.down", "primary.dead")}, "p server.down 0: p is down"},
		{"what is diagnosed of one that runs", []Member{member("p", "db1:3306", StateWarning, "primary.several")}, ""},
		{"a replica that fails to apply has a cause of its own", []Member{twenty[0], member("r", "db2:3306", StateCritical, "repl.stopped").from("db1:3306", "Connecting", "No", missing("u:1"))}, ""},
		{"stopped, and its source is up", []Member{member("p", "db1:3306", StateOK), member("r", "db2:3306", StateCritical, "repl.stopped").from("db1:3306", "Connecting", "Yes", cannot)}, ""},
		{"not told yet", []Member{twenty[0], member("r", "db2:3306", StateOK).from("db1:3306", "Connecting", "Yes", cannot)}, ""},
		{"several stopped at one transaction", []Member{member("p", "db1:3306", StateOK),
			member("a", "db2:3306", StateCritical, "repl.stopped").from("db1:3306", "Yes", "No", missing("u:7")),
			member("b", "db3:3306", StateCritical, "repl.stopped").from("db1:3306", "Yes", "No", missing("u:7")),
			member("c", "db4:3306", StateCritical, "repl.stopped").from("db1:3306", "Yes", "No", missing("u:8"))}, "p  2: 2 replicas of p stopped at error 1146 at u:7"},
		{"of a server that is not watched", []Member{
			member("a", "db2:3306", StateCritical, "repl.stopped").from("db1:3306", "Connecting", "Yes", cannot),
			member("b", "db3:3306", StateCritical, "repl.stopped").from("db1:3306", "Connecting", "Yes", cannot)}, "  2: 2 replicas of db1:3306 stopped at error 2003"},
		{"localhost of two machines is two servers", []Member{
			member("a", "db2:3306", StateCritical, "repl.stopped").from("localhost:3307", "Connecting", "Yes", cannot),
			member("b", "db3:3306", StateCritical, "repl.stopped").from("localhost:3307", "Connecting", "Yes", cannot)}, ""},
		{"localhost of the replica", []Member{down, member("r", "127.0.0.1:3307", StateCritical, "repl.stopped").at("h", 3307, "").from("localhost:3306", "Connecting", "Yes", cannot)},
			"p server.down 1: p is down"},
		{"localhost elsewhere", []Member{down, member("r", "db2:3306", StateCritical, "repl.stopped").at("other", 3306, "").from("127.0.0.1:3306", "Connecting", "Yes", cannot)}, ""},
		{"Risso uses a socket", []Member{member("p", "/run/p.sock", StateDown, "server.down").at("h.example.com", 3306, ""),
			member("r", "/run/r.sock", StateCritical, "repl.stopped").at("h", 3307, "").from("h:3306", "Connecting", "Yes", cannot)}, "p server.down 1: p is down"},
		{"a late replica of a late one, and of that one again", []Member{
			member("p", "db1:3306", StateOK),
			member("a", "db2:3306", StateCritical, "repl.stopped").from("db1:3306", "Yes", "No", missing("u:7")),
			member("b", "db3:3306", StateWarning, "repl.lag").from("db2:3306", "Yes", "Yes", fleet.ReplicaError{}),
			member("c", "db4:3306", StateWarning, "repl.lag").from("db3:3306", "Yes", "Yes", fleet.ReplicaError{})}, "a repl.stopped 2: a does not replicate"},
		{"all servers of a machine, and a replica elsewhere", []Member{member("a", "db1:3306", StateDown, "server.down"), member("b", "db1:3307", StateDown, "server.hung"), member("c", "db2:3306", StateOK),
			member("r", "db2:3307", StateCritical, "repl.stopped").from("db1:3307", "Connecting", "Yes", cannot)}, "a server.down 2: all 2 servers of db1 are down"},
		{"one of a machine's servers answers", []Member{member("a", "db1:3306", StateDown, "server.down"), member("b", "db1:3307", StateDown, "server.down"), member("c", "db1:3308", StateOK)}, ""},
		{"one is overdue, and may answer yet", []Member{member("a", "db1:3306", StateDown, "server.down"), member("b", "db1:3307", StateDown)}, ""},
		{"two addresses of one machine", []Member{member("a", "10.0.0.1:3306", StateDown, "server.down").at("h", 3306, ""), member("b", "db1:3307", StateDown, "server.down").at("h", 3307, "")}, "a server.down 1: all 2 servers of 10.0.0.1 are down"},
		{"one fell long before", []Member{member("a", "db1:3306", StateDown, "server.down").since(0), member("b", "db1:3307", StateDown, "server.down").since(3600), member("c", "db1:3308", StateDown, "server.down").since(3610)},
			"b server.down 1: 2 servers of db1 are down at the same moment"},
		{"two that follow each other", []Member{
			member("a", "db1:3306", StateWarning, "repl.lag").from("db2:3306", "Yes", "Yes", fleet.ReplicaError{}),
			member("b", "db2:3306", StateWarning, "repl.lag").from("db1:3306", "Yes", "Yes", fleet.ReplicaError{})}, ""},
	} {
		var got []string
		for _, c := range Causes(c.members) {
			got = append(got, fmt.Sprintf("%s %s %d: %s", c.Instance, c.Finding, c.Instances(), c.What))
		}
		if text := strings.Join(got, "; "); text != c.want {
			t.Errorf("%s: got %q, want %q", c.name, text, c.want)
		}
	}
}

// TestCausesOfHost: a host that is down is the cause of what its servers' replicas have.
func TestCausesOfHost(t *testing.T) {
	h := Member{Instance: fleet.Instance{ID: "h", Name: "h", Kind: fleet.KindHost, Address: "h"}, State: StateDown}
	p := member("p", "db1:3306", StateDown, "server.down")
	p.Instance.HostID = "h"
	r := member("r", "db2:3306", StateCritical, "repl.stopped").from("db1:3306", "Connecting", "Yes", fleet.ReplicaError{Number: 2003, Text: "x"})
	got := Causes([]Member{h, p, r})
	if len(got) != 1 || got[0].Instance != "h" || got[0].Instances() != 2 {
		t.Errorf("got %+v, want one cause, h, that affects 2", got)
	}
}

// TestCausesOfFullDisk: a server that has no room on a host with a full disk is no trouble of its own.
func TestCausesOfFullDisk(t *testing.T) {
	h := Member{Instance: fleet.Instance{ID: "h", Name: "h", Kind: fleet.KindHost, Address: "h"}, State: StateCritical, Findings: []fleet.Finding{{ID: "disk.full", Subject: "/var"}}}
	p := member("p", "db1:3306", StateCritical, "server.no_room")
	if got := Causes([]Member{h, p}); len(got) != 0 {
		t.Errorf("a server elsewhere: got %+v, want none", got)
	}
	p.Instance.HostID = "h"
	if got := Causes([]Member{h, p}); len(got) != 1 || got[0].Instance != "h" || got[0].Subject != "/var" || got[0].What != "h has a full disk" || got[0].Instances() != 1 {
		t.Errorf("got %+v, want one cause, the disk of h", got)
	}
}

// TestUndecided: a server that is down is undecided until each of the others on its machine was told to be silent, too, or answered since.
func TestUndecided(t *testing.T) {
	a := member("a", "db1:3306", StateDown, "server.down").since(100)
	b, elsewhere := member("b", "db1:3307", StateOK), member("c", "db2:3306", StateOK)
	for _, c := range []struct {
		answered int64
		state    State
		want     int
	}{{99, StateOK, 1}, {100, StateOK, 1}, {101, StateOK, 0}, {0, StateDown, 1}, {0, StateNew, 1}} {
		if b.State = c.state; c.answered != 0 {
			b.Answered = time.Unix(c.answered, 0)
		} else {
			b.Answered = time.Time{}
		}
		if got := Undecided([]Member{a, b, elsewhere}); len(got) != c.want || c.want == 1 && got[0] != (Effect{Instance: "a", Finding: "server.down"}) {
			t.Errorf("the other is %s and answered at %d: got %+v, want %d", c.state, c.answered, got, c.want)
		}
	}
	if got := Undecided([]Member{a, member("b", "db1:3307", StateDown, "server.hung").since(101), elsewhere}); len(got) != 0 {
		t.Errorf("both are down: got %+v, want none", got)
	}
}

// TestSourceUndecided: a channel that lost its source is undecided until that is told to be down, or has answered since.
func TestSourceUndecided(t *testing.T) {
	r := member("r", "db2:3306", StateCritical, "repl.stopped").from("db1:3306", "Connecting", "Yes", fleet.ReplicaError{Number: 2003}).since(100)
	applies := member("r", "db2:3306", StateCritical, "repl.stopped").from("db1:3306", "Yes", "No", fleet.ReplicaError{Number: 1062}).since(100)
	for name, c := range map[string]struct {
		r, source Member
		answered  int64
		want      int
	}{
		"the source has not answered since": {r, member("p", "db1:3306", StateOK), 100, 1},
		"it has":                            {r, member("p", "db1:3306", StateOK), 101, 0},
		"it is down":                        {r, member("p", "db1:3306", StateDown, "server.down").since(101), 99, 0},
		"it is overdue":                     {r, member("p", "db1:3306", StateDown), 99, 1},
		"nobody watches it":                 {r, member("p", "db9:3306", StateOK), 99, 0},
		"it has an error of applying":       {applies, member("p", "db1:3306", StateOK), 99, 0},
	} {
		c.source.Answered = time.Unix(c.answered, 0)
		got := Undecided([]Member{c.r, c.source})
		if len(got) != c.want || c.want == 1 && got[0] != (Effect{Instance: "r", Finding: "repl.stopped"}) {
			t.Errorf("%s: got %+v, want %d", name, got, c.want)
		}
	}
}
