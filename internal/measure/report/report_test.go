package report

import (
	"bytes"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/environ"
	"github.com/rissodb/risso/internal/measure/report/pagetest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// The results in testdata were recorded by risso bench run on real servers: one.json at 1,500 transactions per second through
// a SIGSTOP of 2 s and a KILL of all sessions; paths and names of the machine were replaced.
func recorded(t *testing.T, pattern string) []Run {
	t.Helper()
	files, err := filepath.Glob("testdata/" + pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no results: got %v, %v; want len(files) not 0", pattern, err)
	}
	runs, err := ReadFiles(files, nil)
	if err != nil {
		t.Fatal(err)
	}
	return runs
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("%s differs (go test -update writes it anew):\n%s", path, got)
	}
}

func TestMarkdown(t *testing.T) {
	for _, name := range []string{"one", "several", "sweep"} {
		var b bytes.Buffer
		if err := Markdown(&b, recorded(t, name+"*.json")); err != nil {
			t.Fatal(err)
		}
		golden(t, name+".md", b.Bytes())
	}
}

func TestCSV(t *testing.T) {
	runs := recorded(t, "several*.json")
	var b bytes.Buffer
	if err := CSV(&b, runs); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil || len(rows) != len(runs)+1 {
		t.Fatalf("got %d lines for %d runs: %v; want %d", len(rows), len(runs), err, len(runs)+1)
	}
	at := map[string]int{}
	for i, h := range rows[0] {
		at[h] = i
	}
	if got, want := rows[1][at["transactions"]], integer(runs[0].Transactions); got != want {
		t.Errorf("transactions %s, not %s", got, want)
	}
	if got, want := rows[1][at["latency_p99.9"]], float(runs[0].Latency.At(99.9)); got != want {
		t.Errorf("p99.9 %s, not %s", got, want)
	}
	if rows[1][at["ledger_missing"]] != "" {
		t.Error("without a ledger nothing is known of lost writes")
	}
	b.Reset()
	one := recorded(t, "one.json")
	if err := TimelineCSV(&b, one); err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(&b).ReadAll()
	if err != nil || len(lines) != len(one[0].Timeline)+1 {
		t.Fatalf("got %d lines for %d seconds: %v; want len(one[0].Timeline) + 1", len(lines), len(one[0].Timeline), err)
	}
	if lines[1][2] != "-4" || lines[1][4] != "true" {
		t.Errorf("the warm-up begins 4 s before: got %v; want lines[1][2] \"-4\", lines[1][4] \"true\"", lines[1])
	}
}

func page1(t *testing.T, runs []Run) string {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, runs, "test"); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestFits looks at the pages in a browser.
func TestFits(t *testing.T) {
	t.Parallel()
	pages := map[string]string{}
	for _, name := range []string{"one", "several", "sweep"} {
		runs := recorded(t, name+"*.json")
		for i := range runs {
			runs[i].Use = &environ.Use{CPUs: 64, Client: 12.25, Server: new(40.5), Foreign: new(9.75), ForeignMost: 30, ForeignMostAt: 12, Crowd: new(17.5), Steal: new(0.5), ClientWait: new(0.25), Pressure: new(0.5), MHz: new(2450.0)}
			runs[i].Statements = []bench.StatementResult{{SQL: "SELECT DISTINCT c FROM sbtestN WHERE id BETWEEN ? AND ? ORDER BY c", Count: 123456}}
		}
		pages[name] = page1(t, runs)
	}
	pagetest.Fits(t, pages)
}

// TestHTML reads the pages with a parser: each tag is closed, no address of anything outside is in it, and the charts are
// well-formed XML with numbers in them.
func TestHTML(t *testing.T) {
	for name, charts := range map[string]int{"one": 4, "several": 4, "sweep": 3} {
		text := page1(t, recorded(t, name+"*.json"))
		closed(t, name, text)
		if outside := regexp.MustCompile(`(?i)(src|href)=|url\(|@import|https?://`).FindString(text); outside != "" {
			t.Errorf("%s: got %q leads outside, want \"\"", name, outside)
		}
		svgs := regexp.MustCompile(`(?s)<svg viewBox="0 0 680.*?</svg>`).FindAllString(text, -1)
		if len(svgs) < charts {
			t.Errorf("%s: got %d charts, want at least %d", name, len(svgs), charts)
		}
		for _, s := range svgs {
			d := xml.NewDecoder(strings.NewReader(s))
			for {
				if _, err := d.Token(); err == io.EOF {
					break
				} else if err != nil {
					t.Fatalf("%s: %v in %.200s", name, err, s)
				}
			}
			if strings.Contains(s, "NaN") || strings.Contains(s, "Inf") {
				t.Errorf("%s: a chart with a number that is none; want no \"NaN\" in s, no \"Inf\" in s", name)
			}
		}
	}
}

// closed checks that tags nest.
func closed(t *testing.T, name, text string) {
	t.Helper()
	void := map[string]bool{"meta": true, "br": true, "line": true, "rect": true, "circle": true, "path": true}
	z := html.NewTokenizer(strings.NewReader(text))
	var open []string
	for {
		switch z.Next() {
		case html.ErrorToken:
			if z.Err() != io.EOF || len(open) != 0 {
				t.Errorf("%s: ends with %v, open %v; want z.Err() io.EOF, no open", name, z.Err(), open)
			}
			return
		case html.StartTagToken:
			tag, _ := z.TagName()
			if s := string(tag); !void[s] {
				open = append(open, s)
			}
		case html.EndTagToken:
			tag, _ := z.TagName()
			if s := string(tag); void[s] {
				continue
			} else if len(open) == 0 || open[len(open)-1] != s {
				t.Fatalf("got %s: </%s> closes %v; want len(open) not 0, open[len(open)-1] %v", name, s, open, s)
			}
			open = open[:len(open)-1]
		}
	}
}

func TestHTMLTellsOfTrouble(t *testing.T) {
	text := page1(t, recorded(t, "one.json"))
	for _, want := range []string{`class="stall"`, `class="error"`, `class="warmup"`, ", 2 s", "connection lost", "mount options", "innodb_buffer_pool_size"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
	}
	if text := page1(t, recorded(t, "sweep*.json")); !strings.Contains(text, "Universal Scalability Law") || !strings.Contains(text, "threads") {
		t.Error("a sweep without its law")
	}
}

// TestHTMLEscapes puts markup where a server may put it.
func TestHTMLEscapes(t *testing.T) {
	evil := `</title><script>alert(1)</script>" onload="x`
	runs := recorded(t, "one.json")
	r := *runs[0].Result
	r.Workload, r.Server, r.ServerVersion = evil, evil, evil
	r.Errors = []bench.ErrorCount{{Label: evil, Message: evil, Count: 1}}
	e := *r.Environment
	e.Server.Flavour, e.Server.Version, e.Client.CPUModel = evil, evil, evil
	r.Environment = &e
	text := page1(t, []Run{{evil, &r}, {evil + "2", &r}})
	if strings.Contains(text, "<script") || strings.Contains(text, `" onload="`) {
		t.Error("markup of a server is markup of the page")
	}
	closed(t, "evil", text)
	var b bytes.Buffer
	if err := Markdown(&b, []Run{{"a|b", &r}}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "<script") || strings.Contains(b.String(), "a|b") {
		t.Error("markup of a server is markup of the Markdown")
	}
}

// TestOddResults draws what is empty, damaged or enormous.
func TestOddResults(t *testing.T) {
	least := bench.Result{Workload: "x", Began: time.Unix(1700000000, 0), Threads: 1}
	long := least
	long.Seconds = 100000
	for i := range 100000 {
		long.Timeline = append(long.Timeline, bench.Second{Second: i, Transactions: int64(i % 7), P50: 1e-4, P95: 1e-3, P99: 1e-2, Max: float64(i%100) / 10})
	}
	damaged := least
	damaged.Histogram = "HISTFAAAAEV42pNpmSzMwMCgyAABTBDKT4GBgdnNYQ=="
	garbage := least
	garbage.Histogram = strings.Repeat("?", 300)
	all := []Run{{"least", &least}, {"long", &long}, {"damaged", &damaged}, {"garbage", &garbage}}
	for _, runs := range [][]Run{all[:1], all[1:2], all[2:3], all[3:], all} {
		text := page1(t, runs)
		closed(t, runs[0].Name, text)
		if strings.Contains(text, "NaN") || len(text) > 1<<20 {
			t.Errorf("%s: %d bytes, or a number that is none; want no \"NaN\" in text, len(text) at most 1 << 20", runs[0].Name, len(text))
		}
	}
}

func TestGroups(t *testing.T) {
	made := func(name string, threads int, rate float64) Run {
		return Run{name, &bench.Result{Workload: "w", Threads: threads, Rate: rate, TransactionsPerSecond: 10}}
	}
	for _, c := range []struct {
		runs []Run
		want string
	}{
		{[]Run{made("a-1", 1, 0), made("b-1", 1, 0), made("a-2", 1, 0)}, "a×2 b×1"},
		{[]Run{made("a", 1, 0), made("a", 1, 0)}, "a×2"},
		{[]Run{made("t1", 1, 0), made("t16", 16, 0)}, "t1×1 t16×1"},
		{[]Run{made("x", 1, 0), made("x", 2, 0)}, "x w, 1 thread×1 x w, 2 threads×1"},
	} {
		var got []string
		for _, g := range groups(c.runs) {
			got = append(got, g.Name+"×"+integer(int64(len(g.Runs))))
		}
		if g := strings.Join(got, " "); g != strings.ReplaceAll(c.want, "b×1", "b-1×1") {
			t.Errorf("%s, not %s", g, c.want)
		}
	}
}

func TestSplits(t *testing.T) {
	a := axis{min: -4, max: 20}
	if got := a.splits(8); len(got) != 5 || got[1] != 5 || 1/got[0] < 0 {
		t.Errorf("got %v; want len(got) 5, got[1] 5, 1 / got[0] at least 0", got)
	}
	if lo, hi := logEnds(0.00012, 2.01); lo != 1e-4 || hi != 5 {
		t.Errorf("got %v %v; want lo 1e-4, hi 5", lo, hi)
	}
	for v, want := range map[float64]float64{4321: 5000, 0: 1, 1.01: 1.5, 60: 60} {
		if got := niceTop(v); got < v || got > want*1.0001 || got < want*0.9999 {
			t.Errorf("niceTop(%v) = %v, not %v", v, got, want)
		}
	}
}

// FuzzHistogram reads histograms that no program wrote: they must only cost their chart.
func FuzzHistogram(f *testing.F) {
	f.Add("HISTFAAAAEV42pNpmSzMwMCgyAABTBDKT4GBgdnNYQ==")
	f.Fuzz(func(t *testing.T, text string) {
		if h := histogramOf(Run{"x", &bench.Result{Histogram: text}}); h != nil && h.TotalCount() == 0 {
			t.Error("an empty histogram")
		}
	})
}

// TestFoldersApart: files of several folders that are called alike are different things.
func TestFoldersApart(t *testing.T) {
	text, err := os.ReadFile("testdata/one.json")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var paths []string
	for _, name := range []string{"before/run-1.json", "before/run-2.json", "after/run-1.json", "after/run-2.json", "after/once.json"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	runs, err := ReadFiles(paths, nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, g := range groups(runs) {
		names = append(names, fmt.Sprintf("%s %d", g.Name, len(g.Runs)))
	}
	if got := strings.Join(names, ", "); got != "before/run 2, after/run 2, once 1" {
		t.Errorf("got %v, want \"before/run 2, after/run 2, once 1\"", got)
	}
}

// TestJudgedAsPairs: a report judges as risso bench compare does: runs made in turns as pairs, latency where the rate was given, and
// different work not at all.
func TestJudgedAsPairs(t *testing.T) {
	list := func(change func(i int, r *bench.Result)) []Run {
		var runs []Run
		for i := range 16 {
			name, factor := "old", 1.0
			if i%4 == 1 || i%4 == 2 {
				name, factor = "new", 1.1
			}
			weather := 1000 / float64(1+i/2) // far more than the difference
			r := &bench.Result{Workload: "point_select", Threads: 1, Seconds: 10, Transactions: 100, TransactionsPerSecond: factor*weather + float64(i), Began: time.Unix(int64(1e9+12*i), 0),
				Latency: bench.Latency{Percentiles: []bench.Percentile{{Percentile: 95, Seconds: 1 / factor / weather}}}}
			if change != nil {
				change(i, r)
			}
			runs = append(runs, Run{name, r})
		}
		return runs
	}
	var first *bench.Result
	for _, c := range []struct {
		change  func(i int, r *bench.Result)
		measure string
		test    string
		says    string
	}{
		{nil, "transactions per second", "Wilcoxon signed rank", "New did better"},
		{func(_ int, r *bench.Result) { r.Rate = 500 }, "p95 latency", "Wilcoxon signed rank", "p95 latency is 10 % shorter"},
		{func(i int, r *bench.Result) {
			if i%4 == 1 || i%4 == 2 {
				r.Began = r.Began.Add(time.Hour)
			}
		}, "transactions per second", "Mann-Whitney U", "no difference can be shown"},
		{func(i int, r *bench.Result) {
			if i%4 == 1 || i%4 == 2 {
				r.Workload = "read_write"
			}
		}, "transactions/s", "", "are not compared: they did different work"},
		{func(i int, r *bench.Result) {
			if i == 0 {
				first = r
			} else if i == 1 { // of the other group
				*r = *first
			}
		}, "transactions/s", "", "are not compared: the same run is given twice"},
	} {
		runs := list(c.change)
		got := compareGroups(groups(runs))
		if len(got) != 1 || got[0].Measure != c.measure || got[0].Test != c.test || !strings.Contains(strings.ToLower(got[0].Words), strings.ToLower(c.says)) {
			t.Errorf("got %+v; want len(got) 1, got[0].Measure %v, got[0].Test %v, %q in strings.ToLower(got[0].Words)",
				got, c.measure, c.test, strings.ToLower(c.says))
			continue
		}
		if late := strings.Contains(strings.Join(got[0].Notes, " "), "all runs of old were made before those of new"); late != (c.test == "Mann-Whitney U") {
			t.Errorf("got %q, want late %v", got[0].Notes, c.test == "Mann-Whitney U")
		}
		var md, page bytes.Buffer
		if err := errors.Join(Markdown(&md, runs), HTML(&page, runs, "test")); err != nil || !strings.Contains(md.String(), cell(got[0].Words)) || strings.Contains(page.String(), "NaN") || c.test != "" && !strings.Contains(page.String(), c.test) {
			t.Errorf("%v\n%s", err, md.String())
		}
	}
}

// TestSentence: one is one, and what is unknown is left out.
func TestSentence(t *testing.T) {
	r := Run{Result: &bench.Result{Workload: "update_index", Threads: 1, Seconds: 2, Latency: bench.Latency{Percentiles: []bench.Percentile{{Percentile: 50}, {Percentile: 99}}}, Errors: []bench.ErrorCount{{Count: 1}}}}
	if got := r.sentence(); strings.Contains(got, "half within") || !strings.Contains(got, "1 session ") || !strings.Contains(got, " 1 error.") {
		t.Errorf("got %v; want no \"half within\" in it, \"1 session \" in it, \" 1 error.\" in it", got)
	}
	r.Unfinished, r.Backlog, r.Latency.Max = 1, &bench.Backlog{NeverStarted: 1}, 3
	if got := r.sentence(); !strings.Contains(got, "half within") || !strings.Contains(got, " 1 was abandoned") || !strings.Contains(got, " 1 transaction never began: the server, or this number of sessions,") {
		t.Errorf("got %v; want \"half within\" in it, \" 1 was abandoned\" in it, \" 1 transaction never began: the server, or this number of sessions,\" in it",
			got)
	}
}
