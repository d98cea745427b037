package tell

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/release"
	"github.com/rissodb/risso/internal/watch/alert"
)

// Webhook posts each message as JSON, as alert.Message has it. With a secret it is signed: the header Risso-Signature is "sha256=" and the
// hexadecimal HMAC-SHA256 of Risso-Timestamp, a dot, and the body. Idempotency-Key is the message's ID: a message that is sent again,
// because nobody knows whether it arrived, has the same.
type Webhook struct {
	URL        string `yaml:"url,omitempty"`
	URLFile    string `yaml:"url_file,omitempty"`
	URLEnv     string `yaml:"url_env,omitempty"`
	Secret     string `yaml:"secret,omitempty"`
	SecretFile string `yaml:"secret_file,omitempty"`
	SecretEnv  string `yaml:"secret_env,omitempty"`
}

func (w *Webhook) check() error {
	if w.URL == "" && w.URLFile == "" && w.URLEnv == "" {
		return errors.New("webhook: it needs a url, url_file or url_env")
	}
	if w.URL != "" {
		_, err := address(w.URL)
		return err
	}
	return nil
}

// address reads a URL. Its errors do not repeat it: it may be a secret.
func address(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("webhook: url must be as https://example.com/hook")
	}
	return u, nil
}

func (w *Webhook) open() Receiver { return &webhook{Webhook: *w, client: client()} }

// client never follows a redirect: what is sent is for the place that the user named.
func client() *http.Client {
	return &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

type webhook struct {
	Webhook
	client *http.Client
}

// Send posts a message.
func (w *webhook) Send(ctx context.Context, m *alert.Message) error {
	text, err := secret(w.URL, w.URLFile, w.URLEnv)
	if err != nil {
		return err
	}
	u, err := address(text)
	if err != nil {
		return err
	}
	key, err := secret(w.Secret, w.SecretFile, w.SecretEnv)
	if err != nil {
		return err
	}
	body, err := json.Marshal(m)
	if err != nil {
		return &refusal{error: fmt.Errorf("webhook: %w", err), permanent: true}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(body))
	if err != nil {
		return errors.New("webhook: the request cannot be made")
	}
	stamp := strconv.FormatInt(time.Now().Unix(), 10)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "Risso/"+release.Version())
	r.Header.Set("Idempotency-Key", m.ID)
	r.Header.Set("Risso-Timestamp", stamp)
	if key != "" {
		r.Header.Set("Risso-Signature", Sign(key, stamp, body))
	}
	return exchange(w.client, r, u.Host)
}

// Sign is what the header Risso-Signature has for a body that is sent at a time, in unix seconds.
func Sign(secret, timestamp string, body []byte) string {
	h := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(h, "%s.", timestamp)
	h.Write(body)
	return "sha256=" + hex.EncodeToString(h.Sum(nil))
}

// mostAnswer is how much of an answer is read.
const mostAnswer = 64 << 10

// exchange sends a request, and says in words without a path, which may be a secret, what was wrong.
func exchange(c *http.Client, r *http.Request, host string) error {
	res, err := c.Do(r)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err
		}
		return fmt.Errorf("%s: %w", host, err)
	}
	defer res.Body.Close()
	if res.StatusCode/100 == 2 { // whatever it goes on to say
		return nil
	}
	text, _ := io.ReadAll(io.LimitReader(res.Body, mostAnswer)) // it is for the error message only
	out := &refusal{error: fmt.Errorf("%s answered %s: %s", host, res.Status, oneline.Cut(oneline.Of(string(text)), 200))}
	switch res.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		if n, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && n > 0 {
			out.wait = time.Duration(n) * time.Second
		}
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity, http.StatusUnsupportedMediaType:
		out.permanent = true // it is the message that is refused; a wrong address or token can be mended meanwhile
	}
	return out
}
