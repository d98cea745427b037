package watch

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/mysql/read"
)

// filter picks sessions.
type filter struct {
	text                      string // as it was typed
	user, host, schema, state string
	command                   string
	seconds                   float64  // at least so long
	words                     []string // all of them in the statement
}

// filterHelp says how filters are written.
const filterHelp = "user=app host=web db=shop command=Query state=lock time>5 and words of the statement"

// parseFilter reads a filter.
func parseFilter(s string) (f filter, err error) {
	f.text = strings.TrimSpace(s)
	for _, word := range strings.Fields(f.text) {
		if rest, ok := strings.CutPrefix(word, "time>"); ok {
			if f.seconds, err = strconv.ParseFloat(strings.TrimSuffix(strings.TrimPrefix(rest, "="), "s"), 64); err != nil {
				return filter{}, fmt.Errorf("%s: write it as time>5, in seconds", word)
			}
			continue
		}
		name, value, is := strings.Cut(word, "=")
		to := map[string]*string{"user": &f.user, "host": &f.host, "db": &f.schema, "schema": &f.schema, "command": &f.command, "state": &f.state}[strings.ToLower(name)]
		if is && to != nil {
			*to = strings.ToLower(value)
			continue
		}
		f.words = append(f.words, strings.ToLower(word))
	}
	return f, nil
}

func (f filter) takes(p *read.Process) bool {
	for _, c := range []struct{ want, has string }{{f.user, p.User}, {f.host, p.Host}, {f.schema, p.Schema}, {f.command, p.Command}, {f.state, p.State}} {
		if c.want != "" && !strings.Contains(strings.ToLower(c.has), c.want) {
			return false
		}
	}
	text := strings.ToLower(p.Statement)
	return p.Seconds >= f.seconds && !slices.ContainsFunc(f.words, func(w string) bool { return !strings.Contains(text, w) })
}

// orders are what the process list can be sorted by.
var orders = []struct {
	name    string
	compare func(a, b read.Process) int
}{
	{"time", func(a, b read.Process) int { return cmp.Compare(b.Seconds, a.Seconds) }},
	{"transaction", func(a, b read.Process) int { return cmp.Compare(openFor(b), openFor(a)) }},
	{"changed rows", func(a, b read.Process) int { return cmp.Compare(changedBy(b), changedBy(a)) }},
	{"user", func(a, b read.Process) int { return cmp.Compare(a.User, b.User) }},
	{"host", func(a, b read.Process) int { return cmp.Compare(a.Host, b.Host) }},
	{"db", func(a, b read.Process) int { return cmp.Compare(a.Schema, b.Schema) }},
	{"id", func(a, b read.Process) int { return cmp.Compare(a.ID, b.ID) }},
}

func openFor(p read.Process) float64 {
	if p.Transaction == nil {
		return -1
	}
	return p.Transaction.Seconds
}

func changedBy(p read.Process) int64 {
	if p.Transaction == nil {
		return -1
	}
	return p.Transaction.RowsModified
}

// idle reports whether a session only waits for its client, or is a thread of the server that is always there: without a
// transaction and without anybody who waits for it.
func (m *moment) idle(p *read.Process) bool {
	if p.Transaction != nil {
		return false
	}
	if _, blocks := m.blocker(p.ID); blocks {
		return false
	}
	return p.Command == "Sleep" || p.Command == "Daemon" || strings.HasPrefix(p.Command, "Binlog Dump") || strings.HasPrefix(p.Command, "Slave_") || p.User == "system user" || p.User == "event_scheduler"
}

// shown are the sessions that are to be seen, in their order.
func (u *ui) shown() []read.Process {
	var list []read.Process
	for i := range u.m.processes {
		p := &u.m.processes[i]
		if u.filter.takes(p) && (u.all || !p.Own && !u.m.idle(p)) {
			list = append(list, *p)
		}
	}
	slices.SortStableFunc(list, func(a, b read.Process) int {
		n := cmp.Or(orders[u.order].compare(a, b), cmp.Compare(a.ID, b.ID))
		if u.reverse {
			n = -n
		}
		return n
	})
	return list
}
