package web

import (
	"net/http"
	"strconv"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/serve/after"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/live"
)

// changedAfter is GET /api/events/after: what changed after an event, such as a deployment.
func (s *server) changedAfter(r *http.Request) (any, error) {
	if gone, ok := s.queriesGone(); ok {
		return gone, nil
	}
	q := r.URL.Query()
	id, err := param(q, "id", 0)
	if err != nil {
		return nil, err
	}
	minutes, err := param(q, "minutes", 15)
	if err != nil {
		return nil, err
	}
	if minutes < after.LeastMinutes || minutes > after.MostMinutes {
		return nil, badRequest("minutes must be "+strconv.Itoa(after.LeastMinutes)+" to "+strconv.Itoa(after.MostMinutes), "")
	}
	list, err := s.Facts.Events(r.Context(), state.EventQuery{AfterID: id - 1, Oldest: true, Limit: 1})
	if err != nil {
		return nil, err
	}
	if id < 1 || len(list) == 0 || list[0].ID != id {
		return nil, failed(http.StatusNotFound, "there is no event "+strconv.FormatInt(id, 10), "GET /api/events lists them")
	}
	rows, err := s.concerned(r, list[0])
	if err != nil {
		return nil, err
	}
	a := after.Answer{Event: list[0], Servers: []after.Server{}}
	a.Before, a.After, a.Complete = after.Windows(list[0].Time.Unix(), time.Now().Unix(), int(minutes))
	for i, row := range rows {
		if i >= after.MostServers {
			a.LeftOut = append(a.LeftOut, row.Name)
			continue
		}
		one, err := after.Read(r.Context(), s.Statements.Store, row.ID, list[0].Time.Unix(), a.Before, a.After)
		if err != nil {
			return nil, questionError(err)
		}
		one.Name = row.Name
		findings, err := s.Facts.Findings(r.Context(), state.FindingQuery{Instances: []string{row.ID}, From: list[0].Time, To: list[0].Time.Add(time.Duration(minutes+1) * time.Minute)})
		if err != nil {
			return nil, err
		}
		a.Add(one, findings)
	}
	return a, nil
}

// concerned are the servers that an event is about: those of all events of its mark, or all.
func (s *server) concerned(r *http.Request, e fleet.Event) (rows []live.Row, err error) {
	list, err := s.Facts.Events(r.Context(), state.EventQuery{From: e.Time, To: e.Time.Add(time.Microsecond), Kinds: []fleet.EventKind{e.Kind}})
	if err != nil {
		return nil, err
	}
	of := map[string]bool{e.Instance: true}
	for _, other := range list {
		if other.Text == e.Text {
			of[other.Instance] = true
		}
	}
	for _, row := range s.Live.Fleet(time.Now()) {
		if row.Kind != fleet.KindHost && (of[""] || of[row.ID]) {
			rows = append(rows, row)
		}
	}
	return rows, nil
}
