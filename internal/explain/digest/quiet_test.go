package digest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
)

// A followed general log yields its last statement when nothing comes for a while, and does not cut one that is still
// being written.
func TestFollowGeneral(t *testing.T) {
	path := filepath.Join(t.TempDir(), "general.log")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	write := func(s string) {
		t.Helper()
		if _, err := f.WriteString(s); err != nil {
			t.Fatal(err)
		}
	}
	write("/usr/sbin/mysqld, Version: 9.7.0 (MySQL). started with:\nTcp port: 0  Unix socket: /tmp/x\nTime                 Id Command    Argument\n")
	s, err := File(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	profiles, done := make(chan *Profile, 1000), make(chan error, 1)
	go func() {
		_, err := Run(ctx, Options{Follow: true, Format: FormatGeneral, Every: 20 * time.Millisecond, Each: func(p *Profile) { profiles <- p }}, s)
		done <- err
	}()
	outside := int64(0)
	next := func() Class {
		t.Helper()
		for {
			select {
			case p := <-profiles:
				outside += p.Skipped[skipOutside]
				if len(p.Classes) == 1 && p.Calls == 1 {
					return p.Classes[0]
				}
				if p.Calls > 0 {
					t.Fatalf("got %d calls at once, want at most 0", p.Calls)
				}
			case <-ctx.Done():
				t.Fatal("the statement did not come")
			}
		}
	}
	began := time.Now()
	write("2026-01-01T10:00:00.000000Z\t    8 Query\tSELECT 1\n")
	if c := next(); c.Samples[0].Query != "SELECT 1" {
		t.Errorf("got %q, want \"SELECT 1\"", c.Samples[0].Query)
	}
	if d := time.Since(began); d < quiet || d > quiet+20*time.Second {
		t.Errorf("the last statement came after %s, want from %v to %v", d, quiet, quiet+20*time.Second)
	}
	for _, pieces := range [][]string{
		{"2026-01-01T10:00:01.000000Z\t    8 Query\tSELECT a\n", "FROM t\n", "WHERE b = 1\n"}, // between lines
		{"2026-01-01T10:00:01.000000Z\t    8 Query\tSELECT a\nFR", "OM t\nWHERE b", " = 1\n"}, // within them
	} {
		for i, p := range pieces {
			if i > 0 {
				time.Sleep(quiet * 6 / 10)
			}
			write(p)
		}
		if c := next(); c.Samples[0].Query != "SELECT a\nFROM t\nWHERE b = 1" {
			t.Errorf("got %q, want \"SELECT a\\nFROM t\\nWHERE b = 1\"", c.Samples[0].Query)
		}
	}
	// A line whose end does not come is no statement yet, however long that takes.
	write("2026-01-01T10:00:02.000000Z\t    8 Query\tSELECT 'o")
	time.Sleep(quiet + 3*pollEvery)
	write("ne'\n")
	if c := next(); c.Samples[0].Query != "SELECT 'one'" {
		t.Errorf("got %q, want \"SELECT 'one'\"", c.Samples[0].Query)
	}
	cancel()
	if err := <-done; err != nil || outside != 0 {
		t.Errorf("got %v, %d bytes outside; want 0", err, outside)
	}
}

// As much of a sample is kept as requested, and it is reported how much is not.
func TestSampleBytes(t *testing.T) {
	var b bytes.Buffer
	long := "SELECT '" + strings.Repeat("x", 100_000) + "'"
	event(&b, 1, "u", "db", long)
	event(&b, 2, "u", "db", "INSERT INTO t VALUES (1)")
	for keep, want := range map[int]int{0: keepText, 100: 100, 50_000: 50_000, -1: len(long), 1 << 20: len(long)} {
		p := digest(t, Options{SampleBytes: keep}, b.Bytes())
		s := p.Classes[1].Samples[0]
		if len(s.Query) != want || s.Cut != len(long)-want || s.Query != long[:want] {
			t.Errorf("%d: %d bytes and %d more, want %d", keep, len(s.Query), s.Cut, want)
		}
	}
}

// Whole samples have their own bound: they neither fill the memory nor push classes out.
func TestSampleBytesBound(t *testing.T) {
	if testing.Short() {
		t.Skip("short: a log of 60 MB, which one goroutine reads")
	}
	var b bytes.Buffer
	const classes = 60
	for i := range classes {
		event(&b, 1+float64(i), "u", "db", fmt.Sprintf("SELECT c_%d, '%s'", i, strings.Repeat("x", 1<<20)))
	}
	p := digest(t, Options{SampleBytes: -1, Workers: 1}, b.Bytes())
	if len(p.Classes) != classes || p.Folded != 0 {
		t.Fatalf("got %d classes, %d folded; want len(p.Classes) %d, p.Folded 0", len(p.Classes), p.Folded, classes)
	}
	whole, kept := 0, 0
	for _, c := range p.Classes {
		s := c.Samples[0]
		if kept += len(s.Query); s.Cut == 0 {
			whole++
		} else if len(s.Query) != keepText || s.Cut+keepText < 1<<20 {
			t.Errorf("got %d bytes and %d more; want len(s.Query) %d, s.Cut + keepText at least 1 << 20", len(s.Query), s.Cut, keepText)
		}
	}
	if whole < 20 || kept > sampleMemory+classes*keepText {
		t.Errorf("%d are whole, %d bytes in all; want whole at least 20, kept at most %d", whole, kept, sampleMemory+classes*keepText)
	}
}

// A statement of 64 MB in either text log takes less than 100 MB, also when the whole is asked for.
func TestLargeStatementMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("short: two logs of 64 MB, which one goroutine reads")
	}
	dir := t.TempDir()
	value := bytes.Repeat([]byte("0123456789abcdef"), 64<<16)
	for name, head := range map[string]string{
		"slow":    "# Time: 2026-01-01T10:00:00.000000Z\n# User@Host: u[u] @ h []\n# Query_time: 1.000000  Lock_time: 0.000000 Rows_sent: 2  Rows_examined: 30\nSET timestamp=1767261600;\n",
		"general": "2026-01-01T10:00:01.000000Z\t    8 Query\t",
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, slices.Concat([]byte(head+"INSERT INTO t VALUES ('"), value, []byte("');\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	value = nil
	debug.FreeOSMemory()
	for _, name := range []string{"slow", "general"} {
		s, err := File(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		var before, most runtime.MemStats
		runtime.ReadMemStats(&before)
		stop, peak := make(chan struct{}), make(chan uint64)
		go func() {
			top := uint64(0)
			for {
				select {
				case <-stop:
					peak <- top
					return
				case <-time.After(time.Millisecond):
					runtime.ReadMemStats(&most)
					top = max(top, most.HeapInuse)
				}
			}
		}()
		p, err := Run(t.Context(), Options{SampleBytes: -1}, s)
		close(stop)
		if top := <-peak; top > before.HeapInuse+90<<20 {
			t.Errorf("%s: got %d MB, want top at most %v", name, top>>20, before.HeapInuse+90<<20)
		}
		if err != nil || p.Calls != 1 {
			t.Fatalf("got %v; want p.Calls 1", err)
		}
		x := p.Classes[0].Samples[0]
		if whole := len("INSERT INTO t VALUES ('')") + 64<<20; len(x.Query)+x.Cut < whole || len(x.Query)+x.Cut > whole+2 || len(x.Query) < 7<<20 {
			t.Errorf("%s: got %d bytes and %d more of %d; want len(x.Query) + x.Cut from %v to %v, len(x.Query) at least 7 << 20",
				name, len(x.Query), x.Cut, whole, whole, whole+2)
		}
	}
}
