package advice

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/state"
)

// What of a look is kept.
const (
	mostOfKind = 1000 // findings of one check on one server; the rest is counted
	mostEvents = 5    // of findings that began in a look, and as many of those that ended; more are summed up in one
)

// Look is how the last look at a server went.
type Look struct {
	Version string          `json:"version,omitempty"`
	Tables  int             `json:"tables"`  // that were looked at
	Seconds float64         `json:"seconds"` // that it took
	Missing []fleet.Trouble `json:"missing"` // what could not be read, so that nothing was looked for in it
	More    map[string]int  `json:"more"`    // how many findings of a check were found and are not kept, because there are too many
	Error   string          `json:"error"`   // why the last one that was tried failed; what is kept is of the one before then
}

// seen is one look, as it is compared with what is kept.
type seen struct {
	instance string
	at       time.Time
	first    bool // nothing was known of the server before
	found    []advise.Finding
	missing  []fleet.Trouble
	unsure   []string // checks that could not be done
}

// key tells what is found on one server apart.
type key struct{ id, object string }

// follows is what a look changes: the rows that are new or others, how many more were found of which check, and what is told.
func follows(kept []state.AdviceRow, s seen) (put []state.AdviceRow, more map[string]int, events []fleet.Event, err error) {
	before := make(map[key]state.AdviceRow, len(kept))
	for _, r := range kept {
		before[key{r.ID, r.Object}] = r
	}
	blind, tables := blindOf(s.missing)
	here, count := map[key]bool{}, map[string]int{}
	more = map[string]int{}
	var began, ended []state.AdviceRow
	for _, f := range s.found { // the worst first: these are kept
		k := key{f.ID, f.Object}
		if here[k] {
			continue
		}
		here[k] = true
		was, known := before[k]
		if count[f.ID]++; count[f.ID] > mostOfKind && !known {
			more[f.ID]++
			continue
		}
		r := state.AdviceRow{Instance: s.instance, ID: f.ID, Object: f.Object, Severity: f.Severity, First: s.at, Since: f.Since, Seen: s.at, Blind: blind}
		if known && was.Ended.IsZero() {
			r.First, r.Since = was.First, earlier(was.Since, f.Since)
		}
		if r.Body, err = json.Marshal(f); err != nil {
			return nil, nil, nil, fmt.Errorf("write down %s of %s: %w", f.ID, f.Object, err)
		}
		put = append(put, r)
		if !known || !was.Ended.IsZero() || r.Severity > was.Severity {
			began = append(began, r)
		}
	}
	for _, r := range kept {
		if here[key{r.ID, r.Object}] || !r.Ended.IsZero() || count[r.ID] >= mostOfKind || slices.Contains(s.unsure, r.ID) || !looked(r, blind, tables) {
			continue // of very many, what is not listed may have been left out
		}
		r.Ended = s.at
		put, ended = append(put, r), append(ended, r)
	}
	return put, more, slices.Concat(told(s, "began", began, more), told(s, "ended", ended, nil)), nil
}

// earlier is the earlier of two times of which either may be unknown.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// blindOf is what could not be read, in general, and which tables could not, as findings name them.
func blindOf(missing []fleet.Trouble) (blind, tables []string) {
	blind = []string{}
	for _, m := range missing {
		if name, ok := strings.CutPrefix(m.What, "table "); ok {
			tables = append(tables, bare(name))
		} else if !slices.Contains(blind, m.What) {
			blind = append(blind, m.What)
		}
	}
	slices.Sort(blind)
	return blind, tables
}

// bare is a quoted name of a table as findings write it: schema.table.
func bare(name string) string {
	if schema, table, ok := strings.Cut(name, "`.`"); ok {
		name = strings.TrimPrefix(schema, "`") + "." + strings.TrimSuffix(table, "`")
	}
	return strings.ReplaceAll(name, "``", "`")
}

// looked says whether a look that did not find something would have found it: all that could be read when it was seen was read now.
func looked(r state.AdviceRow, blind, tables []string) bool {
	for _, b := range blind {
		if !slices.Contains(r.Blind, b) {
			return false
		}
	}
	return !slices.ContainsFunc(tables, func(t string) bool { return r.Object == t || strings.HasPrefix(r.Object, t+".") })
}

// told are the events of what began or ended: one each, or one of all where there are many, and of all that the first look found, with what
// is not kept.
func told(s seen, word string, list []state.AdviceRow, more map[string]int) (events []fleet.Event) {
	e := fleet.Event{Time: s.at, Instance: s.instance, Kind: fleet.EventFinding, Subject: strings.TrimSuffix(fleet.AdvicePrefix, ".")}
	if word == "began" {
		e.New = "open"
	} else {
		e.Old = "open"
	}
	if len(list) > 1 && s.first || len(list) > mostEvents {
		kinds, all := map[string]int{}, len(list)
		if s.first { // else it is not known which of these are new
			for id, n := range more {
				kinds[id], all = n, all+n
			}
		}
		for _, r := range list {
			kinds[r.ID]++
			if word == "began" {
				e.Severity = max(e.Severity, r.Severity)
			}
		}
		var parts []string
		for _, id := range slices.Sorted(maps.Keys(kinds)) {
			parts = append(parts, digits.Thousands(kinds[id])+" of "+id)
		}
		e.Text = fmt.Sprintf("advice: %s %s: %s", digits.Counted(all, "finding"), word, strings.Join(parts, ", "))
		if rest := sum(more); rest > 0 && !s.first {
			e.Text += fmt.Sprintf("; %s found and not kept: too many of one kind", digits.Plural(rest, "more was", "more were"))
		}
		if s.first {
			e.Text = fmt.Sprintf("advice: the first look found %s: %s", digits.Counted(all, "finding"), strings.Join(parts, ", "))
		}
		return []fleet.Event{e}
	}
	for _, r := range list {
		var f advise.Finding
		what := strings.TrimSpace(r.ID + " " + r.Object)
		if json.Unmarshal(r.Body, &f) == nil && f.What != "" {
			what = f.What
		}
		e.Subject, e.Text = fleet.AdvicePrefix+r.ID, "advice: "+what
		if word == "began" {
			e.Severity = r.Severity
		} else {
			e.Text = fmt.Sprintf("advice: ended after %s: %s", digits.Span(s.at.Sub(r.First)), what)
		}
		events = append(events, e)
	}
	return events
}

// sum is how many there are of all kinds.
func sum(kinds map[string]int) (n int) {
	for _, k := range kinds {
		n += k
	}
	return n
}
