package scenario_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/store/state"
)

// TestTopologyRings: what is diagnosed of the topology rings once, also if Risso is killed meanwhile; that a primary is dead is told with that it is down.
func TestTopologyRings(t *testing.T) {
	t.Parallel()
	s := up(t, sandbox.Options{Name: "s", Servers: []string{"mariadb"}, Topology: sandbox.TopologyReplication, Replicas: 1})
	h, conf, data := newHook(t, "s3cret"), filepath.Join(tempDir(t), "risso.yaml"), dataDir(t)
	text := fmt.Sprintf("topology: {every: 2s}\nalerts:\n  receivers:\n    - {name: hook, webhook: {url: %q, secret: s3cret}}\n  thresholds:\n    - {finding: '*', for: 0s}\nservers:\n", h.URL)
	for i, n := range s.Nodes {
		c, err := n.TCPConfig()
		if err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprintf("  - {name: db%d, dsn: %q}\n", i+1, c.FormatDSN())
	}
	write(t, conf, text)
	r := serve(t, data, "--no-host", "--config", conf)
	execSQL(t, s.Nodes[1], "CREATE DATABASE own")
	const errant = "db2/repl.errant_gtid"
	a := h.fires(t, errant)
	if !strings.Contains(a.What, "has transactions that its source db1 has not") || !strings.Contains(a.Remedy, "risso gtid errant") || a.Severity != fleet.SeverityWarning {
		t.Errorf("got %+v, want a replica with errant transactions, and what to do", a)
	}
	open := func(f state.FindingRecord) bool { return f.Ended.IsZero() }
	first := r.awaitFinding(t, "db2", "repl.errant_gtid", open)
	r.kill(t)
	r = serve(t, data, "--no-host", "--config", conf)
	holds := func(instance, id string) func() bool {
		return func() bool {
			return slices.ContainsFunc(r.instance(t, instance).Findings, func(f fleet.Finding) bool { return f.ID == id })
		}
	}
	await(t, "that it holds after a kill of Risso", holds("db2", "repl.errant_gtid"))
	if f := r.awaitFinding(t, "db2", "repl.errant_gtid", open); f.ID != first.ID || !f.First.Since.Equal(first.First.Since) {
		t.Errorf("after a kill of Risso: got %+v, want the same as before, %+v", f, first)
	}

	if err := s.Nodes[0].Kill(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	h.fires(t, "db1/server.down")
	await(t, "that the primary is dead", holds("db1", "primary.dead"))
	if err := s.Nodes[0].Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.ends(t, "db1/server.down")
	r.awaitFinding(t, "db1", "primary.dead", func(f state.FindingRecord) bool { return !f.Ended.IsZero() })
	told := h.told()
	for _, once := range []string{"firing " + errant, "firing db1/server.down"} {
		if n := len(slices.DeleteFunc(slices.Clone(told), func(s string) bool { return s != once })); n != 1 {
			t.Errorf("%s was told %d times: %q", once, n, told)
		}
	}
	for _, never := range []string{"firing db1/primary.dead", "firing db2/repl.stopped"} {
		if slices.Contains(told, never) {
			t.Errorf("%s was told besides: %q", never, told)
		}
	}
}
