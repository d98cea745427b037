package screen

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/digits"
)

// Progress shows on a terminal how far a read is, how fast, and how long it takes yet; elsewhere it is silent.
type Progress struct {
	out   io.Writer // nil: no terminal; it does not change
	mu    sync.Mutex
	ended bool
	start time.Time
	next  time.Time
	shown bool
	of    string // the stage that start is the beginning of
}

// NewProgress begins to measure. What ends within half a second shows nothing.
func NewProgress(out io.Writer) *Progress {
	now := time.Now()
	p := &Progress{start: now, next: now.Add(500 * time.Millisecond)}
	if OnTerminal(out) {
		p.out = out
	}
	return p
}

// Set says how many bytes are read, of how many (0: unknown). It may be called from several goroutines, and often.
func (p *Progress) Set(done, total int64) {
	p.Show(func(elapsed float64) string {
		rate := float64(done) / elapsed
		text := fmt.Sprintf("%s, %s/s", digits.Bytes(done), digits.Bytes(rate))
		if total > 0 && done > 0 {
			text = fmt.Sprintf("%s, %s, %s left", digits.Percent(min(1, float64(done)/float64(total))), text, digits.Age(max(0, float64(total-done)/rate)))
		}
		return text
	})
}

// Show shows a text that is made of the seconds since the start, unless one was shown just now.
func (p *Progress) Show(text func(elapsed float64) string) {
	if p.out == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.ended || now.Before(p.next) {
		return
	}
	p.next, p.shown = now.Add(200*time.Millisecond), true
	fmt.Fprintf(p.out, "\r%s\x1b[K", text(now.Sub(p.start).Seconds()))
}

// Clear takes the line away until the next one is shown.
func (p *Progress) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wipe()
}

func (p *Progress) wipe() {
	if p.shown {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.shown = false
	}
}

// End takes the line away for good. It may be called more than once.
func (p *Progress) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wipe()
	p.ended = true
}

// Stage shows a stage with its amount and its rate.
func (p *Progress) Stage(stage, unit string, done, total int64) {
	p.mu.Lock()
	if p.of != stage { // its rate and time left are counted from its own beginning
		p.of, p.start = stage, time.Now()
	}
	p.mu.Unlock()
	p.Show(func(elapsed float64) string {
		elapsed = max(elapsed, 0.001)
		amount := func(v float64) string {
			if unit == "tables" {
				return digits.Counted(int64(v), "table")
			}
			return digits.Bytes(v)
		}
		rate := float64(done) / elapsed
		text := fmt.Sprintf("%s: %s, %s/s", stage, amount(float64(done)), amount(rate))
		if total > 0 && done > 0 && rate > 0 {
			text = fmt.Sprintf("%s: %s, %s, %s/s, %s left", stage, digits.Percent(min(1, float64(done)/float64(total))), amount(float64(done)), amount(rate), digits.Age(max(0, float64(total-done)/rate)))
		}
		return text
	})
}
