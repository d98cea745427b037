package tell

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"mime"
	"mime/multipart"
	"net"
	"net/mail"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/lack"
	"github.com/rissodb/risso/internal/watch/alert"
)

// mailServer is the program of a real mail server, of the library aiosmtpd: it wants STARTTLS and AUTH, refuses never@ for good, later@ the first time,
// and the whole mail if reject@ is among its recipients. It writes what it took, a line each.
const mailServer = `
import asyncio, json, ssl, sys
from aiosmtpd.smtp import SMTP, AuthResult
later = []
class Handler:
    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.startswith('never@'):
            return '550 5.1.1 no such user'
        if address.startswith('later@') and not later:
            later.append(1)
            return '451 4.7.1 greylisted'
        envelope.rcpt_tos.append(address)
        return '250 OK'
    async def handle_DATA(self, server, session, envelope):
        if any(a.startswith('reject@') for a in envelope.rcpt_tos):
            return '554 5.6.0 not this'
        print(json.dumps({'to': envelope.rcpt_tos, 'tls': session.ssl is not None, 'login': session.auth_data.login.decode(), 'mail': envelope.content.decode()}), flush=True)
        return '250 taken'
def auth(server, session, envelope, mechanism, data):
    return AuthResult(auth_data=data, handled=False, success=data.login == b'risso' and data.password == b's3cret')
async def main():
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(sys.argv[1], sys.argv[2])
    make = lambda: SMTP(Handler(), hostname='mail.test', tls_context=tls, require_starttls=True, authenticator=auth, auth_required=True)
    server = await asyncio.get_running_loop().create_server(make, '127.0.0.1', 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
`

// selfMade writes a certificate for 127.0.0.1 that vouches for itself, and its key.
func selfMade(t *testing.T) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "mail"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "EC PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// taken is a mail as the server took it.
type taken struct {
	To    []string
	TLS   bool
	Login string
	Mail  string
}

func realSMTP(t *testing.T) (at, cert string, got *bufio.Scanner) {
	t.Helper()
	if exec.CommandContext(t.Context(), "/usr/bin/python3", "-c", "import aiosmtpd").Run() != nil {
		lack.Of(t, "python3-aiosmtpd is not installed: run script/setup")
	}
	cert, key := selfMade(t)
	run := exec.CommandContext(t.Context(), "/usr/bin/python3", "-W", "ignore", "-c", mailServer, cert, key)
	out, err := run.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = run.Process.Kill(); _ = run.Wait() })
	got = bufio.NewScanner(out)
	got.Buffer(nil, 1<<24)
	if !got.Scan() {
		t.Fatalf("the mail server did not start: %v", got.Err())
	}
	return net.JoinHostPort("127.0.0.1", got.Text()), cert, got
}

// TestSMTP sends mail to a real server over STARTTLS with AUTH: what is refused for now is sent again, what is refused for good is said, and one
// recipient who is unknown keeps nobody from hearing of it.
func TestSMTP(t *testing.T) {
	t.Parallel()
	at, cert, got := realSMTP(t)
	send := func(change func(*Email)) error {
		t.Helper()
		e := &Email{Server: at, User: "risso", Password: "s3cret", From: "Risso <risso@example.com>", To: []string{"Ann <ann@example.com>"}, CAFile: cert}
		change(e)
		if err := e.check(); err != nil {
			t.Fatal(err)
		}
		m := message(2)
		m.Chart = sampleChart()
		return e.send(t.Context(), m)
	}
	next := func() (m taken) {
		t.Helper()
		if !got.Scan() {
			t.Fatalf("no mail: %v", got.Err())
		}
		if err := json.Unmarshal(got.Bytes(), &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	if err := send(func(*Email) {}); err != nil {
		t.Fatal(err)
	}
	m := next()
	if len(m.To) != 1 || m.To[0] != "ann@example.com" || !m.TLS || m.Login != "risso" {
		t.Errorf("got a mail to %s, TLS %v, login %s; want ann@example.com, true, risso", m.To, m.TLS, m.Login)
	}
	checkPicture(t, m.Mail)
	for name, c := range map[string]struct {
		change func(*Email)
		words  string
	}{
		"an unknown authority": {func(e *Email) { e.CAFile = "" }, "certificate"},
		"a wrong password":     {func(e *Email) { e.Password = "wr0ng" }, "535"},
		"all are unknown":      {func(e *Email) { e.To = []string{"never@example.com"} }, "550"},
		"no authority there":   {func(e *Email) { e.CAFile = "/nowhere" }, "ca_file"},
	} {
		if err := send(c.change); err == nil || !strings.Contains(err.Error(), c.words) || IsPermanent(err) || IsPartly(err) || strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "wr0ng") {
			t.Errorf("%s: got %v, want %s, to be tried again", name, err, c.words)
		}
	}
	if err := send(func(e *Email) { e.To = []string{"reject@example.com"} }); !IsPermanent(err) {
		t.Errorf("the mail is refused: got %v, want it given up", err)
	}
	later := func(e *Email) { e.To = append(e.To, "later@example.com") }
	if err := send(later); err == nil || IsPermanent(err) || IsPartly(err) || !strings.Contains(err.Error(), "451") {
		t.Errorf("refused for now: got %v, want 451, to be tried again", err)
	}
	if err := send(later); err != nil {
		t.Errorf("the second try: got %v, want none", err)
	}
	if m := next(); len(m.To) != 2 {
		t.Errorf("got a mail to %s, want both: the first try must have reached nobody", m.To)
	}
	err := send(func(e *Email) { e.To = append(e.To, "never@example.com", "bob@example.com") })
	if !IsPartly(err) || !strings.Contains(err.Error(), "never@example.com") {
		t.Errorf("one is unknown: got %v, want that it did not reach never@example.com", err)
	}
	if m := next(); len(m.To) != 2 || m.To[1] != "bob@example.com" {
		t.Errorf("got a mail to %s, want it to ann and bob", m.To)
	}
}

// checkPicture reads a mail as a mail program does: its page shows the picture that comes with it.
func checkPicture(t *testing.T, text string) {
	t.Helper()
	got, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	_, params, _ := mime.ParseMediaType(got.Header.Get("Content-Type"))
	parts := multipart.NewReader(got.Body, params["boundary"])
	plain, err := parts.NextPart()
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(plain); err != nil || !strings.Contains(string(body), "chart: threads running from 02:00 to 02:10 UTC: at least 1, at most 40, 3 at the end") {
		t.Errorf("got the text %s, %v, want the chart in words", body, err)
	}
	related, err := parts.NextPart()
	if err != nil {
		t.Fatal(err)
	}
	kind, params, err := mime.ParseMediaType(related.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/related" {
		t.Fatalf("got %s, %v, want multipart/related", kind, err)
	}
	inner := multipart.NewReader(related, params["boundary"])
	page, err := inner.NextPart()
	if err != nil {
		t.Fatal(err)
	}
	html, err := io.ReadAll(page)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := inner.NextPart()
	if err != nil {
		t.Fatal(err)
	}
	png, err := io.ReadAll(base64.NewDecoder(base64.StdEncoding, shown))
	if err != nil || string(png) != string(picture(sampleChart())) {
		t.Errorf("got a picture of %d bytes, %v, want that of the chart", len(png), err)
	}
	if id := strings.Trim(shown.Header.Get("Content-ID"), "<>"); id == "" || !strings.Contains(string(html), `src="cid:`+id+`"`) {
		t.Errorf("got the page %s, want it to show %s", html, id)
	}
}

// sampleChart is ten minutes with a peak, and a gap before it.
func sampleChart() *alert.Chart {
	c := &alert.Chart{Title: "threads running", From: time.Date(2026, 11, 24, 2, 0, 0, 0, time.UTC), Step: 60, Mark: time.Date(2026, 11, 24, 2, 6, 0, 0, time.UTC)}
	for _, v := range []float64{1, 2, 3, -1, 2, 2, 40, 40, 3, 3} {
		value := &v
		if v < 0 {
			value = nil
		}
		c.Values = append(c.Values, value)
	}
	return c
}
