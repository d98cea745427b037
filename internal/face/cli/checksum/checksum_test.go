package checksum

import (
	"bytes"
	"testing"

	"github.com/rissodb/risso/internal/data/checksum"
)

// Findings are printed so that a terminal shows them and nothing else happens to the terminal.
func TestChecksumWords(t *testing.T) {
	a, b := "a\x1b[2J", "b"
	var out bytes.Buffer
	text := checksumText{out: &out, flags: checksumFlags{rows: true}}
	text.table(checksum.Table{Schema: "s", Name: "t\n", Rows: 5, Seconds: 1, On: []checksum.On{{Server: "x", Verdict: checksum.Differs, Different: 3, Missing: 1, Rows: []checksum.Row{
		{Kind: checksum.Different, Key: []checksum.Value{{Column: "id", Value: "7"}}, Columns: []checksum.Column{{Name: "v", Primary: &a, Other: &b}, {Name: "w", Primary: nil, Other: &b}}},
		{Kind: checksum.Missing, Key: []checksum.Value{{Column: "id", Value: "8"}}, Columns: []checksum.Column{{Name: "v", Primary: &b}}}}},
		{Server: "y", Verdict: checksum.Differs, Extra: 3, Rows: []checksum.Row{{Kind: checksum.Extra, Times: 3, Columns: []checksum.Column{{Name: "v", Other: &b}}}}}}})
	want := `s."t\n": differs, 5 rows, 5 rows/s
  on x: differs, 3 with other values, 1 missing there
    different id=7: v "a\x1b[2J" on the primary, "b" there; w NULL on the primary, "b" there
    missing id=8: v "b"
    and 2 more
  on y: differs, 3 only there
    extra 3 times: v "b"
`
	if out.String() != want {
		t.Errorf("got: want %s\n%s", want, out.String())
	}
}
