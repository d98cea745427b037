package live

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/watch/collect"
	"github.com/rissodb/risso/internal/watch/rules"
)

// feed gives a board ticks of one server, as its collector would.
type feed struct {
	board    *Board
	sample   fleet.Sample
	instance fleet.Instance
	prevTick int64
}

func newFeed(id string) *feed {
	return &feed{board: New(func() Self { return Self{} }), instance: fleet.Instance{ID: id, Name: id, Kind: fleet.KindServer}}
}

func (f *feed) tick(t int64, questions, running float64) {
	f.sample.Clear()
	f.sample.Values[f.sample.Position(fleet.Metric{Name: "mysql_global_status_questions", Counter: true})] = questions
	f.sample.Values[f.sample.Position(fleet.Metric{Name: "mysql_global_status_threads_running"})] = running
	f.board.Observe(collect.View{Instance: f.instance, Tick: t, PrevTick: f.prevTick, Up: true, Sample: &f.sample})
	f.prevTick = t
}

func (f *feed) down(t int64, reason string) {
	f.sample.Clear()
	f.board.Observe(collect.View{Instance: f.instance, Tick: t, PrevTick: f.prevTick, DownSince: time.Unix(t, 0), Down: fleet.Trouble{Why: reason}, Sample: &f.sample})
	f.prevTick = t
}

func (f *feed) row(t *testing.T, now int64) Row {
	t.Helper()
	rows := f.board.Fleet(time.Unix(now, 0))
	if len(rows) != 1 {
		t.Fatalf("got %d rows, want 1", len(rows))
	}
	return rows[0]
}

func TestRatesNeedTwoTicks(t *testing.T) {
	f := newFeed("db1")
	f.tick(100, 1000, 2)
	if r := f.row(t, 100); r.QPS != nil || *r.ThreadsRunning != 2 {
		t.Errorf("after one tick: got %v; want r.QPS nil, *r.ThreadsRunning 2", r.QPS)
	}
	f.tick(101, 1050, 2)
	if r := f.row(t, 101); r.QPS == nil || *r.QPS != 50 {
		t.Errorf("after two ticks: got %v; want r.QPS not nil, *r.QPS 50", r.QPS)
	}
	f.tick(105, 1250, 2)
	if r := f.row(t, 105); *r.QPS != 50 {
		t.Errorf("after a gap the rate is over the gap: %v, want 50", *r.QPS)
	}
	f.tick(106, 10, 2)
	if r := f.row(t, 106); r.QPS != nil {
		t.Errorf("a reset gave the rate %v, want r.QPS nil", *r.QPS)
	}
}

func TestSilenceIsDown(t *testing.T) {
	f := newFeed("db1")
	f.tick(100, 1000, 2)
	f.tick(101, 1010, 2)
	if r := f.row(t, 103); r.State != rules.StateOK {
		t.Errorf("two seconds later: got %s, want rules.StateOK", r.State)
	}
	r := f.row(t, 110)
	if r.State != rules.StateDown || !strings.Contains(r.Words, "does not answer since") || r.QPS != nil {
		t.Errorf("nine seconds later: got %s, %q, %v; want r.State rules.StateDown, \"does not answer since\" in it, r.QPS nil", r.State, r.Words, r.QPS)
	}
}

func TestDownSaysWhy(t *testing.T) {
	f := newFeed("db1")
	f.tick(100, 1000, 2)
	f.down(101, "refuses connections")
	r := f.row(t, 101)
	if r.State != rules.StateDown || !strings.Contains(r.Words, "refuses connections") || r.Since != 101 {
		t.Errorf("%s %q since %d; want r.State rules.StateDown, \"refuses connections\" in it, r.Since 101", r.State, r.Words, r.Since)
	}
	f.tick(102, 1100, 1)
	if r := f.row(t, 102); r.State == rules.StateDown {
		t.Errorf("it is back, and still %s; want not rules.StateDown", r.State)
	}
}

func TestConstantMetricsAreKnown(t *testing.T) {
	f := newFeed("db1")
	for i := range int64(3) {
		f.tick(100+i, 1000+float64(i), 2)
	}
	m, ok := f.board.Metrics("db1")
	if !ok || m[0].Constant || !m[1].Constant || m[0].Last != 1002 {
		t.Errorf("got %+v; want ok true, m[0].Constant false, m[1].Constant true, m[0].Last 1002", m)
	}
	if _, ok := f.board.Metrics("db2"); ok {
		t.Error("an unknown instance has metrics")
	}
}

func TestSparkKeepsGaps(t *testing.T) {
	var r ring
	for i := int64(0); i < 20; i++ {
		if i < 10 || i >= 15 {
			r.put(1000+i, float64(i))
		}
	}
	s := r.spark(1020)
	n := len(s.Avg)
	if s.Min[n-1] != 15 || s.Max[n-1] != 19 || !math.IsNaN(s.Avg[n-2]) || s.Avg[n-3] != 7 {
		t.Errorf("got %+v; want Min[n-1] 15, Max[n-1] 19, math.IsNaN(s.Avg[n-2]) true, Avg[n-3] 7", s)
	}
	b, err := json.Marshal(s)
	if err != nil || !strings.Contains(string(b), "null") {
		t.Errorf("got %s, %v; want \"null\" in it", b, err)
	}
}

func TestCostIsOverAMinute(t *testing.T) {
	var c costRing
	for i := range int64(200) {
		c.put(1000+i, [3]float64{float64(i) * 4, float64(i) * 0.002, float64(i) * 500})
	}
	got := c.cost(7)
	if got.QueriesPerSecond != 4 || math.Abs(got.ServerMsPerSecond-2) > 1e-9 || got.BytesPerSecond != 500 || got.ValuesPerSecond != 7 {
		t.Errorf("got %+v; want QueriesPerSecond 4, math.Abs(got.ServerMsPerSecond - 2) at most 1e-9, BytesPerSecond 500, ValuesPerSecond 7", got)
	}
	if (&costRing{}).cost(1) != (Cost{}) {
		t.Error("no ticks, and yet a cost")
	}
}

// TestFollows: who replicates from whom is known by the addresses on the board.
func TestFollows(t *testing.T) {
	b := New(nil)
	for _, v := range []collect.View{
		{Instance: fleet.Instance{ID: "a", Address: "db1:3306"}},
		{Instance: fleet.Instance{ID: "b", Address: "db2:3306"}, Channels: []fleet.Channel{{Source: "db1:3306"}}},
		{Instance: fleet.Instance{ID: "c", Address: "db3:3306"}, Channels: []fleet.Channel{{Source: "elsewhere:3306"}}},
	} {
		b.Add(v.Instance)
		v.Sample, v.Tick = &fleet.Sample{}, 100
		b.Observe(v)
	}
	if got := b.Follows(time.Unix(100, 0)); len(got) != 1 || !slices.Equal(got["b"], []string{"a"}) {
		t.Errorf("got %v; want b: a", got)
	}
}
