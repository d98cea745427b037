package geo

import (
	_ "embed"
	"fmt"
	"html"
	"html/template"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/oneline"
)

//go:embed land.txt
var landSource string

// land are the outlines of the world's land.
func land() (rings [][]Point) {
	for line := range strings.Lines(landSource) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var ring []Point
		x, y := 0, 0
		for pair := range strings.FieldsSeq(line) {
			a, b, _ := strings.Cut(pair, ",")
			dx, err := strconv.Atoi(a)
			dy, also := strconv.Atoi(b)
			if err != nil || also != nil { // the file is ours: a test reads all of it
				return nil
			}
			x, y = x+dx, y+dy
			ring = append(ring, Point{float64(x) / 100, float64(y) / 100})
		}
		rings = append(rings, ring)
	}
	return rings
}

// The size of the drawing in its own units.
const (
	drawWidth  = 1000.0
	leastRatio = 0.4 // of height by width
	mostRatio  = 0.75
	dot        = 4.0
)

// View is a map that is ready to be drawn: where its features are, in units of the drawing.
type view struct {
	m          *Map
	bounds     [4]float64 // with some room around; east is above west
	mercator   bool
	x, y, unit float64 // of the upper left corner in the projection, and how many units of the projection one of the drawing is
	height     float64
}

// view fits the features into a drawing. Degrees are drawn in Web Mercator, as maps on the web are, unless there is something so close to
// a pole that it has no place there.
func (m *Map) view() view {
	v := view{m: m}
	b, ok := m.Bounds()
	if !ok {
		b = [4]float64{-180, -60, 180, 75}
	}
	if !m.Plane && b[0] > b[2] {
		b[2] += 360
	}
	v.mercator = !m.Plane && b[1] > -mostMercator && b[3] < mostMercator
	room := max(b[2]-b[0], b[3]-b[1]) * 0.06
	if room == 0 {
		room = 0.02
		if m.Plane {
			room = max(math.Abs(b[0])*1e-3, 1)
		}
	}
	b = [4]float64{b[0] - room, b[1] - room, b[2] + room, b[3] + room}
	if !m.Plane {
		b[1], b[3] = max(b[1], -90), min(b[3], 90)
	}
	v.bounds = b
	low, high := v.project(Point{b[0], b[1]}), v.project(Point{b[2], b[3]})
	w, h := high[0]-low[0], high[1]-low[1]
	v.unit = w / drawWidth
	v.height = h / v.unit
	switch ratio := h / w; {
	case ratio < leastRatio:
		v.height = drawWidth * leastRatio
	case ratio > mostRatio:
		v.height = drawWidth * mostRatio
		v.unit = h / v.height
	}
	v.x = (low[0]+high[0])/2 - v.unit*drawWidth/2
	v.y = (low[1]+high[1])/2 + v.unit*v.height/2
	return v
}

// project is a point in the units of the projection.
func (v *view) project(p Point) Point {
	if v.mercator {
		return ToMercator(p)
	}
	return p
}

// at is where a point is drawn.
func (v *view) at(p Point) (x, y float64) {
	if !v.m.Plane && p[0] < v.bounds[0]-1e-9 && v.bounds[2] > 180 {
		p[0] += 360
	}
	q := v.project(p)
	return (q[0] - v.x) / v.unit, (v.y - q[1]) / v.unit
}

func px(f float64) string { return strconv.FormatFloat(math.Round(f*100)/100, 'f', -1, 64) }

// path draws a line, or with closed a ring. Of points that fall on one another only the first is drawn.
func (v *view) path(b *strings.Builder, line []Point, closed bool) {
	lastX, lastY := math.Inf(1), 0.0
	for i, p := range line {
		x, y := v.at(p)
		if i > 0 && i < len(line)-1 && math.Abs(x-lastX) < 0.3 && math.Abs(y-lastY) < 0.3 {
			continue
		}
		sign := "L"
		if i == 0 {
			sign = "M"
		}
		b.WriteString(sign + px(x) + " " + px(y))
		lastX, lastY = x, y
	}
	if closed && len(line) > 0 {
		b.WriteString("Z")
	}
}

// WriteSVG writes the drawing as a file of its own.
func (m *Map) WriteSVG(w io.Writer) error {
	v := m.view()
	_, err := io.WriteString(w, v.svg("", `<style>`+drawingColours+drawingStyle+`</style>`))
	return err
}

// svg draws the land, a graticule and the features.
func (v *view) svg(tiles, style string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" class="map" viewBox="0 0 %s %s" role="group" aria-label="%s">%s`, px(drawWidth), px(v.height), html.EscapeString("Map of "+digits.Counted(len(v.m.Features), "row")), style)
	fmt.Fprintf(&b, `<clipPath id="frame"><rect width="%s" height="%s"/></clipPath><g clip-path="url(#frame)"><rect class="sea" width="%[1]s" height="%[2]s"/>`, px(drawWidth), px(v.height))
	switch {
	case tiles != "" && v.mercator:
		v.tiles(&b, tiles)
	case !v.m.Plane:
		v.land(&b)
	}
	v.graticule(&b)
	order := []bool{true, false} // areas first, so that they hide nothing
	for _, areas := range order {
		for i := range v.m.Features {
			f := &v.m.Features[i]
			if f.Geometry != nil && !f.Geometry.Empty() && f.Geometry.hasArea() == areas {
				v.feature(&b, f)
			}
		}
	}
	b.WriteString("</g></svg>\n")
	return b.String()
}

// hasArea reports whether some of it is a polygon.
func (g *Geometry) hasArea() bool {
	if g.Kind == KindPolygon || g.Kind == KindMultiPolygon {
		return true
	}
	for i := range g.Parts {
		if g.Parts[i].hasArea() {
			return true
		}
	}
	return false
}

func (v *view) land(b *strings.Builder) {
	b.WriteString(`<path class="land" d="`)
	for _, ring := range land() {
		for shift := -360.0; shift <= 360; shift += 360 {
			low, high := span(ring)
			if high+shift < v.bounds[0]-60 || low+shift > v.bounds[2]+60 {
				continue
			}
			moved := make([]Point, len(ring))
			for i, p := range ring {
				moved[i] = Point{p[0] + shift, p[1]}
			}
			lastX, lastY := math.Inf(1), 0.0
			for i, p := range moved { // as they are: at would turn them around the world
				q := v.project(p)
				x, y := (q[0]-v.x)/v.unit, (v.y-q[1])/v.unit
				if i > 0 && math.Abs(x-lastX) < 0.3 && math.Abs(y-lastY) < 0.3 {
					continue
				}
				lastX, lastY = x, y
				b.WriteString(string("ML"[min(i, 1)]) + px(clamp(x)) + " " + px(clamp(y)))
			}
			b.WriteString("Z")
		}
	}
	b.WriteString(`"/>`)
}

// clamp keeps what is far outside of the drawing from being drawn with numbers that no program wants.
func clamp(v float64) float64 { return max(-1e5, min(1e5, v)) }

// graticule draws meridians and parallels, or the lines of a plane, at round numbers.
func (v *view) graticule(b *strings.Builder) {
	low, high := Point{v.x, v.y - v.unit*v.height}, Point{v.x + v.unit*drawWidth, v.y}
	if v.mercator {
		low, high = FromMercator(low), FromMercator(high)
	}
	step := roundStep((high[0]-low[0])/6, !v.m.Plane)
	for _, lon := range rounds(low[0], high[0], step) {
		q := v.project(Point{lon, low[1]})
		x := px((q[0] - v.x) / v.unit)
		fmt.Fprintf(b, `<path class="line" d="M%[1]s 0V%[2]s"/><text class="grid" x="%[1]s" y="%[3]s" dx="3">%[4]s</text>`, x, px(v.height), px(v.height-4), v.label(lon, step, "E", "W"))
	}
	step = roundStep((high[1]-low[1])/4, !v.m.Plane)
	for _, lat := range rounds(low[1], high[1], step) {
		q := v.project(Point{low[0], lat})
		y := px((v.y - q[1]) / v.unit)
		fmt.Fprintf(b, `<path class="line" d="M0 %[1]sH%[2]s"/><text class="grid" x="3" y="%[1]s" dy="-3">%[3]s</text>`, y, px(drawWidth), v.label(lat, step, "N", "S"))
	}
}

// rounds are the multiples of a step between two numbers; there are few, whatever the numbers.
func rounds(low, high, step float64) (list []float64) {
	const most = 20
	first := math.Ceil(low / step)
	for i := range most {
		v := (first + float64(i)) * step
		if !(v <= high) { // also if it is no number
			break
		}
		list = append(list, v)
	}
	return list
}

// label names a line: 13.4° E.
func (v *view) label(at, step float64, plus, minus string) string {
	at = math.Round(at/step) * step
	if v.m.Plane {
		return html.EscapeString(digits.Count(at))
	}
	at = math.Mod(at+540, 360) - 180
	text := strconv.FormatFloat(math.Round(math.Abs(at)*1e6)/1e6, 'f', -1, 64) + "°"
	switch {
	case at > 1e-9:
		return text + " " + plus
	case at < -1e-9:
		return text + " " + minus
	}
	return text
}

// roundStep is the smallest of 1, 2, 5 times a power of ten, with degrees also of 10, 15, 30, 45, 90, that is at least v.
func roundStep(v float64, degrees bool) float64 {
	if degrees && v > 5 {
		for _, s := range []float64{10, 15, 30, 45, 90} {
			if s >= v {
				return s
			}
		}
		return 90
	}
	if !(v > 0) || math.IsInf(v, 0) {
		return 1
	}
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if v <= m*p*(1+1e-9) {
			return m * p
		}
	}
	return 10 * p
}

// feature draws a row, with its other columns as its title.
func (v *view) feature(b *strings.Builder, f *Feature) {
	title := html.EscapeString(f.title())
	fmt.Fprintf(b, `<g class="feature" tabindex="0" role="img" aria-label="%s"><title>%[1]s</title>`, title)
	v.geometry(b, f.Geometry)
	b.WriteString("</g>")
}

// title is a feature in a line.
func (f *Feature) title() string {
	var parts []string
	for _, p := range f.Properties {
		parts = append(parts, oneline.Of(p.Name)+": "+oneline.Cut(oneline.Of(p.Text()), 60))
	}
	if f.Geometry != nil {
		parts = append(parts, f.Geometry.Kind.String())
	}
	return oneline.Cut(strings.Join(parts, ", "), 400)
}

func (v *view) geometry(b *strings.Builder, g *Geometry) {
	switch g.Kind {
	case KindPoint:
		if len(g.Line) == 1 {
			x, y := v.at(g.Line[0])
			fmt.Fprintf(b, `<circle cx="%s" cy="%s" r="%s"/>`, px(x), px(y), px(dot))
		}
	case KindLineString:
		b.WriteString(`<path class="way" d="`)
		v.path(b, g.Line, false)
		b.WriteString(`"/>`)
	case KindPolygon:
		b.WriteString(`<path class="area" d="`)
		for _, r := range g.Rings {
			v.path(b, r, true)
		}
		b.WriteString(`"/>`)
	default:
		for i := range g.Parts {
			v.geometry(b, &g.Parts[i])
		}
	}
}

// tileSize is that of a tile in pixels, and mostTiles is how many are drawn.
const (
	tileSize  = 256.0
	mostTiles = 80
)

// tiles draws pictures from a server of the user's, in the usual scheme of numbers: {z}, {x}, {y}.
func (v *view) tiles(b *strings.Builder, pattern string) {
	world := 2 * math.Pi * radius
	zoom := int(math.Ceil(math.Log2(world / (v.unit * tileSize))))
	zoom = max(0, min(19, zoom))
	var list []string
	for ; zoom >= 0; zoom-- {
		n := math.Pow(2, float64(zoom))
		size := world / n
		column := func(x float64) int { return int(math.Floor((x + world/2) / size)) }
		row := func(y float64) int { return int(math.Floor((world/2 - y) / size)) }
		left, right := column(v.x), column(v.x+v.unit*drawWidth)
		top, bottom := max(row(v.y), 0), min(row(v.y-v.unit*v.height), int(n)-1)
		if (right-left+1)*(bottom-top+1) > mostTiles {
			continue
		}
		for ty := top; ty <= bottom; ty++ {
			for tx := left; tx <= right; tx++ {
				around := ((tx % int(n)) + int(n)) % int(n)
				url := strings.NewReplacer("{z}", strconv.Itoa(zoom), "{x}", strconv.Itoa(around), "{y}", strconv.Itoa(ty)).Replace(pattern)
				x, y := (float64(tx)*size-world/2-v.x)/v.unit, (v.y-(world/2-float64(ty)*size))/v.unit
				list = append(list, fmt.Sprintf(`<image href="%s" x="%s" y="%s" width="%s" height="%[4]s"/>`, html.EscapeString(url), px(x), px(y), px(size/v.unit)))
			}
		}
		break
	}
	b.WriteString(strings.Join(list, ""))
}

const drawingColours = `
:root { color-scheme: light dark; --ground: #fcfcfb; --rule: #e3e3df; --ink: #1d2125; --ink-2: #565d64; --sea: #eef3f6; --land: #fbfaf5; --coast: #b8bfb8; --line: #d8dee2; --mark: #c22a2a; --way: #2f74c0; --area: #2a9d9455; --edge: #1b7f77; --focus: #1d2125; }
@media (prefers-color-scheme: dark) { :root { --ground: #101316; --rule: #2b3238; --ink: #dde2e6; --ink-2: #9aa3ab; --sea: #141c22; --land: #222a2b; --coast: #4a5550; --line: #26313a; --mark: #f2685f; --way: #5b9fe0; --area: #3fb8ad55; --edge: #3fb8ad; --focus: #fff; } }
`

const drawingStyle = `
.sea { fill: var(--sea); } .land { fill: var(--land); stroke: var(--coast); stroke-width: .7; fill-rule: evenodd; }
.line { fill: none; stroke: var(--line); stroke-width: .7; }
text.grid { font: 10px system-ui, 'DejaVu Sans', sans-serif; fill: var(--ink-2); }
circle { fill: var(--mark); fill-opacity: .8; stroke: var(--ground); stroke-width: 1; }
.way { fill: none; stroke: var(--way); stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
.area { fill: var(--area); stroke: var(--edge); stroke-width: 1.2; fill-rule: evenodd; }
.feature:hover > *, .feature:focus > * { stroke: var(--focus); stroke-width: 2.5; } .feature:focus { outline: none; }
`

//go:embed page.html
var pageSource string

// rowsOnPage is how many rows the table of the page has.
const rowsOnPage = 1000

// WriteHTML writes the map as one page. It refers to nothing elsewhere, unless tiles names a server of pictures,
// https://HOST/{z}/{x}/{y}.png, which the reader's browser then asks.
func (m *Map) WriteHTML(w io.Writer, version, tiles string) error {
	t, err := template.New("page").Parse(pageSource)
	if err != nil {
		return fmt.Errorf("read the page's template: %w", err)
	}
	policy := "default-src 'none'; style-src 'unsafe-inline'"
	if tiles != "" {
		origin := tiles
		if i := strings.Index(tiles, "://"); i > 0 {
			host, _, _ := strings.Cut(tiles[i+3:], "/")
			origin = tiles[:i+3] + host
		}
		policy += "; img-src " + origin
	}
	var heads []string
	var rows [][]string
	more := 0
	for i, f := range m.Features {
		if i == 0 {
			for _, p := range f.Properties {
				heads = append(heads, p.Name)
			}
			heads = append(heads, "geometry")
		}
		if i >= rowsOnPage {
			more = len(m.Features) - rowsOnPage
			break
		}
		var row []string
		for _, p := range f.Properties {
			row = append(row, oneline.Cut(oneline.Of(p.Text()), 200))
		}
		kind := "NULL"
		if f.Geometry != nil {
			kind = f.Geometry.Kind.String()
		}
		rows = append(rows, append(row, kind))
	}
	notes := m.Notes
	if more > 0 {
		notes = append(append([]string{}, notes...), "The table has the first "+digits.Counted(rowsOnPage, "row")+".")
	}
	v := m.view()
	return t.Execute(w, struct {
		Title, Version, Policy string
		Colours                template.CSS
		Count                  string
		Notes                  []string
		Drawing                template.HTML
		Land                   bool
		Heads                  []string
		Rows                   [][]string
	}{m.Title, version, policy, template.CSS(drawingColours + drawingStyle), digits.Counted(len(m.Features), "row"), notes, template.HTML(v.svg(tiles, "")), !m.Plane && tiles == "", heads, rows})
}
