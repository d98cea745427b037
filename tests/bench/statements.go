package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/rissodb/risso/internal/sandbox"
)

// statement is what one statement costs the server.
type statement struct {
	text  string
	count float64       // a second
	each  time.Duration // of the server's processor
}

// statements lists what Risso and the exporter ask a server, from the server's general log, and what each
// question costs: each is asked again some times, and the time of the thread that answers is read.
func (b *bench) statements(ctx context.Context, s *section, n *sandbox.Node) error {
	say("collect: what each statement costs")
	watch := b.short(61*time.Second, 11*time.Second)
	start := map[string]func() (stop func(), err error){
		"Risso": func() (func(), error) {
			r, err := b.serve(ctx, filepath.Join(b.work, "collect-statements"), "--no-host", "--dsn", "db=root@unix("+n.Socket+")/")
			if err != nil {
				return nil, err
			}
			return r.stop, nil
		},
		"prometheus-mysqld-exporter": func() (func(), error) {
			e, addr, err := b.exporter(ctx, n.Socket)
			if err != nil {
				return nil, err
			}
			p, _, err := b.prometheus(ctx, filepath.Join(b.work, "prometheus-statements"), addr)
			if err != nil {
				e.stop()
				return nil, err
			}
			return func() { p.stop(); e.stop() }, nil
		},
	}
	for _, who := range []string{"Risso", "prometheus-mysqld-exporter"} {
		stop, err := start[who]()
		if err != nil {
			return err
		}
		list, err := asked(ctx, n, watch)
		stop()
		if err != nil {
			return fmt.Errorf("statements of %s: %w", who, err)
		}
		if err := price(ctx, n, list); err != nil {
			return fmt.Errorf("statements of %s: %w", who, err)
		}
		slices.SortFunc(list, func(a, b statement) int { return int(float64(b.each)*b.count - float64(a.each)*a.count) })
		t := s.table("what "+who+" asks, and what the server's thread needs for it (asked 20 times a second)", "µs each", "a second", "% of a core", "statement")
		total := 0.0
		for _, q := range list {
			share := q.each.Seconds() * q.count * 100
			total += share
			t.row(fmt.Sprintf("%.0f", float64(q.each)/1000), fmt.Sprintf("%.2f", q.count), fmt.Sprintf("%.4f", share), shorten(q.text, 110))
		}
		t.row("", "", fmt.Sprintf("%.4f", total), "all")
		s.Figures["statements_percent_"+strings.ToLower(strings.Split(who, "-")[0])] = total
	}
	return nil
}

// asked reads the server's general log of some time, without the bench's own statements.
func asked(ctx context.Context, n *sandbox.Node, d time.Duration) ([]statement, error) {
	if _, err := n.Query(ctx, "SET GLOBAL log_output = 'TABLE'; TRUNCATE mysql.general_log; SET GLOBAL general_log = ON"); err != nil {
		return nil, err
	}
	err := pause(ctx, d)
	if _, err := n.Query(context.WithoutCancel(ctx), "SET GLOBAL general_log = OFF"); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	res, err := n.Query(ctx, "SELECT argument, COUNT(*) FROM mysql.general_log WHERE command_type IN ('Query', 'Execute') AND argument NOT LIKE '%general_log%' GROUP BY argument")
	if err != nil {
		return nil, err
	}
	var list []statement
	for _, row := range res[0].Rows {
		count, err := strconv.ParseFloat(*row[1], 64)
		if err != nil {
			return nil, err
		}
		list = append(list, statement{text: *row[0], count: count / d.Seconds()})
	}
	return list, nil
}

// price asks each statement some times and reads the time of the server's thread.
func price(ctx context.Context, n *sandbox.Node, list []statement) error {
	c, tid, end, err := session(ctx, n)
	if err != nil {
		return err
	}
	defer end()
	const times = 40
	for i := range list {
		var total time.Duration
		for range times {
			if err := pause(ctx, 50*time.Millisecond); err != nil {
				return err
			}
			before, err := threadTime(n.PID, tid)
			if err != nil {
				return err
			}
			var refused *driver.MySQLError
			if err := ask(ctx, c, list[i].text); err != nil && !errors.As(err, &refused) { // a refusal costs, too
				return fmt.Errorf("%s: %w", shorten(list[i].text, 60), err)
			}
			time.Sleep(time.Millisecond) // the thread goes to sleep: its time is complete
			after, err := threadTime(n.PID, tid)
			if err != nil {
				return err
			}
			total += after - before
		}
		list[i].each = total / times
	}
	return nil
}

// session opens a connection to a server and tells which thread of the operating system serves it.
func session(ctx context.Context, n *sandbox.Node) (c *sql.Conn, tid int, end func(), err error) {
	db, err := n.DB()
	if err != nil {
		return nil, 0, nil, err
	}
	end = func() { db.Close() } // all of it goes: nothing is lost
	if c, err = db.Conn(ctx); err == nil {
		err = c.QueryRowContext(ctx, "SELECT TID FROM information_schema.PROCESSLIST WHERE ID = CONNECTION_ID()").Scan(&tid)
		end = func() { c.Close(); db.Close() }
	}
	if err != nil {
		end()
		return nil, 0, nil, err
	}
	return c, tid, end, nil
}

func ask(ctx context.Context, c *sql.Conn, query string) error {
	rows, err := c.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() { // to the last row
	}
	return rows.Err()
}

// shorten puts a statement on one line of limited length.
func shorten(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
