package state

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/rissodb/risso/internal/fleet"
)

// AlertRow is an alert that rang.
type AlertRow struct {
	Key      string
	Rang     time.Time
	Instance string
	Finding  string
	Severity fleet.Severity
	Ended    time.Time       // zero: it has not
	Alert    json.RawMessage // as it is, or was at its end
}

// MessageRow is a message to a receiver, which stays until it is delivered.
type MessageRow struct {
	ID        string
	Receiver  string
	Made      time.Time
	Tries     int
	Next      time.Time // when it is to be tried again
	Delivered time.Time // zero: it is not
	Dropped   time.Time // when it was given up; zero: it is not
	Error     string    // of the last try
	Body      json.RawMessage
}

// Alerting is what follows from one look at what is wrong.
type Alerting struct {
	State    json.RawMessage // what the engine remembers from then on
	Alerts   []AlertRow
	Messages []MessageRow
}

// KeepAlerting writes what follows from a look, all of it or none. A message that there is already is left as it is.
func (s *Store) KeepAlerting(ctx context.Context, a Alerting) error {
	return s.change(ctx, "keep alerts", func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "DELETE FROM alerting"); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO alerting VALUES (?)", string(a.State)); err != nil {
			return err
		}
		for _, r := range a.Alerts {
			_, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO alerts (key, rang, instance, finding, severity, ended, alert) VALUES (?,?,?,?,?,?,?)",
				r.Key, stamp(r.Rang), r.Instance, r.Finding, int(r.Severity), stamp(r.Ended), string(r.Alert))
			if err != nil {
				return err
			}
		}
		for _, m := range a.Messages {
			if err := addMessage(ctx, tx, m); err != nil {
				return err
			}
		}
		return nil
	})
}

func addMessage(ctx context.Context, tx *sql.Tx, m MessageRow) error {
	_, err := tx.ExecContext(ctx, "INSERT OR IGNORE INTO messages (id, receiver, made, tries, next, delivered, dropped, error, body) VALUES (?1,?2,?3,0,?3,?4,0,'',?5)",
		m.ID, m.Receiver, stamp(m.Made), stamp(m.Delivered), string(m.Body))
	return err
}

// AddMessage leaves a message for its receiver, or notes one that was delivered.
func (s *Store) AddMessage(ctx context.Context, m MessageRow) error {
	return s.change(ctx, "keep a message", func(ctx context.Context, tx *sql.Tx) error { return addMessage(ctx, tx, m) })
}

// AlertingState is what the engine remembered last; nil: nothing yet.
func (s *Store) AlertingState(ctx context.Context) (text json.RawMessage, err error) {
	err = s.each(ctx, "read the state of alerts", func(rows *sql.Rows) error {
		var t string
		err := rows.Scan(&t)
		text = json.RawMessage(t)
		return err
	}, "SELECT state FROM alerting")
	return text, err
}

// Alerts returns the newest alerts that held at some moment from from on and rang before to, by the time they rang. Zero times do not narrow.
func (s *Store) Alerts(ctx context.Context, from, to time.Time, limit int) (list []AlertRow, err error) {
	before := int64(1) << 62
	if !to.IsZero() {
		before = stamp(to)
	}
	err = s.each(ctx, "list alerts", func(rows *sql.Rows) error {
		var r AlertRow
		var rang, ended int64
		var severity int
		var text string
		if err := rows.Scan(&r.Key, &rang, &r.Instance, &r.Finding, &severity, &ended, &text); err != nil {
			return err
		}
		r.Rang, r.Ended, r.Severity, r.Alert = fromStamp(rang), fromStamp(ended), fleet.Severity(severity), json.RawMessage(text)
		list = append(list, r)
		return nil
	}, fmt.Sprintf("SELECT key, rang, instance, finding, severity, ended, alert FROM alerts WHERE rang < ? AND (ended = 0 OR ended >= ?) ORDER BY rang DESC, key LIMIT %d", min(max(limit, 1), 10000)),
		before, stamp(from))
	return list, err
}

const messageColumns = "SELECT id, receiver, made, tries, next, delivered, dropped, error, body FROM messages "

func (s *Store) messages(ctx context.Context, query string, args ...any) (list []MessageRow, err error) {
	err = s.each(ctx, "list messages", func(rows *sql.Rows) error {
		var m MessageRow
		var made, next, delivered, dropped int64
		var body string
		if err := rows.Scan(&m.ID, &m.Receiver, &made, &m.Tries, &next, &delivered, &dropped, &m.Error, &body); err != nil {
			return err
		}
		m.Made, m.Next, m.Delivered, m.Dropped, m.Body = fromStamp(made), fromStamp(next), fromStamp(delivered), fromStamp(dropped), json.RawMessage(body)
		list = append(list, m)
		return nil
	}, messageColumns+query, args...)
	return list, err
}

// WaitingMessages are the oldest messages that a receiver has not got, in the order in which they were made.
func (s *Store) WaitingMessages(ctx context.Context, receiver string, limit int) ([]MessageRow, error) {
	return s.messages(ctx, fmt.Sprintf("WHERE receiver = ? AND delivered = 0 AND dropped = 0 ORDER BY made, id LIMIT %d", limit), receiver)
}

// LastMessages are the newest messages of a receiver.
func (s *Store) LastMessages(ctx context.Context, receiver string, limit int) ([]MessageRow, error) {
	return s.messages(ctx, fmt.Sprintf("WHERE receiver = ? ORDER BY made DESC, id DESC LIMIT %d", limit), receiver)
}

// Message is one message by its ID, or ErrNotFound.
func (s *Store) Message(ctx context.Context, id string) (MessageRow, error) {
	list, err := s.messages(ctx, "WHERE id = ?", id)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("message %s: %w", id, ErrNotFound)
	}
	if err != nil {
		return MessageRow{}, err
	}
	return list[0], nil
}

// MessageTried notes how a try to deliver a message went: Delivered, Dropped, Next and Error of m.
func (s *Store) MessageTried(ctx context.Context, m MessageRow) error {
	return s.change(ctx, "note a delivery", func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "UPDATE messages SET tries = tries + 1, next = ?, delivered = ?, dropped = ?, error = ? WHERE id = ?",
			stamp(m.Next), stamp(m.Delivered), stamp(m.Dropped), m.Error, m.ID)
		return err
	})
}

// SilenceRow is a time for which alerts are held back.
type SilenceRow struct {
	ID                int64
	Begin, End, Ended time.Time // Ended: when somebody ended it; zero: nobody did
	Body              json.RawMessage
}

// AddSilence keeps a silence and returns its number.
func (s *Store) AddSilence(ctx context.Context, r SilenceRow) (id int64, err error) {
	err = s.change(ctx, "keep a silence", func(ctx context.Context, tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx, "INSERT INTO silences (begins, ends, ended, body) VALUES (?,?,0,?)", stamp(r.Begin), stamp(r.End), string(r.Body))
		if err != nil {
			return err
		}
		id, err = res.LastInsertId()
		return err
	})
	return id, err
}

// EndSilence ends a silence that is not over; ErrNotFound: there is none of that number.
func (s *Store) EndSilence(ctx context.Context, id int64, at time.Time) error {
	return s.change(ctx, "end a silence", func(ctx context.Context, tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx, "UPDATE silences SET ended = ?1 WHERE id = ?2 AND ended = 0 AND ends > ?1", stamp(at), id)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return fmt.Errorf("silence %d: %w", id, errOr(err, ErrNotFound))
		}
		return nil
	})
}

func errOr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// Silences returns those that were not over at a moment, the newest first.
func (s *Store) Silences(ctx context.Context, at time.Time) (list []SilenceRow, err error) {
	err = s.each(ctx, "list silences", func(rows *sql.Rows) error {
		var r SilenceRow
		var begin, end, ended int64
		var body string
		if err := rows.Scan(&r.ID, &begin, &end, &ended, &body); err != nil {
			return err
		}
		r.Begin, r.End, r.Ended, r.Body = fromStamp(begin), fromStamp(end), fromStamp(ended), json.RawMessage(body)
		list = append(list, r)
		return nil
	}, "SELECT id, begins, ends, ended, body FROM silences WHERE ends > ?1 AND (ended = 0 OR ended > ?1) ORDER BY id DESC LIMIT 1000", stamp(at))
	return list, err
}

// AckRow is that somebody knows of an alert.
type AckRow struct {
	Key string
	At  time.Time
	By  string
}

// AddAck notes that somebody knows of an alert.
func (s *Store) AddAck(ctx context.Context, r AckRow) error {
	return s.change(ctx, "keep an acknowledgement", func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT OR IGNORE INTO acks (key, at, who) VALUES (?,?,?)", r.Key, stamp(r.At), r.By)
		return err
	})
}

// Acks returns what was acknowledged since a moment.
func (s *Store) Acks(ctx context.Context, since time.Time) (list []AckRow, err error) {
	err = s.each(ctx, "list acknowledgements", func(rows *sql.Rows) error {
		var r AckRow
		var at int64
		err := rows.Scan(&r.Key, &at, &r.By)
		r.At = fromStamp(at)
		list = append(list, r)
		return err
	}, "SELECT key, at, who FROM acks WHERE at >= ? ORDER BY at", stamp(since))
	return list, err
}
