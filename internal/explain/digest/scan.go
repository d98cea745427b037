package digest

import (
	"errors"
	"io"
	"maps"
	"time"
)

// ErrIdle is what the reader under a Scanner returns, with no bytes, when the log has no more for now but may grow.
var ErrIdle = errIdle

// Scanner takes the events out of a slow log one by one, for callers that keep the place in the log themselves and need each
// event, not a profile. It belongs to one goroutine.
type Scanner struct {
	b    blocks
	w    *worker
	buf  []byte
	used int64
}

// LogContext is what a slow log said and what later events leave out: the current database and the last event's time.
type LogContext struct {
	DB      string `json:"db,omitempty"`
	DBKnown bool   `json:"db_known,omitempty"`
	Time    int64  `json:"time,omitempty"` // microseconds since 1970 UTC; 0: unknown
}

// NewScanner makes a scanner of what r returns, which begins at an event or at the log's start. At the log's end r returns
// ErrIdle if it may grow and io.EOF if it does not. zone is that of times without one; nil is UTC.
func NewScanner(r io.Reader, zone *time.Location) (*Scanner, error) {
	p, err := Options{Location: zone, Workers: 1}.plan()
	if err != nil {
		return nil, err
	}
	return &Scanner{w: newWorker(p), b: blocks{r: r, size: p.blockSize, read: func(int) {}}}, nil
}

// Context is what events from Offset on may leave out.
func (s *Scanner) Context() LogContext {
	l := s.w.parser.line
	c := LogContext{DB: string(l.db), DBKnown: l.dbKnown}
	if l.timeKnown {
		c.Time = l.time
	}
	return c
}

// SetContext says what the log said before the place where the scanner begins.
func (s *Scanner) SetContext(c LogContext) {
	s.w.parser.line = lineContext{db: []byte(c.DB), dbKnown: c.DBKnown, time: c.Time, timeKnown: c.Time != 0}
}

// Offset is how many of the reader's bytes the events returned so far take, with what was between them: a scanner that
// begins there, with Context, goes on without a gap.
func (s *Scanner) Offset() int64 { return s.used }

// Server is what the newest of the server's banners in the log says; empty if there was none.
func (s *Scanner) Server() string { return s.w.server }

// Skipped returns what was not understood so far: why → how many.
func (s *Scanner) Skipped() map[string]int64 { return maps.Clone(s.w.skipped) }

// Next yields each event of the next part of the log, some hundred KiB at most, unless one event is larger; of an event
// over 8 MiB only the beginning. The event is valid during the call. idle says that there was no event and the log has no more for now. The error is io.EOF at
// the end.
func (s *Scanner) Next(each func(*Event)) (idle bool, err error) {
	b, buf, err := s.b.next(s.buf)
	s.buf = buf
	if err != nil {
		return errors.Is(err, io.EOF), err
	}
	s.w.parser.block(b.data, b.offset, b.cut, b.last, &s.w.raw, func(ev *raw) {
		s.w.events++
		each(s.w.full(ev))
	})
	s.used = s.b.off
	if cap(s.buf) > statementLimit/2 {
		s.buf = nil // one long statement must not hold memory forever
	}
	return b.idle && len(b.data) == 0, nil
}

// FirstEvent is where the first event in b begins that follows the end of another one, or -1.
func FirstEvent(b []byte) int { return nextEvent(b, 0, false) }
