package bench

import (
	"fmt"
	"math"
)

// AgainstRecorded says in words how the average of a class compares with that of the recording; empty where there is
// nothing to compare. The way to the server and back, which a log does not have in its times, is taken off, but not more than
// half the average, for it was measured at another moment; a class that took less than that way when it was recorded is not
// judged.
func (k KindResult) AgainstRecorded() string {
	if k.Recorded == nil || k.Transactions == 0 {
		return ""
	}
	then, now := k.Recorded.Avg, k.Latency.Avg-min(k.Recorded.RoundTrip, k.Latency.Avg/2)
	switch {
	case then <= k.Recorded.RoundTrip:
		return "shorter than the way there and back"
	case math.Abs(now/then-1) < 0.05:
		return "as fast as in the log"
	case now > then:
		return fmt.Sprintf("%.1f times slower than in the log", now/then)
	}
	return fmt.Sprintf("%.1f times faster than in the log", then/now)
}
