//go:build cgo

package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/store/events"
)

// swallower is a proxy in front of a server's socket. A connection that asks something with the word gets no answer any more: that is
// what a question looks like that takes the server too long.
type swallower struct {
	path string
	word atomic.Pointer[string]
}

func newSwallower(t *testing.T, socket string) *swallower {
	t.Helper()
	s := &swallower{path: filepath.Join(filepath.Dir(socket), "front.sock")}
	ln, err := net.Listen("unix", s.path)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(func() { ln.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { s.pass(c, socket) })
		}
	})
	return s
}

func (s *swallower) pass(c net.Conn, socket string) {
	defer c.Close()
	back, err := net.Dial("unix", socket)
	if err != nil {
		return
	}
	defer back.Close()
	go func() { _, _ = io.Copy(c, back); c.Close() }() // ends with back
	for buf := make([]byte, 1<<20); ; {
		n, err := c.Read(buf)
		if err != nil {
			return
		}
		if w := s.word.Load(); w != nil && bytes.Contains(buf[:n], []byte(*w)) {
			continue
		}
		if _, err := back.Write(buf[:n]); err != nil {
			return
		}
	}
}

// TestOptionalFailsAlone: anything asked in addition to the counters may take the server too long; no statement is lost for it, the
// minute itself is stored, and what is missing is reported.
func TestOptionalFailsAlone(t *testing.T) {
	t.Parallel()
	sandboxtest.Need(t, "mysql-9.7")
	s := newScene(t, "mysql-9.7", nil)
	front := newSwallower(t, s.node.Socket)
	s.collector("root@unix("+front.path+")/", func(o *Options) { o.PlanID = func(string) (string, error) { return "p", nil } })
	s.run(1, "CREATE DATABASE shop", "USE shop", "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(100))")
	s.mustRead()
	calls := int64(0)
	for _, c := range []struct {
		word, gap string
		needed    bool
	}{
		{"risso: latency of a class", optionalLatency, false},
		{"risso: a sample of each class", optionalSamples, false},
		{"risso: statements as they were run", optionalSamples, false},
		{"risso: texts of classes", "", true}, // needed: the minute waits for the next one
	} {
		front.word.Store(&c.word)
		clear(s.c.sampled)
		clear(s.c.tried)
		query := fmt.Sprintf("SELECT id, %s FROM t WHERE id = #", strings.Repeat("a, ", len(c.word))+"a") // a separate class
		s.run(5, query, point)
		calls += 5
		st := s.read()
		nothing := ""
		front.word.Store(&nothing)
		front.word.Store(nil)
		switch {
		case c.needed:
			if st.Working {
				t.Errorf("%s: it works although names are missing", c.word)
			}
			s.mustRead()
		case !st.Working || !slices.ContainsFunc(st.Notes, func(g fleet.Trouble) bool {
			return g.What == c.gap && strings.Contains(g.Why, "took longer than 5s")
		}):
			t.Errorf("%s: %+v", c.word, st)
		}
		s.expect(map[string]int64{query: 5, point: calls})
	}
	s.c.tried = nil
	s.run(5, point)
	s.mustRead()
	s.expect(map[string]int64{point: calls + 5})
}

// TestManyDigests: the texts of 12,000 new digests are one question, and none of them is lost.
func TestManyDigests(t *testing.T) {
	t.Parallel()
	sandboxtest.Need(t, "mysql-9.7")
	s := newScene(t, "mysql-9.7", nil, "performance_schema_digests_size=20000")
	s.run(1, "CREATE DATABASE shop", "USE shop", "CREATE TABLE t (id INT PRIMARY KEY, a INT)")
	s.mustRead()
	const many = 12_000
	for i := range many {
		rows, err := s.db.QueryContext(t.Context(), fmt.Sprintf("SELECT a AS c%d FROM t", i))
		if err != nil {
			t.Fatal(err)
		}
		rows.Close()
	}
	for try := range 12 { // on a slow machine the store takes longer than a reading may: then a later one goes on
		before := s.c.Traffic.Queries.Load()
		st := s.read()
		if asked := int(s.c.Traffic.Queries.Load() - before); asked >= heaviest+20 { // a histogram each of the heaviest, and those of a new connection; texts alone took 24 queries
			t.Errorf("got %d questions for one minute, want less than %d", asked, heaviest+20)
		}
		if st.Working {
			break
		}
		if try == 11 || !strings.Contains(st.Why, context.DeadlineExceeded.Error()) {
			t.Fatalf("the reading failed: got %+v; want try not 11, context.DeadlineExceeded.Error() in Why", st)
		}
	}
	if n := len(s.c.classes); n < many {
		t.Errorf("%d of %d classes are known", n, many)
	}
}

// TestMergeAddsUp: what waits for its names is counted with what came after.
func TestMergeAddsUp(t *testing.T) {
	t.Parallel()
	a, b := digestKey{"s", "a"}, digestKey{"s", "b"}
	of := func(k digestKey, calls int64, most float64) cost {
		return cost{digestKey: k, Digest: read.Digest{Cost: fleet.Cost{Calls: calls, RowsSent: 2 * calls, Seconds: float64(calls), MaxSeconds: most}}}
	}
	got := merge(merge(nil, []cost{of(a, 1, 3), of(b, 2, 1)}), []cost{of(b, 5, 4), of(digestKey{"s", "c"}, 7, 0)})
	if len(got) != 3 || got[0].Calls != 1 || got[1].Calls != 7 || got[1].RowsSent != 14 || got[1].Seconds != 7 || got[1].MaxSeconds != 4 || got[2].Calls != 7 {
		t.Errorf("got %+v; want len(got) 3, got[0].Calls 1, got[1].Calls 7, got[1].RowsSent 14, got[1].Seconds 7, got[1].MaxSeconds 4, got[2].Calls 7",
			got)
	}
}

// TestOtherRissosAreLeftOut: what another process of Risso sends, marked like all that Risso sends, is no class of the server's
// own load, on any server.
func TestOtherRissosAreLeftOut(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, kind string) {
		s := newScene(t, kind, nil)
		s.run(1, "CREATE DATABASE shop", "USE shop", "CREATE TABLE t (id INT PRIMARY KEY, a INT)")
		s.mustRead()
		other := s.session("shop")
		for range 3 {
			if _, err := other.ExecContext(t.Context(), "DO /* risso: what one connection did */ 1 + (SELECT COUNT(*) FROM shop.t)"); err != nil {
				t.Fatal(err)
			}
		}
		s.run(3, point)
		s.mustRead()
		s.expect(map[string]int64{point: 3})
		for _, c := range s.top() {
			if strings.HasPrefix(c.Fingerprint, "do ") {
				t.Errorf("it is counted: %d calls of %s", c.Calls, c.Fingerprint)
			}
		}
	})
}

// busyStore cannot store classes for a while.
type busyStore struct {
	Store
	takes int // so many more, then no others
}

func (b *busyStore) AddClasses(ctx context.Context, classes ...events.Class) error {
	if len(classes) > b.takes {
		return errors.New("the store is busy")
	}
	b.takes -= len(classes)
	return b.Store.AddClasses(ctx, classes...)
}

// TestClassesThatWait: classes that the store could not take keep their calls and get their names with a later reading, some at a time.
func TestClassesThatWait(t *testing.T) {
	t.Parallel()
	sandboxtest.Need(t, "mariadb")
	s := newScene(t, "mariadb", nil)
	busy := &busyStore{Store: s.store}
	s.collector(s.node.DSN, func(o *Options) { o.Store = busy })
	s.run(1, "CREATE DATABASE shop", "USE shop", "CREATE TABLE t (id INT PRIMARY KEY, a INT)")
	busy.takes = 1000
	s.mustRead()
	const many = 2*classesAtOnce + 500
	for i := range many {
		s.run(1, fmt.Sprintf("SELECT a AS c%d FROM t", i))
	}
	busy.takes = 0
	s.counted()
	for _, takes := range []int{0, classesAtOnce, classesAtOnce} {
		if busy.takes = takes; s.read().Working {
			t.Errorf("it works, though only %d classes more could be stored", takes)
		}
	}
	busy.takes = 10 * many
	s.mustRead()
	a, err := s.store.Top(t.Context(), events.TopQuestion{Range: events.Range{From: 0, To: s.now.Unix() + 60}, Search: "from t", Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	if a.Count != many {
		t.Errorf("%d of %d classes have a name and calls", a.Count, many)
	}
}
