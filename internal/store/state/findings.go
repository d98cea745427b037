package state

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
)

// FindingRecord is a finding as it is kept for good.
type FindingRecord struct {
	ID       int64           `json:"record"`             // its number
	Instance string          `json:"instance"`           // ID of the server or host
	First    fleet.Finding   `json:"first"`              // as it was first told
	Worst    fleet.Finding   `json:"worst"`              // as it was at its worst
	WorstAt  time.Time       `json:"worst_at"`           // when it was at its worst
	Told     time.Time       `json:"told"`               // when it was first told
	Seen     time.Time       `json:"seen"`               // when it was last known to hold
	Ended    time.Time       `json:"ended,omitzero"`     // zero: it holds
	Unseen   bool            `json:"unseen,omitempty"`   // it ended at some moment after seen, in which nobody looked
	Evidence json.RawMessage `json:"evidence,omitempty"` // what was seen at its worst
	Closed   int64           `json:"-"`                  // ascending, in the order in which findings were ended; 0: it holds
}

// Began is when the finding began, or where nobody knows that, when it was first told.
func (r FindingRecord) Began() time.Time {
	if r.First.Since.IsZero() {
		return r.Told
	}
	return r.First.Since
}

// Look is one look at an instance: all findings that hold at that moment.
type Look struct {
	Instance string
	At       time.Time
	Findings []fleet.Finding
	Evidence map[string]json.RawMessage // by FindingKey; what is not there is kept as it was
	Unseen   map[string]bool            // by FindingKey: what ended at some moment in which nobody looked
	Last     map[string]time.Time       // by FindingKey: when it last held; what is not there: at At
	Rules    bool                       // it is about what the user's rules say, and nothing else; else about all else
}

// last is when a finding last held.
func (l Look) last(f fleet.Finding) time.Time {
	if t, ok := l.Last[FindingKey(f)]; ok {
		return t
	}
	return l.At
}

// FindingKey tells the findings of one instance apart.
func FindingKey(f fleet.Finding) string { return f.ID + "\x00" + f.Subject }

// KeepFindings brings the records of an instance up to a look: it opens what is new, keeps what got worse, and closes what no longer
// holds, each with its event, in one transaction. The same look twice changes nothing.
func (s *Store) KeepFindings(ctx context.Context, l Look) error {
	return s.change(ctx, "keep findings of "+l.Instance, func(ctx context.Context, tx *sql.Tx) error {
		open, err := openFindings(ctx, tx, l.Instance)
		if err != nil {
			return err
		}
		holds := map[string]bool{}
		for _, f := range l.Findings {
			key := FindingKey(f)
			if holds[key] {
				continue
			}
			holds[key] = true
			if r, ok := open[key]; ok {
				err = holdFinding(ctx, tx, l, r, f)
			} else {
				err = openFinding(ctx, tx, l, f)
			}
			if err != nil {
				return err
			}
		}
		for key, r := range open {
			if !holds[key] && OfRules(r.First.ID) == l.Rules {
				if err := closeFinding(ctx, tx, l, r); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func openFindings(ctx context.Context, tx *sql.Tx, instance string) (map[string]FindingRecord, error) {
	rows, err := tx.QueryContext(ctx, "SELECT "+findingColumns+" FROM findings WHERE instance = ? AND ended = 0", instance)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	open := map[string]FindingRecord{}
	for rows.Next() {
		r, err := scanFinding(rows)
		if err != nil {
			return nil, err
		}
		open[FindingKey(r.First)] = r
	}
	return open, rows.Err()
}

func openFinding(ctx context.Context, tx *sql.Tx, l Look, f fleet.Finding) error {
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO findings (instance, finding, subject, severity, began, told, seen, ended, unseen, first, worst, worst_at, evidence)
		VALUES (?1,?2,?3,?4,?5,?6,?6,0,0,?7,?7,?6,?8)`,
		l.Instance, f.ID, f.Subject, int(f.Severity), stamp(f.Since), stamp(l.At), string(text), string(l.Evidence[FindingKey(f)]))
	if err != nil || hasEvents(f.ID) {
		return err
	}
	_, err = addEvent(ctx, tx, fleet.Event{Time: cmp.Or(f.Since, l.At), Instance: l.Instance, Kind: fleet.EventFinding, Severity: f.Severity, Subject: f.ID, New: findingOpen, Text: f.What})
	return err
}

// hasEvents says whether a finding has other events: that a server is down has fleet.EventDown and fleet.EventUp, that it was restarted
// fleet.EventRestart, and what is wrong with its backups fleet.EventProtect; what advice found has those of its looks.
func hasEvents(id string) bool {
	return id == "server.down" || id == "server.hung" || id == "server.restarted" || strings.HasPrefix(id, "protect.") || strings.HasPrefix(id, fleet.AdvicePrefix)
}

// findingOpen is what an event has as New where a finding began, and as Old where it ended.
const findingOpen = "open"

// holdFinding notes that an open finding still holds, and how it is if it is worse than before, or about something else.
func holdFinding(ctx context.Context, tx *sql.Tx, l Look, r FindingRecord, f fleet.Finding) error {
	evidence := l.Evidence[FindingKey(f)]
	if !f.Worse(r.Worst) && !f.Other(r.Worst) && (evidence == nil || r.Evidence != nil) {
		_, err := tx.ExecContext(ctx, "UPDATE findings SET seen = max(seen, ?) WHERE id = ?", stamp(l.last(f)), r.ID)
		return err
	}
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	if evidence == nil {
		evidence = r.Evidence
	}
	_, err = tx.ExecContext(ctx, "UPDATE findings SET seen = max(seen, ?1), severity = max(severity, ?2), worst = ?3, worst_at = ?1, evidence = ?4 WHERE id = ?5",
		stamp(l.At), int(f.Severity), string(text), string(evidence), r.ID)
	word := "worse: "
	if f.Other(r.Worst) {
		word = "now: "
	}
	if err != nil || f.Severity <= r.Worst.Severity && !f.Other(r.Worst) || hasEvents(f.ID) {
		return err
	}
	_, err = addEvent(ctx, tx, fleet.Event{Time: l.At, Instance: l.Instance, Kind: fleet.EventFinding, Severity: f.Severity, Subject: f.ID, Old: findingOpen, New: findingOpen, Text: word + f.What})
	return err
}

func closeFinding(ctx context.Context, tx *sql.Tx, l Look, r FindingRecord) error {
	unseen, ended := l.Unseen[FindingKey(r.First)], l.At
	if !unseen {
		ended = l.last(r.First)
	}
	_, err := tx.ExecContext(ctx, "UPDATE findings SET ended = ?, unseen = ?, closed = (SELECT max(closed) FROM findings) + 1 WHERE id = ?", stamp(ended), unseen, r.ID)
	if err != nil || hasEvents(r.First.ID) {
		return err
	}
	text := "ended after " + digits.Span(ended.Sub(r.Began())) + ": " + r.Worst.What
	if unseen {
		text = fmt.Sprintf("ended while Risso did not look, after %s: %s", r.Seen.Local().Format(time.DateTime), r.Worst.What)
	}
	_, err = addEvent(ctx, tx, fleet.Event{Time: ended, Instance: l.Instance, Kind: fleet.EventFinding, Subject: r.First.ID, Old: findingOpen, Text: text})
	return err
}

const findingColumns = "id, instance, began, told, seen, ended, unseen, first, worst, worst_at, evidence, closed"

func scanFinding(rows *sql.Rows) (r FindingRecord, err error) {
	var began, told, seen, ended, worstAt int64
	var first, worst, evidence string
	if err := rows.Scan(&r.ID, &r.Instance, &began, &told, &seen, &ended, &r.Unseen, &first, &worst, &worstAt, &evidence, &r.Closed); err != nil {
		return r, err
	}
	if err := json.Unmarshal([]byte(first), &r.First); err != nil {
		return r, fmt.Errorf("finding %d: %w", r.ID, err)
	}
	if err := json.Unmarshal([]byte(worst), &r.Worst); err != nil {
		return r, fmt.Errorf("finding %d: %w", r.ID, err)
	}
	r.Told, r.Seen, r.Ended, r.WorstAt = fromStamp(told), fromStamp(seen), fromStamp(ended), fromStamp(worstAt)
	if evidence != "" {
		r.Evidence = json.RawMessage(evidence)
	}
	return r, nil
}

// FindingQuery picks kept findings. What is left zero does not narrow.
type FindingQuery struct {
	Instances []string
	From, To  time.Time      // those that held at some moment from From on, and before To
	Open      bool           // only those that hold
	IDs       []string       // their stable words
	Severity  fleet.Severity // at least that, at their worst
	Limit     int            // the newest so many; 0 means 1,000, at most 10,000
}

// NewestClosed is the number of the finding that ended last; 0: none did.
func (s *Store) NewestClosed(ctx context.Context) (closed int64, err error) {
	err = s.each(ctx, "find the finding that ended last", func(rows *sql.Rows) error { return rows.Scan(&closed) }, "SELECT coalesce(max(closed), 0) FROM findings")
	return closed, err
}

// FindingsAfter returns the findings that hold, and those that were ended after the one of that number, in the order in which they were
// told. It ends with the newest number that there is.
func (s *Store) FindingsAfter(ctx context.Context, closed int64) (list []FindingRecord, newest int64, err error) {
	newest = closed
	err = s.each(ctx, "list findings that hold", func(rows *sql.Rows) error {
		r, err := scanFinding(rows)
		list, newest = append(list, r), max(newest, r.Closed)
		return err
	}, "SELECT "+findingColumns+" FROM findings WHERE closed = 0 OR closed > ? ORDER BY told, id", closed)
	return list, newest, err
}

// spanOf sorts findings by how long they lasted, in microseconds: up to a day, two, four … 512, and longer; -1: they hold. What was there
// in a range was told so long before it at the most, which bounds what is looked at of each class. It is that of the index findings_by_span:
// another one wants a migration.
const spanOf = `CASE WHEN ended = 0 THEN -1 WHEN ended - told <= 86400000000 THEN 0 WHEN ended - told <= 172800000000 THEN 1
	WHEN ended - told <= 345600000000 THEN 2 WHEN ended - told <= 691200000000 THEN 3 WHEN ended - told <= 1382400000000 THEN 4
	WHEN ended - told <= 2764800000000 THEN 5 WHEN ended - told <= 5529600000000 THEN 6 WHEN ended - told <= 11059200000000 THEN 7
	WHEN ended - told <= 22118400000000 THEN 8 WHEN ended - told <= 44236800000000 THEN 9 ELSE 10 END`

const (
	holds       = -1 // the spanOf of what holds
	longest     = 10 // and of what lasted longer than all others
	shortestMax = 86400000000
)

// heldSince is a query for the ids of findings that held at a moment, or were told from then until another.
func heldSince(from, to int64) (query string, args []any) {
	var parts []string
	for span := holds; span <= longest; span++ {
		part := "SELECT id FROM findings WHERE " + spanOf + fmt.Sprintf(" = %d AND told < ?", span)
		args = append(args, to)
		if span > holds {
			part += " AND ended >= ?"
			args = append(args, from)
		}
		if span > holds && span < longest {
			part += " AND told >= ?"
			args = append(args, from-shortestMax<<span)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " UNION ALL "), args
}

// before is a time as an upper bound; none where it is zero.
func before(t time.Time) int64 {
	if t.IsZero() {
		return math.MaxInt64
	}
	return stamp(t)
}

// Findings returns the newest findings that fit, by the time they were told.
func (s *Store) Findings(ctx context.Context, q FindingQuery) ([]FindingRecord, error) {
	var where []string
	var args []any
	if n := len(q.Instances); n > 0 {
		where = append(where, "instance IN (?"+strings.Repeat(",?", n-1)+")")
		for _, i := range q.Instances {
			args = append(args, i)
		}
	}
	switch {
	case !q.From.IsZero():
		query, bounds := heldSince(stamp(q.From), before(q.To))
		where, args = append(where, "id IN ("+query+")"), append(args, bounds...)
	case !q.To.IsZero():
		where, args = append(where, "told < ?"), append(args, stamp(q.To))
	}
	if q.Open {
		where = append(where, "ended = 0")
	}
	if n := len(q.IDs); n > 0 {
		where = append(where, "finding IN (?"+strings.Repeat(",?", n-1)+")")
		for _, id := range q.IDs {
			args = append(args, id)
		}
	}
	if q.Severity > 0 {
		where, args = append(where, "severity >= ?"), append(args, int(q.Severity))
	}
	query := "SELECT " + findingColumns + " FROM findings"
	if len(where) > 0 {
		query += " WHERE " + strings.Join(where, " AND ")
	}
	limit := q.Limit
	if limit <= 0 {
		limit = 1000
	}
	var out []FindingRecord
	err := s.each(ctx, "list findings", func(rows *sql.Rows) error {
		r, err := scanFinding(rows)
		out = append(out, r)
		return err
	}, query+fmt.Sprintf(" ORDER BY told DESC, id DESC LIMIT %d", min(limit, 10000)), args...)
	return out, err
}
