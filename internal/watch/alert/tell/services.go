package tell

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/release"
	"github.com/rissodb/risso/internal/watch/alert"
)

// sender is a receiver that is a function.
type sender func(ctx context.Context, m *alert.Message) error

// Send calls it.
func (s sender) Send(ctx context.Context, m *alert.Message) error { return s(ctx, m) }

// kept is a secret as it is configured: its value, the file or the environment's variable that has it; the latter two are read anew for
// each message.
type kept struct{ value, file, env string }

func (s kept) given() bool { return s.value+s.file+s.env != "" }

func (s kept) read() (string, error) { return secret(s.value, s.file, s.env) }

// post sends a value as JSON, with a header or none; its errors have the host, but no path and no header.
func post(ctx context.Context, c *http.Client, to string, header http.Header, value any) error {
	u, err := address(to)
	if err != nil {
		return err
	}
	body, err := json.Marshal(value)
	if err != nil {
		return &refusal{error: fmt.Errorf("%s: %w", u.Host, err), permanent: true}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(body))
	if err != nil {
		return errors.New("the request cannot be made")
	}
	for k, v := range header {
		r.Header[k] = v
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "Risso/"+release.Version())
	return exchange(c, r, u.Host)
}

// linked is a link that a channel may show: http or https, else "".
func linked(link string) string {
	if u, err := address(link); err == nil {
		return u.String()
	}
	return ""
}

// short is a key that a service takes: itself, or its hash if it is longer than most characters.
func short(key string, most int) string {
	if len(key) <= most {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// Slack posts to one of Slack's incoming webhooks. All text is sent as plain text: nothing that a server says is read as markup.
type Slack struct {
	URL     string `yaml:"url,omitempty"` // of the incoming webhook; it is a secret
	URLFile string `yaml:"url_file,omitempty"`
	URLEnv  string `yaml:"url_env,omitempty"`
}

func (s *Slack) check() error { return needsURL("slack", kept{s.URL, s.URLFile, s.URLEnv}) }

func needsURL(name string, s kept) error {
	if !s.given() {
		return fmt.Errorf("%s: it needs a url, url_file or url_env", name)
	}
	if s.value != "" {
		if _, err := address(s.value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (s *Slack) open() Receiver {
	c := client()
	return sender(func(ctx context.Context, m *alert.Message) error {
		to, err := kept{s.URL, s.URLFile, s.URLEnv}.read()
		if err != nil {
			return err
		}
		return post(ctx, c, to, nil, slackMessage(m))
	})
}

type object = map[string]any

// slackMessage has at most 3 blocks of the 50 that Slack takes: a header of 150 characters, a section of 3,000, and a button with a URL of 3,000
// (Slack's reference "Block Kit": https://docs.slack.dev/reference/block-kit/blocks, pages "Header block", "Section block" and "Button element").
func slackMessage(m *alert.Message) object {
	plain := func(text string) object { return object{"type": "plain_text", "text": text, "emoji": false} }
	title := m.Title(140)
	blocks := []object{{"type": "header", "text": plain(cut(title, 150))}}
	if text := Text(m, 2900); text != "" {
		blocks = append(blocks, object{"type": "section", "text": plain(text)})
	}
	if link := linkOf(m); link != "" && len(link) <= 3000 {
		blocks = append(blocks, object{"type": "actions", "elements": []object{{"type": "button", "text": plain("Look"), "url": link}}})
	}
	escape := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	return object{"text": escape.Replace(cut(title, 150)), "mrkdwn": false, "blocks": blocks}
}

// linkOf is the page of a message's first alert, or the page's list.
func linkOf(m *alert.Message) string {
	if len(m.Alerts) > 0 {
		if link := linked(m.Alerts[0].Link); link != "" {
			return link
		}
	}
	return linked(m.Source)
}

// Teams posts an Adaptive Card to a webhook of Microsoft Teams' Workflows. All text is sent as text runs, which know no markup.
type Teams struct {
	URL     string `yaml:"url,omitempty"` // of the workflow; it is a secret
	URLFile string `yaml:"url_file,omitempty"`
	URLEnv  string `yaml:"url_env,omitempty"`
}

func (t *Teams) check() error { return needsURL("teams", kept{t.URL, t.URLFile, t.URLEnv}) }

func (t *Teams) open() Receiver {
	c := client()
	return sender(func(ctx context.Context, m *alert.Message) error {
		to, err := kept{t.URL, t.URLFile, t.URLEnv}.read()
		if err != nil {
			return err
		}
		return post(ctx, c, to, nil, teamsMessage(m))
	})
}

// teamsMost is well below the 28 KB that Teams takes ("Create Incoming Webhooks" of Microsoft Teams' documentation; "about 28 KB" with all that belongs to the card in
// "Microsoft Teams" of Power Automate's connector reference): a client library found that 21 KB is what really passes (constant
// MSTEAMS_MESSAGE_SIZE_LIMIT of the gem msteams_hermes).
const teamsMost = 20_000

// teamsMessage leaves out so much that Teams takes the rest.
func teamsMessage(m *alert.Message) object {
	for most := 8000; ; most /= 2 {
		card := teamsCard(m, most)
		if text, err := json.Marshal(card); err != nil || len(text) <= teamsMost || most < 500 {
			return card
		}
	}
}

func teamsCard(m *alert.Message, most int) object {
	block := func(run object) object { return object{"type": "RichTextBlock", "inlines": []object{run}} }
	body := []object{block(object{"type": "TextRun", "text": m.Title(200), "weight": "Bolder", "size": "Medium"})}
	for line := range strings.Lines(Text(m, most)) {
		if line = strings.TrimRight(line, "\n"); line == "" {
			continue
		}
		run := object{"type": "TextRun", "text": line}
		if strings.HasPrefix(line, "next: ") {
			run["fontType"] = "Monospace"
		}
		body = append(body, block(run))
	}
	card := object{"$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4", "body": body}
	if link := linkOf(m); link != "" && len(link) < 2000 {
		card["actions"] = []object{{"type": "Action.OpenUrl", "title": "Look", "url": link}}
	}
	return object{"type": "message", "attachments": []object{{"contentType": "application/vnd.microsoft.card.adaptive", "content": card}}}
}

// PagerDuty sends events to PagerDuty's Events API v2: one for each alert, which its key tells apart, so that what is sent again changes
// nothing there.
type PagerDuty struct {
	Key     string `yaml:"routing_key,omitempty"`
	KeyFile string `yaml:"routing_key_file,omitempty"`
	KeyEnv  string `yaml:"routing_key_env,omitempty"`
	URL     string `yaml:"url,omitempty"` // instead of https://events.pagerduty.com
}

func (p *PagerDuty) check() error {
	return needsKey("pagerduty: routing_key", kept{p.Key, p.KeyFile, p.KeyEnv}, p.URL)
}

func needsKey(name string, key kept, other string) error {
	if !key.given() {
		return fmt.Errorf("%s: it must be given, or with _file or _env at the end of its name", name)
	}
	if other != "" {
		if _, err := address(other); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (p *PagerDuty) open() Receiver {
	c := client()
	to := strings.TrimRight(cmp.Or(p.URL, "https://events.pagerduty.com"), "/") + "/v2/enqueue"
	return sender(func(ctx context.Context, m *alert.Message) error {
		key, err := kept{p.Key, p.KeyFile, p.KeyEnv}.read()
		if err != nil {
			return err
		}
		for i := range m.Alerts {
			if err := post(ctx, c, to, nil, pagerEvent(key, m, &m.Alerts[i])); err != nil {
				return err
			}
		}
		return nil
	})
}

// pagerEvent has a summary of at most 1,024 characters and a dedup_key of at most 255 (PagerDuty's developer documentation, "Events API v2", page "Send an
// Alert Event"), and is far below 512 KB (the same, "Overview", section "Size Limits"). A resolve for which no alert is open is dropped there.
func pagerEvent(key string, m *alert.Message, a *alert.Alert) object {
	event := object{"routing_key": key, "dedup_key": short(keyOf(m, a), 255), "event_action": "trigger"}
	if a.Phase == alert.Resolved {
		event["event_action"] = "resolve"
		return event
	}
	event["payload"] = object{
		"summary": cut(testMark(m)+head(a), 1024), "source": cmp.Or(cut(a.Server, 255), "risso"), "severity": a.Severity.String(),
		"timestamp": a.Began.UTC().Format(time.RFC3339), "class": a.Finding, "component": cut(a.Subject, 255), "group": a.Group,
		"custom_details": object{"text": someLines(strings.Join(Lines(a), "\n")+"\n", 20000)},
	}
	event["client"] = "Risso"
	if link := linked(a.Link); link != "" {
		event["client_url"] = link
		event["links"] = []object{{"href": link, "text": "Look"}}
	}
	return event
}

// keyOf tells an alert from others; a test's has a key of its own, so that it cannot end a true one.
func keyOf(m *alert.Message, a *alert.Alert) string {
	if m.Test {
		return "test/" + m.ID + "/" + a.Key
	}
	return a.Key
}

func testMark(m *alert.Message) string {
	if m.Test {
		return "TEST "
	}
	return ""
}

// Opsgenie creates an alert for each that fires, and closes it by its alias when it ends.
type Opsgenie struct {
	Key     string `yaml:"api_key,omitempty"`
	KeyFile string `yaml:"api_key_file,omitempty"`
	KeyEnv  string `yaml:"api_key_env,omitempty"`
	URL     string `yaml:"url,omitempty"` // instead of https://api.opsgenie.com; https://api.eu.opsgenie.com in Europe
}

func (o *Opsgenie) check() error {
	return needsKey("opsgenie: api_key", kept{o.Key, o.KeyFile, o.KeyEnv}, o.URL)
}

func (o *Opsgenie) open() Receiver {
	c := client()
	base := strings.TrimRight(cmp.Or(o.URL, "https://api.opsgenie.com"), "/") + "/v2/alerts"
	return sender(func(ctx context.Context, m *alert.Message) error {
		key, err := kept{o.Key, o.KeyFile, o.KeyEnv}.read()
		if err != nil {
			return err
		}
		header := http.Header{"Authorization": {"GenieKey " + key}}
		for i := range m.Alerts {
			a := &m.Alerts[i]
			to, what := base, opsgenieAlert(m, a)
			if a.Phase == alert.Resolved {
				to = base + "/" + url.PathEscape(short(keyOf(m, a), 512)) + "/close?identifierType=alias"
				what = object{"source": "Risso", "note": when(a)}
			}
			if err := post(ctx, c, to, header, what); err != nil {
				return err
			}
		}
		return nil
	})
}

// opsgenieAlert has a message of at most 130 characters, an alias of 512, and a description of 15,000 (Opsgenie's documentation, "Alerts and alert
// fields": https://docs.opsgenie.com/docs/alerts-and-alert-fields).
func opsgenieAlert(m *alert.Message, a *alert.Alert) object {
	priority := "P3"
	switch {
	case m.Test || a.Severity <= fleet.SeverityInfo:
		priority = "P5"
	case a.Severity >= fleet.SeverityCritical:
		priority = "P1"
	}
	return object{
		"message": cut(testMark(m)+head(a), 130), "alias": short(keyOf(m, a), 512), "priority": priority, "source": "Risso", "entity": cut(a.Server, 512),
		"description": someLines(strings.Join(Lines(a), "\n")+"\n", 15000), "details": object{"finding": cut(a.Finding, 200), "server": cut(a.Server, 200)},
	}
}

// Telegram sends a message by a bot. It is sent as plain text, which knows no markup.
type Telegram struct {
	Token     string `yaml:"token,omitempty"`
	TokenFile string `yaml:"token_file,omitempty"`
	TokenEnv  string `yaml:"token_env,omitempty"`
	Chat      string `yaml:"chat"`          // its number, or @name of a channel
	URL       string `yaml:"url,omitempty"` // instead of https://api.telegram.org
}

func (t *Telegram) check() error {
	if t.Chat == "" {
		return errors.New("telegram: it needs a chat")
	}
	return needsKey("telegram: token", kept{t.Token, t.TokenFile, t.TokenEnv}, t.URL)
}

func (t *Telegram) open() Receiver {
	c := client()
	return sender(func(ctx context.Context, m *alert.Message) error {
		token, err := kept{t.Token, t.TokenFile, t.TokenEnv}.read()
		if err != nil {
			return err
		}
		base := strings.TrimRight(cmp.Or(t.URL, "https://api.telegram.org"), "/") + "/bot" + url.PathEscape(token)
		err = post(ctx, c, base+"/sendMessage", nil, object{"chat_id": t.Chat, "text": telegramText(m), "link_preview_options": object{"is_disabled": true}})
		if err == nil {
			t.show(ctx, c, base, m)
		}
		return err
	})
}

// show sends the chart behind the message. That it fails is no failure: the message is there, and must not be sent twice.
func (t *Telegram) show(ctx context.Context, c *http.Client, base string, m *alert.Message) {
	shown := picture(m.Chart)
	if shown == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	_ = form.WriteField("chat_id", t.Chat) // into memory
	_ = form.WriteField("disable_notification", "true")
	_ = form.WriteField("caption", cut(ChartWords(m.Chart), 1000))
	if part, err := form.CreateFormFile("photo", "chart.png"); err == nil {
		_, _ = part.Write(shown)
	}
	_ = form.Close()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/sendPhoto", &body)
	if err != nil {
		return
	}
	r.Header.Set("Content-Type", form.FormDataContentType())
	r.Header.Set("User-Agent", "Risso/"+release.Version())
	_ = exchange(c, r, r.URL.Host)
}

// telegramText has at most 4,096 characters, which Telegram counts as UTF-16 units ("Telegram Bot API", method sendMessage, and "MessageEntity" for the unit); the
// caption of a photo has at most 1,024 (method sendPhoto).
func telegramText(m *alert.Message) string {
	return m.Title(200) + "\n\n" + Text(m, 1900) // a character has at most two units
}

// Alertmanager posts alerts to Alertmanager's API, version 2.
type Alertmanager struct {
	URL          string `yaml:"url"` // such as http://alertmanager:9093
	User         string `yaml:"user,omitempty"`
	Password     string `yaml:"password,omitempty"`
	PasswordFile string `yaml:"password_file,omitempty"`
	PasswordEnv  string `yaml:"password_env,omitempty"`
}

// lasting is for how long Alertmanager keeps an alert of which it hears nothing more. Risso tells it when one ends, and of each that still
// fires when it repeats them; the rest of the time nothing is sent.
const lasting = 7 * 24 * time.Hour

func (a *Alertmanager) check() error {
	if a.URL == "" {
		return errors.New("alertmanager: it needs a url")
	}
	if _, err := address(a.URL); err != nil {
		return fmt.Errorf("alertmanager: %w", err)
	}
	return nil
}

func (a *Alertmanager) open() Receiver {
	c := client()
	return manager{sender(func(ctx context.Context, m *alert.Message) error {
		header := http.Header{}
		if a.User != "" {
			password, err := kept{a.Password, a.PasswordFile, a.PasswordEnv}.read()
			if err != nil {
				return err
			}
			r := http.Request{Header: header}
			r.SetBasicAuth(a.User, password)
		}
		var list []object
		for i := range m.Alerts {
			list = append(list, managed(m, &m.Alerts[i])...)
		}
		return post(ctx, c, strings.TrimRight(a.URL, "/")+"/api/v2/alerts", header, list)
	})}
}

// manager is Alertmanager as a receiver.
type manager struct{ sender }

// Renew is how often it is to be told what still fires: it forgets all alerts when it is started anew.
func (manager) Renew() time.Duration { return time.Minute }

// managed is an alert as Alertmanager has it. The severity is one of the labels by which it tells alerts apart: when an alert got worse, the
// milder one ends.
func managed(m *alert.Message, a *alert.Alert) (list []object) {
	for s := fleet.SeverityWarning; s <= a.Severity || len(list) == 0; s++ {
		if a.Severity < fleet.SeverityWarning {
			s = a.Severity
		}
		ends := m.Made
		if ends.Before(a.Began) {
			ends = a.Began
		}
		if s == a.Severity {
			ends = m.Made.Add(lasting)
			if !a.Ended.IsZero() {
				ends = a.Ended
			}
		}
		labels := map[string]string{"source": "risso"}
		for k, v := range map[string]string{"alertname": a.Finding, "instance": a.Server, "severity": s.String(), "subject": a.Subject, "group": a.Group} {
			if v = cut(v, 500); v != "" {
				labels[k] = v
			}
		}
		if m.Test {
			labels["test"] = m.ID
		}
		list = append(list, object{
			"labels": labels, "startsAt": a.Began.UTC().Format(time.RFC3339Nano), "endsAt": ends.UTC().Format(time.RFC3339Nano), "generatorURL": linked(a.Link),
			"annotations": map[string]string{"summary": cut(a.Says(), 1000), "description": strings.Join(Lines(a), "\n"), "why": cut(a.Why, 1000), "remedy": cut(a.Remedy, 1000)},
		})
		if s >= a.Severity {
			break
		}
	}
	return list
}
