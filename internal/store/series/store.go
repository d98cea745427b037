package series

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/fleet"
)

// Errors that callers may want to distinguish.
var (
	// ErrLocked says that another process, or another Store of this one, has the directory open.
	ErrLocked = errors.New("the data directory is in use by another process; stop that one, or give this one another directory")
	// ErrOldTick says that a tick is not newer than the newest one of its instance.
	ErrOldTick = errors.New("tick is not newer than the last one")
	// ErrClosed says that the Store or Writer was closed before.
	ErrClosed = errors.New("series store is closed")
	// ErrBusy says that an instance has a Writer already.
	ErrBusy = errors.New("the instance already has a writer; close that one first")
	// ErrInstance says that a text cannot name an instance.
	ErrInstance = errors.New("not an instance id; use letters, digits, dots, dashes and underscores, as returned by fleet.Slug")
	// ErrValues says that a tick has more values than series were defined.
	ErrValues = errors.New("more values than defined series")
	// ErrTime says that a time is before 1970 or too far ahead for the format.
	ErrTime = errors.New("time is out of the range that can be stored")
	// ErrNotDurable says that something is in memory only, because writing fails.
	ErrNotDurable = errors.New("the disk does not accept it; free some space")
	// ErrRange says that a question asks for more points than one answer may have.
	ErrRange = errors.New("too many points; ask for a shorter range or a longer step")
)

// maxTime bounds what can be stored: minutes are counted in 32 bits.
const maxTime = (1<<31 - 2) * minuteSeconds

// Options say where a Store lives and how it behaves. Only Dir is needed.
type Options struct {
	// Dir is the directory of the store; it is made if it is not there.
	Dir string
	// Retention is how long data is kept; 0 keeps it for good. Whole files are removed when their newest second is older.
	Retention time.Duration
	// Logger gets messages for debugging; nil: none.
	Logger *slog.Logger
	// OnEvent is called for damage, of a full disk and of recovery. It is called from Open, Append and the store's goroutine. It must return
	// soon, and may read from the store but not write to it.
	OnEvent func(fleet.Event)
	// OnFrame gets every sealed minute as bytes that another store's PutFrame takes: a schema record and a frame record.
	// It is called from the store's goroutine; the bytes may be kept.
	OnFrame func(instance string, minute int64, frame []byte)
	// CacheBytes bounds the memory for decompressed frames; 0 means 16 MiB.
	CacheBytes int

	now func() time.Time // for tests
}

// Store keeps numbers of many instances in one directory. All its methods may be called concurrently.
type Store struct {
	opts   Options
	log    *slog.Logger
	lock   *os.File
	cat    *catalog
	dec    *zstd.Decoder
	frames *frameCache
	blocks *blockCache
	pool   sync.Pool // *scratch
	hours  sync.Pool // *hourBuffer
	rows   rowPool

	mu        sync.RWMutex
	instances map[string]*instance
	closed    bool

	w     worker
	full  diskState
	stats counters
}

// counters are what Stats is made of.
type counters struct {
	ticks, samples, walBytes, frameBytes, blockBytes atomic.Int64
	framesSealed, blocksWritten, damaged, lost       atomic.Int64
	sealNanos, memFrames                             atomic.Int64
}

// Stats are the store's own figures. All but the gauges at the end only grow while the store is open.
type Stats struct {
	Ticks         int64 // seconds appended
	Samples       int64 // values appended, without absent ones
	WALBytes      int64 // bytes written to write-ahead logs
	FrameBytes    int64 // bytes written to frames files
	BlockBytes    int64 // bytes written to blocks, rewriting included
	FramesSealed  int64 // minutes sealed or taken in
	BlocksWritten int64 // block files written
	Damaged       int64 // files set aside
	LostFrames    int64 // minutes dropped because memory for them ran out while the disk was full
	SealSeconds   float64

	Instances   int
	DiskBytes   int64 // of frames, blocks and logs
	Blocks      int   // block files
	OpenBlocks  int   // of them, open now
	CacheBytes  int64 // decompressed frames in memory
	MemFrames   int64 // bytes of minutes that wait in memory for the disk
	PendingRows int64 // seconds in memory that are not sealed
	DiskFull    bool
}

// BytesWritten is the sum of all bytes written.
func (s Stats) BytesWritten() int64 { return s.WALBytes + s.FrameBytes + s.BlockBytes }

// Open opens the store in a directory, repairs what a crash left, and starts the goroutine that seals and compacts.
func Open(o Options) (*Store, error) {
	if o.now == nil {
		o.now = time.Now
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = 16 << 20
	}
	if err := os.MkdirAll(filepath.Join(o.Dir, "instances"), 0o750); err != nil {
		return nil, fmt.Errorf("open series store: %w", err)
	}
	lock, err := lockDir(o.Dir)
	if err != nil {
		return nil, err
	}
	s := &Store{opts: o, log: o.Logger, lock: lock, instances: map[string]*instance{}}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if err := s.start(); err != nil {
		lock.Close()
		return nil, fmt.Errorf("open series store %s: %w", o.Dir, err)
	}
	return s, nil
}

func (s *Store) start() error {
	var err error
	if s.dec, err = newDecompressor(); err != nil {
		return err
	}
	if s.cat, err = newCatalog(s.dec); err != nil {
		return err
	}
	s.frames = newFrameCache(s.opts.CacheBytes)
	s.blocks = newBlockCache()
	s.pool.New = func() any { return new(scratch) }
	s.hours.New = func() any { return new(hourBuffer) }
	list, err := os.ReadDir(filepath.Join(s.opts.Dir, "instances"))
	if err != nil {
		return err
	}
	if err := s.w.init(s); err != nil {
		return err
	}
	for _, e := range list {
		if !e.IsDir() || !validInstance(e.Name()) {
			continue
		}
		in := newInstance(s, e.Name())
		if err := in.open(); err != nil {
			return err
		}
		s.instances[in.id] = in
	}
	s.w.start()
	return nil
}

// Hold keeps every other process from opening the store in a directory, which need not be there yet, until release is called. It wraps ErrLocked
// if one has it open.
func Hold(dir string) (release func() error, err error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("hold series store: %w", err)
	}
	f, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	return f.Close, nil
}

// lockDir takes the exclusive lock that keeps a second process out. The kernel drops it when the process ends, however it does.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "LOCK"), os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return nil, fmt.Errorf("open series store: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("open series store %s: %w", dir, ErrLocked)
		}
		return nil, fmt.Errorf("lock series store %s: %w", dir, err)
	}
	return f, nil
}

// Close seals what is in memory, ends the store's goroutine and releases the directory. Writers are closed with it.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return ErrClosed
	}
	s.closed = true
	list := s.list()
	s.mu.Unlock()
	for _, in := range list {
		in.closeWriter()
	}
	s.w.stop()
	var errs []error
	for _, in := range list {
		errs = append(errs, in.sealAll())
		in.dropWAL()
	}
	s.blocks.clear()
	s.dec.Close()
	errs = append(errs, s.lock.Close())
	return errors.Join(errs...)
}

// list returns the instances by id; the caller holds the lock.
func (s *Store) list() []*instance {
	list := make([]*instance, 0, len(s.instances))
	for _, in := range s.instances {
		list = append(list, in)
	}
	slices.SortFunc(list, func(a, b *instance) int { return strings.Compare(a.id, b.id) })
	return list
}

func (s *Store) all() []*instance {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.list()
}

func (s *Store) instance(id string) *instance {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.instances[id]
}

// Instances lists the ids that have data or a writer, ascending.
func (s *Store) Instances() []string {
	var ids []string
	for _, in := range s.all() {
		ids = append(ids, in.id)
	}
	return ids
}

func validInstance(id string) bool {
	if id == "" || len(id) > 200 || id[0] == '.' {
		return false
	}
	for _, c := range []byte(id) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-' || c == '_') {
			return false
		}
	}
	return true
}

// ensure returns the instance, making its directory if it is new.
func (s *Store) ensure(id string) (*instance, error) {
	if !validInstance(id) {
		return nil, fmt.Errorf("%q: %w", id, ErrInstance)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	if in := s.instances[id]; in != nil {
		return in, nil
	}
	in := newInstance(s, id)
	if err := os.MkdirAll(in.dir, 0o750); err != nil {
		return nil, fmt.Errorf("make a place for %s: %w", id, err)
	}
	s.instances[id] = in
	return in, nil
}

// Writer opens an instance for appending. An instance has one writer at a time, used by one goroutine.
func (s *Store) Writer(instance string) (*Writer, error) {
	in, err := s.ensure(instance)
	if err != nil {
		return nil, err
	}
	return in.openWriter()
}

// Compact seals, merges and removes everything that is due at the given moment, and returns when that is done.
// The store does the same by itself, in small steps.
func (s *Store) Compact(ctx context.Context, now time.Time) error {
	return s.w.compact(ctx, now)
}

// Stats returns the store's own figures, cheaply.
func (s *Store) Stats() Stats {
	c := &s.stats
	st := Stats{
		Ticks: c.ticks.Load(), Samples: c.samples.Load(), WALBytes: c.walBytes.Load(), FrameBytes: c.frameBytes.Load(),
		BlockBytes: c.blockBytes.Load(), FramesSealed: c.framesSealed.Load(), BlocksWritten: c.blocksWritten.Load(),
		Damaged: c.damaged.Load(), LostFrames: c.lost.Load(), SealSeconds: float64(c.sealNanos.Load()) / 1e9,
		MemFrames: c.memFrames.Load(), OpenBlocks: s.blocks.len(), CacheBytes: s.frames.bytes(), DiskFull: s.full.is(),
	}
	for _, in := range s.all() {
		st.Instances++
		in.addStats(&st)
	}
	return st
}

// event reports something that happened to files.
func (s *Store) event(instance string, sev fleet.Severity, subject, text string) {
	level := slog.LevelInfo
	if sev > fleet.SeverityInfo {
		level = slog.LevelWarn
	}
	s.log.Log(context.Background(), level, text, "instance", instance, "file", subject)
	if s.opts.OnEvent != nil {
		s.opts.OnEvent(fleet.Event{Time: s.opts.now(), Instance: instance, Kind: fleet.EventStore, Severity: sev, Subject: subject, Text: text})
	}
}

// diskState remembers whether writing works, so that a full disk makes one event and its end another.
type diskState struct {
	mu   sync.Mutex
	bad  bool
	last time.Time // of the newest failure
}

func (d *diskState) is() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.bad
}

// failed records a failure and says whether it is the first.
func (d *diskState) failed(now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	first := !d.bad
	d.bad, d.last = true, now
	return first
}

// recovered ends the bad state if nothing failed for some seconds, and says whether it did.
func (d *diskState) recovered(now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.bad || now.Sub(d.last) < 3*time.Second {
		return false
	}
	d.bad = false
	return true
}

// writeFailed reports a failed write, once until writing works again.
func (s *Store) writeFailed(instance string, err error) {
	if !s.full.failed(time.Now()) {
		return
	}
	what := "Risso cannot write its data"
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		what = "The disk is full"
	}
	// It concerns all instances, whichever met it first.
	s.log.Debug("write failed", "instance", instance, "err", err)
	s.event("", fleet.SeverityCritical, s.opts.Dir,
		fmt.Sprintf("%s: new minutes are kept in memory until it works again, for about half an hour. Free some space in %s. (%v)", what, s.opts.Dir, err))
}

// writeRecovered ends the bad state when everything that waited is on disk.
func (s *Store) writeRecovered() {
	if s.stats.memFrames.Load() == 0 && s.full.recovered(time.Now()) {
		s.event("", fleet.SeverityInfo, s.opts.Dir, "Risso can write its data again; what was kept in memory is now on disk.")
	}
}
