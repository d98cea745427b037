package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/environ"
	"github.com/rissodb/risso/internal/measure/workload"
	"github.com/rissodb/risso/internal/measure/workload/all"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
)

type benchRunFlags struct {
	workloadFlags
	bench.Options
	failover    []string
	warmup      string
	limit       time.Duration
	percentiles []float64
	interval    time.Duration
	output      string
	record      recordFlags
}

func newBenchRun(s screen.Streams) *cobra.Command {
	var f benchRunFlags
	cmd := &cobra.Command{
		Use: "run WORKLOAD", Short: "Run a workload and measure it",
		Long: `Runs a workload and measures it.

Without --rate each session begins a transaction as soon as its previous one has ended
(closed loop): this measures how much the server can do. With --rate transactions are due
at the times of a Poisson process, whatever the server does (open loop), and latency counts
from the time at which a transaction was due: this measures what users would experience,
and a stall of the server shows in the percentiles. Transactions that the server cannot
keep up with are counted as backlog.

Lost connections are reopened; --failover names servers to continue with. With --ledger
each session writes a number after each transaction, and numbers that the server had
acknowledged but no longer has are reported afterwards.

Ctrl-C prints what was measured so far and exits with 130; a second Ctrl-C exits at once
and may leave the ledger's table behind, which the next run with --ledger drops.

` + fault.Help,
		Example: `  risso bench run point_select --dsn 'root@unix(/run/mysqld/mysqld.sock)/sbtest' --tables 4 --threads 16
  risso bench run read_write --dsn 'app:secret@tcp(db1:3306)/sbtest' --rate 500 --threads 64 --for 5m --warmup auto
  risso bench run update_index --dsn 'app:secret@tcp(vip:3306)/sbtest' --threads 8 --for 2m --ledger    through a failover
  risso bench run point_select --dsn … --percentiles 50,99,99.999 --output json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return runBench(cmd, s, f, args[0]) },
	}
	fl := cmd.Flags()
	f.workloadFlags.bind(cmd)
	fl.StringArrayVar(&f.failover, "failover", nil, "DSN of a server to continue with if the previous one is lost or refuses writes; may be repeated")
	fl.IntVar(&f.Threads, "threads", 1, "concurrent sessions")
	flags.DurationVar(fl, &f.Time, "for", 10*time.Second, "how long to measure; --time is an alias")
	fl.StringVar(&f.warmup, "warmup", "0s", "how long to run before measuring, or auto: until the figures are steady")
	flags.DurationVar(fl, &f.limit, "warmup-limit", bench.WarmupLimit, "the longest that --warmup auto may take")
	fl.Float64Var(&f.Rate, "rate", 0, "transactions per second, arriving as a Poisson process; 0: as many as the sessions can run")
	fl.Float64SliceVar(&f.Percentiles, "percentile", nil, "another latency `PERCENTILE`; may be repeated")
	fl.Float64SliceVar(&f.percentiles, "percentiles", nil, "more latency `PERCENTILES`: 50,99,99.999")
	fl.BoolVar(&f.Options.Statements, "per-statement", false, "also show the latency of each statement")
	flags.DurationVar(fl, &f.interval, "report-interval", 0, "print a line to standard error at this interval, even without a terminal")
	fl.BoolVar(&f.Ledger, "ledger", false, "record what the server acknowledged, and look for it afterwards")
	f.record.bind(cmd)
	flags.OutputVar(fl, &f.output, "", benchOutputs()...)
	return cmd
}

// benchWriters are the forms of a result: the one place where a form is added.
var benchWriters = []struct {
	name  string
	write func(w io.Writer, r *bench.Result) error
}{
	{"text", writeBenchText},
	{"json", func(w io.Writer, r *bench.Result) error { return render.JSON(w, r) }},
	{"html", reportOf("html")}, {"markdown", reportOf("markdown")}, {"csv", reportOf("csv")},
}

func benchOutputs() (names []string) {
	for _, o := range benchWriters {
		names = append(names, o.name)
	}
	return names
}

// check finds wrong use before any server is asked, and fills in what flags only imply.
func (f *benchRunFlags) check() (err error) {
	f.Percentiles = append(f.Percentiles, f.percentiles...)
	if f.warmup == "auto" {
		if f.limit < steadyLeast {
			return fault.Usagef("--warmup-limit %s: at least %s", f.limit, steadyLeast)
		}
		f.WarmupAuto, f.Warmup = true, f.limit
	} else if f.Warmup, err = digits.ParseDuration(f.warmup); err != nil {
		return fault.Usagef("--warmup %q: a time such as 10s, or auto", f.warmup)
	}
	if f.interval < 0 || f.interval%time.Second != 0 {
		return fault.Usagef("--report-interval %s: whole seconds", f.interval)
	}
	f.drawSeed()
	f.Options.Seed = f.Params.Seed
	for _, dsn := range f.failover {
		t, err := f.another(dsn)
		if err != nil {
			return err
		}
		f.Failover = append(f.Failover, t)
	}
	if err := f.Check(); err != nil {
		return fault.New(fault.Usage, "", err)
	}
	return nil
}

// steadyLeast is the shortest limit of an automatic warm-up: the test of steadiness wants some seconds.
const steadyLeast = 15 * time.Second

// another finds a further server, which --dsn would find.
func (f *benchRunFlags) another(dsn string) (drive.Target, error) {
	if isPostgres(dsn) != isPostgres(f.Dsn) {
		return nil, fault.Usagef("--failover: MySQL and PostgreSQL cannot replace each other")
	}
	if isPostgres(dsn) {
		t, err := drive.ForPostgres(dsn)
		if err != nil {
			return nil, fault.New(fault.Usage, "", fmt.Errorf("--failover: %w", err))
		}
		return t, nil
	}
	flags := f.Server
	flags.Dsn = dsn
	t, err := flags.Target()
	if err != nil {
		return nil, err
	}
	return drive.ForMySQL(t), nil
}

func runBench(cmd *cobra.Command, s screen.Streams, f benchRunFlags, name string) (err error) {
	ctx := cmd.Context()
	if err := f.check(); err != nil {
		return err
	}
	f.Clients = f.Threads
	if f.Target, f.Workload, err = f.open(name); err != nil {
		return err
	}
	f.plan()
	if err := f.begin(ctx, s); err != nil {
		return err
	}
	// The first signal ends the run, a second one the process.
	defer context.AfterFunc(ctx, func() { signal.Reset(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP) })()
	if every := int(f.interval / time.Second); every > 0 || screen.OnTerminal(s.Err) {
		live := benchLive{out: s.Err, open: f.Rate > 0, every: max(every, 1)}
		f.Progress = live.second
	}
	if err := f.guardRun(ctx, f.Target, f.Workload); err != nil {
		return benchError(f.lacking(ctx, err), name)
	}
	if err := f.record.check(ctx, f.Server); err != nil {
		return err
	}
	environment, unknown := environment(ctx, f.Server, f.Target)
	f.Watch = environ.WatchOf(environment)
	r, err := bench.Run(ctx, f.Options)
	if r != nil {
		f.record.describe(s, r, environment, unknown)
		r.Parameters = parametersOf(cmd.Flags(), name)
		r.Parameters["seed"] = f.Options.Seed
		if d, ok := f.Workload.(workload.Describer); ok {
			maps.Copy(r.Parameters, d.Describe())
		}
		for _, o := range benchWriters {
			if o.name == f.output {
				err = errors.Join(err, o.write(s.Out, r))
			}
		}
		err = errors.Join(err, f.record.send(ctx, s, r))
	}
	switch {
	case err != nil && ctx.Err() != nil && r == nil:
		return fault.New(fault.Interrupted, "", errors.New("interrupted before anything was measured"))
	case err != nil:
		return benchError(f.lacking(ctx, err), name)
	case r.Ledger != nil && r.Ledger.Error != "":
		return fault.New(fault.Failed, "", fmt.Errorf("the ledger could not be read: whether writes were lost is not known: %s", r.Ledger.Error))
	case r.Ledger != nil && r.Ledger.Missing > 0:
		return fault.New(fault.Failed, "", fmt.Errorf("LOST: %s of %s acknowledged writes are missing", digits.Thousands(r.Ledger.Missing), digits.Thousands(r.Ledger.Acknowledged)))
	case r.Interrupted:
		return fault.New(fault.Interrupted, "", fmt.Errorf("interrupted after %s of %s: the result is what was measured so far", digits.Seconds(r.Seconds), f.Time))
	}
	return nothingSucceeded(r)
}

// nothingSucceeded is an error where every transaction of a run failed: such figures measure nothing.
func nothingSucceeded(r *bench.Result) error {
	if r.Transactions > 0 || len(r.Errors) == 0 {
		return nil
	}
	most := slices.MaxFunc(r.Errors, func(a, b bench.ErrorCount) int { return cmp.Compare(a.Count, b.Count) })
	return fault.New(fault.Failed, "", fmt.Errorf("no transaction succeeded; %s, such as %s", digits.Counted(most.Count, "error"), most.Message))
}

// begin begins with the first server that answers, if several are named: the run would go on with the next one, too.
func (f *benchRunFlags) begin(ctx context.Context, s screen.Streams) error {
	if len(f.Failover) == 0 {
		return nil
	}
	targets, dsns := append([]drive.Target{f.Target}, f.Failover...), append([]string{f.Dsn}, f.failover...)
	var refused []error
	for i, t := range targets {
		session, err := t.Open(ctx, new(drive.Stop))
		if err != nil {
			refused = append(refused, err)
			continue
		}
		session.Close()
		if i > 0 {
			fmt.Fprintf(s.Err, "risso: begins on %s: %s\n", t, fault.Line(errors.Join(refused...).Error(), ""))
		}
		f.Target, f.Failover, f.Dsn = t, slices.Concat(targets[i+1:], targets[:i]), dsns[i]
		return nil
	}
	if ctx.Err() != nil {
		return fault.New(fault.Interrupted, "", errors.New("interrupted before anything was measured"))
	}
	return benchError(fmt.Errorf("no server answers: %w", errors.Join(refused...)), f.Workload.Name())
}

// benchError adds to an error its exit code and remedy.
func benchError(err error, name string) error {
	var known *fault.Error
	var server *drive.ServerError
	var trouble *mysql.Error
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(err, workload.ErrUsage):
		return fault.New(fault.Usage, "", err)
	case errors.As(err, &server):
		return fault.New(fault.Failed, serverRemedy(server, name), err)
	case errors.As(err, &trouble):
		remedy := fleet.RemedyOf(err)
		switch {
		case trouble.OfAccount():
			remedy = "lower --threads, or " + remedy
		case trouble.Class == mysql.ClassFull:
			remedy = "lower --threads, or raise max_connections"
		}
		if mysql.ErrorNumber(err) == errno.UnknownDatabase {
			remedy = "create the database, then: risso bench prepare " + name + " --dsn …"
		}
		return fault.New(fault.Failed, remedy, err)
	}
	return fault.New(fault.Failed, "", err)
}

// serverRemedy is a hint for an error of the server.
func serverRemedy(e *drive.ServerError, name string) string {
	prepare := "risso bench prepare " + name + " --dsn …"
	switch {
	case name == "replay" && (e.Code == 1146 || e.Code == 1049):
		return "the schemas and tables of the recording must exist on this server: restore them first, for example by risso restore"
	case e.Code == errno.NoSuchTable || e.State == drive.StateNoTable:
		return "create its tables first, of the same size: " + prepare
	case e.Code == errno.NoDatabase:
		return "name a database in the DSN: …/sbtest"
	case e.Code == errno.UnknownDatabase || e.State == drive.StateNoDatabase:
		return "create the database, then: " + prepare
	case e.State == drive.StateDenied:
		return "the account may not do this: make it the owner of the database, ALTER DATABASE … OWNER TO …"
	case e.Code == errno.TooManyStatements:
		return "raise max_prepared_stmt_count, or lower --threads or --tables"
	case e.Code == errno.TooManyConnections || e.State == drive.StateTooManyConnections:
		return "lower --threads, or raise max_connections"
	}
	return ""
}

// parametersOf records the flags that say what ran: the workload's size always, the others when they were given. Addresses
// are not among them, because they may contain passwords, nor what only changes the report.
func parametersOf(flags *pflag.FlagSet, name string) map[string]any {
	always := append(all.Size(name), "threads", "for", "warmup", "rate", "ledger")
	private := []string{"dsn", "failover", "config", "defaults-file", "output", "help", "percentile", "percentiles", "seed", "yes", "dsn-a", "dsn-b", "set-a", "set-b", "runs", "order", "state", "dry-run", "predict", "ascii", "processors", "record", "record-to", "token-file", "report-interval", "same", "precise", "fail-if", "from"}
	out := map[string]any{}
	flags.VisitAll(func(f *pflag.Flag) {
		if slices.Contains(private, f.Name) || !f.Changed && !slices.Contains(always, f.Name) {
			return
		}
		key, text := strings.ReplaceAll(f.Name, "-", "_"), f.Value.String()
		if f.Name == "file" {
			text = filepath.Base(text)
		}
		if key == "for" {
			key = "time" // its name in results
		}
		out[key] = text
		switch f.Value.Type() {
		case "duration":
			out[key] = cmp.Or(text, "0s")
		case "int", "uint64", "float64":
			if v, err := strconv.ParseFloat(text, 64); err == nil {
				out[key] = v
			}
		case "bool":
			out[key] = text == "true"
		}
	})
	return out
}
