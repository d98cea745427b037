package cli

import (
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/render"
)

// whole is a whole number of things.
type whole interface{ ~int | ~int64 | ~uint64 }

// counted is so many things: 1 table, 1,200 tables.
func counted[N whole](n N, what string) string { return plural(n, what, what+"s") }

// plural is counted where an s at the end does not do: 1 table differs, 2 tables differ.
func plural[N whole](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return digits.Thousands(int64(n)) + " " + many
}

// roughly is counted with three digits: 1 row, 1.23 M rows.
func roughly[N whole](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return render.Number(float64(n)) + " " + what + "s"
}
