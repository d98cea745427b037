package checksum

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/rissodb/risso/internal/data/chunk"
	"github.com/rissodb/risso/internal/mysql"
)

// choice says which method the next chunk of a table takes.
type choice struct {
	mu     sync.Mutex
	fixed  Method // "": still to be found
	tried  int
	factor [2]float64 // rows a second of the chunks by rows and by the server
}

// trials is how many chunks are read by each method before the faster is taken. The first of each does not count: it warms up.
const trials = 3

func (w *worker) choice(p *plan) *choice {
	c := &choice{fixed: w.Method}
	if w.Method == MethodAuto {
		c.fixed = ""
		if w.local {
			c.fixed = MethodRows
		}
	}
	if !p.uniq || p.text { // rows that are there twice would cancel each other
		c.fixed = MethodRows
	}
	return c
}

func (c *choice) next() Method {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fixed != "" {
		return c.fixed
	}
	if c.tried%2 == 0 {
		return MethodRows
	}
	return MethodServer
}

// refuse gives a method up that a server does not know.
func (c *choice) refuse() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fixed = MethodRows
}

// note learns from a chunk.
func (c *choice) note(s span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fixed != "" || s.took <= 0 {
		return
	}
	i := 0
	if s.method == MethodServer {
		i = 1
	}
	if c.tried >= 2 {
		c.factor[i] = max(c.factor[i], float64(s.rows)/s.took.Seconds())
	}
	if c.tried++; c.tried < 2*trials {
		return
	}
	c.fixed = MethodRows
	if c.factor[1] > c.factor[0] {
		c.fixed = MethodServer
	}
}

// ask lets the server add up a range: the number of rows, and of each row two CRC32 that have nothing in common, side by side,
// combined by exclusive or. DESIGN.md says what escapes that.
func (s *span) ask(ctx context.Context, st *mysql.Stream, t mysql.Table, k chunk.Key) error {
	parts := []string{}
	for _, c := range t.Columns {
		parts = append(parts, rowParts(c)...)
	}
	word := "CONVERT(CONCAT_WS('#', " + strings.Join(parts, ", ") + ") USING binary)"
	statement := chunk.Select(t, k, s.Range, purpose)
	i := strings.Index(statement, " FROM "+mysql.Quote(t.Schema)+"."+mysql.Quote(t.Name))
	from := strings.TrimSuffix(statement[i:], " ORDER BY "+k.OrderBy())
	statement = "SELECT /* risso: checksum */ COUNT(*), COALESCE(BIT_XOR(CRC32(r) << 32 | CRC32(REVERSE(r))), 0) FROM (SELECT " +
		word + " AS r" + from + ") risso_rows"
	return st.Query(ctx, statement, func(row [][]byte) error {
		for i, to := range []any{&s.rows, &s.mixed} {
			if _, err := fmt.Sscan(string(row[i]), to); err != nil {
				return err
			}
		}
		return nil
	})
}

// rowParts are what a column adds to a row's word: its value, before it whether it is NULL, and how long it is where the value
// may have any characters, so that no two rows make the same word.
func rowParts(c mysql.TableColumn) []string {
	name := mysql.Quote(c.Name)
	value, free := name, true
	switch {
	case c.Type == "float" && !strings.Contains(c.FullType, "("):
		value, free = name+" * 1e0", false
	case c.Type == "bit":
		value, free = name+" + 0", false
	case c.Type == "json":
		value = "CONVERT(CAST(" + name + " AS CHAR) USING binary)"
	case isText(c):
		value = "CONVERT(" + name + " USING binary)"
	case isBinary(c):
		value = "CAST(" + name + " AS BINARY)"
	default:
		free = false
	}
	parts := []string{value}
	if free {
		parts = []string{"LENGTH(" + name + ")", value}
	}
	if c.Nullable {
		parts[0] = "COALESCE(" + parts[0] + ", 'N')"
		if free {
			parts[1] = "COALESCE(" + parts[1] + ", '')"
		}
	}
	return parts
}
