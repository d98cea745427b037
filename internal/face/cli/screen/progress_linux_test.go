package screen

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal is a pseudo-terminal and what is written to it.
func terminal(t *testing.T) (*os.File, func() string) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no pseudo-terminal: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(&text, master) // ends with an error when the other side is closed
	}()
	return slave, func() string {
		slave.Close()
		<-done
		return text.String()
	}
}

// TestProgress: on a terminal a line shows how far it is, from several goroutines, and is gone at the end, however often End is
// called; a message in between does not end it. (A second end was a crash once.)
func TestProgress(t *testing.T) {
	tty, said := terminal(t)
	p := NewProgress(tty)
	p.next = p.start // no half second
	p.Set(1<<20, 4<<20)
	p.Clear()
	p.next = p.start
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { p.Set(2<<20, 4<<20) })
	}
	wg.Wait()
	p.End()
	p.next = p.start
	p.Set(3<<20, 4<<20)
	p.End()
	p.Clear()
	text := said()
	if !strings.Contains(text, "25 %, 1 MiB") || !strings.Contains(text, "50 %, 2 MiB") || !strings.Contains(text, " left") {
		t.Errorf("it said %q; want \"25 %%, 1 MiB\" in it, \"50 %%, 2 MiB\" in it, \" left\" in it", text)
	}
	if strings.Contains(text, "75 %") || !strings.HasSuffix(text, "\r\x1b[K") {
		t.Errorf("behind the end it said %q; want no \"75 %%\" in it, \"\\r\\x1b[K\" at its end", text)
	}

	var pipe bytes.Buffer
	q := NewProgress(&pipe)
	q.next = q.start
	q.Set(1, 2)
	q.Clear()
	q.End()
	q.End()
	if pipe.Len() > 0 {
		t.Errorf("into a pipe it said %q, want pipe.Len() at most 0", pipe.String())
	}
}
