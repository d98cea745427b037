package mysql

import (
	"maps"
	"slices"
	"strings"
)

// ErrantTransactions compares which transactions a replica and its source have had, as gtid_executed of MySQL or gtid_binlog_state of MariaDB tells. object is which
// of the two it is, extra what only the replica has; numbers are the transactions of it, where each is known. Sets of nothing, or that cannot be compared, have
// nothing extra.
func ErrantTransactions(replica, source string) (object, extra string, numbers []GTID, err error) {
	r, err := ParseGTIDSet(replica)
	if err != nil {
		return "", "", nil, err
	}
	s, err := ParseGTIDSet(source)
	if err != nil || r.Empty() || s.Empty() || r.ByDomain() != s.ByDomain() {
		return "", "", nil, err
	}
	if r.ByDomain() { // of each domain and server the last one: more than a GTIDSet keeps
		return "gtid_binlog_state", strings.Join(aheadBySource(replica, source), ","), nil, nil
	}
	only := r.Subtract(s)
	return "gtid_executed", only.String(), only.each(maxListed), nil
}

// maxListed is how many transactions of a set are listed one by one.
const maxListed = 1000

// each lists the transactions of a MySQL set, the first of them.
func (s GTIDSet) each(most int) (list []GTID) {
	for _, source := range slices.Sorted(maps.Keys(s.sources)) {
		for _, v := range s.sources[source] {
			for n := v.from; n <= v.to; n++ {
				if len(list) == most {
					return list
				}
				list = append(list, GTID{Source: source, Number: n})
			}
		}
	}
	return list
}

// aheadBySource are the transactions of a gtid_binlog_state, one of each domain and server, that are beyond those of another.
func aheadBySource(state, other string) (list []string) {
	have := map[[2]uint32]uint64{}
	for part := range strings.SplitSeq(other, ",") {
		if g, err := ParseGTID(part); err == nil {
			have[[2]uint32{g.Domain, g.Server}] = g.Number
		}
	}
	for part := range strings.SplitSeq(state, ",") {
		if g, err := ParseGTID(part); err == nil && g.Number > have[[2]uint32{g.Domain, g.Server}] {
			list = append(list, g.String())
		}
	}
	return list
}

// ExecutedTransactions is the variable that tells which transactions the server's binary log has had, each server's own apart; "" if there is none.
func (s Server) ExecutedTransactions() string {
	if s.MariaDB() {
		return "gtid_binlog_state"
	}
	return "gtid_executed"
}

// ByDomain reports whether GTIDs are by domain, so that a server does not keep which transactions it has had, but the last of each domain and server.
func (s Server) ByDomain() bool { return s.MariaDB() }

// EmptyTransactions are statements that let a server have transactions as empty ones; "" if it cannot, or there are more than most. Source: MySQL manual,
// "Skipping Transactions".
func (s Server) EmptyTransactions(list []GTID, most int) string {
	if s.MariaDB() || len(list) == 0 || len(list) > most {
		return ""
	}
	var b strings.Builder
	for _, g := range list {
		b.WriteString("SET GTID_NEXT = " + Literal(g.String()) + "; BEGIN; COMMIT; ")
	}
	return b.String() + "SET GTID_NEXT = 'AUTOMATIC'"
}
