package binlog

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/binlogevent"
	"github.com/rissodb/risso/internal/explain/digest"
	"github.com/rissodb/risso/internal/pattern"
)

const (
	maxLine     = 1 << 20 // of the text that mysqlbinlog prints, except statements
	skipNoCount = "changes whose rows were not counted: mysqlbinlog -v prints them"
	skipForeign = "bytes outside of events"
)

// eventLine is what mysqlbinlog and mariadb-binlog print above each event. Source: print_header in the servers' sql/log_event_client.cc.
var eventLine = pattern.Lazy(`^#(\d{6}) +(\d+):(\d\d):(\d\d) server id +(\d+) +end_log_pos (\d+)(?: +CRC32 0x[0-9a-fA-F]+)?[ \t]+(.*)$`)

var (
	placeLine = pattern.Lazy(`^# at (\d+)$`)
	queryRest = pattern.Lazy(`thread_id=(\d+)\s+exec_time=(-?\d+)`)
	mapRest   = pattern.Lazy("^Table_map: `((?:[^`]|``)*)`\\.`((?:[^`]|``)*)` mapped to number (\\d+)")
	rowsRest  = pattern.Lazy(`^(Write|Update|Delete)_\w*rows\w*: table id (\d+)(.*)$`)
	rowChange = pattern.Lazy("^### (INSERT INTO|UPDATE|DELETE FROM) `((?:[^`]|``)*)`\\.`((?:[^`]|``)*)`")
	useText   = pattern.Lazy("^use `?((?:[^`]|``)*?)`?$")
	stampText = pattern.Lazy(`^SET TIMESTAMP=(\d+)`)
	startRest = pattern.Lazy(`^Start: binlog v \d+, server v (\S+)`)
)

// Text is a digest.Stream over what mysqlbinlog or mariadb-binlog prints of a binary log, with -v or without. Rows are counted
// where -v shows them.
type Text struct {
	gather
	in      *bufio.Reader
	zone    *time.Location
	server  string
	bytes   int64
	line    []byte
	over    int // bytes of the line that were left out
	err     error
	at, end int64 // the place of the event
	seconds int64 // when it was written, unix
	what    string
	db      string
	delim   string
	tables  map[string][2]string // by number: schema and table
	body    []byte               // the statement that is being read
	cut     int
	exec    float64
	stamp   int64
	open    bool // a query's statement is being read
	inRows  bool // below an event of rows
	began   bool // an event was seen
}

// NewText begins to read the text. zone is that of its times.
func NewText(in io.Reader, zone *time.Location) *Text {
	return &Text{gather: gather{skipped: map[string]int64{}, delay: -1}, in: bufio.NewReaderSize(in, 64<<10), zone: zone, delim: "/*!*/;", tables: map[string][2]string{}}
}

// Next returns the next statement.
func (t *Text) Next(e *digest.Event) error {
	for len(t.queue) == 0 {
		err := t.read()
		if errors.Is(err, io.EOF) {
			t.endEvent()
			if t.flush(); len(t.queue) > 0 {
				break
			}
		}
		if err != nil {
			return err
		}
	}
	t.give(e)
	return nil
}

// Info returns what was read.
func (t *Text) Info() digest.SourceInfo {
	return digest.SourceInfo{Format: digest.FormatBinlogText, Server: t.server, Bytes: t.bytes, Events: t.events}
}

// Close implements digest.Stream.
func (t *Text) Close() error { return nil }

// read takes a line.
func (t *Text) read() error {
	if err := t.readLine(); err != nil {
		return err
	}
	line := string(t.line[:min(len(t.line), maxLine)])
	switch {
	case strings.HasPrefix(line, "# at "):
		if m := placeLine().FindStringSubmatch(line); m != nil {
			t.endEvent()
			t.at, _ = strconv.ParseInt(m[1], 10, 64) // digits; too many are none
			return nil
		}
	case strings.HasPrefix(line, "#") && !t.open:
		if m := eventLine().FindStringSubmatch(line); m != nil {
			t.endEvent()
			t.header(m)
			return nil
		}
	}
	t.content(line)
	return nil
}

func (t *Text) readLine() error {
	t.line, t.over = t.line[:0], 0
	if t.err != nil {
		return t.err
	}
	for {
		part, err := t.in.ReadSlice('\n')
		t.bytes += int64(len(part))
		if len(t.line)+len(part) <= maxText {
			t.line = append(t.line, part...)
		} else {
			t.over += len(part)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		t.line = bytes.TrimRight(t.line, "\r\n")
		if err != nil {
			t.err = err
			if len(t.line) > 0 && errors.Is(err, io.EOF) {
				return nil
			}
		}
		return err
	}
}

// header takes the line above an event.
func (t *Text) header(m []string) {
	t.began = true
	day, err := time.ParseInLocation("060102", m[1], t.zone)
	h, _ := strconv.Atoi(m[2]) // digits
	mi, _ := strconv.Atoi(m[3])
	s, _ := strconv.Atoi(m[4])
	if err == nil {
		t.seconds = time.Date(day.Year(), day.Month(), day.Day(), h, mi, s, 0, t.zone).Unix()
	}
	t.end, _ = strconv.ParseInt(m[6], 10, 64) // digits; too many are none
	t.what = m[7]
	t.inRows = false
	switch {
	case strings.HasPrefix(t.what, "Query"):
		t.flush()
		t.open, t.body, t.cut, t.stamp, t.exec = true, t.body[:0], 0, t.seconds, 0
		if q := queryRest().FindStringSubmatch(t.what); q != nil {
			t.thread, _ = strconv.ParseInt(q[1], 10, 64) // digits
			t.exec, _ = strconv.ParseFloat(q[2], 64)     // digits
			if t.exec < 0 || t.exec >= 1<<31 {           // the clock went back
				t.exec = 0
			}
		}
	case strings.HasPrefix(t.what, "GTID"), strings.HasPrefix(t.what, "Anonymous_GTID"):
		t.begin()
	case strings.HasPrefix(t.what, "Rows_query"), strings.HasPrefix(t.what, "Annotate_rows"):
		t.flush()
		t.size += t.length()
	case strings.HasPrefix(t.what, "Start: "):
		if q := startRest().FindStringSubmatch(t.what); q != nil && t.server == "" {
			t.server = q[1]
		}
	default:
		if q := mapRest().FindStringSubmatch(t.what); q != nil {
			t.tables[q[3]] = [2]string{unquoted(q[1]), unquoted(q[2])}
			t.size += t.length()
		} else if q := rowsRest().FindStringSubmatch(t.what); q != nil {
			t.rowsEvent(q)
		}
	}
}

func unquoted(name string) string { return strings.ReplaceAll(name, "``", "`") }

// length is the event's in the binary log, as far as its positions show.
func (t *Text) length() int64 { return max(0, t.end-t.at) }

func (t *Text) rowsEvent(q []string) {
	name, ok := t.tables[q[2]]
	if !ok {
		t.skipped[skipBody]++
		return
	}
	if t.gather.began == 0 {
		t.gather.began = t.seconds * 1e6
	}
	kind := map[string]binlogevent.Kind{"Write": binlogevent.Insert, "Update": binlogevent.Update, "Delete": binlogevent.Delete}[q[1]]
	t.change(name[0], name[1], kind).bytes += t.length()
	t.inRows = true
}

// content takes a line of an event.
func (t *Text) content(line string) {
	switch {
	case strings.HasPrefix(line, "DELIMITER "):
		t.endEvent()
		t.delim = strings.TrimSpace(strings.TrimPrefix(line, "DELIMITER "))
	case t.open:
		t.queryLine()
	case t.inRows:
		if m := rowChange().FindStringSubmatch(line); m != nil { // those of all events of a statement follow its last
			kind := map[string]binlogevent.Kind{"INSERT INTO": binlogevent.Insert, "UPDATE": binlogevent.Update, "DELETE FROM": binlogevent.Delete}[m[1]]
			t.change(unquoted(m[2]), unquoted(m[3]), kind).rows++
		}
	case strings.HasPrefix(t.what, "Rows_query") && strings.HasPrefix(line, "# "):
		t.statementLine(t.line[2:])
	case strings.HasPrefix(t.what, "Annotate_rows") && strings.HasPrefix(line, "#Q> "):
		t.statementLine(t.line[4:])
	case !t.began && line != "" && !strings.HasPrefix(line, "/*") && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "SET "):
		t.skipped[skipForeign] += int64(len(line)) + 1
	}
}

// statementLine adds a line to the text of the statement whose rows follow.
func (t *Text) statementLine(line []byte) {
	if t.textual && len(t.text) < maxText {
		t.text = append(append(t.text, '\n'), line...)
		return
	}
	t.text, t.textual, t.gather.began = bytes.Clone(line), true, t.seconds*1e6
}

// queryLine adds a line to the statements below a Query event: what sets the session, and the statement.
func (t *Text) queryLine() {
	if len(t.body) > 0 {
		t.body = append(t.body, '\n')
	}
	if room := maxText - len(t.body); room < len(t.line) {
		t.cut += len(t.line) - max(room, 0)
		t.line = t.line[:max(room, 0)]
	}
	t.cut += t.over
	t.body = append(t.body, t.line...)
	body, ended := bytes.CutSuffix(t.body, []byte(t.delim))
	if !ended {
		return
	}
	t.query(bytes.TrimRight(body, "\r\n"))
	t.body, t.cut = t.body[:0], 0
}

// query takes one statement below a Query event.
func (t *Text) query(text []byte) {
	head := string(text[:min(len(text), 200)])
	if m := useText().FindStringSubmatch(head); m != nil {
		t.db = unquoted(m[1])
		return
	}
	if m := stampText().FindStringSubmatch(head); m != nil {
		t.stamp, _ = strconv.ParseInt(m[1], 10, 64) // digits
		return
	}
	switch strings.ToUpper(strings.TrimSpace(head)) {
	case "BEGIN", "COMMIT", "ROLLBACK", "START TRANSACTION", "":
		t.open = false
		return
	}
	if sessionText().MatchString(head) {
		return
	}
	t.queue = append(t.queue, &statement{text: bytes.Clone(text), cut: t.cut, db: t.db, began: t.stamp * 1e6, seconds: t.exec, bytes: t.length(), thread: t.thread, delay: -1})
	t.open = false
}

// sessionText are the statements that mysqlbinlog itself writes to set the session.
var sessionText = pattern.Lazy(`^(?:/\*![0-9]* ?)?(?:SET @|SET INSERT_ID=|SET LAST_INSERT_ID=|\\C )`)

// endEvent ends the event in hand.
func (t *Text) endEvent() {
	if t.open && len(bytes.TrimSpace(t.body)) > 0 { // the text ends in it
		t.query(bytes.TrimRight(t.body, "\r\n"))
	}
	if t.inRows && strings.Contains(t.what, "STMT_END_F") {
		for _, s := range t.pending {
			if s.rows == 0 {
				s.counted = false
				t.skipped[skipNoCount]++
			}
		}
		t.flush()
	}
	t.open, t.inRows, t.body = false, false, t.body[:0]
}
