package rules

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/blockers"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/watch/stall"
)

const (
	statusPrefix   = "mysql_global_status_"
	variablePrefix = "mysql_global_variables_"
	innodbPrefix   = "mysql_info_schema_innodb_metrics_"
)

// showProcesses lists what runs, the oldest first; it works on all flavours.
const showProcesses = "SELECT id, user, host, db, time, state, LEFT(info, 200) FROM information_schema.PROCESSLIST WHERE command NOT IN ('Sleep', 'Daemon', 'Binlog Dump', 'Binlog Dump GTID') ORDER BY time DESC LIMIT 20"

// server is what the instance is able to do. One of which nothing is known is taken for a new one.
func (s *Snapshot) server() mysql.Server {
	is := s.Instance.Server()
	if is.Number == 0 {
		is.Number = fleet.Never - 1
	}
	return mysql.Of(is)
}

// others is how many sessions run a statement, without Risso's, whose own runs while it reads, and without those that send a binary log to a
// replica, which servers count. Those come without a word, twenty at once after a restart, and are counted only now and then; so no more than were
// found running a statement count, where Risso may see all sessions.
func (r *round) others() (float64, bool) {
	running, ok := r.value(statusPrefix + "threads_running")
	if !ok {
		return 0, false
	}
	senders, _ := r.value("risso_replicas_connected")
	more, _ := r.value(statusPrefix + "slaves_connected")
	others := max(running-1-max(senders, more), 0)
	found := 0.0
	for _, class := range read.WaitClasses {
		n, known := r.value(waitKey(class))
		if !known {
			return others, true
		}
		found += n
	}
	if slices.ContainsFunc(r.Gaps, func(g fleet.Trouble) bool {
		return g.What == read.WhatWaits || strings.Contains(g.Remedy, "GRANT PROCESS")
	}) {
		return others, true
	}
	return min(others, found), true
}

// noStatement is the most statements a second where none begins: Risso's own count may be one off.
const noStatement = 0.5

// stalled finds a server that has work and does little of it, or begins none. Questions counts at the start of a statement; Risso's own are
// taken off.
func stalled(r *round) {
	questions, ok := r.rate(statusPrefix + "questions")
	others, ok2 := r.others()
	own, _ := r.rate("risso_collect_queries_total")
	questions = max(questions-own, 0)
	r.stall = r.j.stalls.Look(stall.Reading{Tick: r.Now.Unix(), Up: true, Known: ok && ok2, Begun: questions, Running: others, Waiting: r.inLocks()})
	if !ok || !ok2 {
		return
	}
	usual, known := r.usual("questions")
	held := r.wrong("server.stall")
	r.see("questions", questions, held)
	if r.stall.Holds {
		r.add(slow(r, questions, others))
		return
	}
	if questions > noStatement || others < 1 {
		return
	}
	// A report that runs alone on a server that is idle otherwise is no stall.
	whatFor := waitingFor(r.Snapshot)
	busy := others >= 4
	if known {
		busy = usual >= 5 && (others >= 2 || whatFor != "")
	}
	if !busy {
		return
	}
	r.add(candidate{id: "server.stall", severity: fleet.SeverityCritical, value: others, chart: "throughput", remedy: showProcesses,
		head: "stall: no statement has begun", tail: ", while " + plural(others, "thread runs", "threads run") + whatFor})
}

// What makes a stall critical, and how long another must last to be told.
const (
	nearlyNothing = 0.2 // of the usual rate
	slowFor       = 10 * time.Second
)

// slow is the finding of a server that does far less than usual while its sessions pile up. It is critical if no statement begins, or nearly
// none finishes and they wait for something that should take no time. Sessions that only compute, such as reports after the applications have
// left, or a busy machine that halves the rate for some seconds, are not worth waking anybody at once.
func slow(r *round, begun, running float64) candidate {
	usual := r.stall.Usual
	c := candidate{id: "server.stall", severity: fleet.SeverityWarning, value: running, chart: "throughput", remedy: showProcesses, at: time.Unix(r.stall.Since, 0), hold: slowFor,
		head: "stall: " + digits.Number(math.Round(r.stall.Finished)) + " instead of " + digits.Number(math.Round(usual.Rate)) + " statements finish a second",
		tail: ", while " + plural(running, "thread runs", "threads run") + " instead of " + digits.Number(math.Round(usual.Running))}
	stuck := 0.0
	for _, class := range []string{"commit", "semisync"} {
		n, _ := r.value(waitKey(class))
		stuck += n
	}
	switch {
	case begun <= noStatement:
		c.severity, c.hold, c.head = fleet.SeverityCritical, -1, "stall: no statement has begun"
	case stuck+r.inLocks() >= max(running/2, 1) && r.stall.Finished <= nearlyNothing*usual.Rate:
		c.severity, c.hold = fleet.SeverityCritical, -1
	}
	roots := blockers.Roots(r.Locks)
	if len(roots) == 0 || roots[0].Wait.Maybe || float64(len(roots[0].Waiters)) < running/2 {
		c.tail += waitingFor(r.Snapshot)
		return c
	}
	b := blockerOf(roots[0])
	c.tail += "; " + b.head + b.tail
	if b.remedy != "" {
		c.remedy = b.remedy
	}
	return c
}

// inLocks is how many sessions wait for a lock: as the server says who waits for whom, or as they were found waiting.
func (r *round) inLocks() float64 {
	waiters := map[int64]bool{}
	for i := range r.Locks {
		waiters[r.Locks[i].Waiter] = true
	}
	found := 0.0
	for _, class := range []string{"row_lock", "metadata_lock", "table_lock"} {
		n, _ := r.value(waitKey(class))
		found += n
	}
	return max(found, float64(len(waiters)))
}

// waitingFor names the wait that most threads are in.
func waitingFor(s *Snapshot) string {
	best, most := "", 0.0
	for _, w := range waits {
		if v, ok := s.value(w.key); ok && v > most {
			best, most = w.words, v
		}
	}
	if most < 1 {
		return ""
	}
	return "; " + plural(most, "waits for "+best, "wait for "+best)
}

// waits says what the classes of risso_threads_waiting wait for.
var waits = []struct{ key, words string }{
	{waitKey("commit"), "commit"}, {waitKey("semisync"), "a replica's acknowledgement"}, {waitKey("row_lock"), "a row lock"},
	{waitKey("metadata_lock"), "a metadata lock"}, {waitKey("table_lock"), "a table lock or GET_LOCK()"}, {waitKey("io"), "the disk"},
	{waitKey("network"), "the network"}, {waitKey("replication"), "replication"},
}

func waitKey(class string) string { return `risso_threads_waiting{class="` + class + `"}` }

// connections finds a server that runs out of connections.
func connections(r *round) {
	used, ok := r.value(statusPrefix + "threads_connected")
	limit, ok2 := r.value(variablePrefix + "max_connections")
	if !ok || !ok2 || limit <= 0 {
		return
	}
	c := candidate{id: "conn.saturation", chart: "connections",
		remedy: fmt.Sprintf("SET GLOBAL max_connections = %.0f", math.Ceil(limit*1.5/50)*50)}
	refused, _ := r.rate(statusPrefix + `connection_errors_total{error="max_connections"}`)
	recent := r.within("refused connections", refused, 10*time.Second)
	c.value = percent((used + recent) / limit)
	switch share := used / limit; {
	case recent >= 1:
		c.severity = fleet.SeverityCritical
		c.head = "clients are being refused"
		c.tail = fmt.Sprintf(": %s of %s connections are in use, %s refused in the last 10 s", digits.Number(math.Round(used)), digits.Number(limit), digits.Number(math.Round(recent)))
	case share >= 0.95:
		c.severity = fleet.SeverityCritical
		c.head = fmt.Sprintf("%s of %s connections are in use", digits.Number(math.Round(used)), digits.Number(limit))
	case share >= 0.85:
		c.severity = fleet.SeverityWarning
		c.head = fmt.Sprintf("%s of %s connections are in use", digits.Number(math.Round(used)), digits.Number(limit))
	default:
		return
	}
	r.add(c)
}

// pileUp finds far more threads at work than usual, and than the processors can serve.
func pileUp(r *round) {
	others, ok := r.others()
	if !ok {
		return
	}
	usual, known := r.usual("threads running")
	held := r.wrong("threads.pileup")
	r.see("threads running", others, held)
	limit := 32.0
	p, counted := processors(r.Host)
	if counted {
		limit = max(16, 4*p.count)
	}
	if known {
		limit = max(limit/2, 12, 3*usual)
	}
	if others < limit {
		return
	}
	tail := ""
	if known {
		tail = " instead of " + digits.Number(math.Round(usual))
	}
	if counted {
		tail += fmt.Sprintf(", on %s with %s to spare", plural(p.count, "processor", "processors"), digits.Percent(p.headroom))
	}
	c := candidate{id: "threads.pileup", severity: fleet.SeverityWarning, value: others, chart: "threads_running", remedy: showProcesses,
		head: digits.Number(math.Round(others)) + " threads run", tail: tail + waitingFor(r.Snapshot)}
	if others >= 4*limit {
		c.severity = fleet.SeverityCritical
	}
	r.add(c)
}

// commitWaits finds threads that wait for their commit to be on disk, which
// processor figures call idle; the disk's flush latency is given with it.
func commitWaits(r *round) {
	disk, measured := r.busiestFlush()
	usual, known := 0.0, false
	held := r.wrong("commit.wait")
	if measured {
		usual, known = r.usual("flush")
		r.see("flush", disk.latency, held)
	}
	waiting, ok := r.value(waitKey("commit"))
	waiting = r.smooth("commit", waiting)
	if !ok || waiting < 4 {
		return
	}
	c := candidate{id: "commit.wait", severity: fleet.SeverityWarning, value: waiting, chart: "waits",
		head: plural(waiting, "thread waits for commit", "threads wait for commit")}
	if waiting >= 32 {
		c.severity = fleet.SeverityCritical
	}
	if measured {
		c.tail = "; the disk flushes in " + digits.Seconds(disk.latency)
		if known && disk.latency > 2*usual {
			c.tail += " instead of " + latencyBeside(usual, disk.latency)
			c.chart = "flush_latency"
			c.tail += "; on its machine, pidstat -d 1 5 shows who else writes to " + disk.name
		} else if known {
			c.tail += " as usual"
		}
	}
	r.add(c)
}

// latencyBeside leaves the unit out where the two figures share it: "38 ms instead of 2".
func latencyBeside(a, b float64) string {
	text, other := digits.Seconds(a), digits.Seconds(b)
	number, unit, _ := strings.Cut(text, " ")
	if strings.HasSuffix(other, " "+unit) {
		return number
	}
	return text
}

// ackless is how long a commit waits, though enough replicas acknowledge and none of those that wait is acknowledged, before that is told.
const ackless = 10 * time.Second

// semisync finds commits that wait for a replica to confirm them.
func semisync(r *round) {
	n, ok := r.value(waitKey("semisync"))
	c := candidate{id: "commit.semisync", severity: fleet.SeverityWarning, chart: "waits", remedy: "SHOW GLOBAL STATUS LIKE 'rpl_semi_sync%'"}
	a := r.acks()
	waiting := max(a.waiting, n)
	switch n = r.smooth("semisync", n); {
	case a.known && waiting > 0 && a.replicas < a.need:
		c.severity, c.value = fleet.SeverityCritical, waiting
		c.head = plural(waiting, "session waits", "sessions wait") + " for an acknowledgement that nobody gives"
		c.tail = ": " + plural(a.replicas, "replica acknowledges", "replicas acknowledge") + ", and " + digits.Number(a.need) + " needed; risso semisync status says which do not, and risso semisync on lets them"
	case a.known && waiting > 0 && a.given == 0:
		c.severity, c.value, c.hold = fleet.SeverityCritical, waiting, ackless
		c.head = plural(waiting, "session waits", "sessions wait") + " for an acknowledgement, and none comes"
		c.tail = ", though " + plural(a.replicas, "replica acknowledges", "replicas acknowledge") + ": what they received before they did they do not acknowledge; risso semisync on tells the server what they have"
	case ok && n >= 4:
		c.value, c.head = n, plural(n, "thread waits for a replica to confirm its commit", "threads wait for a replica to confirm their commits")
	default:
		return
	}
	r.add(c)
}

// acks is how a server waits for acknowledgements.
type acks struct {
	known                   bool    // it does, and says so
	waiting, replicas, need float64 // sessions that wait, replicas that acknowledge, and how many of them a commit waits for
	given                   float64 // commits that were acknowledged, a second
}

func (r *round) acks() (a acks) {
	for _, name := range []string{"source", "master"} {
		status := statusPrefix + "rpl_semi_sync_" + name
		if on, ok := r.value(status + "_status"); !ok || on == 0 {
			continue
		}
		var waits, replicas, rate bool
		a.waiting, waits = r.value(status + "_wait_sessions")
		a.replicas, replicas = r.value(status + "_clients")
		a.given, rate = r.rate(status + "_yes_tx")
		a.known, a.need = waits && replicas && rate, 1
		for _, end := range []string{"_wait_for_replica_count", "_wait_for_slave_count"} {
			if n, ok := r.value(variablePrefix + "rpl_semi_sync_" + name + end); ok {
				a.need = n
			}
		}
		return a
	}
	return a
}

// throttled finds a control group that is stopped because its processor share is used up.
func throttled(r *round) {
	s := cgroupOf(r.Snapshot)
	stopped, ok := s.rate("risso_cgroup_cpu_throttled_periods_total")
	all, ok2 := s.rate("risso_cgroup_cpu_periods_total")
	if !ok || !ok2 || all <= 0 {
		return
	}
	share := r.smooth("throttled", stopped/all)
	if share < 0.1 {
		return
	}
	c := candidate{id: "host.throttled", severity: fleet.SeverityWarning, value: percent(share), chart: "process_cpu",
		head: fmt.Sprintf("the server is throttled in %s of all periods because its processor quota is used up", digits.Percent(share))}
	if limit, ok := s.value("risso_cgroup_cpu_limit_cores"); ok {
		c.tail = fmt.Sprintf("; its limit is %s processors: CPUQuota of its systemd unit, or the limit of its container", digits.Number(limit))
	}
	if share >= 0.5 {
		c.severity = fleet.SeverityCritical
	}
	r.add(c)
}

// cgroupOf is the snapshot that holds the control group's figures: the server's own
// or that of its host.
func cgroupOf(s *Snapshot) *Snapshot {
	for _, key := range []string{"risso_cgroup_cpu_periods_total", "risso_cgroup_memory_current_bytes"} {
		if _, ok := s.value(key); ok {
			return s
		}
	}
	return s.Host
}

// memoryLimit finds a control group near the limit at which the kernel kills in it.
func memoryLimit(r *round) {
	s := cgroupOf(r.Snapshot)
	used, ok := s.value("risso_cgroup_memory_current_bytes")
	limit, ok2 := s.value("risso_cgroup_memory_max_bytes")
	if !ok || !ok2 || limit <= 0 {
		return
	}
	cache, _ := s.value("risso_cgroup_memory_inactive_file_bytes") // the kernel takes it back first
	share := max(used-cache, 0) / limit
	if share < 0.92 {
		return
	}
	c := candidate{id: "mem.overcommit", severity: fleet.SeverityWarning, value: percent(share), chart: "memory",
		head: fmt.Sprintf("%s of the server's memory limit of %s is used", digits.Percent(share), digits.Bytes(limit)), tail: "; at the limit the kernel will kill it"}
	if pool, ok := r.value(variablePrefix + "innodb_buffer_pool_size"); ok && pool > 0.5*limit {
		c.remedy = fmt.Sprintf("SET GLOBAL innodb_buffer_pool_size = %.0f", math.Floor(pool*0.85/(1<<27))*(1<<27))
	}
	if share >= 0.98 {
		c.severity = fleet.SeverityCritical
	}
	r.add(c)
}

// collectionLate reports Risso's own trouble: figures that took too long to read
// are marked and not trusted.
func collectionLate(r *round) {
	rate := 0.0
	if r.Late {
		rate = 1
	}
	late := r.within("late", rate, time.Minute)
	if late < 6 {
		return
	}
	c := candidate{id: "observer.late", severity: fleet.SeverityWarning, value: late, chart: "cost_time",
		head: fmt.Sprintf("Risso's readings are slow: about %s of the last 60 took more than a tenth of a second", digits.Number(min(math.Round(late), 60))),
		tail: "; they are marked and not trusted"}
	r.add(c)
}
