package report

import "strconv"

// percentileName writes 99.9 as p99.9.
func percentileName(p float64) string { return "p" + strconv.FormatFloat(p, 'g', -1, 64) }
