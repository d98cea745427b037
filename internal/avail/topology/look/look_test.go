package look_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/diagnose"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/avail/topology/look"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m)) }

// servers are servers of a replication that tests point at each other.
type servers struct {
	t     *testing.T
	box   *sandbox.Sandbox
	conns []*mysql.Conn
}

func up(t *testing.T, replicas int, specs ...string) *servers {
	t.Helper()
	s := &servers{t: t, box: sandboxtest.Sandbox(t, sandbox.Options{Servers: specs, Topology: sandbox.TopologyReplication, Replicas: replicas})}
	for _, n := range s.box.Nodes {
		s.conns = append(s.conns, sandboxtest.Connect(t, n))
	}
	return s
}

func (s *servers) do(node int, statements ...string) {
	s.t.Helper()
	for _, statement := range statements {
		if err := s.conns[node].Exec(s.t.Context(), statement); err != nil {
			s.t.Fatalf("%s on node %d: %v", statement, node, err)
		}
	}
}

// replica is STOP or START of replication, in the server's words.
func (s *servers) replica(node int, verb, what string) {
	s.t.Helper()
	word := "REPLICA"
	if s.conns[node].Server.KnowsSlaveWords() {
		word = "SLAVE"
	}
	s.do(node, verb+" "+word+" "+what)
}

// follow makes a node replicate from another.
func (s *servers) follow(node, source int) {
	s.t.Helper()
	s.replica(node, "STOP", "")
	if s.conns[node].Server.KnowsSlaveWords() {
		s.do(node, fmt.Sprintf("CHANGE MASTER TO MASTER_PORT = %d", s.box.Nodes[source].Port))
	} else {
		s.do(node, fmt.Sprintf("CHANGE REPLICATION SOURCE TO SOURCE_PORT = %d", s.box.Nodes[source].Port))
	}
	s.replica(node, "START", "")
}

// target is a node over TCP, as the others tell of it.
func (s *servers) target(node int) mysql.Target {
	s.t.Helper()
	password, err := s.box.Password()
	if err != nil {
		s.t.Fatal(err)
	}
	t, err := mysql.ParseTarget(fmt.Sprintf("risso:%s@tcp(127.0.0.1:%d)/", password, s.box.Nodes[node].Port))
	if err != nil {
		s.t.Fatal(err)
	}
	return t
}

// discover finds the topology from one node.
func (s *servers) discover(from int) *topology.Topology {
	t := s.target(from)
	return look.Search([]mysql.Target{t}).Discover(s.t.Context(), []topology.Start{{Address: t.Address()}})
}

// draw is the tree with the nodes' numbers instead of their addresses, and without their versions.
func (s *servers) draw(t *topology.Topology) string {
	var pairs []string
	for i, n := range s.box.Nodes {
		pairs = append(pairs, fmt.Sprintf("127.0.0.1:%d", n.Port), fmt.Sprintf("node%d", i))
	}
	for _, n := range t.Nodes {
		if v, _, _ := strings.Cut(n.Version, "-"); v != "" {
			pairs = append(pairs, string(n.Flavour)+" "+v+", ", "")
		}
	}
	return afterName.ReplaceAllString(strings.NewReplacer(pairs...).Replace(t.Tree(0)), "$1: ")
}

var afterName = regexp.MustCompile(`(node\d)  +`)

// await waits until what is found from a node is drawn so.
func (s *servers) await(from int, is func(drawn string) bool, want string) {
	s.t.Helper()
	drawn := ""
	defer func() {
		if s.t.Failed() {
			s.t.Logf("from node%d it is drawn\n%s", from, drawn)
		}
	}()
	await.Until(s.t, func() bool { drawn = s.draw(s.discover(from)); return is(drawn) }, "want\n%s", want)
}

// TestChain: a chain of four is found from each of its ends and from its middle, and drawn with what is broken in it.
func TestChain(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7", "mysql-5.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			s := up(t, 3, spec)
			s.follow(2, 1)
			s.follow(3, 2)
			want := `node0: primary, writable
└─ node1: read-only, 0 s behind
   └─ node2: read-only, 0 s behind
      └─ node3: read-only, 0 s behind
`
			for _, from := range []int{3, 0, 2} {
				s.await(from, func(drawn string) bool { return drawn == want }, want)
			}
			found, notes, err := look.Replicas(t.Context(), s.target(1))
			if err != nil || len(found) != 2 || found[0].Port() != s.box.Nodes[2].Port || found[1].Port() != s.box.Nodes[3].Port {
				t.Errorf("replicas of node1: got %v, %q, %v; want node2 and node3", found, notes, err)
			}
			if _, _, err := look.Replicas(t.Context(), s.target(3)); !errors.Is(err, look.ErrNoReplica) {
				t.Errorf("replicas of node3: got %v; want that there is none", err)
			}
			s.replica(1, "STOP", "SQL_THREAD")
			s.do(0, "CREATE DATABASE d")
			if err := s.box.Nodes[2].Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.await(3, func(drawn string) bool {
				return strings.HasPrefix(drawn, "node2: not seen: nothing listens there\n└─ node3: read-only, cannot connect")
			}, "that node2 is not seen, and node3 cannot connect")
			// A source goes on listing a replica until it notices that it is gone: MariaDB when it next sends it something.
			if got := s.draw(s.discover(0)); !strings.HasPrefix(got, "node0: primary, writable\n") || !strings.Contains(got, "─ node1: read-only, does not apply, 1 transaction to apply\n") {
				t.Errorf("from node0: got\n%s", got)
			}
			both := look.Search([]mysql.Target{s.target(0), s.target(3)}).Discover(t.Context(), []topology.Start{{Address: s.target(0).Address()}, {Address: s.target(3).Address()}})
			told := slices.DeleteFunc(both.Links, func(l topology.Link) bool { return l.Channel == nil })
			if len(both.Nodes) != 4 || len(told) != 2 {
				t.Errorf("from both ends: got %d nodes, %d links that replicas tell; want 4 and 2\n%s", len(both.Nodes), len(told), s.draw(both))
			}
		})
	}
}

// from makes a node replicate from a second source, by a channel of its own.
func (s *servers) from(node, source int, channel string) {
	s.t.Helper()
	password, err := s.box.Password()
	if err != nil {
		s.t.Fatal(err)
	}
	port := s.box.Nodes[source].Port
	switch c := s.conns[node]; {
	case c.Server.MariaDB():
		s.do(node, "STOP ALL SLAVES", "SET GLOBAL gtid_ignore_duplicates = ON", fmt.Sprintf("CHANGE MASTER '%s' TO MASTER_HOST = '127.0.0.1', MASTER_PORT = %d, MASTER_USER = 'risso', MASTER_PASSWORD = '%s', MASTER_USE_GTID = slave_pos", channel, port, password),
			"START ALL SLAVES")
	default:
		s.do(node, fmt.Sprintf("CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = %d, SOURCE_USER = 'risso', SOURCE_PASSWORD = '%s', SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1 FOR CHANNEL '%s'", port, password, channel),
			"START REPLICA FOR CHANNEL '"+channel+"'")
	}
}

// TestRingAndChannels: two that replicate from each other, and a third from both; what one of them wrote is not errant, but what the third wrote is.
func TestRingAndChannels(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			s := up(t, 2, spec)
			s.from(0, 1, "")
			s.from(2, 1, "second")
			if !s.conns[0].Server.MariaDB() {
				s.do(2, "SET GLOBAL super_read_only = OFF")
				s.do(1, "SET GLOBAL super_read_only = OFF")
			}
			s.do(1, "SET GLOBAL read_only = OFF", "CREATE DATABASE ring")
			s.await(2, func(drawn string) bool {
				return strings.Count(drawn, "writable, in a ring of 2") == 2 && strings.Contains(drawn, ": 0 s behind, drawn above") && strings.Contains(drawn, "also from node") &&
					strings.Contains(drawn, "channel second") && !strings.Contains(drawn, "errant") && !strings.Contains(drawn, "to apply")
			}, "a ring of two, and a third below both")
			s.do(2, "SET GLOBAL read_only = OFF", "CREATE DATABASE errant")
			s.await(0, func(drawn string) bool {
				return strings.Count(drawn, "errant: ") == 1 && strings.Count(drawn, "in a ring of 2") == 2
			}, "one errant transaction, of node2")
		})
	}
}

// TestWrongReport: replicas that say that they are where nobody answers are found where they connect from; one whose port is wrong, too, is said to be perhaps elsewhere.
func TestWrongReport(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			s := &servers{t: t, box: sandboxtest.Sandbox(t, sandbox.Options{Servers: []string{spec}, Topology: sandbox.TopologyReplication, Replicas: 1, Settings: []string{"report_host=nosuch.invalid"}})}
			s.await(0, func(drawn string) bool { return strings.Contains(drawn, "─ node1: read-only, 0 s behind\n") }, "the replica, though it is not where it says")
		})
		t.Run(spec+" and its port", func(t *testing.T) {
			t.Parallel()
			s := &servers{t: t, box: sandboxtest.Sandbox(t, sandbox.Options{Servers: []string{spec}, Topology: sandbox.TopologyReplication, Replicas: 1, Settings: []string{"report_host=nosuch.invalid", "report_port=1"}})}
			await.Until(t, func() bool {
				found := diagnose.Diagnose(s.discover(0))
				return slices.ContainsFunc(found, func(d diagnose.Diagnosis) bool {
					return d.Code == "server.down" && strings.Contains(d.Next, "--reach nosuch.invalid:1=HOST:PORT")
				})
			}, "that its report_host may be wrong")
			search := look.Search([]mysql.Target{s.target(0)})
			search.Reach = map[string]string{"nosuch.invalid:1": s.target(1).Address()}
			if top := search.Discover(t.Context(), []topology.Start{{Address: s.target(0).Address()}}); len(top.Links) != 1 || top.Links[0].Channel == nil {
				t.Errorf("with --reach: got\n%s", top.Tree(0))
			}
		})
	}
}

// TestOdd: servers that hang, are full, lie about their address, refuse a privilege, or were copied.
func TestOdd(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-8.0"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			s := up(t, 2, spec)
			t.Run("hung", func(t *testing.T) {
				goOn := sandboxtest.Pause(t, s.box.Nodes[1])
				target := s.target(0)
				search := look.Search([]mysql.Target{target})
				search.Patience = 2 * time.Second
				drawn := s.draw(search.Discover(t.Context(), []topology.Start{{Address: target.Address()}}))
				goOn()
				if !strings.Contains(drawn, "─ node1: not seen: it takes connections, and does not answer in time; its source lists it, perhaps still\n") || !strings.Contains(drawn, "─ node2: read-only, 0 s behind\n") {
					t.Errorf("got\n%s", drawn)
				}
			})
			t.Run("full", func(t *testing.T) {
				s.do(2, "SET GLOBAL max_connections = 10")
				var held []*mysql.Conn
				defer func() {
					for _, c := range held {
						c.Close()
					}
					s.do(2, "SET GLOBAL max_connections = 151")
				}()
				for {
					c, err := mysql.Connect(t.Context(), s.target(2), nil)
					if err != nil {
						break
					}
					held = append(held, c)
				}
				if drawn := s.draw(s.discover(0)); !strings.Contains(drawn, "─ node2: not seen: too many connections; its source lists it, perhaps still\n") {
					t.Errorf("got\n%s", drawn)
				}
			})
			copied := func(t *testing.T) {
				s.copyID(1, 2)
				var got *topology.Topology
				links := 0
				for end := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) { // the source lists the connections of before for a while
					got, links = look.Search([]mysql.Target{s.target(1), s.target(2)}).Discover(t.Context(), []topology.Start{{Address: s.target(1).Address()}, {Address: s.target(2).Address()}}), 0
					for _, l := range got.Links {
						if l.Channel != nil {
							links++
						}
					}
					if len(got.Nodes) == 3 && links == 2 || time.Now().After(end) {
						break
					}
				}
				if len(got.Nodes) != 3 || links != 2 {
					t.Errorf("got %d nodes, %d links, want 3 and 2\n%s", len(got.Nodes), links, s.draw(got))
				}
			}
			if s.conns[0].Server.HasUUID() {
				t.Run("a copied data directory", copied)
			}
			t.Run("an account that may nothing", func(t *testing.T) {
				s.do(0, "CREATE USER nobody@'%' IDENTIFIED BY 'n0-B0dy'")
				target, err := mysql.ParseTarget(fmt.Sprintf("nobody:n0-B0dy@tcp(127.0.0.1:%d)/", s.box.Nodes[0].Port))
				if err != nil {
					t.Fatal(err)
				}
				got := look.Search([]mysql.Target{target}).Discover(t.Context(), []topology.Start{{Address: target.Address()}})
				var said []string
				for _, u := range got.Nodes[0].Unknown {
					said = append(said, u.What+": "+u.Remedy)
				}
				words := strings.Join(said, "; ")
				if len(got.Nodes) != 1 || !got.Nodes[0].Seen || !strings.Contains(words, "what it replicates: GRANT") || !strings.Contains(words, "its binary log: GRANT") || !strings.Contains(words, "its replicas: GRANT") {
					t.Errorf("got %d nodes, unknown %s", len(got.Nodes), words)
				}
				if _, _, err := look.Replicas(t.Context(), target); mysql.ClassOf(err) != mysql.ClassPrivilege {
					t.Errorf("its replicas: got %v; want that a privilege is missing", err)
				}
				s.listsNoReplicas(target)
				for _, c := range []struct{ refuse, number, admit string }{
					{"ALTER USER nobody@'%' ACCOUNT LOCK", "account is locked", "ALTER USER nobody@'%' ACCOUNT UNLOCK"},
					{"ALTER USER nobody@'%' PASSWORD EXPIRE", "password has expired", "ALTER USER nobody@'%' IDENTIFIED BY 'n0-B0dy' PASSWORD EXPIRE NEVER"},
				} {
					s.do(0, c.refuse)
					top := look.Search([]mysql.Target{target}).Discover(t.Context(), []topology.Start{{Address: target.Address()}})
					if found := diagnose.Diagnose(top); len(found) != 1 || found[0].Code != "server.no_access" || !strings.Contains(found[0].Next, c.number) {
						t.Errorf("after %s: got %+v", c.refuse, found)
					}
					s.do(0, c.admit)
					await.Until(t, func() bool { // replicas, which it finds again, hear of it later
						again := look.Search([]mysql.Target{target}).Discover(t.Context(), []topology.Start{{Address: target.Address()}})
						return again.Nodes[0].Seen
					}, "the account to be let in again after %s", c.admit)
				}
				s.do(0, "DROP USER nobody@'%'")
			})
			if s.conns[0].Server.HasUUID() {
				t.Run("a copy of a primary that is gone", s.copyOfPrimary)
			}
		})
	}
}

// copyID gives a node the server_uuid of another, as a copy of its data directory has it.
func (s *servers) copyID(from, to int) {
	s.t.Helper()
	err := s.box.Nodes[to].Stop(s.t.Context())
	var id []byte
	if err == nil {
		id, err = os.ReadFile(filepath.Join(s.box.Nodes[from].Datadir, "auto.cnf"))
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(s.box.Nodes[to].Datadir, "auto.cnf"), id, 0o600)
	}
	if err == nil {
		err = s.box.Nodes[to].Start(s.t.Context())
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.conns[to] = sandboxtest.Connect(s.t, s.box.Nodes[to])
}

// copyOfPrimary stops the primary beside a copy of it: a replica that cannot connect is not simply taken for one of the copy.
func (s *servers) copyOfPrimary(t *testing.T) {
	s.copyID(0, 1)
	s.do(1, "STOP SLAVE", "RESET SLAVE ALL")
	if err := s.box.Nodes[0].Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	await.Until(t, func() bool {
		got := look.Search([]mysql.Target{s.target(1), s.target(2)}).Discover(t.Context(), []topology.Start{{Address: s.target(1).Address()}, {Address: s.target(2).Address()}})
		return slices.ContainsFunc(got.Surprises, func(x topology.Surprise) bool {
			return x.Kind == "perhaps_copy" && x.Node == s.target(1).Address() && x.Other == s.target(2).Address()
		})
	}, "that the source's UUID is that of a copy, perhaps")
}

// listsNoReplicas: an account that may not list replicas is told so as a warning, with a GRANT that helps.
func (s *servers) listsNoReplicas(target mysql.Target) {
	s.t.Helper()
	missing := func() *diagnose.Diagnosis {
		found := diagnose.Diagnose(look.Search([]mysql.Target{target}).Discover(s.t.Context(), []topology.Start{{Address: target.Address()}}))
		i := slices.IndexFunc(found, func(d diagnose.Diagnosis) bool { return strings.Contains(d.What, "its replicas") })
		if i < 0 {
			return nil
		}
		return &found[i]
	}
	d := missing()
	if d == nil || d.Severity != fleet.SeverityWarning || !strings.Contains(strings.Join(d.Evidence, " "), "its replicas: ") {
		s.t.Errorf("an account that lists no replicas: got %+v", d)
		return
	}
	for grant := range strings.SplitSeq(d.Next, "; ") {
		if _, grant, _ = strings.Cut(grant, "GRANT "); grant != "" {
			s.do(0, "GRANT "+grant)
		}
	}
	await.Until(s.t, func() bool { d = missing(); return d == nil }, "that nothing is missing after that was granted, also on the replicas, where it comes later: got %+v", &d)
}

// TestGalera: three members are found from any, in a box; one that is gone is no member.
func TestGalera(t *testing.T) {
	box := sandboxtest.Sandbox(t, sandbox.Options{Servers: []string{"mariadb"}, Topology: sandbox.TopologyGalera})
	s := &servers{t: t, box: box}
	drawn := ""
	await.Until(t, func() bool {
		drawn = s.draw(s.discover(1))
		return !strings.Contains(drawn, "refuses the account")
	}, "the account has come to all members")
	for i := range 3 {
		if !strings.Contains(drawn, fmt.Sprintf("─ node%d: writable, Synced\n", i)) {
			t.Errorf("node%d is not drawn\n%s", i, drawn)
		}
	}
	if !strings.HasPrefix(drawn, "Galera cluster ") || !strings.Contains(drawn, ": 3 members\n") {
		t.Errorf("got\n%s", drawn)
	}
}
