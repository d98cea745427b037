package geo

import (
	"encoding/json"
	"math"
	"slices"
)

// Map is what a statement's result is on a map.
type Map struct {
	Title    string
	Plane    bool // coordinates are no degrees, and could not be made any: there is only a drawing
	SRIDs    []uint32
	Features []Feature
	Notes    []string // what was left out, cut or not known, in sentences
}

// Feature is a row.
type Feature struct {
	Geometry   *Geometry // nil: NULL
	Properties []Property
}

// Property is the value of another column.
type Property struct {
	Name  string
	Value json.RawMessage
}

// Text is the value as people read it: texts without quotes.
func (p Property) Text() string {
	var s string
	if json.Unmarshal(p.Value, &s) == nil && len(p.Value) > 0 && p.Value[0] == '"' {
		return s
	}
	return string(p.Value)
}

// Bounds are where the features are: west, south, east, north. If they are around the antimeridian, west is above east (RFC 7946, section
// 5.2). ok is false if there is no point.
func (m *Map) Bounds() (b [4]float64, ok bool) {
	b = [4]float64{math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)}
	var spans [][2]float64 // of longitudes
	for _, f := range m.Features {
		if f.Geometry != nil {
			f.Geometry.spans(&spans, &b)
		}
	}
	if len(spans) == 0 {
		return b, false
	}
	if m.Plane {
		return b, true
	}
	slices.SortFunc(spans, func(x, y [2]float64) int {
		if x[0] < y[0] {
			return -1
		}
		return 1
	})
	// The widest gap between the features is outside: in the middle, or around the back of the map.
	gap, west, east, reach := spans[0][0]+360-b[2], b[0], b[2], spans[0][1]
	for _, s := range spans[1:] {
		if d := s[0] - reach; d > gap+1e-9 {
			gap, west, east = d, s[0], reach
		}
		reach = max(reach, s[1])
	}
	b[0], b[2] = west, east
	return b, true
}

// spans adds how far the parts go to the west and the east, and widens bounds.
func (g *Geometry) spans(list *[][2]float64, b *[4]float64) {
	add := func(line []Point) {
		if len(line) == 0 {
			return
		}
		low, high := span(line)
		*list = append(*list, [2]float64{low, high})
		for _, p := range line {
			*b = [4]float64{min(b[0], p[0]), min(b[1], p[1]), max(b[2], p[0]), max(b[3], p[1])}
		}
	}
	add(g.Line)
	for _, r := range g.Rings {
		add(r)
	}
	for i := range g.Parts {
		g.Parts[i].spans(list, b)
	}
}
