package main

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// question is one request that is timed.
type question struct {
	name  string
	limit float64 // ms; 0: no separate goal
	hours int
	// ask returns path and query for a series.
	ask func(p *prefilled, key string) string
	// chart says that only Risso has it.
	chart bool
}

// promRange is a range query that ends with the data.
func promRange(expr func(selector string) string, span, step int64) func(*prefilled, string) string {
	return func(p *prefilled, key string) string {
		return "/api/v1/query_range?" + url.Values{"query": {expr(selector(key, p.instance))}, "start": {strconv.FormatInt(p.to-span, 10)},
			"end": {strconv.FormatInt(p.to-1, 10)}, "step": {strconv.FormatInt(step, 10)}}.Encode()
	}
}

func chartOf(span, points int64) func(*prefilled, string) string {
	return func(p *prefilled, key string) string {
		return "/api/chart?" + url.Values{"instance": {p.instance}, "key": {key}, "from": {strconv.FormatInt(p.to-span, 10)},
			"to": {strconv.FormatInt(p.to, 10)}, "points": {strconv.FormatInt(points, 10)}}.Encode()
	}
}

// selector writes a key as PromQL with the instance.
func selector(key, instance string) string {
	name, rest, ok := strings.Cut(key, "{")
	if !ok {
		return name + `{instance="` + instance + `"}`
	}
	return name + `{instance="` + instance + `",` + rest
}

func questions(days int) []question {
	raw := func(s string) string { return s }
	rate := func(window string) func(string) string {
		return func(s string) string { return "rate(" + s + "[" + window + "])" }
	}
	span := int64(days) * 86400
	d := strconv.Itoa(days) + " days"
	return []question{
		{"chart, 1 hour by 1 s", 10, 1, chartOf(hour, hour), true},
		{"chart, " + d + ", 600 points", 50, days * 24, chartOf(span, 600), true},
		{"chart, " + d + ", 1,440 points (no whole hours)", 50, days * 24, chartOf(span, 1440), true},
		{"query_range, 1 hour by 1 s, raw", 10, 1, promRange(raw, hour, 1), false},
		{"query_range, 1 hour by 1 s, rate over 5 s", 10, 1, promRange(rate("5s"), hour, 1), false},
		{"query_range, 1 hour by 1 s, rate over 1 m", 10, 1, promRange(rate("1m"), hour, 1), false},
		{"query_range, " + d + " by 1 h, raw", 50, days * 24, promRange(raw, span, 3600), false},
		{"query_range, " + d + " by 1 h, rate over 5 m", 50, days * 24, promRange(rate("5m"), span, 3600), false},
		{"query_range, " + d + " by 1 h, rate over 1 h", 50, days * 24, promRange(rate("1h"), span, 3600), false},
	}
}

// timing is the milliseconds of many requests.
type timing struct {
	first []float64 // the first request for each of many series
	again []float64 // the same request again and again
	cpu   float64   // of the server, ms a request, when asked again
	bytes int       // of the answer, as JSON
}

// charts times what a chart asks for.
func (b *bench) charts(ctx context.Context, s *section) error {
	rec, err := b.chartSource(ctx)
	if err != nil {
		return err
	}
	l, err := newLoop(rec, rec.instances[0], b.series)
	if err != nil {
		return err
	}
	p, err := b.prefill(ctx, l, b.days)
	if err != nil {
		return err
	}
	s.note("Data: %d days at 1 s, %d series, from %d recorded seconds repeated; %s MB; written in %s s (%s s of processor)", b.days, len(l.metrics), len(l.ticks),
		figure(float64(p.bytes)/mega), figure(p.wall.Seconds()), figure(p.cpu.Seconds()))
	r, err := b.serve(ctx, p.dir, "--host-only")
	if err != nil {
		return err
	}
	defer r.stop()
	if err := pause(ctx, 3*time.Second); err != nil {
		return err
	}
	t := s.table("Risso: milliseconds over HTTP", "request", "first ever", "first of a series, median", "again, median", "again, 95 %", "processor ms", "answer KB", "want")
	for _, q := range questions(b.days) {
		m, err := measure(ctx, r.url, r.pid(), p, q)
		if err != nil {
			return fmt.Errorf("%s: %w", q.name, err)
		}
		t.row(q.name, figure(m.first[0]), figure(median(m.first)), figure(median(m.again)), figure(quantile(m.again, 0.95)), figure(m.cpu), figure(float64(m.bytes)/1000), "< "+figure(q.limit))
		s.Figures[q.name+" first"], s.Figures[q.name+" again"], s.Figures[q.name+" cpu"] = median(m.first), median(m.again), m.cpu
		s.below(q.name+", first of a series", median(m.first), q.limit, " ms")
		s.below(q.name+", again", median(m.again), q.limit, " ms")
	}
	s.note("Resident after it: %s MB.", residentMB(r.process))
	if b.profile {
		if err := b.profileCharts(ctx, s, r, p); err != nil {
			return err
		}
	}
	r.stop()
	return b.chartPeers(ctx, s, p)
}

func residentMB(p *process) string {
	rss, err := resident(p.pid())
	if err != nil {
		return "?"
	}
	return figure(rss / mega)
}

// chartSource is the recording that there is, or a short one.
func (b *bench) chartSource(ctx context.Context) (*recording, error) {
	if b.source == nil && b.ticks == "" {
		minutes := b.minutes
		b.minutes = min(b.minutes, 5)
		defer func() { b.minutes = minutes }()
	}
	return b.recorded(ctx)
}

const repeats = 30

// measure asks a question once for each series, then many times for the first.
func measure(ctx context.Context, base string, pid int, p *prefilled, q question) (m timing, err error) {
	one := func(key string) (float64, error) {
		began := time.Now()
		n, err := fetch(ctx, base+q.ask(p, key))
		m.bytes = n
		return float64(time.Since(began).Nanoseconds()) / 1e6, err
	}
	for _, key := range p.loop.keys {
		ms, err := one(key)
		if err != nil {
			return m, err
		}
		m.first = append(m.first, ms)
	}
	before, err := cpuTime(pid)
	if err != nil {
		return m, err
	}
	for range repeats {
		ms, err := one(p.loop.keys[0])
		if err != nil {
			return m, err
		}
		m.again = append(m.again, ms)
	}
	after, err := cpuTime(pid)
	m.cpu = (after - before).Seconds() * 1000 / repeats
	return m, err
}

// fetch reads an answer as a browser does, and returns its length unpacked; an answer without data is an error.
func fetch(ctx context.Context, address string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Accept-Encoding", "gzip")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	var body io.Reader = resp.Body
	if resp.Header.Get("Content-Encoding") == "gzip" {
		if body, err = gzip.NewReader(body); err != nil {
			return 0, err
		}
	}
	text, err := io.ReadAll(body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.300s", resp.Status, text)
	}
	if err == nil && len(text) < 1000 {
		err = fmt.Errorf("an answer without data: %s", text)
	}
	return len(text), err
}

// profileCharts shows where the time of each kind of question goes.
func (b *bench) profileCharts(ctx context.Context, s *section, r *risso, p *prefilled) error {
	for i, q := range questions(b.days) {
		pctx, cancel := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() {
			for k := 0; pctx.Err() == nil; k++ {
				if _, err := fetch(pctx, r.url+q.ask(p, p.loop.keys[k%len(p.loop.keys)])); err != nil && pctx.Err() == nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
		err := b.perf(ctx, s, fmt.Sprintf("chart-%d: %s", i, q.name), r.pid(), 5*time.Second)
		cancel()
		if err = errors.Join(err, <-done); err != nil {
			return err
		}
	}
	return nil
}

// chartPeers asks VictoriaMetrics and Prometheus the same, who hold the series asked for and no others.
func (b *bench) chartPeers(ctx context.Context, s *section, p *prefilled) error {
	t := s.table(fmt.Sprintf("The same questions to others, who hold only the %d series asked for: milliseconds", len(p.loop.keys)),
		"request", "VictoriaMetrics first", "again", "processor ms", "Prometheus first", "again", "processor ms")
	rows := map[string][]string{}
	for _, peer := range []struct {
		name  string
		start func(context.Context, *prefilled) (*process, string, error)
	}{{"victoria", b.victoriaCharts}, {"prometheus", b.prometheusCharts}} {
		say("charts: %s", peer.name)
		proc, base, err := peer.start(ctx, p)
		if err != nil {
			return err
		}
		for _, q := range questions(b.days) {
			if q.chart {
				continue
			}
			m, err := measure(ctx, base, proc.pid(), p, q)
			if err != nil {
				proc.stop()
				return fmt.Errorf("%s: %s: %w", peer.name, q.name, err)
			}
			rows[q.name] = append(rows[q.name], figure(median(m.first)), figure(median(m.again)), figure(m.cpu))
			s.Figures[peer.name+" "+q.name+" first"], s.Figures[peer.name+" "+q.name+" again"] = median(m.first), median(m.again)
		}
		proc.stop()
	}
	for _, q := range questions(b.days) {
		if !q.chart {
			t.row(append([]string{q.name}, rows[q.name]...)...)
		}
	}
	return nil
}

// eachKey calls f with the charted series of the last seconds, one after the other.
func (p *prefilled) eachKey(seconds int64, f func(i int, t []int64, v []float64) error) error {
	row := make([]float64, len(p.loop.metrics))
	var ts []int64
	var vs []float64
	for i, m := range p.loop.metrics {
		if !p.charted(m.Key()) {
			continue
		}
		ts, vs = ts[:0], vs[:0]
		for t := max(p.from, p.to-seconds); t < p.to; t++ {
			n := int(t - p.from)
			k := p.loop.ticks[n%len(p.loop.ticks)].values
			c := p.loop.columns[i]
			if c < len(k) && k[c] == k[c] {
				row[i] = k[c] + float64(n/len(p.loop.ticks))*p.loop.step[i]
				ts, vs = append(ts, t), append(vs, row[i])
			}
		}
		if err := f(i, ts, vs); err != nil {
			return err
		}
	}
	return nil
}

func (p *prefilled) charted(key string) bool {
	for _, k := range p.loop.keys {
		if k == key {
			return true
		}
	}
	return false
}

// portion is how many samples of a series go into one line for VictoriaMetrics.
const portion = 86400

func (b *bench) victoriaCharts(ctx context.Context, p *prefilled) (*process, string, error) {
	proc, base, err := b.victoria(ctx, filepath.Join(b.work, "charts-victoria"))
	if err != nil {
		return nil, "", err
	}
	err = post(ctx, base+"/api/v1/import", func(w io.Writer) error {
		var line []byte
		return p.eachKey(p.to-p.from, func(i int, t []int64, v []float64) error {
			for at := 0; at < len(t); at += portion {
				end := min(at+portion, len(t))
				line = importLine(line[:0], p.instance, p.loop.metrics[i], t[at:end], v[at:end], 0)
				if _, err := w.Write(line); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if err == nil {
		err = settle(ctx, base)
	}
	if err != nil {
		proc.stop()
		return nil, "", err
	}
	return proc, base, nil
}

func (b *bench) prometheusCharts(ctx context.Context, p *prefilled) (*process, string, error) {
	dir := filepath.Join(b.work, "charts-prometheus")
	// As large as Prometheus' own compaction makes them with a long retention.
	_, _, err := b.blocks(ctx, dir, []string{"--max-block-duration=744h"}, func(w io.Writer) (err error) {
		var buf []byte
		return p.eachKey(p.to-p.from, func(i int, t []int64, v []float64) error {
			for at := 0; at < len(t); at += portion {
				end := min(at+portion, len(t))
				if buf, err = openMetrics(w, buf, p.instance, p.loop.metrics[i], t[at:end], v[at:end], 0); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if err != nil {
		return nil, "", err
	}
	return b.prometheus(ctx, dir, "")
}
