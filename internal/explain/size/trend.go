package size

import (
	"slices"
	"time"
)

// Point is how large something was.
type Point struct {
	At    time.Time `json:"at"`
	Bytes float64   `json:"bytes"`
}

// Growth is how fast data grows, as Risso has seen it.
type Growth struct {
	Of     string     `json:"of"`            // what: OfDisk or OfData
	PerDay float64    `json:"bytes_per_day"` // below 0: it shrinks
	Since  time.Time  `json:"since"`         // from when on it was looked at; zero: not for long enough to say anything
	Until  time.Time  `json:"until"`         // when it was looked at last
	Full   time.Time  `json:"full,omitzero"` // when the disk is full if it goes on like this; zero: not within ten years, or what is left is not known
	Tables []GrowthOf `json:"tables"`        // the ones that grow most, the most first
}

// What a Growth is of.
const (
	OfDisk = "disk" // of all that fills the file system of the data directory
	OfData = "data" // of the tables that Risso follows, as the server estimates them, and the binary logs
)

// GrowthOf is how fast one table grows.
type GrowthOf struct {
	Schema string  `json:"schema"`
	Name   string  `json:"name"`
	PerDay float64 `json:"bytes_per_day"` // of rows and indexes, as the server estimates
}

// Least that a trend is made of.
const (
	leastPoints = 6
	leastSpan   = time.Hour
)

// Trend is by how many bytes a day something grows: the median of the slopes between all pairs of points (Theil and Sen), which a few that
// lie elsewhere, such as after a purge, do not move. ok is false for too few points, or less than an hour of them.
func Trend(points []Point) (perDay float64, ok bool) {
	if len(points) < leastPoints || points[len(points)-1].At.Sub(points[0].At) < leastSpan {
		return 0, false
	}
	stride := max(len(points)/100, 1) // some thousand pairs are enough
	var slopes []float64
	for i := 0; i < len(points); i += stride {
		for k := i + stride; k < len(points); k += stride {
			if days := points[k].At.Sub(points[i].At).Hours() / 24; days > 0 {
				slopes = append(slopes, (points[k].Bytes-points[i].Bytes)/days)
			}
		}
	}
	if len(slopes) == 0 {
		return 0, false
	}
	slices.Sort(slopes)
	return slopes[len(slopes)/2], true
}

// farAway is from where on it does not matter when a disk is full.
const farAway = 10 * 365 * 24 * time.Hour

// FullAt is when a disk with so many bytes left is full; zero: never, or not for ten years.
func FullAt(now time.Time, left, perDay float64) time.Time {
	if perDay <= 0 {
		return time.Time{}
	}
	days := left / perDay
	if days > farAway.Hours()/24 {
		return time.Time{}
	}
	return now.Add(time.Duration(days * 24 * float64(time.Hour)))
}

// Grown adds to a report how fast its server's data grows, and says so in its words.
func Grown(r *Report, g *Growth) {
	r.Growth = g
	if r.Disk != nil && !g.Since.IsZero() {
		g.Full = FullAt(r.At, float64(r.Disk.Left), g.PerDay)
	}
	r.Words = Words(r)
}
