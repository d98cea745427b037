package binlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/oneline"
)

type searchFlags struct {
	flags.Logs
	tableFlags
	kinds                                        []string
	rows                                         int64
	since, until, gtid, user, text, output, zone string
	connection                                   uint32
	images, limit, threads                       int
}

// damageKinds are what --kind takes.
var damageKinds = []string{"delete", "update", "insert", "drop", "truncate", "alter", "create", "rename", "other"}

func newBinlogSearch(s screen.Streams) *cobra.Command {
	var f searchFlags
	cmd := &cobra.Command{
		Use:   "search [FILE…] [--from PLACE | --dsn DSN]",
		Short: "Find a bad statement: describe the damage, get the transactions that did it",
		Long: `Finds transactions by the damage they did: which table, what kind of change, how many rows, when,
by whom. It shows each one's GTID and position, time, connection, the statement if the log has its
text (binlog_rows_query_log_events; MariaDB: binlog_annotate_row_events), rows per table, and rows
as they were before. Transactions that drop or empty tables or partitions come first, then those
that changed the most rows.

Column names come from the log (binlog_row_metadata=FULL) or from --dsn; otherwise they are shown as
@1, @2 and so on. If --dsn is given together with files or --from, only column names are read from it.

` + fault.Help,
		Example: `  risso binlog search --from /backups/db1 --table shop.orders --kind delete --rows-over 1000
  risso binlog search --dsn 'risso@tcp(db1)/' --kind drop --kind truncate --since 2h
  risso binlog search binlog.0000* --table 'shop.*' --images 5 --output json`,
		RunE: func(cmd *cobra.Command, args []string) error { return runBinlogSearch(cmd.Context(), s, f, args) },
	}
	f.Logs.Bind(cmd)
	f.tableFlags.bind(cmd, "changes")
	fl := cmd.Flags()
	fl.StringSliceVar(&f.kinds, "kind", nil, "kinds of change: "+strings.Join(damageKinds, ", ")+"; may be repeated")
	fl.Int64Var(&f.rows, "rows-over", 0, "only transactions that change at least this many rows")
	fl.StringVar(&f.since, "since", "", "committed at this time or later: a time, or how long ago (2h, 7d)")
	fl.StringVar(&f.until, "until", "", "committed before this time")
	flags.ZoneVar(fl, &f.zone)
	fl.StringVar(&f.gtid, "gtid", "", "only transactions of this GTID set")
	fl.StringVar(&f.user, "user", "", "user who ran it, or a prefix, if the log has it (only for statements that create objects)")
	fl.Uint32Var(&f.connection, "connection", 0, "connection ID, if the log has it")
	fl.StringVar(&f.text, "text", "", "part of the statement's text, ignoring case")
	fl.IntVar(&f.images, "images", 3, "rows to show per table, as they were before the change; -1: all")
	fl.IntVar(&f.limit, "limit", 20, "transactions to show; 0: all")
	fl.IntVar(&f.threads, "threads", 0, "logs read at once (default: one per processor)")
	flags.OutputVar(fl, &f.output, "", "text", "json")
	return cmd
}

// damage reads the flags.
func (f *searchFlags) damage() (d binlog.Damage, err error) {
	d = binlog.Damage{Rows: f.rows, Thread: f.connection, User: f.user, Text: f.text, Images: f.images, Limit: f.limit, Workers: f.threads}
	for _, k := range f.kinds {
		k = strings.ToLower(k)
		if !slices.Contains(damageKinds, k) {
			return d, fault.Usagef("--kind %q: %s", k, strings.Join(damageKinds, ", "))
		}
		d.Kinds = append(d.Kinds, k)
	}
	zone, err := flags.Zone(f.zone)
	if err != nil {
		return d, err
	}
	now := time.Now()
	if d.From, err = flags.Moment(f.since, now, zone); err != nil {
		return d, fault.Usagef("--since %w", err)
	}
	if d.To, err = flags.Moment(f.until, now, zone); err != nil {
		return d, fault.Usagef("--until %w", err)
	}
	if d.GTID, err = mysql.ParseGTIDSet(f.gtid); err != nil {
		return d, fault.Usagef("--gtid: %w", err)
	}
	if d.Tables, err = f.filter(); d.Tables != nil {
		d.Schemas = f.schema
	}
	return d, err
}

// open finds the logs, and connects to the server that knows what tables look like; live is nil if none was named.
func open(ctx context.Context, f flags.Logs, args []string) (src flags.LogSource, live *binlog.Live, done func(), err error) {
	if src, err = f.Source(ctx, args); err != nil || f.Dsn == "" {
		return src, nil, src.Close, err
	}
	t, err := f.Target()
	var c *mysql.Conn
	if err == nil {
		c, err = mysql.Connect(ctx, t, nil)
		err = flags.LogFailure(err)
	}
	if err != nil {
		src.Close()
		return src, nil, nil, err
	}
	return src, binlog.NewLive(c), func() { c.Close(); src.Close() }, nil
}

func runBinlogSearch(ctx context.Context, s screen.Streams, f searchFlags, args []string) error {
	d, err := f.damage()
	if err != nil {
		return err
	}
	src, live, done, err := open(ctx, f.Logs, args)
	if err != nil {
		return err
	}
	defer done()
	if live != nil {
		d.Columns = live.Columns
		d.Now = func(ctx context.Context, schema, table string) (binlog.Count, bool) {
			n, ok := live.Rows(ctx, schema, table)
			n.Exact = n.Exact && src.Live // else the logs may end before now
			return n, ok
		}
	}
	var notes []string
	if d.Counts, err = counts(ctx, src, d); err != nil {
		notes = append(notes, fmt.Sprintf("the backups in the place give no numbers of rows: %v", err))
	}
	p := screen.NewProgress(s.Err)
	defer p.End()
	d.Tell = rollProgress(p)
	res, err := binlog.Search(ctx, src.Files, d)
	p.End()
	if err != nil {
		return ended(ctx, err)
	}
	res.Notes = append(notes, res.Notes...)
	if lacks := src.Series.Lacks(); lacks != "" {
		res.Notes, res.Incomplete = append(res.Notes, lacks), true
	}
	unmet := f.unmet("no transaction that was read")
	if unmet != nil && (res.Fit > 0 || !f.misnamed()) { // what fits is of the other names; that a pattern matches nothing is an answer
		res.Notes, unmet = append(res.Notes, unmet.Error()), nil
	}
	if res.Incomplete {
		unmet = fault.New(fault.Failed, "get the damaged log from its server, or from another copy", errors.New("not all of these logs could be searched, as the notes say: the result is of the rest"))
	}
	if f.output == "json" {
		return errors.Join(render.JSON(s.Out, res), unmet)
	}
	for i, x := range res.Found {
		if i > 0 {
			fmt.Fprintln(s.Out)
		}
		foundText(s.Out, x)
	}
	if res.Fit > 0 {
		fmt.Fprintln(s.Out)
	}
	fmt.Fprintf(s.Out, "%d of %s in %s of %s %s", res.Fit, digits.Counted(res.Transactions, "transaction"), digits.Bytes(res.Bytes), digits.Counted(len(src.Files), "log"), map[bool]string{true: "fits", false: "fit"}[res.Fit == 1])
	if res.Skipped > 0 {
		fmt.Fprintf(s.Out, ", %d of which were not read, because their index says that nothing matches", res.Skipped)
	}
	if res.Fit > int64(len(res.Found)) {
		fmt.Fprintf(s.Out, "; the %d worst are shown (--limit)", len(res.Found))
	}
	fmt.Fprintln(s.Out)
	for _, n := range res.Notes {
		fmt.Fprintln(s.Out, "note:", n)
	}
	return unmet
}

// counts finds the backups of the server in the place with its logs: they tell how many rows its tables had.
func counts(ctx context.Context, src flags.LogSource, d binlog.Damage) (binlog.Counts, error) {
	if src.Place.Repo == nil {
		return nil, nil
	}
	all, err := src.Place.Repo.Backups(ctx)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(h repo.Header) bool { return !src.Series.Of(h.Server.Identity) })
	if len(all) == 0 {
		return nil, nil
	}
	var since time.Time
	if len(src.Series.Logs) > 0 {
		since = src.Series.Logs[0].First
	}
	return binlog.BackupCounts(src.Place.Repo, all, since, d.To, d.Tables), nil
}

// sureWords say how sure it is that a transaction changed a whole table.
var sureWords = map[binlog.Sureness]string{binlog.Likely: "likely: not everything since is known", binlog.Guess: "a guess: by an estimate"}

// foundText shows one transaction.
func foundText(w io.Writer, f binlog.Found) {
	name := f.GTID.String()
	if name == "" {
		name = "transaction without GTID"
	}
	fmt.Fprintf(w, "%s  %s  %s:%d", name, f.Time.UTC().Format("2006-01-02 15:04:05.999999Z"), f.File, f.Pos)
	if f.Thread != 0 {
		fmt.Fprintf(w, "  connection %d", f.Thread)
	}
	if f.User != "" {
		fmt.Fprintf(w, "  %s", f.User)
	}
	fmt.Fprintln(w)
	if f.Whole != "" {
		fmt.Fprintf(w, "  !! %s", f.Whole)
		if f.Sure != binlog.Certain {
			fmt.Fprintf(w, " (%s)", sureWords[f.Sure])
		}
		fmt.Fprintln(w)
	}
	for _, st := range f.Statements {
		fmt.Fprintf(w, "  %s\n", oneline.Cut(oneline.Of(st.Text), 300))
	}
	if f.More > 0 {
		fmt.Fprintf(w, "  and %s\n", digits.Counted(f.More, "more statement"))
	}
	for _, c := range f.Changes {
		what := c.Table
		if c.Object != "" {
			what = c.Object + " " + what
		}
		if c.To != "" {
			what += " to " + c.To
		}
		fmt.Fprint(w, strings.TrimRight(fmt.Sprintf("  %-8s %s", c.Kind, what), " "))
		if c.Rows > 0 {
			fmt.Fprintf(w, "  %s", digits.Counted(c.Rows, "row"))
			if c.Share != nil {
				fmt.Fprintf(w, " of %d: %s", c.Share.Of, c.Share.From)
			}
		}
		fmt.Fprintln(w)
		for i, row := range c.Before {
			fmt.Fprintf(w, "    %s\n", rowText(c, row, i))
		}
	}
}

// rowText is a row as it was; of an update what became of it.
func rowText(c binlog.Change, row []any, i int) string {
	var parts []string
	for j, v := range row {
		if v == "" {
			continue
		}
		text := "NULL"
		if v != nil {
			text = oneline.Cut(fmt.Sprint(v), 60)
		}
		if i < len(c.After) && j < len(c.After[i]) && c.After[i][j] != v && c.After[i][j] != "" {
			now := "NULL"
			if c.After[i][j] != nil {
				now = oneline.Cut(fmt.Sprint(c.After[i][j]), 60)
			}
			text += " → " + now
		}
		parts = append(parts, c.Columns[j]+"="+text)
	}
	return strings.Join(parts, ", ")
}

type undoFlags struct {
	flags.Logs
	tableFlags
	gtid, at, output string
}

func newBinlogUndo(s screen.Streams) *cobra.Command {
	var f undoFlags
	cmd := &cobra.Command{
		Use:   "undo [FILE…] [--from PLACE | --dsn DSN] --gtid GTID",
		Short: "Print the statements that undo a transaction",
		Long: `Prints the statements that undo the row changes of a transaction, last change first, as one
transaction for you to review and run. Nothing is changed.

It needs complete row images (binlog_row_image=FULL, the default), and says so if they are missing.
Column names come from the log (binlog_row_metadata=FULL) or from --dsn. Give --dsn even with files
or --from: the server also knows which columns are generated or unsigned, the primary key,
and what triggers and cascades would do.

` + fault.Help,
		Example: `  risso binlog undo --dsn 'risso@tcp(db1)/' --gtid 0-1-4711 >undo.sql
  risso binlog undo --from /backups/db1 --dsn 'risso@tcp(db1)/' --gtid 3e11fa47-71ca-11e1-9e33-c80aa9429562:23
  risso binlog undo binlog.000017 --dsn 'risso@tcp(db1)/' --at binlog.000017:4711 --table shop.orders`,
		RunE: func(cmd *cobra.Command, args []string) error { return runBinlogUndo(cmd.Context(), s, f, args) },
	}
	f.Logs.Bind(cmd)
	f.tableFlags.bind(cmd, "only changes")
	fl := cmd.Flags()
	fl.StringVar(&f.gtid, "gtid", "", "the transaction")
	fl.StringVar(&f.at, "at", "", "where the transaction begins, FILE:POSITION as printed by risso binlog search; for logs without GTIDs")
	flags.OutputVar(fl, &f.output, "text: the statements; json: the statements with details", "text", "json")
	return cmd
}

func runBinlogUndo(ctx context.Context, s screen.Streams, f undoFlags, args []string) error {
	var o binlog.UndoOptions
	var err error
	if (f.gtid == "") == (f.at == "") {
		return fault.Usagef("say which transaction: --gtid, or --at FILE:POSITION")
	}
	if f.gtid != "" {
		if o.GTID, err = mysql.ParseGTID(f.gtid); err != nil {
			return fault.Usagef("--gtid: %w", err)
		}
	} else if o.Place.File, o.Place.Pos, err = flags.LogPlace(f.at); err != nil {
		return fault.Usagef("--at %w", err)
	}
	if o.Tables, err = f.filter(); err != nil {
		return err
	}
	o.Ready = func() error { return f.unmet("the transaction has no rows to undo here: nothing of it") }
	src, live, done, err := open(ctx, f.Logs, args)
	if err != nil {
		return err
	}
	defer done()
	if live != nil {
		o.Columns, o.Hazards = live.Columns, live.Hazards
	}
	o.Files = src.Files
	if f.output == "json" {
		var text strings.Builder
		res, err := binlog.Undo(ctx, o, &text)
		if err != nil {
			return ended(ctx, err)
		}
		return render.JSON(s.Out, UndoneAnswer{res, text.String()})
	}
	_, err = binlog.Undo(ctx, o, s.Out)
	return ended(ctx, err)
}
