package accounts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/audit/accounts/read"
	"github.com/rissodb/risso/internal/audit/accounts/rotate"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/home"
)

type rotateFlags struct {
	flags.Servers
	rotate.Options
	passwordFile, state, output string
	dryRun, yes                 bool
}

func newRotate(s screen.Streams) *cobra.Command {
	var f rotateFlags
	cmd := &cobra.Command{
		Use:   "rotate USER@HOST",
		Short: "Give an account a new password; the old one stays valid until --discard",
		Long: `Gives an account a new password in two steps, so that nothing breaks: first the server takes
the new password beside the old one; then, once all clients have it, --discard removes the old.
MySQL 8.0.14 and newer have dual passwords for that. MariaDB gets a second way to log in; other
servers can keep one password only, and --at-once replaces it.

The new password is drawn here and given to the command of --store, on its standard input, before
the server is changed; the account is in its environment: RISSO_ACCOUNT, RISSO_USER, RISSO_HOST,
RISSO_SERVER. What that command writes is not shown. Or --password-file names a file with the new
password. The server is sent only what it stores, never the password.

The plan is printed first, and carried out with --yes. A journal says how far a rotation came.

` + fault.Help,
		Example: `  risso accounts rotate 'shop@10.0.%' --dsn 'admin@tcp(db1:3306)/' --store 'vault kv put secret/shop password=-' --dry-run
  risso accounts rotate 'shop@10.0.%' --dsn 'admin@tcp(db1:3306)/' --store 'vault kv put secret/shop password=-' --yes
  risso accounts rotate 'shop@10.0.%' --dsn 'admin@tcp(db1:3306)/' --discard --yes`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Account = args[0]
			return runRotate(cmd.Context(), s, f)
		},
	}
	f.Servers.Bind(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.Store, "store", "", "shell command that keeps the new password, which it reads from standard input")
	fl.StringVar(&f.passwordFile, "password-file", "", "file with the new password, instead of one that is drawn")
	fl.BoolVar(&f.Options.Discard, "discard", false, "remove the old password")
	fl.BoolVar(&f.AtOnce, "at-once", false, "do not keep the old password")
	fl.StringVar(&f.Plugin, "plugin", "", "authentication plug-in for the new password (default: as it is)")
	fl.BoolVar(&f.dryRun, "dry-run", false, "print the plan and end")
	fl.BoolVar(&f.yes, "yes", false, "carry the plan out")
	fl.StringVar(&f.state, "state", "", "folder of the journal (default "+home.State("accounts")+")")
	flags.OutputVar(fl, &f.output, "", "text", "json")
	return cmd
}

func (f *rotateFlags) check() error {
	switch {
	case f.Discard && (f.Store != "" || f.passwordFile != "" || f.AtOnce || f.Plugin != ""):
		return fault.Usagef("--discard removes the old password: it takes no new one")
	case !f.Discard && !f.dryRun && f.Store == "" && f.passwordFile == "":
		return fault.Usagef("nobody would know the new password: give --store or --password-file")
	case f.dryRun && f.yes:
		return fault.Usagef("either --dry-run or --yes")
	case strings.ContainsAny(f.Plugin, "'`\" ;\\"):
		return fault.Usagef("--plugin %q is no name of a plug-in", f.Plugin)
	}
	if f.state == "" {
		f.state = home.State("accounts")
	}
	if f.passwordFile != "" {
		text, err := os.ReadFile(f.passwordFile)
		if err != nil {
			return fault.Usagef("--password-file: %w", err)
		}
		if f.Password = strings.TrimRight(string(text), "\r\n"); f.Password == "" {
			return fault.Usagef("--password-file %s is empty", f.passwordFile)
		}
	}
	return nil
}

func runRotate(ctx context.Context, s screen.Streams, f rotateFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	servers, err := f.Watched()
	if err != nil {
		return err
	}
	if len(servers) != 1 {
		return fault.Usagef("%d servers: name one, the primary; replicas follow it", len(servers))
	}
	f.Source = read.Source{Name: servers[0].Instance.Name, Target: servers[0].Target}
	r, err := rotate.Prepare(ctx, f.Options)
	if err != nil {
		return err
	}
	defer r.Close()
	a := RotatedAnswer{Account: f.Account, Server: f.Source.Name, Plan: r.Plan.Words(), Notes: r.Notes, Undo: r.Undo, CutOff: r.CutOff(f.state)}
	if f.output != "json" {
		if a.CutOff != "" {
			fmt.Fprintln(s.Out, a.CutOff)
		}
		fmt.Fprintf(s.Out, "plan for %s on %s:\n", a.Account, a.Server)
		screen.Steps(s.Out, r.Plan)
		for _, n := range a.Notes {
			fmt.Fprintln(s.Out, "note:", n)
		}
		fmt.Fprintln(s.Out, "undo:", a.Undo)
	}
	if !f.dryRun && !f.yes {
		return fault.New(fault.Usage, "--yes carries it out, --dry-run only prints it", errors.New("nothing was changed"))
	}
	if f.yes {
		if a.Journal, err = r.Run(ctx, f.state); err != nil && a.Journal == "" {
			return err
		} else if err != nil {
			return fault.New(fault.Failed, "the journal says how far it came: "+a.Journal, err)
		}
		a.Done = true
	}
	if f.output == "json" {
		return render.JSON(s.Out, a)
	}
	if a.Done {
		fmt.Fprintln(s.Out, "done; journal:", a.Journal)
	}
	return nil
}
