// Package screen is what commands write to a terminal in addition to their answers: progress, tables; and whether anyone is watching.
package screen

import (
	"fmt"
	"io"
	"os"
	"sync"
	"text/tabwriter"
	"time"

	"golang.org/x/term"
)

// Streams are what a command reads and writes.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
}

// Clock is a time for a log, in UTC.
func Clock(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

// Width is the terminal's width, or 0.
func Width(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return min(width, 160)
}

// ShortTime is a time for a table, in the reader's zone.
func ShortTime(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04")
}

// Joined joins two remedies.
func Joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// Tabulate aligns what write parts by tabs.
func Tabulate(w io.Writer, write func(io.Writer)) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	write(t)
	return t.Flush()
}

// OnTerminal reports whether a person watches, or types.
func OnTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Statements writes SQL as a client reads it.
func Statements(w io.Writer, list []string) error {
	for _, sql := range list {
		if _, err := fmt.Fprintln(w, sql+";"); err != nil {
			return err
		}
	}
	return nil
}

// Says tells the user something in addition to what a command prints. What it returns may be called by several goroutines.
func Says(w io.Writer) func(string) {
	var mu sync.Mutex
	return func(text string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintln(w, "risso:", text)
	}
}
