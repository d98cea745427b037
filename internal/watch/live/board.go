// Package live is the present state of every watched instance, in numbers and in words. It keeps the newest tick
// of each and nothing older than a few minutes, and does not query servers itself.
package live

import (
	"maps"
	"math"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/watch/collect"
	"github.com/rissodb/risso/internal/watch/rules"
)

// Summary is the part of an instance's state that is no metric.
type Summary struct {
	Instance  fleet.Instance
	Tick      int64
	Up        bool
	DownSince time.Time
	Down      fleet.Trouble
	Late      bool
	Gaps      []fleet.Trouble
	Channels  []fleet.Channel
	Locks     []read.LockWait
	Old       []read.OldTransaction // the oldest transactions
	Hung      bool                  // with Up false: it accepts connections
	Restarted time.Time             // when it was started last, if Risso saw that
	Log       []string              // the last lines of its error log, if it is down or was restarted, and they can be read
}

// staleAfter is how long a tick may be overdue before the instance counts as not answering.
const staleAfter = 3 * time.Second

// Board holds the newest state of every instance. It may be used by any number of goroutines.
type Board struct {
	self  func() Self
	pulse *collect.Pulse // may be nil
	told  func(collect.View, rules.Verdict)
	hold  time.Duration // of each judge; 0: as usual

	mu      sync.RWMutex
	entries map[string]*entry
	order   []string
}

// Heed lets the board know when Risso itself was late, so that it does not say of an instance what is Risso's. It is called
// before the first instance is added.
func (b *Board) Heed(p *collect.Pulse) { b.pulse = p }

// Hold lets a rule be reported once it has held for so long, for those who look for a moment only. It is called before the first instance is
// added.
func (b *Board) Hold(d time.Duration) { b.hold = d }

// OnVerdict lets f be called with each verdict, in the goroutine of the instance's collector. It is called before the first instance is
// added.
func (b *Board) OnVerdict(f func(collect.View, rules.Verdict)) { b.told = f }

// Resume tells the board what held of an instance when Risso last looked. It is called before the first tick.
func (b *Board) Resume(id string, held []fleet.Finding) {
	if e := b.entry(id); e != nil {
		e.judge.Resume(held)
	}
}

// Self is what Risso itself costs.
type Self struct {
	CPUCores              float64 `json:"cpu_cores"` // over the last seconds
	RSSBytes              float64 `json:"rss_bytes"`
	BytesWrittenPerSecond float64 `json:"bytes_written_per_second"`
	SamplesPerSecond      float64 `json:"samples_per_second"`
	DiskBytes             float64 `json:"disk_bytes"`
	Instances             int     `json:"instances"`
	Version               string  `json:"version"`
	Started               int64   `json:"started"` // unix seconds

	Findings []fleet.Finding `json:"findings"` // what is wrong with Risso itself
}

// New makes an empty board; self tells Risso's own cost.
func New(self func() Self) *Board {
	return &Board{self: self, entries: make(map[string]*entry)}
}

// Self is what Risso itself costs now.
func (b *Board) Self() Self {
	s := b.self()
	b.mu.RLock()
	defer b.mu.RUnlock()
	s.Instances = len(b.entries)
	return s
}

// Add puts an instance on the board before its first tick.
func (b *Board) Add(i fleet.Instance) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.entries[i.ID] == nil {
		b.order = append(b.order, i.ID)
		b.entries[i.ID] = &entry{judge: rules.Judge{Hold: b.hold}, pulse: b.pulse, group: i.Group, summary: Summary{Instance: i}, added: time.Now(), index: make(map[string]int), byName: make(map[string][]string)}
	}
}

// Remove takes an instance off the board. Its collector has ended before.
func (b *Board) Remove(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.entries, id)
	b.order = slices.DeleteFunc(b.order, func(o string) bool { return o == id })
}

// Regroup puts an instance into another group, whatever group its collector knows.
func (b *Board) Regroup(id, group string) {
	e := b.entry(id)
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.group, e.summary.Instance.Group = group, group
}

// Instances lists what is on the board.
func (b *Board) Instances() []fleet.Instance {
	entries := b.all()
	out := make([]fleet.Instance, len(entries))
	for i, e := range entries {
		e.mu.RLock()
		out[i] = e.summary.Instance
		e.mu.RUnlock()
	}
	return out
}

func (b *Board) entry(id string) *entry {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.entries[id]
}

func (b *Board) all() []*entry {
	b.mu.RLock()
	defer b.mu.RUnlock()
	out := make([]*entry, 0, len(b.order))
	for _, id := range b.order {
		out = append(out, b.entries[id])
	}
	return out
}

// Observe takes a tick; it is the collectors' observer.
func (b *Board) Observe(v collect.View) {
	e := b.entry(v.Instance.ID)
	if e == nil {
		b.Add(v.Instance)
		e = b.entry(v.Instance.ID)
	}
	if v.Unseen { // nothing is known of this tick, and nothing is made of it
		e.mu.Lock()
		e.unseen = true
		e.mu.Unlock()
		return
	}
	e.take(v)
	snapshot := e.snapshot()
	if h := b.entry(v.Instance.HostID); h != nil {
		snapshot.Host = h.snapshot()
	}
	verdict := e.judge.Judge(snapshot)
	e.mu.Lock()
	e.verdict = verdict
	e.mu.Unlock()
	if b.told != nil {
		b.told(v, verdict)
	}
}

// snapshot is what the rules see of an instance.
func (e *entry) snapshot() *rules.Snapshot {
	v := e.View()
	return &rules.Snapshot{Now: time.Unix(v.Tick, 0), Instance: v.Instance, Up: v.Up, DownSince: v.DownSince, Down: v.Down, Late: v.Late,
		Notes: e.noted(), Value: e.Value, Rate: e.Rate, Keys: e.Keys, Text: e.Text, Gaps: v.Gaps, Channels: v.Channels, Locks: v.Locks,
		Old: v.Old, Hung: v.Hung, Restarted: v.Restarted, Log: v.Log}
}

// LastHeld is when a finding that is listed last held, if it does not hold now and counts as over only when it stays away; zero: it holds,
// or is not listed.
func (b *Board) LastHeld(instance, id, subject string) time.Time {
	e := b.entry(instance)
	if e == nil {
		return time.Time{}
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	for _, f := range e.verdict.Findings {
		if f.ID == id && f.Subject == subject {
			return f.Last
		}
	}
	return time.Time{}
}

// Note sets what others found about an instance, until the same ones, whom by names, set something else. It is among its findings.
func (b *Board) Note(id, by string, findings []fleet.Finding) {
	e := b.entry(id)
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.notes == nil {
		e.notes = map[string][]fleet.Finding{}
	}
	e.notes[by] = findings
}

func (e *entry) noted() (list []fleet.Finding) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	for _, by := range slices.Sorted(maps.Keys(e.notes)) {
		list = append(list, e.notes[by]...)
	}
	return list
}

// Metric is a metric with its newest value.
type Metric struct {
	fleet.Metric
	Last     float64 // NaN when the newest tick has none
	Constant bool    // it has not changed since Risso began to watch
}

// Metrics lists all metrics of an instance; false when it is not watched.
func (b *Board) Metrics(id string) ([]Metric, bool) {
	e := b.entry(id)
	if e == nil {
		return nil, false
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	out := make([]Metric, len(e.metrics))
	for i, m := range e.metrics {
		out[i] = Metric{Metric: m, Last: e.last[i], Constant: !e.changed[i]}
	}
	return out, true
}

// AllMetrics is one of each metric that any instance has, by key.
func (b *Board) AllMetrics() []fleet.Metric {
	seen := map[string]bool{}
	var out []fleet.Metric
	for _, e := range b.all() {
		e.mu.RLock()
		for i, m := range e.metrics {
			if k := e.keys[i]; !seen[k] {
				seen[k] = true
				out = append(out, m)
			}
		}
		e.mu.RUnlock()
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// Unit is the unit of a metric of an instance, or "".
func (b *Board) Unit(id, key string) string {
	e := b.entry(id)
	if e == nil {
		return ""
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	if i, ok := e.index[key]; ok {
		return e.metrics[i].Unit
	}
	return ""
}

// entry is the newest state of one instance.
type entry struct {
	judge rules.Judge // of the collector's goroutine
	added time.Time
	pulse *collect.Pulse

	mu       sync.RWMutex
	group    string // of the instance
	summary  Summary
	metrics  []fleet.Metric
	keys     []string
	index    map[string]int      // key → position
	byName   map[string][]string // name → keys
	values   []float64           // of the newest tick
	last     []float64           // the newest value each metric ever had
	prev     []float64
	prevTick int64
	seconds  float64 // between the newest tick and the one before, as they were read
	unseen   bool    // Risso was late itself at the last tick
	changed  []bool
	vars     map[string]string
	texts    map[string]string
	verdict  rules.Verdict
	notes    map[string][]fleet.Finding // by whom
	spark    ring
	cost     costRing
}

func (e *entry) take(v collect.View) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.summary = Summary{Instance: v.Instance, Tick: v.Tick, Up: v.Up, DownSince: v.DownSince, Down: v.Down, Late: v.Late, Gaps: v.Gaps, Channels: v.Channels, Locks: v.Locks,
		Old: v.Old, Hung: v.Hung, Restarted: v.Restarted, Log: v.Log}
	e.summary.Instance.Group = e.group
	for i := len(e.metrics); i < len(v.Sample.Metrics); i++ {
		key := v.Sample.Metrics[i].Key()
		e.keys = append(e.keys, key)
		e.index[key] = i
		name := v.Sample.Metrics[i].Name
		e.byName[name] = append(e.byName[name], key)
		e.changed = append(e.changed, false)
		e.last = append(e.last, math.NaN())
	}
	e.metrics = v.Sample.Metrics
	e.prev, e.values = e.values, append(e.prev[:0], v.Sample.Values...)
	e.prevTick, e.seconds, e.unseen = v.PrevTick, v.Elapsed(), false
	for i, now := range e.values {
		if math.IsNaN(now) {
			if v.Fresh && read.IsSetting(e.metrics[i].Name) { // this server does not have it: another version, or another server
				e.last[i] = now
			}
			continue
		}
		if old := e.last[i]; !math.IsNaN(old) && now != old {
			e.changed[i] = true
		}
		e.last[i] = now
	}
	e.copyVariables(v)
	e.history(v)
}

// copyVariables keeps what rules ask for; the collector's own map may be replaced at any tick.
func (e *entry) copyVariables(v collect.View) {
	if v.Variables != nil {
		e.vars = v.Variables
	}
	for name, text := range v.Texts {
		if e.texts == nil {
			e.texts = make(map[string]string)
		}
		if e.texts[name] != text {
			e.texts[name] = text
		}
	}
	if v.Up && len(e.texts) > len(v.Texts) { // another server has others
		maps.DeleteFunc(e.texts, func(name, _ string) bool { _, ok := v.Texts[name]; return !ok })
	}
}

// View is the part of the state that is no metric.
func (e *entry) View() Summary {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.summary
}

// Value is a metric's value: of the newest tick, or the newest there was for what is read less often.
func (e *entry) Value(key string) (float64, bool) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.value(key)
}

func (e *entry) value(key string) (float64, bool) {
	i, ok := e.index[key]
	if !ok || !e.summary.Up {
		return 0, false
	}
	v := e.values[i]
	if math.IsNaN(v) && seldom(e.metrics[i].Name) {
		v = e.last[i]
	}
	return v, !math.IsNaN(v)
}

// seldom says which metrics are read less often than every second.
func seldom(name string) bool {
	return read.IsSetting(name) || name == "risso_statement_latency_seconds" || name == "risso_replicas_connected" || name == read.ClockSkew || name == collect.CertificateEnd ||
		len(name) > 16 && name[:16] == "node_filesystem_"
}

// Rate is a counter's growth per second since the tick before; false after a gap or a reset.
func (e *entry) Rate(key string) (float64, bool) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.rate(key)
}

func (e *entry) rate(key string) (float64, bool) {
	i, ok := e.index[key]
	if !ok || i >= len(e.prev) || e.prevTick == 0 || e.seconds <= 0 {
		return 0, false
	}
	now, old := e.values[i], e.prev[i]
	if math.IsNaN(now) || math.IsNaN(old) || now < old {
		return 0, false
	}
	return (now - old) / e.seconds, true
}

// Keys are the keys of all series of a metric.
func (e *entry) Keys(name string) []string {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.byName[name]
}

// Text is a global variable as of the last minute, or a status variable that is no number, or "".
func (e *entry) Text(name string) string {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if v, ok := e.vars[name]; ok {
		return v
	}
	return e.texts[name]
}

// Facts is what is known about an instance at its newest tick.
type Facts interface {
	Value(key string) (float64, bool)
	Rate(key string) (float64, bool)
	Text(name string) string
}

// Facts is what is known about an instance; false if it is not watched.
func (b *Board) Facts(id string) (Facts, bool) {
	e := b.entry(id)
	if e == nil {
		return nil, false
	}
	return e, true
}
