package series

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/klauspost/compress/fse"
	"github.com/klauspost/compress/huff0"
	"github.com/klauspost/compress/zstd"
)

// Decimal scales: a value v is kept as the integer v*10^scale. floatScale keeps the bits of the float instead.
const (
	maxScale   = 12
	floatScale = 15
)

// pow10 holds exact powers; a division by them rounds once, so that 1234567/100 is the float64 that "12345.67" parses to.
var pow10 = [maxScale + 1]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12}

// toInts turns values into integers, appended to x, and says at what scale. Every value comes back exactly, to the bit.
func toInts(x []int64, v []float64) ([]int64, uint8) {
	start := len(x)
	scale := uint8(0)
	for i := 0; i < len(v); {
		k, ok := scaled(v[i], scale)
		if ok {
			x = append(x, k)
			i++
			continue
		}
		if scale++; scale > maxScale {
			return floatInts(x[:start], v), floatScale
		}
		x, i = x[:start], 0
	}
	return x, scale
}

// scaled returns v*10^scale if that is an integer from which v comes back bit by bit.
func scaled(v float64, scale uint8) (int64, bool) {
	if scale == 0 {
		if !(v >= -1<<63 && v < 1<<63) {
			return 0, false
		}
		k := int64(v)
		return k, float64(k) == v && (k != 0 || math.Float64bits(v) == 0)
	}
	r := math.RoundToEven(v * pow10[scale])
	if !(r > -1<<53 && r < 1<<53) {
		return 0, false
	}
	k := int64(r)
	return k, math.Float64bits(float64(k)/pow10[scale]) == math.Float64bits(v)
}

// floatInts keeps the bits, folded so that neighbouring floats are neighbouring integers.
func floatInts(x []int64, v []float64) []int64 {
	for _, f := range v {
		b := int64(math.Float64bits(f))
		x = append(x, b^(b>>63&math.MaxInt64))
	}
	return x
}

// toFloat undoes toInts for one value.
func toFloat(x int64, scale uint8) float64 {
	switch {
	case scale == 0:
		return float64(x)
	case scale <= maxScale:
		return float64(x) / pow10[scale]
	default:
		return math.Float64frombits(uint64(x ^ (x >> 63 & math.MaxInt64)))
	}
}

// Methods of a chunk: how the residuals of a predictor are written.
const (
	methodSparse = 1 // varints: distance to the next residual that is not zero, and it
	methodFSE    = 2 // magnitude symbols by finite state entropy, the other bits packed
	methodRaw    = 3 // as methodFSE, the symbols as they are
	methodRLE    = 4 // as methodFSE, one symbol repeated
	methodZstd   = 5 // zigzag varints of the residuals under zstd
	methodHuff   = 6 // as methodFSE, the symbols by Huffman coding in four streams: reads three times as fast
)

// Predictors; every one starts from the first value of the chunk, which is in the index.
const (
	orderLevel  = 0 // distance to first value + base
	orderDelta  = 1 // distance to the previous value, less base
	orderSecond = 2 // distance of neighbouring deltas; the delta before the first is base
)

var (
	errMethod = errors.New("unknown chunk method")
	errChunk  = errors.New("chunk content does not match its header")
)

// symbol tables: a residual's zigzag below 16 is its own symbol; above, a symbol gives the
// position of the highest bit and the two bits after it, and the rest is packed raw.
type symbolTable [256]struct {
	base uint64
	mask uint64 // as many ones as there are bits
	bits uint
}

var symbols = makeSymbols()

func makeSymbols() (t symbolTable) {
	for s := range 256 {
		if s < 16 {
			t[s].base = uint64(s)
			continue
		}
		n := uint(s-16)>>2 + 2
		t[s].base = uint64(4|(s-16)&3) << n
		t[s].bits, t[s].mask = n, 1<<n-1
	}
	return t
}

func symbolOf(z uint64) (sym byte, rest uint64, n uint) {
	if z < 16 {
		return byte(z), 0, 0
	}
	b := uint(bits.Len64(z)) - 1
	n = b - 2
	return byte(16 + (b-4)*4 + uint(z>>n)&3), z & (1<<n - 1), n
}

// encoder turns columns of integers into chunks. It is used by one goroutine at a time.
type encoder struct {
	fse    fse.Scratch
	huff   huff0.Scratch
	zstd   *zstd.Encoder
	res    [3][]int64
	sorted []int64
	syms   []byte
	bits   bitWriter
	buf    []byte
	best   []byte
	tmp    []byte
}

func newEncoder() (*encoder, error) {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(256<<10),
		zstd.WithLowerEncoderMem(true), zstd.WithSingleSegment(true), zstd.WithEncoderCRC(false), zstd.WithEncoderLevel(zstd.SpeedBetterCompression))
	if err != nil {
		return nil, fmt.Errorf("make a compressor: %w", err)
	}
	return &encoder{zstd: z}, nil
}

// chunk encodes x, which has at least two values and is not constant. The result is valid until the next call.
func (e *encoder) chunk(x []int64) []byte {
	order, base := e.predict(x)
	r := e.res[order]
	e.best = e.sparse(e.best[:0], order, base, r)
	if c := e.entropy(order, base, r, len(e.best)); c != nil && len(c) < len(e.best) {
		e.best = append(e.best[:0], c...)
	}
	if len(e.best) > 64 {
		if c := e.zstdChunk(order, base, r); len(c) < len(e.best) {
			e.best = append(e.best[:0], c...)
		}
	}
	return e.best
}

// predict fills the residuals of every predictor and chooses the one whose magnitudes need the fewest bits.
func (e *encoder) predict(x []int64) (order int, base int64) {
	n := len(x) - 1
	for o := range e.res {
		e.res[o] = slices.Grow(e.res[o][:0], n)[:n]
	}
	level, delta, second := e.res[0], e.res[1], e.res[2]
	for i := range n {
		delta[i] = x[i+1] - x[i]
		level[i] = x[i+1] - x[0]
	}
	bases := [3]int64{e.median(level), e.median(delta), delta[0]}
	prev := delta[0]
	for i := range n {
		second[i] = delta[i] - prev
		prev = delta[i]
	}
	var cost, free [3]int
	for o := range e.res {
		for _, v := range e.res[o] {
			free[o] += bits.Len64(zigzag(v))
		}
	}
	// An offset pays only where it makes the residuals smaller: zeros are cheapest of all.
	for o := range 2 {
		for _, v := range e.res[o] {
			cost[o] += bits.Len64(zigzag(v - bases[o]))
		}
		if cost[o] >= free[o] {
			cost[o], bases[o] = free[o], 0
		}
	}
	cost[2] = free[2]
	order = orderDelta
	if cost[orderSecond] < cost[order] {
		order = orderSecond
	}
	if cost[orderLevel] < cost[order] {
		order = orderLevel
	}
	if b := bases[order]; order != orderSecond && b != 0 {
		for i := range e.res[order] {
			e.res[order][i] -= b
		}
	}
	return order, bases[order]
}

// median is near enough the middle: of at most 255 values spread over v.
func (e *encoder) median(v []int64) int64 {
	step := max(1, len(v)/255)
	e.sorted = e.sorted[:0]
	for i := 0; i < len(v); i += step {
		e.sorted = append(e.sorted, v[i])
	}
	slices.Sort(e.sorted)
	return e.sorted[len(e.sorted)/2]
}

func (e *encoder) sparse(b []byte, order int, base int64, r []int64) []byte {
	b = append(b, byte(methodSparse|order<<4))
	b = appendZigzag(b, base)
	gap := uint64(0)
	for _, v := range r {
		if v == 0 {
			gap++
			continue
		}
		b = binary.AppendUvarint(b, gap)
		b = appendZigzag(b, v)
		gap = 0
	}
	return b
}

func (e *encoder) entropy(order int, base int64, r []int64, limit int) []byte {
	e.syms = e.syms[:0]
	e.bits.out = e.bits.out[:0]
	for _, v := range r {
		s, rest, n := symbolOf(zigzag(v))
		e.syms = append(e.syms, s)
		if n > 0 {
			e.bits.write(rest, n)
		}
	}
	extra := e.bits.finish()
	if len(extra) >= limit {
		return nil
	}
	method, coded := methodFSE, e.syms
	e.fse.Out = e.tmp[:0]
	out, err := fse.Compress(e.syms, &e.fse)
	switch {
	case err == nil:
		coded = out
	case errors.Is(err, fse.ErrUseRLE):
		method, coded = methodRLE, e.syms[:1]
	default:
		method = methodRaw
	}
	e.tmp = e.fse.Out
	if method == methodFSE && len(coded) > len(e.syms)/6 {
		// One part in fifty is a fair price for reading fast. Symbols of less than a bit or so need the other coding.
		e.huff.Reuse = huff0.ReusePolicyNone
		if out, _, err := huff0.Compress4X(e.syms, &e.huff); err == nil && len(out) <= len(coded)+(len(coded)+len(extra))/50 {
			method, coded = methodHuff, out
		}
	}
	b := append(e.buf[:0], byte(method|order<<4))
	b = appendZigzag(b, base)
	b = binary.AppendUvarint(b, uint64(len(coded)))
	b = append(b, coded...)
	e.buf = append(b, extra...)
	return e.buf
}

func (e *encoder) zstdChunk(order int, base int64, r []int64) []byte {
	raw := e.tmp[:0]
	for _, v := range r {
		raw = appendZigzag(raw, v)
	}
	e.tmp = raw
	b := append(e.buf[:0], byte(methodZstd|order<<4))
	b = appendZigzag(b, base)
	e.buf = e.zstd.EncodeAll(raw, b)
	return e.buf
}

// decoder turns chunks into integers again. It is used by one goroutine at a time.
type decoder struct {
	fse  fse.Scratch
	huff huff0.Scratch
	raw  []byte

	padded []byte
}

// maxChunkValues bounds what a chunk can ask memory for: an hour of seconds.
const maxChunkValues = 3600

// chunk decodes len(x) values; x[0] is set by the caller. z decompresses where the chunk needs it.
func (d *decoder) chunk(z *zstd.Decoder, b []byte, x []int64) error {
	if len(x) < 2 || len(x) > maxChunkValues {
		return errChunk
	}
	in := input{b: b}
	head := in.byte()
	base := in.varint()
	if in.err != nil {
		return in.err
	}
	var err error
	r := x[1:]
	switch head & 15 {
	case methodSparse:
		err = d.sparse(&in, r)
	case methodFSE, methodRaw, methodRLE, methodHuff:
		err = d.entropy(&in, head&15, r)
	case methodZstd:
		err = d.zstdChunk(z, in.b, r)
	default:
		err = errMethod
	}
	if err != nil {
		return err
	}
	return unpredict(x, int(head>>4), base)
}

func unpredict(x []int64, order int, base int64) error {
	r := x[1:]
	switch order {
	case orderLevel:
		base += x[0]
		for i := range r {
			r[i] += base
		}
	case orderDelta:
		v := x[0]
		for i := range r {
			v += r[i] + base
			r[i] = v
		}
	case orderSecond:
		v, d := x[0], base
		for i := range r {
			d += r[i]
			v += d
			r[i] = v
		}
	default:
		return errMethod
	}
	return nil
}

func (d *decoder) sparse(in *input, r []int64) error {
	clear(r)
	for i := 0; len(in.b) > 0; i++ {
		gap := in.length(len(r))
		i += gap
		v := in.varint()
		if in.err != nil || i >= len(r) {
			return errChunk
		}
		r[i] = v
	}
	return nil
}

func (d *decoder) entropy(in *input, method byte, r []int64) error {
	coded := in.bytes(in.length(len(in.b)))
	if in.err != nil {
		return in.err
	}
	bits := bitReader{b: in.b}
	if method == methodRLE {
		if len(coded) != 1 {
			return errChunk
		}
		s := symbols[coded[0]]
		for i := range r {
			r[i] = unzigzag(s.base | bits.read(s.bits))
		}
	} else {
		syms, err := d.symbols(method, coded, len(r))
		if err != nil {
			return fmt.Errorf("chunk symbols: %w", err)
		}
		if len(syms) != len(r) {
			return errChunk
		}
		d.join(&bits, syms, r)
	}
	if bits.over() {
		return errChunk
	}
	return nil
}

// symbols decodes n symbols.
func (d *decoder) symbols(method byte, coded []byte, n int) (syms []byte, err error) {
	switch method {
	case methodFSE:
		d.fse.DecompressLimit = n + 1
		if syms, err = fse.Decompress(coded, &d.fse); err == nil {
			d.fse.Out = syms[:0]
		}
		return syms, err
	case methodHuff:
		d.huff.MaxDecodedSize = n
		_, rest, err := huff0.ReadTable(coded, &d.huff)
		if err != nil {
			return nil, err
		}
		if cap(d.raw) < n {
			d.raw = make([]byte, maxChunkValues)
		}
		return d.huff.Decoder().Decompress4X(d.raw[:n:n], rest)
	default:
		return coded, nil
	}
}

// join puts symbols and the packed bits together. There are no branches that data decides on, which is what makes it fast.
func (d *decoder) join(r *bitReader, syms []byte, out []int64) {
	d.padded = append(append(d.padded[:0], r.b...), 0, 0, 0, 0, 0, 0, 0, 0)
	b, pos, limit := d.padded, r.pos, uint(len(r.b))
	out = out[:len(syms)]
	for i, s := range syms {
		e := &symbols[s]
		at := pos >> 3
		if e.bits > 56 || at > limit {
			r.pos = pos
			out[i] = unzigzag(e.base | r.read(e.bits))
			pos = r.pos
			continue
		}
		z := e.base | binary.LittleEndian.Uint64(b[at:])>>(pos&7)&e.mask
		pos += e.bits
		out[i] = int64(z>>1) ^ -int64(z&1)
	}
	r.pos = pos
}

func (d *decoder) zstdChunk(z *zstd.Decoder, b []byte, r []int64) error {
	raw, err := unzip(z, b, d.raw[:0], 10*len(r))
	if err != nil {
		return fmt.Errorf("chunk: %w", err)
	}
	d.raw = raw
	in := input{b: raw}
	for i := range r {
		r[i] = in.varint()
	}
	if in.err != nil || len(in.b) != 0 {
		return errChunk
	}
	return nil
}
