package state

import (
	"context"
	"database/sql"
	"hash/fnv"
	"slices"
	"strings"
	"time"
)

// VariableChange is a global variable that has another value than before.
type VariableChange struct{ Name, Old, New string }

// SetVariables stores all global variables of an instance as they are at a time,
// and returns those that changed, by name. The first sight of a variable is no
// change, and neither is one that a new version no longer has, or has again: the
// map must hold all of them. Variables that are a state and no setting
// (gtid_executed, timestamp) change all the time; the caller leaves them out.
func (s *Store) SetVariables(ctx context.Context, instance string, at time.Time, now map[string]string) ([]VariableChange, error) {
	sum := digest(now)
	s.mu.Lock()
	same := s.seen[instance] == sum
	s.mu.Unlock()
	if same {
		return nil, nil // nearly always, at no cost
	}
	var changes []VariableChange
	err := s.change(ctx, "store variables of "+instance, func(ctx context.Context, tx *sql.Tx) error {
		old, err := storedVariables(ctx, tx, instance)
		if err != nil {
			return err
		}
		changes, err = writeVariables(ctx, tx, instance, stamp(at), old, now)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.seen[instance] = sum
	s.mu.Unlock()
	return changes, nil
}

// digest is a sum over the variables that does not depend on their order.
func digest(m map[string]string) uint64 {
	sum := uint64(len(m)) + 1
	for name, value := range m {
		h := fnv.New64a()
		h.Write([]byte(name))
		h.Write([]byte{0})
		h.Write([]byte(value))
		sum += h.Sum64()
	}
	return sum
}

func storedVariables(ctx context.Context, tx *sql.Tx, instance string) (map[string]sql.NullString, error) {
	rows, err := tx.QueryContext(ctx, `SELECT name, value FROM variables WHERE instance=?`, instance)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	old := map[string]sql.NullString{}
	for rows.Next() {
		var name string
		var value sql.NullString
		if err := rows.Scan(&name, &value); err != nil {
			return nil, err
		}
		old[name] = value
	}
	return old, rows.Err()
}

func writeVariables(ctx context.Context, tx *sql.Tx, instance string, at int64, old map[string]sql.NullString, now map[string]string) ([]VariableChange, error) {
	set, err := tx.PrepareContext(ctx, `INSERT INTO variables (instance, name, value, seen) VALUES (?1,?2,?3,?4)
		ON CONFLICT (instance, name) DO UPDATE SET value=?3`)
	if err != nil {
		return nil, err
	}
	defer set.Close()
	note := func(name string, before, after sql.NullString) error {
		// Two changes within a microsecond are one.
		_, err := tx.ExecContext(ctx, `INSERT INTO variable_changes (instance, name, time, old, new) VALUES (?1,?2,?3,?4,?5)
			ON CONFLICT (instance, name, time) DO UPDATE SET new=?5`, instance, name, at, before, after)
		return err
	}
	var changes []VariableChange
	for name, value := range now {
		before, known := old[name]
		after := sql.NullString{String: value, Valid: true}
		if known && before == after {
			continue
		}
		if _, err := set.ExecContext(ctx, instance, name, after, at); err != nil {
			return nil, err
		}
		if !known {
			continue
		}
		if err := note(name, before, after); err != nil {
			return nil, err
		}
		if before.Valid {
			changes = append(changes, VariableChange{Name: name, Old: before.String, New: value})
		}
	}
	for name, before := range old {
		if _, still := now[name]; still || !before.Valid {
			continue
		}
		if _, err := set.ExecContext(ctx, instance, name, sql.NullString{}, at); err != nil {
			return nil, err
		}
		if err := note(name, before, sql.NullString{}); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(changes, func(a, b VariableChange) int { return strings.Compare(a.Name, b.Name) })
	return changes, nil
}

// Variable is a global variable at some time.
type Variable struct {
	Name    string
	Value   string
	Changed time.Time // the last change before that time; zero when none was seen
}

// Variables returns the global variables of an instance as they were at a time,
// by name; the zero time means now. What was not yet seen then is left out.
func (s *Store) Variables(ctx context.Context, instance string, at time.Time) ([]Variable, error) {
	if at.IsZero() {
		at = time.UnixMicro(1<<62 - 1)
	}
	var out []Variable
	// The value at a time is what the first change after it replaced, or what
	// is there now if there is none.
	err := s.each(ctx, "read variables of "+instance, func(r *sql.Rows) error {
		var v Variable
		var value sql.NullString
		var changed sql.NullInt64
		if err := r.Scan(&v.Name, &value, &changed); err != nil {
			return err
		}
		if value.Valid {
			v.Value, v.Changed = value.String, fromStamp(changed.Int64)
			out = append(out, v)
		}
		return nil
	}, `SELECT v.name,
			CASE WHEN later.time IS NULL THEN v.value ELSE later.old END,
			(SELECT max(c.time) FROM variable_changes c WHERE c.instance = v.instance AND c.name = v.name AND c.time <= ?2)
		FROM variables v
		LEFT JOIN variable_changes later ON later.instance = v.instance AND later.name = v.name
			AND later.time = (SELECT min(c.time) FROM variable_changes c WHERE c.instance = v.instance AND c.name = v.name AND c.time > ?2)
		WHERE v.instance = ?1 AND v.seen <= ?2
		ORDER BY v.name`, instance, stamp(at))
	return out, err
}
