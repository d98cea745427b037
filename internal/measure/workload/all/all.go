// Package all is the registry of workloads.
package all

import (
	"fmt"
	"strings"

	"github.com/rissodb/risso/internal/measure/workload"
	"github.com/rissodb/risso/internal/measure/workload/oltp"
	"github.com/rissodb/risso/internal/measure/workload/schemas"
)

// Entry is one workload that users can name.
type Entry struct {
	Name, Summary string
	New           func(name string, p workload.Params) (workload.Workload, error)
}

// List gives all workloads, in the order in which help shows them.
func List() []Entry {
	var list []Entry
	for _, s := range oltp.Summaries() {
		list = append(list, Entry{s[0], s[1], oltp.New})
	}
	return append(list, Entry{"schemas", "one row of any table of many schemas, as of many tenants", schemas.New})
}

// New makes the workload of that name. Errors of wrong use wrap workload.ErrUsage.
func New(name string, p workload.Params) (workload.Workload, error) {
	var names []string
	for _, e := range List() {
		if e.Name == name {
			return e.New(name, p)
		}
		names = append(names, e.Name)
	}
	return nil, fmt.Errorf("%w: no workload %q; there are %s", workload.ErrUsage, name, strings.Join(names, ", "))
}
