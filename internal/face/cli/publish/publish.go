// Package publish is the command publish and all below it: configurations by which proxies send clients to the primary and the replicas of a group.
package publish

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/publish"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
)

// named are the flags that name a group and its servers.
type named struct {
	screen.Streams
	flags.Running
	group, output string
	members       []string
}

func (n *named) bind(cmd *cobra.Command) {
	n.Running.BindTo(cmd.Flags())
	fl := cmd.Flags()
	fl.StringVar(&n.group, "group", "", "the group (default: the only one)")
	fl.StringArrayVar(&n.members, "member", nil, "NAME=HOST:PORT: take these servers instead of asking risso serve; may be repeated")
	flags.OutputVar(fl, &n.output, "", "text", "json")
}

// known learns the group and its members, from the flags or from a running risso serve.
func (n *named) known(ctx context.Context) (k publish.Known, err error) {
	if len(n.members) == 0 {
		q := url.Values{}
		if n.group != "" {
			q.Set("group", n.group)
		}
		err = n.Do(ctx, http.MethodGet, "/api/clients?"+q.Encode(), nil, "know groups", &k)
		return k, err
	}
	if n.group == "" {
		return k, fault.Usagef("--member: say the name of the group, too, with --group")
	}
	k.View.Group = n.group
	for _, m := range n.members {
		name, address, ok := strings.Cut(m, "=")
		if !ok {
			return k, fault.Usagef("--member %q: write it as db1=10.0.0.1:3306", m)
		}
		k.Members = append(k.Members, group.Member{Name: name, Address: address, Status: group.Secondary, Weight: 1})
	}
	return k, nil
}

// tooOld is how old a view may be from which statements are made.
const tooOld = publish.DefaultMaxAge + 5*time.Second // the question took some time, and clocks differ a little

// New is risso publish.
func New(s screen.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "publish",
		Short: "Configurations of proxies that send clients to a group's primary and replicas",
		Long: `Writes what HAProxy and ProxySQL need to send the clients of a group to its primary and its
replicas. What else tells clients, over HTTP, DNS, Consul and hooks, is part of risso serve: see
docs/clients.md.`,
		Example: `  risso publish haproxy --group shop --controller 10.0.0.9:8306 > haproxy.cfg
  risso publish proxysql --group shop --writer-hostgroup 10 --reader-hostgroup 20`,
	}
	cmd.AddCommand(newHAProxy(s), newProxySQL(s))
	return cmd
}
