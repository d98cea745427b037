package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/sandbox"
)

// checked is what one comparison of a primary with its replica took.
type checked struct {
	wall, own, primary, replica, sent float64 // seconds of processor time but wall; sent: bytes that both servers sent
}

// checksum compares a replica with its primary by pt-table-checksum and by risso checksum.
func (b *bench) checksum(ctx context.Context, s *section) error {
	rows := 2_000_000
	if b.quick {
		rows = 500_000
	}
	settings := []string{"innodb_buffer_pool_size=1G", "innodb_flush_log_at_trx_commit=2", "sync_binlog=0"}
	sb, err := sandbox.Up(ctx, sandbox.Options{Dir: filepath.Join(b.work, "sb"), Servers: []string{b.server}, Topology: sandbox.TopologyReplication, Replicas: 1, Settings: settings})
	if err != nil {
		return err
	}
	defer down(ctx, sb)
	say("checksum: %d rows", rows)
	if err := checksumTable(ctx, sb, rows); err != nil {
		return err
	}
	primary, replica := sb.Nodes[0], sb.Nodes[1]
	s.note("Server: %s %s, binary logs in row format, with %s; a table of %d rows like sysbench's; a primary, its replica and the program share this machine's processors.", primary.Server, primary.Version, strings.Join(settings, ", "), rows)
	risso := func(sum string) func(context.Context) (spent, int64, error) {
		return b.rissoChecksum(primary, replica, sum)
	}
	pt := func(ctx context.Context) (spent, int64, error) {
		u, err := b.measure(ctx, []string{"HOME=" + b.work}, "pt-table-checksum", "--no-version-check", "--recursion-method=hosts", "--databases=ck", "--no-check-binlog-format", fmt.Sprintf("F=%s,h=%s,P=%d", primary.DefaultsFile, primary.Host, primary.Port))
		if err != nil {
			return u, 0, err
		}
		m := ptRow.FindSubmatch(u.out)
		if m == nil {
			return u, 0, fmt.Errorf("pt-table-checksum: %.500s", u.out)
		}
		n, err := strconv.ParseInt(string(m[1]), 10, 64)
		return u, n, err
	}
	tools := []struct {
		name string
		run  func(context.Context) (spent, int64, error)
		all  []checked
	}{{name: "pt-table-checksum", run: pt}, {name: "risso checksum, rows travel", run: risso("rows")}, {name: "risso checksum, servers add up", run: risso("server")}, {name: "risso checksum, servers add up 32 bits, as pt does", run: risso("quick")}, {name: "risso checksum by itself", run: risso("auto")}}
	for round := range b.rounds {
		say("checksum: round %d of %d", round+1, b.rounds)
		for i := range tools {
			tool := &tools[(i+round)%len(tools)]
			c, err := checkOnce(ctx, primary, replica, int64(rows), tool.run)
			if err != nil {
				return fmt.Errorf("%s: %w", tool.name, err)
			}
			tool.all = append(tool.all, c)
		}
	}
	t := s.table(fmt.Sprintf("median of %d rounds (least to most)", b.rounds), "program", "rows/s", "times pt-table-checksum", "all processor time, µs a row", "its own", "primary's", "replica's", "bytes a row from both servers")
	ratios := make([][]float64, len(tools))
	for i, tool := range tools {
		var speed, cpu, own, first, second, sent []float64
		for r, c := range tool.all {
			n := float64(rows)
			speed = append(speed, n/c.wall)
			ratios[i] = append(ratios[i], tools[0].all[r].wall/c.wall)
			cpu = append(cpu, 1e6*(c.own+c.primary+c.replica)/n)
			own, first, second, sent = append(own, 1e6*c.own/n), append(first, 1e6*c.primary/n), append(second, 1e6*c.replica/n), append(sent, c.sent/n)
		}
		t.row(tool.name, fmt.Sprintf("%s (%s to %s)", figure(median(speed)), figure(quantile(speed, 0)), figure(quantile(speed, 1))),
			fmt.Sprintf("%s (%s to %s)", figure(median(ratios[i])), figure(quantile(ratios[i], 0)), figure(quantile(ratios[i], 1))),
			figure(median(cpu)), figure(median(own)), figure(median(first)), figure(median(second)), figure(median(sent)))
		s.Figures[[]string{"pt", "rows", "server", "quick", "auto"}[i]+"_rows_s"] = median(speed)
	}
	s.atLeast("times pt-table-checksum's rows a second, by the clock, with as many bits", median(ratios[3]), 3, "")
	s.atLeast("times pt-table-checksum's rows a second, by the clock", median(ratios[4]), 3, "")
	return nil
}

// rissoChecksum runs risso checksum with one method.
func (b *bench) rissoChecksum(primary, replica *sandbox.Node, sum string) func(context.Context) (spent, int64, error) {
	dsn := func(n *sandbox.Node) string { return "root@unix(" + n.Socket + ")/" }
	return func(ctx context.Context) (spent, int64, error) {
		u, err := b.measure(ctx, nil, b.risso, "checksum", "--dsn", dsn(primary), "--replica", dsn(replica), "--schema", "ck", "--sum", sum, "--output", "json")
		if err != nil {
			return u, 0, err
		}
		var doc struct {
			Rows   int64
			Counts struct{ Equal int64 }
		}
		if err := json.Unmarshal(u.out, &doc); err != nil {
			return u, 0, fmt.Errorf("risso checksum: %w", err)
		}
		if doc.Counts.Equal != 1 {
			return u, 0, fmt.Errorf("risso checksum: %.300s", u.out)
		}
		return u, doc.Rows, nil
	}
}

// ptRow is pt-table-checksum's line of the table: time, errors, differences, rows.
var ptRow = regexp.MustCompile(`(?m)^\S+\s+0\s+0\s+(\d+)\s.*\sck\.sb$`)

// checksumTable fills a table as sysbench does.
func checksumTable(ctx context.Context, sb *sandbox.Sandbox, rows int) error {
	n := sb.Primary()
	digits := "(SELECT 0 d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)"
	for _, q := range []string{
		"CREATE DATABASE ck", "CREATE DATABASE percona",
		"CREATE TABLE ck.sb (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL, KEY k (k)) ENGINE=InnoDB",
	} {
		if _, err := n.Query(ctx, q); err != nil {
			return err
		}
	}
	const batch = 10_000
	for range rows / batch {
		if _, err := n.Query(ctx, "INSERT INTO ck.sb (k, c, pad) SELECT FLOOR(RAND() * 1000000), CONCAT(SHA1(RAND()), '-', SHA1(RAND()), '-', LEFT(SHA1(RAND()), 38)), CONCAT(SHA1(RAND()), LEFT(SHA1(RAND()), 19)) FROM "+
			digits+" a, "+digits+" b, "+digits+" c, "+digits+" d"); err != nil {
			return err
		}
	}
	for end := time.Now().Add(5 * time.Minute); ; {
		r, err := sb.Nodes[1].Query(ctx, "SELECT COUNT(*) FROM ck.sb")
		if err == nil && *r[0].Rows[0][0] == strconv.Itoa(rows/batch*batch) {
			return nil
		}
		if time.Now().After(end) || ctx.Err() != nil {
			return fmt.Errorf("the replica does not catch up: %w", err)
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

// checkOnce measures one comparison on all sides.
func checkOnce(ctx context.Context, primary, replica *sandbox.Node, rows int64, run func(context.Context) (spent, int64, error)) (c checked, err error) {
	sent := func() (total float64, err error) {
		for _, n := range []*sandbox.Node{primary, replica} {
			r, err := n.Query(ctx, "SHOW GLOBAL STATUS LIKE 'Bytes_sent'")
			if err != nil {
				return 0, err
			}
			v, err := strconv.ParseFloat(*r[0].Rows[0][1], 64)
			if err != nil {
				return 0, err
			}
			total += v
		}
		return total, nil
	}
	var before [2]time.Duration
	for i, n := range []*sandbox.Node{primary, replica} {
		if before[i], err = cpuTime(n.PID); err != nil {
			return c, err
		}
	}
	from, err := sent()
	if err != nil {
		return c, err
	}
	u, n, err := run(ctx)
	if err != nil {
		return c, err
	}
	if n != rows {
		return c, fmt.Errorf("%d rows of %d were compared", n, rows)
	}
	c.wall, c.own = u.wall, u.cpu
	for i, n := range []*sandbox.Node{primary, replica} {
		after, err := cpuTime(n.PID)
		if err != nil {
			return c, err
		}
		*[]*float64{&c.primary, &c.replica}[i] = (after - before[i]).Seconds()
	}
	to, err := sent()
	c.sent = to - from
	return c, err
}
