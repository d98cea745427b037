package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/release"
)

// newManual is risso man: manual pages made from the help of every command.
func newManual(s screen.Streams) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "man --to DIR",
		Short: "Write manual pages for every command",
		Long: `Writes a manual page (section 1) for every command into a folder, generated from its help.
man finds them if the folder is a man1 folder on its search path.`,
		Example: `  risso man --to /usr/local/share/man/man1 && man risso-backup`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if to == "" {
				return wrongUse(cmd, "", errors.New("no folder to write to: --to DIR"))
			}
			if err := os.MkdirAll(to, 0o755); err != nil {
				return err
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true // the same pages from the same program
			if err := doc.GenManTree(root, &doc.GenManHeader{Title: "RISSO", Section: "1", Source: "Risso " + release.Version(), Manual: "Risso"}, to); err != nil {
				return err
			}
			_, err := fmt.Fprintln(s.Out, "manual pages are in", to)
			return err
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "folder to write to: /usr/local/share/man/man1 or ~/.local/share/man/man1")
	return cmd
}
