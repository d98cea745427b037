package render

import (
	"math"
	"strings"
	"testing"
)

func TestSparkLeavesGaps(t *testing.T) {
	if got := Spark([]float64{0, math.NaN(), 4, 8}); got != "▁ ▄█" {
		t.Errorf("got %q, want \"▁ ▄█\"", got)
	}
}

func TestTableAligns(t *testing.T) {
	lines := Table{Heads: []string{"NAME", ">QPS", "WORDS"}, Rows: [][]string{{"db1", "5", "healthy"}, {"größer", "1200", "a long sentence"}}}.Lines(24)
	want := "NAME     QPS  WORDS\ndb1        5  healthy\ngrößer  1200  a long se…"
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestLists: a list without members is written as one, at any depth, and what is left out when empty stays left out.
func TestLists(t *testing.T) {
	type inner struct {
		List []int    `json:"list"`
		Out  []int    `json:"out,omitempty"`
		Zero []string `json:"zero,omitzero"`
		Raw  []byte   `json:"raw"`
	}
	type outer struct {
		inner
		Deep []*inner   `json:"deep"`
		Rows [][]string `json:"rows"`
		None *inner     `json:"none"`
		Up   *outer     `json:"-"` // what is not written may go in circles
	}
	var b strings.Builder
	o := outer{Deep: []*inner{{}}, Rows: [][]string{nil}}
	o.Up = &o
	if err := JSONLine(&b, &o); err != nil {
		t.Fatal(err)
	}
	if want := `{"list":[],"raw":null,"deep":[{"list":[],"raw":null}],"rows":[[]],"none":null}` + "\n"; b.String() != want {
		t.Errorf("got %s, want %s", b.String(), want)
	}
}
