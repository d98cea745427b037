package digest

import (
	"bytes"
	"time"
)

// raw is an event as the slow log's parser leaves it: slices into the block, numbers in micros.
type raw struct {
	query       []byte
	cut         int // bytes of the statement that were left out
	explain     []byte
	db          []byte
	dbKnown     bool // db is the event's; else it is the log's current one
	user        []byte
	host        []byte
	ip          []byte
	who         *whoEntry // that user, host and ip come from, or nil
	thread      int64
	time        int64
	queryTime   uint64
	lockTime    uint64
	announced   bool // there was a line "# Query_time: "
	gotQuery    bool // queryTime is known
	gotLock     bool // lockTime is known
	attrs       []rawAttr
	shape       *shape // what attributes it has besides attrs[shaped:], or nil
	shaped      int    // attrs[:shaped] are those of the shape that are neither 0 nor No
	block       []byte // that texts of attrs are in
	offset      int64  // its place in the source
	timeIsLocal bool
	headed      bool // it begins with a line of a header; not looked at where announced says so
	ended       bool // there was something after the header, be it but a ";"
	torn        bool // the statement has no ";" at its end
	stamped     bool // the header has a line "SET timestamp"
}

// rawAttr is an attribute's value and where it is counted.
type rawAttr struct {
	num uint64 // number: micros; flag: 0 or 1; text: its start in raw.block and its length, 32 bits each
	attrRef
}

// attrRef says where an attribute is counted.
type attrRef struct {
	slot   int16
	kind   AttrKind
	dim    uint8
	at     uint8
	ignore bool
	_      [2]byte // a word, which is copied whole
}

// pushed appends an attribute. It writes the two words where they belong: a value that is put together elsewhere
// and copied as a whole has to wait until its parts have reached the cache.
func pushed(attrs []rawAttr, ref *attrRef, num uint64) []rawAttr {
	attrs = append(attrs, rawAttr{})
	a := &attrs[len(attrs)-1]
	a.num = num
	a.attrRef = *ref
	return attrs
}

// text is the value of a text attribute.
func (ev *raw) text(a *rawAttr) []byte {
	return ev.block[a.num>>32:][:uint32(a.num)]
}

func textAt(start, n int) uint64 { return uint64(start)<<32 | uint64(n) }

const (
	timeMark    = "# Time: "
	userMark    = "# User@Host: "
	adminMark   = "# administrator command: "
	queryMark   = "# Query_time: "
	explainMark = "# explain: "
	aliasMark   = "# User: " // in logs that other tools wrote
)

// slowParser takes events out of a block of slow log. The log's grammar, as all servers write it:
//
//	[banner: three lines, the first ends in "started with:"]
//	[# Time: …]  # User@Host: …  # Name: value …  [# explain: …]  [#]
//	[use db;]  [SET timestamp=N;]  statement;      or      # administrator command: Quit;
//
// Tools that thin out logs leave out any of the header's lines, and reorder them.
//
// Statements are written as they came, so nothing in the text marks their end for sure. An event is held to
// begin at a line of a header (isHead) after a line that ends in ";". This looks only at
// the two lines, so every worker sees the same events wherever its block begins. Two more beginnings are
// known in between: after a server's banner (the statement before it may be cut off), and at
// whole headers (lines of which one has Query_time) after a statement that lost its end.
// The limit: a statement that holds such lines itself is taken apart there, which openQuote finds out. Each line
// "# Query_time: " is compared with the events, so that what is lost is reported (lost.go).
type slowParser struct {
	names   *names
	skip    func(why string, n int64)
	server  func(banner []byte)
	zone    *time.Location
	line    lineContext
	limit   int
	whos    [whoSets]whoSet
	ahead   *whoEntry // of the line at aheadAt, where the next event begins; nil: not looked up
	aheadAt int
	all     bool      // attributes that are known to filters only are needed
	prev    *attrName // name that came last
	shapes  shape     // the tree's root
	tail    *shape    // the node that what attrLine reads next belongs under, or nil
	tailEnd int       // where the value before that ends
	marked  bool      // the names that ev.shape has are marked as seen
	// What was read last, and what it means: logs say the same again and again.
	dayText    [10]byte
	day        int64 // micros at the start of dayText, UTC
	secondText [secondLen]byte
	second     int64 // micros
	stampText  [stampLen]byte
	stamp      int64 // micros
	seq        uint32
	// shapeCount is how many nodes the tree has.
	shapeCount int
	searched   int64 // bytes that were searched for the end of an event
}

// lineContext is what an event may leave out because one before it said so.
type lineContext struct {
	db        []byte // of the last "use"
	dbKnown   bool
	time      int64
	timeKnown bool
}

func (c *lineContext) setDB(db []byte) {
	c.db = append(c.db[:0], db...)
	c.dbKnown = true
}

// isDate reports whether b begins with a date as the logs write it: 2026-01-02T or 260102 with a blank.
func isDate(b []byte) bool {
	digits := 0
	for digits < len(b) && b[digits]-'0' <= 9 {
		digits++
	}
	switch {
	case digits == 4:
		return len(b) > 5 && b[4] == '-' && b[5]-'0' <= 9
	case digits == 6:
		return len(b) > 6 && b[6] == ' '
	}
	return false
}

// nextEvent returns where, at or after i, the next event starts that follows a line ended by ";", or -1. Line
// starts in the last maxLine bytes are not looked at unless whole is set: their lines may not be whole.
func nextEvent(b []byte, i int, whole bool) int {
	for {
		n := bytes.IndexByte(b[i:], ';')
		if n < 0 {
			return -1
		}
		i += n + 1
		at := i
		if at < len(b) && b[at] == '\r' {
			at++
		}
		if at+2 >= len(b) || b[at] != '\n' || b[at+1] != '#' {
			continue
		}
		at++
		if !whole && bytes.IndexByte(b[at:], '\n') < 0 {
			return -1
		}
		if isHead(b, at) {
			return at
		}
	}
}

// block parses a block, which begins at an event (or at the log's start) and holds whole events. emit gets each
// event, which is valid until it returns. last says that the log ends with the block.
func (p *slowParser) block(b []byte, offset int64, cut int64, last bool, ev *raw, emit func(*raw)) {
	p.ahead = nil
	quote := openQuote{at: -1}
	end := -1 // what nextEvent last said
	for i := 0; i < len(b); {
		h := p.header(b, i, ev)
		ev.block = b
		ev.offset = offset + int64(i)
		if h < 0 {
			where := skipOutside
			if ev.offset == 0 {
				where = skipBefore
			}
			if i = p.junk(b, i, where); i == len(b) && cut > 0 {
				p.skip(where, cut)
			}
			continue
		}
		ev.headed = ev.announced || isHead(b, i) || hasPrefix(b, i, adminMark)
		if ev.query != nil { // an administrator command is one line
			p.finish(ev, false, emit)
			i = h
			continue
		}
		if next := p.oneLine(b, i, h, ev); next > 0 {
			if n := quote.event(b, h, next, false); n > 0 {
				p.skip(skipQuoted, n)
			}
			p.finish(ev, false, emit)
			i = next
			continue
		}
		if end < h { // else statements without their ends come before it: each would be searched up to there
			from := max(h-3, i) // the header may end in "SET timestamp=1;"
			if end = nextEvent(b, from, true); end < 0 {
				end = len(b)
			}
			p.searched += int64(end - from)
		}
		i = p.statement(b, i, h, end, cut, ev)
		if n := quote.event(b, h, i, i < end); n > 0 {
			p.skip(skipQuoted, n)
		}
		p.finish(ev, last && i == len(b), emit)
	}
	if n := quote.rest(len(b)); n > 0 && !last && cut == 0 { // a statement over the limit was cut within its quote
		p.skip(skipQuoted, n)
	}
}

// oneLine sets the text of the event that begins at b[start:] if it is a statement of one line and another event
// follows, as most; it returns where that begins, or -1. It finds what nextEvent and statement find.
func (p *slowParser) oneLine(b []byte, start, h int, ev *raw) int {
	n := bytes.IndexByte(b[h:], '\n')
	end := h + n + 1
	if n < 1 || b[end-2] != ';' || b[h] == '#' || end-start > p.limit || !p.eventStart(b, end) {
		return -1
	}
	ev.query = b[h : end-2]
	return end
}

// eventStart is isHead, and looks first whether the line is one that is remembered.
func (p *slowParser) eventStart(b []byte, i int) bool {
	if hasPrefix(b, i, userMark) {
		if e := p.who(b, i+len(userMark)); e != nil {
			p.ahead, p.aheadAt = e, i+len(userMark)
			return true
		}
	}
	return isHead(b, i)
}

// statement sets the text of an event whose header ends at h and that reaches to end at most; it returns where
// the event really ends.
func (p *slowParser) statement(b []byte, start, h, end int, cut int64, ev *raw) int {
	text := b[h:end]
	if nl := bytes.IndexByte(text, '\n'); nl >= 0 && nl != len(text)-1 {
		if n := brokenAt(text, nl); n >= 0 {
			text, end = text[:n], h+n
		}
		if n := announcedIn(text); n > 0 {
			p.skip(skipInside, n)
		}
	}
	if over := end - start - p.limit; over > 0 {
		keep := max(len(text)-over, 0)
		ev.cut = len(text) - keep
		text = text[:keep]
		p.skip(skipLong, int64(over))
	}
	if end == len(b) && cut > 0 {
		ev.cut += int(cut)
		p.skip(skipLong, cut)
	}
	ev.ended = len(text) > 0
	n := len(text)
	if ev.cut == 0 {
		for n > 0 && (text[n-1] == '\n' || text[n-1] == '\r') {
			n--
		}
		if n > 0 && text[n-1] == ';' {
			n--
		} else {
			ev.torn = n > 0
		}
	}
	ev.query = text[:n]
	return end
}

// brokenAt looks in a statement of several lines for a banner or a whole header that did not follow a ";", and
// returns its start, or -1. nl is the first line's end.
func brokenAt(text []byte, nl int) int {
	for {
		i := nl + 1
		if i+8 >= len(text) {
			return -1
		}
		switch text[i] {
		case '#':
			if isHead(text, i) && wholeHeader(text[i:]) {
				return i
			}
		case 'T':
			if isBannerLine(text[i:]) {
				return bannerStart(text, i)
			}
		}
		n := bytes.IndexByte(text[i:], '\n')
		if n < 0 {
			return -1
		}
		nl = i + n
	}
}

// isBannerLine recognizes the second and third line of what a server writes when it opens the log.
func isBannerLine(b []byte) bool {
	if bytes.HasPrefix(b, []byte("Tcp port: ")) || bytes.HasPrefix(b, []byte("TCP Port: ")) {
		return true
	}
	if !bytes.HasPrefix(b, []byte("Time ")) && !bytes.HasPrefix(b, []byte("Time\t")) {
		return false
	}
	line := b
	if n := bytes.IndexByte(b, '\n'); n >= 0 {
		line = b[:n]
	}
	return bytes.Contains(line, []byte(" Id Command"))
}

// bannerStart steps back from a banner's line at i over the line before it, if that is the banner's first.
func bannerStart(text []byte, i int) int {
	s := i - 1
	for s > 0 && text[s-1] != '\n' && i-s < 512 {
		s--
	}
	if isVersionLine(text[s : i-1]) {
		return s
	}
	return i
}

func isVersionLine(line []byte) bool {
	line = bytes.TrimRight(line, "\r\n")
	return bytes.Contains(line, []byte(", Version: ")) &&
		(bytes.HasSuffix(line, []byte("started with:")) || bytes.HasSuffix(line, []byte("embedded library")))
}

// wholeHeader reports whether a header at b has a line with Query_time among its first lines.
func wholeHeader(b []byte) bool {
	for range 8 {
		if hasPrefix(b, 0, queryMark) {
			return len(b) > len(queryMark) && (b[len(queryMark)]-'0' <= 9 || b[len(queryMark)] == '-')
		}
		n := bytes.IndexByte(b, '\n')
		if n < 0 || n+2 >= len(b) || b[n+1] != '#' {
			return false
		}
		b = b[n+1:]
	}
	return false
}

// junk steps over what is no event at i: a banner, or bytes that belong to nothing. It returns the next line
// start where a header may begin. What is skipped is counted as where says.
func (p *slowParser) junk(b []byte, i int, where string) int {
	first := true
	for i < len(b) {
		if !first && isHead(b, i) {
			return i
		}
		first = false
		end := bytes.IndexByte(b[i:], '\n')
		if end < 0 {
			end = len(b)
		} else {
			end += i + 1
		}
		line := b[i:end]
		switch {
		case isVersionLine(line):
			p.server(line)
			p.line.setDB(nil) // a log just opened names the current database again
		case isBannerLine(line), len(bytes.TrimSpace(line)) == 0:
		case hasPrefix(line, 0, queryMark):
			p.skip(skipInside, 1)
			fallthrough
		default:
			p.skip(where, int64(len(line)))
		}
		i = end
	}
	return i
}

// finish checks the event and passes it on. last says that the log ends with it.
func (p *slowParser) finish(ev *raw, last bool, emit func(*raw)) {
	if last && !ev.stamped && headerRest(ev.query, ev.torn) {
		ev.query, ev.ended = nil, false
	}
	switch {
	case len(ev.query) > 0:
		if !ev.announced {
			if !ev.headed {
				p.skip(skipNoTime, 1) // a comment, and something after it
				return
			}
			p.skip(skipTimeless, 1)
		}
		if ev.torn && last {
			p.skip(skipTailText, 1)
		} else if ev.torn {
			p.skip(skipCutOff, 1)
		}
		emit(ev)
	case ev.ended: // the server says so itself
		p.skip(skipNoQuery, 1)
	case last:
		p.skip(skipTail, 1)
	case ev.announced:
		p.skip(skipHeadOnly, 1)
	default:
		p.skip(skipNoTime, 1)
	}
}

// headerRest says that what the log's end left is a part of the lines that the server writes between header and statement: "use", with or
// without its ";", or the beginning of "SET timestamp".
func headerRest(text []byte, torn bool) bool {
	if len(text) >= len("use ") && bytes.EqualFold(text[:len("use ")], []byte("use ")) {
		return true
	}
	n := min(len(text), len("SET timestamp="))
	return torn && (string(text[:n]) == "SET timestamp="[:n] && len(bytes.Trim(text[n:], "0123456789.")) == 0 || string(text) == "use"[:min(len(text), 3)])
}
