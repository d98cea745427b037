package geo

import "math"

// radius is that of the sphere of Web Mercator in metres. Source: EPSG:3857.
const radius = 6378137.0

// mostMercator is the latitude at which Web Mercator's square ends.
const mostMercator = 85.05112877980659

// FromMercator is the longitude and latitude of a point in metres of Web Mercator (EPSG:3857).
func FromMercator(p Point) Point {
	return Point{p[0] / radius * 180 / math.Pi, (2*math.Atan(math.Exp(p[1]/radius)) - math.Pi/2) * 180 / math.Pi}
}

// ToMercator is the point in metres of Web Mercator of a longitude and a latitude; beyond 85.05° of latitude there is none, and it is that.
func ToMercator(p Point) Point {
	lat := max(-mostMercator, min(mostMercator, p[1])) * math.Pi / 180
	return Point{p[0] * math.Pi / 180 * radius, math.Log(math.Tan(math.Pi/4+lat/2)) * radius}
}

// Mercator reports whether a SRID is Web Mercator's, under its name or one of those before it had one.
func Mercator(srid uint32) bool {
	return srid == 3857 || srid == 900913 || srid == 3785 || srid == 102100 || srid == 102113
}

// degrees reports whether all points of a geometry may be longitudes and latitudes.
func (g *Geometry) degrees() bool {
	ok := true
	g.Each(func(p *Point) { ok = ok && math.Abs(p[0]) <= 180 && math.Abs(p[1]) <= 90 })
	return ok
}

// area is that of a ring, above 0 if it goes against the clock.
func area(ring []Point) float64 {
	sum := 0.0
	for i, p := range ring {
		q := ring[(i+1)%len(ring)]
		sum += p[0]*q[1] - q[0]*p[1]
	}
	return sum / 2
}

// Normal is the geometry as RFC 7946 wants it: outer rings against the clock, holes with it, and what crosses the antimeridian cut there
// (sections 3.1.6 and 3.1.9). The shorter way around the world is taken between two points, as on a globe. cut: something was;
// pole: a ring goes around a pole, and is left as it is.
func (g Geometry) Normal() (_ Geometry, cut, pole bool) {
	switch g.Kind {
	case KindLineString:
		lines := cutLine(g.Line)
		if len(lines) == 1 {
			g.Line = lines[0]
			return g, false, false
		}
		out := Geometry{Kind: KindMultiLineString, SRID: g.SRID}
		for _, l := range lines {
			out.Parts = append(out.Parts, Geometry{Kind: KindLineString, Line: l})
		}
		return out, len(lines) > 1, false
	case KindPolygon:
		parts, cut, pole := cutPolygon(g.Rings)
		if !cut {
			g.Rings = wound(g.Rings)
			return g, false, pole
		}
		out := Geometry{Kind: KindMultiPolygon, SRID: g.SRID}
		for _, rings := range parts {
			out.Parts = append(out.Parts, Geometry{Kind: KindPolygon, Rings: wound(rings)})
		}
		return out, true, pole
	}
	out := Geometry{Kind: g.Kind, SRID: g.SRID, Line: g.Line}
	for _, p := range g.Parts {
		n, c, at := p.Normal()
		cut, pole = cut || c, pole || at
		if g.Kind != KindCollection && n.Kind == g.Kind { // a part that was cut is several
			out.Parts = append(out.Parts, n.Parts...)
		} else {
			out.Parts = append(out.Parts, n)
		}
	}
	return out, cut, pole
}

// wound turns rings as RFC 7946 wants them.
func wound(rings [][]Point) [][]Point {
	out := make([][]Point, len(rings))
	for i, r := range rings {
		out[i] = r
		if a := area(r); (i == 0) != (a > 0) && a != 0 {
			back := make([]Point, len(r))
			for k, p := range r {
				back[len(r)-1-k] = p
			}
			out[i] = back
		}
	}
	return out
}

// unwrap lets longitudes go on beyond ±180°, so that no two neighbours are further than half the world apart.
func unwrap(line []Point) []Point {
	out := make([]Point, len(line))
	shift := 0.0
	for i, p := range line {
		if i > 0 {
			switch d := p[0] - line[i-1][0]; {
			case d > 180:
				shift -= 360
			case d < -180:
				shift += 360
			}
		}
		out[i] = Point{p[0] + shift, p[1]}
	}
	return out
}

// world is the number of the turn around the world in which a longitude is: 0 from -180° to 180°.
func world(lon float64) float64 { return math.Floor((lon + 180) / 360) }

func cutLine(line []Point) [][]Point {
	if len(line) == 0 {
		return [][]Point{nil}
	}
	open := unwrap(line)
	var out [][]Point
	var now []Point
	in := 0.0
	for i, p := range open {
		if i == 0 {
			in = world(p[0])
			if p[0] == 180 {
				in = 0
			}
		}
		for p[0] < in*360-180 || p[0] > in*360+180 {
			edge, to := in*360+180, in+1
			if p[0] < in*360-180 {
				edge, to = in*360-180, in-1
			}
			from := open[i-1]
			if n := len(now); n > 0 {
				from = Point{now[n-1][0] + in*360, now[n-1][1]}
			}
			at := Point{edge, from[1]}
			if p[0] != from[0] {
				at[1] = from[1] + (p[1]-from[1])*(edge-from[0])/(p[0]-from[0])
			}
			if end := (Point{edge - in*360, at[1]}); len(now) == 0 || now[len(now)-1] != end {
				now = append(now, end)
			}
			if len(now) > 1 {
				out = append(out, now)
			}
			in = to
			now = []Point{{edge - in*360, at[1]}}
		}
		now = append(now, Point{p[0] - in*360, p[1]})
	}
	if len(now) > 1 || len(out) == 0 {
		out = append(out, now)
	}
	return out
}

// cutPolygon cuts a polygon at the antimeridian. One that goes around a pole stays as it is.
func cutPolygon(rings [][]Point) (parts [][][]Point, cut, pole bool) {
	if len(rings) == 0 || len(rings[0]) == 0 {
		return nil, false, false
	}
	open := make([][]Point, len(rings))
	for i, r := range rings {
		if len(r) == 0 {
			continue
		}
		open[i] = unwrap(r)
		if math.Abs(open[i][0][0]-open[i][len(r)-1][0]) > 180 {
			return nil, false, true
		}
	}
	low, high := span(open[0])
	if low >= -180 && high <= 180 {
		return nil, false, false
	}
	for i := range open { // holes into the turn of the outer ring
		if i == 0 || len(open[i]) == 0 {
			continue
		}
		l, h := span(open[i])
		shift := 360 * math.Round(((low+high)-(l+h))/720)
		for k := range open[i] {
			open[i][k][0] += shift
		}
	}
	for n := world(low); n*360-180 < high; n++ {
		var part [][]Point
		for i, r := range open {
			c := clip(clip(r, n*360-180, 1), n*360+180, -1)
			if len(c) < 4 {
				if i == 0 {
					break
				}
				continue
			}
			for k := range c {
				c[k][0] -= n * 360
			}
			part = append(part, c)
		}
		if len(part) > 0 {
			parts = append(parts, part)
		}
	}
	return parts, true, false
}

// span is how far a line goes to the west and to the east.
func span(line []Point) (low, high float64) {
	low, high = line[0][0], line[0][0]
	for _, p := range line {
		low, high = min(low, p[0]), max(high, p[0])
	}
	return low, high
}

// clip keeps of a closed ring what is east (side 1) or west (side -1) of a meridian. Source: Sutherland, Hodgman, "Reentrant Polygon
// Clipping", 1974.
func clip(ring []Point, lon, side float64) (out []Point) {
	in := func(p Point) bool { return (p[0]-lon)*side >= 0 }
	for i, p := range ring {
		if i > 0 && in(p) != in(ring[i-1]) {
			q := ring[i-1]
			out = append(out, Point{lon, q[1] + (p[1]-q[1])*(lon-q[0])/(p[0]-q[0])})
		}
		if in(p) {
			out = append(out, p)
		}
	}
	if n := len(out); n > 0 && out[0] != out[n-1] {
		out = append(out, out[0])
	}
	return out
}
