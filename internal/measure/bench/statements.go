package bench

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/pattern"
	"github.com/rissodb/risso/internal/sqltext"
)

// StatementResult is one statement of a workload: how often it succeeded in the measured time, and how long it took, from
// sending it to its last row.
type StatementResult struct {
	SQL     string  `json:"sql"` // tables that differ only in their number are treated as one
	Count   int64   `json:"count"`
	Latency Latency `json:"latency"`
}

// shards keep sessions out of each other's way.
const shards = 32

// statements measures single statements, if that is asked for: it reads the clock twice for each.
type statements struct {
	run    *run
	shards [shards]struct {
		mu   sync.Mutex
		hist map[string]*hist
	}
}

// watch measures what a session does.
func (s *statements) watch(to drive.Session, id int) drive.Session {
	return &timedSession{Session: to, to: s, shard: id % shards, labels: map[*drive.Stmt]string{}}
}

func (s *statements) add(shard int, label string, began, took time.Duration) {
	if s.run.epoch.IsZero() || began < s.run.measuredFrom() { // sessions do some work before the clock runs
		return
	}
	part := &s.shards[shard]
	part.mu.Lock()
	defer part.mu.Unlock()
	h := part.hist[label]
	if h == nil {
		if part.hist == nil {
			part.hist = map[string]*hist{}
		}
		h = newHist()
		part.hist[label] = h
	}
	h.add(int64(took))
}

// results are the statements, those that took the most time first.
func (s *statements) results(wanted []float64) (out []StatementResult) {
	sums := map[string]*hist{}
	for i := range s.shards {
		part := &s.shards[i]
		part.mu.Lock()
		for label, h := range part.hist {
			if sums[label] == nil {
				sums[label] = newHist()
			}
			sums[label].merge(h)
		}
		part.mu.Unlock()
	}
	for label, h := range sums {
		out = append(out, StatementResult{SQL: label, Count: h.n, Latency: h.latency(wanted)})
	}
	slices.SortFunc(out, func(a, b StatementResult) int {
		return cmp.Or(cmp.Compare(b.Latency.Avg*float64(b.Count), a.Latency.Avg*float64(a.Count)), cmp.Compare(a.SQL, b.SQL))
	})
	return out
}

// timedSession is a session whose statements are measured one by one.
type timedSession struct {
	drive.Session
	to     *statements
	shard  int
	labels map[*drive.Stmt]string
}

// numbered are the tables of sysbench.
var numbered = pattern.Lazy(`\bsbtest[0-9]+\b`)

func (t *timedSession) Prepare(kind drive.Kind, sql string) (*drive.Stmt, error) {
	st, err := t.Session.Prepare(kind, sql)
	if err == nil {
		t.labels[st] = numbered().ReplaceAllString(sql, "sbtestN")
	}
	return st, err
}

func (t *timedSession) Do(st *drive.Stmt, args ...drive.Arg) (drive.Result, error) {
	began := t.to.run.now()
	r, err := t.Session.Do(st, args...)
	if took := t.to.run.now() - began; err == nil {
		t.to.add(t.shard, t.labels[st], began, took)
	}
	return r, err
}

func (t *timedSession) Exec(kind drive.Kind, sql string) (drive.Result, error) {
	began := t.to.run.now()
	r, err := t.Session.Exec(kind, sql)
	if took := t.to.run.now() - began; err == nil {
		t.to.add(t.shard, numbered().ReplaceAllString(sqltext.Fingerprint(sql), "sbtestN"), began, took)
	}
	return r, err
}
