package series

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sort"
	"sync"
)

// Bands are what a series looked like in buckets of equal length: of the rate a second for a counter, of the value for a gauge.
// All slices have one element per bucket; where N is 0 the others are NaN.
type Bands struct {
	Key   string
	Type  Type
	Start int64 // Unix seconds of the first bucket
	Step  int64 // seconds of each

	N   []int     // rates or values in the bucket
	Avg []float64 // mean of all N
	// Extremes and percentiles (nearest rank). Rates next to a late tick are left out of these, unless there are no others.
	Min, P5, P50, P95, Max []float64
}

// maxBuckets bounds one answer.
const maxBuckets = 200_000

// Bands gives, for each key, the buckets [from+i*step, from+(i+1)*step) up to and without to. A counter's rate at second t is
// value(t) - value(t-1): a gap, and a counter that went backwards, have no rate. Where buckets are whole hours, the stored rollups
// of finished hours are used: N, Avg, Min and Max are exact, the percentiles of several hours are those of a mixture of
// the hours' distributions, each taken as linear between its five known points.
func (s *Store) Bands(ctx context.Context, instance string, keys []string, from, to, step int64) ([]Bands, error) {
	if step < 1 || to < from || (to-from)/step > maxBuckets {
		return nil, fmt.Errorf("bands from %d to %d by %d: %w", from, to, step, ErrRange)
	}
	out := make([]Bands, len(keys))
	in := s.instance(instance)
	workers := min(len(keys), runtime.GOMAXPROCS(0))
	next := make(chan int, len(keys))
	for i := range keys {
		next <- i
	}
	close(next)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var failed error
	for range workers {
		wg.Go(func() {
			for i := range next {
				b, err := in.bands(ctx, keys[i], from, to, step)
				if err != nil {
					mu.Lock()
					failed = err
					mu.Unlock()
					return
				}
				out[i] = b
			}
		})
	}
	wg.Wait()
	if failed != nil {
		return nil, fmt.Errorf("bands of %s: %w", instance, failed)
	}
	return out, nil
}

func newBands(key string, from, to, step int64) Bands {
	n := int((to - from + step - 1) / step)
	b := Bands{Key: key, Start: from, Step: step, N: make([]int, n)}
	for _, list := range []*[]float64{&b.Avg, &b.Min, &b.P5, &b.P50, &b.P95, &b.Max} {
		*list = make([]float64, n)
		nan(*list)
	}
	return b
}

// bander collects one series into buckets.
type bander struct {
	c       *cursor
	sc      *scratch
	out     *Bands
	from    int64
	to      int64
	step    int64
	counter bool

	bucket  int // being filled
	n       int
	sum     float64
	work    []float64 // trusted rates or values of the bucket
	late    []float64 // the others
	rolled  []rollup  // hours that came as rollups
	prevEnd int64     // end of the hour read last; vals[0] of the next is its last value if that follows directly
	prev    float64   // value of the last second read
	prevLat bool
}

func (in *instance) bands(ctx context.Context, key string, from, to, step int64) (Bands, error) {
	out := newBands(key, from, to, step)
	if in == nil || from == to {
		return out, nil
	}
	typ, ok := in.typeOf(key, from-1, to)
	if !ok {
		return out, nil
	}
	out.Type = typ
	c := in.cursor(key, from-1)
	defer c.close()
	sc := in.s.pool.Get().(*scratch)
	defer in.s.pool.Put(sc)
	b := &bander{c: c, out: &out, from: from, to: to, step: step, counter: typ == Counter, work: sc.work[:0], sc: sc, prev: math.NaN()}
	whole := step%hourSeconds == 0 && from%hourSeconds == 0
	for _, hour := range in.hoursWithin(from-1, to) {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		if whole && hour >= from && hour+hourSeconds <= to && b.rollup(hour) {
			continue
		}
		b.hour(hour)
	}
	b.flush()
	sc.work = b.work
	return out, nil
}

// typeOf finds the type of a series: what is newest decides, memory first, then frames, then the blocks of the range.
func (in *instance) typeOf(key string, from, to int64) (Type, bool) {
	if t, ok := in.typeInMemory(key); ok {
		return t, true
	}
	in.files.RLock()
	defer in.files.RUnlock()
	newest, typ := int64(math.MinInt64), Gauge
	for _, f := range in.hours {
		for _, r := range f.refs {
			if i := r.schema.find(key); i >= 0 && r.start > newest {
				newest, typ = r.start, r.schema.series[i].Type
			}
		}
	}
	if newest > math.MinInt64 {
		return typ, true
	}
	for _, r := range slices.Backward(in.blocks) {
		if r.end <= from || r.start >= to {
			continue
		}
		sch := r.schema.Load()
		if sch == nil {
			b, err := in.s.blocks.get(r, in.s)
			if err != nil {
				in.unreadable(r, err)
				continue
			}
			sch = b.sch
			in.s.blocks.release(b)
		}
		if i := sch.find(key); i >= 0 {
			return sch.series[i].Type, true
		}
	}
	return typ, false
}

func (in *instance) typeInMemory(key string) (Type, bool) {
	in.mu.RLock()
	defer in.mu.RUnlock()
	if i, ok := in.pos[key]; ok {
		return in.descs[i].Type, true
	}
	for _, m := range slices.Backward(in.pending) {
		for _, d := range m.descs {
			if d.key == key {
				return d.Type, true
			}
		}
	}
	return Gauge, false
}

// hour reads an hour second by second.
func (b *bander) hour(hour int64) {
	c := b.c
	if !c.hour(hour) {
		return
	}
	if b.prevEnd == hour {
		c.vals[0], c.late[0] = b.prev, b.prevLat
	} else {
		c.vals[0], c.late[0] = math.NaN(), false
	}
	if c.late[0] && !c.anyLate {
		clear(c.late[1:])
		c.anyLate = true
	}
	lo, hi := max(b.from, hour), min(b.to, hour+hourSeconds)
	for t := lo; t < hi; {
		k := int((t - b.from) / b.step)
		b.enter(k)
		end := min(hi, b.from+int64(k+1)*b.step)
		b.collect(int(t-hour)+1, int(end-hour)+1)
		t = end
	}
	b.prev, b.prevEnd = c.vals[hourSeconds], hour+hourSeconds
	b.prevLat = c.anyLate && c.late[hourSeconds]
}

// collect takes the seconds vals[i] to vals[j-1] into the bucket.
func (b *bander) collect(i, j int) {
	vals := b.c.vals
	b.work = slices.Grow(b.work, j-i)
	work, sum, n := b.work, 0.0, 0
	switch {
	case !b.counter:
		for _, v := range vals[i:j] {
			if v == v {
				work = append(work, v)
				sum += v
			}
		}
		n = len(work) - len(b.work)
	case !b.c.anyLate:
		prev := vals[i-1]
		part := vals[i:j]
		to := work[len(work) : len(work)+len(part)]
		for _, v := range part {
			d := v - prev
			prev = v
			if d >= 0 {
				to[n] = d
				n++
				sum += d
			}
		}
		work = work[:len(work)+n]
	default:
		for k := i; k < j; k++ {
			d := vals[k] - vals[k-1]
			if !(d >= 0) {
				continue
			}
			n++
			sum += d
			if b.c.late[k] || b.c.late[k-1] {
				b.late = append(b.late, d)
			} else {
				work = append(work, d)
			}
		}
	}
	b.work = work
	b.sum += sum
	b.n += n
}

// enter makes bucket k the one being filled.
func (b *bander) enter(k int) {
	if k != b.bucket {
		b.flush()
		b.bucket = k
	}
}

// flush writes the bucket's figures.
func (b *bander) flush() {
	o, k := b.out, b.bucket
	n, sum := b.n, b.sum
	for _, r := range b.rolled {
		n += r.n
		sum += r.sum
	}
	if n > 0 {
		o.N[k] = n
		o.Avg[k] = sum / float64(n)
		band := b.band()
		o.Min[k], o.P5[k], o.P50[k], o.P95[k], o.Max[k] = band[bandMin], band[bandP5], band[bandP50], band[bandP95], band[bandMax]
	}
	b.n, b.sum, b.work, b.late, b.rolled = 0, 0, b.work[:0], b.late[:0], b.rolled[:0]
}

func (b *bander) band() [5]float64 {
	trusted := b.rolled[:0]
	for _, r := range b.rolled {
		if r.trusted > 0 {
			trusted = append(trusted, r)
		}
	}
	if len(trusted) == 0 && len(b.work) == 0 {
		b.work = append(b.work, b.late...)
	}
	switch {
	case len(trusted) == 0 && len(b.work) == 0: // only rollups of late ticks, whose extremes are not kept
		mean := b.sum
		n := b.n
		for _, r := range b.rolled {
			mean += r.sum
			n += r.n
		}
		mean /= float64(n)
		return [5]float64{mean, mean, mean, mean, mean}
	case len(trusted) == 0:
		return b.sc.q.band(b.work)
	}
	if len(b.work) > 0 {
		r := rollup{n: len(b.work), trusted: len(b.work), band: b.sc.q.band(b.work)}
		trusted = append(trusted, r)
	}
	return mixture(trusted)
}

// rollup takes an hour from the rollup of its block; false when it has to be read second by second.
func (b *bander) rollup(hour int64) bool {
	c := b.c
	c.in.files.RLock()
	defer c.in.files.RUnlock()
	refs := c.in.covering(hour)
	if len(refs) != 1 || c.in.hours[hour] != nil {
		return false
	}
	for _, m := range c.mem {
		if m.t >= hour && m.t < hour+hourSeconds {
			return false
		}
	}
	r := refs[0]
	h := int((hour - r.start) / hourSeconds)
	if !c.load(r, false) || c.seg.entries[h].kind == columnAbsent {
		return true // nothing there
	}
	e, info := &c.seg.entries[h], &c.file.hourTab[h]
	p, err := info.presence(e.pres)
	if err != nil || len(p) == 0 {
		return false // reading the seconds reports what is damaged
	}
	roll := e.rollup()
	if e.kind == columnConstant {
		roll = flatRollup(toFloat(e.first, e.scale), p, info.late, b.counter)
	}
	b.enter(int((hour - b.from) / b.step))
	b.border(hour, e, p, info)
	b.rolled = append(b.rolled, roll)
	return true
}

// border adds the rate between the hour before and this one, and remembers this one's end.
func (b *bander) border(hour int64, e *entry, p runs, info *hourInfo) {
	if b.counter && b.prevEnd == hour && p[0].from == 0 {
		if d := toFloat(e.first, e.scale) - b.prev; d >= 0 {
			b.n++
			b.sum += d
			if b.prevLat || info.late.has(0) {
				b.late = append(b.late, d)
			} else {
				b.work = append(b.work, d)
			}
		}
	}
	b.prev, b.prevEnd = math.NaN(), hour+hourSeconds
	if end := p[len(p)-1]; int(end.from)+int(end.n) == hourSeconds {
		b.prev = toFloat(e.last, e.scale)
	}
	b.prevLat = info.late.has(hourSeconds - 1)
}

// flatRollup is the rollup of an hour in which a series did not change.
func flatRollup(v float64, p, late runs, counter bool) rollup {
	r := rollup{n: p.count()}
	r.trusted = r.n
	if counter {
		v = 0
		r.n = p.pairs()
		r.trusted = r.n
		for _, x := range late { // rates at a late second and after it
			for s := int(x.from); s <= int(x.from)+int(x.n); s++ {
				if p.has(s) && p.has(s-1) {
					r.trusted--
				}
			}
		}
	}
	r.sum = v * float64(r.n)
	r.band = [5]float64{v, v, v, v, v}
	return r
}

// knots are the ranks of a rollup's five values.
var knots = [5]float64{0, 0.05, 0.5, 0.95, 1}

// mixture joins distributions of which five points are known. Extremes are exact; a percentile is where the
// joint distribution, linear between the points of each part, reaches it.
func mixture(parts []rollup) [5]float64 {
	if len(parts) == 1 {
		return parts[0].band
	}
	out := parts[0].band
	total := 0.0
	for _, p := range parts {
		out[bandMin] = min(out[bandMin], p.band[bandMin])
		out[bandMax] = max(out[bandMax], p.band[bandMax])
		total += float64(p.trusted)
	}
	if math.IsInf(out[bandMax]-out[bandMin], 0) {
		copy(out[bandP5:bandMax], parts[len(parts)/2].band[bandP5:])
		return out
	}
	var points []float64
	for _, p := range parts {
		points = append(points, p.band[:]...)
	}
	slices.Sort(points)
	at := func(v float64) (sum float64) {
		for i := range parts {
			sum += parts[i].share(v) * float64(parts[i].trusted)
		}
		return sum
	}
	for i := bandP5; i < bandMax; i++ {
		want := knots[i] * total
		k := sort.Search(len(points)-1, func(k int) bool { return at(points[k]) >= want })
		out[i] = points[k]
		if k == 0 {
			continue
		}
		// Up to the next point it is linear, and there it may jump.
		from, mid := points[k-1], points[k-1]/2+points[k]/2
		if below := at(from); mid > from {
			out[i] = min(out[i], from+(want-below)/(at(mid)-below)*(mid-from))
		}
	}
	return out
}

// share is which part of a distribution is at most v.
func (r *rollup) share(v float64) float64 {
	if v < r.band[0] {
		return 0
	}
	for i := 1; i < len(knots); i++ {
		if v < r.band[i] {
			lo, hi := r.band[i-1], r.band[i]
			return knots[i-1] + (knots[i]-knots[i-1])*(v-lo)/(hi-lo)
		}
	}
	return 1
}
