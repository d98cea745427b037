package digest

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/rissodb/risso/internal/explain/digest/wrap"
	"github.com/rissodb/risso/internal/pattern"
)

// Formats of logs. Binary logs and their text are read by Options.Streams.
const (
	FormatSlow         = "slow"
	FormatGeneral      = "general"
	FormatBinlog       = "binlog"
	FormatBinlogText   = "mysqlbinlog" // what mysqlbinlog and mariadb-binlog print
	FormatSlowTable    = "slow_log"    // CSV of mysql.slow_log
	FormatGeneralTable = "general_log" // CSV of mysql.general_log
)

// Formats are those that Options.Format may name.
var Formats = []string{"auto", FormatSlow, FormatGeneral, FormatBinlog, FormatBinlogText, FormatSlowTable, FormatGeneralTable}

// Readable says what is read.
const Readable = "supported are slow, general and binary logs, the output of mysqlbinlog, and CSV of mysql.slow_log and mysql.general_log"

// sniffLen is how much of a log is looked at to know its format.
const sniffLen = 16 << 10

// File is a log in a file, plain or as package wrap reads it.
func File(path string) (Source, error) {
	st, err := os.Stat(path)
	if err != nil {
		return Source{}, err
	}
	if st.IsDir() {
		return Source{}, fmt.Errorf("%s is a directory; name the log files in it", path)
	}
	s := Source{Name: path, path: path, Open: func(context.Context) (io.ReadCloser, error) { return os.Open(path) }}
	if st.Mode().IsRegular() {
		s.Size = st.Size()
	}
	return s, nil
}

// Reader is a log from a stream such as standard input, plain or compressed. Run does not close r; when the
// context ends, one read of r may still be under way.
func Reader(name string, r io.Reader) Source {
	return Source{Name: name, Open: func(ctx context.Context) (io.ReadCloser, error) { return newPatient(ctx, r), nil }}
}

// FormatOf says what kind of log begins with head (some KiB are enough): one of the formats above, or empty when it looks
// like none.
func FormatOf(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte("\xfebin")):
		return FormatBinlog
	case isBinlogText(head):
		return FormatBinlogText
	}
	if t := tableOf(head); t != "" {
		return t
	}
	for i := 0; i < len(head); {
		end := lineEnd(head, i)
		line := bytes.TrimRight(head[i:end], "\r\n")
		if isHead(head, i) {
			return FormatSlow
		}
		if _, ok := isGeneral(line); ok {
			return FormatGeneral
		}
		i = end
	}
	return ""
}

// binlogPlace is what mysqlbinlog writes before each event: its position, when it was written, and by which server.
var binlogPlace = pattern.Lazy(`(?m)^# at \d+\r?\n#\d{6} +\d+:\d\d:\d\d server id +\d+ +end_log_pos \d+`)

func isBinlogText(head []byte) bool { return binlogPlace().Match(head) }

// meter counts what is read.
type meter struct {
	r    io.Reader
	read func(n int)
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	m.read(n)
	return n, err
}

// early is a reader of which the rest cannot be read: it ends there, and keeps why.
type early struct {
	r     io.Reader
	read  bool // something was
	why   error
	under *early // what r reads from
}

// Read returns an error only if nothing was read before, when there is nothing new for now, and when the context ended.
func (e *early) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	e.read = e.read || n > 0
	if err != nil && e.under != nil && e.under.why != nil {
		e.why = e.under.why // the deeper reason
		return n, io.EOF
	}
	switch {
	case err == nil, errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, errIdle), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return n, err
	case !e.read:
		return n, err
	}
	e.why = err
	return n, io.EOF
}

// opened is a source that is read: a log, unwrapped.
type opened struct {
	*bufio.Reader
	early  *early
	format string
	looks  string
	beside string // what it is, if it is a companion of logs and no log
	quiet  string // why nothing is in it
	close  func()
}

// open unwraps a log and finds out what it is; format is what it is said to be, or empty.
func open(r io.Reader, format string, growing bool) (*opened, error) {
	b := bufio.NewReaderSize(r, sniffLen)
	head, err := peek(b, 6, 4)
	if err != nil {
		return nil, err
	}
	if p := wrap.Packing(head); growing && p != "" {
		return nil, fmt.Errorf("a log compressed by %s does not grow; read it without --follow", p)
	}
	o := &opened{close: func() {}}
	var in io.Reader = b
	if !growing {
		if in, o.close, err = wrap.Unpack(b); err != nil {
			return nil, err
		}
	}
	o.early = &early{r: in}
	o.Reader = bufio.NewReaderSize(o.early, sniffLen)
	if err := o.sniff(format, growing); err != nil {
		o.close()
		return nil, err
	}
	return o, nil
}

// peek looks at the first n bytes, and waits until a log that grows has some of them.
func peek(b *bufio.Reader, n, some int) ([]byte, error) {
	head, err := b.Peek(n)
	for errors.Is(err, errIdle) && len(head) < some {
		head, err = b.Peek(n)
	}
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, errIdle) {
		return nil, err
	}
	return head, nil
}

// sniff sees in what form the log is.
func (o *opened) sniff(format string, growing bool) error {
	if _, err := peek(o.Reader, 4, 4); err != nil {
		return err
	}
	utf8, wide, err := wrap.UTF8(o.Reader)
	if err != nil {
		return err
	}
	if wide && growing {
		return errors.New("a log in UTF-16 can be read to its end, but not followed")
	}
	o.Reader = utf8
	head, err := o.Peek(sniffLen)
	for errors.Is(err, errIdle) && FormatOf(head) == "" {
		head, err = o.Peek(sniffLen)
	}
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, errIdle) {
		return err
	}
	if o.beside = wrap.Companion(head); o.beside == "" && len(head) == 0 && format == FormatBinlog {
		o.beside = "an empty file" // such as the index of the log that is being written
	}
	if o.beside != "" {
		return nil
	}
	if !growing && len(head) > 0 && len(head) < sniffLen && len(bytes.TrimSpace(head)) == 0 { // echo >slow.log
		o.format, o.quiet = cmp.Or(format, FormatSlow), "has only whitespace"
		return nil
	}
	found := FormatOf(head)
	if o.format = format; format == "" {
		o.format = found
	}
	if found != "" && !(found == FormatSlow && startsCovered(head)) {
		return nil
	}
	begins := func(b []byte) bool {
		f := FormatOf(b)
		return f != "" && (format == "" || f == format)
	}
	if _, uncover := wrap.Cover(head, begins); uncover != nil {
		inside, _ := io.ReadAll(uncover(bufio.NewReader(bytes.NewReader(head)))) // reading memory does not fail
		if format == "" {
			o.format = FormatOf(inside)
		}
		o.early = &early{r: uncover(o.Reader), under: o.early}
		o.Reader = bufio.NewReaderSize(o.early, sniffLen)
		return nil
	}
	if found == "" && o.format == "" {
		o.format, o.looks = FormatSlow, wrap.Looks(head) // what is not understood is counted
	}
	return nil
}

// startsCovered reports whether the first line of an event follows something, as when each event is one message of a
// service that marks its beginning only.
func startsCovered(head []byte) bool {
	for i := 0; i < len(head); {
		end := lineEnd(head, i)
		if head[i] != '#' {
			for _, mark := range []string{" " + timeMark, "\t" + timeMark, " " + userMark, "\t" + userMark} {
				if n := bytes.Index(head[i:end], []byte(mark)); n >= 0 && n < 200 && isHead(head, i+n+1) {
					return true
				}
			}
		}
		i = end
	}
	return false
}
