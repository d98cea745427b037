package cli

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/face/render"
)

// progress shows on a terminal how far a read is, how fast, and how long it takes yet; elsewhere it is silent.
type progress struct {
	out   io.Writer // nil: nobody looks; it does not change
	mu    sync.Mutex
	ended bool
	start time.Time
	next  time.Time
	shown bool
	of    string // the stage that start is the beginning of
}

// newProgress begins to measure. What ends within half a second shows nothing.
func newProgress(out io.Writer) *progress {
	now := time.Now()
	p := &progress{start: now, next: now.Add(500 * time.Millisecond)}
	if isTerminal(out) {
		p.out = out
	}
	return p
}

// set says how many bytes are read, of how many (0: unknown). It may be called from several goroutines, and often.
func (p *progress) set(done, total int64) {
	p.show(func(elapsed float64) string {
		rate := float64(done) / elapsed
		text := fmt.Sprintf("%s, %s/s", render.Bytes(float64(done)), render.Bytes(rate))
		if total > 0 && done > 0 {
			text = fmt.Sprintf("%.0f %%, %s, %s left", 100*min(1, float64(done)/float64(total)), text, render.Seconds(max(0, float64(total-done)/rate)))
		}
		return text
	})
}

// show shows a text that is made of the seconds since the start, unless one was shown just now.
func (p *progress) show(text func(elapsed float64) string) {
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

// clear takes the line away until the next one is shown.
func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wipe()
}

func (p *progress) wipe() {
	if p.shown {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.shown = false
	}
}

// end takes the line away for good. It may be called more than once.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wipe()
	p.ended = true
}
