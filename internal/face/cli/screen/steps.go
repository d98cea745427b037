package screen

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/rissodb/risso/internal/change"
)

// Steps lists what a plan will do, of many steps the first.
func Steps(out io.Writer, p change.Plan) {
	const most = 300 // lines: of a group's servers all, of a restore some of its tables
	for i, words := range p.Words() {
		if i == most-1 && len(p) > most {
			fmt.Fprintf(out, "  and %d more\n", len(p)-i)
			return
		}
		fmt.Fprintln(out, " ", words)
	}
}

// Confirmed asks on the terminal whether to run a plan that was shown.
func Confirmed(s Streams) bool {
	fmt.Fprint(s.Err, "\nrun it? (yes/no) ")
	line, _ := bufio.NewReader(s.In).ReadString('\n') // the end of the input is a no
	return strings.TrimSpace(strings.ToLower(line)) == "yes"
}
