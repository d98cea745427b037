package rules

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql/read"
)

// scenario is a rule on trial, read from testdata/*.scenario; testdata/README.md has the format.
type scenario struct {
	file, name string
	id         string // of the finding
	world      string
	setup      []string
	near, bad  []string
	told       string // "warning: words", with the times in it
	remedy     string
	part       bool // remedy is only a part of it
	after      int  // seconds until it is reported
	ends       int  // seconds until it is dropped
	with       []string
	rows       [][2]string // a number, and what it leads to
}

// scenarios reads all files.
func scenarios(t *testing.T) (out []scenario) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.scenario")
	if err != nil || len(files) == 0 {
		t.Fatalf("got %d files, %v; want some", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var s *scenario
		var block *[]string
		for i, line := range strings.Split(string(text), "\n") {
			line = strings.TrimSpace(line)
			word, rest, _ := strings.Cut(line, " ")
			switch {
			case line == "" || line[0] == '#':
			case word == "rule" || word == "limits":
				out = append(out, scenario{file: file, after: 4, ends: 10})
				s = &out[len(out)-1]
				s.id, s.name, _ = strings.Cut(rest, ": ")
				block = &s.setup
			case s == nil:
				t.Fatalf("%s:%d: want a line that begins with rule or limits, got %q", file, i+1, line)
			case word == "on":
				s.world = rest
			case word == "near":
				block = &s.near
			case word == "bad":
				block = &s.bad
			case word == "with":
				s.with = append(s.with, rest)
			case word == "told" || word == "ended":
				n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(rest, "after "), " s"))
				if err != nil {
					t.Fatalf("%s:%d: %v", file, i+1, err)
				}
				*map[string]*int{"told": &s.after, "ended": &s.ends}[word] = n
			case word == "warning:" || word == "critical:":
				s.told = line
			case word == "remedy":
				s.remedy, s.part = strings.CutPrefix(rest, "… ")
			case len(s.with) > 0:
				s.rows = append(s.rows, [2]string{word, rest})
			default:
				*block = append(*block, line)
			}
		}
	}
	return out
}

// TestScenarios tries each rule of the files on an instance that is healthy for two minutes, then bad but not bad enough, then
// bad, then healthy again; and on numbers around its limits.
func TestScenarios(t *testing.T) {
	for _, s := range scenarios(t) {
		t.Run(s.id+"/"+s.name, func(t *testing.T) {
			if len(s.with) > 0 {
				s.limits(t)
				return
			}
			s.run(t)
		})
	}
}

// healthy makes the world of a scenario, and lets two minutes pass.
func (s scenario) healthy(t *testing.T) *world {
	t.Helper()
	w, err := worldOf(s.world)
	if err != nil {
		t.Fatal(err)
	}
	s.set(t, w, s.setup)
	for range 120 {
		if v := w.tick(); v.State != StateOK || !strings.HasPrefix(v.Words, "healthy: ") || len(v.Findings) > 0 {
			t.Fatalf("before anything happens: got %+v, want a healthy instance", v)
		}
	}
	return w
}

func (s scenario) set(t *testing.T, w *world, lines []string) {
	t.Helper()
	for _, line := range lines {
		if err := w.set(line); err != nil {
			t.Fatalf("%s: %q: %v", s.file, line, err)
		}
	}
}

func (s scenario) run(t *testing.T) {
	w := s.healthy(t)
	restore := w.remember()
	if len(s.near) > 0 {
		s.set(t, w, s.near)
		for n := range 20 {
			if f := find(w.tick(), s.id); f != nil {
				t.Fatalf("not bad enough: got %q after %d s, want nothing", f.What, n+1)
			}
		}
		restore()
		for range 40 {
			w.tick()
		}
	}
	s.set(t, w, s.bad)
	start := w.snap.Now.Add(time.Second)
	var f *fleet.Finding
	var v Verdict
	n := 0
	for n = 1; n <= 60 && f == nil; n++ {
		v = w.tick()
		f = find(v, s.id)
	}
	if f == nil {
		t.Fatalf("bad: got %+v, want %s", v, s.id)
	}
	if n--; n != s.after {
		t.Errorf("got it told after %d s, want after %d", n, s.after)
	}
	if got := f.Severity.String() + ": " + f.What; got != s.told {
		t.Errorf("got  %s\nwant %s", got, s.told)
	}
	if s.part && !strings.Contains(f.Remedy, s.remedy) || !s.part && f.Remedy != s.remedy {
		t.Errorf("got  remedy %s\nwant remedy %s", f.Remedy, s.remedy)
	}
	runnable(t, w.snap.Instance.Kind, *f)
	valued(t, *f)
	if f.Since.Before(start) && s.id != "trx.long" || f.Since.After(w.snap.Now) {
		t.Errorf("got it since %v, want a time from %v on", f.Since, start)
	}
	if want := map[fleet.Severity]State{fleet.SeverityWarning: StateWarning, fleet.SeverityCritical: StateCritical}[f.Severity]; v.State.rank() < want.rank() {
		t.Errorf("got the instance %s, want it %s", v.State, want)
	}
	if f.Chart == "" {
		t.Error("got no chart that shows it, want one")
	}
	restore()
	for n = 1; n <= 300 && find(w.tick(), s.id) != nil; n++ {
	}
	if n != s.ends {
		t.Errorf("got it dropped after %d s, want after %d", n, s.ends)
	}
}

// limits tries numbers, each on a separate instance, for so long that means over some seconds have settled.
func (s scenario) limits(t *testing.T) {
	least, most := map[string]float64{}, map[string]float64{} // values by severity, if the value is of what is varied
	for _, row := range s.rows {
		w := s.healthy(t)
		s.set(t, w, s.bad)
		for _, key := range s.with {
			s.set(t, w, []string{key + " " + row[0]})
		}
		got := "quiet"
		for range 60 {
			if f := find(w.tick(), s.id); f != nil {
				got = f.Severity.String()
				runnable(t, w.snap.Instance.Kind, *f)
				valued(t, *f)
				if _, seen := least[got]; !seen || f.Value < least[got] {
					least[got] = f.Value
				}
				most[got] = max(most[got], f.Value)
			}
		}
		if got != row[1] {
			t.Errorf("%s: got %s, want %s", row[0], got, row[1])
		}
	}
	if lo, ok := least["critical"]; ok && most["warning"] > lo {
		t.Errorf("got value %v of a warning and %v of what is critical, want that the larger is the worse", most["warning"], lo)
	}
}

// worldOf makes a healthy instance: "mariadb", "mysql-9.7, replica".
func worldOf(name string) (*world, error) {
	kind, role, _ := strings.Cut(name, ", ")
	w := map[string]func() *world{"mariadb": mariadb, "mysql-9.7": mysql97, "percona-5.7": mysql57, "host": host}[kind]
	if w == nil {
		return nil, fmt.Errorf("no such instance as %q", name)
	}
	switch role {
	case "":
		return w(), nil
	case "replica":
		return replica(w()), nil
	case "galera":
		return galera(w()), nil
	}
	return nil, fmt.Errorf("no such role as %q", role)
}

// remember returns what restores the numbers as they are now.
func (w *world) remember() func() {
	var back []func()
	for _, w := range []*world{w, w.host} {
		if w == nil {
			continue
		}
		values, rates, texts, channels, locks := maps.Clone(w.values), maps.Clone(w.rates), maps.Clone(w.texts), slices.Clone(w.snap.Channels), slices.Clone(w.snap.Locks)
		old, gaps, restarted := w.snap.Old, w.snap.Gaps, w.snap.Restarted
		back = append(back, func() {
			maps.Copy(w.values, values)
			maps.Copy(w.rates, rates)
			maps.Copy(w.texts, texts)
			w.snap.Old, w.snap.Gaps, w.snap.Restarted = old, gaps, restarted
			w.snap.Channels, w.snap.Locks, w.snap.Late = slices.Clone(channels), slices.Clone(locks), false
			for _, key := range slices.Collect(maps.Keys(w.values)) {
				if _, there := values[key]; !there {
					delete(w.values, key)
				}
			}
			for _, key := range slices.Collect(maps.Keys(w.rates)) {
				if _, there := rates[key]; !there {
					delete(w.rates, key)
				}
			}
		})
	}
	return func() {
		for _, b := range back {
			b()
		}
	}
}

// set carries out a line: "value status.threads_running 9".
func (w *world) set(line string) error {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "host":
		return w.host.set(rest)
	case "late":
		w.snap.Late = true
		return nil
	case "version":
		w.snap.Instance.Version = rest
		return nil
	case "role":
		w.snap.Instance.Role = fleet.Role(rest)
		return nil
	case "text":
		key, value, _ := strings.Cut(rest, " ")
		w.texts[key] = strings.Trim(value, `"`)
		return nil
	case "channel":
		return w.setChannel(rest)
	case "old":
		return w.old(strings.Fields(rest))
	case "gap":
		what, why, _ := strings.Cut(rest, ": ")
		w.snap.Gaps = append(w.snap.Gaps, fleet.Trouble{What: what, Why: why, Remedy: "GRANT PROCESS ON *.* TO 'risso'@'%'"})
		return nil
	case "restarted":
		w.snap.Restarted = w.snap.Now.Add(time.Second)
		w.snap.Log = strings.Split(rest, " | ")
		return nil
	case "lock":
		return w.lock(strings.Fields(rest))
	case "none":
		delete(w.values, metric(rest))
		delete(w.rates, metric(rest))
		return nil
	}
	i := strings.LastIndex(rest, " ")
	numbers, err := figures(rest[i+1:])
	if err != nil {
		return err
	}
	key := metric(rest[:max(i, 0)])
	switch word {
	case "value":
		w.values[key] = numbers[0]
	case "rate":
		w.rates[key] = numbers[0]
	case "waiting":
		w.waiting(key, numbers[0])
	case "lag":
		w.lag(numbers[0])
	case "space", "nodes":
		w.fs(map[string]string{"space": availMetric, "nodes": freeMetric}[word], numbers[0])
	case "readonly":
		w.fs(readonlyMetric, numbers[0])
	case "cpu": // busy,idle,iowait,steal
		if len(numbers) != 4 {
			return fmt.Errorf("want four numbers: busy, idle, iowait, steal")
		}
		w.cpu(numbers[0], numbers[1], numbers[2], numbers[3])
	case "disk": // disk flushes 100,0.011: a second, seconds
		ways := map[string][2]string{"flushes": {flushCount, flushTime}, "reads": {diskWays[2].count, diskWays[2].time}, "writes": {diskWays[1].count, diskWays[1].time}}
		way, ok := ways[key]
		if !ok || len(numbers) != 2 {
			return fmt.Errorf("want flushes, reads or writes, how many a second, and how long each takes")
		}
		w.rates[way[0]+`{device="vda"}`], w.rates[way[1]+`{device="vda"}`] = numbers[0], numbers[0]*numbers[1]
	default:
		return fmt.Errorf("no such word as %q", word)
	}
	return nil
}

// old adds a transaction of app@web3 that is open for some seconds, has changed some rows and locked some: "812 700 3 40".
func (w *world) old(words []string) error {
	n, err := figures(strings.Join(words, ","))
	if err != nil || len(n) != 4 {
		return fmt.Errorf("want four numbers: connection, seconds, rows changed, rows locked")
	}
	w.snap.Old = append(w.snap.Old, read.OldTransaction{Modified: n[2], Locked: n[3], Session: read.Blocker{ID: int64(n[0]), User: "app", Host: "web3", Command: "Sleep", Seconds: 41, Open: n[1],
		Statement: "UPDATE orders SET paid = 1 WHERE id = 7"}})
	return nil
}

// setChannel reads "db1 Yes No 1062 some error", or with a name and a colon before it.
func (w *world) setChannel(text string) error {
	ch := fleet.Channel{}
	if name, rest, ok := strings.Cut(text, ": "); ok && !strings.Contains(name, " ") {
		ch.Name, text = name, rest
	}
	f := strings.SplitN(text, " ", 5)
	if len(f) < 3 {
		return fmt.Errorf("want a source and the states of two threads")
	}
	ch.Source, ch.IORunning, ch.SQLRunning = f[0], f[1], f[2]
	if len(f) == 5 {
		n, err := strconv.Atoi(f[3])
		if err != nil {
			return err
		}
		failed := &ch.IO
		if !strings.EqualFold(ch.SQLRunning, "Yes") {
			failed = &ch.SQL
		}
		*failed = read.Described(n, f[4])
	}
	i := slices.IndexFunc(w.snap.Channels, func(c fleet.Channel) bool { return c.Name == ch.Name })
	if i < 0 {
		w.snap.Channels = append(w.snap.Channels, ch)
	} else {
		w.snap.Channels[i] = ch
	}
	return nil
}

// metric writes the beginnings of names out.
func metric(key string) string {
	for short, long := range map[string]string{"status.": statusPrefix, "variable.": variablePrefix, "innodb.": innodbPrefix} {
		if rest, ok := strings.CutPrefix(key, short); ok {
			return long + rest
		}
	}
	return key
}

// figures reads numbers with a comma between them; K, M and G are steps of 1,024.
func figures(text string) (out []float64, err error) {
	for _, t := range strings.Split(text, ",") {
		size := 1.0
		for unit, n := range map[string]float64{"K": 1 << 10, "M": 1 << 20, "G": 1 << 30} {
			if rest, ok := strings.CutSuffix(t, unit); ok {
				t, size = rest, n
			}
		}
		v, err := strconv.ParseFloat(t, 64)
		if err != nil {
			return nil, err
		}
		out = append(out, v*size)
	}
	return out, nil
}

// lock lets sessions wait for another one: "row_lock 9,10 812 shop.orders"; 812? may be the one, and 0? says that nothing is known of it.
func (w *world) lock(words []string) error {
	if len(words) < 3 {
		return fmt.Errorf("want the kind, who waits, and who is in the way")
	}
	waiters, err := figures(words[1])
	if err != nil {
		return err
	}
	blocker, maybe := strings.CutSuffix(words[2], "?")
	id, err := strconv.ParseInt(blocker, 10, 64)
	if err != nil {
		return err
	}
	for _, n := range waiters {
		x := read.LockWait{Waiter: int64(n), Kind: read.LockKind(words[0]), Maybe: maybe, Blocker: read.Blocker{ID: id}}
		if id != 0 {
			x.Blocker = read.Blocker{ID: id, User: "app", Host: "web3", Command: "Sleep", Seconds: 41, Open: 42, Statement: "UPDATE orders SET paid = 1 WHERE id = 7"}
		}
		if x.Kind == read.LockGlobal && !maybe {
			x.Type = "GLOBAL"
		}
		if len(words) > 3 {
			x.Type = "TABLE"
			x.Schema, x.Name, _ = strings.Cut(words[3], ".")
			if x.Kind == read.LockRow {
				x.Type, x.Index = "RECORD", "PRIMARY"
			}
		}
		w.snap.Locks = append(w.snap.Locks, x)
	}
	return nil
}
