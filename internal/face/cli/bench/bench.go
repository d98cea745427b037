// Package bench holds the commands that measure servers.
package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/home"
	"github.com/rissodb/risso/internal/measure/compare"
	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
	"github.com/rissodb/risso/internal/measure/workload/all"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
)

// New is risso bench, with what is below it.
func New(s screen.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure a server with a workload",
		Long:  "Measure a server with a workload, and compare what was measured.\n\n" + fault.Help,
		Example: `  risso bench list
  risso bench prepare point_select --dsn 'root@unix(/run/mysqld/mysqld.sock)/sbtest' --tables 4 --threads 4
  risso bench run point_select --dsn 'root@unix(/run/mysqld/mysqld.sock)/sbtest' --tables 4 --threads 16
  risso bench cleanup point_select --dsn 'root@unix(/run/mysqld/mysqld.sock)/sbtest'`,
	}
	cmd.AddCommand(newBenchList(s), newBenchPrepare(s), newBenchRun(s), newBenchCheck(s), newBenchCleanup(s), newBenchCompare(s), newBenchScale(s), newBenchMatrix(s), newBenchReport(s))
	cmd.SetGlobalNormalizationFunc(asSysbenchCallsIt)
	return cmd
}

// asSysbenchCallsIt takes sysbench's --time for --for, which is how long in every command.
func asSysbenchCallsIt(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if name == "time" {
		name = "for"
	}
	return pflag.NormalizedName(name)
}

// workloadFlags name a server and what is done to it.
type workloadFlags struct {
	flags.Server
	workload.Params
	part    logPart        // of the log that replay runs again
	yes     bool           // go on beside other data
	command *cobra.Command // that was called
}

func (f *workloadFlags) bind(cmd *cobra.Command) {
	f.Server.Bind(cmd, "the server to measure, PostgreSQL by postgres://user:password@host:port/database")
	d := workload.Defaults()
	fl := cmd.Flags()
	fl.BoolVar(&f.yes, "yes", false, "continue although the server holds other data")
	whole := func(at *int, name string, standard int, use string) { fl.IntVar(at, name, standard, use) }
	whole(&f.Tables, "tables", d.Tables, "number of tables")
	whole(&f.TableSize, "table-size", d.TableSize, "rows of each table")
	fl.BoolVar(&f.NoPrimaryKey, "no-primary-key", false, "tables without a primary key")
	fl.BoolVar(&f.Secondary, "secondary", false, "tables with a plain index on id in place of the primary key")
	fl.BoolVar(&f.NoAutoInc, "no-auto-inc", false, "tables whose ids the client gives")
	fl.BoolVar(&f.NoIndex, "no-index", false, "tables without an index on k")
	fl.StringVar(&f.Engine, "engine", "", "storage engine of new tables (default InnoDB)")
	fl.StringVar(&f.TableOptions, "table-options", "", "what CREATE TABLE ends with, such as ROW_FORMAT=COMPRESSED")
	whole(&f.Warehouses, "warehouses", d.Warehouses, "tpcc: warehouses of about 105 MB; 0: one to prepare, all there are to run")
	fl.BoolVar(&f.ForeignKeys, "foreign-keys", false, "tpcc: prepare with foreign keys and their indexes")
	fl.StringVar(&f.Distribution, "distribution", d.Distribution, "how rows are drawn: uniform, special, pareto, zipfian, gaussian")
	fl.Var((*numbersFlag)(&f.DistributionParams), "distribution-param", "name=value, may be repeated: spec-iter (12), spec-pct (1), spec-res (75), pareto-h (0.2), zipfian-exp (0.8)")
	whole(&f.PointSelects, "point-selects", d.PointSelects, "point selects of a transaction")
	whole(&f.SimpleRanges, "simple-ranges", d.SimpleRanges, "ranges of a transaction")
	whole(&f.SumRanges, "sum-ranges", d.SumRanges, "ranges with SUM of a transaction")
	whole(&f.OrderRanges, "order-ranges", d.OrderRanges, "ranges with ORDER BY of a transaction")
	whole(&f.DistinctRanges, "distinct-ranges", d.DistinctRanges, "ranges with DISTINCT of a transaction")
	fl.BoolVar(&f.NoRangeSelects, "no-range-selects", false, "leave out all ranges")
	whole(&f.RangeSize, "range-size", d.RangeSize, "rows of a range")
	whole(&f.IndexUpdates, "index-updates", d.IndexUpdates, "updates of k in a transaction")
	whole(&f.NonIndexUpdates, "non-index-updates", d.NonIndexUpdates, "updates of c in a transaction")
	whole(&f.DeleteInserts, "delete-inserts", d.DeleteInserts, "deletes, each with an insert of the same id, in a transaction")
	whole(&f.RandomPoints, "random-points", d.RandomPoints, "select_random_points: values in a statement")
	whole(&f.RandomRanges, "random-ranges", d.RandomRanges, "select_random_ranges: ranges in a statement")
	whole(&f.Delta, "delta", d.Delta, "select_random_ranges: width of a range")
	fl.BoolVar(&f.SkipTransactions, "skip-trx", false, "no BEGIN and COMMIT around the statements")
	fl.BoolVar(&f.Unprepared, "unprepared", false, "send statements as text instead of preparing them")
	whole(&f.Schemas, "schemas", d.Schemas, "schemas: number of schemas")
	whole(&f.SchemaTables, "schema-tables", d.SchemaTables, "schemas: tables of each schema")
	whole(&f.SchemaRows, "schema-rows", d.SchemaRows, "schemas: rows of each table")
	fl.Uint64Var(&f.Params.Seed, "seed", 0, "seed of all random numbers; 0: another one each time")
	f.bindOwn(cmd)
}

// drawSeed takes another seed each time where none is given.
func (f *workloadFlags) drawSeed() {
	for f.Params.Seed == 0 {
		f.Params.Seed = rand.Uint64() >> 11 // exact in JSON's numbers
	}
}

// open finds the server and makes the workload.
func (f *workloadFlags) open(name string) (drive.Target, workload.Workload, error) {
	postgres := isPostgres(f.Dsn)
	if postgres {
		f.Dialect = drive.Postgres
	}
	if err := f.openOwn(name); err != nil {
		return nil, nil, err
	}
	w, err := all.New(name, f.Params)
	if errors.Is(err, workload.ErrUsage) {
		return nil, nil, fault.New(fault.Usage, "", err)
	} else if err != nil {
		return nil, nil, err
	}
	if postgres {
		target, err := drive.ForPostgres(f.Dsn)
		if err != nil {
			return nil, nil, fault.New(fault.Usage, "", err)
		}
		return target, w, nil
	}
	target, err := f.Target()
	if err != nil {
		return nil, nil, err
	}
	return drive.ForMySQL(target), w, nil
}

// isPostgres says whether a DSN is of PostgreSQL.
func isPostgres(dsn string) bool {
	return strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://")
}

// guard refuses a server that holds other data, unless the user wants it so.
func (f *workloadFlags) guard(ctx context.Context, t drive.Target) error {
	if f.yes {
		return nil
	}
	n, first, err := workload.Others(ctx, t)
	switch {
	case err != nil:
		return prepareError(ctx, f.lacking(ctx, err))
	case n == 1:
		return fault.New(fault.Usage, "--yes continues all the same", fmt.Errorf("%s holds a table that is no benchmark's: %s", t, first))
	case n > 1:
		return fault.New(fault.Usage, "--yes continues all the same", fmt.Errorf("%s holds %d tables that are no benchmark's, the first is %s", t, n, first))
	}
	return nil
}

// guardRun does the same before a run, but for one that is meant for data that are there and changes none of them.
func (f *workloadFlags) guardRun(ctx context.Context, t drive.Target, w workload.Workload) error {
	if !isPostgres(f.Dsn) { // on which compare sets nothing
		target, err := f.Target()
		if err != nil {
			return err
		}
		if err := compare.CheckLeft(ctx, target.WithDatabase(""), home.State("bench")); err != nil {
			return err
		}
	}
	switch w.Name() {
	case "script", "replay":
		if x, ok := w.(workload.Writer); ok && !x.Writes() {
			return nil
		}
	}
	return f.guard(ctx, t)
}

// lacking gives an error that the server gave for want of privileges the statements that mend it; others stay as they are.
func (f *workloadFlags) lacking(ctx context.Context, err error) error {
	var told *fault.Error
	var refused *drive.ServerError
	number := mysql.ErrorNumber(err)
	if errors.As(err, &refused) {
		number = int(refused.Code)
	}
	if errors.As(err, &told) || !slices.Contains([]int{errno.DatabaseDenied, errno.TableDenied, errno.ColumnDenied, errno.SpecificAccessDenied, errno.ProgramDenied}, number) || isPostgres(f.Dsn) {
		return err
	}
	target, terr := f.Target()
	if terr != nil || target.Database() == "" {
		return err
	}
	c, cerr := mysql.Connect(ctx, target.WithDatabase(""), nil)
	if cerr != nil {
		return err
	}
	defer c.Close()
	rights, rerr := c.Rights(ctx)
	if rerr != nil {
		return err
	}
	if lack := c.Server.Missing(rights, target.Database(), mysql.JobBench); len(lack) > 0 {
		return fault.New(fault.Failed, "run "+strings.Join(lack, "; "), err)
	}
	return err
}

// numbersFlag is a flag of named numbers.
type numbersFlag map[string]float64

func (f *numbersFlag) Type() string { return "name=value" }

func (f *numbersFlag) String() string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(*f)) {
		out = append(out, fmt.Sprintf("%s=%v", k, (*f)[k]))
	}
	return strings.Join(out, ",")
}

func (f *numbersFlag) Set(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(part, "=")
		v, err := strconv.ParseFloat(value, 64)
		if !ok || err != nil {
			return errors.New("write it as name=number")
		}
		if *f == nil {
			*f = map[string]float64{}
		}
		(*f)[strings.TrimPrefix(name, "rand-")] = v
	}
	return nil
}

func newBenchList(s screen.Streams) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: "list", Short: "Name all workloads", Args: cobra.NoArgs, Example: "  risso bench list",
		RunE: func(*cobra.Command, []string) error { return listWorkloads(s, output) },
	}
	flags.OutputVar(cmd.Flags(), &output, "", "text", "json")
	return cmd
}

func listWorkloads(s screen.Streams, output string) error {
	list := all.List()
	if output == "json" {
		out := []WorkloadAnswer{}
		for _, e := range list {
			out = append(out, WorkloadAnswer{e.Name, e.Summary})
		}
		return render.JSON(s.Out, out)
	}
	width := len(slices.MaxFunc(list, func(a, b all.Entry) int { return cmp.Compare(len(a.Name), len(b.Name)) }).Name)
	for _, e := range list {
		if _, err := fmt.Fprintf(s.Out, "%-*s  %s\n", width, e.Name, e.Summary); err != nil {
			return err
		}
	}
	return nil
}
