package report

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// longTexts takes long texts out of what is written as JSON and puts them in when that is written, piece by piece: the encoder
// would hold each several times, and a sample may have megabytes.
type longTexts struct {
	mark string // replaces a text, with its number; random, so that no log can hold it
	list []string
}

// longText is the length of a long text, and about how much is encoded at a time.
const longText = 64 << 10

func newLongTexts() *longTexts { return &longTexts{mark: "long-text-" + rand.Text() + "-"} }

// hold returns a placeholder for a text.
func (l *longTexts) hold(s string) string {
	if len(s) <= longText {
		return s
	}
	l.list = append(l.list, s)
	return fmt.Sprintf("%s%d.", l.mark, len(l.list)-1)
}

// write writes a document with the texts in their places.
func (l *longTexts) write(w io.Writer, doc []byte) error {
	for {
		before, after, found := bytes.Cut(doc, []byte(l.mark))
		if _, err := w.Write(before); err != nil || !found {
			return err
		}
		number, rest, _ := bytes.Cut(after, []byte("."))
		n, err := strconv.Atoi(string(number))
		if err != nil || n >= len(l.list) {
			return fmt.Errorf("no long text %q", number)
		}
		if err := writeEscaped(w, l.list[n]); err != nil {
			return err
		}
		doc = rest
	}
}

// writeEscaped writes a text as JSON has it between quotes.
func writeEscaped(w io.Writer, s string) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	for len(s) > 0 {
		n := min(len(s), longText)
		for back := 0; back < utf8.UTFMax-1 && n < len(s) && !utf8.RuneStart(s[n]); back++ {
			n-- // not within a character
		}
		b.Reset()
		if err := e.Encode(s[:n]); err != nil {
			return err
		}
		// without the quotes and the line end
		if _, err := w.Write(b.Bytes()[1 : b.Len()-2]); err != nil {
			return err
		}
		s = s[n:]
	}
	return nil
}
