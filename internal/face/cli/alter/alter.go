// Package alter is risso alter: what an ALTER TABLE will do, and doing it without surprises.
package alter

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/home"
	"github.com/rissodb/risso/internal/mysql"
)

// New is risso alter with all below it.
func New(s screen.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "alter",
		Short: "Say what an ALTER TABLE will do, and run it without surprises",
		Long: `Says what an ALTER TABLE will do before it is done: instantly, in place or by a copy,
which locks it takes, how long it takes and with how much room on disk, and what stands in
its way now; and runs it so that the server refuses rather than does more than planned.

` + fault.Help,
		Example: `  risso alter plan --dsn 'risso@unix(/run/mysqld/mysqld.sock)/shop' "ALTER TABLE orders ADD note TEXT"
  risso alter run --dsn 'risso@unix(/run/mysqld/mysqld.sock)/shop' --dry-run "ALTER TABLE orders ADD note TEXT"
  risso alter status --dsn 'risso@unix(/run/mysqld/mysqld.sock)/shop'`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(newPlan(s), newRun(s), newStatus(s))
	return cmd
}

// planFlags are those of a plan.
type planFlags struct {
	flags.Server
	sample string
	output string
}

// state is the folder of the journals.
func state(dir string) string {
	if dir == "" {
		return home.State("alter")
	}
	return dir
}

// optionFile is the file that tools of others are told to read the password from, as a shell expands it.
func optionFile(f flags.Server) string {
	own := mysql.UserDefaultsFile()
	switch {
	case f.DefaultsFile != "":
		if abs, err := filepath.Abs(f.DefaultsFile); err == nil {
			return abs
		}
		return f.DefaultsFile
	case own != "":
		if dir, err := os.UserHomeDir(); err == nil && filepath.Dir(own) == dir {
			return `"$HOME"/` + filepath.Base(own)
		}
		return own
	}
	return `"$HOME"/.my.cnf`
}

// say shows steps on a terminal.
func say(s screen.Streams) (func(string), func()) {
	p := screen.NewProgress(s.Err)
	return func(step string) { p.Show(func(float64) string { return step + " …" }) }, p.End
}

// oneStatement is the only argument.
func oneStatement(args []string) (string, error) {
	if len(args) != 1 {
		return "", fault.New(fault.Usage, `risso alter plan "ALTER TABLE shop.orders ADD note TEXT"`, fmt.Errorf("%d arguments: give one statement in quotes", len(args)))
	}
	return args[0], nil
}
