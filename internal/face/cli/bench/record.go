package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/environ"
	"github.com/rissodb/risso/internal/measure/report"
)

// recordFlags say to which risso serve a result is sent.
type recordFlags struct {
	record bool
	flags.Running
}

func (f *recordFlags) bind(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.BoolVar(&f.record, "record", false, "send the result to risso serve on this machine, which shows it next to the server's metrics for the same period")
	fl.StringVar(&f.To, "record-to", "", "send the result to risso serve at this address: http://risso:8306")
	fl.StringVar(&f.TokenFile, "token-file", "", "file with the token for --record-to (default: the environment variable RISSO_TOKEN)")
}

// check finds out before a long run whether the result will be taken.
func (f *recordFlags) check(ctx context.Context, server flags.Server) error {
	if f.To == "" && !f.record {
		if f.TokenFile != "" {
			return fault.Usagef("--token-file needs --record-to or --record")
		}
		return nil
	}
	f.ConfigFile, f.Role = server.ConfigFile, "change" // the result is sent at the end
	if err := f.Find("--record-to"); err != nil {
		return err
	}
	code, body, err := f.Ask(ctx, http.MethodGet, "/api/benchmarks?limit=1", nil)
	if err != nil {
		return fault.New(fault.Failed, "start it with risso serve, or leave out --record", fmt.Errorf("ask %s: %w", f.URL, err))
	}
	return f.Verdict(code, body, "accept benchmarks")
}

// describe adds what is known of the run's conditions.
func (f *recordFlags) describe(s screen.Streams, r *bench.Result, e *environ.Environment, err error) {
	if err != nil {
		fmt.Fprintf(s.Err, "risso: the environment is not recorded: %s\n", fault.Line(err.Error(), ""))
		return
	}
	if r.Environment = e; e != nil {
		r.ServerVersion = cmp.Or(r.ServerVersion, e.Server.Version)
	}
}

// send hands the result over, also that of a run that was ended early.
func (f *recordFlags) send(ctx context.Context, s screen.Streams, r *bench.Result) error {
	if f.URL == "" {
		return nil
	}
	b, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	code, body, err := f.Ask(context.WithoutCancel(ctx), http.MethodPost, "/api/benchmarks", b)
	if err != nil {
		return fault.New(fault.Failed, "the result is on standard output; send it later: curl --data-binary @FILE.json "+f.URL+"/api/benchmarks", fmt.Errorf("send the result to %s: %w", f.URL, err))
	}
	if err := f.Verdict(code, body, "accept benchmarks"); err != nil {
		return err
	}
	var kept struct {
		ID       int64  `json:"id"`
		Instance string `json:"instance"`
	}
	if err := json.Unmarshal(body, &kept); err != nil {
		return fmt.Errorf("read the answer of %s: %w", f.URL, err)
	}
	fmt.Fprintf(s.Err, "risso: kept as %s/benchmarks/%d\n", f.URL, kept.ID)
	if kept.Instance == "" {
		fmt.Fprintln(s.Err, "risso: that Risso does not watch this server, so it has no numbers to show with the result")
	}
	return nil
}

// reportOf writes one run as a report.
func reportOf(output string) func(w io.Writer, r *bench.Result) error {
	return func(w io.Writer, r *bench.Result) error {
		return writeReport(w, []report.Run{{Name: r.Workload, Result: r}}, output, false)
	}
}
