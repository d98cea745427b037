package serve

import (
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/explain/size"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/serve/config"
	"github.com/rissodb/risso/internal/store/series"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/live"
)

// grow writes twelve hours of numbers, one reading every ten minutes, that grow by so many bytes an hour.
func grow(t *testing.T, numbers *series.Store, instance string, from map[string]float64, hourly map[string]float64, descs map[string]series.Desc) {
	t.Helper()
	w, err := numbers.Writer(instance)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	at := map[string]int{}
	for name, d := range descs {
		at[name] = w.Define(d)
	}
	values := make([]float64, len(descs))
	begin := time.Now().Add(-12 * time.Hour).Truncate(time.Hour)
	for i := range 72 {
		for name := range descs {
			values[at[name]] = from[name] + hourly[name]*float64(i)/6
		}
		if err := w.Append(begin.Add(time.Duration(i)*10*time.Minute).Unix(), values, false); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSizes: growth is that of the disk under the data directory if its host is watched, else of tables and logs; sizes are kept for a while.
func TestSizes(t *testing.T) {
	numbers, err := series.Open(series.Options{Dir: filepath.Join(t.TempDir(), "series")})
	if err != nil {
		t.Fatal(err)
	}
	defer numbers.Close()
	component := func(table, part string) series.Desc {
		return series.Desc{Name: "mysql_info_schema_table_size", Labels: []fleet.Label{{Name: "component", Value: part}, {Name: "schema", Value: "shop"}, {Name: "table", Value: table}}}
	}
	grow(t, numbers, "db1", map[string]float64{"orders": 1e9, "index": 1e8, "still": 5e9, "free": 1e6, "log": 1e6}, map[string]float64{"orders": 1e6, "index": 5e5, "free": 1e9, "log": 2e5},
		map[string]series.Desc{"orders": component("orders", "data_length"), "index": component("orders", "index_length"), "still": component("still", "data_length"), "free": component("orders", "data_free"), "log": {Name: "mysql_binlog_size_bytes"}})
	disk := func(mount string) series.Desc {
		return series.Desc{Name: "node_filesystem_avail_bytes", Labels: []fleet.Label{{Name: "mountpoint", Value: mount}}}
	}
	grow(t, numbers, "host", map[string]float64{"/": 9e9, "/var/lib/mysql": 5e10}, map[string]float64{"/": -7e7, "/var/lib/mysql": -1e7}, map[string]series.Desc{"/": disk("/"), "/var/lib/mysql": disk("/var/lib/mysql"), "/var/lib/my": disk("/var/lib/my")})

	n := sandboxtest.Up(t, "mariadb")
	board := live.New(func() live.Self { return live.Self{} })
	i := fleet.Instance{ID: "db1", Name: "db1", Kind: fleet.KindServer, HostID: "host"}
	board.Add(i)
	s := newSizes(func() []config.Watched { return []config.Watched{{Instance: i, Target: sandboxtest.Target(t, n)}} }, numbers, board)
	for _, c := range []struct {
		datadir, of string
		day         float64
	}{{"", size.OfData, 24 * 1.7e6}, {"/var/lib/mysql/data", size.OfDisk, 24 * 1e7}, {"/var/lib/mysql2", size.OfDisk, 24 * 7e7}, {"/", size.OfDisk, 24 * 7e7}} {
		g, err := s.Growth(t.Context(), "db1", c.datadir)
		if err != nil {
			t.Fatal(err)
		}
		if g.Of != c.of || math.Abs(g.PerDay-c.day) > 0.02*c.day || g.Since.IsZero() {
			t.Errorf("%q: got %+v; want %v a day of the %s", c.datadir, g, c.day, c.of)
		}
		if len(g.Tables) != 1 || g.Tables[0].Name != "orders" || math.Abs(g.Tables[0].PerDay-24*1.5e6) > 1e6 {
			t.Errorf("the tables that grow: got %+v; want shop.orders by 36 million a day", g.Tables)
		}
	}
	if _, err := s.Growth(t.Context(), "nope", ""); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("a server that is not watched: got %v; want ErrNotFound", err)
	}
	r, err := s.Read(t.Context(), "db1", false)
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(r.Words, " "); len(r.Tables) == 0 || !strings.Contains(text, " a day in ") || !strings.Contains(text, "`shop`.`orders` grows most") {
		t.Errorf("got %q of %d tables; want them and how they grow", text, len(r.Tables))
	}
	if again, err := s.Read(t.Context(), "db1", false); err != nil || again != r {
		t.Errorf("asked again at once: got another report, or %v", err)
	}
	if fresh, err := s.Read(t.Context(), "db1", true); err != nil || fresh == r {
		t.Errorf("asked for fresh ones: got the same report, or %v", err)
	}
}

func TestAdded(t *testing.T) {
	at := func(hour int, bytes float64) size.Point {
		return size.Point{At: time.Date(2026, 1, 1, hour, 0, 0, 0, time.UTC), Bytes: bytes}
	}
	got := added([]size.Point{at(1, 10), at(3, 30)}, []size.Point{at(2, 200), at(3, 300), at(4, 400)})
	want := []size.Point{at(1, 210), at(2, 210), at(3, 330), at(4, 430)}
	if len(got) != len(want) {
		t.Fatalf("got %v; want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %v; want %v", got[i], want[i])
		}
	}
}
