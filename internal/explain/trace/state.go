package trace

import (
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
)

// Instrument is one row of performance_schema.setup_instruments.
type Instrument struct {
	Name    string `json:"name"`
	Enabled string `json:"enabled"` // YES or NO
	Timed   string `json:"timed"`   // YES, NO, or "" where an instrument has no time
}

// State is what performance_schema records at the moment.
type State struct {
	consumers     map[string]bool
	instruments   []Instrument
	threads       []threadState
	sizes         map[string]int // of the rings, by variable
	sqlTextLength int
}

type threadState struct {
	ID           uint64 `json:"id"`
	Instrumented string `json:"instrumented"`
	History      string `json:"history"`
}

// ReadState reads the set-up tables that matter to a trace.
func ReadState(ctx context.Context, c *mysql.Conn) (*State, error) {
	st := &State{consumers: map[string]bool{}, sizes: map[string]int{}}
	for _, q := range []struct {
		sql string
		row func(row []sqldriver.Value)
	}{
		{"SELECT /* risso: what is recorded */ NAME, ENABLED FROM performance_schema.setup_consumers", func(r []sqldriver.Value) {
			st.consumers[mysql.Text(r[0])] = mysql.Text(r[1]) == "YES"
		}},
		{"SELECT /* risso: what is measured */ NAME, ENABLED, TIMED FROM performance_schema.setup_instruments WHERE NAME NOT LIKE 'memory/%'", func(r []sqldriver.Value) {
			st.instruments = append(st.instruments, Instrument{mysql.Text(r[0]), mysql.Text(r[1]), mysql.Text(r[2])})
		}},
		{"SELECT /* risso: which connections are recorded */ THREAD_ID, INSTRUMENTED, HISTORY FROM performance_schema.threads WHERE PROCESSLIST_ID IS NULL OR PROCESSLIST_ID <> CONNECTION_ID()", func(r []sqldriver.Value) {
			st.threads = append(st.threads, threadState{unsigned(r[0]), mysql.Text(r[1]), mysql.Text(r[2])})
		}},
		{"SHOW /* risso: sizes of the rings of events */ GLOBAL VARIABLES LIKE 'performance_schema%'", func(r []sqldriver.Value) {
			name, n := mysql.Text(r[0]), int(signed(r[1]))
			if name == "performance_schema_max_sql_text_length" {
				st.sqlTextLength = n
			}
			st.sizes[name] = n
		}},
	} {
		if err := ask(ctx, c, q.sql, func(r []sqldriver.Value) error { q.row(r); return nil }); err != nil {
			return nil, needs(c, "read the set-up of performance_schema", err)
		}
	}
	slices.SortFunc(st.instruments, func(a, b Instrument) int { return strings.Compare(a.Name, b.Name) })
	return st, nil
}

// needs wraps an error with what was tried and, if a privilege is missing, the GRANT for it.
func needs(c *mysql.Conn, what string, err error) error {
	if mysql.ClassOf(err) == mysql.ClassPrivilege {
		return fmt.Errorf("%s: %w; GRANT SELECT, UPDATE ON performance_schema.* TO %s", what, err, c.Server.QuotedAccount())
	}
	return fmt.Errorf("%s: %w", what, err)
}

// groups are the instruments that a trace lives on, as people call them and as LIKE patterns. wait/io/socket is left out: it
// repeats what idle and the stages say. wait/synch is on request only: every connection pays for it at every mutex.
var groups = []struct {
	what, pattern string
	synch         bool
}{
	{"statements and stored-program instructions", "statement/%", false},
	{"stages", "stage/%", false},
	{"transactions", "transaction", false},
	{"idle times", "idle", false},
	{"reads and writes of tables", "wait/io/table/%", false},
	{"table and metadata locks", "wait/lock/%", false},
	{"reads and writes of files", "wait/io/file/%", false},
	{"mutexes and other latches", "wait/synch/%", true},
}

func matches(pattern, name string) bool {
	if p, ok := strings.CutSuffix(pattern, "%"); ok {
		return strings.HasPrefix(name, p)
	}
	return name == pattern
}

// allStatements reports whether every statement of a connection is recorded.
func (st *State) allStatements(who Connection) bool {
	if !who.Instrumented || !st.consumers["global_instrumentation"] || !st.consumers["thread_instrumentation"] || !st.consumers["events_statements_current"] {
		return false
	}
	return !slices.ContainsFunc(st.instruments, func(i Instrument) bool {
		return strings.HasPrefix(i.Name, "statement/") && i.Enabled != "YES"
	})
}

// off says in words what is not recorded of a connection.
func (st *State) off(who Connection) []string {
	out := []string{}
	for _, name := range []string{"global_instrumentation", "thread_instrumentation"} {
		if !st.consumers[name] {
			out = append(out, "the consumer "+name+" is off: nothing is recorded for any connection")
		}
	}
	if !who.Instrumented {
		out = append(out, "the connection is not instrumented (threads.INSTRUMENTED = NO, from setup_actors)")
	} else if !who.History {
		out = append(out, "no history is kept for the connection (threads.HISTORY = NO, from setup_actors)")
	}
	for _, kind := range []string{"statements", "stages", "transactions", "waits"} {
		long, short, current := st.consumers["events_"+kind+"_history_long"], st.consumers["events_"+kind+"_history"], st.consumers["events_"+kind+"_current"]
		switch {
		case !current:
			out = append(out, kind+" (the consumer events_"+kind+"_current is off)")
		case !long && !short:
			out = append(out, kind+" but the latest (the consumers events_"+kind+"_history and …_history_long are off)")
		case !long:
			out = append(out, fmt.Sprintf("%s but the last %d at a time (the consumer events_%s_history_long is off)", kind, st.sizes["performance_schema_events_"+kind+"_history_size"], kind))
		}
	}
	for _, g := range groups {
		on, all := 0, 0
		for _, i := range st.instruments {
			if matches(g.pattern, i.Name) {
				all++
				if i.Enabled == "YES" && i.Timed != "NO" {
					on++
				}
			}
		}
		if !g.synch && on < all {
			out = append(out, fmt.Sprintf("%s in part: %d of %s (%s) %s off", g.what, all-on, digits.Counted(all, "instrument"), g.pattern, areIs(uint64(all-on))))
		}
	}
	return out
}

// joinWords joins sentences' parts with semicolons.
func joinWords(parts []string) string { return strings.Join(parts, "; ") }

// quote makes an SQL string. What is not plain is written in hexadecimal, which no sql_mode reads otherwise.
func quote(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_/$%:. -", r)
	}
	if strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return "'" + s + "'"
	}
	return fmt.Sprintf("_utf8mb4 X'%X'", s)
}
