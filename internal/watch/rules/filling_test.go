package rules

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
)

const (
	mb = 1 << 20
	gb = 1 << 30
)

// TestFilling: the rates of file systems of which the answer is known, in bytes a second over some hours of minutes.
func TestFilling(t *testing.T) {
	noise := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		name    string
		minutes int
		left    func(minute int) float64
		want    float64 // bytes a second; 0: it does not fill
		known   bool
	}{
		{"not long enough", 29, func(m int) float64 { return 100*gb - float64(m)*60*mb }, 0, false},
		{"steady", 31, func(m int) float64 { return 100*gb - float64(m)*60*mb }, mb, true},
		{"steady for long", 600, func(m int) float64 { return 100*gb - float64(m)*60*mb }, mb, true},
		{"nothing", 400, func(int) float64 { return 50 * gb }, 0, true},
		{"it empties", 400, func(m int) float64 { return 10*gb + float64(m)*mb }, 0, true},
		{"noise around a trend", 360, func(m int) float64 { return 100*gb - float64(m)*60*mb + noise.NormFloat64()*100*mb }, mb, true},
		{"a log is rotated once", 360, func(m int) float64 { return 100*gb - float64(m)*60*mb + step(m, 200, 5*gb) }, mb, true},
		{"a log was rotated just now", 360, func(m int) float64 { return 100*gb - float64(m)*60*mb + step(m, 355, 5*gb) }, mb, true},
		{"a log is rotated each hour, by as much as was written", 360, func(m int) float64 { return 100*gb - float64(m%60)*60*mb }, 0, true},
		{"each hour half of what was written is deleted", 720, func(m int) float64 { return 100*gb - float64(m%60)*60*mb - float64(m/60)*1800*mb }, mb / 2, true},
		{"a load that has ended", 360, func(m int) float64 { return 100*gb - float64(min(m, 300))*60*mb }, 0, true},
		{"a load that has just begun", 360, func(m int) float64 { return 100*gb - float64(max(m-355, 0))*6000*mb }, 0, true},
	} {
		f := &filling{}
		for m := range c.minutes {
			for _, second := range []int{0, 17, 42} { // more often than it takes notice of
				f.see(begin.Add(time.Duration(m)*time.Minute+time.Duration(second)*time.Second), c.left(m))
			}
		}
		got, known := f.rate()
		if known != c.known || c.want > 0 && math.Abs(got/c.want-1) > 0.25 || c.want == 0 && got > 0.1*mb {
			t.Errorf("%s: got %.3f MB/s, known %v; want %.3f, %v", c.name, got/mb, known, c.want/mb, c.known)
		}
		if len(f.points) > int(fillLong/fillEvery)+1 {
			t.Errorf("%s: got %d points, want those of %s", c.name, len(f.points), fillLong)
		}
	}
}

// step is by how much more is left from a minute on.
func step(m, at int, size float64) float64 {
	if m < at {
		return 0
	}
	return size
}

// TestDiskTrend: a file system that will be full within a day is reported after half an hour, worse when it is two hours, and no longer when
// there is room again; a gap begins anew.
func TestDiskTrend(t *testing.T) {
	w := host()
	w.fs(sizeMetric, 1000*gb)
	left := 600.0 * gb
	pass := func(minutes int, perMinute float64) (f *fleet.Finding) {
		for range minutes * 60 {
			left -= perMinute / 60
			w.fs(availMetric, left)
			f = find(w.tick(), "disk.trend")
		}
		return f
	}
	if f := pass(40, 0.1*gb); f != nil {
		t.Errorf("six days: got %q, want nothing", f.What)
	}
	f := pass(120, gb)
	if f == nil || f.Severity != fleet.SeverityWarning || !strings.HasPrefix(f.What, "/var/lib/mysql data is filling up since ") || !strings.Contains(f.What, "full in 8 h") {
		t.Fatalf("hours: got %+v, want a warning of 8 h", f)
	}
	runnable(t, fleet.KindHost, *f)
	valued(t, *f)
	if f = pass(360, gb); f == nil || f.Severity != fleet.SeverityCritical {
		t.Errorf("two hours: got %+v, want it critical", f)
	}
	if f = pass(40, 0); f != nil {
		t.Errorf("it has stopped: got %q, want nothing", f.What)
	}
}

// TestHung: a server that accepts connections is not down but hangs.
func TestHung(t *testing.T) {
	w := mariadb()
	w.snap.Up, w.snap.DownSince, w.snap.Hung, w.snap.Down = false, begin, true, fleet.Trouble{Why: "does not answer", Remedy: "look"}
	v := w.tick()
	if want := "the server accepts connections, but does not answer since 10:30:00"; v.State != StateDown || v.Words != want || v.Findings[0].ID != "server.hung" {
		t.Errorf("got %+v; want State StateDown, Words %q, Findings[0].ID \"server.hung\"", v, want)
	}
	w.snap.Hung, w.snap.Log = false, []string{"1", "2 [Note] InnoDB: Starting shutdown...", "3 [ERROR] disk\tfull"}
	w.snap.Down.Why = "refuses connections"
	if v = w.tick(); !strings.HasSuffix(v.Words, "; look; its error log ends with: 2 [Note] InnoDB: Starting shutdown... | 3 [ERROR] disk full") {
		t.Errorf("got %q; want the last lines of the log", v.Words)
	}
}
