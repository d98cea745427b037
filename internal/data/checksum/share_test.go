package checksum_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/data/checksum"
)

// meeting blocks everyone until so many have arrived.
type meeting struct {
	want int
	mu   sync.Mutex
	here int
	all  chan struct{}
}

func (m *meeting) Pass(ctx context.Context, bytes int64) error {
	m.mu.Lock()
	if m.here++; m.here == m.want {
		close(m.all)
	}
	m.mu.Unlock()
	select {
	case <-m.all:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(2 * time.Minute):
		return errors.New("no other session works on the table")
	}
}

// scale counts the bytes that pass.
type scale struct{ bytes atomic.Int64 }

func (s *scale) Pass(_ context.Context, bytes int64) error {
	s.bytes.Add(bytes)
	return nil
}

// testShared lets several sessions share one large table: by numbers, by numbers with gaps, by text.
func testShared(t *testing.T, s *servers) {
	const rows = 80_000
	s.do(0, "CREATE TABLE ck.dense (id INT PRIMARY KEY, v INT)", "CREATE TABLE ck.gaps (id BIGINT PRIMARY KEY, v INT)", "CREATE TABLE ck.words (w VARCHAR(30) PRIMARY KEY, v INT)",
		fmt.Sprintf("USE ck; INSERT INTO dense SELECT seq, seq FROM seq_1_to_%d; INSERT INTO gaps SELECT CAST(seq AS SIGNED) * 1000 - 7000000, seq FROM seq_1_to_%[1]d; INSERT INTO words SELECT CONCAT('wörd ', LPAD(seq, 8, '0')), seq FROM seq_1_to_%[1]d", rows),
		"ANALYZE TABLE ck.dense, ck.gaps, ck.words")
	s.caughtUp()
	defer func() { s.do(0, "DROP TABLE ck.dense, ck.gaps, ck.words"); s.caughtUp() }()
	names := []string{"dense", "gaps", "words"}
	options := func(name string) checksum.Options {
		o := s.options()
		o.Tables, o.Threads, o.Method = []string{"ck." + name}, 3, checksum.MethodRows
		return o
	}
	for _, name := range names {
		o := options(name)
		o.Gate = &meeting{want: 3, all: make(chan struct{})}
		_, tables := s.compare(o)
		shared := tables[name]
		o.Threads, o.Gate = 1, nil
		_, tables = s.compare(o)
		if alone := tables[name]; shared.Verdict() != checksum.Equal || shared.Rows != rows || shared.Sum == "" || shared.Sum != alone.Sum || shared.Bytes != alone.Bytes {
			t.Errorf("three found %+v, one %+v; want Verdict() checksum.Equal, Rows %v, Sum not \"\", Sum %v, Bytes %v",
				shared, alone, rows, alone.Sum, alone.Bytes)
		}
		for _, m := range []checksum.Method{checksum.MethodRows, checksum.MethodServer} { // a rate holds for what is read, also if nothing is sent
			var read scale
			o.Method, o.Gate = m, &read
			_, tables = s.compare(o)
			if n := read.bytes.Load(); tables[name].Method != m || n < 8*rows || n > 300*rows {
				t.Errorf("got %d bytes of %s pass by %s; want tables[name].Method %s, n from %v to %v", n, name, tables[name].Method, m, 8*rows, 300*rows)
			}
		}
	}
	s.secretly(1, "UPDATE ck.dense SET v = -v WHERE id IN (1, 2, 40000, 79999, 80000)", "DELETE FROM ck.gaps WHERE v % 10000 = 1", "INSERT INTO ck.gaps VALUES (-9000000, 1), (999000000, 2)",
		"UPDATE ck.words SET w = CONCAT(w, '!') WHERE v = 80000")
	for _, m := range []checksum.Method{checksum.MethodRows, checksum.MethodServer} {
		for name, want := range map[string][3]int64{"dense": {0, 0, 5}, "gaps": {8, 2, 0}, "words": {1, 1, 0}} {
			o := options(name)
			o.Method = m
			_, tables := s.compare(o)
			if on := tables[name].On[0]; tables[name].Rows != rows || on.Missing != want[0] || on.Extra != want[1] || on.Different != want[2] || len(on.Rows) != int(want[0]+want[1]+want[2]) {
				t.Errorf("%s by %s: %+v; want Rows %v, on.Missing want[0], on.Extra want[1], on.Different want[2], len(on.Rows) int(want[0] + want[1] + want[2])",
					name, m, tables[name], rows)
			}
		}
	}
	// One that is cut short in the middle goes on, and misses nothing.
	path := filepath.Join(t.TempDir(), "state")
	o := options("words")
	o.State, o.Resume, o.Gate = path, true, slow{2 * time.Millisecond}
	ctx, cancel := context.WithCancel(t.Context())
	o.Progress = func(p checksum.Progress) {
		if p.Rows > rows/2 {
			cancel()
		}
	}
	if _, err := checksum.Compare(ctx, o); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want context.Canceled", err)
	}
	o.Gate, o.Progress = nil, nil
	_, tables := s.compare(o)
	if words := tables["words"]; words.Rows != rows || words.On[0].Missing != 1 || words.On[0].Extra != 1 {
		t.Errorf("got %+v; want Rows %v, On[0].Missing 1, On[0].Extra 1", words, rows)
	}
	s.secretly(1, "UPDATE ck.dense SET v = ABS(v)", "DELETE FROM ck.gaps WHERE id IN (-9000000, 999000000)")
}
