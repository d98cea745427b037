package series

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// hourSource is what an hour is made of: blocks that have it, and frames.
type hourSource struct {
	blocks []*blockFile
	frames *framesFile
}

// mergeHour makes one block of everything there is of an hour and replaces that with it. The caller holds write.
// What is damaged is left out and reported; the damaged files are kept aside.
func (in *instance) mergeHour(hour int64) error {
	in.files.RLock()
	f := in.hours[hour]
	var all, refs []*blockRef
	for _, r := range in.blocks {
		if r.start == hour && r.end == hour+hourSeconds {
			refs = append(refs, r)
		}
		if r.start <= hour && hour < r.end {
			all = append(all, r)
		}
	}
	in.files.RUnlock()
	if f == nil {
		return nil // another was faster
	}
	src := hourSource{frames: f}
	for _, r := range all {
		b, err := in.s.blocks.get(r, in.s)
		if err != nil {
			in.damagedBlock(r, err)
			return err
		}
		defer in.s.blocks.release(b)
		src.blocks = append(src.blocks, b)
	}
	path := filepath.Join(in.dir, blockName(hour, hour+hourSeconds))
	size, s, err := in.writeHour(path, hour, src)
	if err != nil {
		return err
	}
	ref := &blockRef{in: in, path: path, start: hour, end: hour + hourSeconds, size: size, made: time.Now()}
	ref.schema.Store(s)
	in.replace(ref, refs, f)
	return nil
}

// replace replaces others and a frames file with a block. The new file may have the name of an old one.
func (in *instance) replace(ref *blockRef, old []*blockRef, f *framesFile) {
	in.files.Lock()
	in.blocks = slices.DeleteFunc(in.blocks, func(r *blockRef) bool { return slices.Contains(old, r) })
	if ref != nil {
		in.blocks = append(in.blocks, ref)
		slices.SortFunc(in.blocks, compareBlocks)
	}
	if f != nil {
		delete(in.hours, f.hour)
	}
	in.files.Unlock()
	for _, r := range old {
		in.s.blocks.drop(r)
		if ref == nil || r.path != ref.path {
			os.Remove(r.path)
		}
	}
	if f != nil {
		in.s.frames.drop(f.refs)
		for _, r := range f.unsaved() {
			in.s.stats.memFrames.Add(-int64(r.n))
		}
		os.Remove(f.path)
	}
	if ref != nil {
		in.s.stats.blocksWritten.Add(1)
		in.s.stats.blockBytes.Add(ref.size)
	}
}

// writeHour writes the block of an hour. Files of which something could not be read are kept aside.
func (in *instance) writeHour(path string, hour int64, src hourSource) (int64, *schema, error) {
	in.s.w.mergeMu.Lock()
	defer in.s.w.mergeMu.Unlock()
	var schemas []*schema
	var lost []error
	var info hourInfo
	ticks, late := src.marks(hour)
	info.ticks, info.late = ticks, late
	for _, b := range src.blocks {
		schemas = append(schemas, b.sch)
	}
	if src.frames != nil {
		for _, r := range src.frames.refs {
			schemas = append(schemas, r.schema)
		}
	}
	if len(schemas) == 0 {
		return 0, nil, fmt.Errorf("hour %d of %s has nothing: %w", hour, in.id, errBlock)
	}
	s := in.s.cat.union(schemas)
	w, err := createBlock(path, in.s.w.zstd)
	if err != nil {
		return 0, nil, err
	}
	sc := in.s.pool.Get().(*scratch)
	defer in.s.pool.Put(sc)
	he := &in.s.w.hours
	he.begin(&info)
	dense, vals := make([]float64, hourSeconds), make([]float64, 0, hourSeconds)
	var seg segment
	var present runs
	chunks := make([][]byte, 1)
	for i, d := range s.series {
		nan(dense)
		for _, b := range src.blocks {
			lost = appendLost(lost, b.hourOf(sc, &seg, d.key, hour, dense))
		}
		if src.frames != nil {
			lost = appendLost(lost, src.frames.values(in.s, d.key, dense))
		}
		vals, present = vals[:0], present[:0]
		for k, v := range dense {
			if v == v {
				vals = append(vals, v)
				present = present.add(k)
			}
		}
		e, chunk := he.column(i, d.Type, vals, present)
		chunks[0] = chunk
		if err := w.segment([]entry{e}, chunks); err != nil {
			w.abandon()
			return 0, nil, err
		}
	}
	in.keepAside(lost)
	size, err := w.finish(hour, []hourInfo{info}, s)
	return size, s, err
}

// appendLost notes an error once for each file.
func appendLost(lost []error, err error) []error {
	if err == nil {
		return lost
	}
	var d *damageError
	if errors.As(err, &d) {
		for _, l := range lost {
			var o *damageError
			if errors.As(l, &o) && o.path == d.path {
				return lost
			}
		}
	}
	return append(lost, err)
}

// hourOf writes the values of a series in the hour that starts at the given second to dst.
func (b *blockFile) hourOf(sc *scratch, seg *segment, key string, hour int64, dst []float64) error {
	h := int((hour - b.start) / hourSeconds)
	i := b.sch.find(key)
	if i < 0 || h < 0 || h >= b.hours || !b.has(i) {
		return nil
	}
	if err := b.readSegment(seg, i, true); err != nil {
		return err
	}
	return b.values(sc, seg, h, dst, false)
}

// marks returns the seconds of an hour that have ticks, and those that were late.
func (src hourSource) marks(hour int64) (ticks, late runs) {
	var t, l [hourSeconds]bool
	for _, b := range src.blocks {
		if h := int((hour - b.start) / hourSeconds); h >= 0 && h < b.hours {
			b.hourTab[h].ticks.mark(t[:])
			b.hourTab[h].late.mark(l[:])
		}
	}
	if src.frames != nil {
		for _, r := range src.frames.refs {
			for s := range minuteSeconds {
				at := int(r.start-hour) + s
				// The first to have a second says whether it was late.
				if r.ticks>>s&1 != 0 && !t[at] {
					t[at] = true
					l[at] = r.late>>s&1 != 0
				}
			}
		}
	}
	for s := range hourSeconds {
		if t[s] {
			ticks = ticks.add(s)
		}
		if l[s] {
			late = late.add(s)
		}
	}
	return ticks, late
}

// mark sets the seconds of the set.
func (r runs) mark(seconds []bool) {
	for _, x := range r {
		for s := range int(x.n) {
			seconds[int(x.from)+s] = true
		}
	}
}

// mergeDay makes one file of the hours of a finished day. Chunks are copied as they are. The caller holds write.
func (in *instance) mergeDay(day int64) error {
	in.files.RLock()
	var refs []*blockRef
	for _, r := range in.blocks {
		if r.start >= day && r.end <= day+daySeconds {
			refs = append(refs, r)
		}
	}
	in.files.RUnlock()
	if len(refs) == 0 || len(refs) == 1 && refs[0].end-refs[0].start == daySeconds {
		return nil
	}
	var files []*blockFile
	for _, r := range refs {
		b, err := in.s.blocks.get(r, in.s)
		if err != nil {
			in.damagedBlock(r, err)
			return err
		}
		defer in.s.blocks.release(b)
		files = append(files, b)
	}
	path := filepath.Join(in.dir, blockName(day, day+daySeconds))
	size, s, err := in.writeDay(path, day, files)
	if err != nil {
		return err
	}
	ref := &blockRef{in: in, path: path, start: day, end: day + daySeconds, size: size, made: time.Now()}
	ref.schema.Store(s)
	in.replace(ref, refs, nil)
	return nil
}

// dayHour is where a day takes an hour from.
type dayHour struct {
	file *blockFile
	hour int
	back []int // position in the file of each series of the day, -1 for none
	fore []int // and the other way round
}

// writeDay copies hours into one file. What is damaged is left out; its file is kept aside.
func (in *instance) writeDay(path string, day int64, files []*blockFile) (int64, *schema, error) {
	in.s.w.mergeMu.Lock()
	defer in.s.w.mergeMu.Unlock()
	var schemas []*schema
	var lost []error
	for _, b := range files {
		schemas = append(schemas, b.sch)
	}
	s := in.s.cat.union(schemas)
	hours, infos := dayHours(day, files, s)
	w, err := createBlock(path, in.s.w.zstd)
	if err != nil {
		return 0, nil, err
	}
	sc := in.s.pool.Get().(*scratch)
	defer in.s.pool.Put(sc)
	entries, chunks := make([]entry, maxBlockHours), make([][]byte, maxBlockHours)
	segs := map[*blockFile]*segment{}
	for i := range s.series {
		for h := range hours {
			err := copyHour(&hours[h], i, sc, segs, &entries[h], &chunks[h])
			if err != nil {
				entries[h], chunks[h] = entry{ref: -1}, nil
				lost = appendLost(lost, err)
			}
		}
		if err := w.segment(entries, chunks); err != nil {
			w.abandon()
			return 0, nil, err
		}
	}
	in.keepAside(lost)
	size, err := w.finish(day, infos, s)
	return size, s, err
}

// dayHours says where each hour of a day comes from.
func dayHours(day int64, files []*blockFile, s *schema) ([]dayHour, []hourInfo) {
	hours := make([]dayHour, maxBlockHours)
	infos := make([]hourInfo, maxBlockHours)
	for _, b := range files {
		back, fore := mapSchemas(s, b.sch)
		for h := range b.hours {
			at := int((b.start-day)/hourSeconds) + h
			// Where a day and an hour file have the same hour, that of the hour is the newer.
			if at < 0 || at >= len(hours) || len(b.hourTab[h].ticks) == 0 || hours[at].file != nil && b.hours > 1 {
				continue
			}
			hours[at] = dayHour{b, h, back, fore}
			infos[at] = b.hourTab[h]
		}
	}
	return hours, infos
}

// copyHour takes the entry and chunk of series i of the day from the file that has the hour.
func copyHour(from *dayHour, i int, sc *scratch, segs map[*blockFile]*segment, e *entry, chunk *[]byte) error {
	*e, *chunk = entry{ref: -1}, nil
	b := from.file
	if b == nil || from.back[i] < 0 {
		return nil
	}
	seg := segs[b]
	if seg == nil {
		seg = &segment{index: -1}
		segs[b] = seg
	}
	if seg.index != from.back[i] {
		if err := b.readSegment(seg, from.back[i], true); err != nil {
			seg.index = -1
			return err
		}
	}
	*e = seg.entries[from.hour]
	if e.kind != columnVarying {
		return nil
	}
	if e.ref >= 0 {
		// What it refers to has to be whole, too.
		if _, _, err := b.ints(sc, seg, from.hour); err != nil {
			return err
		}
		e.ref = from.fore[e.ref]
	}
	if e.size == 0 {
		return nil
	}
	c, err := seg.chunk(from.hour)
	if err != nil {
		return &damageError{b.path, fmt.Errorf("series %s: %w", b.sch.series[seg.index].key, err)}
	}
	*chunk = c
	return nil
}

// mapSchemas maps the positions of series in one schema to those in the other, and back.
func mapSchemas(all, part *schema) (back, fore []int) {
	back, fore = make([]int, len(all.series)), make([]int, len(part.series))
	k := 0
	for i, d := range all.series {
		back[i] = -1
		if k < len(part.series) && part.series[k].key == d.key {
			back[i], fore[k] = k, i
			k++
		}
	}
	return back, fore
}
