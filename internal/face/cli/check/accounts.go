package check

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/audit/accounts"
	"github.com/rissodb/risso/internal/audit/accounts/read"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
)

type checkAccountsFlags struct {
	flags.Servers
	policy, list string
	ignore       []string
	budget, wait time.Duration
}

func newCheckAccounts(s screen.Streams) *cobra.Command {
	var f checkAccountsFlags
	cmd := &cobra.Command{
		Use:   "accounts",
		Short: "Check the accounts of servers against a policy",
		Long: `Says in one line what risso accounts finds: CRITICAL and WARNING as its findings are; findings
of severity info change nothing. Further lines tell each.

Exit codes: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN: a server or its accounts could not be read, or
wrong use. Of several states the worst counts: CRITICAL, then WARNING, then UNKNOWN.`,
		Example: `  risso check accounts --dsn 'monitor@tcp(db1:3306)/' --defaults-file /etc/risso/db1.cnf
  risso check accounts --all --config /etc/risso.yaml --policy /etc/risso/policy.yaml --ignore sec.host`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return failed(s, "ACCOUNTS", fault.Usagef("unexpected argument %q", args[0]))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return runCheckAccounts(cmd.Context(), s, f) },
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return failed(s, "ACCOUNTS", err) })
	f.Servers.Bind(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.policy, "policy", "", "file with the policy (default: that of risso accounts policy)")
	fl.StringVar(&f.list, "list", "", "file of passwords to test in addition, one a line")
	fl.StringSliceVar(&f.ignore, "ignore", nil, "rules that do not count, such as sec.host")
	flags.DurationVar(fl, &f.budget, "budget", 5*time.Second, "how long to test passwords; 0: not at all")
	flags.DurationVar(fl, &f.wait, "timeout", 30*time.Second, "give up after this time, as UNKNOWN")
	return cmd
}

func runCheckAccounts(ctx context.Context, s screen.Streams, f checkAccountsFlags) error {
	ctx, cancel := context.WithTimeoutCause(ctx, f.wait, fmt.Errorf("no answer within %s", f.wait))
	defer cancel()
	r, err := f.look(ctx)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return failed(s, "ACCOUNTS", err)
	}
	state, text := judgeAccounts(r, f.ignore)
	fmt.Fprint(s.Out, text)
	if state == OK {
		return nil
	}
	return &fault.Told{Code: state}
}

func (f checkAccountsFlags) look(ctx context.Context) (r accounts.Report, err error) {
	for _, id := range f.ignore {
		if !slices.ContainsFunc(accounts.Rules(), func(k accounts.RuleKind) bool { return k.ID == id }) {
			return r, fault.Usagef("--ignore %s: there is no such rule", id)
		}
	}
	servers, err := f.Watched()
	if err != nil {
		return r, err
	}
	o := read.Options{Budget: f.budget}
	for _, w := range servers {
		o.Sources = append(o.Sources, read.Source{Name: w.Instance.Name, Target: w.Target, Flags: f.Again(w)})
	}
	if o.Policy, err = read.Policy(f.policy); err != nil {
		return r, fault.Usagef("--policy: %w", err)
	}
	if o.Words, err = read.Words(f.list); err != nil {
		return r, fault.Usagef("--list: %w", err)
	}
	return read.Audit(ctx, o, time.Now())
}

// judgeAccounts is the state, and what the plug-in prints. A server whose accounts could not be read is never OK.
func judgeAccounts(r accounts.Report, ignore []string) (state int, text string) {
	n := map[fleet.Severity]int{}
	var lines []string
	first := ""
	for _, f := range r.Findings {
		if slices.Contains(ignore, f.ID) {
			continue
		}
		n[f.Severity]++
		if f.Severity < fleet.SeverityWarning {
			continue
		}
		line := fmt.Sprintf("%s %s %s: %s", f.ID, f.Server, f.Object, f.What)
		if first == "" {
			first = line
		}
		lines = append(lines, plain(fmt.Sprintf("[%s] %s: %s", checkWords[codeOf(f.Severity)], line, f.Evidence), mostLine))
	}
	blind := 0
	for _, s := range r.Servers {
		if s.Error != "" {
			blind++
			lines = append(lines, plain("[UNKNOWN] "+s.Name+": "+s.Error, mostLine))
		}
	}
	unread := 0
	for _, a := range r.Accounts {
		if !a.Known {
			unread++
		}
	}
	words := ""
	switch {
	case n[fleet.SeverityCritical] > 0:
		state = Critical
	case n[fleet.SeverityWarning] > 0:
		state = Warning
	case blind > 0:
		state, words = Unknown, digits.Counted(blind, "server")+" could not be read"
	case unread > 0:
		state, words = Unknown, "how accounts log in could not be read: "+r.Incomplete()[0]
	default:
		words = "nothing is wrong with " + digits.Counted(len(r.Accounts), "account")
	}
	if words == "" {
		words = fmt.Sprintf("%d critical, %d warning: %s", n[fleet.SeverityCritical], n[fleet.SeverityWarning], first)
		if blind > 0 {
			words += "; " + digits.Counted(blind, "server") + " could not be read"
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "ACCOUNTS %s - %s | 'critical'=%d;;;0 'warning'=%d;;;0 'accounts'=%d;;;0\n", checkWords[state], plain(words, mostLine), n[fleet.SeverityCritical], n[fleet.SeverityWarning], len(r.Accounts))
	for i, line := range lines {
		if b.Len()+len(line) > mostLine+mostLong {
			fmt.Fprintf(&b, "left out here: %d more lines\n", len(lines)-i)
			break
		}
		b.WriteString(line + "\n")
	}
	return state, b.String()
}
