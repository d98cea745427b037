package bench

import (
	"errors"
	"io"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/report"
	"github.com/rissodb/risso/internal/release"
)

// newBenchReport makes a report of results that were kept as JSON.
func newBenchReport(s screen.Streams) *cobra.Command {
	var output string
	var timeline bool
	cmd := &cobra.Command{
		Use:   "report FILE.json…",
		Short: "Make a report of saved results: HTML, Markdown, CSV, JSON",
		Long: `Makes a report of results of risso bench run --output json; - is standard input.

The HTML page is self-contained: charts, tables and the environment in one file, light and
dark, ready to print. Files whose names differ only in a number at the end (a-1.json, a-2.json)
are runs of the same thing; several things are compared with the first one, with a confidence
interval if each was run at least twice. With four or more numbers of threads the report
includes the curve of the Universal Scalability Law.

` + fault.Help,
		Example: `  risso bench report run.json > run.html
  risso bench report before-*.json after-*.json --output markdown
  risso bench report run.json --output csv --timeline`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := checkReportOutput(output, timeline); err != nil {
				return err
			}
			runs, err := report.ReadFiles(args, s.In)
			if errors.Is(err, bench.ErrNoResult) || errors.Is(err, fs.ErrNotExist) {
				return fault.New(fault.Usage, "", err)
			} else if err != nil {
				return err
			}
			return writeReport(s.Out, runs, output, timeline)
		},
	}
	flags.OutputVar(cmd.Flags(), &output, "", "html", "markdown", "csv", "json")
	cmd.Flags().BoolVar(&timeline, "timeline", false, "with csv: one line per second instead of one per run")
	return cmd
}

func checkReportOutput(output string, timeline bool) error {
	if timeline && output != "csv" {
		return fault.Usagef("--timeline needs --output csv")
	}
	return nil
}

// writeReport writes results in one of the forms of a report.
func writeReport(w io.Writer, runs []report.Run, output string, timeline bool) error {
	switch {
	case output == "html":
		return report.HTML(w, runs, release.Version())
	case output == "markdown":
		return report.Markdown(w, runs)
	case output == "csv" && timeline:
		return report.TimelineCSV(w, runs)
	case output == "csv":
		return report.CSV(w, runs)
	}
	if len(runs) == 1 {
		return render.JSON(w, runs[0].Result)
	}
	list := make([]*bench.Result, len(runs))
	for i, r := range runs {
		list[i] = r.Result
	}
	return render.JSON(w, list)
}
