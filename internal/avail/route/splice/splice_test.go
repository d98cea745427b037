package splice

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/await"
)

// ends are a client and a server that a loop joins.
type ends struct {
	client, server *net.TCPConn
	pair           *Pair
	over           chan struct{}
}

// join makes a client and a server, and a pair between them.
func join(t *testing.T, l *Loop) ends {
	t.Helper()
	client, a := connection(t)
	b, server := connection(t)
	e := ends{client: client, server: server, over: make(chan struct{})}
	e.pair = l.Add(descriptor(t, a), descriptor(t, b), func(*Pair) { close(e.over) })
	return e
}

// connection is the two ends of one connection of TCP.
func connection(t *testing.T) (dialed, accepted *net.TCPConn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(); _ = s.Close() })
	return c.(*net.TCPConn), s.(*net.TCPConn)
}

func descriptor(t *testing.T, c *net.TCPConn) (fd int) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(own uintptr) { fd, err = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 0) }); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	return fd
}

func loop(t *testing.T) *Loop {
	t.Helper()
	before := runtime.GOMAXPROCS(0)
	l, err := New(2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if now := runtime.GOMAXPROCS(0); now != before {
			t.Errorf("GOMAXPROCS is %d, was %d", now, before)
		}
	})
	return l
}

func random(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(b)
	return b
}

// TestBothWays: what either sends reaches the other as it was, however slowly it is taken, and a half that is closed leaves the other one open.
func TestBothWays(t *testing.T) {
	l := loop(t)
	e := join(t, l)
	question, answer := random(9_000_000), random(20_000_000)
	var got []byte
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = e.client.Write(question)
		_ = e.client.CloseWrite()
	})
	wg.Go(func() {
		b := make([]byte, 100_000)
		for {
			n, err := e.server.Read(b)
			got = append(got, b[:n]...)
			if err != nil {
				break
			}
			if len(got) < 2_000_000 {
				time.Sleep(time.Millisecond) // slower than it is sent
			}
		}
		_, _ = e.server.Write(answer) // after the client has closed its half
		_ = e.server.Close()
	})
	back, err := io.ReadAll(e.client)
	wg.Wait()
	if err != nil || !bytes.Equal(back, answer) || !bytes.Equal(got, question) {
		t.Fatalf("%v; %d of %d bytes came, and %d of %d back", err, len(got), len(question), len(back), len(answer))
	}
	<-e.over
	if a, b := e.pair.Carried(); a != int64(len(answer)) || b != int64(len(question)) {
		t.Errorf("counted %d and %d bytes", a, b)
	}
}

// TestServerCloses: what a server says before it closes reaches the client, which then sees the end; the pair ends with the client.
func TestServerCloses(t *testing.T) {
	e := join(t, loop(t))
	_, _ = e.server.Write([]byte("Shutdown in progress"))
	_ = e.server.Close()
	b, err := io.ReadAll(e.client)
	if err != nil || string(b) != "Shutdown in progress" {
		t.Fatalf("%q, %v", b, err)
	}
	select {
	case <-e.over:
		t.Error("the pair is over before the client has closed")
	default:
	}
	// What it says now is answered as a server that is gone answers.
	await.Until(t, func() bool {
		_, err := e.client.Write([]byte("x"))
		return errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
	}, "an error")
	<-e.over
}

// TestReset: a client that breaks off breaks the connection of the server, and the other way round.
func TestReset(t *testing.T) {
	l := loop(t)
	for _, breaks := range []string{"client", "server", "cut"} {
		e := join(t, l)
		_, _ = e.client.Write([]byte("x"))
		if _, err := io.ReadFull(e.server, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		left := []*net.TCPConn{e.client, e.server}
		switch breaks {
		case "client":
			_ = e.client.SetLinger(0)
			_ = e.client.Close()
			left = left[1:]
		case "server":
			_ = e.server.SetLinger(0)
			_ = e.server.Close()
			left = left[:1]
		default:
			e.pair.Cut()
			e.pair.Cut()
		}
		for _, c := range left {
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("%s broke off: read %v, want a reset", breaks, err)
			}
		}
		<-e.over
		e.pair.Cut() // too late, and harmless
	}
}

// TestMany: questions and answers of many pairs, some of which are cut meanwhile, do not mix, and no descriptor stays open.
func TestMany(t *testing.T) {
	l := loop(t)
	var wg sync.WaitGroup
	for i := range 100 {
		e := join(t, l)
		cut := i%3 == 0
		wg.Go(func() {
			b := make([]byte, 64)
			for {
				n, err := e.server.Read(b)
				if err != nil {
					_ = e.server.Close()
					return
				}
				_, _ = e.server.Write(b[:n])
			}
		})
		wg.Go(func() {
			defer e.client.Close()
			b := make([]byte, 2)
			for j := range 300 {
				if cut && j == 150 {
					e.pair.Cut()
				}
				want := []byte{byte(i), byte(j)}
				_, err := e.client.Write(want)
				if err == nil {
					_, err = io.ReadFull(e.client, b)
				}
				if err != nil {
					if !cut {
						t.Errorf("pair %d, question %d: %v", i, j, err)
					}
					return
				}
				if !bytes.Equal(b, want) {
					t.Errorf("pair %d got %v, want %v", i, b, want)
					return
				}
			}
			if cut {
				t.Errorf("pair %d was cut, and goes on", i)
			}
		})
		t.Cleanup(func() { <-e.over })
	}
	wg.Wait()
}

// TestClose: closing the loop cuts what is there, and says so.
func TestClose(t *testing.T) {
	l, err := New(1)
	if err != nil {
		t.Fatal(err)
	}
	e := join(t, l)
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	<-e.over
	if _, err := e.client.Read(make([]byte, 1)); err == nil {
		t.Error("the client is still connected")
	}
}
