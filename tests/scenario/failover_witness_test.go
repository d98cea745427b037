package scenario_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/sandbox"
)

// TestAnotherController: a primary that neither the leader of two controllers nor its replicas hear is not replaced while the other controller reaches it, and is when that loses it, too.
func TestAnotherController(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make network namespaces")
	}
	t.Parallel()
	box := up(t, sandbox.Options{Servers: []string{"mariadb"}, Topology: sandbox.TopologyReplication, Replicas: 2, SemiSync: true, Network: true})
	place := func(name string) sandbox.Place {
		p, err := box.Network.Place(name)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	// run runs risso to its end at a place.
	run := func(at sandbox.Place, args ...string) string {
		t.Helper()
		r := launchProgram(t, "ip", nil, append([]string{"netns", "exec", at.Namespace, binary}, args...)...)
		if code := r.code(t); code != 0 {
			t.Fatalf("risso %s: exit code %d: %s", strings.Join(args, " "), code, r.err)
		}
		return r.out.String()
	}
	control, clients := place(sandbox.Control), place(sandbox.Clients)
	one, two := dataDir(t), dataDir(t)
	create := []string{"group", "create", "g", "--semi-sync", "--data", one}
	for _, n := range box.Nodes {
		c, err := n.TCPConfig()
		if err != nil {
			t.Fatal(err)
		}
		create = append(create, "--dsn", fmt.Sprintf("%s=%s:%s@tcp(%s)/", n.Name, c.User, c.Passwd, c.Addr))
	}
	run(control, create...)
	run(control, "group", "prepare", "g", "--yes", "--data", one, "--state", filepath.Join(tempDir(t), "prepare"))
	run(control, "controller", "init", "--name", "one", "--address", control.Address+":8307", "--data", one)
	serves := func(at sandbox.Place, data string) *risso {
		r := launchCommand(t, exec.Command("ip", "netns", "exec", at.Namespace, binary, "serve", "--listen", "127.0.0.1:0", "--data", data, "--failover", "auto", "--host-only", "--no-statements", "--verbose"), nil)
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("the log of %s: %s", data, r.err)
			}
		})
		return r
	}
	leader := serves(control, one)
	await(t, "the first controller to be ready", func() bool { return readyForm.MatchString(leader.out.String() + leader.err.String()) })
	invitation := filepath.Join(tempDir(t), "invitation")
	run(control, "controller", "invite", invitation, "--data", one)
	run(clients, "controller", "join", invitation, "--name", "two", "--address", clients.Address+":8307", "--data", two)
	serves(clients, two)
	(&controller{data: one}).awaitAll(t, 2)
	primary := func() (name string) {
		var a struct {
			Groups []struct{ Members []squadMember }
		}
		if err := json.Unmarshal([]byte(run(control, "group", "show", "g", "--data", one, "-o", "json")), &a); err != nil {
			t.Fatal(err)
		}
		for _, m := range a.Groups[0].Members {
			if m.Status == "PRIMARY" {
				name = m.Name
			}
		}
		return name
	}
	old := box.Nodes[0].Name
	if now := primary(); now != old {
		t.Fatalf("the primary is %q, not %s", now, old)
	}
	await(t, "the first controller to lead", func() bool {
		for _, m := range (&controller{data: one}).members(t) {
			if m.Epoch > 0 && m.Name == "one" {
				return true
			}
		}
		run(control, "controller", "lead", "one", "--data", one)
		return false
	})
	cut := func(places ...string) {
		for _, from := range places {
			for _, way := range [][2]string{{from, old}, {old, from}} {
				if err := box.Network.Cut(t.Context(), way[0], way[1]); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	cut(sandbox.Control, box.Nodes[1].Name, box.Nodes[2].Name)
	await(t, "the leader to hear that the other controller reaches the primary", func() bool {
		return strings.Contains(leader.err.String(), "nor do replicas hear it, but it answers controller two")
	})
	time.Sleep(8 * time.Second) // a frozen primary is replaced within six
	if now := primary(); now != old {
		t.Fatalf("%s was promoted, though the other controller reaches %s", now, old)
	}
	cut(sandbox.Clients)
	await(t, "another primary", func() bool { return primary() != old })
}
