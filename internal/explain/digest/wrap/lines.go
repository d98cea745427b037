package wrap

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"

	"github.com/rissodb/risso/internal/pattern"
)

// covers are what tools write before each line. A line without it continues the one before: services that keep a whole
// event as one message mark only its first line.
var covers = []struct {
	name string
	re   func() *regexp.Regexp
}{
	{"Kubernetes", pattern.Lazy(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d) (?:stdout|stderr) [FP] `)},
	{"kubectl --prefix", pattern.Lazy(`^\[pod/[^\]\s]+\] `)},
	{"docker compose", pattern.Lazy(`^[\w.-]+ +\| (?:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z )?`)},
	{"syslog", pattern.Lazy(`^(?:<\d+>)?[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S+ [^\s:\[]+(?:\[\d+\])?: ?`)},
	{"syslog", pattern.Lazy(`^(?:<\d+>)?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d) \S+ [^\s:\[]+(?:\[\d+\])?: ?`)},
	{"syslog", pattern.Lazy(`^<\d+>1 \d{4}-\d\d-\d\dT\S+ \S+ \S+ \S+ \S+ (?:-|\[[^\]]*\]) ?`)},
	{"a time and a stream's name", pattern.Lazy(`^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?[ \t]+[^\s#]\S*[ \t]`)},
	{"a time", pattern.Lazy(`^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?[ \t]`)},
	{"AWS", pattern.Lazy(`^(?:EVENTS|RESULTS)\t(?:\d+|\S+)\t(?:\d+\t)?`)},
}

// fields are JSON's names of a log's line: Docker, journalctl, CloudWatch, Loki, Google Cloud.
var fields = []string{"log", "message", "MESSAGE", "@message", "msg", "textPayload", "line"}

// Cover finds what is around a log's lines, in a beginning that is no log itself: begins reports whether a text is the
// beginning of one. The answer turns a reader into one of the log; nil: nothing known is around it.
func Cover(head []byte, begins func([]byte) bool) (name string, open func(*bufio.Reader) io.Reader) {
	if trimmed := bytes.TrimLeft(head, " \t\r\n"); len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') {
		inside, _ := io.ReadAll(newMessages(bufio.NewReader(bytes.NewReader(head)))) // the last object may be cut off
		if begins(inside) {
			return "JSON", func(b *bufio.Reader) io.Reader { return newMessages(b) }
		}
	}
	for _, c := range covers {
		inside, _ := io.ReadAll(&uncovered{b: bufio.NewReader(bytes.NewReader(head)), re: c.re()}) // reading memory does not fail
		if !bytes.Equal(inside, head) && begins(inside) {
			return c.name, func(b *bufio.Reader) io.Reader { return &uncovered{b: b, re: c.re()} }
		}
	}
	return "", nil
}

// uncovered is a text without the prefixes of its lines.
type uncovered struct {
	b      *bufio.Reader
	re     *regexp.Regexp
	rest   []byte
	within bool // a line goes on that was too long for the buffer
}

// Read implements io.Reader.
func (u *uncovered) Read(p []byte) (int, error) {
	for len(u.rest) == 0 {
		line, err := u.b.ReadSlice('\n')
		if len(line) == 0 && err != nil {
			return 0, err
		}
		if !u.within {
			line = u.strip(line)
		}
		u.within = errors.Is(err, bufio.ErrBufferFull)
		u.rest = line
	}
	n := copy(p, u.rest)
	u.rest = u.rest[n:]
	return n, nil
}

// strip takes the cover off a line. The line's end stays, unless Kubernetes says that the line goes on.
func (u *uncovered) strip(line []byte) []byte {
	at := u.re.FindIndex(line[:min(len(line), 512)])
	if at == nil {
		return line
	}
	if at[1] > 3 && string(line[at[1]-3:at[1]]) == " P " {
		return bytes.TrimRight(line[at[1]:], "\r\n")
	}
	return line[at[1]:]
}

// mostValue and mostDepth bound what a value of JSON takes, whatever a file contains.
const (
	mostValue = 64 << 20
	mostDepth = 1000
)

var errValue = errors.New("a value in JSON is longer than 64 MiB, or nested too deeply")

// bounded returns at most a number of bytes.
type bounded struct {
	r    io.Reader
	left int
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errValue
	}
	n, err := b.r.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// messages is the text in JSON: lines of objects, a list of them, or an object that has a list.
type messages struct {
	in   *bounded
	dec  *json.Decoder
	rest []byte
	key  []string // of the objects that are open; "" in a list
	next bool     // the next token is a key
	open []bool   // by depth: an object
}

func newMessages(r io.Reader) *messages {
	in := &bounded{r: r}
	return &messages{in: in, dec: json.NewDecoder(in)}
}

// Read implements io.Reader.
func (m *messages) Read(p []byte) (int, error) {
	for len(m.rest) == 0 {
		m.in.left = mostValue
		tok, err := m.dec.Token()
		if err != nil {
			return 0, err
		}
		if m.token(tok); len(m.open) > mostDepth {
			return 0, errValue
		}
	}
	n := copy(p, m.rest)
	m.rest = m.rest[n:]
	return n, nil
}

func (m *messages) token(tok json.Token) {
	switch t := tok.(type) {
	case json.Delim:
		switch t {
		case '{', '[':
			m.open, m.key = append(m.open, t == '{'), append(m.key, "")
			m.next = t == '{'
			return
		}
		m.open, m.key = m.open[:len(m.open)-1], m.key[:len(m.key)-1]
	case string:
		if m.next {
			m.key[len(m.key)-1], m.next = t, false
			return
		}
		if n := len(m.key); n > 0 && isField(m.key[n-1]) {
			m.rest = append(m.rest[:0], t...)
			piece := m.key[n-1] == "log" && len(t) >= 16<<10 // Docker cuts longer lines; the rest follows
			if len(t) > 0 && t[len(t)-1] != '\n' && !piece {
				m.rest = append(m.rest, '\n')
			}
		}
	}
	m.next = len(m.open) > 0 && m.open[len(m.open)-1]
}

func isField(key string) bool {
	for _, f := range fields {
		if key == f {
			return true
		}
	}
	return false
}
