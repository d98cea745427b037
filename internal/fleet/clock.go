package fleet

import "time"

// ClockSlack is by how much two clocks may differ before what one of them has dated counts as dated ahead by the other. It is less
// than an hour, by which a wrong time zone is off.
const ClockSlack = 30 * time.Minute

// Ahead reports whether something is dated so far in the future that a clock must have been wrong.
func Ahead(t, now time.Time) bool { return t.Sub(now) > ClockSlack }
