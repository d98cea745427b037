package cli

import (
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/render"
)

// roughly is digits.Counted with three digits: 1 row, 1.23 M rows.
func roughly[N digits.Whole](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return render.Number(float64(n)) + " " + what + "s"
}
