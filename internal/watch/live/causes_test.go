package live_test

import (
	"context"
	"fmt"
	"log/slog"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/watch/collect"
	"github.com/rissodb/risso/internal/watch/live"
)

// TestPrimaryKilled: three replicas of a primary that was killed are one cause with three effects, and none when it is back. Risso
// reaches all of them by sockets, the replicas their primary by 127.0.0.1.
func TestPrimaryKilled(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			s := sandboxtest.Sandbox(t, sandbox.Options{Servers: []string{spec}, Topology: sandbox.TopologyReplication, Replicas: 3})
			w := &watched{Board: live.New(func() live.Self { return live.Self{} })}
			var g collect.Group
			ctx, cancel := context.WithCancel(t.Context())
			t.Cleanup(func() { cancel(); g.Wait() })
			for i, n := range s.Nodes {
				target, err := mysql.ParseTarget(rootDSN(n))
				if err != nil {
					t.Fatal(err)
				}
				instance := fleet.Instance{ID: fmt.Sprintf("n%d", i), Name: n.Name, Kind: fleet.KindServer, Address: target.Address()}
				w.Add(instance)
				g.Go(ctx, collect.NewServer(target, instance, collect.Options{Sink: w, Recorder: w, Observer: w, Logger: slog.New(slog.DiscardHandler)}))
			}
			explained := func() (n int) {
				for _, r := range w.Fleet(time.Now()) {
					if len(r.Because) == 1 && r.Because[0].Instance == "n0" && r.Because[0].Finding == "server.down" && r.Because[0].Explains[0].Finding == "repl.stopped" {
						n++
					}
				}
				return n
			}
			w.await(t, "healthy replicas", func() bool {
				n := 0
				for _, r := range w.Fleet(time.Now()) {
					if r.Role == fleet.RoleReplica && r.State != "down" {
						n++
					}
				}
				return n == 3
			})
			if got, _ := w.Causes(time.Now()); len(got) != 0 {
				t.Errorf("while all is well: got %+v, want no causes", got)
			}
			if err := s.Primary().Kill(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			w.await(t, "one cause with three effects", func() bool {
				c, _ := w.Causes(time.Now())
				return len(c) == 1 && c[0].Instances() == 3 && explained() == 3
			})
			if c, _ := w.Causes(time.Now()); c[0].Instance != "n0" || c[0].What != s.Primary().Name+" is down" {
				t.Errorf("got %+v, want n0, which is down", c[0])
			}
		})
	}
}
