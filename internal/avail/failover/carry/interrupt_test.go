package carry

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/store/state"
)

// childEnv holds, for a process that a test starts of its own program, what it is to do until it is killed.
const childEnv = "RISSO_TEST_CARRY"

func TestMain(m *testing.M) {
	if text := os.Getenv(childEnv); text != "" {
		child(text)
		return
	}
	os.Exit(sandboxtest.Main(m))
}

// order is what a child does: it changes the primary, and kills itself before its step Stop.
type order struct {
	State string
	Kind  failover.Kind
	Known failover.Known
	Stop  int
}

// steps counts the steps of a child, and kills it as kill -9 does.
type steps struct {
	mu   sync.Mutex
	n    int
	stop int
}

func (s *steps) step(what string) {
	s.mu.Lock() // what runs at the same time waits here, and dies with it
	defer s.mu.Unlock()
	s.n++
	fmt.Println(oneLine(what))
	if s.n == s.stop {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

type documents = keep.Documents

// watched are documents of which each write is a step.
type watched struct {
	documents
	steps *steps
}

func (w watched) PutDocument(ctx context.Context, d state.Document) (state.Document, error) {
	w.steps.step("write " + d.Kind)
	return w.documents.PutDocument(ctx, d)
}

func child(text string) {
	var o order
	err := json.Unmarshal([]byte(text), &o)
	ctx := context.Background()
	var st *state.Store
	if err == nil {
		st, err = state.Open(ctx, o.State)
	}
	if err == nil {
		s := &steps{stop: o.Stop}
		c := &Carrier{Room: &keep.Room{Docs: watched{st, s}, Who: "child"}, Holder: NewHolder("child"), Limits: DefaultLimits(), step: func(where, statement string) { s.step(where + ": " + statement) }}
		if o.Kind == failover.Switchover {
			_, err = c.Switchover(ctx, Asked{Group: "g", By: "child"})
		} else {
			_, err = c.Failover(ctx, Asked{Group: "g", By: "child", Because: "it was killed", Known: o.Known})
		}
	}
	if err != nil {
		fmt.Println("failed:", oneLine(err.Error()))
		os.Exit(1)
	}
	fmt.Println("done")
}

// trio is a group of three servers whose primary waits for an acknowledgement.
type trio struct {
	*testing.T
	box   *sandbox.Sandbox
	room  *keep.Room
	state string
	rows  []int // that were acknowledged
	last  int
}

func newTrio(t *testing.T, spec string, policy group.Policy, settings ...string) *trio {
	t.Helper()
	u := &trio{T: t, state: filepath.Join(t.TempDir(), "state.db"),
		box: sandboxtest.Sandbox(t, sandbox.Options{Servers: strings.Split(spec, ","), Topology: sandbox.TopologyReplication, Replicas: 2, SemiSync: policy.SemiSync, Settings: settings})}
	st, err := state.Open(t.Context(), u.state)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	u.room = &keep.Room{Docs: st, Who: "test"}
	g := &group.Group{Name: "g", Active: true, Policy: policy, Since: time.Now().UTC()}
	password, err := u.box.Password()
	if err != nil {
		t.Fatal(err)
	}
	a := keep.Access{Members: map[string]string{}, Replication: keep.Account{User: u.box.User, Password: password}}
	for i, n := range u.box.Nodes {
		status := group.Secondary
		if i == 0 {
			status = group.Primary
		}
		address := fmt.Sprintf("127.0.0.1:%d", n.Port)
		g.Members = append(g.Members, group.Member{Name: n.Name, Address: address, Status: status, Rule: group.Neutral, Weight: 1})
		a.Members[n.Name] = fmt.Sprintf("%s:%s@tcp(%s)/", u.box.User, password, address)
	}
	if err := u.room.Add(t.Context(), g, a); err != nil {
		t.Fatal(err)
	}
	c := sandboxtest.Connect(t, u.box.Nodes[0])
	for _, s := range []string{"CREATE DATABASE IF NOT EXISTS test", "CREATE TABLE test.ledger (id INT PRIMARY KEY)", "CREATE USER app@'%' IDENTIFIED BY 'app'", "GRANT ALL ON test.* TO app@'%'"} {
		if err := c.Exec(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	return u
}

func (u *trio) carrier() *Carrier {
	return &Carrier{Room: u.room, Holder: NewHolder("test"), Limits: DefaultLimits(), Say: func(text string) { u.Log("  ", oneLine(text)) }}
}

// primary is the node that the group calls so.
func (u *trio) primary() (*group.Group, *sandbox.Node) {
	u.Helper()
	g, err := u.room.Group(u.Context(), "g")
	if err != nil {
		u.Fatal(err)
	}
	n, err := u.box.Node(g.Members[g.Primary()].Name)
	if err != nil {
		u.Fatal(err)
	}
	return g, n
}

// app connects to a node as an application does.
func (u *trio) app(ctx context.Context, n *sandbox.Node) (*mysql.Conn, error) {
	target, err := mysql.ParseTarget(fmt.Sprintf("app:app@tcp(127.0.0.1:%d)/test", n.Port))
	if err != nil {
		return nil, err
	}
	return mysql.Connect(ctx, target, nil)
}

// write writes a row as an application does, and keeps it in the ledger if that was acknowledged.
func (u *trio) write(n *sandbox.Node, patience time.Duration) bool {
	ctx, cancel := context.WithTimeout(u.Context(), patience)
	defer cancel()
	c, err := u.app(ctx, n)
	if err != nil {
		return false
	}
	defer c.Close()
	u.last++
	if err := c.Exec(ctx, fmt.Sprintf("INSERT INTO ledger VALUES (%d)", u.last)); err != nil {
		return false
	}
	u.rows = append(u.rows, u.last)
	return true
}

// child lets a process change the primary and be killed before a step; it returns the step, "" if it came to its end before.
func (u *trio) child(o order) (step string) {
	u.Helper()
	o.State = u.state
	text, err := json.Marshal(o)
	if err != nil {
		u.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	out, err := cmd.Output()
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		step = lines.Text()
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signaled():
		return step
	}
	u.Fatalf("the child was to be killed: %v: %s\n%s", err, out, exit.Stderr)
	return ""
}

// leaseEnds lets the lease of one that was killed end now.
func (u *trio) leaseEnds() {
	u.Helper()
	if _, err := u.room.Change(u.Context(), "g", func(g *group.Group) error { g.Lease.For = time.Millisecond; return nil }); err != nil {
		u.Fatal(err)
	}
}

// one checks that the primary of the group takes writes, nobody else does, and the others replicate from it.
func (u *trio) one(without ...string) error {
	g, p := u.primary()
	for _, n := range u.box.Nodes {
		if slices.Contains(without, n.Name) {
			continue
		}
		c, err := mysql.Connect(u.Context(), sandboxtest.Target(u, n), nil)
		if err != nil {
			return err
		}
		defer c.Close()
		v, err := read.Variables(u.Context(), c, []string{"read_only"})
		if err != nil {
			return err
		}
		list, err := read.ReplicaChannels(u.Context(), c)
		if err != nil {
			return err
		}
		open := v["read_only"] == "OFF" || v["read_only"] == "0"
		switch {
		case open != (n == p):
			return fmt.Errorf("%s: read_only is %s, and the primary is %s", n.Name, v["read_only"], p.Name)
		case n == p && len(list) > 0:
			return fmt.Errorf("%s, the primary, replicates from %s", n.Name, list[0].Status.Source)
		case n != p && (len(list) != 1 || !list[0].IORunning || !list[0].SQLRunning || list[0].Status.Source != g.Members[g.Primary()].Address):
			return fmt.Errorf("%s does not replicate from %s: %+v", n.Name, p.Name, list)
		}
	}
	return nil
}

// complete waits until each member has all rows that were acknowledged.
func (u *trio) complete(without ...string) {
	u.Helper()
	for _, n := range u.box.Nodes {
		if slices.Contains(without, n.Name) {
			continue
		}
		c := sandboxtest.Connect(u, n)
		last := -1
		await.Until(u, func() bool {
			rows, err := c.Maps(u.Context(), "SELECT id FROM test.ledger")
			if err != nil {
				return false
			}
			has := map[string]bool{}
			for _, row := range rows {
				has[row["id"]] = true
			}
			last = len(u.rows)
			for _, id := range u.rows {
				if has[fmt.Sprint(id)] {
					last--
				}
			}
			return last == 0
		}, "%s to have all acknowledged rows: it lacks some (%d of %d)", n.Name, last, len(u.rows))
		c.Close()
	}
}

// resume lets another process bring it to its end, and checks what is then.
func (u *trio) resume(kind failover.Kind, step string, known failover.Known) {
	u.Helper()
	ctx := u.Context()
	_, p := u.primary()
	u.write(p, time.Second) // between; it may be refused
	u.leaseEnds()
	c := u.carrier()
	j, err := c.Resume(ctx, Asked{Group: "g", By: "test"})
	if kind == failover.Failover && j == nil && err == nil { // it had not begun
		g, _ := u.primary()
		if known.Name == g.Members[g.Primary()].Name {
			j, err = c.Failover(ctx, Asked{Group: "g", By: "test", Known: known})
		}
	}
	left, jerr := u.room.Unfinished(ctx, "g")
	if jerr != nil || left != nil {
		u.Fatalf("killed before %q: the journal did not end: %v %v; resumed: %v", step, left, jerr, err)
	}
	if j != nil && j.Stage == failover.Failed || kind == failover.Failover && err != nil {
		u.Fatalf("killed before %q: it was not brought to its end: %s: %v", step, j.Stage, err)
	}
}

// known is what is known of the primary now.
func (u *trio) known() failover.Known {
	u.Helper()
	c := u.carrier()
	g, p := u.primary()
	t, err := c.Look(u.Context(), g)
	if err != nil {
		u.Fatal(err)
	}
	return KnownOf(g, t, p.Name)
}

// tended waits until the group is whole.
func (u *trio) tended() {
	u.Helper()
	var err error
	await.Until(u, func() bool {
		if _, _, err = u.carrier().Tend(u.Context(), "g", Tends); err != nil {
			return false
		}
		g, _ := u.primary()
		if i := slices.IndexFunc(g.Members, func(m group.Member) bool { return m.Status == group.Faulty || m.Status == group.Spare }); i >= 0 {
			err = fmt.Errorf("%s is %s: %s %s", g.Members[i].Name, g.Members[i].Status, g.Members[i].Fault, g.Members[i].Errant)
			return false
		}
		err = u.one()
		return err == nil
	}, "the group to be whole: %v", &err)
}

// late lets a replica that is preferred receive less than the other one: it gets the rest from there.
func (u *trio) late(primary *sandbox.Node) {
	u.Helper()
	i := slices.IndexFunc(u.box.Nodes, func(n *sandbox.Node) bool { return n != primary })
	n := u.box.Nodes[i]
	if _, err := u.room.Change(u.Context(), "g", func(g *group.Group) error {
		for i := range g.Members {
			if g.Members[i].Rule = group.Neutral; g.Members[i].Name == n.Name {
				g.Members[i].Rule = group.Prefer
			}
		}
		return nil
	}); err != nil {
		u.Fatal(err)
	}
	c := sandboxtest.Connect(u, n)
	defer c.Close()
	if err := c.Exec(u.Context(), c.Server.StopThread("", mysql.Receiver)); err != nil {
		u.Fatal(err)
	}
	if !u.write(primary, time.Minute) {
		u.Fatalf("the primary %s takes no write", primary.Name)
	}
}

// givenUp asks for a failover that is refused, of a primary that lives: it takes writes as before.
func (u *trio) givenUp() {
	u.Helper()
	known := u.known()
	j, err := u.carrier().Failover(u.Context(), Asked{Group: "g", By: "test", To: "nobody", Known: known})
	if !errors.Is(err, ErrRefused) || j == nil || j.Stage != failover.Undone {
		u.Fatalf("a failover to one that is no member: %v, %+v", err, j)
	}
	await.Until(u, func() bool { err = u.one(); return err == nil }, "it to be as before: %v", &err)
	_, p := u.primary()
	if !u.write(p, time.Minute) {
		u.Fatal("it takes no writes again")
	}
}

// leaseLost lets another process take the lease amid a promotion: the first one stops, and takes nothing back; the other brings it to its end.
func (u *trio) leaseLost() {
	u.Helper()
	ctx, cancel := context.WithCancel(u.Context())
	defer cancel()
	_, old := u.primary()
	c, other, taken := u.carrier(), NewHolder("other"), false
	c.step = func(_, statement string) {
		if taken || !strings.HasPrefix(statement, "RESET ") {
			return
		}
		taken = true
		if _, err := u.room.Change(u.Context(), "g", func(g *group.Group) error {
			g.Lease.Holder = ""
			return g.Take(group.Claim{Holder: other}, time.Now(), time.Hour)
		}); err != nil {
			u.Error(err)
		}
		cancel()
	}
	if _, err := c.Switchover(ctx, Asked{Group: "g", By: "test"}); !errors.Is(err, ErrLost) {
		u.Fatalf("the lease was lost: %v", err)
	}
	on := sandboxtest.Connect(u, old)
	defer on.Close()
	if v, err := read.Variables(u.Context(), on, []string{"read_only"}); err != nil || v["read_only"] != "ON" && v["read_only"] != "1" {
		u.Fatalf("the old primary: read_only %s, %v: the other one may have promoted somebody", v["read_only"], err)
	}
	if j, err := u.room.Unfinished(u.Context(), "g"); err != nil || j == nil {
		u.Fatalf("the journal is at its end: %v", err)
	}
	u.resume(failover.Switchover, "the lease was lost", failover.Known{})
	if err := u.one(); err != nil {
		u.Fatal(err)
	}
	u.complete()
}

// TestInterrupt kills a process before each step of a switchover, and of a failover; another one brings it to its end.
func TestInterrupt(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			u := newTrio(t, spec, group.Policy{Automatic: true, SemiSync: true, Rejoin: true})
			began, told := time.Now(), false
			for stop := 1; ; stop++ {
				_, p := u.primary()
				if !u.write(p, time.Minute) {
					t.Fatalf("step %d: the primary %s takes no write", stop, p.Name)
				}
				step := u.child(order{Kind: failover.Switchover, Stop: stop})
				if step == "" {
					t.Logf("switchover: %d steps in %s", stop-1, time.Since(began))
					break
				}
				t.Logf("switchover from %s, killed before step %d: %s", p.Name, stop, step)
				if j, err := u.room.Unfinished(t.Context(), "g"); !told && err == nil && j != nil && j.Stage == failover.Draining {
					told = true
					u.takenBack(p)
				} else {
					u.resume(failover.Switchover, step, failover.Known{})
				}
				if err := u.one(); err != nil {
					t.Fatalf("killed before %q: %v", step, err)
				}
				u.complete()
			}
			if !told {
				t.Error("it was not killed while writes stood still")
			}
			u.givenUp()
			u.leaseLost()
			began = time.Now()
			for stop := 1; ; stop++ {
				_, p := u.primary()
				if !u.write(p, time.Minute) {
					t.Fatalf("step %d: the primary %s takes no write", stop, p.Name)
				}
				u.late(p)
				known := u.known()
				if err := p.Kill(syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
				step := u.child(order{Kind: failover.Failover, Stop: stop, Known: known})
				if step != "" {
					t.Logf("failover of %s, killed before step %d: %s", p.Name, stop, step)
					u.resume(failover.Failover, step, known)
				}
				if err := u.one(p.Name); err != nil {
					t.Fatalf("killed before %q: %v", step, err)
				}
				u.complete(p.Name)
				if err := p.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
				u.tended()
				u.complete()
				if step == "" {
					t.Logf("failover: %d steps in %s", stop-1, time.Since(began))
					break
				}
			}
		})
	}
}
