package series

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
)

// instance is what a Store has of one watched thing. Locks are taken in the order
// write, files, mu; none is held while another instance's is taken.
type instance struct {
	s   *Store
	id  string
	dir string

	// write is held while files are changed.
	write sync.Mutex

	// mu guards what is in memory. It is never held over input or output.
	mu      sync.RWMutex
	writer  *Writer
	descs   []*seriesID // by position; replaced, never changed, when a type changes
	pos     map[string]int
	cur     *minute
	pending []*pendingMinute // to be sealed, oldest first
	last    int64            // newest tick, math.MinInt64 when there is none
	touched time.Time        // when it came
	lastVal []float64
	lastAt  []int64

	// files guards the lists of files; readers hold it while they read.
	files  sync.RWMutex
	hours  map[int64]*framesFile
	blocks []*blockRef // ascending by start

	newerHours map[int64]bool // those whose frames file is of a newer program; set by open only

	walMu  sync.Mutex
	wal    *walFile // nil when there is none or it cannot be written
	walNum int
	walOld []oldWAL

	// For the sealing goroutine: the schema of descs.
	schema    *schema
	positions []int
	schemaOf  []*seriesID
}

// pendingMinute is a minute that waits to be sealed.
type pendingMinute struct {
	*minute
	descs []*seriesID
}

// oldWAL is a log that is not written any more but may hold seconds that are not sealed.
type oldWAL struct {
	path string
	max  int64 // its newest minute
	size int64
}

// blockRef is a block file that is known but need not be open.
type blockRef struct {
	in     *instance
	path   string
	start  int64
	end    int64
	size   int64
	made   time.Time              // when this process wrote it; zero when an earlier one did
	schema atomic.Pointer[schema] // set when the file was open once
	newer  atomic.Bool            // it was reported that a newer program wrote it
}

func newInstance(s *Store, id string) *instance {
	return &instance{s: s, id: id, dir: filepath.Join(s.opts.Dir, "instances", id), pos: map[string]int{},
		hours: map[int64]*framesFile{}, newerHours: map[int64]bool{}, last: math.MinInt64}
}

// open reads the directory, cuts what a crash left, and takes the seconds of write-ahead logs into memory.
func (in *instance) open() error {
	list, err := os.ReadDir(in.dir)
	if err != nil {
		return err
	}
	var wals []string
	for _, e := range list {
		name := e.Name()
		path := filepath.Join(in.dir, name)
		switch {
		case strings.HasSuffix(name, tempSuffix):
			os.Remove(path)
		case strings.HasSuffix(name, ".rsb"):
			in.addBlock(path, e)
		case strings.HasSuffix(name, framesSuffix): // companions of a file come before it
			if err := in.openFrames(path); err != nil {
				return err
			}
		case strings.HasPrefix(name, "wal-") && strings.HasSuffix(name, ".rsw"):
			wals = append(wals, path)
		}
	}
	slices.SortFunc(in.blocks, compareBlocks)
	in.findLast()
	slices.Sort(wals)
	for _, path := range wals {
		if err := in.openWAL(path); err != nil {
			return err
		}
	}
	return nil
}

func compareBlocks(a, b *blockRef) int {
	if a.start != b.start {
		return int(min(max(a.start-b.start, -1), 1))
	}
	return int(min(max(a.end-b.end, -1), 1))
}

// blockName is the file name of a block: an hour's or a day's.
func blockName(start, end int64) string {
	if end-start > hourSeconds {
		return time.Unix(start, 0).UTC().Format("20060102") + ".rsb"
	}
	return time.Unix(start, 0).UTC().Format("20060102T15") + ".rsb"
}

func (in *instance) addBlock(path string, e os.DirEntry) {
	name := strings.TrimSuffix(filepath.Base(path), ".rsb")
	format, span := "20060102", int64(daySeconds)
	if len(name) > len(format) {
		format, span = "20060102T15", hourSeconds
	}
	t, err := time.Parse(format, name)
	info, err2 := e.Info()
	if err != nil || err2 != nil {
		in.s.event(in.id, fleet.SeverityWarning, path, fmt.Sprintf("The file %s does not have the name of a block; it is left alone.", path))
		return
	}
	in.blocks = append(in.blocks, &blockRef{in: in, path: path, start: t.Unix(), end: t.Unix() + span, size: info.Size()})
}

func (in *instance) openFrames(path string) error {
	name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), framesSuffix), strings.TrimSuffix(besideSuffix, framesSuffix))
	t, err := time.Parse("20060102T15", name)
	if err != nil {
		in.s.event(in.id, fleet.SeverityWarning, path, fmt.Sprintf("The file %s does not have the name of a frames file; it is left alone.", path))
		return nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	f := &framesFile{path: path, hour: t.Unix(), size: int64(len(b)), modified: time.Now()}
	sc, err := scanFrames(b, in.id, in.s.cat)
	if errors.Is(err, errVersion) {
		in.newer(path, err)
		in.newerHours[f.hour] = true
		return nil
	}
	f.refs, f.schemas = sc.refs, sc.schemas
	f.refs = slices.DeleteFunc(f.refs, func(r *frameRef) bool {
		outside := r.start < f.hour || r.start >= f.hour+hourSeconds
		sc.foreign = sc.foreign || outside
		return outside
	})
	switch {
	case sc.bad || sc.foreign:
		if err == nil {
			err = errSum
		}
		if err := in.rescueFrames(f, b, err); err != nil {
			return err
		}
	case sc.torn > 0:
		f.size = int64(len(b) - sc.torn)
		in.torn(path, f.size, b[f.size:])
		if len(f.refs) == 0 {
			os.Remove(path)
			return nil
		}
	}
	if len(f.refs) > 0 {
		in.join(f, in.hours[f.hour])
		in.hours[f.hour] = f
	}
	return nil
}

// join takes the frames into an hour's file that an older Risso wrote next to it; nil: there are none. What cannot be done now
// is done when the store is opened the next time: until then the frames wait in memory, and are still where they were.
func (in *instance) join(f, beside *framesFile) {
	if beside == nil {
		return
	}
	b, err := os.ReadFile(beside.path)
	if err != nil {
		in.s.event(in.id, fleet.SeverityWarning, beside.path, fmt.Sprintf("%s cannot be read: %v", beside.path, err))
		return
	}
	var refs []*frameRef
	for _, r := range beside.refs {
		c := *r
		c.mem = r.mem
		if c.mem == nil {
			c.mem = slices.Clone(b[r.off : r.off+int64(r.n)])
		}
		refs = append(refs, &c)
	}
	f.refs = append(f.refs, refs...)
	if _, err := f.append(refs); err != nil {
		in.s.writeFailed(in.id, err)
		for _, r := range refs {
			in.s.stats.memFrames.Add(int64(len(r.mem)))
		}
		return
	}
	os.Remove(beside.path)
}

// newer reports a file that a newer Risso wrote. It is left alone.
func (in *instance) newer(path string, err error) {
	in.s.event(in.id, fleet.SeverityWarning, path, fmt.Sprintf("%s is not read: %v. A newer Risso wrote it.", path, err))
}

// torn cuts what a crash left at the end of a file and keeps the cut bytes aside.
func (in *instance) torn(path string, size int64, tail []byte) {
	err := os.Truncate(path, size)
	text := fmt.Sprintf("At the end of %s %s cut off: Risso or its machine stopped while writing there.", path, digits.Plural(len(tail), "unfinished byte was", "unfinished bytes were"))
	if err != nil {
		text = fmt.Sprintf("At the end of %s %s not read, and cannot be cut off: %v", path, digits.Plural(len(tail), "unfinished byte is", "unfinished bytes are"), err)
	}
	if dir, err := in.damagedDir(); err == nil {
		os.WriteFile(filepath.Join(dir, in.damagedName(path)+".tail"), tail, 0o640)
	}
	in.s.event(in.id, fleet.SeverityInfo, path, text)
}

// rescueFrames sets a damaged frames file aside and rewrites its good frames.
func (in *instance) rescueFrames(f *framesFile, b []byte, why error) error {
	refs := f.refs
	for _, r := range refs {
		r.mem = slices.Clone(b[r.off : r.off+int64(r.n)])
	}
	to, err := in.setAside(f.path)
	if err != nil {
		return err
	}
	f.size, f.schemas = 0, nil
	in.s.event(in.id, fleet.SeverityWarning, f.path,
		fmt.Sprintf("%s was damaged (%v). It is kept as %s; %s of it saved.", f.path, why, to, digits.Plural(len(refs), "intact minute was", "intact minutes were")))
	if len(refs) == 0 {
		return nil
	}
	if _, err := f.append(refs); err != nil {
		in.s.writeFailed(in.id, err)
		for _, r := range refs {
			in.s.stats.memFrames.Add(int64(len(r.mem)))
		}
	}
	return nil
}

func (in *instance) damagedDir() (string, error) {
	dir := filepath.Join(in.s.opts.Dir, "damaged")
	return dir, os.MkdirAll(dir, 0o750)
}

func (in *instance) damagedName(path string) string {
	return fmt.Sprintf("%s-%s-%d", in.id, filepath.Base(path), in.s.opts.now().UnixNano())
}

// setAside moves a file to the damaged folder and says where it is now.
func (in *instance) setAside(path string) (string, error) {
	dir, err := in.damagedDir()
	if err != nil {
		return "", fmt.Errorf("create a folder for damaged files: %w", err)
	}
	to := filepath.Join(dir, in.damagedName(path))
	if err := os.Rename(path, to); err != nil {
		return "", fmt.Errorf("move a damaged file aside: %w", err)
	}
	in.s.stats.damaged.Add(1)
	return to, nil
}

// keepAside links damaged files into the damaged folder, before good data takes their place, and tells.
func (in *instance) keepAside(errs []error) {
	for _, err := range errs {
		var d *damageError
		if !errors.As(err, &d) {
			in.s.event(in.id, fleet.SeverityWarning, "", fmt.Sprintf("Some of the data of %s cannot be read: %v", in.id, err))
			continue
		}
		dir, err := in.damagedDir()
		to := filepath.Join(dir, in.damagedName(d.path))
		if err == nil {
			err = os.Link(d.path, to)
		}
		if errors.Is(err, os.ErrNotExist) {
			continue // it was set aside, and reported, before
		}
		if err != nil {
			to = "nothing: " + err.Error()
		}
		in.s.stats.damaged.Add(1)
		in.s.event(in.id, fleet.SeverityWarning, d.path,
			fmt.Sprintf("%s was damaged (%v). It is kept as %s; what was intact was saved.", d.path, d.err, to))
	}
}

// findLast finds the newest tick in the files.
func (in *instance) findLast() {
	for _, f := range in.hours {
		for _, r := range f.refs {
			in.last = max(in.last, r.start+int64(bits.Len64(r.ticks))-1)
		}
	}
	if n := len(in.blocks); n > 0 && in.last < in.blocks[n-1].end-1 {
		b, err := in.s.blocks.get(in.blocks[n-1], in.s)
		if err != nil {
			in.unreadable(in.blocks[n-1], err)
			return
		}
		defer in.s.blocks.release(b)
		for h := len(b.hourTab) - 1; h >= 0; h-- {
			if t := b.hourTab[h].ticks; len(t) > 0 {
				r := t[len(t)-1]
				in.last = max(in.last, b.start+int64(h)*hourSeconds+int64(r.from)+int64(r.n)-1)
				return
			}
		}
	}
}

// openWAL takes what a log has and the files do not have into memory, to be sealed soon.
func (in *instance) openWAL(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var num int
	fmt.Sscanf(filepath.Base(path), "wal-%08d.rsw", &num)
	in.walNum = max(in.walNum, num)
	var found []*pendingMinute
	sc, err := replayWAL(b, in.s.cat, func(descs []*seriesID, t walTick) {
		start := floorTo(t.t, minuteSeconds)
		n := len(found)
		if n == 0 || found[n-1].start != start {
			found = append(found, &pendingMinute{minute: &minute{start: start}})
			n++
		}
		m := found[n-1]
		m.descs = descs
		m.set(int(t.t-start), slices.Clone(t.values), t.late)
	})
	if errors.Is(err, errVersion) {
		in.newer(path, err)
		return nil
	}
	old := oldWAL{path: path, max: math.MinInt64, size: int64(len(b))}
	for _, m := range found {
		if have := in.coveredTicks(m.start); m.ticks&^have != 0 {
			in.pending = append(in.pending, m)
			in.last = max(in.last, m.start+int64(bits.Len64(m.ticks))-1)
		}
		old.max = max(old.max, m.start)
	}
	switch {
	case err != nil || sc.bad:
		to, err2 := in.setAside(path)
		if err2 != nil {
			return err2
		}
		in.s.event(in.id, fleet.SeverityWarning, path,
			fmt.Sprintf("%s was damaged (%v). It is kept as %s; %s of it saved.", path, errors.Join(err, errWAL), to, digits.Plural(len(found), "minute was", "minutes were")))
		return nil
	case sc.torn > 0:
		in.torn(path, int64(len(b)-sc.torn), b[len(b)-sc.torn:])
	}
	in.walOld = append(in.walOld, old)
	return nil
}

// set puts a row into a minute.
func (m *minute) set(second int, row []float64, late bool) {
	m.rows[second] = row
	m.ticks |= 1 << second
	if late {
		m.late |= 1 << second
	}
}

// coveredTicks says which seconds of a minute the files have.
func (in *instance) coveredTicks(start int64) (ticks uint64) {
	if f := in.hours[floorTo(start, hourSeconds)]; f != nil {
		ticks = f.covered(start)
	}
	for _, r := range in.blocks {
		if start < r.start || start >= r.end {
			continue
		}
		b, err := in.s.blocks.get(r, in.s)
		if err != nil {
			continue // what is damaged covers nothing
		}
		h := (start - b.start) / hourSeconds
		if h >= 0 && h < int64(len(b.hourTab)) {
			at := int(start - b.start - h*hourSeconds)
			for s := range minuteSeconds {
				if b.hourTab[h].ticks.has(at + s) {
					ticks |= 1 << s
				}
			}
		}
		in.s.blocks.release(b)
	}
	return ticks
}

// unsealedFrom is the oldest minute that is only in memory.
func (in *instance) unsealedFrom() int64 {
	oldest := int64(math.MaxInt64)
	in.files.RLock()
	for _, f := range in.hours {
		for _, r := range f.unsaved() {
			oldest = min(oldest, r.start)
		}
	}
	in.files.RUnlock()
	in.mu.RLock()
	defer in.mu.RUnlock()
	for _, m := range in.pending {
		oldest = min(oldest, m.start)
	}
	if in.cur != nil {
		oldest = min(oldest, in.cur.start)
	}
	return oldest
}

// trimWAL removes logs whose minutes are all sealed.
func (in *instance) trimWAL() {
	from := in.unsealedFrom()
	in.walMu.Lock()
	defer in.walMu.Unlock()
	in.walOld = slices.DeleteFunc(in.walOld, func(w oldWAL) bool {
		if w.max >= from {
			return false
		}
		return os.Remove(w.path) == nil
	})
}

// dropWAL removes all logs, when everything is sealed at the end.
func (in *instance) dropWAL() {
	in.walMu.Lock()
	if w := in.wal; w != nil {
		w.f.Close()
		in.walOld = append(in.walOld, oldWAL{path: w.path, max: w.minute, size: w.size})
		in.wal = nil
	}
	in.walMu.Unlock()
	in.trimWAL()
}

func (in *instance) addStats(st *Stats) {
	in.files.RLock()
	for _, f := range in.hours {
		st.DiskBytes += f.size
	}
	for _, b := range in.blocks {
		st.DiskBytes += b.size
	}
	st.Blocks += len(in.blocks)
	in.files.RUnlock()
	in.walMu.Lock()
	if in.wal != nil {
		st.DiskBytes += in.wal.size
	}
	for _, w := range in.walOld {
		st.DiskBytes += w.size
	}
	in.walMu.Unlock()
	in.mu.RLock()
	defer in.mu.RUnlock()
	if in.cur != nil {
		st.PendingRows += int64(bits.OnesCount64(in.cur.ticks))
	}
	for _, m := range in.pending {
		st.PendingRows += int64(bits.OnesCount64(m.ticks))
	}
}
