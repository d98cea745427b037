package geo

import (
	"strings"
	"testing"
)

// TestGraticule: lines are labelled with the degrees at which they are.
func TestGraticule(t *testing.T) {
	b, p := point(13.4, 52.5), point(-3.7, 40.4)
	m := Map{Features: []Feature{{Geometry: &b}, {Geometry: &p}}}
	var out strings.Builder
	if err := m.WriteSVG(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{">10° E</text>", ">5° W</text>", ">0°</text>", ">50° N</text>", ">45° N</text>"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no line is labelled %q", want)
		}
	}
	v := m.view()
	for _, f := range m.Features {
		if x, y := v.at(f.Geometry.Line[0]); x < 0 || x > drawWidth || y < 0 || y > v.height {
			t.Errorf("%v is drawn at %v, %v; want it within %v by %v", f.Geometry.Line[0], x, y, drawWidth, v.height)
		}
	}
	// Over the antimeridian the map goes on.
	east, west := point(175, -17), point(-175, -18)
	m = Map{Features: []Feature{{Geometry: &east}, {Geometry: &west}}}
	v = m.view()
	x1, _ := v.at(east.Line[0])
	x2, _ := v.at(west.Line[0])
	if x1 >= x2 || x2-x1 < drawWidth/2 {
		t.Errorf("175° E is drawn at %v, 175° W at %v; want it east of the other, most of the map apart", x1, x2)
	}
}
