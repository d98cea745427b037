package rules

import (
	"fmt"
	"slices"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
)

// filling is what is left of a file system, once a minute, over the last hours.
//
// When is it full? The rate at which it fills is the median of the slopes between all pairs of points (Theil and Sen), which a few points
// that lie elsewhere do not move. Something that is deleted, such as a rotated log, makes a step up. If there is one such step within the
// time that is looked at, it is taken out: growth goes on behind it. If there are more, deleting is how this file system stays as it is,
// and they count. The rate of the last half hour must agree: growth that has ended is none. The smaller of the two counts.
type filling struct {
	points  []spacePoint
	perSec  float64 // as of the newest point
	settled bool    // it is known
}

type spacePoint struct {
	at   time.Time
	left float64 // bytes
}

const (
	fillEvery = time.Minute
	fillLong  = 6 * time.Hour
	fillShort = 30 * time.Minute
	fillGap   = 10 * time.Minute // a longer gap begins anew
)

// see takes what is left.
func (f *filling) see(at time.Time, left float64) {
	if n := len(f.points); n > 0 {
		switch passed := at.Sub(f.points[n-1].at); {
		case passed < 0 || passed > fillGap:
			f.points = nil
		case passed < fillEvery:
			return
		}
	}
	f.points = append(f.points, spacePoint{at, left})
	if at.Sub(f.points[0].at) > fillLong {
		f.points = f.points[1:]
	}
	f.perSec, f.settled = f.work()
}

// rate is by how many bytes a second the file system fills; false if it was not looked at for long enough.
func (f *filling) rate() (float64, bool) { return f.perSec, f.settled }

func (f *filling) work() (float64, bool) {
	n := len(f.points)
	if n < 2 || f.points[n-1].at.Sub(f.points[0].at) < fillShort {
		return 0, false
	}
	i := slices.IndexFunc(f.points, func(p spacePoint) bool { return f.points[n-1].at.Sub(p.at) <= fillShort })
	return min(slope(f.points), slope(f.points[i:])), true
}

// slope is the rate over some points.
func slope(points []spacePoint) float64 {
	if len(points) < 2 {
		return 0
	}
	points = withoutStep(points)
	stride := max(len(points)/60, 1) // some thousand pairs are enough
	var all []float64
	for i := 0; i < len(points); i += stride {
		for k := i + 1; k < len(points); k += stride {
			all = append(all, (points[i].left-points[k].left)/points[k].at.Sub(points[i].at).Seconds())
		}
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// withoutStep takes out what was freed at once, if that happened once.
func withoutStep(points []spacePoint) []spacePoint {
	step, size := -1, 0.0
	steps := 0
	var moves []float64
	for i := 1; i < len(points); i++ {
		moves = append(moves, max(points[i-1].left-points[i].left, points[i].left-points[i-1].left))
	}
	slices.Sort(moves)
	usual := moves[len(moves)/2]
	for i := 1; i < len(points); i++ {
		if freed := points[i].left - points[i-1].left; freed > 3*usual {
			step, size = i, freed
			steps++
		}
	}
	if steps != 1 {
		return points
	}
	out := slices.Clone(points)
	for i := step; i < len(out); i++ {
		out[i].left -= size
	}
	return out
}

// diskTrend finds file systems that will be full within a day if they go on as they do.
func diskTrend(r *round) {
	const warning, critical = 24 * time.Hour, 2 * time.Hour
	for _, key := range r.keys(sizeMetric) {
		rest := labels(key, sizeMetric)
		left, ok := r.value(availMetric + rest)
		if ro, known := r.value(readonlyMetric + rest); !ok || known && ro == 1 {
			continue
		}
		f := r.j.spaces[key]
		if f == nil {
			f = &filling{}
			r.j.spaces[key] = f
		}
		f.see(r.Now, left)
		rate, ok := f.rate()
		if !ok || rate <= 0 {
			continue
		}
		until := left / rate
		if until > warning.Seconds() {
			continue
		}
		point := label(key, "mountpoint")
		c := candidate{id: "disk.trend", subject: point, severity: fleet.SeverityWarning, value: rate * 3600 / (1 << 20), chart: "disk_space",
			remedy: "du -xh --max-depth=2 " + fleet.ShellWord(point) + " | sort -h | tail -20",
			head:   point + " is filling up", tail: fmt.Sprintf(": full in %s if it goes on like this, with %s left and %s more an hour", digits.Age(until), digits.Bytes(left), digits.Bytes(rate*3600))}
		if until < critical.Seconds() {
			c.severity = fleet.SeverityCritical
		}
		r.add(c)
	}
}
