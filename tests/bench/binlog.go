package main

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rissodb/risso/internal/sandbox"
)

// binlogServer starts a server that writes many small events and syncs nothing: the mirror is measured.
func (b *bench) binlogServer(ctx context.Context) (*sandbox.Node, *sql.DB, func(), error) {
	dir, err := os.MkdirTemp("", "rb-")
	if err != nil {
		return nil, nil, nil, err
	}
	s, err := sandbox.Up(ctx, sandbox.Options{Name: "b", Dir: dir, Servers: []string{b.server}, Settings: []string{
		"max_binlog_size=1G", "sync_binlog=0", "innodb_flush_log_at_trx_commit=0", "innodb_buffer_pool_size=256M"}})
	if err != nil {
		os.RemoveAll(dir)
		return nil, nil, nil, err
	}
	down := func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Down(ctx); err != nil {
			say("binlog: %v", err)
		}
		os.RemoveAll(dir)
	}
	db, err := s.Primary().DB()
	if err != nil {
		down()
		return nil, nil, nil, err
	}
	return s.Primary(), db, func() {
		db.Close()
		down()
	}, nil
}

// mirrorSpeed copies the same logs with mariadb-binlog --raw and with risso binlog follow, in turns.
func (b *bench) mirrorSpeed(ctx context.Context, s *section) error {
	node, db, down, err := b.binlogServer(ctx)
	if err != nil {
		return err
	}
	defer down()
	size := int64(400 << 20)
	if b.quick {
		size = 60 << 20
	}
	say("mirror: writing %d MB of binary logs", size>>20)
	have, err := fillLogs(ctx, db, size)
	if err != nil {
		return err
	}
	if err := sameBytes(ctx, b, node); err != nil {
		return err
	}
	var theirs, ours, theirCPU, ourCPU, peak []float64
	for round := range b.rounds {
		say("mirror: round %d of %d", round+1, b.rounds)
		raw, err := b.rawBackup(ctx, node)
		if err != nil {
			return err
		}
		theirs, theirCPU = append(theirs, float64(have)/1e6/raw.wall), append(theirCPU, float64(have)/1e6/raw.cpu)
		u, dir, err := b.followOnce(ctx, node)
		if err != nil {
			return err
		}
		os.RemoveAll(dir)
		ours, ourCPU, peak = append(ours, float64(have)/1e6/u.wall), append(ourCPU, float64(have)/1e6/u.cpu), append(peak, u.peak)
	}
	t := s.table(fmt.Sprintf("%d MB of logs with small events, median of %d rounds (least to most)", have/1e6, b.rounds), "program", "MB/s by the clock", "MB/s of its processor time")
	show := func(v []float64) string {
		return fmt.Sprintf("%s (%s to %s)", figure(median(v)), figure(quantile(v, 0)), figure(quantile(v, 1)))
	}
	t.row("mariadb-binlog --raw", show(theirs), show(theirCPU))
	t.row("risso binlog follow --once --plain", show(ours), show(ourCPU))
	s.note("Events of transactions of three small statements. risso verifies every checksum, and syncs what it writes to the disk, which mariadb-binlog does not. By the clock both wait for the server, which has the same processors, and risso for the disk, too: run it on a quiet machine.")
	s.note("The log is not finished, so what is timed is the mirroring. A finished log is then read once more, hashed and compressed, beside the stream.")
	s.Figures["raw_mb_s"], s.Figures["risso_mb_s"], s.Figures["raw_cpu_mb_s"], s.Figures["risso_cpu_mb_s"], s.Figures["peak_bytes"] = median(theirs), median(ours), median(theirCPU), median(ourCPU), slices.Max(peak)
	s.atLeast("times mariadb-binlog's MB/s of processor time", median(ourCPU)/median(theirCPU), 3, "")
	s.atLeast("times mariadb-binlog's MB/s by the clock", median(ours)/median(theirs), 3, "")
	return nil
}

// fillLogs writes at least so many bytes of binary logs and returns how many there are.
func fillLogs(ctx context.Context, db *sql.DB, size int64) (int64, error) {
	c, err := db.Conn(ctx)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	for _, q := range []string{"CREATE TABLE test.small (a INT, b INT) ENGINE=MEMORY",
		`CREATE PROCEDURE test.fill(n INT) BEGIN DECLARE i INT DEFAULT 0; WHILE i < n DO START TRANSACTION;
  INSERT INTO test.small VALUES (i, i); UPDATE test.small SET b = 7; DELETE FROM test.small; COMMIT; SET i = i + 1; END WHILE; END`} {
		if _, err := c.ExecContext(ctx, q); err != nil {
			return 0, err
		}
	}
	for {
		have, err := logBytes(ctx, db)
		if err != nil || have >= size {
			return have, err
		}
		if _, err := c.ExecContext(ctx, "CALL test.fill(20000)"); err != nil {
			return 0, err
		}
	}
}

func logBytes(ctx context.Context, db *sql.DB) (n int64, err error) {
	rows, err := db.QueryContext(ctx, "SHOW BINARY LOGS")
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	cols, err := rows.Columns()
	if err != nil {
		return 0, err
	}
	for rows.Next() {
		row := make([]any, len(cols))
		var size int64
		for i := range row {
			row[i] = new(sql.RawBytes)
		}
		row[1] = &size
		if err := rows.Scan(row...); err != nil {
			return 0, err
		}
		n += size
	}
	return n, rows.Err()
}

// rawBackup runs mariadb-binlog over all logs.
func (b *bench) rawBackup(ctx context.Context, node *sandbox.Node) (spent, error) {
	dir, err := os.MkdirTemp(b.work, "raw-")
	if err != nil {
		return spent{}, err
	}
	defer os.RemoveAll(dir)
	return b.measure(ctx, nil, "mariadb-binlog", "--no-defaults", "--read-from-remote-server", "--raw", "--to-last-log", "--socket="+node.Socket, "--user=root", "--result-file="+dir+"/", "binlog.000001")
}

// followOnce mirrors all logs into a new folder.
func (b *bench) followOnce(ctx context.Context, node *sandbox.Node) (spent, string, error) {
	dir, err := os.MkdirTemp(b.work, "mirror-")
	if err != nil {
		return spent{}, "", err
	}
	u, err := b.measure(ctx, nil, b.risso, "binlog", "follow", "--once", "--plain", "--dsn", node.DSN, "--to", dir)
	return u, dir, err
}

// sameBytes makes sure that what is timed is right: the server's bytes, except the flag that the log is being written.
func sameBytes(ctx context.Context, b *bench, node *sandbox.Node) error {
	_, dir, err := b.followOnce(ctx, node)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	logs, err := filepath.Glob(filepath.Join(node.Datadir, "binlog.0*"))
	if err != nil {
		return err
	}
	for _, l := range logs {
		copies, _ := filepath.Glob(filepath.Join(dir, "binlog", "*", filepath.Base(l)))
		if len(copies) != 1 {
			return fmt.Errorf("%s was not mirrored", l)
		}
		if out, err := exec.CommandContext(ctx, "cmp", "--ignore-initial=23", l, copies[0]).CombinedOutput(); err != nil {
			return fmt.Errorf("%s", bytes.TrimSpace(out))
		}
	}
	return nil
}

// mirrorLag measures how long after it was written a transaction is on disk in the mirror, while the server writes as much as it can.
func (b *bench) mirrorLag(ctx context.Context, s *section) error {
	node, db, down, err := b.binlogServer(ctx)
	if err != nil {
		return err
	}
	defer down()
	if _, err := db.ExecContext(ctx, "CREATE TABLE test.t (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(200))"); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(b.work, "lag-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	p, err := b.launch("follow", nil, b.risso, "binlog", "follow", "--plain", "--dsn", node.DSN, "--to", dir)
	if err != nil {
		return err
	}
	defer p.stop()
	window := b.window
	if window > 20*time.Second {
		window = 20 * time.Second
	}
	wctx, cancel := context.WithTimeout(ctx, window)
	defer cancel()
	var commits atomic.Int64
	g, gctx := errgroup.WithContext(wctx)
	for range 8 {
		g.Go(func() error {
			for gctx.Err() == nil {
				if _, err := db.ExecContext(gctx, "INSERT INTO test.t (v) VALUES (REPEAT('y', 150))"); err != nil {
					if gctx.Err() != nil {
						return nil
					}
					return err
				}
				commits.Add(1)
			}
			return nil
		})
	}
	var lags []float64
	g.Go(func() error {
		time.Sleep(time.Second)
		for gctx.Err() == nil {
			lag, err := oneLag(gctx, db, dir)
			if gctx.Err() != nil {
				return nil
			}
			if err != nil {
				return err
			}
			lags = append(lags, lag.Seconds()*1000)
			time.Sleep(10 * time.Millisecond)
		}
		return nil
	})
	if err := g.Wait(); err != nil {
		return err
	}
	if len(lags) < 20 {
		return fmt.Errorf("only %d measurements of lag", len(lags))
	}
	t := s.table(fmt.Sprintf("milliseconds from the server's position to its being on disk in the mirror, at %.0f commits a second; %d measurements", float64(commits.Load())/window.Seconds(), len(lags)), "server", "median", "95 %", "99 %", "most")
	t.row(b.server, figure(median(lags)), figure(quantile(lags, 0.95)), figure(quantile(lags, 0.99)), figure(quantile(lags, 1)))
	s.Figures["lag_ms_median"], s.Figures["lag_ms_p99"], s.Figures["lag_ms_max"], s.Figures["commits_s"] = median(lags), quantile(lags, 0.99), quantile(lags, 1), float64(commits.Load())/window.Seconds()
	s.note("Measured from outside: the position is asked for, then the mirror's file is looked at each 0.2 ms until it is as long. A file grows when it is written; it is synced before its next growth.")
	s.below("ms behind, 99 %", quantile(lags, 0.99), 100, "ms")
	return nil
}

// oneLag asks where the server is, then waits until the mirror is there.
func oneLag(ctx context.Context, db *sql.DB, dir string) (time.Duration, error) {
	statement := "SHOW MASTER STATUS"
	rows, err := db.QueryContext(ctx, statement)
	if err != nil {
		if rows, err = db.QueryContext(ctx, "SHOW BINARY LOG STATUS"); err != nil {
			return 0, err
		}
	}
	began := time.Now()
	cols, _ := rows.Columns()
	var file, pos string
	for rows.Next() {
		row := make([]any, len(cols))
		for i := range row {
			row[i] = new(sql.RawBytes)
		}
		row[0], row[1] = &file, &pos
		if err := rows.Scan(row...); err != nil {
			rows.Close()
			return 0, err
		}
	}
	rows.Close()
	want, err := strconv.ParseInt(strings.TrimSpace(pos), 10, 64)
	if err != nil {
		return 0, err
	}
	for {
		paths, _ := filepath.Glob(filepath.Join(dir, "binlog", "*", file))
		if len(paths) == 1 {
			if st, err := os.Stat(paths[0]); err == nil && st.Size() >= want {
				return time.Since(began), nil
			}
		}
		if ctx.Err() != nil || time.Since(began) > 10*time.Second {
			return time.Since(began), nil
		}
		time.Sleep(200 * time.Microsecond)
	}
}
