package protect

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rissodb/risso/internal/avail/topology/look"
	"github.com/rissodb/risso/internal/data/checksum"
	"github.com/rissodb/risso/internal/data/jobs"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/serve/config"
	"github.com/rissodb/risso/internal/throttle"
)

// checksumTask compares a primary with its replicas.
func (p *Guard) checksumTask(s config.Watched) jobs.Task {
	return func(ctx context.Context, report *jobs.Report) (jobs.Result, error) {
		report.Stage("find the replicas")
		found, notes, err := look.Replicas(ctx, s.Target)
		if err != nil {
			return jobs.Result{}, fmt.Errorf("%w; configure checksum for the primary", err)
		}
		for _, n := range notes {
			report.Log("%s", n)
		}
		gate, err := throttle.New(ctx, s.Protect.Limits(), s.Target, found...)
		if err != nil {
			return jobs.Result{}, err
		}
		defer gate.Close()
		report.Stage("compare")
		var says compared
		got, err := checksum.Compare(ctx, checksum.Options{Primary: s.Target, Others: found, Replicas: true, Threads: s.Protect.Sessions(), Gate: gate, Redact: true,
			Progress: func(p checksum.Progress) { report.Set(p.Rows, max(p.Of, p.Rows), "rows") },
			Each:     func(t checksum.Table) { says.table(t, report.Log) }})
		for _, o := range got.Others {
			for _, n := range o.Notes {
				report.Log("%s: %s", o.Server, n)
			}
		}
		for _, d := range got.Definitions {
			report.Log("%s", d.Words())
		}
		if err != nil {
			return jobs.Result{}, err
		}
		text, err := says.end(got)
		return jobs.Result{Text: text, Detail: got}, err
	}
}

// compared sums up what a job found.
type compared struct {
	definition string   // the first difference of a table's definition
	bad, open  []string // tables that differ, or of which not all could be determined, with what was found
	unknown    int      // of the open those that were not compared, other than by their rows' changing
}

// table adds what was found of a table, and logs it.
func (c *compared) table(t checksum.Table, log func(format string, args ...any)) {
	v := t.Verdict()
	for _, on := range t.On {
		for _, d := range on.Definition {
			words := fmt.Sprintf("%s.%s on %s: definition differs: %s", t.Schema, t.Name, on.Server, d)
			log("%s", words)
			if c.definition == "" {
				c.definition = words
			}
		}
		if on.Verdict == checksum.Equal {
			continue
		}
		words := fmt.Sprintf("%s.%s on %s: %s", t.Schema, t.Name, on.Server, strings.Join(on.Words(), ", "))
		if on.Why != "" {
			words += ": " + fault.Line(on.Why, on.Remedy)
		}
		log("%s", words)
		if on.Verdict != v {
			continue
		}
		switch {
		case v.Bad():
			c.bad = append(c.bad, words)
		case v.Open():
			c.open = append(c.open, words)
			if v != checksum.Changing {
				c.unknown++
			}
		default:
			continue
		}
		v = "" // a table is counted once
	}
}

// defined is the first difference of definitions.
func (c *compared) defined(got checksum.Result) string {
	if c.definition != "" {
		return c.definition
	}
	for _, d := range got.Definitions {
		if d.Verdict.Bad() {
			return d.Words()
		}
	}
	return ""
}

// errUntold says that a comparison did not reach all rows. It is tried again.
var errUntold = errors.New("not all rows could be compared")

// end says what was found, and whether that is good. Rows that change all the time are no failure.
func (c *compared) end(got checksum.Result) (string, error) {
	all := fmt.Sprintf("%s with %s on %s", digits.Counted(got.Tables, "table"), digits.Roughly(got.Rows, "row"), digits.Counted(len(got.Others), "replica"))
	more := func(list []string) string {
		if len(list) > 1 {
			return fmt.Sprintf("%s; and %d more", list[0], len(list)-1)
		}
		return list[0]
	}
	switch {
	case len(c.bad) > 0:
		text := fmt.Sprintf("%s: %s", digits.Plural(len(c.bad), "table differs", "tables differ"), more(c.bad))
		return fmt.Sprintf("of %s %s", all, text), jobs.ErrFound
	case got.Counts.Definitions > 0:
		return fmt.Sprintf("the rows of %s are equal, but %s: %s", all, digits.Plural(got.Counts.Definitions, "definition differs", "definitions differ"), c.defined(got)), jobs.ErrFound
	case len(got.Unseen) > 0:
		err := fmt.Errorf("of %s %w: on %s %s", all, errUntold, got.Unseen[0].Server, fault.Line(got.Unseen[0].What, got.Unseen[0].Remedy))
		return err.Error(), err
	case c.unknown > 0:
		err := fmt.Errorf("of %s %w: %s", all, errUntold, more(c.open))
		return err.Error(), err
	case len(c.open) > 0:
		return fmt.Sprintf("%s: no difference; some rows changed each time they were read: %s", all, more(c.open)), nil
	}
	return all + ": all are equal", nil
}
