package look_test

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// wire passes connections on to a server, and can stop passing on what comes over those that there are.
type wire struct {
	net.Listener
	to   string
	mu   sync.Mutex
	dead []chan struct{} // closed: nothing of that connection is passed on any more
}

func newWire(t *testing.T, to string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{Listener: l, to: to}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go w.pass(c)
		}
	}()
	return w
}

func (w *wire) pass(c net.Conn) {
	defer c.Close()
	s, err := net.Dial("tcp", w.to)
	if err != nil {
		return
	}
	defer s.Close()
	dead := make(chan struct{})
	w.mu.Lock()
	w.dead = append(w.dead, dead)
	w.mu.Unlock()
	go func() { // what the client sends passes always, and its end ends both
		_, _ = io.Copy(s, c)
		s.Close()
	}()
	buf := make([]byte, 1<<16)
	for {
		n, err := s.Read(buf)
		select {
		case <-dead:
			n = 0
		default:
		}
		if n > 0 {
			if _, err := c.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// freeze stops what comes over all connections that there are.
func (w *wire) freeze() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, dead := range w.dead {
		close(dead)
	}
	w.dead = nil
}

// TestFrozen: a replica whose connection brings nothing, and which says that all is well, is found; what the diagnosis says mends it.
func TestFrozen(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			s := up(t, 1, spec)
			timeout := "replica_net_timeout"
			if s.conns[1].Server.KnowsSlaveWords() {
				timeout = "slave_net_timeout"
			}
			s.do(1, "SET GLOBAL "+timeout+" = 3600") // it does not mend itself meanwhile
			w := newWire(t, s.target(0).Address())
			link := sandboxtest.NewLink(t, w.Addr().String())
			_, port, _ := net.SplitHostPort(link.Addr)
			s.change(1, "MASTER_HEARTBEAT_PERIOD = 1, MASTER_PORT = "+port)
			s.replica(1, "START", "")
			s.do(0, "CREATE DATABASE earlier", "CREATE TABLE earlier.t (v LONGTEXT)")
			s.settled()
			s.over("repl.frozen", 1)
			cutOff := func(search *topology.Search) { // no way to the primary from here
				search.Reach = map[string]string{s.target(0).Address(): "127.0.0.1:1", link.Addr: "127.0.0.1:1"}
			}
			tells := s.conns[1].Server.AtLeast(80000, fleet.Never)
			s.slowly(link)
			if d := s.holdsOf("primary.unreachable", link.Addr, cutOff); (d.Severity == fleet.SeverityWarning) != tells || strings.Contains(d.What, "heard from it") != tells {
				t.Errorf("a primary that runs, and is not reached from here: got %+v", d)
			}
			w.freeze()
			s.do(0, "CREATE DATABASE later")
			if tells {
				s.holdsOf("primary.silent", link.Addr, cutOff)
			}
			s.remedied("repl.frozen", 1)
		})
	}
}

// slowly lets a replica be late by a slow network, over which something comes all the time: that is not frozen.
func (s *servers) slowly(link *sandboxtest.Link) {
	s.t.Helper()
	link.Rate.Store(200 << 10)
	s.do(0, "INSERT INTO earlier.t VALUES (REPEAT('x', 50000))")
	for range 6 {
		s.do(0, "INSERT INTO earlier.t SELECT v FROM earlier.t")
	}
	await.Until(s.t, func() bool {
		top := s.discover(0)
		l, source := top.Links[0], &top.Nodes[top.Links[0].Source]
		late := l.Channel != nil && l.Channel.SourceLog == source.Log.File && l.Channel.SourcePos < source.Log.Pos
		if !late {
			s.t.Fatal("the replica has all before it was asked twice")
		}
		return l.Frozen == 0
	}, "a replica to which something comes is not frozen")
	link.Rate.Store(0)
	s.settled()
}
