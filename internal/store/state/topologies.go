package state

import (
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// TopologyRow is what a replication topology looked like for some time.
type TopologyRow struct {
	ID          int64
	Run         time.Time // when the process began that saw it
	First, Last time.Time // between these it was seen so
	Words       []string  // what changed, from the one before it
	Body        []byte    // JSON
}

// The bounds of what is kept of topologies.
const (
	mostTopologies      = 20_000
	mostTopologiesBytes = 64 << 20
	maxTopology         = 64 << 20 // bytes of one, unpacked
)

// AddTopology stores how a topology looks from now on. The one before it was seen until seen. What is older than oldest, or too much, is forgotten.
func (s *Store) AddTopology(ctx context.Context, before int64, seen time.Time, r TopologyRow, oldest time.Time) (id int64, err error) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(r.Body); err != nil {
		return 0, fmt.Errorf("store a topology: %w", err)
	}
	if err := z.Close(); err != nil {
		return 0, fmt.Errorf("store a topology: %w", err)
	}
	words, err := json.Marshal(r.Words)
	if err != nil {
		return 0, fmt.Errorf("store a topology: %w", err)
	}
	err = s.change(ctx, "store a topology", func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `UPDATE topologies SET last = max(last, ?) WHERE id = ?`, stamp(seen), before); err != nil {
			return err
		}
		done, err := tx.ExecContext(ctx, `INSERT INTO topologies (run, first, last, words, body) VALUES (?,?,?,?,?)`, stamp(r.Run), stamp(r.First), stamp(r.Last), string(words), packed.Bytes())
		if err != nil {
			return err
		}
		if id, err = done.LastInsertId(); err != nil {
			return err
		}
		if _, err = tx.ExecContext(ctx, `DELETE FROM topologies WHERE id != ? AND (id <= ? - ? OR last < ?)`, id, id, mostTopologies, stamp(oldest)); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM topologies WHERE id <= (SELECT max(id) FROM (SELECT id, sum(length(body)) OVER (ORDER BY id DESC) AS size FROM topologies) WHERE size > ?)`, mostTopologiesBytes)
		return err
	})
	return id, err
}

// SawTopology notes that a topology was still so.
func (s *Store) SawTopology(ctx context.Context, id int64, seen time.Time) error {
	return s.change(ctx, "note a topology", func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE topologies SET last = max(last, ?) WHERE id = ?`, stamp(seen), id)
		return err
	})
}

// TopologyAt is what the topology looked like at a time, as it was first seen before it, and the next one; nil where there is none.
func (s *Store) TopologyAt(ctx context.Context, at time.Time) (row, next *TopologyRow, err error) {
	one := func(query string) (out *TopologyRow, err error) {
		err = s.each(ctx, "read a topology", func(r *sql.Rows) error {
			out = new(TopologyRow)
			var packed []byte
			if err := out.scan(r, &packed); err != nil {
				return err
			}
			z, err := gzip.NewReader(bytes.NewReader(packed))
			if err != nil {
				return err
			}
			out.Body, err = io.ReadAll(io.LimitReader(z, maxTopology))
			return err
		}, query, stamp(at))
		return out, err
	}
	if row, err = one(`SELECT id, run, first, last, words, body FROM topologies WHERE first <= ? ORDER BY first DESC, id DESC LIMIT 1`); err != nil {
		return nil, nil, err
	}
	next, err = one(`SELECT id, run, first, last, words, body FROM topologies WHERE first > ? ORDER BY first, id LIMIT 1`)
	return row, next, err
}

// Topologies are those of a time, the newest first, without their bodies: those that were seen at some moment of it, at most limit.
func (s *Store) Topologies(ctx context.Context, from, to time.Time, limit int) (out []TopologyRow, err error) {
	err = s.each(ctx, "list topologies", func(r *sql.Rows) error {
		var t TopologyRow
		err := t.scan(r)
		out = append(out, t)
		return err
	}, `SELECT id, run, first, last, words FROM topologies WHERE last >= ? AND first <= ? ORDER BY first DESC, id DESC LIMIT ?`, stamp(from), stamp(to), limit)
	return out, err
}

func (t *TopologyRow) scan(r *sql.Rows, also ...any) error {
	var run, first, last int64
	var words string
	if err := r.Scan(append([]any{&t.ID, &run, &first, &last, &words}, also...)...); err != nil {
		return err
	}
	t.Run, t.First, t.Last = fromStamp(run), fromStamp(first), fromStamp(last)
	return json.Unmarshal([]byte(words), &t.Words)
}
