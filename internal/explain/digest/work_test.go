package digest

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// pieces returns a log in small pieces, as readers do that take it out of something else, line by line.
type pieces struct {
	r io.Reader
	n int
}

func (s pieces) Read(b []byte) (int, error) { return s.r.Read(b[:min(s.n, len(b))]) }

// TestWork: the cost of a log is proportional to its size, however little of it a reader returns at a time and whether or not its statements have
// their ends; and no event of it is lost.
func TestWork(t *testing.T) {
	head := "# Time: 2026-01-01T10:00:00.000000Z\n# User@Host: a[a] @ h [1.2.3.4]  Id: 7\n# Query_time: 1.000000  Lock_time: 0.000000 Rows_sent: 1  Rows_examined: 1\nSET timestamp=1;\n"
	var endless, broken strings.Builder
	for i := range 16_000 { // over the limit of a statement, together
		fmt.Fprintf(&endless, "%sSELECT '%s' FROM t WHERE id = %d\n", head, strings.Repeat("x", 1000), i)
		fmt.Fprintf(&broken, "%sSELECT ';%s;' FROM t\nWHERE id = %d\n", head, strings.Repeat(";x", 200), i)
	}
	for name, x := range map[string]struct {
		log   string
		piece int
		calls int64
	}{
		"a long statement, in small pieces":     {head + "INSERT INTO t VALUES ('" + strings.Repeat("0123456789abcde;", 1<<20) + "');\n" + head + "SELECT 1;\n", 16, 2},
		"a long statement of many literals":     {head + "INSERT INTO t VALUES " + strings.Repeat("('"+strings.Repeat("x", 1019)+"'), ", 12<<10) + "('y');\n" + head + "SELECT 1;\n", 4096, 2},
		"a long statement without an end":       {head + "INSERT INTO t VALUES ('" + strings.Repeat("0123456789abcd;\n", 1<<20) + "')\n" + head + "SELECT 1;\n", 4096, 2},
		"statements without ends":               {endless.String(), 4096, 16_000},
		"statements without ends, and many ';'": {broken.String(), 4096, 16_000},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := NewScanner(pieces{strings.NewReader(x.log), x.piece}, nil)
			if err != nil {
				t.Fatal(err)
			}
			calls := int64(0)
			for err == nil {
				_, err = s.Next(func(*Event) { calls++ })
			}
			if !errors.Is(err, io.EOF) {
				t.Fatalf("got %v, want io.EOF", err)
			}
			if calls != x.calls || s.Lost() != "" {
				t.Errorf("got %d events of %d; %s; want calls %d, s.Lost() \"\"", calls, x.calls, s.Lost(), x.calls)
			}
			if n := s.b.searched + s.w.parser.searched; n > 4*int64(len(x.log)) {
				t.Errorf("%d bytes of a log of %d were searched, want at most %d", n, len(x.log), 4*int64(len(x.log)))
			}
			one, many := digest(t, Options{Workers: 1}, []byte(x.log)), digest(t, Options{Workers: 3, blockSize: 50_000}, []byte(x.log))
			if a, b := asJSON(t, one), asJSON(t, many); one.Calls != x.calls || a != b {
				t.Errorf("got %d calls, not %d; other blocks: %s; want one.Calls %d, a %v", one.Calls, x.calls, firstDifference(b, a), x.calls, b)
			}
		})
	}
}
