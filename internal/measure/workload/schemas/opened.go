package schemas

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
)

// The server's counters of opened tables. Source: "Server Status Variables" in the manuals of MySQL and MariaDB.
const (
	openedTables  = "Opened_tables"
	cacheHits     = "Table_open_cache_hits"
	cacheMisses   = "Table_open_cache_misses"
	cacheOverflow = "Table_open_cache_overflows"
)

// openings are what the server says about opening tables, from the begin of a run to its end.
type openings struct {
	mu            sync.Mutex
	begun         bool
	before, grown map[string]int64 // nil: not known
	cache         int64            // table_open_cache
}

// readOpenings asks the server. It is no statement of the run.
func readOpenings(s drive.Session) (map[string]int64, error) {
	counts := *s.Counts()
	defer func() { *s.Counts() = counts }()
	rows, err := workload.Ask(s, "SHOW /* risso: tables that were opened */ GLOBAL STATUS WHERE Variable_name IN ('"+
		strings.Join([]string{openedTables, cacheHits, cacheMisses, cacheOverflow}, "', '")+"')")
	if err != nil {
		return nil, fmt.Errorf("read how many tables were opened: %w", err)
	}
	out := map[string]int64{}
	for _, r := range rows {
		if n, err := strconv.ParseInt(string(r[1].Text), 10, 64); err == nil {
			out[string(r[0].Text)] = n
		}
	}
	return out, nil
}

// begin takes the counters before the run. After a reconnect the server may be another one: then nothing is reported.
func (o *openings) begin(s drive.Session) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.begun {
		o.before = nil
		return nil
	}
	o.begun = true
	rows, err := workload.Ask(s, "SELECT /* risso: room for open tables */ @@table_open_cache")
	if err != nil {
		return fmt.Errorf("read table_open_cache: %w", err)
	}
	o.cache = rows[0][0].Int
	o.before, err = readOpenings(s)
	return err
}

// end takes them after it.
func (o *openings) end(s drive.Session) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.before == nil {
		return nil
	}
	after, err := readOpenings(s)
	if err != nil {
		return err
	}
	o.grown = map[string]int64{}
	for name, n := range after {
		o.grown[name] = n - o.before[name]
	}
	return nil
}

// lookout is the session that looks at the counters.
type lookout struct{ *client }

// Finish looks at them for the last time.
func (l lookout) Finish() error { return l.opened.end(l.session) }

// Counters tell by how much the server's counters of opened tables grew.
func (w *schemas) Counters() map[string]int64 {
	w.opened.mu.Lock()
	defer w.opened.mu.Unlock()
	return w.opened.grown
}

// Notes say it in words.
func (w *schemas) Notes() []string {
	n := w.Counters()
	if n == nil {
		return nil
	}
	text := fmt.Sprintf("In the run and its warm-up the server opened %s (%s); table_open_cache is %d", digits.Counted(n[openedTables], "table"), openedTables, w.opened.cache)
	if hits, ok := n[cacheHits]; ok {
		text += fmt.Sprintf(": %s, %s, %s", digits.Counted(hits, "hit"), digits.Plural(n[cacheMisses], "miss", "misses"), digits.Counted(n[cacheOverflow], "overflow"))
	}
	return []string{text + ". Other clients of the server count, too."}
}
