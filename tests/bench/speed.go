package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/postgres"
)

// The tables of the comparison: all in the server's memory.
const (
	speedTables = 4
	speedRows   = 100000
)

// rate is what one program reached in one round.
type rate struct {
	each float64 // queries or transactions a second
	cpu  float64 // of the client's processor, seconds a query
}

// pair are the rounds of the other program and of risso.
type pair struct{ other, risso []rate }

// ratios returns risso's figures by the other's, round by round.
func (p pair) ratios() (each, cpu []float64) {
	for i := range p.other {
		each = append(each, p.risso[i].each/p.other[i].each)
		cpu = append(cpu, p.risso[i].cpu/p.other[i].cpu)
	}
	return each, cpu
}

// turns lets both programs run in turns; the first one changes from round to round.
func (b *bench) turns(ctx context.Context, what string, other, risso func(context.Context) (rate, error)) (p pair, err error) {
	for i := range b.rounds {
		say("%s: round %d of %d", what, i+1, b.rounds)
		var o, r rate
		both := []func() error{
			func() (err error) { o, err = other(ctx); return err },
			func() (err error) { r, err = risso(ctx); return err },
		}
		if i%2 == 1 {
			slices.Reverse(both)
		}
		for _, f := range both {
			if err := f(); err != nil {
				return p, err
			}
		}
		p.other, p.risso = append(p.other, o), append(p.risso, r)
	}
	return p, nil
}

// endpoint is a way to the server.
type endpoint struct {
	name     string
	sysbench []string
	dsn      string
}

// speed compares with sysbench on a separate server.
func (b *bench) speed(ctx context.Context, s *section) error {
	settings := []string{"innodb_buffer_pool_size=1G", "max_connections=400", "innodb_flush_log_at_trx_commit=2", "sync_binlog=0"}
	sb, err := sandbox.Up(ctx, sandbox.Options{Dir: filepath.Join(b.work, "sb"), Servers: []string{b.server}, Settings: settings})
	if err != nil {
		return err
	}
	defer down(ctx, sb)
	n := sb.Primary()
	if _, err := n.Query(ctx, "CREATE DATABASE sbtest; CREATE USER bench@'127.0.0.1' IDENTIFIED BY ''; GRANT ALL ON sbtest.* TO bench@'127.0.0.1'"); err != nil {
		return err
	}
	ways := []endpoint{
		{"socket", []string{"--mysql-socket=" + n.Socket, "--mysql-user=root"}, "root@unix(" + n.Socket + ")/sbtest"},
		{"TCP", []string{"--mysql-host=127.0.0.1", "--mysql-port=" + strconv.Itoa(n.Port), "--mysql-user=bench"}, fmt.Sprintf("bench@tcp(127.0.0.1:%d)/sbtest", n.Port)},
	}
	say("speed: sysbench makes the tables")
	if _, err := b.measure(ctx, nil, "sysbench", slices.Concat([]string{"oltp_read_write"}, speedShape(), ways[0].sysbench, []string{"--threads=2", "prepare"})...); err != nil {
		return err
	}
	s.note("Server: %s %s with %s; %d tables of %d rows made by sysbench, ids drawn uniformly, prepared statements, %s a measurement.", n.Server, n.Version, strings.Join(settings, ", "), speedTables, speedRows, b.window)
	have, err := b.workloads(ctx)
	if err != nil {
		return err
	}
	t := s.table(fmt.Sprintf("risso by sysbench: medians of the ratios of %d rounds (least to most)", b.rounds),
		"workload", "way", "connections", "sysbench/s", "risso/s", "ratio", "client CPU sysbench, µs", "risso, µs", "ratio")
	for _, name := range strings.Split(b.workload, ",") {
		if !slices.Contains(have, name) {
			s.note("This risso has no workload %s: not measured.", name)
			continue
		}
		for _, c := range b.plan(name, ways) {
			if err := b.speedCase(ctx, s, t, name, c.way, c.connections); err != nil {
				return err
			}
		}
	}
	return nil
}

func speedShape() []string {
	return []string{fmt.Sprintf("--tables=%d", speedTables), fmt.Sprintf("--table-size=%d", speedRows)}
}

type speedCase struct {
	way         endpoint
	connections int
}

// plan says what is measured of a workload: point selects on all ways and numbers of connections, others on the socket.
func (b *bench) plan(name string, ways []endpoint) (list []speedCase) {
	if name != "point_select" {
		return []speedCase{{ways[0], 4}, {ways[0], 16}}
	}
	for _, c := range strings.Split(b.connections, ",") {
		n, err := strconv.Atoi(c)
		if err != nil || n < 1 {
			continue // parse has refused it
		}
		for _, w := range ways {
			list = append(list, speedCase{w, n})
		}
	}
	return list
}

// workloads are the names that this risso knows.
func (b *bench) workloads(ctx context.Context) ([]string, error) {
	u, err := b.measure(ctx, nil, b.risso, "bench", "list", "--output", "json")
	if err != nil {
		return nil, err
	}
	var list []struct{ Name string }
	if err := json.Unmarshal(u.out, &list); err != nil {
		return nil, fmt.Errorf("risso bench list: %w", err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name)
	}
	return names, nil
}

// speedCase compares one workload on one way with one number of connections.
func (b *bench) speedCase(ctx context.Context, s *section, t *table, name string, way endpoint, connections int) error {
	threads, seconds := strconv.Itoa(connections), strconv.Itoa(int(b.window.Seconds()))
	p, err := b.turns(ctx, fmt.Sprintf("%s, %s, %s connections", name, way.name, threads),
		func(ctx context.Context) (rate, error) {
			return b.sysbench(ctx, slices.Concat([]string{"oltp_" + name}, speedShape(), way.sysbench, []string{"--rand-type=uniform", "--threads=" + threads, "--time=" + seconds, "run"}))
		},
		func(ctx context.Context) (rate, error) {
			return b.rissoRate(ctx, slices.Concat([]string{"bench", "run", name, "--dsn", way.dsn}, speedShape(), []string{"--distribution", "uniform", "--threads", threads, "--time", seconds + "s", "--output", "json"}))
		})
	if err != nil {
		return err
	}
	each, cpu := p.ratios()
	span := func(v []float64) string {
		return fmt.Sprintf("%s (%s to %s)", figure(median(v)), figure(quantile(v, 0)), figure(quantile(v, 1)))
	}
	of := func(r []rate, f func(rate) float64) string {
		var v []float64
		for _, x := range r {
			v = append(v, f(x))
		}
		return figure(median(v))
	}
	speed, cost := func(r rate) float64 { return r.each }, func(r rate) float64 { return r.cpu * 1e6 }
	t.row(name, way.name, threads, of(p.other, speed), of(p.risso, speed), span(each), of(p.other, cost), of(p.risso, cost), span(cpu))
	key := name + "_" + way.name + "_" + threads
	s.Figures[key], s.Figures[key+"_cpu"] = median(each), median(cpu)
	what := fmt.Sprintf("%s, %s, %s: times sysbench's speed", name, way.name, threads)
	s.atLeast(what, median(each), 1, "")
	if name == "point_select" && way.name == "socket" {
		s.below(fmt.Sprintf("%s, socket, %s: of sysbench's client CPU", name, threads), median(cpu), 0.8, "")
	}
	return nil
}

// What sysbench prints at the end.
var (
	sysbenchTransactions = regexp.MustCompile(`transactions:\s+(\d+)\s+\(([\d.]+) per sec`)
	sysbenchQueries      = regexp.MustCompile(`queries:\s+(\d+)\s+\(([\d.]+) per sec`)
)

func (b *bench) sysbench(ctx context.Context, args []string) (rate, error) {
	u, err := b.measure(ctx, nil, "sysbench", args...)
	if err != nil {
		return rate{}, err
	}
	t, q := sysbenchTransactions.FindSubmatch(u.out), sysbenchQueries.FindSubmatch(u.out)
	if t == nil || q == nil {
		return rate{}, fmt.Errorf("sysbench's output has no figures: %.300s", u.out)
	}
	each, err1 := strconv.ParseFloat(string(t[2]), 64)
	queries, err2 := strconv.ParseFloat(string(q[1]), 64)
	if err1 != nil || err2 != nil || queries == 0 {
		return rate{}, fmt.Errorf("sysbench's figures are no numbers: %.300s", u.out)
	}
	return rate{each: each, cpu: u.cpu / queries}, nil
}

func (b *bench) rissoRate(ctx context.Context, args []string) (rate, error) {
	u, err := b.measure(ctx, nil, b.risso, args...)
	if err != nil {
		return rate{}, err
	}
	var r struct {
		Queries int64
		TPS     float64 `json:"transactions_per_second"`
		Errors  []any
	}
	if err := json.Unmarshal(u.out, &r); err != nil {
		return rate{}, fmt.Errorf("risso %v: %w", args, err)
	}
	if r.Queries == 0 || len(r.Errors) > 0 {
		return rate{}, fmt.Errorf("risso %v: %d queries, errors %v", args, r.Queries, r.Errors)
	}
	return rate{each: r.TPS, cpu: u.cpu / float64(r.Queries)}, nil
}

var pgbenchTPS = regexp.MustCompile(`tps = ([\d.]+)`)

// postgres compares with pgbench. pgbench's table is risso's by a view, which the planner dissolves.
func (b *bench) postgres(ctx context.Context, s *section) error {
	pg, err := postgres.Up(ctx, postgres.Options{Settings: []string{"shared_buffers=512MB", "max_connections=200"}})
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		if err := pg.Down(ctx); err != nil {
			say("%v", err)
		}
	}()
	scale := 5
	rows := strconv.Itoa(scale * 100000)
	if _, err := b.measure(ctx, nil, filepath.Join(pg.Bin, "pgbench"), "-i", "-q", "-s", strconv.Itoa(scale), "-h", pg.Dir, "-U", "postgres", "postgres"); err != nil {
		return err
	}
	view := "CREATE VIEW sbtest1 AS SELECT aid AS id, abalance AS c FROM pgbench_accounts"
	if _, err := b.measure(ctx, nil, "psql", "-h", pg.Dir, "-U", "postgres", "-c", view, "postgres"); err != nil {
		return err
	}
	s.note("pgbench -S -M prepared: SELECT abalance FROM pgbench_accounts WHERE aid = $1; risso point_select the same by a view; %s rows, Unix socket, %s a measurement.", rows, b.window)
	t := s.table(fmt.Sprintf("risso by pgbench: medians of the ratios of %d rounds", b.rounds), "connections", "pgbench/s", "risso/s", "ratio", "client CPU, ratio")
	seconds := strconv.Itoa(int(b.window.Seconds()))
	for _, c := range strings.Split(b.connections, ",") {
		p, err := b.turns(ctx, "PostgreSQL, "+c+" connections",
			func(ctx context.Context) (rate, error) {
				u, err := b.measure(ctx, nil, filepath.Join(pg.Bin, "pgbench"), "-S", "-M", "prepared", "-n", "-c", c, "-j", c, "-T", seconds, "-h", pg.Dir, "-U", "postgres", "postgres")
				if err != nil {
					return rate{}, err
				}
				m := pgbenchTPS.FindSubmatch(u.out)
				if m == nil {
					return rate{}, fmt.Errorf("pgbench's output has no figures: %.300s", u.out)
				}
				v, err := strconv.ParseFloat(string(m[1]), 64)
				return rate{each: v, cpu: u.cpu / (v * b.window.Seconds())}, err
			},
			func(ctx context.Context) (rate, error) {
				return b.rissoRate(ctx, []string{"bench", "run", "point_select", "--dsn", pg.URL(""), "--yes", "--tables", "1", "--table-size", rows, "--distribution", "uniform", "--threads", c, "--time", seconds + "s", "--output", "json"})
			})
		if err != nil {
			return err
		}
		each, cpu := p.ratios()
		var other, risso []float64
		for i := range p.other {
			other, risso = append(other, p.other[i].each), append(risso, p.risso[i].each)
		}
		t.row(c, figure(median(other)), figure(median(risso)), figure(median(each)), figure(median(cpu)))
		s.Figures["postgres_"+c], s.Figures["postgres_"+c+"_cpu"] = median(each), median(cpu)
		s.atLeast("PostgreSQL, "+c+": times pgbench's speed", median(each), 1, "")
	}
	return nil
}
