// Package lag is the command lag: why replicas are late, how late they really are, and when they will be level.
package lag

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/avail/lag"
	"github.com/rissodb/risso/internal/avail/lag/ask"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/oneline"
)

// Answer is what was found out about replicas.
type Answer struct {
	Channels []lag.Report    `json:"channels"`
	Failed   []fleet.Trouble `json:"failed,omitempty"` // servers of which nothing can be said
}

type command struct {
	screen.Streams
	servers flags.Servers
	source  string
	look    time.Duration
	output  string
}

// New is risso lag.
func New(s screen.Streams) *cobra.Command {
	c := &command{Streams: s}
	cmd := &cobra.Command{
		Use:   "lag",
		Short: "Why replicas are late, how late they really are, and when they will be level",
		Long: `Says for each channel of a replica how late it is, in seconds, transactions and bytes of the
source's log, when it will be level at the present rate, and what keeps it: a thread that does not
run, an error, a configured delay, the network, the disk, a lock, a table without a primary key, one
long transaction, appliers at their limit. It looks at the replica for a few seconds (--for) and
changes nothing.

Seconds_Behind_Source alone does not do: it is 0 while nothing comes from the source. So the source
is asked, too, at the address that the replica has for it, with the account of --dsn, or at --source.
Where that cannot be done the answer says so, and speaks only of what was received.

The account needs PROCESS, REPLICATION SLAVE and REPLICATION CLIENT (MariaDB: REPLICA MONITOR) on
the replica, and on the source REPLICATION CLIENT (MariaDB: BINLOG MONITOR) and REPLICATION SLAVE.

Causes, by their codes:
` + causes(),
		Example: `  risso lag --dsn 'risso:secret@tcp(db2:3306)/'
  risso lag --dsn 'risso:secret@tcp(db2:3306)/' --source 'risso:secret@tcp(db1:3306)/' --for 30s
  risso lag --config /etc/risso.yaml --all -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	c.servers.Bind(cmd)
	fl := cmd.Flags()
	fl.StringVar(&c.source, "source", "", "the source, if it is found elsewhere than where the replica finds it: user:password@tcp(host:3306)/, or the name of a server in --config")
	flags.DurationVar(fl, &c.look, "for", 5*time.Second, "how long to look")
	flags.OutputVar(fl, &c.output, "", "text", "json")
	return cmd
}

// causes lists all that may keep a replica.
func causes() string {
	var b strings.Builder
	for _, c := range lag.Codes() {
		fmt.Fprintf(&b, "  %-22s %s\n", c.Code, c.Meaning)
	}
	return strings.TrimRight(b.String(), "\n")
}

// The limits of --for.
const (
	shortest = 200 * time.Millisecond
	longest  = time.Hour
)

func (c *command) run(ctx context.Context) error {
	if c.look < shortest || c.look > longest {
		return fault.Usagef("--for %s: %s to %s", digits.Duration(c.look), shortest, digits.Duration(longest))
	}
	servers, err := c.servers.Watched()
	if err != nil {
		return err
	}
	var source *mysql.Target
	if c.source != "" {
		t, err := flags.Server{Dsn: c.source, ConfigFile: c.servers.ConfigFile, DefaultsFile: c.servers.DefaultsFile}.Target()
		if err != nil {
			return err
		}
		source = &t
	}
	type found struct {
		reports []lag.Report
		err     error
	}
	list := make([]found, len(servers))
	var all sync.WaitGroup
	for i, w := range servers {
		all.Go(func() {
			facts, err := ask.Replica(ctx, ask.Options{Target: w.Target, Source: source, For: c.look})
			if err == nil && len(facts) == 0 {
				err = errors.New("it replicates from no server")
			}
			for _, f := range facts {
				list[i].reports = append(list[i].reports, lag.Judge(w.Instance.Name, f))
			}
			list[i].err = err
		})
	}
	all.Wait()
	if len(list) == 1 && list[0].err != nil {
		return fmt.Errorf("%s: %w", servers[0].Instance.Name, list[0].err)
	}
	a := Answer{Channels: []lag.Report{}}
	for i, f := range list {
		a.Channels = append(a.Channels, f.reports...)
		if f.err != nil {
			a.Failed = append(a.Failed, fleet.Trouble{What: servers[i].Instance.Name, Why: f.err.Error(), Remedy: fleet.RemedyOf(f.err)})
		}
	}
	if c.output == "json" {
		err = render.JSON(c.Out, a)
	} else {
		err = c.write(a)
	}
	if err == nil && len(a.Failed) > 0 {
		return &fault.Told{Code: fault.Failed}
	}
	return err
}

func (c *command) write(a Answer) error {
	for i, r := range a.Channels {
		if i > 0 {
			fmt.Fprintln(c.Out)
		}
		if err := writeReport(c.Out, r); err != nil {
			return err
		}
	}
	for _, f := range a.Failed {
		if _, err := fmt.Fprintf(c.Out, "%s: unknown: %s\n", f.What, fault.Line(f.Why, f.Remedy)); err != nil {
			return err
		}
	}
	return nil
}

// heads are the words for states.
var heads = map[lag.State]string{
	lag.Level: "level with its source", lag.Applied: "has applied all that it received", lag.Delayed: "late on purpose", lag.Behind: "behind",
	lag.Stopped: "does not replicate", lag.Unknown: "unknown how late",
}

func writeReport(w io.Writer, r lag.Report) error {
	name := r.Replica
	if r.Channel != "" {
		name += " channel " + r.Channel
	}
	fmt.Fprintf(w, "%s: %s (from %s)\n", oneline.Of(name), heads[r.State], oneline.Of(cmp.Or(r.Source, "unknown")))
	line := func(label, text string) { fmt.Fprintf(w, "  %-13s %s\n", label, oneline.Of(text)) }
	if r.Seconds != nil {
		line("late by", digits.Seconds(*r.Seconds)+": "+r.SecondsBy)
	} else {
		line("late by", "unknown")
	}
	if r.Said != nil && r.Seconds != nil && r.State != lag.Level && float64(*r.Said)+2 < *r.Seconds {
		line("", fmt.Sprintf("the server itself says %s (Seconds_Behind_Source)", digits.Plural(*r.Said, "second", "seconds")))
	}
	of := "that the source has, and this replica not"
	if r.OnlyReceived {
		of = "received and not applied; what the source has beyond that is not seen"
	}
	switch {
	case r.Transactions != nil && r.Bytes != nil:
		line("to apply", digits.Counted(*r.Transactions, "transaction")+", "+digits.Bytes(*r.Bytes)+" of the source's log "+of)
	case r.Transactions != nil:
		line("to apply", digits.Counted(*r.Transactions, "transaction")+" "+of)
	case r.Bytes != nil:
		line("to apply", digits.Bytes(*r.Bytes)+" of the source's log "+of)
	default:
		line("to apply", "unknown")
	}
	line("level", r.Forecast)
	for _, c := range r.Causes {
		label := "cause"
		if !c.Certain {
			label = "likely cause"
		}
		line(label, c.Words+" ("+c.Code+")")
		for _, e := range c.Evidence {
			line("", "- "+e)
		}
		if c.NotSeen != "" {
			line("", "not seen: "+c.NotSeen)
		}
		if c.Next != "" {
			line("next", c.Next)
		}
	}
	return gaps(w, r.Gaps)
}

func gaps(w io.Writer, list []fleet.Trouble) error {
	for _, g := range list {
		text := g.What + ": " + g.Why
		if g.Remedy != "" {
			text += "; " + g.Remedy
		}
		if _, err := fmt.Fprintf(w, "  %-13s %s\n", "not seen", oneline.Of(text)); err != nil {
			return err
		}
	}
	return nil
}
