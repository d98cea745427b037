package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/rissodb/risso/internal/sandbox"
)

// trouble is something that goes wrong on purpose.
type trouble struct {
	name    string
	replica bool          // it happens on the replica, not the primary
	as      []string      // findings of which one must tell it
	lasts   time.Duration // from its begin to its end
	rings   bool          // somebody must be told
	make    func(ctx context.Context, v *victims) (end func(context.Context) error, err error)
}

// victims are the servers of one pair.
type victims struct {
	*sandbox.Sandbox
	kind             string
	primary, replica *sql.DB
}

func (v *victims) maria() bool { return v.kind == "mariadb" }

// troubles are those of a night, in their order.
func troubles() []trouble {
	return []trouble{
		{"global read lock", false, []string{"lock.global"}, 15 * time.Second, true, globalLock},
		{"global read lock of a second", false, []string{"lock.global"}, time.Second, false, globalLock},
		{"rows held by an idle transaction", false, []string{"lock.blocker"}, 45 * time.Second, true, rowLock},
		{"ALTER behind an open transaction", false, []string{"mdl.blocker"}, 45 * time.Second, true, metadataLock},
		{"all connections taken", false, []string{"conn.saturation"}, 20 * time.Second, true, crowd},
		{"replication stopped by a duplicate", true, []string{"repl.stopped"}, 25 * time.Second, true, duplicate},
		{"the replica became writable", true, []string{"repl.writable"}, 130 * time.Second, true, writable},
		{"the server hangs", false, []string{"server.hung", "server.down", "server.stall"}, 15 * time.Second, true, hang},
		{"the server crashed", true, []string{"server.down"}, 15 * time.Second, true, crash},
	}
}

// statements runs statements one after the other.
func statements(ctx context.Context, c interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}, list ...string) error {
	for _, q := range list {
		if _, err := c.ExecContext(ctx, q); err != nil {
			return fmt.Errorf("%s: %w", q, err)
		}
	}
	return nil
}

// held is a session that holds something, and others that wait for it.
type held struct {
	conn    *sql.Conn
	cancel  context.CancelFunc
	waiting sync.WaitGroup
}

// hold lets a session run statements and keep what they lock, while others run one statement each.
func hold(ctx context.Context, db *sql.DB, waiters int, wants string, holds ...string) (*held, error) {
	ctx, cancel := context.WithCancel(ctx)
	conn, err := db.Conn(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	h := &held{conn: conn, cancel: cancel}
	if err := statements(ctx, conn, holds...); err != nil {
		return nil, errors.Join(err, h.end(ctx))
	}
	for range waiters {
		h.waiting.Go(func() { _ = statements(ctx, db, wants) }) // may be ended before it has what it wants
	}
	return h, nil
}

// end lets go what is held, and waits for those that waited.
func (h *held) end(ctx context.Context, lets ...string) error {
	err := statements(ctx, h.conn, lets...)
	if len(lets) == 0 {
		h.cancel()
	}
	h.waiting.Wait()
	h.cancel()
	return errors.Join(err, h.conn.Close())
}

func globalLock(ctx context.Context, v *victims) (func(context.Context) error, error) {
	h, err := hold(ctx, v.primary, 3, "UPDATE night.t SET b = b + 1 WHERE a = 1", "FLUSH TABLES WITH READ LOCK")
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return h.end(ctx, "UNLOCK TABLES") }, nil
}

func rowLock(ctx context.Context, v *victims) (func(context.Context) error, error) {
	h, err := hold(ctx, v.primary, 4, "UPDATE night.t SET b = b + 1 WHERE a = 2", "BEGIN", "UPDATE night.t SET b = 0 WHERE a = 2")
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return h.end(ctx, "ROLLBACK") }, nil
}

func metadataLock(ctx context.Context, v *victims) (func(context.Context) error, error) {
	h, err := hold(ctx, v.primary, 1, "ALTER TABLE night.t COMMENT = 'changed at night'", "BEGIN", "SELECT COUNT(*) FROM night.t")
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return h.end(ctx, "ROLLBACK") }, nil
}

// crowd takes all connections that there are, and goes on asking for more.
func crowd(ctx context.Context, v *victims) (func(context.Context) error, error) {
	var limit int
	if err := v.primary.QueryRowContext(ctx, "SELECT @@GLOBAL.max_connections").Scan(&limit); err != nil {
		return nil, err
	}
	if err := statements(ctx, v.primary, "SET GLOBAL max_connections = 30"); err != nil {
		return nil, err
	}
	db, err := v.Primary().DB()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var asking sync.WaitGroup
	var got []*sql.Conn
	asking.Go(func() {
		for ctx.Err() == nil {
			if c, err := db.Conn(ctx); err == nil {
				got = append(got, c)
			} else { // refused
				_ = pause(ctx, 200*time.Millisecond)
			}
		}
	})
	return func(ctx context.Context) error {
		cancel()
		asking.Wait()
		for _, c := range got {
			_ = c.Close() // back to the pool, which is closed next
		}
		return errors.Join(db.Close(), statements(ctx, v.primary, fmt.Sprintf("SET GLOBAL max_connections = %d", limit)))
	}, nil
}

// duplicate puts a row on the replica that then comes from the primary as well.
func duplicate(ctx context.Context, v *victims) (func(context.Context) error, error) {
	c, err := v.replica.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	here := []string{"SET SESSION sql_log_bin = 0", "INSERT INTO night.t VALUES (99, 1)", "SET SESSION sql_log_bin = 1"}
	if !v.maria() {
		here = append([]string{"SET GLOBAL super_read_only = OFF"}, append(here, "SET GLOBAL super_read_only = ON")...)
	}
	if err := statements(ctx, c, here...); err != nil {
		return nil, err
	}
	if err := statements(ctx, v.primary, "INSERT INTO night.t VALUES (99, 2)"); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		there := []string{"SET SESSION sql_log_bin = 0", "DELETE FROM night.t WHERE a = 99", "SET SESSION sql_log_bin = 1"}
		start := "START SLAVE"
		if !v.maria() {
			there = append([]string{"SET GLOBAL super_read_only = OFF"}, append(there, "SET GLOBAL super_read_only = ON")...)
			start = "START REPLICA"
		}
		c, err := v.replica.Conn(ctx)
		if err != nil {
			return err
		}
		defer c.Close()
		return statements(ctx, c, append(there, start)...)
	}, nil
}

func writable(ctx context.Context, v *victims) (func(context.Context) error, error) {
	on := []string{"SET GLOBAL read_only = ON"}
	if !v.maria() {
		on = append(on, "SET GLOBAL super_read_only = ON")
	}
	return func(ctx context.Context) error { return statements(ctx, v.replica, on...) }, statements(ctx, v.replica, "SET GLOBAL read_only = OFF")
}

func hang(_ context.Context, v *victims) (func(context.Context) error, error) {
	n := v.Primary()
	return func(context.Context) error { return n.Kill(syscall.SIGCONT) }, n.Kill(syscall.SIGSTOP)
}

func crash(_ context.Context, v *victims) (func(context.Context) error, error) {
	n := v.Nodes[1]
	return func(ctx context.Context) error { return n.Start(ctx) }, n.Kill(syscall.SIGKILL)
}
