package digest

import "bytes"

// header reads an event's header at b[i:] into ev and returns where the statement begins, or -1 if there is no
// header. ev is reset first.
func (p *slowParser) header(b []byte, i int, ev *raw) int {
	attrs := ev.attrs[:0]
	*ev = raw{}
	ev.attrs = attrs
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
		case c == '#' && i > start+3 && (b[i-2] == ';' || b[i-2] == '\r' && b[i-3] == ';') && isHead(b, i):
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
			if t, end := p.stampLine(b, i); end > 0 {
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
	ev.stamped = stamp > 0
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
			p.tail = nil
			i += len(timeMark)
			if t := p.sameSecond(b, i); t != 0 {
				ev.time = t
				return i + isoLen + 1
			}
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
			p.tail = nil
			return p.userLine(b, i+len(userMark), ev)
		}
		if hasPrefix(b, i, aliasMark) {
			p.tail = nil
			return p.userLine(b, i+len(aliasMark), ev)
		}
	case 'e':
		if hasPrefix(b, i, explainMark) {
			p.tail = nil
			end := lineEnd(b, i)
			if ev.explain == nil {
				ev.explain = b[i:end]
			} else { // the lines are adjacent: lengthen the slice
				ev.explain = ev.explain[:len(ev.explain)+end-i]
			}
			return end
		}
	case 'N', 'W', 'E':
		if hasPrefix(b, i, "# No InnoDB statistics") || isWarning(b, i) {
			return lineEnd(b, i)
		}
	}
	return p.attrLine(b, i+1, ev)
}

// userLine reads "priv_user[user] @ host [ip]  Id: 7".
func (p *slowParser) userLine(b []byte, i int, ev *raw) int {
	e := p.ahead
	if p.ahead = nil; e == nil || p.aheadAt != i {
		e = p.who(b, i)
	}
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
	ev.who = nil // of a line before this
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
		return p.attrLine(b, end-len(line), ev)
	}
	if len(line) < 5 {
		return end
	}
	return p.attrLine(b, end-len(line), ev)
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
			return end, p.number(ev, n, v)
		}
		if ref := &n.refs[AttrFlag]; ref.slot >= 0 && n.seen != p.seq && i+3 < len(b) {
			if b[i] == 'N' && b[i+1] == 'o' && b[i+2] <= ' ' {
				n.seen = p.seq
				ev.attrs = pushed(ev.attrs, ref, 0)
				return i + 2, shapeFlag
			}
			if b[i] == 'Y' && b[i+1] == 'e' && b[i+2] == 's' && b[i+3] <= ' ' {
				n.seen = p.seq
				ev.attrs = pushed(ev.attrs, ref, 1)
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

// number adds a numeric attribute to the event, unless the event has it, and says what shape it has.
func (p *slowParser) number(ev *raw, n *attrName, v uint64) shapeKind {
	if n.seen == p.seq {
		if n.role == roleQueryTime {
			p.again(ev, v)
		}
		return shapeNone
	}
	n.seen = p.seq
	if n.role == roleQueryTime {
		ev.announced = true
	}
	if v >= maxMicros {
		p.skip(skipWrapped, 1)
		return shapeNone
	}
	switch n.role {
	case roleAuto:
		p.attr(ev, n, AttrNumber, v)
	case roleQueryTime:
		ev.queryTime, ev.gotQuery = v, true
	case roleLockTime:
		ev.lockTime, ev.gotLock = v, true
	case roleThread:
		ev.thread = int64(v / micro)
	}
	return n.role.shape()
}

// again counts a second Query_time in one header: a line that was doubled, or that of another event.
func (p *slowParser) again(ev *raw, v uint64) {
	if ev.gotQuery && v == ev.queryTime || !ev.gotQuery && v >= maxMicros {
		p.skip(skipDoubled, 1)
	} else {
		p.skip(skipMixed, 1)
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
			return end, p.number(ev, n, v)
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
		ev.announced = ev.announced || n.role == roleQueryTime
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
	ev.attrs = pushed(ev.attrs, &n.refs[kind], num)
}

// useLine reads "use db;" as the log writes it before a statement; end is -1 if it is something else.
func useLine(b []byte, i int) (db []byte, end int) {
	if !hasPrefix(b, i, "use ") && !hasPrefix(b, i, "USE ") {
		return nil, -1
	}
	end = lineEnd(b, i)
	line := b[i+4 : end]
	if n := len(line); n < 3 || line[n-1] != '\n' || line[n-2] != ';' { // has more blanks than usual
		line = bytes.TrimRight(line, "\r\n ")
	} else {
		line = line[:n-1]
	}
	if len(line) < 2 || line[len(line)-1] != ';' {
		return nil, -1
	}
	line = line[:len(line)-1]
	if len(line) > 2 && line[0] == '`' && line[len(line)-1] == '`' {
		line = line[1 : len(line)-1]
	}
	return line, end
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
