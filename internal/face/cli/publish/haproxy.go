package publish

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/avail/publish"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
)

// HAProxyAnswer is a configuration for HAProxy.
type HAProxyAnswer struct {
	Group  string `json:"group"`
	Config string `json:"config"` // the file
}

type haproxy struct {
	named
	publish.HAProxyOptions
}

func newHAProxy(s screen.Streams) *cobra.Command {
	h := &haproxy{named: named{Streams: s}}
	cmd := &cobra.Command{
		Use:   "haproxy",
		Short: "A configuration by which HAProxy follows the primary",
		Long: `Writes a configuration for HAProxy 2.4 or newer: one address for writes, one for reads. All servers
of the group are in it, and HAProxy asks risso serve each --every which of them may have clients. So
it is written once, and again only when servers join or leave the group, or weights change.

When a server is the primary no longer, its sessions are ended. The next one gets clients only when
every HAProxy has certainly asked again (--every and one second after the old one was told for the last
time): there are never two. --single takes that wait away where there is only one. HAProxy asks another --controller where
one does not answer. Where none answers, servers stay as they are for --hold, and are down then.

With --agents each database host is asked instead, at that port: by risso agent or risso health. Then
nothing but the servers themselves keeps two of them from taking writes at once.`,
		Example: `  risso publish haproxy --group shop --controller 10.0.0.9:8306 > haproxy.cfg
  risso publish haproxy --group shop --controller 10.0.0.8:8306 --controller 10.0.0.9:8306 --max-lag 5s
  risso publish haproxy --group shop --member db1=10.0.0.1:3306 --member db2=10.0.0.2:3306 --agents 9200`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return h.run(cmd.Context()) },
	}
	h.bind(cmd)
	fl := cmd.Flags()
	fl.StringVar(&h.Writes, "listen", ":3306", "address at which HAProxy takes connections for the primary")
	fl.StringVar(&h.Reads, "listen-reads", ":3307", "address at which it takes connections for replicas; empty: none")
	fl.StringArrayVar(&h.Ask, "controller", nil, "HOST:PORT of a risso serve that HAProxy asks; may be repeated (default: that of --url)")
	fl.IntVar(&h.Agents, "agents", 0, "ask the database hosts themselves, at this port")
	fl.StringVar(&h.Local, "local", publish.DefaultHAProxyLocal, "address on HAProxy's machine by which it asks controllers")
	flags.DurationVar(fl, &h.Every, "every", publish.DefaultHAProxyEvery, "how often HAProxy asks")
	flags.DurationVar(fl, &h.Hold, "hold", publish.DefaultHAProxyHold, "how long servers stay as they are when no controller answers; 0s: not at all")
	flags.DurationVar(fl, &h.MaxLag, "max-lag", 0, "how far a replica may be behind; 0: any")
	fl.BoolVar(&h.Single, "single", false, "this is the only HAProxy in front of the group: clients need not wait for another one")
	fl.BoolVar(&h.Fallback, "reads-from-primary", false, "send reads to the primary when no replica may have any")
	return cmd
}

func (h *haproxy) run(ctx context.Context) error {
	if h.Agents != 0 && len(h.Ask) > 0 {
		return fault.Usagef("either --agents or --controller")
	}
	if h.Every < 50*time.Millisecond {
		return fault.Usagef("--every %s: at least 50ms", h.Every)
	}
	k, err := h.known(ctx)
	if err != nil && h.To == "" && len(h.Ask) > 0 { // nobody is there by default: those that HAProxy is to ask know it as well
		h.To = "http://" + h.Ask[0]
		if again, aerr := h.known(ctx); aerr == nil {
			k, err = again, nil
		}
	}
	if err != nil {
		return err
	}
	if h.Agents == 0 && len(h.Ask) == 0 {
		if h.URL == "" { // nobody was asked
			if err := h.Find("--url"); err != nil {
				return err
			}
		}
		u, err := url.Parse(h.URL)
		if err != nil || u.Port() == "" || u.Scheme != "http" {
			return fault.New(fault.Usage, "give it as --controller HOST:PORT", errors.New("where HAProxy is to ask risso serve is not known"))
		}
		h.Ask = []string{u.Host}
	}
	text, err := publish.HAProxy(k.View.Group, k.Members, h.HAProxyOptions)
	if err != nil {
		return err
	}
	if h.output == "json" {
		return render.JSON(h.Out, HAProxyAnswer{k.View.Group, text})
	}
	_, err = fmt.Fprint(h.Out, text)
	return err
}
