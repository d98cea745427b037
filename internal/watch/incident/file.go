package incident

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/rissodb/risso/internal/blockers"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/squeeze"
	"github.com/rissodb/risso/internal/store/ring"
	"github.com/rissodb/risso/internal/watch/stall"
)

// Why an incident was captured.
const (
	WhyStall = "stall"
	WhyAlert = "alert"
)

// CutAfter is why an incident is not whole whose end was seen.
const CutAfter = "Risso ended less than a minute after it"

// Incident is what is known of an incident without its moments.
type Incident struct {
	ID       string         `json:"id"`
	Instance string         `json:"instance"`          // ID of the server
	Server   string         `json:"server"`            // its name
	Why      string         `json:"why"`               // stall, or alert: something critical was found
	Finding  string         `json:"finding,omitempty"` // the critical finding that asked for it
	What     string         `json:"what,omitempty"`    // and what it said
	Began    time.Time      `json:"began"`             // the first stalled second, or since when the finding holds
	Captured time.Time      `json:"captured"`          // when its file was on disk
	Ended    time.Time      `json:"ended,omitzero"`
	Open     bool           `json:"open"` // its seconds are still gathered
	Title    string         `json:"title"`
	Severity fleet.Severity `json:"severity"`
	Cut      string         `json:"cut,omitempty"` // why it is not whole: its end was not seen, unless it is CutAfter
	Bytes    int64          `json:"bytes"`         // of its file
	Usual    stall.Usual    `json:"usual"`         // before a stall
}

// File is an incident as it is kept.
type File struct {
	Incident Incident      `json:"incident"`
	InnoDB   string        `json:"innodb,omitempty"` // SHOW ENGINE INNODB STATUS when it began
	Events   []fleet.Event `json:"events"`           // of the hour before, and until its end
	Records  []ring.Record `json:"records"`          // of its seconds, all in one block
}

// Add adds a moment, written by the file's own Writer.
func (f *File) Add(w *Writer, m *Moment) {
	f.Records = append(f.Records, ring.Record{At: m.Tick, Payload: w.Append(m, len(f.Records) == 0)})
}

// maxFile bounds what is read of a file.
const maxFile = 256 << 20

// Pack writes a file: one frame of zstd that holds JSON.
func (f *File) Pack() ([]byte, error) {
	text, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("write incident %s: %w", f.Incident.ID, err)
	}
	enc, err := squeeze.NewEncoder()
	if err != nil {
		return nil, err
	}
	return enc.Append(nil, text)
}

// Unpack reads a file.
func Unpack(r io.Reader) (*File, error) {
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxFile))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	f := new(File)
	if err := json.NewDecoder(io.LimitReader(z, maxFile)).Decode(f); err != nil {
		return nil, fmt.Errorf("the file of the incident cannot be read: %w", err)
	}
	return f, nil
}

// Gap is seconds of which nothing is kept; both are missing.
type Gap struct {
	From int64  `json:"from"` // unix seconds
	To   int64  `json:"to"`   // unix seconds
	Why  string `json:"why"`  // why it is missing: not kept
}

// NotKept is why nothing is kept of a second, where nothing more is known.
const NotKept = "not kept"

// Gaps finds the seconds from one to another of which no moment is there.
func Gaps(moments []*Moment, from, to int64) []Gap {
	out := []Gap{}
	next := from
	add := func(until int64) {
		if until >= next {
			out = append(out, Gap{next, until, NotKept})
		}
	}
	for _, m := range moments {
		if m.Tick < from || m.Tick > to {
			continue
		}
		add(m.Tick - 1)
		next = m.Tick + 1
	}
	add(to)
	return out
}

// Line is a number over the time of an incident.
type Line struct {
	Name   string     `json:"name"`
	Key    string     `json:"key"`
	Unit   string     `json:"unit,omitempty"`
	Values []*float64 `json:"values"` // one for each second; nil: not known
}

// Told is an incident with all that is known of it.
type Told struct {
	Incident  Incident      `json:"incident"`
	Story     Story         `json:"story"`
	From      int64         `json:"from"` // unix seconds of the first moment
	To        int64         `json:"to"`   // and of the last one
	Lines     []Line        `json:"lines"`
	Moments   []*Moment     `json:"moments"`
	Missing   []Gap         `json:"missing"`
	Changed   []fleet.Event `json:"changed"`          // in the hour before
	InnoDB    string        `json:"innodb,omitempty"` // SHOW ENGINE INNODB STATUS when it began
	Deadlocks []*Deadlock   `json:"deadlocks"`
}

// Tell reads a file and tells its story. With redact, literals are left out.
func Tell(f *File, redact bool) (*Told, error) {
	moments, err := Read(f.Records)
	t := &Told{Incident: f.Incident, Moments: noNil(moments), InnoDB: f.InnoDB, Changed: []fleet.Event{}, Deadlocks: []*Deadlock{}, Missing: []Gap{}}
	if len(moments) == 0 {
		return t, err
	}
	events := f.Events
	if redact {
		t.InnoDB = ""
		t.Incident.What, t.Incident.Title = withoutValues(t.Incident.What), withoutValues(t.Incident.Title)
		events = slices.Clone(events)
		for i := range events {
			e := &events[i]
			e.Old, e.New, e.Text = withoutValues(e.Old), withoutValues(e.New), withoutValues(e.Text)
		}
	}
	for _, m := range moments {
		if redact {
			m.Redact()
		}
		if m.Deadlock != nil {
			t.Deadlocks = append(t.Deadlocks, m.Deadlock)
		}
	}
	t.From, t.To = moments[0].Tick, moments[len(moments)-1].Tick
	t.Missing = Gaps(moments, t.From, t.To)
	for _, e := range events {
		if changes(e.Kind) && !(e.Kind == fleet.EventAction && e.Instance == "") && e.Time.Before(f.Incident.Began) {
			t.Changed = append(t.Changed, e)
		}
	}
	t.Lines = lines(moments, t.From, t.To)
	t.Story = tell(&File{Incident: t.Incident, Events: events}, t)
	return t, err
}

// withoutValues is what is told of a finding, without values of the user's data.
func withoutValues(text string) string { return blockers.WithoutKeys(errno.WithoutValues(text)) }

// changes says which events tell of a change.
func changes(k fleet.EventKind) bool {
	switch k {
	case fleet.EventVariable, fleet.EventDeploy, fleet.EventNote, fleet.EventPlan, fleet.EventRestart, fleet.EventVersion, fleet.EventRole, fleet.EventAction, fleet.EventProtect, fleet.EventClock, fleet.EventReset:
		return true
	}
	return false
}

// lines are the numbers that are there in any moment.
func lines(moments []*Moment, from, to int64) []Line {
	out := []Line{}
	for _, n := range numbers {
		l := Line{Name: n.words, Key: n.key, Unit: n.unit, Values: make([]*float64, to-from+1)}
		any := false
		for _, m := range moments {
			if v, ok := m.Numbers[n.key]; ok {
				l.Values[m.Tick-from] = &v
				any = true
			}
		}
		if any {
			out = append(out, l)
		}
	}
	return out
}
