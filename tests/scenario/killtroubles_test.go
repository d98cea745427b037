package scenario_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/sandbox"
)

// trouble is what was wrong with a server, from when to when.
type trouble struct {
	name         string
	server       string
	as           []string // the findings of which one tells it
	connection   int64    // that it names; 0: none
	began, ended time.Time
	told         time.Duration // of a life that sees it for so long, it must be kept
}

// about says whether a finding is named as this trouble may be.
func (h *trouble) about(id, subject string) bool {
	for _, as := range h.as {
		if id == as {
			return h.connection == 0 || subject == "" || strings.HasPrefix(subject, fmt.Sprintf("connection %d ", h.connection))
		}
	}
	return false
}

func (h *trouble) String() string {
	return fmt.Sprintf("%s of %s, %s to %s, connection %d", h.name, h.server, h.began.Format("15:04:05.0"), h.ended.Format("15:04:05.0"), h.connection)
}

// troubles makes trouble on servers.
type troubles struct {
	t     *testing.T
	nodes []*sandbox.Node
	whole bool
	over  chan struct{}

	mu  sync.Mutex
	had []trouble
}

func newTroubles(t *testing.T, s *sandbox.Sandbox, whole bool) *troubles {
	t.Helper()
	for i, n := range s.Nodes {
		execSQL(t, n, "CREATE DATABASE shop; CREATE TABLE shop.t (a INT PRIMARY KEY, b INT); INSERT INTO shop.t VALUES (1, 1), (2, 2), (3, 3)")
		if victims[i] == "maria" { // so that it says who holds a metadata lock
			execSQL(t, n, "INSTALL SONAME 'metadata_lock_info'")
		}
	}
	return &troubles{t: t, nodes: s.Nodes, whole: whole, over: make(chan struct{})}
}

func (m *troubles) stop() { close(m.over) }

// kind is one kind of trouble.
type kind struct {
	name     string
	as       []string
	told     time.Duration
	from, to time.Duration // it lasts
	make     func(ctx context.Context, n *sandbox.Node) (connection int64, end func() error, err error)
}

// slack is how much longer than its rule a Risso may take until a finding is kept, on a busy machine: the first look, the lock tables, the journal.
const slack = 4 * time.Second

var troubleKinds = []kind{
	{"row lock", []string{"lock.blocker"}, 3*time.Second + slack, 5 * time.Second, 14 * time.Second, holding(3, "UPDATE shop.t SET b = b + 1 WHERE a = 2", "BEGIN", "UPDATE shop.t SET b = 0 WHERE a = 2")},
	{"row lock of many", []string{"lock.blocker"}, 3*time.Second + slack, 5 * time.Second, 12 * time.Second, holding(12, "UPDATE shop.t SET b = b + 1 WHERE a = 3", "BEGIN", "UPDATE shop.t SET b = 0 WHERE a = 3")},
	{"global lock", []string{"lock.global"}, slack, 4 * time.Second, 6 * time.Second, holding(3, "UPDATE shop.t SET b = b + 1 WHERE a = 1", "FLUSH TABLES WITH READ LOCK")},
	{"GET_LOCK", []string{"lock.user"}, 3*time.Second + slack, 5 * time.Second, 12 * time.Second, holding(2, "DO GET_LOCK('l', 500)", "DO GET_LOCK('l', 1)")},
	{"metadata lock", []string{"mdl.blocker"}, 3*time.Second + slack, 6 * time.Second, 14 * time.Second, holding(1, "ALTER TABLE shop.t COMMENT = 'changed'", "BEGIN", "SELECT COUNT(*) FROM shop.t")},
	{"crowd", []string{"rule.crowded"}, 2*time.Second + slack, 6 * time.Second, 12 * time.Second, crowded},
	{"hang", []string{"server.hung", "server.down"}, 8*time.Second + slack, 8 * time.Second, 16 * time.Second, hung},
	{"crash", []string{"server.down"}, 3*time.Second + slack, 4 * time.Second, 9 * time.Second, crashed},
}

// run makes trouble on each server, one after the other, until it is stopped.
func (m *troubles) run() {
	var each sync.WaitGroup
	for i, n := range m.nodes {
		each.Go(func() { m.spoil(n, victims[i]) })
	}
	each.Wait()
}

func (m *troubles) spoil(n *sandbox.Node, server string) {
	crashes := 0
	for round := 0; ; round++ {
		order := rand.Perm(len(troubleKinds))
		for _, i := range order {
			k := troubleKinds[i]
			if k.name == "crash" {
				if crashes++; crashes > 2 || !m.whole && server == "maria" { // each is told for 5 minutes as a restart
					continue
				}
			}
			if !m.pause(time.Duration(1500+rand.IntN(2500)) * time.Millisecond) {
				return
			}
			if err := m.one(n, server, k); err != nil {
				m.t.Errorf("%s of %s: %v", k.name, server, err)
				return
			}
		}
	}
}

// pause waits; false: it is over.
func (m *troubles) pause(d time.Duration) bool {
	select {
	case <-m.over:
		return false
	case <-time.After(d):
		return true
	}
}

func (m *troubles) one(n *sandbox.Node, server string, k kind) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	had := trouble{name: k.name, server: server, as: k.as, told: k.told, began: time.Now()}
	connection, end, err := k.make(ctx, n)
	if err != nil {
		return err
	}
	had.connection = connection
	made := time.Now()
	m.pause(k.from + rand.N(k.to-k.from))
	over := time.Now()
	if err := end(); err != nil {
		return err
	}
	had.ended = time.Now()
	had.told += had.ended.Sub(over) + made.Sub(had.began) // in which it may have been there or not
	m.mu.Lock()
	defer m.mu.Unlock()
	m.had = append(m.had, had)
	return nil
}

// holding lets a session run statements and keep what they lock, while others wait for it.
func holding(waiters int, wants string, holds ...string) func(context.Context, *sandbox.Node) (int64, func() error, error) {
	return func(ctx context.Context, n *sandbox.Node) (id int64, end func() error, err error) {
		db, err := n.DB()
		if err != nil {
			return 0, nil, err
		}
		conn, err := db.Conn(ctx)
		if err != nil {
			return 0, nil, errors.Join(err, db.Close())
		}
		if err := conn.QueryRowContext(ctx, "SELECT CONNECTION_ID()").Scan(&id); err != nil {
			return 0, nil, err
		}
		for _, q := range holds {
			if _, err := conn.ExecContext(ctx, q); err != nil {
				return 0, nil, fmt.Errorf("%s: %w", q, err)
			}
		}
		var waiting sync.WaitGroup
		for range waiters {
			waiting.Go(func() {
				c, err := db.Conn(ctx)
				if err == nil {
					_, _ = c.ExecContext(ctx, wants) // it ends with what it waits for
					_, _ = c.ExecContext(ctx, "DO RELEASE_ALL_LOCKS()")
					c.Close()
				}
			})
		}
		return id, func() error {
			for _, q := range []string{"ROLLBACK", "UNLOCK TABLES", "DO RELEASE_LOCK('l')"} {
				if _, err := conn.ExecContext(ctx, q); err != nil {
					return fmt.Errorf("%s: %w", q, err)
				}
			}
			waiting.Wait()
			return errors.Join(conn.Close(), db.Close())
		}, nil
	}
}

func crowded(ctx context.Context, n *sandbox.Node) (int64, func() error, error) {
	db, err := n.DB()
	if err != nil {
		return 0, nil, err
	}
	var list []*sql.Conn
	end := func() error {
		for _, c := range list {
			_ = c.Close() // back to the pool, which is closed next
		}
		return db.Close()
	}
	for range crowd {
		c, err := db.Conn(ctx)
		if err != nil {
			return 0, nil, errors.Join(err, end())
		}
		list = append(list, c)
	}
	return 0, end, nil
}

func hung(_ context.Context, n *sandbox.Node) (int64, func() error, error) {
	return 0, func() error { return n.Kill(syscall.SIGCONT) }, n.Kill(syscall.SIGSTOP)
}

func crashed(ctx context.Context, n *sandbox.Node) (int64, func() error, error) {
	return 0, func() error { return n.Start(ctx) }, n.Kill(syscall.SIGKILL)
}
