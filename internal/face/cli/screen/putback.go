package screen

import (
	"fmt"
	"io"
	"time"

	"github.com/rissodb/risso/internal/face/render"
)

// PutBack is what --restore tells of what a killed command had left set on a server.
type PutBack struct {
	What       string // a trace, a comparison
	Dir        string // of the journals
	DryRun     bool
	Found      bool
	Since      time.Time
	Restarted  bool
	Statements []string
	Words      string // of what was put back
}

// Write tells it in the form asked for: text or json.
func (r PutBack) Write(out io.Writer, output string) (err error) {
	if output == "json" {
		v := PutBackAnswer{Found: r.Found, DryRun: r.DryRun}
		if r.Found {
			v.Since, v.Restarted, v.Statements = &r.Since, &r.Restarted, append([]string{}, r.Statements...)
		}
		return render.JSON(out, v)
	}
	switch {
	case !r.Found:
		_, err = fmt.Fprintf(out, "nothing to put back: no killed %s of this server is on record in %s\n", r.What, r.Dir)
	case r.Restarted:
		_, err = fmt.Fprintf(out, "nothing to put back: the server has been restarted since the %s was killed\n", r.What)
	case r.DryRun:
		err = Statements(out, r.Statements)
	default:
		_, err = fmt.Fprintln(out, "put back:"+r.Words)
	}
	return err
}

// PutBackAnswer is what a killed command had left set on a server.
type PutBackAnswer struct {
	Found      bool       `json:"found"` // something was on record
	DryRun     bool       `json:"dry_run"`
	Since      *time.Time `json:"since,omitempty"`     // when it was set
	Restarted  *bool      `json:"restarted,omitempty"` // the server was restarted since, so that nothing is to be put back
	Statements []string   `json:"statements,omitzero"` // that put it back
}
