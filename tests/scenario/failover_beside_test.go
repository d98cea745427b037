package scenario_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/sandbox"
)

// TestControllerBeside: a risso serve that would fail a group over, and runs alone on the machine of its primary, dies with it. It says so, and so does risso group health, whose exit code stays 0; on a
// third machine nothing is wrong.
func TestControllerBeside(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can make network namespaces")
	}
	box := up(t, sandbox.Options{Servers: []string{"mariadb"}, Topology: sandbox.TopologyReplication, Replicas: 1, Network: true})
	data := tempDir(t)
	home := environment(tempDir(t))
	// at runs a program on the machine of that name.
	at := func(place string, args ...string) *risso {
		t.Helper()
		p, err := box.Network.Place(place)
		if err != nil {
			t.Fatal(err)
		}
		var r *risso
		if err := p.Do(func() error { r = launchCommand(t, exec.Command(binary, args...), home); return nil }); err != nil {
			t.Fatal(err)
		}
		return r
	}
	says := func(place string, args ...string) string {
		t.Helper()
		r := at(place, args...)
		if code := r.code(t); code != 0 {
			t.Fatalf("risso %s at %s: exit code %d: %s%s", strings.Join(args, " "), place, code, r.out, r.err)
		}
		return r.out.String()
	}
	create := []string{"group", "create", "g", "--data", data}
	for _, n := range box.Nodes {
		c, err := n.TCPConfig()
		if err != nil {
			t.Fatal(err)
		}
		create = append(create, "--dsn", fmt.Sprintf("%s=%s:%s@tcp(%s)/", n.Name, c.User, c.Passwd, c.Addr))
	}
	primary, replica := box.Nodes[0].Name, box.Nodes[1].Name
	says(sandbox.Control, create...)
	want := "the only controller of g is on the machine of " + primary + ", the primary"
	for place, told := range map[string]bool{primary: true, replica: false, sandbox.Control: false} {
		for _, output := range []string{"text", "json"} {
			if got := says(place, "group", "health", "g", "-o", output, "--data", data); strings.Contains(got, want) != told {
				t.Errorf("risso group health at %s: %s", place, got)
			}
		}
	}
	execSQL(t, box.Nodes[1], "STOP SLAVE SQL_THREAD") // by what is wrong then it is seen that the group was looked at
	for place, told := range map[string]bool{primary: true, sandbox.Control: false} {
		folder := filepath.Join(tempDir(t), place)
		says(place, append(create[:4:4], append([]string{folder}, create[5:]...)...)...)
		s := at(place, "serve", "--listen", "127.0.0.1:0", "--data", folder, "--failover", "auto", "--host-only", "--no-members")
		s.awaitReady(t)
		finds := func() string { return says(place, "events", "--findings", "--url", s.base, "-o", "json") }
		var got string
		await(t, "a finding", func() bool { got = finds(); return strings.Contains(got, "failover.unready") })
		if strings.Contains(got, `"failover.controller"`) != told || strings.Contains(got, want) != told || strings.Contains(got, `"info"`) != told {
			t.Errorf("the findings at %s: %s", place, got)
		}
	}
}
