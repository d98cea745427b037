package incidents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/incident"
)

// What of the time around an incident is kept.
const (
	secondsBefore = 30
	secondsAfter  = 60  // after its end
	mostSeconds   = 900 // in all
	saveEvery     = 10  // seconds
	changedBefore = time.Hour
	mostEvents    = 300
	factsPatience = 5 * time.Second
)

// capture is an incident whose moments are still gathered.
type capture struct {
	file   incident.File
	writer incident.Writer
	after  int // seconds since its end
	unsave int // seconds since it was saved
}

// follow begins, continues or ends the capture of a server.
func (d *Desk) follow(ctx context.Context, n noted) {
	c := n.s.capture
	switch {
	case c == nil && n.stall.Began:
		d.begin(ctx, n, incident.Incident{Why: incident.WhyStall, Began: time.Unix(n.stall.Since, 0), Severity: n.severity, Usual: n.stall.Usual})
		return
	case c == nil && n.asks != nil:
		began := n.asks.Since
		if began.IsZero() || n.m.Tick-began.Unix() > secondsBefore {
			began = time.Unix(n.m.Tick, 0)
		}
		d.begin(ctx, n, incident.Incident{Why: incident.WhyAlert, Finding: n.asks.ID, What: n.asks.What, Began: began, Severity: n.asks.Severity, Usual: n.stall.Usual})
		return
	case c == nil:
		return
	}
	c.add(n.m)
	if n.engine != "" && c.file.InnoDB == "" && !d.opts.Redact {
		c.file.InnoDB = n.engine
		c.unsave = saveEvery
	}
	i := &c.file.Incident
	over := n.stall.Since == 0 || n.stall.Ended
	if i.Why == incident.WhyStall && !over {
		i.Severity = max(i.Severity, n.severity)
	}
	if i.Why == incident.WhyAlert {
		over = over && n.quiet
	}
	switch {
	case !over:
		i.Ended, c.after = time.Time{}, 0
	case i.Ended.IsZero():
		i.Ended = time.Unix(max(n.m.Tick-c.calmFor(n), i.Began.Unix()), 0)
	default:
		c.after++
	}
	full := len(c.file.Records) >= mostSeconds
	if full && i.Ended.IsZero() {
		i.Cut = fmt.Sprintf("it went on longer than the %d seconds that are kept of an incident", mostSeconds)
		i.Ended = time.Unix(n.m.Tick, 0)
	}
	if full || c.after >= secondsAfter {
		i.Open = false
		n.s.capture = nil
		d.save(ctx, c)
		return
	}
	if c.unsave++; c.unsave >= saveEvery {
		d.save(ctx, c)
	}
}

// leave ends the capture of a server that is not watched any more.
func (d *Desk) leave(ctx context.Context, n noted) {
	c := n.s.capture
	if c == nil {
		return
	}
	i := &c.file.Incident
	if i.Ended.IsZero() {
		i.Cut = "the server was not watched any more"
		i.Ended = n.left
	}
	i.Open, n.s.capture = false, nil
	d.save(ctx, c)
}

// calmFor is how many seconds a stall has been over when the detector says so.
func (c *capture) calmFor(n noted) int64 {
	if n.stall.Ended {
		return 4
	}
	return 0
}

// begin captures what was before, and writes it at once.
func (d *Desk) begin(ctx context.Context, n noted, i incident.Incident) {
	i.Instance, i.Server, i.Open = n.s.instance.ID, n.s.instance.Name, true
	name := i.Instance + "-" + i.Began.UTC().Format("20060102-150405")
	i.ID = name
	for n := 2; d.exists(i.ID); n++ { // what still holds after a restart of Risso began when it did
		i.ID = fmt.Sprintf("%s-%d", name, n)
	}
	c := &capture{file: incident.File{Incident: i}}
	moments, err := d.read(n.s, i.Began.Unix()-secondsBefore, n.m.Tick-1)
	if err != nil {
		d.opts.Logger.Warn("the moments before an incident could not be read", "incident", i.ID, "err", err)
	}
	for _, m := range moments {
		c.add(m)
	}
	c.add(n.m)
	n.s.capture = c
	d.save(ctx, c)
}

func (c *capture) add(m *incident.Moment) {
	c.file.Add(&c.writer, m)
}

// save writes the file and the row of an incident. What fails is tried again with the next save.
func (d *Desk) save(ctx context.Context, c *capture) {
	c.unsave = 0
	if err := d.write(ctx, &c.file); err != nil {
		d.opts.Logger.Warn("an incident could not be written", "incident", c.file.Incident.ID, "err", err)
		c.unsave = saveEvery - 2
		return
	}
}

// write writes an incident: its file first, so that there is none for which there is no file.
func (d *Desk) write(ctx context.Context, f *incident.File) error {
	ctx, cancel := context.WithTimeout(ctx, factsPatience)
	defer cancel()
	i := &f.Incident
	events, err := d.opts.Facts.Events(ctx, state.EventQuery{Instances: []string{i.Instance, ""}, From: i.Began.Add(-changedBefore), To: time.Now().Add(time.Second), Limit: mostEvents})
	if err != nil {
		return err
	}
	f.Events = events
	if i.Title == "" || !i.Open {
		told, err := incident.Tell(f, true) // its first sentence is in lists and events
		if err != nil {
			return err
		}
		i.Title = told.Story.First
	}
	if i.Captured.IsZero() {
		i.Captured = time.Now()
	}
	body, err := f.Pack()
	if err != nil {
		return err
	}
	i.Bytes = int64(len(body))
	if err := replaceFile(d.path(i.ID), body); err != nil {
		return err
	}
	row, err := rowOf(*i)
	if err != nil {
		return err
	}
	return d.opts.Facts.SaveIncident(ctx, row, fleet.Event{Time: i.Began, Instance: i.Instance, Kind: fleet.EventIncident, Severity: i.Severity, Subject: i.ID, New: "open", Text: "incident " + i.ID + ": " + i.Title})
}

// fileSuffix ends the name of an incident's file.
const fileSuffix = ".incident"

func (d *Desk) path(id string) string { return filepath.Join(d.folder(), id+fileSuffix) }

func (d *Desk) exists(id string) bool {
	_, err := os.Lstat(d.path(id))
	return err == nil
}

// halfWritten is the pattern of names of files that are not whole yet.
const halfWritten = ".new-*"

// replaceFile puts a file in the place of another, whole or not at all.
func replaceFile(path string, body []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), halfWritten)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(body)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// takeUp ends the incidents that were open when Risso ended: their moments are read out of the ring as far as they were kept.
func (d *Desk) takeUp(ctx context.Context) error {
	rows, err := d.opts.Facts.Incidents(ctx, state.IncidentQuery{Open: true, Limit: 1000})
	if err != nil {
		return err
	}
	unlisted, err := d.clear(ctx)
	if err != nil {
		return err
	}
	for _, id := range unlisted {
		f, err := d.load(id)
		if err != nil {
			d.opts.Logger.Warn("a file among the incidents cannot be read, and is left where it is", "incident", id, "err", err)
			continue
		}
		rows = append(rows, state.IncidentRow{ID: id, Instance: f.Incident.Instance})
	}
	for _, row := range rows {
		if err := d.finish(ctx, row); err != nil {
			d.opts.Logger.Warn("an incident that was open when Risso ended cannot be completed", "incident", row.ID, "err", err)
		}
	}
	return nil
}

// clear takes away what Risso was killed in the middle of writing, and finds the incidents that no list has: it was killed between writing
// their file and noting them.
func (d *Desk) clear(ctx context.Context) (unlisted []string, err error) {
	half, err := filepath.Glob(filepath.Join(d.folder(), halfWritten))
	if err != nil {
		return nil, err
	}
	for _, path := range half {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	files, err := filepath.Glob(d.path("*"))
	if err != nil || len(files) == 0 {
		return nil, err
	}
	listed, err := d.opts.Facts.IncidentIDs(ctx)
	if err != nil {
		return nil, err
	}
	for _, path := range files {
		if id := strings.TrimSuffix(filepath.Base(path), fileSuffix); !listed[id] {
			unlisted = append(unlisted, id)
		}
	}
	return unlisted, nil
}

// giveUp notes that an incident does not go on whose file cannot be read. Of one that no list has nothing else is known.
func (d *Desk) giveUp(ctx context.Context, row state.IncidentRow) error {
	var i incident.Incident
	if len(row.Body) == 0 {
		return nil
	}
	if err := json.Unmarshal(row.Body, &i); err != nil {
		return err
	}
	i.Open, i.Cut, i.Ended = false, "its file cannot be read", i.Began
	ended, err := rowOf(i)
	if err != nil {
		return err
	}
	d.opts.Event(fleet.Event{Time: time.Now(), Instance: i.Instance, Kind: fleet.EventStore, Severity: fleet.SeverityWarning, Subject: "incidents", Text: "incident " + i.ID + " is lost: its file cannot be read"})
	return d.opts.Facts.SaveIncident(ctx, ended, fleet.Event{})
}

func (d *Desk) finish(ctx context.Context, row state.IncidentRow) error {
	f, err := d.load(row.ID)
	if err != nil {
		return errors.Join(err, d.giveUp(ctx, row))
	}
	i := &f.Incident
	if !i.Open { // whole, and only its place in the list is missing
		return d.write(ctx, f)
	}
	s := d.streams[row.Instance]
	if s == nil {
		r, err := d.openRing(row.Instance)
		if err != nil {
			return err
		}
		s = &stream{instance: fleet.Instance{ID: i.Instance, Name: i.Server}, ring: r, asking: map[string]bool{}}
		d.streams[row.Instance] = s
	}
	from := i.Began.Unix() - secondsBefore
	_, newest, _ := s.ring.Span()
	moments, err := d.read(s, from, min(newest, from+mostSeconds))
	if err != nil {
		return err
	}
	if len(moments) >= len(f.Records) { // else they were given up meanwhile
		f.Records = nil
		var w incident.Writer
		for _, m := range moments {
			f.Add(&w, m)
		}
	}
	i.Open = false
	if !i.Ended.IsZero() { // that was seen
		i.Cut = incident.CutAfter
		return d.write(ctx, f)
	}
	i.Cut, i.Ended = "Risso ended during it", i.Began
	if n := len(f.Records); n > 0 {
		i.Ended = time.Unix(f.Records[n-1].At, 0)
	}
	return d.write(ctx, f)
}
