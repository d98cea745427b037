package tell

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/smtp"
	"net/textproto"
	"os"
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
	CAFile       string   `yaml:"ca_file,omitempty"` // certificates that are trusted instead of the system's, for a mail server of one's own
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
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	fail := func(err error) error {
		if ctx.Err() != nil && !errors.Is(err, errPartly) { // the connection was closed for that
			err = fmt.Errorf("it did not answer in time: %w", ctx.Err())
		}
		out := &refusal{error: fmt.Errorf("%s: %w", e.Server, err), partly: errors.Is(err, errPartly)}
		if out.partly {
			return out
		}
		var said *textproto.Error
		if errors.As(err, &said) { // what a server says can be long
			out.error = fmt.Errorf("%s answered %d: %s", e.Server, said.Code, cut(said.Msg, 200))
			out.permanent = said.Code == 552 || said.Code == 554
		}
		return out
	}
	var conn net.Conn
	var err error
	config := &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
	if config.RootCAs, err = e.trusted(); err != nil {
		return fail(err)
	}
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
	err = e.hand(c, m)
	if err == nil || errors.Is(err, errPartly) {
		_ = c.Quit() // the mail was taken
	}
	if err != nil {
		return fail(err)
	}
	return nil
}

// trusted are the authorities that may vouch for the server; nil: those of the system.
func (e *Email) trusted() (*x509.CertPool, error) {
	if e.CAFile == "" {
		return nil, nil
	}
	text, err := os.ReadFile(e.CAFile)
	if err != nil {
		return nil, fmt.Errorf("ca_file: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, errors.New("ca_file: it has no certificates in PEM")
	}
	return pool, nil
}

// errPartly says that a mail was taken for some recipients, and refused for good for others.
var errPartly = errors.New("the mail was taken, but not for all")

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
	lost := 0
	var refused error // one that is unknown must not keep the others from hearing of it
	for _, text := range e.To {
		to, _ := mail.ParseAddress(text)
		err := c.Rcpt(to.Address)
		var said *textproto.Error
		switch {
		case err == nil:
		case errors.As(err, &said) && said.Code/100 == 5:
			refused = cmp.Or(refused, fmt.Errorf("%s: %d %s", to.Address, said.Code, cut(said.Msg, 200)))
			lost++
			if lost == len(e.To) {
				return err
			}
		default:
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
	if err := w.Close(); err != nil || refused == nil {
		return err
	}
	return fmt.Errorf("%w: %w", errPartly, refused)
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
	header("To", strings.Join(to, ",\r\n ")) // a line has at most 998 characters: RFC 5322, 2.1.1
	header("Subject", mime.QEncoding.Encode("utf-8", cut(m.Title(150), 150)))
	header("Date", m.Made.Format(time.RFC1123Z))
	header("Message-ID", name(m.ID))
	if m.Group != "" && m.Group != m.ID {
		header("In-Reply-To", name(m.Group))
		header("References", name(m.Group))
	}
	header("Auto-Submitted", "auto-generated")
	header("MIME-Version", "1.0")
	outer, inner := short(strings.Repeat("\x00", 256)+"part "+m.ID, 255), short(strings.Repeat("\x00", 256)+"shown "+m.ID, 255)
	header("Content-Type", `multipart/alternative; boundary="`+outer+`"`)
	shown := picture(m.Chart)
	part := func(boundary, kind, body string) {
		fmt.Fprintf(&b, "\r\n--%s\r\nContent-Type: %s; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n", boundary, kind)
		q := quotedprintable.NewWriter(&b)
		_, _ = q.Write([]byte(body)) // into memory
		_ = q.Close()
	}
	part(outer, "text/plain", Text(m, mailMost))
	if shown == nil {
		part(outer, "text/html", page(m, ""))
	} else { // the picture belongs to the page alone
		id := name("chart " + m.ID)
		fmt.Fprintf(&b, "\r\n--%s\r\nContent-Type: multipart/related; type=\"text/html\"; boundary=\"%s\"\r\n", outer, inner)
		part(inner, "text/html", page(m, strings.Trim(id, "<>")))
		fmt.Fprintf(&b, "\r\n--%s\r\nContent-Type: image/png\r\nContent-Transfer-Encoding: base64\r\nContent-ID: %s\r\nContent-Disposition: inline; filename=\"chart.png\"\r\n\r\n", inner, id)
		text := base64.StdEncoding.EncodeToString(shown)
		for len(text) > 76 {
			b.WriteString(text[:76] + "\r\n")
			text = text[76:]
		}
		fmt.Fprintf(&b, "%s\r\n--%s--\r\n", text, inner)
	}
	fmt.Fprintf(&b, "\r\n--%s--\r\n", outer)
	return b.Bytes()
}

// mailMost is how many characters a mail's text has at most.
const mailMost = 100_000

// page is a mail as HTML, in the colours that the reader's program has; chart is the Content-ID of its picture, or empty.
func page(m *alert.Message, chart string) string {
	var b strings.Builder
	b.WriteString("<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"color-scheme\" content=\"light dark\"></head><body style=\"font-family:sans-serif\">")
	b.WriteString("<h1 style=\"font-size:1.2em\">" + html.EscapeString(m.Title(150)) + "</h1>")
	if chart != "" {
		words := html.EscapeString(ChartWords(m.Chart))
		b.WriteString(`<p><img src="cid:` + html.EscapeString(chart) + `" width="600" height="160" style="max-width:100%;height:auto" alt="` + words + `"></p>`)
	}
	b.WriteString("<pre style=\"white-space:pre-wrap;font-size:1em\">" + html.EscapeString(Text(m, mailMost)) + "</pre>")
	if link := linkOf(m); link != "" {
		b.WriteString(`<p><a href="` + html.EscapeString(link) + `">Look at that moment</a></p>`)
	}
	return b.String() + "</body></html>\n"
}
