package digest

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"time"
)

// maxConnections bounds the connections whose user, host and database the general log's reader remembers.
const maxConnections = 100_000

// general reads a general query log. Its lines are
//
//	2026-01-02T03:04:05.678901Z<tab>    8 Query<tab>SELECT 1      MySQL
//	260102  3:04:05<tab>    8 Query<tab>SELECT 1                  MariaDB; within one second two tabs instead
//
// and a statement goes on until the next line of that form. The log knows no times that statements took: the
// profile then is about calls.
type general struct {
	r     *bufio.Reader
	zone  *time.Location
	read  func(n int)
	conns map[int64]*connection
	line  []byte // the next event's first line, if it was read already
	have  bool
	text  []byte
	last  int64
	skip  map[string]int64
	bytes int64
	srv   string
	day   slowParser // for times
	known bool       // loose is known
	loose bool       // the form of the lines
	err   error
	cut   int       // bytes of the event in hand that were left out
	over  int       // and of the line in hand
	whole bool      // what was read of the event in hand may be all of it
	grew  time.Time // when the log last grew
}

// quiet is how long a followed log does not grow until its last statement is held to be whole: servers write one at
// once, and nothing marks its end but the next.
const quiet = time.Second

// connection is what is known about one.
type connection struct{ user, host, db []byte }

func newGeneral(r *bufio.Reader, zone *time.Location, read func(int)) *general {
	g := &general{r: r, zone: zone, read: read, conns: make(map[int64]*connection), skip: make(map[string]int64)}
	g.day.zone = zone
	return g
}

// generalLine is a line that begins an event.
type generalLine struct {
	time, command, argument []byte
	thread                  int64
}

// generalCommands are the commands the log names, as far as their names are in MySQL's sql/sql_parse.cc and
// MariaDB's Command_name.
var generalCommands = map[string]bool{
	"Query": true, "Execute": true, "Prepare": true, "Connect": true, "Init DB": true, "Quit": true, "Close stmt": true,
	"Reset stmt": true, "Field List": true, "Ping": true, "Statistics": true, "Change user": true, "Long Data": true,
	"Reset Connection": true, "Reset connection": true, "Binlog Dump": true, "Binlog Dump GTID": true, "Processlist": true, "Kill": true,
	"Debug": true, "Refresh": true, "Shutdown": true, "Create DB": true, "Drop DB": true, "Set option": true, "Fetch": true,
	"Daemon": true, "Sleep": true, "Connect Out": true, "Register Slave": true, "Register Replica": true, "Bulk_execute": true,
	"Time": true, "Delayed insert": true, "Error": true, "Table Dump": true, "Clone": true, "Subscribe Group Replication Stream": true,
}

// parseGeneralLine takes a line apart; ok is false if it does not begin an event. It knows the form with tabs; loose, also
// that of MySQL 5.0 and 5.1, and what is left where tabs were turned into blanks:
//
//	070823 21:04:58       5 Query       SELECT 1
//	                      5 Execute     [1] SELECT 1
func parseGeneralLine(b []byte, loose bool) (l generalLine, ok bool) {
	if tab := bytes.IndexByte(b, '\t'); !loose && (tab < 0 || tab > 40) {
		return l, false
	} else if !loose {
		l.time = b[:tab]
	} else {
		l.time = leadingTime(b)
	}
	if len(l.time) > 0 && !isDate(l.time) {
		return l, false
	}
	rest := bytes.TrimLeft(b[len(l.time):], "\t ")
	if len(rest)+len(l.time) == len(b) { // nothing between the two, or before the number
		return l, false
	}
	n := 0
	for n < len(rest) && n < 19 && rest[n]-'0' <= 9 {
		l.thread = l.thread*10 + int64(rest[n]-'0')
		n++
	}
	if n == 0 || n >= len(rest) || rest[n] != ' ' {
		return l, false
	}
	rest = rest[n+1:]
	l.command = rest
	if t := bytes.IndexByte(rest, '\t'); t >= 0 {
		l.command, l.argument = rest[:t], rest[t+1:]
	}
	if generalCommands[string(bytes.TrimRight(l.command, " "))] {
		return l, true
	}
	return l, loose && l.looseCommand(rest)
}

// leadingTime is the time that a line begins with, of one word or two.
func leadingTime(b []byte) []byte {
	if !isDate(b) {
		return nil
	}
	end := bytes.IndexAny(b, " \t")
	if end == 6 { // 070823 21:04:58
		clock := len(b) - len(bytes.TrimLeft(b[6:], " "))
		if n := bytes.IndexAny(b[clock:], " \t"); n > 0 {
			return b[:clock+n]
		}
	}
	return b[:max(end, 0)]
}

// looseCommand finds a command and its argument with only blanks between them.
func (l *generalLine) looseCommand(rest []byte) bool {
	for n := min(len(rest), 40); n > 0; n-- { // the longest: Binlog Dump GTID
		if n < len(rest) && rest[n] != ' ' || !generalCommands[string(rest[:n])] {
			continue
		}
		l.command, l.argument = rest[:n], bytes.TrimLeft(rest[n:], " ")
		if id := bytes.IndexByte(l.argument, ']'); id > 1 && l.argument[0] == '[' && onlyDigits(l.argument[1:id]) {
			l.argument = bytes.TrimLeft(l.argument[id+1:], " ") // the number of a prepared statement
		}
		return true
	}
	return false
}

func onlyDigits(b []byte) bool {
	for _, c := range b {
		if c-'0' > 9 {
			return false
		}
	}
	return len(b) > 0
}

// isGeneral recognizes the line of a general log that has a time, and whether it is one of the loose forms.
func isGeneral(line []byte) (loose, ok bool) {
	if _, ok := parseGeneralLine(line, false); ok {
		return false, true
	}
	l, ok := parseGeneralLine(line, true)
	return true, ok && len(l.time) > 0
}

// Next implements Stream.
func (g *general) Next(e *Event) error {
	for {
		if err := g.next(); err != nil {
			return err
		}
		l, _ := parseGeneralLine(g.line, g.loose)
		g.have = false
		g.stamp(l.time)
		statement := string(l.command) == "Query" || string(l.command) == "Execute"
		g.text, g.cut = g.text[:0], g.over
		thread, command := l.thread, string(bytes.TrimRight(l.command, " "))
		g.text = append(g.text, l.argument...)
		g.whole = true
		err := g.rest(statement)
		g.whole = false
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, errIdle) {
			return err
		}
		if !statement {
			g.connection(thread, command, g.text)
			continue
		}
		*e = Event{Time: g.last, Query: g.text, Cut: g.cut, Thread: thread, NoQueryTime: true, NoLockTime: true, Attrs: e.Attrs[:0]}
		if g.cut > 0 {
			g.skip[skipLong] += int64(g.cut)
		}
		if c := g.conns[thread]; c != nil {
			e.User, e.Host, e.DB = c.user, c.host, c.db
		}
		if len(e.Query) == 0 {
			g.skip[skipNoQuery]++
			continue
		}
		return nil
	}
}

// next finds the next line that begins an event.
func (g *general) next() error {
	for !g.have {
		if err := g.readLine(); err != nil {
			return err
		}
		if loose, ok := isGeneral(g.line); !g.known && ok {
			g.loose, g.known = loose, true // the first event shows the form of all
		}
		if _, ok := parseGeneralLine(g.line, g.loose); ok {
			g.have = true
			break
		}
		switch {
		case isVersionLine(g.line):
			g.srv = serverName(g.line)
		case isBannerLine(g.line), len(bytes.TrimSpace(g.line)) == 0, bytes.HasPrefix(g.line, []byte("Time ")):
		default:
			g.skip[skipBefore] += int64(len(g.line)) + 1
		}
	}
	return nil
}

// rest adds the lines that continue a statement. errIdle says that nothing came for a while.
func (g *general) rest(keep bool) error {
	for {
		err := g.readLine()
		if err != nil {
			return err
		}
		if _, ok := parseGeneralLine(g.line, g.loose); ok {
			g.have = true
			return nil
		}
		if isVersionLine(g.line) {
			g.srv = serverName(g.line)
			return nil
		}
		if !keep {
			continue
		}
		if g.cut > 0 || len(g.text)+len(g.line) > statementLimit {
			g.cut += len(g.line) + 1 + g.over
			continue
		}
		g.cut += g.over
		g.text = append(append(g.text, '\n'), g.line...)
	}
}

// readLine reads a line without its end. What exceeds the limit of a statement is left out. If no line has to come,
// it gives up with errIdle when the log was quiet for a while.
func (g *general) readLine() error {
	g.line, g.over = g.line[:0], 0
	if g.err != nil {
		return g.err
	}
	for {
		part, err := g.r.ReadSlice('\n')
		g.read(len(part))
		g.bytes += int64(len(part))
		if len(part) > 0 {
			g.grew = time.Now()
		}
		if len(g.line)+len(part) <= statementLimit {
			g.line = append(g.line, part...)
		} else {
			g.over += len(part)
		}
		switch {
		case err == nil:
			g.line = bytes.TrimSuffix(g.line, []byte("\n"))
			g.line = bytes.TrimSuffix(g.line, []byte("\r"))
			return nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, errIdle): // a followed log: the line is still being written, or there is none
			if g.whole && len(g.line) == 0 && time.Since(g.grew) >= quiet {
				return errIdle
			}
		default:
			g.err = err
			if len(g.line) > 0 && errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// stamp keeps the time of a line; a line without one has that of the line before.
func (g *general) stamp(b []byte) {
	if len(b) == 0 {
		return
	}
	if t, _, ok := g.day.isoTime(b, 0); ok {
		g.last = t
	} else if t, ok := shortTime(b, g.zone); ok {
		g.last = t
	} else {
		g.skip[skipBadTime]++
	}
}

// connection follows who is connected as whom.
func (g *general) connection(thread int64, command string, arg []byte) {
	switch command {
	case "Connect", "Change user":
		// user@host on [db] [using TCP/IP], or "as anonymous on db", or "Access denied for …"
		if bytes.HasPrefix(arg, []byte("Access denied")) || len(g.conns) >= maxConnections {
			return
		}
		c := &connection{}
		who := arg
		if n := bytes.Index(arg, []byte(" on ")); n >= 0 {
			who = arg[:n]
			db, _, _ := bytes.Cut(arg[n+4:], []byte(" using "))
			c.db = bytes.Clone(bytes.TrimSpace(db))
		}
		who, _, _ = bytes.Cut(who, []byte(" as "))
		user, host, _ := bytes.Cut(who, []byte("@"))
		c.user, c.host = bytes.Clone(user), bytes.Clone(bytes.TrimSpace(host))
		g.conns[thread] = c
	case "Init DB":
		if c := g.conns[thread]; c != nil {
			c.db = bytes.Clone(arg)
		} else if len(g.conns) < maxConnections {
			g.conns[thread] = &connection{db: bytes.Clone(arg)}
		}
	case "Quit":
		delete(g.conns, thread)
	}
}

// Info implements Stream.
func (g *general) Info() SourceInfo {
	return SourceInfo{Format: FormatGeneral, Server: g.srv, Bytes: g.bytes}
}

// Skipped implements Stream.
func (g *general) Skipped() map[string]int64 { return g.skip }

// Close implements Stream.
func (g *general) Close() error { return nil }
