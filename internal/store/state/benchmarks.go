package state

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"time"
)

// Benchmark is a run that somebody sent, as it is listed.
type Benchmark struct {
	ID          int64     `json:"id"`
	Stored      time.Time `json:"stored"`
	Began       time.Time `json:"began"` // the warm-up, if there was one
	Ended       time.Time `json:"ended"`
	Instance    string    `json:"instance"` // empty: the server is not watched
	Workload    string    `json:"workload"`
	Server      string    `json:"server"` // its address, as the run had it
	Version     string    `json:"version"`
	Threads     int       `json:"threads"`
	Rate        float64   `json:"rate"` // transactions a second that were asked for; 0: as many as possible
	Throughput  float64   `json:"transactions_per_second"`
	Queries     float64   `json:"queries_per_second"`
	P95         float64   `json:"p95"` // seconds
	P99         float64   `json:"p99"`
	Errors      int64     `json:"errors"`
	Outage      float64   `json:"outage"` // seconds in all
	Interrupted bool      `json:"interrupted"`
}

// The bounds of what is kept.
const (
	mostBenchmarks = 10_000
	maxBenchmark   = 64 << 20 // bytes of one result, unpacked
)

const benchmarkColumns = `id, stored, began, ended, instance, workload, server, version, threads, rate, throughput, queries, p95, p99, errors, outage, interrupted`

// AddBenchmark stores a run with its whole result and returns its id; that of the first time if the same was sent before,
// as fresh reports.
func (s *Store) AddBenchmark(ctx context.Context, b Benchmark, result []byte) (id int64, fresh bool, err error) {
	if len(result) > maxBenchmark {
		return 0, false, fmt.Errorf("store a benchmark: %d bytes are too many", len(result))
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(result); err != nil {
		return 0, false, fmt.Errorf("store a benchmark: %w", err)
	}
	if err := z.Close(); err != nil {
		return 0, false, fmt.Errorf("store a benchmark: %w", err)
	}
	hash := sha256.Sum256(result)
	err = s.change(ctx, "store a benchmark", func(ctx context.Context, tx *sql.Tx) error {
		fresh = false
		err := tx.QueryRowContext(ctx, `SELECT id FROM benchmarks WHERE hash = ?`, hash[:]).Scan(&id)
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		r, err := tx.ExecContext(ctx, `INSERT INTO benchmarks (stored, began, ended, instance, workload, server, version, threads, rate, throughput, queries, p95, p99, errors, outage, interrupted, hash, result)
  VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`, stamp(time.Now()), stamp(b.Began), stamp(b.Ended), b.Instance, b.Workload, b.Server, b.Version, b.Threads, b.Rate, b.Throughput, b.Queries,
			b.P95, b.P99, b.Errors, b.Outage, b.Interrupted, hash[:], packed.Bytes())
		if err != nil {
			return err
		}
		if id, err = r.LastInsertId(); err != nil {
			return err
		}
		fresh = true
		_, err = tx.ExecContext(ctx, `DELETE FROM benchmarks WHERE id <= ? - ?`, id, mostBenchmarks)
		return err
	})
	return id, fresh, err
}

// Benchmarks lists runs, those that began last first; of one instance, or of all when it is empty. Limit is at most 1,000.
func (s *Store) Benchmarks(ctx context.Context, instance string, limit int) ([]Benchmark, error) {
	query, args := `SELECT `+benchmarkColumns+` FROM benchmarks`, []any{}
	if instance != "" {
		query, args = query+` WHERE instance = ?`, append(args, instance)
	}
	if limit <= 0 || limit > 1000 {
		limit = 1000
	}
	out := []Benchmark{}
	err := s.each(ctx, "list benchmarks", func(r *sql.Rows) error {
		var b Benchmark
		if err := b.scan(r); err != nil {
			return err
		}
		out = append(out, b)
		return nil
	}, query+` ORDER BY began DESC, id DESC LIMIT ?`, append(args, limit)...)
	return out, err
}

func (b *Benchmark) scan(r *sql.Rows, also ...any) error {
	var stored, began, ended int64
	err := r.Scan(append([]any{&b.ID, &stored, &began, &ended, &b.Instance, &b.Workload, &b.Server, &b.Version, &b.Threads, &b.Rate, &b.Throughput, &b.Queries,
		&b.P95, &b.P99, &b.Errors, &b.Outage, &b.Interrupted}, also...)...)
	b.Stored, b.Began, b.Ended = fromStamp(stored), fromStamp(began), fromStamp(ended)
	return err
}

// Benchmark returns one run with its whole result; ErrNotFound when there is none of that id.
func (s *Store) Benchmark(ctx context.Context, id int64) (b Benchmark, result []byte, err error) {
	err = s.each(ctx, "read a benchmark", func(r *sql.Rows) error {
		var packed []byte
		if err := b.scan(r, &packed); err != nil {
			return err
		}
		z, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			return err
		}
		result, err = io.ReadAll(io.LimitReader(z, maxBenchmark))
		return err
	}, `SELECT `+benchmarkColumns+`, result FROM benchmarks WHERE id = ?`, id)
	if err == nil && result == nil {
		err = fmt.Errorf("benchmark %d: %w", id, ErrNotFound)
	}
	return b, result, err
}

// RemoveBenchmark forgets a run; ErrNotFound when there is none of that id.
func (s *Store) RemoveBenchmark(ctx context.Context, id int64) error {
	return s.change(ctx, "remove a benchmark", func(ctx context.Context, tx *sql.Tx) error {
		r, err := tx.ExecContext(ctx, `DELETE FROM benchmarks WHERE id = ?`, id)
		if err != nil {
			return err
		}
		if n, err := r.RowsAffected(); err != nil || n > 0 {
			return err
		}
		return fmt.Errorf("benchmark %d: %w", id, ErrNotFound)
	})
}
