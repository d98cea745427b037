package render

import (
	"math"
	"strings"
	"testing"
)

func TestFigures(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Number(0), "0"}, {Number(7), "7"}, {Number(0.1234), "0.123"}, {Number(999.4), "999"}, {Number(1234), "1.23 k"}, {Number(999600), "1.00 M"},
		{Number(45_600_000), "45.6 M"}, {Number(-1234), "-1.23 k"}, {Number(math.NaN()), "–"}, {Number(3e9), "3.00 G"},
		{Bytes(0), "0 B"}, {Bytes(1023), "1023 B"}, {Bytes(1536), "1.50 KiB"}, {Bytes(134217728), "128 MiB"},
		{Seconds(0.038), "38.0 ms"}, {Seconds(0.000004), "4.00 µs"}, {Seconds(4.2), "4.20 s"}, {Seconds(11520), "3 h 12 min"}, {Seconds(864000), "10 d"},
		{Percent(0.123), "12 %"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestSparkLeavesGaps(t *testing.T) {
	if got := Spark([]float64{0, math.NaN(), 4, 8}); got != "▁ ▄█" {
		t.Errorf("got %q", got)
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
