package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/serve/advice"
	"github.com/rissodb/risso/internal/store/state"
)

// Advice is what the web face asks of the room that looks at servers.
type Advice interface {
	List(ctx context.Context, q advice.Query) (advice.Answer, error)
	Look(instances []string) (queued []string)
	Decide(ctx context.Context, about advice.About, d advice.Decision) (servers []string, what string, err error)
	Silence(ctx context.Context, d advice.Decision) error
	Undo(ctx context.Context, number int64, about advice.About) ([]advice.Decision, error)
}

// adviceRoutes are the paths of advice.
func (s *server) adviceRoutes(mux *routes) {
	if s.Advice == nil {
		return
	}
	mux.Handle("GET /api/advice", s.guard(state.RoleLook, s.json(s.gate.queries, s.advice)))
	mux.Handle("POST /api/advice/look", s.guardPart(state.RoleChange, s.json(s.gate.quick, s.lookForAdvice)))
	for path, h := range map[string]func(*http.Request, decisionBody) (any, error){"accept": s.acceptAdvice, "postpone": s.postponeAdvice, "silence": s.silenceAdvice, "undo": s.undoAdvice} {
		mux.Handle("POST /api/advice/"+path, s.guard(state.RoleChange, s.posted(s.gate.quick, smallBody, func(r *http.Request, body []byte) (any, error) {
			var b decisionBody
			if err := json.Unmarshal(body, &b); err != nil {
				return nil, badRequest("the body is no JSON of a decision", decisionExample)
			}
			return h(r, b)
		})))
	}
}

const (
	decisionExample = `send {"id": "schema.no_pk", "object": "shop.log", "reason": "…"}`
	mostAdvice      = 10000 // findings in one answer
)

// advice is GET /api/advice.
func (s *server) advice(r *http.Request) (any, error) {
	v := r.URL.Query()
	q := advice.Query{Instances: v["instance"], Group: v.Get("group"), IDs: v["id"], Text: v.Get("q"), State: v.Get("state")}
	if t := v.Get("severity"); t != "" {
		if !slices.Contains([]string{"info", "warning", "critical"}, t) {
			return nil, badRequest("severity "+strconv.Quote(t), "info, warning or critical")
		}
		if err := q.Severity.UnmarshalText([]byte(t)); err != nil {
			return nil, err
		}
	}
	if !slices.Contains([]string{"", "open", "decided", "gone", "all"}, q.State) {
		return nil, badRequest("state "+strconv.Quote(q.State), "open, decided, gone or all")
	}
	if t := v.Get("limit"); t != "" {
		n, err := strconv.Atoi(t)
		if err != nil || n < 1 || n > mostAdvice {
			return nil, badRequest(fmt.Sprintf("limit must be a number from 1 to %d", mostAdvice), "")
		}
		q.Limit = n
	}
	for _, id := range q.Instances {
		if _, err := s.watched(id); err != nil {
			return nil, err
		}
	}
	return s.Advice.List(r.Context(), q)
}

// watched finds an instance by its ID or name.
func (s *server) watched(name string) (fleet.Instance, error) {
	for _, i := range s.Live.Instances() {
		if i.ID == name || i.Name == name {
			return i, nil
		}
	}
	return fleet.Instance{}, failed(http.StatusNotFound, "nothing is watched that is called "+strconv.Quote(name), "GET /api/fleet lists all")
}

// lookForAdvice is POST /api/advice/look: servers are looked at as soon as possible.
func (s *server) lookForAdvice(r *http.Request) (any, error) {
	var ids, names []string
	for _, name := range r.URL.Query()["instance"] {
		i, err := s.watched(name)
		if err != nil {
			return nil, err
		}
		ids, names = append(ids, i.ID), append(names, i.Name)
	}
	if err := s.touches(r, ids...); err != nil {
		return nil, err
	}
	queued := s.Advice.Look(ids)
	if len(queued) == 0 {
		return nil, failed(http.StatusNotFound, "no server is watched that could be looked at", "")
	}
	of := "all servers"
	if len(names) > 0 {
		of = strings.Join(names, ", ")
	}
	s.did(r, one(ids), "advice", "a look at "+of+" for advice was asked for")
	return map[string]any{"queued": queued}, nil
}

// one is the only one of a list; else empty.
func one(list []string) string {
	if len(list) == 1 {
		return list[0]
	}
	return ""
}

// decisionBody is what is sent to decide about a finding.
type decisionBody struct {
	Number  int64    // of a decision, to take it back
	ID      string   // such as schema.no_pk; a pattern, to silence
	Object  string   // the same
	Servers []string // names or IDs; none: all. To silence: one, which may be a pattern
	For     string   // such as 30d
	Until   time.Time
	Reason  string
}

const mostReason = 500

// decisionAnswer is what was decided.
type decisionAnswer struct {
	Kind    string    `json:"kind"`
	Servers []string  `json:"servers,omitempty"` // names of those that have the finding
	Until   time.Time `json:"until,omitzero"`
}

// about is what a decision is about.
func (s *server) about(b decisionBody) (advice.About, error) {
	about := advice.About{ID: b.ID, Object: b.Object}
	for _, name := range b.Servers {
		i, err := s.watched(name)
		if err != nil {
			return about, err
		}
		about.Instances = append(about.Instances, i.ID)
	}
	return about, nil
}

// decision is what is the same in all decisions.
func (b decisionBody) decision(kind, by string, now time.Time) (d advice.Decision, err error) {
	d = advice.Decision{Kind: kind, At: now, Who: by, Until: b.Until, Reason: strings.TrimSpace(oneline.Cut(oneline.Of(b.Reason), mostReason))}
	if b.For != "" {
		t, err := digits.ParseDuration(b.For)
		if err != nil || t <= 0 {
			return d, badRequest("for "+strconv.Quote(b.For), "write it as 12h or 30d")
		}
		d.Until = now.Add(t)
	}
	switch {
	case b.ID == "":
		return d, badRequest("it is not said which finding is meant", decisionExample)
	case d.Reason == "":
		return d, badRequest("a decision has a reason", decisionExample)
	case !d.Until.IsZero() && !d.Until.After(now):
		return d, badRequest("its end is in the past", "")
	}
	return d, nil
}

func (s *server) acceptAdvice(r *http.Request, b decisionBody) (any, error) {
	if b.For != "" || !b.Until.IsZero() {
		return nil, badRequest("what is accepted has no end", "postpone it instead")
	}
	return s.decideAdvice(r, b, state.AdviceAccepted, "")
}

func (s *server) postponeAdvice(r *http.Request, b decisionBody) (any, error) {
	if b.For == "" && b.Until.IsZero() {
		return nil, badRequest("what is postponed has an end", `send {"id": "schema.no_pk", "object": "shop.log", "for": "30d", "reason": "…"}`)
	}
	return s.decideAdvice(r, b, state.AdvicePostponed, " until ")
}

func (s *server) decideAdvice(r *http.Request, b decisionBody, kind, until string) (any, error) {
	d, err := b.decision(kind, viewerOf(r).Who(), time.Now())
	if err != nil {
		return nil, err
	}
	about, err := s.about(b)
	if err != nil {
		return nil, err
	}
	servers, what, err := s.Advice.Decide(r.Context(), about, d)
	if errors.Is(err, advice.ErrNothing) {
		return nil, failed(http.StatusNotFound, "no finding "+strings.TrimSpace(b.ID+" "+b.Object)+" holds there", "GET /api/advice lists them; ID and object must be as they are there")
	}
	if err != nil {
		return nil, err
	}
	if until != "" {
		until += d.Until.Local().Format(time.DateTime)
	}
	of := strings.Join(servers, ", ")
	if len(about.Instances) == 0 {
		of = "all servers"
	}
	s.did(r, one(about.Instances), fleet.AdvicePrefix+b.ID, fmt.Sprintf("advice was %s%s on %s: %s: %s", kind, until, of, what, d.Reason))
	return decisionAnswer{Kind: kind, Servers: servers, Until: d.Until}, nil
}

func (s *server) silenceAdvice(r *http.Request, b decisionBody) (any, error) {
	d, err := b.decision(state.AdviceSilenced, viewerOf(r).Who(), time.Now())
	if err != nil {
		return nil, err
	}
	if len(b.Servers) > 1 {
		return nil, badRequest("one server, a pattern of names, or none for all", "")
	}
	d.Finding, d.Object, d.Server = b.ID, b.Object, one(b.Servers)
	if d.Finding == "*" && d.Object == "" && d.Server == "" {
		return nil, badRequest("that would silence all advice", "advice: every: off in the config file ends the looks")
	}
	if err := s.Advice.Silence(r.Context(), d); err != nil {
		return nil, err
	}
	of := strings.TrimSpace(d.Finding + " " + d.Object)
	if d.Server != "" {
		of += " on " + d.Server
	}
	s.did(r, "", fleet.AdvicePrefix+b.ID, "advice was silenced: "+of+": "+d.Reason)
	return decisionAnswer{Kind: d.Kind, Until: d.Until}, nil
}

func (s *server) undoAdvice(r *http.Request, b decisionBody) (any, error) {
	about, err := s.about(b)
	if err != nil && b.Number == 0 {
		return nil, err
	}
	if b.Number == 0 && b.ID == "" {
		return nil, badRequest("it is not said which decision is meant", `send {"number": 3} or {"id": "schema.no_pk", "object": "shop.log"}`)
	}
	undone, err := s.Advice.Undo(r.Context(), b.Number, about)
	if errors.Is(err, advice.ErrNothing) {
		return nil, failed(http.StatusNotFound, "there is no such decision", "GET /api/advice?state=decided lists them")
	}
	if err != nil {
		return nil, err
	}
	for _, d := range undone {
		s.did(r, "", fleet.AdvicePrefix+d.Finding, "what was "+d.Kind+" is advice again: "+strings.TrimSpace(d.Finding+" "+d.Object))
	}
	return map[string]any{"undone": undone}, nil
}
