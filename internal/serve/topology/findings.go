package topology

import (
	"slices"
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
	for key, e := range s {
		if seen[key] {
			continue
		}
		if e.missed++; !e.told || e.missed >= mostMissed || len(e.diagnosis.Nodes) == 0 {
			delete(s, key)
			continue
		}
		d := e.diagnosis
		d.Since = e.first
		holds = append(holds, d)
	}
	return holds
}

// resume remembers what held when Risso ended: if it holds still, it is not new.
func (s steady) resume(p *picture.Picture) {
	for i := range p.Nodes {
		for _, f := range p.Nodes[i].Findings {
			s[subject{p.Nodes[i].Name, f.ID, f.Subject}] = &spell{first: f.Since, told: true}
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
			switch {
			case f.Because != "":
			case n.Instance != "" && !slices.Contains(ruled, f.ID):
				out[n.Instance] = append(out[n.Instance], f.Finding)
			case n.Instance == "" && !unmet(n, f.ID):
				if near := nearest(p, i); near != "" {
					told := f.Finding
					if told.Subject = n.Name; f.Subject != "" {
						told.Subject += " " + f.Subject
					}
					out[near] = append(out[near], told)
				}
			}
		}
	}
	return out
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
