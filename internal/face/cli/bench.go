package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
	"github.com/rissodb/risso/internal/measure/workload/all"
)

func newBench(s Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure a server with a workload",
		Long:  "Measure a server with a workload, and compare what was measured.\n\n" + exitCodesHelp,
		Example: `  risso bench prepare point_select --dsn 'root@unix(/run/mysqld/mysqld.sock)/sbtest' --tables 4
  risso bench run point_select --dsn 'root@unix(/run/mysqld/mysqld.sock)/sbtest' --tables 4 --threads 16`,
	}
	cmd.AddCommand(newBenchRun(s), newBenchCheck(s))
	return cmd
}

// workloadFlags name a server and what is done to it.
type workloadFlags struct {
	serverFlags
	workload.Params
}

func (f *workloadFlags) bind(cmd *cobra.Command) {
	f.serverFlags.bind(cmd, "the server to measure")
	d := workload.Defaults()
	fl := cmd.Flags()
	fl.IntVar(&f.Tables, "tables", d.Tables, "number of tables")
	fl.IntVar(&f.TableSize, "table-size", d.TableSize, "rows of each table")
	fl.IntVar(&f.Warehouses, "warehouses", d.Warehouses, "tpcc: warehouses, about 85 MB each; 0: one to prepare, all there are to run")
	fl.BoolVar(&f.ForeignKeys, "foreign-keys", false, "tpcc: prepare with foreign keys and their indexes")
	fl.StringVar(&f.Distribution, "distribution", d.Distribution, "how rows are drawn: uniform, special, pareto, zipfian, gaussian")
}

// open finds the server and makes the workload.
func (f *workloadFlags) open(name string) (drive.Target, workload.Workload, error) {
	w, err := all.New(name, f.Params)
	if errors.Is(err, workload.ErrUsage) {
		return nil, nil, failure(exitUsage, "", err)
	} else if err != nil {
		return nil, nil, err
	}
	target, err := f.target()
	if err != nil {
		return nil, nil, err
	}
	return drive.ForMySQL(target), w, nil
}
