package state

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
)

// Findings of the user's own rules.
const (
	RulePrefix   = "rule."         // and the rule's name
	RulesFailing = "rules.failing" // a rule that is not evaluated
)

// OfRules says whether a finding is one of the user's own rules.
func OfRules(id string) bool { return strings.HasPrefix(id, RulePrefix) || id == RulesFailing }

// RuleAlert is an alert of the user's rules that is pending or fires.
type RuleAlert struct {
	Key    string // its labels
	Since  time.Time
	Firing bool
	Lapsed time.Time // since when the rule no longer finds it, and it fires on because of keep_firing_for; zero: it is found
	Value  float64   // when this was noted; NaN: unknown
}

// RuleAlerts returns what KeepRuleAlerts noted.
func (s *Store) RuleAlerts(ctx context.Context) (list []RuleAlert, err error) {
	err = s.each(ctx, "list alerts of rules", func(rows *sql.Rows) error {
		var a RuleAlert
		var since, lapsed int64
		var value sql.NullFloat64
		err := rows.Scan(&a.Key, &since, &a.Firing, &lapsed, &value)
		a.Since, a.Lapsed, a.Value = fromStamp(since), fromStamp(lapsed), value.Float64
		if !value.Valid {
			a.Value = math.NaN()
		}
		list = append(list, a)
		return err
	}, "SELECT key, since, firing, lapsed, value FROM rule_alerts")
	return list, err
}

// KeepRuleAlerts notes what is pending or fires now, and what no longer does.
func (s *Store) KeepRuleAlerts(ctx context.Context, put []RuleAlert, gone []string) error {
	return s.change(ctx, "keep alerts of rules", func(ctx context.Context, tx *sql.Tx) error {
		for _, a := range put {
			if _, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO rule_alerts (key, since, firing, lapsed, value) VALUES (?,?,?,?,?)",
				a.Key, stamp(a.Since), a.Firing, stamp(a.Lapsed), sql.NullFloat64{Float64: a.Value, Valid: !math.IsNaN(a.Value)}); err != nil {
				return err
			}
		}
		for _, key := range gone {
			if _, err := tx.ExecContext(ctx, "DELETE FROM rule_alerts WHERE key = ?", key); err != nil {
				return err
			}
		}
		return nil
	})
}

// ThresholdRow is a threshold that somebody set while Risso ran.
type ThresholdRow struct {
	ID    int64
	About string // what it fits; there is one for each
	At    time.Time
	Who   string
	Body  json.RawMessage
}

// Thresholds returns those that were set, in the order in which they were.
func (s *Store) Thresholds(ctx context.Context) (list []ThresholdRow, err error) {
	err = s.each(ctx, "list thresholds", func(rows *sql.Rows) error {
		var r ThresholdRow
		var at int64
		var body string
		err := rows.Scan(&r.ID, &r.About, &at, &r.Who, &body)
		r.At, r.Body = fromStamp(at), json.RawMessage(body)
		list = append(list, r)
		return err
	}, "SELECT id, about, at, who, body FROM thresholds ORDER BY id")
	return list, err
}

// SetThreshold keeps a threshold instead of the one that is about the same, and returns its number.
func (s *Store) SetThreshold(ctx context.Context, r ThresholdRow) (id int64, err error) {
	err = s.change(ctx, "keep a threshold", func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "DELETE FROM thresholds WHERE about = ?", r.About); err != nil {
			return err
		}
		res, err := tx.ExecContext(ctx, "INSERT INTO thresholds (about, at, who, body) VALUES (?,?,?,?)", r.About, stamp(r.At), r.Who, string(r.Body))
		if err != nil {
			return err
		}
		id, err = res.LastInsertId()
		return err
	})
	return id, err
}

// DeleteThreshold takes a threshold away; ErrNotFound: there is none of that number.
func (s *Store) DeleteThreshold(ctx context.Context, id int64) error {
	return s.change(ctx, "delete a threshold", func(ctx context.Context, tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx, "DELETE FROM thresholds WHERE id = ?", id)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return fmt.Errorf("threshold %d: %w", id, errOr(err, ErrNotFound))
		}
		return nil
	})
}
