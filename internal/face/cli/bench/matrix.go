package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/compare/matrix"
)

type matrixFlags struct {
	dir                string
	dryRun, reportOnly bool
	prepare            int
	output             string
}

func newBenchMatrix(s screen.Streams) *cobra.Command {
	var f matrixFlags
	cmd := &cobra.Command{
		Use:   "matrix FILE",
		Short: "Measure servers, options, sizes and threads in all combinations",
		Long: `Measures every combination of what a file lists: servers (also postgres), start-up options, storage
engines, table sizes, workloads (also script:FILE and replay:FILE) and numbers of threads. It starts
throw-away servers on this machine, fills the tables, runs everything in turns, and removes the
servers, even after Ctrl-C. Each run is a file in the folder of results: when the command is
repeated, only missing runs are made. The report answers one question for each thing that varies.

A file:

` + indent(matrix.Example) + "\n" + fault.Help,
		Example: `  risso bench matrix doublewrite.yaml --dry-run
  risso bench matrix doublewrite.yaml --results doublewrite
  risso bench matrix doublewrite.yaml --report --output html >doublewrite.html`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return endOf(runMatrix(cmd.Context(), s, f, args[0]), "WORKLOAD")
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.dir, "results", "", "folder for results (default: FILE without its extension, plus -results)")
	fl.BoolVar(&f.dryRun, "dry-run", false, "show the combinations and how long they would take, and do nothing")
	fl.BoolVar(&f.reportOnly, "report", false, "report the results so far, and run nothing")
	fl.IntVar(&f.prepare, "prepare-threads", 4, "sessions that fill the tables")
	flags.OutputVar(fl, &f.output, "", "text", "json", "markdown", "html")
	return cmd
}

// indent sets an example off.
func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  ") + "\n"
}

func runMatrix(ctx context.Context, s screen.Streams, f matrixFlags, path string) error {
	if f.prepare < 1 || f.prepare > bench.MaxThreads {
		return fault.Usagef("--prepare-threads %d: from 1 to %d", f.prepare, bench.MaxThreads)
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return fault.Usagef("%s: no such file", path)
	} else if err != nil {
		return err
	}
	file, err := matrix.Parse(b, filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, log := range file.Recordings() {
		if f.reportOnly {
			break
		}
		r, err := ReadRecording(ctx, log, ReplayOf{Writes: file.Writes})
		if err == nil {
			err = file.SetRecording(log, r)
		}
		if err != nil {
			return err
		}
	}
	if file.Name == "" {
		file.Name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	}
	if f.dir == "" {
		f.dir = strings.TrimSuffix(path, filepath.Ext(path)) + "-results"
	}
	plan, err := matrix.PlanFile(file, f.dir)
	if err != nil {
		return err
	}
	switch {
	case f.dryRun:
		return writeMatrixPlan(s.Out, plan, f.output)
	case f.reportOnly:
		r, err := matrix.ReportOf(file, f.dir)
		if err != nil {
			return err
		}
		return writeMatrix(s.Out, r, f.output)
	case screen.OnTerminal(s.Err):
		fmt.Fprintf(s.Err, "%s, %s, about %s; results in %s\n", digits.Counted(plan.Runs, "run"), digits.Counted(len(plan.Servers), "server"), digits.Span(plan.Time), f.dir)
	}
	show := newSteps(s.Err, plan.Runs)
	r, err := matrix.Run(ctx, file, matrix.Options{Dir: f.dir, Servers: localServers{}, Prepare: f.prepare, Progress: func(done, total int, what string) {
		show.total = total
		show.begin(min(done, max(total-1, 0)), "%s", what)
	}})
	show.end()
	if r == nil {
		return err
	}
	if r.Missing < r.Runs*len(r.Cells) {
		if werr := writeMatrix(s.Out, r, f.output); err == nil {
			err = werr
		}
	}
	if err == nil && r.Interrupted {
		err = fault.New(fault.Interrupted, "the same command continues", fmt.Errorf("interrupted: %s missing", digits.Plural(r.Missing, "run is", "runs are")))
	}
	return err
}

func writeMatrix(w io.Writer, r *matrix.Report, output string) error {
	switch output {
	case "json":
		return render.JSON(w, r)
	case "markdown":
		return r.Markdown(w)
	case "html":
		return r.HTML(w)
	}
	return r.Text(w)
}

func writeMatrixPlan(w io.Writer, p *matrix.Plan, output string) error {
	if output == "json" {
		return render.JSON(w, p)
	}
	fmt.Fprintf(w, "%s: %s, %s to make, about %s; results in %s\n", p.Name, digits.Counted(len(p.Cells), "cell"), digits.Counted(p.Runs, "run"), digits.Span(p.Time), p.Dir)
	err := screen.Tabulate(w, func(w io.Writer) {
		fmt.Fprintln(w, "SERVER\tOPTIONS\tENGINE\tTABLE SIZE\tWORKLOAD\tTHREADS\tRUNS THERE")
		for _, c := range p.Cells {
			fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%d\t%d of %d\n", c.Server, c.Options.Name, c.Engine, c.TableSize, c.Workload, c.Threads, c.Done, c.Want)
		}
	})
	if err != nil {
		return err
	}
	for _, name := range p.Servers {
		fmt.Fprintln(w, "starts", name)
	}
	return nil
}
