package binlogevent

import "testing"

func TestDecimalBytes(t *testing.T) {
	for _, c := range [][3]int{{10, 2, 5}, {20, 7, 10}, {5, 0, 3}, {65, 30, 30}, {1, 1, 1}, {9, 9, 4}, {18, 9, 8}} {
		if got := decimalBytes(c[0], c[1]); got != c[2] {
			t.Errorf("DECIMAL(%d,%d): %d bytes, want %d", c[0], c[1], got, c[2])
		}
	}
}
