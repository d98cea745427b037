package digits

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

// TestCases: the rules by example. The page's code is held to the same table by ui/src/common/cases.test.ts.
func TestCases(t *testing.T) {
	rules := map[string]func(float64) string{
		"three": Three, "number": Number, "rate": Rate, "count": Count, "bytes": Bytes[float64], "seconds": Seconds, "age": Age, "shift": Shift, "percent": Percent,
		"change": Change, "ratio": Ratio, "chance": Chance,
		"thousands": func(v float64) string { return Thousands(int64(v)) }, "row": func(v float64) string { return Counted(int64(v), "row") },
	}
	text, err := os.ReadFile("testdata/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var table map[string][][2]any
	if err := json.Unmarshal(text, &table); err != nil {
		t.Fatal(err)
	}
	for name, rule := range rules {
		if len(table[name]) == 0 {
			t.Errorf("the table has no case of %s, want len(table[name]) not 0", name)
		}
		for _, c := range table[name] {
			v, ok := c[0].(float64)
			if !ok {
				v = math.NaN()
			}
			if got := rule(v); got != c[1] {
				t.Errorf("%s of %v is %q, want %q", name, c[0], got, c[1])
			}
		}
		delete(table, name)
	}
	for name := range table {
		t.Errorf("%s is in the table and is no rule", name)
	}
}

// TestShareIsHonest: a share that is neither nothing nor all is never written as either.
func TestShareIsHonest(t *testing.T) {
	for share := 1e-11; share < 1; share *= 1.7 {
		if got := Percent(share); got == "0 %" || got == "100 %" {
			t.Errorf("%g is %q", share, got)
		}
		if got := Percent(1 - share); got == "0 %" || got == "100 %" {
			t.Errorf("%g is %q", 1-share, got)
		}
	}
}

func TestWholeNumbers(t *testing.T) {
	if got, want := Thousands(int64(math.MinInt64)), "-9,223,372,036,854,775,808"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := Thousands(uint64(math.MaxUint64)), "18,446,744,073,709,551,615"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := Plural(1, "table differs", "tables differ"), "1 table differs"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := Plural(uint64(3), "table differs", "tables differ"), "3 tables differ"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := Bytes(int64(1)<<30), "1 GiB"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestInfinityIsUnknown(t *testing.T) {
	for name, rule := range map[string]func(float64) string{
		"three": Three, "number": Number, "count": Count, "bytes": Bytes[float64], "seconds": Seconds, "age": Age, "percent": Percent, "change": Change, "ratio": Ratio, "chance": Chance,
	} {
		for _, v := range []float64{math.Inf(1), math.Inf(-1)} {
			if got := rule(v); got != Unknown {
				t.Errorf("%s of %v is %q, want %q", name, v, got, Unknown)
			}
		}
	}
}
