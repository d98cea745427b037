// Package accounts holds the command accounts and all below it.
package accounts

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/audit/accounts"
	"github.com/rissodb/risso/internal/audit/accounts/read"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/release"
)

type accountsFlags struct {
	flags.Servers
	policy, list, output, failOn string
	budget                       time.Duration
}

// New is risso accounts.
func New(s screen.Streams) *cobra.Command {
	var f accountsFlags
	cmd := &cobra.Command{
		Use:   "accounts",
		Short: "Audit the accounts of servers: passwords, rights, age, use, against a policy",
		Long: `Reads every account of one or several servers and says what is wrong, the worst first, each
with the statement that mends it, its undo and what it could break. It changes nothing.

Passwords are tested here, not on the server, against the words most used, variants of the
user's name and --list FILE, for --budget at most. No password and no hash is shown or kept.

What is right is said by a policy: PCI DSS v4.0 unless --policy names a file. What could not
be read, or cannot be known, is told as such. The output html is one page for an auditor, with
every account and every rule; csv has a line for each.

` + fault.Help,
		Example: `  risso accounts --dsn 'risso@tcp(db1:3306)/' --dsn 'risso@tcp(db2:3306)/'
  risso accounts --all --config /etc/risso.yaml --output html >accounts.html
  risso accounts --dsn 'risso@tcp(db1:3306)/' --list words.txt --budget 5m
  risso accounts policy >policy.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), s, f) },
	}
	f.Servers.Bind(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.policy, "policy", "", "file with the policy (default: that of risso accounts policy)")
	fl.StringVar(&f.list, "list", "", "file of passwords to test in addition, one a line")
	flags.DurationVar(fl, &f.budget, "budget", 20*time.Second, "how long to test passwords; 0: not at all")
	fl.StringVar(&f.failOn, "fail-on", "", "exit with 1 if there is a finding of this severity or a worse one: info, warning or critical")
	flags.OutputVar(fl, &f.output, "text, json, html (one page for an auditor) or csv", "text", "json", "html", "csv")
	cmd.AddCommand(newPolicy(s), newRotate(s))
	return cmd
}

func newPolicy(s screen.Streams) *cobra.Command {
	return &cobra.Command{
		Use:     "policy",
		Short:   "Print the built-in policy, to edit and give with --policy",
		Long:    "Prints the policy that risso accounts uses unless --policy names another: a YAML file with comments.\n\n" + fault.Help,
		Example: "  risso accounts policy >policy.yaml",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(s.Out, accounts.BuiltIn())
			return err
		},
	}
}

func run(ctx context.Context, s screen.Streams, f accountsFlags) error {
	worst := fleet.SeverityCritical + 1
	if f.failOn != "" {
		if err := worst.UnmarshalText([]byte(f.failOn)); err != nil {
			return fault.Usagef("--fail-on %s: info, warning or critical", f.failOn)
		}
	}
	if f.budget < 0 {
		return fault.Usagef("--budget %s: 0 or more", f.budget)
	}
	servers, err := f.Watched()
	if err != nil {
		return err
	}
	o := read.Options{Budget: f.budget}
	for _, w := range servers {
		o.Sources = append(o.Sources, read.Source{Name: w.Instance.Name, Target: w.Target, Flags: f.Again(w)})
	}
	if o.Policy, err = read.Policy(f.policy); err != nil {
		return fault.Usagef("--policy: %w", err)
	}
	if o.Words, err = read.Words(f.list); err != nil {
		return fault.Usagef("--list: %w", err)
	}
	if screen.OnTerminal(s.Err) {
		o.Say = screen.Says(s.Err)
	}
	r, err := read.Audit(ctx, o, time.Now())
	if err != nil {
		return err
	}
	r.By, r.Risso = whoRuns(), release.Version()
	if err := write(s, f.output, r); err != nil {
		return err
	}
	for _, on := range r.Servers {
		if on.Error != "" {
			return fault.New(fault.Failed, "", fmt.Errorf("%s could not be read: %s", on.Name, on.Error))
		}
	}
	if len(r.Findings) > 0 && r.Findings[0].Severity >= worst {
		return &fault.Told{Code: fault.Failed}
	}
	return nil
}

func write(s screen.Streams, output string, r accounts.Report) error {
	switch output {
	case "json":
		return render.JSON(s.Out, r)
	case "html":
		return r.WriteHTML(s.Out)
	case "csv":
		return r.WriteCSV(s.Out)
	}
	return r.WriteText(s.Out)
}

// whoRuns is the user and the machine.
func whoRuns() string {
	name, host := os.Getenv("USER"), ""
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = "@" + h
	}
	return name + host
}
