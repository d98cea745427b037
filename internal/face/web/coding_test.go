package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
)

// TestGzipOnlyWhereTaken: an answer of the API and a file of the page are packed for clients that take that, and for no others.
func TestGzipOnlyWhereTaken(t *testing.T) {
	s := newSiteOf(t, true, func(o *Options) {
		o.Page = fstest.MapFS{"index.html": {Data: []byte(strings.Repeat("<p>Risso</p>", 100))}} // worth packing
	})
	for _, c := range []struct {
		accept []string
		packed bool
	}{
		{nil, false}, {[]string{""}, false}, {[]string{"gzip"}, true}, {[]string{"GZip"}, true}, {[]string{"x-gzip"}, true}, {[]string{"deflate, gzip, br"}, true}, {[]string{"br", "gzip"}, true},
		{[]string{"gzip;q=0"}, false}, {[]string{"gzip; q=0.000"}, false}, {[]string{"gzip ; Q = 0"}, false}, {[]string{"gzip;q=0.001"}, true}, {[]string{"gzip;q=1.0"}, true},
		{[]string{"*"}, true}, {[]string{"*;q=0"}, false}, {[]string{"gzip;q=0, *"}, false}, {[]string{"*;q=0, gzip"}, true}, {[]string{"identity"}, false}, {[]string{"identity;q=1, *;q=0"}, false},
		{[]string{"gzipped"}, false}, {[]string{"not-gzip"}, false}, {[]string{"br;x=gzip"}, false}, {[]string{"gzip;q=none"}, false}, {[]string{"gzip;q="}, false}, {[]string{"gzip;q=NaN"}, false}, {[]string{"gzip;q=-1"}, false},
		{[]string{"gzip;q=0;q=1"}, false}, {[]string{",,;q=1,gzip,"}, true},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		for _, v := range c.accept {
			r.Header.Add("Accept-Encoding", v)
		}
		if takesGzip(r) != c.packed {
			t.Errorf("%q: packed %t, want takesGzip(r) %v", c.accept, !c.packed, c.packed)
		}
	}
	transport := &http.Transport{DisableCompression: true} // which would ask for gzip itself
	defer transport.CloseIdleConnections()
	for _, path := range []string{"/api/fleet", "/"} {
		for accept, packed := range map[string]bool{"gzip": true, "gzip;q=0": false, "identity": false} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Accept-Encoding", accept)
			resp, err := transport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if got := resp.Header.Get("Content-Encoding") == "gzip"; resp.StatusCode != http.StatusOK || got != packed || resp.Header.Get("Vary") != "Accept-Encoding" {
				t.Errorf("%s with %s: %d %v", path, accept, resp.StatusCode, resp.Header)
			}
		}
	}
}
