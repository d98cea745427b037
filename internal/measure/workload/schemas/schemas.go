// Package schemas is the workload of many tenants: schemas with the same tables in each, and selects that go to any of
// them, which measures the server's caches of open tables.
package schemas

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
	"github.com/rissodb/risso/internal/measure/workload/draw"
)

// The most that can be asked for.
const (
	maxSchemas = 1_000_000
	maxTables  = 10_000
	maxRows    = 1_000
)

// The kinds of transactions: the first of a run on a table finds it closed, unless something else has it open.
const (
	first = iota
	later
)

type schemas struct {
	p       workload.Params
	ids     draw.Distribution
	visited []atomic.Uint64 // a bit for each table, set by the first access

	mu      sync.Mutex
	timings map[string][]float64 // seconds of each step of the last prepare or cleanup
	opened  openings             // of tables, in a run
}

// New makes the workload.
func New(_ string, p workload.Params) (workload.Workload, error) {
	if p.Distribution == "" {
		p.Distribution = "special"
	}
	ids, err := draw.New(p.Distribution, p.DistributionParams)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", workload.ErrUsage, err)
	}
	for _, v := range []struct {
		flag      string
		value, up int
	}{{"schemas", p.Schemas, maxSchemas}, {"schema-tables", p.SchemaTables, maxTables}, {"schema-rows", p.SchemaRows, maxRows}} {
		if v.value < 1 || v.value > v.up {
			return nil, fmt.Errorf("%w: --%s is %d: it has to be from 1 to %d", workload.ErrUsage, v.flag, v.value, v.up)
		}
	}
	if err := workload.CheckEngine(p.Engine); err != nil {
		return nil, err
	}
	return &schemas{p: p, ids: ids, visited: make([]atomic.Uint64, (p.Schemas*p.SchemaTables+63)/64)}, nil
}

func (w *schemas) Name() string { return "schemas" }

// Writes says no: it only selects.
func (w *schemas) Writes() bool { return false }

// KindNames tells accesses that find a table closed from the others.
func (w *schemas) KindNames() []string { return []string{"first access of a table", "later access"} }

// Client is one session. Its statements go as text: a prepared one for each table would not fit the server. The first one
// looks at the server's counters, too.
func (w *schemas) Client(s drive.Session, id int, rng *rand.Rand) (workload.Client, error) {
	c := &client{schemas: w, session: s, rng: rng, ids: w.ids.Over(1, int64(w.p.SchemaRows))}
	if id > 0 || s.Dialect() == drive.Postgres {
		return c, nil
	}
	return lookout{c}, w.opened.begin(s)
}

type client struct {
	*schemas
	session drive.Session
	rng     *rand.Rand
	ids     draw.Range
	text    []byte
	kind    int
}

// Kind reports whether the last transaction was the first on its table.
func (c *client) Kind() int { return c.kind }

// Transaction selects one row of any table of any schema.
func (c *client) Transaction() error {
	schema, table := c.rng.IntN(c.p.Schemas), c.rng.IntN(c.p.SchemaTables)
	b := strconv.AppendInt(append(c.text[:0], "SELECT c FROM "+workload.TenantPrefix...), int64(schema)+1, 10)
	b = strconv.AppendInt(append(b, ".t"...), int64(table)+1, 10)
	c.text = strconv.AppendInt(append(b, " WHERE id="...), c.ids.Draw(c.rng), 10)
	c.kind = c.visit(schema*c.p.SchemaTables + table)
	// The session has sent all of the text when Exec returns, so the string may share the buffer's memory.
	_, err := c.session.Exec(drive.Read, unsafe.String(unsafe.SliceData(c.text), len(c.text)))
	return err
}

// visit notes an access and says whether it is the first.
func (w *schemas) visit(n int) int {
	word, bit := &w.visited[n/64], uint64(1)<<(n%64)
	if word.Load()&bit != 0 || word.Or(bit)&bit != 0 {
		return later
	}
	return first
}
