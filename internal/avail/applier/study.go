// Package applier says how many parallel appliers pay: it replays the transactions of a binary log in a simulation, as replicas order them, on
// one worker, on two, and so on. It does no input or output; package logged reads the logs.
//
// A transaction takes what a model of costs says. It begins when what it has to wait for is done, when the ones before it have been given out,
// and when a worker is free; with commits in order it keeps its worker until those before it are done. The speed-up is the sum of all
// costs, which is what one worker takes, by the time until the last one is done. The ceiling is that of 1024 workers, the most that MySQL
// has. Disks, locks of the replica and the thread that reads the log take nothing: a replica may be slower, not faster.
package applier

import (
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/byschema"
)

// counts are how many workers are tried; the last is the ceiling.
var counts = []int{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 1024}

// Enough is the part of the ceiling that a recommended number of workers reaches.
const Enough = 0.95

// Options say what is studied.
type Options struct {
	WriteSet bool // try what the log would be with write sets: the source could track them, and may not do so
	// Key is which row a key is of, as "id=7" of a table; "" if that is not known. Those that occur often should be.
	Key func(key uint64) (Table, string)
	// Commit and Row are what a transaction takes, and each of its rows in addition; both 0: CommitTime and RowTime.
	Commit, Row time.Duration
	// Window is after how many transactions the chain that takes longest is looked at; 0: 16,384.
	Window int
}

// trial is one mode at all numbers of workers.
type trial struct {
	mode    Mode
	costs   Costs
	inOrder bool
	runs    []*schedule
}

func newTrial(m Mode, c Costs, inOrder, ahead bool) *trial {
	t := &trial{mode: m, costs: c, inOrder: inOrder}
	for _, n := range counts {
		t.runs = append(t.runs, newSchedule(n, inOrder, ahead))
	}
	return t
}

func (t *trial) run(n need, tx *Transaction, me int32) (by, behalf int32) {
	cost := t.costs.of(tx)
	for _, s := range t.runs[1:] {
		by, behalf = s.run(n, cost, me)
	}
	t.runs[0].end += cost // one worker is never idle
	return by, behalf
}

// Study gathers the transactions of a log. Its memory does not depend on how many there are.
type Study struct {
	o       Options
	byRows  Costs // those that count
	byBytes Costs
	alike   Costs
	begun   bool
	byGroup bool
	clocks  clocks
	sets    writeSets
	groups  map[Mode]*groups
	trials  []*trial // the first is of the mode that counts
	schemas map[string]*byschema.Set
	window  window
	report  Report
	long    []Long
}

// New begins a study.
func New(o Options) *Study {
	if o.Key == nil {
		o.Key = func(uint64) (Table, string) { return Table{}, "" }
	}
	if o.Window <= 0 {
		o.Window = 1 << 14
	}
	if o.Commit <= 0 && o.Row <= 0 {
		o.Commit, o.Row = CommitTime, RowTime
	}
	s := &Study{o: o, schemas: map[string]*byschema.Set{}, groups: map[Mode]*groups{}, window: newWindow(o.Key)}
	s.byRows, s.byBytes, s.alike = costsOf(o.Commit, o.Row)
	return s
}

// begin finds out by the first transaction which modes there are.
func (s *Study) begin(t *Transaction) {
	s.begun, s.byGroup = true, t.ByGroup
	if !t.ByGroup {
		s.trials = []*trial{newTrial(Logged, s.byRows, true, false), newTrial(Logged, s.byRows, false, false), newTrial(Logged, s.byBytes, true, false), newTrial(Logged, s.alike, true, false)}
		if s.o.WriteSet {
			s.trials = append(s.trials, newTrial(WriteSet, s.byRows, true, false))
		}
		return
	}
	for _, m := range []Mode{Optimistic, Aggressive, Conservative} {
		s.groups[m] = &groups{mode: m, domains: map[uint32]*groupOrder{}}
	}
	s.trials = []*trial{newTrial(Optimistic, s.byRows, true, true), newTrial(Optimistic, s.byBytes, true, true), newTrial(Optimistic, s.alike, true, true),
		newTrial(Aggressive, s.byRows, true, true), newTrial(Conservative, s.byRows, true, true)}
}

// NextLog says that another log begins.
func (s *Study) NextLog() {
	s.report.Logs++
	s.clocks.nextLog()
	s.sets.nextLog()
}

// Add takes the next transaction.
func (s *Study) Add(t *Transaction) {
	if !s.begun {
		s.begin(t)
	}
	s.count(t)
	needs := map[Mode]need{}
	if s.byGroup {
		for m, g := range s.groups {
			needs[m] = g.need(t)
		}
	} else {
		needs[Logged] = s.clocks.need(t)
		if s.o.WriteSet {
			needs[WriteSet] = s.sets.need(t)
		}
	}
	me := s.window.add(t, needs[s.trials[0].mode], s.trials[0].costs.of(t))
	for i, x := range s.trials {
		by, behalf := x.run(needs[x.mode], t, me)
		if i == 0 {
			s.window.waited(by, behalf)
		}
	}
	if len(s.window.list) >= s.o.Window {
		s.closeWindow()
	}
}

func (s *Study) closeWindow() {
	if len(s.trials) == 0 {
		return
	}
	runs := s.trials[0].runs
	s.window.close(runs[len(runs)-1].everything().by)
	for _, t := range s.trials {
		for _, r := range t.runs {
			r.forget()
		}
	}
}

// count adds up what does not depend on any order.
func (s *Study) count(t *Transaction) {
	r := &s.report
	r.Transactions++
	r.Rows += t.Rows
	r.Bytes += t.Bytes
	if !t.Time.IsZero() {
		if r.From.IsZero() || t.Time.Before(r.From) {
			r.From = t.Time
		}
		if t.Time.After(r.To) {
			r.To = t.Time
		}
	}
	if t.Unkeyed {
		r.Unkeyed++
	}
	if t.Statements && !t.DDL {
		r.Statements++
	}
	cost := s.byRows.of(t)
	s.longest(t, cost)
	var names []string
	for _, x := range t.Tables {
		names = append(names, x.Schema)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) == 0 {
		return
	}
	key := strings.Join(names, "\x00")
	set := s.schemas[key]
	if set == nil {
		set = &byschema.Set{Schemas: names}
		s.schemas[key] = set
	}
	set.Calls++
	set.Seconds += cost
}

// longest keeps the transactions that take longest.
func (s *Study) longest(t *Transaction, cost float64) {
	const most = 5
	if len(s.long) == most && cost <= s.long[most-1].Seconds {
		return
	}
	s.long = append(s.long, longOf(t, cost))
	sort.SliceStable(s.long, func(i, j int) bool { return s.long[i].Seconds > s.long[j].Seconds })
	s.long = s.long[:min(len(s.long), most)]
}

func longOf(t *Transaction, cost float64) Long {
	l := briefly(t, cost)
	l.named(t.Tables)
	return l
}

// briefly is a transaction without the names of its tables, which cost more than all the rest.
func briefly(t *Transaction, cost float64) Long {
	return Long{GTID: t.GTID, File: t.File, Pos: t.Pos, Time: t.Time, Rows: t.Rows, Bytes: t.Bytes, Seconds: cost, DDL: t.DDL}
}

func (l *Long) named(tables []Table) {
	l.Tables = []string{}
	for _, x := range tables[:min(len(tables), 10)] {
		l.Tables = append(l.Tables, x.String())
	}
}
