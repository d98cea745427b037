package digest

import (
	"bytes"
	"encoding/binary"
	"time"
)

// header reads an event's header at b[i:] into ev and returns where the statement begins, or -1 if there is no
// header. ev is reset first.
func (p *slowParser) header(b []byte, i int, ev *raw) int {
	*ev = raw{attrs: ev.attrs[:0]}
	if i >= len(b) || b[i] != '#' {
		return -1
	}
	p.prev = &p.names.first
	p.tail, p.marked = nil, true
	p.seq++
	var stamp int64
	gotStamp, gotUse := false, false
	for start := i; i < len(b); {
		switch c := b[i]; {
		case c == '#' && i > start+3 && (b[i-2] == ';' || b[i-2] == '\r' && b[i-3] == ';') && eventStart(b, i):
			// the event has no statement
		case c == '#' && hasPrefix(b, i, adminMark):
			end := lineEnd(b, i)
			q := bytes.TrimRight(b[i+2:end], "\r\n")
			ev.query = bytes.TrimSuffix(q, []byte(";"))
			i = end
			p.settle(ev, stamp)
			return i
		case c == '#' && !gotStamp:
			i = p.headerLine(b, i, ev)
			continue
		case (c == 'u' || c == 'U') && !gotStamp && !gotUse:
			if db, end := useLine(b, i); end > 0 && end < len(b) {
				p.line.setDB(db)
				gotUse = true
				i = end
				continue
			}
		case c == 'S' && !gotStamp:
			if t, end := stampLine(b, i); end > 0 {
				stamp, gotStamp = t, true
				i = end
				continue
			}
		}
		break
	}
	p.settle(ev, stamp)
	return i
}

// settle decides the event's time and current database. A "# Time:" with a zone is when it ended. The form with
// a two-digit year has no zone: then the end is the start, "SET timestamp", and the time it took. An event with
// neither ended in the same second as the one before it (MariaDB leaves the line out then).
func (p *slowParser) settle(ev *raw, stamp int64) {
	switch {
	case stamp > 0 && (ev.time == 0 || ev.timeIsLocal):
		ev.time = stamp + int64(min(ev.queryTime, 1<<50))
	case ev.time == 0 && p.line.timeKnown:
		ev.time = p.line.time
	}
	if ev.time != 0 {
		p.line.time, p.line.timeKnown = ev.time, true
	}
	if !ev.dbKnown && p.line.dbKnown {
		ev.db, ev.dbKnown = p.line.db, true
	}
}

func hasPrefix(b []byte, i int, s string) bool {
	return len(b)-i >= len(s) && string(b[i:i+len(s)]) == s
}

// lineEnd is the start of the next line.
func lineEnd(b []byte, i int) int {
	if n := bytes.IndexByte(b[i:], '\n'); n >= 0 {
		return i + n + 1
	}
	return len(b)
}

// headerLine reads one "#" line and returns the start of the next.
func (p *slowParser) headerLine(b []byte, i int, ev *raw) int {
	if len(b)-i < 4 {
		return lineEnd(b, i)
	}
	switch b[i+2] {
	case 'T':
		if hasPrefix(b, i, timeMark) {
			i += len(timeMark)
			if t, end, ok := p.isoTime(b, i); ok && end < len(b) && b[end] == '\n' {
				ev.time = t
				return end + 1
			}
			end := lineEnd(b, i)
			p.time(b[i:end], ev)
			return end
		}
	case 'U':
		if hasPrefix(b, i, userMark) {
			return p.userLine(b, i+len(userMark), ev)
		}
	case 'e':
		if hasPrefix(b, i, "# explain: ") {
			end := lineEnd(b, i)
			if ev.explain == nil {
				ev.explain = b[i:end]
			} else { // the lines stand together: lengthen the slice
				ev.explain = ev.explain[:len(ev.explain)+end-i]
			}
			return end
		}
	case 'N':
		if hasPrefix(b, i, "# No InnoDB statistics") {
			return lineEnd(b, i)
		}
	}
	return p.attrLine(b, i+1, ev)
}

// userLine reads "priv_user[user] @ host [ip]  Id: 7".
func (p *slowParser) userLine(b []byte, i int, ev *raw) int {
	e := p.who(b, i)
	if e != nil {
		ev.user, ev.host, ev.ip, ev.who = e.user, e.host, e.ip, e
		i += len(e.text)
		if !p.all && p.prev == &p.names.first {
			i = p.follow(b, i, ev)
		}
		if i < len(b) && b[i] == '\n' {
			return i + 1
		}
		return p.attrLine(b, i, ev)
	}
	start := i
	end := lineEnd(b, i)
	line := b[i:end]
	open := bytes.IndexByte(line, '[')
	if open < 0 {
		return end
	}
	shut := bytes.IndexByte(line[open:], ']')
	if shut < 0 {
		return end
	}
	shut += open
	if ev.user = line[:open]; open == 0 {
		ev.user = line[1:shut]
	}
	if !hasPrefix(line, shut, "] @ ") {
		return end
	}
	at := shut + 4
	line = line[at:]
	n := bytes.IndexByte(line, ' ')
	if n < 0 {
		ev.host = bytes.TrimRight(line, "\r\n")
		return end
	}
	ev.host = line[:n]
	line = line[n:]
	if len(line) > 1 && line[1] == '[' {
		shut = bytes.IndexByte(line, ']')
		if shut < 0 {
			return end
		}
		ev.ip = line[2:shut]
		line = line[shut+1:]
		if len(ev.host) == 0 {
			ev.host = ev.ip
		}
		p.remember(b, start, end-len(line), ev)
	}
	if len(line) < 5 {
		return end
	}
	return p.attrLine(b, end-len(line), ev)
}

// isoLen is the length of a time with microseconds and Z.
const isoLen = len("2026-01-02T03:04:05.678901Z")

// whoEntry remembers a User@Host line up to the last "]": what begins with the same bytes says the same.
type whoEntry struct {
	text           string
	user, host, ip []byte
	userID, hostID uint32 // their numbers in worker.values; 0: not looked up yet
}

const (
	whoBits = 7
	whoSets = 1 << whoBits
	whoHash = 24  // bytes of a line that say in which set it is
	maxWho  = 256 // bytes of a line
)

// whoSet holds lines that begin alike.
type whoSet struct {
	entries [4]whoEntry
	missed  uint32
}

// whoSet is where a line that begins at b[i:] is remembered, or nil if it is too short.
func (p *slowParser) whoSet(b []byte, i int) *whoSet {
	if len(b)-i < whoHash {
		return nil
	}
	s := (*[whoHash]byte)(b[i:])
	h := (binary.LittleEndian.Uint64(s[:])*0x9E3779B97F4A7C15 ^ binary.LittleEndian.Uint64(s[8:])) * 0xC2B2AE3D27D4EB4F
	h = (h>>29 ^ h ^ binary.LittleEndian.Uint64(s[16:])) * 0x165667B19E3779F9
	return &p.whos[h>>(64-whoBits)]
}

// who gives what is remembered of the line that begins at b[i:], or nil.
func (p *slowParser) who(b []byte, i int) *whoEntry {
	set := p.whoSet(b, i)
	if set == nil {
		return nil
	}
	for k := range set.entries {
		e := &set.entries[k]
		if n := len(e.text); n > 0 && n < len(b)-i && string(b[i:i+n]) == e.text {
			return e
		}
	}
	return nil
}

// remember keeps the line that ends, up to its address, at b[i:end].
func (p *slowParser) remember(b []byte, i, end int, ev *raw) {
	set := p.whoSet(b, i)
	if set == nil || end-i > maxWho {
		return
	}
	// More lines than there is room for shall not push each other out all the time.
	n, size := set.missed, uint32(len(set.entries))
	if set.missed++; n >= size && n%16 != 0 {
		return
	}
	set.entries[(n/16+n)%size] = whoEntry{text: string(b[i:end]), user: bytes.Clone(ev.user), host: bytes.Clone(ev.host), ip: bytes.Clone(ev.ip)}
}

// attrLine reads "Name: value  Name: value" up to the line's end. Logs repeat themselves: the name that came
// after the last one is tried first.
func (p *slowParser) attrLine(b []byte, i int, ev *raw) int {
	prev := p.prev
	for {
		for i < len(b) && b[i] == ' ' {
			i++
		}
		if i >= len(b) {
			break
		}
		if b[i] < ' ' {
			i++
			if b[i-1] == '\n' {
				break
			}
			continue
		}
		if !p.marked {
			p.mark(ev)
		}
		n := prev.next
		if n != nil && n.is(b, i) {
			i += len(n.key)
		} else if n, i = p.name(b, i, prev); n == nil {
			p.tail = nil
			i = lineEnd(b, i)
			break
		}
		prev = n
		at, fresh := i, n.seen != p.seq
		var kind shapeKind
		if i, kind = p.attrValue(b, i, n, ev); !fresh {
			kind = shapeNone // of two values the first counts
		}
		p.learn(b, at, i, n, kind)
	}
	p.prev = prev
	return i
}

// attrValue reads a value and returns where it ends, and what shape it has.
func (p *slowParser) attrValue(b []byte, i int, n *attrName, ev *raw) (int, shapeKind) {
	if n.number {
		v, end, ok := uint64(0), i+1, true
		if len(b)-i < 2 || b[i] != '0' || b[i+1] > ' ' { // most attributes are 0
			v, end, ok = parseMicros(b, i)
		}
		if ok {
			p.number(ev, n, v)
			return end, n.role.shape()
		}
		if ref := n.refs[AttrFlag]; ref.slot >= 0 && n.seen != p.seq && i+3 < len(b) {
			if b[i] == 'N' && b[i+1] == 'o' && b[i+2] <= ' ' {
				n.seen = p.seq
				ev.attrs = append(ev.attrs, ref)
				return i + 2, shapeFlag
			}
			if b[i] == 'Y' && b[i+1] == 'e' && b[i+2] == 's' && b[i+3] <= ' ' {
				n.seen = p.seq
				ref.num = 1
				ev.attrs = append(ev.attrs, ref)
				return i + 3, shapeFlag
			}
		}
	}
	if n.role == roleIgnore && !p.all {
		for i < len(b) && b[i] == ' ' {
			i++
		}
		if isoHere(b, i) {
			return i + isoLen, shapeIgnore
		}
	}
	return p.value(b, i, n, ev)
}

// number adds a numeric attribute to the event, unless the event has it.
func (p *slowParser) number(ev *raw, n *attrName, v uint64) {
	if n.seen == p.seq {
		return
	}
	n.seen = p.seq
	switch n.role {
	case roleAuto:
		p.attr(ev, n, AttrNumber, v)
	case roleQueryTime:
		if v >= maxMicros { // the server's clock went back while it ran: minus so much
			v = 0
			p.skip(skipNegative, 1)
		}
		ev.queryTime, ev.gotQuery = v, true
	case roleLockTime:
		if v >= maxMicros {
			v = 0
		}
		ev.lockTime, ev.gotLock = v, true
	case roleThread:
		ev.thread = int64(v / micro)
	}
}

// name reads a name and its colon, and returns it and where the value begins; nil if there is none.
func (p *slowParser) name(b []byte, i int, prev *attrName) (*attrName, int) {
	start := i
	for i < len(b) && i-start <= 64 {
		c := b[i]
		if c|0x20-'a' > 25 && c-'0' > 9 && c != '_' && (c != ' ' || i == start) {
			break
		}
		i++
	}
	if i >= len(b) || b[i] != ':' || i == start {
		p.skip(skipHeader, 1)
		return nil, i
	}
	n := p.names.find(b[start:i])
	if n == nil {
		p.skip(skipNames, 1)
		return nil, i
	}
	i++
	if i < len(b) && b[i] == ' ' {
		i++
	}
	prev.next = n
	return n, i
}

// value reads a value that is no number at b[i:] and returns where it ends.
func (p *slowParser) value(b []byte, i int, n *attrName, ev *raw) (int, shapeKind) {
	for i < len(b) && b[i] == ' ' {
		i++
	}
	if n.number {
		if v, end, ok := parseMicros(b, i); ok {
			p.number(ev, n, v)
			return end, n.role.shape()
		}
	}
	end := i
	for end < len(b) && b[end] > ' ' {
		end++
	}
	if n.role == roleSchema {
		return p.schema(b, i, end, ev), shapeSchema
	}
	word := b[i:end]
	if len(word) == 0 {
		return end, shapeNone
	}
	if word[len(word)-1] == ':' { // the value is missing: this is the next name
		return i, shapeNone
	}
	if n.seen == p.seq {
		return end, shapeNone
	}
	n.seen = p.seq
	kind := shapeNone
	switch {
	case n.role != roleAuto && n.role != roleValue && n.role != roleIgnore:
		p.skip(skipHeader, 1) // a word where a number belongs
	case string(word) == "Yes":
		p.attr(ev, n, AttrFlag, 1)
	case string(word) == "No":
		p.attr(ev, n, AttrFlag, 0)
	default:
		p.attr(ev, n, AttrText, textAt(i, end-i))
		if n.role == roleValue {
			kind = shapeText
		} else if n.role == roleIgnore {
			kind = shapeIgnore
		}
	}
	return end, kind
}

// schema reads the name of a schema, which may be missing and may hold blanks: two blanks end it.
func (p *slowParser) schema(b []byte, i, end int, ev *raw) int {
	for end+1 < len(b) && b[end] == ' ' && b[end+1] > ' ' {
		for end++; end < len(b) && b[end] > ' '; end++ {
		}
	}
	word := b[i:end]
	if n := len(word); n > 0 && (word[n-1] == ':' || bytes.Contains(word, []byte(": "))) {
		word, end = nil, i // "Schema:  QC_hit: No": there is none, this is the next name
	}
	ev.db, ev.dbKnown = word, true
	return end
}

// attr adds an attribute to the event.
func (p *slowParser) attr(ev *raw, n *attrName, kind AttrKind, num uint64) {
	if p.names.slot(n, kind) < 0 {
		p.skip(skipNames, 1)
		return
	}
	a := n.refs[kind]
	a.num = num
	ev.attrs = append(ev.attrs, a)
}

// useLine reads "use db;" as the log writes it before a statement; end is -1 if it is something else.
func useLine(b []byte, i int) (db []byte, end int) {
	if !hasPrefix(b, i, "use ") && !hasPrefix(b, i, "USE ") {
		return nil, -1
	}
	end = lineEnd(b, i)
	line := bytes.TrimRight(b[i+4:end], "\r\n ")
	if len(line) < 2 || line[len(line)-1] != ';' {
		return nil, -1
	}
	line = line[:len(line)-1]
	if len(line) > 2 && line[0] == '`' && line[len(line)-1] == '`' {
		line = line[1 : len(line)-1]
	}
	return line, end
}

// stampLine reads "SET [last_insert_id=1,insert_id=2,]timestamp=N;" and returns the time in micros.
func stampLine(b []byte, i int) (t int64, end int) {
	const plain = "SET timestamp="
	if hasPrefix(b, i, plain) {
		i += len(plain)
	} else {
		if !hasPrefix(b, i, "SET last_insert_id=") && !hasPrefix(b, i, "SET insert_id=") {
			return 0, -1
		}
		e := lineEnd(b, i)
		n := bytes.Index(b[i:e], []byte("timestamp="))
		if n < 0 {
			return 0, e
		}
		i += n + len("timestamp=")
	}
	v := int64(0)
	s := i
	for ; i < len(b) && b[i]-'0' <= 9 && i-s < 12; i++ {
		v = v*10 + int64(b[i]-'0')
	}
	if i == s {
		return 0, -1
	}
	if i+1 < len(b) && b[i] == ';' && b[i+1] == '\n' {
		return v * micro, i + 2
	}
	return v * micro, lineEnd(b, i)
}

// time reads the value of a "# Time:" line.
func (p *slowParser) time(b []byte, ev *raw) {
	b = bytes.TrimRight(b, "\r\n ")
	if n := bytes.Index(b, []byte(userMark)); n > 0 { // written by two threads into one line
		p.userLine(b, n+len(userMark), ev)
		b = bytes.TrimRight(b[:n], " ")
	}
	if t, _, ok := p.isoTime(b, 0); ok {
		ev.time = t
		return
	}
	if t, ok := shortTime(b, p.zone); ok {
		ev.time, ev.timeIsLocal = t, true
		return
	}
	p.skip(skipBadTime, 1)
}

// isoTime reads 2026-01-02T03:04:05.678901Z at b[i:], or with +02:00, or without a zone, and returns where it
// ends. The day is remembered.
func (p *slowParser) isoTime(b []byte, i int) (t int64, end int, ok bool) {
	if len(b)-i < 19 {
		return 0, i, false
	}
	d := b[i : i+19]
	if d[4] != '-' || d[7] != '-' || (d[10] != 'T' && d[10] != ' ') || d[13] != ':' || d[16] != ':' {
		return 0, i, false
	}
	h, ok1 := two(d, 11)
	m, ok2 := two(d, 14)
	s, ok3 := two(d, 17)
	if !ok1 || !ok2 || !ok3 || h > 23 || m > 59 || s > 60 {
		return 0, i, false
	}
	if string(d[:10]) != string(p.dayText[:]) {
		day, err := time.Parse(time.DateOnly, string(d[:10]))
		if err != nil {
			return 0, i, false
		}
		p.dayText = [10]byte(d[:10])
		p.day = day.UnixMicro()
	}
	t = p.day + int64(h*3600+m*60+s)*micro
	i += 19
	if i < len(b) && b[i] == '.' {
		unit := int64(micro / 10)
		for i++; i < len(b) && b[i]-'0' <= 9; i++ {
			t += int64(b[i]-'0') * unit
			unit /= 10
		}
	}
	switch {
	case i < len(b) && b[i] == 'Z':
		i++
	case i+6 <= len(b) && (b[i] == '+' || b[i] == '-') && b[i+3] == ':':
		zh, ok1 := two(b, i+1)
		zm, ok2 := two(b, i+4)
		if !ok1 || !ok2 {
			return 0, i, false
		}
		off := int64(zh*3600+zm*60) * micro
		if b[i] == '-' {
			off = -off
		}
		t -= off
		i += 6
	case p.zone != time.UTC:
		w := time.UnixMicro(t).UTC()
		t = time.Date(w.Year(), w.Month(), w.Day(), w.Hour(), w.Minute(), w.Second(), w.Nanosecond(), p.zone).UnixMicro()
	}
	return t, i, true
}

func two(b []byte, i int) (int, bool) {
	x, y := b[i]-'0', b[i+1]-'0'
	return int(x)*10 + int(y), x <= 9 && y <= 9
}

// shortTime reads "260102  3:04:05": a two-digit year (as MySQL's YEAR: 70 to 99 are 19xx), no zone.
func shortTime(b []byte, zone *time.Location) (int64, bool) {
	if len(b) < 14 || b[6] != ' ' {
		return 0, false
	}
	y, ok1 := two(b, 0)
	mo, ok2 := two(b, 2)
	d, ok3 := two(b, 4)
	clock := bytes.TrimLeft(b[6:], " ")
	if len(clock) == 7 { // the hour has one digit
		clock = append([]byte{'0'}, clock...)
	}
	if !ok1 || !ok2 || !ok3 || mo < 1 || mo > 12 || d < 1 || d > 31 || len(clock) < 8 || clock[2] != ':' || clock[5] != ':' {
		return 0, false
	}
	h, ok4 := two(clock, 0)
	m, ok5 := two(clock, 3)
	s, ok6 := two(clock, 6)
	if !ok4 || !ok5 || !ok6 {
		return 0, false
	}
	y += 2000
	if y >= 2070 {
		y -= 100
	}
	return time.Date(y, time.Month(mo), d, h, m, s, 0, zone).UnixMicro(), true
}
