package bench

import "github.com/rissodb/risso/internal/digits"

// judgedCalls is how many calls a class needs to be compared with the recording.
const judgedCalls = 10

// OfRecorded is the server's own time for a class as a multiple of that in the recording, which is the server's own, too: by the
// medians where the recording has them, else by the averages, which one slow statement moves; or why there is none. It is no
// verdict: the recording was made at another time, and what else the machine did then is not known. Empty if there is nothing to
// compare.
func (k KindResult) OfRecorded() string {
	if k.Recorded == nil || k.Transactions == 0 {
		return ""
	}
	now := k.Recorded.Now
	if now == nil {
		return "not told"
	}
	then, is := k.Recorded.Median, now.Median
	if then == 0 {
		then, is = k.Recorded.Avg, now.Avg
	}
	is -= min(now.Empty, is/2) // being asked for times costs that much
	switch {
	case now.Calls < judgedCalls || k.Recorded.Calls < judgedCalls:
		return "too few calls"
	case then <= 0 || then < 2*now.Empty:
		return "too short"
	}
	return digits.Ratio(is / then)
}
