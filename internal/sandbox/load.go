package sandbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rissodb/risso/internal/delay"
)

// LoadOptions say how much load to put on a sandbox.
type LoadOptions struct {
	Connections int           // that write to the primary; 4 when zero. Each node has one reader besides
	Rate        float64       // transactions a second on the primary, on average; 80 when zero
	Duration    time.Duration // 0: until the context ends
}

// LoadStats counts what a Load did. It may be read while it runs.
type LoadStats struct{ Transactions, Errors atomic.Int64 }

// The shop that a load keeps: small tables, a hot row here and there, some work on disk.
const loadSchema = "risso_shop"

var loadTables = []string{
	"CREATE DATABASE IF NOT EXISTS " + loadSchema,
	"CREATE TABLE IF NOT EXISTS " + loadSchema + ".product (id INT PRIMARY KEY, name VARCHAR(60) NOT NULL, stock INT NOT NULL, sold INT NOT NULL) ENGINE=InnoDB",
	"CREATE TABLE IF NOT EXISTS " + loadSchema + ".orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, customer INT NOT NULL, made DATETIME NOT NULL, total DECIMAL(10,2) NOT NULL, note TEXT, KEY customer (customer)) ENGINE=InnoDB",
}

const (
	loadProducts  = 2000
	loadCustomers = 5000
	loadKeep      = 200_000 // orders; older ones are deleted
)

// Load puts a shop's load on a sandbox: orders on the primary in waves of about a minute, a reader on
// every node, now and then a heavy report, so that every chart has something to show. It returns when its
// time is over or ctx ends. Servers that go away in the meantime are waited for.
func (s *Sandbox) Load(ctx context.Context, o LoadOptions, stats *LoadStats) error {
	if o.Connections <= 0 {
		o.Connections = 4
	}
	if o.Rate <= 0 {
		o.Rate = 80
	}
	if stats == nil {
		stats = new(LoadStats)
	}
	if o.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.Duration)
		defer cancel()
	}
	primary, err := s.Primary().DB()
	if err != nil {
		return err
	}
	defer primary.Close()
	primary.SetMaxIdleConns(o.Connections)
	if err := fillShop(ctx, primary); err != nil {
		return fmt.Errorf("prepare the load: %w", err)
	}
	g, ctx := errgroup.WithContext(ctx)
	for i := range o.Connections {
		g.Go(func() error {
			return pace(ctx, o.Rate/float64(o.Connections), i, stats, func(ctx context.Context, r *rand.Rand) error { return order(ctx, primary, r) })
		})
	}
	for _, n := range s.Nodes {
		db, err := n.DB()
		if err != nil {
			return err
		}
		defer db.Close()
		g.Go(func() error {
			return pace(ctx, o.Rate/2, 0, stats, func(ctx context.Context, r *rand.Rand) error { return browse(ctx, db, r) })
		})
	}
	return g.Wait()
}

func fillShop(ctx context.Context, db *sql.DB) error {
	for _, q := range loadTables {
		if _, err := db.ExecContext(ctx, q); err != nil {
			return err
		}
	}
	rows := make([]string, 0, loadProducts)
	for i := range loadProducts {
		rows = append(rows, fmt.Sprintf("(%d,'product %d',1000000,0)", i+1, i+1))
	}
	_, err := db.ExecContext(ctx, "INSERT IGNORE INTO "+loadSchema+".product VALUES "+strings.Join(rows, ","))
	return err
}

// pace calls f at a rate that swells and ebbs: each worker sleeps for a random time around its share.
func pace(ctx context.Context, rate float64, worker int, stats *LoadStats, f func(context.Context, *rand.Rand) error) error {
	r := rand.New(rand.NewPCG(uint64(worker), uint64(time.Now().UnixNano())))
	for {
		wave := 1 + 0.6*math.Sin(float64(time.Now().UnixMilli())/1000/60*2*math.Pi)
		sleep := time.Duration(r.ExpFloat64() / (rate * wave) * float64(time.Second))
		if delay.For(ctx, min(sleep, 5*time.Second)) != nil {
			return nil
		}
		switch err := f(ctx, r); {
		case err == nil:
			stats.Transactions.Add(1)
		case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), ctx.Err() != nil:
			return nil
		default: // a server that was stopped, or a deadlock: both belong to a rehearsal
			stats.Errors.Add(1)
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// order buys some products: reads, updates of rows that others want too, one insert, a commit.
func order(ctx context.Context, db *sql.DB, r *rand.Rand) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	total := 0
	for range 1 + r.IntN(4) {
		id := 1 + int(math.Abs(r.NormFloat64())*loadProducts/8)%loadProducts
		var stock int
		if err := tx.QueryRowContext(ctx, "SELECT stock FROM "+loadSchema+".product WHERE id = ?", id).Scan(&stock); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "UPDATE "+loadSchema+".product SET stock = stock - 1, sold = sold + 1 WHERE id = ?", id); err != nil {
			return err
		}
		total += id
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO "+loadSchema+".orders (customer, made, total, note) VALUES (?, NOW(), ?, ?)",
		1+r.IntN(loadCustomers), float64(total)/7, strings.Repeat("thank you ", r.IntN(40))); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	if r.IntN(400) == 0 {
		_, err = db.ExecContext(ctx, "DELETE FROM "+loadSchema+".orders WHERE id < (SELECT m FROM (SELECT MAX(id) - ? AS m FROM "+loadSchema+".orders) x) LIMIT 2000", loadKeep)
	}
	return err
}

// browse reads as a shop's visitors do, and rarely makes a report with sorting and a temporary table.
func browse(ctx context.Context, db *sql.DB, r *rand.Rand) error {
	query, args := "SELECT id, made, total FROM "+loadSchema+".orders WHERE customer = ? ORDER BY id DESC LIMIT 10", []any{1 + r.IntN(loadCustomers)}
	if r.IntN(200) == 0 {
		query, args = "SELECT customer, COUNT(*) c, SUM(total), MAX(LEFT(note, 20)) FROM "+loadSchema+".orders GROUP BY customer ORDER BY c DESC LIMIT 20", nil
	}
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() { // the rows are read, as a client would
	}
	return rows.Err()
}
