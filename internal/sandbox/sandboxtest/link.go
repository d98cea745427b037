package sandboxtest

import (
	"bytes"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Link is a network between a server and who connects to Addr: it may be far away, narrow, or dead while connections stand.
type Link struct {
	Addr    string
	Latency atomic.Int64 // nanoseconds that each byte is on its way, in each direction
	Rate    atomic.Int64 // bytes per second and direction; 0: no limit; negative: nothing passes

	done chan struct{}
}

// linkStep is the piece of a second in which the rate is kept.
const linkStep = 10 * time.Millisecond

// NewLink makes a network to the address of a server that ends with the test.
func NewLink(t testing.TB, to string) *Link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &Link{Addr: listener.Addr().String(), done: make(chan struct{})}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			all.Go(func() { l.join(in, out) })
		}
	})
	t.Cleanup(func() { close(l.done); listener.Close(); all.Wait() })
	return l
}

// join passes bytes between two connections until one of them ends.
func (l *Link) join(a, b net.Conn) {
	var once sync.Once
	over := make(chan struct{})
	end := func() { once.Do(func() { close(over); a.Close(); b.Close() }) }
	var all sync.WaitGroup
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		parcels := make(chan parcel, 1<<12)
		all.Go(func() { defer end(); defer close(parcels); l.take(way[0], parcels) })
		all.Go(func() { defer end(); l.bring(way[1], parcels, over) })
	}
	select {
	case <-over:
	case <-l.done:
		end()
	}
	all.Wait()
}

// parcel is what was sent at one moment.
type parcel struct {
	bytes []byte
	due   time.Time
}

// take reads what is sent; what is on its way does not hold up what is behind it.
func (l *Link) take(from net.Conn, parcels chan<- parcel) {
	buf := make([]byte, 16<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			parcels <- parcel{bytes.Clone(buf[:n]), time.Now().Add(time.Duration(l.Latency.Load()))}
		}
		if err != nil {
			return
		}
	}
}

// bring delivers it.
func (l *Link) bring(to net.Conn, parcels <-chan parcel, over <-chan struct{}) {
	defer func() {
		for range parcels { // nobody waits for it any more
		}
	}()
	sleep := func(d time.Duration) bool {
		select {
		case <-time.After(d):
			return true
		case <-over:
			return false
		}
	}
	for next := range parcels {
		if d := time.Until(next.due); d > 0 && !sleep(d) {
			return
		}
		for rest := next.bytes; len(rest) > 0; {
			n := len(rest)
			if rate := l.Rate.Load(); rate != 0 {
				if !sleep(linkStep) {
					return
				}
				n = min(n, int(max(0, rate)*int64(linkStep)/int64(time.Second)))
			}
			if _, err := to.Write(rest[:n]); err != nil {
				return
			}
			rest = rest[n:]
		}
	}
}
