package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/rissodb/risso/internal/face/render"
)

// restored is what --restore tells of what a killed command had left set on a server.
type restored struct {
	what       string // a trace, a comparison
	dir        string // of the journals
	dryRun     bool
	found      bool
	since      time.Time
	restarted  bool
	statements []string
	words      string // of what was put back
}

func (r restored) write(out io.Writer, output string) (err error) {
	if output == "json" {
		v := restoredAnswer{Found: r.found, DryRun: r.dryRun}
		if r.found {
			v.Since, v.Restarted, v.Statements = &r.since, &r.restarted, append([]string{}, r.statements...)
		}
		return render.JSON(out, v)
	}
	switch {
	case !r.found:
		_, err = fmt.Fprintf(out, "nothing to put back: no killed %s of this server is on record in %s\n", r.what, r.dir)
	case r.restarted:
		_, err = fmt.Fprintf(out, "nothing to put back: the server has been restarted since the %s was killed\n", r.what)
	case r.dryRun:
		err = printStatements(out, r.statements)
	default:
		_, err = fmt.Fprintln(out, "put back:"+r.words)
	}
	return err
}
