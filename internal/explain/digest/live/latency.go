package live

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/explain/digest"
	"github.com/rissodb/risso/internal/mysql/read"
)

// Percentiles come from the histograms that MySQL 8 keeps of each digest (events_statements_histogram_by_digest). They count
// since the server began to count, so a window needs two readings. A reading costs the server some milliseconds a digest: the
// first takes the busiest digests of the last minute, as it is unknown which will be the heaviest; a digest that is new
// in the window needs none.
const (
	// bucketsRead bounds the histograms of the first reading.
	bucketsRead = 100
	// bucketsMost bounds the histograms of the last reading: a class may have very many digests, by names of tables or grouped by schema.
	bucketsMost = 2000
	// recently is how far back busy digests are looked for.
	recently = time.Minute
)

// quantileError is the relative error of percentiles: half a bucket of MySQL's histogram, of which 50 make a power of ten.
var quantileError = math.Pow(10, 0.01) - 1

// firstBuckets reads the histograms of the digests that may be the heaviest.
func (r *Reader) firstBuckets(ctx context.Context, clock string) error {
	if !r.keepsLatency() {
		return nil
	}
	now, err := time.ParseInLocation(clockForm, clock, time.UTC)
	if err != nil {
		return fmt.Errorf("the server's clock: %w", err)
	}
	var busy []read.Digest
	err = read.Digests(ctx, r.conn, now.Add(-recently).Format(clockForm), func(d *read.Digest) error {
		if _, known := r.base[key{d.Schema, d.ID}]; known && d.ID != "" {
			busy = append(busy, *d)
		}
		return nil
	})
	if err != nil {
		return err
	}
	sort.Slice(busy, func(i, j int) bool { return busy[i].Seconds > busy[j].Seconds })
	r.buckets = map[key]map[int]int64{}
	for _, d := range busy[:min(len(busy), bucketsRead)] {
		k := key{d.Schema, d.ID}
		if r.buckets[k], err = r.read(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

// keepsLatency reports whether there are histograms that are wanted.
func (r *Reader) keepsLatency() bool { return !r.o.NoLatency && read.KeepsLatency(r.conn.Server) }

// clockForm is how servers write times in UTC.
const clockForm = "2006-01-02 15:04:05.999999"

// read reads one histogram.
func (r *Reader) read(ctx context.Context, k key) (map[int]int64, error) {
	list, err := read.Latency(ctx, r.conn, k.schema, k.id)
	out := make(map[int]int64, len(list))
	for _, b := range list {
		out[b.Number] = b.Calls
	}
	return out, err
}

// latencies fills in the percentiles of the heaviest classes, which come first, and says whose are missing.
func (r *Reader) latencies(ctx context.Context, p *digest.Profile, list []*group) error {
	if r.o.NoLatency {
		return nil
	}
	if !r.keepsLatency() {
		r.notes = append(r.notes, "There are no percentiles: this server keeps no histograms of its digests. MySQL 8.0.3 and later does; a slow log has every call.")
		return nil
	}
	p.QuantileError = quantileError
	read, asked := 0, 0
	missing := map[string]int{} // why → how many classes
	for _, g := range list[:min(len(list), detailed)] {
		if len(g.prepared) > 0 {
			missing[notOfPrepared]++
			continue
		}
		if asked += len(g.rows); asked > bucketsMost {
			asked -= len(g.rows)
			missing[notOfMany]++
			continue
		}
		why, err := r.latency(ctx, g)
		if err != nil { // the profile is worth more than its percentiles
			if ctx.Err() != nil {
				return ctx.Err()
			}
			r.notes = append(r.notes, fmt.Sprintf("The percentiles of %d of the %s could not be read: %s.", min(len(list), detailed)-read, heaviest(len(list)), err))
			return nil
		}
		read++
		if why != "" {
			missing[why]++
		}
	}
	for _, why := range []string{notReadBefore, notOfOther, notOfMany, notFilled, notOfPrepared} {
		if n := missing[why]; n > 0 {
			r.notes = append(r.notes, fmt.Sprintf("No percentiles of %d of the %s: %s.", n, heaviest(len(list)), why))
		}
	}
	if n := len(list) - detailed; n > 0 {
		r.notes = append(r.notes, fmt.Sprintf("No percentiles or samples of the %s after the first %d: each costs the server some milliseconds.", digits.Plural(n, "class", "classes"), detailed))
	}
	return nil
}

// heaviest are those of n classes whose percentiles are asked for.
func heaviest(n int) string {
	return digits.Plural(min(n, detailed), "heaviest class", "heaviest classes")
}

// Why a class has no percentiles.
var notReadBefore = fmt.Sprintf("their earlier times are not known, because only the histograms of the %d busiest were read at the beginning; --for 0 needs no earlier reading", bucketsRead)

var notOfMany = fmt.Sprintf("with them more than %s histograms would have to be read, one for each digest", digits.Thousands(bucketsMost))

const (
	notOfOther    = "this server keeps no histogram of statements that do not fit into its table of digests"
	notFilled     = "their histograms are empty"
	notOfPrepared = "this server keeps no histograms of prepared statements"
)

// latency fills in a class's percentiles and histogram from MySQL's buckets, of which n ends at 10 µs · 10^(n/50); why says what is
// in the way, empty: nothing.
func (r *Reader) latency(ctx context.Context, g *group) (why string, err error) {
	for _, k := range g.rows {
		_, before := r.base[k]
		_, read := r.buckets[k]
		switch {
		case k.id == "":
			return notOfOther, nil
		case before && !r.anew[k] && !read:
			return notReadBefore, nil
		}
	}
	counts := map[int]int64{}
	total := int64(0)
	for _, k := range g.rows {
		now, err := r.read(ctx, k)
		if err != nil {
			return "", err
		}
		for n, calls := range now {
			if !r.anew[k] {
				calls -= r.buckets[k][n]
			}
			if calls > 0 {
				counts[n] += calls
				total += calls
			}
		}
	}
	if total == 0 { // emptied in the meantime
		return notFilled, nil
	}
	numbers := make([]int, 0, len(counts))
	for n := range counts {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	for i := range g.Metrics {
		if m := &g.Metrics[i]; m.Name == "Query_time" && m.Count > 1 {
			m.P95, m.Median = quantile(numbers, counts, total, 0.95), quantile(numbers, counts, total, 0.5)
		}
	}
	for _, n := range numbers {
		// The bucket's lower end decides: its upper end may be the bound itself.
		g.Histogram[min(max(0, (n+49)/50), 7)] += counts[n]
	}
	return "", nil
}

// quantile is the middle of the bucket that holds it.
func quantile(numbers []int, counts map[int]int64, total int64, q float64) float64 {
	sum := int64(0)
	for _, n := range numbers {
		if sum += counts[n]; float64(sum) >= q*float64(total) {
			return 1e-5 * math.Pow(10, (float64(n)-0.5)/50)
		}
	}
	return math.NaN()
}
