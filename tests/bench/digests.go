package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/explain/history"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/store/events"
)

// manyDigests is how many classes a server's table of digests holds in section digests, and activeDigests how many of them
// run in each minute.
const (
	manyDigests   = 5000
	activeDigests = 500
)

// digests measures what the minute's reading of statement classes costs a server.
func (b *bench) digests(ctx context.Context, s *section) error {
	t := s.table(fmt.Sprintf("One reading a minute, %d digests, %d of them active; medians of %d readings", manyDigests, activeDigests, b.readings()),
		"server", "digests", "server, ms", "server, % of a core", "risso, ms", "with plans, server ms")
	for _, kind := range []string{"mysql-9.7", "mariadb"} {
		if err := b.digestsOf(ctx, s, t, kind); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	return nil
}

func (b *bench) readings() int {
	if b.quick {
		return 5
	}
	return 15
}

func (b *bench) digestsOf(ctx context.Context, s *section, t *table, kind string) (err error) {
	sb, err := sandbox.Up(ctx, sandbox.Options{Name: "digests-" + kind, Dir: filepath.Join(b.work, "sb"), Servers: []string{kind}, Settings: []string{"performance_schema=ON", "performance_schema_digests_size=10000"}})
	if err != nil {
		return err
	}
	defer down(ctx, sb)
	n := sb.Primary()
	if err := runDigests(ctx, n, 0, manyDigests); err != nil {
		return err
	}
	store, err := events.OpenEmbedded(ctx, filepath.Join(b.work, "digests-"+kind, "statements.duckdb"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	target, err := mysql.ParseTarget(n.DSN)
	if err != nil {
		return err
	}
	var plain, own, planned []float64
	digests := 0
	for _, plans := range []bool{false, true} {
		o := history.Options{Store: store, Event: func(fleet.Event) {}, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))}
		if plans {
			o.PlanID = func(text string) (string, error) { return fmt.Sprint(len(text)), nil }
		}
		c := history.New(target, fleet.Instance{ID: fmt.Sprintf("%s-%v", kind, plans)}, o)
		now := time.Now().Truncate(time.Minute)
		c.Read(ctx, now)
		for i := range b.readings() {
			if err := runDigests(ctx, n, i%(manyDigests/activeDigests)*activeDigests, activeDigests); err != nil {
				return err
			}
			now = now.Add(time.Minute)
			before, err := cpuTime(n.PID)
			if err != nil {
				return err
			}
			mine := processorTime()
			c.Read(ctx, now)
			after, err := cpuTime(n.PID)
			if err != nil {
				return err
			}
			st := c.Status()
			if !st.Working || st.Last != now.Unix() {
				return fmt.Errorf("the reading failed: %+v", st)
			}
			digests = st.Digests
			if plans {
				planned = append(planned, (after-before).Seconds()*1000)
				continue
			}
			plain, own = append(plain, (after-before).Seconds()*1000), append(own, (processorTime()-mine)*1000)
		}
	}
	share := median(plain) / 60000 * 100
	t.row(kind, fmt.Sprint(digests), figure(median(plain)), fmt.Sprintf("%.3f", share), figure(median(own)), figure(median(planned)))
	s.Figures[kind+"_server_ms"], s.Figures[kind+"_risso_ms"], s.Figures[kind+"_planned_ms"] = median(plain), median(own), median(planned)
	s.below("% of a core of "+kind+" for 5,000 digests", share, 1, "")
	s.below("% of a core of "+kind+" for 5,000 digests, with plans", median(planned)/60000*100, 1, "")
	return nil
}

// runDigests runs statements of so many classes, one by one: MariaDB makes one digest of several in one packet.
func runDigests(ctx context.Context, n *sandbox.Node, from, count int) error {
	db, err := n.DB()
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, q := range []string{"CREATE DATABASE IF NOT EXISTS shop", "USE shop", "CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY, a INT)", "INSERT IGNORE INTO t VALUES (1, 1), (2, 2)"} {
		if _, err := db.ExecContext(ctx, q); err != nil {
			return err
		}
	}
	for i := from; i < from+count; i++ {
		q := fmt.Sprintf("SELECT t.a AS column_number_%d, (SELECT MAX(x.id) FROM t AS x WHERE x.a = t.a) AS m FROM t JOIN t AS alias_%d ON t.id = alias_%d.id WHERE alias_%d.a = 5 AND t.id IN (1, 2, 3) ORDER BY t.a LIMIT 10", i, i, i, i)
		if _, err := db.ExecContext(ctx, q); err != nil {
			return err
		}
	}
	return nil
}

// processorTime is what this process has used, in seconds.
func processorTime() float64 {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()).Seconds()
}

// peakMemory is the most resident memory this process had, in MB.
func peakMemory() float64 {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return float64(r.Maxrss) / 1024
}
