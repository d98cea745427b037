package tell

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"html"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/smtp"
	"net/textproto"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/watch/alert"
)

// Email sends mail by SMTP, as text and as HTML. Mails of one group form a thread.
type Email struct {
	Server       string   `yaml:"server"`         // host:port
	TLS          string   `yaml:"tls,omitempty"`  // starttls, which is the default and then required; implicit; none
	User         string   `yaml:"user,omitempty"` // none: without authentication; PLAIN or LOGIN, as the server has it
	Password     string   `yaml:"password,omitempty"`
	PasswordFile string   `yaml:"password_file,omitempty"`
	PasswordEnv  string   `yaml:"password_env,omitempty"`
	From         string   `yaml:"from"`
	To           []string `yaml:"to"`
}

func (e *Email) check() error {
	host, port, err := net.SplitHostPort(e.Server)
	switch {
	case err != nil || host == "" || port == "":
		return errors.New("email: server must be as mail.example.com:587")
	case e.TLS != "" && e.TLS != "starttls" && e.TLS != "implicit" && e.TLS != "none":
		return fmt.Errorf("email: tls %q: it can be starttls (the default), implicit or none", e.TLS)
	case e.User != "" && !kept{e.Password, e.PasswordFile, e.PasswordEnv}.given():
		return errors.New("email: password: a user needs one, or password_file or password_env")
	case len(e.To) == 0:
		return errors.New("email: it needs to: [address, …]")
	}
	for _, text := range append([]string{e.From}, e.To...) {
		if _, err := mail.ParseAddress(text); err != nil {
			return fmt.Errorf("email: %q is no address", text)
		}
	}
	return nil
}

func (e *Email) open() Receiver { return sender(e.send) }

// send brings one mail to the server. It is delivered when the server took it.
func (e *Email) send(ctx context.Context, m *alert.Message) error {
	host, _, _ := net.SplitHostPort(e.Server) // checked
	fail := func(err error) error {
		out := &refusal{error: fmt.Errorf("%s: %w", e.Server, err)}
		var said *textproto.Error
		if errors.As(err, &said) { // what a server says can be long
			out.error = fmt.Errorf("%s answered %d: %s", e.Server, said.Code, cut(said.Msg, 200))
			out.permanent = said.Code == 552 || said.Code == 554
		}
		return out
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var conn net.Conn
	var err error
	config := &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
	if e.TLS == "implicit" {
		conn, err = (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", e.Server)
	} else {
		conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", e.Server)
	}
	if err != nil {
		return fail(err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	c, err := smtp.NewClient(conn, host)
	if err != nil {
		return fail(err)
	}
	if cmp.Or(e.TLS, "starttls") == "starttls" {
		if ok, _ := c.Extension("STARTTLS"); !ok {
			return fail(errors.New("it does not offer STARTTLS, and without it nothing is sent; tls: none allows that"))
		}
		if err := c.StartTLS(config); err != nil {
			return fail(err)
		}
	}
	if err := e.login(c, host); err != nil {
		return fail(err)
	}
	if err := e.hand(c, m); err != nil {
		return fail(err)
	}
	_ = c.Quit() // the mail was taken
	return nil
}

// login authenticates, if there is a user.
func (e *Email) login(c *smtp.Client, host string) error {
	if e.User == "" {
		return nil
	}
	password, err := kept{e.Password, e.PasswordFile, e.PasswordEnv}.read()
	if err != nil {
		return err
	}
	ok, kinds := c.Extension("AUTH")
	if !ok {
		return errors.New("it does not offer AUTH here")
	}
	if have := strings.Fields(strings.ToUpper(kinds)); !slices.Contains(have, "PLAIN") && slices.Contains(have, "LOGIN") {
		return c.Auth(&loginAuth{user: e.User, password: password, secure: e.TLS != "none"})
	}
	return c.Auth(smtp.PlainAuth("", e.User, password, host)) // refuses a connection without TLS, but to this machine
}

// loginAuth is AUTH LOGIN.
type loginAuth struct {
	user, password string
	secure         bool
	step           int
}

// Start begins it.
func (l *loginAuth) Start(*smtp.ServerInfo) (string, []byte, error) {
	if !l.secure {
		return "", nil, errors.New("the password is not sent without TLS")
	}
	return "LOGIN", nil, nil
}

// Next answers the server's two questions.
func (l *loginAuth) Next(_ []byte, more bool) ([]byte, error) {
	if !more {
		return nil, nil
	}
	l.step++
	switch l.step {
	case 1:
		return []byte(l.user), nil
	case 2:
		return []byte(l.password), nil
	}
	return nil, errors.New("it asks for more than a name and a password")
}

// hand gives the mail to the server.
func (e *Email) hand(c *smtp.Client, m *alert.Message) error {
	from, _ := mail.ParseAddress(e.From) // checked
	if err := c.Mail(from.Address); err != nil {
		return err
	}
	for _, text := range e.To {
		to, _ := mail.ParseAddress(text)
		if err := c.Rcpt(to.Address); err != nil {
			return err
		}
	}
	w, err := c.Data()
	if err != nil {
		return err
	}
	if _, err := w.Write(e.letter(m)); err != nil {
		return err
	}
	return w.Close()
}

// letter is the mail. It depends on nothing but the message: sent again, it is the same.
func (e *Email) letter(m *alert.Message) []byte {
	from, _ := mail.ParseAddress(e.From)
	domain := from.Address[strings.LastIndexByte(from.Address, '@')+1:]
	name := func(key string) string { return "<" + short(strings.Repeat("\x00", 256)+key, 255) + "@" + domain + ">" }
	var to []string
	for _, text := range e.To {
		a, _ := mail.ParseAddress(text)
		to = append(to, a.String())
	}
	var b bytes.Buffer
	header := func(k, v string) { fmt.Fprintf(&b, "%s: %s\r\n", k, v) }
	header("From", from.String())
	header("To", strings.Join(to, ", "))
	header("Subject", mime.QEncoding.Encode("utf-8", cut(m.Title(150), 150)))
	header("Date", m.Made.Format(time.RFC1123Z))
	header("Message-ID", name(m.ID))
	if m.Group != "" && m.Group != m.ID {
		header("In-Reply-To", name(m.Group))
		header("References", name(m.Group))
	}
	header("Auto-Submitted", "auto-generated")
	header("MIME-Version", "1.0")
	boundary := short(strings.Repeat("\x00", 256)+"part "+m.ID, 255)
	header("Content-Type", `multipart/alternative; boundary="`+boundary+`"`)
	text := Text(m, 100_000)
	page := "<!DOCTYPE html><html><body><h2>" + html.EscapeString(m.Title(150)) + "</h2><pre style=\"white-space:pre-wrap\">" + html.EscapeString(text) + "</pre>"
	if link := linkOf(m); link != "" {
		page += `<p><a href="` + html.EscapeString(link) + `">Look</a></p>`
	}
	part := func(kind, body string) {
		fmt.Fprintf(&b, "\r\n--%s\r\nContent-Type: %s; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n", boundary, kind)
		q := quotedprintable.NewWriter(&b)
		_, _ = q.Write([]byte(body)) // into memory
		_ = q.Close()
	}
	part("text/plain", text)
	part("text/html", page+"</body></html>\n")
	fmt.Fprintf(&b, "\r\n--%s--\r\n", boundary)
	return b.Bytes()
}
