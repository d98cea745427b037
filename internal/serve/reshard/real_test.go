package reshard_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/group"
	groups "github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/avail/shard"
	"github.com/rissodb/risso/internal/avail/shard/keep"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/serve/reshard"
	"github.com/rissodb/risso/internal/store/state"
)

// story is two groups, a map, and clients that write by it.
type story struct {
	t       *testing.T
	state   string // file
	mover   *reshard.Mover
	targets map[string]mysql.Target
	conns   map[string]*mysql.Conn
	nodes   map[string]*sandbox.Node

	mu     sync.Mutex
	book   map[int]int // by id: what was acknowledged last
	denied atomic.Int64
	wrote  atomic.Int64
}

const (
	customers = 200 // keys
	first     = 20  // rows of each
)

func newStory(t *testing.T, spec string, m shard.Map) *story {
	t.Helper()
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "state.db")
	st, err := state.Open(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	s := &story{t: t, state: path, targets: map[string]mysql.Target{}, conns: map[string]*mysql.Conn{}, nodes: map[string]*sandbox.Node{}, book: map[int]int{}}
	s.mover = newMover(st, func(text string) { t.Log(text) })
	for _, name := range []string{"west", "east"} {
		node := sandboxtest.Up(t, spec, "binlog_format=ROW")
		s.nodes[name] = node
		s.targets[name], s.conns[name] = sandboxtest.Target(t, node), sandboxtest.Connect(t, node)
		g := &group.Group{Name: name, Active: true, Members: []group.Member{{Name: name + "1", Address: s.targets[name].Address(), Status: group.Primary}}}
		if err := s.mover.Groups.Add(ctx, g, groups.Access{Members: map[string]string{name + "1": s.targets[name].Secret()}}); err != nil {
			t.Fatal(err)
		}
		s.exec(name, "CREATE DATABASE shop")
		s.exec(name, orders)
	}
	if err := s.mover.Maps.Add(ctx, &m); err != nil {
		t.Fatal(err)
	}
	for c := range customers {
		var rows []string
		for i := range first {
			id := c*1000 + i
			rows = append(rows, row(id, c, 1))
			s.book[id] = 1
		}
		s.exec("west", insert+strings.Join(rows, ", "))
	}
	return s
}

const orders = "CREATE TABLE shop.orders (id INT PRIMARY KEY, customer INT NOT NULL, place VARCHAR(20) NOT NULL, n INT NOT NULL, note VARCHAR(100), price DOUBLE, at DATETIME(6) NOT NULL DEFAULT '2026-01-02 03:04:05.678', doc JSON, raw VARBINARY(20), UNIQUE (note), KEY (customer))"

const insert = "INSERT INTO shop.orders (id, customer, place, n, note, price, doc, raw) VALUES "

// place is a key of text: the second and third move by hash, and a collation holds the second and the fourth for equal.
func place(customer int) string { return []string{"Köln", "BERN", "Åre", "bern"}[customer%4] }

func row(id, customer, n int) string {
	return fmt.Sprintf("(%d, %d, '%s', %d, 'ü %d', %d.1, '{\"a\": [%d, \"ß\"]}', x'00ff27')", id, customer, place(customer), n, id, id, n)
}

func (s *story) exec(name, statement string) {
	s.t.Helper()
	if err := s.conns[name].Exec(context.Background(), statement); err != nil {
		s.t.Fatal(name, statement, err)
	}
}

// clients write until stop is called: each looks up the map before a write, and again when the write is refused.
func (s *story) clients(n int, key func(customer int) string) (stop func()) {
	ctx, cancel := context.WithCancel(s.t.Context())
	var wg sync.WaitGroup
	for w := range n {
		wg.Go(func() {
			own := map[string]*mysql.Conn{}
			for name, target := range s.targets {
				c, err := mysql.Connect(ctx, target, nil)
				if err != nil {
					if ctx.Err() == nil { // else they were stopped sooner
						s.t.Error(err)
					}
					return
				}
				defer c.Close()
				own[name] = c
			}
			for i := 0; ctx.Err() == nil; i++ {
				c := (i*n + w) % customers // no two write the same customer
				s.write(ctx, own, c, i, key(c))
			}
		})
	}
	return func() { cancel(); wg.Wait() }
}

// write makes one change: a new row, one more in a row, or a row less.
func (s *story) write(ctx context.Context, own map[string]*mysql.Conn, c, i int, key string) {
	s.mu.Lock()
	id := c*1000 + i/customers%40
	n, there := s.book[id]
	s.mu.Unlock()
	statement := "UPDATE shop.orders SET n = n + 1 WHERE id = " + strconv.Itoa(id)
	switch {
	case !there:
		n = 0
		statement = insert + row(id, c, 1)
	case i%7 == 0:
		n = -1
		statement = "DELETE FROM shop.orders WHERE id = " + strconv.Itoa(id)
	}
	for context.Cause(ctx) == nil {
		m, err := s.mover.Maps.Map(ctx, "shop")
		if err != nil {
			break
		}
		at, err := m.Lookup(key)
		if err != nil {
			s.t.Error(err)
			return
		}
		// A write that was begun is seen to its end, so that the book knows it.
		if err := own[at.Group].Exec(context.WithoutCancel(ctx), statement); err != nil {
			if !strings.Contains(err.Error(), "look up map shop again") && mysql.ErrorNumber(err) != 1205 {
				s.t.Errorf("%s: %v", statement, err)
				return
			}
			s.denied.Add(1)
			continue
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.wrote.Add(1); n < 0 {
			delete(s.book, id)
		} else {
			s.book[id] = n + 1
		}
		return
	}
}

// audit compares the book with the servers: each row is where the map says, once, as it was acknowledged.
func (s *story) audit(key func(customer int) string) {
	s.t.Helper()
	m, err := s.mover.Maps.Map(s.t.Context(), "shop")
	if err != nil {
		s.t.Fatal(err)
	}
	seen := map[int]string{}
	counts := map[string]int{}
	for name, c := range s.conns {
		rows, err := c.Maps(s.t.Context(), "SELECT id, customer, n FROM shop.orders")
		if err != nil {
			s.t.Fatal(err)
		}
		for _, r := range rows {
			id, _ := strconv.Atoi(r["id"])
			customer, _ := strconv.Atoi(r["customer"])
			n, _ := strconv.Atoi(r["n"])
			if other, ok := seen[id]; ok {
				s.t.Errorf("row %d is in %s and in %s", id, other, name)
			}
			seen[id] = name
			counts[name]++
			if at, err := m.Lookup(key(customer)); err != nil || at.Group != name {
				s.t.Errorf("row %d of customer %d is in %s: %+v, %v", id, customer, name, at, err)
			}
			if s.book[id] != n {
				s.t.Errorf("row %d in %s has %d, and %d was acknowledged", id, name, n, s.book[id])
			}
		}
	}
	for id := range s.book {
		if seen[id] == "" {
			s.t.Errorf("row %d is nowhere", id)
		}
	}
	left := 0
	for _, c := range s.conns {
		rows, err := c.Maps(s.t.Context(), "SELECT TRIGGER_NAME FROM INFORMATION_SCHEMA.TRIGGERS WHERE TRIGGER_NAME LIKE 'risso%'")
		if err != nil {
			s.t.Fatal(err)
		}
		left += len(rows)
	}
	if left > 0 {
		s.t.Errorf("%d triggers are left", left)
	}
	s.t.Logf("%d rows (%v), %d writes acknowledged, %d refused and repeated", len(s.book), counts, s.wrote.Load(), s.denied.Load())
}

func byCustomer(c int) string { return strconv.Itoa(c) }

// killed lets another process go on with the move, and kills it as soon as the journal is as wanted; without that it kills itself.
func (s *story) killed(when string, is func(shard.Move) bool) {
	s.t.Helper()
	if j, err := s.mover.Maps.Last(s.t.Context(), "shop"); err != nil || !j.Ended.IsZero() || is == nil && j.Stage == shard.Cleaning {
		s.t.Logf("the last process was killed too late for one that %s: %v", when, err)
		return
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childState+"="+s.state)
	if is == nil {
		cmd.Env = append(cmd.Env, childDies+"=1")
	}
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	stage, n := shard.Stage(""), 0
	for end := time.After(2 * time.Minute); ; n++ {
		select {
		case err := <-ended:
			if code := cmd.ProcessState.ExitCode(); code > 0 {
				s.t.Errorf("a process that %s ended by itself: %v: %s", when, err, said.String())
			}
			s.t.Logf("killed when it %s: %s, %v", when, stage, err)
			return
		case <-end:
			s.t.Errorf("a process never %s", when)
			_ = cmd.Process.Kill()
			<-ended
			return
		case <-time.After(2 * time.Millisecond):
		}
		if j, err := s.mover.Maps.Last(s.t.Context(), "shop"); err == nil && is != nil && is(j.Move) {
			stage = j.Stage
			_ = cmd.Process.Kill()
		}
	}
}

// TestSplit splits a map by range under writes, by processes that are killed in each stage.
func TestSplit(t *testing.T) {
	for _, spec := range []string{"mariadb-10.11", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			sandboxtest.Need(t, spec)
			s := newStory(t, spec, shard.Map{Name: "shop", Kind: shard.Range, Keys: shard.Integer, Epoch: 1, Tables: []shard.Table{{Schema: "shop", Name: "orders", Column: "customer"}},
				Shards: []shard.Shard{{Name: "all", Group: "west"}}})
			ctx := t.Context()
			stop := s.clients(4, byCustomer)
			defer stop()
			asked := shard.Asked{Shard: "all", New: "high", At: "100", To: "east"}
			p, err := s.mover.Plan(ctx, "shop", asked, false)
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range p.Steps.Words() {
				t.Log(w)
			}
			cut := errors.New("cut off")
			s.mover.Before = func(shard.Stage) error { return cut }
			if _, err := s.mover.Run(ctx, p); !errors.Is(err, cut) {
				t.Fatal(err)
			}
			// Each process is killed, and the next one goes on.
			s.killed("copies", func(m shard.Move) bool { return m.Tables[0].After != "" })
			s.killed("compares", func(m shard.Move) bool { return m.Tables[0].Copied })
			s.killed("refuses writes", func(m shard.Move) bool { return !m.Fenced.IsZero() })
			s.killed("has switched the map", nil)
			s.killed("deletes", func(m shard.Move) bool { return m.Deleted > 0 })
			s.mover.Before = nil
			j, err := s.mover.Resume(ctx, "shop")
			if err != nil && !errors.Is(err, reshard.ErrNothing) {
				t.Fatal(err)
			}
			t.Log(reshard.Words(j.Move))
			if j.Stage != shard.Done || j.Tables[0].Rows < 1000 || j.Deleted != j.Tables[0].Rows || j.Tables[0].Sum == "" {
				t.Errorf("%+v", j.Move)
			}
			was := s.wrote.Load()
			await.Until(t, func() bool { return s.wrote.Load() > was+500 }, "clients write after the switch")
			stop()
			s.audit(byCustomer)
		})
	}
}

// TestStopped holds that a process that thaws after another one has gone on with its move writes nothing more, that a move can be taken back, and that rows
// by hash and by list of texts move as Go computes it.
func TestStopped(t *testing.T) {
	const spec = "mariadb-10.11"
	sandboxtest.Need(t, spec)
	table := []shard.Table{{Schema: "shop", Name: "orders", Column: "place"}}
	s := newStory(t, spec, shard.Map{Name: "shop", Kind: shard.Hash, Keys: shard.Text, Epoch: 1, Tables: table, Shards: []shard.Shard{{Name: "all", Group: "west", From: "0"}}})
	ctx := t.Context()
	stop := s.clients(2, place)
	defer stop()
	asked := shard.Asked{Shard: "all", New: "half", To: "east"}
	p, err := s.mover.Plan(ctx, "shop", asked, false)
	if err != nil {
		t.Fatal(err)
	}
	frozen, thaw, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	first := *s.mover
	first.Before = func(st shard.Stage) error {
		if st == shard.Switching {
			close(frozen)
			<-thaw
		}
		return nil
	}
	go func() {
		_, err := first.Run(ctx, p)
		ended <- err
	}()
	<-frozen
	if _, err := s.mover.Maps.Change(ctx, "shop", func(*shard.Map) error { return nil }); !errors.Is(err, keep.ErrMoving) {
		t.Errorf("the map was changed while its rows move: %v", err)
	}
	j, err := s.mover.Undo(ctx, "shop")
	if err != nil || j.Stage != shard.Undone || j.Deleted == 0 {
		t.Fatalf("%+v, %v", j, err)
	}
	if n, err := s.conns["east"].Text(ctx, "SELECT COUNT(*) FROM shop.orders"); n != "0" {
		t.Errorf("%s rows are left of what was taken back, %v", n, err)
	}
	close(thaw)
	if err := <-ended; !errors.Is(err, reshard.ErrTaken) {
		t.Errorf("the one that thawed did not notice: %v", err)
	}
	// A copy that is not the same, and a group that failed over meanwhile, are found while writes are refused: they are taken again, and the map stays.
	open := sandboxtest.Connect(t, s.nodes["west"])
	for what, f := range map[string]struct {
		harm, mend func()
		want       error
	}{
		"an open transaction": {func() {
			for _, q := range []string{"START TRANSACTION", "SELECT COUNT(*) FROM shop.orders WHERE id = 1"} {
				if err := open.Exec(ctx, q); err != nil {
					t.Error(err)
				}
			}
		}, func() { _ = open.Exec(ctx, "ROLLBACK") }, nil},
		"a row too many": {func() { s.exec("east", insert+row(7_000_001, 2, 1)) }, func() { s.exec("east", "DELETE FROM shop.orders WHERE id = 7000001") }, reshard.ErrDiffers},
		"a failover": {func() {
			if _, err := s.mover.Groups.Change(ctx, "east", func(g *group.Group) error { g.Epoch++; return nil }); err != nil {
				t.Error(err)
			}
		}, func() {}, reshard.ErrMoved},
	} {
		if p, err = s.mover.Plan(ctx, "shop", asked, false); err != nil {
			t.Fatal(err)
		}
		harmed := *s.mover
		harmed.Say = func(text string) {
			if strings.HasPrefix(text, "comparing") {
				f.harm()
			}
		}
		harmed.Limits.Lock = time.Second
		if _, err := harmed.Run(ctx, p); f.want == nil && mysql.ErrorNumber(err) != errno.LockWaitTimeout || f.want != nil && !errors.Is(err, f.want) {
			t.Errorf("%s: %v", what, err)
		}
		was := s.wrote.Load()
		await.Until(t, func() bool { return s.wrote.Load() > was+200 }, "clients write as before")
		f.mend()
		if _, err := s.mover.Undo(ctx, "shop"); err != nil {
			t.Fatal(err)
		}
	}
	// Again, with one that is frozen while another one brings it to its end.
	if p, err = s.mover.Plan(ctx, "shop", asked, false); err != nil {
		t.Fatal(err)
	}
	frozen, thaw = make(chan struct{}), make(chan struct{})
	go func() {
		_, err := first.Run(ctx, p)
		ended <- err
	}()
	<-frozen
	if j, err = s.mover.Resume(ctx, "shop"); err != nil {
		t.Fatal(err)
	}
	t.Log(reshard.Words(j.Move))
	was := s.wrote.Load()
	await.Until(t, func() bool { return s.wrote.Load() > was+200 }, "clients write after the switch")
	close(thaw)
	if err := <-ended; !errors.Is(err, reshard.ErrTaken) {
		t.Errorf("the one that thawed did not notice: %v", err)
	}
	stop()
	s.audit(place)
	if _, err := s.mover.Undo(ctx, "shop"); !errors.Is(err, reshard.ErrNothing) {
		t.Errorf("%v", err)
	}
	// All of it back, and then by cutting it off at random moments.
	if p, err = s.mover.Plan(ctx, "shop", shard.Asked{Shard: "half", New: "half", To: "west"}, false); err != nil {
		t.Fatal(err)
	}
	stop = s.clients(2, place)
	defer stop()
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	_, err = s.mover.Run(short, p)
	for i := 2; err != nil && i < 40; i++ {
		cancel()
		short, cancel = context.WithTimeout(ctx, time.Duration(i*i)*20*time.Millisecond)
		_, err = s.mover.Resume(short, "shop")
		if errors.Is(err, reshard.ErrNothing) {
			err = nil
		}
	}
	cancel()
	if err != nil {
		t.Fatal(err)
	}
	stop()
	s.audit(place)
}

// TestNewGroupFailsOver holds that the old rows, the last ones there are, stay where the new group has another primary that lacks some of them or has other
// ones, and that they go where it has them all.
func TestNewGroupFailsOver(t *testing.T) {
	for _, spec := range []string{"mariadb-10.11", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			sandboxtest.Need(t, spec)
			s := newStory(t, spec, shard.Map{Name: "shop", Kind: shard.Range, Keys: shard.Integer, Epoch: 1, Tables: []shard.Table{{Schema: "shop", Name: "orders", Column: "customer"}},
				Shards: []shard.Shard{{Name: "all", Group: "west"}}})
			// The new group fails over and back, and clients change rows meanwhile: its primary has all that was compared.
			s.cutBefore(shard.Cleaning, shard.Asked{Shard: "all", New: "high", At: "190", To: "east"})
			s.failOver("east", s.targets["east"])
			s.exec("east", "UPDATE shop.orders SET n = 2 WHERE id = 190000")
			s.exec("east", "DELETE FROM shop.orders WHERE id = 190001")
			s.book[190000] = 2
			delete(s.book, 190001)
			s.resumes(nil, 190*first)
			s.audit(byCustomer)
			// Another one, which lacks the rows.
			s.cutBefore(shard.Cleaning, shard.Asked{Shard: "all", New: "mid", At: "180", To: "east"})
			node := sandboxtest.Up(t, spec, "binlog_format=ROW")
			s.conns["east"] = sandboxtest.Connect(t, node)
			s.exec("east", "CREATE DATABASE shop")
			s.exec("east", orders)
			s.failOver("east", sandboxtest.Target(t, node))
			s.resumes(reshard.ErrLost, 190*first)
			if triggers, err := s.conns["west"].Text(t.Context(), "SELECT COUNT(*) FROM INFORMATION_SCHEMA.TRIGGERS WHERE TRIGGER_NAME LIKE 'risso%'"); triggers != "3" {
				t.Errorf("%s triggers are left, %v", triggers, err)
			}
			var rows []string
			for id, n := range s.book {
				if id >= 180_000 {
					rows = append(rows, row(id, id/1000, n))
				}
			}
			s.exec("east", insert+strings.Join(rows, ", "))
			s.exec("east", "UPDATE shop.orders SET n = 7 WHERE id = 180000")
			s.resumes(reshard.ErrLost, 190*first)
			s.exec("east", "UPDATE shop.orders SET n = 1 WHERE id = 180000")
			s.resumes(nil, 180*first)
			s.audit(byCustomer)
			// Who looked decides that the old rows stay.
			s.cutBefore(shard.Cleaning, shard.Asked{Shard: "all", New: "low", At: "170", To: "east"})
			s.failOver("east", s.targets["east"])
			s.resumes(reshard.ErrLost, 180*first)
			s.mover.Keep = true
			s.resumes(nil, 180*first)
		})
	}
}

// TestVanished holds that rows which somebody deletes or changes in the new group after they were compared are noticed before the map is changed, and so before
// the old ones are deleted, also where the new group does not log rows.
func TestVanished(t *testing.T) {
	for _, spec := range []string{"mariadb-10.11", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			sandboxtest.Need(t, spec)
			s := newStory(t, spec, shard.Map{Name: "shop", Kind: shard.Range, Keys: shard.Integer, Epoch: 1, Tables: []shard.Table{{Schema: "shop", Name: "orders", Column: "customer"}},
				Shards: []shard.Shard{{Name: "all", Group: "west"}}})
			asked := shard.Asked{Shard: "all", New: "high", At: "100", To: "east"}
			for _, c := range []struct{ format, harm string }{
				{"ROW", "DELETE FROM shop.orders WHERE customer = 150"}, {"ROW", "UPDATE shop.orders SET n = 9 WHERE id = 150003"}, {"MIXED", "DELETE FROM shop.orders WHERE id = 150003"},
			} {
				s.exec("east", "SET GLOBAL binlog_format = '"+c.format+"'")
				m := *s.mover
				m.Before = func(stage shard.Stage) error {
					if stage == shard.Switching { // it was compared
						s.exec("east", c.harm)
					}
					return nil
				}
				p, err := m.Plan(t.Context(), "shop", asked, false)
				if err != nil {
					t.Fatal(err)
				}
				if j, err := m.Run(t.Context(), p); !errors.Is(err, reshard.ErrDiffers) || j.Stage != shard.Copying {
					t.Errorf("%s: %s: %v, %s", c.format, c.harm, err, j.Stage)
				}
				if _, err := s.mover.Undo(t.Context(), "shop"); err != nil {
					t.Fatal(err)
				}
			}
			s.exec("east", "SET GLOBAL binlog_format = 'ROW'")
			p, err := s.mover.Plan(t.Context(), "shop", asked, false)
			if err == nil {
				_, err = s.mover.Run(t.Context(), p)
			}
			if err != nil {
				t.Fatal(err)
			}
			s.audit(byCustomer)
		})
	}
}

// TestReopened holds that writes are taken again as soon as a move goes on whose old primary could not be reached to take them again at once.
func TestReopened(t *testing.T) {
	const spec = "mariadb-10.11"
	sandboxtest.Need(t, spec)
	s := newStory(t, spec, shard.Map{Name: "shop", Kind: shard.Range, Keys: shard.Integer, Epoch: 1, Tables: []shard.Table{{Schema: "shop", Name: "orders", Column: "customer"}},
		Shards: []shard.Shard{{Name: "all", Group: "west"}}})
	ctx := t.Context()
	triggers := func() string {
		n, err := s.conns["west"].Text(ctx, "SELECT COUNT(*) FROM INFORMATION_SCHEMA.TRIGGERS WHERE TRIGGER_NAME LIKE 'risso%'")
		if err != nil {
			t.Error(err)
		}
		return n
	}
	m := *s.mover
	m.Limits.Whole = 10_000 // all is compared while writes are refused, which waits for the lock
	p, err := m.Plan(ctx, "shop", shard.Asked{Shard: "all", New: "high", At: "190", To: "east"}, false)
	if err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	m.Before = func(stage shard.Stage) error {
		if stage != shard.Switching {
			return nil
		}
		s.exec("east", "LOCK TABLES shop.orders WRITE")
		go func() {
			defer close(gone)
			for triggers() != "3" && ctx.Err() == nil {
				time.Sleep(5 * time.Millisecond)
			}
			if err := s.mover.Groups.SetAccess(ctx, "west", groups.Access{Members: map[string]string{"west1": "nobody@tcp(127.0.0.1:1)/"}}); err != nil {
				t.Error(err)
			}
			holder, err := s.conns["west"].Text(ctx, "SELECT IS_USED_LOCK('risso_shard_"+p.Move.ID+"')")
			if err == nil {
				err = s.conns["west"].Exec(ctx, "KILL "+holder)
			}
			if err != nil {
				t.Error(err)
			}
		}()
		return nil
	}
	if _, err = m.Run(ctx, p); err == nil || !strings.Contains(err.Error(), "writes of the rows are refused still") {
		t.Fatal(err)
	}
	<-gone
	s.exec("east", "UNLOCK TABLES")
	if n := triggers(); n != "3" {
		t.Errorf("%s triggers are there after the failure, want 3", n)
	}
	s.failOver("west", s.targets["west"]) // reached again
	s.mover.Before = func(stage shard.Stage) error {
		if n := triggers(); stage == shard.Copying && n != "0" {
			t.Errorf("%s triggers refuse writes while the copy goes on", n)
		}
		return nil
	}
	s.resumes(nil, 190*first)
	s.audit(byCustomer)
}

// cutBefore begins a move, and ends it before a stage as a kill would.
func (s *story) cutBefore(stage shard.Stage, asked shard.Asked) {
	s.t.Helper()
	cut := errors.New("cut off")
	m := *s.mover
	m.Before = func(now shard.Stage) error {
		if now == stage {
			return cut
		}
		return nil
	}
	p, err := m.Plan(s.t.Context(), "shop", asked, false)
	if err == nil {
		_, err = m.Run(s.t.Context(), p)
	}
	if !errors.Is(err, cut) {
		s.t.Fatal(err)
	}
}

// failOver makes a server the primary of a group.
func (s *story) failOver(name string, to mysql.Target) {
	s.t.Helper()
	ctx := s.t.Context()
	err := s.mover.Groups.SetAccess(ctx, name, groups.Access{Members: map[string]string{name + "1": to.Secret()}})
	if err == nil {
		_, err = s.mover.Groups.Change(ctx, name, func(g *group.Group) error { g.Epoch++; return nil })
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// resumes goes on with the move, with an error or none, and holds how many rows the old group has then.
func (s *story) resumes(want error, left int) {
	s.t.Helper()
	j, err := s.mover.Resume(s.t.Context(), "shop")
	if j == nil {
		s.t.Fatal(err)
	}
	if !errors.Is(err, want) || want == nil && j.Stage != shard.Done || want != nil && j.Stage != shard.Cleaning {
		s.t.Errorf("%s, %v, want %v", j.Stage, err, want)
	}
	s.t.Log(err)
	if n, err := s.conns["west"].Text(s.t.Context(), "SELECT COUNT(*) FROM shop.orders"); n != strconv.Itoa(left) {
		s.t.Errorf("the old group has %s rows, want %d, %v", n, left, err)
	}
}
