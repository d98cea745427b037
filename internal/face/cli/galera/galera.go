// Package galera is the command galera and all below it: a Galera cluster as it is, as it is planned, and how it is started again.
package galera

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/avail/galera"
	"github.com/rissodb/risso/internal/avail/galera/ask"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
)

// command is risso galera.
type command struct {
	screen.Streams
	flags.Server
	look     time.Duration
	datadirs []string
	logs     []string
	output   string
}

// lookDefault is for how long counters are watched, and lookMost the longest.
const (
	lookDefault = 2 * time.Second
	lookMost    = time.Hour
)

// New is risso galera.
func New(s screen.Streams) *cobra.Command {
	c := &command{Streams: s}
	cmd := &cobra.Command{
		Use:   "galera",
		Short: "A Galera cluster: members, quorum, flow control, conflicts, and what endangers it",
		Long: `Asks the members of a Galera cluster (MariaDB, Percona XtraDB Cluster), found from any one of
them, and says how they are; what the cluster survives: each member lost, and how many at once; whether
flow control pauses writes, and for which member; which tables and rows transactions of several
members collide on; and which settings endanger it, each with what mends it. Nothing is changed.

The other members are asked by the same account. One that does not answer is shown as not seen.
Any account sees most; SELECT on mysql.wsrep_cluster_members tells the names of members that do not answer, and
privileges on all tables those without a primary key. Error logs are read where the server runs on this
machine, or tells its log itself.

--datadir names the data directory of a node that is down, or a folder with copies of its grastate.dat,
gvwstate.dat and error log: whether it would take the transactions that it missed (IST), or a copy of all
data (SST).`,
		Example: `  risso galera --dsn 'risso:secret@tcp(db1:3306)/'
  risso galera --dsn db1 --config risso.yaml --look 10s
  risso galera --dsn db1 --config risso.yaml --datadir /var/lib/mysql
  risso galera plan --nodes 5 --dcs 2,2,1`,
		Args: flags.AtMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	fl := cmd.Flags()
	c.Bind(cmd, "any member of the cluster")
	flags.DurationVar(fl, &c.look, "look", lookDefault, "for how long flow control and conflicts are watched; 0: only what was counted before")
	fl.StringArrayVar(&c.datadirs, "datadir", nil, "data directory of a node that is down, or NAME=DIR; may be repeated")
	fl.StringArrayVar(&c.logs, "error-log", nil, "error log of a node of --datadir that is not in it: DIR=FILE or NAME=FILE; may be repeated")
	flags.OutputVar(fl, &c.output, "", "text", "json")
	cmd.AddCommand(newPlan(s), newBootstrap(s))
	return cmd
}

func (c *command) run(ctx context.Context) error {
	if c.look < 0 || c.look > lookMost {
		return fault.Usagef("--look: 0 to 1h")
	}
	down, err := nodes(c.datadirs, c.logs)
	if err != nil {
		return err
	}
	target, err := c.Target()
	if err != nil {
		return err
	}
	readings, looked, err := ask.Look(ctx, target, c.look)
	if err != nil {
		return err
	}
	r := galera.Judge(time.Now(), looked, readings, down)
	if c.output == "json" {
		return render.JSON(c.Out, r)
	}
	return c.text(r)
}

// nodes reads the data directories that are named.
func nodes(datadirs, logs []string) (list []galera.Node, err error) {
	byNode := map[string][]string{}
	for _, l := range logs {
		node, file, ok := strings.Cut(l, "=")
		if !ok || node == "" || file == "" {
			return nil, fault.Usagef("--error-log %q: write it as DIR=FILE or NAME=FILE", l)
		}
		byNode[node] = append(byNode[node], file)
	}
	for _, d := range datadirs {
		name, dir, named := strings.Cut(d, "=")
		if !named {
			name, dir = d, d
		}
		files := byNode[dir]
		delete(byNode, dir)
		if named {
			files = append(files, byNode[name]...)
			delete(byNode, name)
		}
		n, err := ask.Datadir(d, files)
		if err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	for node := range byNode {
		return nil, fault.Usagef("--error-log %s=…: no --datadir has that name", node)
	}
	return list, nil
}
