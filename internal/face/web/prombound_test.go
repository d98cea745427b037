package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/rissodb/risso/internal/serve/config"
)

// TestCostlyExpressionsAreRefused: what would take gigabytes before the engine counts its first sample is never begun.
func TestCostlyExpressionsAreRefused(t *testing.T) {
	s := newSite(t, true)
	doubled := `up`
	for range 4 {
		doubled = `label_replace(` + doubled + `,"x",("` + strings.Repeat("$1", 1000) + `"),"x","(.*)")`
	}
	joined := `up`
	for range 20 {
		joined = `label_join(` + joined + `,"x","",` + strings.Repeat(`"x",`, 9) + `"x")`
	}
	for name, expr := range map[string]string{
		"a long text":            `{x="` + strings.Repeat("y", 70_000) + `"}`,
		"parentheses":            strings.Repeat("(", 20_000) + "1" + strings.Repeat(")", 20_000),
		"a chain":                "1" + strings.Repeat("+1", 20_000),
		"minus":                  strings.Repeat("-", 30_000) + "1",
		"a repeated class":       `{x=~"` + strings.Repeat(`\\pL{1000}`, 100) + `"}`,
		"repeats in repeats":     `{x=~"((a{100}){100}){10}"}`,
		"many of them":           `{` + strings.Repeat(`x=~"a{900}",`, 100) + `y="z"}`,
		"in label_replace":       `label_replace(up,"x","$1","y","` + strings.Repeat(`(.|..|...){500}`, 100) + `")`,
		"labels that double":     doubled,
		"labels that are joined": joined,
	} {
		for _, path := range []string{"/api/v1/query?query=", "/api/v1/series?match[]="} {
			if code, body := s.get(t, path+url.QueryEscape(expr)[:min(len(url.QueryEscape(expr)), 60_000)]); code != http.StatusBadRequest && code != http.StatusRequestHeaderFieldsTooLarge {
				t.Errorf("%s: %d %.300s", name, code, body)
			}
		}
		code, body := s.post(t, "/api/v1/query", url.Values{"query": {expr}})
		if code != http.StatusBadRequest || !strings.Contains(body, `"errorType":"bad_data"`) {
			t.Errorf("%s: got %d %.300s; want code http.StatusBadRequest, \"\\\"errorType\\\":\\\"bad_data\\\"\" in it", name, code, body)
		}
	}
}

// TestOrdinaryExpressionsAreAnswered: the bounds are far from what dashboards ask.
func TestOrdinaryExpressionsAreAnswered(t *testing.T) {
	s := newSite(t, true)
	var names []string
	for i := range 2000 {
		names = append(names, fmt.Sprintf("db-%04d.example", i))
	}
	for _, expr := range []string{
		`{instance=~"` + strings.Join(names, "|") + `"}`,
		`{instance=~"db[0-9]{1,3}\\.(eu|us)-[a-z]{2,10}\\..*"}`,
		`label_replace(label_replace(up,"host","$1","instance","(.*):.*"),"port","$2-$1","instance","(.*):(.*)")`,
		`sum(rate(` + questions + `[5m]))` + strings.Repeat(` or sum(rate(`+questions+`[5m]))`, 100),
	} {
		if code, body := s.post(t, "/api/v1/query", url.Values{"query": {expr}}); code != http.StatusOK {
			t.Errorf("got %.100s: %d %.300s, want http.StatusOK", expr, code, body)
		}
	}
}

func (s *site) post(t *testing.T, path string, form url.Values) (int, string) {
	t.Helper()
	return s.send(t, http.MethodPost, path, form.Encode(), "Content-Type", "application/x-www-form-urlencoded")
}

// TestSeriesAreBounded: a question that names too many series ends with an error that says so, in each way to ask.
func TestSeriesAreBounded(t *testing.T) {
	s := newSiteOf(t, true, func(o *Options) { o.Limits = config.Limits{Series: 1} })
	at := fmt.Sprint(s.from + 20)
	for path, form := range map[string]url.Values{
		"/api/v1/query":       {"query": {`{__name__=~".+"}`}, "time": {at}},
		"/api/v1/query_range": {"query": {`count({__name__=~".+"})`}, "start": {at}, "end": {at}, "step": {"1"}},
		"/api/v1/series":      {"match[]": {`{__name__=~".+"}`}, "end": {at}},
	} {
		code, body := s.post(t, path, form)
		if code != http.StatusUnprocessableEntity || !strings.Contains(body, `"errorType":"execution"`) || !strings.Contains(body, "more than 1 series") {
			t.Errorf("%s: got %d %s; want code http.StatusUnprocessableEntity, \"\\\"errorType\\\":\\\"execution\\\"\" in it, \"more than 1 series\" in it",
				path, code, body)
		}
	}
	if code, body := s.post(t, "/api/v1/query", url.Values{"query": {questions}, "time": {at}}); code != http.StatusOK || !strings.Contains(body, "1210") {
		t.Errorf("one series: got %d %s; want code http.StatusOK, \"1210\" in it", code, body)
	}
}

// TestAnswerIsBounded: an answer that grows beyond its bound is an error and not half an answer.
func TestAnswerIsBounded(t *testing.T) {
	s := newSiteOf(t, true, func(o *Options) { o.Limits = config.Limits{Answer: 10_000} })
	for _, header := range [][]string{nil, {"Accept-Encoding", "gzip"}} {
		code, body := s.get(t, "/api/v1/query_range?query=time()&start=0&end=10000&step=1", header...)
		if code != http.StatusUnprocessableEntity || !strings.Contains(body, "more than 10000 bytes") {
			t.Errorf("%v: got %d %.200s; want code http.StatusUnprocessableEntity, \"more than 10000 bytes\" in it", header, code, body)
		}
	}
	if code, body := s.get(t, "/api/chart?instance=db1&from=0&to=4000&step=1&key=x&key=y"); code != http.StatusUnprocessableEntity || strings.Contains(body, "again") { // the same question has no other answer later
		t.Errorf("a chart: got %d %.200s; want code http.StatusUnprocessableEntity, no \"again\" in it", code, body)
	}
}

// FuzzCheckExpression: no text makes the check itself fail or take long, and what it lets through the parser reads.
func FuzzCheckExpression(f *testing.F) {
	for _, s := range []string{`sum(rate(x{a=~"b+"}[5m]))`, `{x=~"a{2,3}"}`, "\"", "`", `label_replace(up,"x","$1","y","(.*)")`, "1e", "{", "\x00"} {
		f.Add(s)
	}
	p := parser.NewParser(parser.Options{})
	f.Fuzz(func(_ *testing.T, text string) {
		if checkExpression(text) != nil {
			return
		}
		if expr, err := p.ParseExpr(text); err == nil {
			_ = checkLabels(expr)
		}
	})
}
