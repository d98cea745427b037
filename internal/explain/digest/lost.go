package digest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/digits"
)

// Reasons of Profile.Skipped.
const (
	skipOutside   = "bytes outside of events"
	skipBefore    = "bytes before the first event"
	skipInside    = "lines \"# Query_time\" that began no event"
	skipHeadOnly  = "headers of events without a statement"
	skipMixed     = "lines \"# Query_time\" in the header of another event"
	skipDoubled   = "lines \"# Query_time\" that occur twice"
	skipQuoted    = "events that may be part of the preceding statement's text"
	skipTail      = SkippedTorn
	skipLong      = "bytes of statements over 8 MiB"
	skipTailText  = "statements that the file's end cuts off: each counts as far as it goes"
	skipCutOff    = "statements without an end: each counts as far as it goes"
	skipNoTime    = "comments between events"
	skipTimeless  = "events without Query_time: their time is unknown"
	skipNoQuery   = "events with an empty statement"
	skipHeader    = "header lines not understood"
	skipNames     = "attributes beyond the first 128 names"
	skipWrapped   = "negative values, logged as huge ones: they count as unknown"
	skipBadTime   = "times not understood"
	skipFilter    = "events that the filter left out"
	skipOutOfTime = "events outside of --since and --until"
	skipDateless  = "events of unknown date"
	skipNoGroup   = "events without the attribute to group by"
)

// Reasons that binary logs have, too.
const (
	SkippedChecksum = "events with a wrong checksum"
	SkippedDamaged  = "bytes after a damaged event"
	SkippedTorn     = "events cut off by the end of the file"
)

// losses are the reasons that say that something of the log is missing in the profile, or counted without its time; skipQuoted is
// one, too.
var losses = []string{skipInside, skipHeadOnly, skipMixed, skipTimeless, skipNoTime, skipOutside, SkippedTorn, SkippedChecksum, SkippedDamaged}

// unmade are those that say that an event which a line "# Query_time: " announces was not made.
var unmade = []string{skipInside, skipHeadOnly, skipMixed}

// Lost says in a sentence what of the sources is missing in the profile though it should be there; empty: nothing. Every
// line "# Query_time: " of a slow log is compared with the events that were made.
func (p *Profile) Lost() string {
	parts := lost(p.Skipped, p.Calls)
	for _, s := range p.Sources {
		if s.Broken != "" {
			parts = append(parts, fmt.Sprintf("%s ends too early: %s; %s read", s.Name, s.Broken, digits.Plural(s.Events, "event before that was", "events before that were")))
		}
	}
	return strings.Join(parts, "; ")
}

// Lost is Profile.Lost of what was scanned so far.
func (s *Scanner) Lost() string { return strings.Join(lost(s.w.skipped, s.w.events), "; ") }

// Missing is how many events the logs announce that were not made.
func (p *Profile) Missing() int64 { return missing(p.Skipped) }

func missing(skipped map[string]int64) (n int64) {
	for _, why := range unmade {
		n += skipped[why]
	}
	return n
}

func lost(skipped map[string]int64, events int64) (parts []string) {
	if n := missing(skipped); n > 0 {
		parts = append(parts, digits.Plural(n, "event is", "events are")+" announced by a line \"# Query_time\" and could not be read")
	}
	if n := skipped[skipQuoted]; n > 0 {
		parts = append(parts, digits.Plural(n, "event", "events")+" may not be events, but text inside a quote that the preceding statement leaves open; counted anyway")
	}
	for _, why := range losses {
		if n := skipped[why]; n > 0 && !slices.Contains(unmade, why) {
			parts = append(parts, fmt.Sprintf("%d %s", n, why))
		}
	}
	// If no statement has an end, a tool removed them, and the last is no worse than the others.
	if n := skipped[skipTailText]; n > 0 && (events < 2 || n+skipped[skipCutOff] < events) {
		parts = append(parts, fmt.Sprintf("%d %s", n, skipTailText))
	}
	if n := skipped[skipBefore]; n > statementLimit {
		parts = append(parts, fmt.Sprintf("%d %s", n, skipBefore))
	}
	return parts
}

// unread is how many bytes the workers could make nothing of.
func unread(skipped map[string]int64) int64 { return skipped[skipOutside] + skipped[skipBefore] }

// announcedIn counts the lines "# Query_time: " in a text that is not its first line.
func announcedIn(text []byte) int64 {
	return int64(bytes.Count(text, []byte("\n"+queryMark)))
}
