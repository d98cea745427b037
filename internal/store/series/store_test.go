package series

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
)

// t0 is an hour boundary in 2025; tests write from there.
const t0 = int64(1_750_003_200)

// events collects what a store tells.
type events struct {
	mu   sync.Mutex
	list []fleet.Event
}

func (e *events) add(ev fleet.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, ev)
}

func (e *events) about(path string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc(e.list, func(ev fleet.Event) bool { return ev.Subject == path })
}

func (e *events) String() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var b strings.Builder
	for _, ev := range e.list {
		fmt.Fprintln(&b, ev.Instance, ev.Subject, ev.Text)
	}
	return b.String()
}

func openStore(t testing.TB, dir string, opts ...func(*Options)) *Store {
	t.Helper()
	o := Options{Dir: dir}
	for _, f := range opts {
		f(&o)
	}
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func openWriterT(t testing.TB, s *Store, id string) *Writer {
	t.Helper()
	w, err := s.Writer(id)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// model is the truth a store is compared with.
type model struct {
	descs []Desc
	vals  map[string]*column
	late  map[int64]bool
}

// column is what a series has, in order of time. It is not a map: to compare millions of samples with one takes minutes
// under the race detector.
type column struct {
	t []int64
	v []float64
}

// at is the value at a second, if there is one.
func (c *column) at(t int64) (float64, bool) {
	i, ok := slices.BinarySearch(c.t, t)
	if !ok {
		return 0, false
	}
	return c.v[i], true
}

func newModel(descs []Desc) *model {
	m := &model{descs: descs, vals: map[string]*column{}, late: map[int64]bool{}}
	for _, d := range descs {
		m.vals[d.Key()] = &column{}
	}
	return m
}

func (m *model) append(t testing.TB, w *Writer, at int64, vals []float64, late bool) {
	t.Helper()
	if err := w.Append(at, vals, late); err != nil {
		t.Fatal(err)
	}
	m.note(at, vals, late)
}

func (m *model) note(at int64, vals []float64, late bool) {
	for i, v := range vals {
		if v == v {
			c := m.vals[m.descs[i].Key()]
			c.t, c.v = append(c.t, at), append(c.v, v)
		}
	}
	m.late[at] = late
}

// check compares every sample of a range; with lossy, samples may be missing but none may be wrong. It returns how many are missing.
func (m *model) check(t testing.TB, s *Store, id string, from, to int64, lossy bool) (missing int) {
	t.Helper()
	for _, n := range m.missing(t, s, id, from, to, lossy) {
		missing += n
	}
	return missing
}

// missing is check for each series: those with missing samples, by key.
func (m *model) missing(t testing.TB, s *Store, id string, from, to int64, lossy bool) map[string]int {
	t.Helper()
	out := map[string]int{}
	for key, want := range m.vals {
		p, err := s.Raw(context.Background(), id, key, from, to)
		if err != nil {
			t.Fatal(err)
		}
		i, _ := slices.BinarySearch(want.t, from)
		end, _ := slices.BinarySearch(want.t, to)
		all := end - i
		for k, at := range p.T {
			for i < end && want.t[i] < at {
				i++
			}
			if i == end || want.t[i] != at || math.Float64bits(want.v[i]) != math.Float64bits(p.V[k]) {
				v, ok := want.at(at)
				t.Fatalf("%s at %d, %d of %d, is %v, want %v (there: %v)", key, at, k, len(p.T), p.V[k], v, ok)
			}
			i++ // a time that comes twice, or goes back, is not there any more
		}
		if len(p.T) != all && !lossy {
			t.Fatalf("%s has %d samples, want %d", key, len(p.T), all)
		}
		if len(p.T) < all {
			out[key] = all - len(p.T)
		}
	}
	return out
}

// mixed makes descriptions of all sorts and a generator of their values.
func mixed(n int) ([]Desc, func(r *rand.Rand, at int64) []float64) {
	descs := make([]Desc, n)
	for i := range descs {
		descs[i] = Desc{Name: fmt.Sprintf("m_%d", i/3), Labels: []Label{{Name: "k", Value: fmt.Sprint(i % 3)}}, Type: Type(i % 2)}
	}
	state := make([]float64, n)
	vals := make([]float64, n)
	return descs, func(r *rand.Rand, at int64) []float64 {
		common := float64(r.IntN(50))
		for i := range vals {
			switch i % 8 {
			case 0:
				vals[i] = 42 // constant
			case 1:
				state[i] += common
				vals[i] = state[i]
			case 2:
				vals[i] = float64(r.IntN(100))
			case 3:
				state[i] += common*3 + float64(r.IntN(2))
				if r.IntN(500) == 0 {
					state[i] = 0
				}
				vals[i] = state[i]
			case 4:
				vals[i] = r.Float64()
			case 5:
				vals[i] = math.NaN()
				if at%60 == 7 {
					vals[i] = 128
				}
			case 6:
				vals[i] = float64(r.IntN(10000)) / 100
				if r.IntN(5) == 0 {
					vals[i] = math.NaN()
				}
			case 7:
				state[i] += 16384 * float64(r.IntN(9))
				vals[i] = state[i]
			}
		}
		return vals
	}
}

func define(w *Writer, descs []Desc) {
	for i, d := range descs {
		if w.Define(d) != i {
			panic("positions do not count up")
		}
	}
}

func TestLifeOfASample(t *testing.T) {
	dir := t.TempDir()
	ev := &events{}
	s := openStore(t, dir, func(o *Options) { o.OnEvent = ev.add })
	descs, gen := mixed(40)
	m := newModel(descs)
	w := openWriterT(t, s, "db-1")
	define(w, descs)
	r := rand.New(rand.NewPCG(1, 2))
	end := t0 + 2*hourSeconds + 1000
	for at := t0; at < end; at++ {
		if r.IntN(100) == 0 {
			continue
		}
		m.append(t, w, at, gen(r, at), r.IntN(40) == 0)
		if at == t0+30 || at == t0+700 || at == t0+hourSeconds+5 {
			m.check(t, s, "db-1", t0, end, false)
		}
	}
	m.check(t, s, "db-1", t0, end, false)
	if err := w.Append(end-500, gen(r, 0), false); !errors.Is(err, ErrOldTick) {
		t.Fatalf("an old tick gives %v, want ErrOldTick", err)
	}
	if err := s.Compact(context.Background(), time.Unix(end, 0)); err != nil {
		t.Fatal(err)
	}
	if st := s.Stats(); st.Blocks != 2 {
		t.Fatalf("%d blocks, want 2", st.Blocks)
	}
	m.check(t, s, "db-1", t0, end, false)
	m.check(t, s, "db-1", t0+1800, t0+hourSeconds+900, false)
	m.checkBands(t, s, "db-1", t0, end, 60)
	m.checkBands(t, s, "db-1", t0, end, 1)
	m.checkBands(t, s, "db-1", t0+17, end, 333)
	m.checkBands(t, s, "db-1", t0, end, hourSeconds)
	m.checkBands(t, s, "db-1", t0-hourSeconds, end, 2*hourSeconds)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, dir, func(o *Options) { o.OnEvent = ev.add })
	m.check(t, s, "db-1", t0, end, false)
	w = openWriterT(t, s, "db-1")
	define(w, descs)
	if err := w.Append(end-1, gen(r, 0), false); !errors.Is(err, ErrOldTick) {
		t.Fatalf("after reopening, an old tick gives %v; want ErrOldTick", err)
	}
	if err := s.Compact(context.Background(), time.Unix(t0+3*daySeconds, 0)); err != nil {
		t.Fatal(err)
	}
	if st := s.Stats(); st.Blocks != 1 {
		t.Fatalf("%d blocks, want 1 of a day", st.Blocks)
	}
	m.check(t, s, "db-1", t0, end, false)
	m.checkBands(t, s, "db-1", t0, end, 60)
	if len(ev.list) != 0 {
		t.Fatalf("events: got %v, want none", ev)
	}
	if d := s.Descs("db-1", t0, end); len(d) != len(descs) {
		t.Fatalf("%d descs, want %d", len(d), len(descs))
	}
}

// checkBands compares Bands with figures computed in the plainest way.
func (m *model) checkBands(t testing.TB, s *Store, id string, from, to, step int64) {
	t.Helper()
	var keys []string
	for _, d := range m.descs {
		keys = append(keys, d.Key())
	}
	got, err := s.Bands(context.Background(), id, keys, from, to, step)
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range m.descs {
		m.checkBand(t, &got[i], d, from, to, step)
	}
}

func (m *model) checkBand(t testing.TB, got *Bands, d Desc, from, to, step int64) {
	t.Helper()
	vals := m.vals[d.Key()]
	if got.Type != d.Type || len(got.N) != int((to-from+step-1)/step) {
		t.Fatalf("%s: type %d, %d buckets; want got.Type %d, len(got.N) %d", d.Key(), got.Type, len(got.N), d.Type, int((to-from+step-1)/step))
	}
	for k := range got.N {
		var all, trusted []float64
		sum := 0.0
		for at := from + int64(k)*step; at < min(to, from+int64(k+1)*step); at++ {
			v, ok := vals.at(at)
			if d.Type == Counter {
				p, ok2 := vals.at(at - 1)
				if v < p || !ok2 {
					ok = false
				}
				v -= p
			}
			if !ok {
				continue
			}
			all = append(all, v)
			sum += v
			if d.Type == Gauge || !m.late[at] && !m.late[at-1] {
				trusted = append(trusted, v)
			}
		}
		if got.N[k] != len(all) {
			t.Fatalf("%s bucket %d: n %d, want %d", d.Key(), k, got.N[k], len(all))
		}
		if len(all) == 0 {
			if got.Avg[k] == got.Avg[k] {
				t.Fatalf("%s bucket %d: avg %v of nothing, want not got.Avg[k]", d.Key(), k, got.Avg[k])
			}
			continue
		}
		if avg := sum / float64(len(all)); math.Abs(got.Avg[k]-avg) > 1e-9*max(1, math.Abs(avg)) {
			t.Fatalf("%s bucket %d: avg %v, want %v", d.Key(), k, got.Avg[k], avg)
		}
		if len(trusted) == 0 {
			continue
		}
		slices.Sort(trusted)
		n := len(trusted)
		want := [5]float64{trusted[0], trusted[rank(5, n)], trusted[rank(50, n)], trusted[rank(95, n)], trusted[n-1]}
		have := [5]float64{got.Min[k], got.P5[k], got.P50[k], got.P95[k], got.Max[k]}
		for j := range want {
			exact := step%hourSeconds != 0 || j == bandMin || j == bandMax
			if exact && math.Abs(have[j]-want[j]) > 1e-9*max(1, math.Abs(want[j])) {
				t.Fatalf("%s bucket %d of %d values: %v, want %v", d.Key(), k, n, have, want)
			}
		}
	}
}

func TestSecondOpenerIsRefused(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	if _, err := Open(Options{Dir: dir}); !errors.Is(err, ErrLocked) {
		t.Fatalf("second opener gets %v, want ErrLocked", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	openStore(t, dir)
}

func TestNamesOfInstances(t *testing.T) {
	s := openStore(t, t.TempDir())
	for _, id := range []string{"", "..", "a/b", ".x", "a b", strings.Repeat("x", 201)} {
		if _, err := s.Writer(id); !errors.Is(err, ErrInstance) {
			t.Errorf("%q: got %v, want ErrInstance", id, err)
		}
	}
	openWriterT(t, s, "db-1.example_2")
	if _, err := s.Writer("db-1.example_2"); !errors.Is(err, ErrBusy) {
		t.Errorf("second writer: got %v, want ErrBusy", err)
	}
	if got := s.Instances(); !slices.Equal(got, []string{"db-1.example_2"}) {
		t.Errorf("instances %v, want []string{\"db-1.example_2\"}", got)
	}
}

func TestLast(t *testing.T) {
	s := openStore(t, t.TempDir())
	if at, _ := s.Last("nobody"); at != 0 {
		t.Fatalf("nobody has a tick: got %v, want 0", at)
	}
	w := openWriterT(t, s, "db")
	w.Define(Desc{Name: "a"})
	w.Define(Desc{Name: "b"})
	for i := range int64(400) {
		vals := []float64{float64(i), math.NaN()}
		if i == 50 || i == 200 {
			vals[1] = 7
		}
		if err := w.Append(t0+i, vals, false); err != nil {
			t.Fatal(err)
		}
	}
	at, value := s.Last("db")
	a, okA := value("a")
	b, okB := value("b")
	_, okC := value("c")
	if at != t0+399 || a != 399 || !okA || b != 7 || !okB || okC {
		t.Fatalf("got %v, %v, %v, %v, %v, %v; want at %v, a 399, okA true, b 7, okB true, okC false", at, a, okA, b, okB, okC, t0+399)
	}
}

func TestRetention(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, func(o *Options) { o.Retention = 2 * time.Hour })
	w := openWriterT(t, s, "db")
	w.Define(Desc{Name: "a"})
	for i := int64(0); i < 5*hourSeconds; i += 30 {
		if err := w.Append(t0+i, []float64{float64(i)}, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Compact(context.Background(), time.Unix(t0+5*hourSeconds, 0)); err != nil {
		t.Fatal(err)
	}
	p, _ := s.Raw(context.Background(), "db", "a", 0, t0+daySeconds)
	if len(p.T) == 0 || p.T[0] != t0+3*hourSeconds {
		t.Fatalf("oldest is %v; want len(p.T) not 0, p.T[0] %v", p.T[:1], t0+3*hourSeconds)
	}
	left, _ := filepath.Glob(filepath.Join(dir, "instances/db/*.rsb"))
	if len(left) > 2 {
		t.Fatalf("got %v, want at most 2", left)
	}
	if _, err := os.Stat(filepath.Join(dir, "damaged")); !os.IsNotExist(err) {
		t.Fatal("there is a folder for damaged files")
	}
}
