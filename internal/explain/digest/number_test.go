package digest

import (
	"math/big"
	"math/rand/v2"
	"testing"
)

// The number parser against exact arithmetic, over every number of digits before and after the point, at the end
// of the text and before other text.
func TestParseMicros(t *testing.T) {
	check := func(text, after string) {
		t.Helper()
		r, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Fatalf("got %v, want ok true", text)
		}
		want, _ := r.Mul(r, big.NewRat(micro, 1)).Float64()
		exact := uint64(maxMicros)
		if r.IsInt() && r.Num().IsUint64() {
			exact = min(r.Num().Uint64(), maxMicros)
		} else if want < maxMicros {
			exact = 0
		}
		got, end, ok := parseMicros([]byte("="+text+after), 1)
		// More than six decimals are rounded, and more digits than a float64 holds are lost.
		near := float64(got)-min(want, maxMicros) <= want*1e-15+0.5 && min(want, maxMicros)-float64(got) <= want*1e-15+0.5
		if !ok || end != 1+len(text) || exact != 0 && len(text) <= 18 && got != exact || !near {
			t.Fatalf("%q before %q is %d up to %d (%v), not %.0f", text, after, got, end, ok, want)
		}
	}
	rng := rand.New(rand.NewPCG(5, 6))
	for before := 1; before <= 19; before++ {
		for after := 0; after <= 9; after++ {
			for range 20 {
				var text []byte
				for i := range before + after {
					if i == before {
						text = append(text, '.')
					}
					text = append(text, byte('0'+rng.IntN(10)))
				}
				for _, tail := range []string{"", " ", "\n", " 0123456789abcdef0123456789", "\r\n# 0123456789abcdef0123456789"} {
					check(string(text), tail)
				}
			}
		}
	}
	for _, s := range []string{"0", "00012", "18446744073709.550781", "18446744073709551615", "1e3"} {
		check(s, "")
		check(s, " 0123456789abcdef0123456789")
	}
	for _, bad := range []string{"", "x", "-1", "1x", "1.", "1.x", ".5", "1.5.5", "0x10", "12345678901x", "Yes"} {
		for _, tail := range []string{"", " ", " 0123456789abcdef0123456789"} {
			if v, _, ok := parseMicros([]byte(bad+tail), 0); ok {
				t.Errorf("%q is the number %d", bad+tail, v)
			}
		}
	}
}
