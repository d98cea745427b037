package digest

import (
	"bytes"

	"github.com/rissodb/risso/internal/sqltext"
)

// maxQuoted bounds how much of a block is read again to find where an open quote closes.
const maxQuoted = 1 << 20

// openQuote watches for events that are none: text of a slow log within a literal of a statement, such as one that stores logs. The
// log does not escape statements, so such text looks like events. It gives itself away: the statement before ends within a quote,
// and is whole together with what follows. A statement that was sent with an open quote is not made whole by the next.
type openQuote struct {
	at     int   // where the quote opens in the block; -1: none does
	events int64 // that came since
}

// event looks at the event whose statement is b[from:end]. It says of how many events, this the last, nothing tells whether they are text.
func (o *openQuote) event(b []byte, from, end int, cut bool) int64 {
	if o.at >= 0 {
		o.events++
		at := -1
		if end-o.at <= maxQuoted {
			if at = sqltext.OpenAt(b[o.at:end]); at < 0 {
				o.at = -1
				return o.events
			}
		}
		if at == 0 {
			return 0
		}
		o.at = -1
	}
	// An apostrophe that stands alone is rare, and most statements need no closer look.
	if text := b[from:end]; cut || bytes.Count(text, []byte{'\''})&1 != 0 || bytes.Count(text, []byte{'"'})&1 != 0 {
		if at := sqltext.OpenAt(text); at >= 0 {
			o.at, o.events = from+at, 0
		}
	}
	return 0
}
