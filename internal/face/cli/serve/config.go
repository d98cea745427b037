package serve

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/serve/config"
	"github.com/rissodb/risso/internal/watch/own"
)

// NewConfig is risso config.
func NewConfig(s screen.Streams) *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Check the config file of risso serve"}
	cmd.AddCommand(newConfigCheck(s))
	return cmd
}

func newConfigCheck(s screen.Streams) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Check a config file, without contacting any server",
		Long: `Reads a config file as risso serve does, with the password files and environment variables
and rule files that it names, and says what is wrong and where. It contacts no server: risso doctor does that.

` + fault.Help,
		Example: "  risso config check /etc/risso.yaml",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			set, err := config.Flags{Listen: config.DefaultListen, Sources: config.Sources{ConfigFile: args[0]}}.Settings()
			var hostOnly bool
			if err != nil {
				if !errors.Is(err, config.ErrNoServer) {
					return err
				}
				hostOnly = true // a file may leave the servers to --dsn
			}
			files, err := own.Find(set.Alerts.Rules)
			if err == nil {
				_, err = own.Read(files)
			}
			if err != nil {
				return fault.Usagef("%w", err)
			}
			list := []configuredServer{}
			for _, w := range set.Servers {
				list = append(list, configuredServer{w.Instance.Name, w.Target.Address(), w.Protect != nil})
			}
			if output == "json" {
				return render.JSON(s.Out, ConfigAnswer{args[0], list})
			}
			for _, w := range list {
				protected := ""
				if w.Protected {
					protected = ", protected"
				}
				fmt.Fprintf(s.Out, "%s: %s%s\n", w.Name, w.Address, protected)
			}
			if hostOnly {
				fmt.Fprintln(s.Out, "it names no server: give --dsn or --host-only to risso serve")
			}
			_, err = fmt.Fprintf(s.Out, "%s is right\n", args[0])
			return err
		},
	}
	flags.OutputVar(cmd.Flags(), &output, "", "text", "json")
	return cmd
}
