package digest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// digest runs over a text.
func digest(t testing.TB, o Options, log []byte) *Profile {
	t.Helper()
	p, err := Run(context.Background(), o, Reader("test", bytes.NewReader(log)))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// classOf finds a class by its fingerprint.
func classOf(t testing.TB, p *Profile, fingerprint string) *Class {
	t.Helper()
	for i := range p.Classes {
		if p.Classes[i].Fingerprint == fingerprint {
			return &p.Classes[i]
		}
	}
	var have []string
	for _, c := range p.Classes {
		have = append(have, c.Fingerprint)
	}
	t.Fatalf("no class %q; there are %q", fingerprint, have)
	return nil
}

func asJSON(t testing.TB, p *Profile) string {
	t.Helper()
	b, err := json.MarshalIndent(p, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// writeLog makes a log with all that crosses the borders of blocks: databases set by "use" now and then, times
// left out within a second, events without any time, statements of several lines, semicolons, CRLF.
func writeLog(n int) []byte {
	rng := rand.New(rand.NewPCG(1, 2))
	var b bytes.Buffer
	second, last := int64(1767261600), int64(0)
	for i := range n {
		if rng.IntN(5) == 0 {
			second += int64(rng.IntN(3))
		}
		nl := "\n"
		if rng.IntN(9) == 0 {
			nl = "\r\n"
		}
		if second != last && rng.IntN(3) > 0 {
			fmt.Fprintf(&b, "# Time: %s%s", time.Unix(second, 0).UTC().Format("060102 15:04:05"), nl)
			last = second
		}
		fmt.Fprintf(&b, "# User@Host: u%d[u] @ h%d [10.0.0.1]%s", rng.IntN(4), rng.IntN(7), nl)
		fmt.Fprintf(&b, "# Query_time: %.6f  Lock_time: 0.%06d Rows_sent: %d  Rows_examined: %d%s", rng.ExpFloat64(), rng.IntN(3)*rng.IntN(1000), rng.IntN(9), rng.IntN(100000), nl)
		if rng.IntN(4) == 0 {
			fmt.Fprintf(&b, "# Full_scan: %s  Errno: %d%s", []string{"Yes", "No"}[rng.IntN(2)], rng.IntN(3)*1000, nl)
		}
		if rng.IntN(60) == 0 {
			fmt.Fprintf(&b, "use db%d;%s", rng.IntN(5), nl)
		}
		if rng.IntN(3) > 0 {
			fmt.Fprintf(&b, "SET timestamp=%d;%s", second, nl)
		}
		switch rng.IntN(6) {
		case 0:
			fmt.Fprintf(&b, "SELECT a FROM t%c WHERE id = %d;%s", 'a'+rng.IntN(9), i, nl)
		case 1:
			fmt.Fprintf(&b, "SELECT a FROM t\n\tWHERE s = 'one;\n# two' AND\nid = %d;%s", i, nl)
		case 2:
			fmt.Fprintf(&b, "INSERT INTO t VALUES (%d, '%s');%s", i, strings.Repeat("x", rng.IntN(3000)), nl)
		case 3:
			fmt.Fprintf(&b, "# administrator command: Quit;%s", nl)
		case 4:
			fmt.Fprintf(&b, "BEGIN;\nSELECT %d;\nEND;%s", i, nl)
		case 5:
			fmt.Fprintf(&b, "UPDATE t SET a = %d -- Time;%s", i, nl)
		}
	}
	return b.Bytes()
}

// The profile may not depend on who reads which part of the log.
func TestSameForAnyWorkers(t *testing.T) {
	log := writeLog(6000)
	want := asJSON(t, digest(t, Options{Workers: 1, Samples: 3}, log))
	if !strings.Contains(want, `"calls": 6000`) {
		t.Fatalf("6000 events were written: %.400s, want \"\\\"calls\\\": 6000\" in it", want)
	}
	byDB := asJSON(t, digest(t, Options{Workers: 1, GroupBy: "db"}, log))
	for _, workers := range []int{1, 2, 7} {
		for _, size := range []int{blockSize, 100_003, 4099, 701, 64} {
			o := Options{Workers: workers, Samples: 3, blockSize: size}
			if got := asJSON(t, digest(t, o, log)); got != want {
				t.Fatalf("%d workers, blocks of %d: another profile\n%s", workers, size, firstDifference(got, want))
			}
			o = Options{Workers: workers, GroupBy: "db", blockSize: size}
			if got := asJSON(t, digest(t, o, log)); got != byDB {
				t.Fatalf("%d workers, blocks of %d, by db: another profile\n%s", workers, size, firstDifference(got, byDB))
			}
		}
	}
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("line %d: %s, not %s\n(%s)", i, x[i], y[i], strings.Join(x[max(0, i-12):i], " "))
		}
	}
	return "one is longer"
}

// Every figure against the plain way to compute it.
func TestFigures(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var b bytes.Buffer
	var times, rows []float64
	var hist [8]int64
	sum := 0.0
	for i := range 5000 {
		q := math.Round(math.Exp(rng.NormFloat64()*3-5)*1e6) / 1e6
		r := float64(rng.IntN(4) * rng.IntN(100_000))
		times, rows = append(times, q), append(rows, r)
		sum += q
		at := 0
		for l := 1e-5; at < 7 && q >= l*0.9999999; l *= 10 {
			at++
		}
		hist[at]++
		fmt.Fprintf(&b, "# Time: 2026-01-01T10:00:00.%06dZ\n# User@Host: a[a] @ h [1.2.3.4]  Id: 7\n# Query_time: %.6f  Lock_time: 0.000000 Rows_sent: 1  Rows_examined: %.0f\nSET timestamp=1;\nSELECT %d;\n", i, q, r, i)
	}
	p := digest(t, Options{}, b.Bytes())
	c := classOf(t, p, "select ?")
	m := c.Metric("Query_time")
	slices.Sort(times)
	slices.Sort(rows)
	near := func(what string, got, want, err float64) {
		t.Helper()
		if math.Abs(got-want) > math.Abs(want)*err+1e-12 {
			t.Errorf("%s is %g, not %g", what, got, want)
		}
	}
	mean, sq := sum/5000, 0.0
	for _, q := range times {
		sq += (q - mean) * (q - mean)
	}
	near("sum", m.Sum, sum, 1e-12)
	near("avg", m.Avg, mean, 1e-12)
	near("min", m.Min, times[0], 0)
	near("max", m.Max, times[4999], 0)
	near("stddev", m.Stddev, math.Sqrt(sq/5000), 1e-6)
	near("V/M", c.VarianceToMean, sq/5000/mean, 1e-6)
	near("p95", m.P95, times[4749], p.QuantileError)
	near("median", m.Median, (times[2499]+times[2500])/2, p.QuantileError)
	r := c.Metric("Rows_examined")
	near("rows p95", r.P95, rows[4749], p.QuantileError)
	near("rows median", r.Median, (rows[2499]+rows[2500])/2, p.QuantileError)
	near("rows max", r.Max, rows[4999], 0)
	if c.Histogram != hist {
		t.Errorf("histogram is %v, not %v", c.Histogram, hist)
	}
	if c.Calls != 5000 || m.Count != 5000 || p.Calls != 5000 || p.Unique != 1 {
		t.Errorf("calls %d, count %d, all %d, classes %d; want c.Calls 5000, m.Count 5000, p.Calls 5000, p.Unique 1", c.Calls, m.Count, p.Calls, p.Unique)
	}
	if c.Samples[0].Seconds != times[4999] || c.Samples[0].User != "a" || c.Samples[0].Host != "h" {
		t.Errorf("sample is %+v; want Seconds times[4999], User \"a\", Host \"h\"", c.Samples[0])
	}
	if whole := p.Metric("Query_time"); whole.P95 != m.P95 || whole.Stddev != m.Stddev {
		t.Errorf("of all: got %+v; want P95 %v, Stddev %v", whole, m.P95, m.Stddev)
	}
}

func TestBuckets(t *testing.T) {
	for _, v := range []uint64{1, 2, 63, 64, 127, 128, 129, 1000, 123_456, 1e6, 1e9 + 7, 1 << 40, math.MaxInt64} {
		i := bucketOf(v)
		if i >= bucketLimit || i > maxID {
			t.Fatalf("bucket %d of %d is too high; want i less than %d, i at most %d", i, v, bucketLimit, maxID)
		}
		if got := bucketValue(i); math.Abs(got-float64(v)) > float64(v)*quantileError {
			t.Errorf("got %d counts as %g, want math.Abs(got - float64(v)) at most %v", v, got, float64(v)*quantileError)
		}
		if low, high := bucketBounds(i); float64(v) < low || float64(v) >= high && v < 1<<52 {
			t.Errorf("%d is not in %g to %g", v, low, high)
		}
	}
}

func TestPercona(t *testing.T) {
	log, err := os.ReadFile("testdata/percona.log")
	if err != nil {
		t.Fatal(err)
	}
	for _, crlf := range []bool{false, true} {
		if crlf {
			log = bytes.ReplaceAll(log, []byte("\n"), []byte("\r\n"))
		}
		p := digest(t, Options{}, log)
		if p.Calls != 4 || p.Unique != 3 || len(p.Skipped) != 0 {
			t.Fatalf("got %d calls, %d classes, skipped %v; want p.Calls 4, p.Unique 3, no p.Skipped", p.Calls, p.Unique, p.Skipped)
		}
		if !strings.Contains(p.Sources[0].Server, "Percona Server (GPL), Release 28") {
			t.Errorf("server is %q, want \"Percona Server (GPL), Release 28\" in it", p.Sources[0].Server)
		}
		c := p.Classes[0]
		for name, want := range map[string]float64{
			"Query_time": 2, "Lock_time": 0.0004, "Rows_sent": 4, "Rows_examined": 4000, "Bytes_sent": 200, "InnoDB_IO_r_bytes": 114688,
			"InnoDB_IO_r_wait": 0.012345, "InnoDB_pages_distinct": 55, "Tmp_table_sizes": 16384,
		} {
			if got := c.Metric(name).Sum; math.Abs(got-want) > 1e-9 {
				t.Errorf("%s is %g, not %g", name, got, want)
			}
		}
		if c.Metric("InnoDB_trx_id").Count != 0 {
			t.Error("a transaction's id was added up")
		}
		if f := c.Flags[slices.IndexFunc(c.Flags, func(f Flag) bool { return f.Name == "Full_scan" })]; f.Yes != 1 || f.No != 1 {
			t.Errorf("got %+v; want Yes 1, No 1", f)
		}
		values := fmt.Sprint(c.Values)
		for _, want := range []string{"{db [{my shop 1} {shop 1}] 2 0}", "{host [{web1 2}] 1 0}", "{Stored_routine [{shop.report 1}] 1 0}", "{Log_slow_rate_limit [{10 1}] 1 0}"} {
			if !strings.Contains(values, want) {
				t.Errorf("values lack %s: %s", want, values)
			}
		}
		if want := time.Date(2026, 2, 3, 2, 5, 6, 123456000, time.UTC); !c.First.Equal(want) {
			t.Errorf("first is %s, not %s", c.First, want)
		}
		n := classOf(t, p, "select ? from nowhere")
		if got := fmt.Sprint(n.Values); !strings.Contains(got, "{host [{10.0.0.2 1}]") || strings.Contains(got, "{db") || !strings.Contains(got, "{Last_errno [{1146 1}]") {
			t.Errorf("values are %s; want \"{host [{10.0.0.2 1}]\" in it, no \"{db\" in it, \"{Last_errno [{1146 1}]\" in it", got)
		}
	}
}

func TestBroken(t *testing.T) {
	log, err := os.ReadFile("testdata/broken.log")
	if err != nil {
		t.Fatal(err)
	}
	p := digest(t, Options{Samples: 9}, log)
	var got []string
	for _, c := range p.Classes {
		for _, s := range c.Samples {
			got = append(got, fmt.Sprintf("%s|%s|%s", strings.Join(strings.Fields(s.Query), " "), s.DB, s.Time.Format("15:04:05.0")))
		}
	}
	slices.Sort(got)
	want := []string{
		"SELECT 1 FROM t WHERE a = 'x; # Time: later # A comment' AND b = 2|one|10:00:00.1",
		"SELECT 2 FROM t WHERE # Time: 260101 10:00:00 # A comment # User@Host: nobody[] @ here a = 1|one|10:00:00.1",
		"SELECT 3 FROM t|one|09:59:58.0",
		"SELECT 4 FROM a_statement_that_the_crash_cut_o|one|09:59:58.1",
		"SELECT 5 FROM full_disk||10:00:10.1",
		"SELECT 6 FROM t|two|10:00:11.1",
		"SELECT 7 FROM t|two|10:00:12.0", // it has no Query_time
	}
	if !slices.Equal(got, want) {
		t.Errorf("events:\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	skipped := map[string]int64{skipBefore: 53, skipWrapped: 1, skipCutOff: 2, skipTimeless: 1, skipHeadOnly: 1, skipTail: 1}
	if fmt.Sprint(p.Skipped) != fmt.Sprint(skipped) {
		t.Errorf("skipped %v, not %v", p.Skipped, skipped)
	}
}

func TestGeneral(t *testing.T) {
	for name, want := range map[string]string{
		"mysql-general.log":   "SELECT a FROM t\nWHERE id = 5|shop|shop|web1|2026-01-02T03:04:05.1Z,SELECT a FROM t WHERE id = 6|other|shop|web1|2026-01-02T03:04:05.3Z,SELECT b FROM t WHERE id = 7|other|shop|web1|2026-01-02T03:04:05.5Z",
		"mariadb-general.log": "SELECT a FROM t\nWHERE id = 5|shop|shop|web1|2026-01-02T03:04:05Z,SELECT a FROM t WHERE id = 6||||2026-01-02T03:04:06Z",
	} {
		log, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		p := digest(t, Options{Samples: 9}, log)
		var got []string
		for _, c := range p.Classes {
			for _, s := range c.Samples {
				got = append(got, strings.Join([]string{s.Query, s.DB, s.User, s.Host, s.Time.Format(time.RFC3339Nano)}, "|"))
			}
		}
		slices.Sort(got)
		if p.Metric("Query_time").Count != 0 || p.Metric("Lock_time").Count != 0 {
			t.Errorf("%s: times that no general log tells: %+v; want p.Metric(\"Query_time\").Count 0, p.Metric(\"Lock_time\").Count 0", name, p.Metrics)
		}
		if g := strings.Join(got, ","); g != want || p.Sources[0].Format != FormatGeneral {
			t.Errorf("%s (%s); want g %s, p.Sources[0].Format FormatGeneral:\n%s\nnot\n%s", name, p.Sources[0].Format, want, g, want)
		}
	}
}

// What must not break: each of these is read to its end, in a time that grows with its size.
func TestHostile(t *testing.T) {
	head := "# Time: 2026-01-01T10:00:00.000000Z\n# User@Host: a[a] @ h [1.2.3.4]  Id: 7\n# Query_time: 1.000000  Lock_time: 0.000000 Rows_sent: 1  Rows_examined: 1\nSET timestamp=1;\n"
	end := head + "SELECT 'the end';\n"
	size := 1 << 20
	if testing.Short() {
		t.Log("short: a sixteenth of the bytes of most logs")
		size = 1 << 16
	}
	noise := make([]byte, 3*size)
	r := rand.NewChaCha8([32]byte{1})
	r.Read(noise)
	names := &strings.Builder{}
	for i := range 1000 {
		fmt.Fprintf(names, "# Name_%d: %d\n", i, i)
	}
	for name, x := range map[string]struct {
		log   string
		calls int64
	}{
		"a statement of 64 MB":    {head + "INSERT INTO t VALUES ('" + strings.Repeat("0123456789abcde;", 4<<20) + "');\n" + end, 2},
		"64 MB of lines":          {head + "INSERT INTO t VALUES ('" + strings.Repeat("0123456789abc;\n", 4<<20) + "');\n" + end, 2},
		"an endless comment":      {head + "SELECT 1 /* " + strings.Repeat("/* # -- ", 2<<20), 1},
		"hashes":                  {head + strings.Repeat("#\n", size) + "SELECT 1;\n" + end, 2},
		"hashes in a statement":   {head + "SELECT 1" + strings.Repeat("\n# Time: 2026-01-01T10:00:00.000000Z", size/10) + ";\n" + end, 2},
		"semicolons":              {head + strings.Repeat(";\n", size) + end, 1 + 1},
		"noise":                   {string(noise) + "\n" + end, 1},
		"noise in a statement":    {head + "SELECT '" + strings.ReplaceAll(string(noise), ";", "") + "';\n" + end, 2},
		"NUL bytes":               {head + "SELECT '" + strings.Repeat("\x00", size) + "';\n" + end, 2},
		"latin1":                  {head + "SELECT 'caf\xe9', '\xff\xfe';\n" + end, 2},
		"names":                   {strings.Replace(head, "SET", names.String()+"SET", 1) + "SELECT 1;\n" + end, 2},
		"no newline in 16 MB":     {strings.Repeat("x", 16<<20), 0},
		"a long line in a header": {strings.Replace(head, "h [", strings.Repeat("h", size)+" [", 1) + "SELECT 1;\n" + end, 2},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			one := digest(t, Options{Workers: 1}, []byte(x.log))
			took := time.Since(began)
			if one.Calls != x.calls {
				t.Errorf("%d calls, not %d; skipped %v", one.Calls, x.calls, one.Skipped)
			}
			many := digest(t, Options{Workers: 3, blockSize: 50_000}, []byte(x.log))
			if a, b := asJSON(t, one), asJSON(t, many); a != b {
				t.Errorf("other blocks give another profile: got %s, want a %v", firstDifference(b, a), b)
			}
			if took > 3*time.Minute { // seconds, except on a busy machine
				t.Errorf("got %d bytes took %s, want at most 3 * time.Minute", len(x.log), took)
			}
		})
	}
}

// A million classes: memory stays bounded, and what is said about the heavy ones is still right.
func TestManyClasses(t *testing.T) {
	n, padding := 600_000, ""
	if testing.Short() {
		t.Log("short: a twentieth of the classes, of long names")
		n, padding = 30_000, strings.Repeat("x", 700)
	}
	r, w := io.Pipe()
	go func() {
		var b bytes.Buffer
		for i := range n {
			b.Reset()
			fmt.Fprintf(&b, "# Time: 2026-01-01T10:00:00.000000Z\n# User@Host: a[a] @ h [1.2.3.4]  Id: 7\n# Query_time: 0.000100  Lock_time: 0.000010 Rows_sent: 1  Rows_examined: 1\nSET timestamp=1;\nSELECT a FROM table_%s%d;\n", padding, i)
			if i%100 == 0 {
				fmt.Fprintf(&b, "# User@Host: a[a] @ h [1.2.3.4]  Id: 7\n# Query_time: 1.000000  Lock_time: 0.000010 Rows_sent: 1  Rows_examined: 1\nSELECT heavy FROM t;\n")
			}
			if _, err := w.Write(b.Bytes()); err != nil {
				return
			}
		}
		w.Close()
	}()
	p, err := Run(context.Background(), Options{Workers: 2}, Reader("pipe", r))
	if err != nil {
		t.Fatal(err)
	}
	if p.Calls != int64(n+n/100) || p.Folded == 0 || p.Other == nil {
		t.Fatalf("got %d calls, %d folded; want p.Calls %d, p.Folded not 0, p.Other not nil", p.Calls, p.Folded, int64(n+n/100))
	}
	if c := p.Classes[0]; c.Fingerprint != "select heavy from t" || c.Calls != int64(n/100) || c.Metric("Query_time").Sum != float64(n/100) {
		t.Errorf("first is %q with %d calls; want c.Fingerprint \"select heavy from t\", c.Calls %d, c.Metric(\"Query_time\").Sum %v",
			c.Fingerprint, c.Calls, int64(n/100), float64(n/100))
	}
	if p.FoldedTime <= 0 || p.FoldedTime > 0.1 {
		t.Errorf("a class may lack %g s; want p.FoldedTime more than 0, p.FoldedTime at most 0.1", p.FoldedTime)
	}
	calls := p.Other.Calls
	for _, c := range p.Classes {
		calls += c.Calls
	}
	if calls != p.Calls {
		t.Errorf("the classes have %d calls of %d", calls, p.Calls)
	}
}

func TestFold(t *testing.T) {
	w := newWorker(&plan{})
	w.fold()
	if len(w.classes.all()) != 0 {
		t.Error("nothing gave something")
	}
}

// eachEvent is a Stream of events, as other sources make them.
type eachEvent struct {
	events []Event
	at     int
}

func (s *eachEvent) Next(e *Event) error {
	if s.at == len(s.events) {
		return io.EOF
	}
	*e = s.events[s.at]
	s.at++
	return nil
}
func (s *eachEvent) Info() SourceInfo          { return SourceInfo{Format: "made", Server: "none"} }
func (s *eachEvent) Skipped() map[string]int64 { return map[string]int64{"made up": 3} }
func (s *eachEvent) Close() error              { return nil }

func TestStream(t *testing.T) {
	s := &eachEvent{events: []Event{
		{Time: 5e6, Query: []byte("SELECT 1"), DB: []byte("d"), QueryTime: 0.5, Attrs: []Attr{{Name: "Rows_sent", Num: 2.5}, {Name: "Full_scan", Kind: AttrFlag, Num: 1}, {Name: "Errno", Kind: AttrText, Text: []byte("1064")}}},
		{Query: []byte("SELECT 2"), QueryTime: 0.25, Attrs: []Attr{{Name: "Rows_sent", Num: 1}}},
	}}
	p, err := Run(context.Background(), Options{}, Source{Name: "s", Events: func(context.Context) (Stream, error) { return s, nil }})
	if err != nil {
		t.Fatal(err)
	}
	c := classOf(t, p, "select ?")
	if c.Calls != 2 || c.Metric("Query_time").Sum != 0.75 || c.Metric("Rows_sent").Sum != 3.5 || fmt.Sprint(c.Flags) != "[{Full_scan 1 0}]" || !strings.Contains(fmt.Sprint(c.Values), "{Errno [{1064 1}] 1 0}") {
		t.Errorf("got %+v; want Calls 2, Metric(\"Query_time\").Sum 0.75, Metric(\"Rows_sent\").Sum 3.5, fmt.Sprint(c.Flags) \"[{Full_scan 1 0}]\", \"{Errno [{1064 1}] 1 0}\" in fmt.Sprint(c.Values)",
			c)
	}
	if p.Skipped["made up"] != 3 || p.Sources[0].Format != "made" || p.Sources[0].Events != 2 || p.Sources[0].Name != "s" {
		t.Errorf("got %v %+v; want p.Skipped[\"made up\"] 3, p.Sources[0].Format \"made\", p.Sources[0].Events 2, p.Sources[0].Name \"s\"",
			p.Skipped, p.Sources)
	}
	if !c.First.Equal(time.Unix(5, 0)) || !c.Last.Equal(time.Unix(5, 0)) {
		t.Errorf("%s to %s; want Equal(time.Unix(5, 0)) true, Equal(time.Unix(5, 0)) true", c.First, c.Last)
	}
}

// onlyUser keeps one user's events.
type onlyUser string

func (u onlyUser) Keep(e *Event) bool { return string(e.User) == string(u) }

func TestChoice(t *testing.T) {
	log := writeLog(3000)
	all := digest(t, Options{}, log)
	u1 := digest(t, Options{Filter: onlyUser("u1"), Workers: 3, blockSize: 5000}, log)
	byUser := digest(t, Options{GroupBy: "user", OrderBy: "calls"}, log)
	i := slices.IndexFunc(byUser.Classes, func(c Class) bool { return c.Group == "u1" })
	if byUser.Unique != 4 || byUser.Classes[i].Calls != u1.Calls || u1.Calls == 0 || u1.Skipped[skipFilter] != all.Calls-u1.Calls {
		t.Errorf("%d users; u1 has %d calls, and %d by the filter; want byUser.Unique 4, byUser.Classes[i].Calls %d, u1.Calls not 0, u1.Skipped[skipFilter] %v",
			byUser.Unique, byUser.Classes[i].Calls, u1.Calls, u1.Calls, all.Calls-u1.Calls)
	}
	if !slices.IsSortedFunc(byUser.Classes, func(a, b Class) int { return int(b.Calls - a.Calls) }) {
		t.Error("not ordered by calls")
	}
	byTables := digest(t, Options{GroupBy: "tables"}, log)
	if byTables.Skipped[skipNoGroup] == 0 || !slices.ContainsFunc(byTables.Classes, func(c Class) bool { return c.Group == "tb" }) {
		t.Error("no group of the table tb")
	}
	byScan := digest(t, Options{GroupBy: "Full_scan"}, log)
	if byScan.Unique != 2 {
		t.Errorf("Full_scan has %d values, want 2", byScan.Unique)
	}
	few := digest(t, Options{Limit: 2}, log)
	if len(few.Classes) != 2 || few.Other == nil || few.Unique != all.Unique {
		t.Fatalf("got %d classes of %d; want len(few.Classes) 2, few.Other not nil, few.Unique %d", len(few.Classes), few.Unique, all.Unique)
	}
	if n := few.Other.Calls + few.Classes[0].Calls + few.Classes[1].Calls; n != all.Calls {
		t.Errorf("%d calls of %d", n, all.Calls)
	}
	if s := few.Other.Share + few.Classes[0].Share + few.Classes[1].Share; math.Abs(s-1) > 1e-9 {
		t.Errorf("shares add up to %g, want math.Abs(s - 1) at most 1e-9", s)
	}
	from, to := all.From.Add(2*time.Minute), all.From.Add(5*time.Minute)
	a, b, c := digest(t, Options{Until: from}, log), digest(t, Options{Since: from, Until: to}, log), digest(t, Options{Since: to}, log)
	if b.Calls == 0 || a.Calls+b.Calls+c.Calls != all.Calls || b.From.Before(from) || !b.To.Before(to) {
		t.Errorf("got %d, %d and %d calls of %d, %s to %s; want b.Calls not 0, a.Calls + b.Calls + c.Calls %v, b.From.Before(from) false, b.To.Before(to) true",
			a.Calls, b.Calls, c.Calls, all.Calls, b.From, b.To, all.Calls)
	}
	for _, o := range []Options{{OrderBy: "Query_time:best"}, {OrderBy: ":sum"}, {Format: "odd"}} {
		if _, err := Run(context.Background(), o); !errors.Is(err, ErrOption) {
			t.Errorf("%+v gives %v, want ErrOption", o, err)
		}
	}
}

func TestRedact(t *testing.T) {
	head := "# Time: 2026-01-01T10:00:00.000000Z\n# User@Host: a[a] @ h []\n# Query_time: 1.000000  Lock_time: 0.000000\n"
	log := head + "SELECT * FROM t WHERE name = 'secret';\n" + head + "CREATE USER u IDENTIFIED BY 'hush';\n"
	if got := asJSON(t, digest(t, Options{Redact: true}, []byte(log))); strings.Contains(got, "secret") || strings.Contains(got, "hush") {
		t.Errorf("a literal is left: %v; want no \"secret\" in it, no \"hush\" in it", got)
	}
	if got := asJSON(t, digest(t, Options{}, []byte(log))); !strings.Contains(got, "secret") || strings.Contains(got, "hush") {
		t.Errorf("without Redact only the password is cut: %v; want \"secret\" in it, no \"hush\" in it", got)
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	r, w := io.Pipe()
	defer w.Close()
	go func() { w.Write(writeLog(100)); cancel() }()
	if _, err := Run(ctx, Options{}, Reader("pipe", r)); !errors.Is(err, context.Canceled) {
		t.Errorf("Run gives %v, want context.Canceled", err)
	}
}
