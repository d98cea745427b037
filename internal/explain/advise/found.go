package advise

import (
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/fleet"
)

// Found keeps findings within bounds: of one ID the worst, and how many others there were. The zero value is ready.
type Found struct {
	of   map[string][]Finding
	more map[string]*More
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
func (k *Found) Add(f Finding) {
	if k.of == nil {
		k.of, k.more = map[string][]Finding{}, map[string]*More{}
	}
	k.of[f.ID] = append(k.of[f.ID], f)
	if len(k.of[f.ID]) >= 2*MostOfOne {
		k.cut(f.ID)
	}
}

// AddMore takes what another had no room for.
func (k *Found) AddMore(list []More) {
	for _, m := range list {
		if k.more == nil {
			k.of, k.more = map[string][]Finding{}, map[string]*More{}
		}
		if have := k.more[m.ID]; have != nil {
			have.Count, have.Bytes, have.Severity = have.Count+m.Count, have.Bytes+m.Bytes, max(have.Severity, m.Severity)
			continue
		}
		k.more[m.ID] = &m
	}
}

// cut counts those for which there is no room.
func (k *Found) cut(id string) {
	list := k.of[id]
	if len(list) <= MostOfOne {
		return
	}
	Rank(list)
	m := k.more[id]
	if m == nil {
		m = &More{ID: id}
		k.more[id] = m
	}
	for _, f := range list[MostOfOne:] {
		m.Count++
		m.Bytes += f.Cost.Bytes
		m.Severity = max(m.Severity, f.Severity)
	}
	k.of[id] = slices.Clone(list[:MostOfOne])
}

// Ranked are the findings that were kept, the worst first, and by ID how many others there were.
func (k *Found) Ranked() (list []Finding, more []More) {
	for id := range k.of {
		k.cut(id)
		list = append(list, k.of[id]...)
	}
	for _, m := range k.more {
		more = append(more, *m)
	}
	slices.SortFunc(more, func(a, b More) int { return strings.Compare(a.ID, b.ID) })
	Rank(list)
	return list, more
}
