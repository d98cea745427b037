package advise

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
)

// Counting is by what a server counts how its indexes are used.
type Counting struct {
	By    string        // performance_schema, userstat; "": nothing counts, so that nothing is known
	Since time.Time     // since when at the latest; zero: unknown
	Kept  bool          // Risso kept the counters: restarts, and counters that were set to zero, are in them
	After time.Duration // for how long a server must have counted before anything is said
}

// Use is how often a table's indexes were used, and how many of its rows were written, since Counting.Since or Table.Created.
type Use struct {
	Reads                      map[string]float64   // by the index' name; one that is not there is not known
	Inserted, Updated, Deleted float64              // rows
	Since                      map[string]time.Time // since when an index is known, if later than Counting.Since
}

// unusedIndexes finds indexes that nothing used since counting began. Unique ones, those of the primary key, those that a foreign key or
// AUTO_INCREMENT needs, that a hint names, or that do the work of a redundant one, are left out; so are full-text indexes, whose use no
// server counts (handler::ft_read is not instrumented).
func unusedIndexes(s *Server, t *Table) (list []Finding) {
	since := s.Counting.Since
	if t.Created.After(since) && !s.Counting.Kept { // an ALTER TABLE that rebuilds the table begins its counters anew
		since = t.Created
	}
	if t.Use == nil || s.Counting.By == "" || !since.IsZero() && s.Now.Sub(since) < s.Counting.After {
		return nil
	}
	k := keysOf(s, t)
	kept := make([]bool, len(t.Keys))
	for i := range t.Keys {
		k.gone[i] = t.Keys[i].Hidden
	}
	for _, i := range k.order() {
		if j, _ := k.instead(i); j >= 0 && !k.gone[i] {
			k.gone[i], kept[j] = true, true
		}
	}
	for _, i := range k.order() {
		key := &t.Keys[i]
		reads, known := t.Use.Reads[key.Name]
		if !known || reads > 0 || k.gone[i] || kept[i] || key.Unique || key.Special || k.needed(i) || s.hinted(key.Name) != "" {
			continue
		}
		from := since
		if known := t.Use.Since[key.Name]; known.After(from) {
			if from = known; s.Now.Sub(from) < s.Counting.After {
				continue
			}
		}
		k.gone[i] = true
		list = append(list, unusedFinding(s, t, i, from))
	}
	return list
}

// unusedFinding is what to say of an index that nothing used.
func unusedFinding(s *Server, t *Table, i int, since time.Time) Finding {
	key := &t.Keys[i]
	f := Finding{Object: t.object() + "." + key.Name, Severity: fleet.SeverityInfo, Since: since,
		What:     fmt.Sprintf("nothing used index %s of %s", key.Name, t.object()),
		Why:      "each write of a row maintains it, and it takes room on disk and in the buffer pool",
		Evidence: []string{key.Text, "read 0 times, as " + s.Counting.By + " counts"},
		Advice:   fmt.Sprintf("risso index retire '%s' does it step by step: hidden first, watched, shown again if statements get slower, dropped in the end", t.object()+"."+key.Name),
		Cost:     Cost{Bytes: t.Bytes[key.Name]}, Sure: Likely}
	hours := s.Now.Sub(since).Hours()
	switch cycle := wholeCycle(since, s.Now); {
	case since.IsZero():
		f.What += "; since when is not known"
		f.Doubt = "the counters may have been set to zero a moment ago"
	case cycle && s.Counting.Kept:
		f.What += fmt.Sprintf(" for %s, an end of a month included", digits.Span(s.Now.Sub(since)))
		f.Severity, f.Sure = fleet.SeverityWarning, Certain
	case cycle:
		f.What += fmt.Sprintf(" for %s, an end of a month included", digits.Span(s.Now.Sub(since)))
		f.Severity = fleet.SeverityWarning
		f.Doubt = "the counters may have been set to zero in between: only risso serve, which keeps them, notices that"
	default:
		f.What += " for " + digits.Span(s.Now.Sub(since))
		f.Doubt = "what runs at the end of a month, or more rarely, may need it: that time was not seen"
	}
	f.Doubt = strings.TrimPrefix(f.Doubt+"; the optimizer may look at it to estimate rows, which is not counted", "; ")
	if s.Blind != "" {
		f.Sure, f.Doubt = Likely, f.Doubt+"; the account does not see "+s.Blind
	}
	if f.Sure == Certain {
		f.Doubt = ""
	}
	if bytes := t.Bytes[key.Name]; bytes > 0 {
		f.Evidence = append(f.Evidence, digits.Bytes(bytes)+" on disk")
	}
	if u := t.Use; hours > 0 && !since.IsZero() && u.Inserted+u.Updated+u.Deleted > 0 {
		f.Evidence = append(f.Evidence, fmt.Sprintf("each hour %s inserted or deleted and %s updated, all of which maintain it, updates only if they change its columns", digits.Roughly(int64((u.Inserted+u.Deleted)/hours), "row"), digits.Roughly(int64(u.Updated/hours), "row")))
	}
	if hide := s.HideIndex(key.Name, true); hide != "" {
		f.Statement, f.Undo = t.alter()+hide, t.alter()+s.HideIndex(key.Name, false)
		f.Effect = "at once: it changes the definition only; the index is maintained still, so that it can come back at once; when nothing gets slower, drop it"
		return f
	}
	f.Statement, f.Undo, f.Effect = t.alter()+"DROP INDEX "+mysql.Quote(key.Name), t.alter()+"ADD "+key.Text, dropsAtOnce
	f.Advice = "this server cannot hide an index: what needs it notices only when it is gone, and to make it again takes time"
	return f
}

// wholeCycle reports whether a time holds a whole business cycle: 31 days, and the end of a month with three days on either side.
func wholeCycle(from, to time.Time) bool {
	if from.IsZero() || to.Sub(from) < 31*24*time.Hour {
		return false
	}
	from, to = from.UTC(), to.UTC()
	for first := time.Date(from.Year(), from.Month()+1, 1, 0, 0, 0, 0, time.UTC); !first.After(to); first = first.AddDate(0, 1, 0) {
		if first.AddDate(0, 0, -3).After(from) && first.AddDate(0, 0, 3).Before(to) {
			return true
		}
	}
	return false
}

// Seen is what one of several servers knows of how indexes are used.
type Seen struct {
	Server string
	Counts bool            // the server counts
	Since  time.Time       // since when; zero: not known, or of no interest
	Used   map[string]bool // schema.table.index of those that are used on it; those that are not, or not there, are missing
}

// UsedOf adds the indexes of a table that are used to those of a server.
func (s *Seen) UsedOf(t *Table) {
	if t.Use == nil {
		return
	}
	for name, reads := range t.Use.Reads {
		if reads > 0 {
			if s.Used == nil {
				s.Used = map[string]bool{}
			}
			s.Used[t.object()+"."+name] = true
		}
	}
}

// UnusedEverywhere leaves of index.unused only what no server of those that were asked together uses: what a primary never reads, a report on
// a replica may. Of a server that does not count it is said that nothing is known, and the statement is taken away.
func UnusedEverywhere(seen []Seen, found [][]Finding) [][]Finding {
	var blind []string
	latest := map[string]time.Time{}
	for _, s := range seen {
		if !s.Counts {
			blind = append(blind, s.Server)
		}
	}
	for _, of := range found {
		for _, f := range of {
			if f.ID == unusedID && f.Since.After(latest[f.Object]) {
				latest[f.Object] = f.Since
			}
		}
	}
	out := make([][]Finding, len(found))
	for i, of := range found {
		for _, f := range of {
			if f.ID == unusedID {
				if slices.ContainsFunc(seen, func(s Seen) bool { return s.Used[f.Object] }) {
					continue
				}
				f.Since = cmp.Or(latest[f.Object], f.Since)
				for _, s := range seen {
					if s.Counts && s.Since.After(f.Since) {
						f.Since, f.Severity, f.Sure = s.Since, fleet.SeverityInfo, Likely
						f.Doubt = strings.TrimPrefix(f.Doubt+"; on "+s.Server+" it is known only since "+s.Since.UTC().Format(time.DateOnly), "; ")
					}
				}
				if len(blind) > 0 {
					f.Sure, f.Doubt = Likely, strings.TrimPrefix(f.Doubt+"; whether statements use it on "+strings.Join(blind, ", ")+" is not known: nothing counts it there", "; ")
					f.Severity, f.Statement, f.Undo, f.Effect = fleet.SeverityInfo, "", "", ""
					f.Advice = "let all servers count first"
				}
			}
			out[i] = append(out[i], f)
		}
	}
	return out
}

const unusedID = "index.unused"

// Retiring is what has to be known before an index is taken away.
type Retiring struct {
	Text   string // its definition
	Hidden bool   // it is hidden already
	Needed string // why it must stay; "": nothing is known that needs it
}

// Retire says whether an index of a table may be taken away; there is false if there is no such index. Nothing that demands something of rows
// goes, and nothing that a foreign key, on either side, AUTO_INCREMENT or a hint needs.
func Retire(s *Server, t *Table, index string) (r Retiring, there bool) {
	k := keysOf(s, t)
	i := slices.IndexFunc(t.Keys, func(x define.TableKey) bool { return strings.EqualFold(x.Name, index) })
	if i < 0 {
		return r, false
	}
	for j := range t.Keys { // a hidden index serves a foreign key, too, but it may be on its way out
		k.gone[j] = t.Keys[j].Hidden && j != i
	}
	key := &t.Keys[i]
	r.Text, r.Hidden = key.Text, key.Hidden
	switch by := s.hinted(key.Name); {
	case key.Name == "PRIMARY":
		r.Needed = "it is the primary key"
	case key.Unique && !k.demandsNothing(i):
		r.Needed = "it is unique: it keeps out values that are there twice, whether statements read it or not"
	case k.needed(i):
		r.Needed = "a foreign key, or AUTO_INCREMENT, has no other index"
	case by != "":
		r.Needed = "a hint of " + by + " names it: without the index that statement fails with error 1176"
	case s.Blind != "":
		r.Needed = "whether a foreign key or a hint needs it is not known: the account does not see " + s.Blind
	}
	return r, true
}
