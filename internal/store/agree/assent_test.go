package agree

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// held is a connection whose reader waits while something is locked: what comes stays on its way.
type held struct {
	net.Conn
	gate *sync.RWMutex
}

func (h held) Read(b []byte) (int, error) {
	n, err := h.Conn.Read(b)
	h.gate.RLock()
	defer h.gate.RUnlock()
	return n, err
}

// heldStream makes such connections.
type heldStream struct {
	net.Listener
	gate sync.RWMutex
}

func (s *heldStream) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	c, err := net.DialTimeout("tcp", string(address), timeout)
	return held{c, &s.gate}, err
}

// TestAssents: an answer that is read late says of no later time that this controller leads than that at which it was asked for.
func TestAssents(t *testing.T) {
	transport := func() (*raft.NetworkTransport, *heldStream) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s := &heldStream{Listener: l}
		n := raft.NewNetworkTransportWithLogger(s, 3, 10*time.Second, hclog.NewNullLogger())
		t.Cleanup(func() { n.Close() })
		return n, s
	}
	other, _ := transport()
	leads := true
	other.SetHeartbeatHandler(func(rpc raft.RPC) {
		args := rpc.Command.(*raft.AppendEntriesRequest)
		rpc.Respond(&raft.AppendEntriesResponse{Term: args.Term, Success: leads}, nil)
	})
	mine, way := transport()
	a := &assents{NetworkTransport: mine}
	servers := []raft.Server{{ID: "c1", Suffrage: raft.Voter}, {ID: "c2", Suffrage: raft.Voter}, {ID: "c3", Suffrage: raft.Voter}, {ID: "c4", Suffrage: raft.Nonvoter}}
	ask := func(id raft.ServerID, term uint64) {
		t.Helper()
		var resp raft.AppendEntriesResponse
		if err := a.AppendEntries(id, other.LocalAddr(), &raft.AppendEntriesRequest{RPCHeader: raft.RPCHeader{Addr: []byte("c1")}, Term: term}, &resp); err != nil {
			t.Fatal(err)
		}
	}
	since := func(term uint64) time.Time { return a.since("c1", term, servers) }

	if got := since(5); !got.IsZero() {
		t.Errorf("nobody was asked: got %v, want never", got)
	}
	ask("c4", 5)
	if got := since(5); !got.IsZero() {
		t.Errorf("only one assented that does not vote: got %v, want never", got)
	}
	leads = false
	ask("c2", 5)
	if got := since(5); !got.IsZero() {
		t.Errorf("who was asked does not assent: got %v, want never", got)
	}
	leads = true
	before := time.Now()
	ask("c2", 5)
	first := since(5)
	if first.Before(before) || !since(4).IsZero() || !since(6).IsZero() {
		t.Errorf("got %v, of other terms %v and %v; want that at which it was asked in its term", first, since(4), since(6))
	}

	way.gate.Lock()
	done := make(chan struct{})
	sent := time.Now()
	go func() { defer close(done); ask("c2", 5) }()
	time.Sleep(100 * time.Millisecond)
	if got := since(5); got != first {
		t.Errorf("its answer was not read: got %v, want as before, %v", got, first)
	}
	read := time.Now()
	way.gate.Unlock()
	<-done
	if got := since(5); got.Before(sent) || !got.Before(read) {
		t.Errorf("its answer was read late: got %v; want when it was asked, after %v and before %v", got, sent, read)
	}
	ask("c3", 6)
	if got := since(5); !got.IsZero() {
		t.Errorf("a later term began: got %v of the earlier one, want never", got)
	}
}

// TestVerifyAsksAnew: what leads is confirmed by an answer to a question that was asked after Verify was called.
func TestVerifyAsksAnew(t *testing.T) {
	n := found(t, "c1")
	until(t, "the first one to lead", n.Leader)
	joinTo(t, n, "c2", sandboxtest.FreeAddress(t))
	until(t, "two that vote", votes(n, 2))
	for range 50 {
		until(t, "it to lead", n.Leader)
		epoch, asked := n.Epoch(), time.Now()
		if err := n.Verify(t.Context()); err != nil {
			t.Fatal(err)
		}
		if at := n.assented(epoch); at.Before(asked) {
			t.Fatalf("it was confirmed at %v; want after %v", at, asked)
		}
	}
}
