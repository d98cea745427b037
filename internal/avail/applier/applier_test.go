package applier

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

func near(a, b float64) bool { return math.Abs(a-b) < 0.005*max(a, b, 1) }

// tx is a transaction of one row of a table, whose clocks are (after, number).
func tx(after, number int64, rows int64, schema string, keys ...uint64) *Transaction {
	return &Transaction{LastCommitted: after, Sequence: number, Rows: rows, Tables: []Table{{schema, "t"}}, Keys: keys, Transactional: true}
}

func study(o Options, list ...*Transaction) Report {
	s := New(o)
	s.NextLog()
	for _, t := range list {
		s.Add(t)
	}
	return s.Report()
}

// TestClocks: speed-ups by hand, of transactions that take the same.
func TestClocks(t *testing.T) {
	var chain, free, pairs []*Transaction
	for i := range int64(1000) {
		chain = append(chain, tx(i, i+1, 10, "a", 1))
		free = append(free, tx(1, i+1, 10, "a", uint64(i)))
		pairs = append(pairs, tx(i/2*2, i+1, 10, "a", uint64(i%2)))
	}
	free[0].LastCommitted = 0
	for name, c := range map[string]struct {
		list    []*Transaction
		ceiling float64
		enough  int
		at      map[int]float64
	}{
		// The first one is alone, as nothing is before it; the others fill the workers: 999 of them on 1024 take as long as one.
		"none waits":     {free, 1000.0 / 2, 1024, map[int]float64{1: 1, 2: 1000.0 / 501, 4: 1000.0 / 251, 8: 1000.0 / 126}},
		"each waits":     {chain, 1, 1, map[int]float64{1: 1, 2: 1, 4: 1}},
		"two at a time":  {pairs, 2, 2, map[int]float64{1: 1, 2: 2, 3: 2}},
		"no transaction": {nil, 0, 0, nil},
	} {
		r := study(Options{}, c.list...)
		m := r.Main()
		if !near(m.Ceiling, c.ceiling) || m.Enough != c.enough {
			t.Errorf("%s: got ceiling %v with %d workers, want %v with %d", name, m.Ceiling, m.Enough, c.ceiling, c.enough)
		}
		for n, want := range c.at {
			if got := m.At(n); !near(got, want) {
				t.Errorf("%s on %d workers: got %v, want %v", name, n, got, want)
			}
		}
	}
}

// TestNumbers: where servers wait for everything before a transaction.
func TestNumbers(t *testing.T) {
	var c clocks
	for i, x := range []struct {
		next          bool // another log begins
		after, number int64
		want          need
	}{
		{true, 0, 1, need{number: 1, all: true}},
		{false, 1, 2, need{number: 2, after: 1}},
		{false, 1, 3, need{number: 3, after: 1}},
		{false, 0, 4, need{number: 4, all: true}},           // nothing before it is known
		{false, 3, 6, need{number: 6, after: 3, all: true}}, // a number is left out
		{true, 0, 1, need{number: 7, after: 6, all: true}},
		{false, 1, 2, need{number: 8, after: 7}},
		{false, 0, 0, need{number: 9, all: true}}, // a log without clocks
		{false, 0, 0, need{number: 10, all: true}},
		{false, 0, 1, need{number: 11, after: 10, all: true}},
		{false, 0, 1, need{number: 12, after: 11, all: true}}, // begins again though no log was announced
	} {
		if x.next {
			c.nextLog()
		}
		if got := c.need(&Transaction{LastCommitted: x.after, Sequence: x.number}); got != x.want {
			t.Errorf("%d: (%d, %d): got %+v, want %+v", i, x.after, x.number, got, x.want)
		}
	}
}

// TestCommitOrder: a long transaction keeps those after it from committing, and so their workers.
func TestCommitOrder(t *testing.T) {
	list := []*Transaction{tx(0, 1, 0, "a")}
	for i := int64(2); i <= 401; i++ {
		rows := int64(0)
		if i == 2 {
			rows = 990 // as long as 100 of the others
		}
		list = append(list, tx(1, i, rows, "a", uint64(i)))
	}
	r := study(Options{}, list...)
	ordered, free := r.Curves[0], r.Curves[1]
	if !ordered.CommitOrder || free.CommitOrder {
		t.Fatalf("got %+v, want the one in order first", r.Curves)
	}
	// Two workers: 1, then the long one, with one beside it that keeps its worker: 1 + 100 + 398/2. Out of order 1 + 499/2.
	if got, want := ordered.At(2), 500/(1+100+199.0); !near(got, want) {
		t.Errorf("in order: got %v, want %v", got, want)
	}
	if got, want := free.At(2), 500/(1+250.0); !near(got, want) {
		t.Errorf("out of order: got %v, want %v", got, want)
	}
	if l := r.Limits[0]; l.Kind != LongOne || l.Share < 0.95 || l.Long.Rows != 990 || l.Long.Tables[0] != "a.t" {
		t.Errorf("got %+v, want the long transaction to be nearly all", l)
	}
}

// TestLimits: what is said to limit is what does.
func TestLimits(t *testing.T) {
	key := func(k uint64) (Table, string) {
		if k == 7 {
			return Table{"a", "hot"}, "id=7"
		}
		return Table{}, ""
	}
	var row, order, table, apart []*Transaction
	for i := range int64(3000) {
		row = append(row, tx(max(1, i), i+1, 1, "a", uint64(100+i), 7))
		apart = append(apart, tx(i, i+1, 1, fmt.Sprint("s", i%5), uint64(100+i)))
		order = append(order, tx(i, i+1, 1, "a", uint64(100+i)))
		t := tx(i, i+1, 1, "a")
		t.Unkeyed = true
		table = append(table, t)
	}
	for name, c := range map[string]struct {
		list []*Transaction
		want Limit
	}{
		"row":   {row, Limit{Kind: HotRow, Name: "id=7", Table: "a.hot"}},
		"order": {order, Limit{Kind: CommitOrder, Name: "a.t"}},
		"apart": {apart, Limit{Kind: CommitOrder}},
		"table": {table, Limit{Kind: HotTable, Name: "a.t"}},
	} {
		for _, window := range []int{0, 100} {
			r := study(Options{Key: key, WriteSet: true, Window: window}, c.list...)
			l := r.Limits[0]
			if l.Kind != c.want.Kind || l.Name != c.want.Name || l.Table != c.want.Table || l.Share < 0.9 {
				t.Errorf("%s, window %d: got %+v, want %+v", name, window, l, c.want)
			}
			if r.Main().Enough != 1 {
				t.Errorf("%s: got %+v, want no gain", name, r.Main())
			}
			w, _ := r.Of(WriteSet)
			if gains := w.Ceiling > 100; gains != (name == "order" || name == "apart") {
				t.Errorf("%s with write sets: got a ceiling of %v", name, w.Ceiling)
			}
		}
	}
}

// TestSeed is the case of the planning guide: db3 52.1 %, db1 34.5 %, db2 13.4 % of the write time: two appliers by schema are 1.92 times as fast as one, a
// third gains nothing, and all three work together for a quarter of the time.
func TestSeed(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var list []*Transaction
	for i := range int64(10000) {
		schema := "db3"
		switch x := r.Float64(); {
		case x < 0.134:
			schema = "db2"
		case x < 0.134+0.345:
			schema = "db1"
		}
		list = append(list, tx(i, i+1, 90, schema, uint64(i)))
	}
	// The shares as they are, not as they were drawn.
	s := New(Options{WriteSet: true})
	s.NextLog()
	for _, x := range list {
		s.Add(x)
	}
	for _, x := range s.schemas {
		x.Seconds = map[string]float64{"db3": 52.1, "db1": 34.5, "db2": 13.4}[x.Schemas[0]]
	}
	report := s.Report()
	c, ok := report.Of(BySchema)
	if !ok || !c.AtMost || !near(c.At(1), 1) || !near(c.At(2), 1.919) || !near(c.At(3), 1.919) || c.Enough != 2 {
		t.Errorf("got %+v, want 1, 1.92 and 1.92, and 2 to be enough", c)
	}
	if x := report.Schemas; len(x) != 3 || x[0].Name != "db3" || !near(x[0].Share, 0.521) || !near(x[2].Together, 0.2572) {
		t.Errorf("got %+v, want db3 first and all three at once for 25.7 %%", x)
	}
	if m := report.Main(); m.Ceiling != 1 {
		t.Errorf("got %v, want no gain in the order of commits", m.Ceiling)
	}
	if w, _ := report.Of(WriteSet); w.Ceiling < 500 || !near(w.At(4), 4) {
		t.Errorf("got %+v, want write sets to gain without a limit", w)
	}
}

// TestGroups: MariaDB's modes.
func TestGroups(t *testing.T) {
	group := func(f func(i int, t *Transaction)) Report {
		var list []*Transaction
		for i := range 1200 {
			x := tx(0, 0, 10, "a", uint64(i))
			x.ByGroup, x.Group = true, uint64(i/4)+1
			f(i, x)
			list = append(list, x)
		}
		return study(Options{}, list...)
	}
	for name, c := range map[string]struct {
		f                                    func(i int, t *Transaction)
		conservative, optimistic, aggressive float64 // on 4 workers
	}{
		"independent, groups of four": {func(int, *Transaction) {}, 4, 4, 4},
		"alone":                       {func(_ int, t *Transaction) { t.Group = 0 }, 1, 4, 4},
		"groups of two":               {func(i int, t *Transaction) { t.Group = uint64(i/2) + 1 }, 2, 4, 4},
		"one row":                     {func(_ int, t *Transaction) { t.Keys = []uint64{1}; t.Group = 0 }, 1, 1, 1},
		"all waited":                  {func(_ int, t *Transaction) { t.Waited, t.Group = true, 0 }, 1, 1, 4},
		"no transactions":             {func(_ int, t *Transaction) { t.Transactional, t.Group = false, 0 }, 1, 1, 1},
		"not to be applied beside":    {func(_ int, t *Transaction) { t.Serial, t.Group = true, 0 }, 1, 1, 1},
		"every fourth is DDL":         {func(i int, t *Transaction) { t.DDL, t.Group = i%4 == 0, 0 }, 1, 2, 2},
		"four domains":                {func(i int, t *Transaction) { t.Domain, t.Group, t.Keys = uint32(i%4), 0, []uint64{uint64(i % 4)} }, 4, 4, 4},
	} {
		r := group(c.f)
		for m, want := range map[Mode]float64{Conservative: c.conservative, Optimistic: c.optimistic, Aggressive: c.aggressive} {
			curve, ok := r.Of(m)
			if got := curve.At(4); !ok || !near(got, want) {
				t.Errorf("%s, %s: got %v on 4 workers, want %v", name, m, got, want)
			}
		}
	}
}

// TestWriteSets: what a source with write sets would have logged.
func TestWriteSets(t *testing.T) {
	w := &writeSets{}
	w.nextLog()
	many := make([]uint64, history+1)
	for i := range many {
		many[i] = uint64(1000 + i)
	}
	for i, x := range []struct {
		t    *Transaction
		want int64 // after; -1: all
	}{
		{tx(0, 1, 1, "a", 1), -1},
		{tx(1, 2, 1, "a", 2), 1},
		{tx(2, 3, 1, "a", 3), 1}, // shares no row
		{tx(3, 4, 1, "a", 2), 2}, // with the second
		{tx(3, 5, 1, "a", 4), 1}, // not more than the log says
		{tx(2, 6, 1, "a", 4), 2}, // less, by its commits
		{&Transaction{LastCommitted: 6, Sequence: 7, Unkeyed: true}, 6}, // no key: as it is, and nothing is forgotten
		{tx(7, 8, 1, "a", 3), 3},                                              //
		{&Transaction{LastCommitted: 8, Sequence: 9, DDL: true}, 8},           // all after it wait for it
		{tx(9, 10, 1, "a", 1), 9},                                             //
		{&Transaction{LastCommitted: 10, Sequence: 11, Keys: many}, 10},       // more than is remembered
		{tx(11, 12, 1, "a", 5), 11},                                           //
		{tx(12, 13, 1, "a", 5, 6), 12},                                        //
		{&Transaction{LastCommitted: 13, Sequence: 14, Statements: true}, 13}, // logged as text
		{tx(14, 15, 1, "a", 9), 14},                                           //
	} {
		got := w.need(x.t)
		if got.all != (x.want < 0) || !got.all && got.after != x.want {
			t.Errorf("%d: (%d, %d) %v: got %+v, want after %d", i, x.t.LastCommitted, x.t.Sequence, x.t.Keys[:min(len(x.t.Keys), 3)], got, x.want)
		}
	}
}

// TestBound: whatever the log, more workers are not slower in order, one is 1, none is faster than there are workers, and memory stays small.
func TestBound(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	s := New(Options{WriteSet: true, Window: 500})
	s.NextLog()
	number := int64(0)
	for i := range 20000 {
		if number++; r.IntN(3000) == 0 {
			s.NextLog()
			number = 1
		}
		x := tx(max(0, number-1-r.Int64N(20)), number, r.Int64N(50), fmt.Sprint(r.IntN(3)), uint64(r.IntN(200)))
		if r.IntN(100) == 0 {
			x.Rows = 5000
		}
		if s.Add(x); i%1000 == 0 {
			for _, run := range s.trials[0].runs {
				if n := len(run.only.steps); n > run.most+1 {
					t.Fatalf("%d workers: %d steps are remembered", run.most, n)
				}
			}
		}
	}
	report := s.Report()
	for _, c := range report.Curves {
		last := 0.0
		for _, p := range c.Points {
			if p.Speedup > float64(p.Workers)+1e-9 || p.Speedup < last*0.98 || p.Workers == 1 && p.Speedup != 1 {
				t.Errorf("%s: got %v on %d workers after %v", c.Mode, p.Speedup, p.Workers, last)
			}
			last = p.Speedup
		}
		if c.At(c.Enough) < Enough*c.Ceiling {
			t.Errorf("%s: %d workers reach %v of %v", c.Mode, c.Enough, c.At(c.Enough), c.Ceiling)
		}
	}
	share := 0.0
	for _, l := range report.Limits {
		share += l.Share
	}
	if share > 1.0001 || share < 0.5 || len(report.Sure) != 3 {
		t.Errorf("got %v of the chain explained, %+v", share, report.Sure)
	}
}

// TestCosts: where a commit takes much longer than a row, a long transaction weighs less.
func TestCosts(t *testing.T) {
	list := []*Transaction{tx(0, 1, 0, "a")}
	for i := int64(2); i <= 101; i++ {
		list = append(list, tx(1, i, 1000*(i%2)*(3-i%3)/3, "a", uint64(i)))
	}
	list = append(list, tx(1, 102, 100_000, "a", 102))
	cheap, dear := study(Options{}, list...), study(Options{Commit: time.Second, Row: time.Nanosecond}, list...)
	if c := dear.Costs; c.Commit != 1 || c.Row != 1e-9 || cheap.Costs.Commit != 100e-6 || cheap.Costs.Row != 10e-6 {
		t.Errorf("got %+v and %+v", cheap.Costs, c)
	}
	if a, b := cheap.Main().At(4), dear.Main().At(4); a > 1.5 || b < 3.7 {
		t.Errorf("got %v on 4 workers, and %v where commits take long", a, b)
	}
}
