package carry

import (
	"context"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/fence"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestWaitsAgain: a primary whose commits waited for a moment only is kept from writes, and opened again. They wait for good by then, as the group wants.
func TestWaitsAgain(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			u := newTrio(t, spec, group.Policy{SemiSync: true})
			_, p := u.primary()
			conn := sandboxtest.Connect(t, p)
			s, err := read.SemiSyncNow(t.Context(), conn)
			if err != nil || !s.Source.Enabled {
				t.Fatalf("semi-sync: %+v, %v", s, err)
			}
			u.sql(p, "SET GLOBAL "+s.Source.Names.Prefix+"_timeout = 5000")
			err = u.carrier().leased(t.Context(), "g", func(ctx context.Context, g *group.Group) error {
				r, err := u.carrier().run(ctx, g)
				if err != nil {
					return err
				}
				defer r.close()
				r.j = &keep.Journal{Journal: failover.Journal{Group: "g", Epoch: g.Lease.Epoch}}
				_, err = r.shut(ctx, p.Name, fence.Options{Limit: r.Limits.Stop})
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := u.carrier().Open(t.Context(), "g"); err != nil {
				t.Fatal(err)
			}
			if s, err = read.SemiSyncNow(t.Context(), sandboxtest.Connect(t, p)); err != nil || !s.Source.Enabled || time.Duration(s.Source.Timeout)*time.Millisecond < time.Hour {
				t.Errorf("commits wait for %d ms (enabled %t, %v)", s.Source.Timeout, s.Source.Enabled, err)
			}
			if !u.write(p, time.Minute) {
				t.Error("it takes no write")
			}
		})
	}
}
