package trace

import (
	"cmp"
	"slices"
	"strings"
)

// phase is what a stage or a wait is for, in words that complete "… was spent".
type phase string

const (
	phaseOpen         phase = "opening, locking and closing tables"
	phasePlan         phase = "parsing and planning"
	phaseExecute      phase = "executing"
	phaseRows         phase = "reading and writing rows"
	phaseSort         phase = "sorting"
	phaseTemporary    phase = "in temporary tables"
	phaseCommit       phase = "committing"
	phaseLocks        phase = "waiting for locks"
	phaseSleep        phase = "sleeping on request"
	phaseFiles        phase = "reading and writing files"
	phaseClient       phase = "sending to the client and cleaning up"
	phaseLatches      phase = "waiting for latches inside the server"
	phaseInstructions phase = "in instructions of stored programs"
	phaseOther        phase = "in code without instruments"
	phaseBefore       phase = "in a statement that had begun earlier"
)

// phases by words of a stage's name, in lower case; the first that matches counts
// (https://dev.mysql.com/doc/refman/8.4/en/general-thread-states.html, https://mariadb.com/kb/en/general-thread-states/).
var phaseWords = []struct {
	word string
	p    phase
}{
	{"opening tables", phaseOpen}, {"closing tables", phaseOpen}, {"unlocking tables", phaseOpen},
	{"waiting for table metadata lock", phaseLocks}, {"metadata lock", phaseLocks}, {"waiting for table", phaseLocks}, {"waiting for global", phaseLocks}, {"user lock", phaseLocks}, {"waiting for backup", phaseLocks},
	{"system lock", phaseOpen}, {"table lock", phaseOpen},
	{"user sleep", phaseSleep},
	{"commit", phaseCommit}, {"binlog", phaseCommit}, {"semi-sync", phaseCommit}, {"query end", phaseCommit},
	{"tmp table", phaseTemporary}, {"heap", phaseTemporary}, {"temporary", phaseTemporary},
	{"sort", phaseSort},
	{"starting cleanup", phaseClient}, {"starting", phasePlan}, {"checking permissions", phasePlan}, {"init", phasePlan}, {"optimizing", phasePlan}, {"statistics", phasePlan}, {"preparing", phasePlan}, {"explaining", phasePlan},
	{"sending to client", phaseClient}, {"freeing items", phaseClient}, {"cleaning up", phaseClient}, {"reset for next", phaseClient}, {"end of update loop", phaseExecute},
}

func phaseOf(stage string) phase {
	s := strings.ToLower(shortName(stage))
	for _, w := range phaseWords {
		if strings.Contains(s, w.word) {
			return w.p
		}
	}
	return phaseExecute
}

// phaseOf says what a node's own time was spent on.
func (n *Node) phase() phase {
	switch {
	case n.Kind == KindStage:
		return phaseOf(n.Name)
	case n.Kind == KindStatement && n.Instruction():
		return phaseInstructions
	case n.Kind == KindStatement:
		return phaseOther
	}
	for p := n.Parent; p != nil; p = p.Parent { // a file that is read to open a table
		if p.Kind == KindStage {
			if ph := phaseOf(p.Name); ph == phaseOpen || ph == phaseCommit {
				return ph
			}
			break
		}
	}
	switch {
	case strings.HasPrefix(n.Name, "wait/io/table/"):
		return phaseRows
	case strings.HasPrefix(n.Name, "wait/lock/"):
		return phaseLocks
	case strings.HasPrefix(n.Name, "wait/synch/"):
		return phaseLatches
	case strings.HasPrefix(n.Name, "wait/io/socket/"):
		return phaseClient
	}
	return phaseFiles
}

// Phase is a share of the connection's busy time.
type Phase struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
	Share   float64 `json:"share"` // share of the busy time, 0 to 1
}

// phases divides the busy time: by the events where all were seen, and else by the server's own counters of stages.
// locked is which part of an event's own time was a wait for a lock that no instrument shows, such as a row lock.
func phases(tree *Tree, totals []Total, busy uint64, locked map[uint64]float64) []Phase {
	sums := map[phase]float64{}
	if staged := stageSeconds(totals); tree.lossy() && staged > 0 {
		tree.Walk(func(n *Node, _ int) bool { // the counters count a stage when it ends
			if n.Kind == KindStage && n.Running {
				took := float64(n.Took()) * 1e-12
				waited := locked[n.ID]
				sums[phaseLocks] += took * waited
				sums[phaseOf(n.Name)] += took * (1 - waited)
				staged += took
			}
			return true
		})
		for _, t := range totals {
			if strings.HasPrefix(t.Name, "stage/") {
				sums[phaseOf(t.Name)] += t.Seconds
			}
		}
		before := 0.0
		for _, r := range tree.Roots {
			if r.Before {
				before += float64(r.Own) * 1e-12
			}
		}
		sums[phaseBefore] += before
		if rest := float64(busy)*1e-12 - staged - before; rest > 0 {
			sums[phaseOther] += rest
		}
	} else {
		for _, r := range tree.Roots {
			if r.Kind == KindStatement {
				r.Walk(func(n *Node, _ int) bool {
					p := n.phase()
					if n == r && r.Before {
						p = phaseBefore
					}
					waited := locked[n.ID]
					sums[phaseLocks] += float64(n.Own) * 1e-12 * waited
					sums[p] += float64(n.Own) * 1e-12 * (1 - waited)
					return true
				})
			}
		}
	}
	all := 0.0
	for _, s := range sums {
		all += s
	}
	var out []Phase
	for p, s := range sums {
		if s > 0 {
			out = append(out, Phase{string(p), s, s / all})
		}
	}
	slices.SortFunc(out, func(a, b Phase) int { return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Name, b.Name)) })
	return out
}

func stageSeconds(totals []Total) (sum float64) {
	for _, t := range totals {
		if strings.HasPrefix(t.Name, "stage/sql/") {
			sum += t.Seconds
		}
	}
	return sum
}
