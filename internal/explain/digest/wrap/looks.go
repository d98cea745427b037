package wrap

import (
	"bytes"
	"regexp"
	"unicode/utf8"

	"github.com/rissodb/risso/internal/pattern"
)

// known are things that people take for logs of statements, with the words for them.
var known = []struct {
	re   func() *regexp.Regexp
	what string
}{
	{pattern.Lazy(`(?m)^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ IP6? \S+ > \S+: |^\d\d:\d\d:\d\d\.\d+ IP6? \S+ > \S+|^\t0x[0-9a-f]{4}: +[0-9a-f]{4} `), "text printed by tcpdump, which is not supported; pt-query-digest --type tcpdump reads it; the slow log or the live server (--dsn) has more"},
	{pattern.Lazy(`(?m)^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+\S* \d+ \[(?:System|Note|Warning|ERROR)\] |^\d{4}-\d\d-\d\d +\d+:\d\d:\d\d \d+ \[(?:Note|Warning|ERROR)\] |^\d{6} +\d+:\d\d:\d\d +(?:mysqld_safe|InnoDB|\[(?:Note|Warning|ERROR)\])`), "a server's error log, which contains no statements"},
	{pattern.Lazy(`^(?:/\*M?!|)-- (?:MySQL|MariaDB|Server version)|(?m)^-- (?:MySQL|MariaDB) dump `), "a dump, not a log"},
	{pattern.Lazy(`(?m)^\d{8} \d\d:\d\d:\d\d,[^,\n]*,[^,\n]*,[^,\n]*,\d+,\d+,(?:CONNECT|DISCONNECT|QUERY|FAILED_CONNECT|READ|WRITE|CREATE|ALTER),`), "the log of MariaDB's server_audit, which is not supported; it has no durations of statements"},
	{pattern.Lazy(`<AUDIT_RECORD|"audit_record"|<AUDIT>`), "an audit log, which is not supported; it has no durations of statements"},
	{pattern.Lazy(`(?m)^Count: \d+ +Time=[\d.]+s \(`), "output of mysqldumpslow, not a log"},
	{pattern.Lazy(`(?m)^# Overall: .* total, .* unique|^# Profile\n# Rank Query ID`), "a report of pt-query-digest, not a log"},
	{pattern.Lazy(`(?m)^={5,}\n.*INNODB MONITOR OUTPUT`), "output of SHOW ENGINE INNODB STATUS, not a log"},
	{pattern.Lazy(`(?m)^SQLite format 3`), "a database of SQLite"},
	{pattern.Lazy(`(?mi)^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? \S+ \[\d+\] .*(?:LOG|STATEMENT|DETAIL): `), "a log of PostgreSQL, which is not supported"},
	{pattern.Lazy(`^\s*(?:<!doctype|<html|<\?xml)`), "a web page or XML"},
	{pattern.Lazy(`^\s*[{\[]`), "JSON without a field log, message or msg that contains lines of a log"},
	{pattern.Lazy(`(?mi)^\s*(?:SELECT|INSERT|UPDATE|DELETE|REPLACE|CREATE|SET|USE|BEGIN|DROP|ALTER)\b[^\n]*;?\s*$`), "statements without the header lines of a log"},
}

// captures are the first bytes of pcap and pcapng.
var captures = []string{"\xd4\xc3\xb2\xa1", "\xa1\xb2\xc3\xd4", "\x4d\x3c\xb2\xa1", "\x0a\x0d\x0d\x0a"}

// gtidIndex begins the file that MariaDB 11.4 and later keeps next to each binary log (sql/gtid_index.cc).
var gtidIndex = []byte("\xfe\xfe\x0c\x01")

// lists are texts of one form of line that servers keep next to binary logs.
var lists = []struct {
	line func() *regexp.Regexp
	what string
}{
	{pattern.Lazy(`\A(?:[^\x00]*[/\\])?[^\x00/\\ ]+\.\d{6,}\r?\z`), "the list of a server's logs"},
	{pattern.Lazy(`\A\d+-\d+-\d+\r?\z`), "the GTIDs at which MariaDB's binary logs end"},
}

// Companion says what a file that begins so is, if it is stored next to logs and is none, so that a pattern of file names
// matches it as well; empty: it is none of these.
func Companion(head []byte) string {
	if bytes.HasPrefix(head, gtidIndex) {
		return "MariaDB's index of the GTIDs in a binary log"
	}
	end := bytes.LastIndexByte(head, '\n') // what was looked at may end within a line
	if end < 0 {
		return ""
	}
	for _, l := range lists {
		all := true
		for line := range bytes.SplitSeq(head[:end], []byte("\n")) {
			all = all && l.line().Match(line)
		}
		if all {
			return l.what
		}
	}
	return ""
}

// Looks says what a beginning looks like in which no log was found; empty: nothing known.
func Looks(head []byte) string {
	for _, magic := range captures {
		if bytes.HasPrefix(head, []byte(magic)) {
			return "packets captured by tcpdump or Wireshark, which are not supported; switch the slow log on, or read the live server with --dsn"
		}
	}
	for _, k := range known {
		if k.re().Match(head) {
			return k.what
		}
	}
	switch {
	case len(head) == 0:
		return ""
	case bytes.IndexByte(head, 0) >= 0:
		return "bytes that are not text"
	case !utf8.Valid(head[:max(len(head)-utf8.UTFMax, 0)]):
		return "text in a character set other than UTF-8 or UTF-16, or bytes that are not text"
	}
	return ""
}
