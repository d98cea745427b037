package scenario_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/watch/alert"
)

// machine is a network namespace with servers in it: to the network it is one of its own.
type machine struct {
	space, here, there string // the namespace, and the address of either end of the wire to it
	nodes              []*sandbox.Node
	running            []*exec.Cmd
}

// newMachine starts n servers on a machine of their own.
func newMachine(t *testing.T, n int) *machine {
	t.Helper()
	id := os.Getpid() & 0xffff
	m := &machine{space: fmt.Sprintf("rsm%d", os.Getpid()), here: fmt.Sprintf("198.19.%d.%d", id>>8, id&0xfc|1), there: fmt.Sprintf("198.19.%d.%d", id>>8, id&0xfc|2)}
	wire := fmt.Sprintf("rsm%04x", id)
	if out, err := exec.Command("ip", "netns", "add", m.space).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: no network namespace can be made here: %v: %s", err, out)
	}
	t.Cleanup(func() {
		_ = exec.Command("ip", "link", "del", wire+"a").Run()
		_ = exec.Command("ip", "netns", "del", m.space).Run()
	})
	for _, args := range [][]string{{"link", "add", wire + "a", "type", "veth", "peer", "name", wire + "b", "netns", m.space}, {"addr", "add", m.here + "/30", "dev", wire + "a"}, {"link", "set", wire + "a", "up"},
		{"-n", m.space, "addr", "add", m.there + "/30", "dev", wire + "b"}, {"-n", m.space, "link", "set", wire + "b", "up"}, {"-n", m.space, "link", "set", "lo", "up"}} {
		ip(t, args...)
	}
	for range n {
		node := single(t, "mariadb", "innodb_buffer_pool_size=8M", "innodb_use_native_aio=OFF")
		if err := node.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.nodes = append(m.nodes, node)
	}
	m.start(t)
	t.Cleanup(m.kill)
	return m
}

func ip(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		t.Fatalf("ip %v: %v: %s", args, err, out)
	}
}

// start starts all servers.
func (m *machine) start(t *testing.T) {
	t.Helper()
	for _, n := range m.nodes {
		cmd := exec.Command("ip", "netns", "exec", m.space, n.Program.Binary, "--defaults-file="+filepath.Join(filepath.Dir(n.Datadir), "my.cnf"), "--datadir="+n.Datadir, "--bind-address=0.0.0.0")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		m.running = append(m.running, cmd)
	}
	for _, n := range m.nodes {
		await(t, n.Name+" answers", func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			_, err := n.Query(ctx, "SELECT 1")
			return err == nil
		})
	}
}

// kill ends all servers as the end of their machine does.
func (m *machine) kill() {
	for _, cmd := range m.running {
		_ = cmd.Process.Kill()
	}
	for _, cmd := range m.running {
		_ = cmd.Wait() // how it ended is known
	}
	m.running = nil
}

// signal sends all servers a signal.
func (m *machine) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	for _, cmd := range m.running {
		if err := cmd.Process.Signal(s); err != nil {
			t.Error(err)
		}
	}
}

// cut makes the machine silent to the network, or no longer: what is sent to it is lost, and nobody answers for it.
func (m *machine) cut(t *testing.T, cut bool) {
	t.Helper()
	if cut {
		ip(t, "-n", m.space, "route", "add", "blackhole", m.here+"/32")
	} else {
		ip(t, "-n", m.space, "route", "del", "blackhole", m.here+"/32")
	}
}

// watch starts Risso on the servers, with a receiver that is told of all, and one that is told of the last server only.
func (m *machine) watch(t *testing.T) (r *risso, all, last *hook) {
	t.Helper()
	all, last = newHook(t, "s3cret"), newHook(t, "s3cret")
	conf := filepath.Join(tempDir(t), "risso.yaml")
	var text strings.Builder
	fmt.Fprintf(&text, "alerts:\n  receivers:\n    - {name: all, webhook: {url: %q, secret: s3cret}}\n    - {name: last, webhook: {url: %q, secret: s3cret}}\n", all.URL, last.URL)
	fmt.Fprintf(&text, "  routes:\n    - {server: db%d, to: [last], continue: true}\n    - {to: [all]}\nservers:\n", len(m.nodes))
	for i, n := range m.nodes {
		c, err := n.TCPConfig()
		if err != nil {
			t.Fatal(err)
		}
		c.Addr = fmt.Sprintf("%s:%d", m.there, n.Port)
		fmt.Fprintf(&text, "  - {name: db%d, dsn: %q}\n", i+1, c.FormatDSN())
	}
	write(t, conf, text.String())
	r = serve(t, dataDir(t), "--no-host", "--config", conf)
	for i := range m.nodes {
		r.awaitTicks(t, fmt.Sprintf("db%d", i+1), 2)
	}
	return r, all, last
}

// messages are what came, one line each.
func (h *hook) messages() (list []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range h.got {
		list = append(list, m.Title(200))
	}
	return list
}

// TestMachineDies: six servers whose machine falls silent, or whose processes all hang or are killed, are one message to each receiver, which names them all; who
// is not told of the first hears of the one that is his. The end is told once, too, when the first is back.
func TestMachineDies(t *testing.T) {
	t.Parallel()
	m := newMachine(t, 6)
	others := []string{"db2", "db3", "db4", "db5", "db6"}
	fell, began := fmt.Sprintf("[CRITICAL] db1: all 6 servers of %s are down; the server ", m.there), fmt.Sprintf("[WARNING] db1: all 6 servers of %s were restarted; ", m.there)
	for _, c := range []struct {
		name, finding string
		die, live     func()
		says          []string // but for the ends
	}{
		{"its network is dead", "server.down", func() { m.cut(t, true) }, func() { m.cut(t, false) }, []string{fell}},
		{"its servers are stopped", "server.hung", func() { m.signal(t, syscall.SIGSTOP) }, func() { m.signal(t, syscall.SIGCONT) }, []string{fell}},
		{"its servers are killed", "server.down", m.kill, func() { m.start(t) }, []string{fell, began}},
	} {
		r, all, last := m.watch(t)
		dead := time.Now()
		c.die()
		await(t, c.name+": the message", func() bool { return len(all.told()) > 0 && len(last.told()) > 0 })
		t.Logf("%s: told after %s: %s", c.name, time.Since(dead).Round(100*time.Millisecond), all.messages())
		await(t, c.name+": all are known to be down", func() bool {
			down := 0
			for i := range m.nodes {
				if r.instance(t, fmt.Sprintf("db%d", i+1)).State == "down" {
					down++
				}
			}
			return down == len(m.nodes)
		})
		await(t, c.name+": why the others do not ring", func() bool {
			held := 0
			for _, a := range r.alerts(t).Alerts {
				if a.Phase == alert.Firing && a.Held == "because of db1/"+c.finding {
					held++
				}
			}
			return held == len(others)
		})
		if a := all.last("db1/" + c.finding); !slices.Equal(slices.Sorted(slices.Values(a.Affected)), others) || a.Severity.String() != "critical" {
			t.Errorf("%s: got %+v, want that it names %s", c.name, a, others)
		}
		if a := last.last("db6/" + c.finding); a.What == "" {
			t.Errorf("%s: got %q, want that who hears of db6 only is told of it", c.name, last.told())
		}
		c.live()
		await(t, c.name+": the end", func() bool {
			return slices.Contains(all.told(), "resolved db1/"+c.finding) && slices.Contains(last.told(), "resolved db6/"+c.finding)
		})
		got := slices.DeleteFunc(all.messages(), func(line string) bool { return strings.HasPrefix(line, "[RESOLVED]") })
		if len(got) != len(c.says) || !strings.Contains(got[0], c.says[0]) || !strings.Contains(got[len(got)-1], c.says[len(got)-1]) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.says)
		}
		var history struct{ Alerts []alert.Standing }
		r.get(t, "/api/alerts/history", url.Values{}, &history)
		if n := len(history.Alerts); n < len(m.nodes) {
			t.Errorf("%s: got %d alerts in the history, want one for each server", c.name, n)
		}
		r.kill(t)
	}
}

// TestPrimaryOfTwentyDies: twenty real replicas of a primary that is killed are one message, which names them; none of them rings by itself, also not when
// the primary is back.
func TestPrimaryOfTwentyDies(t *testing.T) {
	t.Parallel()
	s := up(t, sandbox.Options{Name: "p", Servers: []string{"mariadb"}, Topology: sandbox.TopologyReplication, Replicas: 20, StartTimeout: patience,
		Settings: []string{"innodb_buffer_pool_size=8M", "innodb_use_native_aio=OFF", "performance_schema=OFF"}})
	h, conf := newHook(t, "s3cret"), filepath.Join(tempDir(t), "risso.yaml")
	var text strings.Builder
	fmt.Fprintf(&text, "alerts:\n  receivers:\n    - {name: hook, webhook: {url: %q, secret: s3cret}}\nservers:\n", h.URL)
	for _, n := range s.Nodes {
		fmt.Fprintf(&text, "  - {name: %s, dsn: %q}\n", n.Name, n.DSN)
	}
	write(t, conf, text.String())
	r := serve(t, dataDir(t), "--no-host", "--config", conf)
	for _, n := range s.Nodes {
		r.awaitTicks(t, n.Name, 1)
	}
	primary, key := s.Primary(), s.Primary().Name+"/server.down"
	if err := primary.Kill(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	h.fires(t, key)
	await(t, "it explains all replicas", func() bool {
		held := 0
		for _, a := range r.alerts(t).Alerts {
			if a.Finding == "repl.stopped" && a.Held == "because of "+key {
				held++
			}
		}
		return held == 20
	})
	if err := primary.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.ends(t, key)
	if a := h.last(key); len(a.Affected) != 20 {
		t.Errorf("got %+v, want that it names 20 replicas", a)
	}
	for _, told := range h.told() {
		if strings.Contains(told, "repl.") {
			t.Errorf("got %q, want no word of a replica; alerts %+v", h.told(), r.alerts(t).Alerts)
		}
	}
}
