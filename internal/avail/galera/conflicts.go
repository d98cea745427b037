package galera

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/pattern"
	"github.com/rissodb/risso/internal/sqltext"
)

// HotTable is a table behind conflicts.
type HotTable struct {
	Table     string   `json:"table"`     // without its schema if the statements do not name it
	Conflicts int      `json:"conflicts"` // how many are about it
	Classes   []string `json:"classes"`   // of the statements that lost, most often first
	Rows      []HotRow `json:"rows"`      // the statements that lost most often, as they were: each is about the same rows
}

// HotRow is a statement that lost more than once, as it was written: its rows are hot.
type HotRow struct {
	Statement string `json:"statement"`
	Lost      int    `json:"lost"` // how often it did
}

// Conflicts are what an error log says of transactions that lost against one of another member, with wsrep_log_conflicts = ON.
type Conflicts struct {
	Logged        int        `json:"logged"`        // how many there are in it
	Aborted       int        `json:"aborted"`       // of them, rolled back before their COMMIT, because another's change was applied
	Certification int        `json:"certification"` // of them, refused at COMMIT
	Tables        []HotTable `json:"tables"`
	Keys          int        `json:"keys"`    // rows, or index entries, by their hash: with cert.log_conflicts = YES
	ByKey         int        `json:"by_key"`  // conflicts that tell them
	Hottest       int        `json:"hottest"` // of those, about the one row that has the most
}

var (
	logConflict = pattern.Lazy(`(?:WSREP:|\[(?:WSREP|Galera)\]) cluster conflict due to (high priority abort|certification failure) for threads`)
	logKey      = pattern.Lazy(`(?:WSREP:|\[(?:WSREP|Galera)\]) \S+ trx conflict for key (\([^)]*\)[0-9a-f]+(?: [0-9a-f]+)*)`)
)

// How much is told of each table.
const (
	mostTables  = 10
	mostClasses = 3
	mostRows    = 3
	mostShown   = 160 // characters of a statement
)

// conflict is one of the log: the statements that won and lost.
type conflict struct{ won, lost string }

// ReadConflicts finds them in the lines of an error log. What is logged of a transaction is the statement that it was just running, which need not be
// the one that changed the row.
func ReadConflicts(lines []string) Conflicts {
	var c Conflicts
	keys := map[string]int{}
	tables := map[string]*hot{}
	var now *conflict
	part := ""
	end := func() {
		if now != nil {
			now.into(tables)
		}
		now, part = nil, ""
	}
	for _, line := range lines {
		line = strings.Replace(strings.TrimRight(line, "\r\n"), "[WSREP] ", "WSREP: ", 1) // of Percona XtraDB Cluster 8.0
		if m := logKey().FindStringSubmatch(line); m != nil {
			keys[m[1]]++
			c.ByKey++
			continue
		}
		m := logConflict().FindStringSubmatch(line)
		text := strings.TrimSpace(line)
		switch {
		case m != nil:
			end()
			now = &conflict{}
			c.Logged++
			if m[1] == "certification failure" {
				c.Certification++
			} else {
				c.Aborted++
			}
		case now == nil:
		case strings.Contains(line, "WSREP: Winning thread:"):
			part = "won"
		case strings.Contains(line, "WSREP: Victim thread:"):
			part = "lost"
		case strings.Contains(line, "WSREP: context:"):
			end()
		case strings.HasPrefix(text, "SQL: ") && part == "won":
			now.won = clean(text[len("SQL: "):])
		case strings.HasPrefix(text, "SQL: ") && part == "lost":
			now.lost = clean(text[len("SQL: "):])
		}
	}
	end()
	c.Keys = len(keys)
	for _, n := range keys {
		c.Hottest = max(c.Hottest, n)
	}
	c.Tables = ranked(tables)
	return c
}

// clean is a statement of the log without the bytes that servers write after it: a winner's is not ended, and its event's head follows.
func clean(text string) string {
	for i, r := range text {
		if r == '\uFFFD' || r < ' ' && r != '\t' {
			text = text[:i]
			break
		}
	}
	if text = strings.TrimSpace(text); text == "(null)" || text == "NULL" {
		return ""
	}
	return text
}

// hot gathers a table's.
type hot struct {
	conflicts     int
	classes, rows map[string]int
}

// into counts a conflict for the tables of the statement that lost, and if that names none, of the one that won.
func (c *conflict) into(tables map[string]*hot) {
	names := tablesOf(c.lost)
	lost := c.lost
	if len(names) == 0 {
		names, lost = tablesOf(c.won), ""
	}
	for _, n := range names {
		h := tables[n]
		if h == nil {
			h = &hot{classes: map[string]int{}, rows: map[string]int{}}
			tables[n] = h
		}
		h.conflicts++
		if lost != "" {
			h.classes[sqltext.Fingerprint(lost)]++
			h.rows[oneline.Of(lost)]++
		}
	}
}

func tablesOf(statement string) (names []string) {
	for _, t := range sqltext.Tables([]byte(statement)) {
		name := t.Name
		if t.Schema != "" {
			name = t.Schema + "." + t.Name
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func ranked(tables map[string]*hot) (list []HotTable) {
	for name, h := range tables {
		t := HotTable{Table: name, Conflicts: h.conflicts}
		for _, class := range most(h.classes, mostClasses, 1) {
			t.Classes = append(t.Classes, oneline.Cut(class, mostShown))
		}
		for _, row := range most(h.rows, mostRows, 2) {
			t.Rows = append(t.Rows, HotRow{oneline.Cut(row, mostShown), h.rows[row]})
		}
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b HotTable) int {
		return cmp.Or(b.Conflicts-a.Conflicts, cmp.Compare(a.Table, b.Table))
	})
	return list[:min(len(list), mostTables)]
}

// most are the texts with the highest counts, of those that have at least so many.
func most(counts map[string]int, limit, least int) []string {
	list := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(counts[b]-counts[a], cmp.Compare(a, b)) })
	list = slices.DeleteFunc(list, func(s string) bool { return counts[s] < least })
	return list[:min(len(list), limit)]
}
