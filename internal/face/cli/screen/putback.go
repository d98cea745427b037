package screen

import (
	"fmt"
	"io"
	"time"

	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/face/render"
)

// PutBack is what --restore tells of what a killed command had left set on a server.
type PutBack[T any] struct {
	What   string // a trace, a comparison
	Dir    string // of the journals
	DryRun bool
	Left   *change.Left[T]              // nil: nothing
	Words  func(*change.Left[T]) string // of what was put back
}

// Write tells it in the form asked for: text or json.
func (r PutBack[T]) Write(out io.Writer, output string) (err error) {
	l := r.Left
	if output == "json" {
		v := PutBackAnswer{Found: l != nil, DryRun: r.DryRun}
		if l != nil {
			v.Since, v.Restarted, v.Statements = &l.Since, &l.Restarted, append([]string{}, l.Statements...)
		}
		return render.JSON(out, v)
	}
	switch {
	case l == nil:
		_, err = fmt.Fprintf(out, "nothing to put back: no killed %s of this server is on record in %s\n", r.What, r.Dir)
	case l.Restarted:
		_, err = fmt.Fprintf(out, "nothing to put back: the server has been restarted since the %s was killed\n", r.What)
	case r.DryRun:
		err = Statements(out, l.Statements)
	default:
		_, err = fmt.Fprintln(out, "put back:"+r.Words(l))
	}
	return err
}

// PutBackAnswer is what a killed command had left changed on a server.
type PutBackAnswer struct {
	Found      bool       `json:"found"` // something was on record
	DryRun     bool       `json:"dry_run"`
	Since      *time.Time `json:"since,omitempty"`     // when it was changed
	Restarted  *bool      `json:"restarted,omitempty"` // the server has been restarted since, so nothing needs to be put back
	Statements []string   `json:"statements,omitzero"` // statements that put it back
}
