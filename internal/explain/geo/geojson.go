package geo

import (
	"bufio"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/fleet"
)

// ErrPlane is what GeoJSON and KML of coordinates that are no degrees end with.
var ErrPlane = fleet.WithRemedy(errors.New("the coordinates are no longitudes and latitudes, and this server cannot make them any"),
	"SELECT ST_Transform(…, 4326) on a server that knows their SRID, or --output svg, which draws them as they are")

// number is a coordinate: a centimetre is the seventh digit of a degree.
func coordinate(v float64) string {
	v = math.Round(v*1e7) / 1e7
	if v == 0 {
		v = 0 // and no -0
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// WriteGeoJSON writes a FeatureCollection as RFC 7946 has it. Notes are a foreign member of it (section 6.1), if there are any.
func (m *Map) WriteGeoJSON(w io.Writer) error {
	if m.Plane {
		return ErrPlane
	}
	b := bufio.NewWriter(w)
	b.WriteString(`{"type":"FeatureCollection"`)
	if box, ok := m.Bounds(); ok {
		fmt.Fprintf(b, `,"bbox":[%s,%s,%s,%s]`, coordinate(box[0]), coordinate(box[1]), coordinate(box[2]), coordinate(box[3]))
	}
	if len(m.Notes) > 0 {
		notes, err := json.Marshal(m.Notes)
		if err != nil {
			return err
		}
		b.WriteString(`,"notes":` + string(notes))
	}
	b.WriteString(",\"features\":[")
	for i, f := range m.Features {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n" + `{"type":"Feature","geometry":`)
		if f.Geometry == nil {
			b.WriteString("null")
		} else {
			b.Write(f.Geometry.appendJSON(nil))
		}
		b.WriteString(`,"properties":`)
		b.Write(f.appendProperties(nil))
		b.WriteByte('}')
	}
	b.WriteString("\n]}\n")
	return b.Flush()
}

func (f Feature) appendProperties(b []byte) []byte {
	b = append(b, '{')
	for i, p := range f.Properties {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := json.Marshal(p.Name)
		if err != nil {
			name = []byte(`""`)
		}
		b = append(append(append(b, name...), ':'), p.Value...)
	}
	return append(b, '}')
}

// appendJSON appends a geometry object of GeoJSON.
func (g *Geometry) appendJSON(b []byte) []byte {
	b = append(b, `{"type":"`+g.Kind.String()+`",`...)
	if g.Kind == KindCollection {
		b = append(b, `"geometries":[`...)
		for i := range g.Parts {
			if i > 0 {
				b = append(b, ',')
			}
			b = g.Parts[i].appendJSON(b)
		}
		return append(b, "]}"...)
	}
	b = append(b, `"coordinates":`...)
	return append(g.appendCoordinates(b), '}')
}

func (g *Geometry) appendCoordinates(b []byte) []byte {
	switch g.Kind {
	case KindPoint:
		if len(g.Line) == 0 {
			return append(b, "[]"...)
		}
		return appendPoint(b, g.Line[0])
	case KindLineString:
		return appendLine(b, g.Line)
	case KindPolygon:
		b = append(b, '[')
		for i, r := range g.Rings {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendLine(b, r)
		}
		return append(b, ']')
	}
	b = append(b, '[')
	for i := range g.Parts {
		if i > 0 {
			b = append(b, ',')
		}
		b = g.Parts[i].appendCoordinates(b)
	}
	return append(b, ']')
}

func appendLine(b []byte, line []Point) []byte {
	b = append(b, '[')
	for i, p := range line {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendPoint(b, p)
	}
	return append(b, ']')
}

func appendPoint(b []byte, p Point) []byte {
	return append(b, "["+coordinate(p[0])+","+coordinate(p[1])+"]"...)
}

// WriteKML writes placemarks as OGC KML 2.2 has them; the other columns are their ExtendedData, the first text among them their name.
func (m *Map) WriteKML(w io.Writer) error {
	if m.Plane {
		return ErrPlane
	}
	b := bufio.NewWriter(w)
	b.WriteString(xml.Header + `<kml xmlns="http://www.opengis.net/kml/2.2"><Document><name>` + escaped(m.Title) + "</name>\n")
	if len(m.Notes) > 0 {
		b.WriteString("<description>" + escaped(strings.Join(m.Notes, " ")) + "</description>\n")
	}
	for _, f := range m.Features {
		b.WriteString("<Placemark>")
		if name := f.Name(); name != "" {
			b.WriteString("<name>" + escaped(name) + "</name>")
		}
		if len(f.Properties) > 0 {
			b.WriteString("<ExtendedData>")
			for _, p := range f.Properties {
				b.WriteString(`<Data name="` + escaped(p.Name) + `"><value>` + escaped(p.Text()) + "</value></Data>")
			}
			b.WriteString("</ExtendedData>")
		}
		if f.Geometry != nil && !f.Geometry.Empty() {
			f.Geometry.writeKML(b)
		}
		b.WriteString("</Placemark>\n")
	}
	b.WriteString("</Document></kml>\n")
	return b.Flush()
}

// escaped is a text for XML: what XML cannot have is U+FFFD.
func escaped(s string) string {
	var b strings.Builder
	if err := xml.EscapeText(&b, []byte(s)); err != nil { // a Builder takes all
		return ""
	}
	return b.String()
}

// Name is what a feature is called: its first property that is a text and not empty, or else its first.
func (f Feature) Name() string {
	for _, p := range f.Properties {
		if len(p.Value) > 2 && p.Value[0] == '"' {
			return p.Text()
		}
	}
	if len(f.Properties) > 0 {
		return f.Properties[0].Text()
	}
	return ""
}

func (g *Geometry) writeKML(b *bufio.Writer) {
	line := func(points []Point) {
		b.WriteString("<coordinates>")
		for i, p := range points {
			if i > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(coordinate(p[0]) + "," + coordinate(p[1]))
		}
		b.WriteString("</coordinates>")
	}
	switch g.Kind {
	case KindPoint:
		b.WriteString("<Point>")
		line(g.Line)
		b.WriteString("</Point>")
	case KindLineString:
		b.WriteString("<LineString><tessellate>1</tessellate>")
		line(g.Line)
		b.WriteString("</LineString>")
	case KindPolygon:
		b.WriteString("<Polygon>")
		for i, r := range g.Rings {
			side := "innerBoundaryIs"
			if i == 0 {
				side = "outerBoundaryIs"
			}
			b.WriteString("<" + side + "><LinearRing>")
			line(r)
			b.WriteString("</LinearRing></" + side + ">")
		}
		b.WriteString("</Polygon>")
	default:
		b.WriteString("<MultiGeometry>")
		for i := range g.Parts {
			if !g.Parts[i].Empty() {
				g.Parts[i].writeKML(b)
			}
		}
		b.WriteString("</MultiGeometry>")
	}
}
