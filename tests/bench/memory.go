package main

import (
	"context"
	"fmt"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/sandbox"
)

// memory watches risso serve for a while: with a primary and two replicas under load, then with many servers.
func (b *bench) memory(ctx context.Context, s *section) error {
	if err := b.memoryThree(ctx, s); err != nil {
		return err
	}
	return b.memoryMany(ctx, s)
}

// grown is what was seen of a process over a time.
type grown struct{ first, last, peak float64 }

// follow reads a process' resident memory at the given interval.
func follow(ctx context.Context, p *process, total, every time.Duration, each func(at time.Duration, rss float64)) (g grown, err error) {
	for began := time.Now(); ; {
		rss, err := resident(p.pid())
		if err != nil {
			return g, fmt.Errorf("%s: %w: %s", p.name, err, p.tail())
		}
		if g.first == 0 {
			g.first = rss
		}
		g.last, g.peak = rss, max(g.peak, rss)
		at := time.Since(began)
		if each != nil {
			each(at, rss)
		}
		if at >= total {
			return g, nil
		}
		if err := pause(ctx, min(every, total-at)); err != nil {
			return g, err
		}
	}
}

const mega = 1e6 // megabytes: "80 MB" is taken in the strict sense

func (b *bench) memoryThree(ctx context.Context, s *section) error {
	sb, err := sandbox.Up(ctx, sandbox.Options{Dir: filepath.Join(b.work, "sb"), Servers: []string{"mariadb"}, Topology: sandbox.TopologyReplication, Replicas: 2})
	if err != nil {
		return err
	}
	defer down(ctx, sb)
	var loads sync.WaitGroup
	lctx, cancel := context.WithCancel(ctx)
	defer loads.Wait()
	defer cancel()
	loads.Go(func() {
		if err := sb.Load(lctx, sandbox.LoadOptions{}, nil); err != nil {
			say("memory: the load ended: %v", err)
		}
	})
	var args []string
	for _, n := range sb.Nodes {
		args = append(args, "--dsn", n.Name+"=root@unix("+n.Socket+")/")
	}
	r, err := b.serve(ctx, filepath.Join(b.work, "memory-three"), args...)
	if err != nil {
		return err
	}
	defer r.stop()
	total := time.Duration(b.minutes) * time.Minute
	say("memory: 3 servers and the host for %s", total)
	c0, err := cpuTime(r.pid())
	if err != nil {
		return err
	}
	t := s.table("risso serve with 3 servers under load and the host", "minute", "resident MB")
	next := time.Duration(0)
	g, err := follow(ctx, r.process, total, 5*time.Second, func(at time.Duration, rss float64) {
		if at >= next {
			t.row(fmt.Sprintf("%.1f", at.Minutes()), figure(rss/mega))
			next += total / 12
		}
	})
	if err != nil {
		return err
	}
	c1, err := cpuTime(r.pid())
	if err != nil {
		return err
	}
	read, err := b.lookAround(ctx, r, sb.Primary().Name, total)
	if err != nil {
		return err
	}
	s.note("at the end %s MB, at most %s MB; %s of a core; after 10 readings of all charts of that time (%d series each) %s MB",
		figure(g.last/mega), figure(g.peak/mega), percent((c1-c0).Seconds()/total.Seconds()), read.series, figure(read.rss/mega))
	s.Figures["three_rss"], s.Figures["three_rss_peak"], s.Figures["three_rss_after_reading"] = g.last, g.peak, read.rss
	s.Figures["three_cores"] = (c1 - c0).Seconds() / total.Seconds()
	s.below(fmt.Sprintf("MB resident with 3 servers, at most in %d minutes", b.minutes), g.peak/mega, 80, "")
	s.below("MB resident with 3 servers, after reading all charts", read.rss/mega, 80, "")
	return nil
}

type lookedAt struct {
	series int
	rss    float64
}

// lookAround reads what an open page reads, ten times.
func (b *bench) lookAround(ctx context.Context, r *risso, id string, span time.Duration) (l lookedAt, err error) {
	var list struct{ Metrics []struct{ Key string } }
	if err := get(ctx, r.url+"/api/metrics?instance="+id, &list); err != nil {
		return l, err
	}
	now := time.Now().Unix()
	q := url.Values{"instance": {id}, "to": {strconv.FormatInt(now, 10)}, "from": {strconv.FormatInt(now-int64(span.Seconds()), 10)}, "points": {"600"}}
	for i := 0; i < len(list.Metrics) && i < 60; i++ {
		q.Add("key", list.Metrics[i*len(list.Metrics)/60].Key)
	}
	l.series = len(q["key"])
	for range 10 {
		for _, path := range []string{"/api/fleet", "/api/instance?id=" + id, "/api/chart?" + q.Encode()} {
			if err := get(ctx, r.url+path, nil); err != nil {
				return l, err
			}
		}
	}
	l.rss, err = resident(r.pid())
	return l, err
}

// memoryMany watches one server under many names: as many collectors, connections, writers and rows of the overview as so many servers.
func (b *bench) memoryMany(ctx context.Context, s *section) error {
	sb, err := sandbox.Up(ctx, sandbox.Options{Dir: filepath.Join(b.work, "sb"), Servers: []string{"mariadb"}, Settings: []string{"innodb_monitor_enable=all", "max_connections=" + strconv.Itoa(b.many*2+200)}})
	if err != nil {
		return err
	}
	defer down(ctx, sb)
	n := sb.Primary()
	var conf strings.Builder
	conf.WriteString("servers:\n")
	for i := range b.many {
		fmt.Fprintf(&conf, "  - {name: db%03d, dsn: 'root@unix(%s)/'}\n", i, n.Socket)
	}
	file := filepath.Join(b.work, "many.yaml")
	if err := os.WriteFile(file, []byte(conf.String()), 0o600); err != nil {
		return err
	}
	r, err := b.serve(ctx, filepath.Join(b.work, "memory-many"), "--no-host", "--config", file)
	if err != nil {
		return err
	}
	defer r.stop()
	total := max(time.Duration(b.minutes)*time.Minute/4, 2*time.Minute)
	say("memory: %d servers for %s", b.many, total)
	if err := pause(ctx, 20*time.Second); err != nil {
		return err
	}
	pids := []int{r.pid(), n.PID}
	before := make([]time.Duration, len(pids))
	for i, pid := range pids {
		if before[i], err = cpuTime(pid); err != nil {
			return err
		}
	}
	began := time.Now()
	late := starved(ctx)
	g, err := follow(ctx, r.process, total, 5*time.Second, nil)
	longest, often := late()
	if err != nil {
		return err
	}
	s.note("Meanwhile the machine woke a sleeper of 20 ms at most %s late, and %d times later than half a second.", longest.Round(time.Millisecond), often)
	used := make([]float64, len(pids))
	for i, pid := range pids {
		after, err := cpuTime(pid)
		if err != nil {
			return err
		}
		used[i] = (after - before[i]).Seconds() / time.Since(began).Seconds()
	}
	seconds := int(total.Seconds()) - 30
	until := time.Now().Add(-5 * time.Second)
	counts, err := instant(ctx, r.url, fmt.Sprintf("count_over_time(mysql_global_status_questions[%ds])", seconds), "instance", until)
	if err != nil {
		return err
	}
	b.manyReport(s, g, used, counts, seconds)
	return missed(ctx, s, r.url, until.Unix(), int64(seconds))
}

// starved watches how late this program is woken, until the function that it returns is called: a machine that
// others keep busy makes Risso miss seconds, too.
func starved(ctx context.Context) func() (longest time.Duration, often int) {
	ctx, cancel := context.WithCancel(ctx)
	var longest time.Duration
	often := 0
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			began := time.Now()
			if pause(ctx, 20*time.Millisecond) != nil {
				return
			}
			late := time.Since(began) - 20*time.Millisecond
			longest = max(longest, late)
			if late > time.Second/2 {
				often++
			}
		}
	}()
	return func() (time.Duration, int) {
		cancel()
		<-done
		return longest, often
	}
}

// missed notes in which seconds values are missing: all servers at the same time point to Risso or the machine, one to itself.
func missed(ctx context.Context, s *section, base string, until, seconds int64) error {
	q := url.Values{"query": {"count(mysql_global_status_questions)"}, "start": {strconv.FormatInt(until-seconds+1, 10)}, "end": {strconv.FormatInt(until, 10)}, "step": {"1"}, "lookback_delta": {"1s"}}
	var a struct {
		Data struct{ Result []struct{ Values [][2]any } }
	}
	if err := get(ctx, base+"/api/v1/query_range?"+q.Encode(), &a); err != nil {
		return err
	}
	most, text := 0.0, []string{}
	for _, r := range a.Data.Result {
		for _, v := range r.Values {
			n, err := strconv.ParseFloat(fmt.Sprint(v[1]), 64)
			if err != nil {
				return err
			}
			most = max(most, n)
		}
		for _, v := range r.Values {
			n, _ := strconv.ParseFloat(fmt.Sprint(v[1]), 64)
			if t, ok := v[0].(float64); ok && n < most && len(text) < 40 {
				text = append(text, fmt.Sprintf(":%02.0f %.0f", math.Mod(t, 60), most-n))
			}
		}
	}
	if len(text) > 0 {
		s.note("Seconds of the minute with missing servers, and how many: %s", strings.Join(text, ", "))
	}
	return nil
}

func (b *bench) manyReport(s *section, g grown, used []float64, counts map[string]float64, seconds int) {
	lost, worst := 0.0, 1.0
	for i := range b.many {
		part := counts[fmt.Sprintf("db%03d", i)] / float64(seconds)
		lost += (1 - part) / float64(b.many)
		worst = min(worst, part)
	}
	t := s.table(fmt.Sprintf("risso serve with %d servers (one MariaDB under %d names), %d s", b.many, b.many, seconds),
		"resident MB at most", "risso, of a core", "the server, of a core", "seconds collected, all", "seconds collected, worst server")
	t.row(figure(g.peak/mega), percent(used[0]), percent(used[1]), fmt.Sprintf("%.2f %%", (1-lost)*100), fmt.Sprintf("%.2f %%", worst*100))
	s.Figures["many_rss_peak"], s.Figures["many_cores"], s.Figures["many_server_cores"] = g.peak, used[0], used[1]
	s.Figures["many_collected"], s.Figures["many_collected_worst"] = 1-lost, worst
	s.below(fmt.Sprintf("MB resident with %d servers", b.many), g.peak/mega, 600, "")
	s.atLeast(fmt.Sprintf("of all seconds collected with %d servers", b.many), (1-lost)*100, 99.9, " %")
	s.note("The one MariaDB that plays %d servers shares the processors: with real ones its part is elsewhere.", b.many)
}
