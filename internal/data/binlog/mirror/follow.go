package mirror

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rissodb/risso/internal/binlogevent"
	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/wire"
)

// Options say what to mirror and where.
type Options struct {
	Target    mysql.Target
	Place     Place         // of finished logs
	Dir       string        // folder of logs that are being written; a place that is a folder may be the same
	SemiSync  bool          // acknowledge what is on disk, if the server waits for that
	Once      bool          // end when everything is here that the server has now
	Patient   bool          // wait also for a server that is not there at the start
	Plain     bool          // leave finished logs as they are: no compression, and the place gets only their indexes
	Keep      time.Duration // remove finished logs whose last event is older; 0: never
	Heartbeat time.Duration // how often the server sends a heartbeat; after ten without a word it is asked again; 0: a second

	Note   func(Note)   // what happened, for people; from one goroutine at a time. May be nil.
	Status func(Status) // how far it is, several times a second. May be nil.
}

// Note is a message for people.
type Note struct {
	Time    time.Time `json:"time"`
	Warning bool      `json:"warning,omitempty"`
	Text    string    `json:"text"`
}

// Status is the progress of a mirror.
type Status struct {
	Key      string        `json:"key"`
	File     string        `json:"file"`
	Pos      int64         `json:"position"`     // bytes of the file that are on disk
	Received int64         `json:"received"`     // bytes since the start
	Rate     float64       `json:"bytes_second"` // recently received bytes per second
	Lag      time.Duration `json:"lag"`          // from when the server wrote the last event until it was on disk here, to the precision of the log; 0: up to date
	Idle     bool          `json:"idle"`         // the server had nothing more to send
}

// ErrInUse says that another process mirrors into the same folder.
var ErrInUse = errors.New("another process mirrors into this folder")

// Follow mirrors until ctx ends, with Once until everything is here. It survives cuts of the connection and of the server; it
// ends with an error only if waiting does not help: a wrong account, no binary log, a folder in use; unless it is Patient also
// an unknown host, or nothing listening there, at the start. With Once it also ends when the server cannot be reached at all, or
// was gone for a minute.
func Follow(ctx context.Context, o Options) error {
	if o.Heartbeat <= 0 {
		o.Heartbeat = time.Second
	}
	if o.Place.encrypted() {
		if _, err := o.Place.Repo.NewHash(); err != nil {
			return err
		}
		if o.Plain {
			return errPlain
		}
	}
	unlock, err := lockDir(o.Dir)
	if err != nil {
		return err
	}
	defer unlock()
	f := &follower{o: o, done: make(chan struct{}, 1)}
	defer f.closeWriter()
	// The finisher ends when the follower does and has nothing left to do.
	var wg sync.WaitGroup
	finish, stop := context.WithCancel(ctx)
	wg.Go(func() { f.finisher(finish) })
	err = f.loop(ctx)
	f.closeWriter()
	if o.Once && err == nil {
		err = f.finishAll(ctx)
	}
	stop()
	wg.Wait()
	if ctx.Err() != nil && !o.Once {
		return nil // asked to end: everything that was received is on disk
	}
	return err
}

var errPlain = errors.New("the place is an encrypted repository: its mirrored logs are encrypted, so they cannot be left as plain files")

// lockDir keeps a second process out.
func lockDir(dir string) (func(), error) {
	if err := os.MkdirAll(filepath.Join(dir, root), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, root, ".lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("%w: %s", ErrInUse, dir)
	}
	return func() { f.Close() }, nil
}

// follower is a running mirror.
type follower struct {
	o        Options
	identity string // of the server
	key      string
	w        *writer
	done     chan struct{} // something may be ready to be finished

	finishing sync.Mutex // one finishes at a time

	mu       sync.Mutex // guards current, storing and notes
	current  string     // path of the log that is being written
	storing  string     // path of the log that the finisher has
	received int64
	durable  int64 // bytes that were put on disk
	retrying bool  // nothing was since the last error
	from     start // of the session
	meter    meter
	looked   int64 // position at which the clock was asked last
	ackFile  string
	ackPos   int64
	acking   bool
}

func (f *follower) note(warning bool, format string, args ...any) {
	if f.o.Note == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.o.Note(Note{Time: time.Now().UTC(), Warning: warning, Text: fmt.Sprintf(format, args...)})
}

// loop connects again and again.
func (f *follower) loop(ctx context.Context) error {
	wait, lastText := 100*time.Millisecond, ""
	moved := time.Now()
	for {
		start := f.durable
		err := f.session(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil || errors.Is(err, wire.ErrEndOfLogs):
			return nil
		case permanent(err), f.o.Once && errors.Is(err, errDisk): // a permanent follower waits for space
			return err
		case f.identity == "" && !f.o.Patient && notThere(err):
			return err
		}
		if f.durable > start {
			wait, lastText = 100*time.Millisecond, ""
			moved = time.Now()
		}
		if f.o.Once && (f.identity == "" || time.Since(moved) > oncePatience) { // a server that never answered, or does not come back
			return err
		}
		if text := err.Error(); text != lastText {
			f.note(true, "%s; trying again", text)
			lastText = text
		}
		f.retrying = true
		if err := delay.For(ctx, wait); err != nil {
			return err
		}
		wait = min(2*wait, 5*time.Second)
	}
}

// oncePatience is how long Follow with Once waits for a server that it has reached to come back.
const oncePatience = time.Minute

// permanent reports whether waiting does not help against an error.
func permanent(err error) bool {
	switch mysql.ClassOf(err) {
	case mysql.ClassPrivilege, mysql.ClassLogin, mysql.ClassUsage, mysql.ClassTLS:
		return true
	}
	return errors.Is(err, errNoLog) || errors.Is(err, ErrForeign) || errors.Is(err, repo.ErrNoKey)
}

// notThere reports whether no server can be at that address now.
func notThere(err error) bool {
	c := mysql.ClassOf(err)
	return c == mysql.ClassUnreachable || c == mysql.ClassRefused
}

var errNoLog = errors.New("the server writes no binary log: set log_bin and restart it")

// ErrForeign says that a log in the mirror is not what the server has under that name.
var ErrForeign = errors.New("the mirror's log is not the server's")

// session mirrors over one connection.
func (f *follower) session(ctx context.Context) error {
	defer f.closeWriter()
	from, err := f.begin(ctx)
	if err != nil {
		return err
	}
	d, err := f.o.Target.Dump(ctx, mysql.DumpOptions{Identity: f.identity, File: from.name, Pos: from.pos, Wait: !f.o.Once, SemiSync: f.o.SemiSync, Heartbeat: f.o.Heartbeat})
	if err != nil {
		return err
	}
	defer d.Close()
	if f.o.SemiSync && !d.SemiSync() {
		f.note(true, "the server does not wait for acknowledgements: switch rpl_semi_sync_source_enabled (rpl_semi_sync_master_enabled) on")
	}
	if !f.retrying {
		f.note(false, "mirroring %s from %s position %d", f.key, from.name, from.pos)
	}
	f.from = from
	err = f.stream(d)
	if errors.Is(err, errDisk) {
		return err
	}
	return errors.Join(err, f.settle(d, true)) // what came until the cut is kept
}

// errDisk says that what came could not be written.
var errDisk = errors.New("the mirror cannot be written")

// stream takes events until the connection breaks or ends.
func (f *follower) stream(d *mysql.Dump) error {
	patience := 10 * f.o.Heartbeat
	var h binlogevent.Header
	for {
		if d.Buffered() == 0 {
			if err := f.lull(d); err != nil {
				return err
			}
		}
		raw, ack, err := d.Next(patience)
		if err != nil {
			return err
		}
		if len(raw) < binlogevent.HeaderLen {
			return fmt.Errorf("%w: an event of %d bytes", binlogevent.ErrDamaged, len(raw))
		}
		h.Parse(raw)
		idle := d.Buffered() == 0
		switch {
		case h.Type == binlogevent.TypeHeartbeat || h.Type == binlogevent.TypeHeartbeatV2:
			if err := f.settle(d, true); err != nil {
				return err
			}
			f.meter.caughtUp()
			f.tell(true, true)
			continue
		case h.Type == binlogevent.TypeRotate && h.Artificial():
			r, err := binlogevent.ParseRotate(binlogevent.TrimChecksum(raw)[binlogevent.HeaderLen:])
			if err != nil {
				return err
			}
			if err := f.rotate(d, r); err != nil {
				return err
			}
		case h.Artificial():
		case h.Type == binlogevent.TypeFormatDescription && f.w.pos > int64(len(binlogevent.Magic)), h.Type == binlogevent.TypeStartEncryption && f.w.last > int64(len(binlogevent.Magic)):
			// The server begins with them wherever a stream begins.
		default:
			binlogevent.ClearInUse(raw)
			if h.Type == binlogevent.TypeStartEncryption {
				f.note(true, "%s is encrypted on the server, which sends it decrypted: the mirror holds the decrypted bytes, not those of the server's file", f.w.name())
				raw = binlogevent.Readable(raw, f.w.sums)
				h.Parse(raw)
			}
			if err := f.w.add(raw, &h); err != nil {
				return err
			}
			f.received += int64(len(raw))
			f.meter.event(&h)
			if ack {
				f.acking, f.ackFile, f.ackPos = true, f.w.name(), f.w.pos
			}
		}
		if err := f.came(d, idle); err != nil {
			return err
		}
	}
}

// lull waits for more while something is written and not synced, and syncs when its time has come.
func (f *follower) lull(d *mysql.Dump) error {
	if f.w == nil || f.w.pos == f.w.synced {
		return nil
	}
	wait := syncBusy
	if f.w.behind == nil {
		wait -= time.Since(f.w.syncTime)
	}
	more, err := d.Ready(wait)
	if err != nil || more {
		return err
	}
	return f.settle(d, true)
}

// dueSync reports whether it is time to put on disk what came: immediately when the server waits for it and nothing more is waiting to
// be read, or when so much came that the disk must not be idle.
func (f *follower) dueSync(idle bool) bool {
	if idle && f.acking || f.w.pos-f.w.synced >= syncBytes {
		return true
	}
	every := syncBusy
	if f.acking {
		every = syncEvery
	}
	return time.Since(f.w.syncTime) >= every
}

// came writes what came when no more is waiting to be read. It is synced when it is time: immediately if the server waits for that,
// else while more is taken, so that a slow disk delays nothing but itself. While more is waiting, nothing is looked at for each event.
func (f *follower) came(d *mysql.Dump, idle bool) error {
	if f.w == nil || !idle && f.w.pos-f.looked < 64<<10 && f.w.pos >= f.looked {
		return nil
	}
	f.looked = f.w.pos
	before := f.w.synced
	err := f.w.waitSync(f.w.end-f.w.endSync > maxBehind) // then the disk is slower than the server
	f.gained(before, idle)
	if err != nil {
		return err
	}
	due := f.dueSync(idle)
	if due && f.acking {
		return f.settle(d, idle)
	}
	due = due && f.w.behind == nil
	if due || idle {
		err = f.w.flush()
	}
	if err == nil && due {
		f.w.startSync()
	}
	return err
}

// gained reports what a sync put on disk.
func (f *follower) gained(before int64, idle bool) {
	n := f.w.synced - before
	if n <= 0 {
		return
	}
	if f.durable += n; f.retrying {
		f.retrying = false
		f.note(false, "mirroring %s again, from %s position %d", f.key, f.from.name, f.from.pos)
	}
	f.meter.durable()
	f.tell(false, idle)
}

// settle puts on disk what came, and then acknowledges it.
func (f *follower) settle(d *mysql.Dump, idle bool) error {
	if f.w == nil {
		return nil
	}
	before := f.w.synced
	err := f.w.sync()
	f.gained(before, idle)
	if err != nil {
		return err
	}
	if f.acking {
		f.acking = false
		if err := d.Ack(f.ackFile, f.ackPos); err != nil {
			return err
		}
	}
	return nil
}

// tell reports how far it is.
func (f *follower) tell(idle, force bool) {
	if f.o.Status == nil || f.w == nil || !f.meter.due(force) {
		return
	}
	f.o.Status(Status{Key: f.key, File: f.w.name(), Pos: f.w.synced, Received: f.received, Rate: f.meter.rate(f.received), Lag: f.meter.lag, Idle: idle})
}

// rotate goes to the log that the server names: the one that is being written, or the next.
func (f *follower) rotate(d *mysql.Dump, r binlogevent.Rotate) error {
	if err := checkName(r.Name); err != nil {
		return err
	}
	if f.w != nil && f.w.name() == r.Name {
		if int64(r.Pos) != f.w.pos&(1<<32-1) && int64(r.Pos) != f.w.pos {
			return fmt.Errorf("%w: it sends %s from position %d, not %d", errGap, r.Name, r.Pos, f.w.pos)
		}
		return nil
	}
	if f.w != nil {
		if err := f.settle(d, true); err != nil {
			return err
		}
		if err := f.closeWriter(); err != nil {
			return err
		}
	}
	path := filepath.Join(f.o.Dir, root, f.key, r.Name)
	w, err := create(f.o.Place, path)
	if errors.Is(err, os.ErrExist) && isBlank(f.o.Place, path) {
		// A process was killed when it had made the file and written nothing.
		if err = os.Remove(path); err == nil {
			w, err = create(f.o.Place, path)
		}
	}
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%w: %s is there already", ErrForeign, path)
	} else if err != nil {
		return err
	}
	f.setWriter(w)
	f.wake()
	return nil
}

// isBlank reports whether a file has not even the beginning of a log.
func isBlank(place Place, path string) bool {
	in, err := openLocal(place, path)
	if err != nil {
		return errors.Is(err, io.ErrUnexpectedEOF)
	}
	defer in.Close()
	_, err = io.ReadFull(in, make([]byte, len(binlogevent.Magic)))
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// checkName refuses a name that would leave the folder.
func checkName(name string) error {
	if name == "" || name != filepath.Base(name) || strings.HasPrefix(name, ".") || binlog.Number(name) == 0 {
		return fmt.Errorf("the server calls its log %q", name)
	}
	return nil
}

func (f *follower) setWriter(w *writer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.w, f.current = w, ""
	if w != nil {
		f.current = w.path
	}
}

// take makes a log the one that is being written. false: the finisher has it. What an empty log follows is complete, but a process
// that was killed when it had made the empty one looks for its place in the log before it.
func (f *follower) take(path string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.storing == path {
		return false
	}
	f.current = path
	return true
}

// takeFinished makes a log the one that the finisher has, until the next call. false: it is being written.
func (f *follower) takeFinished(path string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.storing = ""
	if path != "" && path == f.current {
		return false
	}
	f.storing = path
	return true
}

func (f *follower) closeWriter() error {
	w := f.w
	if w == nil {
		f.setWriter(nil)
		return nil
	}
	err := w.close()
	if err == nil {
		err = w.removeEmpty()
	}
	f.setWriter(nil)
	return err
}

func (f *follower) wake() {
	select {
	case f.done <- struct{}{}:
	default:
	}
}

// meter measures lag and rate.
type meter struct {
	told     time.Time
	last     int64 // bytes when last reported
	newest   uint32
	lag      time.Duration
	lastRate float64
}

func (m *meter) event(h *binlogevent.Header) {
	if h.Seconds > 0 {
		m.newest = h.Seconds
	}
}

// durable computes the lag when the newest event is on disk. A log's times are whole seconds, mostly of a statement's
// beginning: a lag below a second cannot be measured.
func (m *meter) durable() {
	m.lag = max(0, time.Since(time.Unix(int64(m.newest)+1, 0)))
}

func (m *meter) caughtUp() { m.lag = 0 }

func (m *meter) due(force bool) bool {
	now := time.Now()
	if !force && now.Sub(m.told) < 200*time.Millisecond || now.Sub(m.told) < 20*time.Millisecond {
		return false
	}
	return true
}

func (m *meter) rate(received int64) float64 {
	now := time.Now()
	if d := now.Sub(m.told).Seconds(); d > 0 && d < 10 {
		m.lastRate = float64(received-m.last) / d
	}
	m.told, m.last = now, received
	return m.lastRate
}
