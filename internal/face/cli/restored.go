package cli

import (
	"fmt"
	"io"

	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/face/render"
)

// restored is what --restore tells of what a killed command had left set on a server.
type restored[T any] struct {
	what   string // a trace, a comparison
	dir    string // of the journals
	dryRun bool
	left   *change.Left[T]              // nil: nothing
	words  func(*change.Left[T]) string // of what was put back
}

func (r restored[T]) write(out io.Writer, output string) (err error) {
	l := r.left
	if output == "json" {
		v := restoredAnswer{Found: l != nil, DryRun: r.dryRun}
		if l != nil {
			v.Since, v.Restarted, v.Statements = &l.Since, &l.Restarted, append([]string{}, l.Statements...)
		}
		return render.JSON(out, v)
	}
	switch {
	case l == nil:
		_, err = fmt.Fprintf(out, "nothing to put back: no killed %s of this server is on record in %s\n", r.what, r.dir)
	case l.Restarted:
		_, err = fmt.Fprintf(out, "nothing to put back: the server has been restarted since the %s was killed\n", r.what)
	case r.dryRun:
		err = printStatements(out, l.Statements)
	default:
		_, err = fmt.Fprintln(out, "put back:"+r.words(l))
	}
	return err
}
