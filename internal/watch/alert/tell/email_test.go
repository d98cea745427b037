package tell

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/mail"
	"strings"
	"testing"
)

// fakeSMTP is a fake of a mail server without STARTTLS, which refuses the recipient no@example.com. It gives what it was told, connection
// by connection.
func fakeSMTP(t *testing.T) (at string, told <-chan string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	out := make(chan string, 9)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			var all strings.Builder
			fmt.Fprint(c, "220 fake\r\n")
			data := false
			for in := bufio.NewScanner(c); in.Scan(); {
				line := in.Text()
				all.WriteString(line + "\n")
				switch {
				case data && line != ".":
				case strings.Contains(line, "no@example.com"):
					fmt.Fprint(c, "550 no such user\r\n")
				case line == "DATA":
					data = true
					fmt.Fprint(c, "354 go on\r\n")
				default:
					data = false
					fmt.Fprint(c, "250 good\r\n")
				}
			}
			_ = c.Close()
			out <- all.String()
		}
	}()
	return l.Addr().String(), out
}

// TestEmailFake: without TLS nothing is sent unless that is allowed, and never a password by AUTH that is not offered.
func TestEmailFake(t *testing.T) {
	at, told := fakeSMTP(t)
	for name, c := range map[string]struct {
		email Email
		wrong string // part of the error; empty: it is delivered
	}{
		"no STARTTLS":  {Email{}, "STARTTLS"},
		"plain":        {Email{TLS: "none"}, ""},
		"no AUTH":      {Email{TLS: "none", User: "u", Password: "s3cret"}, "AUTH"},
		"no recipient": {Email{TLS: "none", To: []string{"no@example.com"}}, "answered 550: no such user"},
	} {
		e := c.email
		e.Server, e.From = at, "risso@example.com"
		if e.To == nil {
			e.To = []string{"a@example.com", "B <b@example.com>"}
		}
		r, err := Open(Config{Name: "x", Email: &e})
		if err != nil {
			t.Fatalf("%s: Open: %v", name, err)
		}
		err = r.Send(context.Background(), message(1))
		all := <-told
		if c.wrong == "" {
			if err != nil || !strings.Contains(all, "RCPT TO:<b@example.com>") || !strings.Contains(all, "Subject: ") {
				t.Errorf("%s: got %v and %q, want it delivered", name, err, all)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.wrong) || strings.Contains(all, "DATA") || strings.Contains(all, "s3cret") {
			t.Errorf("%s: got %v and %q, want an error with %q, and no mail", name, err, all, c.wrong)
		}
	}
}

// TestLongLetter: however many recipients and alerts a mail has, no line of it is longer than RFC 5322 allows, and a reader of mail finds all of them.
func TestLongLetter(t *testing.T) {
	e := &Email{Server: "mail.example.com:587", From: "Risso <risso@example.com>"}
	for i := range 60 {
		e.To = append(e.To, fmt.Sprintf("Somebody Number %d <somebody.%d@example.com>", i, i))
	}
	letter := e.letter(message(50))
	for line := range bytes.Lines(letter) {
		if len(bytes.TrimRight(line, "\r\n")) > 998 {
			t.Errorf("got a line of %d characters, want at most 998: %.60q", len(line), line)
		}
	}
	m, err := mail.ReadMessage(bytes.NewReader(letter))
	if err != nil {
		t.Fatal(err)
	}
	if to, err := m.Header.AddressList("To"); err != nil || len(to) != len(e.To) {
		t.Errorf("got %d recipients, %v, want %d", len(to), err, len(e.To))
	}
}
