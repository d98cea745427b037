package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/release"
)

func newVersion(s screen.Streams) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Show the version, and how this program was built",
		Example: "  risso version -o json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b := release.This()
			if output == "json" {
				return render.JSON(s.Out, b)
			}
			events := "with the embedded store of statements"
			if !b.Events {
				events = "without the embedded store of statements (built without a C compiler)"
			}
			modified := ""
			if b.Modified {
				modified = ", from changed files"
			}
			_, err := fmt.Fprintf(s.Out, "risso %s%s\n%s, %s, %s\n", b.Version, modified, b.Go, b.Platform, events)
			return err
		},
	}
	flags.OutputVar(cmd.Flags(), &output, "", "text", "json")
	return cmd
}
