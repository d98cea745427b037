package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"github.com/rissodb/risso/internal/explain/size"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/store/state"
)

// Sizes is what the web face asks for what data takes.
type Sizes interface {
	Read(ctx context.Context, instance string, fresh bool) (*size.Report, error)
	Growth(ctx context.Context, instance, datadir string) (*size.Growth, error)
}

// sizeJSON is a report with its treemap, ready to be drawn.
type sizeJSON struct {
	*size.Report
	Boxes  []boxJSON `json:"boxes"`
	Width  float64   `json:"width"`
	Height float64   `json:"height"`
}

type boxJSON struct {
	size.Placed
	Label string `json:"label"`
}

// sizes is GET /api/size: what a server's data takes.
func (s *server) sizes(r *http.Request) (any, error) {
	q := r.URL.Query()
	if s.Sizes == nil {
		return nil, noSizes(state.ErrNotFound, q)
	}
	report, err := s.Sizes.Read(r.Context(), q.Get("instance"), q.Get("fresh") == "1")
	if err != nil {
		return nil, noSizes(err, q)
	}
	out := sizeJSON{Report: report, Boxes: []boxJSON{}, Width: size.DrawWidth, Height: size.DrawHeight}
	for _, b := range report.Tree().Boxes() {
		out.Boxes = append(out.Boxes, boxJSON{b, b.Label()})
	}
	return out, nil
}

// growth is GET /api/size/growth: how fast a server's data grows. datadir may name its data directory.
func (s *server) growth(r *http.Request) (any, error) {
	q := r.URL.Query()
	if s.Sizes == nil {
		return nil, noSizes(state.ErrNotFound, q)
	}
	g, err := s.Sizes.Growth(r.Context(), q.Get("instance"), q.Get("datadir"))
	return g, noSizes(err, q)
}

// noSizes tells why there are none.
func noSizes(err error, q url.Values) error {
	var theirs *mysql.Error
	switch {
	case errors.Is(err, state.ErrNotFound):
		return failed(http.StatusNotFound, "no server "+strconv.Quote(q.Get("instance"))+" is watched", "GET /api/fleet lists the instances; only servers have sizes")
	case errors.As(err, &theirs):
		return failed(http.StatusBadGateway, "the server does not answer: "+theirs.Error(), "")
	}
	return err
}
