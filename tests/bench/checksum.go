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
	tools := []*checkTool{
		{name: "pt-table-checksum", key: "pt", run: b.ptChecksum(primary, "ck")},
		{name: "risso checksum, rows travel", key: "rows", run: b.rissoChecksum(primary, replica, "ck", "--sum", "rows")},
		{name: "risso checksum, servers add up", key: "server", run: b.rissoChecksum(primary, replica, "ck", "--sum", "server")},
		{name: "risso checksum, servers add up 32 bits, as pt does", key: "quick", run: b.rissoChecksum(primary, replica, "ck", "--sum", "quick")},
		{name: "risso checksum by itself", key: "auto", run: b.rissoChecksum(primary, replica, "ck")},
		{name: "risso checksum by itself, by one session", key: "auto1", run: b.rissoChecksum(primary, replica, "ck", "--threads", "1")},
		{name: "risso checksum by itself, by four sessions", key: "auto4", run: b.rissoChecksum(primary, replica, "ck", "--threads", "4")},
	}
	if err := b.checkRounds(ctx, sb, tools, rows); err != nil {
		return err
	}
	ratios := b.checkReport(s, "one table", tools, rows)
	s.atLeast("times pt-table-checksum's rows a second, by the clock, with as many bits", median(ratios["quick"]), 3, "")
	s.atLeast("times pt-table-checksum's rows a second, by the clock", median(ratios["auto"]), 3, "")
	s.atLeast("the same with one session", median(ratios["auto1"]), 3, "")
	s.atLeast("the same with four sessions", median(ratios["auto4"]), 3, "")
	return b.checksumMany(ctx, s, sb)
}

// checksumMany compares many small tables.
func (b *bench) checksumMany(ctx context.Context, s *section, sb *sandbox.Sandbox) error {
	count, each := 500, 100
	if b.quick {
		count = 100
	}
	var q strings.Builder
	q.WriteString("CREATE DATABASE many; USE many")
	for i := range count {
		fmt.Fprintf(&q, "; CREATE TABLE t%d (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(30)); INSERT INTO t%d (v) VALUES ('v')%s", i, i, strings.Repeat(", ('v')", each-1))
	}
	if _, err := sb.Primary().Query(ctx, q.String()); err != nil {
		return err
	}
	if err := checkArrived(ctx, sb, fmt.Sprintf("many.t%d", count-1), each); err != nil {
		return err
	}
	primary, replica := sb.Nodes[0], sb.Nodes[1]
	tools := []*checkTool{
		{name: "pt-table-checksum", key: "pt", run: b.ptChecksum(primary, "many")},
		{name: "risso checksum by itself", key: "many", run: b.rissoChecksum(primary, replica, "many")},
		{name: "risso checksum by itself, four tables at a time", key: "many4", run: b.rissoChecksum(primary, replica, "many", "--threads", "4")},
	}
	if err := b.checkRounds(ctx, sb, tools, count*each); err != nil {
		return err
	}
	ratios := b.checkReport(s, fmt.Sprintf("%d tables of %d rows", count, each), tools, count*each)
	s.atLeast("times pt-table-checksum's rows a second in small tables, by the clock", median(ratios["many"]), 3, "")
	return nil
}

// checkTool is a program that compares.
type checkTool struct {
	name, key string
	run       func(context.Context) (spent, int64, error)
	all       []checked
}

// checkRounds lets the programs compare by turns.
func (b *bench) checkRounds(ctx context.Context, sb *sandbox.Sandbox, tools []*checkTool, rows int) error {
	for round := range b.rounds {
		say("checksum: round %d of %d", round+1, b.rounds)
		for i := range tools {
			tool := tools[(i+round)%len(tools)]
			c, err := checkOnce(ctx, sb.Nodes[0], sb.Nodes[1], int64(rows), tool.run)
			if err != nil {
				return fmt.Errorf("%s: %w", tool.name, err)
			}
			tool.all = append(tool.all, c)
		}
	}
	return nil
}

// checkReport makes a table of what the programs took, and returns how much faster than the first each was.
func (b *bench) checkReport(s *section, what string, tools []*checkTool, rows int) map[string][]float64 {
	t := s.table(fmt.Sprintf("%s, median of %d rounds (least to most)", what, b.rounds), "program", "rows/s", "times pt-table-checksum", "all processor time, µs a row", "its own", "primary's", "replica's", "bytes a row from both servers")
	ratios := map[string][]float64{}
	for _, tool := range tools {
		var speed, ratio, cpu, own, first, second, sent []float64
		for r, c := range tool.all {
			n := float64(rows)
			speed = append(speed, n/c.wall)
			ratio = append(ratio, tools[0].all[r].wall/c.wall)
			cpu = append(cpu, 1e6*(c.own+c.primary+c.replica)/n)
			own, first, second, sent = append(own, 1e6*c.own/n), append(first, 1e6*c.primary/n), append(second, 1e6*c.replica/n), append(sent, c.sent/n)
		}
		ratios[tool.key] = ratio
		t.row(tool.name, fmt.Sprintf("%s (%s to %s)", figure(median(speed)), figure(quantile(speed, 0)), figure(quantile(speed, 1))),
			fmt.Sprintf("%s (%s to %s)", figure(median(ratio)), figure(quantile(ratio, 0)), figure(quantile(ratio, 1))),
			figure(median(cpu)), figure(median(own)), figure(median(first)), figure(median(second)), figure(median(sent)))
		key := tool.key
		if key == "pt" && what != "one table" {
			key = "pt_many"
		}
		s.Figures[key+"_rows_s"] = median(speed)
	}
	return ratios
}

// ptChecksum runs pt-table-checksum. 3.7.1 knows MariaDB by its version_comment, which in Debian does not name it, and then uses
// statements that only MySQL has: for MariaDB Debian's own is used, which is older.
func (b *bench) ptChecksum(primary *sandbox.Node, schema string) func(context.Context) (spent, int64, error) {
	program := "pt-table-checksum"
	if strings.HasPrefix(primary.Server, "mariadb") {
		program = "/usr/bin/pt-table-checksum"
	}
	return func(ctx context.Context) (spent, int64, error) {
		u, err := b.measure(ctx, []string{"HOME=" + b.work}, program, "--no-version-check", "--recursion-method=hosts", "--databases="+schema, "--no-check-binlog-format", fmt.Sprintf("F=%s,h=%s,P=%d", primary.DefaultsFile, primary.Host, primary.Port))
		if err != nil {
			return u, 0, err
		}
		total := int64(0)
		for _, m := range ptRow.FindAllSubmatch(u.out, -1) {
			n, err := strconv.ParseInt(string(m[1]), 10, 64)
			if err != nil {
				return u, 0, err
			}
			total += n
		}
		if total == 0 {
			return u, 0, fmt.Errorf("pt-table-checksum: %.500s", u.out)
		}
		return u, total, nil
	}
}

// rissoChecksum runs risso checksum.
func (b *bench) rissoChecksum(primary, replica *sandbox.Node, schema string, more ...string) func(context.Context) (spent, int64, error) {
	dsn := func(n *sandbox.Node) string { return "root@unix(" + n.Socket + ")/" }
	return func(ctx context.Context) (spent, int64, error) {
		args := append([]string{"checksum", "--dsn", dsn(primary), "--replica", dsn(replica), "--schema", schema, "--output", "json"}, more...)
		u, err := b.measure(ctx, nil, b.risso, args...)
		if err != nil {
			return u, 0, err
		}
		var doc struct {
			Rows   int64
			Tables int64
			Counts struct{ Equal int64 }
		}
		if err := json.Unmarshal(u.out, &doc); err != nil {
			return u, 0, fmt.Errorf("risso checksum: %w", err)
		}
		if doc.Counts.Equal != doc.Tables {
			return u, 0, fmt.Errorf("risso checksum: %.300s", u.out)
		}
		return u, doc.Rows, nil
	}
}

// ptRow is pt-table-checksum's line of a table: time, errors, differences, rows.
var ptRow = regexp.MustCompile(`(?m)^\S+\s+0\s+0\s+(\d+)\s.*\s(?:ck|many)\.\w+$`)

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
	return checkArrived(ctx, sb, "ck.sb", rows/batch*batch)
}

// checkArrived waits until the replica has a table's rows.
func checkArrived(ctx context.Context, sb *sandbox.Sandbox, table string, rows int) error {
	for end := time.Now().Add(5 * time.Minute); ; {
		r, err := sb.Nodes[1].Query(ctx, "SELECT COUNT(*) FROM "+table)
		if err == nil && *r[0].Rows[0][0] == strconv.Itoa(rows) {
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
