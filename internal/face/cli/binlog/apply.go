package binlog

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/data/places"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
)

type applyFlags struct {
	flags.Logs
	flags.Until
	places.Trust
	tableFlags
	into, after, start string
	skip               []string
	keep, dryRun       bool
	pending, output    string
}

func newBinlogApply(s screen.Streams) *cobra.Command {
	var f applyFlags
	cmd := &cobra.Command{
		Use:   "apply [FILE…] [--from PLACE | --dsn DSN] --into DSN --after GTIDS",
		Short: "Roll a server forward from binary logs, to just before a mistake",
		Long: `Applies transactions from binary logs to a server: from the server's position (that of the backup it
was restored from) to a time, to a GTID, or to just before one. The logs are first read in full: if
they do not reach back to the position, have a gap, or do not contain the transaction to stop at,
nothing is changed.

Each transaction is applied exactly once, even if the command was killed: run it again with the same
position. Progress is recorded in a table in the schema risso_roll_forward, which is removed at the
end; with --keep-gtids the server's own GTIDs serve instead.

Transactions committed at --to-time or later are left out. A time without a zone is UTC, or in the
zone of --timezone. Logs of MariaDB, and of MySQL before 8.0, have times in whole seconds only.
A server that is already beyond the point to stop at is refused: nothing is rolled back.

From a place, only logs mirrored by a trusted account are read, up to the last signed byte. Files
are read as they are.

` + flags.TrustHelp + `

` + fault.Help,
		Example: `  risso binlog apply --from /backups/db1 --after 0-1-4000 --before 0-1-4711 --into 'root@tcp(spare)/'
  risso binlog apply --from /backups/db1 --start binlog.000017:1234 --to-time '2026-03-01 14:02' --into 'root@tcp(spare)/' --dry-run
  risso binlog apply binlog.0000* --after "$GTIDS" --skip 3e11fa47-71ca-11e1-9e33-c80aa9429562:23 --keep-gtids --into 'root@tcp(spare)/'`,
		RunE: func(cmd *cobra.Command, args []string) error { return runBinlogApply(cmd.Context(), s, f, args) },
	}
	f.Logs.Bind(cmd)
	flags.BindTrust(&f.Trust, cmd)
	f.tableFlags.bind(cmd, "only changes")
	fl := cmd.Flags()
	fl.StringVar(&f.into, "into", "", "the server to change, written as --dsn")
	fl.StringVar(&f.after, "after", "", "GTIDs that the server has: those of the backup (gtid_executed; MariaDB: gtid_binlog_pos)")
	fl.StringVar(&f.start, "start", "", "instead of --after: the backup's position in the binary logs, FILE:POSITION")
	f.Until.Bind(cmd, "")
	f.BindPlace(cmd)
	fl.StringArrayVar(&f.skip, "skip", nil, "skip the transaction with this GTID; may be repeated")
	fl.BoolVar(&f.keep, "keep-gtids", false, "keep the transactions' own GTIDs")
	fl.StringVar(&f.pending, "pending", "", "after a kill in mid-statement, if it is unknown whether it was carried out: done (skip it) or again (run it)")
	fl.BoolVar(&f.dryRun, "dry-run", false, "show what would be applied, and change nothing")
	flags.OutputVar(fl, &f.output, "", "text", "json")
	cmd.MarkFlagsMutuallyExclusive("after", "start")
	return cmd
}

// options reads the flags.
func (f *applyFlags) options() (o binlog.RollOptions, err error) {
	o = binlog.RollOptions{Keep: f.keep, Again: binlog.PendingPolicy(f.pending)}
	switch {
	case f.into == "" && !f.dryRun:
		return o, fault.New(fault.Usage, "give --into DSN, or --dry-run", errors.New("no server to apply to"))
	case f.after == "" && f.start == "":
		return o, fault.New(fault.Usage, "give --after the GTIDs of the backup, or --start FILE:POSITION", errors.New("the position to begin at is missing"))
	case f.pending != "" && f.pending != string(binlog.PendingDone) && f.pending != string(binlog.PendingAgain):
		return o, fault.Usagef("--pending %q: done or again", f.pending)
	}
	if f.into != "" {
		if o.Into, err = (flags.Server{Dsn: f.into, ConfigFile: f.ConfigFile, DefaultsFile: f.DefaultsFile}).Target(); err != nil {
			return o, err
		}
	}
	if _, err := mysql.ParseGTIDSet(f.after); err != nil {
		return o, fault.Usagef("--after: %w", err)
	}
	o.From.GTIDSet = f.after
	if f.start != "" {
		if o.From.File, o.From.Offset, err = flags.LogPlace(f.start); err != nil {
			return o, fault.Usagef("--start %w", err)
		}
	}
	for _, text := range f.skip {
		g, err := mysql.ParseGTID(text)
		if err != nil {
			return o, fault.Usagef("--skip: %w", err)
		}
		o.Skip = append(o.Skip, g)
	}
	if o.Only, err = f.filter(); err != nil {
		return o, err
	}
	o.Stop, err = f.Stop()
	return o, err
}

func runBinlogApply(ctx context.Context, s screen.Streams, f applyFlags, args []string) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	if f.LogTrust, err = f.LogPolicy(f.From, screen.Says(s.Err)); err != nil {
		return err
	}
	src, err := f.Source(ctx, args)
	if err != nil {
		return err
	}
	defer src.Close()
	o.Files, o.Lacks = src.Files, src.Series.Lacks()
	p := screen.NewProgress(s.Err)
	defer p.End()
	if o.Only != nil { // names are looked for before anything is applied
		if _, err := binlog.Search(ctx, o.Files, binlog.Damage{Tables: o.Only, Schemas: f.schema, Limit: 1, Tell: rollProgress(p)}); err != nil {
			return ended(ctx, err)
		}
		if err := f.unmet("no transaction of these logs"); err != nil {
			return err
		}
	}
	o.Tell = rollProgress(p)
	plan, err := binlog.PlanRoll(ctx, o)
	res := plan.Result
	if err == nil && !f.dryRun {
		res, err = plan.Execute(ctx, change.Log{})
	}
	p.End()
	switch {
	case ctx.Err() != nil && !f.dryRun:
		return fault.New(fault.Interrupted, "what was applied stays; run it again with the same position to continue", errors.New("interrupted"))
	case errors.Is(err, binlog.ErrPending):
		return fault.New(fault.Failed, "then call it again with --pending done or --pending again", err)
	case err != nil:
		return ended(ctx, err)
	}
	if f.output == "json" {
		return render.JSON(s.Out, AppliedAnswer{res, plan.Steps()})
	}
	rolledText(s.Out, res, plan.Steps())
	return nil
}

func rolledText(w io.Writer, r binlog.RollResult, steps change.Plan) {
	verb := "applied"
	if r.Planned {
		verb = "would apply"
	}
	fmt.Fprintf(w, "%s %s", verb, digits.Counted(r.Transactions, "transaction"))
	if !r.LastGTID.IsZero() {
		fmt.Fprintf(w, ", the last %s", r.LastGTID)
	}
	if !r.LastTime.IsZero() {
		fmt.Fprintf(w, " of %s", screen.Clock(r.LastTime))
	}
	fmt.Fprintln(w)
	if r.Planned {
		screen.Steps(w, steps)
	}
	fmt.Fprintf(w, "ended %s\n", r.Stopped)
	if r.Next.File != "" {
		fmt.Fprintf(w, "what comes next begins at %s\n", r.Next)
	}
	if r.Had > 0 || r.LeftOut > 0 {
		fmt.Fprintf(w, "%s there already, %s left out\n", digits.Plural(r.Had, "was", "were"), digits.Plural(r.LeftOut, "was", "were"))
	}
	for _, x := range r.Prepared {
		fmt.Fprintf(w, "prepared, and waiting for its end unless that came too: XA %s\n", x)
	}
	for _, n := range r.Notes {
		fmt.Fprintln(w, "note:", n)
	}
}
