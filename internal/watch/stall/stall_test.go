package stall

import (
	"bufio"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// recorded reads a series, second by second; chapters are the second in which each part of it begins.
func recorded(t *testing.T, name string) (readings []Reading, chapters map[string]int64) {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name+".series"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	chapters = map[string]int64{}
	pending := ""
	for s := bufio.NewScanner(f); s.Scan(); {
		if title, ok := strings.CutPrefix(s.Text(), "# "); ok {
			pending = title
			continue
		}
		v := strings.Fields(s.Text())
		if len(v) != 5 {
			t.Fatalf("line %q", s.Text())
		}
		tick, err := strconv.ParseInt(v[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		number := func(i int) float64 {
			x, err := strconv.ParseFloat(v[i], 64)
			if err != nil {
				return math.NaN()
			}
			return x
		}
		r := Reading{Tick: 1000 + tick, Up: v[1] == "1", Begun: number(2), Running: max(number(3)-1, 0), Waiting: number(4)}
		r.Known = !math.IsNaN(r.Begun) && !math.IsNaN(r.Running)
		if pending != "" {
			chapters[pending], pending = tick, ""
		}
		readings = append(readings, r)
	}
	return readings, chapters
}

// told is a stall that the detector found, in seconds of the series.
type told struct{ since, told, ended int64 }

func stalls(readings []Reading) (out []told) {
	var d Detector
	for _, r := range readings {
		s := d.Look(r)
		if s.Began {
			out = append(out, told{since: s.Since - 1000, told: r.Tick - 1000})
		}
		if s.Ended {
			out[len(out)-1].ended = r.Tick - 1000
		}
	}
	return out
}

// TestRecordedStalls: in what was recorded on real servers, a quiet time, a load, a pile-up of row locks, a backup, a burst of traffic, a
// load that ends, and (of MariaDB) a restart, only the pile-up is a stall, and it is told within two seconds.
func TestRecordedStalls(t *testing.T) {
	t.Parallel()
	for server, last := range map[string]string{"mariadb-10.11": "restart", "mysql-9.7": "load2"} {
		readings, chapters := recorded(t, server)
		for _, chapter := range []string{"quiet", "load", "pileup", "backup", "burst", "end", last} {
			if _, ok := chapters[chapter]; !ok {
				t.Fatalf("%s: the series has no chapter %s", server, chapter)
			}
		}
		got := stalls(readings)
		if len(got) != 1 {
			t.Fatalf("%s: stalls %+v, want one", server, got)
		}
		s, pile, next := got[0], chapters["pileup"], chapters["backup"]
		if s.since < pile || s.since > pile+3 || s.told > s.since+1 || s.ended < pile+12 || s.ended >= next {
			t.Errorf("%s: %+v, want one that began within three seconds of %d, told a second later, and over before %d", server, s, pile, next)
		}
	}
}

// steady is seconds of a server under a steady load; after them come those of then.
func steady(seconds int, then ...Reading) []Stall {
	var d Detector
	var out []Stall
	for i := range seconds {
		out = append(out, d.Look(Reading{Tick: int64(1000 + i), Up: true, Known: true, Begun: 500 + float64(i%7), Running: 4}))
	}
	for i, r := range then {
		r.Tick = int64(1000 + seconds + i)
		out = append(out, d.Look(r))
	}
	return out
}

// TestStallNeedsBoth: throughput that falls, and sessions that pile up; one alone is none. What nobody knows is none either.
func TestStallNeedsBoth(t *testing.T) {
	t.Parallel()
	up := func(finished, running, waiting float64) Reading {
		return Reading{Up: true, Known: true, Begun: finished, Running: running, Waiting: waiting}
	}
	for _, c := range []struct {
		name    string
		seconds int
		then    Reading
		stall   bool
	}{
		{"both", 60, up(20, 30, 0), true},
		{"locks among as many sessions as usual", 60, up(20, 4, 4), true},
		{"the load ends", 60, up(3, 0, 0), false},
		{"more work, and more sessions", 60, up(1500, 40, 0), false},
		{"slower, and some sessions more", 60, up(300, 7, 0), false},
		{"some sessions wait, the others work", 60, up(480, 13, 9), false},
		{"nobody knows yet what is usual", 10, up(20, 30, 0), false},
		{"not known", 60, Reading{Up: true, Running: 30}, false},
		{"down", 60, Reading{}, false},
	} {
		found := false
		for _, s := range steady(c.seconds, c.then, c.then, c.then, c.then) {
			found = found || s.Began
		}
		if found != c.stall {
			t.Errorf("%s: a stall is %v, want %v", c.name, found, c.stall)
		}
	}
}

// TestStallEnds: it ends when five seconds were as before, when the server goes down, and when it has lasted so long that it is usual.
func TestStallEnds(t *testing.T) {
	t.Parallel()
	bad, good := Reading{Up: true, Known: true, Begun: 5, Running: 40}, Reading{Up: true, Known: true, Begun: 500, Running: 4}
	for _, c := range []struct {
		name string
		then []Reading
		at   int // of then
	}{
		{"as before", []Reading{bad, bad, bad, good, good, good, good, good, good}, 7},
		{"down", []Reading{bad, bad, bad, {}}, 3},
	} {
		list := steady(60, c.then...)[60:]
		for i, s := range list {
			if s.Ended != (i == c.at) {
				t.Errorf("%s: second %d: ended %v", c.name, i, s.Ended)
			}
		}
	}
	long := make([]Reading, stallUsual+100)
	for i := range long {
		long[i] = bad
	}
	ended := 0
	for _, s := range steady(60, long...) {
		if s.Ended {
			ended++
		}
	}
	if ended != 1 {
		t.Errorf("a stall of more than an hour ended %d times, want once, as usual by then", ended)
	}
}

// TestChanceIsNoStall: where few statements are usual, a second or two with half of them are chance, also while reports run; that none
// finishes is no chance for long.
func TestChanceIsNoStall(t *testing.T) {
	t.Parallel()
	const day = 24 * 3600
	for _, rate := range []float64{6, 10, 30, 100} {
		var d Detector
		random := rand.New(rand.NewPCG(1, uint64(rate)))
		began := 0
		for i := range day {
			running := 0.0
			if i > 300 && i%100 < 40 { // reports run beside, less than half of the time: they are not usual
				running = 5
			}
			// How many statements begin in a second: Knuth's method.
			n, p := 0.0, random.Float64()
			for ; p > math.Exp(-rate); n++ {
				p *= random.Float64()
			}
			if d.Look(Reading{Tick: int64(1000 + i), Up: true, Known: true, Begun: n, Running: running}).Began {
				began++
			}
		}
		if began > 0 {
			t.Errorf("a day of %v statements a second at random, with reports beside: %d stalls, want none", rate, began)
		}
	}
	for rate, want := range map[float64]int{5: 4, 6: 3, 10: 2, 100: 2} {
		var d Detector
		told := 0
		for i := range 70 {
			r := Reading{Tick: int64(1000 + i), Up: true, Known: true, Begun: rate}
			if i >= 60 {
				r.Begun, r.Running = 0, 4
			}
			if d.Look(r).Began {
				told = i - 59
			}
		}
		if told != want {
			t.Errorf("no statement of %v a second finishes any more: told in second %d, want %d", rate, told, want)
		}
	}
}
