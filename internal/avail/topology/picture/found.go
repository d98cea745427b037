package picture

import (
	"strings"

	"github.com/rissodb/risso/internal/avail/diagnose"
	"github.com/rissodb/risso/internal/fleet"
)

// Finding is a diagnosis of a server.
type Finding struct {
	fleet.Finding
	Because string `json:"because,omitempty"` // the code that it follows from, and of which server; "": it stands for itself
}

// standing reports whether a finding is of what is set up so, and hurts on the day of a failover if at all: a picture, which says how replication is now, shows it as
// information. Package explain/advise ranks settings.
func standing(id string) bool {
	switch id {
	case "repl.config", "repl.filter", "repl.flavour", "repl.position", "repl.tls", "repl.version", "repl.version_gap":
		return true
	}
	return strings.HasPrefix(id, "topology.")
}

// Diagnosed are diagnoses as a picture shows them, by the name of the server that each is about first.
func Diagnosed(found []diagnose.Diagnosis) map[string][]Finding {
	out := map[string][]Finding{}
	for _, d := range found {
		f := Finding{Finding: d.Finding()}
		if standing(f.ID) {
			f.Severity = min(f.Severity, fleet.SeverityInfo)
		}
		if d.Because != nil {
			f.Because = d.Because.Code + " of " + d.Because.Node
		}
		out[d.Nodes[0]] = append(out[d.Nodes[0]], f)
	}
	return out
}

// Diagnosis is the diagnosis of a server that a finding of a picture was kept of, as far as findings have it.
func (f Finding) Diagnosis(node string) diagnose.Diagnosis {
	d := diagnose.Diagnosis{Code: f.ID, Severity: f.Severity, Nodes: []string{node}, Subject: f.Subject, What: f.What, Evidence: []string{f.Why}, NotSeen: "-", Next: f.Remedy, Case: f.Case, Since: f.Since}
	if f.ID == "repl.config" {
		d.Code += ":" + f.Subject
	}
	if code, of, ok := strings.Cut(f.Because, " of "); ok {
		d.Because = &diagnose.Cause{Code: code, Node: of}
	}
	return d
}
