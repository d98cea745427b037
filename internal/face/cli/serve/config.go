package serve

import (
	"errors"
	"fmt"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/avail/publish"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/oneline"
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
			list, notes := []configuredServer{}, missingPrograms(set.Publish.Hooks)
			for _, w := range set.Servers {
				list = append(list, configuredServer{w.Instance.Name, w.Target.Address(), w.Protect != nil})
			}
			if output == "json" {
				return render.JSON(s.Out, ConfigAnswer{args[0], list, notes})
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
			for _, n := range notes {
				fmt.Fprintln(s.Out, n)
			}
			_, err = fmt.Fprintf(s.Out, "%s is right\n", args[0])
			return err
		},
	}
	flags.OutputVar(cmd.Flags(), &output, "", "text", "json")
	return cmd
}

// missingPrograms says which hooks would fail here, as there is no such program. The file may be meant for another machine: it is not wrong.
func missingPrograms(hooks []publish.Hook) (notes []string) {
	for _, h := range hooks {
		if len(h.Command) == 0 {
			continue
		}
		if _, err := exec.LookPath(h.Command[0]); err != nil {
			notes = append(notes, fmt.Sprintf("the hook %s would fail on this machine: there is no program %s that can be run", oneline.Of(h.Name), oneline.Of(h.Command[0])))
		}
	}
	return notes
}
