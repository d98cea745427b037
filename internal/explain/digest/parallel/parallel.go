// Package parallel adds up the write time of a log of statements by schema, to plan with what appliers that work in parallel by schema
// could gain: see package byschema.
package parallel

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/rissodb/risso/internal/byschema"
	"github.com/rissodb/risso/internal/explain/digest"
	"github.com/rissodb/risso/internal/sqltext"
)

// Counter adds up the write time per schema. It is a digest.Filter that keeps writes only, so that the profile next to
// it shows the same statements.
type Counter struct {
	inner digest.Filter // what the person filters by; nil: all
	mu    sync.Mutex
	sets  map[string]*tally
	plan  byschema.Plan
}

// tally is what was written to exactly some schemas.
type tally struct {
	byschema.Set
	slowest float64
}

// NewCounter makes a counter of the events that inner keeps; nil keeps all.
func NewCounter(inner digest.Filter) *Counter {
	return &Counter{inner: inner, sets: map[string]*tally{}}
}

var writes = []string{"INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "CREATE", "ALTER", "DROP", "TRUNCATE", "RENAME", "OPTIMIZE", "IMPORT"}

// unjudged may write, but the text does not say what.
var unjudged = []string{"CALL", "COMMIT", "XA", "EXECUTE"}

// Keep counts a write and keeps it; all else is left out.
func (c *Counter) Keep(e *digest.Event) bool {
	verb := sqltext.Verb(e.Query)
	write := slices.Contains(writes, verb)
	if !write && !slices.Contains(unjudged, verb) || c.inner != nil && !c.inner.Keep(e) {
		return false
	}
	if !write {
		c.mu.Lock()
		c.plan.Unjudged += e.QueryTime
		c.plan.UnjudgedCalls++
		c.mu.Unlock()
		return false
	}
	schemas := schemasOf(e)
	key := strings.Join(schemas, "\x00")
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sets[key]
	if s == nil {
		s = &tally{byschema.Set{Schemas: schemas}, -1}
		c.sets[key] = s
	}
	s.Calls++
	s.Seconds += e.QueryTime
	if e.QueryTime > s.slowest && len(schemas) > 1 {
		s.slowest, s.Sample = e.QueryTime, sqltext.Fingerprint(string(e.Query[:min(len(e.Query), 4096)]))
	}
	return true
}

// schemasOf are the schemas that a statement may change, the current one where a name is in none.
func schemasOf(e *digest.Event) []string {
	current := string(bytes.TrimSpace(e.DB))
	var out []string
	c, ok := sqltext.Dialect{}.ReadChange(string(e.Query))
	switch {
	case ok && c.Kind == "DATABASE":
		for _, n := range c.Names {
			out = append(out, n.Name)
		}
	case ok:
		for _, n := range slices.Concat(c.Names, c.To) {
			out = append(out, cmp.Or(n.Schema, current))
		}
	default: // OPTIMIZE
		for _, t := range sqltext.Tables(e.Query) {
			out = append(out, cmp.Or(t.Schema, current))
		}
	}
	if len(out) == 0 {
		out = []string{current}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Plan returns what was counted so far.
func (c *Counter) Plan() byschema.Plan {
	c.mu.Lock()
	defer c.mu.Unlock()
	sets := make([]byschema.Set, 0, len(c.sets))
	for _, s := range c.sets {
		sets = append(sets, s.Set)
	}
	out := byschema.Of(sets)
	out.Unjudged, out.UnjudgedCalls = c.plan.Unjudged, c.plan.UnjudgedCalls
	return out
}
