package replica

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/rissodb/risso/internal/avail/errant"
	"github.com/rissodb/risso/internal/avail/repoint"
	"github.com/rissodb/risso/internal/data/checksum"
	"github.com/rissodb/risso/internal/data/dump"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/oneline"
	worker "github.com/rissodb/risso/internal/serve/rebuild"
)

// RebuildAnswer is what is to be done to a replica that is rebuilt, and was.
type RebuildAnswer struct {
	DryRun  bool             `json:"dry_run"`
	Replica string           `json:"replica"`           // its name
	Source  string           `json:"source"`            // that it follows
	From    string           `json:"from"`              // whose data it gets
	Because string           `json:"why"`               // why that one
	GoesOn  string           `json:"goes_on,omitempty"` // what an earlier run, which was cut off, has copied
	Tables  int64            `json:"tables"`            // of what it gets, estimated by the server unless it was copied already
	Rows    int64            `json:"rows"`
	Bytes   int64            `json:"bytes"`
	Lasts   string           `json:"lasts,omitempty"`  // about how long, by what an earlier rebuild took; not known without one
	Loses   []string         `json:"loses"`            // what only the replica has
	Errant  *errant.Verdict  `json:"errant,omitempty"` // its own transactions, with what they changed
	Notes   []string         `json:"notes"`            // what a person should know before
	Plan    []string         `json:"plan"`             // what is done
	Done    bool             `json:"done"`
	Journal string           `json:"journal,omitempty"` // file that says what was done
	Error   string           `json:"error,omitempty"`   // why it was not done
	Compare *checksum.Result `json:"compare,omitempty"` // with the source, at the end
	Verdict string           `json:"verdict,omitempty"` // what came of that
}

// tell shows what will be done.
func (c *rebuild) tell(ctx context.Context, b *repoint.Rebuild) {
	out := c.told().Out
	a := &c.answer
	a.Because = c.job.Because
	a.DryRun, a.Replica, a.Source, a.From, a.GoesOn = c.dryRun, b.Replica.Name, b.Source.Name, c.job.From, b.Goes
	a.Loses, a.Notes, a.Plan = append([]string{}, b.Loses...), append([]string{}, b.Notes...), b.Plan.Words()
	a.Tables, a.Rows, a.Bytes = int64(c.job.Planned.Tables), c.job.Planned.Rows, c.job.Planned.Bytes
	what := a.From
	switch {
	case c.job.Donor == nil:
		what = c.job.Question.Copy.Words
	case c.job.Clones():
		what = "a clone of " + c.job.Donor.Name
	}
	fmt.Fprintf(out, "%s, which replicates from %s, is rebuilt from %s: %s\n", oneline.Of(a.Replica), oneline.Of(a.Source), oneline.Of(what), oneline.Of(a.Because))
	if left := c.job.Question.Left; b.Goes != "" {
		a.Tables, a.Rows, a.Bytes = left.Copy.Tables, left.Copy.Rows, left.Copy.Bytes
		fmt.Fprintln(out, "  goes on with what an earlier run has:", oneline.Of(b.Goes))
	} else if c.job.Question.Copy != nil {
		a.Tables, a.Rows, a.Bytes = c.job.Question.Copy.Tables, c.job.Question.Copy.Rows, c.job.Question.Copy.Bytes
		fmt.Fprintf(out, "  size: %s, %s, %s\n", digits.Counted(a.Tables, "table"), digits.Roughly(a.Rows, "row"), digits.Bytes(a.Bytes))
	} else {
		fmt.Fprintln(out, "  size:", sizeWords(c.job.Planned))
	}
	if a.Lasts = c.r.RebuildLasts(a.Bytes); a.Lasts != "" {
		fmt.Fprintln(out, "  lasts about", a.Lasts, "at the speed of an earlier rebuild here")
	} else {
		fmt.Fprintln(out, "  how long it lasts is not known: none was done from here yet")
	}
	for _, l := range a.Loses {
		fmt.Fprintln(out, "  lost:", oneline.Of(l))
	}
	c.own(ctx, b, out)
	if c.job.Clones() {
		a.Notes = append(a.Notes, worker.CloneNotes(a.Replica, c.job.Donor.Name, b.Channel.Filter)...)
	} else {
		a.Notes = append(a.Notes, "accounts become those of the copy; the one by which "+a.Replica+" is asked, and those that the copy has not, stay as they are")
	}
	if c.job.Donor != nil && !c.job.Clones() {
		a.Notes = append(a.Notes, "the copy lies unencrypted in "+c.job.Folder()+", which only this account can read, until the end")
	}
	if !c.job.Clones() {
		a.Notes = append(a.Notes, c.job.Planned.Notes...)
	}
	for _, note := range a.Notes {
		fmt.Fprintln(out, "  note:", oneline.Of(note))
	}
	screen.Steps(out, b.Plan)
	switch c.compare {
	case "none":
		fmt.Fprintln(out, "  nothing is compared at the end")
	default:
		fmt.Fprintf(out, "  compare %s with %s: rows and definitions, %s\n", oneline.Of(a.Replica), oneline.Of(a.Source), map[string]string{"all": "all tables", "sample": "up to 20 tables"}[c.compare])
	}
	fmt.Fprintln(out, "  undo: before data are dropped it goes back by itself, or by risso replica back; after that the same command goes on")
}

// own says what the replica's own transactions changed.
func (c *rebuild) own(ctx context.Context, b *repoint.Rebuild, out io.Writer) {
	if c.job.Question.Left != nil && c.job.Question.Left.Cleared {
		return
	}
	v, err := c.errant(ctx, b)
	if err != nil {
		fmt.Fprintln(out, "  lost: what its own transactions changed is not known:", oneline.Of(err.Error()))
		return
	}
	c.answer.Errant = &v
	const most = 20
	for _, p := range v.Errant() {
		for i, t := range p.Transactions {
			if i == most {
				fmt.Fprintf(out, "    and %d more: risso gtid errant lists them\n", len(p.Transactions)-most)
				break
			}
			var words []string
			for _, ch := range t.Changes {
				text := strings.TrimSpace(ch.Kind + " " + strings.TrimSpace(ch.Other+" "+ch.Table))
				if ch.Rows > 0 {
					text += ", " + digits.Counted(ch.Rows, "row")
				}
				words = append(words, text)
			}
			fmt.Fprintf(out, "    %s of %s: %s\n", t.GTID, screen.Clock(t.Time), oneline.Of(strings.Join(words, "; ")))
		}
		if p.Unseen != "" {
			fmt.Fprintln(out, "    not seen:", oneline.Of(p.Unseen))
		}
	}
}

// errant compares the replica, which is read first, with its source.
func (c *rebuild) errant(ctx context.Context, b *repoint.Rebuild) (v errant.Verdict, err error) {
	var q errant.Question
	if q.Replica, err = reading(ctx, b.Replica.Name, c.job.TargetOf(&b.Replica)); err != nil {
		return v, err
	}
	source, err := reading(ctx, b.Source.Name, c.job.TargetOf(&b.Source))
	if err != nil {
		return v, err
	}
	q.Source = &source
	if v, err = errant.Judge(q); err == nil {
		errant.Describe(ctx, &v, flags.ErrantLogs{Server: c.job.TargetOf(&b.Replica)})
	}
	return v, err
}

func reading(ctx context.Context, name string, t mysql.Target) (errant.Reading, error) {
	conn, err := mysql.Connect(ctx, t, nil)
	if err != nil {
		return errant.Reading{}, err
	}
	defer conn.Close()
	return errant.Read(ctx, name, conn)
}

// verify compares the replica with its source, and says what came of it.
func (c *rebuild) verify(ctx context.Context, b *repoint.Rebuild) error {
	out := c.told().Out
	if c.compare == "none" {
		c.answer.Verdict = "not compared"
		return nil
	}
	line := screen.NewProgress(c.Err)
	defer line.End()
	res, list, err := c.job.Compare(ctx, &b.Source, &b.Replica, c.compare == "sample", func(p checksum.Progress) {
		line.Show(func(float64) string { return fmt.Sprintf("comparing %s, %s", p.Table, digits.Roughly(p.Rows, "row")) })
	})
	line.End()
	if errors.Is(err, checksum.ErrNothing) && len(res.Unseen) == 0 {
		c.answer.Verdict = "there is no table to compare"
		fmt.Fprintln(out, c.answer.Verdict)
		return nil
	}
	if err != nil {
		c.answer.Verdict = "not compared: " + err.Error()
		return fault.New(fault.Failed, "risso checksum compares them", fmt.Errorf("%s is rebuilt and replicates, and was not compared: %w", b.Replica.Name, err))
	}
	res.List = list
	c.answer.Compare = &res
	verdict, n := worker.Compared(b.Source.Name, b.Replica.Name, res), res.Counts
	c.answer.Verdict = verdict
	fmt.Fprintln(out, oneline.Of(verdict))
	for _, t := range list {
		fmt.Fprintf(out, "  %s.%s: %s\n", oneline.Of(t.Schema), oneline.Of(t.Name), t.Verdict())
	}
	for _, d := range res.Definitions {
		fmt.Fprintln(out, " ", oneline.Of(d.Words()))
	}
	for _, u := range res.Unseen {
		fmt.Fprintf(out, "  not seen on %s: %s\n", oneline.Of(u.Server), oneline.Of(u.What))
	}
	if n.Differ+n.Definitions > 0 {
		return &fault.Told{Code: fault.Differs}
	}
	if n.Open+n.Undefined > 0 || len(res.Unseen) > 0 {
		return fault.New(fault.Failed, "risso checksum compares once more", fmt.Errorf("%s is rebuilt and replicates; nothing was found to differ, and not all could be compared", b.Replica.Name))
	}
	return nil
}

// sizeWords is how much there is, as the server estimates it.
func sizeWords(p dump.Plan) string {
	return fmt.Sprintf("%s, %s, %s by the server's estimate", digits.Counted(int64(p.Tables), "table"), digits.Roughly(p.Rows, "row"), digits.Bytes(p.Bytes))
}
