// Package geo makes maps of statements' results: geometry as servers keep it is decoded, brought to degrees, and written as GeoJSON, KML, a
// drawing or a page; and it finds what is wrong with geometry columns and the statements that search them. Decode, the writers and Check
// are pure; Select, Facts and Statements ask a server.
package geo

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Kind is the type of a geometry, as WKB numbers them.
type Kind uint32

// The kinds. Source: OGC 06-103r4, "Well-known Binary Representation".
const (
	KindPoint Kind = iota + 1
	KindLineString
	KindPolygon
	KindMultiPoint
	KindMultiLineString
	KindMultiPolygon
	KindCollection
)

var kindNames = map[Kind]string{KindPoint: "Point", KindLineString: "LineString", KindPolygon: "Polygon", KindMultiPoint: "MultiPoint",
	KindMultiLineString: "MultiLineString", KindMultiPolygon: "MultiPolygon", KindCollection: "GeometryCollection"}

func (k Kind) String() string { return kindNames[k] }

// Point is x and y: longitude and latitude, if they are degrees.
type Point [2]float64

// Geometry is one geometry.
type Geometry struct {
	Kind  Kind
	SRID  uint32     // of the outermost one
	Line  []Point    // of a Point (none: empty) and of a LineString
	Rings [][]Point  // of a Polygon, the outer one first
	Parts []Geometry // of all others
}

// ErrGeometry is what errors of Decode wrap.
var ErrGeometry = errors.New("not a geometry that can be drawn")

// deepest is how deep collections may be in collections.
const deepest = 32

// Decode reads a geometry as MySQL and MariaDB keep and send it: four bytes of SRID, the lowest first, and WKB of either byte order. Coordinates
// stay in the order in which they are there. Sources: MySQL manual, "Internal Geometry Storage Format"; OGC 06-103r4.
func Decode(b []byte) (Geometry, error) {
	if len(b) < 4 {
		return Geometry{}, fmt.Errorf("%w: %d bytes", ErrGeometry, len(b))
	}
	d := decoder{b: b[4:]}
	g, err := d.geometry(0)
	if err == nil && len(d.b) > 0 {
		err = fmt.Errorf("%w: %d bytes too many", ErrGeometry, len(d.b))
	}
	g.SRID = binary.LittleEndian.Uint32(b)
	return g, err
}

type decoder struct {
	b     []byte
	order binary.ByteOrder
}

func (d *decoder) uint32() (uint32, error) {
	if len(d.b) < 4 {
		return 0, fmt.Errorf("%w: it is cut short", ErrGeometry)
	}
	n := d.order.Uint32(d.b)
	d.b = d.b[4:]
	return n, nil
}

// count reads a number of things, each of which takes so many bytes at least.
func (d *decoder) count(each int) (int, error) {
	n, err := d.uint32()
	if err == nil && int64(n)*int64(each) > int64(len(d.b)) {
		err = fmt.Errorf("%w: it is cut short", ErrGeometry)
	}
	return int(n), err
}

func (d *decoder) point() (Point, error) {
	if len(d.b) < 16 {
		return Point{}, fmt.Errorf("%w: it is cut short", ErrGeometry)
	}
	p := Point{math.Float64frombits(d.order.Uint64(d.b)), math.Float64frombits(d.order.Uint64(d.b[8:]))}
	d.b = d.b[16:]
	return p, nil
}

func (d *decoder) points() ([]Point, error) {
	n, err := d.count(16)
	if err != nil {
		return nil, err
	}
	out := make([]Point, n)
	for i := range out {
		if out[i], err = d.point(); err != nil {
			return nil, err
		}
		if !finite(out[i]) {
			return nil, fmt.Errorf("%w: a coordinate is no number", ErrGeometry)
		}
	}
	return out, nil
}

func finite(p Point) bool {
	return !math.IsNaN(p[0]) && !math.IsNaN(p[1]) && !math.IsInf(p[0], 0) && !math.IsInf(p[1], 0)
}

func (d *decoder) geometry(depth int) (g Geometry, err error) {
	if depth > deepest {
		return g, fmt.Errorf("%w: collections in collections, more than %d deep", ErrGeometry, deepest)
	}
	if len(d.b) == 0 {
		return g, fmt.Errorf("%w: it is cut short", ErrGeometry)
	}
	switch d.b[0] {
	case 0:
		d.order = binary.BigEndian
	case 1:
		d.order = binary.LittleEndian
	default:
		return g, fmt.Errorf("%w: its byte order is %d", ErrGeometry, d.b[0])
	}
	d.b = d.b[1:]
	n, err := d.uint32()
	if err != nil {
		return g, err
	}
	g.Kind = Kind(n)
	switch {
	case n&0xE0000000 != 0 || n >= 1000 && n < 4000: // PostGIS marks them in the highest bits, ISO by thousands
		return g, fmt.Errorf("%w: it has Z or M, and neither MySQL nor MariaDB keeps those", ErrGeometry)
	case n < uint32(KindPoint) || n > uint32(KindCollection):
		return g, fmt.Errorf("%w: its type is %d", ErrGeometry, n)
	case g.Kind == KindPoint:
		p, err := d.point()
		if err == nil && finite(p) { // an empty one is no numbers
			g.Line = []Point{p}
		}
		return g, err
	case g.Kind == KindLineString:
		g.Line, err = d.points()
		return g, err
	}
	return g, d.parts(&g, depth)
}

func (d *decoder) parts(g *Geometry, depth int) error {
	if g.Kind == KindPolygon {
		n, err := d.count(4)
		if err != nil {
			return err
		}
		for range n {
			ring, err := d.points()
			if err != nil {
				return err
			}
			g.Rings = append(g.Rings, ring)
		}
		return nil
	}
	n, err := d.count(5)
	if err != nil {
		return err
	}
	for range n {
		part, err := d.geometry(depth + 1)
		if err != nil {
			return err
		}
		if g.Kind != KindCollection && part.Kind != g.Kind-3 {
			return fmt.Errorf("%w: a %s in a %s", ErrGeometry, part.Kind, g.Kind)
		}
		g.Parts = append(g.Parts, part)
	}
	return nil
}

// Empty reports whether it has no points.
func (g *Geometry) Empty() bool {
	empty := true
	g.Each(func(*Point) { empty = false })
	return empty
}

// Each calls f with each point, which it may change.
func (g *Geometry) Each(f func(*Point)) {
	for i := range g.Line {
		f(&g.Line[i])
	}
	for _, r := range g.Rings {
		for i := range r {
			f(&r[i])
		}
	}
	for i := range g.Parts {
		g.Parts[i].Each(f)
	}
}

// WKB is the geometry without its SRID, the lowest bytes first.
func (g *Geometry) WKB(b []byte) []byte {
	le := binary.LittleEndian
	b = le.AppendUint32(append(b, 1), uint32(g.Kind))
	point := func(p Point) {
		b = le.AppendUint64(le.AppendUint64(b, math.Float64bits(p[0])), math.Float64bits(p[1]))
	}
	switch g.Kind {
	case KindPoint:
		if len(g.Line) == 0 {
			point(Point{math.NaN(), math.NaN()})
			return b
		}
		point(g.Line[0])
	case KindLineString:
		b = le.AppendUint32(b, uint32(len(g.Line)))
		for _, p := range g.Line {
			point(p)
		}
	case KindPolygon:
		b = le.AppendUint32(b, uint32(len(g.Rings)))
		for _, r := range g.Rings {
			b = le.AppendUint32(b, uint32(len(r)))
			for _, p := range r {
				point(p)
			}
		}
	default:
		b = le.AppendUint32(b, uint32(len(g.Parts)))
		for i := range g.Parts {
			b = g.Parts[i].WKB(b)
		}
	}
	return b
}
