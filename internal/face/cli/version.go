package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/face/render"
)

// release is the version of this source tree; a build from a checkout adds its commit.
const release = "0.1.0-dev"

// build is what risso version tells of the program.
type build struct {
	Version  string `json:"version"`            // the release, and where the build knows it the commit
	Commit   string `json:"commit,omitempty"`   // whole
	Modified bool   `json:"modified,omitempty"` // built from files that were not committed
	Go       string `json:"go"`
	Platform string `json:"platform"`        // operating system and architecture
	Events   bool   `json:"embedded_events"` // statements can be kept in the data folder: a build with cgo
}

func thisBuild() build {
	b := build{Version: release, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		case "CGO_ENABLED":
			b.Events = s.Value == "1"
		}
	}
	if len(b.Commit) >= 8 {
		b.Version += "+" + b.Commit[:8]
	}
	return b
}

// Version is the release and, where the build knows it, the commit.
func Version() string { return thisBuild().Version }

func newVersion(s Streams) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "The version, and how this program was built",
		Example: "  risso version -o json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
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
	outputVar(cmd.Flags(), &output, "", "text", "json")
	return cmd
}
