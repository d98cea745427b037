// Package render writes results for people and for programs: numbers as a person says them, aligned tables,
// small charts in text, JSON. It knows nothing of servers.
package render

import (
	"encoding/json"
	"io"
	"math"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/rissodb/risso/internal/oneline"
)

// JSON writes a value as JSON, indented, with a newline at the end. Lists are never null.
func JSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(withLists(v))
}

// JSONLine writes a value as one line of JSON. Lists are never null.
func JSONLine(w io.Writer, v any) error { return json.NewEncoder(w).Encode(withLists(v)) }

// withLists is a value whose lists are there: empty ones in place of nil, but where nil leaves the field out.
func withLists(v any) any {
	if v == nil {
		return nil
	}
	p := reflect.New(reflect.TypeOf(v))
	p.Elem().Set(reflect.ValueOf(v))
	filler{}.fill(p.Elem())
	return p.Interface()
}

// filler knows the pointers that were followed: what is written may refer to what is not, and that back again.
type filler map[followed]bool

// followed is a pointer: that to a value's first field is another one.
type followed struct {
	to uintptr
	of reflect.Type
}

func (f filler) fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if p := (followed{v.Pointer(), v.Type()}); !v.IsNil() && !f[p] {
			f[p] = true
			f.fill(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			tag := field.Tag.Get("json")
			if (v.Field(i).CanSet() || field.Anonymous) && tag != "-" && !strings.Contains(tag, ",omitzero") {
				f.fill(v.Field(i))
			}
		}
	case reflect.Slice:
		kind := v.Type().Elem().Kind()
		if v.IsNil() && kind != reflect.Uint8 && v.CanSet() { // bytes are a text
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		}
		if kind == reflect.Struct || kind == reflect.Pointer || kind == reflect.Slice {
			for i := range v.Len() {
				f.fill(v.Index(i))
			}
		}
	}
}

var blocks = []rune("▁▂▃▄▅▆▇█")

// Spark draws values as bars of one line, the largest as a full block; NaN is a blank: a gap stays a gap.
func Spark(values []float64) string {
	top := 0.0
	for _, v := range values {
		if !math.IsNaN(v) {
			top = max(top, v)
		}
	}
	var b strings.Builder
	for _, v := range values {
		switch {
		case math.IsNaN(v):
			b.WriteByte(' ')
		case top <= 0:
			b.WriteRune(blocks[0])
		default:
			i := int(v / top * float64(len(blocks)-1))
			b.WriteRune(blocks[min(max(i, 0), len(blocks)-1)])
		}
	}
	return b.String()
}

// Table is rows under headings; a heading that begins with ">" aligns its column to the right.
type Table struct {
	Heads []string
	Rows  [][]string
}

// Lines returns the table's lines without ends, each column as wide as its widest cell; the last is cut at width, when that is above 0.
func (t Table) Lines(width int) []string {
	widths := make([]int, len(t.Heads))
	heads := make([]string, len(t.Heads))
	for i, h := range t.Heads {
		heads[i] = strings.TrimPrefix(h, ">")
		widths[i] = utf8.RuneCountInString(heads[i])
	}
	for _, r := range t.Rows {
		for i, c := range r {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	lines := []string{t.line(heads, widths, width)}
	for _, r := range t.Rows {
		lines = append(lines, t.line(r, widths, width))
	}
	return lines
}

func (t Table) line(cells []string, widths []int, width int) string {
	var b strings.Builder
	for i, c := range cells {
		pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
		switch {
		case strings.HasPrefix(t.Heads[i], ">"):
			b.WriteString(pad + c)
		case i == len(cells)-1:
			b.WriteString(c)
		default:
			b.WriteString(c + pad)
		}
		if i < len(cells)-1 {
			b.WriteString("  ")
		}
	}
	return oneline.Cut(strings.TrimRight(b.String(), " "), width)
}
