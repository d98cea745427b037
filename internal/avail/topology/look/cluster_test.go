package look_test

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/diagnose"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestGaleraDiagnosed: of a Galera of three one is killed, then a second; the last one loses the majority, and takes statements again when it is made the whole
// cluster.
func TestGaleraDiagnosed(t *testing.T) {
	t.Parallel()
	s := &servers{t: t, box: sandboxtest.Sandbox(t, sandbox.Options{Servers: []string{"mariadb"}, Topology: sandbox.TopologyGalera})}
	for _, n := range s.box.Nodes {
		s.conns = append(s.conns, sandboxtest.Connect(t, n))
	}
	if found := s.diagnosed(); len(found) > 0 {
		t.Errorf("three that are well: got %+v", found)
	}
	for _, n := range []int{2, 1} {
		if err := s.box.Nodes[n].Kill(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		s.gone(n)
	}
	if d := s.holds("galera.non_primary", 0); d.Statements != "" || !strings.Contains(d.Next, "risso galera bootstrap") {
		t.Errorf("of one that cannot know whether the others go on: got %+v", d)
	}
	s.do(0, "SET GLOBAL wsrep_provider_options = 'pc.bootstrap=YES'")
	s.over("galera.non_primary", 0)
	s.do(0, "CREATE DATABASE again")
}

// gone waits until a member is told as one that does not answer: as a member while others list it, then as a server.
func (s *servers) gone(node int) {
	s.t.Helper()
	await.Until(s.t, func() bool {
		return slices.ContainsFunc(s.diagnosed(), func(d diagnose.Diagnosis) bool {
			return (d.Code == "server.down" || d.Code == "group.member_missing") && d.Nodes[0] == fmt.Sprintf("node%d", node)
		})
	}, "node%d does not answer", node)
}

// TestGroup: a group of three is found from any, with its primary; a member that left, and one that has lost the others, are told.
func TestGroup(t *testing.T) {
	t.Parallel()
	s := &servers{t: t, box: sandboxtest.Sandbox(t, sandbox.Options{Servers: []string{"mysql-9.7"}, Topology: sandbox.TopologyReplication, Replicas: 2, Settings: []string{"plugin_load_add=group_replication.so",
		"report_host=127.0.0.1", "loose_group_replication_group_name=3e11fa47-71ca-11e1-9e33-c80aa9429562", "loose_group_replication_start_on_boot=OFF", "loose_group_replication_recovery_get_public_key=ON"}})}
	password, err := s.box.Password()
	if err != nil {
		t.Fatal(err)
	}
	var addresses []string
	for _, n := range s.box.Nodes {
		s.conns = append(s.conns, sandboxtest.Connect(t, n))
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		addresses = append(addresses, l.Addr().String())
	}
	s.settled()
	for n := range s.conns {
		if n > 0 {
			s.do(n, "STOP REPLICA", "RESET REPLICA ALL")
		}
		s.do(n, "SET GLOBAL group_replication_local_address = "+mysql.Literal(addresses[n]), "SET GLOBAL group_replication_group_seeds = "+mysql.Literal(strings.Join(addresses, ",")),
			"CHANGE REPLICATION SOURCE TO SOURCE_USER = 'risso', SOURCE_PASSWORD = "+mysql.Literal(password)+" FOR CHANNEL 'group_replication_recovery'")
		if n == 0 {
			s.do(n, "SET GLOBAL group_replication_bootstrap_group = ON", "START GROUP_REPLICATION", "SET GLOBAL group_replication_bootstrap_group = OFF")
		} else {
			s.do(n, "START GROUP_REPLICATION")
		}
	}
	s.await(1, func(drawn string) bool {
		return strings.Count(drawn, "ONLINE") == 3 && strings.Contains(drawn, "node0: writable, ONLINE") && strings.Count(drawn, "read-only") == 2
	}, "a group of three with one primary")
	for _, d := range s.diagnosed() {
		if strings.HasPrefix(d.Code, "group.") || strings.HasPrefix(d.Code, "primary.") || strings.HasPrefix(d.Code, "repl.s") {
			t.Errorf("a group that is well: got %+v", d)
		}
	}
	s.do(2, "STOP GROUP_REPLICATION")
	s.remedied("group.not_online", 2)
	var goOn []func()
	for _, n := range []int{1, 2} {
		goOn = append(goOn, sandboxtest.Pause(t, s.box.Nodes[n]))
	}
	s.holds("group.no_quorum", 0, func(search *topology.Search) { search.Patience = 2 * time.Second })
	for _, f := range goOn {
		f()
	}
	s.over("group.no_quorum", 0)
}
