package repoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sqltext"
)

// mostEvents is how many events of a relay log are looked at.
const mostEvents = 5000

// partial reports whether listed events are nothing, or the beginning of one transaction without its end: receiving stopped in its midst.
func partial(rows []map[string]string) bool {
	begun := false
	for i, row := range rows {
		kind, info := row["Event_type"], row["Info"]
		switch {
		case begins(kind):
			if i > 0 && begun {
				return false
			}
			begun = begun || strings.HasPrefix(info, "BEGIN")
		case kind == "Query":
			text := statement(info)
			if !begun && text != "BEGIN" || text == "COMMIT" || text == "ROLLBACK" || strings.HasPrefix(text, "XA ") {
				return false
			}
			begun = true
		case begun && (kind == "Table_map" || strings.Contains(kind, "_rows") || slices.Contains([]string{"Rows_query", "Intvar", "RAND", "User var", "Begin_load_query", "Append_block"}, kind)):
		default:
			return false
		}
	}
	return true
}

// begins reports whether an event of a kind begins a transaction, or a statement that is one.
func begins(kind string) bool {
	return strings.Contains(strings.ToLower(kind), "gtid") && kind != "Gtid_list" && kind != "Previous_gtids"
}

// statement is the text of a listed Query event without the schema that it is for.
func statement(info string) string {
	if _, text, ok := strings.Cut(info, "; "); ok && strings.HasPrefix(info, "use ") {
		return text
	}
	return info
}

// errNotThere says that the relay log does not show the transaction.
var errNotThere = errors.New("the relay log does not show it")

// would reads in the relay log what a transaction would have changed: that of the GTID, or the first one from where the channel applies next.
func would(ctx context.Context, s *server, ch read.ReplicaChannel, gtid string) (named string, list []string, err error) {
	if ch.RelayLog == "" {
		return "", nil, errNotThere
	}
	rows, err := s.c.Maps(ctx, s.words(ch.Name).relayEvents(ch.RelayLog, ch.RelayPos))
	if err != nil {
		return "", nil, fmt.Errorf("read the relay log: %w", err)
	}
	return changes(rows, gtid)
}

// changes tells which transaction the first of listed events is, or that of the GTID, and what it changes. Values of statements are left out.
func changes(rows []map[string]string, gtid string) (named string, list []string, err error) {
	in, count := false, map[string]int{}
	table := ""
	add := func(what string) {
		if count[what]++; count[what] == 1 {
			list = append(list, what)
		}
	}
	for _, row := range rows {
		kind, info := row["Event_type"], row["Info"]
		switch {
		case begins(kind):
			if in {
				return named, counted(list, count), nil
			}
			if in = gtid == "" || strings.Contains(info, gtid); in {
				named = nameIn(info)
			}
		case !in && !(gtid == "" && kind == "Query"):
		case kind == "Xid":
			return named, counted(list, count), nil
		case kind == "Table_map":
			if _, name, ok := strings.Cut(info, "("); ok {
				table = strings.TrimSuffix(name, ")")
			}
		case kind == "Annotate_rows" || kind == "Rows_query": // the rows themselves follow
		case strings.Contains(kind, "_rows"):
			word, _, _ := strings.Cut(kind, "_")
			add(map[string]string{"Write": "INSERT into ", "Update": "UPDATE of ", "Delete": "DELETE from "}[word] + table)
		case kind == "Query" || kind == "Execute_load_query":
			switch text := statement(info); text {
			case "BEGIN":
				in = true
			case "COMMIT", "ROLLBACK":
				return named, counted(list, count), nil
			default:
				add(string(sqltext.Redact(nil, []byte(text))))
				in = true
			}
		}
	}
	if len(list) == 0 {
		return "", nil, errNotThere
	}
	return named, append(counted(list, count), "and more, whose end is not in the part of the relay log that was read"), nil
}

// nameIn is the GTID in what is listed of the event that begins a transaction: BEGIN GTID 0-1-5 of MariaDB, or SET @@SESSION.GTID_NEXT= 'uuid:5'.
func nameIn(info string) string {
	if _, after, ok := strings.Cut(info, "'"); ok {
		name, _, _ := strings.Cut(after, "'")
		return name
	}
	_, after, _ := strings.Cut(info, "GTID ")
	name, _, _ := strings.Cut(after, " ")
	return name
}

// counted says how often there is each.
func counted(list []string, count map[string]int) []string {
	out := slices.Clone(list)
	for i, what := range out {
		if n := count[what]; n > 1 {
			out[i] = what + ", " + digits.Counted(n, "event")
		}
	}
	return out
}
