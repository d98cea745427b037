package agree

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/store/state"
)

// node is a controller in a test.
type node struct {
	*Node
	data string
	stop func()
}

// begin lets a controller whose folder is there take part.
func begin(t *testing.T, data string) *node {
	t.Helper()
	f, ok, err := OpenFolder(data)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	s, err := Prepare(t.Context(), filepath.Join(data, "state.db"), f)
	if err != nil {
		t.Fatal(err)
	}
	n, err := Open(t.Context(), Options{Store: s, Folder: f, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	var once sync.Once
	out := &node{Node: n, data: data}
	out.stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(f.Name, err)
			}
			n.Close()
			s.Close()
		})
	}
	t.Cleanup(out.stop)
	return out
}

// beatOfTests is slow enough for a machine that is busy.
const beatOfTests = 1000

// found makes a cluster of one.
func found(t *testing.T, name string) *node {
	t.Helper()
	data := t.TempDir()
	f, err := MakeFolder(data, Settings{Cluster: "test", Name: name, Address: sandboxtest.FreeAddress(t), Heartbeat: beatOfTests})
	if err != nil {
		t.Fatal(err)
	}
	if err := Found(t.Context(), filepath.Join(data, "state.db"), f); err != nil {
		t.Fatal(err)
	}
	return begin(t, data)
}

// joinTo adds a controller to that of another.
func joinTo(t *testing.T, first *node, name, address string) *node {
	t.Helper()
	i, err := first.Folder.Invitation([]Peer{{first.Folder.Name, first.Folder.Address}})
	if err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	if _, err := JoinFolder(data, Settings{Name: name, Address: address}, i); err != nil {
		t.Fatal(err)
	}
	return begin(t, data)
}

// until waits for something that must come.
func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(90 * time.Second); !f(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited too long for " + what)
		}
	}
}

func votes(n *node, want int) func() bool {
	return func() bool {
		have := 0
		for _, m := range n.Members(context.Background()) {
			if m.Votes {
				have++
			}
		}
		return have == want
	}
}

func write(ctx context.Context, n *node, key, body string) error {
	_, err := n.Store.PutDocument(ctx, state.Document{Kind: "k", Key: key, Body: json.RawMessage(body)})
	return err
}

func TestThree(t *testing.T) {
	a := found(t, "c1")
	until(t, "a leader of one", a.Leader)
	if err := write(t.Context(), a, "before", `{}`); err != nil {
		t.Fatal(err)
	}
	b, c := joinTo(t, a, "c2", sandboxtest.FreeAddress(t)), joinTo(t, a, "c3", sandboxtest.FreeAddress(t))
	until(t, "three votes", votes(a, 3))
	all := []*node{a, b, c}
	var group sync.WaitGroup
	for i := range 30 {
		group.Go(func() {
			if err := write(t.Context(), all[i%3], fmt.Sprint(i), `{}`); err != nil {
				t.Error(i, err)
			}
		})
	}
	group.Wait()
	until(t, "c1 to act", a.Leader)
	acting, end := a.Acting(t.Context())
	defer end()
	if err := a.Verify(t.Context()); err != nil || acting.Err() != nil {
		t.Errorf("c1 leads, and got %v, %v", err, acting.Err())
	}
	first := a.Epoch()
	if err := a.hand("c2"); err != nil {
		t.Fatal(err)
	}
	<-acting.Done()
	until(t, "c2 to act", b.Leader)
	if idle, end := a.Acting(t.Context()); a.Leader() || a.Verify(t.Context()) == nil || idle.Err() == nil || b.Epoch() <= first {
		end()
		t.Errorf("c1 handed the lead over, and acts; epochs %d, then %d", first, b.Epoch())
	}
	if name, _ := a.Leading(); name != "c2" {
		t.Errorf("got %q as the leader, want c2", name)
	}
	for _, n := range all {
		if err := n.Level(t.Context()); err != nil {
			t.Fatal(n.Name(), err)
		}
		if list, err := n.Store.Documents(t.Context(), "k"); err != nil || len(list) != 31 {
			t.Errorf("%s: got %d documents, %v; want 31", n.Name(), len(list), err)
		}
	}
}

// TestNoQuorum: a command learns that no controller leads, also where elections are slow, and not that nobody knows.
func TestNoQuorum(t *testing.T) {
	a := found(t, "c1")
	until(t, "a leader of one", a.Leader)
	b := joinTo(t, a, "c2", sandboxtest.FreeAddress(t))
	until(t, "two votes", votes(a, 2))
	b.stop()
	until(t, "nobody to lead", func() bool { _, id := a.now().LeaderWithID(); return id == "" })
	command, err := state.Open(t.Context(), filepath.Join(a.data, "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer command.Close()
	_, err = command.PutDocument(t.Context(), state.Document{Kind: "k", Key: "k", Body: json.RawMessage(`{}`)})
	if !errors.Is(err, state.ErrNoLeader) || !strings.Contains(err.Error(), "more than half of them must run") {
		t.Errorf("got %v, want that no controller leads", err)
	}
}

// late is a hand-over that was not known to be done in time.
type late struct{}

// Error says so.
func (late) Error() error { return errors.New("leadership transfer timeout") }

// TestHandOverFails: a leader that could not hand over acts again, but not while who was asked may still take the lead.
func TestHandOverFails(t *testing.T) {
	a := found(t, "c1")
	until(t, "a leader of one", a.Leader)
	if err := a.transfer(func(*raft.Raft) raft.Future { return late{} }); err == nil {
		t.Fatal("the lead was handed over to nobody")
	}
	for failed := time.Now(); time.Since(failed) < a.answerTime(); time.Sleep(10 * time.Millisecond) {
		if a.Leader() {
			t.Fatalf("it acts %s after a hand-over that may be under way", time.Since(failed))
		}
	}
	until(t, "it to act again", a.Leader)
}

// TestAddressTaken: a controller whose address another process has says so.
func TestAddressTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	data := t.TempDir()
	f, err := MakeFolder(data, Settings{Cluster: "test", Name: "c1", Address: l.Addr().String(), Heartbeat: beatOfTests})
	if err != nil {
		t.Fatal(err)
	}
	if err := Found(t.Context(), filepath.Join(data, "state.db"), f); err != nil {
		t.Fatal(err)
	}
	s, err := Prepare(t.Context(), filepath.Join(data, "state.db"), f)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if n, err := Open(t.Context(), Options{Store: s, Folder: f, Logger: slog.New(slog.DiscardHandler)}); n != nil || !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("got %v, %v", n, err)
	}
}
