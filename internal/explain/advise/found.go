package advise

import (
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/fleet"
)

// Found keeps findings within bounds: of one ID the worst, and how many others there were. The zero value is ready.
type Found struct {
	of   map[string][]kept
	more map[string]*More
}

// kept is a finding that there is room for.
type kept struct {
	Finding
	table *Table // of a provisional one: the table that it is about
}

// More are findings of one ID that there was no room for.
type More struct {
	ID       string         `json:"id"`
	Count    int            `json:"count"`
	Bytes    float64        `json:"bytes,omitempty"` // that they cost together
	Severity fleet.Severity `json:"severity"`        // of the worst
}

// MostOfOne is how many findings of one ID are kept: a server with 650,000 tables may have as many.
const MostOfOne = 1000

// Add takes a finding.
func (k *Found) Add(f Finding) { k.add(kept{Finding: f}) }

// AddProvisional takes findings of a table whose definition was not read: enough is known of it to rank and count them, not to say what mends
// them. Settle gives those that are kept their final words.
func (k *Found) AddProvisional(t *Table, list []Finding) {
	for _, f := range list {
		k.add(kept{f, t})
	}
}

func (k *Found) add(f kept) {
	if k.of == nil {
		k.of = map[string][]kept{}
	}
	k.of[f.ID] = append(k.of[f.ID], f)
	if len(k.of[f.ID]) >= 2*MostOfOne {
		k.cut(f.ID)
	}
}

// Join takes what another one has.
func (k *Found) Join(other *Found) {
	for _, list := range other.of {
		for _, f := range list {
			k.add(f)
		}
	}
	for _, m := range other.more {
		k.addMore(*m)
	}
}

func (k *Found) addMore(m More) {
	if k.more == nil {
		k.more = map[string]*More{}
	}
	if have := k.more[m.ID]; have != nil {
		have.Count, have.Bytes, have.Severity = have.Count+m.Count, have.Bytes+m.Bytes, max(have.Severity, m.Severity)
		return
	}
	k.more[m.ID] = &m
}

// cut counts those for which there is no room.
func (k *Found) cut(id string) {
	list := k.of[id]
	if len(list) <= MostOfOne {
		return
	}
	slices.SortStableFunc(list, func(a, b kept) int { return Compare(a.Finding, b.Finding) })
	m := More{ID: id}
	for _, f := range list[MostOfOne:] {
		m.Count++
		m.Bytes += f.Cost.Bytes
		m.Severity = max(m.Severity, f.Severity)
	}
	k.addMore(m)
	k.of[id] = slices.Clone(list[:MostOfOne])
}

// Provisional are the tables of findings that are kept and provisional, each once, in the order of their names.
func (k *Found) Provisional() (tables []*Table) {
	seen := map[*Table]bool{}
	for id := range k.of {
		k.cut(id)
		for _, f := range k.of[id] {
			if f.table != nil && !seen[f.table] {
				seen[f.table] = true
				tables = append(tables, f.table)
			}
		}
	}
	slices.SortFunc(tables, func(a, b *Table) int { return strings.Compare(a.object(), b.object()) })
	return tables
}

// Settle puts the final findings of tables in the place of the provisional ones. Of a table without any, such as one that is gone, none stay.
// Where findings of an ID were left out, a table gets no more of it than it had: others of it may be counted already.
func (k *Found) Settle(final map[*Table][]Finding) {
	type of struct {
		table *Table
		id    string
	}
	room := map[of]int{}
	for id, list := range k.of {
		k.of[id] = slices.DeleteFunc(list, func(f kept) bool {
			if f.table != nil {
				room[of{f.table, id}]++
			}
			return f.table != nil
		})
	}
	for t, list := range final {
		Rank(list)
		for _, f := range list {
			x := of{t, f.ID}
			if k.more[f.ID] != nil && room[x] == 0 {
				continue
			}
			room[x]--
			k.add(kept{Finding: f})
		}
	}
}

// Ranked are the findings that were kept, the worst first, and by ID how many others there were.
func (k *Found) Ranked() (list []Finding, more []More) {
	for id := range k.of {
		k.cut(id)
		for _, f := range k.of[id] {
			list = append(list, f.Finding)
		}
	}
	for _, m := range k.more {
		more = append(more, *m)
	}
	slices.SortFunc(more, func(a, b More) int { return strings.Compare(a.ID, b.ID) })
	Rank(list)
	return list, more
}
