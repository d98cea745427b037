package screen

import (
	"fmt"
	"io"

	"github.com/rissodb/risso/internal/change"
)

// Steps lists what a plan will do, of many steps the first.
func Steps(out io.Writer, p change.Plan) {
	const most = 20 // lines
	for i, words := range p.Words() {
		if i == most-1 && len(p) > most {
			fmt.Fprintf(out, "  and %d more\n", len(p)-i)
			return
		}
		fmt.Fprintln(out, " ", words)
	}
}
