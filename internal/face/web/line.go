package web

import (
	"net/http"

	"github.com/rissodb/risso/internal/store/series"
)

// line turns the buckets of one series into columns; with a step of one second a bucket is one value.
func line(b series.Bands, unit string) chartLine {
	l := chartLine{Key: b.Key, Type: typeWord(b.Type == series.Counter), Unit: unit, Avg: nums(b.Avg)}
	if b.Step > 1 {
		l.N, l.Min, l.Max, l.P5, l.P50, l.P95 = b.N, nums(b.Min), nums(b.Max), nums(b.P5), nums(b.P50), nums(b.P95)
	}
	return l
}

// self is what Risso itself costs.
func (s *server) self(*http.Request) (any, error) {
	return s.Live.Self(), nil
}
