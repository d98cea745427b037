// Package advise is the command risso advise: what is wrong with a server before it hurts.
package advise

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/explain/advise/gather"
	"github.com/rissodb/risso/internal/explain/digest"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/home"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/pattern"
	"github.com/rissodb/risso/internal/serve/advice"
	"github.com/rissodb/risso/internal/serve/config"
	"github.com/rissodb/risso/internal/serve/prove"
)

type adviseFlags struct {
	keptFlags
	flags.Servers
	schemas []string
	tables  []string
	ids     []string
	failOn  string
	checks  bool
	look    time.Duration
	keys    time.Duration
	unused  time.Duration
	slow    []string
	state   string
	data    string
	profile *digest.Profile // of slow
	window  time.Duration
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
lists all that is looked for. While it reads, it watches the server for --look, and says what is
wrong at the moment, such as replication that stopped or a transaction that others wait for.

What the account may not read is named at the end: nothing is known of it then. So is what
looking cost the server. Of one ID, the 1,000 worst findings are listed and the others counted.

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
	fl.StringArrayVar(&f.schemas, "schema", nil, "of tables, only those of this schema; a pattern with *; may be repeated")
	fl.StringArrayVar(&f.tables, "table", nil, "of tables, only schema.table; a pattern with *; may be repeated")
	fl.StringVar(&f.failOn, "fail-on", "", "exit code 1 if there is a finding that is at least so bad: info, warning or critical")
	fl.BoolVar(&f.checks, "checks", false, "list what is looked for, and end")
	flags.DurationVar(fl, &f.look, "look", glanceDefault, "how long to watch what is wrong at the moment; 0: not at all")
	fl.StringArrayVar(&f.slow, "slow-log", nil, "read from this slow log, and not from performance_schema, what classes of statements cost; may be repeated")
	flags.DurationVar(fl, &f.unused, "unused-after", 24*time.Hour, "say which indexes nothing used only if the server has counted for this time at least; on a primary name its replicas in the same call: what one of them uses is not unused")
	flags.DurationVar(fl, &f.keys, "test-keys", 0, "of tables without a primary key, let the server test for up to this time each whether rows differ in columns that may be one; it reads the whole table: best on a replica")
	flags.DurationVar(fl, &f.window, "recovery-window", 48*time.Hour, "for how long back a restore must be able to roll forward by binary logs")
	flags.DurationVar(fl, &f.timeout, "timeout", 10*time.Minute, "give up on a server after this time")
	flags.OutputVar(fl, &f.output, "", "text", "json")
	fl.StringVar(&f.data, "data", home.Data(), "data folder of risso serve, which keeps how often indexes are used, across restarts of the server")
	fl.StringVar(&f.state, "state", "", "folder of the proofs that findings are shown with (default "+home.State("advise")+")")
	f.Servers.Bind(cmd)
	f.bind(cmd)
	cmd.AddCommand(append(decisions(s), newProve(s))...)
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
	if f.look < 0 || f.keys < 0 || f.window < 0 || f.unused <= 0 {
		return fault.Usagef("--look, --test-keys and --recovery-window: 0 or more; --unused-after: more than 0")
	}
	for _, id := range f.ids {
		if !slices.ContainsFunc(allChecks(), func(c advise.Check) bool { return pattern.Stars(id, c.ID) }) {
			return fault.New(fault.Usage, "risso advise --checks lists what is looked for", fmt.Errorf("no finding is called %q", id))
		}
	}
	return nil
}

func run(ctx context.Context, s screen.Streams, f adviseFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	if f.checks {
		return writeChecks(s.Out, f.output)
	}
	if f.asked() {
		return f.show(ctx, s, f.ids, f.ConfigFile, f.failOn, f.output)
	}
	servers, err := f.Watched()
	if err != nil {
		return err
	}
	if len(f.slow) > 0 && len(servers) > 1 {
		return fault.Usagef("--slow-log is that of one server, and there are %d", len(servers))
	}
	if f.profile, err = f.slowProfile(ctx); err != nil {
		return err
	}
	answer, failed := f.ask(ctx, s, servers)
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

// ask asks all servers, one after the other; the error is that of the first that does not answer.
func (f *adviseFlags) ask(ctx context.Context, s screen.Streams, servers []config.Watched) (a Answer, failed error) {
	var names, ids []string
	var found [][]advise.Finding
	var seen []advise.Seen
	progress := screen.OnTerminal(s.Err)
	for _, w := range servers {
		choice, err := pattern.NewChoice(f.schemas, f.tables)
		if err != nil {
			return a, fault.Usagef("%w", err)
		}
		o := gather.Options{Choice: choice, Recovery: f.window, TestKeys: f.keys, Wanted: f.wants, Unused: f.unused, Slow: f.profile, Kept: filepath.Join(f.data, "index-use"), Several: len(servers) > 1}
		if progress {
			o.Progress = func(done int) {
				fmt.Fprintf(s.Err, "\r\x1b[K%s: %s", w.Instance.Name, digits.Counted(done, "table"))
			}
		}
		one, cancel := context.WithTimeoutCause(ctx, f.timeout, fmt.Errorf("%s: no answer within %s", w.Instance.Name, f.timeout))
		glance := f.glance(one, w)
		got, err := gather.Look(one, w.Target, o)
		if err == nil && slices.ContainsFunc(advice.AccountChecks(), func(c advise.Check) bool { return f.wants(c.ID) }) {
			var list []advise.Finding
			var missing []fleet.Trouble
			list, missing, err = advice.Accounts(one, w.Target, w.Instance.Name)
			got.Findings = append(got.Findings, slices.DeleteFunc(list, func(x advise.Finding) bool { return !f.wants(x.ID) })...)
			got.Missing = append(got.Missing, missing...)
		}
		moment := glance(err == nil)
		if cause := context.Cause(one); err != nil && cause != nil {
			err = cause
		}
		if unmet := choice.Unmet(); err == nil && unmet != nil {
			err = fleet.WithRemedy(fmt.Errorf("there is no %w", unmet), fleet.RemedyOf(unmet))
		}
		cancel()
		if progress {
			fmt.Fprint(s.Err, "\r\x1b[K")
		}
		looked := Looked{Name: w.Instance.Name, Version: got.Server.Version, Tables: got.Tables, Seconds: got.Took.Seconds(), Unknown: append(got.Missing, moment.missing...), More: got.More, Statements: got.Cost.Statements, Watched: moment.watched.Seconds()}
		if got.Cost.Known {
			cpu := got.Cost.CPU.Seconds()
			looked.CPU = &cpu
		}
		if err != nil {
			looked.Error = err.Error()
			if failed == nil {
				failed = fmt.Errorf("%s: %w", w.Instance.Name, err)
			}
		}
		a.Servers = append(a.Servers, looked)
		got.Seen.Server = w.Instance.Name
		if err := prove.Hang(proofs(f.state), got.Server.Place(), got.Findings); err != nil {
			last := &a.Servers[len(a.Servers)-1]
			last.Unknown = append(last.Unknown, fleet.Trouble{What: "proofs", Why: err.Error()})
		}
		seen = append(seen, got.Seen)
		names, ids, found = append(names, w.Instance.Name), append(ids, got.ServerID), append(found, f.joined(got.Findings, moment.findings))
	}
	if len(servers) > 1 {
		if err := f.together(ctx, servers, &a, found); err != nil && failed == nil {
			failed = err
		}
	}
	if len(servers) == 1 {
		a.Findings = found[0]
	} else {
		a.Findings = append(advise.Several(names, advise.UnusedEverywhere(seen, found)), slices.DeleteFunc(advise.SameIDs(names, ids), func(x advise.Finding) bool { return !f.wants(x.ID) })...)
		advise.Rank(a.Findings)
	}
	if a.Findings == nil {
		a.Findings = []advise.Finding{}
	}
	return a, failed
}

// together compares the servers that answered with each other.
func (f *adviseFlags) together(ctx context.Context, servers []config.Watched, a *Answer, found [][]advise.Finding) error {
	if !slices.ContainsFunc(advise.TogetherChecks(), func(c advise.Check) bool { return f.wants(c.ID) }) {
		return nil
	}
	var targets []mysql.Target
	var names, groups []string
	var at []int
	for i, w := range servers {
		if a.Servers[i].Error == "" {
			at, targets, names, groups = append(at, i), append(targets, w.Target), append(names, w.Instance.Name), append(groups, w.Instance.Group)
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, f.timeout, fmt.Errorf("the servers could not be compared within %s", f.timeout))
	defer cancel()
	list, troubles, err := gather.Together(ctx, targets, names, groups, f.wants)
	if err != nil {
		return err
	}
	for k, i := range at {
		found[i] = advise.Beside(found[i], list[k])
		a.Servers[i].Unknown = append(a.Servers[i].Unknown, troubles[k]...)
	}
	return nil
}

// wants reports whether findings of an ID were asked for.
func (f *adviseFlags) wants(id string) bool {
	return len(f.ids) == 0 || slices.ContainsFunc(f.ids, func(want string) bool { return pattern.Stars(want, id) })
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
	for _, c := range allChecks() {
		a.Checks = append(a.Checks, CheckAnswer(c))
		table.Rows = append(table.Rows, []string{c.ID, c.Title, c.Like})
	}
	if output == "json" {
		return render.JSON(w, a)
	}
	_, err := fmt.Fprintln(w, strings.Join(table.Lines(0), "\n"))
	return err
}
