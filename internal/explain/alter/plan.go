package alter

import (
	"fmt"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
)

// Kind is how a server does an ALTER TABLE.
type Kind string

// The kinds.
const (
	KindInstant Kind = "instant"  // only the definition changes
	KindInPlace Kind = "in place" // the engine does it; see Plan.Rebuilds and Plan.Builds
	KindCopy    Kind = "copy"     // rows are copied one by one into a new table, with all indexes
	KindRefused Kind = "refused"  // the server does not take the statement
	KindUnknown Kind = "unknown"
)

// Plan is what an ALTER TABLE will do, and what to know before.
type Plan struct {
	Table     string `json:"table"`
	Statement string `json:"statement"` // as risso alter run sends it, with ALGORITHM and LOCK
	Kind      Kind   `json:"kind"`
	Tried     bool   `json:"tried"`             // an empty clone was asked; false: a table of rules by version
	On        string `json:"on,omitempty"`      // the server that was asked: flavour and version
	Refused   string `json:"refused,omitempty"` // why, in the server's words

	Algorithm string   `json:"algorithm,omitempty"` // that is written into the statement; empty: the server takes none with it
	Lock      string   `json:"lock,omitempty"`      // likewise
	Rebuilds  bool     `json:"rebuilds"`            // all rows are written anew
	Builds    []string `json:"builds,omitempty"`    // indexes that are built of all rows
	Empties   bool     `json:"empties"`             // partitions are dropped or emptied
	Moves     bool     `json:"-"`                   // it is about partitions or files
	Reads     bool     `json:"reads"`               // the table can be read while it works
	Writes    bool     `json:"writes"`              // the table can be written while it works
	Replicas  bool     `json:"replicas_lag"`        // replicas fall behind by about the time that it takes

	Forecast Forecast        `json:"forecast"`
	Lines    []Line          `json:"lines"` // in words
	Test     []DataTest      `json:"tests"`
	InTheWay []Holder        `json:"in_the_way"`
	Attempts []Attempt       `json:"attempts"`
	Tools    []Tool          `json:"tools"`
	First    ReplicasFirst   `json:"replicas_first"`
	Unknown  []fleet.Trouble `json:"unknown"`
	Before   string          `json:"before"`          // the table's definition
	After    string          `json:"after,omitempty"` // as it became on the clone; empty: not known
	Undo     string          `json:"undo,omitempty"`  // the statement that gives the definition back; "" not known
	Lost     []string        `json:"lost,omitempty"`  // what it does not give back
}

// Line is a fact of the plan in words, under a head.
type Line struct {
	Head string `json:"head"` // what it is about: kind, locks, time, disk, …
	Text string `json:"text"`
}

// Runs reports whether risso alter run can carry the plan out.
func (p *Plan) Runs() bool { return p.Kind != KindRefused && p.Kind != KindUnknown }

// Mark is what the comment of the statement says that risso alter run sends.
const Mark = "alter run"

// Make makes the plan of what was learned.
func Make(f *Facts, st Statement, a Answer, empty time.Duration, s Sample) Plan {
	p := Plan{Table: st.Table.String(), Tried: a.Tried, On: a.On, Attempts: a.Attempts, InTheWay: f.InTheWay, Unknown: f.Gaps, Before: f.Table.Create, After: a.After}
	p.kind(f, st, a)
	p.Statement = st.With(Mark, p.Algorithm, p.Lock)
	if p.Runs() {
		p.Forecast = forecast(f, &p, empty, s)
		p.Test = dataTests(f, st, a.After)
		p.First = replicasFirst(f, st, &p, a.After)
		p.Tools = tools(f, st, &p)
		p.Undo, p.Lost = Undo(f, st, a.After)
	}
	p.words(f, st, a)
	if s.Fails != "" {
		p.Lines = append(p.Lines, Line{"data", "it will fail: on a part of the real rows the server said: " + s.Fails})
	}
	return p
}

// kind decides how it is done.
func (p *Plan) kind(f *Facts, st Statement, a Answer) {
	switch {
	case a.Error != nil:
		p.Kind, p.Refused = KindRefused, a.Error.Error()
		return
	case !a.Tried && a.Algorithm == "":
		p.Kind = KindUnknown
		return
	}
	c, _ := f.Server.Dialect().ReadChange(st.With(Mark, "", ""))
	p.Empties, p.Moves = c.Empties, c.Moves
	a = rebuilt(f, st, a)
	p.Algorithm, p.Lock, p.Attempts = a.Algorithm, a.Lock, a.Attempts
	p.Rebuilds, p.Builds = a.Effect.Rebuilt, a.Effect.Built
	switch {
	case a.Algorithm == "INSTANT":
		p.Kind = KindInstant
	case p.Empties:
		p.Kind, p.Rebuilds = KindInPlace, false
	case a.Algorithm == "COPY":
		p.Kind, p.Rebuilds = KindCopy, true
	case a.Unnamed && p.Rebuilds: // it copies rows between partitions
		p.Kind = KindCopy
	default:
		p.Kind = KindInPlace
	}
	lock := a.Lock
	if p.Kind == KindInstant {
		lock = "NONE"
	}
	p.Reads, p.Writes = lock == "NONE" || lock == "SHARED", lock == "NONE"
	p.Replicas = (p.Rebuilds || len(p.Builds) > 0) && !f.Replicas.TwoPhase
}

// UsedUp reports whether the instant way that an empty clone took is closed to the real table, which has had as many instant changes as it may have
// (error 4092 if INSTANT is demanded).
func UsedUp(f *Facts, st Statement, a Answer) bool {
	most := f.Server.MaxRowVersions()
	return a.Algorithm == "INSTANT" && most > 0 && f.Versions >= most && changesColumns(f, st, a.After)
}

// Closed is the answer with the instant way marked as closed for that.
func (a Answer) Closed(f *Facts) Answer {
	a.Attempts = append([]Attempt(nil), a.Attempts...)
	if n := len(a.Attempts); n > 0 {
		a.Attempts[n-1].Refused = fmt.Sprintf("the table has had %d instant changes, and that is the most", f.Versions)
	}
	return a
}

// rebuilt is the answer where the instant way is closed and no other was tried: the server rebuilds the table in place.
func rebuilt(f *Facts, st Statement, a Answer) Answer {
	if !UsedUp(f, st, a) {
		return a
	}
	a = a.Closed(f)
	a.Attempts = append(a.Attempts, Attempt{Algorithm: "INPLACE", Lock: "NONE"})
	a.Algorithm, a.Lock, a.Effect = "INPLACE", "NONE", Effect{Rebuilt: true}
	return a
}

// words says it all.
func (p *Plan) words(f *Facts, st Statement, a Answer) {
	add := func(head, format string, args ...any) {
		p.Lines = append(p.Lines, Line{head, fmt.Sprintf(format, args...)})
	}
	add("kind", "%s", p.kindWords(f, a))
	if p.Kind == KindRefused || p.Kind == KindUnknown {
		for _, n := range a.Notes {
			add("note", "%s", n)
		}
		return
	}
	add("locks", "%s", p.lockWords())
	add("table", "%s", f.sizeWords())
	p.Forecast.words(add)
	p.replicaWords(f, add)
	p.trafficWords(f, add)
	for _, h := range f.InTheWay {
		add("in the way", "%s", holderWords(h))
	}
	if len(f.InTheWay) == 0 && !unknownHolders(f) {
		add("in the way", "nobody holds a lock of the table now")
	}
	if p.Empties {
		add("data", "the rows of the partitions that it names are thrown away")
	}
	p.neighbourWords(f, st, add)
	breakWords(f, st, a.After, add)
	for _, n := range a.Notes {
		add("note", "%s", n)
	}
	for _, t := range p.Test {
		add("data", "%s", t.Says)
	}
	if old := strings.ToUpper(f.Session["old_alter_table"]); old != "" && old != "OFF" && old != "0" && old != "DEFAULT" && p.Kind != KindCopy {
		add("note", "old_alter_table is %s: without ALGORITHM, which risso alter run writes out, the server may do more", old)
	}
}

func (p *Plan) kindWords(f *Facts, a Answer) string {
	how := ""
	switch p.Kind {
	case KindRefused:
		return "the server refuses it: " + p.Refused
	case KindUnknown:
		return "unknown"
	case KindInstant:
		how = "instant: only the definition changes, no row is read or written"
	case KindCopy:
		how = "copy: all rows go one by one into a new table, and every index is built"
		if a.Unnamed {
			how = "copy: the rows of the partitions that it names go one by one into new ones"
		}
	case KindInPlace:
		how = "in place: " + effectWords(Effect{p.Rebuilds, p.Builds})
	}
	switch {
	case a.Tried && a.Unnamed:
		how += "; the server takes no ALGORITHM with this statement, this is what it did to an empty clone on " + a.On
	case a.Tried:
		how += "; found out by asking an empty clone on " + a.On
	default:
		how += "; not tried: by the manual's table for " + string(f.Server.Flavour) + " " + f.Server.Version
	}
	return how
}

// effectWords says what is written anew.
func effectWords(e Effect) string {
	switch {
	case e.Rebuilt:
		return "the whole table is rebuilt, with every index"
	case len(e.Built) == 1:
		return "the table stays as it is; the index " + e.Built[0] + " is built of all rows"
	case len(e.Built) > 1:
		return "the table stays as it is; the indexes " + strings.Join(e.Built, ", ") + " are built of all rows"
	}
	return "the rows stay as they are, and no index is built"
}

func (p *Plan) lockWords() string {
	const moment = "for a moment nobody else may use the table (exclusive metadata lock): it waits for every transaction and statement that uses it, and all others wait behind it"
	switch {
	case p.Kind == KindInstant:
		return moment
	case p.Writes:
		return "reads and writes go on while it works; at the beginning and at the end " + moment
	case p.Reads:
		return "reads go on while it works, writes wait until it has ended; at the end " + moment
	case p.Lock == "":
		return "not known: the server takes no LOCK with this statement; at the beginning and at the end " + moment
	}
	return "nobody else can use the table while it works, not even read it"
}

func (f *Facts) sizeWords() string {
	s := fmt.Sprintf("%s, %s of data and %s of secondary indexes as the server estimates them", digits.Roughly(f.Rows, "row"), digits.Bytes(f.Data), digits.Bytes(f.Index))
	if f.File > 0 {
		s += "; its files have " + digits.Bytes(f.File)
	}
	s += "; " + f.Table.Engine
	if f.RowFormat != "" {
		s += ", row format " + f.RowFormat
	}
	if most := f.Server.MaxRowVersions(); most > 0 && f.Versions >= 0 {
		s += fmt.Sprintf("; %d of %d instant changes used", f.Versions, most)
	}
	return s
}
