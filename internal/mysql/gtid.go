package mysql

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
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

// lastNumber is the greatest number of a MySQL transaction. Source: MySQL manual, "GTID Format".
const lastNumber = 1<<63 - 2

// ParseGTID reads uuid:number, uuid:tag:number or domain-server-number.
func ParseGTID(s string) (GTID, error) {
	s = trimmed(s)
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return parseMaria(s)
	}
	n, err := strconv.ParseUint(s[i+1:], 10, 63)
	name, tag, tagged := strings.Cut(s[:i], ":")
	source, ok := canonicalUUID(name)
	if tagged && ok {
		tag, ok = tagOf(tag)
		source += ":" + tag
	}
	if err != nil || n == 0 || n > lastNumber || !ok {
		return GTID{}, badGTID(s)
	}
	return GTID{Source: source, Number: n}, nil
}

// trimmed is a text without the blanks that servers pass over, which are those of ASCII.
func trimmed(s string) string { return strings.Trim(s, " \t\n\v\f\r") }

// canonicalUUID reads a UUID as servers take it, with dashes, without any, or in braces, and writes it in small letters with dashes.
func canonicalUUID(s string) (string, bool) {
	if len(s) == 38 && s[0] == '{' && s[37] == '}' {
		s = s[1:37]
	}
	if len(s) == 32 {
		s = s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
	}
	if len(s) != 36 {
		return "", false
	}
	for i := range len(s) {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		switch c := s[i]; {
		case dash != (c == '-'):
			return "", false
		case dash, c >= '0' && c <= '9', c >= 'a' && c <= 'f', c >= 'A' && c <= 'F':
		default:
			return "", false
		}
	}
	return strings.ToLower(s), true
}

func badGTID(s string) error {
	return fmt.Errorf("%w: %.100q; MySQL's is uuid:number, MariaDB's domain-server-number", ErrGTID, s)
}

func parseMaria(s string) (GTID, error) {
	p := strings.Split(s, "-")
	if len(p) != 3 {
		return GTID{}, badGTID(s)
	}
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
