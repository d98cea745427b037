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
	return uint32(e)<<subBucketBits + uint32(v>>uint(e))
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

// metric is what one numeric attribute came to. Its quantiles are in the class's counts.
type metric struct {
	n, zeros uint64
	min, max uint64
	sum, sq  u128
}

// add counts a value that is not zero; zero is for the caller, who then needs no bucket.
func (m *metric) add(v uint64) {
	if m.n == m.zeros && m.zeros == 0 || v < m.min {
		m.min = v
	}
	if v > m.max {
		m.max = v
	}
	m.n++
	m.sum.add(0, v)
	hi, lo := bits.Mul64(v, v)
	m.sq.add(hi, lo)
}

func (m *metric) addZero() {
	m.n++
	m.zeros++
	m.min = 0
}

func (m *metric) merge(o *metric) {
	if o.n == 0 {
		return
	}
	if m.n == 0 || o.min < m.min {
		m.min = o.min
	}
	m.max = max(m.max, o.max)
	m.n += o.n
	m.zeros += o.zeros
	m.sum.add(o.sum.hi, o.sum.lo)
	m.sq.add(o.sq.hi, o.sq.lo)
}

// variance is that of the population, in squared units.
func (m *metric) variance() float64 {
	if m.n == 0 || m.min == m.max {
		return 0
	}
	n := float64(m.n)
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
	out.Count = int64(m.n)
	if m.n == 0 {
		return
	}
	out.Sum = m.sum.float() / micro
	out.Min, out.Max = float64(m.min)/micro, float64(m.max)/micro
	out.Avg = out.Sum / float64(m.n)
	out.Stddev = math.Sqrt(m.variance())
	// 95 %: the value of rank ⌈0.95 n⌉. Median: the middle value, or the mean of the two in the middle.
	out.P95 = m.rank((m.n*95+99)/100, buckets)
	out.Median = (m.rank((m.n+1)/2, buckets) + m.rank(m.n/2+1, buckets)) / 2
}

// rank is the r-th smallest value, from 1.
func (m *metric) rank(r uint64, buckets []bucket) float64 {
	if r <= m.zeros {
		return 0
	}
	if r >= m.n {
		return float64(m.max) / micro
	}
	seen := m.zeros
	for _, b := range buckets {
		seen += b.n
		if seen >= r {
			v := bucketValue(b.i)
			return min(max(v, float64(m.min)), float64(m.max)) / micro
		}
	}
	return float64(m.max) / micro
}
