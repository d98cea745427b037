package topology

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/avail/diagnose"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/oneline"
)

// newCodes is risso topology codes.
func newCodes(s screen.Streams) *cobra.Command {
	output := ""
	cmd := &cobra.Command{
		Use:   "codes",
		Short: "List all that risso topology looks for",
		Long:  `Lists all that risso topology looks for: how bad it is at its worst, what it means, by what it is recognised, what is certain then and what is not seen, and what to do.`,
		Example: `  risso topology codes
  risso topology codes --output json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			codes := diagnose.Codes()
			if output == "json" {
				return render.JSON(s.Out, CodesAnswer{codes})
			}
			_, err := io.WriteString(s.Out, codesText(codes))
			return err
		},
	}
	flags.OutputVar(cmd.Flags(), &output, "", "text", "json")
	return cmd
}

func codesText(codes []diagnose.Code) string {
	var b strings.Builder
	for _, c := range codes {
		fmt.Fprintf(&b, "%-8s  %s: %s\n", c.Severity, c.ID, c.Means)
		for _, part := range [][2]string{{"by", c.Recognised}, {"certain", c.Certain}, {"not seen", c.NotSeen}, {"next", c.Next}} {
			if part[1] != "-" {
				fmt.Fprintf(&b, "          %s: %s\n", part[0], part[1])
			}
		}
	}
	return b.String()
}

// mostBelow is how many consequences of one cause are listed.
const mostBelow = 5

// diagnosesText is what is wrong, as text: what follows from something else stands below it.
func diagnosesText(found []diagnose.Diagnosis, width int) string {
	var b strings.Builder
	line := func(format string, args ...any) {
		b.WriteString(oneline.Cut(fmt.Sprintf(format, args...), width) + "\n")
	}
	below := map[diagnose.Cause][]diagnose.Diagnosis{}
	for _, d := range found {
		if d.Because != nil {
			below[*d.Because] = append(below[*d.Because], d)
		}
	}
	const indent = "          "
	for _, d := range found {
		if d.Because != nil && len(below[*d.Because]) > 0 {
			continue
		}
		if b.Len() == 0 {
			b.WriteString("\n")
		}
		line("%-8s  %s: %s", d.Severity, d.Code, oneline.Of(d.What))
		if d.Severity > fleet.SeverityInfo {
			for _, e := range d.Evidence {
				line("%sseen: %s", indent, oneline.Of(e))
			}
			if d.NotSeen != "-" {
				line("%snot seen: %s", indent, d.NotSeen)
			}
			b.WriteString(indent + "next: " + oneline.Of(d.Next) + "\n") // in full, as people copy it
		}
		if d.Statements != "" {
			b.WriteString(indent + "on " + oneline.Of(d.On) + ": " + oneline.Of(d.Statements) + "\n")
		}
		consequences(line, below, diagnose.Cause{Code: d.Code, Node: d.Nodes[0]}, indent, map[diagnose.Cause]bool{})
	}
	return b.String()
}

// consequences lists what follows from a cause, and from that.
func consequences(line func(string, ...any), below map[diagnose.Cause][]diagnose.Diagnosis, cause diagnose.Cause, indent string, done map[diagnose.Cause]bool) {
	if done[cause] {
		return
	}
	done[cause] = true
	list := below[cause]
	for i, d := range list {
		if i == mostBelow {
			line("%sand %s more", indent, digits.Thousands(len(list)-i))
			return
		}
		line("%sso: %s: %s", indent, d.Code, oneline.Of(d.What))
		consequences(line, below, diagnose.Cause{Code: d.Code, Node: d.Nodes[0]}, indent+"  ", done)
	}
}
