package digits

import (
	"math"
	"testing"
)

func TestThree(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0.00", 1: "1.00", 0.9996: "1.00", 0.042: "0.042", 9.994: "9.99", 9.996: "10.0", 38: "38.0", 99.94: "99.9", 99.96: "100", 1234.5: "1234", -0.5: "-0.5", -12.34: "-12.3",
	} {
		if got := Three(v); got != want {
			t.Errorf("%v: %s, not %s", v, got, want)
		}
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -999: "-999", -1000: "-1,000", 123456: "123,456", 1234567: "1,234,567", math.MinInt64: "-9,223,372,036,854,775,808"} {
		if got := Thousands(n); got != want {
			t.Errorf("%d: %s, not %s", n, got, want)
		}
	}
	if got := Thousands(uint64(math.MaxUint64)); got != "18,446,744,073,709,551,615" {
		t.Error(got)
	}
}
