package digits

// Whole is a whole number of things.
type Whole interface{ ~int | ~int64 | ~uint64 }

// Counted is so many things: 1 table, 1,200 tables.
func Counted[N Whole](n N, what string) string { return Plural(n, what, what+"s") }

// Plural is Counted where an s at the end does not do: 1 table differs, 2 tables differ.
func Plural[N Whole](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Thousands(n) + " " + many
}
