package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/fence"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

const (
	token = "shared"
	me    = "db1"
)

// member is a server of the group, by its name.
func member(name string) group.Server { return group.Server{Name: name, Address: name + ":3306"} }

// controller answers as risso serve does, unless it is cut off: then questions arrive nowhere.
type controller struct {
	view atomic.Pointer[group.View]
	away atomic.Bool
	url  string
}

func newController(t *testing.T) *controller {
	t.Helper()
	c := &controller{}
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.away.Load() {
			<-r.Context().Done()
			return
		}
		if r.URL.Path != "/api/view" || r.URL.Query().Get("group") != "g" || r.Header.Get("Authorization") != "Bearer "+token {
			t.Errorf("asked %s with %q", r.URL, r.Header.Get("Authorization"))
		}
		_ = json.NewEncoder(w).Encode(c.view.Load())
	}))
	t.Cleanup(h.Close)
	c.url = h.URL
	c.says(7, me)
	return c
}

func (c *controller) says(epoch uint64, primary string) {
	p := member(primary)
	c.view.Store(&group.View{Group: "g", Epoch: epoch, Primary: &p})
}

// start runs an agent until the test, or stop, ends it.
func start(t *testing.T, o Options) (a *Agent, stop func()) {
	t.Helper()
	o.Group, o.Member, o.Token, o.Fence, o.TTL, o.Reopen = "g", cmp.Or(o.Member, me), token, cmp.Or(o.Fence, FenceLost), cmp.Or(o.TTL, 4*time.Second), true
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	o.Transport = transport
	o.Tell = func(line string) { t.Log(line) }
	a = New(o)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := a.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	stop = func() { cancel(); <-ended }
	t.Cleanup(stop)
	return a, stop
}

func (a *Agent) await(t *testing.T, what string, is func(Standing) bool) {
	t.Helper()
	var s Standing
	await.Until(t, func() bool { s = a.Standing(); return is(s) }, what+": got %+v", &s)
}

func valid(s Standing) bool  { return s.Valid && !s.Fenced }
func proven(s Standing) bool { return s.Fenced && s.Proven }

// app connects as an ordinary client.
func app(t *testing.T, n *sandbox.Node) *mysql.Conn {
	t.Helper()
	at, err := mysql.ParseTarget("app:Secret-1@tcp(" + net.JoinHostPort("127.0.0.1", strconv.Itoa(n.Port)) + ")/")
	if err != nil {
		t.Fatal(err)
	}
	c, err := mysql.Connect(t.Context(), at.WithPatience(time.Minute), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func run(t *testing.T, c *mysql.Conn, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if err := c.Exec(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func writable(t *testing.T, n *sandbox.Node) bool {
	t.Helper()
	err := app(t, n).Exec(t.Context(), "INSERT INTO test.t () VALUES ()")
	if err != nil && !mysql.Answered(err) {
		t.Fatal(err)
	}
	return err == nil
}

// ask asks the agent as a load balancer does.
func (a *Agent) ask(t *testing.T, path string) int {
	t.Helper()
	w := httptest.NewRecorder()
	a.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code
}

// TestAgent: a primary whose agent hears nobody takes no writes any more, and its clients' sessions end; it is opened when a controller confirms it again, in its epoch
// or a newer one, also by an agent that is started after the one that fenced it. Controllers find it by the name or the address that it was given.
func TestAgent(t *testing.T) {
	for spec, known := range map[string]string{"mariadb": "DB1:3306", "mysql-9.7": me} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			n := sandboxtest.Lend(t, spec)
			root := sandboxtest.Connect(t, n)
			run(t, root, "CREATE USER app@'%' IDENTIFIED BY 'Secret-1'", "GRANT ALL ON test.* TO app@'%'", "CREATE TABLE test.t (id INT AUTO_INCREMENT PRIMARY KEY)")
			c := newController(t)
			o := Options{Target: sandboxtest.Target(t, n), Member: known, Controllers: []string{c.url}, State: t.TempDir()}
			a, stop := start(t, o)
			a.await(t, "a confirmed primary", valid)
			await.Until(t, func() bool { return a.ask(t, "/primary") == http.StatusOK }, "/primary")

			var wrote atomic.Int64
			var clients sync.WaitGroup
			for range 4 {
				session := app(t, n)
				clients.Go(func() {
					for session.Exec(context.WithoutCancel(t.Context()), "INSERT INTO test.t () VALUES ()") == nil {
						wrote.Add(1)
					}
				})
			}
			await.Until(t, func() bool { return wrote.Load() > 10 }, "writes")
			c.away.Store(true)
			a.await(t, "a fenced server", proven)
			clients.Wait()
			if before := wrote.Load(); before == 0 || writable(t, n) || a.ask(t, "/primary") != http.StatusServiceUnavailable || a.ask(t, "/health") != http.StatusOK {
				t.Errorf("after %d writes it takes more, or load balancers are told otherwise", before)
			}
			c.away.Store(false)
			a.await(t, "an open server", valid)
			if !writable(t, n) || len(journals(t, o.State)) != 0 {
				t.Errorf("not open, or a journal is left: %v", journals(t, o.State))
			}

			// A switchover: a controller closes the server, and ends sessions, the agent's too; what it does there then is not disturbed.
			root = sandboxtest.Connect(t, n)
			r, err := fence.Fence(t.Context(), o.Target, fence.Options{Epoch: 7, Limit: time.Minute, Keep: []int64{root.Server.ConnectionID}})
			if err != nil {
				t.Fatal(err)
			}
			c.says(8, "db2")
			a.await(t, "the switchover", func(s Standing) bool { return s.Epoch == 8 })
			await.Until(t, func() bool { return a.claims() == ClaimsNo }, "a look at it")
			time.Sleep(4 * tick)
			if err := root.Exec(t.Context(), "SELECT 1"); err != nil || a.Standing().Fenced {
				t.Errorf("the agent fenced what a controller had closed: %v", err)
			}
			if err := fence.Back(t.Context(), root, r.State); err != nil {
				t.Fatal(err)
			}
			a.await(t, "a deposed server", func(s Standing) bool { return proven(s) && s.Epoch == 8 })
			c.says(7, me)
			stop() // the next agent must know that epoch 7 is over
			if len(journals(t, o.State)) != 1 {
				t.Errorf("journals %v, want one", journals(t, o.State))
			}
			a, stop = start(t, o)
			a.await(t, "what the agent before it did", func(s Standing) bool { return s.Fenced && s.Epoch == 7 })
			if d, _ := a.decide(false); d.Act != Stay || writable(t, n) {
				t.Errorf("it is opened in an epoch that is over: %+v", d)
			}
			c.says(9, me)
			a.await(t, "an open server", valid)
			if !writable(t, n) {
				t.Error("it takes no writes, though it is the primary again")
			}
			taken(t, a, c, n)
			state := witness(t, a, n)
			stop()
			if err := fence.Undo(t.Context(), o.Target, state, 11, time.Minute); err != nil { // it is lent again
				t.Error(err)
			}
		})
	}
}

// taken lets the agent stand beside another member than the one that it is told: it leaves that alone, whoever is the primary, and obeys no order about the other one.
func taken(t *testing.T, a *Agent, c *controller, n *sandbox.Node) {
	t.Helper()
	was := c.view.Load()
	p, mine := member("db2"), member(me)
	p.ID = a.eyes.who()
	c.view.Store(&group.View{Group: "g", Epoch: 10, Primary: &p})
	a.await(t, "that it stands beside another one", func(s Standing) bool { return strings.Contains(s.LastError, "it is db2 of g") })
	p, mine.ID = member("db2"), "a"
	p.ID = "b"
	c.view.Store(&group.View{Group: "g", Epoch: 10, Primary: &p, Replicas: []group.Server{mine}})
	a.await(t, "that the member is another one", func(s Standing) bool { return strings.Contains(s.LastError, "db1 of g is another server (a, and") })
	h := httptest.NewServer(a.Handler())
	defer h.Close()
	if _, err := Order(t.Context(), h.Client(), h.URL, token, "g", member(me), 10); err == nil || !strings.Contains(err.Error(), "is another server") {
		t.Errorf("an order about another server: %v", err)
	}
	if s, err := a.Look(t.Context()); err != nil || !slices.ContainsFunc(s.Problems, func(p fleet.Trouble) bool { return strings.Contains(p.Why, "is another server") }) {
		t.Errorf("a look at it: %+v, %v", s.Problems, err)
	}
	if time.Sleep(4 * tick); a.Standing().Fenced || !writable(t, n) {
		t.Error("a server that is another member was fenced")
	}
	c.view.Store(was)
	a.await(t, "the right view", func(s Standing) bool { return valid(s) && s.LastError == "" })
}

// witness makes sure of what an agent tells a controller, and that it obeys those only who have the token.
func witness(t *testing.T, a *Agent, n *sandbox.Node) fence.State {
	t.Helper()
	h := httptest.NewServer(a.Handler())
	defer h.Close()
	look := func() Report {
		r, err := Look(t.Context(), h.Client(), h.URL, token)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	var r Report
	await.Until(t, func() bool { r = look(); return r.Server.Answers && r.Claims == ClaimsYes }, "a server that answers: %+v", &r)
	if r.Server.Process == nil || !r.Server.Process.Alive || r.Server.Process.PID != n.PID || r.Server.Disk == nil || r.Server.Disk.Free == 0 || r.ReadOnly == nil || *r.ReadOnly {
		t.Errorf("got %+v, %+v", r, r.Server.Process)
	}
	goOn := sandboxtest.Pause(t, n)
	await.Until(t, func() bool { r = look(); return r.Server.Hangs && r.Server.Process.Frozen && !r.Server.Answers }, "a server that hangs: %+v", &r)
	goOn()
	await.Until(t, func() bool { r = look(); return r.Server.Answers && !r.Server.Process.Frozen }, "a server that goes on: %+v", &r)
	if _, err := Look(t.Context(), h.Client(), h.URL, "another"); !errors.Is(err, ErrSignature) {
		t.Errorf("another token: %v", err)
	}
	if _, err := Order(t.Context(), h.Client(), h.URL, "another", "g", member(me), 99); !errors.Is(err, ErrSignature) {
		t.Errorf("an order with another token: %v", err)
	}
	if _, err := Order(t.Context(), h.Client(), h.URL, token, "g", member(me), 8); err == nil || !strings.Contains(err.Error(), "it is epoch 9") {
		t.Errorf("an order of an old epoch: %v", err)
	}
	if !writable(t, n) {
		t.Error("an order that was refused was carried out")
	}
	if _, err := Order(t.Context(), h.Client(), h.URL, token, "g", member("db2"), 10); err == nil || !strings.Contains(err.Error(), errOther.Error()) {
		t.Errorf("an order for another member: %v", err)
	}
	f, err := Order(t.Context(), h.Client(), h.URL, token, "g", member(me), 10)
	if err != nil || !f.Proven || f.State.Epoch != 10 || f.State.Unheard || writable(t, n) {
		t.Errorf("got %+v, %v", f, err)
	}
	if err := fence.Undo(t.Context(), sandboxtest.Target(t, n), f.State, 10, time.Minute); !errors.Is(err, fence.ErrEpoch) {
		t.Errorf("got %v", err)
	}
	return f.State
}

func journals(t *testing.T, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// TestThaw: a primary that hung, and was replaced meanwhile, is fenced when it goes on. What a client had sent it in the meantime is acknowledged to nobody: its commit waits for replicas that
// have left, and the agent ends the session.
func TestThaw(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			n := sandboxtest.Up(t, spec)
			root := sandboxtest.Connect(t, n)
			run(t, root, "CREATE USER app@'%' IDENTIFIED BY 'Secret-1'", "GRANT ALL ON test.* TO app@'%'", "CREATE TABLE test.t (id INT AUTO_INCREMENT PRIMARY KEY)")
			sources, _ := root.Server.SemiSyncSides()
			side := sources[0]
			if side.Plugin != "" {
				run(t, root, mysql.InstallPlugin(side.Plugin, side.Library))
			}
			c := newController(t)
			a, _ := start(t, Options{Target: sandboxtest.Target(t, n), Controllers: []string{c.url}, State: t.TempDir()})
			a.await(t, "a confirmed primary", valid)
			session := app(t, n)
			run(t, root, "SET GLOBAL "+side.Prefix+"_timeout = 600000", "SET GLOBAL "+side.Prefix+"_enabled = ON")
			goOn := sandboxtest.Pause(t, n)
			write := make(chan error, 1)
			go func() {
				write <- session.Exec(context.WithoutCancel(t.Context()), "INSERT INTO test.t () VALUES ()")
			}()
			c.says(8, "db2")
			a.await(t, "an attempt that fails", func(s Standing) bool { return strings.HasPrefix(s.By, "not proven") })
			goOn()
			a.await(t, "a fenced server", proven)
			if err := <-write; err == nil {
				t.Error("a client was told that its write is done, which no replica has")
			}
			if writable(t, n) {
				t.Error("it takes writes")
			}
		})
	}
}

// TestReturns: a primary that crashed and comes up read-only is opened if it is the primary still, and stays closed if another one is; one that an administrator closed stays so.
func TestReturns(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			n := sandboxtest.Up(t, spec, "read_only=ON")
			root := sandboxtest.Connect(t, n)
			server := root.Server
			run(t, root, "SET GLOBAL read_only = OFF", "CREATE USER app@'%' IDENTIFIED BY 'Secret-1'", "GRANT ALL ON test.* TO app@'%'", "CREATE TABLE test.t (id INT AUTO_INCREMENT PRIMARY KEY)")
			c := newController(t)
			a, _ := start(t, Options{Target: sandboxtest.Target(t, n), Controllers: []string{c.url}, State: t.TempDir()})
			a.await(t, "a confirmed primary", valid)
			await.Until(t, func() bool { a.mu.Lock(); defer a.mu.Unlock(); return !a.fresh }, "a look at it")
			run(t, root, server.CloseWrites()[0])
			await.Until(t, func() bool { return a.claims() == ClaimsNo }, "a look at it")
			if d, _ := a.decide(false); d.Act != Stay || writable(t, n) {
				t.Errorf("what an administrator closed is opened: %+v", d)
			}
			again := func() {
				t.Helper()
				if err := n.Kill(syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
				<-n.Ended()
				await.Until(t, func() bool { return a.claims() == ClaimsUnknown }, "it to be gone")
				if err := n.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			again()
			await.Until(t, func() bool { return writable(t, n) }, "the primary to be open")
			c.says(8, "db2")
			a.await(t, "a deposed server", proven)
			was := older(t, a)
			again()
			await.Until(t, func() bool { return a.claims() == ClaimsNo }, "it to answer")
			if d, _ := a.decide(false); d.Act != Stay || writable(t, n) {
				t.Errorf("an old primary that came back takes writes: %+v", d)
			}
			await.Until(t, func() bool { // who opens it now may promote it: then it did not come up open
				a.mu.Lock()
				defer a.mu.Unlock()
				return !sameStart(a.life, was) && !a.restarted(ClaimsYes) && sameStart(a.loan.Started(), a.life)
			}, "the agent to know that it came up closed")
		})
	}
}

// older waits until the server of an agent runs for so long that another start is told from this one, and says since when it runs.
func older(t *testing.T, a *Agent) (life int64) {
	t.Helper()
	await.Until(t, func() bool {
		life, _ = a.eyes.life()
		return life != 0 && time.Now().Unix() > life+sameLife+1
	}, "a server that runs for a while")
	return life
}

// TestInherited: a server that comes up open though an agent fenced it is fenced at once by the next agent, which hears from no controller.
func TestInherited(t *testing.T) {
	n := sandboxtest.Up(t, "mariadb")
	c := newController(t)
	o := Options{Target: sandboxtest.Target(t, n), Controllers: []string{c.url}, State: t.TempDir()}
	a, stop := start(t, o)
	a.await(t, "a confirmed primary", valid)
	c.says(8, "db2")
	a.await(t, "a deposed server", proven)
	was := older(t, a)
	stop()
	if !sameStart(a.loan.Started(), was) {
		t.Errorf("the journal says that the server runs since %d, not %d", a.loan.Started(), was)
	}
	if err := n.Kill(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-n.Ended()
	if err := n.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	closed := func() string {
		t.Helper()
		is, err := sandboxtest.Connect(t, n).Text(t.Context(), "SELECT @@GLOBAL.read_only")
		if err != nil {
			t.Fatal(err)
		}
		return is
	}
	if is := closed(); is != "0" {
		t.Fatalf("it came up with read_only %s", is)
	}
	o.Controllers, o.TTL = nil, 10*time.Minute // longer than the test waits
	a, _ = start(t, o)
	a.await(t, "a server that is fenced at once", proven)
	if is := closed(); is != "1" {
		t.Errorf("read_only is %s: %+v", is, a.Standing())
	}
}

// TestPrimary: no load balancer sends writes to a server of which its agent heard that another one is the primary, though that agent is not to fence it, or not yet.
func TestPrimary(t *testing.T) {
	n := sandboxtest.Lend(t, "mariadb")
	for _, policy := range []string{FenceNever, FenceDeposed} {
		c := newController(t)
		if policy == FenceDeposed { // a server that was not confirmed since its agent was started is fenced only after the TTL
			c.says(8, "db2")
		}
		a, stop := start(t, Options{Target: sandboxtest.Target(t, n), Controllers: []string{c.url}, State: t.TempDir(), Fence: policy, TTL: time.Hour})
		asked := func(want int) {
			t.Helper()
			got := 0
			await.Until(t, func() bool { got = a.ask(t, "/primary"); return got == want }, "%d of --fence %s: got %d", want, policy, &got)
		}
		open := func() {
			t.Helper()
			if s := a.Standing(); s.Fenced || a.claims() != ClaimsYes || a.ask(t, "/health") != http.StatusOK {
				t.Errorf("--fence %s: it is no primary any more: %+v", policy, s)
			}
		}
		if policy == FenceNever {
			asked(http.StatusOK)
			c.says(8, "db2")
		}
		await.Until(t, func() bool { return a.claims() == ClaimsYes && a.Standing().Deposed }, "a look at it, and that another one is the primary")
		asked(http.StatusServiceUnavailable)
		open()
		c.view.Store(&group.View{Group: "g", Epoch: 9})
		asked(http.StatusOK) // nobody is known to be it, as during a failover: that is no reason by these policies
		open()
		stop()
	}
}
