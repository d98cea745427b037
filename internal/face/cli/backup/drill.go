package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/data/drill"
	"github.com/rissodb/risso/internal/data/places"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/oneline"
)

type drillFlags struct {
	flags.Source
	places.Trust
	backup    string
	server    string
	files     []string
	queries   []string
	noCheck   bool
	noRoll    bool
	threads   int
	settings  []string
	useMemory string
	output    string
}

// NewDrill is risso drill.
func NewDrill(s screen.Streams) *cobra.Command {
	var f drillFlags
	cmd := &cobra.Command{
		Use:   "drill --from PLACE",
		Short: "Prove a backup: restore it into a throw-away server, check it, measure it",
		Long: `Restores a backup into a throw-away server of the same kind on this machine, rolls it
forward with the mirrored binary logs, checks it, measures how long that takes, and
removes the server. The proof is kept in the repository, next to the backup.

It checks the number of rows and their checksum against the manifest (logical backups),
runs CHECK TABLE on every table, and runs your own queries, given by --check and --query.
A file for --check contains statements that end with ; at the end of a line, each preceded
by a line "-- expect: …" with the expected answer:
` + drill.Expectations + `

Nothing in the restored data becomes active: events do not run, replication does not
start. Ctrl-C leaves nothing behind; what a killed drill left, the next one removes.

` + flags.TrustHelp + `

Exit code 0: the backup is proven. 1: it is not, or the drill could not be carried out.`,
		Example: `  risso drill --from /backups/db1
  risso drill --from s3://bucket/db1 --query 'SELECT COUNT(*) FROM shop.orders => > 1000'
  risso drill --from /backups/db1 --backup 20261121T183700Z-1a2b3c --servers mysql-9.7 --check expected.sql`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDrill(cmd.Context(), s, f) },
	}
	fl := cmd.Flags()
	f.Source.Bind(cmd)
	flags.BindTrust(&f.Trust, cmd)
	fl.StringVar(&f.backup, "backup", "", "ID of the backup (default: the newest)")
	fl.StringVarP(&f.server, "servers", "s", "", "server to restore into: mariadb, mysql-9.7, … or a path (default: the installed one closest to the backup's)")
	fl.StringArrayVar(&f.files, "check", nil, "file of statements with expected answers; may be repeated")
	fl.StringArrayVar(&f.queries, "query", nil, "a query, then => and the expected answer; may be repeated")
	fl.BoolVar(&f.noCheck, "no-check-table", false, "skip CHECK TABLE, which reads all tables once")
	fl.BoolVar(&f.noRoll, "no-roll", false, "do not roll forward: prove the snapshot only")
	fl.IntVar(&f.threads, "threads", 0, "sessions that load and check (default 2)")
	fl.StringArrayVar(&f.settings, "option", nil, "key=value for the throw-away server, such as innodb_buffer_pool_size=4G; may be repeated")
	fl.StringVar(&f.useMemory, "use-memory", "", "memory for applying the redo log of a physical backup, such as 1GiB (default 100 MiB)")
	flags.OutputVar(fl, &f.output, "", "text", "json")
	return cmd
}

// options are the flags, checked.
func (f drillFlags) options() (o drill.Options, err error) {
	o = drill.Options{Backup: f.backup, Server: f.server, SkipCheck: f.noCheck, Threads: f.threads, Settings: f.settings}
	if f.useMemory != "" {
		if o.UseMemory, err = digits.ParseBytes(f.useMemory); err != nil {
			return o, fault.Usagef("--use-memory %q: %s", f.useMemory, err)
		}
	}
	for _, name := range f.files {
		b, err := os.ReadFile(name)
		if err != nil {
			return o, fault.Usagef("--check: %s", err)
		}
		list, err := drill.ParseChecks(string(b))
		if err == nil && len(list) == 0 {
			err = errors.New("no statement in it")
		}
		if err != nil {
			return o, fault.Usagef("--check %s: %s", name, err)
		}
		o.Checks = append(o.Checks, list...)
	}
	for _, q := range f.queries {
		c, err := drill.ParseCheck(q)
		if err != nil {
			return o, fault.Usagef("--query %q: %s", q, err)
		}
		o.Checks = append(o.Checks, c)
	}
	return o, nil
}

// errNotProven is the reason for exit code 1 after a proof was printed.
var errNotProven = errors.New("the backup is not proven")

func runDrill(ctx context.Context, s screen.Streams, f drillFlags) error {
	// However the command ends, it also removes what it has restored.
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	o, err := f.options()
	if err != nil {
		return err
	}
	if f.Source.Policy, err = f.Trust.Policy(f.From, screen.Says(s.Err)); err != nil {
		return err
	}
	keys, err := places.Sign(repo.Keys{})
	if err != nil {
		return err
	}
	f.Source.Signer = keys.Signer // of the proof
	r, done, err := f.Open(ctx)
	if err != nil {
		return err
	}
	defer done()
	o.Repo = r
	trust, err := f.LogPolicy(f.From, screen.Says(s.Err))
	if err != nil {
		return err
	}
	if !f.noRoll {
		o.Logs = &drill.Logs{Place: f.From, Identity: f.Identity, Trust: trust}
	}
	debug.SetGCPercent(20) // the buffers are large and live long: they must not double the memory
	line := screen.NewProgress(s.Err)
	o.Progress = func(p drill.Progress) { line.Stage(p.Stage, p.Unit, p.Done, p.Total) }
	proof, err := drill.Run(ctx, o)
	line.End()
	switch {
	case ctx.Err() != nil:
		return fault.New(fault.Interrupted, "", errors.New("interrupted; what was restored has been removed"))
	case err != nil && proof.Ended.IsZero():
		return err
	}
	stored := err // else it was made, and could not be stored
	if f.output == "json" {
		err = render.JSON(s.Out, proof)
	} else {
		err = writeProof(s.Out, proof)
	}
	if stored != nil {
		return stored
	}
	if err == nil && !proof.Passed {
		return fault.New(fault.Failed, "", fmt.Errorf("%w: %s", errNotProven, proof.Failures[0]))
	}
	return err
}

// writeProof tells a person what a drill found.
func writeProof(w io.Writer, p drill.Proof) error {
	fmt.Fprintf(w, "%s backup %s of %s, %s, %s\n", p.Kind, p.Backup, p.Server, p.Of, p.Taken.Local().Format("2006-01-02 15:04:05"))
	fmt.Fprintf(w, "restored into %s on %s\n\n", p.On, p.Host)
	err := screen.Tabulate(w, func(w io.Writer) {
		for _, s := range p.Stages {
			after := ""
			if s.Check {
				after = " (a check)"
			}
			fmt.Fprintf(w, "%s\t%s%s\n", s.Name, digits.Seconds(s.Seconds), after)
		}
		if p.Recovery > 0 {
			fmt.Fprintf(w, "time to recover\t%s\n", digits.Seconds(p.Recovery))
		}
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(w)
	if p.Rolled != nil {
		fmt.Fprintf(w, "rolled forward: %s", digits.Counted(p.Rolled.Transactions, "transaction"))
		if !p.Rolled.Time.IsZero() {
			fmt.Fprintf(w, ", to %s", p.Rolled.Time.Local().Format("2006-01-02 15:04:05"))
		}
		fmt.Fprintln(w)
	}
	if p.Compare.Tables > 0 {
		fmt.Fprintf(w, "rows and sums: %s, %s, %s\n", digits.Counted(p.Compare.Tables, "table"), digits.Counted(p.Compare.Rows, "row"), digits.Plural(len(p.Compare.Different), "differs", "differ"))
	}
	if c := p.Counted; c != nil && c.Since == nil {
		fmt.Fprintf(w, "rows: %s, %s counted; the next drill of this backup compares\n", digits.Counted(c.Tables, "table"), digits.Counted(c.Rows, "row"))
	} else if c != nil {
		fmt.Fprintf(w, "rows: %s, %s, %s from the drill of %s\n", digits.Counted(c.Tables, "table"), digits.Counted(c.Rows, "row"), digits.Plural(len(c.Different), "differs", "differ"), c.Since.Local().Format("2006-01-02 15:04"))
	}
	if p.Check.Tables > 0 {
		fmt.Fprintf(w, "CHECK TABLE: %s, %d with a problem\n", digits.Counted(p.Check.Tables, "table"), len(p.Check.Problems))
	}
	for _, q := range p.Queries {
		verdict := "as expected"
		if !q.Passed {
			verdict = "WRONG, expected was " + q.Expect
		}
		fmt.Fprintf(w, "%s: %s: %s\n", oneline.Of(q.SQL), strings.ReplaceAll(q.Got, "\n", " | "), verdict)
	}
	for _, n := range p.Notes {
		fmt.Fprintf(w, "note: %s\n", n)
	}
	if p.Passed {
		_, err = fmt.Fprintf(w, "PROVEN: %s\n", p.Summary())
		return err
	}
	for _, n := range p.Failures {
		fmt.Fprintf(w, "NOT PROVEN: %s\n", n)
	}
	return nil
}
