package mirror

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	event "github.com/rissodb/risso/internal/binlogevent"
	"github.com/rissodb/risso/internal/data/binlog"
)

const (
	flushSize = 1 << 20                // bytes that are gathered before they are written
	syncEvery = 20 * time.Millisecond  // at most so long an acknowledgement is held back while more comes
	syncBusy  = 200 * time.Millisecond // and without acknowledgements what came is not yet synced, while more comes
)

// writer writes one log. What stands in the file already is never written again.
type writer struct {
	path     string
	file     *os.File
	buf      []byte
	pos      int64 // of the next event
	last     int64 // where the last event begins
	synced   int64 // everything before it is on disk
	syncTime time.Time
	sums     bool // events end in a checksum
}

// errGap says that the server left something out.
var errGap = errors.New("the server's events do not follow each other")

// create begins a new log. That there is one is an error.
func create(path string) (*writer, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(syncDir(filepath.Dir(path)), syncDir(filepath.Dir(filepath.Dir(path)))); err != nil {
		f.Close()
		return nil, err
	}
	return &writer{path: path, file: f, buf: append(make([]byte, 0, 2*flushSize), event.Magic...), pos: int64(len(event.Magic)), syncTime: time.Now()}, nil
}

// reopen goes on with a log that a process left. A torn event at its end is cut off: it was never acknowledged, and comes
// again. torn says how many bytes that were. Damage in front of the end is an error that wraps event.ErrDamaged.
func reopen(ctx context.Context, path string) (w *writer, torn int64, err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, 0, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	st, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	w = &writer{path: path, file: f, buf: make([]byte, 0, 2*flushSize), pos: int64(len(event.Magic)), syncTime: time.Now()}
	r, err := event.NewReader(f, event.Options{MaxBody: 1 << 10, KeepPayload: true})
	if errors.Is(err, event.ErrTorn) { // not even the magic number
		w.pos = 0
		w.buf = append(w.buf, event.Magic...)
		if err := f.Truncate(0); err != nil {
			return nil, 0, err
		}
		w.pos = int64(len(event.Magic))
		return w, st.Size(), nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("%w: %w", event.ErrDamaged, err)
	}
	defer r.Close()
	for err == nil {
		var e event.Event
		if e, err = r.Next(); err == nil {
			w.pos, w.last = e.End, e.Pos
			w.sums = r.Format().Checksum
		}
		if ctx.Err() != nil {
			return nil, 0, context.Cause(ctx)
		}
	}
	if torn = st.Size() - w.pos; torn > 0 && !tornEnd(ctx, f, w.pos, st.Size(), err) {
		return nil, 0, fmt.Errorf("%w: %s: %w", event.ErrDamaged, path, err)
	}
	if err := f.Truncate(w.pos); err != nil {
		return nil, 0, err
	}
	if _, err := f.Seek(w.pos, 0); err != nil {
		return nil, 0, err
	}
	if err := f.Sync(); err != nil {
		return nil, 0, err
	}
	w.synced = w.pos
	return w, torn, nil
}

// tornEnd says whether what is wrong at pos can be what a crash left: an event that the file does not have whole, or
// bytes that never reached the disk and read as zeros or with a wrong checksum, and nothing good behind them.
func tornEnd(ctx context.Context, f *os.File, pos, size int64, err error) bool {
	if errors.Is(err, event.ErrTorn) {
		return true
	}
	if size-pos > maxTorn || ctx.Err() != nil {
		return false
	}
	head := make([]byte, event.HeaderLen)
	if n, _ := f.ReadAt(head, pos); n < len(head) {
		return true
	}
	h := event.ParseHeader(head)
	// A damaged event in the middle has whole ones behind it: then something else happened.
	next := pos + int64(h.Length)
	if h.Length < event.HeaderLen || next >= size {
		return true
	}
	if n, _ := f.ReadAt(head, next); n < len(head) {
		return true
	}
	n := event.ParseHeader(head)
	return n.Length < event.HeaderLen || next+int64(n.Length) > size
}

// maxTorn is more than what is written between two syncs.
const maxTorn = 256 << 20

// add appends an event. The bytes are copied.
func (w *writer) add(raw []byte, h event.Header) error {
	if h.Type == event.TypeFormatDescription {
		f, err := event.ParseFormat(raw)
		if err != nil {
			return err
		}
		w.sums = f.Checksum
	}
	if int(h.Length) != len(raw) {
		return fmt.Errorf("%w: an event of %d bytes came as %d", event.ErrDamaged, h.Length, len(raw))
	}
	if w.sums && !event.VerifyChecksum(raw) {
		return fmt.Errorf("%w: position %d, as the server sent it", event.ErrChecksum, w.pos)
	}
	// Positions are modulo 2^32, and MariaDB 11.4 leaves out some.
	if end := uint32(w.pos + int64(len(raw))); h.EndPos != 0 && h.EndPos != end {
		return fmt.Errorf("%w: an event that should end at %d ends at %d", errGap, h.EndPos, end)
	}
	w.last = w.pos
	w.buf = append(w.buf, raw...)
	w.pos += int64(len(raw))
	if len(w.buf) >= flushSize {
		return w.flush()
	}
	return nil
}

func (w *writer) flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	n, err := w.file.Write(w.buf)
	if err != nil {
		// What was written in part must not be written again behind itself.
		w.buf = w.buf[:copy(w.buf, w.buf[n:])]
		return fmt.Errorf("%w: %w", errDisk, err)
	}
	if w.buf = w.buf[:0]; cap(w.buf) > 16*flushSize {
		w.buf = make([]byte, 0, 2*flushSize)
	}
	return nil
}

// sync puts everything on disk.
func (w *writer) sync() error {
	if w.synced == w.pos {
		return nil
	}
	if err := w.flush(); err != nil {
		return err
	}
	if err := dataSync(w.file); err != nil {
		// The system may take for written what it could not write: only what was synced before is believed.
		w.file.Truncate(w.synced)
		w.pos, w.buf = w.synced, w.buf[:0]
		return fmt.Errorf("%w: sync %s: %w", errDisk, w.path, err)
	}
	w.synced, w.syncTime = w.pos, time.Now()
	return nil
}

func (w *writer) close() error {
	if w == nil || w.file == nil {
		return nil
	}
	err := w.sync()
	err = errors.Join(err, w.file.Close())
	w.file = nil
	return err
}

// removeEmpty removes a log in which no event is.
func (w *writer) removeEmpty() error {
	if w.pos > int64(len(event.Magic)) {
		return nil
	}
	if err := os.Remove(w.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (w *writer) name() string { return filepath.Base(w.path) }

func (w *writer) number() uint64 { return binlog.Number(w.path) }
