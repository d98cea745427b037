package publish

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/avail/publish"
	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
)

// ProxySQLAnswer are statements for ProxySQL's admin interface.
type ProxySQLAnswer struct {
	Group      string              `json:"group"`
	Epoch      uint64              `json:"epoch"` // of the view that they bring ProxySQL to
	Statements []publish.Statement `json:"statements"`
}

type proxySQL struct {
	named
	publish.ProxySQLOptions
	epoch uint64
}

func newProxySQL(s screen.Streams) *cobra.Command {
	p := &proxySQL{named: named{Streams: s}}
	cmd := &cobra.Command{
		Use:   "proxysql",
		Short: "The statements that bring ProxySQL to the primary and replicas of now",
		Long: `Writes statements for ProxySQL's admin interface, for the primary and the replicas that risso serve
knows now: the old primary is cut off (OFFLINE_HARD) and that is loaded, then the new one takes
writes. They have to be sent again after each change: as a hook of risso serve, see docs/clients.md.

ProxySQL by itself chooses writers by read_only, so that two writable servers are two writers. These
statements take that away (mysql_replication_hostgroups) for the two host groups. With --by-read-only
they set it up instead, once.`,
		Example: `  risso publish proxysql --group shop --writer-hostgroup 10 --reader-hostgroup 20
  risso publish proxysql --group shop | mysql -h 127.0.0.1 -P 6032 -u admin -p
  risso publish proxysql --group shop --member db1=10.0.0.1:3306 --member db2=10.0.0.2:3306 --by-read-only`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.run(cmd.Context()) },
	}
	p.bind(cmd)
	fl := cmd.Flags()
	fl.IntVar(&p.Writer, "writer-hostgroup", 10, "ProxySQL's host group for writes")
	fl.IntVar(&p.Reader, "reader-hostgroup", 20, "ProxySQL's host group for reads")
	fl.BoolVar(&p.ReadOnly, "by-read-only", false, "let ProxySQL choose the writer by read_only")
	flags.DurationVar(fl, &p.MaxLag, "max-lag", 0, "how far a replica may be behind, as ProxySQL's monitor sees it; 0: any")
	fl.Uint64Var(&p.epoch, "epoch", 0, "wait until risso serve knows a view of this epoch or a newer one, as RISSO_EPOCH of a hook")
	fl.BoolVar(&p.Fallback, "reads-from-primary", false, "send reads to the primary when no replica may have any")
	return cmd
}

func (p *proxySQL) run(ctx context.Context) error {
	if len(p.members) > 0 && !p.ReadOnly {
		return fault.Usagef("--member: who of them is the primary only risso serve knows; leave --member out, or give --by-read-only")
	}
	k, err := p.ofEpoch(ctx)
	if err != nil {
		return err
	}
	if age := time.Since(k.View.Seen); !p.ReadOnly && age > tooOld {
		_, err := publish.PrimaryOf(k.View, time.Now(), tooOld)
		return err
	}
	list, err := publish.ProxySQL(k.View, k.Members, p.ProxySQLOptions)
	if err != nil {
		return err
	}
	if p.output == "json" {
		return render.JSON(p.Out, ProxySQLAnswer{k.View.Group, k.View.Epoch, list})
	}
	for _, s := range list {
		if _, err := fmt.Fprintf(p.Out, "-- %s\n%s;\n", s.For, s.SQL); err != nil {
			return err
		}
	}
	return nil
}

// epochWait is how long risso serve may take to know of a change.
const epochWait = 10 * time.Second

// ofEpoch is what is known when it is new enough.
func (p *proxySQL) ofEpoch(ctx context.Context) (publish.Known, error) {
	for end := time.Now().Add(epochWait); ; {
		k, err := p.known(ctx)
		if err != nil || k.View.Epoch >= p.epoch || len(p.members) > 0 {
			return k, err
		}
		if time.Now().After(end) {
			return k, fmt.Errorf("risso serve knows epoch %d of %s, not %d", k.View.Epoch, k.View.Group, p.epoch)
		}
		if err := delay.For(ctx, 100*time.Millisecond); err != nil {
			return k, err
		}
	}
}
