package live

import (
	"encoding/json"
	"fmt"
	"math"
	"net"
	"sort"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/watch/collect"
	"github.com/rissodb/risso/internal/watch/rules"
)

// Row is one instance in the overview.
type Row struct {
	fleet.Instance
	State          rules.State     `json:"state"`
	Words          string          `json:"words"` // one sentence
	Since          int64           `json:"since"` // Unix seconds; 0 if nothing is wrong
	Seen           int64           `json:"seen"`  // the newest tick
	QPS            *float64        `json:"qps"`
	ThreadsRunning *float64        `json:"threads_running"`
	Lag            *float64        `json:"lag"` // seconds behind the primary
	CPU            *float64        `json:"cpu"` // processor use of its host, 0 to 1, without iowait
	Findings       []fleet.Finding `json:"findings"`
	Because        []Because       `json:"because,omitempty"` // where findings of it come from that have their cause elsewhere
	Spark          Spark           `json:"spark"`
}

// Because says that findings of an instance come from what is wrong with another.
type Because struct {
	Instance string         `json:"instance"`          // the ID of the other; empty: it is not watched
	Name     string         `json:"name"`              // what people call it, or its address
	Finding  string         `json:"finding,omitempty"` // what is wrong there, such as server.down; empty: only its replicas have trouble
	What     string         `json:"what"`              // in a few words: "db1 is down"
	Explains []rules.Effect `json:"explains"`          // the findings of this instance that come from it
	All      bool           `json:"all"`               // it has no finding but these
}

// Spark is the last minutes of an instance's main metric: questions per second, or a host's processor use.
type Spark struct {
	Start int64    `json:"start"`
	Step  int64    `json:"step"`
	Avg   nullable `json:"avg"`
	Min   nullable `json:"min"`
	Max   nullable `json:"max"`
}

// nullable is a list of numbers in which NaN becomes null.
type nullable []float64

// MarshalJSON writes null for NaN.
func (n nullable) MarshalJSON() ([]byte, error) {
	out := make([]*float64, len(n))
	for i := range n {
		if !math.IsNaN(n[i]) {
			out[i] = &n[i]
		}
	}
	return json.Marshal(out)
}

// Fleet is every instance, worst first; among equals servers come before hosts, then by name.
func (b *Board) Fleet(now time.Time) []Row {
	rows := []Row{}
	for _, e := range b.all() {
		rows = append(rows, e.row(now))
	}
	busy := map[string]*float64{}
	for _, r := range rows {
		if r.Kind == fleet.KindHost {
			busy[r.ID] = r.CPU
		}
	}
	reasons := because(rules.Causes(b.members(rows)), rows)
	for i, r := range rows {
		rows[i].Because = reasons[r.ID]
		if r.CPU == nil && r.State != rules.StateDown {
			rows[i].CPU = busy[r.HostID]
		}
	}
	sort.SliceStable(rows, func(i, j int) bool {
		a, c := rows[i], rows[j]
		if order := rules.Compare(a.verdict(), c.verdict()); order != 0 {
			return order < 0
		}
		if a.Kind != c.Kind {
			return a.Kind == fleet.KindServer
		}
		return a.Name < c.Name
	})
	return rows
}

// Causes is what findings of several instances have in common, the one with most effects first; undecided are findings of which it is not known
// yet, but will be within seconds.
func (b *Board) Causes(now time.Time) (causes []rules.Cause, undecided []rules.Effect) {
	var rows []Row
	for _, e := range b.all() {
		rows = append(rows, e.row(now))
	}
	members := b.members(rows)
	return rules.Causes(members), rules.Undecided(members)
}

func (b *Board) members(rows []Row) []rules.Member {
	members := make([]rules.Member, len(rows))
	for i, r := range rows {
		members[i] = rules.Member{Instance: r.Instance, State: r.State, Findings: r.Findings}
		if e := b.entry(r.ID); e != nil {
			members[i].Channels, members[i].Seat, members[i].Reported = e.standing()
		}
		if r.State != rules.StateDown && r.State != rules.StateNew {
			members[i].Answered = time.Unix(r.Seen, 0)
		}
	}
	return members
}

// standing is from whom an instance replicates, who it is, and as whom it wants to be known.
func (e *entry) standing() ([]fleet.Channel, fleet.Seat, string) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	reported := ""
	if host, port := e.vars["report_host"], e.vars["report_port"]; host != "" && port != "" {
		reported = net.JoinHostPort(host, port)
	}
	return e.summary.Channels, fleet.SeatOf(func(name string) string { return e.vars[name] }), reported
}

// because sorts causes by the instances that are affected.
func because(causes []rules.Cause, rows []Row) map[string][]Because {
	findings := map[string]int{}
	for _, r := range rows {
		findings[r.ID] = max(len(r.Findings), 1) // that it does not answer may be no finding yet
	}
	out := map[string][]Because{}
	for _, c := range causes {
		of := map[string][]rules.Effect{}
		for _, e := range c.Affected {
			if e.Instance != c.Instance {
				of[e.Instance] = append(of[e.Instance], e)
			}
		}
		for id, effects := range of {
			out[id] = append(out[id], Because{Instance: c.Instance, Name: c.Name, Finding: c.Finding, What: c.What, Explains: effects, All: len(effects) == findings[id]})
		}
	}
	return out
}

func (r Row) verdict() rules.Verdict {
	return rules.Verdict{State: r.State, Words: r.Words, Since: time.Unix(r.Since, 0), Findings: r.Findings}
}

func (e *entry) row(now time.Time) Row {
	e.mu.RLock()
	defer e.mu.RUnlock()
	r := Row{Instance: e.summary.Instance, Seen: e.summary.Tick, Words: e.verdict.Words, Findings: e.verdict.Findings, Spark: e.spark.spark(now.Unix())}
	if r.Findings == nil {
		r.Findings = []fleet.Finding{}
	}
	r.State, r.Since = e.state(now)
	if words := e.staleWords(now); words != "" {
		r.Words = words
	}
	if r.State == rules.StateDown || r.State == rules.StateNew {
		return r
	}
	r.QPS = pointer(e.rate("mysql_global_status_questions"))
	r.ThreadsRunning = pointer(e.value("mysql_global_status_threads_running"))
	r.Lag = e.lag()
	if busy, ok := e.busy(); ok {
		r.CPU = &busy
	}
	return r
}

func pointer(v float64, ok bool) *float64 {
	if !ok {
		return nil
	}
	return &v
}

// state is the verdict's, unless the instance was never read or its next tick is overdue.
func (e *entry) state(now time.Time) (rules.State, int64) {
	s := e.summary
	switch {
	case s.Tick == 0 && now.Sub(e.added) < staleAfter:
		return rules.StateNew, 0
	case s.Tick == 0:
		return rules.StateDown, e.added.Unix()
	case s.Up && now.Sub(time.Unix(s.Tick, 0)) > staleAfter && e.notLooking(now) == "":
		return rules.StateDown, s.Tick
	case e.verdict.State == rules.StateOK || e.verdict.Since.IsZero():
		return e.verdict.State, 0
	}
	return e.verdict.State, e.verdict.Since.Unix()
}

// staleWords is what to say about an instance whose tick is overdue: its collector waits for an answer.
func (e *entry) staleWords(now time.Time) string {
	if e.summary.Tick == 0 {
		if now.Sub(e.added) < staleAfter {
			return "waiting for the first answer"
		}
		return fmt.Sprintf("no answer since Risso began to watch %s ago", digits.Age(now.Sub(e.added).Seconds()))
	}
	at := time.Unix(e.summary.Tick, 0)
	if age := now.Sub(at); age > staleAfter && e.summary.Up {
		if words := e.notLooking(now); words != "" {
			return words
		}
		return fmt.Sprintf("does not answer since %s", at.Local().Format("15:04:05"))
	}
	return ""
}

// notLooking says that Risso itself was late since the newest tick; "" when it was not. The caller holds the lock.
func (e *entry) notLooking(now time.Time) string {
	since := time.Unix(e.summary.Tick, 0)
	if words := e.pulse.NotLooking(since, now); words != "" || !e.unseen {
		return words
	}
	return fmt.Sprintf("Risso has taken no readings since %s: it was late itself", since.Local().Format("15:04:05"))
}

// lag is the largest delay of any channel, beyond what is wanted. The caller holds the lock.
func (e *entry) lag() *float64 {
	return pointer(rules.Lag(&rules.Snapshot{Value: e.value, Keys: func(name string) []string { return e.byName[name] }}))
}

// busy is the share of the processors' time in which they worked: neither idle nor in iowait.
func (e *entry) busy() (float64, bool) {
	total, head := 0.0, 0.0
	for i, m := range e.metrics {
		if m.Name != "risso_host_cpu_seconds_total" {
			continue
		}
		v, ok := e.rate(e.keys[i])
		if !ok {
			return 0, false
		}
		total += v
		for _, l := range m.Labels {
			if l.Name == "mode" && (l.Value == "idle" || l.Value == "iowait") {
				head += v
			}
		}
	}
	if total == 0 {
		return 0, false
	}
	return 1 - head/total, true
}

// HostNumbers are the numbers of a host that belong to a moment of its servers, in percent: processors busy, and the time in which something
// waited for input and output. What is not known is left out.
func (b *Board) HostNumbers(id string) map[string]float64 {
	e := b.entry(id)
	if e == nil {
		return nil
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	out := map[string]float64{}
	if v, ok := e.busy(); ok {
		out["cpu_busy"] = math.Round(1000*v) / 10
	}
	if v, ok := e.rate("node_pressure_io_waiting_seconds_total"); ok {
		out["io_pressure"] = math.Round(1000*v) / 10
	}
	return out
}

// Detail is what the page of one instance starts with.
type Detail struct {
	Row
	Uptime *float64          `json:"uptime"` // seconds
	Gaps   []fleet.Trouble   `json:"gaps"`
	Down   fleet.Trouble     `json:"down"` // why the server is down, and the remedy
	Cost   Cost              `json:"cost"`
	Facts  map[string]string `json:"facts"`
	Host   string            `json:"host"` // the host's instance ID
}

// Detail is what is known about one instance now; false if it is not watched.
func (b *Board) Detail(id string) (Detail, bool) {
	e := b.entry(id)
	if e == nil {
		return Detail{}, false
	}
	row := e.row(time.Now())
	if h := b.entry(row.HostID); h != nil && row.CPU == nil {
		row.CPU = h.row(time.Now()).CPU
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	d := Detail{Row: row, Gaps: e.summary.Gaps, Down: e.summary.Down, Cost: e.cost.cost(len(e.values)), Host: e.summary.Instance.HostID, Facts: map[string]string{}}
	if d.Gaps == nil {
		d.Gaps = []fleet.Trouble{}
	}
	d.Uptime = pointer(e.value("mysql_global_status_uptime"))
	for _, name := range []string{"hostname", "datadir", "innodb_buffer_pool_size", "max_connections", "server_id", "read_only", "super_read_only", "log_bin", "sync_binlog",
		"innodb_flush_log_at_trx_commit", "performance_schema", "binlog_format", "gtid_mode", "time_zone"} {
		if v := e.vars[name]; v != "" {
			d.Facts[name] = v
		}
	}
	for _, c := range e.summary.Channels {
		d.Facts["replicates from"+space(c.Name)] = fmt.Sprintf("%s (IO %s, SQL %s)", c.Source, c.IORunning, c.SQLRunning)
	}
	return d, true
}

// Follows says from which watched servers each one replicates, by their IDs: by who they say they are, and by their addresses.
func (b *Board) Follows(now time.Time) map[string][]string {
	var rows []Row
	for _, e := range b.all() {
		rows = append(rows, e.row(now))
	}
	return rules.Follows(b.members(rows))
}

// Seat is where a server said last that it has its seat; zero if it never answered.
func (b *Board) Seat(id string) (s fleet.Seat) {
	if e := b.entry(id); e != nil {
		_, s, _ = e.standing()
	}
	return s
}

func space(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

const sparkSeconds = 300

// ring is the last five minutes of one number, a slot a second.
type ring struct {
	at   [sparkSeconds]int64
	vals [sparkSeconds]float32
}

// slot is the position of second t; a clock before 1970 is no reason to fail.
func slot(t int64) int64 { return (t%sparkSeconds + sparkSeconds) % sparkSeconds }

func (r *ring) put(t int64, v float64) {
	i := slot(t)
	r.at[i], r.vals[i] = t, float32(v)
}

func (r *ring) spark(now int64) Spark {
	const step = 5
	start := (now - sparkSeconds + step) / step * step
	s := Spark{Start: start, Step: step}
	for t := start; t < now; t += step {
		n, sum, lo, hi := 0, 0.0, math.Inf(1), math.Inf(-1)
		for u := t; u < t+step; u++ {
			if i := slot(u); r.at[i] == u {
				v := float64(r.vals[i])
				n++
				sum += v
				lo, hi = min(lo, v), max(hi, v)
			}
		}
		if n == 0 {
			sum, lo, hi = math.NaN(), math.NaN(), math.NaN()
		}
		s.Avg, s.Min, s.Max = append(s.Avg, math.Round(sum/float64(max(n, 1))*1000)/1000), append(s.Min, lo), append(s.Max, hi)
	}
	return s
}

// Cost is what watching one instance costs it, over the last minute.
type Cost struct {
	QueriesPerSecond  float64 `json:"queries_per_second"`
	ServerMsPerSecond float64 `json:"server_ms_per_second"` // from sending to the last row: the server's work is not more
	BytesPerSecond    float64 `json:"bytes_per_second"`     // both ways
	ValuesPerSecond   float64 `json:"values_per_second"`
}

const costSeconds = 60

// costRing holds the collector's own counters over the last minute.
type costRing struct {
	n    int
	tick [costSeconds + 1]int64
	val  [costSeconds + 1][3]float64 // queries, seconds, bytes
}

func (c *costRing) put(t int64, v [3]float64) {
	i := c.n % len(c.tick)
	c.tick[i], c.val[i] = t, v
	c.n++
}

func (c *costRing) cost(values int) Cost {
	if c.n < 2 {
		return Cost{}
	}
	last := (c.n - 1) % len(c.tick)
	first := 0
	if c.n > len(c.tick) {
		first = c.n % len(c.tick)
	}
	dt := float64(c.tick[last] - c.tick[first])
	if dt <= 0 {
		return Cost{}
	}
	rate := func(i int) float64 { return (c.val[last][i] - c.val[first][i]) / dt }
	return Cost{QueriesPerSecond: rate(0), ServerMsPerSecond: rate(1) * 1000, BytesPerSecond: rate(2), ValuesPerSecond: float64(values)}
}

// history keeps the last minutes of what the overview draws and of what watching costs.
func (e *entry) history(v collect.View) {
	if e.summary.Instance.Kind == fleet.KindHost {
		if busy, ok := e.busy(); ok {
			e.spark.put(v.Tick, busy)
		}
	} else if qps, ok := e.rate("mysql_global_status_questions"); ok {
		e.spark.put(v.Tick, qps)
	}
	queries, ok := e.value("risso_collect_queries_total")
	if !ok {
		return
	}
	seconds, _ := e.value("risso_collect_server_seconds_total")
	in, _ := e.value(`risso_collect_bytes_total{direction="received"}`)
	out, _ := e.value(`risso_collect_bytes_total{direction="sent"}`)
	e.cost.put(v.Tick, [3]float64{queries, seconds, in + out})
}
