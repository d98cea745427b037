package repoint_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/repoint"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/avail/topology/look"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m)) }

// servers are a primary and its replicas.
type servers struct {
	t     *testing.T
	box   *sandbox.Sandbox
	conns []*mysql.Conn
	r     *repoint.Repointer
	pace  time.Duration // between writes of a ledger
}

func up(t *testing.T, replicas int, spec string) *servers {
	t.Helper()
	s := &servers{t: t, box: sandboxtest.Sandbox(t, sandbox.Options{Servers: []string{spec}, Topology: sandbox.TopologyReplication, Replicas: replicas})}
	for _, n := range s.box.Nodes {
		s.conns = append(s.conns, sandboxtest.Connect(t, n))
	}
	s.r = &repoint.Repointer{Dir: t.TempDir(), Wait: time.Minute, Target: s.target(0).WithAddress}
	return s
}

// target is a node over TCP, as others tell of it.
func (s *servers) target(node int) mysql.Target {
	s.t.Helper()
	password, err := s.box.Password()
	if err != nil {
		s.t.Fatal(err)
	}
	t, err := mysql.ParseTarget(fmt.Sprintf("risso:%s@tcp(%s)/", password, s.address(node)))
	if err != nil {
		s.t.Fatal(err)
	}
	return t
}

func (s *servers) address(node int) string {
	return fmt.Sprintf("127.0.0.1:%d", s.box.Nodes[node].Port)
}

func (s *servers) do(node int, statements ...string) {
	s.t.Helper()
	for _, statement := range statements {
		if err := s.conns[node].Exec(s.t.Context(), statement); err != nil {
			s.t.Fatalf("%s on node %d: %v", statement, node, err)
		}
	}
}

// look finds the topology from all nodes, and the index of each of them.
func (s *servers) look() (t *topology.Topology, index []int) {
	s.t.Helper()
	var targets []mysql.Target
	var starts []topology.Start
	for i := range s.box.Nodes {
		targets = append(targets, s.target(i))
		starts = append(starts, topology.Start{Name: fmt.Sprintf("node%d", i), Address: s.address(i)})
	}
	t = look.Search(targets).Discover(s.t.Context(), starts)
	for i := range s.box.Nodes {
		index = append(index, t.Find(fmt.Sprintf("node%d", i)))
	}
	return t, index
}

// prepare plans that a node replicates from another one.
func (s *servers) prepare(node, below int) (*repoint.Move, error) {
	s.t.Helper()
	t, index := s.look()
	return s.r.Prepare(s.t.Context(), repoint.Question{Topology: t, Replica: index[node], Below: index[below]})
}

// move does it.
func (s *servers) move(node, below int) *repoint.Move {
	s.t.Helper()
	m, err := s.prepare(node, below)
	if err == nil {
		err = m.Do(s.t.Context())
	}
	if err != nil {
		s.t.Fatalf("node%d below node%d: %v", node, below, err)
	}
	if got := s.channel(node); got.Status.Source != s.address(below) || !got.IORunning || !got.SQLRunning {
		s.t.Fatalf("node%d below node%d: got %+v, want that it replicates from there", node, below, got.Status)
	}
	s.nothingLeft()
	return m
}

// refused wants that a move is refused for one reason.
func (s *servers) refused(node, below int, code string) {
	s.t.Helper()
	t, index := s.look()
	before := s.channel(node).Status.Source
	_, err := s.r.Prepare(s.t.Context(), repoint.Question{Topology: t, Replica: index[node], Below: index[below]})
	v := repoint.Judge(repoint.Question{Topology: t, Replica: index[node], Below: index[below], Wait: s.r.Wait, AccountWhy: "not asked", GoneWhy: "not asked"})
	codes := []string{}
	for _, r := range v.Refused {
		codes = append(codes, r.Code)
	}
	s.t.Logf("refused: %v", err)
	if err == nil || code != "purged" && !slices.Equal(codes, []string{code}) || s.channel(node).Status.Source != before {
		s.t.Errorf("node%d below node%d: got %v, %v; want that it is refused: %s", node, below, codes, err, code)
	}
}

func (s *servers) channel(node int) read.ReplicaChannel {
	s.t.Helper()
	list, err := read.ReplicaChannels(s.t.Context(), s.conns[node])
	if err != nil || len(list) != 1 {
		s.t.Fatalf("channels of node%d: %v, %v", node, list, err)
	}
	return list[0]
}

// nothingLeft wants that no journal waits for anybody.
func (s *servers) nothingLeft() {
	s.t.Helper()
	if left, _ := filepath.Glob(filepath.Join(s.r.Dir, "*.json")); len(left) > 0 {
		s.t.Errorf("journals are left: %v", left)
	}
}

// level waits until all nodes have the same rows of a table.
func (s *servers) level(table string) {
	s.t.Helper()
	sum := func(node int) string {
		row, err := s.conns[node].Maps(s.t.Context(), "CHECKSUM TABLE "+table)
		if err != nil || len(row) == 0 {
			return fmt.Sprint(err)
		}
		return row[0]["Checksum"]
	}
	var sums []string
	await.Until(s.t, func() bool {
		sums = nil
		for i := range s.conns {
			sums = append(sums, sum(i))
		}
		return len(slices.Compact(slices.Clone(sums))) == 1
	}, "the same rows of %s everywhere", table)
}

// thread starts or stops a thread of a node.
func (s *servers) start(node int, t mysql.Thread) {
	s.do(node, s.conns[node].Server.StartThread("", t))
}
func (s *servers) stop(node int, t mysql.Thread) { s.do(node, s.conns[node].Server.StopThread("", t)) }

// writable lets everybody with privileges write.
func (s *servers) writable(node int) {
	s.do(node, "SET GLOBAL "+s.conns[node].Server.ReadOnlyVariable()+" = 0", "SET GLOBAL read_only = 0")
}
