package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/pattern"
	"github.com/rissodb/risso/internal/store/state"
)

// most of what a mark may say.
const (
	mostMarkText = 500
	mostMarkKey  = 200
)

// markBody is what is sent to make a mark.
type markBody struct {
	Text    string           `json:"text"`
	Kind    fleet.EventKind  `json:"kind"`    // deploy, the default, or note
	Servers []string         `json:"servers"` // names, IDs or patterns with *; none: all
	Key     string           `json:"key"`     // makes a retry one mark; empty: each request is a mark of its own
	Time    *json.RawMessage `json:"time"`    // RFC 3339; none: now
}

// keepMark is POST /api/events.
func (s *server) keepMark(r *http.Request, body []byte) (any, error) {
	m, err := s.markOf(body)
	if err != nil {
		return nil, err
	}
	if err := s.touches(r, m.Instances...); err != nil {
		return nil, err
	}
	m.By = viewerOf(r).Who()
	list, fresh, err := s.Facts.AddMark(r.Context(), m)
	if errors.Is(err, state.ErrOtherMark) {
		return nil, failed(http.StatusConflict, "the key "+strconv.Quote(m.Key)+" was used for another mark", "use a new key for each mark, and the same only to repeat one")
	}
	if err != nil {
		return nil, err
	}
	return map[string]any{"id": list[0].ID, "new": fresh, "events": list}, nil
}

func (s *server) markOf(body []byte) (m state.Mark, err error) {
	var b markBody
	if err := json.Unmarshal(body, &b); err != nil {
		return m, badRequest("the body is no JSON of an event: "+err.Error(), `send {"text": "deploy 1.4"}`)
	}
	m = state.Mark{Key: strings.TrimSpace(b.Key), Kind: b.Kind, Text: strings.TrimSpace(oneline.Of(b.Text))}
	switch {
	case m.Text == "" || len(m.Text) > mostMarkText:
		return m, badRequest(fmt.Sprintf("text must have 1 to %d bytes", mostMarkText), `send {"text": "deploy 1.4"}`)
	case len(m.Key) > mostMarkKey:
		return m, badRequest(fmt.Sprintf("key must have at most %d bytes", mostMarkKey), "")
	case m.Kind == "":
		m.Kind = fleet.EventDeploy
	case m.Kind != fleet.EventDeploy && m.Kind != fleet.EventNote:
		return m, badRequest(fmt.Sprintf("kind %q", b.Kind), "deploy or note")
	}
	if m.Key == "" {
		m.Key = state.NewMarkKey()
	}
	if b.Time != nil {
		if err := json.Unmarshal(*b.Time, &m.At); err != nil {
			return m, badRequest("time must be as 2026-11-24T03:12:00Z", "")
		}
		if fleet.Ahead(m.At, time.Now()) {
			return m, badRequest("time is in the future", "leave it out for now")
		}
	}
	if m.Instances, err = s.serversNamed(b.Servers); err != nil {
		return m, err
	}
	return m, nil
}

// serversNamed returns the IDs of what is watched under names, IDs, or patterns of them.
func (s *server) serversNamed(names []string) (ids []string, err error) {
	rows := s.Live.Fleet(time.Now())
	for _, name := range names {
		found := false
		for _, row := range rows {
			if pattern.Stars(name, row.ID) || pattern.Stars(name, row.Name) {
				ids, found = append(ids, row.ID), true
			}
		}
		if !found {
			return nil, badRequest("no server "+strconv.Quote(name), "GET /api/fleet lists them")
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}
