package channels

import "github.com/rissodb/risso/internal/follow"

// Kept reports whether Risso keeps a replica from its source, by the name that it gave to that: what the replica is, and what ends it. To start the channel would not.
func Kept(source string) (is, next string, kept bool) {
	if was, detached := follow.Unmarked(source, follow.DetachedSuffix); detached {
		return "detached by risso from " + was, "risso replica attach lets it replicate again", true
	}
	if _, rebuilding := follow.Unmarked(source, follow.RebuildingSuffix); rebuilding {
		return "being rebuilt by risso, or was until that ended early: it has not all of its rows", "let it end; risso replica rebuild goes on with one that ended early", true
	}
	return "", "", false
}
