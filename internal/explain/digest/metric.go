package digest

import (
	"math"
	"math/bits"
)

// Quantiles come from counts in log-linear buckets, as HdrHistogram's: each power of two is cut into
// subBuckets equal parts. A bucket's middle is off by at most half its width, relative to its low end:
// 1/(2·subBuckets). Buckets merge by adding, so the result does not depend on who counted what. Values
// under 2·subBuckets micros, and zero, are exact.
const (
	subBucketBits = 6
	subBuckets    = 1 << subBucketBits
	quantileError = 1.0 / (2 * subBuckets)
	bucketLimit   = (64 - subBucketBits + 1) << subBucketBits
)

// bucketOf numbers the bucket of a value.
func bucketOf(v uint64) uint32 {
	e := bits.Len64(v) - (subBucketBits + 1)
	if e <= 0 {
		return uint32(v)
	}
	return uint32(e)<<subBucketBits + uint32(v>>(uint(e)&63))
}

// bucketValue is the middle of a bucket, in micros.
func bucketValue(i uint32) float64 {
	if i < 2*subBuckets {
		return float64(i)
	}
	e := i>>subBucketBits - 1
	m := i - e<<subBucketBits
	return math.Ldexp(float64(m), int(e)) + math.Ldexp(0.5, int(e))
}

// metric sums up one numeric attribute. Its quantiles are in the class's counts. Zeros are only
// counted: most attributes are 0 in most events.
type metric struct {
	events   uint64 // that have it, also as zero; what is in class.shaped comes later
	n        uint64 // values over zero; min and max are theirs
	min, max uint64
	sum, sq  u128
}

// add counts a value over zero, but not the event.
func (m *metric) add(v uint64) {
	if m.n == 0 || v < m.min {
		m.min = v
	}
	if v > m.max {
		m.max = v
	}
	m.n++
	var carry uint64 // a log has no room for so many values that this sum overflows
	m.sum.lo, carry = bits.Add64(m.sum.lo, v, 0)
	m.sum.hi += carry
	hi, lo := bits.Mul64(v, v)
	m.sq.add(hi, lo)
}

func (m *metric) count() uint64 { return m.events }

func (m *metric) zeros() uint64 { return m.events - m.n }

func (m *metric) merge(o *metric) {
	m.events += o.events
	if o.n == 0 {
		return
	}
	if m.n == 0 || o.min < m.min {
		m.min = o.min
	}
	m.max = max(m.max, o.max)
	m.n += o.n
	m.sum.add(o.sum.hi, o.sum.lo)
	m.sq.add(o.sq.hi, o.sq.lo)
}

// variance is that of the population, in squared units.
func (m *metric) variance() float64 {
	if m.n == 0 || m.zeros() == 0 && m.min == m.max {
		return 0
	}
	n := float64(m.events)
	mean := m.sum.float() / n
	v := m.sq.float()/n - mean*mean
	if v < 0 {
		v = 0
	}
	return v / (micro * micro)
}

// bucket is a bucket's number and how many values fell into it.
type bucket struct {
	i uint32
	n uint64
}

// fill makes the figures; buckets are those of values over zero, by rising number.
func (m *metric) fill(out *Metric, buckets []bucket) {
	n := m.events
	out.Count = int64(n)
	if n == 0 {
		return
	}
	out.Sum = m.sum.float() / micro
	out.Max = float64(m.max) / micro
	if m.zeros() == 0 {
		out.Min = float64(m.min) / micro
	}
	out.Avg = out.Sum / float64(n)
	out.Stddev = math.Sqrt(m.variance())
	whole := out.Unit == "" || out.Unit == "bytes"
	// 95 %: the value of rank ⌈0.95 n⌉. Median: the middle value, or the mean of the two in the middle.
	out.P95 = m.rank((n*95+99)/100, buckets, whole)
	out.Median = (m.rank((n+1)/2, buckets, whole) + m.rank(n/2+1, buckets, whole)) / 2
}

// rank is the r-th smallest value, from 1; whole says that values are whole numbers.
func (m *metric) rank(r uint64, buckets []bucket, whole bool) float64 {
	if r <= m.zeros() {
		return 0
	}
	if r >= m.events {
		return float64(m.max) / micro
	}
	seen := m.zeros()
	for _, b := range buckets {
		seen += b.n
		if seen < r {
			continue
		}
		v := bucketValue(b.i)
		if whole { // a bucket that holds one whole number means that number
			low, high := bucketBounds(b.i)
			if n := math.Ceil(low / micro); n*micro < high && (n+1)*micro >= high {
				v = n * micro
			}
		}
		return min(max(v, float64(m.min)), float64(m.max)) / micro
	}
	return float64(m.max) / micro
}

// bucketBounds is the bucket's lowest value, and the next bucket's.
func bucketBounds(i uint32) (low, high float64) {
	if i < 2*subBuckets {
		return float64(i), float64(i + 1)
	}
	e := i>>subBucketBits - 1
	m := i - e<<subBucketBits
	return math.Ldexp(float64(m), int(e)), math.Ldexp(float64(m+1), int(e))
}
