package state

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fleet"
)

// ActionOutcome is how it went with what somebody did.
type ActionOutcome string

// The outcomes of actions.
const (
	ActionDone    ActionOutcome = "done"
	ActionFailed  ActionOutcome = "failed"
	ActionRefused ActionOutcome = "refused" // he may not, or did not say who he is
)

// ActionOutcomes lists them.
func ActionOutcomes() []ActionOutcome {
	return []ActionOutcome{ActionDone, ActionFailed, ActionRefused}
}

// Action is what somebody did through Risso, or tried to. Its event says when, to what, and in words.
type Action struct {
	fleet.Event
	Who     string        `json:"who"`     // as events say it: a user, a token, or "root on db1" of a command
	Role    Role          `json:"role"`    // that he had
	Via     string        `json:"via"`     // password, token and its name, shell; empty: nobody was asked
	Address string        `json:"address"` // empty: a command on this machine
	Call    string        `json:"call"`    // the request or command
	Outcome ActionOutcome `json:"outcome"` // done, failed or refused
}

// ActionBy is an action of somebody. The sentence of the event does not name him yet.
func ActionBy(a Actor, outcome ActionOutcome, e fleet.Event) Action {
	e.Kind, e.New = fleet.EventAction, a.Name
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	e.Text += " by " + a.Who()
	return Action{Event: e, Who: a.Who(), Role: a.Role, Via: a.Via, Address: a.Address, Call: a.Call, Outcome: outcome}
}

// AddAction stores what somebody did, as an event of the kind action with who did it, and returns it with its id.
func (s *Store) AddAction(ctx context.Context, a Action) (Action, error) {
	err := s.change(ctx, "store an action", func(ctx context.Context, tx *sql.Tx) (err error) {
		if a.ID, err = addEvent(ctx, tx, a.Event); err != nil {
			return err
		}
		return addAction(ctx, tx, a)
	})
	return a, err
}

// addAction stores who did what an event tells of.
func addAction(ctx context.Context, tx *sql.Tx, a Action) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO actions (event, who, role, via, address, call, outcome) VALUES (?,?,?,?,?,?,?)`,
		a.ID, a.Who, string(a.Role), a.Via, a.Address, a.Call, string(a.Outcome))
	return err
}

// ActionQuery picks actions. What is left zero does not narrow.
type ActionQuery struct {
	From, To time.Time
	Who      string
	Outcome  ActionOutcome
	Limit    int // the newest so many; 0 means 1,000, at most 10,000
}

// actionWho is who did it. Events of before there were roles have the name of a token, but those about tokens have the name of the one they are about.
const actionWho = "coalesce(a.who, CASE WHEN e.subject = 'token' THEN '' ELSE e.new END)"

// Actions returns the newest actions that fit, by ascending id. Those of before there were roles have no more than the event says.
func (s *Store) Actions(ctx context.Context, q ActionQuery) ([]Action, error) {
	where, args := []string{"(e.kind = ? OR a.event IS NOT NULL)"}, []any{string(fleet.EventAction)}
	if !q.From.IsZero() {
		where, args = append(where, "e.time >= ?"), append(args, stamp(q.From))
	}
	if !q.To.IsZero() {
		where, args = append(where, "e.time < ?"), append(args, stamp(q.To))
	}
	if q.Who != "" {
		where, args = append(where, actionWho+" = ?"), append(args, q.Who)
	}
	if q.Outcome != "" {
		where, args = append(where, "coalesce(a.outcome, 'done') = ?"), append(args, string(q.Outcome))
	}
	n := q.Limit
	if n <= 0 {
		n = 1000
	}
	var out []Action
	err := s.each(ctx, "query actions", func(r *sql.Rows) error {
		var a Action
		var us int64
		var severity int
		if err := r.Scan(&a.ID, &us, &a.Kind, &a.Instance, &severity, &a.Subject, &a.Old, &a.New, &a.Text, &a.Who, &a.Role, &a.Via, &a.Address, &a.Call, &a.Outcome); err != nil {
			return err
		}
		a.Time, a.Severity = fromStamp(us), fleet.Severity(severity)
		out = append(out, a)
		return nil
	}, `SELECT e.id, e.time, e.kind, e.instance, e.severity, e.subject, e.old, e.new, e.text, `+actionWho+`, coalesce(a.role, ''), coalesce(a.via, ''), coalesce(a.address, ''), coalesce(a.call, ''),
		coalesce(a.outcome, 'done') FROM events e LEFT JOIN actions a ON a.event = e.id WHERE `+strings.Join(where, " AND ")+fmt.Sprintf(" ORDER BY e.id DESC LIMIT %d", min(n, 10000)), args...)
	slices.Reverse(out)
	return out, err
}
