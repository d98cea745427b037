package series

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
)

// When finished work is due.
const (
	hourGrace  = 75 * time.Second // after an hour, for its last minute
	hourQuiet  = 20 * time.Second // without new frames
	dayGrace   = 30 * time.Minute
	dayQuiet   = 5 * time.Minute
	idleMinute = 90 * time.Second // without a tick; then the minute is sealed as it is
	mergeEvery = 10 * time.Second
	mergeRetry = 30 * time.Second // after one failed
)

// worker is the store's one background goroutine and what it shares with those who do its work on demand.
type worker struct {
	s    *Store
	kick chan struct{}
	quit chan struct{}
	done chan struct{}

	frameMu sync.Mutex
	fm      frameMaker

	mergeMu sync.Mutex
	zstd    *zstd.Encoder
	hours   hourEncoder

	damageMu sync.Mutex
	damage   map[*blockRef]damageReport
	badHours map[badHour]error
}

func (w *worker) init(s *Store) error {
	w.s = s
	w.kick, w.quit, w.done = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	w.damage = map[*blockRef]damageReport{}
	w.badHours = map[badHour]error{}
	e, err := newEncoder()
	if err != nil {
		return err
	}
	w.hours.enc, w.zstd = e, e.zstd
	w.fm.enc, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(128<<10),
		zstd.WithLowerEncoderMem(true), zstd.WithSingleSegment(true), zstd.WithEncoderCRC(false))
	if err != nil {
		return fmt.Errorf("make a compressor: %w", err)
	}
	return nil
}

func (w *worker) start() {
	go w.run()
	w.wake()
}

func (w *worker) wake() {
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

func (w *worker) stop() {
	close(w.quit)
	<-w.done
}

func (w *worker) run() {
	defer close(w.done)
	// At half seconds others are awake, too, and collectors are not at work.
	now := time.Now()
	tick := time.NewTicker(time.Second + now.Truncate(time.Second).Add(time.Second/2).Sub(now))
	defer tick.Stop()
	var merged, swept time.Time
	aligned := false
	for {
		select {
		case <-w.quit:
			return
		case <-w.kick:
			w.sealMinutes()
			w.repair()
		case now := <-tick.C:
			if !aligned {
				tick.Reset(time.Second)
				aligned = true
			}
			w.retireIdle(now)
			w.saveWaiting()
			w.s.writeRecovered()
			if now.Sub(merged) >= mergeEvery {
				merged = now
				if w.merge(w.s.opts.now(), false) != nil {
					merged = now.Add(mergeRetry)
				}
			}
			if now.Sub(swept) >= 10*time.Minute {
				swept = now
				w.retain(w.s.opts.now())
			}
		}
	}
}

// rest leaves the processor to others for as long as the work before took, so that a hundred instances make no burst.
// It says whether to go on.
func (w *worker) rest(since time.Time) bool {
	t := time.NewTimer(min(time.Since(since), time.Second))
	defer t.Stop()
	select {
	case <-w.quit:
		return false
	case <-t.C:
		return true
	}
}

func (w *worker) sealMinutes() {
	for _, in := range w.s.all() {
		in.mu.RLock()
		n := len(in.pending)
		in.mu.RUnlock()
		if n == 0 {
			continue
		}
		begin := time.Now()
		if err := in.sealPending(); err != nil {
			w.s.log.Debug("seal", "instance", in.id, "err", err)
		}
		if !w.rest(begin) {
			return
		}
	}
}

// retireIdle seals the minutes of instances that get no ticks any more.
func (w *worker) retireIdle(now time.Time) {
	for _, in := range w.s.all() {
		in.mu.Lock()
		if in.cur != nil && now.Sub(in.touched) > idleMinute {
			in.retireLocked()
			w.wake()
		}
		in.mu.Unlock()
	}
}

func (w *worker) saveWaiting() {
	if w.s.stats.memFrames.Load() == 0 {
		return
	}
	for _, in := range w.s.all() {
		in.write.Lock()
		in.saveFrames() // a failure was reported when the frame came, and is tried again in a second
		in.write.Unlock()
	}
}

func (w *worker) encodeFrame(instance string, s *schema, positions []int, m *minute) []byte {
	w.frameMu.Lock()
	defer w.frameMu.Unlock()
	return w.fm.encode(instance, s, positions, m)
}

// merge makes blocks of finished hours and days. At once skips the waits for late frames.
func (w *worker) merge(now time.Time, atOnce bool) error {
	var errs []error
	// The rest between two keeps the load low; without one, false ends the work.
	merge := func(in *instance, do func() error) bool {
		begin := time.Now()
		in.write.Lock()
		err := do()
		in.write.Unlock()
		errs = append(errs, in.mergeFailed(err))
		if atOnce {
			return true
		}
		if !w.rest(begin) {
			return false
		}
		w.sealMinutes()
		return true
	}
	for _, in := range w.s.all() {
		for _, f := range in.framesFiles() {
			if !in.hourDue(f, now, atOnce) {
				continue
			}
			if !merge(in, func() error { return in.mergeHour(f.hour) }) {
				return nil
			}
		}
		for _, day := range in.daysDue(now, atOnce) {
			if !merge(in, func() error { return in.mergeDay(day) }) {
				return nil
			}
		}
	}
	return errors.Join(errs...)
}

func (in *instance) mergeFailed(err error) error {
	var d *damageError
	if err == nil || errors.As(err, &d) || errors.Is(err, errVersion) {
		return err
	}
	in.s.writeFailed(in.id, err)
	return err
}

// hourDue reports whether an hour's frames are to become a block.
func (in *instance) hourDue(f *framesFile, now time.Time, atOnce bool) bool {
	end := f.hour + hourSeconds
	in.mu.RLock()
	defer in.mu.RUnlock()
	for _, m := range in.pending {
		if m.start >= f.hour && m.start < end {
			return false
		}
	}
	if in.cur != nil && in.cur.start < end && in.cur.start >= f.hour {
		return false
	}
	over := !now.Before(time.Unix(end, 0).Add(hourGrace))
	if atOnce {
		return over
	}
	quiet := time.Since(f.modified) >= hourQuiet || len(f.refs) >= 60
	return quiet && (over || in.last >= end+int64(hourGrace/time.Second))
}

// daysDue lists the days whose hours are to become one file.
func (in *instance) daysDue(now time.Time, atOnce bool) (days []int64) {
	in.mu.RLock()
	last := in.last
	in.mu.RUnlock()
	in.files.RLock()
	defer in.files.RUnlock()
	for _, r := range in.blocks {
		day := floorTo(r.start, daySeconds)
		end := day + daySeconds
		if r.end-r.start > hourSeconds || slices.Contains(days, day) {
			continue
		}
		over := !now.Before(time.Unix(end, 0).Add(dayGrace))
		if !over && (atOnce || last < end+int64(dayGrace/time.Second)) {
			continue
		}
		if !atOnce && time.Since(r.made) < dayQuiet {
			continue
		}
		if in.framesWithin(day, end) {
			continue
		}
		days = append(days, day)
	}
	return days
}

func (in *instance) framesWithin(from, to int64) bool {
	for hour := range in.hours {
		if hour >= from && hour < to {
			return true
		}
	}
	return false
}

// retain removes files that are older than the retention.
func (w *worker) retain(now time.Time) {
	if w.s.opts.Retention <= 0 {
		return
	}
	limit := now.Add(-w.s.opts.Retention).Unix()
	for _, in := range w.s.all() {
		in.write.Lock()
		in.files.RLock()
		var old []*blockRef
		for _, r := range in.blocks {
			if r.end <= limit {
				old = append(old, r)
			}
		}
		var frames []*framesFile
		for _, f := range in.hours {
			if f.hour+hourSeconds <= limit {
				frames = append(frames, f)
			}
		}
		in.files.RUnlock()
		if len(old) > 0 {
			in.replace(nil, old, nil)
		}
		for _, f := range frames {
			in.replace(nil, nil, f)
		}
		in.write.Unlock()
	}
}

// compact does all that is due at a moment.
func (w *worker) compact(ctx context.Context, now time.Time) error {
	var errs []error
	for _, in := range w.s.all() {
		if err := ctx.Err(); err != nil {
			return err
		}
		errs = append(errs, in.sealPending())
	}
	w.repair()
	// Late frames may make a day of which hours were merged before: twice is enough.
	errs = append(errs, w.merge(now, true))
	w.retain(now)
	return errors.Join(errs...)
}

// newest takes note of a frame that came from elsewhere.
func (in *instance) newest(h frameHead) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for s := minuteSeconds - 1; s >= 0; s-- {
		if h.ticks>>s&1 != 0 {
			in.last = max(in.last, h.start+int64(s))
			return
		}
	}
}
