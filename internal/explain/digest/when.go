package digest

import (
	"bytes"
	"encoding/binary"
	"time"
)

const (
	isoLen    = len("2026-01-02T03:04:05.678901Z") // a time with microseconds
	secondLen = len("2026-01-02T03:04:05.")        // what it has in common with others of its second
	stampLen  = len("SET timestamp=1780000000;\n")
)

// sameSecond reads a time like 2026-01-02T03:04:05.678901Z and a line's end at b[i:] if it is of the same second
// as the last one, else it returns 0.
func (p *slowParser) sameSecond(b []byte, i int) int64 {
	if p.second == 0 || len(b)-i <= isoLen || [secondLen]byte(b[i:]) != p.secondText || b[i+isoLen-1] != 'Z' || b[i+isoLen] != '\n' {
		return 0
	}
	v, n := digits8(binary.LittleEndian.Uint64(b[i+secondLen:]))
	if n != 6 {
		return 0
	}
	return p.second + int64(v)
}

// stampLine reads "SET [last_insert_id=1,insert_id=2,]timestamp=N;" and returns the time in micros.
func (p *slowParser) stampLine(b []byte, i int) (t int64, end int) {
	start := i
	if len(b)-i > stampLen && [stampLen]byte(b[i:]) == p.stampText {
		return p.stamp, i + stampLen
	}
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
		if i += 2; i-start == stampLen {
			p.stampText, p.stamp = [stampLen]byte(b[start:]), v*micro
		}
		return v * micro, i
	}
	return v * micro, lineEnd(b, i)
}

// isoTime reads 2026-01-02T03:04:05.678901Z at b[i:], or with +02:00, or without a zone, and returns where it
// ends. The day is remembered.
func (p *slowParser) isoTime(b []byte, i int) (t int64, end int, ok bool) {
	if len(b)-i < 19 {
		return 0, i, false
	}
	start, d := i, b[i:i+19]
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
		if i-start == isoLen && t > 0 {
			p.secondText, p.second = [secondLen]byte(b[start:]), t-t%micro
		}
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
