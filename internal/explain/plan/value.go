package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/pattern"
)

// maxDepth bounds how deeply a plan may nest: real ones stay below 200 (61 tables in a join, subqueries in unions).
const maxDepth = 1000

// object is a JSON object with its members in their order, and twice if they come twice: MariaDB repeats names.
type object []field

type field struct {
	name  string
	value any // object, []any, string, json.Number, bool or nil
}

func (o object) get(name string) any {
	for _, f := range o {
		if f.name == name {
			return f.value
		}
	}
	return nil
}

func (o object) has(name string) bool {
	for _, f := range o {
		if f.name == name {
			return true
		}
	}
	return false
}

// MarshalJSON writes the object as it was read.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		for j, v := range []any{f.name, f.value} {
			if j > 0 {
				b.WriteByte(':')
			}
			enc, err := json.Marshal(v)
			if err != nil {
				return nil, err
			}
			b.Write(enc)
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// decode reads one JSON value; what follows it is left alone.
func decode(text string) (any, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	return decodeValue(d, 0)
}

func decodeValue(d *json.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("the plan nests deeper than %d levels", maxDepth)
	}
	t, err := d.Token()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	switch t {
	case json.Delim('{'):
		o := object{}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := decodeValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			s, _ := name.(string)
			o = append(o, field{s, v})
		}
		_, err := d.Token()
		return o, err
	case json.Delim('['):
		a := []any{}
		for d.More() {
			v, err := decodeValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			a = append(a, v)
		}
		_, err := d.Token()
		return a, err
	}
	return t, nil
}

// lineString is a line of a printed plan that holds one string: a member, or an element of an array.
var lineString = pattern.Lazy(`^(\s*(?:"[A-Za-z0-9_]+":\s*)?)"(.*)"(,?)\s*$`)

// arrayLine is a member whose value is an array in one line; it holds names only.
var arrayLine = pattern.Lazy(`^\s*"[A-Za-z0-9_]+":\s*\[`)

// repair escapes quotes and backslashes inside the strings of a printed plan. MariaDB writes conditions as they are,
// so that a literal with a quote in it makes invalid JSON (seen with 10.11.19: "attached_condition": "t.a = 'x"y'").
func repair(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if arrayLine().MatchString(l) {
			continue
		}
		m := lineString().FindStringSubmatch(l)
		if m == nil || json.Valid([]byte(`"`+m[2]+`"`)) {
			continue
		}
		b, err := json.Marshal(m[2])
		if err == nil {
			lines[i] = m[1] + string(b) + m[3]
		}
	}
	return strings.Join(lines, "\n")
}

// number reads a JSON number, or a string that holds one: MySQL's version 1 writes costs as strings.
func number(v any) (Figure, bool) {
	var s string
	switch v := v.(type) {
	case json.Number:
		s = v.String()
	case string:
		s = v
	default:
		return Unknown(), false
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return Unknown(), false
	}
	if figure := Figure(f); figure.Known() {
		return figure, true
	}
	return Unknown(), false
}

// truth reads true, 1 and "1".
func truth(v any) bool {
	switch v := v.(type) {
	case bool:
		return v
	case json.Number:
		return v.String() != "0"
	case string:
		return v != "" && v != "0" && v != "false"
	}
	return false
}

func texts(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var out []string
		for _, e := range v {
			switch e := e.(type) {
			case string:
				out = append(out, e)
			case json.Number:
				out = append(out, e.String())
			default:
				b, err := json.Marshal(e)
				if err == nil {
					out = append(out, string(b))
				}
			}
		}
		return out
	}
	return nil
}

// extra keeps a member that has no field.
func (n *Node) extra(name string, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		b, _ = json.Marshal(fmt.Sprint(v))
	}
	n.Extra = append(n.Extra, Member{name, b})
}
