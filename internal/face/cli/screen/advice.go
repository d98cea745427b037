package screen

import (
	"fmt"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/oneline"
)

// Advice writes a finding of advice; servers is of how many it was looked for.
func Advice(b *strings.Builder, f fleet.Advice, servers int) {
	fmt.Fprintf(b, "%-8s  %s  %s\n", f.Severity, f.ID, oneline.Of(f.Object))
	line := func(head, text string) {
		if text != "" {
			fmt.Fprintf(b, "          %-9s %s\n", head, oneline.Of(text))
		}
	}
	line("", f.What)
	if servers > 1 {
		line("on", fmt.Sprintf("%d of %d servers: %s", len(f.Servers), servers, strings.Join(f.Servers, ", ")))
	}
	line("why", f.Why)
	line("seen", strings.Join(f.Evidence, "; "))
	line("advice", f.Advice)
	line("run", f.Statement)
	line("does", f.Effect)
	line("undo", f.Undo)
	if p := f.Proof; p != nil {
		line("proven", fmt.Sprintf("%s on %s, with %s: %s: %s", p.Time.Local().Format(time.DateTime), p.On, p.Data, p.Outcome, p.Words))
	}
	if f.Sure != fleet.Certain {
		line(string(f.Sure), f.Doubt)
	}
	b.WriteString("\n")
}
