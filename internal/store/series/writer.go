package series

import (
	"fmt"
	"math"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/digits"
)

// Writer appends the ticks of one instance. It belongs to one goroutine.
type Writer struct {
	in     *instance
	closed bool // guarded by in.mu
	retry  time.Time
}

// walLimit is how large a log may grow before the next minute starts a new one: some minutes.
const walLimit = 256 << 10

func (in *instance) openWriter() (*Writer, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.writer != nil {
		return nil, fmt.Errorf("%s: %w", in.id, ErrBusy)
	}
	w := &Writer{in: in}
	in.writer = w
	in.descs, in.lastVal, in.lastAt = nil, nil, nil
	clear(in.pos)
	return w, nil
}

// Define returns the position of a series in the values of Append. The same Desc always has the same position, as long as the
// Writer is open; positions count up from 0. A key that comes again with another type keeps its position and has the new type from then on.
func (w *Writer) Define(d Desc) int {
	in := w.in
	id := in.s.cat.intern(d)
	in.mu.Lock()
	defer in.mu.Unlock()
	if at, ok := in.pos[id.key]; ok {
		if in.descs[at] != id {
			in.descs = slices.Clone(in.descs)
			in.descs[at] = id
		}
		return at
	}
	at := len(in.descs)
	in.pos[id.key] = at
	in.descs = append(in.descs, id)
	in.lastVal = append(in.lastVal, math.NaN())
	in.lastAt = append(in.lastAt, math.MinInt64)
	return at
}

// Append takes the values of one tick, t in Unix seconds; values[i] belongs to the series at position i, NaN is "no value".
// A late tick is one whose collection took too long to trust the rates next to it. The values are copied.
// What was appended can be read immediately, and survives the end of the process; a full disk is no error here, see Options.OnEvent.
func (w *Writer) Append(t int64, values []float64, late bool) error {
	if t < 0 || t > maxTime {
		return fmt.Errorf("append at %d: %w", t, ErrTime)
	}
	in := w.in
	row := in.s.rows.get(len(values))
	copy(row, values)
	in.mu.Lock()
	err := w.check(t, len(values))
	if err != nil {
		in.mu.Unlock()
		in.s.rows.put([][]float64{row})
		return err
	}
	sealed := in.place(t, row, late)
	descs := in.descs
	in.mu.Unlock()
	in.s.stats.ticks.Add(1)
	if err := w.log(t, values, late, descs); err != nil {
		w.retry = time.Now().Add(time.Second)
		in.s.writeFailed(in.id, err)
	}
	if sealed {
		in.s.w.wake()
	}
	return nil
}

func (w *Writer) check(t int64, n int) error {
	in := w.in
	switch {
	case w.closed:
		return ErrClosed
	case t <= in.last:
		return fmt.Errorf("%s: tick %d, the last was %d: %w", in.id, t, in.last, ErrOldTick)
	case n > len(in.descs):
		return fmt.Errorf("%s: %d values, %d series: %w", in.id, n, len(in.descs), ErrValues)
	}
	return nil
}

// place puts a row into the current minute and says whether a minute became ready for sealing. The caller holds mu.
func (in *instance) place(t int64, row []float64, late bool) (sealed bool) {
	start := floorTo(t, minuteSeconds)
	if in.cur != nil && in.cur.start != start {
		in.retireLocked()
		sealed = true
	}
	if in.cur == nil {
		in.cur = &minute{start: start}
	}
	in.cur.set(int(t-start), row, late)
	in.last, in.touched = t, time.Now()
	n := 0
	for i, v := range row {
		if v == v {
			in.lastVal[i], in.lastAt[i] = v, t
			n++
		}
	}
	in.s.stats.samples.Add(int64(n))
	return sealed
}

// retireLocked moves the current minute to those that wait for sealing.
func (in *instance) retireLocked() {
	in.pending = append(in.pending, &pendingMinute{minute: in.cur, descs: in.descs})
	in.cur = nil
}

// log writes the tick to the write-ahead log.
func (w *Writer) log(t int64, values []float64, late bool, descs []*seriesID) error {
	in := w.in
	in.walMu.Lock()
	defer in.walMu.Unlock()
	start := floorTo(t, minuteSeconds)
	if in.wal != nil && in.wal.minute != start && in.wal.size > walLimit {
		in.retireWAL()
	}
	if in.wal == nil {
		if time.Now().Before(w.retry) {
			return nil
		}
		if err := w.restart(t, descs); err != nil {
			return err
		}
	}
	l := in.wal
	if l.defined < len(descs) {
		l.define(descs, in.s.cat.enc)
	}
	l.tick(t, values, late)
	before := l.size
	if err := l.write(); err != nil {
		in.retireWAL()
		return err
	}
	in.s.stats.walBytes.Add(l.size - before)
	return nil
}

// retireWAL ends the log; it goes when its minutes are sealed. The caller holds walMu.
func (in *instance) retireWAL() {
	w := in.wal
	w.f.Close()
	in.walOld = append(in.walOld, oldWAL{path: w.path, max: w.minute, size: w.size})
	in.wal = nil
}

// restart begins a log, with the seconds of the current minute before t, which may be in no log.
func (w *Writer) restart(t int64, descs []*seriesID) error {
	in := w.in
	l, err := startWAL(walPath(in.dir, in.walNum+1), descs, in.s.cat.enc)
	if err != nil {
		return err
	}
	in.walNum++
	in.wal = l
	in.mu.RLock()
	if m := in.cur; m != nil && m.start == floorTo(t, minuteSeconds) {
		for s := range int(t - m.start) {
			if m.ticks>>s&1 != 0 {
				l.tick(m.start+int64(s), m.rows[s], m.late>>s&1 != 0)
			}
		}
	}
	in.mu.RUnlock()
	return nil
}

// Flush makes everything appended so far durable: finished minutes are sealed, the log is on disk.
func (w *Writer) Flush() error {
	in := w.in
	if err := in.sealPending(); err != nil {
		return err
	}
	if n := in.waiting(); n > 0 {
		return fmt.Errorf("flush %s: %s in memory for the disk: %w", in.id, digits.Plural(n, "minute waits", "minutes wait"), ErrNotDurable)
	}
	in.walMu.Lock()
	defer in.walMu.Unlock()
	if in.wal == nil {
		return nil
	}
	if err := unix.Fdatasync(int(in.wal.f.Fd())); err != nil {
		return fmt.Errorf("flush %s: %w", in.id, err)
	}
	return nil
}

// waiting counts the frames that are in memory because they could not be written.
func (in *instance) waiting() (n int) {
	for _, f := range in.framesFiles() {
		n += len(f.unsaved())
	}
	return n
}

// Close seals what was appended and releases the instance for another Writer.
func (w *Writer) Close() error {
	if !w.in.closeWriter() {
		return ErrClosed
	}
	err := w.in.sealAll()
	w.in.dropWAL()
	return err
}

// closeWriter ends the writer, if there is one.
func (in *instance) closeWriter() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.writer == nil {
		return false
	}
	in.writer.closed = true
	in.writer = nil
	return true
}

// Last returns the newest tick of an instance and its values. The function knows the newest value of each
// series, as long as it is at most five minutes older than the tick: what is collected once a minute is there, too.
// Without a writer there are no values. t is 0 if nothing was ever stored.
func (s *Store) Last(instance string) (t int64, value func(key string) (float64, bool)) {
	none := func(string) (float64, bool) { return 0, false }
	in := s.instance(instance)
	if in == nil {
		return 0, none
	}
	in.mu.RLock()
	defer in.mu.RUnlock()
	if in.last == math.MinInt64 {
		return 0, none
	}
	w, vals, at, last := in.writer, slices.Clone(in.lastVal), slices.Clone(in.lastAt), in.last
	return last, func(key string) (float64, bool) {
		in.mu.RLock()
		i, ok := in.pos[key]
		ok = ok && in.writer == w && i < len(at)
		in.mu.RUnlock()
		if !ok || at[i] < last-lastWindow {
			return 0, false
		}
		return vals[i], true
	}
}

// lastWindow is how much older than the newest tick a value that Last returns may be, in seconds.
const lastWindow = 300
