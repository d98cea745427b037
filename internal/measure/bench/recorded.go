package bench

import (
	"fmt"
	"math"
)

// What a class needs to be judged, and by how much it has to differ: a machine's mood alone moves medians by some per cent.
const (
	judgedCalls = 10
	asFast      = 0.1
)

// AgainstRecorded says in words how the server's own time for a class compares with that of the recording, which is the
// server's own, too: by the medians where the recording has them, else by the averages, which one slow statement moves. Empty
// where there is nothing to compare.
func (k KindResult) AgainstRecorded() string {
	if k.Recorded == nil || k.Transactions == 0 {
		return ""
	}
	now := k.Recorded.Now
	if now == nil {
		return "not judged: this server does not tell its own time"
	}
	then, is := k.Recorded.Median, now.Median
	if then == 0 {
		then, is = k.Recorded.Avg, now.Avg
	}
	is -= min(now.Empty, is/2) // being asked for times costs that much
	switch {
	case now.Calls < judgedCalls || k.Recorded.Calls < judgedCalls:
		return "not judged: too few calls"
	case then <= 0 || then < 2*now.Empty:
		return "not judged: too short"
	case math.Abs(math.Log(is/then)) < math.Log1p(asFast):
		return "as fast as in the log"
	case is > then:
		return fmt.Sprintf("%.1f times slower than in the log", is/then)
	}
	return fmt.Sprintf("%.1f times faster than in the log", then/is)
}
