package series

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rissodb/risso/internal/fleet"
)

// memFrameLimit bounds the minutes that wait in memory for a disk that is full: in bytes over all instances, and in
// minutes for one.
const (
	memFrameLimit   = 48 << 20
	memFrameMinutes = 40
)

// sealPending turns every minute that waits into a frame. The frame is kept even when it cannot be written; then it waits in memory.
func (in *instance) sealPending() error {
	in.write.Lock()
	defer in.write.Unlock()
	return in.sealPendingLocked()
}

// sealAll seals the minute that is not over, too.
func (in *instance) sealAll() error {
	in.mu.Lock()
	if in.cur != nil {
		in.retireLocked()
	}
	in.mu.Unlock()
	in.write.Lock()
	defer in.write.Unlock()
	return errors.Join(in.sealPendingLocked(), in.saveFrames())
}

func (in *instance) sealPendingLocked() error {
	var errs []error
	for {
		in.mu.RLock()
		if len(in.pending) == 0 {
			in.mu.RUnlock()
			return errors.Join(errs...)
		}
		m := in.pending[0]
		in.mu.RUnlock()
		begin := time.Now()
		if len(m.descs) > 0 {
			errs = append(errs, in.seal(m))
		}
		in.mu.Lock()
		in.pending = slices.Delete(in.pending, 0, 1)
		rows := m.rows
		m.rows = [minuteSeconds][]float64{}
		in.mu.Unlock()
		in.s.rows.put(rows[:])
		in.trimWAL()
		in.s.stats.sealNanos.Add(int64(time.Since(begin)))
	}
}

// seal makes a frame of a minute and adds it to its hour. The caller holds write.
func (in *instance) seal(m *pendingMinute) error {
	if !sameDescs(in.schemaOf, m.descs) {
		in.schema = in.s.cat.of(m.descs)
		in.schemaOf = m.descs
		at := map[string]int{}
		for i, d := range m.descs {
			at[d.key] = i
		}
		in.positions = in.positions[:0]
		for _, d := range in.schema.series {
			in.positions = append(in.positions, at[d.key])
		}
	}
	payload := in.s.w.encodeFrame(in.id, in.schema, in.positions, m.minute)
	h, err := readFrameHead(payload)
	if err != nil {
		return fmt.Errorf("seal minute %d of %s: %w", m.start, in.id, err)
	}
	if f := in.s.opts.OnFrame; f != nil {
		f(in.id, m.start, appendRecord(appendRecord(nil, recordSchema, in.schema.packed), recordFrame, payload))
	}
	return in.addFrame(h, in.schema, payload, true)
}

// sameDescs reports whether two lists are the same; they only grow or are replaced.
func sameDescs(a, b []*seriesID) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b))
}

// addFrame adds a frame to its hour, in the file or, failing that and with keep, in memory. The caller holds write.
func (in *instance) addFrame(h frameHead, s *schema, payload []byte, keep bool) error {
	hour := floorTo(h.start, hourSeconds)
	ref := newFrameRef(h, s, payload)
	ref.mem = payload
	in.files.RLock()
	old := in.hours[hour]
	in.files.RUnlock()
	next := &framesFile{path: framesPath(in.dir, hour), hour: hour}
	if in.newerHours[hour] {
		next.path = besidePath(in.dir, hour)
	}
	if old != nil {
		*next = *old
		next.refs = slices.Clone(old.refs)
	}
	next.modified = time.Now()
	wait := next.unsaved()
	next.refs = append(next.refs, ref)
	err := in.saveInto(next, append(wait, ref))
	if err != nil {
		if !keep {
			return err
		}
		in.s.stats.memFrames.Add(int64(ref.n))
	}
	in.files.Lock()
	in.hours[hour] = next
	in.files.Unlock()
	in.s.stats.framesSealed.Add(1)
	if err != nil {
		in.boundMemory()
	}
	return nil
}

// saveInto writes frames that wait in memory. Refs are shared with readers: new ones take the place of those that were written.
func (in *instance) saveInto(f *framesFile, wait []*frameRef) error {
	saved := make([]*frameRef, len(wait))
	for i, r := range wait {
		c := *r
		saved[i] = &c
	}
	n, err := f.append(saved)
	if err != nil {
		in.s.writeFailed(in.id, err)
		return err
	}
	in.s.stats.frameBytes.Add(n)
	for i, r := range f.refs {
		if k := slices.Index(wait, r); k >= 0 {
			f.refs[i] = saved[k]
		}
	}
	freed := 0
	for _, r := range wait[:len(wait)-1] {
		freed += r.n
	}
	in.s.stats.memFrames.Add(-int64(freed))
	return nil
}

// saveFrames tries to write all frames that wait in memory. The caller holds write.
func (in *instance) saveFrames() error {
	var errs []error
	for _, f := range in.framesFiles() {
		wait := f.unsaved()
		if len(wait) == 0 {
			continue
		}
		next := *f
		next.refs = slices.Clone(f.refs)
		if err := in.saveInto(&next, wait); err != nil {
			errs = append(errs, err)
			continue
		}
		in.s.stats.memFrames.Add(-int64(wait[len(wait)-1].n))
		in.files.Lock()
		in.hours[f.hour] = &next
		in.files.Unlock()
		in.trimWAL()
	}
	return errors.Join(errs...)
}

// framesFiles lists the hours that have frames, oldest first.
func (in *instance) framesFiles() []*framesFile {
	in.files.RLock()
	defer in.files.RUnlock()
	list := make([]*framesFile, 0, len(in.hours))
	for _, f := range in.hours {
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b *framesFile) int { return int(a.hour - b.hour) })
	return list
}

// boundMemory drops the oldest minutes of the instance when those in memory are too many.
func (in *instance) boundMemory() {
	var waiting []*frameRef
	for _, f := range in.framesFiles() {
		waiting = append(waiting, f.unsaved()...)
	}
	drop := len(waiting) - memFrameMinutes
	if drop <= 0 && in.s.stats.memFrames.Load() > memFrameLimit {
		drop = 1
	}
	if drop <= 0 {
		return
	}
	slices.SortFunc(waiting, func(a, b *frameRef) int { return int(a.start - b.start) })
	gone := waiting[:min(drop, len(waiting))]
	in.files.Lock()
	for hour, f := range in.hours {
		next := *f
		next.refs = slices.DeleteFunc(slices.Clone(f.refs), func(r *frameRef) bool { return slices.Contains(gone, r) })
		in.hours[hour] = &next
	}
	in.files.Unlock()
	for _, r := range gone {
		in.s.stats.memFrames.Add(-int64(r.n))
	}
	if in.s.stats.lost.Add(int64(len(gone))) == int64(len(gone)) {
		in.s.event(in.id, fleet.SeverityCritical, in.s.opts.Dir,
			"The disk has been full for too long: the oldest minutes waiting in memory are being dropped.")
	}
}

// PutFrame takes frames that another store sealed: records as Options.OnFrame gets them, in any order, also for
// hours and days long finished. Seconds that are there already stay as they are, so the same frame twice is the same as once.
// A frame whose schema record was never sent causes ErrUnknownSchema. After nil the frame is on disk; after an error the sender keeps it.
func (s *Store) PutFrame(data []byte) error {
	sc := scanRecords(data)
	if sc.bad || sc.torn > 0 || len(sc.records) == 0 {
		return fmt.Errorf("frame of %d bytes: %w", len(data), errSum)
	}
	for _, r := range sc.records {
		switch r.kind {
		case recordSchema:
			if _, err := s.cat.parse(r.payload); err != nil {
				return fmt.Errorf("frame: %w", err)
			}
		case recordFrame:
			if err := s.putFrame(r.payload); err != nil {
				return err
			}
		default:
			return fmt.Errorf("record of kind %d: %w", r.kind, errFrame)
		}
	}
	return nil
}

func (s *Store) putFrame(payload []byte) error {
	h, err := readFrameHead(payload)
	if err != nil {
		return err
	}
	if h.start < 0 {
		return fmt.Errorf("frame: %w", ErrTime)
	}
	sch := s.cat.lookup(h.schema)
	if sch == nil {
		return fmt.Errorf("frame of %s: %w", h.instance, ErrUnknownSchema)
	}
	if _, err := openFrame(h, sch, s.dec); err != nil {
		return err
	}
	in, err := s.ensure(h.instance)
	if err != nil {
		return err
	}
	in.write.Lock()
	defer in.write.Unlock()
	in.files.RLock()
	have := in.coveredTicks(h.start)
	in.files.RUnlock()
	if h.ticks&^have == 0 {
		return nil
	}
	if err := in.addFrame(h, sch, slices.Clone(payload), false); err != nil {
		return err
	}
	in.newest(h)
	return nil
}
