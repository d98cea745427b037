package mirror

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/rissodb/risso/internal/binlogevent"
	"github.com/rissodb/risso/internal/data/repo"
)

const (
	flushSize = 1 << 20               // bytes that are gathered before they are written
	syncEvery = 20 * time.Millisecond // at most so long an acknowledgement is held back while more comes
	dropSize  = 4 << 20               // bytes on disk that are taken out of the system's cache at a time
	syncBytes = 16 << 20              // bytes that are not waited with
	maxBehind = 64 << 20              // bytes that may be written and not yet synced
	syncBusy  = 50 * time.Millisecond // the longest time after the last sync for which unacknowledged bytes stay unsynced
)

// writer writes one log. What is in the file already is never written again.
type writer struct {
	path     string
	file     *os.File
	seal     *repo.Growing // encrypts the file; nil: it is the server's bytes
	buf      []byte
	out      []byte // of buf, encrypted
	end      int64  // of the file: where buf goes
	endSync  int64  // of it, what is on disk
	pos      int64  // of the next event
	last     int64  // where the last event begins
	dropped  int64  // of the file, what was taken out of the system's cache
	synced   int64  // everything before it is on disk
	syncTime time.Time
	sums     bool // events end in a checksum
	behind   *behind
	notary   *notary // nil: nothing is signed
	broken   bool    // the disk refused something: nothing more is written
}

// errGap says that the server left something out.
var errGap = errors.New("the server's events are not contiguous")

func newWriter(path string, f *os.File) *writer {
	return &writer{path: path, file: f, buf: append(make([]byte, 0, 2*flushSize), binlogevent.Magic...), pos: int64(len(binlogevent.Magic)), syncTime: time.Now()}
}

// create begins a new log. That there is one is an error.
func create(place Place, path string) (*writer, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	w := newWriter(path, f)
	err = errors.Join(syncPath(filepath.Dir(path)), syncPath(filepath.Dir(filepath.Dir(path))))
	if err == nil {
		err = w.begin(place)
	}
	if err != nil {
		return nil, errors.Join(err, w.notary.close(), f.Close())
	}
	return w, nil
}

// begin makes the key of a log that will be encrypted and writes the head of its file.
func (w *writer) begin(place Place) (err error) {
	if w.notary == nil {
		if w.notary, err = newNotary(place, w.path, place.encrypted()); err != nil {
			return err
		}
	}
	if !place.encrypted() {
		return nil
	}
	if w.seal, err = place.Repo.Grow(logName(w.path)); err != nil {
		return err
	}
	if _, err := w.file.WriteAt(w.seal.Head(), 0); err != nil {
		return fmt.Errorf("%w: %w", errDisk, err)
	}
	w.end = int64(len(w.seal.Head()))
	return nil
}

// reopen goes on with a log that a process left. A torn event at its end is cut off: it was never acknowledged, and comes
// again. torn says how many bytes that were. Damage before the end is an error that wraps binlogevent.ErrDamaged.
func reopen(ctx context.Context, place Place, path string) (w *writer, torn int64, err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, 0, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	head := make([]byte, repo.GrowingHead)
	if n, err := f.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, err
	} else if head = head[:n]; n < len(binlogevent.Magic) {
		return beginAgain(place, path, f)
	}
	w = newWriter(path, f)
	w.buf = w.buf[:0]
	if repo.IsGrowing(head) {
		torn, err = w.reopenSealed(ctx, place)
	} else {
		torn, err = w.reopenPlain(ctx)
	}
	if err != nil {
		if errors.Is(err, errNoHead) {
			return beginAgain(place, path, f)
		}
		return nil, 0, err
	}
	if err := f.Truncate(w.end); err != nil {
		return nil, 0, err
	}
	if err := f.Sync(); err != nil {
		return nil, 0, err
	}
	w.synced, w.endSync = w.pos, w.end
	w.notary, err = newNotary(place, path, w.seal != nil)
	return w, torn, err
}

// beginAgain writes a log of which not even the beginning was written.
func beginAgain(place Place, path string, f *os.File) (*writer, int64, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	if err := f.Truncate(0); err != nil {
		return nil, 0, err
	}
	w := newWriter(path, f)
	return w, st.Size(), w.begin(place)
}

// errNoHead says that an encrypted log was cut off before its first byte.
var errNoHead = errors.New("the file has no head")

// encrypt replaces a plain log, all of which is on disk, by an encrypted one, and closes it.
func (w *writer) encrypt(place Place) (sealed *writer, err error) {
	defer func() { err = errors.Join(err, w.file.Close(), w.notary.close()) }()
	f, err := os.OpenFile(w.path+".encrypting", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	sealed = newWriter(w.path, f)
	sealed.sums, sealed.last = w.sums, w.last
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if err := sealed.begin(place); err != nil {
		return nil, err
	}
	if err := sealed.notary.forget(); err != nil { // its hashes were others
		return nil, err
	}
	for at := int64(0); at < w.pos; {
		sealed.buf = sealed.buf[:min(flushSize, w.pos-at)]
		if _, err := w.file.ReadAt(sealed.buf, at); err != nil {
			return nil, err
		}
		at += int64(len(sealed.buf))
		sealed.pos = at
		if err := sealed.flush(); err != nil {
			return nil, err
		}
	}
	if err := sealed.sync(); err != nil {
		return nil, err
	}
	if err := os.Rename(f.Name(), w.path); err != nil {
		return nil, err
	}
	return sealed, syncPath(filepath.Dir(w.path))
}

// events reads the whole events of a log, and hands on where each ends.
func (w *writer) events(ctx context.Context, in io.Reader, each func(e binlogevent.Event)) error {
	r, err := binlogevent.NewReader(in, binlogevent.Options{MaxBody: 1 << 10, KeepPayload: true})
	if err != nil {
		if errors.Is(err, binlogevent.ErrTorn) {
			return err
		}
		return fmt.Errorf("%w: %w", binlogevent.ErrDamaged, err)
	}
	defer r.Close()
	for {
		e, err := r.Next()
		if err != nil {
			return err
		}
		w.sums = r.Format().Checksum
		each(e)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

func (w *writer) reopenPlain(ctx context.Context) (torn int64, err error) {
	st, err := w.file.Stat()
	if err != nil {
		return 0, err
	}
	err = w.events(ctx, io.NewSectionReader(w.file, 0, st.Size()), func(e binlogevent.Event) { w.pos, w.last = e.End, e.Pos })
	if ctx.Err() != nil {
		return 0, err
	}
	if torn = st.Size() - w.pos; torn > 0 && !tornEnd(ctx, w.file, w.pos, st.Size(), err) {
		return 0, fmt.Errorf("%w: %s: %w", binlogevent.ErrDamaged, w.path, err)
	}
	w.end = w.pos
	return torn, nil
}

// reopenSealed cuts an encrypted log after the last frame that ends with an event: all that was synced ends so.
func (w *writer) reopenSealed(ctx context.Context, place Place) (torn int64, err error) {
	if place.Repo == nil {
		return 0, fmt.Errorf("%s: %w", logName(w.path), repo.ErrNoKey)
	}
	st, err := w.file.Stat()
	if err != nil {
		return 0, err
	}
	in := io.NewSectionReader(w.file, 0, st.Size())
	w.seal, err = place.Repo.Regrow(logName(w.path), in)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, errNoHead
	}
	if err != nil {
		return 0, err
	}
	if err := place.Repo.Adopt(logName(w.path), w.seal); err != nil {
		return 0, err
	}
	w.end = int64(len(w.seal.Head()))
	frames := w.seal.Reader(in)
	frames.Track = true
	w.pos, w.last = 0, 0
	err = w.events(ctx, frames, func(e binlogevent.Event) {
		if f, ok := frames.Ended(e.End); ok {
			w.pos, w.last, w.end = f.Pos, e.Pos, f.End
		}
	})
	if ctx.Err() != nil {
		return 0, err
	}
	if w.pos == 0 { // nothing whole is in it
		w.pos, w.buf = int64(len(binlogevent.Magic)), append(w.buf[:0], binlogevent.Magic...)
	}
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, binlogevent.ErrTorn), errors.Is(err, repo.ErrDamaged) && frames.Tail():
		return st.Size() - w.end, nil
	}
	return 0, fmt.Errorf("%w: %s: %w", binlogevent.ErrDamaged, w.path, err)
}

// tornEnd reports whether a fault at pos can be the result of a crash: an event that is not whole, or
// bytes that never reached the disk and read as zeros or with a wrong checksum, and nothing good after them.
func tornEnd(ctx context.Context, f *os.File, pos, size int64, err error) bool {
	if errors.Is(err, binlogevent.ErrTorn) {
		return true
	}
	if size-pos > maxTorn || ctx.Err() != nil {
		return false
	}
	head := make([]byte, binlogevent.HeaderLen)
	if n, _ := f.ReadAt(head, pos); n < len(head) {
		return true
	}
	h := binlogevent.ParseHeader(head)
	// A damaged event in the middle has whole ones after it: then something else happened.
	next := pos + int64(h.Length)
	if h.Length < binlogevent.HeaderLen || next >= size {
		return true
	}
	if n, _ := f.ReadAt(head, next); n < len(head) {
		return true
	}
	n := binlogevent.ParseHeader(head)
	return n.Length < binlogevent.HeaderLen || next+int64(n.Length) > size
}

// maxTorn is more than what is written between two syncs: maxBehind, and an event or two.
const maxTorn = 256 << 20

// add appends an event. The bytes are copied.
func (w *writer) add(raw []byte, h *binlogevent.Header) error {
	if h.Type == binlogevent.TypeFormatDescription {
		f, err := binlogevent.ParseFormat(raw)
		if err != nil {
			return err
		}
		w.sums = f.Checksum
	}
	if int(h.Length) != len(raw) {
		return fmt.Errorf("%w: an event of %d bytes came as %d", binlogevent.ErrDamaged, h.Length, len(raw))
	}
	if w.sums && !binlogevent.VerifyChecksum(raw) {
		return fmt.Errorf("%w: position %d, as the server sent it", binlogevent.ErrChecksum, w.pos)
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

// flush writes what was gathered: whole events.
func (w *writer) flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	if w.broken {
		return fmt.Errorf("%w: %s", errDisk, w.path)
	}
	out := w.buf
	if w.seal != nil {
		w.out = w.seal.Append(w.out[:0], w.buf, w.pos-int64(len(w.buf)))
		out = w.out
	}
	if _, err := w.file.WriteAt(out, w.end); err != nil {
		// What was written of it is removed: an event is there whole or not at all. If it stays, the next session removes it.
		w.broken = true
		return errors.Join(fmt.Errorf("%w: %w", errDisk, err), w.file.Truncate(w.end))
	}
	w.end += int64(len(out))
	w.notary.wrote(w.buf)
	if w.buf = w.buf[:0]; cap(w.buf) > 16*flushSize {
		w.buf, w.out = make([]byte, 0, 2*flushSize), nil
	}
	return nil
}

// behind is a sync that goes on while more is written.
type behind struct {
	pos, end int64  // up to there
	sum      string // of it, to be signed
	done     chan error
}

// startSync begins to put on disk what was written, unless that goes on already. Only waitSync and what calls it may close the file.
func (w *writer) startSync() {
	if w.behind != nil || w.broken || w.endSync == w.end {
		return
	}
	b := &behind{pos: w.pos - int64(len(w.buf)), end: w.end, sum: w.notary.now(), done: make(chan error, 1)}
	w.behind = b
	go func() { b.done <- dataSync(w.file) }() // ends with the system call
}

// waitSync takes in a sync that was begun; wait: until it ends.
func (w *writer) waitSync(wait bool) error {
	b := w.behind
	if b == nil {
		return nil
	}
	if !wait && len(b.done) == 0 {
		return nil
	}
	w.behind = nil
	return w.onDisk(b.pos, b.end, b.sum, <-b.done)
}

// sync puts everything on disk.
func (w *writer) sync() error {
	if err := w.waitSync(true); err != nil {
		return err
	}
	if w.synced == w.pos {
		return nil
	}
	if err := w.flush(); err != nil {
		return err
	}
	return w.onDisk(w.pos, w.end, w.notary.now(), dataSync(w.file))
}

// onDisk notes how a sync ended, and signs what it put on disk.
func (w *writer) onDisk(pos, end int64, sum string, err error) error {
	if err != nil {
		// The system may take for written what it could not write: only what was synced before is believed.
		w.broken = true
		w.file.Truncate(w.endSync)
		w.pos, w.end, w.buf = w.synced, w.endSync, w.buf[:0]
		return fmt.Errorf("%w: sync %s: %w", errDisk, w.path, err)
	}
	w.synced, w.endSync, w.syncTime = pos, end, time.Now()
	if w.endSync-w.dropped >= dropSize {
		w.dropped = dropCached(w.file, w.dropped, w.endSync)
	}
	return w.notary.sign(pos, sum)
}

func (w *writer) close() error {
	if w == nil || w.file == nil {
		return nil
	}
	err := w.sync()
	err = errors.Join(err, w.file.Close(), w.notary.close())
	w.file, w.notary = nil, nil
	return err
}

// removeEmpty removes a log in which no event is.
func (w *writer) removeEmpty() error {
	if w.pos > int64(len(binlogevent.Magic)) || w.broken {
		return nil
	}
	for _, path := range []string{w.path, w.path + extSigned} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// logName is the name of a log among all of a place: SERIES/NAME.
func logName(path string) string {
	return filepath.Base(filepath.Dir(path)) + "/" + filepath.Base(path)
}

func (w *writer) name() string { return filepath.Base(w.path) }
