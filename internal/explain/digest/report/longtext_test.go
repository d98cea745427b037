package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/explain/digest"
)

// Long samples come out of the JSON as they would from the encoder, whatever bytes they hold and wherever they are parted.
func TestLongTexts(t *testing.T) {
	for _, unit := range []string{"x", "ü", "🐬", "<&>", "\"\\\n\x00", "\xff", "a\x80\x80\x80\x80\x80", "\xf0\x9f", "\u2028"} {
		for shift := range 5 {
			text := strings.Repeat(" ", shift) + strings.Repeat(unit, 3*longText/len(unit)+1)
			p := &digest.Profile{Classes: []digest.Class{{Samples: []digest.Sample{{Query: text}, {Query: "short"}}}}}
			var got bytes.Buffer
			if err := JSON(&got, p, Options{}); err != nil {
				t.Fatal(err)
			}
			var doc struct {
				Classes []struct {
					Sample  string
					Samples []struct{ Query string }
				}
			}
			if err := json.Unmarshal(got.Bytes(), &doc); err != nil {
				t.Fatalf("%q: %v", unit, err)
			}
			plain, err := json.Marshal(text)
			if err != nil {
				t.Fatal(err)
			}
			var want string
			if err := json.Unmarshal(plain, &want); err != nil {
				t.Fatal(err)
			}
			c := doc.Classes[0]
			if c.Sample != want || c.Samples[0].Query != want || c.Samples[1].Query != "short" || p.Classes[0].Samples[0].Query != text {
				t.Errorf("%q, %d: %d and %d bytes, want %d", unit, shift, len(c.Sample), len(c.Samples[0].Query), len(want))
			}
		}
	}
}
