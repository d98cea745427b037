package look_test

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rissodb/risso/internal/avail/diagnose"
	"github.com/rissodb/risso/internal/await"
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
