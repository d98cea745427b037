package main

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sandbox"
)

// activity measures what looking at the active sessions once a second costs a server.
func (b *bench) activity(ctx context.Context, s *section) error {
	t := s.table(fmt.Sprintf("%d readings in a row of sessions that run a statement; processor time of the server for one, which is made each second", b.lookings()),
		"server", "active sessions", "server, ms", "server, % of a core", "risso, ms", "time for one, ms")
	for _, kind := range []string{"mysql-9.7", "mysql-5.7", "mariadb"} {
		if err := b.activityOf(ctx, s, t, kind); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	return nil
}

func (b *bench) lookings() int {
	if b.quick {
		return 50
	}
	return 300
}

func (b *bench) activityOf(ctx context.Context, s *section, t *table, kind string) (err error) {
	sb, err := sandbox.Up(ctx, sandbox.Options{Name: "act-" + kind, Dir: filepath.Join(b.work, "sb"), Servers: []string{kind}, Settings: []string{"max_connections=600"}})
	if err != nil {
		return err
	}
	defer down(ctx, sb)
	n := sb.Primary()
	target, err := mysql.ParseTarget(n.DSN)
	if err != nil {
		return err
	}
	c, err := mysql.Connect(ctx, target, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	r, err := read.NewActivityReader(ctx, c)
	if err != nil {
		return err
	}
	running := 0
	for _, sessions := range []int{0, 50, 500} {
		leave, err := busy(ctx, n, sessions-running)
		if err != nil {
			return err
		}
		defer leave()
		running = sessions
		before, err := cpuTime(n.PID)
		if err != nil {
			return err
		}
		mine, began := processorTime(), time.Now()
		for range b.lookings() {
			list, _, err := r.Read(ctx)
			if err != nil {
				return err
			}
			if len(list) != sessions {
				return fmt.Errorf("%d sessions were found, not %d", len(list), sessions)
			}
		}
		took := time.Since(began)
		after, err := cpuTime(n.PID)
		if err != nil {
			return err
		}
		per := func(seconds float64) float64 { return seconds * 1000 / float64(b.lookings()) }
		server := per((after - before).Seconds())
		t.row(kind, fmt.Sprint(sessions), figure(server), fmt.Sprintf("%.3f", server/10), figure(per(processorTime()-mine)), figure(per(took.Seconds())))
		s.Figures[fmt.Sprintf("%s_%d_server_ms", kind, sessions)] = server
		if sessions == 0 {
			s.below("% of a core of "+kind+" while nothing runs", server/10, 0.3, "")
		}
	}
	return nil
}

// busy makes so many sessions that sleep in a statement; leave ends them for us. The server ends them when they wake, or when it
// ends itself.
func busy(ctx context.Context, n *sandbox.Node, sessions int) (leave func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	db, err := n.DB()
	if err != nil {
		cancel()
		return nil, err
	}
	var w sync.WaitGroup
	leave = func() {
		cancel()
		w.Wait()
		db.Close()
	}
	for i := range sessions {
		c, err := db.Conn(ctx)
		if err != nil {
			leave()
			return nil, fmt.Errorf("session %d: %w", i, err)
		}
		w.Go(func() {
			_, _ = c.ExecContext(ctx, fmt.Sprintf("DO SLEEP(300), 'session %d: a statement of about two hundred bytes, as they are usual, so that its text and its normalised text cost what they cost on other servers'", i)) // ends with ctx
			c.Close()
		})
	}
	time.Sleep(time.Second) // all of them run
	return leave, nil
}
