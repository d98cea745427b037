package flags

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/serve/config"
)

// Running is a risso serve that runs, as a command reaches it.
type Running struct {
	To         string // URL that the user named; empty: on this machine
	TokenFile  string
	ConfigFile string // its config file, which may say where it listens
	Role       string // that is needed; empty: look to read, change to write

	URL    string // set by Find
	token  string
	writes bool // what was asked for last
}

// Bind adds --url, --token-file and --config.
func (r *Running) Bind(cmd *cobra.Command) { r.BindTo(cmd.PersistentFlags()) }

// BindTo adds them to a set of flags.
func (r *Running) BindTo(fl *pflag.FlagSet) {
	r.BindAddress(fl)
	fl.Lookup("url").Usage += " (default: the one on this machine)"
	fl.StringVar(&r.ConfigFile, "config", "", "config file of risso serve, which says where it listens")
}

// BindAddress adds --url and --token-file alone, for commands that ask risso serve only where --url is given.
func (r *Running) BindAddress(fl *pflag.FlagSet) {
	fl.StringVar(&r.To, "url", "", "address of risso serve: http://risso:8306")
	fl.StringVar(&r.TokenFile, "token-file", "", "file with the token (default: the environment variable RISSO_TOKEN)")
}

// runningPatience bounds each question to risso serve.
const runningPatience = 20 * time.Second

// Find fills in address and token. flag is the name of the flag with the address, for errors.
func (r *Running) Find(flag string) error {
	r.URL = strings.TrimRight(r.To, "/")
	if r.URL == "" {
		c, err := config.Read(r.ConfigFile)
		if err != nil {
			return err
		}
		listen := cmp.Or(c.Listen, config.DefaultListen)
		host, port, err := net.SplitHostPort(listen)
		if err != nil {
			return fault.Usagef("listen %q of the config file: write it as host:port", listen)
		}
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			host = "127.0.0.1"
		}
		r.URL = "http://" + net.JoinHostPort(host, port)
	}
	u, err := url.Parse(r.URL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return fault.Usagef("%s: write it as http://host:8306", flag)
	}
	if u.User != nil {
		return fault.Usagef("%s: no password belongs there; give the token by --token-file or RISSO_TOKEN", flag)
	}
	r.token = os.Getenv("RISSO_TOKEN")
	if r.TokenFile != "" {
		b, err := os.ReadFile(r.TokenFile)
		if err != nil {
			return fault.Usagef("--token-file: %w", err)
		}
		r.token = string(b)
	}
	r.token = strings.TrimSpace(r.token)
	return nil
}

// Token is what Find found; empty: none.
func (r *Running) Token() string { return r.token }

// Ask makes one request. Its errors leave out the address, which the caller names himself.
func (r *Running) Ask(ctx context.Context, method, path string, body []byte) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, runningPatience)
	defer cancel()
	r.writes = method != http.MethodGet
	req, err := http.NewRequestWithContext(ctx, method, r.URL+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	// A token must not follow a redirection to somewhere else.
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		return 0, nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, mostRead))
	return resp.StatusCode, b, err
}

// mostRead is how much of an answer is read.
const mostRead = 64 << 20

// Verdict turns an answer into an error. does says what a risso serve must be able to: "accept benchmarks".
func (r *Running) Verdict(code int, body []byte, does string) error {
	var said struct{ Error, Remedy string }
	_ = json.Unmarshal(body, &said) // without JSON it is no answer of Risso: the status says enough
	switch {
	case code >= 200 && code < 300:
		return nil
	case code == http.StatusUnauthorized:
		return fault.New(fault.Failed, "make one with risso token create NAME --role "+r.needs()+" there, and give it by --token-file or RISSO_TOKEN", fmt.Errorf("%s requires a token", r.URL))
	case said.Error == "" || code == http.StatusNotFound && strings.HasPrefix(said.Error, "there is no /api/"):
		return fault.New(fault.Failed, "it must be a risso serve of this version or a newer one", fmt.Errorf("%s does not %s: status %d", r.URL, does, code))
	}
	return fault.New(fault.Failed, said.Remedy, fmt.Errorf("%s: %s", r.URL, said.Error))
}

// needs is the role that a token needs for what was asked.
func (r *Running) needs() string {
	if r.writes {
		return cmp.Or(r.Role, "change")
	}
	return cmp.Or(r.Role, "look")
}

// unanswered is why there is no answer.
type unanswered struct{ error }

func (u unanswered) Unwrap() error { return u.error }

// Unanswered says that nobody knows whether a request arrived.
func Unanswered(err error) bool {
	_, is := errors.AsType[unanswered](err)
	return is
}

// Do makes one request, and reads its answer as JSON into out, if that is not nil.
func (r *Running) Do(ctx context.Context, method, path string, body []byte, does string, out any) error {
	if err := r.Find("--url"); err != nil {
		return err
	}
	code, text, err := r.Ask(ctx, method, path, body)
	if err != nil {
		return fault.New(fault.Failed, "is risso serve running? --url says where", fmt.Errorf("ask %s: %w", r.URL, unanswered{err}))
	}
	if err := r.Verdict(code, text, does); err != nil || out == nil {
		return err
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("read the answer of %s: %w", r.URL, err)
	}
	return nil
}
