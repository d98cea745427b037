package topology

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/diagnose"
	"github.com/rissodb/risso/internal/avail/topology/picture"
	"github.com/rissodb/risso/internal/fleet"
)

// ruled are the findings that the rules of package watch/rules have of each server that is watched, every second: of these it is left to them.
var ruled = []string{"server.down", "server.hung", "conn.saturation", "commit.semisync", "lock.global", "clock.skew", "repl.stopped", "repl.lag", "repl.writable", "galera.non_primary",
	"galera.not_synced"}

const (
	// settle is how long a diagnosis must hold, in two looks at least, before it is one: what a server that just starts or stops shows comes and goes.
	settle = 5 * time.Second
	// mostMissed is how many looks must not have it before it is over.
	mostMissed = 2
)

// subject is what a diagnosis is about.
type subject struct{ node, id, subject string }

// spell is a time in which a diagnosis held.
type spell struct {
	diagnosis diagnose.Diagnosis
	first     time.Time
	looks     int
	missed    int
	told      bool
}

// steady keeps those diagnoses that do not come and go from one look to the next.
type steady map[subject]*spell

// look takes what was diagnosed at a time, the worst first, and returns what holds, in that order; what was missed just now is behind it.
func (s steady) look(now time.Time, found []diagnose.Diagnosis) (holds []diagnose.Diagnosis) {
	seen := map[subject]bool{}
	for _, d := range found {
		f := d.Finding()
		key := subject{d.Nodes[0], f.ID, f.Subject}
		if seen[key] { // of several with one name the worst is told
			continue
		}
		seen[key] = true
		e := s[key]
		if e == nil {
			e = &spell{first: now}
			s[key] = e
		}
		e.diagnosis, e.missed, e.looks = d, 0, e.looks+1
		if e.told = e.told || e.looks > 1 && now.Sub(e.first) >= settle; e.told {
			d.Since = e.first
			holds = append(holds, d)
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(s), subject.compare) {
		e := s[key]
		if seen[key] {
			continue
		}
		if e.missed++; !e.told || e.missed >= mostMissed {
			delete(s, key)
			continue
		}
		d := e.diagnosis
		d.Since = e.first
		holds = append(holds, d)
	}
	return holds
}

func (a subject) compare(b subject) int {
	return cmp.Or(strings.Compare(a.node, b.node), strings.Compare(a.id, b.id), strings.Compare(a.subject, b.subject))
}

// resume remembers what held when Risso ended: if it holds still, it is not new.
func (s steady) resume(p *picture.Picture) {
	for i := range p.Nodes {
		for _, f := range p.Nodes[i].Findings {
			name := p.Nodes[i].Name
			s[subject{name, f.ID, f.Subject}] = &spell{diagnosis: f.Diagnosis(name), first: f.Since, told: true}
		}
	}
}

// findings are those of a picture that are told, by the watched server that each is told of. What follows from something else is told with that, on the page, and
// what rules look for is left to them. What is wrong with a server that is not watched is told of the nearest one that is.
func findings(p *picture.Picture) map[string][]fleet.Finding {
	out := map[string][]fleet.Finding{}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		for _, f := range n.Findings {
			if f.Because != "" && told(p, f.Because, len(p.Nodes)) || n.Instance != "" && slices.Contains(ruled, f.ID) {
				continue
			}
			near, one := teller(p, i, f.ID), f.Finding
			if n.Instance == "" {
				if one.Subject = n.Name; f.Subject != "" {
					one.Subject += " " + f.Subject
				}
			}
			if near != "" {
				out[near] = append(out[near], one)
			}
		}
	}
	return out
}

// teller is the watched server of which a finding of a node is told; "": it is told of none.
func teller(p *picture.Picture, i int, id string) string {
	n := &p.Nodes[i]
	switch {
	case n.Instance != "":
		return n.Instance
	case unmet(n, id):
		return ""
	}
	return nearest(p, i)
}

// told reports whether what something follows from is told, or what that follows from in turn: "primary.dead of db1".
func told(p *picture.Picture, because string, steps int) bool {
	code, name, _ := strings.Cut(because, " of ")
	id, _, _ := strings.Cut(code, ":")
	for i := range p.Nodes {
		if p.Nodes[i].Name != name {
			continue
		}
		for _, f := range p.Nodes[i].Findings {
			switch {
			case f.ID != id:
			case f.Because != "" && steps > 0:
				return told(p, f.Because, steps-1)
			default:
				return teller(p, i, id) != ""
			}
		}
	}
	return true // it is about to be: it has not held long enough
}

// unmet reports whether a finding says only that a server is not reached from here which others tell of and which never answered: it may be one that Risso is not
// to reach.
func unmet(n *picture.Node, id string) bool {
	return id == "server.no_access" || n.Answered.IsZero() && (id == "server.down" || id == "server.hung")
}

// nearest is the watched server next to one that is not: its source, a replica, or one of its cluster; "": there is none.
func nearest(p *picture.Picture, i int) string {
	n := &p.Nodes[i]
	for _, l := range p.Links {
		if l.Replica == i && p.Nodes[l.Source].Instance != "" {
			return p.Nodes[l.Source].Instance
		}
	}
	for _, l := range p.Links {
		if l.Source == i && p.Nodes[l.Replica].Instance != "" {
			return p.Nodes[l.Replica].Instance
		}
	}
	for k := range p.Nodes {
		o := &p.Nodes[k]
		if o.Instance != "" && (o.Cluster != "" && o.Cluster == n.Cluster || slices.Contains(n.ToldBy, o.Name)) {
			return o.Instance
		}
	}
	return ""
}
