package mysql

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Errant is what a server has had and others have not. The zero value is nothing.
type Errant struct {
	Object string  // the variable that tells what a server has had: ExecutedTransactions
	Set    GTIDSet // MySQL: these transactions
	// MariaDB: of each origin that goes beyond what others have of it the last number, and theirs. Which numbers between are in use, only binary logs tell.
	State, Theirs BinlogState
}

// ErrantTransactions compares which transactions a replica and its source, or several, have had, as ExecutedTransactions tells it. Sets of nothing, or that
// cannot be compared, have nothing extra.
func ErrantTransactions(replica string, sources ...string) (Errant, error) {
	r, err := ParseGTIDSet(replica)
	if err != nil || r.Empty() {
		return Errant{}, err
	}
	if r.ByDomain() { // of each domain and server the last one: more than a GTIDSet keeps
		return errantByDomain(replica, sources)
	}
	theirs := GTIDSet{}
	for _, text := range sources {
		s, err := ParseGTIDSet(text)
		if err != nil {
			return Errant{}, err
		}
		theirs = theirs.Union(s)
	}
	if theirs.Empty() || theirs.ByDomain() {
		return Errant{}, nil
	}
	return Errant{Object: "gtid_executed", Set: r.Subtract(theirs)}, nil
}

func errantByDomain(replica string, sources []string) (Errant, error) {
	r, err := ParseBinlogState(replica)
	theirs := BinlogState{}
	for _, text := range sources {
		if strings.Contains(text, ":") {
			return Errant{}, nil
		}
		var s BinlogState
		if err == nil {
			s, err = ParseBinlogState(text)
		}
		theirs = theirs.Union(s)
	}
	if err != nil || len(theirs) == 0 {
		return Errant{}, err
	}
	return Errant{Object: "gtid_binlog_state", State: r.Subtract(theirs), Theirs: theirs}, nil
}

// AllErrant is all that a server has had, as others that never wrote anything have none of it.
func AllErrant(has string) (Errant, error) {
	set, err := ParseGTIDSet(has)
	if err != nil || !set.ByDomain() {
		return Errant{Object: "gtid_executed", Set: set}, err
	}
	state, err := ParseBinlogState(has)
	return Errant{Object: "gtid_binlog_state", State: state, Theirs: BinlogState{}}, err
}

// ParseErrant reads one from what String and Behind wrote of it.
func ParseErrant(text, behind string) (Errant, error) {
	e, err := AllErrant(text)
	if err != nil || len(e.State) == 0 {
		return e, err
	}
	e.Theirs, err = ParseBinlogState(behind)
	return e, err
}

// Beyond collects transactions that others have not, who have had what their ExecutedTransactions tells.
func Beyond(list []GTID, others string) (Errant, error) {
	theirs, err := ParseGTIDSet(others)
	e := Errant{Object: "gtid_executed"}
	if err == nil && theirs.ByDomain() {
		e.Object, e.State = "gtid_binlog_state", BinlogState{}
		e.Theirs, err = ParseBinlogState(others)
	}
	for _, g := range list {
		switch origin := (Origin{Domain: g.Domain, Server: g.Server}); {
		case g.ByDomain() != theirs.ByDomain():
		case g.ByDomain() && !e.Theirs.Contains(g):
			e.State[origin] = max(e.State[origin], g.Number)
		case !g.ByDomain() && !theirs.Contains(g):
			e.Set.Add(g)
		}
	}
	return e, err
}

// Behind is behind which transactions those of MariaDB begin: of each origin the last that others have. "" where they have none, and of MySQL's.
func (e Errant) Behind() string {
	behind := BinlogState{}
	for o := range e.State {
		if n, ok := e.Theirs[o]; ok {
			behind[o] = n
		}
	}
	return behind.String()
}

// Empty reports whether there is nothing.
func (e Errant) Empty() bool { return e.Set.Empty() && len(e.State) == 0 }

// String is the set, or of each origin the last transaction.
func (e Errant) String() string {
	if len(e.State) > 0 {
		return e.State.String()
	}
	return e.Set.String()
}

// Contains reports whether a transaction is part of it.
func (e Errant) Contains(g GTID) bool {
	if g.ByDomain() {
		return e.State.Contains(g) && !e.Theirs.Contains(g)
	}
	return e.Set.Contains(g)
}

// Equal reports whether both are the same transactions.
func (e Errant) Equal(o Errant) bool {
	if !e.Set.Equal(o.Set) || !maps.Equal(e.State, o.State) {
		return false
	}
	for origin := range e.State { // and begin behind the same ones
		if e.Theirs[origin] != o.Theirs[origin] {
			return false
		}
	}
	return true
}

// Split parts it by where its transactions come from: those of a MySQL source, its tags included, or of a MariaDB server.
func (e Errant) Split(from func(uuid string, server uint32) bool) (yes, no Errant) {
	yes, no = Errant{Object: e.Object, Theirs: e.Theirs, State: BinlogState{}}, Errant{Object: e.Object, Theirs: e.Theirs, State: BinlogState{}}
	for source, list := range e.Set.sources {
		uuid, _, _ := strings.Cut(source, ":")
		if from(uuid, 0) {
			yes.Set.put(source, list)
		} else {
			no.Set.put(source, list)
		}
	}
	for o, n := range e.State {
		if from("", o.Server) {
			yes.State[o] = n
		} else {
			no.State[o] = n
		}
	}
	return yes, no
}

// Forgotten leaves out what others may have had before their logs began, as those of servers that were filled with a copy: origins of which their logs have nothing
// at all, while their position as a replica is beyond. What a server with the given server_id wrote itself stays, as it may never have left it.
func (e Errant) Forgotten(position, server string) Errant {
	reached, err := ParseBinlogState(position)
	if err != nil || len(e.State) == 0 {
		return e
	}
	rest := e
	rest.State = BinlogState{}
	for o, n := range e.State {
		if _, known := e.Theirs[o]; known || n > reached.Farthest(o.Domain) || fmt.Sprint(o.Server) == server {
			rest.State[o] = n
		}
	}
	return rest
}

// Servers are the UUIDs of MySQL's sources, sorted.
func (s GTIDSet) Servers() (list []string) {
	for source := range s.sources {
		uuid, _, _ := strings.Cut(source, ":")
		list = append(list, uuid)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Numbers are the transactions one by one, at most so many; none of MariaDB's, of which only binary logs tell them.
func (e Errant) Numbers(most int) []GTID { return e.Set.each(most) }

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

// Rest is what is left of what a server has had, as ExecutedTransactions tells it, when something of it never was; position is where it stands as a replica.
// Of MariaDB's state servers take the last origin of a domain for the one that was logged last (sql/sql_repl.cc, contains_all_slave_gtid): where that one is
// left out, the replica's position is.
func (e Errant) Rest(executed, position string) (string, error) {
	set, err := ParseGTIDSet(executed)
	if err != nil {
		return "", err
	}
	if !set.ByDomain() {
		return set.Subtract(e.Set).String(), nil
	}
	state, err := ParseBinlogState(executed)
	stands, perr := ParseBinlogState(position)
	if err = errors.Join(err, perr); err != nil {
		return "", err
	}
	last := map[uint32]GTID{} // of each domain, as the server's order says
	for part := range strings.SplitSeq(executed, ",") {
		if g, err := parseMaria(strings.TrimSpace(part)); err == nil {
			last[g.Domain] = g
		}
	}
	list := e.without(state).List()
	end := func(g GTID) int { // what comes last in its domain
		origin := Origin{g.Domain, g.Server}
		if was := last[g.Domain]; !e.Contains(was) {
			return bit(was.Server == g.Server)
		}
		return bit(stands[origin] == g.Number)
	}
	slices.SortStableFunc(list, func(a, b GTID) int { return cmp.Or(cmp.Compare(a.Domain, b.Domain), cmp.Compare(end(a), end(b))) })
	return stateText(list), nil
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// without is what is left of a gtid_binlog_state when something of it never was.
func (e Errant) without(state BinlogState) BinlogState {
	out := maps.Clone(state)
	for o := range e.State {
		if n, ok := e.Theirs[o]; ok {
			out[o] = n
		} else {
			delete(out, o)
		}
	}
	return out
}

// ParseOwned reads gtid_owned of MySQL, uuid:number#thread:…: transactions that sessions are carrying out, or have written to the binary log and not yet made
// visible, as while they wait for a semi-synchronous replica.
func ParseOwned(text string) (GTIDSet, error) {
	var b strings.Builder
	inside := false
	for _, c := range text {
		if c == '#' {
			inside = true
		} else if inside && (c < '0' || c > '9') {
			inside = false
		}
		if !inside {
			b.WriteRune(c)
		}
	}
	return ParseGTIDSet(b.String())
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

// endOfEmpty lets a session number its transactions as usual again.
const endOfEmpty = "SET GTID_NEXT = 'AUTOMATIC'"

// EmptyTransaction are the statements that let a MySQL have one transaction as an empty one. After the last of them comes EndOfEmpty.
func (s Server) EmptyTransaction(g GTID) []string {
	return []string{"SET GTID_NEXT = " + Literal(g.String()), "BEGIN", "COMMIT"}
}

// EndOfEmpty lets the session number its transactions as usual again.
func (s Server) EndOfEmpty() string { return endOfEmpty }

// OwnedQuery asks which transaction the session holds: the one that it has set GTID_NEXT to, or none if that was committed before, so that what the session
// does is skipped without an error. While it is held, the server gives its number to nobody else. Source: MySQL manual, "GTID Life Cycle".
func (s Server) OwnedQuery() string {
	return "SELECT /* risso: is this transaction ours? */ @@SESSION.gtid_owned"
}

// ForgetTransactions are statements that make a server, while it does not replicate, forget all that its binary log had but the rest, with the log; its position
// as a replica stays. They come after LockWrites, and the first of them cannot be undone. Sources: MariaDB documentation, "gtid_binlog_state" (it can be set only
// while the log is empty), "gtid_slave_pos" (to set it writes a table); MySQL manual, "gtid_purged".
func (s Server) ForgetTransactions(rest, position string) []string {
	if s.MariaDB() {
		return []string{"RESET MASTER", s.RememberTransactions(rest), "UNLOCK TABLES", "SET GLOBAL gtid_slave_pos = " + Literal(position)}
	}
	reset := "RESET MASTER"
	if s.atLeast(80200) {
		reset = "RESET BINARY LOGS AND GTIDS"
	}
	return []string{reset, s.RememberTransactions(rest), "UNLOCK TABLES"}
}

// ForgetPrivileges are what ForgetTransactions, and stopping and starting replication, need: one of each list. Without the last of them a server would have forgotten
// everything. Sources: MariaDB's GRANT, "Global Privileges"; MySQL manual, "gtid_purged".
func (s Server) ForgetPrivileges(rest string) [][]string {
	switch set, _ := ParseGTIDSet(rest); {
	case s.MariaDB() && s.Number >= 110000:
		return [][]string{{"RELOAD"}, {"REPLICATION SLAVE ADMIN"}, {"REPLICATION MASTER ADMIN"}}
	case s.MariaDB() && s.Number >= 100502:
		return [][]string{{"RELOAD"}, {"REPLICATION SLAVE ADMIN", "SUPER"}, {"REPLICATION MASTER ADMIN", "SUPER"}}
	case s.MariaDB(), !s.atLeast(80001):
		return [][]string{{"RELOAD"}, {"SUPER"}}
	case slices.ContainsFunc(slices.Collect(maps.Keys(set.sources)), func(source string) bool { return strings.Contains(source, ":") }):
		return [][]string{{"RELOAD"}, {"REPLICATION_SLAVE_ADMIN", "SUPER"}, {"SYSTEM_VARIABLES_ADMIN", "SUPER"}, {"TRANSACTION_GTID_TAG"}}
	}
	return [][]string{{"RELOAD"}, {"REPLICATION_SLAVE_ADMIN", "SUPER"}, {"SYSTEM_VARIABLES_ADMIN", "SUPER"}}
}

// RememberTransactions is the statement that says what a server has had whose binary log has just begun anew.
func (s Server) RememberTransactions(rest string) string {
	if s.MariaDB() {
		return "SET GLOBAL gtid_binlog_state = " + Literal(rest)
	}
	return "SET GLOBAL gtid_purged = " + Literal(rest)
}

// HasHad reports whether a server that has had some transactions has had all of others, and whether it has had none at all. MariaDB's are compared by nothing else
// than that: whatever its log has had since it began anew goes on from there.
func (s Server) HasHad(executed, rest string) (all, none bool, err error) {
	have, err := ParseGTIDSet(executed)
	want, werr := ParseGTIDSet(rest)
	return s.MariaDB() && executed != "" || have.ContainsSet(want), executed == "", errors.Join(err, werr)
}

// LockWrites are statements after which nobody writes until UNLOCK TABLES, or the end of the session; they wait for others at most that long.
func (s Server) LockWrites(wait time.Duration) []string {
	return []string{s.BoundLocks(wait), "FLUSH TABLES WITH READ LOCK"}
}

// LineageQuery asks a server what transactions it has had and has in its logs, as columns executed, position, purged, owned, mode, strict, uuid, server_id,
// log_updates, read_only and log_bin.
func (s Server) LineageQuery() string {
	if s.MariaDB() {
		return `SELECT /* risso: which transactions? */ @@GLOBAL.gtid_binlog_state AS executed, @@GLOBAL.gtid_slave_pos AS position, '' AS purged, '' AS owned, 'ON' AS mode,
  @@GLOBAL.gtid_strict_mode AS strict, '' AS uuid, @@GLOBAL.server_id AS server_id, @@GLOBAL.log_slave_updates AS log_updates, @@GLOBAL.read_only AS read_only, @@GLOBAL.log_bin AS log_bin`
	}
	return `SELECT /* risso: which transactions? */ @@GLOBAL.gtid_executed AS executed, '' AS position, @@GLOBAL.gtid_purged AS purged, @@GLOBAL.gtid_owned AS owned, @@GLOBAL.gtid_mode AS mode,
  '1' AS strict, @@GLOBAL.server_uuid AS uuid, @@GLOBAL.server_id AS server_id, @@GLOBAL.log_slave_updates AS log_updates, @@GLOBAL.read_only AS read_only, @@GLOBAL.log_bin AS log_bin`
}

// Count is how many transactions it is, at least one if there are any. Of MariaDB's it is what the numbers of each domain say.
func (e Errant) Count() uint64 {
	if len(e.State) == 0 {
		return e.Set.Count()
	}
	last, before := map[uint32]uint64{}, map[uint32]uint64{}
	for o, n := range e.State {
		last[o.Domain] = max(last[o.Domain], n)
	}
	for o, n := range e.Theirs {
		before[o.Domain] = max(before[o.Domain], n)
	}
	n := uint64(0)
	for domain, number := range last {
		n += max(1, number-min(number, before[domain]))
	}
	return n
}
