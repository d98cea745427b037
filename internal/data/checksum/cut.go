package checksum

import (
	"context"
	"math"
	"strconv"
	"sync"

	"github.com/rissodb/risso/internal/data/chunk"
	"github.com/rissodb/risso/internal/mysql"
)

// dense is how many values of a key there may be for one row where chunks are cut by counting: a chunk has at most this many
// times the rows that it should have.
const dense = 4

// cutter finds where chunks end that servers add up.
type cutter struct {
	integer  bool  // the key is one column of whole numbers
	greatest int64 // of the key, when the table was begun

	mu  sync.Mutex
	gap float64 // values of the key for one row, in the chunk before; 0: unknown
}

func newCutter(p *plan) *cutter {
	c := &cutter{}
	if len(p.key.Order) == 1 && p.key.Whole() {
		switch p.key.Order[0].Type {
		case "tinyint", "smallint", "mediumint", "int", "bigint":
			c.integer = true
		}
	}
	return c
}

// cut returns the bound that is so many rows after another: by counting where the key has almost no gaps, else by walking the
// index. nil: at the end of the table.
func (c *cutter) cut(ctx context.Context, st *mysql.Stream, p *plan, lower chunk.Bound, rows int64) (chunk.Bound, error) {
	c.mu.Lock()
	gap := c.gap
	c.mu.Unlock()
	if from, ok := number(lower); ok && c.integer && gap > 0 && gap <= dense {
		if c.greatest == 0 {
			if err := c.end(ctx, st, p); err != nil {
				return nil, err
			}
		}
		step := int64(math.Ceil(float64(rows) * gap))
		if c.greatest-from <= step {
			return nil, nil
		}
		return chunk.Bound{strconv.FormatInt(from+step, 10)}, nil
	}
	upper, err := bound(ctx, st, p, chunk.Range{Lower: lower}, rows)
	if err == nil && upper != nil {
		c.note(span{Range: chunk.Range{Lower: lower, Upper: upper}, rows: rows})
	}
	return upper, err
}

// end asks for the greatest value of the key. One beyond int64 leaves the counting to the index.
func (c *cutter) end(ctx context.Context, st *mysql.Stream, p *plan) error {
	return st.Query(ctx, "SELECT /* risso: where to cut */ MAX("+mysql.Quote(p.key.Order[0].Name)+") FROM "+mysql.Quote(p.here.Schema)+"."+mysql.Quote(p.here.Name), func(row [][]byte) error {
		var err error
		if c.greatest, err = strconv.ParseInt(string(row[0]), 10, 64); err != nil {
			c.integer = false
			c.greatest = math.MaxInt64
		}
		return nil
	})
}

// note learns how dense the key is.
func (c *cutter) note(s span) {
	from, ok := number(s.Lower)
	to, okTo := number(s.Upper)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gap = 0; ok && okTo && s.rows > 0 {
		c.gap = float64(to-from) / float64(s.rows)
	}
}

// number reads a bound of one whole number.
func number(b chunk.Bound) (int64, bool) {
	if len(b) != 1 {
		return 0, false
	}
	n, err := strconv.ParseInt(b[0], 10, 64)
	return n, err == nil && n > -1<<62 && n < 1<<62
}
