package sqltext

import "strings"

// Dialect is how a server reads text. The zero value is what both flavours do at their defaults, and takes what an
// executable comment holds for code, whichever server would run it.
type Dialect struct {
	MariaDB     bool
	Postgres    bool
	Version     int  // 80034 or 101106: executable comments for a later server are comments; 0: none is
	ANSIQuotes  bool // "x" is a name
	NoBackslash bool // a backslash in a string is one
	Oracle      bool // programs are written as MariaDB's sql_mode=ORACLE has them
}

// WithMode is the dialect under a sql_mode, as @@sql_mode returns it. Combination modes count as their members.
// Source: MySQL 5.7 manual and MariaDB documentation, "SQL Modes", combination modes.
func (d Dialect) WithMode(mode string) Dialect {
	d.ANSIQuotes, d.NoBackslash, d.Oracle = false, false, false
	for m := range strings.SplitSeq(strings.ToUpper(mode), ",") {
		switch strings.TrimSpace(m) {
		case "ANSI_QUOTES", "ANSI", "ORACLE", "DB2", "MAXDB", "MSSQL", "POSTGRESQL":
			d.ANSIQuotes = true
			d.Oracle = d.Oracle || d.MariaDB && strings.TrimSpace(m) == "ORACLE"
		case "NO_BACKSLASH_ESCAPES":
			d.NoBackslash = true
		}
	}
	return d
}

// escape is the byte that escapes what follows it after the quote q; if nothing does, it is the quote itself.
func (d Dialect) escape(q byte) byte {
	if q == '`' || d.NoBackslash || d.Postgres || q == '"' && d.ANSIQuotes {
		return q
	}
	return '\\'
}

// opening examines the executable comment that opens at i: the place after its mark and version, 0 if none opens,
// and whether the server runs it. MySQL reads five digits or, since 8.1, six; MariaDB skips what is meant for MySQL
// 5.7 to 9.x, and knows marks of its own. Source: sql/sql_lex.cc of both.
func (d Dialect) opening(s []byte, i int) (end int, runs bool) {
	if d.Postgres || i+2 >= len(s) || s[i] != '/' || s[i+1] != '*' {
		return 0, false
	}
	j, own := i+2, false
	if s[j] == 'M' && d.readsM() {
		j, own = j+1, true
	}
	if j >= len(s) || s[j] != '!' {
		return 0, false
	}
	j++
	digits, version := 0, 0
	for digits < 6 && j+digits < len(s) && isDigit(s[j+digits]) {
		version = 10*version + int(s[j+digits]-'0')
		digits++
	}
	switch {
	case digits < 5:
		return j, true // no version: what follows is code
	case digits == 6 && !d.MariaDB && d.Version > 0 && d.Version < 80100:
		digits, version = 5, version/10
	}
	return j + digits, d.Version == 0 || version <= d.Version && (!d.MariaDB || own || version < 50700 || version > 99999)
}

// readsM reports whether /*M! is executable.
func (d Dialect) readsM() bool { return d.MariaDB || d.Version == 0 }
