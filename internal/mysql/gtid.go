package mysql

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/pattern"
)

// ErrGTID is what every error about the form of a GTID wraps.
var ErrGTID = errors.New("not a GTID")

// GTID names one transaction. MySQL: the UUID of the server where it was committed first, perhaps a tag (8.3), and a number.
// MariaDB: domain, server and number. Source: "GTID Format and Storage" in MySQL's manual; "Global Transaction ID" in
// MariaDB's Knowledge Base. The zero GTID means a transaction without one.
type GTID struct {
	Source string // MySQL: uuid or uuid:tag, in lower case; "" at MariaDB's
	Domain uint32 // MariaDB
	Server uint32 // MariaDB
	Number uint64 // MySQL: from 1 on
}

var (
	mariaGTID = pattern.Lazy(`^[0-9]+-[0-9]+-[0-9]+$`)
	uuidForm  = pattern.Lazy(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	tagForm   = pattern.Lazy(`^[a-z_][a-z0-9_]{0,31}$`)
)

// ParseGTID reads uuid:number, uuid:tag:number or domain-server-number.
func ParseGTID(s string) (GTID, error) {
	s = strings.ToLower(strings.TrimSpace(s))
	if mariaGTID().MatchString(s) {
		return parseMaria(s)
	}
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return GTID{}, badGTID(s)
	}
	n, err := strconv.ParseUint(s[i+1:], 10, 63)
	source, tag, tagged := strings.Cut(s[:i], ":")
	if err != nil || n == 0 || !uuidForm().MatchString(source) || tagged && !tagForm().MatchString(tag) {
		return GTID{}, badGTID(s)
	}
	return GTID{Source: s[:i], Number: n}, nil
}

func badGTID(s string) error {
	return fmt.Errorf("%w: %.100q; MySQL's is uuid:number, MariaDB's domain-server-number", ErrGTID, s)
}

func parseMaria(s string) (GTID, error) {
	p := strings.Split(s, "-")
	domain, err1 := strconv.ParseUint(p[0], 10, 32)
	server, err2 := strconv.ParseUint(p[1], 10, 32)
	n, err3 := strconv.ParseUint(p[2], 10, 64)
	if err := errors.Join(err1, err2, err3); err != nil {
		return GTID{}, badGTID(s)
	}
	return GTID{Domain: uint32(domain), Server: uint32(server), Number: n}, nil
}

// ByDomain reports whether it is domain-server-number, as MariaDB's are.
func (g GTID) ByDomain() bool { return g.Source == "" && !g.IsZero() }

// IsZero reports whether there is no GTID.
func (g GTID) IsZero() bool { return g == GTID{} }

// String is the GTID as the server writes it; "" for none.
func (g GTID) String() string {
	switch {
	case g.IsZero():
		return ""
	case g.Source != "":
		return g.Source + ":" + strconv.FormatUint(g.Number, 10)
	}
	return fmt.Sprintf("%d-%d-%d", g.Domain, g.Server, g.Number)
}

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
// may surround commas. "" is the empty set.
func ParseGTIDSet(text string) (GTIDSet, error) {
	var s GTIDSet
	for part := range strings.SplitSeq(text, ",") {
		part = strings.ToLower(strings.TrimSpace(part))
		switch {
		case part == "":
			continue
		case mariaGTID().MatchString(part):
			g, err := parseMaria(part)
			if err != nil {
				return GTIDSet{}, err
			}
			s.Add(g)
			continue
		}
		if err := s.parseSource(part); err != nil {
			return GTIDSet{}, err
		}
	}
	if len(s.sources) > 0 && len(s.domains) > 0 {
		return GTIDSet{}, fmt.Errorf("%w: %.100q has MySQL's and MariaDB's", ErrGTID, text)
	}
	return s, nil
}

// parseSource reads uuid:interval…[:tag:interval…]….
func (s *GTIDSet) parseSource(part string) error {
	fields := strings.Split(part, ":")
	for i := range fields {
		fields[i] = strings.TrimSpace(fields[i])
	}
	uuid := fields[0]
	if !uuidForm().MatchString(uuid) || len(fields) < 2 {
		return badGTID(part)
	}
	source, fresh := uuid, false
	for _, f := range fields[1:] {
		if tagForm().MatchString(f) {
			if fresh {
				return badGTID(part)
			}
			source, fresh = uuid+":"+f, true
			continue
		}
		a, b, ranged := strings.Cut(f, "-")
		from, err := strconv.ParseUint(a, 10, 63)
		to := from
		if ranged && err == nil {
			to, err = strconv.ParseUint(b, 10, 63)
		}
		if err != nil || from == 0 || to < from {
			return badGTID(part)
		}
		s.addInterval(source, interval{from, to})
		fresh = false
	}
	if fresh {
		return badGTID(part)
	}
	return nil
}

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
		for _, v := range list {
			out.addInterval(source, v)
		}
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
		for _, v := range list {
			for _, x := range o.sources[source] {
				if x.to < v.from {
					continue
				}
				if x.from > v.to {
					break
				}
				if x.from > v.from {
					out.addInterval(source, interval{v.from, x.from - 1})
				}
				v.from = x.to + 1
				if v.from > v.to {
					break
				}
			}
			if v.from <= v.to {
				out.addInterval(source, v)
			}
		}
	}
	for domain, g := range s.domains {
		if have, ok := o.domains[domain]; !ok || have.Number < g.Number {
			out.Add(g)
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
	for _, g := range s.Domains() {
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(g.String())
	}
	last := ""
	for _, source := range slices.Sorted(maps.Keys(s.sources)) {
		uuid, tag, tagged := strings.Cut(source, ":")
		switch {
		case uuid == last && tagged:
			b.WriteString(":" + tag)
		default:
			if b.Len() > 0 {
				b.WriteByte(',')
			}
			b.WriteString(source)
		}
		last = uuid
		for _, v := range s.sources[source] {
			b.WriteByte(':')
			b.WriteString(strconv.FormatUint(v.from, 10))
			if v.to > v.from {
				b.WriteByte('-')
				b.WriteString(strconv.FormatUint(v.to, 10))
			}
		}
	}
	return b.String()
}

// MarshalText makes it a text in JSON.
func (s GTIDSet) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (s *GTIDSet) UnmarshalText(b []byte) error {
	v, err := ParseGTIDSet(string(b))
	*s = v
	return err
}

// MarshalText makes it a text in JSON.
func (g GTID) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (g *GTID) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*g = GTID{}
		return nil
	}
	v, err := ParseGTID(string(b))
	*g = v
	return err
}

// ErrantTransactions compares which transactions a replica and its source have had, as gtid_executed of MySQL or gtid_binlog_state of MariaDB tells. object is which
// of the two it is, extra what only the replica has; numbers are the transactions of it, where each is known. Sets of nothing, or that cannot be compared, have
// nothing extra.
func ErrantTransactions(replica, source string) (object, extra string, numbers []GTID, err error) {
	r, err := ParseGTIDSet(replica)
	if err != nil {
		return "", "", nil, err
	}
	s, err := ParseGTIDSet(source)
	if err != nil || r.Empty() || s.Empty() || r.ByDomain() != s.ByDomain() {
		return "", "", nil, err
	}
	if r.ByDomain() { // of each domain and server the last one: more than a GTIDSet keeps
		return "gtid_binlog_state", strings.Join(aheadBySource(replica, source), ","), nil, nil
	}
	only := r.Subtract(s)
	return "gtid_executed", only.String(), only.each(maxListed), nil
}

// maxListed is how many transactions of a set are listed one by one.
const maxListed = 1000

// each lists the transactions of a MySQL set, the first of them.
func (s GTIDSet) each(most int) (list []GTID) {
	for _, source := range slices.Sorted(maps.Keys(s.sources)) {
		for _, v := range s.sources[source] {
			for n := v.from; n <= v.to; n++ {
				if len(list) == most {
					return list
				}
				list = append(list, GTID{Source: source, Number: n})
			}
		}
	}
	return list
}

// aheadBySource are the transactions of a gtid_binlog_state, one of each domain and server, that are beyond those of another.
func aheadBySource(state, other string) (list []string) {
	have := map[[2]uint32]uint64{}
	for part := range strings.SplitSeq(other, ",") {
		if g, err := ParseGTID(part); err == nil {
			have[[2]uint32{g.Domain, g.Server}] = g.Number
		}
	}
	for part := range strings.SplitSeq(state, ",") {
		if g, err := ParseGTID(part); err == nil && g.Number > have[[2]uint32{g.Domain, g.Server}] {
			list = append(list, g.String())
		}
	}
	return list
}

// ExecutedTransactions is the variable that tells which transactions the server's binary log has had, each server's own apart; "" if there is none.
func (s Server) ExecutedTransactions() string {
	if s.MariaDB() {
		return "gtid_binlog_state"
	}
	return "gtid_executed"
}

// ByDomain reports whether GTIDs are by domain, so that a server does not keep which transactions it has had, but the last of each domain and server.
func (s Server) ByDomain() bool { return s.MariaDB() }

// EmptyTransactions are statements that let a server have transactions as empty ones; "" if it cannot, or there are more than most. Source: MySQL manual,
// "Skipping Transactions".
func (s Server) EmptyTransactions(list []GTID, most int) string {
	if s.MariaDB() || len(list) == 0 || len(list) > most {
		return ""
	}
	var b strings.Builder
	for _, g := range list {
		b.WriteString("SET GTID_NEXT = " + Literal(g.String()) + "; BEGIN; COMMIT; ")
	}
	return b.String() + "SET GTID_NEXT = 'AUTOMATIC'"
}
