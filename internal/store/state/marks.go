package state

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rissodb/risso/internal/fleet"
)

// ErrOtherMark says that a key was used before, for another mark.
var ErrOtherMark = errors.New("the key belongs to another mark")

// Mark is what somebody says that happened: a deployment, or something else worth a mark in the charts.
type Mark struct {
	Key       string          `json:"-"` // known to whoever makes it; a mark with a key that is there already is a retry
	Kind      fleet.EventKind `json:"kind"`
	Text      string          `json:"text"`
	Instances []string        `json:"instances,omitempty"` // whom it concerns; none: all
	By        string          `json:"-"`                   // who says so
	At        time.Time       `json:"-"`                   // zero: now
}

// NewMarkKey is a key that no other mark has.
func NewMarkKey() string { return rand.Text() }

// AddMark stores a mark as events, one for each instance, or one for all. A mark whose key is there is not stored again: the
// events are those of the first time, and fresh is false. ErrOtherMark, if the key is another mark's.
func (s *Store) AddMark(ctx context.Context, m Mark) (events []fleet.Event, fresh bool, err error) {
	m.Instances = slices.Compact(slices.Sorted(slices.Values(m.Instances)))
	asked, err := json.Marshal(m)
	if err != nil {
		return nil, false, fmt.Errorf("write the mark: %w", err)
	}
	if m.At.IsZero() {
		m.At = time.Now()
	}
	var first, last int64
	err = s.change(ctx, "store a mark", func(ctx context.Context, tx *sql.Tx) error {
		var known string
		switch err := tx.QueryRowContext(ctx, "SELECT first, last, asked FROM marks WHERE key = ?", m.Key).Scan(&first, &last, &known); {
		case err == nil && known != string(asked):
			return ErrOtherMark
		case err == nil:
			return nil
		case !errors.Is(err, sql.ErrNoRows):
			return err
		}
		fresh = true
		instances := m.Instances
		if len(instances) == 0 {
			instances = []string{""}
		}
		for _, i := range instances {
			id, err := addEvent(ctx, tx, fleet.Event{Time: m.At, Instance: i, Kind: m.Kind, New: m.By, Text: m.Text})
			if err != nil {
				return err
			}
			if first == 0 {
				first = id
				if by := ActorOf(ctx); by.Role != "" { // one mark is one action, whomever it concerns
					if err := addAction(ctx, tx, Action{Event: fleet.Event{ID: id}, Who: by.Who(), Role: by.Role, Via: by.Via, Address: by.Address, Call: by.Call, Outcome: ActionDone}); err != nil {
						return err
					}
				}
			}
			last = id // one writer: they are next to each other
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO marks (first, last, key, asked) VALUES (?,?,?,?)", first, last, m.Key, string(asked))
		return err
	})
	if err != nil {
		return nil, false, err
	}
	if events, err = s.eventsBetween(ctx, first, last); err == nil && len(events) == 0 {
		err = fmt.Errorf("the events of a mark: %w", ErrNotFound) // pruned since
	}
	return events, fresh, err
}

func (s *Store) eventsBetween(ctx context.Context, first, last int64) ([]fleet.Event, error) {
	list, err := s.Events(ctx, EventQuery{AfterID: first - 1, Oldest: true, Limit: int(last - first + 1)})
	return slices.DeleteFunc(list, func(e fleet.Event) bool { return e.ID < first || e.ID > last }), err
}
