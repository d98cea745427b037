package filter

import (
	"strings"

	"github.com/rissodb/risso/internal/explain/digest"
	"github.com/rissodb/risso/internal/pattern"
	"github.com/rissodb/risso/internal/sqltext"
)

// kind is what a value is.
type kind uint8

const (
	kindAny kind = iota // an @name: what the other side makes of it
	kindBool
	kindNumber
	kindSeconds
	kindText
	kindTime
)

func (k kind) String() string {
	return [...]string{"an attribute", "a yes or no", "a number", "a number of seconds", "text", "a time"}[k]
}

func (k kind) numeric() bool { return k == kindNumber || k == kindSeconds }

// fixed are the names that every event has, with how each is read.
var fixed = map[string]node{
	"query":      {kind: kindText, text: func(e *digest.Event) ([]byte, bool) { return e.Query, true }},
	"db":         {kind: kindText, text: func(e *digest.Event) ([]byte, bool) { return e.DB, true }},
	"user":       {kind: kindText, text: func(e *digest.Event) ([]byte, bool) { return e.User, true }},
	"host":       {kind: kindText, text: func(e *digest.Event) ([]byte, bool) { return e.Host, true }},
	"ip":         {kind: kindText, text: func(e *digest.Event) ([]byte, bool) { return e.IP, true }},
	"explain":    {kind: kindText, text: func(e *digest.Event) ([]byte, bool) { return e.Explain, true }},
	"thread":     {kind: kindNumber, num: func(e *digest.Event) (float64, bool) { return float64(e.Thread), true }},
	"query_time": {kind: kindSeconds, num: func(e *digest.Event) (float64, bool) { return e.QueryTime, !e.NoQueryTime }},
	"lock_time":  {kind: kindSeconds, num: func(e *digest.Event) (float64, bool) { return e.LockTime, !e.NoLockTime }},
	"time":       {kind: kindTime, num: func(e *digest.Event) (float64, bool) { return float64(e.Time), e.Time != 0 }},
	"length":     {kind: kindNumber, num: func(e *digest.Event) (float64, bool) { return float64(len(e.Query)), true }},
}

// other names of the same things: the logs' and pt-query-digest's.
var synonyms = map[string]string{
	"schema": "db", "database": "db", "thread_id": "thread", "id": "thread", "arg": "query", "ts": "time", "timestamp": "time", "client": "host",
}

// verbNode reads the statement's verb; an unknown statement has "".
var verbNode = node{kind: kindText, verb: func(e *digest.Event) string { return sqltext.Verb(e.Query) }}

// known are the attributes that slow logs of MySQL, Percona Server and MariaDB hold, as they spell them, and those
// that Risso's other sources have.
var known = func() map[string]knownName {
	lists := []struct {
		kind  kind
		names string
	}{
		{kindBool, `Full_scan Full_join Tmp_table Tmp_table_on_disk Filesort Filesort_on_disk Merge_passes_on_disk QC_Hit QC_hit Priority_queue Cached`},
		{kindSeconds, `InnoDB_IO_r_wait InnoDB_rec_lock_wait InnoDB_queue_wait Pages_read_time Pages_prefetched_time Engine_time Read_time CPU_time Commit_delay_time`},
		{kindNumber, `Log_bytes Rows_sent Rows_examined Rows_affected Rows_read Bytes_sent Bytes_received Tmp_tables Tmp_disk_tables Tmp_table_sizes Merge_passes
			InnoDB_IO_r_ops InnoDB_IO_r_bytes InnoDB_pages_distinct Errno Last_errno Killed Read_first Read_last Read_key Read_next Read_prev
			Read_rnd Read_rnd_next Sort_merge_passes Sort_range_count Sort_rows Sort_scan_count Created_tmp_disk_tables Created_tmp_tables Count_hit_tmp_table_size
			Pages_accessed Pages_updated Pages_read Pages_prefetched Old_rows_read Undo_rows_read Undo_records_read Rows Bytes Warnings Errors server_id Statements No_index_used No_good_index_used
			Query_length Engine_old_rows_read Tickets Log_slow_rate_limit`},
		{kindText, `InnoDB_trx_id Log_slow_rate_type Start End Stored_routine`},
	}
	out := map[string]knownName{}
	for _, l := range lists {
		for _, n := range strings.Fields(l.names) {
			out[strings.ToLower(n)] = knownName{n, l.kind}
		}
	}
	return out
}()

type knownName struct {
	name string
	kind kind
}

// milliseconds are the times that MariaDB writes in milliseconds next to others in seconds.
var milliseconds = map[string]bool{"engine_time": true, "pages_read_time": true}

// resolve returns the node of a name, or nothing if no server writes such an attribute.
func (p *parser) resolve(name string) (node, bool) {
	lower := strings.ToLower(name)
	if s, ok := synonyms[lower]; ok {
		lower = s
	}
	if n, ok := fixed[lower]; ok {
		return n, true
	}
	if lower == "verb" {
		return verbNode, true
	}
	a, ok := known[lower]
	if !ok {
		return node{}, false
	}
	return p.attribute(a.name, a.kind), true
}

// attribute is the node of an attribute that is looked up in each event.
func (p *parser) attribute(name string, k kind) node {
	key := strings.ToLower(name)
	a := p.byName[key]
	if a == nil {
		a = &attribute{name: name, kind: k, factor: 1}
		if milliseconds[key] {
			a.factor = 1e-3
		}
		p.byName[key] = a
		p.order = append(p.order, key)
	}
	n := node{kind: k, attr: a}
	if k == kindBool || k == kindAny {
		n.bool = a.truth
	}
	if k.numeric() || k == kindAny {
		n.num = a.number
	}
	if k == kindText || k == kindAny {
		n.text = a.content
	}
	if k == kindBool {
		n.flag = a.flag
	}
	return n
}

// truth is whether a flag is Yes, a number is not 0, a text is not empty.
func (a *attribute) truth(e *digest.Event) bool {
	x := a.find(e)
	return x != nil && (x.Num != 0 || x.Kind == digest.AttrText && len(x.Text) > 0)
}

// flag is a flag's state and whether the event has it.
func (a *attribute) flag(e *digest.Event) (yes, ok bool) {
	x := a.find(e)
	return x != nil && x.Num != 0, x != nil
}

func (a *attribute) number(e *digest.Event) (float64, bool) {
	x := a.find(e)
	if x == nil || x.Kind == digest.AttrText {
		return 0, false
	}
	return x.Num * a.factor, true
}

func (a *attribute) content(e *digest.Event) ([]byte, bool) {
	x := a.find(e)
	if x == nil {
		return nil, false
	}
	return x.Text, true
}

// nearest is the known name that a wrong one most likely meant, or "".
func nearest(name string) string {
	lower := strings.ToLower(name)
	best, at := "", 3+len(name)/6
	try := func(shown string) {
		if d := pattern.Distance(lower, strings.ToLower(shown), at); d < at || d == at && shown < best {
			best, at = shown, d
		}
	}
	for n := range fixed {
		try(n)
	}
	for _, n := range []string{"Query_time", "Lock_time", "verb"} {
		try(n)
	}
	for _, a := range known {
		try(a.name)
	}
	return best
}
