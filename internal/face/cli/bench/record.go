package bench

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

	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/environ"
	"github.com/rissodb/risso/internal/measure/report"
	"github.com/rissodb/risso/internal/serve/config"
)

// recordFlags say to which risso serve a result is sent.
type recordFlags struct {
	record    bool
	to        string
	tokenFile string

	url   string // found by check; empty: to none
	token string
}

func (f *recordFlags) bind(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.BoolVar(&f.record, "record", false, "send the result to risso serve on this machine, which shows it next to the server's metrics for the same period")
	fl.StringVar(&f.to, "record-to", "", "send the result to risso serve at this address: http://risso:8306")
	fl.StringVar(&f.tokenFile, "token-file", "", "file with the token for --record-to (default: the environment variable RISSO_TOKEN)")
}

// recordPatience bounds each question to risso serve.
const recordPatience = 20 * time.Second

// check finds out before a long run whether the result will be taken.
func (f *recordFlags) check(ctx context.Context, server flags.Server) error {
	if f.to == "" && !f.record {
		if f.tokenFile != "" {
			return fault.Usagef("--token-file needs --record-to or --record")
		}
		return nil
	}
	if err := f.find(server); err != nil {
		return err
	}
	code, body, err := f.ask(ctx, http.MethodGet, "/api/benchmarks?limit=1", nil)
	if err != nil {
		return fault.New(fault.Failed, "start it with risso serve, or leave out --record", fmt.Errorf("ask %s: %w", f.url, unwrapURL(err)))
	}
	return f.verdict(code, body)
}

// find fills in address and token.
func (f *recordFlags) find(server flags.Server) error {
	f.url = strings.TrimRight(f.to, "/")
	if f.url == "" {
		c, err := config.Read(server.ConfigFile)
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
		f.url = "http://" + net.JoinHostPort(host, port)
	}
	u, err := url.Parse(f.url)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return fault.Usagef("--record-to: write it as http://host:8306")
	}
	if u.User != nil {
		return fault.Usagef("--record-to: no password belongs there; give the token by --token-file or RISSO_TOKEN")
	}
	f.token = os.Getenv("RISSO_TOKEN")
	if f.tokenFile != "" {
		b, err := os.ReadFile(f.tokenFile)
		if err != nil {
			return fault.Usagef("--token-file: %w", err)
		}
		f.token = string(b)
	}
	f.token = strings.TrimSpace(f.token)
	return nil
}

// ask makes one request.
func (f *recordFlags) ask(ctx context.Context, method, path string, body []byte) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, recordPatience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, f.url+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if f.token != "" {
		req.Header.Set("Authorization", "Bearer "+f.token)
	}
	// A token must not follow a redirection to somewhere else.
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, b, err
}

// unwrapURL leaves out the address, which the caller names himself.
func unwrapURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// verdict turns an answer into an error.
func (f *recordFlags) verdict(code int, body []byte) error {
	var said struct{ Error, Remedy string }
	_ = json.Unmarshal(body, &said) // without JSON it is no answer of Risso: the status says enough
	switch {
	case code >= 200 && code < 300:
		return nil
	case code == http.StatusUnauthorized:
		return fault.New(fault.Failed, "make one with risso token create NAME --role act there, and give it by --token-file or RISSO_TOKEN", fmt.Errorf("%s requires a token", f.url))
	case code == http.StatusNotFound || said.Error == "":
		return fault.New(fault.Failed, "it must be a risso serve of this version or a newer one", fmt.Errorf("%s does not accept benchmarks: status %d", f.url, code))
	}
	return fault.New(fault.Failed, said.Remedy, fmt.Errorf("%s: %s", f.url, said.Error))
}

// describe adds what is known of the run's conditions.
func (f *recordFlags) describe(s screen.Streams, r *bench.Result, e *environ.Environment, err error) {
	if err != nil {
		fmt.Fprintf(s.Err, "risso: the environment is not recorded: %s\n", fault.Line(err.Error(), ""))
		return
	}
	if r.Environment = e; e != nil {
		r.ServerVersion = cmp.Or(r.ServerVersion, e.Server.Version)
	}
}

// send hands the result over, also that of a run that was ended early.
func (f *recordFlags) send(ctx context.Context, s screen.Streams, r *bench.Result) error {
	if f.url == "" {
		return nil
	}
	b, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	code, body, err := f.ask(context.WithoutCancel(ctx), http.MethodPost, "/api/benchmarks", b)
	if err != nil {
		return fault.New(fault.Failed, "the result is on standard output; send it later: curl --data-binary @FILE.json "+f.url+"/api/benchmarks", fmt.Errorf("send the result to %s: %w", f.url, unwrapURL(err)))
	}
	if err := f.verdict(code, body); err != nil {
		return err
	}
	var kept struct {
		ID       int64  `json:"id"`
		Instance string `json:"instance"`
	}
	if err := json.Unmarshal(body, &kept); err != nil {
		return fmt.Errorf("read the answer of %s: %w", f.url, err)
	}
	fmt.Fprintf(s.Err, "risso: kept as %s/benchmarks/%d\n", f.url, kept.ID)
	if kept.Instance == "" {
		fmt.Fprintln(s.Err, "risso: that Risso does not watch this server, so it has no numbers to show with the result")
	}
	return nil
}

// reportOf writes one run as a report.
func reportOf(output string) func(w io.Writer, r *bench.Result) error {
	return func(w io.Writer, r *bench.Result) error {
		return writeReport(w, []report.Run{{Name: r.Workload, Result: r}}, output, false)
	}
}
