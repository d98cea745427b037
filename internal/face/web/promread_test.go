package web

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/prometheus/prompb"

	"github.com/rissodb/risso/internal/serve/config"
)

func TestFederate(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	status, body := s.get(t, "/federate?match[]={job%3D%22mysql%22}&match[]="+questions)
	if status != http.StatusOK || body != "" {
		t.Errorf("of a server without new samples: got %d %q, want 200 and nothing", status, body)
	}
	now := time.Now().Unix()
	if err := s.writer.Append(now, []float64{5000, 4}, false); err != nil {
		t.Fatal(err)
	}
	own := `{cluster="default",instance="db1",job="mysql",node_name="db1.example.com",node_type="generic",service_name="db1"}`
	want := fmt.Sprintf("# TYPE mysql_global_status_questions untyped\nmysql_global_status_questions%s 5000 %d000\n"+
		"# TYPE mysql_global_status_threads_running untyped\nmysql_global_status_threads_running%s 4 %d000\n", own, now, own, now)
	status, body = s.get(t, "/federate?match[]={job%3D%22mysql%22}&match[]="+questions)
	if status != http.StatusOK || body != want {
		t.Errorf("got %d\n%swant 200\n%s", status, body, want)
	}
	for _, path := range []string{"/federate", "/federate?match[]={{", "/federate?match[]=a%20b"} {
		if status, body := s.get(t, path); status != http.StatusBadRequest || !strings.Contains(body, `"bad_data"`) {
			t.Errorf("%s: got %d %s, want 400 and bad_data", path, status, body)
		}
	}
}

// remoteRead asks as Prometheus does.
func (s *site) remoteRead(t *testing.T, packed []byte) (int, http.Header, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+remoteReadPath, bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Encoding", "snappy")
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("X-Prometheus-Remote-Read-Version", "0.1.0")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, b
}

func TestRemoteRead(t *testing.T) {
	t.Parallel()
	s := newSiteOf(t, true, func(o *Options) { o.Limits = config.Limits{Samples: 200} })
	ask := func(from, to int64, matchers ...*prompb.LabelMatcher) []byte {
		req := prompb.ReadRequest{Queries: []*prompb.Query{{StartTimestampMs: from * 1000, EndTimestampMs: to * 1000, Matchers: matchers}}}
		b, err := req.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return snappy.Encode(nil, b)
	}
	name := &prompb.LabelMatcher{Type: prompb.LabelMatcher_EQ, Name: "__name__", Value: questions}
	status, h, body := s.remoteRead(t, ask(s.from+38, s.from+46, name, &prompb.LabelMatcher{Type: prompb.LabelMatcher_RE, Name: "job", Value: "my.+"}))
	if status != http.StatusOK || h.Get("Content-Type") != "application/x-protobuf" || h.Get("Content-Encoding") != "snappy" {
		t.Fatalf("got %d %v %s, want 200, application/x-protobuf, snappy", status, h, body)
	}
	raw, err := snappy.Decode(nil, body)
	if err != nil {
		t.Fatal(err)
	}
	var resp prompb.ReadResponse
	if err := resp.Unmarshal(raw); err != nil {
		t.Fatal(err)
	}
	if len(resp.Results) != 1 || len(resp.Results[0].Timeseries) != 1 {
		t.Fatalf("got %v, want one series", resp.Results)
	}
	series := resp.Results[0].Timeseries[0]
	var got []string
	for _, p := range series.Samples {
		got = append(got, fmt.Sprint(p.Timestamp/1000-s.from, "=", p.Value))
	}
	// The gap from second 40 to 44 begins with a marker, so that nothing is repeated over it, and ends like this range.
	if want := "38=1390 39=1400 40=NaN 45=1460 46=1470"; strings.Join(got, " ") != want {
		t.Errorf("samples: got %v, want %s", got, want)
	}
	var names []string
	for _, l := range series.Labels {
		names = append(names, l.Name+"="+l.Value)
	}
	if want := "__name__=" + questions + " cluster=default instance=db1 job=mysql node_name=db1.example.com node_type=generic service_name=db1"; strings.Join(names, " ") != want {
		t.Errorf("labels: got %v, want %s", names, want)
	}
	for what, c := range map[string]struct {
		packed []byte
		want   int
	}{
		"no series":       {ask(s.from, s.from+60, name, &prompb.LabelMatcher{Type: prompb.LabelMatcher_NEQ, Name: "job", Value: "mysql"}), 200},
		"too many":        {ask(s.from, s.from+300), 422},
		"a bad matcher":   {ask(s.from, s.from+60, &prompb.LabelMatcher{Type: prompb.LabelMatcher_RE, Name: "job", Value: "("}), 400},
		"no protobuf":     {snappy.Encode(nil, []byte("hello")), 400},
		"not packed":      {[]byte("hello"), 400},
		"a bomb":          {[]byte{0xff, 0xff, 0xff, 0xff, 0x0f, 0}, 400},
		"no body at all":  {nil, 400},
		"an unknown kind": {ask(s.from, s.from+60, &prompb.LabelMatcher{Type: 9, Name: "job", Value: "x"}), 400},
	} {
		if status, _, body := s.remoteRead(t, c.packed); status != c.want {
			t.Errorf("%s: got %d %.200q, want %d", what, status, body, c.want)
		}
	}
}

// TestNotThere: what programs ask for and Risso does not have is no page.
func TestNotThere(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	for _, path := range []string{"/api", "/api/v1/targets", "/api/v2/alerts", "/federate/x", "/metrics", "/metrics/job", "/v1/query", "/-/healthy", "/probe?target=x", "/graph", "/debug/pprof/", "/prometheus/api/v1/query"} {
		if status, body := s.get(t, path); status != http.StatusNotFound || !strings.HasPrefix(body, `{"error":"there is no GET /`) {
			t.Errorf("%s: got %d %.100s, want 404 in JSON", path, status, body)
		}
	}
	for _, path := range []string{"/", "/server/db1", "/queries", "/alerts"} {
		if status, body := s.get(t, path); status != http.StatusOK || !strings.Contains(body, "<title>") {
			t.Errorf("%s: got %d %.100s, want the page", path, status, body)
		}
		resp, err := http.Post(s.URL+path, "text/plain", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: got %d, want 405", path, resp.StatusCode)
		}
	}
}
