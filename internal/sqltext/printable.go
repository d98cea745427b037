package sqltext

import "fmt"

// Printable keeps what a name may contain from moving the terminal's cursor.
func Printable(s string) string {
	q := fmt.Sprintf("%q", s)
	if q[1:len(q)-1] == s {
		return s
	}
	return q
}
