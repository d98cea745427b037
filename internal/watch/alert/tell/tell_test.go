package tell

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/lack"
	"github.com/rissodb/risso/internal/watch/alert"
)

// hostile is what a server could say: markup of all channels, and what ends a line of a header.
const hostile = "a\r\nBcc: x@example.com\r\n\r\n<!channel> <b>b</b> *c* _d_ [e](http://f) & \x1b[31m \x00"

func message(alerts int) *alert.Message {
	m := &alert.Message{ID: "m-1", Group: "g-1", Made: time.Now().Truncate(time.Second), Source: "http://risso/alerts"}
	for i := range alerts {
		m.Alerts = append(m.Alerts, alert.Alert{
			Key: fmt.Sprintf("db%d/repl.stopped/x", i), Finding: "repl.stopped", Subject: "x", Instance: fmt.Sprint("i", i), Server: fmt.Sprintf("db%d", i),
			Severity: fleet.SeverityCritical, Phase: alert.Firing, Began: m.Made.Add(-time.Hour), Rang: m.Made, Link: "http://risso/s/1",
			Trouble:  fleet.Trouble{What: "replication stopped " + hostile, Why: strings.Repeat("ö", 900), Remedy: "START REPLICA"},
			Evidence: []string{hostile, strings.Repeat("<", 3000)},
		})
	}
	return m
}

// TestLimits holds what each service takes, for messages that are short and long.
func TestLimits(t *testing.T) {
	for _, n := range []int{0, 1, 2, 50} {
		m := message(n)
		size := func(v any) int { b, _ := json.Marshal(v); return len(b) }
		for _, most := range []int{100, 1000, 3000, 100_000} {
			if got := utf8.RuneCountInString(Text(m, most)); got > most && most >= 1000 {
				t.Errorf("Text of %d alerts: got %d characters, want at most %d", n, got, most)
			}
		}
		if got := size(teamsMessage(m)); got > 21_000 {
			t.Errorf("Teams, %d alerts: got %d bytes, want at most 21000", n, got)
		}
		if got := len(utf16.Encode([]rune(telegramText(m)))); got > 4096 {
			t.Errorf("Telegram, %d alerts: got %d units, want at most 4096", n, got)
		}
		for _, block := range slackMessage(m)["blocks"].([]object) {
			text, _ := block["text"].(object)
			s, _ := text["text"].(string)
			if most := map[any]int{"header": 150, "section": 3000}[block["type"]]; utf8.RuneCountInString(s) > most {
				t.Errorf("Slack, %d alerts: got %d characters in a %v, want at most %d", n, utf8.RuneCountInString(s), block["type"], most)
			}
		}
		if n < 2 {
			continue
		}
		if text := Text(m, 3000); !strings.Contains(text, "Left out here: ") {
			t.Errorf("%d alerts in 3000 characters: got %q, want it said that some were left out", n, text)
		}
		a := &m.Alerts[0]
		if p := pagerEvent("k", m, a)["payload"].(object); utf8.RuneCountInString(p["summary"].(string)) > 1024 || size(p) > 512_000 {
			t.Errorf("PagerDuty: got a summary of %d characters and %d bytes", len(p["summary"].(string)), size(p))
		}
		if o := opsgenieAlert(m, a); utf8.RuneCountInString(o["message"].(string)) > 130 || utf8.RuneCountInString(o["description"].(string)) > 15000 {
			t.Errorf("Opsgenie: got %d and %d characters", len(o["message"].(string)), len(o["description"].(string)))
		}
	}
}

// TestFakes sends to a fake of each service, which keeps what it was sent, and then to ones that refuse.
func TestFakes(t *testing.T) {
	for name, c := range map[string]func(url string) Config{
		"slack":     func(u string) Config { return Config{Slack: &Slack{URL: u + "/s3cret"}} },
		"teams":     func(u string) Config { return Config{Teams: &Teams{URL: u + "/s3cret"}} },
		"pagerduty": func(u string) Config { return Config{PagerDuty: &PagerDuty{Key: "s3cret", URL: u}} },
		"opsgenie":  func(u string) Config { return Config{Opsgenie: &Opsgenie{Key: "s3cret", URL: u}} },
		"telegram":  func(u string) Config { return Config{Telegram: &Telegram{Token: "s3cret", Chat: "1", URL: u}} },
		"alertmanager": func(u string) Config {
			return Config{Alertmanager: &Alertmanager{URL: u, User: "u", Password: "s3cret"}}
		},
		"webhook": func(u string) Config { return Config{Webhook: &Webhook{URL: u + "/s3cret", Secret: "s3cret"}} },
	} {
		status, got := http.StatusOK, 0
		fake := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			var v any
			if err := json.Unmarshal(body, &v); err != nil {
				t.Errorf("%s: got %q, want JSON: %v", name, body, err)
			}
			got++
			w.Header().Set("Retry-After", "7")
			w.Header().Set("Location", "http://127.0.0.1:1/elsewhere")
			w.WriteHeader(status)
		}))
		defer fake.Close()
		config := c(fake.URL)
		config.Name = "x"
		r, err := Open(config)
		if err != nil {
			t.Fatalf("%s: Open: %v", name, err)
		}
		m := message(1)
		if err := r.Send(context.Background(), m); err != nil || got != 1 {
			t.Errorf("%s: got %d requests and %v, want 1 and none", name, got, err)
		}
		for _, code := range []int{302, 400, 429, 500} {
			status = code
			err := r.Send(context.Background(), m)
			if err == nil || strings.Contains(err.Error(), "s3cret") || IsPermanent(err) != (code == 400) || code == 429 && WaitOf(err) != 7*time.Second {
				t.Errorf("%s answers %d: got %v, permanent %t, wait %s", name, code, err, IsPermanent(err), WaitOf(err))
			}
		}
		fake.Close()
		if err := r.Send(context.Background(), m); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s is away: got %v, want an error without the secret", name, err)
		}
	}
}

// TestLetter reads a mail as a mail program does.
func TestLetter(t *testing.T) {
	e := &Email{Server: "localhost:25", From: "Risso <risso@example.com>", To: []string{"a@example.com"}}
	m := message(2)
	if !bytes.Equal(e.letter(m), e.letter(m)) {
		t.Error("the mail differs from time to time, want it the same")
	}
	got, err := mail.ReadMessage(bytes.NewReader(e.letter(m)))
	if err != nil {
		t.Fatal(err)
	}
	if got.Header.Get("Bcc") != "" || got.Header.Get("Message-ID") == "" || got.Header.Get("References") == "" {
		t.Errorf("got header %v, want Message-ID and References, and no Bcc", got.Header)
	}
	_, params, err := mime.ParseMediaType(got.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	parts := multipart.NewReader(got.Body, params["boundary"])
	for _, kind := range []string{"text/plain", "text/html"} {
		p, err := parts.NextRawPart()
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(quotedprintable.NewReader(p))
		if err != nil || !strings.HasPrefix(p.Header.Get("Content-Type"), kind) || !strings.Contains(string(body), "START REPLICA") {
			t.Errorf("got part %q and %v, want %s with the remedy", p.Header.Get("Content-Type"), err, kind)
		}
		if kind == "text/html" && (strings.Contains(string(body), "<b>") || strings.Contains(string(body), "<!channel>")) {
			t.Errorf("got HTML with a server's markup: %s", body)
		}
	}
}

// TestAlertmanager tells the real Alertmanager, and asks it what it knows.
func TestAlertmanager(t *testing.T) {
	program, err := exec.LookPath("prometheus-alertmanager")
	if err != nil {
		lack.Of(t, "prometheus-alertmanager is not installed: run script/setup")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	_ = l.Close()
	dir := t.TempDir()
	file := filepath.Join(dir, "am.yml")
	if err := os.WriteFile(file, []byte("route: {receiver: none}\nreceivers: [{name: none}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), program, "--config.file="+file, "--storage.path="+dir, "--web.listen-address="+at, "--cluster.listen-address=")
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = run.Process.Kill(); _ = run.Wait() })
	firing := func() (list []struct {
		Labels map[string]string
		EndsAt time.Time
	}) {
		res, err := http.Get("http://" + at + "/api/v2/alerts")
		if err != nil {
			return nil
		}
		defer res.Body.Close()
		_ = json.NewDecoder(res.Body).Decode(&list)
		return list
	}
	r, err := Open(Config{Name: "x", Alertmanager: &Alertmanager{URL: "http://" + at}})
	if err != nil {
		t.Fatal(err)
	}
	m := message(1)
	m.Alerts[0].Severity = fleet.SeverityWarning
	await.Until(t, func() bool { return r.Send(t.Context(), m) == nil }, "Alertmanager took the alert")
	await.Until(t, func() bool { l := firing(); return len(l) == 1 && l[0].Labels["severity"] == "warning" }, "it has the warning")
	if got := time.Until(firing()[0].EndsAt); got < lasting/2 {
		t.Errorf("it ends by itself in %s, want some days", got)
	}
	m.Made, m.Alerts[0].Severity = time.Now(), fleet.SeverityCritical
	if err := r.Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	await.Until(t, func() bool { l := firing(); return len(l) == 1 && l[0].Labels["severity"] == "critical" }, "it has the critical one only")
	m.Alerts[0].Phase, m.Alerts[0].Ended = alert.Resolved, time.Now()
	if err := r.Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	await.Until(t, func() bool { return len(firing()) == 0 }, "it has none")
}

// TestQuietText: a message after quiet hours says so, in its title and its text, with how many alerts still fire.
func TestQuietText(t *testing.T) {
	m := message(3)
	m.Made = time.Date(2026, 11, 24, 7, 0, 0, 0, time.UTC)
	m.Quiet = m.Made.Add(-8 * time.Hour)
	for _, c := range []struct {
		over int
		want string
	}{{0, "3 alerts, all still fire."}, {2, "3 alerts, 1 still firing."}, {3, "3 alerts, none of them still fires."}} {
		for i := range c.over {
			m.Alerts[len(m.Alerts)-1-i].Phase, m.Alerts[len(m.Alerts)-1-i].Ended = alert.Resolved, m.Made
		}
		if text := Text(m, 3000); !strings.HasPrefix(text, "While it was quiet, from 23:00 UTC to 07:00 UTC: "+c.want+"\n") {
			t.Errorf("%d over: got %.120q, want it to say: %s", c.over, text, c.want)
		}
	}
	if title := m.Title(60); !strings.HasPrefix(title, "[RESOLVED] while it was quiet, db0: ") || !strings.HasSuffix(title, " (and 2 more alerts)") {
		t.Errorf("got the title %q", title)
	}
}
