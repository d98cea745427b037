package drill

import (
	"context"
	"fmt"
	"strings"

	"github.com/rissodb/risso/internal/data/load"
	"github.com/rissodb/risso/internal/digits"
)

// load puts a logical backup into the server and compares every table with the manifest.
func (r *run) load(ctx context.Context) error {
	var notes []string
	got, err := load.Restore(ctx, load.Options{Repo: r.Repo, Backup: r.header.ID, Into: r.target, Threads: r.Threads, SkipIncompatible: true, Hold: true,
		Confirm: func(p load.Plan) error {
			for _, f := range p.Findings {
				if f.Mapped != "" { // else it is left out, which the result says
					notes = append(notes, f.Words())
				}
			}
			notes = append(notes, p.Notes...)
			return nil
		},
		Progress: func(p load.Progress) { r.bytes(p.Stage, p.Bytes, p.Total) }})
	if !load.CameToEnd(err) {
		return fmt.Errorf("load: %w", err)
	}
	r.stage("load")
	r.proof.Bytes = got.Bytes
	leftOut, more := missing(got)
	// That accounts were there (got.Kept) is nothing to know: those are the throw-away server's own.
	r.proof.Notes = append(append(append(r.proof.Notes, notes...), more...), got.Notes...)
	different := make([]string, len(got.Different))
	for i, t := range got.Different {
		different[i] = fmt.Sprintf("%s.%s (%s, sum %s; the backup has %s)", t.Schema, t.Table, digits.Counted(t.Rows, "row"), t.Sum, t.Wants)
	}
	r.proof.Compare = Compare{Tables: got.Tables, Rows: got.Rows, Different: different}
	if n := len(different); n > 0 {
		r.proof.fail("%d of %d tables differ from the backup: %s", n, got.Tables, strings.Join(different[:min(n, 5)], ", "))
	}
	if n := len(leftOut); n > 0 {
		r.proof.fail("%s not restored: %s", digits.Plural(n, "view or program", "views and programs"), strings.Join(leftOut[:min(n, 5)], "; "))
	}
	if got.Tables != r.header.Tables {
		r.proof.fail("the manifest has %s, %d were compared", digits.Counted(r.header.Tables, "table"), got.Tables)
	}
	if got.Rows != r.header.Rows && len(different) == 0 {
		r.proof.fail("the manifest has %s, %d were restored", digits.Counted(r.header.Rows, "row"), got.Rows)
	}
	return nil
}

// missing lists views and programs that the drill's server should have taken from what is only noted.
func missing(got load.Result) (leftOut, notes []string) {
	accounts := false // some are missing
	for _, f := range got.LeftOut {
		accounts = accounts || strings.HasPrefix(f.What, "account ")
		switch text := f.What + ": " + f.Why; {
		case strings.HasPrefix(f.What, "account "): // the throw-away server may not support its way to log in
			notes = append(notes, text)
		case !strings.HasPrefix(f.What, "table "): // a table that is missing is missed when they are counted
			leftOut = append(leftOut, text)
		}
	}
	for _, f := range got.Broken {
		text := f.What + " does not work: " + f.Why
		if accounts { // one of them may be its definer
			notes = append(notes, text)
		} else {
			leftOut = append(leftOut, text)
		}
	}
	return leftOut, notes
}
