package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// risso is a running risso serve.
type risso struct {
	*process
	url string
}

var readyLine = regexp.MustCompile(`ready on (http://\S+)`)

// serve starts risso serve with its own data folder and waits until it is ready.
func (b *bench) serve(ctx context.Context, data string, args ...string) (*risso, error) {
	p, err := b.launch("risso", nil, b.risso, append([]string{"serve", "--listen", "127.0.0.1:0", "--data", data}, args...)...)
	if err != nil {
		return nil, err
	}
	r := &risso{process: p}
	err = p.await(ctx, 30*time.Second, func() bool {
		text, err := os.ReadFile(p.log)
		if err != nil {
			return false
		}
		if m := readyLine.FindSubmatch(text); m != nil {
			r.url = string(m[1])
		}
		return r.url != ""
	})
	if err != nil {
		p.stop()
		return nil, err
	}
	return r, nil
}

// prometheus starts Debian's Prometheus with a data folder; scrape is an address to scrape each second, or "".
func (b *bench) prometheus(ctx context.Context, data, scrape string) (p *process, base string, err error) {
	addr, err := freePort()
	if err != nil {
		return nil, "", err
	}
	conf := "global: {scrape_interval: 1s, scrape_timeout: 1s}\n"
	if scrape != "" {
		conf += "scrape_configs: [{job_name: mysql, static_configs: [{targets: ['" + scrape + "']}]}]\n"
	}
	file := filepath.Join(b.work, "prometheus.yml")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		return nil, "", err
	}
	p, err = b.launch("prometheus", nil, "prometheus", "--config.file="+file, "--storage.tsdb.path="+data,
		"--web.listen-address="+addr, "--storage.tsdb.retention.time=100y", "--log.level=warn")
	if err != nil {
		return nil, "", err
	}
	base = "http://" + addr
	if err := p.await(ctx, 60*time.Second, func() bool { return get(ctx, base+"/-/ready", nil) == nil }); err != nil {
		p.stop()
		return nil, "", err
	}
	return p, base, nil
}

// exporter starts prometheus-mysqld-exporter with its default collectors and that of the InnoDB metrics. Before 0.15 it takes the
// account from the environment, and from then on from a file.
func (b *bench) exporter(ctx context.Context, socket string) (p *process, addr string, err error) {
	if addr, err = freePort(); err != nil {
		return nil, "", err
	}
	account := filepath.Join(b.work, "exporter.cnf")
	if err := os.WriteFile(account, []byte("[client]\nuser=root\nsocket="+socket+"\n"), 0o600); err != nil {
		return nil, "", err
	}
	p, err = b.launch("exporter", []string{"DATA_SOURCE_NAME=root@unix(" + socket + ")/"}, "prometheus-mysqld-exporter",
		"--config.my-cnf="+account, "--web.listen-address="+addr, "--collect.info_schema.innodb_metrics", "--log.level=error")
	if err != nil {
		return nil, "", err
	}
	if err := p.await(ctx, 20*time.Second, func() bool { return get(ctx, "http://"+addr+"/", nil) == nil }); err != nil {
		p.stop()
		return nil, "", err
	}
	return p, addr, nil
}

// victoria starts Debian's VictoriaMetrics with a data folder.
func (b *bench) victoria(ctx context.Context, data string) (p *process, base string, err error) {
	addr, err := freePort()
	if err != nil {
		return nil, "", err
	}
	p, err = b.launch("victoria", nil, "victoria-metrics", "-storageDataPath="+data, "-httpListenAddr="+addr,
		"-retentionPeriod=100y", "-search.latencyOffset=0", "-loggerLevel=WARN", "-import.maxLineLen=1000000000")
	if err != nil {
		return nil, "", err
	}
	base = "http://" + addr
	if err := p.await(ctx, 60*time.Second, func() bool { return get(ctx, base+"/health", nil) == nil }); err != nil {
		p.stop()
		return nil, "", err
	}
	return p, base, nil
}

// answer is that of a server over HTTP, which is an error unless it is one of success.
func answer(req *http.Request) ([]byte, error) {
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("%s: %s: %.200s", req.URL, resp.Status, body)
	}
	return body, err
}

// get asks over HTTP; out, if not nil, takes the JSON of the answer.
func get(ctx context.Context, address string, out any) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	body, err := answer(req)
	if err != nil {
		return err
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(body, out)
}

// vector is the answer to an instant query: labels and a value each.
type vector struct {
	Data struct {
		Result []struct {
			Metric map[string]string
			Value  [2]any
		}
	}
}

// instant asks a PromQL question of a moment; the values come by the label.
func instant(ctx context.Context, base, query, label string, at time.Time) (map[string]float64, error) {
	q := url.Values{"query": {query}}
	if !at.IsZero() {
		q.Set("time", strconv.FormatInt(at.Unix(), 10))
	}
	var v vector
	if err := get(ctx, base+"/api/v1/query?"+q.Encode(), &v); err != nil {
		return nil, err
	}
	out := map[string]float64{}
	for _, r := range v.Data.Result {
		s, _ := r.Value[1].(string)
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: value %q", query, s)
		}
		out[r.Metric[label]] = f
	}
	return out, nil
}
