package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/home"
	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/compare"
	"github.com/rissodb/risso/internal/measure/stats"
	"github.com/rissodb/risso/internal/mysql"
)

type compareFlags struct {
	measureFlags
	dsnA, dsnB      string
	setA, setB      []string
	from            []string
	runs            int
	same            int
	order           string
	failIf          []string
	precise         precision
	dryRun, restore bool
	stateDir        string
	output          string
}

func newBenchCompare(s screen.Streams) *cobra.Command {
	var f compareFlags
	cmd := &cobra.Command{
		Use:   "compare A B | compare WORKLOAD --dsn-a A --dsn-b B | compare WORKLOAD --set-a x=1 --set-b x=2",
		Short: "Find out whether B is faster than A, and how certain that is",
		Long: `Compares two sets of results, two servers, or two settings of one server. Runs of A and B
alternate, so that both meet the same conditions, and neighbouring runs are tested as pairs
(Wilcoxon signed-rank test; Mann-Whitney test if there are fewer than six pairs, or none).
The order is random, so that the test is valid whatever else the machine does. The verdict
gives the ratio of B to A (Hodges-Lehmann estimate) with its 95 % confidence interval, or
says that no difference can be shown and how large one would have gone unnoticed. If other
programs used the machine more during the runs of one side, a verdict that they may have
caused is withheld.

--precise 3% continues until the interval is no wider than that on either side, or A and B
are shown to be equal within it, or --runs is reached (then 60 by default). A is first
compared with itself, which shows how far this machine can be trusted.

A and B are files of risso bench run --output json, each with one run or several; separate
several files by commas, or give a folder for all its *.json files. The output of sysbench,
pgbench, go-tpc, tpcc-mysql, mysqlslap and HammerDB is read as well (once --from: file A;
twice: both). Files are judged as pairs if their times show that the runs alternated.

--fail-if slower exits with 4 if that is the verdict, and with 5 if there is none (too few
runs, or withheld). It judges throughput, or p95 latency with --rate and if there is no
throughput in the results; the output says which.

Settings are changed by SET GLOBAL for the duration of the comparison. The previous values
are first written to a journal, and put back at the end, even after Ctrl-C; --restore puts
back what a killed comparison left. --dry-run shows the statements.

` + fault.Help,
		Example: `  risso bench compare before.json after.json
  risso bench compare point_select --dsn-a 'root@tcp(db1:3306)/sbtest' --dsn-b 'root@tcp(db2:3306)/sbtest' --threads 16
  risso bench compare read_write --dsn-a 'root@tcp(db1:3306)/sbtest' --dsn-b 'postgres://root@db2/sbtest'
  risso bench compare update_index --dsn 'root@unix(/run/mysqld/mysqld.sock)/sbtest' \
      --set-a innodb_flush_log_at_trx_commit=1 --set-b innodb_flush_log_at_trx_commit=2 --dry-run
  risso bench compare point_select --dsn-a … --dsn-b … --precise 3% --fail-if slower
  risso bench compare --from sysbench.txt after.json`,
		Args: cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return endOf(f.lacking(cmd.Context(), runCompare(cmd, s, f, args)), strings.Join(args, " "))
		},
	}
	fl := cmd.Flags()
	f.measureFlags.bind(cmd, 10*time.Second)
	fl.IntVar(&f.threads, "threads", 1, "concurrent sessions")
	fl.Float64Var(&f.rate, "rate", 0, "transactions per second, arriving as a Poisson process; 0: as many as the sessions can run")
	fl.StringVar(&f.dsnA, "dsn-a", "", "server A, written as --dsn")
	fl.StringVar(&f.dsnB, "dsn-b", "", "server B, which may be a different product")
	fl.StringArrayVar(&f.setA, "set-a", nil, "variable=value for A; may be repeated")
	fl.StringArrayVar(&f.setB, "set-b", nil, "variable=value for B; may be repeated")
	fl.StringArrayVar(&f.from, "from", nil, "results of sysbench, pgbench, go-tpc, tpcc-mysql, mysqlslap, HammerDB or Risso: once for A, twice for both")
	fl.IntVar(&f.runs, "runs", 10, "runs of each; with --precise the maximum (then 60 by default)")
	fl.Var(&f.precise, "precise", "continue until the confidence interval is no wider than this on either side, such as 3%")
	fl.IntVar(&f.same, "same", 0, "pairs of runs of A against A first, to show how far the machine can be trusted (with --precise: 6)")
	fl.StringSliceVar(&f.failIf, "fail-if", nil, "exit with 4 on these verdicts: slower, faster, different, unclear")
	fl.StringVar(&f.order, "order", compare.OrderRandom, "order of the runs: random (pairs, by --seed), or abba")
	fl.BoolVar(&f.dryRun, "dry-run", false, "show what would be done")
	fl.BoolVar(&f.restore, "restore", false, "put back settings that a killed comparison left on the server")
	fl.StringVar(&f.stateDir, "state", "", "folder of the journal of changed settings (default "+home.State("bench")+")")
	flags.OutputVar(fl, &f.output, "", "text", "json", "markdown")
	return cmd
}

// lacking leaves an error of one of two servers alone: its account was checked when it occurred.
func (f *compareFlags) lacking(ctx context.Context, err error) error {
	if f.dsnA != "" {
		return err
	}
	return f.workloadFlags.lacking(ctx, err)
}

func runCompare(cmd *cobra.Command, s screen.Streams, f compareFlags, args []string) error {
	ctx := cmd.Context()
	if f.stateDir == "" {
		f.stateDir = home.State("bench")
	}
	if err := f.checkVerdicts(); err != nil {
		return err
	}
	args = slices.Concat(f.from, args)
	servers, settings := f.dsnA != "" || f.dsnB != "", len(f.setA)+len(f.setB) > 0
	switch {
	case len(f.from) > 0 && (servers || settings || len(args) != 2):
		return fault.Usagef("--from is for existing results: give it twice, or once with one file")
	case f.restore && (len(args) > 0 || servers || settings):
		return fault.Usagef("--restore takes only a server (--dsn)")
	case f.restore && isPostgres(f.Dsn):
		return fault.Usagef("--restore is for MySQL and MariaDB: nothing is ever set on PostgreSQL")
	case f.restore:
		if err := onlyFlags(cmd, "means nothing to --restore", "restore", "dsn", "config", "defaults-file", "dry-run", "state", "output"); err != nil {
			return err
		}
		return compareRestore(ctx, s, f)
	case servers && settings:
		return fault.Usagef("either two servers (--dsn-a, --dsn-b) or two settings of one server (--set-a, --set-b)")
	case servers && (f.dsnA == "" || f.dsnB == ""):
		return fault.Usagef("a comparison needs both --dsn-a and --dsn-b")
	case servers && f.Dsn != "":
		return fault.Usagef("--dsn besides --dsn-a and --dsn-b")
	case servers || settings:
		if len(args) != 1 {
			return fault.Usagef("name one workload, such as point_select")
		}
		return compareLive(cmd, s, f, args[0], settings)
	case len(args) == 2:
		if err := onlyFlags(cmd, "is for running a workload: name a workload, not files", "from", "output", "fail-if", "seed"); err != nil {
			return err
		}
		return compareFiles(s, f, args)
	}
	return fault.New(fault.Usage, "risso bench compare --help shows the three forms", errors.New("what to compare? Two files of results, or a workload with --dsn-a and --dsn-b or --set-a and --set-b"))
}

// onlyFlags refuses flags that one form of a command has no use for: they are given to have an effect.
func onlyFlags(cmd *cobra.Command, why string, known ...string) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if err == nil && !slices.Contains(known, f.Name) {
			err = fault.Usagef("--%s %s", f.Name, why)
		}
	})
	return err
}

func compareFiles(s screen.Streams, f compareFlags, args []string) error {
	a, err := compare.ReadSide("A", args[0])
	if err != nil {
		return err
	}
	b, err := compare.ReadSide("B", args[1])
	if err != nil {
		return err
	}
	if err := compare.Comparable(a, b); err != nil {
		return err
	}
	r := compare.Judge(a, b, compare.Terms{Seed: f.Seed})
	if err := writeComparison(s.Out, r, f.output); err != nil {
		return err
	}
	return f.verdict(r)
}

func writeComparison(w io.Writer, r *compare.Report, output string) error {
	switch output {
	case "json":
		return render.JSON(w, r)
	case "markdown":
		return r.Markdown(w)
	}
	return r.Text(w)
}

// compareLive makes the runs.
func compareLive(cmd *cobra.Command, s screen.Streams, f compareFlags, name string, settings bool) error {
	if f.precise > 0 {
		if !cmd.Flags().Changed("runs") {
			f.runs = preciseRuns
		}
		if !cmd.Flags().Changed("same") {
			f.same = preciseSame
		}
	}
	switch {
	case f.runs < 1 || f.runs > mostRuns:
		return fault.Usagef("--runs %d: from 1 to %d", f.runs, mostRuns)
	case f.same < 0 || f.same > mostRuns:
		return fault.Usagef("--same %d: from 0 to %d", f.same, mostRuns)
	}
	if err := f.check(f.threads); err != nil {
		return err
	}
	f.drawSeed()
	order, err := compare.Order(f.order, f.runs, f.Seed)
	if err != nil {
		return err
	}
	c := &comparison{cmd: cmd, compareFlags: f, streams: s, name: name, order: order, a: compare.Side{Name: "A"}, b: compare.Side{Name: "B"}}
	compare.InTurns(f.order, f.runs, &c.a, &c.b)
	if settings {
		return c.settings(cmd.Context())
	}
	return c.servers(cmd.Context())
}

// comparison is one that makes its own runs.
type comparison struct {
	compareFlags
	cmd     *cobra.Command
	streams screen.Streams
	name    string // of the workload
	order   []bool
	noted   []string // what the report has to say besides
	a, b    compare.Side
}

func (c *comparison) servers(ctx context.Context) error {
	sides := [2]measureFlags{c.measureFlags, c.measureFlags}
	sides[0].Dsn, sides[1].Dsn = c.dsnA, c.dsnB
	var found [2]server
	for i := range sides {
		var err error
		if found[i], err = sides[i].look(ctx, c.cmd, c.name); err != nil {
			return sides[i].lacking(ctx, err)
		}
		target, _, err := sides[i].open(c.name)
		if err != nil {
			return err
		}
		side := [2]*compare.Side{&c.a, &c.b}[i]
		side.What = strings.TrimSuffix(target.String()+", "+found[i].version, ", ")
	}
	if err := c.plan(nil); c.dryRun || err != nil {
		return err
	}
	runner := func(i int) compare.Runner {
		n := uint64(0)
		return func(ctx context.Context) (*bench.Result, error) {
			n++
			r, err := sides[i].once(ctx, c.name, sides[i].options(c.threads, c.Seed+n), found[i])
			return r, sides[i].lacking(ctx, err)
		}
	}
	return c.measure(ctx, runner(0), runner(1), func() error { return nil })
}

func (c *comparison) settings(ctx context.Context) error {
	var sets [2][]compare.Setting
	for i, list := range [][]string{c.setA, c.setB} {
		for _, text := range list {
			v, err := compare.ParseSetting(text)
			if err != nil {
				return err
			}
			sets[i] = append(sets[i], v)
		}
	}
	target, err := c.mysqlOnly()
	if err != nil {
		return err
	}
	found, err := c.look(ctx, c.cmd, c.name)
	if err != nil {
		return err
	}
	set, plan, err := compare.PlanSettings(ctx, target, sets[0], sets[1])
	if err != nil {
		return err
	}
	c.a.What, c.b.What = strings.Join(settingNames(sets[0]), ", "), strings.Join(settingNames(sets[1]), ", ")
	for _, side := range []*compare.Side{&c.a, &c.b} {
		if side.What == "" {
			side.What = "as it was: " + strings.Join(settingNames(plan.Old), ", ")
		}
	}
	if err := c.plan(plan); c.dryRun || err != nil {
		return err
	}
	if err := set.Begin(ctx, c.stateDir); err != nil {
		return err
	}
	if err := c.readBack(set, sets); err != nil {
		return errors.Join(err, set.PutBack(ctx))
	}
	runner := func(second bool) compare.Runner {
		side, n := &c.a, uint64(0)
		if second {
			side = &c.b
		}
		return func(ctx context.Context) (*bench.Result, error) {
			now, err := set.Apply(ctx, second)
			if err != nil {
				return nil, err
			}
			side.Settings = now
			n++
			return c.once(ctx, c.name, c.options(c.threads, c.Seed+n), found)
		}
	}
	return c.measure(ctx, runner(false), runner(true), func() error { return set.PutBack(ctx) })
}

// readBack reports what the server made of the settings: it takes some values and keeps others.
func (c *comparison) readBack(set *compare.Settings, asked [2][]compare.Setting) error {
	var stands [2][]compare.Setting
	stands[0], stands[1] = set.Stands()
	for i, side := range []*compare.Side{&c.a, &c.b} {
		for _, text := range compare.Otherwise(asked[i], stands[i]) {
			c.noted = append(c.noted, side.Name+": "+text)
			side.What = strings.Join(settingNames(stands[i]), ", ")
		}
	}
	if set.Same() {
		return refuseSame(stands[0])
	}
	return nil
}

// mysqlOnly is the server whose variables are set.
func (c *comparison) mysqlOnly() (mysql.Target, error) {
	if isPostgres(c.Dsn) {
		return mysql.Target{}, fault.Usagef("--set-a and --set-b are for MySQL and MariaDB; compare two PostgreSQL servers with --dsn-a and --dsn-b")
	}
	return c.Target()
}

func settingNames(list []compare.Setting) (out []string) {
	for _, s := range list {
		out = append(out, s.String())
	}
	return out
}

// plan says on a terminal, or for a dry run, what will be done.
func (c *comparison) plan(set *compare.Plan) error {
	each := c.warmup + c.time
	total := each * time.Duration(len(c.order)+2*c.same)
	if c.dryRun && c.output == "json" {
		return render.JSON(c.streams.Out, ComparisonPlan{c.a.What, c.b.What, c.name, compare.OrderString(c.order), total.Seconds(), set})
	}
	w := c.streams.Out
	if !c.dryRun {
		if !screen.OnTerminal(c.streams.Err) {
			return nil
		}
		w = c.streams.Err
	}
	fmt.Fprintf(w, "A: %s\nB: %s\n", c.a.What, c.b.What)
	if c.same > 0 {
		fmt.Fprintf(w, "first %d runs of A against A\n", 2*c.same)
	}
	most := ""
	if c.precise > 0 {
		most = "at most "
	}
	fmt.Fprintf(w, "%s%d runs of %s with --threads %d, each %s after %s of warm-up, in the order %s: %s in all\n",
		most, len(c.order), c.name, c.threads, c.time, c.warmup, compare.OrderString(c.order), total)
	if least := stats.LeastRuns(compare.Confidence); c.runs < least {
		fmt.Fprintf(w, "%s too few to show any difference: at least %d are needed\n", digits.Plural(c.runs, "run of each is", "runs of each are"), least)
	}
	if set != nil {
		fmt.Fprintf(w, "on %s before each run of A:\n  %s\nbefore each run of B:\n  %s\nat the end:\n  %s\n", set.Server,
			strings.Join(set.A, "\n  "), strings.Join(set.B, "\n  "), strings.Join(set.Back, "\n  "))
		if len(set.Uncertain) > 0 {
			fmt.Fprintf(w, "whether %s can be changed while the server runs is tried before the first run\n", strings.Join(set.Uncertain, ", "))
		}
	}
	return nil
}

func compareRestore(ctx context.Context, s screen.Streams, f compareFlags) error {
	target, err := f.Target()
	if err != nil {
		return err
	}
	left, err := compare.Restore(ctx, target, f.stateDir, f.dryRun)
	if err != nil {
		return err
	}
	words := func(l *compare.Left) string { return "\n  " + strings.Join(l.Statements, "\n  ") }
	return screen.PutBack[[]compare.Setting]{What: "comparison", Dir: f.stateDir, DryRun: f.dryRun, Left: left, Words: words}.Write(s.Out, f.output)
}
