package geo

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
)

// internal is a geometry as servers keep it.
func internal(srid uint32, g Geometry) []byte {
	return g.WKB(binary.LittleEndian.AppendUint32(nil, srid))
}

func ring(pairs ...float64) (out []Point) {
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, Point{pairs[i], pairs[i+1]})
	}
	return out
}

func point(x, y float64) Geometry { return Geometry{Kind: KindPoint, Line: ring(x, y)} }

func all() []Geometry {
	line := Geometry{Kind: KindLineString, Line: ring(0, 0, 1, 2, -3.5, 4)}
	area := Geometry{Kind: KindPolygon, Rings: [][]Point{ring(0, 0, 10, 0, 10, 10, 0, 10, 0, 0), ring(2, 2, 2, 4, 4, 4, 4, 2, 2, 2)}}
	list := []Geometry{point(1, 2), {Kind: KindPoint}, line, area,
		{Kind: KindMultiPoint, Parts: []Geometry{point(1, 2), point(3, 4)}}, {Kind: KindMultiLineString, Parts: []Geometry{line, line}},
		{Kind: KindMultiPolygon, Parts: []Geometry{area, area}}, {Kind: KindCollection}}
	return append(list, Geometry{Kind: KindCollection, Parts: append([]Geometry{{Kind: KindCollection, Parts: []Geometry{line}}}, list...)})
}

func TestDecode(t *testing.T) {
	for _, want := range all() {
		got, err := Decode(internal(4326, want))
		if err != nil {
			t.Errorf("%s: %v", want.Kind, err)
			continue
		}
		if got.SRID != 4326 || !bytes.Equal(got.WKB(nil), want.WKB(nil)) {
			t.Errorf("%s: got %+v; want %+v", want.Kind, got, want)
		}
		b := internal(0, want)
		for n := range b { // a part of it is none, and no panic
			if _, err := Decode(b[:n]); err == nil {
				t.Errorf("%s: %d of %d bytes are a geometry; want an error", want.Kind, n, len(b))
			}
		}
		if _, err := Decode(append(b, 0)); !errors.Is(err, ErrGeometry) {
			t.Errorf("%s and a byte more: got %v; want ErrGeometry", want.Kind, err)
		}
	}
	big, err := hex.DecodeString("E6100000" + "00" + "00000002" + "00000002" + "3FF0000000000000" + "4000000000000000" + "4008000000000000" + "4010000000000000")
	if err != nil {
		t.Fatal(err)
	}
	if g, err := Decode(big); err != nil || g.Line[1] != (Point{3, 4}) {
		t.Errorf("the highest bytes first: got %v, %v; want a line to 3 4", g, err)
	}
	for of, wkb := range map[string]string{"Z of ISO": "01E9030000", "M of PostGIS": "0101000040", "an unknown type": "0111000000", "a byte order of 2": "0201000000", "a count without bytes": "0102000000FFFFFFFF", "a line in a MultiPoint": "010400000001000000010200000000000000"} {
		b, err := hex.DecodeString("00000000" + wkb)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Decode(b); !errors.Is(err, ErrGeometry) {
			t.Errorf("%s: got %v; want ErrGeometry", of, err)
		}
	}
	deep := point(1, 1)
	for range 100 {
		deep = Geometry{Kind: KindCollection, Parts: []Geometry{deep}}
	}
	if _, err := Decode(internal(0, deep)); !errors.Is(err, ErrGeometry) {
		t.Errorf("100 collections in one another: got %v; want ErrGeometry", err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, g := range all() {
		f.Add(internal(0, g))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := Decode(b)
		if err != nil {
			return
		}
		again, err := Decode(internal(g.SRID, g))
		if err != nil || !bytes.Equal(again.WKB(nil), g.WKB(nil)) {
			t.Fatalf("%x: written and read again it is %+v, %v", b, again, err)
		}
		m := Map{Features: []Feature{{Geometry: &g}}, Plane: !g.degrees()}
		if !m.Plane {
			m.normalize()
		}
		for _, write := range []func(io.Writer) error{m.WriteGeoJSON, m.WriteKML, m.WriteSVG} {
			if err := write(io.Discard); err != nil && !errors.Is(err, ErrPlane) {
				t.Fatal(err)
			}
		}
	})
}

func TestMercator(t *testing.T) {
	// Source of the first: EPSG guidance note 7-2, section 1.3.3.2, "Popular Visualisation Pseudo Mercator".
	for _, c := range []struct{ degrees, metres Point }{{Point{-100.33333333333333, 24.381786944444446}, Point{-11169055.58, 2800000.00}}, {Point{0, 0}, Point{0, 0}}, {Point{180, 0}, Point{20037508.34, 0}}} {
		if got := ToMercator(c.degrees); math.Abs(got[0]-c.metres[0]) > 0.01 || math.Abs(got[1]-c.metres[1]) > 0.01 {
			t.Errorf("%v: got %v; want %v", c.degrees, got, c.metres)
		}
		if got := FromMercator(c.metres); math.Abs(got[0]-c.degrees[0]) > 1e-6 || math.Abs(got[1]-c.degrees[1]) > 1e-6 {
			t.Errorf("%v: got %v; want %v", c.metres, got, c.degrees)
		}
	}
}

// text is a geometry as GeoJSON.
func text(g Geometry) string { return string(g.appendJSON(nil)) }

func TestNormal(t *testing.T) {
	square := ring(0, 0, 0, 10, 10, 10, 10, 0, 0, 0) // with the clock
	hole := ring(2, 2, 4, 2, 4, 4, 2, 4, 2, 2)       // against it
	for _, c := range []struct {
		name string
		of   Geometry
		want string
		cut  bool
		pole bool
	}{
		{"rings are turned", Geometry{Kind: KindPolygon, Rings: [][]Point{square, hole}}, `{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]],[[2,2],[2,4],[4,4],[4,2],[2,2]]]}`, false, false},
		{"a line over the antimeridian", Geometry{Kind: KindLineString, Line: ring(170, 10, -170, 20)}, `{"type":"MultiLineString","coordinates":[[[170,10],[180,15]],[[-180,15],[-170,20]]]}`, true, false},
		{"and back", Geometry{Kind: KindLineString, Line: ring(-170, 0, 170, 10, -170, 20)}, `{"type":"MultiLineString","coordinates":[[[-170,0],[-180,5]],[[180,5],[170,10],[180,15]],[[-180,15],[-170,20]]]}`, true, false},
		{"a line that ends there", Geometry{Kind: KindLineString, Line: ring(170, 10, 180, 20)}, `{"type":"LineString","coordinates":[[170,10],[180,20]]}`, false, false},
		{"an area over it", Geometry{Kind: KindPolygon, Rings: [][]Point{ring(170, 0, -170, 0, -170, 10, 170, 10, 170, 0)}},
			`{"type":"MultiPolygon","coordinates":[[[[170,0],[180,0],[180,10],[170,10],[170,0]]],[[[-180,0],[-170,0],[-170,10],[-180,10],[-180,0]]]]}`, true, false},
		{"with a hole on one side", Geometry{Kind: KindPolygon, Rings: [][]Point{ring(170, 0, -170, 0, -170, 10, 170, 10, 170, 0), ring(-176, 2, -176, 4, -174, 4, -174, 2, -176, 2)}},
			`{"type":"MultiPolygon","coordinates":[[[[170,0],[180,0],[180,10],[170,10],[170,0]]],[[[-180,0],[-170,0],[-170,10],[-180,10],[-180,0]],[[-176,2],[-176,4],[-174,4],[-174,2],[-176,2]]]]}`, true, false},
		{"around a pole", Geometry{Kind: KindPolygon, Rings: [][]Point{ring(0, 80, 120, 80, -120, 80, 0, 80)}}, `{"type":"Polygon","coordinates":[[[0,80],[120,80],[-120,80],[0,80]]]}`, false, true},
		{"a part that is cut", Geometry{Kind: KindMultiLineString, Parts: []Geometry{{Kind: KindLineString, Line: ring(0, 0, 1, 1)}, {Kind: KindLineString, Line: ring(179, 0, -179, 0)}}},
			`{"type":"MultiLineString","coordinates":[[[0,0],[1,1]],[[179,0],[180,0]],[[-180,0],[-179,0]]]}`, true, false},
	} {
		got, cut, pole := c.of.Normal()
		if cut != c.cut || pole != c.pole {
			t.Errorf("%s: cut %v, pole %v; want %v, %v", c.name, cut, pole, c.cut, c.pole)
		}
		if text := text(got); text != c.want && !pole {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, text, c.want)
		}
	}
}

func TestBounds(t *testing.T) {
	at := func(list ...Geometry) *Map {
		m := &Map{}
		for _, g := range list {
			m.Features = append(m.Features, Feature{Geometry: &g})
		}
		m.normalize()
		return m
	}
	for _, c := range []struct {
		of   *Map
		want string
	}{
		{at(point(13, 52), point(2, 48)), "[2 48 13 52] true"},
		{at(point(177, -16), point(-178, -19)), "[177 -19 -178 -16] true"},
		{at(Geometry{Kind: KindLineString, Line: ring(170, 10, -170, 20)}), "[170 10 -170 20] true"},
		{at(point(-170, 0), point(0, 0), point(170, 0)), "[0 0 -170 0] true"},
		{at(), "[+Inf +Inf -Inf -Inf] false"},
	} {
		if b, ok := c.of.Bounds(); fmt.Sprint(b, ok) != c.want {
			t.Errorf("got %v %v; want %s", b, ok, c.want)
		}
	}
}

// TestWriters: all kinds of geometry and any text make well-formed files.
func TestWriters(t *testing.T) {
	m := Map{Title: `SELECT '<&">' /* 中 */`, Notes: []string{"A <note>."}}
	for _, g := range all() {
		m.Features = append(m.Features, Feature{&g, []Property{{`a "name" <b>`, json.RawMessage(`"</script>\u0000\ud83d\ude00"`)}, {"n", json.RawMessage("null")}, {"d", json.RawMessage("1.50")}}})
	}
	m.Features = append(m.Features, Feature{})
	m.normalize()
	var b bytes.Buffer
	if err := m.WriteGeoJSON(&b); err != nil {
		t.Fatal(err)
	}
	var read struct {
		Type     string
		Bbox     []float64
		Features []struct{ Geometry, Properties map[string]any }
	}
	if err := json.Unmarshal(b.Bytes(), &read); err != nil || read.Type != "FeatureCollection" || len(read.Features) != len(m.Features) || len(read.Bbox) != 4 {
		t.Errorf("GeoJSON: %v, %+v:\n%s", err, read, b.String())
	}
	for name, write := range map[string]func(io.Writer) error{"KML": m.WriteKML, "SVG": m.WriteSVG} {
		b.Reset()
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		d := xml.NewDecoder(&b)
		for {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	b.Reset()
	if err := m.WriteHTML(&b, "1", "https://tiles.example/{z}/{x}/{y}.png"); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, bad := range []string{"<script", "</script", "<note>", "<b>", "\x00"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
	if !strings.Contains(page, "img-src https://tiles.example\"") || !strings.Contains(page, `<image href="https://tiles.example/`) {
		t.Error("the page does not show the server's tiles, or may not")
	}
	b.Reset()
	if err := m.WriteHTML(&b, "1", ""); err != nil || strings.Contains(strings.NewReplacer(`xmlns="http://www.w3.org/2000/svg"`, "", "http-equiv", "").Replace(b.String()), "http") {
		t.Errorf("a page without tiles refers to something elsewhere, or %v", err)
	}
	m.Plane = true
	for name, write := range map[string]func(io.Writer) error{"KML": m.WriteKML, "GeoJSON": m.WriteGeoJSON} {
		if err := write(io.Discard); !errors.Is(err, ErrPlane) {
			t.Errorf("%s of a plane: got %v; want ErrPlane", name, err)
		}
	}
}

func TestLand(t *testing.T) {
	rings, points := land(), 0
	for _, r := range rings {
		points += len(r)
		for _, p := range r {
			if math.Abs(p[0]) > 180 || math.Abs(p[1]) > 90 {
				t.Fatalf("there is land at %v", p)
			}
		}
	}
	if len(rings) < 100 || points < 4000 {
		t.Errorf("%d rings of %d points; want all of the world's", len(rings), points)
	}
}

func TestCheck(t *testing.T) {
	srid := uint32(4326)
	plain := Column{Schema: "s", Table: "t", Name: "g", Type: "point", SRID: &srid}
	of := func(change func(*Column)) []Column {
		c := plain
		change(&c)
		return []Column{c}
	}
	asks := func(list ...string) (out []Statement) {
		for _, s := range list {
			out = append(out, Statement{SQL: s, Schema: "s"})
		}
		return out
	}
	for _, c := range []struct {
		name string
		of   Facts
		want string
	}{
		{"nothing", Facts{RestrictsSRID: true, Columns: of(func(*Column) {})}, ""},
		{"no SRID", Facts{RestrictsSRID: true, Columns: of(func(c *Column) { c.SRID, c.Indexes, c.SRIDs = nil, []string{"k"}, map[uint32]int64{4326: 5} })},
			"gis.no_srid ALTER TABLE `s`.`t` DROP INDEX `k`; ALTER TABLE `s`.`t` MODIFY `g` point NOT NULL SRID 4326, ADD SPATIAL INDEX `k` (`g`)"},
		{"no SRID where there is none", Facts{Columns: of(func(c *Column) { c.SRID = nil })}, ""},
		{"several SRIDs", Facts{RestrictsSRID: true, Columns: of(func(c *Column) { c.SRID, c.SRIDs = nil, map[uint32]int64{4326: 5, 0: 1} })}, "gis.no_srid its rows have several SRIDs: make them one with ST_Transform, then MODIFY the column with that SRID"},
		{"axes", Facts{OrdersAxes: true, Columns: of(func(c *Column) { c.Points, c.Out = 100, 3 })}, "gis.axis_order UPDATE `s`.`t` SET `g` = ST_SwapXY(`g`)"},
		{"no degrees", Facts{Columns: of(func(c *Column) { c.Points, c.Out, c.Beyond = 100, 1, 99 })}, ""},
		{"invalid", Facts{Columns: of(func(c *Column) { c.Checked, c.Invalid = 100, 2 })}, "gis.invalid SELECT * FROM `s`.`t` WHERE NOT ST_IsValid(`g`); some can be mended with ST_Validate or ST_Buffer(`g`, 0)"},
	} {
		var got []string
		for _, f := range Check(c.of) {
			if f.Object != "s.t.g" || f.What == "" || f.Why == "" {
				t.Errorf("%s: %+v lacks something", c.name, f)
			}
			got = append(got, f.ID+" "+f.Remedy)
		}
		if text := strings.Join(got, "\n"); text != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, text, c.want)
		}
	}
	for sql, want := range map[string]string{
		"SELECT * FROM t WHERE ST_Distance(g, POINT(1, 2)) < 5":                                CheckFunction,
		"SELECT * FROM t WHERE ST_Distance_Sphere ( `g` , ? ) < ? AND `id` > ?":                CheckFunction,
		"SELECT * FROM t WHERE MBRContains(?, g) AND ST_Distance(g, ?) < 5":                    "",
		"SELECT * FROM t WHERE ST_Within(g, ?) AND ST_Distance(g, ?) < 5":                      "",
		"SELECT ST_Distance(g, ?) FROM t ORDER BY ST_Distance(g, ?)":                           "",
		"SELECT * FROM t WHERE ST_Contains(ST_Buffer(g, 3), ?)":                                CheckFunction,
		"SELECT * FROM t WHERE ST_Contains(ST_Buffer(?, 3), g)":                                "",
		"SELECT * FROM t WHERE MBRContains(ST_Buffer(?, 3), g)":                                CheckMBR,
		"SELECT * FROM t WHERE Within(g, ?)":                                                   CheckMBR,
		"SELECT * FROM t WHERE MBRContains(?, g) AND ST_Contains(?, g)":                        "",
		"SELECT * FROM other WHERE ST_Distance(g, ?) < 5":                                      "",
		"SELECT * FROM s.t AS x JOIN u ON (ST_Distance(x.g, u.g2) < 5)":                        CheckFunction,
		"UPDATE t SET v = 1 WHERE (id = 3 OR (ST_Distance(t.g, ?) < 5))":                       CheckFunction,
		"SELECT 'ST_Distance(g, 1) < 2' FROM t WHERE g IS NOT NULL":                            "",
		"SELECT * FROM t WHERE id IN (SELECT id FROM t WHERE ST_Distance(g, ?) < 1) AND v = 1": CheckFunction,
		"SELECT * FROM t WHERE id > 1 GROUP BY ST_Distance(g, ?)":                              "",
	} {
		found := Check(Facts{Columns: of(func(*Column) {}), Statements: asks(sql)})
		got := ""
		for _, f := range found {
			got += f.ID
		}
		if got != want {
			t.Errorf("%s: got %q; want %q", sql, got, want)
		}
	}
}

func TestSee(t *testing.T) {
	c := Column{}
	for _, p := range []Point{{13, 52}, {-120, 40}, {40, -120}, {300, 10}} {
		g := point(p[0], p[1])
		c.see(&g)
	}
	g := point(5e6, 6e6)
	g.SRID = 3857
	c.see(&g)
	if c.Sampled != 5 || c.Points != 4 || c.Out != 1 || c.Beyond != 1 || c.SRIDs[3857] != 1 {
		t.Errorf("got %+v; want 5 geometries, of 4 points one swapped and one beyond", c)
	}
}
