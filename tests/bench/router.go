package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/publish"
	"github.com/rissodb/risso/internal/sandbox"
)

// What the router promises.
const (
	routerClients = 16
	routerAdded   = 30.   // µs at the median
	routerMany    = 10000 // idle connections
	routerMemory  = 200.  // MB
)

// way is how a client reaches the server.
type way struct {
	name, address string
	process       *process // between them; nil: nothing
}

// passed is what a client measured on a way in one round.
type passed struct{ each, median, cpu float64 } // queries a second, µs, µs of the router's processor a query

// router compares risso route with HAProxy, and with no router.
func (b *bench) router(ctx context.Context, s *section) error {
	sb, err := sandbox.Up(ctx, sandbox.Options{Dir: filepath.Join(b.work, "sb"), Servers: []string{b.server}, Settings: []string{"innodb_buffer_pool_size=1G", "max_connections=400"}})
	if err != nil {
		return err
	}
	defer down(ctx, sb)
	n := sb.Primary()
	if _, err := n.Query(ctx, "CREATE DATABASE sbtest; CREATE USER bench@'127.0.0.1' IDENTIFIED BY ''; GRANT ALL ON sbtest.* TO bench@'127.0.0.1'"); err != nil {
		return err
	}
	at := fmt.Sprintf("127.0.0.1:%d", n.Port)
	ways := []way{{"direct", at, nil}}
	haproxy, err := b.haproxy(ctx, at)
	if err != nil {
		return err
	}
	defer haproxy.process.stop()
	route, err := b.routeTo(ctx, at)
	if err != nil {
		return err
	}
	defer route.process.stop()
	ways = append(ways, haproxy, route)
	if _, err := b.measure(ctx, nil, b.risso, "bench", "prepare", "point_select", "--dsn", "bench@tcp("+at+")/sbtest", "--tables", "1", "--table-size", strconv.Itoa(speedRows), "--yes"); err != nil {
		return err
	}
	rounds := b.rounds
	if !b.quick {
		rounds = max(rounds, 9)
	}
	t := s.table(fmt.Sprintf("point selects on %s %s: medians of %d rounds (least to most)", n.Server, n.Version, rounds),
		"connections", "way", "queries/s", "median of an answer, µs", "router's CPU a query, µs")
	for _, clients := range []int{1, routerClients} {
		got := make([][]passed, len(ways))
		for round := range rounds {
			say("router: %d connections, round %d of %d", clients, round+1, rounds)
			for i := range ways {
				k := (i + round) % len(ways) // who is first changes
				p, err := b.pass(ctx, ways[k], clients)
				if err != nil {
					return err
				}
				got[k] = append(got[k], p)
			}
		}
		b.routerVerdict(s, t, ways, got, clients)
	}
	version, _ := b.measure(ctx, nil, "haproxy", "-v")
	line, _, _ := strings.Cut(string(version.out), "\n")
	s.note("Client, router and server have the machine's processors in common. %s, mode tcp, as many threads as there are processors; risso route the same. Each measurement takes %s.", line, b.window)
	return nil
}

// routerVerdict shows one number of connections, and what was promised of it.
func (b *bench) routerVerdict(s *section, t *table, ways []way, got [][]passed, clients int) {
	of := func(i int, f func(passed) float64) []float64 {
		var v []float64
		for _, p := range got[i] {
			v = append(v, f(p))
		}
		return v
	}
	span := func(v []float64) string {
		return fmt.Sprintf("%s (%s to %s)", figure(median(v)), figure(quantile(v, 0)), figure(quantile(v, 1)))
	}
	each, latency, cpu := func(p passed) float64 { return p.each }, func(p passed) float64 { return p.median }, func(p passed) float64 { return p.cpu }
	for i, w := range ways {
		used := ""
		if w.process != nil {
			used = span(of(i, cpu))
		}
		t.row(strconv.Itoa(clients), w.name, span(of(i, each)), span(of(i, latency)), used)
		s.Figures[fmt.Sprintf("%s_%d", w.name, clients)] = median(of(i, each))
	}
	var ratios, added, theirs []float64
	for i := range got[0] {
		ratios = append(ratios, got[2][i].each/got[1][i].each)
		added = append(added, got[2][i].median-got[0][i].median)
		theirs = append(theirs, got[1][i].median-got[0][i].median)
	}
	s.note("%d connections: %s times HAProxy's queries a second, round by round; an answer takes %s µs longer than without a router, through HAProxy %s µs.", clients, span(ratios), span(added), span(theirs))
	s.Figures[fmt.Sprintf("ratio_%d", clients)], s.Figures[fmt.Sprintf("added_us_%d", clients)], s.Figures[fmt.Sprintf("haproxy_added_us_%d", clients)] = median(ratios), median(added), median(theirs)
	if clients == 1 {
		s.below("added to the median of an answer, 1 connection", median(added), routerAdded, " µs")
		return
	}
	s.atLeast(fmt.Sprintf("times HAProxy's queries a second, %d connections", clients), median(ratios), 1, "")
}

// pass measures one way once.
func (b *bench) pass(ctx context.Context, w way, clients int) (p passed, err error) {
	var before, after time.Duration
	if w.process != nil {
		if before, err = cpuTime(w.process.pid()); err != nil {
			return p, err
		}
	}
	u, err := b.measure(ctx, nil, b.risso, "bench", "run", "point_select", "--dsn", "bench@tcp("+w.address+")/sbtest", "--tables", "1", "--table-size", strconv.Itoa(speedRows),
		"--distribution", "uniform", "--threads", strconv.Itoa(clients), "--time", strconv.Itoa(int(b.window.Seconds()))+"s", "--output", "json")
	if err != nil {
		return p, err
	}
	if w.process != nil {
		if after, err = cpuTime(w.process.pid()); err != nil {
			return p, err
		}
	}
	var r struct {
		Queries int64
		TPS     float64 `json:"transactions_per_second"`
		Latency struct {
			Percentiles []struct{ Percentile, Seconds float64 }
		}
		Errors []any
	}
	if err := json.Unmarshal(u.out, &r); err != nil {
		return p, fmt.Errorf("risso bench through %s: %w", w.name, err)
	}
	i := slices.IndexFunc(r.Latency.Percentiles, func(q struct{ Percentile, Seconds float64 }) bool { return q.Percentile == 50 })
	if r.Queries == 0 || len(r.Errors) > 0 || i < 0 {
		return p, fmt.Errorf("risso bench through %s: %d queries, errors %v", w.name, r.Queries, r.Errors)
	}
	return passed{each: r.TPS, median: r.Latency.Percentiles[i].Seconds * 1e6, cpu: (after - before).Seconds() * 1e6 / float64(r.Queries)}, nil
}

// haproxy starts one in TCP mode.
func (b *bench) haproxy(ctx context.Context, to string) (w way, err error) {
	at, err := freePort()
	if err != nil {
		return w, err
	}
	config := filepath.Join(b.work, "haproxy.cfg")
	text := "global\n maxconn 9000\ndefaults\n mode tcp\n timeout connect 5s\n timeout client 1h\n timeout server 1h\nlisten mysql\n bind " + at + "\n server primary " + to + "\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return w, err
	}
	p, err := b.launch("haproxy", nil, "haproxy", "-db", "-f", config)
	if err != nil {
		return w, err
	}
	w = way{"HAProxy", at, p}
	return w, b.greets(ctx, w)
}

// routeTo starts risso route, and what it asks: the answers of risso serve, from this process.
func (b *bench) routeTo(ctx context.Context, to string) (w way, err error) {
	at, err := freePort()
	if err != nil {
		return w, err
	}
	posts := publish.NewBoard()
	posts.Tell(group.View{Group: "g", Epoch: 1, Primary: &group.Server{Name: "primary", Address: to, Weight: 1}, Replicas: []group.Server{}, Seen: time.Now()}, nil)
	server := httptest.NewServer(publish.NewDesk(posts, 24*time.Hour))
	p, err := b.launch("route", nil, b.risso, "route", "--listen", at, "--group", "g", "--url", server.URL)
	if err != nil {
		return w, err
	}
	go func() { <-p.done; server.Close() }()
	w = way{"risso route", at, p}
	return w, b.greets(ctx, w)
}

// greets waits until a server is reached on a way.
func (b *bench) greets(ctx context.Context, w way) error {
	err := w.process.await(ctx, time.Minute, func() bool {
		c, err := net.DialTimeout("tcp", w.address, time.Second)
		if err != nil {
			return false
		}
		defer c.Close()
		_ = c.SetReadDeadline(time.Now().Add(time.Second))
		var head [5]byte
		_, err = io.ReadFull(c, head[:])
		return err == nil && head[4] == 10
	})
	if err != nil {
		w.process.stop()
	}
	return err
}

// routerIdle measures the memory of a router with very many connections on which nothing moves.
func (b *bench) routerIdle(ctx context.Context, s *section) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	want := min(routerMany, (int(min(limit.Max, 1<<20))-128)/2)
	settings := []string{"thread_handling=pool-of-threads", fmt.Sprintf("max_connections=%d", want+100), fmt.Sprintf("open_files_limit=%d", limit.Max), "connect_timeout=3600", "back_log=4000"}
	sb, err := sandbox.Up(ctx, sandbox.Options{Dir: filepath.Join(b.work, "sb"), Servers: []string{"mariadb"}, Settings: settings})
	if err != nil {
		return err
	}
	defer down(ctx, sb)
	route, err := b.routeTo(ctx, fmt.Sprintf("127.0.0.1:%d", sb.Primary().Port))
	if err != nil {
		return err
	}
	defer route.process.stop()
	empty, err := resident(route.process.pid())
	if err != nil {
		return err
	}
	conns, err := openMany(ctx, route.address, want)
	defer func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}()
	if err != nil {
		return err
	}
	if err := pause(ctx, 3*time.Second); err != nil {
		return err
	}
	full, err := resident(route.process.pid())
	if err != nil {
		return err
	}
	used, err := cores(ctx, 5*time.Second, route.process.pid())
	if err != nil {
		return err
	}
	t := s.table("risso route with idle connections to MariaDB", "connections", "resident, MB", "bytes a connection", "cores")
	t.row("0", figure(empty/1e6), "", "")
	t.row(strconv.Itoa(len(conns)), figure(full/1e6), figure((full-empty)/float64(len(conns))), figure(used[0]))
	s.Figures["idle_mb"], s.Figures["idle_connections"], s.Figures["idle_cores"] = full/1e6, float64(len(conns)), used[0]
	s.note("The server has greeted them; they have not logged in, which a router does not see.")
	if want < routerMany {
		s.note("Not %d connections: each takes two descriptors of the router, and the machine gives a process %d.", routerMany, limit.Max)
	}
	s.below(fmt.Sprintf("memory with %d idle connections", len(conns)), full/1e6, routerMemory, " MB")
	return nil
}

// openMany opens connections that a server greets.
func openMany(ctx context.Context, address string, n int) (conns []net.Conn, err error) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for w := range 16 {
		all.Go(func() {
			for i := w; i < n; i += 16 {
				c, failed := (&net.Dialer{}).DialContext(ctx, "tcp", address)
				if failed == nil {
					var head [5]byte
					_ = c.SetReadDeadline(time.Now().Add(time.Minute))
					if _, failed = io.ReadFull(c, head[:]); failed == nil && head[4] != 10 {
						failed = errors.New("refused instead of greeted")
					}
				}
				mu.Lock()
				if c != nil {
					conns = append(conns, c)
				}
				err = errors.Join(err, failed)
				stop := err != nil
				mu.Unlock()
				if stop {
					return
				}
			}
		})
	}
	all.Wait()
	return conns, err
}
