package bench

import (
	"slices"
	"time"

	"github.com/rissodb/risso/internal/measure/workload"
)

// result puts the figures together. over is when the time was over, or the run was interrupted.
func (r *run) result(workers []*worker, interrupted bool, over time.Duration) *Result {
	out := &Result{
		Workload: r.Workload.Name(), Server: r.Target.String(), ServerVersion: r.version, Transport: r.transport, Began: r.epoch.Add(over),
		Threads: r.Threads, Rate: r.Rate, WarmupSeconds: (over - r.begin).Seconds(), WarmupSteady: r.steady, Interrupted: interrupted,
		Latency: Latency{Percentiles: []Percentile{}}, Timeline: []Second{},
	}
	for _, w := range workers {
		out.Reconnects += w.reconnects
	}
	from := r.measuredFrom()
	if over <= from { // interrupted in the warm-up
		out.Timeline = r.tally.timeline(secondOf(r.begin+time.Second-1), secondOf(over), secondOf(over))
		out.Steady = Steady{Test: "nothing was measured"}
		return out
	}
	out.Began, out.WarmupSeconds = r.epoch.Add(from), (from - r.begin).Seconds()
	out.ClientCPUSeconds = (cpuTime() - r.cpu).Seconds()
	out.Use, out.Counted = r.use, r.counted
	end := over
	for _, w := range workers {
		end = max(end, w.last)
	}
	out.Seconds = (end - from).Seconds()
	r.count(out)
	all, slow := r.latencies(out, workers, min(over, from+r.Time))
	out.Latency = all.latency(r.wanted())
	if r.stmts != nil {
		out.Statements = r.stmts.results(r.wanted())
	}
	find := outages{success: r.success, failure: r.failure, slow: slow, median: r.usual()}
	if r.Rate > 0 {
		find.gap = time.Duration(float64(time.Second) / r.Rate)
	}
	out.Outages = find.find(from, end)
	r.series(out, end)
	if text, err := all.encode(); err == nil {
		out.Histogram = text
	}
	return out
}

// usual is how long a transaction takes, without waits for a session.
func (r *run) usual() time.Duration {
	if r.schedule != nil {
		return time.Duration(r.tally.service.at(50))
	}
	all := newHist()
	for _, h := range r.tally.latency {
		all.merge(h)
	}
	return time.Duration(all.at(50))
}

func (r *run) wanted() []float64 {
	wanted := slices.Concat(percentiles, r.Percentiles)
	slices.Sort(wanted)
	return slices.Compact(wanted)
}

// count fills in the numbers and rates.
func (r *run) count(out *Result) {
	t := r.tally
	for _, h := range t.latency {
		out.Transactions += h.n
	}
	out.Others, out.Reads, out.Writes = t.queries[0], t.queries[1], t.queries[2]
	out.Queries = out.Reads + out.Writes + out.Others
	out.TransactionsPerSecond = float64(out.Transactions) / out.Seconds
	out.QueriesPerSecond = float64(out.Queries) / out.Seconds
	out.Errors = t.errorCounts()
	if k, ok := r.Workload.(workload.Kinded); ok {
		for i, name := range k.KindNames() {
			h := t.latency[i]
			out.Kinds = append(out.Kinds, KindResult{Name: name, Transactions: h.n, PerMinute: float64(h.n) / out.Seconds * 60, Latency: h.latency(r.wanted()),
				Minutes: t.minutesOf(i, time.Duration(out.Seconds*float64(time.Second)))})
		}
	}
	if h, ok := r.Workload.(workload.Headliner); ok {
		kind, unit := h.Headline()
		out.Headline = &Headline{Kind: out.Kinds[kind].Name, Unit: unit, PerMinute: out.Kinds[kind].PerMinute}
	}
	if k, ok := r.Workload.(workload.Recorded); ok {
		for i, before := range k.Recorded() {
			out.Kinds[i].Recorded = before
		}
	}
	if k, ok := r.Workload.(workload.Counted); ok {
		out.ServerCounters = k.Counters()
	}
	if k, ok := r.Workload.(workload.Noted); ok {
		out.Notes = k.Notes()
	}
}

// latencies joins those of all kinds and adds what was not finished, or never begun, when the run ended. It also returns the
// spans in which transactions were slow.
func (r *run) latencies(out *Result, workers []*worker, end time.Duration) (*hist, []span) {
	all := newHist()
	for _, h := range r.tally.latency {
		all.merge(h)
	}
	now := r.now()
	var slow []span
	for _, w := range workers {
		slow = append(slow, w.slow...)
		if w.unfinished != unknown {
			out.Unfinished++
			all.add(int64(now - w.unfinished))
		}
	}
	if r.schedule == nil {
		return all, join(slow)
	}
	service := r.tally.service.latency(r.wanted())
	out.ServiceTime = &service
	b := &Backlog{Max: r.tally.backlog, MaxWait: r.tally.maxWait.Seconds()}
	oldest := end
	never := func(due time.Duration, n int64) {
		if due >= end {
			return
		}
		b.NeverStarted += n
		all.addMany(int64(end-due), n)
		oldest = min(oldest, due)
	}
	for _, due := range r.left {
		never(due, 1)
	}
	r.schedule.rest(end, never)
	b.AtEnd = b.NeverStarted
	b.Max = max(b.Max, b.AtEnd)
	b.MaxWait = max(b.MaxWait, (end - oldest).Seconds())
	out.Backlog = b
	if oldest < end {
		slow = append(slow, span{oldest, end})
	}
	return all, join(slow)
}

// series fills in the timeline and tests whether it was steady.
func (r *run) series(out *Result, end time.Duration) {
	zero := secondOf(r.measuredFrom())
	last := min(secondOf(end), zero+secondOf(r.Time+time.Second-1))
	if last == zero {
		last++ // a run of less than a second
	}
	out.Timeline = r.tally.timeline(secondOf(r.begin+time.Second-1), last, zero)
	measured := out.Timeline[len(out.Timeline)-(last-zero):]
	s := r.steadiness(measured)
	what := "transactions per second"
	if r.schedule != nil {
		what = "median latency of each second"
	}
	out.Steady = Steady{Reached: s.Reached, FromSecond: s.From, Slope: s.Drift, Test: what + ": " + s.Test}
}
