package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"

	sqldriver "database/sql/driver"

	"github.com/rissodb/risso/internal/sandbox"
)

// usage is how much of a processor each took in one window.
type usage struct{ client, second, server float64 }

// turn is what was measured with a number of idle connections, a usage for each round.
type turn struct {
	idle                  int
	base, risso, exporter []usage
	session               []float64 // the server's thread that serves Risso
	floor                 []float64 // the same for a client that sends SHOW GLOBAL STATUS each second and nothing else
	values                float64   // that Risso reads each second
	samples               float64   // that Prometheus gets each second
}

// single starts a separate server with all InnoDB metrics switched on.
func (b *bench) single(ctx context.Context) (*sandbox.Sandbox, error) {
	return sandbox.Up(ctx, sandbox.Options{Dir: filepath.Join(b.work, "sb"), Servers: []string{"mariadb"},
		Settings: []string{"innodb_monitor_enable=all", "max_connections=" + strconv.Itoa(max(b.idle, b.many*2)+200)}})
}

func down(ctx context.Context, sb *sandbox.Sandbox) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if err := sb.Down(ctx); err != nil {
		say("%v", err)
	}
}

// collect measures what collecting costs, on both sides.
func (b *bench) collect(ctx context.Context, s *section) error {
	sb, err := b.single(ctx)
	if err != nil {
		return err
	}
	defer down(ctx, sb)
	if err := pause(ctx, b.short(10*time.Second, 3*time.Second)); err != nil { // the server settles
		return err
	}
	t := s.table("of one core; medians of "+strconv.Itoa(b.rounds)+" rounds of "+b.window.String()+" each", "idle connections", "server alone",
		"risso", "its server", "(its session)", "(SHOW GLOBAL STATUS alone)", "values/s", "exporter", "prometheus", "their server", "samples/s", "ratio")
	for _, idle := range []int{0, b.idle} {
		turn, err := b.turn(ctx, sb, idle)
		if err != nil {
			return err
		}
		turn.report(s, t)
	}
	s.note("Server columns are without what the server used alone. Session is the processor time of the thread that serves Risso: exact, where the difference is noisy.")
	if err := b.statements(ctx, s, sb.Primary()); err != nil {
		return err
	}
	if b.profile {
		return b.profileCollect(ctx, s, sb.Primary())
	}
	return nil
}

func (b *bench) short(full, quick time.Duration) time.Duration {
	if b.quick {
		return quick
	}
	return full
}

func (b *bench) turn(ctx context.Context, sb *sandbox.Sandbox, idle int) (*turn, error) {
	n := sb.Primary()
	close, err := openIdle(ctx, n, idle)
	if err != nil {
		return nil, err
	}
	defer close()
	t := &turn{idle: idle}
	for i := range b.rounds {
		say("collect: %d idle connections, round %d of %d", idle, i+1, b.rounds)
		if err := pause(ctx, b.short(5*time.Second, 2*time.Second)); err != nil {
			return nil, err
		}
		alone, err := cores(ctx, b.window, n.PID)
		if err != nil {
			return nil, err
		}
		t.base = append(t.base, usage{server: alone[0]})
		if err := b.rissoRound(ctx, n, t); err != nil {
			return nil, err
		}
		if err := b.floorRound(ctx, n, t); err != nil {
			return nil, err
		}
		if err := b.exporterRound(ctx, n, t); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (b *bench) rissoRound(ctx context.Context, n *sandbox.Node, t *turn) error {
	before, err := connections(ctx, n)
	if err != nil {
		return err
	}
	r, err := b.serve(ctx, filepath.Join(b.work, "collect-"+strconv.FormatInt(time.Now().UnixNano(), 36)), "--no-host", "--dsn", "db=root@unix("+n.Socket+")/")
	if err != nil {
		return err
	}
	defer r.stop()
	if err := pause(ctx, b.short(10*time.Second, 4*time.Second)); err != nil {
		return err
	}
	after, err := connections(ctx, n)
	if err != nil {
		return err
	}
	thread := 0
	for id, tid := range after {
		if _, old := before[id]; !old {
			thread = tid
		}
	}
	began := time.Now()
	t0, err := threadTime(n.PID, thread)
	if err != nil {
		return fmt.Errorf("the thread that serves Risso: %w", err)
	}
	used, err := cores(ctx, b.window, r.pid(), n.PID)
	if err != nil {
		return err
	}
	t1, err := threadTime(n.PID, thread)
	if err != nil {
		return fmt.Errorf("the thread that serves Risso: %w", err)
	}
	t.session = append(t.session, (t1-t0).Seconds()/time.Since(began).Seconds())
	t.risso = append(t.risso, usage{client: used[0], server: used[1]})
	var d struct {
		Cost struct{ Values_per_second float64 }
	}
	if err := get(ctx, r.url+"/api/instance?id=db", &d); err != nil {
		return err
	}
	t.values = d.Cost.Values_per_second
	return nil
}

// floorRound measures the least that reading the global status each second can cost.
func (b *bench) floorRound(ctx context.Context, n *sandbox.Node, t *turn) error {
	c, tid, end, err := session(ctx, n)
	if err != nil {
		return err
	}
	defer end()
	before, err := threadTime(n.PID, tid)
	if err != nil {
		return err
	}
	began := time.Now()
	for time.Since(began) < b.window {
		if err := ask(ctx, c, "SHOW GLOBAL STATUS"); err != nil {
			return err
		}
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
	}
	after, err := threadTime(n.PID, tid)
	if err != nil {
		return err
	}
	t.floor = append(t.floor, (after-before).Seconds()/time.Since(began).Seconds())
	return nil
}

func (b *bench) exporterRound(ctx context.Context, n *sandbox.Node, t *turn) error {
	e, addr, err := b.exporter(ctx, n.Socket)
	if err != nil {
		return err
	}
	defer e.stop()
	p, base, err := b.prometheus(ctx, filepath.Join(b.work, "prometheus-"+strconv.FormatInt(time.Now().UnixNano(), 36)), addr)
	if err != nil {
		return err
	}
	defer p.stop()
	if err := pause(ctx, b.short(10*time.Second, 4*time.Second)); err != nil {
		return err
	}
	used, err := cores(ctx, b.window, e.pid(), p.pid(), n.PID)
	if err != nil {
		return err
	}
	t.exporter = append(t.exporter, usage{used[0], used[1], used[2]})
	got, err := instant(ctx, base, "scrape_samples_scraped", "job", time.Time{})
	if err != nil {
		return err
	}
	if t.samples = got["mysql"]; t.samples == 0 {
		return fmt.Errorf("nothing was scraped by Prometheus: %s", e.tail())
	}
	return nil
}

func middle(u []usage, f func(usage) float64) float64 {
	v := make([]float64, len(u))
	for i := range u {
		v[i] = f(u[i])
	}
	return median(v)
}

func percent(v float64) string { return fmt.Sprintf("%.3f %%", v*100) }

// report adds a row and judges it.
func (t *turn) report(s *section, out *table) {
	server := func(u usage) float64 { return u.server }
	client := func(u usage) float64 { return u.client }
	base := middle(t.base, server)
	risso, rServer := middle(t.risso, client), middle(t.risso, server)-base
	exporter, prom, eServer := middle(t.exporter, client), middle(t.exporter, func(u usage) float64 { return u.second }), middle(t.exporter, server)-base
	session, floor := median(t.session), median(t.floor)
	// What the session's own thread used, the server used for certain: a smaller difference is noise.
	cost := max(rServer, session)
	ratio := (exporter + prom + eServer) / (risso + cost)
	out.row(strconv.Itoa(t.idle), percent(base), percent(risso), percent(rServer), percent(session), percent(floor), figure(t.values),
		percent(exporter), percent(prom), percent(eServer), figure(t.samples), figure(ratio))
	name := fmt.Sprintf("idle%d_", t.idle)
	for k, v := range map[string]float64{"server_alone": base, "risso": risso, "risso_server": rServer, "risso_session": session, "show_global_status": floor, "values": t.values,
		"exporter": exporter, "prometheus": prom, "exporter_server": eServer, "samples": t.samples, "ratio": ratio} {
		s.Figures[name+k] = v
	}
	with := fmt.Sprintf(", %d idle connections", t.idle)
	s.below("risso, of a core"+with, risso*100, 0.3, " %")
	s.below("its server, of a core"+with, cost*100, 0.2, " %")
	s.atLeast("less than exporter and Prometheus"+with, ratio, 5, " times")
	s.note("%d idle: rounds alone %s; with Risso %s (Risso %s); with the exporter %s", t.idle, rounds(t.base, server), rounds(t.risso, server), rounds(t.risso, client), rounds(t.exporter, server))
}

func rounds(u []usage, f func(usage) float64) string {
	var out []string
	for _, v := range u {
		out = append(out, fmt.Sprintf("%.3f", f(v)*100))
	}
	return strings.Join(out, "/") + " %"
}

// openIdle opens connections that do nothing.
func openIdle(ctx context.Context, n *sandbox.Node, count int) (closeAll func(), err error) {
	var open []sqldriver.Conn
	closeAll = func() {
		for _, c := range open {
			c.Close() // the server is about to be killed
		}
	}
	connector, err := driver.NewConnector(n.Config())
	if err != nil {
		return nil, err
	}
	for range count {
		c, err := connector.Connect(ctx)
		if err != nil {
			closeAll()
			return nil, fmt.Errorf("open %d idle connections: %w", count, err)
		}
		open = append(open, c)
	}
	return closeAll, nil
}

// connections returns the thread of the operating system that serves each connection, by the connection's id.
func connections(ctx context.Context, n *sandbox.Node) (map[int]int, error) {
	res, err := n.Query(ctx, "SELECT ID, TID FROM information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID()")
	if err != nil {
		return nil, err
	}
	out := map[int]int{}
	for _, row := range res[0].Rows {
		if row[0] == nil || row[1] == nil {
			continue
		}
		id, err1 := strconv.Atoi(*row[0])
		tid, err2 := strconv.Atoi(*row[1])
		if err1 != nil || err2 != nil {
			return nil, fmt.Errorf("process list: %q %q", *row[0], *row[1])
		}
		out[id] = tid
	}
	return out, nil
}

// profileCollect shows where Risso and the server spend their time, by perf.
func (b *bench) profileCollect(ctx context.Context, s *section, n *sandbox.Node) error {
	r, err := b.serve(ctx, filepath.Join(b.work, "collect-profile"), "--no-host", "--dsn", "db=root@unix("+n.Socket+")/")
	if err != nil {
		return err
	}
	defer r.stop()
	if err := pause(ctx, 5*time.Second); err != nil {
		return err
	}
	for _, who := range []struct {
		name string
		pid  int
	}{{"risso", r.pid()}, {"server", n.PID}} {
		if err := b.perf(ctx, s, who.name, who.pid, b.window); err != nil {
			s.note("no profile of %s: %v", who.name, err)
		}
	}
	return nil
}

// perf samples a process for a while and adds a table of what it ran.
func (b *bench) perf(ctx context.Context, s *section, name string, pid int, d time.Duration) error {
	file := filepath.Join(b.work, "perf-"+name)
	cmd := exec.CommandContext(ctx, "perf", "record", "-q", "-F", "5000", "-g", "-o", file, "-p", strconv.Itoa(pid), "--", "sleep", fmt.Sprint(d.Seconds()))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("perf record: %w: %.300s", err, out)
	}
	for _, how := range []struct{ title, flag string }{{"itself", "--no-children"}, {"with what it calls", "--children"}} {
		out, err := exec.CommandContext(ctx, "perf", "report", "-i", file, "--stdio", how.flag, "-g", "none", "--percent-limit", "0.7", "-F", "overhead,dso,sym").CombinedOutput()
		if how.flag == "--children" {
			out, err = exec.CommandContext(ctx, "perf", "report", "-i", file, "--stdio", how.flag, "-g", "none", "--percent-limit", "3", "-F", "overhead_children,sym").CombinedOutput()
		}
		if err != nil {
			return fmt.Errorf("perf report: %w: %.300s", err, out)
		}
		t := s.table("profile of "+name+", "+how.title, "share and function")
		for line := range strings.Lines(string(out)) {
			line = strings.TrimSpace(line)
			if line != "" && !strings.HasPrefix(line, "#") && len(t.Rows) < 60 {
				t.row(line)
			}
		}
	}
	return nil
}
