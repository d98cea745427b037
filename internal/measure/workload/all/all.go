// Package all is the registry of workloads.
package all

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/measure/workload"
	"github.com/rissodb/risso/internal/measure/workload/oltp"
	"github.com/rissodb/risso/internal/measure/workload/ontime"
	"github.com/rissodb/risso/internal/measure/workload/replay"
	"github.com/rissodb/risso/internal/measure/workload/schemas"
	"github.com/rissodb/risso/internal/measure/workload/script"
	"github.com/rissodb/risso/internal/measure/workload/tpcc"
)

// Entry is one workload that users can name.
type Entry struct {
	Name, Summary string
	New           func(name string, p workload.Params) (workload.Workload, error)
	Size          []string // the flags that say how much data there is and which of it is used, for every result to record
}

// List returns all workloads, in the order in which help shows them.
func List() []Entry {
	var list []Entry
	for _, s := range oltp.Summaries() {
		list = append(list, Entry{s[0], s[1], oltp.New, []string{"tables", "table-size", "distribution"}})
	}
	return append(list,
		Entry{"schemas", "one row of any table of many schemas, as of many tenants", schemas.New, []string{"schemas", "schema-tables", "schema-rows", "distribution"}},
		Entry{"tpcc", "TPC-C: the five transactions of an order-entry system", tpcc.New, nil},
		Entry{"ontime", "two analytical questions on flights, at any scale", ontime.New, []string{"scale"}},
		Entry{"script", "your own transactions, from a file (--file)", script.New, []string{"file"}},
		Entry{"replay", "the statements of a slow log or a digest (--file)", replay.New, []string{"file", "mode"}},
	)
}

// Canonical is a workload's own name: sysbench's scripts are called oltp_read_write and so on.
func Canonical(name string) string {
	if own, ok := strings.CutPrefix(name, "oltp_"); ok && slices.ContainsFunc(oltp.Summaries(), func(s [2]string) bool { return s[0] == own }) {
		return own
	}
	return name
}

// Size returns the flags that say how much data a workload has.
func Size(name string) []string {
	for _, e := range List() {
		if e.Name == Canonical(name) {
			return e.Size
		}
	}
	return nil
}

// New makes the workload of that name. Errors of wrong use wrap workload.ErrUsage.
func New(name string, p workload.Params) (workload.Workload, error) {
	var names []string
	name = Canonical(name)
	for _, e := range List() {
		if e.Name == name {
			return e.New(name, p)
		}
		names = append(names, e.Name)
	}
	return nil, fmt.Errorf("%w: no workload %q; use one of %s", workload.ErrUsage, name, strings.Join(names, ", "))
}
