package series

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/klauspost/compress/zstd"
)

// damageError says that a file's bytes are not what was written.
type damageError struct {
	path string
	err  error
}

func (e *damageError) Error() string { return fmt.Sprintf("%s is damaged: %v", e.path, e.err) }
func (e *damageError) Unwrap() error { return e.err }

// blockFile is an open block. It is immutable and may be read by many at the same time.
type blockFile struct {
	blockHeader
	path    string
	r       io.ReaderAt
	sch     *schema
	hourTab []hourInfo
	offs    []uint32 // segment i is the bytes offs[i] to offs[i+1]
	dec     *zstd.Decoder
	hurt    error // what is damaged of the sections stored twice; nil: nothing
	refs    int   // guarded by the cache
	closer  io.Closer
}

// openBlock opens a file and checks all but the segments.
func openBlock(path string, cat *catalog, dec *zstd.Decoder) (*blockFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open block: %w", err)
	}
	st, err := f.Stat()
	if err == nil {
		var b *blockFile
		if b, err = readBlock(path, f, st.Size(), cat, dec); err == nil {
			b.closer = f
			return b, nil
		}
	}
	f.Close()
	return nil, err
}

func readBlock(path string, r io.ReaderAt, size int64, cat *catalog, dec *zstd.Decoder) (*blockFile, error) {
	b := &blockFile{path: path, r: r, dec: dec}
	if err := b.load(size, cat); err != nil {
		if errors.Is(err, errVersion) {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return nil, &damageError{path, err}
	}
	return b, nil
}

func (b *blockFile) load(size int64, cat *catalog) error {
	if size < blockHead+blockFoot {
		return fmt.Errorf("cut to %d bytes: %w", size, errBlock)
	}
	if err := b.header(size); err != nil {
		return err
	}
	if b.total() != uint64(size) {
		return fmt.Errorf("%d bytes long, not %d: %w", size, b.total(), errBlock)
	}
	tail := make([]byte, size-int64(b.tail))
	if _, err := b.r.ReadAt(tail, int64(b.tail)); err != nil {
		return fmt.Errorf("read tail: %w", err)
	}
	packed, hours, dir, err := b.readSections(tail)
	if err != nil {
		return err
	}
	if b.sch = cat.lookup(b.schema); b.sch == nil {
		if b.sch, err = cat.parse(packed); err != nil {
			return err
		}
	}
	if b.sch.hash != b.schema || len(b.sch.series) != b.series {
		return fmt.Errorf("schema: %w", errBlock)
	}
	raw, err := unzip(b.dec, hours, nil, maxHoursRaw)
	if err != nil {
		return fmt.Errorf("hours: %w", err)
	}
	if b.hourTab, err = decodeHours(raw, b.hours); err != nil {
		return err
	}
	return b.directory(dir)
}

// header reads the header, or the one at the end when that at the beginning is damaged.
func (b *blockFile) header(size int64) error {
	head := make([]byte, blockHead)
	if _, err := b.r.ReadAt(head, 0); err != nil {
		return fmt.Errorf("read header: %w", err)
	}
	var err error
	if b.blockHeader, err = decodeBlockHeader(head); err == nil || errors.Is(err, errVersion) {
		return err
	}
	if size < 2*blockHead+blockFoot {
		return err
	}
	if _, rerr := b.r.ReadAt(head, size-blockFoot-blockHead); rerr != nil {
		return fmt.Errorf("read header: %w", rerr)
	}
	again, aerr := decodeBlockHeader(head)
	if aerr != nil || again.version == blockOnce {
		return err
	}
	b.blockHeader, b.hurt = again, err
	return nil
}

// readSections returns what follows the segments: of each the undamaged copy. Damage is noted.
func (b *blockFile) readSections(tail []byte) (packed, hours, dir []byte, err error) {
	copies := 2
	if b.version == blockOnce {
		copies = 1
	}
	in := input{b: tail}
	for range copies {
		for _, s := range []struct {
			n    uint32
			name string
			into *[]byte
		}{{b.schemaLen, "schema", &packed}, {b.hoursLen, "hours", &hours}, {b.dirLen, "directory", &dir}} {
			found, serr := in.section(s.n, s.name)
			if serr != nil && copies == 1 {
				return nil, nil, nil, serr
			}
			if serr != nil {
				b.hurt = serr
			} else if *s.into == nil {
				*s.into = found
			}
		}
	}
	if b.version == blockOnce {
		if string(in.b) != string(blockFooter(b.total())) {
			return nil, nil, nil, fmt.Errorf("footer: %w", errSum)
		}
		return packed, hours, dir, nil
	}
	if packed == nil || hours == nil || dir == nil {
		return nil, nil, nil, fmt.Errorf("both copies: %w", b.hurt)
	}
	if string(in.bytes(blockHead)) != string(b.encode()) {
		b.hurt = fmt.Errorf("header at the end: %w", errSum)
	}
	if string(in.b) != string(blockFooter(b.total())) {
		b.hurt = fmt.Errorf("footer: %w", errSum)
	}
	return packed, hours, dir, nil
}

// section reads n bytes and their checksum.
func (in *input) section(n uint32, name string) ([]byte, error) {
	s := in.bytes(int(n))
	sum := in.u32()
	if in.err != nil {
		return nil, fmt.Errorf("%s: %w", name, in.err)
	}
	if checksum(s) != sum {
		return nil, fmt.Errorf("%s: %w", name, errSum)
	}
	return s, nil
}

func (b *blockFile) directory(dir []byte) error {
	in := input{b: dir}
	if b.series > len(dir) {
		return fmt.Errorf("directory: %w", errBlock)
	}
	b.offs = make([]uint32, b.series+1)
	at := uint64(blockHead)
	for i := range b.series {
		b.offs[i] = uint32(at)
		at += uint64(in.length(math.MaxUint32))
		if at > b.tail {
			return fmt.Errorf("directory: %w", errBlock)
		}
	}
	b.offs[b.series] = uint32(at)
	if in.err != nil || len(in.b) != 0 || at != b.tail {
		return fmt.Errorf("directory: %w", errBlock)
	}
	return nil
}

// has reports whether series i has any value in the file.
func (b *blockFile) has(i int) bool { return b.offs[i] != b.offs[i+1] }

// segment is what a block has of one series, with or without the chunks.
type segment struct {
	index   int
	entries []entry
	offs    []int // of each hour's chunk in raw
	raw     []byte
	buf     []byte
}

// headGuess is how much of a segment is read when only its head is wanted.
const headGuess = 1536

// readSegment reads series i into s, reusing its memory. With chunks false only the entries can be used.
func (b *blockFile) readSegment(s *segment, i int, chunks bool) error {
	n := int(b.offs[i+1] - b.offs[i])
	s.index, s.offs, s.raw = i, s.offs[:0], nil
	if n == 0 {
		s.entries = make([]entry, b.hours)
		s.offs = append(s.offs, make([]int, b.hours)...)
		return nil
	}
	want := n
	if !chunks {
		want = min(n, headGuess)
	}
	for {
		if cap(s.buf) < want {
			s.buf = make([]byte, want)
		}
		raw := s.buf[:want]
		if _, err := b.r.ReadAt(raw, int64(b.offs[i])); err != nil {
			return fmt.Errorf("read %s: %w", b.path, err)
		}
		whole, err := b.parseSegment(s, raw, n)
		if err != nil {
			return &damageError{b.path, fmt.Errorf("series %s: %w", b.sch.series[i].key, err)}
		}
		if whole {
			return nil
		}
		want = n
	}
}

// parseSegment reads the head of a segment of n bytes; false asks for all of its bytes.
func (b *blockFile) parseSegment(s *segment, raw []byte, n int) (bool, error) {
	in := input{b: raw}
	k := in.length(n)
	head := in.bytes(k)
	at := len(raw) - len(in.b)
	sum := in.u32()
	if in.err != nil {
		if len(raw) < n {
			return false, nil
		}
		return false, in.err
	}
	if checksum(raw[:at]) != sum {
		return false, errSum
	}
	entries, err := decodeEntries(head, b.hours, b.series)
	if err != nil {
		return false, err
	}
	at += 4
	for h := range entries {
		e := &entries[h]
		if e.pres > len(b.hourTab[h].pres) {
			return false, errBlock
		}
		s.offs = append(s.offs, at)
		if e.size > 0 {
			at += e.size + 4
		}
	}
	if at != n {
		return false, errBlock
	}
	s.entries, s.raw = entries, raw
	return true, nil
}

// chunk returns the checked bytes of an hour's chunk.
func (s *segment) chunk(h int) ([]byte, error) {
	at, n := s.offs[h], s.entries[h].size
	if at+n+4 > len(s.raw) {
		return nil, errBlock
	}
	c := s.raw[at : at+n]
	if checksum(c) != binary.LittleEndian.Uint32(s.raw[at+n:]) {
		return nil, errSum
	}
	return c, nil
}

// scratch is the memory one reader needs to decode; it is pooled.
type scratch struct {
	dec  decoder
	x    [hourSeconds]int64
	k    [hourSeconds]int64
	ref  segment
	refB *blockFile // what ref was read from
	work []float64
	q    quantiler
}

// hourBuffer holds the hour a cursor is at; it is pooled.
type hourBuffer struct {
	late [hourSeconds + 1]bool
	vals [hourSeconds + 1]float64
}

// ints decodes hour h of a segment and says at which seconds its values are.
func (b *blockFile) ints(sc *scratch, s *segment, h int) ([]int64, runs, error) {
	e := &s.entries[h]
	if e.kind == columnAbsent {
		return nil, nil, nil
	}
	p, err := b.hourTab[h].presence(e.pres)
	n := p.count()
	if err == nil && n == 0 {
		err = errBlock
	}
	if err != nil {
		return nil, nil, &damageError{b.path, err}
	}
	x := sc.x[:n]
	if e.kind == columnConstant {
		for i := range x {
			x[i] = e.first
		}
		return x, p, nil
	}
	if e.ref >= 0 {
		if err := b.reference(sc, e, h, x); err != nil {
			return nil, nil, err
		}
	}
	if err := b.addChunk(sc, s, h, x); err != nil {
		return nil, nil, &damageError{b.path, fmt.Errorf("series %s, hour %d: %w", b.sch.series[s.index].key, h, err)}
	}
	if x[n-1] != e.last {
		return nil, nil, &damageError{b.path, errBlock}
	}
	return x, p, nil
}

// addChunk makes x what first and the chunk say; where the column refers to another one, it adds that to x.
func (b *blockFile) addChunk(sc *scratch, s *segment, h int, x []int64) error {
	e := &s.entries[h]
	if e.size == 0 {
		if e.ref < 0 {
			return errBlock
		}
		for i := range x {
			x[i] += e.first
		}
		return nil
	}
	c, err := s.chunk(h)
	if err != nil {
		return err
	}
	if e.ref < 0 && e.gcd == 1 {
		x[0] = e.first
		return sc.dec.chunk(b.dec, c, x)
	}
	y := sc.k[:len(x)]
	y[0] = 0
	if err := sc.dec.chunk(b.dec, c, y); err != nil {
		return err
	}
	if e.ref < 0 {
		for i, v := range y {
			x[i] = e.first + e.gcd*v
		}
		return nil
	}
	for i, v := range y {
		x[i] += e.first + e.gcd*v
	}
	return nil
}

// reference fills x with mul times what the other column did since the start of the hour.
func (b *blockFile) reference(sc *scratch, e *entry, h int, x []int64) error {
	if sc.refB != b || sc.ref.index != e.ref {
		sc.refB = nil
		if err := b.readSegment(&sc.ref, e.ref, true); err != nil {
			return err
		}
		sc.refB = b
	}
	r := &sc.ref.entries[h]
	bad := func(err error) error {
		return &damageError{b.path, fmt.Errorf("series %s, hour %d: %w", b.sch.series[e.ref].key, h, err)}
	}
	if r.kind != columnVarying || r.ref >= 0 || r.pres != e.pres {
		return bad(errBlock)
	}
	if err := b.addChunk(sc, &sc.ref, h, x); err != nil {
		return bad(err)
	}
	for i := range x {
		x[i] = e.mul * (x[i] - r.first)
	}
	return nil
}

// values writes hour h of a segment to dst, a slot per second, where dst has none yet. With fresh true dst holds nothing that counts,
// and is written whole.
func (b *blockFile) values(sc *scratch, s *segment, h int, dst []float64, fresh bool) error {
	x, p, err := b.ints(sc, s, h)
	if err != nil || len(x) == 0 {
		if fresh {
			nan(dst)
		}
		return err
	}
	scale := s.entries[h].scale
	end := 0
	for _, r := range p {
		part := dst[r.from : r.from+r.n]
		if fresh {
			nan(dst[end:r.from])
			end = int(r.from) + int(r.n)
			convert(part, x[:len(part)], scale)
		} else {
			fill(part, x[:len(part)], scale)
		}
		x = x[len(part):]
	}
	if fresh {
		nan(dst[end:])
	}
	return nil
}

// convert returns the values that integers encode.
func convert(dst []float64, x []int64, scale uint8) {
	dst = dst[:len(x)]
	switch {
	case scale == 0:
		for i, v := range x {
			dst[i] = float64(v)
		}
	case scale <= maxScale:
		p := pow10[scale]
		for i, v := range x {
			dst[i] = float64(v) / p
		}
	default:
		for i, v := range x {
			dst[i] = toFloat(v, floatScale)
		}
	}
}

// fill converts integers if there is no value yet.
func fill(dst []float64, x []int64, scale uint8) {
	for i, v := range x {
		if d := dst[i]; d != d {
			dst[i] = toFloat(v, scale)
		}
	}
}
