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
	"github.com/rissodb/risso/internal/serve/alerts"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/alert"
	"github.com/rissodb/risso/internal/watch/rules"
)

// Alerts is what the web face asks of the desk of alerts.
type Alerts interface {
	Standing() []alert.Standing
	Silences(ctx context.Context, now time.Time) ([]alert.Silence, error)
	Silence(ctx context.Context, s alert.Silence) (alert.Silence, error)
	EndSilence(ctx context.Context, id int64) error
	Acknowledge(ctx context.Context, key, by string) error
	Thresholds() (defaults, file []alert.Threshold, page []alerts.Threshold)
	SetThreshold(ctx context.Context, t alert.Threshold, by string) (alerts.Threshold, error)
	DeleteThreshold(ctx context.Context, id int64, by string) error
	Test(ctx context.Context, receiver, by string) error
	Replay(ctx context.Context, t alert.Threshold, from, to time.Time) (alert.Replayed, error)
	Deliveries(ctx context.Context, last int) ([]alerts.Delivery, error)
}

// alertsNow is what is pending and what fires, who is told, and what is silenced.
func (s *server) alertsNow(r *http.Request) (any, error) {
	list := s.Alerts.Standing()
	slices.SortFunc(list, func(a, b alert.Standing) int {
		return compareAll(strings.Compare(string(a.Phase), string(b.Phase)), int(b.Severity)-int(a.Severity), a.Began.Compare(b.Began), strings.Compare(a.Key, b.Key))
	})
	silences, err := s.Alerts.Silences(r.Context(), time.Now())
	if err != nil {
		return nil, err
	}
	receivers, err := s.receivers(r.Context())
	if err != nil {
		return nil, err
	}
	return map[string]any{"alerts": list, "silences": silences, "receivers": receivers}, nil
}

// compareAll is the first of several comparisons that tells two things apart.
func compareAll(results ...int) int {
	for _, r := range results {
		if r != 0 {
			return r
		}
	}
	return 0
}

// receiverAnswer is how things are with one receiver.
type receiverAnswer struct {
	alerts.Delivery
	Messages []messageAnswer `json:"messages"` // the newest
}

// messageAnswer is a message in the list of a receiver.
type messageAnswer struct {
	ID        string    `json:"id"`
	Title     string    `json:"title"`
	Made      time.Time `json:"made"`
	Tries     int       `json:"tries"`
	Delivered time.Time `json:"delivered,omitzero"`
	Dropped   time.Time `json:"dropped,omitzero"` // when it was given up
	Error     string    `json:"error,omitempty"`  // of the last try
}

// lastMessages is how many messages of a receiver are listed.
const lastMessages = 20

func (s *server) receivers(ctx context.Context) ([]receiverAnswer, error) {
	list, err := s.Alerts.Deliveries(ctx, lastMessages)
	if err != nil {
		return nil, err
	}
	out := make([]receiverAnswer, 0, len(list))
	for _, d := range list {
		a := receiverAnswer{Delivery: d, Messages: []messageAnswer{}}
		for _, m := range d.Last {
			var message alert.Message
			title := "a message that cannot be read"
			if json.Unmarshal(m.Body, &message) == nil {
				title = message.Title(200)
			}
			a.Messages = append(a.Messages, messageAnswer{ID: m.ID, Title: title, Made: m.Made, Tries: m.Tries, Delivered: m.Delivered, Dropped: m.Dropped, Error: m.Error})
		}
		out = append(out, a)
	}
	return out, nil
}

// alertHistory is the alerts that rang in a range, the newest first.
func (s *server) alertHistory(r *http.Request) (any, error) {
	q := r.URL.Query()
	var from, to time.Time
	for name, into := range map[string]*time.Time{"from": &from, "to": &to} {
		if text := q.Get(name); text != "" {
			t, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return nil, badRequest(name+" must be unix seconds", "")
			}
			*into = time.Unix(t, 0)
		}
	}
	limit := 1000
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, badRequest("limit must be a number from 1 to 10000", "")
		}
		limit = n
	}
	rows, err := s.Facts.Alerts(r.Context(), from, to, limit)
	if err != nil {
		return nil, err
	}
	list := make([]json.RawMessage, 0, len(rows))
	for _, row := range rows {
		list = append(list, row.Alert)
	}
	return map[string]any{"alerts": list}, nil
}

// replay says how often what was found would have rung.
func (s *server) replay(r *http.Request) (any, error) {
	q := r.URL.Query()
	if err := rules.CheckName(q.Get("finding")); err != nil {
		return nil, badRequest(err.Error(), "")
	}
	t := alert.Threshold{Match: alert.Match{Server: q.Get("server"), Finding: q.Get("finding"), Severity: fleet.SeverityWarning}}
	to := time.Now()
	from, err := strconv.ParseInt(q.Get("from"), 10, 64)
	if err != nil {
		return nil, badRequest("from must be unix seconds", "")
	}
	if text := q.Get("for"); text != "" {
		d, err := digits.ParseDuration(text)
		if err != nil || d < 0 {
			return nil, badRequest("for "+strconv.Quote(text), "write it as 30s or 10m")
		}
		t.For = &d
	}
	if text := q.Get("above"); text != "" {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, badRequest("above "+strconv.Quote(text), "a number")
		}
		t.Above = &v
	}
	out, err := s.Alerts.Replay(r.Context(), t, time.Unix(from, 0), to)
	if errors.Is(err, alerts.ErrTooMany) {
		return nil, failed(http.StatusUnprocessableEntity, err.Error(), "")
	}
	return out, err
}

// acknowledge notes that somebody knows of an alert: it is not told again until it gets worse or ends.
func (s *server) acknowledge(r *http.Request) (any, error) {
	key := r.URL.Query().Get("key")
	instance, _, _ := strings.Cut(key, "/")
	if err := s.touches(r, instance); err != nil {
		return nil, err
	}
	switch err := s.Alerts.Acknowledge(r.Context(), key, viewerOf(r).Who()); {
	case errors.Is(err, state.ErrNotFound):
		return nil, failed(http.StatusNotFound, "no alert "+strconv.Quote(key)+" fires", "GET /api/alerts lists them")
	case err != nil:
		return nil, err
	}
	s.did(r, instance, key, "alert "+key+" was acknowledged")
	return map[string]any{"acknowledged": key}, nil
}

// silenceBody is what is sent to silence alerts. Names may contain *; what is left out fits all.
type silenceBody struct {
	Server, Group, Finding, Subject string
	Severity                        string // at least so bad
	For                             string // such as 2h
	End                             time.Time
	Reason                          string
}

// mostSilent is how long a silence may last.
const mostSilent = 90 * 24 * time.Hour

func (b silenceBody) check(now time.Time, by string) (alert.Silence, error) {
	out := alert.Silence{Match: alert.Match{Server: b.Server, Group: b.Group, Finding: b.Finding, Subject: b.Subject}, Begin: now, End: b.End, Reason: strings.TrimSpace(oneline.Cut(oneline.Of(b.Reason), 500)), By: by}
	if b.Severity != "" {
		if err := out.Match.Severity.UnmarshalText([]byte(b.Severity)); err != nil {
			return out, badRequest("severity "+strconv.Quote(b.Severity), "info, warning or critical")
		}
	}
	if b.For != "" {
		d, err := digits.ParseDuration(b.For)
		if err != nil || d <= 0 {
			return out, badRequest("for "+strconv.Quote(b.For), "write it as 30m or 2h")
		}
		out.End = now.Add(d)
	}
	if err := rules.CheckName(b.Finding); err != nil {
		return out, badRequest(err.Error(), "")
	}
	switch {
	case out.Match == (alert.Match{}):
		return out, badRequest("a silence names what is silent", `for all that rings: {"server": "*", …}`)
	case !out.End.After(now):
		return out, badRequest("a silence has an end, which is in the future", `send {"server": "db1", "for": "2h", "reason": "…"}`)
	case out.End.Sub(now) > mostSilent:
		return out, badRequest("a silence lasts at most "+digits.Span(mostSilent), "")
	case out.Reason == "":
		return out, badRequest("a silence has a reason", `send {"server": "db1", "for": "2h", "reason": "…"}`)
	}
	return out, nil
}

// silenceAnswer is a silence that was made.
type silenceAnswer struct {
	alert.Silence
	Servers []string `json:"servers"` // that it is about, of those that are watched now
}

// silence is POST /api/silences.
func (s *server) silence(r *http.Request, body []byte) (any, error) {
	var b silenceBody
	if err := json.Unmarshal(body, &b); err != nil {
		return nil, badRequest("the body is no JSON of a silence", `send {"server": "db1", "for": "2h", "reason": "…"}`)
	}
	wanted, err := b.check(time.Now(), viewerOf(r).Who())
	if err != nil {
		return nil, err
	}
	out, err := s.Alerts.Silence(r.Context(), wanted)
	if err != nil {
		return nil, err
	}
	s.did(r, "", fmt.Sprintf("silence %d", out.ID), fmt.Sprintf("alerts of %s were silenced until %s: %s", out.Match.Words(), out.End.Local().Format(time.DateTime), out.Reason))
	a := silenceAnswer{Silence: out, Servers: []string{}}
	for _, i := range s.Live.Instances() {
		if out.Match.FitsServer(i.Name, i.Group) {
			a.Servers = append(a.Servers, i.Name)
		}
	}
	slices.Sort(a.Servers)
	return a, nil
}

// endSilence is DELETE /api/silences.
func (s *server) endSilence(r *http.Request) (any, error) {
	id, err := strconv.ParseInt(r.URL.Query().Get("id"), 10, 64)
	if err != nil {
		return nil, badRequest("id must be the number of a silence", "GET /api/alerts lists them")
	}
	switch err := s.Alerts.EndSilence(r.Context(), id); {
	case errors.Is(err, state.ErrNotFound):
		return nil, failed(http.StatusNotFound, fmt.Sprintf("no silence %d holds", id), "GET /api/alerts lists them")
	case err != nil:
		return nil, err
	}
	s.did(r, "", fmt.Sprintf("silence %d", id), fmt.Sprintf("silence %d was ended", id))
	return map[string]any{"ended": id}, nil
}

// testReceiver sends a message that says that it is a test.
func (s *server) testReceiver(r *http.Request) (any, error) {
	name := r.URL.Query().Get("name")
	switch err := s.Alerts.Test(r.Context(), name, viewerOf(r).Who()); {
	case errors.Is(err, state.ErrNotFound):
		return nil, failed(http.StatusNotFound, "no receiver "+strconv.Quote(name), "GET /api/alerts lists them")
	case err != nil:
		s.did(r, "", name, "receiver "+name+" was tested, and did not take the message: "+err.Error())
		return nil, failed(http.StatusBadGateway, err.Error(), "")
	}
	s.did(r, "", name, "receiver "+name+" was tested")
	return map[string]any{"delivered": name}, nil
}
