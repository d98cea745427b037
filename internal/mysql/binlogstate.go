package mysql

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Origin is where transactions of MariaDB begin: a server, writing to a domain.
type Origin struct{ Domain, Server uint32 }

// BinlogState is gtid_binlog_state of MariaDB: the last number of each origin that a binary log has had. Numbers of a domain are shared by its servers,
// so that an origin's may have gaps. The methods change nothing.
type BinlogState map[Origin]uint64

// ParseBinlogState reads one, or a position, which is one with a single origin for each domain. "" is the empty one.
func ParseBinlogState(text string) (BinlogState, error) {
	s := BinlogState{}
	for part := range strings.SplitSeq(text, ",") {
		if part = trimmed(part); part == "" {
			continue
		}
		g, err := parseMaria(part)
		if err != nil {
			return nil, err
		}
		o := Origin{g.Domain, g.Server}
		s[o] = max(s[o], g.Number)
	}
	return s, nil
}

// Several reports whether a domain has more than one server, as no position has.
func (s BinlogState) Several() bool {
	seen := map[uint32]bool{}
	for o := range s {
		if seen[o.Domain] {
			return true
		}
		seen[o.Domain] = true
	}
	return false
}

// Subtract are the origins of which s has more than o, each with its last number.
func (s BinlogState) Subtract(o BinlogState) BinlogState {
	out := BinlogState{}
	for k, n := range s {
		if have, ok := o[k]; !ok || n > have {
			out[k] = n
		}
	}
	return out
}

// Union has the farther number of each origin.
func (s BinlogState) Union(o BinlogState) BinlogState {
	out := maps.Clone(s)
	if out == nil {
		out = BinlogState{}
	}
	for k, n := range o {
		out[k] = max(out[k], n)
	}
	return out
}

// Intersect has of each origin that both have the number that both have reached.
func (s BinlogState) Intersect(o BinlogState) BinlogState {
	out := BinlogState{}
	for k, n := range s {
		if have, ok := o[k]; ok {
			out[k] = min(n, have)
		}
	}
	return out
}

// UpTo is what a state was when the log had come to a position, if it was read then or a little later: of a domain's last writer that is known, of another one
// if it wrote nothing since.
func (s BinlogState) UpTo(position BinlogState) BinlogState {
	out := maps.Clone(position)
	for o, n := range s {
		if _, last := position[o]; !last && n < position.Farthest(o.Domain) {
			out[o] = n
		}
	}
	return out
}

// Contains reports whether a transaction has been in the binary log, if there is one of this number at all.
func (s BinlogState) Contains(g GTID) bool {
	n, ok := s[Origin{g.Domain, g.Server}]
	return ok && g.Number <= n
}

// Farthest is the greatest number of a domain; 0 if it has none.
func (s BinlogState) Farthest(domain uint32) (n uint64) {
	for o, have := range s {
		if o.Domain == domain {
			n = max(n, have)
		}
	}
	return n
}

// List are the last transactions by origin, sorted by domain and number: servers take the last one of a domain for the one that was logged last.
// Source: sql/sql_repl.cc, contains_all_slave_gtid.
func (s BinlogState) List() []GTID {
	list := make([]GTID, 0, len(s))
	for o, n := range s {
		list = append(list, GTID{Domain: o.Domain, Server: o.Server, Number: n})
	}
	slices.SortFunc(list, func(a, b GTID) int {
		return cmp.Or(cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.Number, b.Number), cmp.Compare(a.Server, b.Server))
	})
	return list
}

// String is the state as the server reads it.
func (s BinlogState) String() string { return stateText(s.List()) }

func stateText(list []GTID) string {
	parts := make([]string, 0, len(list))
	for _, g := range list {
		parts = append(parts, fmt.Sprintf("%d-%d-%d", g.Domain, g.Server, g.Number)) // also 0-0-0
	}
	return strings.Join(parts, ",")
}

// OldestLog is which transactions came before the oldest binary log that a MariaDB has, of each origin the last one; nil: it does not tell.
// Source: MariaDB documentation, "Gtid_list event".
func OldestLog(ctx context.Context, c *Conn) (BinlogState, error) {
	if !c.Server.MariaDB() {
		return nil, nil
	}
	logs, err := Logs(ctx, c)
	if err != nil || len(logs) == 0 {
		return nil, err
	}
	const heads = 4 // events, an encrypted log's one more among them
	rows, err := c.Maps(ctx, fmt.Sprintf("SHOW /* risso: what came before the oldest log? */ BINLOG EVENTS IN %s LIMIT %d", Literal(logs[0].Name), heads))
	for _, row := range rows {
		if row["Event_type"] == "Gtid_list" {
			return ParseBinlogState(strings.Trim(row["Info"], "[]"))
		}
	}
	return nil, err
}
