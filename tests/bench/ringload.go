package main

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/sandbox"
)

// What the load of section ring is made of.
const (
	loadSessions = 50 // connections, idle ones included; of them
	loadWorkers  = 8  // work off the transactions
	loadRows     = 10000
)

// begin starts a steady load: so many transactions a second, come what may, of five statements each; sessions that run longer statements;
// every two seconds a row that another session waits for; two transactions that stay open and idle. None: idle connections only.
func begin(ctx context.Context, n *sandbox.Node, load ringLoad) (end func(), err error) {
	db, err := n.DB()
	if err != nil {
		return nil, err
	}
	db.SetMaxIdleConns(loadSessions)
	if err := prepareLoad(ctx, db); err != nil {
		db.Close()
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	conns := make([]*sql.Conn, loadSessions)
	end = func() {
		cancel()
		work.Wait()
		for _, c := range conns {
			if c != nil {
				c.Close() // an open transaction ends with it
			}
		}
		db.Close()
	}
	for i := range conns {
		if conns[i], err = db.Conn(ctx); err != nil {
			end()
			return nil, err
		}
	}
	if load.tps == 0 {
		return end, nil
	}
	due := make(chan struct{}, 1000)
	work.Go(func() {
		for t := time.NewTicker(time.Second / time.Duration(load.tps)); ctx.Err() == nil; {
			select {
			case <-t.C:
				select {
				case due <- struct{}{}:
				default: // the server is so far behind that it does not matter
				}
			case <-ctx.Done():
			}
		}
	})
	at := 0
	start := func(count int, f func(context.Context, *sql.Conn) error) {
		for range count {
			c := conns[at]
			at++
			work.Go(func() {
				for ctx.Err() == nil {
					_ = f(ctx, c) // a deadlock or a lock wait that took too long is a part of the load
				}
			})
		}
	}
	start(loadWorkers, func(ctx context.Context, c *sql.Conn) error {
		select {
		case <-due:
			return transaction(ctx, c)
		case <-ctx.Done():
			return nil
		}
	})
	start(load.slow, reports)
	start(1, holdRow)
	start(1, func(ctx context.Context, c *sql.Conn) error {
		return statements(ctx, c, "UPDATE shop.orders SET note = 'wanted' WHERE id = 1", "DO SLEEP(0.2)")
	})
	start(2, forget)
	return end, nil
}

// holdRow keeps a row locked for a second of two.
func holdRow(ctx context.Context, c *sql.Conn) error {
	if err := statements(ctx, c, "BEGIN", "UPDATE shop.orders SET note = 'held' WHERE id = 1"); err != nil {
		return err
	}
	_ = pause(ctx, time.Second)
	if err := statements(ctx, c, "COMMIT"); err != nil {
		return err
	}
	return pause(ctx, time.Second)
}

// forget leaves a transaction open.
func forget(ctx context.Context, c *sql.Conn) error {
	if err := statements(ctx, c, "BEGIN", fmt.Sprintf("UPDATE shop.orders SET note = 'forgotten' WHERE id = %d", rand.IntN(1000)+loadRows-2000)); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func prepareLoad(ctx context.Context, db *sql.DB) error {
	return statements(ctx, db, "CREATE DATABASE IF NOT EXISTS shop",
		"CREATE TABLE IF NOT EXISTS shop.orders (id INT PRIMARY KEY, customer INT NOT NULL, status VARCHAR(20) NOT NULL, total DECIMAL(10,2) NOT NULL, note VARCHAR(200), KEY customer (customer))",
		fmt.Sprintf(`INSERT IGNORE INTO shop.orders WITH d (n) AS (SELECT 0 UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)
 SELECT a.n + 10 * b.n + 100 * c.n + 1000 * e.n + 1, (a.n + 10 * b.n + 100 * c.n) %% 500, 'open', 12.50, 'as it was ordered' FROM d a, d b, d c, d e LIMIT %d`, loadRows))
}

// transaction is one of a shop: it looks at a customer's orders and changes one.
func transaction(ctx context.Context, c *sql.Conn) error {
	customer, order := rand.IntN(500), rand.IntN(loadRows-3000)+10
	return statements(ctx, c, "BEGIN",
		fmt.Sprintf("SELECT id, customer, status, total, note FROM shop.orders WHERE customer = %d AND status IN ('open', 'paid', 'sent') ORDER BY id DESC LIMIT 10", customer),
		fmt.Sprintf("SELECT id, total FROM shop.orders WHERE id = %d", order),
		fmt.Sprintf("UPDATE shop.orders SET status = 'paid', total = total + %d.%02d, note = 'paid by card, number %d, for customer %d' WHERE id = %d", rand.IntN(90), rand.IntN(100), rand.IntN(1e9), customer, order),
		"COMMIT")
}

// reports runs statements one after the other that take 0.05 to 0.55 s, each with other literals: what a busy server is found doing.
func reports(ctx context.Context, c *sql.Conn) error {
	return statements(ctx, c, fmt.Sprintf(`SELECT MAX(SLEEP(%.2f)), o.id, o.customer, c.name, c.street, c.town, SUM(o.total) AS total, COUNT(*) AS n
 FROM shop.orders o JOIN (SELECT 1 AS id, 'customer %x' AS name, 'a street' AS street, 'a town' AS town) c ON 1
 WHERE o.status IN ('open', 'paid') AND o.id = %d AND c.name > '%x' GROUP BY o.id, o.customer, c.name, c.street, c.town ORDER BY total DESC LIMIT %d`,
		0.05+rand.Float64()/2, rand.Uint64(), rand.IntN(loadRows), rand.Uint64(), rand.IntN(100)))
}
