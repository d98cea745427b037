package health

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
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/lack"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// busyAge is how old what was seen may be in tests: these run on machines that do much else, and what is 503 for a moment there is no fault.
const busyAge = 10 * time.Second

// looking is the address of a responder that looks at a target, until the test ends.
func looking(t *testing.T, target mysql.Target, every, maxAge time.Duration, tell func(error)) string {
	t.Helper()
	p := NewProber(target, every, maxAge, tell)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { p.Run(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	return serving(t, p, Question{})
}

// ask returns the status and the body.
func ask(t *testing.T, address, question string) (int, string) {
	t.Helper()
	resp, err := http.Get("http://" + address + question)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, strings.TrimRight(string(text), "\r\n")
}

// becomes waits until a question is answered so.
func becomes(t *testing.T, address, question string, status int, words string) {
	t.Helper()
	var got int
	var text string
	await.Until(t, func() bool {
		got, text = ask(t, address, question)
		return got == status && strings.Contains(text, words)
	}, "%s: want %d with %q", question, status, words)
}

func run(t *testing.T, n *sandbox.Node, statements string) {
	t.Helper()
	if _, err := n.Query(t.Context(), statements); err != nil {
		t.Fatalf("%s: %v", statements, err)
	}
}

// TestHAProxy: HAProxy in front of a primary and its replica takes out what is frozen, killed, or in the other role, and brings back what is well
// again, by the examples of docs/health.md.
func TestHAProxy(t *testing.T) {
	const program = "/usr/sbin/haproxy"
	if _, err := os.Stat(program); err != nil {
		lack.Of(t, "HAProxy is not installed: run script/setup")
	}
	s := sandboxtest.Pair(t, "mariadb")
	var address [2]string
	for i, n := range s.Nodes {
		address[i] = looking(t, sandboxtest.Target(t, n), DefaultEvery, busyAge, nil)
	}
	h := startHAProxy(t, program, s.Nodes, address)
	h.becomes(t, "writes/one", "UP")
	h.becomes(t, "writes/two", "DOWN")
	h.becomes(t, "reads/one", "DOWN")
	h.becomes(t, "reads/two", "UP")
	h.becomes(t, "any/two", "UP")
	if got, want := h.serverID(t, "writes"), serverID(t, s.Nodes[0]); got != want {
		t.Errorf("a client of writes is on server %s, want %s", got, want)
	}
	goOn := sandboxtest.Pause(t, s.Nodes[1])
	h.becomes(t, "reads/two", "DOWN")
	if code, text := ask(t, address[1], "/up"); code != http.StatusServiceUnavailable || !strings.Contains(text, "does not answer") {
		t.Errorf("a frozen server: got %d %q, want 503", code, text)
	}
	goOn()
	h.becomes(t, "reads/two", "UP")

	run(t, s.Nodes[1], "STOP SLAVE SQL_THREAD")
	h.becomes(t, "reads/two", "DOWN")
	h.becomes(t, "any/two", "UP")
	if err := s.Nodes[0].Kill(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	h.becomes(t, "writes/one", "DOWN")
	h.becomes(t, "any/one", "DOWN")
	becomes(t, address[0], "/up", 503, "refuses connections")
	// The replica is made the primary.
	run(t, s.Nodes[1], "STOP SLAVE; RESET SLAVE ALL; SET GLOBAL read_only = OFF")
	h.becomes(t, "writes/two", "UP")
	if got, want := h.serverID(t, "writes"), serverID(t, s.Nodes[1]); got != want {
		t.Errorf("a client of writes is on server %s, want %s", got, want)
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

// haproxy is the real one, with its socket for questions.
type haproxy struct {
	socket string
	ports  map[string]string // of its proxies
	user   *sandbox.Node     // whose password clients use
}

func startHAProxy(t *testing.T, program string, nodes []*sandbox.Node, health [2]string) *haproxy {
	t.Helper()
	dir, err := sandboxtest.Folder("hap")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	h := &haproxy{socket: filepath.Join(dir, "s"), ports: map[string]string{}, user: nodes[0]}
	var b strings.Builder
	fmt.Fprintf(&b, "global\n  stats socket %s\ndefaults\n  mode tcp\n  timeout connect 5s\n  timeout client 1m\n  timeout server 1m\n  timeout check 5s\n", h.socket)
	for _, p := range []struct{ name, check string }{{"writes", "OPTIONS /primary"}, {"reads", "GET /replica?max-lag=30"}, {"any", "HEAD /up"}} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_, h.ports[p.name], _ = net.SplitHostPort(ln.Addr().String())
		ln.Close()
		fmt.Fprintf(&b, "listen %s\n  bind 127.0.0.1:%s\n  option httpchk %s\n  http-check expect status 200\n  default-server inter 200ms fall 1 rise 1 on-marked-down shutdown-sessions\n", p.name, h.ports[p.name], p.check)
		for i, n := range nodes {
			_, port, _ := net.SplitHostPort(health[i])
			fmt.Fprintf(&b, "  server %s 127.0.0.1:%d check addr 127.0.0.1 port %s\n", []string{"one", "two"}[i], n.Port, port)
		}
	}
	config := filepath.Join(dir, "haproxy.cfg")
	if err := os.WriteFile(config, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(dir, "log")
	f, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd := exec.Command(program, "-db", "-f", config)
	cmd.Stdout, cmd.Stderr = f, f
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			text, _ := os.ReadFile(log)
			t.Logf("HAProxy says:\n%s", text)
		}
	})
	return h
}

// states are what HAProxy says of its servers: UP or DOWN by proxy/server.
func (h *haproxy) states() map[string]string {
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
	status := 0
	for i, name := range rows[0] {
		if name == "status" {
			status = i
		}
	}
	out := map[string]string{}
	for _, r := range rows[1:] {
		out[r[0]+"/"+r[1]] = r[status]
	}
	return out
}

func (h *haproxy) becomes(t *testing.T, server, state string) {
	t.Helper()
	await.Until(t, func() bool { return strings.HasPrefix(h.states()[server], state) }, "HAProxy's %s: want %s", server, state)
}

// serverID is which server a client of a proxy comes to.
func (h *haproxy) serverID(t *testing.T, proxy string) (id string) {
	t.Helper()
	target := sandboxtest.Target(t, h.user)
	cfg, err := h.user.TCPConfig()
	if err != nil {
		t.Fatal(err)
	}
	if target, err = mysql.ParseTarget(cfg.User + ":" + cfg.Passwd + "@tcp(127.0.0.1:" + h.ports[proxy] + ")/"); err != nil {
		t.Fatal(err)
	}
	await.Until(t, func() bool {
		c, err := mysql.Connect(t.Context(), target, nil)
		if err != nil {
			return false
		}
		defer c.Close()
		id, err = c.Text(t.Context(), "SELECT @@server_id")
		return err == nil
	}, "no client comes through %s", proxy)
	return id
}

// TestGalera: a node of a cluster as clustercheck sees it: synced, desynced, read-only, and alone of three.
func TestGalera(t *testing.T) {
	if _, err := os.Stat("/usr/lib/galera/libgalera_smm.so"); err != nil {
		lack.Of(t, "Galera's library is not installed: run script/setup")
	}
	s := sandboxtest.Sandbox(t, sandbox.Options{Servers: []string{"mariadb"}, Topology: sandbox.TopologyGalera, Replicas: 2})
	n := s.Nodes[1]
	run(t, n, "CREATE USER clustercheckuser@'%' IDENTIFIED BY 'clustercheckpassword!'")
	target, err := mysql.ParseTarget("clustercheckuser:clustercheckpassword!@unix(" + n.Socket + ")/")
	if err != nil {
		t.Fatal(err)
	}
	address := looking(t, target, DefaultEvery, busyAge, nil)
	becomes(t, address, "/", 200, synced)
	becomes(t, address, "/primary", 200, synced)
	becomes(t, address, "/replica", 503, "account may not see it") // a node may replicate, too, and this account does not learn it
	run(t, n, "SET GLOBAL wsrep_desync = ON")
	becomes(t, address, "/", 503, strings.TrimSpace(notSynced))
	becomes(t, address, "/?available-when-donor=1", 200, synced)
	run(t, n, "SET GLOBAL wsrep_desync = OFF")
	becomes(t, address, "/", 200, synced)
	run(t, n, "SET GLOBAL read_only = ON")
	becomes(t, address, "/?available-when-readonly=0", 503, readOnly)
	becomes(t, address, "/", 200, synced)
	run(t, n, "SET GLOBAL read_only = OFF")
	for _, reject := range []string{"ALL", "ALL_KILL"} {
		run(t, n, "SET GLOBAL wsrep_reject_queries = "+reject)
		becomes(t, address, "/", 503, "wsrep_reject_queries")
		becomes(t, address, "/up", 503, "wsrep_reject_queries")
		becomes(t, address, "/primary", 503, "wsrep_reject_queries")
		run(t, n, "SET GLOBAL wsrep_reject_queries = NONE")
		becomes(t, address, "/", 200, synced)
	}
	for _, other := range []*sandbox.Node{s.Nodes[0], s.Nodes[2]} {
		if err := other.Kill(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	becomes(t, address, "/", 503, strings.TrimSpace(notSynced)) // one of three is no majority
	becomes(t, address, "/primary", 503, strings.TrimSpace(notSynced))
	becomes(t, address, "/up", 503, "refuses statements")
}

// TestFrozenSource: a replica whose source hangs says that it is level until it notices; what asks for a lag is told that nothing comes.
func TestFrozenSource(t *testing.T) {
	for spec, period := range map[string]string{
		"mariadb":   "STOP SLAVE; CHANGE MASTER TO MASTER_HEARTBEAT_PERIOD = 1; START SLAVE",
		"mysql-9.7": "STOP REPLICA; CHANGE REPLICATION SOURCE TO SOURCE_HEARTBEAT_PERIOD = 1; START REPLICA",
	} {
		t.Run(spec, func(t *testing.T) {
			s := sandboxtest.Pair(t, spec)
			source, n := s.Nodes[0], s.Nodes[1]
			run(t, n, period)
			p := NewProber(sandboxtest.Target(t, n), DefaultEvery, busyAge, nil)
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			wg.Go(func() { p.Run(ctx) })
			t.Cleanup(func() { cancel(); wg.Wait() })
			address := serving(t, p, Question{})
			const question = "/replica?max-lag=5"
			becomes(t, address, question, 200, "replicates")
			first := int64(-1)
			await.Until(t, func() bool { // for longer than it may be silent
				list := p.channels.Load().List
				if len(list) == 1 && first < 0 {
					first = list[0].Beats
				}
				return len(list) == 1 && list[0].BeatEvery == 1 && list[0].Beats >= first+8
			}, "heartbeats to come")
			becomes(t, address, question, 200, "replicates")
			goOn := sandboxtest.Pause(t, source)
			becomes(t, address, question, 503, "nothing came from its source")
			goOn()
			becomes(t, address, question, 200, "replicates")
		})
	}
}

// TestGroup: a member of Group Replication before, while and after it is online.
func TestGroup(t *testing.T) {
	for _, spec := range []string{"mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			port := freePort(t)
			settings := []string{"plugin_load_add=group_replication.so", "gtid_mode=ON", "enforce_gtid_consistency=ON", "log_bin=binlog",
				"loose_group_replication_group_name=3e11fa47-71ca-11e1-9e33-c80aa9429562", "loose_group_replication_start_on_boot=OFF",
				"loose_group_replication_local_address=127.0.0.1:" + port, "loose_group_replication_group_seeds=127.0.0.1:" + port}
			n := sandboxtest.Up(t, spec, settings...)
			address := looking(t, sandboxtest.Target(t, n), DefaultEvery, busyAge, nil)
			becomes(t, address, "/up", 200, "answers")
			becomes(t, address, "/primary", 503, "not online") // it is meant to be a member
			becomes(t, address, "/", 503, "no node of a Galera")
			becomes(t, address, "/group", 503, "")
			run(t, n, "SET GLOBAL group_replication_bootstrap_group = ON; START GROUP_REPLICATION; SET GLOBAL group_replication_bootstrap_group = OFF")
			becomes(t, address, "/group", 200, "online")
			becomes(t, address, "/primary", 200, "primary of its group")
			becomes(t, address, "/replica", 503, "primary of its group")
			run(t, n, "STOP GROUP_REPLICATION")
			becomes(t, address, "/group", 503, "")
			becomes(t, address, "/primary", 503, "") // it leaves with super_read_only
			run(t, n, "SET GLOBAL super_read_only = OFF; SET GLOBAL read_only = OFF; SET GLOBAL offline_mode = ON")
			becomes(t, address, "/up", 503, "offline")
		})
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	_, port, _ := net.SplitHostPort(sandboxtest.FreeAddress(t))
	return port
}

// TestLittleRights: an account without privileges learns that the server answers, and what it lacks is said with the GRANT that mends it.
func TestLittleRights(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			n := sandboxtest.Lend(t, spec)
			run(t, n, "CREATE USER health@localhost IDENTIFIED BY 'Secret-1'")
			target, err := mysql.ParseTarget("health:Secret-1@unix(" + n.Socket + ")/")
			if err != nil {
				t.Fatal(err)
			}
			told := make(chan error, 16)
			address := looking(t, target, DefaultEvery, busyAge, func(err error) { told <- err })
			becomes(t, address, "/up", 200, "answers")
			becomes(t, address, "/primary", 503, "the account may not see it")
			grant := fleet.RemedyOf(<-told)
			if !strings.HasPrefix(grant, "GRANT ") {
				t.Fatalf("the remedy is %q, want a GRANT", grant)
			}
			run(t, n, grant)
			becomes(t, address, "/primary", 200, "is a primary")
		})
	}
}

// TestDesk: several servers by name, each looked at once somebody asks, by one prober however many ask at once.
func TestDesk(t *testing.T) {
	n := sandboxtest.Lend(t, "mariadb")
	d := NewDesk(func(server string) (Asked, bool) {
		return Asked{Target: sandboxtest.Target(t, n)}, server == "shop/db 1"
	}, func(string, error) {})
	web := httptest.NewServer(d.Under("/health/"))
	defer web.Close()
	get := func(path string) int {
		resp, err := http.Get(web.URL + path)
		if err != nil {
			t.Error(err)
			return 0
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	if got := get("/health/shop%2Fdb%201/up"); got != http.StatusNotFound {
		t.Errorf("before it runs: got %d, want 404", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- d.Run(ctx) }()
	await.Until(t, func() bool { return get("/health/shop%2Fdb%201/up") == 200 }, "it answers")
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() { get("/health/shop%2Fdb%201/primary") })
	}
	wg.Wait()
	for path, want := range map[string]int{"/health/shop%2Fdb%201/nosuch": 400, "/health/shop%2Fdb%201": 503, "/health/nosuch/up": 404, "/health/": 404} {
		if got := get(path); got != want {
			t.Errorf("%s: got %d, want %d", path, got, want)
		}
	}
	if r, err := n.Query(t.Context(), "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'root'"); err != nil || *r[0].Rows[0][0] != "3" {
		t.Errorf("sessions: got %v, %v; want 3: two of the prober, and this one", *r[0].Rows[0][0], err)
	}
	d.sweep(time.Now().Add(2 * idle))
	await.Until(t, func() bool {
		r, err := n.Query(t.Context(), "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'root'")
		return err == nil && *r[0].Rows[0][0] == "1"
	}, "nobody asks, and nobody looks")
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("it ended: %v", err)
	}
}
