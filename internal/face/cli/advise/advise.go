// Package advise is the command risso advise: what is wrong with a server before it hurts.
package advise

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/explain/advise/gather"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/pattern"
	"github.com/rissodb/risso/internal/serve/config"
)

type adviseFlags struct {
	keptFlags
	sources config.Sources
	all     bool
	schemas []string
	tables  []string
	ids     []string
	failOn  string
	checks  bool
	output  string
	timeout time.Duration
}

// New is risso advise.
func New(s screen.Streams) *cobra.Command {
	var f adviseFlags
	cmd := &cobra.Command{
		Use:   "advise [ID...]",
		Short: "Say what is wrong with a server before it hurts, with the statement that mends it",
		Long: `Looks at settings, schemas, indexes and accounts of one or several servers and says what is
wrong, the worst first: what was seen, why it matters, the statement that mends it, what that
does to the server, and what takes it back. Nothing is changed. All statements can be applied
together: none takes away what another one, a foreign key or a hint relies on.

ID limits the answer to these findings: schema.no_pk, or a pattern such as 'index.*'. --checks
lists all that is looked for. What is wrong at the moment, such as replication that stopped,
is what risso check and the page of risso serve tell.

What the account may not read is named at the end: nothing is known of it then.

Of several servers, what is the same on some of them is told once.

A risso serve looks at its servers each day. --kept shows what it keeps: since when, and what was
accepted, postponed or silenced.

Exit codes: 0 also with findings; with --fail-on 1 if there is one so bad.

` + fault.Help,
		Example: `  risso advise --dsn 'risso@unix(/run/mysqld/mysqld.sock)/'
  risso advise --dsn 'risso@tcp(db1:3306)/' 'index.*' --schema shop
  risso advise --all --config /etc/risso/risso.yaml --output json
  risso advise --kept --url http://risso:8306 --token-file /etc/risso/token
  risso advise --checks`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.ids = args
			return run(cmd.Context(), s, f)
		},
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&f.sources.DSNs, "dsn", nil, "server to look at: user:password@tcp(host:3306)/ or user@unix(/socket)/, with name= in front to name it, or the name of one in --config; may be repeated")
	fl.StringVar(&f.sources.ConfigFile, "config", "", "config file (YAML) that names servers")
	fl.StringVar(&f.sources.DefaultsFile, "defaults-file", "", "option file of the mysql clients (default ~/.my.cnf)")
	fl.BoolVar(&f.all, "all", false, "all servers of the config file")
	fl.StringArrayVar(&f.schemas, "schema", nil, "of tables, only those of this schema; a pattern with *; may be repeated")
	fl.StringArrayVar(&f.tables, "table", nil, "of tables, only schema.table; a pattern with *; may be repeated")
	fl.StringVar(&f.failOn, "fail-on", "", "exit code 1 if there is a finding that is at least so bad: info, warning or critical")
	fl.BoolVar(&f.checks, "checks", false, "list what is looked for, and end")
	flags.DurationVar(fl, &f.timeout, "timeout", 10*time.Minute, "give up on a server after this time")
	flags.OutputVar(fl, &f.output, "", "text", "json")
	cmd.MarkFlagsMutuallyExclusive("all", "dsn")
	f.bind(cmd)
	cmd.AddCommand(decisions(s)...)
	return cmd
}

// check finds wrong use before any server is asked.
func (f *adviseFlags) check() error {
	if f.failOn != "" && !slices.Contains([]string{"info", "warning", "critical"}, f.failOn) {
		return fault.Usagef("--fail-on %q: info, warning or critical", f.failOn)
	}
	if f.timeout <= 0 {
		return fault.Usagef("--timeout %s: more than 0", f.timeout)
	}
	for _, id := range f.ids {
		if !slices.ContainsFunc(advise.Checks(), func(c advise.Check) bool { return pattern.Stars(id, c.ID) }) {
			return fault.New(fault.Usage, "risso advise --checks lists what is looked for", fmt.Errorf("no finding is called %q", id))
		}
	}
	return nil
}

// servers are those to look at.
func (f *adviseFlags) servers() ([]config.Watched, error) {
	c, err := config.Read(f.sources.ConfigFile)
	if err != nil {
		return nil, err
	}
	var list []config.Watched
	for _, dsn := range f.sources.DSNs {
		of, dsns := c, []string{dsn}
		if named := c.Named(dsn); len(named) > 0 {
			of.Servers, dsns = named, nil
		}
		some, err := config.Resolve(dsns, f.sources.DefaultsFile, of)
		if err != nil {
			return nil, err
		}
		list = append(list, some...)
	}
	if len(f.sources.DSNs) == 0 {
		if list, err = config.Resolve(nil, f.sources.DefaultsFile, c); err != nil {
			return nil, err
		}
	}
	switch {
	case len(list) == 0:
		return nil, fault.New(fault.Usage, "give --dsn 'user:password@tcp(host:3306)/'", fmt.Errorf("no server to look at"))
	case len(list) > 1 && !f.all && len(f.sources.DSNs) == 0:
		return nil, fault.Usagef("%d servers: name some with --dsn, or take --all", len(list))
	}
	return list, nil
}

func run(ctx context.Context, s screen.Streams, f adviseFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	if f.checks {
		return writeChecks(s.Out, f.output)
	}
	if f.asked() {
		return f.show(ctx, s, f.ids, f.sources.ConfigFile, f.failOn, f.output)
	}
	servers, err := f.servers()
	if err != nil {
		return err
	}
	answer, failed := f.look(ctx, s, servers)
	if err := ctx.Err(); err != nil {
		return err
	}
	if failed != nil && len(servers) == 1 {
		return failed
	}
	if f.output == "json" {
		err = render.JSON(s.Out, answer)
	} else {
		_, err = io.WriteString(s.Out, text(answer))
	}
	switch {
	case err != nil:
		return err
	case failed != nil:
		return failed
	case f.failOn != "":
		var least fleet.Severity
		_ = least.UnmarshalText([]byte(f.failOn))
		if n := count(answer.Findings, least); n > 0 {
			return fault.New(fault.Failed, "", fmt.Errorf("%s at least %s", digits.Plural(n, "finding is", "findings are"), f.failOn))
		}
	}
	return nil
}

// look asks all servers, one after the other; the error is that of the first that does not answer.
func (f *adviseFlags) look(ctx context.Context, s screen.Streams, servers []config.Watched) (a Answer, failed error) {
	var names []string
	var found [][]advise.Finding
	progress := screen.OnTerminal(s.Err)
	for _, w := range servers {
		choice, err := pattern.NewChoice(f.schemas, f.tables)
		if err != nil {
			return a, fault.Usagef("%w", err)
		}
		o := gather.Options{Choice: choice}
		if progress {
			o.Progress = func(done int) {
				fmt.Fprintf(s.Err, "\r\x1b[K%s: %s", w.Instance.Name, digits.Counted(done, "table"))
			}
		}
		one, cancel := context.WithTimeoutCause(ctx, f.timeout, fmt.Errorf("%s: no answer within %s", w.Instance.Name, f.timeout))
		got, err := gather.Look(one, w.Target, o)
		if cause := context.Cause(one); err != nil && cause != nil {
			err = cause
		}
		if err == nil {
			err = choice.Unmet()
		}
		cancel()
		if progress {
			fmt.Fprint(s.Err, "\r\x1b[K")
		}
		looked := Looked{Name: w.Instance.Name, Version: got.Server.Version, Tables: got.Tables, Seconds: got.Took.Seconds(), Unknown: got.Missing}
		if err != nil {
			looked.Error = err.Error()
			if failed == nil {
				failed = fmt.Errorf("%s: %w", w.Instance.Name, err)
			}
		}
		a.Servers = append(a.Servers, looked)
		names, found = append(names, w.Instance.Name), append(found, f.chosen(got.Findings))
	}
	if len(servers) == 1 {
		a.Findings = found[0]
	} else {
		a.Findings = advise.Several(names, found)
	}
	if a.Findings == nil {
		a.Findings = []advise.Finding{}
	}
	return a, failed
}

// chosen are the findings that were asked for.
func (f *adviseFlags) chosen(list []advise.Finding) []advise.Finding {
	if len(f.ids) == 0 {
		return list
	}
	return slices.DeleteFunc(list, func(x advise.Finding) bool {
		return !slices.ContainsFunc(f.ids, func(id string) bool { return pattern.Stars(id, x.ID) })
	})
}

func count(list []advise.Finding, least fleet.Severity) (n int) {
	for _, f := range list {
		if f.Severity >= least {
			n++
		}
	}
	return n
}

func writeChecks(w io.Writer, output string) error {
	var a ChecksAnswer
	table := render.Table{Heads: []string{"ID", "LOOKS FOR", "ELSEWHERE"}}
	for _, c := range advise.Checks() {
		a.Checks = append(a.Checks, CheckAnswer(c))
		table.Rows = append(table.Rows, []string{c.ID, c.Title, c.Like})
	}
	if output == "json" {
		return render.JSON(w, a)
	}
	_, err := fmt.Fprintln(w, strings.Join(table.Lines(0), "\n"))
	return err
}
