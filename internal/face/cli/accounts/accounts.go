// Package accounts is the command risso accounts: are the accounts of servers safe?
package accounts

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"gopkg.in/yaml.v3"

	"github.com/rissodb/risso/internal/audit/accounts"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/serve/config"
)

type accountFlags struct {
	flags.Servers
	list, policy string
	budget       time.Duration
	failOn       string
	output       string
}

// New is risso accounts.
func New(s screen.Streams) *cobra.Command {
	var f accountFlags
	cmd := &cobra.Command{
		Use:   "accounts",
		Short: "Report on the accounts of servers: passwords, privileges, the rules of a policy",
		Long: `Looks at every account of one or several servers: empty, weak and shared passwords, old ways
to log in, privileges that amount to root's over the network, and the rules of a policy. Nothing
is changed, and no account is locked by it: passwords are tried on this machine, against what
the server keeps of them, for at most --budget for each server. Neither hashes nor passwords
are shown or written anywhere.

The built-in policy is PCI-DSS v4 (8.2.6, 8.3.4, 8.3.9); --policy reads another one:

  name: our own
  max_age_days: 365     passwords older than this; 0: any
  max_attempts: 10      wrong passwords in a row; 0: any
  unused_days: 90       accounts that nobody used; 0: any

It needs SELECT on mysql.*. --output html and csv are reports for an auditor, dated and with each
account.

` + fault.Help,
		Example: `  risso accounts --dsn 'risso@unix(/run/mysqld/mysqld.sock)/'
  risso accounts --all --config /etc/risso/risso.yaml --output html >accounts.html
  risso accounts --dsn 'risso@tcp(db1:3306)/' --list passwords.txt --budget 2m --fail-on critical`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), s, f) },
	}
	fl := cmd.Flags()
	f.Servers.Bind(cmd)
	fl.StringVar(&f.list, "list", "", "file of passwords to try, one on each line (default a short list of the most used)")
	fl.StringVar(&f.policy, "policy", "", "file (YAML) with the rules (default PCI-DSS v4)")
	flags.DurationVar(fl, &f.budget, "budget", 10*time.Second, "how long passwords of one server are tried")
	fl.StringVar(&f.failOn, "fail-on", "", "exit code 1 if there is a finding that is at least so bad: info, warning or critical")
	flags.OutputVar(fl, &f.output, "", "text", "json", "csv", "html")
	return cmd
}

// rules are the policy that was asked for.
func (f *accountFlags) rules() (accounts.Policy, error) {
	p := accounts.PCI()
	if f.budget <= 0 {
		return p, fault.Usagef("--budget %s: more than 0", f.budget)
	}
	if f.failOn != "" && !slices.Contains([]string{"info", "warning", "critical"}, f.failOn) {
		return p, fault.Usagef("--fail-on %q: info, warning or critical", f.failOn)
	}
	if f.policy != "" {
		file, err := os.Open(f.policy)
		if err != nil {
			return p, fault.Usagef("--policy: %w", err)
		}
		defer file.Close()
		p = accounts.Policy{}
		d := yaml.NewDecoder(file)
		d.KnownFields(true)
		if err := d.Decode(&p); err != nil {
			return p, fault.Usagef("--policy %s: %w", f.policy, err)
		}
		if p.Name == "" || p.MaxAge < 0 || p.Attempts < 0 || p.Unused < 0 {
			return p, fault.Usagef("--policy %s: a name, and no number below 0", f.policy)
		}
	}
	if f.list != "" {
		file, err := os.Open(f.list)
		if err != nil {
			return p, fault.Usagef("--list: %w", err)
		}
		defer file.Close()
		p.Passwords = []string{}
		lines := bufio.NewScanner(file)
		for lines.Scan() {
			if line := strings.TrimSuffix(lines.Text(), "\r"); line != "" {
				p.Passwords = append(p.Passwords, line)
			}
		}
		if err := lines.Err(); err != nil {
			return p, fault.Usagef("--list %s: %w", f.list, err)
		}
	}
	return p, nil
}

func run(ctx context.Context, s screen.Streams, f accountFlags) error {
	p, err := f.rules()
	if err != nil {
		return err
	}
	servers, err := f.Watched()
	if err != nil {
		return err
	}
	a := Answer{Made: time.Now().UTC(), Policy: p, Findings: []fleet.Advice{}}
	var failed error
	for _, w := range servers {
		one, findings, err := f.look(ctx, w, p)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			one.Error = err.Error()
			failed = errors.Join(failed, err)
		}
		a.Servers = append(a.Servers, one)
		for _, x := range findings {
			x.Servers = []string{one.Name}
			a.Findings = append(a.Findings, x)
		}
	}
	slices.SortStableFunc(a.Findings, func(x, y fleet.Advice) int { return int(y.Severity) - int(x.Severity) })
	if failed != nil && len(servers) == 1 {
		return failed
	}
	if err := write(s.Out, f.output, a); err != nil {
		return err
	}
	if failed != nil || f.failOn == "" {
		return failed
	}
	var least fleet.Severity
	_ = least.UnmarshalText([]byte(f.failOn))
	if slices.ContainsFunc(a.Findings, func(x fleet.Advice) bool { return x.Severity >= least }) {
		return fault.New(fault.Failed, "", fmt.Errorf("there are findings that are at least %s", f.failOn))
	}
	return nil
}

// look asks one server.
func (f *accountFlags) look(ctx context.Context, w config.Watched, p accounts.Policy) (out Server, list []fleet.Advice, err error) {
	out = Server{Name: w.Instance.Name, Accounts: []Account{}}
	asking, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	read, err := accounts.Read(asking, w.Target)
	if err != nil {
		return out, nil, fmt.Errorf("%s: %w", w.Instance.Name, err)
	}
	trying, end := context.WithTimeout(ctx, f.budget)
	defer end()
	j := accounts.Judge(trying, read, p)
	out.Version, out.Tried, out.Unknown = read.Version, j.Tried, j.Missing
	for _, a := range read.Accounts {
		one := Account{Name: a.Name(), Role: a.Role, Plugins: []string{}, Locked: a.Locked, Expired: a.Expired, Changed: a.Changed, Used: a.Seen.String(), Findings: []string{}}
		for _, way := range a.Ways {
			one.Plugins = append(one.Plugins, way.Plugin)
		}
		for _, x := range j.Findings {
			if x.Object == one.Name {
				one.Findings = append(one.Findings, x.ID)
			}
		}
		out.Accounts = append(out.Accounts, one)
	}
	return out, j.Findings, nil
}

func write(w io.Writer, output string, a Answer) error {
	switch output {
	case "json":
		return render.JSON(w, a)
	case "csv":
		return writeCSV(w, a)
	case "html":
		return page.Execute(w, a)
	}
	_, err := io.WriteString(w, text(a))
	return err
}
