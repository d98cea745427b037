package incident

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/pattern"
	"github.com/rissodb/risso/internal/sqltext"
)

// Deadlock is what InnoDB reports of the latest one.
type Deadlock struct {
	At           time.Time      `json:"at,omitzero"` // by the server's clock and zone, read as this machine's; zero: it cannot be read
	Tick         int64          `json:"tick"`        // the second in which Risso saw it
	Text         string         `json:"text"`        // as the server writes it
	Transactions []DeadlockSide `json:"transactions"`
	Drawn        string         `json:"drawn"` // in text
	SVG          string         `json:"svg"`   // drawn as SVG
}

// DeadlockSide is one transaction of a deadlock.
type DeadlockSide struct {
	Name      string   `json:"name"`    // (1)
	Trx       string   `json:"trx"`     // number of the transaction
	Session   int64    `json:"session"` // connection
	User      string   `json:"user,omitempty"`
	Host      string   `json:"host,omitempty"`
	Statement string   `json:"statement"`
	Holds     []string `json:"holds,omitempty"`  // locks that it has
	Waits     []string `json:"waits,omitempty"`  // locks that it wants
	Victim    bool     `json:"victim,omitempty"` // it was rolled back
}

// maxReport bounds what is kept of InnoDB's report of a deadlock: with large rows it lists each of their fields.
const maxReport = 32 << 10

// deadlockSection is the section about the latest deadlock in InnoDB's status; "" without one.
func deadlockSection(status string) string {
	_, rest, ok := strings.Cut(status, "LATEST DETECTED DEADLOCK\n")
	if !ok {
		return ""
	}
	rest = strings.TrimLeft(rest, "-\n")
	end := len(rest)
	if at := sectionEnd().FindStringIndex(rest); at != nil {
		end = at[0]
	}
	lines := strings.Split(strings.TrimSpace(rest[:end]), "\n")
	lines = slices.DeleteFunc(lines, func(l string) bool { return fieldLine().MatchString(l) }) // rows' fields, in hexadecimal
	text := strings.Join(lines, "\n")
	return text[:min(len(text), maxReport)]
}

// What the report consists of. (lock_deadlock_recursive and DeadlockChecker in the servers' lock0lock.cc)
var (
	sectionEnd = pattern.Lazy(`(?m)^-+\n(?:TRANSACTIONS|FILE I/O|LATEST FOREIGN KEY ERROR)\n-+$`)
	fieldLine  = pattern.Lazy(`^ *\d+: (?:len \d+;|SQL NULL;)|^Record lock, heap no \d+ PHYSICAL RECORD|^$`)
	atLine     = pattern.Lazy(`^(\d{4}-\d\d-\d\d[ T]\d?\d:\d\d:\d\d)`)
	sideLine   = pattern.Lazy(`^\*\*\* (?:\((\d+)\) )?TRANSACTION:?`)
	trxLine    = pattern.Lazy(`^TRANSACTION (\d+|0x[0-9a-f]+)`)
	threadLine = pattern.Lazy(`^(?:MySQL|MariaDB) thread id (\d+), OS thread handle [^,]*, query id \d+ ?(.*)$`)
	lockLine   = pattern.Lazy(`^(RECORD LOCKS|TABLE LOCK)(?: .*?index (\S+) of)? table (\S+)(?: /\*.*\*/)? (?:trx id (\S+) )?(.*)$`)
	holdsLine  = pattern.Lazy(`^\*\*\* (?:\(\d+\) )?(HOLDS THE LOCK|WAITING FOR THIS LOCK|CONFLICTING WITH)`)
	victimLine = pattern.Lazy(`^\*\*\* WE ROLL BACK TRANSACTION \((\d+)\)`)
	quoted     = pattern.Lazy(`'[^']*'|"[^"]*"`)
)

// sideReader reads the sides of a report line by line.
type sideReader struct {
	d     *Deadlock
	now   *DeadlockSide
	waits bool // the locks that follow are waited for
	locks bool // locks follow
	query bool // a statement follows

	others bool                // the locks that follow are those of others
	held   map[string][]string // by transaction
}

// ParseDeadlock reads a report. What cannot be read is left out; the text has all.
func ParseDeadlock(report string) *Deadlock {
	d := &Deadlock{Text: report, Transactions: []DeadlockSide{}}
	r := &sideReader{d: d, held: map[string][]string{}}
	for _, line := range strings.Split(report, "\n") {
		r.line(line)
	}
	r.end()
	for i := range d.Transactions {
		t := &d.Transactions[i]
		for _, s := range r.held[t.Trx] {
			if !slices.Contains(t.Holds, s) {
				t.Holds = append(t.Holds, s)
			}
		}
	}
	d.Drawn, d.SVG = d.draw(), d.drawSVG()
	return d
}

func (r *sideReader) end() {
	if r.now != nil {
		r.now.Statement = strings.TrimSpace(r.now.Statement)
		r.d.Transactions = append(r.d.Transactions, *r.now)
	}
	r.now = nil
}

func (r *sideReader) line(line string) {
	match := func(p func() *regexp.Regexp) []string { return p().FindStringSubmatch(line) }
	if m := match(atLine); m != nil && r.d.At.IsZero() {
		r.d.At, _ = time.ParseInLocation("2006-01-02 15:04:05", strings.Replace(m[1], "T", " ", 1), time.Local) // else zero
		return
	}
	if m := match(victimLine); m != nil {
		r.end()
		for i := range r.d.Transactions {
			if t := &r.d.Transactions[i]; t.Name == "("+m[1]+")" {
				t.Victim = true
			}
		}
		return
	}
	if m := match(sideLine); m != nil {
		r.end()
		n := m[1]
		if n == "" {
			n = strconv.Itoa(len(r.d.Transactions) + 1)
		}
		r.now = &DeadlockSide{Name: "(" + n + ")"}
		r.locks, r.query = false, false
		return
	}
	if r.now == nil {
		return
	}
	if m := match(holdsLine); m != nil {
		r.locks, r.waits, r.query = true, strings.HasPrefix(m[1], "WAITING"), false
		r.others = strings.HasPrefix(m[1], "CONFLICTING") // MariaDB: the locks of others
		return
	}
	r.detail(line, match)
}

func (r *sideReader) detail(line string, match func(func() *regexp.Regexp) []string) {
	if m := match(trxLine); m != nil && r.now.Trx == "" {
		r.now.Trx = m[1]
		return
	}
	if m := match(threadLine); m != nil {
		r.now.Session, _ = strconv.ParseInt(m[1], 10, 64) // digits
		r.now.Host, r.now.User = account(m[2])
		r.query = true
		return
	}
	if strings.HasPrefix(line, "***") {
		r.query, r.locks = false, false
		return
	}
	if r.query {
		r.now.Statement += "\n" + line
		return
	}
	if m := match(lockLine); m != nil && r.locks {
		into := &r.now.Holds
		if r.waits {
			into = &r.now.Waits
		}
		s := lockWords(m)
		switch {
		case r.others:
			r.held[m[4]] = append(r.held[m[4]], s)
		case !slices.Contains(*into, s):
			*into = append(*into, s)
		}
	}
}

// account finds host and user in what follows a query's number: "localhost root updating", "web3 10.0.0.3 app updating".
func account(rest string) (host, user string) {
	f := strings.Fields(rest)
	if len(f) < 2 {
		return "", ""
	}
	if host, user = f[0], f[1]; len(f) > 2 && strings.ContainsAny(user, ".:") { // a name and an address
		user = f[2]
	}
	return host, user
}

// lockWords says which lock a line tells of.
func lockWords(m []string) string {
	mode := strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(m[5]), "waiting"))
	mode = strings.TrimPrefix(strings.TrimPrefix(mode, "lock_mode "), "lock mode ")
	table := strings.ReplaceAll(m[3], "`", "")
	if m[1] == "TABLE LOCK" {
		return "a lock on the table " + table + " (" + mode + ")"
	}
	return "record locks in " + strings.Trim(m[2], "`") + " of " + table + " (" + mode + ")"
}

// redactReport hides the literals of a report's statements: they follow the line of the thread.
func redactReport(report string) string {
	d := ParseDeadlock(report)
	for _, t := range d.Transactions {
		if t.Statement != "" {
			report = strings.ReplaceAll(report, t.Statement, string(sqltext.Redact(nil, []byte(t.Statement))))
		}
	}
	return quoted().ReplaceAllString(report, "'?'")
}

// Redacted is the deadlock without literals.
func (d *Deadlock) Redacted() *Deadlock {
	out := ParseDeadlock(redactReport(d.Text))
	out.Tick = d.Tick
	return out
}

// draw draws who waits for whom, in text.
func (d *Deadlock) draw() string {
	var b strings.Builder
	for i, t := range d.Transactions {
		end := ""
		if t.Victim {
			end = "   << rolled back"
		}
		fmt.Fprintf(&b, "%s connection %d%s, transaction %s%s\n", t.Name, t.Session, at(t.User, t.Host), t.Trx, end)
		for _, line := range strings.Split(oneline.Cut(oneline.Of(t.Statement), 300), "\n") {
			fmt.Fprintf(&b, " |  %s\n", line)
		}
		for _, h := range t.Holds {
			fmt.Fprintf(&b, " |  holds     %s\n", h)
		}
		for _, w := range t.Waits {
			fmt.Fprintf(&b, " +> waits for %s\n", w)
		}
		if len(d.Transactions) == 2 && len(t.Waits) > 0 {
			fmt.Fprintf(&b, "    which %s has, or is ahead for\n", d.Transactions[1-i].Name)
		}
	}
	return b.String()
}

func at(user, host string) string {
	if user == "" {
		return ""
	}
	return " (" + oneline.Of(strings.TrimSuffix(user+"@"+host, "@")) + ")"
}
