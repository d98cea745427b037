package advise

import (
	"fmt"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/oneline"
)

// text is an answer for people.
func text(a Answer) string {
	var b strings.Builder
	for _, f := range a.Findings {
		screen.Advice(&b, f, len(a.Servers))
	}
	switch n := len(a.Findings); {
	case n > 0:
		fmt.Fprintf(&b, "%s: %d critical, %d warnings.\n", digits.Counted(n, "finding"), count(a.Findings, fleet.SeverityCritical), count(a.Findings, fleet.SeverityWarning)-count(a.Findings, fleet.SeverityCritical))
	default:
		b.WriteString("Nothing was found.\n")
	}
	for _, s := range a.Servers {
		if s.Error != "" {
			fmt.Fprintf(&b, "%s: nothing is known of it: %s\n", s.Name, oneline.Of(s.Error))
			continue
		}
		fmt.Fprintf(&b, "%s (%s): %s looked at in %s by %s", s.Name, s.Version, digits.Counted(s.Tables, "table"), digits.Seconds(s.Seconds), digits.Counted(s.Statements, "statement"))
		if s.CPU != nil {
			fmt.Fprintf(&b, "; the server used %s of processor time meanwhile", digits.Seconds(*s.CPU))
		}
		if s.Watched > 0 {
			fmt.Fprintf(&b, "; watched for %s for what is wrong at the moment.\n", digits.Seconds(s.Watched))
		} else {
			b.WriteString("; not watched for what is wrong at the moment.\n")
		}
		for _, m := range s.More {
			fmt.Fprintf(&b, "  not listed: %s of %s, less bad than those above", digits.Counted(m.Count, "finding"), m.ID)
			if m.Bytes > 0 {
				fmt.Fprintf(&b, "; together %s", digits.Bytes(m.Bytes))
			}
			b.WriteString("\n")
		}
		for _, u := range s.Unknown {
			fmt.Fprintf(&b, "  not looked at: %s: %s\n", oneline.Of(u.What), oneline.Of(u.Why))
			if u.Remedy != "" {
				fmt.Fprintf(&b, "    %s\n", u.Remedy)
			}
		}
	}
	return b.String()
}
