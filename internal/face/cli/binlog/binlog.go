// Package binlog holds the commands about binary logs.
package binlog

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/binlogevent"
	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/data/binlog/mirror"
	"github.com/rissodb/risso/internal/data/places"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/pattern"
	"github.com/rissodb/risso/internal/store/blob"
)

// New is risso binlog, with what is below it.
func New(s screen.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "binlog",
		Short: "Mirror and search binary logs, undo a statement, roll forward",
		Long: `Binary logs of MySQL and MariaDB: mirrored as they are written, searched for a mistake,
turned into the statements that undo it, or applied to a server up to just before it.

` + fault.Help,
		Example: `  risso binlog follow --dsn 'risso@tcp(db1)/' --to /backups/db1
  risso binlog search --from /backups/db1 --table shop.orders --kind delete --rows-over 1000
  risso binlog undo --dsn 'risso@tcp(db1)/' --gtid 0-1-4711
  risso binlog apply --from /backups/db1 --after 0-1-4000 --before 0-1-4711 --into 'root@tcp(spare)/'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBinlogFollow(s), newBinlogList(s), newBinlogSearch(s), newBinlogUndo(s), newBinlogApply(s), newBinlogPurge(s))
	return cmd
}

// ended makes an interrupted command say so.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fault.New(fault.Interrupted, "", errors.New("interrupted"))
	}
	return flags.LogFailure(err)
}

// tableFlags say which tables are meant.
type tableFlags struct {
	schemas, tables []string
	choice          *pattern.Choice // of filter
}

func (f *tableFlags) bind(cmd *cobra.Command, what string) {
	fl := cmd.Flags()
	fl.StringArrayVar(&f.schemas, "schema", nil, what+" of this schema; patterns with * allowed; may be repeated")
	fl.StringArrayVar(&f.tables, "table", nil, what+" of this table, schema.table; patterns with * allowed, a name with dots in backticks; may be repeated")
}

// filter returns nil if no table was named.
func (f *tableFlags) filter() (binlog.TableFilter, error) {
	if len(f.schemas)+len(f.tables) == 0 {
		return nil, nil
	}
	var err error
	if f.choice, err = pattern.NewChoice(f.schemas, f.tables); err != nil {
		return nil, fault.Usagef("--table: %w", err)
	}
	return f.choice.Table, nil
}

// schema reports whether a schema may have tables that are meant.
func (f *tableFlags) schema(name string) bool { return f.choice.May(name, false) }

// unmet is an error that says which names nothing has been called that was read; in are the events in which there is none.
func (f *tableFlags) unmet(in string) error {
	var unmet *pattern.UnmetError
	if f.choice == nil || !errors.As(f.choice.Unmet(), &unmet) {
		return nil
	}
	return fault.New(fault.Failed, unmet.Remedy(), fmt.Errorf("%s changes %s", in, strings.Join(unmet.Names, ", nor ")))
}

// misnamed reports whether one of these names is no pattern.
func (f *tableFlags) misnamed() bool {
	var unmet *pattern.UnmetError
	return f.choice != nil && errors.As(f.choice.Unmet(), &unmet) && unmet.Exact() != nil
}

// rollProgress shows how far the reading of logs is.
func rollProgress(p *screen.Progress) func(binlog.Progress) {
	return func(b binlog.Progress) { p.Set(b.Bytes, b.Total) }
}

func newBinlogList(s screen.Streams) *cobra.Command {
	var f flags.Logs
	var output string
	var verify bool
	cmd := &cobra.Command{
		Use:   "list [FILE…] [--from PLACE | --dsn DSN]",
		Short: "List binary logs: times, GTIDs, sizes, gaps",
		Long: `Lists binary logs with their first and last times, GTIDs and sizes, and the gaps between
them. Files and the logs of a live server are read in full; for mirrored logs the index is
enough, and --verify reads the logs and compares them with it.

` + fault.Help,
		Example: `  risso binlog list --from /backups/db1
  risso binlog list --from /backups/db1 --verify
  risso binlog list /var/lib/mysql/binlog.0000*`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runBinlogList(cmd.Context(), s, f, output, verify, args)
		},
	}
	f.Bind(cmd)
	fl := cmd.Flags()
	fl.BoolVar(&verify, "verify", false, "read every mirrored log and compare it with its index")
	flags.OutputVar(fl, &output, "", "text", "json")
	return cmd
}

// ListedLogs is a series of logs.
type ListedLogs struct {
	Series string       `json:"series,omitempty"`
	Logs   []mirror.Log `json:"logs"`
	Gaps   []mirror.Gap `json:"gaps"`
	Lost   []string     `json:"lost,omitempty"` // logs without an index, which are not read
	lacks  string       // the same in words
}

func runBinlogList(ctx context.Context, s screen.Streams, f flags.Logs, output string, verify bool, args []string) error {
	if verify && f.From == "" {
		return fault.Usagef("--verify is for mirrored logs: say --from PLACE")
	}
	var out []ListedLogs
	var failed error
	cut := false // a log that others follow
	p := screen.NewProgress(s.Err)
	defer p.End()
	if f.From != "" && len(args) == 0 {
		place, list, closeIt, err := f.Mirrored(ctx)
		if err != nil {
			return ended(ctx, err)
		}
		defer closeIt()
		for _, series := range list {
			if !strings.HasPrefix(series.Key, f.Series) {
				continue
			}
			if verify {
				if err := verifySeries(ctx, place, series, p); err != nil {
					return ended(ctx, err)
				}
			}
			out = append(out, ListedLogs{series.Key, series.Logs, series.Gaps(), series.Lost, series.Lacks()})
		}
		if len(out) == 0 {
			return fmt.Errorf("no mirrored logs in %s", places.Words(f.From))
		}
	} else {
		src, err := f.Source(ctx, args)
		if err != nil {
			return err
		}
		defer src.Close()
		var l ListedLogs
		for i, file := range src.Files {
			x, err := scanFile(ctx, file)
			if err != nil && !errors.Is(err, binlogevent.ErrTorn) {
				return ended(ctx, err)
			}
			if err != nil {
				fmt.Fprintf(s.Err, "risso: %v\n", err)
				cut = cut || i+1 < len(src.Files)
			}
			l.Logs = append(l.Logs, mirror.Log{Index: x})
		}
		l.Gaps = mirror.Series{Logs: l.Logs}.Gaps()
		out = append(out, l)
	}
	p.End()
	if cut {
		failed = errors.New("a log ends in its middle, and another one follows")
	}
	if output == "json" {
		return errors.Join(render.JSON(s.Out, out), failed)
	}
	for _, l := range out {
		listText(s, l, verify)
	}
	return failed
}

func scanFile(ctx context.Context, file binlog.File) (binlog.Index, error) {
	in, err := file.Open(ctx)
	if err != nil {
		return binlog.Index{}, err
	}
	defer in.Close()
	return binlog.Scan(ctx, file.Name, in)
}

func verifySeries(ctx context.Context, place mirror.Place, series mirror.Series, p *screen.Progress) error {
	var total, done int64
	for _, l := range series.Logs {
		total += l.Size
	}
	for _, l := range series.Logs {
		if l.Finished {
			if err := mirror.Verify(ctx, place, series.Key, l); err != nil {
				return fmt.Errorf("%s is damaged: %w", l.Name, err)
			}
		}
		done += l.Size
		p.Set(done, total)
	}
	return nil
}

func listText(s screen.Streams, l ListedLogs, verified bool) {
	if l.Series != "" {
		fmt.Fprintf(s.Out, "%s\n", l.Series)
	}
	t := render.Table{Heads: []string{"log", ">size", ">stored", "first", "last", ">transactions", "GTIDs until its end"}}
	for _, x := range l.Logs {
		stored := "being written"
		if x.Stored > 0 {
			stored = digits.Bytes(x.Stored)
		} else if x.Finished || l.Series == "" {
			stored = "-"
		}
		if x.Locked {
			stored += ", encrypted"
		}
		t.Rows = append(t.Rows, []string{x.Name, digits.Bytes(x.Size), stored, screen.Clock(x.First), screen.Clock(x.Last), strconv.FormatInt(x.Transactions, 10), x.After.String()})
	}
	for _, line := range t.Lines(screen.Width(s.Out)) {
		fmt.Fprintln(s.Out, line)
	}
	for _, g := range l.Gaps {
		fmt.Fprintf(s.Out, "GAP: transactions are missing %s\n", g)
	}
	if l.lacks != "" {
		fmt.Fprintln(s.Out, "LOST:", l.lacks)
	}
	if verified {
		fmt.Fprintln(s.Out, "every finished log matches its index")
	}
}

func newBinlogPurge(s screen.Streams) *cobra.Command {
	var f flags.Logs
	var keep, output string
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "purge --from PLACE --keep DURATION",
		Short: "Remove old mirrored logs",
		Long: `Removes finished logs from a mirror, oldest first and without leaving a gap, if their last
event is older than --keep. The newest log of a series is always kept. A backup from before
a removed log can no longer be rolled forward: keep logs as long as backups.

` + fault.Help,
		Example: `  risso binlog purge --from /backups/db1 --keep 14d --dry-run`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.From == "" || keep == "" {
				return fault.Usagef("give --from PLACE and --keep, such as 14d")
			}
			age, err := digits.ParseAge(keep)
			if err != nil {
				return fault.Usagef("--keep: %w", err)
			}
			return runBinlogPurge(cmd.Context(), s, f, age, dryRun, output)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.From, "from", "", "a place with mirrored logs: "+blob.Forms)
	f.BindDir(fl, "dir")
	fl.StringVar(&keep, "keep", "", "remove logs whose last event is older than this: 14d, 36h")
	fl.BoolVar(&dryRun, "dry-run", false, "show what would be removed, and why")
	flags.OutputVar(fl, &output, "", "text", "json")
	return cmd
}

func runBinlogPurge(ctx context.Context, s screen.Streams, f flags.Logs, keep time.Duration, dryRun bool, output string) error {
	place, list, closeIt, err := f.Mirrored(ctx)
	if err != nil {
		return ended(ctx, err)
	}
	defer closeIt()
	gone := mirror.Expired(list, keep, time.Now())
	steps := mirror.Purge(place, f.LocalDir(), gone)
	if !dryRun {
		if _, err := change.Execute(ctx, steps, change.Log{}); err != nil {
			return ended(ctx, err)
		}
	}
	if output == "json" {
		return render.JSON(s.Out, PurgedAnswer{dryRun, gone, steps})
	}
	verb := map[bool]string{true: "would remove", false: "removed"}[dryRun]
	for _, d := range gone {
		fmt.Fprintf(s.Out, "%s %s/%s (%s): %s\n", verb, d.Key, d.Name, digits.Bytes(d.Stored), d.Reason)
	}
	if len(gone) == 0 {
		fmt.Fprintln(s.Out, "no log is old enough to go")
	}
	return nil
}
