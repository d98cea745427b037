package watch

import (
	"context"
	"os"
	"os/signal"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/rissodb/risso/internal/oneline"
)

const (
	enterScreen = "\x1b[?1049h\x1b[?25l"
	leaveScreen = "\x1b[0m\x1b[?25h\x1b[?1049l"
	home        = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

// terminal is the terminal while a full screen has it.
type terminal struct {
	in, out *os.File
	old     *term.State // as it was found; nil: it is left as it was found
	color   bool
	signals chan os.Signal
}

// takeTerminal begins a full screen.
func takeTerminal(in, out *os.File) (*terminal, error) {
	t := &terminal{in: in, out: out, color: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb", signals: make(chan os.Signal, 4)}
	if err := t.enter(); err != nil {
		return nil, err
	}
	signal.Notify(t.signals, unix.SIGWINCH, unix.SIGTSTP, unix.SIGCONT)
	return t, nil
}

func (t *terminal) enter() error {
	old, err := term.MakeRaw(int(t.in.Fd()))
	if err != nil {
		return errPrepare(err)
	}
	t.old = old
	_, err = t.out.WriteString(enterScreen)
	return err
}

// leave gives the terminal back as it was found. It may be called again.
func (t *terminal) leave() {
	if t.old == nil {
		return
	}
	_, _ = t.out.WriteString(leaveScreen) // nobody is left to be told
	_ = term.Restore(int(t.in.Fd()), t.old)
	t.old = nil
}

// suspend gives the terminal back, stops the process as Ctrl-Z does, and takes the terminal again when it goes on.
func (t *terminal) suspend() error {
	t.leave()
	for len(t.signals) > 0 { // one that came before is not the one that is waited for, and must not take its room
		<-t.signals
	}
	if err := unix.Kill(os.Getpid(), unix.SIGSTOP); err != nil {
		return err
	}
	// Another thread may be the one that is told to stop: this one runs on for a moment, and must not take the terminal meanwhile.
	for s := range t.signals {
		if s == unix.SIGCONT {
			break
		}
	}
	return t.enter()
}

// size is the width and the height in characters.
func (t *terminal) size() (width, height int) {
	width, height, err := term.GetSize(int(t.out.Fd()))
	if err != nil || width < 1 || height < 1 {
		return 80, 24
	}
	return width, height
}

// read hands on keys until ctx ends. It ends with the process: a read of a terminal cannot be called off.
func (t *terminal) read(ctx context.Context, keys chan<- []string) {
	buf := make([]byte, 256)
	for {
		n, err := t.in.Read(buf)
		if err != nil {
			return
		}
		select {
		case keys <- keysOf(string(buf[:n])):
		case <-ctx.Done():
			return
		}
	}
}

// named are the keys that send more than a character.
var named = []struct{ sent, name string }{
	{"\x1b[A", "up"}, {"\x1b[B", "down"}, {"\x1b[C", "right"}, {"\x1b[D", "left"}, {"\x1bOA", "up"}, {"\x1bOB", "down"}, {"\x1bOC", "right"}, {"\x1bOD", "left"},
	{"\x1b[5~", "page up"}, {"\x1b[6~", "page down"}, {"\x1b[H", "home"}, {"\x1b[F", "end"}, {"\x1b[1~", "home"}, {"\x1b[4~", "end"},
}

// keysOf takes what a terminal sent apart: characters, and names of keys. Sequences that are unknown are left out.
func keysOf(s string) (keys []string) {
next:
	for s != "" {
		for _, k := range named {
			if rest, ok := strings.CutPrefix(s, k.sent); ok {
				keys, s = append(keys, k.name), rest
				continue next
			}
		}
		if s[0] == '\x1b' && len(s) > 1 && (s[1] == '[' || s[1] == 'O') {
			end := 2
			for end < len(s) && (s[end] < '@' || s[end] > '~') {
				end++
			}
			s = s[min(end+1, len(s)):]
			continue
		}
		_, n := utf8.DecodeRuneInString(s)
		key := s[:n]
		switch key {
		case "\x1b":
			key = "escape"
		case "\r", "\n":
			key = "enter"
		case "\x7f", "\b":
			key = "backspace"
		case "\t":
			key = "tab"
		case "\x03":
			key = "ctrl-c"
		case "\x1a":
			key = "ctrl-z"
		}
		keys, s = append(keys, key), s[n:]
	}
	return keys
}

// A style is how a line stands out.
type style string

const (
	plain  style = ""
	bold   style = "\x1b[1m"
	chosen style = "\x1b[7m"
	alarm  style = "\x1b[31m"
	notice style = "\x1b[33m"
)

// line is a line of the screen.
type line struct {
	text  string
	style style
}

// draw writes a screen.
func (t *terminal) draw(lines []line) error {
	width, height := t.size()
	if len(lines) > height {
		lines = lines[:height]
	}
	var b strings.Builder
	b.WriteString(home)
	for i, l := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		text := oneline.Cut(l.text, width)
		if t.color && l.style != plain {
			text = string(l.style) + text + "\x1b[0m"
		}
		b.WriteString(text)
		if utf8.RuneCountInString(l.text) < width { // at the edge the cursor stands on the last character, which this would take away
			b.WriteString(clearLine)
		}
	}
	if len(lines) < height {
		b.WriteString(clearBelow)
	}
	_, err := t.out.WriteString(b.String())
	return err
}
