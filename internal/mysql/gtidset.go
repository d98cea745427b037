package mysql

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// interval is the numbers from..to, both of them included.
type interval struct{ from, to uint64 }

// GTIDSet is a set of transactions. MySQL: intervals of numbers by source. MariaDB: the last transaction of each domain,
// which includes all before it in that domain; there is no algebra beyond that. The zero set is empty and usable; Add
// changes a set, the other methods do not.
type GTIDSet struct {
	sources map[string][]interval // MySQL: sorted, not touching
	domains map[uint32]GTID       // MariaDB
}

// ParseGTIDSet reads a set as gtid_executed, gtid_purged, gtid_binlog_pos or gtid_slave_pos show it. Blanks and line breaks
// may surround commas. A UUID may be without dashes, or in braces, as servers take it. "" is the empty set.
func ParseGTIDSet(text string) (GTIDSet, error) {
	var s GTIDSet
	for part := range strings.SplitSeq(text, ",") {
		part = trimmed(part)
		switch {
		case part == "":
		case strings.Contains(part, ":"):
			if err := s.parseSource(part); err != nil {
				return GTIDSet{}, err
			}
		default:
			g, err := parseMaria(part)
			if err != nil {
				return GTIDSet{}, err
			}
			s.Add(g)
		}
	}
	if len(s.sources) > 0 && len(s.domains) > 0 {
		return GTIDSet{}, fmt.Errorf("%w: %.100q has MySQL's and MariaDB's", ErrGTID, text)
	}
	for source, list := range s.sources {
		s.sources[source] = merged(list)
	}
	return s, nil
}

// parseSource reads uuid:interval…[:tag:interval…]…, and leaves its intervals in the order in which they come.
func (s *GTIDSet) parseSource(part string) error {
	name, rest, _ := strings.Cut(part, ":")
	uuid, ok := canonicalUUID(trimmed(name))
	if !ok {
		return badGTID(part)
	}
	source, list, fresh := uuid, s.sources[uuid], false
	keep := func() {
		if s.sources == nil {
			s.sources = map[string][]interval{}
		}
		if len(list) > 0 {
			s.sources[source] = list
		}
	}
	if len(list) == 0 && len(rest) > large {
		if list = plainIntervals(rest); list != nil {
			keep()
			return nil
		}
	}
	for more := true; more; {
		v, n := plainInterval(rest)
		if n == 0 { // something else, or written in another way
			field, _, _ := strings.Cut(rest, ":")
			n = len(field)
			field = trimmed(field)
			if tag, ok := tagOf(field); ok {
				if fresh {
					return badGTID(part)
				}
				keep()
				source, fresh = uuid+":"+tag, true
				list = s.sources[source]
			} else if v, ok = parseInterval(field); !ok {
				return badGTID(part)
			} else {
				list, fresh = appendInterval(list, v), false
			}
		} else {
			list, fresh = appendInterval(list, v), false
		}
		if more = n < len(rest); more {
			rest = rest[n+1:]
		}
	}
	if fresh {
		return badGTID(part)
	}
	keep()
	return nil
}

// large is from which length on, in bytes, or a tenth of that in intervals, two processors share the work.
const large = 1 << 20

// plainIntervals reads intervals if all are as servers write them; else nil.
func plainIntervals(s string) []interval {
	at := len(s) / 2
	at += strings.IndexByte(s[at:], ':')
	if at < len(s)/2 {
		return nil
	}
	one, two := s[:at], s[at+1:]
	n := strings.Count(one, ":") + 1
	list := make([]interval, n+strings.Count(two, ":")+1)
	second := make(chan bool)
	go func() { second <- fillIntervals(list[n:], two) }()
	if first := fillIntervals(list[:n], one); !<-second || !first {
		return nil
	}
	return list
}

// fillIntervals reads as many as there is room for.
func fillIntervals(list []interval, s string) bool {
	for i := range list {
		v, n := plainInterval(s)
		if n == 0 {
			return false
		}
		list[i] = v
		s = s[min(n+1, len(s)):]
	}
	return true
}

// appendInterval puts an interval behind others, and makes one of two that follow each other.
func appendInterval(list []interval, v interval) []interval {
	if n := len(list); n > 0 && list[n-1].to+1 == v.from {
		list[n-1].to = v.to
		return list
	}
	return append(list, v)
}

// plainInterval reads an interval as servers write it, up to a colon or the end: n bytes; 0: there is none, or it is written in another way. Sets of a
// million intervals are read by it.
func plainInterval(s string) (v interval, n int) {
	const most = 18 // digits that cannot overflow
	for n < len(s) && s[n]-'0' <= 9 {
		v.from = v.from*10 + uint64(s[n]-'0')
		n++
	}
	if n == 0 || n > most || v.from == 0 {
		return v, 0
	}
	v.to = v.from
	if n < len(s) && s[n] == '-' {
		n++
		begin := n
		v.to = 0
		for n < len(s) && s[n]-'0' <= 9 {
			v.to = v.to*10 + uint64(s[n]-'0')
			n++
		}
		if n-begin > most || v.to < v.from {
			return v, 0
		}
	}
	if n < len(s) && s[n] != ':' {
		return v, 0
	}
	return v, n
}

// parseInterval reads from-to, or a number.
func parseInterval(s string) (v interval, ok bool) {
	a, b, ranged := strings.Cut(s, "-")
	from, err := strconv.ParseUint(trimmed(a), 10, 63)
	to := from
	if ranged && err == nil {
		to, err = strconv.ParseUint(trimmed(b), 10, 63)
	}
	return interval{from, to}, err == nil && from > 0 && to >= from && to <= lastNumber
}

// tagOf reads a tag: a letter or _, then up to 31 of those and digits; in small letters.
func tagOf(s string) (tag string, ok bool) {
	if s == "" || len(s) > 32 || s[0] >= '0' && s[0] <= '9' {
		return "", false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_', c >= '0' && c <= '9':
		default:
			return "", false
		}
	}
	return strings.ToLower(s), true
}

// merged sorts intervals, and makes one of those that touch.
func merged(list []interval) []interval {
	clean := true
	for i := 1; i < len(list) && clean; i++ {
		clean = list[i].from > list[i-1].to+1
	}
	if clean {
		return list
	}
	if !slices.IsSortedFunc(list, byFrom) {
		slices.SortFunc(list, byFrom)
	}
	n := 0
	for _, v := range list[min(1, len(list)):] {
		if v.from <= list[n].to+1 {
			list[n].to = max(list[n].to, v.to)
			continue
		}
		n++
		list[n] = v
	}
	return list[:min(n+1, len(list))]
}

func byFrom(a, b interval) int { return cmp.Compare(a.from, b.from) }

// ByDomain reports whether the set is one of GTIDs by domain, MariaDB's; an empty set is neither.
func (s GTIDSet) ByDomain() bool { return len(s.domains) > 0 }

// Empty reports whether no transaction is in it.
func (s GTIDSet) Empty() bool { return len(s.sources) == 0 && len(s.domains) == 0 }

// Add puts a transaction in. Of MariaDB's, the greater number of a domain wins.
func (s *GTIDSet) Add(g GTID) {
	switch {
	case g.IsZero():
	case g.Source != "":
		s.addInterval(g.Source, interval{g.Number, g.Number})
	default:
		if have, ok := s.domains[g.Domain]; ok && have.Number > g.Number {
			return
		}
		if s.domains == nil {
			s.domains = map[uint32]GTID{}
		}
		s.domains[g.Domain] = g
	}
}

func (s *GTIDSet) addInterval(source string, v interval) {
	if s.sources == nil {
		s.sources = map[string][]interval{}
	}
	list := s.sources[source]
	if n := len(list); n > 0 && list[n-1].to+1 == v.from { // what comes in order
		list[n-1].to = v.to
		return
	}
	// The first interval that v touches, and the first after it that it does not.
	i, _ := slices.BinarySearchFunc(list, v.from, func(x interval, from uint64) int { return cmp.Compare(x.to+1, from) })
	j := i
	for ; j < len(list) && list[j].from <= v.to+1; j++ {
		v.from, v.to = min(v.from, list[j].from), max(v.to, list[j].to)
	}
	s.sources[source] = slices.Replace(list, i, j, v)
}

// AddRange puts the numbers from..to of a MySQL source in; both are included, and numbers count from 1.
func (s *GTIDSet) AddRange(source string, from, to uint64) {
	if from >= 1 && to >= from {
		s.addInterval(source, interval{from, to})
	}
}

// Clone is a copy that shares nothing.
func (s GTIDSet) Clone() GTIDSet {
	out := GTIDSet{domains: maps.Clone(s.domains)}
	if s.sources != nil {
		out.sources = make(map[string][]interval, len(s.sources))
		for k, v := range s.sources {
			out.sources[k] = slices.Clone(v)
		}
	}
	return out
}

// Contains reports whether a transaction is in the set. Of MariaDB's: whether its domain has come that far.
func (s GTIDSet) Contains(g GTID) bool {
	if g.Source == "" {
		have, ok := s.domains[g.Domain]
		return ok && !g.IsZero() && have.Number >= g.Number
	}
	list := s.sources[g.Source]
	i, _ := slices.BinarySearchFunc(list, g.Number, func(x interval, n uint64) int { return cmp.Compare(x.to, n) })
	return i < len(list) && list[i].from <= g.Number
}

// Last reports whether a transaction that is in the set is the last one there of its source, of MariaDB's of its domain; alone: and there is no
// other source or domain, so that it is the last of all.
func (s GTIDSet) Last(g GTID) (last, alone bool) {
	if g.Source == "" {
		last = s.domains[g.Domain] == g
		return last, last && len(s.domains) == 1
	}
	list := s.sources[g.Source]
	last = len(list) > 0 && list[len(list)-1].to == g.Number
	return last, last && len(s.sources) == 1
}

// ContainsSet reports whether all of o is in s.
func (s GTIDSet) ContainsSet(o GTIDSet) bool { return o.Subtract(s).Empty() }

// Equal reports whether both hold the same transactions.
func (s GTIDSet) Equal(o GTIDSet) bool { return s.ContainsSet(o) && o.ContainsSet(s) }

// Union is what is in either. Of MariaDB's: the farther of each domain.
func (s GTIDSet) Union(o GTIDSet) GTIDSet {
	out := s.Clone()
	for source, list := range o.sources {
		if out.sources == nil {
			out.sources = map[string][]interval{}
		}
		out.sources[source] = merged(append(out.sources[source], list...))
	}
	for _, g := range o.domains {
		out.Add(g)
	}
	return out
}

// Subtract is what is in s and not in o (GTID_SUBTRACT of MySQL). Of MariaDB's: the domains in which s is farther than o.
func (s GTIDSet) Subtract(o GTIDSet) GTIDSet {
	var out GTIDSet
	for source, list := range s.sources {
		out.put(source, without(list, o.sources[source]))
	}
	for domain, g := range s.domains {
		if have, ok := o.domains[domain]; !ok || have.Number < g.Number {
			out.Add(g)
		}
	}
	return out
}

// Intersect is what is in both. Of MariaDB's: of each domain that both have, how far both have come.
func (s GTIDSet) Intersect(o GTIDSet) GTIDSet {
	var out GTIDSet
	for source, list := range s.sources {
		out.put(source, both(list, o.sources[source]))
	}
	for domain, g := range s.domains {
		have, ok := o.domains[domain]
		if ok && have.Number < g.Number {
			g = have
		}
		if ok {
			out.Add(g)
		}
	}
	return out
}

// put takes intervals of a source that is not there; none, nothing.
func (s *GTIDSet) put(source string, list []interval) {
	if len(list) == 0 {
		return
	}
	if s.sources == nil {
		s.sources = map[string][]interval{}
	}
	s.sources[source] = list
}

// without is what is in a and not in b.
func without(a, b []interval) []interval {
	if len(b) == 0 {
		return slices.Clone(a)
	}
	if len(a) < large/10 {
		out := make([]interval, fillWithout(nil, a, b))
		fillWithout(out, a, b)
		return out
	}
	// Two processors share the work: each counts, then fills its part of the answer.
	half := len(a) / 2
	at, _ := slices.BinarySearchFunc(b, a[half].from, func(x interval, from uint64) int { return cmp.Compare(x.to, from) })
	counted, rest, filled := make(chan int), make(chan []interval), make(chan bool)
	go func() {
		counted <- fillWithout(nil, a[half:], b[at:])
		fillWithout(<-rest, a[half:], b[at:])
		filled <- true
	}()
	n := fillWithout(nil, a[:half], b)
	out := make([]interval, n+<-counted)
	rest <- out[n:]
	fillWithout(out[:n], a[:half], b)
	<-filled
	return out
}

// fillWithout puts what is in a and not in b to out as far as there is room, and returns how much room all of it takes.
func fillWithout(out, a, b []interval) (n int) {
	j := 0
	for _, v := range a {
		for j < len(b) && b[j].to < v.from {
			j++
		}
		for ; j < len(b) && b[j].from <= v.to; j++ {
			if b[j].from > v.from {
				if n < len(out) {
					out[n] = interval{v.from, b[j].from - 1}
				}
				n++
			}
			if v.from = b[j].to + 1; v.from > v.to {
				break // it may reach into the next of a
			}
		}
		if v.from <= v.to {
			if n < len(out) {
				out[n] = v
			}
			n++
		}
	}
	return n
}

// both is what is in a and in b.
func both(a, b []interval) (out []interval) {
	for i, j := 0, 0; i < len(a) && j < len(b); {
		if from, to := max(a[i].from, b[j].from), min(a[i].to, b[j].to); from <= to {
			out = append(out, interval{from, to})
		}
		if a[i].to < b[j].to {
			i++
		} else {
			j++
		}
	}
	return out
}

// Count is how many transactions the set has; for MariaDB's it is unknown and 0.
func (s GTIDSet) Count() uint64 {
	var n uint64
	for _, list := range s.sources {
		for _, v := range list {
			n += v.to - v.from + 1
		}
	}
	return n
}

// Domains are the last transactions by domain, sorted; nil unless the set is MariaDB's.
func (s GTIDSet) Domains() []GTID {
	list := slices.Collect(maps.Values(s.domains))
	slices.SortFunc(list, func(a, b GTID) int { return cmp.Compare(a.Domain, b.Domain) })
	return list
}

// String is the set as its servers read it, sorted; tags follow their UUID.
func (s GTIDSet) String() string {
	var b strings.Builder
	for source, list := range s.sources {
		if n := len(list); n > large/10 { // else it grows many times
			b.Grow(len(source) + n*2*(len(strconv.FormatUint(list[n-1].to, 10))+1))
		}
	}
	_ = s.Write(&b) // it takes all
	return b.String()
}

// Write writes String, a part at a time.
func (s GTIDSet) Write(w io.Writer) error {
	b, begun := make([]byte, 0, 64), false
	comma := func() {
		if begun {
			b = append(b, ',')
		}
		begun = true
	}
	for _, g := range s.Domains() {
		comma()
		b = append(b, g.String()...)
	}
	last := ""
	for _, source := range slices.Sorted(maps.Keys(s.sources)) {
		uuid, tag, tagged := strings.Cut(source, ":")
		switch {
		case uuid == last && tagged:
			b = append(append(b, ':'), tag...)
		default:
			comma()
			b = append(b, source...)
		}
		last = uuid
		if list := s.sources[source]; len(list) <= large/10 {
			b = appendIntervals(b, list)
		} else if _, err := w.Write(b); err != nil {
			return err
		} else if err := writeIntervals(w, list); err != nil {
			return err
		} else {
			b = b[:0]
		}
	}
	_, err := w.Write(b)
	return err
}

// writeIntervals writes many intervals of one source, a part of them while the next is made.
func writeIntervals(w io.Writer, list []interval) error {
	const most = 16 << 10
	parts, spare := make(chan []byte, 2), make(chan []byte, 4)
	for range cap(spare) {
		spare <- nil
	}
	go func() {
		defer close(parts)
		for part := range slices.Chunk(list, 2*most) {
			half := min(most, len(part))
			second := make(chan []byte)
			b := <-spare
			go func() { second <- appendIntervals((<-spare)[:0], part[half:]) }()
			parts <- appendIntervals(b[:0], part[:half])
			parts <- <-second
		}
	}()
	var failed error
	for b := range parts {
		if failed == nil {
			_, failed = w.Write(b)
		}
		spare <- b
	}
	return failed
}

// appendIntervals writes intervals of one source.
func appendIntervals(b []byte, list []interval) []byte {
	const most = 2 * (1 + 20) // bytes of an interval
	for part := range slices.Chunk(list, 256) {
		b = slices.Grow(b, most*len(part))
		n := len(b)
		b = b[:n+most*len(part)]
		for _, v := range part {
			b[n] = ':'
			n = putNumber(b, n+1, v.from)
			if v.to > v.from {
				b[n] = '-'
				n = putNumber(b, n+1, v.to)
			}
		}
		b = b[:n]
	}
	return b
}

// putNumber writes a number to b at a place, and returns the place behind it. Sets of a million intervals are written by it.
func putNumber(b []byte, at int, v uint64) int {
	const pairs = "00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748495051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899"
	end := at + decimals(v)
	i := end
	for v >= 100 {
		rest := v % 100 * 2
		v /= 100
		i -= 2
		b[i+1], b[i] = pairs[rest+1], pairs[rest]
	}
	if v >= 10 {
		b[i-1], b[i-2] = pairs[v*2+1], pairs[v*2]
	} else {
		b[i-1] = byte('0' + v)
	}
	return end
}

// decimals is how many digits a number has.
func decimals(v uint64) int {
	n := 1
	for ; v >= 10_000; v /= 10_000 {
		n += 4
	}
	switch {
	case v >= 1000:
		return n + 3
	case v >= 100:
		return n + 2
	case v >= 10:
		return n + 1
	}
	return n
}

// MarshalText makes it a text in JSON.
func (s GTIDSet) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (s *GTIDSet) UnmarshalText(b []byte) error {
	v, err := ParseGTIDSet(string(b))
	*s = v
	return err
}
