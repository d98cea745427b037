package web

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/explain/size"
	"github.com/rissodb/risso/internal/store/state"
)

// oneSize is what is known of one server; serve's own are tested there.
type oneSize struct{ report *size.Report }

func (o oneSize) Read(_ context.Context, instance string, _ bool) (*size.Report, error) {
	if instance != "db1" {
		return nil, state.ErrNotFound
	}
	return o.report, nil
}

func (o oneSize) Growth(ctx context.Context, instance, _ string) (*size.Growth, error) {
	r, err := o.Read(ctx, instance, false)
	if err != nil {
		return nil, err
	}
	return r.Growth, nil
}

// TestSizesAnswer: the page gets a report and boxes that it only has to draw; it is told why there are none.
func TestSizesAnswer(t *testing.T) {
	var r *size.Report
	if err := json.Unmarshal([]byte(`{"server": "MySQL", "total": {"allocated_bytes": 300}, "schemas": [{"name": "s", "tables": 2, "allocated_bytes": 300}],
		"tables": [{"schema": "s", "name": "<t>", "allocated_bytes": 200, "file_bytes": 200}]}`), &r); err != nil {
		t.Fatal(err)
	}
	r.Growth = &size.Growth{PerDay: 5, Since: time.Now()}
	s := newSiteOf(t, true, func(o *Options) { o.Sizes = oneSize{r} })
	var got struct {
		Server        string
		Width, Height float64
		Boxes         []struct {
			Name, Tone, Title, Label string
			X, Y, W, H               float64
			Depth                    int
		}
	}
	s.decode(t, "/api/size?instance=db1", &got)
	var names []string
	for _, b := range got.Boxes {
		names = append(names, b.Name)
		if b.X < 0 || b.Y < 0 || b.X+b.W > got.Width+0.01 || b.Y+b.H > got.Height+0.01 || b.Title == "" {
			t.Errorf("a box is %+v; want it within %v by %v, with a title", b, got.Width, got.Height)
		}
	}
	if text := strings.Join(names, ", "); text != "s, <t>, 1 smaller table" || got.Server != "MySQL" {
		t.Errorf("got boxes %s of %s; want s, <t>, 1 smaller table of MySQL", text, got.Server)
	}
	var g size.Growth
	if s.decode(t, "/api/size/growth?instance=db1", &g); g.PerDay != 5 {
		t.Errorf("got %+v; want 5 a day", g)
	}
	for _, path := range []string{"/api/size?instance=nope", "/api/size/growth?instance=nope", "/api/size"} {
		if code, body := s.get(t, path); code != http.StatusNotFound || !strings.Contains(body, "is watched") {
			t.Errorf("%s: got %d %s; want 404 and why", path, code, body)
		}
	}
	if code, _ := newSite(t, true).get(t, "/api/size?instance=db1"); code != http.StatusNotFound {
		t.Errorf("without a reader of sizes: got %d; want 404", code)
	}
}
