package tell

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/watch/alert"
)

// A picture's size. Lines are drawn so many times larger, and made smaller, which smooths them.
const (
	pictureWidth  = 600
	pictureHeight = 160
	pictureFiner  = 3
	pictureMargin = 8
)

// The colours do on light and on dark grounds: the picture has a ground of its own.
var (
	pictureGround = color.RGBA{0xff, 0xff, 0xff, 0xff}
	pictureRule   = color.RGBA{0xd8, 0xde, 0xe6, 0xff}
	pictureFrame  = color.RGBA{0x8a, 0x94, 0xa3, 0xff}
	pictureLine   = color.RGBA{0x1f, 0x5f, 0xbf, 0xff}
	pictureMark   = color.RGBA{0xc6, 0x28, 0x28, 0xff}
)

// span is the smallest and the largest value of a chart, and the last; false: it has none.
func span(c *alert.Chart) (least, most, last float64, ok bool) {
	for _, v := range c.Values {
		if v == nil || math.IsNaN(*v) || math.IsInf(*v, 0) {
			continue
		}
		if !ok {
			least, most, ok = *v, *v, true
		}
		least, most, last = min(least, *v), max(most, *v), *v
	}
	return least, most, last, ok
}

// ChartWords is a chart in a sentence, for channels that take no pictures and for those who cannot see it; "" if there is none.
func ChartWords(c *alert.Chart) string {
	if c == nil {
		return ""
	}
	least, most, last, ok := span(c)
	if !ok {
		return ""
	}
	figure := func(v float64) string {
		switch c.Unit {
		case "B":
			return digits.Bytes(v)
		case "s":
			return digits.Seconds(v)
		case "/s":
			return digits.Rate(v)
		}
		return digits.Number(v)
	}
	end := c.From.Add(time.Duration(float64(len(c.Values)) * c.Step * float64(time.Second)))
	return fmt.Sprintf("%s from %s to %s: at least %s, at most %s, %s at the end", cut(c.Title, 100), c.From.UTC().Format("15:04"), end.UTC().Format("15:04 MST"), figure(least), figure(most), figure(last))
}

// picture draws a chart as PNG: from zero up to its largest value, where no value is known nothing, and a line at the mark; nil if there is
// nothing to draw. It depends on the chart alone.
func picture(c *alert.Chart) []byte {
	if c == nil || len(c.Values) < 2 || c.Step <= 0 {
		return nil
	}
	least, most, _, ok := span(c)
	if !ok {
		return nil
	}
	least = min(least, 0)
	if most <= least {
		most = least + 1
	}
	p := &pen{image.NewRGBA(image.Rect(0, 0, pictureWidth*pictureFiner, pictureHeight*pictureFiner))}
	p.fill(p.Rect, pictureGround)
	w, h, m := float64(p.Rect.Dx()), float64(p.Rect.Dy()), float64(pictureMargin*pictureFiner)
	for i := range 5 {
		y := m + (h-2*m)*float64(i)/4
		p.line(m, y, w-m, y, 1, pictureRule)
	}
	at := func(i int) float64 { return m + (w-2*m)*float64(i)/float64(len(c.Values)-1) }
	high := func(v float64) float64 { return h - m - (h-2*m)*(v-least)/(most-least) }
	if i := c.Mark.Sub(c.From).Seconds() / c.Step; !c.Mark.IsZero() && i >= 0 && i <= float64(len(c.Values)-1) {
		x := m + (w-2*m)*i/float64(len(c.Values)-1)
		p.line(x, 0, x, h, 6, pictureMark)
	}
	known := func(i int) bool {
		v := c.Values[i]
		return v != nil && !math.IsNaN(*v) && !math.IsInf(*v, 0)
	}
	for i := range c.Values {
		switch {
		case !known(i):
		case i+1 < len(c.Values) && known(i+1):
			p.line(at(i), high(*c.Values[i]), at(i+1), high(*c.Values[i+1]), 6, pictureLine)
		case i == 0 || !known(i-1): // one alone
			p.line(at(i), high(*c.Values[i]), at(i), high(*c.Values[i]), 9, pictureLine)
		}
	}
	p.line(0, 0, w, 0, 3, pictureFrame)
	p.line(0, h, w, h, 3, pictureFrame)
	p.line(0, 0, 0, h, 3, pictureFrame)
	p.line(w, 0, w, h, 3, pictureFrame)
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, p.smaller()); err != nil {
		return nil
	}
	return out.Bytes()
}

// pen draws into an image.
type pen struct{ *image.RGBA }

func (p *pen) fill(r image.Rectangle, c color.RGBA) {
	r = r.Intersect(p.Rect)
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			p.SetRGBA(x, y, c)
		}
	}
}

// line draws a line as squares in a row.
func (p *pen) line(x0, y0, x1, y1 float64, wide int, c color.RGBA) {
	steps := int(max(math.Abs(x1-x0), math.Abs(y1-y0))) + 1
	for i := range steps + 1 {
		x, y := x0+(x1-x0)*float64(i)/float64(steps), y0+(y1-y0)*float64(i)/float64(steps)
		left, top := int(math.Round(x))-wide/2, int(math.Round(y))-wide/2
		p.fill(image.Rect(left, top, left+wide, top+wide), c)
	}
}

// smaller is the image in the size in which it is shown.
func (p *pen) smaller() *image.RGBA {
	const n = pictureFiner
	out := image.NewRGBA(image.Rect(0, 0, p.Rect.Dx()/n, p.Rect.Dy()/n))
	for y := range out.Rect.Dy() {
		for x := range out.Rect.Dx() {
			var r, g, b int
			for i := range n * n {
				c := p.RGBAAt(x*n+i%n, y*n+i/n)
				r, g, b = r+int(c.R), g+int(c.G), b+int(c.B)
			}
			out.SetRGBA(x, y, color.RGBA{uint8(r / (n * n)), uint8(g / (n * n)), uint8(b / (n * n)), 0xff})
		}
	}
	return out
}
