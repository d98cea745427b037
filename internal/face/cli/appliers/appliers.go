// Package appliers is the command appliers: how many parallel appliers pay.
package appliers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/avail/applier"
	"github.com/rissodb/risso/internal/avail/applier/logged"
	"github.com/rissodb/risso/internal/binlogevent"
	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
)

type command struct {
	screen.Streams
	flags.Logs
	since, zone, output string
	live                bool
	length              time.Duration
	commit, row         time.Duration
}

// recent is how much of a server's logs is read if nothing else is said.
const recent = "1h"

// New is risso appliers.
func New(s screen.Streams) *cobra.Command {
	c := &command{Streams: s}
	cmd := &cobra.Command{
		Use:   "appliers [FILE…] [--from PLACE | --dsn DSN]",
		Short: "How many parallel appliers pay, and what limits them",
		Long: `Replays binary logs in a simulation with 1 to 1024 workers, as replicas order transactions: MySQL
by the logical clocks in the log (LOGICAL_CLOCK), as they would be with write sets (WRITESET), and by
schema (DATABASE, at most); MariaDB optimistic, aggressive and conservative. It prints how many times as fast
as one worker each number is, the smallest number that reaches 95 % of what any could, and what limits
it, by name: a row, a table, a long transaction, the order of commits on the source; and what would help.

The time that a transaction takes is assumed: 0.1 ms and 10 µs for each row (--commit-time, --row-time), and
what a statement that is logged as text took on its source. How much other costs change the answer is shown. Disks and locks of
the replica are not in it: a replica can be slower, not faster. Rows are told apart by their primary keys,
which the log names only with binlog_row_metadata=FULL: otherwise give --dsn as well as files, or the
first column is taken for the key.

--live watches the workers of the replica --dsn instead: how busy each of them is, and what it waits for.

Nothing is changed. The account needs REPLICATION SLAVE and REPLICATION CLIENT (MariaDB: BINLOG MONITOR),
and any privilege on the tables to see their keys; for --live PROCESS, REPLICATION CLIENT (MariaDB: REPLICA
MONITOR) and SELECT on performance_schema.

` + fault.Help,
		Example: `  risso appliers binlog.000017 binlog.000018
  risso appliers --dsn 'risso@tcp(db1)/' --since 10m
  risso appliers --from /backups/db1 --since 2h -o json
  risso appliers --live --for 30s --dsn 'risso@tcp(db2)/'`,
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args) },
	}
	c.Logs.Bind(cmd)
	fl := cmd.Flags()
	fl.StringVar(&c.since, "since", "", "committed at this time or later: a time, or how long ago (default with --dsn alone: "+recent+")")
	flags.ZoneVar(fl, &c.zone)
	fl.BoolVar(&c.live, "live", false, "watch the workers of the replica that --dsn names")
	flags.DurationVar(fl, &c.length, "for", 10*time.Second, "with --live: how long to watch")
	flags.DurationVar(fl, &c.commit, "commit-time", applier.CommitTime, "what applying a transaction takes besides its rows: --live shows what all of it takes")
	flags.DurationVar(fl, &c.row, "row-time", applier.RowTime, "what applying a row takes")
	flags.OutputVar(fl, &c.output, "", "text", "json")
	cmd.MarkFlagsMutuallyExclusive("live", "from")
	for _, other := range []string{"since", "commit-time", "row-time"} {
		cmd.MarkFlagsMutuallyExclusive("live", other)
	}
	return cmd
}

func (c *command) run(ctx context.Context, args []string) error {
	if c.live {
		if len(args) > 0 {
			return fault.Usagef("--live watches a server: files contradict it")
		}
		return c.watch(ctx)
	}
	if c.commit <= 0 && c.row <= 0 {
		return fault.Usagef("--commit-time and --row-time: one of them has to be more than 0")
	}
	zone, err := flags.Zone(c.zone)
	if err != nil {
		return err
	}
	since := c.since
	if since == "" && len(args) == 0 && c.From == "" {
		since = recent
	}
	from, err := flags.Moment(since, time.Now(), zone)
	if err != nil {
		return fault.Usagef("--since %w", err)
	}
	src, err := c.Source(ctx, args)
	if err != nil {
		return err
	}
	defer src.Close()
	fill, done, err := c.columns(ctx)
	if err != nil {
		return err
	}
	defer done()
	answer, err := c.study(ctx, src, from, fill)
	if err != nil {
		return err
	}
	var unmet error
	switch {
	case answer.Transactions == 0 && !answer.Incomplete:
		hint := ""
		if answer.Before > 0 {
			hint = "ask for an earlier time with --since"
		}
		unmet = fault.New(fault.Failed, hint, errors.New("there are no transactions in what was read"))
	case answer.Incomplete:
		unmet = fault.New(fault.Failed, "get the damaged log from its server, or from another copy", errors.New("not all of these logs could be read, as the notes say: the answer is of the rest"))
	}
	if c.output == "json" {
		return errors.Join(render.JSON(c.Out, answer), unmet)
	}
	text(c.Out, &answer)
	return unmet
}

// columns is how columns that logs do not name are found out, if there is a server to ask.
func (c *command) columns(ctx context.Context) (fill func(*binlogevent.Table), done func(), err error) {
	if c.Dsn == "" {
		return nil, func() {}, nil
	}
	t, err := c.Target()
	if err != nil {
		return nil, nil, err
	}
	conn, err := mysql.Connect(ctx, t, nil)
	if err != nil {
		return nil, nil, flags.LogFailure(err)
	}
	live := binlog.NewLive(conn)
	return func(t *binlogevent.Table) { binlog.FillColumns(ctx, t, live.Columns) }, func() { conn.Close() }, nil
}

// study reads the logs.
func (c *command) study(ctx context.Context, src flags.LogSource, from time.Time, fill func(*binlogevent.Table)) (Answer, error) {
	files := src.Files
	if !from.IsZero() {
		var err error
		if files, err = binlog.Since(ctx, files, from); err != nil {
			return Answer{}, c.ended(ctx, err)
		}
	}
	p := screen.NewProgress(c.Err)
	defer p.End()
	total, read := int64(0), int64(0)
	for _, f := range files {
		total += f.Size
	}
	r := logged.New(logged.Options{From: from, Fill: fill, Commit: c.commit, Row: c.row, Tell: func(n int64) {
		read += n
		p.Set(read, total)
	}})
	for i, f := range files {
		if err := readLog(ctx, r, f, i+1 == len(files)); err != nil {
			return Answer{}, c.ended(ctx, err)
		}
	}
	answer := Answer{Result: r.Result()}
	if lacks := src.Series.Lacks(); lacks != "" {
		answer.Notes, answer.Incomplete = append(answer.Notes, lacks), true
	}
	answer.Advice = answer.Advise(r.Server())
	_, answer.Workers = answer.Choice()
	return answer, nil
}

func readLog(ctx context.Context, r *logged.Reader, f binlog.File, last bool) error {
	in, err := f.Open(ctx)
	if err != nil {
		return fmt.Errorf("open %s: %w", f.Name, err)
	}
	defer in.Close()
	return r.Read(ctx, f.Name, in, last)
}

// ended makes an interrupted command say so.
func (c *command) ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fault.New(fault.Interrupted, "", errors.New("interrupted"))
	}
	return flags.LogFailure(err)
}

// Answer is how many parallel appliers pay for what was read.
type Answer struct {
	logged.Result
	Workers int              `json:"workers"` // that are recommended; 0: there are no transactions
	Advice  []applier.Advice `json:"advice"`
}
