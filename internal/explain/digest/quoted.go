package digest

import (
	"bytes"

	"github.com/rissodb/risso/internal/sqltext"
)

// openQuote watches for events that are none: text of a slow log within a literal of a statement, such as one that stores logs. The
// log does not escape statements, so such text looks like events. It can be recognized: the statement before ends within a quote,
// and is whole together with what follows. A statement that was sent with an open quote is not made whole by the next.
type openQuote struct {
	at     int   // where the quote opens in the block; -1: none does
	seen   int   // up to where it is not closed
	events int64 // that came since
}

// event looks at the event whose statement is b[from:end]. It says how many events, this the last, may be text. endless says that
// nothing marked the statement's end.
func (o *openQuote) event(b []byte, from, end int, endless bool) int64 {
	if o.at >= 0 {
		o.events++
		shut := sqltext.CloseAt(b[o.seen:end], b[o.at])
		if shut < 0 {
			o.seen = end
			return 0
		}
		o.at = -1
		if sqltext.OpenAt(b[o.seen+shut:end]) < 0 {
			return o.events
		}
	}
	// A lone apostrophe is rare, and most statements need no closer look.
	if text := b[from:end]; endless || bytes.Count(text, []byte{'\''})&1 != 0 || bytes.Count(text, []byte{'"'})&1 != 0 {
		if at := sqltext.OpenAt(text); at >= 0 {
			*o = openQuote{at: from + at, seen: end}
		}
	}
	return 0
}

// nearEnd is how close to a block's end a quote opens of which it is unknown whether it closes in the next.
const nearEnd = 64 << 10

// rest is for a block's end: how many events may be text, or one that may follow, if the quote is still open.
func (o *openQuote) rest(end int) int64 {
	if o.at < 0 || end-o.at > nearEnd {
		return 0
	}
	return max(o.events, 1)
}
