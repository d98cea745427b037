// Package byschema says what appliers that work in parallel by schema could gain at most (slave_parallel_type=DATABASE, the
// only kind of MySQL 5.6, and a choice in 5.7 and 8.0), from what was written to which schemas. It does no input or output.
//
// An applier works on one schema at a time, and statements of one schema stay in order. So replaying takes at least
// as long as the longest chain: the write time of the heaviest schema, and of every statement that touches it and
// others too. n appliers cannot take less than 1/n of the write time either. From this follows, with the shares
// 52.1 %, 34.5 % and 13.4 %:
//
//	appliers   time at least            speed at most
//	1          100 %                    1.00
//	2          max(52.1 %, 1/2) = 52.1  1/0.521 = 1.92
//	3          max(52.1 %, 1/3) = 52.1  1.92
//
// While the heaviest schema is replayed, the k heaviest work together for at most the share of the k-th over that of
// the first: two for 34.5/52.1 = 66 % of the time, all three for 13.4/52.1 = 26 %.
//
// These are bounds. Row-based appliers need not be as slow as the statements were on the primary.
package byschema

import (
	"sort"
	"strings"
)

// Set is the writes that touch exactly these schemas.
type Set struct {
	Schemas []string `json:"schemas"` // in alphabetical order; "" is a schema that the log does not name
	Calls   int64    `json:"calls"`
	Seconds float64  `json:"seconds"`
	Share   float64  `json:"share"`  // share of the write time, 0 to 1
	Sample  string   `json:"sample"` // the slowest statement's fingerprint
}

// Schema is a schema's part of the write time.
type Schema struct {
	Name    string  `json:"name"`
	Calls   int64   `json:"calls"`
	Seconds float64 `json:"seconds"` // time of statements that touch only this schema
	Share   float64 `json:"share"`   // share of all write time, 0 to 1
	Chain   float64 `json:"chain"`   // share including statements that also touch other schemas
	// Together is the largest share of the replay's time in which this schema and all heavier ones can be worked on at the same time, 0 to 1.
	Together float64 `json:"together_at_most"`
}

// Appliers is the best that a number of appliers could do.
type Appliers struct {
	Number  int     `json:"appliers"`
	Time    float64 `json:"time_at_least"` // lower bound, as a share of the time that one applier takes
	Speedup float64 `json:"speedup_at_most"`
}

// Plan is the result of the analysis.
type Plan struct {
	Calls    int64      `json:"calls"`
	Seconds  float64    `json:"seconds"`
	Schemas  []Schema   `json:"schemas"`  // heaviest first
	Crossing []Set      `json:"crossing"` // statements that touch several schemas, heaviest first
	Appliers []Appliers `json:"appliers"`
	// Unjudged is the time of statements that may write but do not say where: CALL, COMMIT, XA.
	Unjudged      float64 `json:"unjudged_seconds"`
	UnjudgedCalls int64   `json:"unjudged_calls"`
}

// Of makes a plan of sets.
func Of(sets []Set) Plan {
	p := Plan{Schemas: []Schema{}, Crossing: []Set{}, Appliers: []Appliers{}}
	byName := map[string]*Schema{}
	get := func(name string) *Schema {
		if byName[name] == nil {
			byName[name] = &Schema{Name: name}
		}
		return byName[name]
	}
	for _, s := range sets {
		p.Calls += s.Calls
		p.Seconds += s.Seconds
		for _, name := range s.Schemas {
			x := get(name)
			x.Chain += s.Seconds
			if len(s.Schemas) == 1 {
				x.Calls += s.Calls
				x.Seconds += s.Seconds
			}
		}
	}
	part := func(v float64) float64 {
		if p.Seconds <= 0 {
			return 0
		}
		return v / p.Seconds
	}
	for _, s := range sets {
		if len(s.Schemas) > 1 {
			s.Share = part(s.Seconds)
			p.Crossing = append(p.Crossing, s)
		}
	}
	sort.Slice(p.Crossing, func(i, j int) bool {
		a, b := p.Crossing[i], p.Crossing[j]
		return a.Seconds > b.Seconds || a.Seconds == b.Seconds && strings.Join(a.Schemas, ",") < strings.Join(b.Schemas, ",")
	})
	for _, x := range byName {
		x.Share, x.Chain = part(x.Seconds), part(x.Chain)
		p.Schemas = append(p.Schemas, *x)
	}
	sort.Slice(p.Schemas, func(i, j int) bool {
		a, b := p.Schemas[i], p.Schemas[j]
		return a.Chain > b.Chain || a.Chain == b.Chain && a.Name < b.Name
	})
	p.bounds()
	return p
}

// bounds works out what the shares allow.
func (p *Plan) bounds() {
	if len(p.Schemas) == 0 || p.Seconds <= 0 {
		return
	}
	longest, least := p.Schemas[0].Chain, p.Schemas[0].Share
	for i := range p.Schemas {
		s := &p.Schemas[i]
		// What this schema shares with others is worked on once: only its own part can run at the same time as the heaviest.
		least = min(least, s.Share)
		if s.Together = least / longest; i == 0 {
			s.Together = 1
		}
		t := max(longest, 1/float64(i+1))
		p.Appliers = append(p.Appliers, Appliers{Number: i + 1, Time: t, Speedup: 1 / t})
	}
}
