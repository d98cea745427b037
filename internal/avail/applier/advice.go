package applier

import (
	"fmt"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
)

// Advice is a change that pays.
type Advice struct {
	Where      string   `json:"where"`           // source or replica
	What       string   `json:"what"`            // and what it gains
	Doubt      string   `json:"doubt,omitempty"` // what may make it gain less, or cost something
	Statements []string `json:"statements"`      // none: it is not a setting
}

// MostWorkers is the largest number that is recommended. If a log allows for more, it is not what limits a replica.
const MostWorkers = 32

const (
	pays    = 1.25 // how much more another setting has to gain to be named
	serious = 0.3  // the share of the chain from which on a limit is answered
)

// Choice is the mode and the number of workers that a log is best applied with, without anything changed on the source.
func (r *Report) Choice() (c Curve, workers int) {
	c = r.Main()
	for _, m := range []Mode{Aggressive} { // it gains where Optimistic spares what waited once
		if x, ok := r.Of(m); ok && x.At(MostWorkers) > pays*c.At(MostWorkers) {
			c = x
		}
	}
	return c, min(c.Enough, MostWorkers)
}

// Advise says what would help replicas of a source to apply its log faster. from is what wrote the log; replicas are taken to be of the same
// version.
func (r *Report) Advise(from mysql.Server) []Advice {
	list := []Advice{}
	if r.Transactions == 0 {
		return list
	}
	list = append(list, r.onSource(from)...)
	c, workers := r.Choice()
	if c.Enough <= MostWorkers && r.share(HotRow) > serious {
		list = append(list, Advice{Where: "source", Statements: []string{}, What: "no setting helps against a row that many transactions change: spread it over several rows that are added up when read, or change it in transactions of its own"})
	}
	if c.Enough <= MostWorkers && r.share(LongOne) > serious {
		list = append(list, Advice{Where: "source", Statements: []string{}, What: "no setting makes a long transaction shorter: write it in parts of a few thousand rows"})
	}
	if workers > 1 {
		a := Advice{Where: "replica", Statements: from.ApplyWith(workers, string(c.Mode)), What: fmt.Sprintf("%d workers apply this log %s times as fast as one", workers, digits.Ratio(c.At(workers)))}
		if c.Enough > MostWorkers {
			a.Doubt = fmt.Sprintf("the log allows for more than %d workers: processors and disk of the replica are the limit, and --live on it shows whether they are busy", MostWorkers)
		}
		list = append(list, a)
	}
	if limit := from.QueuedForAppliers(); limit > 0 && workers > 1 {
		for _, l := range r.Longest {
			if l.Bytes > limit {
				list = append(list, Advice{Where: "replica", Statements: from.QueueForAppliers(roundUp(l.Bytes)),
					What:  fmt.Sprintf("a transaction of %s is longer than what is read for one worker by default (%s): the others get nothing to do beside it", digits.Bytes(l.Bytes), digits.Bytes(limit)),
					Doubt: "it is memory for each worker"})
				break
			}
		}
	}
	return list
}

// roundUp is the next power of two that has room for twice as much.
func roundUp(bytes int64) int64 {
	n := int64(1 << 18)
	for n < 2*bytes && n < 1<<30 {
		n *= 2
	}
	return n
}

// share is how much of the chain limits of a kind are.
func (r *Report) share(kind Kind) (sum float64) {
	for _, l := range r.Limits {
		if l.Kind == kind {
			sum += l.Share
		}
	}
	return sum
}

// onSource is what would help and has to be done where the log is written.
func (r *Report) onSource(from mysql.Server) (list []Advice) {
	main := r.Main()
	better := false
	if w, ok := r.Of(WriteSet); ok && w.At(MostWorkers) > pays*main.At(MostWorkers) {
		if statements := from.TrackWriteSets(); len(statements) > 0 {
			better = true
			n := min(w.Enough, MostWorkers)
			list = append(list, Advice{Where: "source", Statements: statements,
				What:  fmt.Sprintf("transactions that share no row would no longer wait for each other: %s times as fast with %s, instead of %s", digits.Ratio(w.At(n)), digits.Plural(n, "worker", "workers"), digits.Ratio(main.At(n))),
				Doubt: "foreign keys, and unique keys beside the primary one, are not in the log: transactions on such tables wait more often; sessions that are open keep what they have"})
		}
	}
	if c, ok := r.Of(Conservative); ok && c.At(MostWorkers) > main.At(MostWorkers)/pays { // the groups are large enough
		return list
	}
	if statements := from.GroupCommits(); !better && !from.AlwaysWriteSets() && r.share(CommitOrder)+r.share(HotTable) > serious && len(statements) > 0 && from.DefaultApplyMode() != string(Optimistic) {
		list = append(list, Advice{Where: "source", Statements: statements,
			What:  "commits that wait a moment for others are logged as one group, whose transactions can be applied at the same time",
			Doubt: "each commit takes up to a millisecond longer; how much larger the groups become is not in the log"})
	}
	if float64(r.Unkeyed) > serious*float64(r.Transactions) && r.share(HotTable)+r.share(CommitOrder) > serious {
		list = append(list, Advice{Where: "source", What: "transactions on tables without a primary key wait for all before them, and their rows are searched for: give these tables one", Statements: []string{}})
	}
	return list
}
