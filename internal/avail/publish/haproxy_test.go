package publish

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/health"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/lack"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

const haproxyProgram = "/usr/sbin/haproxy"

func needHAProxy(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(haproxyProgram); err != nil {
		lack.Of(t, "HAProxy is not installed: run script/setup")
	}
}

// TestHAProxyConfig: HAProxy takes each form of the configuration without a warning; what would be no configuration is refused.
func TestHAProxyConfig(t *testing.T) {
	needHAProxy(t)
	three := []group.Member{{Name: "db-2.x", Address: "10.0.0.2:3306", Weight: 1}, {Name: "db_1", Address: "[fd00::1]:3306", Weight: 3}, {Name: "db3", Address: "10.0.0.3:3307"}}
	for name, o := range map[string]HAProxyOptions{
		"one":     {Writes: ":3306", Ask: []string{"10.0.0.9:8306"}, Hold: DefaultHAProxyHold},
		"all":     {Writes: "127.0.0.1:3306", Reads: ":3307", Ask: []string{"10.0.0.9:8306", "10.0.0.8:8306", "[fd00::7]:8306"}, MaxLag: 5 * time.Second, Hold: time.Minute, Fallback: true, Every: time.Second},
		"no hold": {Writes: ":3306", Reads: ":3307", Ask: []string{"10.0.0.9:8306"}, Local: "127.0.0.1:8309"},
		"single":  {Writes: ":3306", Ask: []string{"10.0.0.9:8306"}, Single: true},
		"agents":  {Writes: ":3306", Reads: ":3307", Agents: 8308, MaxLag: 5 * time.Second, Fallback: true},
	} {
		text, err := HAProxy("shop.eu", three, o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		path := filepath.Join(t.TempDir(), "haproxy.cfg")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(haproxyProgram, "-c", "-V", "-dW", "-f", path).CombinedOutput(); err != nil || strings.Contains(string(out), "WARNING") {
			t.Errorf("%s: %v\n%s\n%s", name, err, out, text)
		}
	}
	good := HAProxyOptions{Writes: ":3306", Ask: []string{"10.0.0.9:8306"}}
	for name, change := range map[string]func(o *HAProxyOptions, m []group.Member) string{
		"no address":      func(o *HAProxyOptions, _ []group.Member) string { o.Writes = ""; return "shop" },
		"nobody to ask":   func(o *HAProxyOptions, _ []group.Member) string { o.Ask = nil; return "shop" },
		"two lines":       func(_ *HAProxyOptions, m []group.Member) string { m[0].Address = "10.0.0.2\n  x:3306"; return "shop" },
		"a group's name":  func(*HAProxyOptions, []group.Member) string { return "shop\nglobal" },
		"a server's name": func(_ *HAProxyOptions, m []group.Member) string { m[0].Name = "a b"; return "shop" },
		"too often":       func(o *HAProxyOptions, _ []group.Member) string { o.Every = time.Millisecond; return "shop" },
	} {
		o, members := good, append([]group.Member(nil), three...)
		if text, err := HAProxy(change(&o, members), members, o); err == nil {
			t.Errorf("%s is taken:\n%s", name, text)
		}
	}
}

// haproxy is the real one, with its socket for questions.
type haproxy struct{ socket string }

func startHAProxy(t *testing.T, config string) *haproxy {
	t.Helper()
	dir, err := sandboxtest.Folder("hap")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	h := &haproxy{filepath.Join(dir, "s")}
	path, extra := filepath.Join(dir, "haproxy.cfg"), filepath.Join(dir, "stats.cfg")
	for name, text := range map[string]string{path: config, extra: "global\n  stats socket " + h.socket + "\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(haproxyProgram, "-db", "-f", path, "-f", extra)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("HAProxy says:\n%s\nof\n%s", text, config)
		}
	})
	return h
}

// column is what HAProxy says of its proxies and servers, by proxy/server.
func (h *haproxy) column(name string) map[string]string {
	c, err := net.Dial("unix", h.socket)
	if err != nil {
		return nil // not there yet
	}
	defer c.Close()
	if _, err := io.WriteString(c, "show stat\n"); err != nil {
		return nil
	}
	rows, err := csv.NewReader(c).ReadAll()
	if err != nil || len(rows) == 0 {
		return nil
	}
	at := 0
	for i, n := range rows[0] {
		if n == name {
			at = i
		}
	}
	out := map[string]string{}
	for _, r := range rows[1:] {
		out[r[0]+"/"+r[1]] = r[at]
	}
	return out
}

func (h *haproxy) becomes(t *testing.T, server, state string) {
	t.Helper()
	await.Until(t, func() bool { return strings.HasPrefix(h.column("status")[server], state) }, "HAProxy's %s: want %s", server, state)
}

// through is a connection by way of HAProxy, or why there is none.
func through(t *testing.T, n *sandbox.Node, address string) (*mysql.Conn, error) {
	t.Helper()
	cfg, err := n.TCPConfig()
	if err != nil {
		t.Fatal(err)
	}
	target, err := mysql.ParseTarget(cfg.User + ":" + cfg.Passwd + "@tcp(" + address + ")/")
	if err != nil {
		t.Fatal(err)
	}
	return mysql.Connect(t.Context(), target, nil)
}

// write is an acknowledged write.
type write struct {
	server     string
	begun, end time.Time
}

// writers write through each HAProxy until stopped, each over one connection as long as that holds, and note which server acknowledged when.
func writers(t *testing.T, n *sandbox.Node, addresses []string, each int) (noted func() []write, stop func()) {
	var mu sync.Mutex
	var list []write
	over := make(chan struct{})
	var wg sync.WaitGroup
	for i := range each * len(addresses) {
		address := addresses[i%len(addresses)]
		wg.Go(func() {
			var c *mysql.Conn
			defer func() {
				if c != nil {
					c.Close()
				}
			}()
			for {
				select {
				case <-over:
					return
				case <-time.After(2 * time.Millisecond):
				}
				if c == nil {
					var err error
					if c, err = through(t, n, address); err != nil {
						c = nil
						continue
					}
				}
				begun := time.Now()
				id, err := c.Text(t.Context(), "INSERT INTO test.ledger (server) VALUES (@@server_id) RETURNING server")
				if err != nil {
					c.Close()
					c = nil
					continue
				}
				mu.Lock()
				list = append(list, write{id, begun, time.Now()})
				mu.Unlock()
			}
		})
	}
	return func() []write {
			mu.Lock()
			defer mu.Unlock()
			return append([]write(nil), list...)
		}, func() {
			close(over)
			wg.Wait()
		}
}

// TestHAProxyFollows: writers through two real HAProxys follow a primary of real servers that nobody fences: no server acknowledges a write after the next one was
// written to. Controllers may die, one or all for a while.
func TestHAProxyFollows(t *testing.T) {
	needHAProxy(t)
	s := sandboxtest.Pair(t, "mariadb")
	one, two := s.Nodes[0], s.Nodes[1]
	run(t, one, "CREATE TABLE test.ledger (id BIGINT AUTO_INCREMENT PRIMARY KEY, server INT NOT NULL)")
	await.Until(t, func() bool {
		_, err := two.Query(t.Context(), "SELECT 1 FROM test.ledger")
		return err == nil
	}, "the replica has no table")
	run(t, two, "STOP SLAVE; RESET SLAVE ALL; SET GLOBAL read_only = OFF") // nobody but HAProxy keeps writers from the wrong one
	id := map[string]string{"db1": serverID(t, one), "db2": serverID(t, two)}
	members := []group.Member{{Name: "db1", Address: fmt.Sprintf("127.0.0.1:%d", one.Port), Weight: 1}, {Name: "db2", Address: fmt.Sprintf("127.0.0.1:%d", two.Port), Weight: 1}}
	leads, follows := NewBoard(), NewBoard() // two controllers, of which the second learns everything late
	tell := func(epoch uint64, primary, replica string) {
		v := group.View{Group: "shop", Epoch: epoch, Seen: time.Now(), Since: time.Now()}
		for _, m := range members {
			switch m.Name {
			case primary:
				v.Primary = &group.Server{Name: m.Name, Address: m.Address}
			case replica:
				v.Replicas = []group.Server{{Name: m.Name, Address: m.Address, Weight: 1}}
			}
		}
		if !leads.Tell(v, members) {
			t.Fatal("an older view")
		}
		late := func() { follows.Tell(v, members) }
		if epoch == 1 {
			late()
			return
		}
		time.AfterFunc(700*time.Millisecond, late)
	}
	tell(1, "db1", "db2")
	var controllers []*httptest.Server
	o := HAProxyOptions{Writes: sandboxtest.FreeAddress(t), Reads: sandboxtest.FreeAddress(t), Local: sandboxtest.FreeAddress(t), Every: 200 * time.Millisecond, Hold: 8 * time.Second, Fallback: true}
	for _, b := range []*Board{leads, follows} {
		c := httptest.NewServer(http.HandlerFunc(NewDesk(b, time.Hour).ServeHTTP))
		t.Cleanup(c.Close)
		controllers = append(controllers, c)
		o.Ask = append(o.Ask, c.Listener.Addr().String())
	}
	config, err := HAProxy("shop", members, o)
	if err != nil {
		t.Fatal(err)
	}
	h := startHAProxy(t, config)
	h.becomes(t, "shop_primary/db1", "UP")
	h.becomes(t, "shop_primary/db2", "DOWN")
	h.becomes(t, "shop_replicas/db1", "DOWN")
	reads := func(want string) {
		t.Helper()
		await.Until(t, func() bool {
			c, err := through(t, one, o.Reads)
			if err != nil {
				return false
			}
			defer c.Close()
			got, err := c.Text(t.Context(), "SELECT @@server_id")
			return err == nil && got == want
		}, "reads do not go to %s", want)
	}
	reads(id["db2"])

	// Another HAProxy, which asks at other moments.
	beside := o
	beside.Writes, beside.Reads, beside.Local, beside.Every = sandboxtest.FreeAddress(t), "", sandboxtest.FreeAddress(t), time.Second
	if config, err = HAProxy("shop", members, beside); err != nil {
		t.Fatal(err)
	}
	h2 := startHAProxy(t, config)
	h2.becomes(t, "shop_primary/db1", "UP")
	h2.becomes(t, "shop_primary/db2", "DOWN")

	noted, stop := writers(t, one, []string{o.Writes, beside.Writes}, 2)
	writesOn := func(server string) {
		t.Helper()
		from := len(noted())
		await.Until(t, func() bool {
			list := noted()
			return len(list) > from+20 && list[len(list)-1].server == id[server]
		}, "no writes on %s", server)
	}
	writesOn("db1")
	idle, err := through(t, one, o.Writes)
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()

	tell(2, "", "db2") // a failover: nobody for a while
	h.becomes(t, "shop_primary/db1", "DOWN")
	if _, err := idle.Text(t.Context(), "SELECT 1"); err == nil {
		t.Error("a session to the old primary was not ended")
	}
	tell(3, "db2", "")
	writesOn("db2")
	reads(id["db2"])      // no replica answers: the primary does
	tell(4, "db1", "db2") // at once: what one check each would make two writers of
	writesOn("db1")
	tell(5, "db2", "db1")
	writesOn("db2")
	reads(id["db1"])

	controllers[0].Close()
	writesOn("db2")
	controllers[1].Close()
	asked := func() int {
		n := 0
		_, _ = fmt.Sscan(h.column("hrsp_2xx")["shop_checks/FRONTEND"], &n)
		return n
	}
	first := asked()
	await.Until(t, func() bool { return asked() > first+4 }, "no check was answered when nobody of Risso did")
	writesOn("db2")
	h.becomes(t, "shop_primary/db2", "DOWN") // nobody knows for too long
	stop()

	list := noted()
	var began []write // the first of each turn on a server
	for _, w := range list {
		if len(began) == 0 || began[len(began)-1].server != w.server {
			began = append(began, w)
		}
	}
	if len(began) != 4 {
		t.Errorf("writes went to and fro: %d turns, want db1, db2, db1, db2", len(began))
	}
	for _, turn := range began[1:] {
		for _, w := range list {
			if w.server != turn.server && w.begun.Before(turn.begun) && w.end.After(turn.begun) {
				t.Errorf("two writers: %s acknowledged at %s, %s was written to from %s", w.server, w.end, turn.server, turn.begun)
			}
		}
	}
	t.Logf("%d writes in %d turns, none on two servers at a time", len(list), len(began))
}

// TestHAProxyCutChecks: the servers stay what they are where the only controller dies while it is asked, at whatever point of its answer, and where what stands before it
// says that it is not there. What the controller itself says counts.
func TestHAProxyCutChecks(t *testing.T) {
	needHAProxy(t)
	members := []group.Member{{Name: "db1", Address: sandboxtest.FreeAddress(t), Weight: 1}, {Name: "db2", Address: sandboxtest.FreeAddress(t), Weight: 1}}
	v := group.View{Group: "shop", Epoch: 1, Seen: time.Now(), Since: time.Now().Add(-time.Minute)}
	v.Primary = &group.Server{Name: "db1", Address: members[0].Address}
	v.Replicas = []group.Server{{Name: "db2", Address: members[1].Address, Weight: 1}}
	board := NewBoard()
	board.Tell(v, members)
	desk := NewDesk(board, time.Hour)
	var way atomic.Value // how a check is answered
	way.Store("")
	cut := func(w http.ResponseWriter, begun string, reset bool) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		if reset {
			_ = c.(*net.TCPConn).SetLinger(0)
		}
		_, _ = io.WriteString(c, begun)
		c.Close()
	}
	controller := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch how := way.Load().(string); {
		case how == "" || strings.HasPrefix(r.URL.Path, checkGroup):
			desk.ServeHTTP(w, r)
		case how == "closed":
			cut(w, "", false)
		case how == "reset":
			cut(w, "", true)
		case how == "half a line":
			cut(w, "HTTP/1.1 20", false)
		case how == "half a header":
			cut(w, "HTTP/1.1 200 OK\r\nRisso-", false)
		default:
			status, _ := strconv.Atoi(how)
			w.WriteHeader(status)
		}
	}))
	t.Cleanup(controller.Close)
	o := HAProxyOptions{Writes: sandboxtest.FreeAddress(t), Reads: sandboxtest.FreeAddress(t), Local: sandboxtest.FreeAddress(t), Every: 100 * time.Millisecond, Hold: time.Minute, Ask: []string{controller.Listener.Addr().String()}}
	config, err := HAProxy("shop", members, o)
	if err != nil {
		t.Fatal(err)
	}
	h := startHAProxy(t, config)
	stands := func() string {
		up := h.column("status")
		return strings.Join([]string{up["shop_primary/db1"], up["shop_primary/db2"], up["shop_replicas/db1"], up["shop_replicas/db2"]}, " ")
	}
	want := "UP DOWN DOWN UP"
	await.Until(t, func() bool { return stands() == want }, "the servers are not what the controller says")
	answered := func() int {
		n := 0
		_, _ = fmt.Sscan(h.column("hrsp_2xx")["shop_checks/FRONTEND"], &n)
		return n
	}
	for _, how := range []string{"closed", "reset", "half a line", "half a header", "500", "502", "503", "504"} {
		way.Store(how)
		first := answered()
		await.Until(t, func() bool { return answered() > first+6 || stands() != want }, "%s: no check was answered", how)
		if got := stands(); got != want {
			t.Fatalf("%s: %s, want %s", how, got, want)
		}
	}
	way.Store("404")
	h.becomes(t, "shop_primary/db1", "DOWN")
}

// TestHAProxyAgents: HAProxy asks the hosts themselves, at one port and at the host of each server, as risso health and risso agent answer there.
func TestHAProxyAgents(t *testing.T) {
	needHAProxy(t)
	s := sandboxtest.Pair(t, "mariadb")
	one, two := s.Nodes[0], s.Nodes[1]
	id := []string{serverID(t, one), serverID(t, two)}
	// The second host is another address of this machine.
	first, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := first.Addr().(*net.TCPAddr).Port
	second, err := net.Listen("tcp", fmt.Sprintf("127.0.0.2:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	for i, ln := range []net.Listener{first, second} {
		p := health.NewProber(sandboxtest.Target(t, s.Nodes[i]), health.DefaultEvery, 10*time.Second, nil)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { p.Run(ctx) })
		wg.Go(func() { _ = health.NewResponder(p, health.Question{}).Serve(ctx, ln.(*net.TCPListener)) })
		t.Cleanup(func() { cancel(); wg.Wait() })
	}
	members := []group.Member{{Name: "db1", Address: fmt.Sprintf("127.0.0.1:%d", one.Port), Weight: 1}, {Name: "db2", Address: forward(t, "127.0.0.2:0", fmt.Sprintf("127.0.0.1:%d", two.Port)), Weight: 1}}
	o := HAProxyOptions{Writes: sandboxtest.FreeAddress(t), Reads: sandboxtest.FreeAddress(t), Agents: port, Every: 200 * time.Millisecond, MaxLag: time.Minute}
	config, err := HAProxy("shop", members, o)
	if err != nil {
		t.Fatal(err)
	}
	h := startHAProxy(t, config)
	comes := func(address, want string) {
		t.Helper()
		await.Until(t, func() bool {
			c, err := through(t, one, address)
			if err != nil {
				return false
			}
			defer c.Close()
			got, err := c.Text(t.Context(), "SELECT @@server_id")
			return err == nil && got == want
		}, "no client comes to server %s", want)
	}
	h.becomes(t, "shop_primary/db2", "DOWN")
	comes(o.Writes, id[0])
	comes(o.Reads, id[1])
	run(t, one, "SET GLOBAL read_only = ON")
	h.becomes(t, "shop_primary/db1", "DOWN")
	run(t, two, "STOP SLAVE; RESET SLAVE ALL; SET GLOBAL read_only = OFF")
	comes(o.Writes, id[1])
	run(t, one, "SET GLOBAL read_only = OFF") // somebody opens the old one: nobody is let in while two say yes
	h.becomes(t, "shop_primary/db1", "UP")
	if c, err := through(t, one, o.Writes); err == nil {
		c.Close()
		t.Error("a client was let in while two servers said that they are the primary")
	}
}

// forward brings what connects to one address to another one.
func forward(t *testing.T, at, to string) string {
	t.Helper()
	ln, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			go func() { _, _ = io.Copy(out, in); out.Close() }()
			go func() { _, _ = io.Copy(in, out); in.Close() }()
		}
	}()
	return ln.Addr().String()
}

func run(t *testing.T, n *sandbox.Node, statements string) {
	t.Helper()
	if _, err := n.Query(t.Context(), statements); err != nil {
		t.Fatalf("%s: %v", statements, err)
	}
}

func serverID(t *testing.T, n *sandbox.Node) string {
	t.Helper()
	r, err := n.Query(t.Context(), "SELECT @@server_id")
	if err != nil {
		t.Fatal(err)
	}
	return *r[0].Rows[0][0]
}
