package failover

import "time"

// because puts a reason after what it led to.
func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// short cuts a set that is long.
func short(set string) string {
	const most = 300
	if len(set) > most {
		return set[:most] + "…"
	}
	return set
}

func secondsOf(n int) time.Duration { return time.Duration(n) * time.Second }
