package advise

import (
	"strings"

	"github.com/rissodb/risso/internal/fleet"
)

// Several joins what was found on several servers, by their names in order: what is the same on several of them is told once.
func Several(servers []string, found [][]Finding) []Finding {
	type key struct{ id, object, statement string }
	at := map[key]int{}
	var list []Finding
	for i, of := range found {
		for _, f := range of {
			k := key{f.ID, f.Object, f.Statement}
			j, ok := at[k]
			if !ok {
				j = len(list)
				at[k] = j
				f.Servers = nil
				list = append(list, f)
			} else {
				list[j] = worse(list[j], f)
			}
			list[j].Servers = append(list[j].Servers, servers[i])
		}
	}
	Rank(list)
	return list
}

// worse keeps the worse of two findings, with what both cost and the servers of the first.
func worse(a, b Finding) Finding {
	sum := Cost{Seconds: a.Cost.Seconds + b.Cost.Seconds, Bytes: a.Cost.Bytes + b.Cost.Bytes, Risk: a.Cost.Risk}
	servers, since := a.Servers, a.Since
	if b.Severity > a.Severity {
		a = b
	}
	if b.Since.IsZero() || since.IsZero() {
		since = b.Since
	} else if b.Since.Before(since) {
		since = b.Since
	}
	a.Cost, a.Servers, a.Since = sum, servers, since
	return a
}

// SameIDs are servers that were asked together and have one server_id: where one of them replicates another, directly or not, events are taken
// for the server's own and passed over, or replicas throw each other out of the source. ids are in the order of names; "" is unknown.
func SameIDs(names, ids []string) (list []Finding) {
	of := map[string][]string{}
	for i, id := range ids {
		if id != "" && id != "0" {
			of[id] = append(of[id], names[i])
		}
	}
	for _, id := range ids {
		if len(of[id]) < 2 {
			continue
		}
		list = append(list, Finding{ID: "repl.config", Object: "server_id", Severity: fleet.SeverityWarning, What: "several servers have the server_id " + id, Why: "if they replicate, a server passes over what it takes for its own, and two replicas of one source end each other's connections",
			Evidence: []string{strings.Join(of[id], ", ")}, Advice: "give each server of a group a number of its own in the option file", Sure: Likely, Doubt: "servers that never replicate each other may share it", Servers: of[id], Cost: Cost{Risk: "replicas differ"}})
		delete(of, id)
	}
	return list
}
