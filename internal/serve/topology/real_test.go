package topology_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/topology/picture"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/serve/config"
	"github.com/rissodb/risso/internal/serve/topology"
	"github.com/rissodb/risso/internal/store/state"
)

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m)) }

// looked is a room that a test looks with.
type looked struct {
	t     *testing.T
	store *state.Store
	list  []config.Watched
	shift time.Duration // how far the room's clock is ahead, for questions
	found map[string][]fleet.Finding
	*topology.Room
}

func (l *looked) begin() {
	l.found = map[string][]fleet.Finding{}
	l.Room = topology.New(topology.Options{Servers: func() []config.Watched { return l.list }, Config: config.Topology{Every: 10 * time.Second}, Facts: l.store, Logger: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return time.Now().Add(l.shift) }, Found: func(instance string, list []fleet.Finding) { l.found[instance] = list }})
}

// sees looks until what is seen is as it should be.
func (l *looked) sees(what string, is func(p *picture.Picture) bool) *picture.Picture {
	l.t.Helper()
	var p *picture.Picture
	await.Until(l.t, func() bool {
		l.Look(l.t.Context())
		p = l.Current().Shown
		if is(p) {
			return true
		}
		l.t.Logf("waits to see %s:\n%s\n%s", what, p.Words, p.Tree(0))
		return false
	}, "it was not seen %s", what)
	return p
}

// bad is what was told of an instance last, without what is only information.
func (l *looked) bad(instance string) []fleet.Finding {
	return slices.DeleteFunc(slices.Clone(l.found[instance]), func(f fleet.Finding) bool { return f.Severity <= fleet.SeverityInfo })
}

func named(p *picture.Picture, name string) *picture.Node {
	for i := range p.Nodes {
		if p.Nodes[i].Name == name {
			return &p.Nodes[i]
		}
	}
	return &picture.Node{}
}

// target is a server as all servers of a sandbox are reached with one account.
func target(t *testing.T, n *sandbox.Node) mysql.Target {
	t.Helper()
	c, err := n.TCPConfig()
	if err != nil {
		t.Fatal(err)
	}
	target, err := mysql.ParseTarget(c.FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// to is the link by which a node replicates.
func to(p *picture.Picture, name string) picture.Link {
	for _, l := range p.Links {
		if p.Nodes[l.Replica].Name == name {
			return l
		}
	}
	return picture.Link{}
}

// TestRoom looks at a primary and two replicas, of which one is not watched: stopped, hung, killed, and what is told of it later.
func TestRoom(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			box := sandboxtest.Sandbox(t, sandbox.Options{Servers: []string{spec}, Topology: sandbox.TopologyReplication, Replicas: 2})
			file := filepath.Join(t.TempDir(), "state.db")
			store, err := state.Open(t.Context(), file)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { store.Close() }()
			l := &looked{t: t, store: store}
			for i, name := range []string{"db1", "db2"} {
				l.list = append(l.list, config.Watched{Instance: fleet.Instance{ID: name, Name: name}, Target: target(t, box.Nodes[i])})
			}
			l.begin()
			if a := l.Current(); a.Known || a.Why != "the first look goes on" {
				t.Errorf("before the first look: %+v", a)
			}
			p := l.sees("that all is well", func(p *picture.Picture) bool { return p.State == picture.OK && len(p.Nodes) == 3 && len(p.Links) == 2 })
			other := ""
			for i := range p.Nodes {
				if p.Nodes[i].Instance == "" {
					other = p.Nodes[i].Name
				}
			}
			calm := p.Time

			conn := sandboxtest.Connect(t, box.Nodes[1])
			word := "REPLICA"
			if conn.Server.KnowsSlaveWords() {
				word = "SLAVE"
			}
			if err := conn.Exec(t.Context(), "STOP "+word); err != nil {
				t.Fatal(err)
			}
			p = l.sees("that db2 is stopped", func(p *picture.Picture) bool { return to(p, "db2").Kind == picture.Stopped })
			if !strings.HasPrefix(p.Words, "db2: stopped, since ") {
				t.Errorf("says %q", p.Words)
			}
			if err := conn.Exec(t.Context(), "START "+word); err != nil {
				t.Fatal(err)
			}
			l.sees("that db2 runs", func(p *picture.Picture) bool { return to(p, "db2").Kind == picture.Runs })

			if err := box.Nodes[2].Kill(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			p = l.sees("that one hangs", func(p *picture.Picture) bool { return !named(p, other).Seen })
			if n := named(p, other); n.State != picture.Warning || !strings.HasPrefix(n.Words[0], "no answer for ") || to(p, other).Kind == "" || to(p, other).State == picture.Critical {
				t.Errorf("a server that hangs: %+v, %+v", n, to(p, other))
			}
			if err := box.Nodes[2].Kill(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			l.sees("that it answers", func(p *picture.Picture) bool { return p.State == picture.OK })

			if err := box.Nodes[0].Kill(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			dead := l.sees("that the primary is gone, and that both replicas cannot reach it", func(p *picture.Picture) bool {
				return named(p, "db1").State == picture.Critical && to(p, "db2").Kind == picture.Connecting && to(p, other).Kind == picture.Connecting
			})
			if len(dead.Nodes) != 3 || len(dead.Links) != 2 || !strings.HasPrefix(dead.Words, "db1: nothing listens there, since ") {
				t.Errorf("%d nodes, %d links: %s", len(dead.Nodes), len(dead.Links), dead.Words)
			}
			dead = l.sees("that a dead primary is a finding", func(*picture.Picture) bool { return len(l.bad("db1")) > 0 })
			told := l.bad("db1")[0]
			if told.ID != "primary.dead" || told.Severity != fleet.SeverityCritical || told.Since.IsZero() || len(l.bad("db1")) > 1 {
				t.Errorf("of db1 is told: %+v", l.bad("db1"))
			}
			if list := l.bad("db2"); len(list) > 0 { // that it does not replicate is a rule's; of the other one it follows from the primary's death
				t.Errorf("of db2 is told: %+v", list)
			}

			// As if the process was killed: the store is opened again, and nobody looked meanwhile.
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			if store, err = state.Open(t.Context(), file); err != nil {
				t.Fatal(err)
			}
			l.store, l.shift = store, 3*time.Minute
			l.begin()
			ended := dead.Time.Truncate(time.Microsecond) // as the store keeps times
			ask := func(at time.Time) topology.Answer {
				t.Helper()
				a, err := l.At(t.Context(), at)
				if err != nil {
					t.Fatal(err)
				}
				return a
			}
			if a := ask(calm); !a.Known || a.Shown.State != picture.OK || len(a.Shown.Links) != 2 {
				t.Errorf("at first: %+v", a)
			}
			if a := ask(ended); !a.Known || a.Shown.Words != dead.Words || to(a.Shown, "db2").Kind != picture.Connecting {
				t.Errorf("at the end: %+v, want %s", a, dead.Words)
			}
			if a := ask(calm.Add(-time.Hour)); a.Known || !strings.HasPrefix(a.Why, "it was looked at from ") {
				t.Errorf("before all: %+v", a)
			}
			if a := ask(ended.Add(time.Minute)); a.Known || !strings.HasPrefix(a.Why, "risso serve did not look from ") {
				t.Errorf("while nobody looked: %+v", a)
			}
			changes, err := l.Changes(t.Context(), calm.Add(-time.Hour), time.Now().Add(time.Hour), 100)
			if err != nil {
				t.Fatal(err)
			}
			var words []string
			for _, c := range changes.Changes {
				words = append(words, c.Words...)
			}
			all := strings.Join(words, "\n")
			for _, want := range []string{"db2 ← db1: stopped", "db1: nothing listens there", other + ": no answer for", other + " is seen again"} {
				if !strings.Contains(all, want) {
					t.Errorf("%q is not among what changed:\n%s", want, all)
				}
			}
			resumed(t, l, other)
			if list := l.bad("db1"); len(list) != 1 || list[0].ID != "primary.dead" || !list[0].Since.Truncate(time.Microsecond).Equal(told.Since.Truncate(time.Microsecond)) {
				t.Errorf("after a restart is told of db1: %+v; want what was told before: %+v", list, told)
			}
		})
	}
}

// resumed looks at a room that goes on after a restart of risso serve, while the primary is down and the unwatched replica is known only from before.
func resumed(t *testing.T, l *looked, other string) {
	l.shift = 0
	l.begin()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	await.Until(t, func() bool { return l.Current().Known }, "the first look did not end")
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	p := l.Current().Shown
	if n := named(p, other); len(p.Nodes) != 3 || len(p.Links) != 2 || !n.Seen || n.Instance != "" {
		t.Errorf("after a restart: %d nodes, %d links, %+v", len(p.Nodes), len(p.Links), n)
	}
	changes, err := l.Changes(t.Context(), time.Now().Add(-time.Hour), time.Now().Add(time.Hour), 2)
	if err != nil || !changes.Left || len(changes.Changes) < 2 || !changes.Changes[1].Gap {
		t.Errorf("that nobody looked is not among the changes: %+v, %v", changes, err)
	}
}
