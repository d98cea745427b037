package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/rissodb/risso/internal/serve/incidents"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/incident"
)

// Incidents is what the web face asks of the desk of incidents.
type Incidents interface {
	Moment(instance string, at int64, redact bool) (incidents.MomentAnswer, error)
	Moments(instance string, from, to int64) (incidents.MomentsAnswer, error)
	List(ctx context.Context, q state.IncidentQuery) ([]incident.Incident, error)
	Show(ctx context.Context, id string, redact bool) (*incident.Told, error)
}

// moment is what a server did at a moment.
func (s *server) moment(r *http.Request) (any, error) {
	q := r.URL.Query()
	at, err := param(q, "at", time.Now().Unix())
	if err != nil {
		return nil, err
	}
	a, err := s.Incidents.Moment(q.Get("instance"), at, q.Get("literals") == "false")
	return a, noServer(err, q)
}

// noServer tells of an instance of which no moments are kept.
func noServer(err error, q url.Values) error {
	if errors.Is(err, state.ErrNotFound) {
		return failed(http.StatusNotFound, "no moments are kept of "+strconv.Quote(q.Get("instance")), "GET /api/fleet lists the instances; moments are kept of servers")
	}
	return err
}

// lastMoments is the time that moments tells of if nothing else is asked for.
const lastMoments = 600

// moments is a few numbers of each second that is kept.
func (s *server) moments(r *http.Request) (any, error) {
	q := r.URL.Query()
	to, err := param(q, "to", time.Now().Unix())
	if err != nil {
		return nil, err
	}
	from, err := param(q, "from", to-lastMoments)
	if err != nil {
		return nil, err
	}
	switch {
	case from > to:
		return nil, badRequest("from must be before to", "")
	case to-from > incidents.MostMoments:
		return nil, failed(http.StatusUnprocessableEntity, "these are more than "+strconv.Itoa(incidents.MostMoments)+" seconds", "ask for less at once")
	}
	a, err := s.Incidents.Moments(q.Get("instance"), from, to)
	return a, noServer(err, q)
}

// incidents lists incidents, the newest first.
func (s *server) incidents(r *http.Request) (any, error) {
	q := r.URL.Query()
	query := state.IncidentQuery{Instance: q.Get("instance")}
	for name, into := range map[string]*time.Time{"from": &query.From, "to": &query.To} {
		if q.Get(name) != "" {
			t, err := param(q, name, 0)
			if err != nil {
				return nil, err
			}
			*into = time.Unix(t, 0)
		}
	}
	limit, err := param(q, "limit", 100)
	if err != nil {
		return nil, err
	}
	query.Limit = int(min(max(limit, 1), 1000))
	list, err := s.Incidents.List(r.Context(), query)
	return map[string]any{"incidents": list}, err
}

func (s *server) told(r *http.Request, redact bool) (*incident.Told, error) {
	id := r.URL.Query().Get("id")
	t, err := s.Incidents.Show(r.Context(), id, redact)
	if errors.Is(err, state.ErrNotFound) {
		return nil, failed(http.StatusNotFound, "no incident "+strconv.Quote(id), "GET /api/incidents lists them")
	}
	return t, err
}

// incident is all of an incident.
func (s *server) incident(r *http.Request) (any, error) {
	return s.told(r, r.URL.Query().Get("literals") == "false")
}

// incidentPage is an incident as a page to be given away: without literals, unless they are asked for. It may do nothing in a browser but be
// seen.
func (s *server) incidentPage(r *http.Request, a *answer) error {
	t, err := s.told(r, r.URL.Query().Get("literals") != "true")
	if err != nil {
		return err
	}
	a.kind, a.policy = "text/html; charset=utf-8", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"
	return t.HTML(a)
}
