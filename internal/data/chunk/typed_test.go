package chunk

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/mysql/wire"
)

// TestPlaces: the places of all numbers, and of strings that can be something else, are found, whether a row comes whole or in
// pieces; text that is no JSON only ends the search.
func TestPlaces(t *testing.T) {
	table := define.Table{Columns: []define.TableColumn{{Name: "id", Type: "int"}, {Name: "a", Type: "json"}, {Name: "t", Type: "text"}, {Name: "b", Type: "json"}}}
	rows := [][]string{{"1", `{"n": 1.50, "s": "x", "d": "2020-01-01", "l": [true, {"q\"}": -3}, [], "base64:type15:YQ=="], "z": null}`, "7", `12`}, {"2", `"10:00:00.000000"`, `{"not": 1}`, "NULL"},
		{"3", `{"open": [1, `, "", `]`}, {"4", `{x`, "", `[}`}}
	want := []Place{{"a", "$"}, {"a", `$."d"`}, {"a", `$."l"[1]."q\"}"`}, {"a", `$."l"[3]`}, {"a", `$."n"`}, {"a", `$."open"[0]`}, {"b", "$"}}
	for _, size := range []int{1, 7, 1 << 20} {
		got := &Rows{}
		p := NewPlaces(table, got)
		for _, row := range rows {
			var raw []byte
			for _, v := range row {
				if v == "NULL" {
					raw = append(raw, null)
				} else {
					raw = append(appendSize(raw, len(v)), v...)
				}
			}
			for len(raw) > size {
				if err := p.Piece(raw[:size], false); err != nil {
					t.Fatal(err)
				}
				raw = raw[size:]
			}
			if err := p.Piece(raw, true); err != nil {
				t.Fatal(err)
			}
		}
		if list, whole := p.List(); !reflect.DeepEqual(list, want) || !whole || got.Count != 4 {
			t.Errorf("in pieces of %d: got %v, %d rows; want list %v, whole true, got.Count 4", size, list, got.Count, want)
		}
	}
	if NewPlaces(define.Table{Columns: table.Columns[:1]}, nil) != nil {
		t.Error("a table without JSON has places")
	}
	many := NewPlaces(table, &Rows{})
	doc := "[0"
	for i := range 2 * maxPlaces {
		doc += fmt.Sprintf(", %d", i)
	}
	raw := append(appendSize([]byte{null}, len(doc)+1), doc+"]"...)
	if err := many.Piece(append(raw, null, null), true); err != nil {
		t.Fatal(err)
	}
	if list, whole := many.List(); whole || len(list) != maxPlaces {
		t.Errorf("%d places, and that is all: %v; want whole false, len(list) %d", len(list), whole, maxPlaces)
	}
}

// TestUnbroken: only documents lose their line feeds.
func TestUnbroken(t *testing.T) {
	table := define.Table{Columns: []define.TableColumn{{Name: "t", Type: "text"}, {Name: "j", Type: "json"}}}
	var got wire.RowSink = &kept{}
	to := unbroken(table, got)
	for _, piece := range []string{"\x03a\nb\x05[\"\n\"]", "\x01\n\xfb"} {
		if err := to.Piece([]byte(piece), true); err != nil {
			t.Fatal(err)
		}
	}
	if rows := fmt.Sprintf("%q", got.(*kept).rows); rows != `["\x03a\nb\x06[\"\\n\"]" "\x01\n\xfb"]` {
		t.Errorf("got %v, want \"[\\\"\\\\x03a\\\\nb\\\\x06[\\\\\\\"\\\\\\\\n\\\\\\\"]\\\" \\\"\\\\x01\\\\n\\\\xfb\\\"]\"", rows)
	}
	if err := to.Piece([]byte("\x05a\n"), true); err == nil {
		t.Error("a torn row passes")
	}
}

type kept struct{ rows []string }

func (k *kept) Piece(b []byte, last bool) error {
	k.rows = append(k.rows, string(b))
	return nil
}

func TestEmptyMember(t *testing.T) {
	for full, want := range map[string]bool{"enum('a','b')": false, "enum('')": true, "set('a','')": true, "enum('','a')": true, "enum('a''','b')": false, "enum('''','b')": false, "enum(''',''','')": true,
		"enum('a\\\\','b')": false, "enum(',')": false, "int": false, "enum('a": false} {
		if emptyMember(full) != want {
			t.Errorf("%s: not %v", full, want)
		}
	}
}
