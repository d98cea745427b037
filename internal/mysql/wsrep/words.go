package wsrep

import (
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
)

// The shares of time for which flow control pauses writes at which it is spoken of: now, and on average since the counters began, in which
// quiet hours hide a busy one.
const (
	PausedWarning  = 0.1
	PausedCritical = 0.5
	PausedSoFar    = 0.05
)

// PausedSeverity judges the share of time for which writes are paused now; false: it is not worth a word.
func PausedSeverity(share float64) (fleet.Severity, bool) {
	switch {
	case share >= PausedCritical:
		return fleet.SeverityCritical, true
	case share >= PausedWarning:
		return fleet.SeverityWarning, true
	}
	return 0, false
}

// PausedWords say it.
func PausedWords(share float64) string {
	return "Galera flow control pauses writes " + digits.Percent(share) + " of the time"
}

// NonPrimaryWords say that a member lost the majority, with the status that it tells.
func NonPrimaryWords(status string) string {
	return "the Galera member has lost the majority and refuses statements (" + status + ")"
}

// Bootstrap makes a member that lost the majority the whole cluster.
const Bootstrap = "SET GLOBAL wsrep_provider_options = 'pc.bootstrap=YES'"

// BootstrapWho says who tells whether that may be done, for what sees one member only: the others may go on without it.
const BootstrapWho = "risso galera bootstrap says which member may be made the whole cluster, if any"

// InconsistentWords say that a member was put out.
const InconsistentWords = "the Galera member left the group, whose other members found that its data differ from theirs, and refuses statements"

// BootstrapOnly says when that may be done.
const BootstrapOnly = "the remedy makes it the whole cluster: only if the others do not run, and on one member only, the one with the highest wsrep_last_committed"

// Rejects reports whether a value of wsrep_reject_queries refuses the statements of clients. wsrep_ready stays on meanwhile, and SHOW, SET and SELECT without
// a table are answered.
func Rejects(value string) bool { return value != "" && !strings.EqualFold(value, "NONE") }

// AcceptQueries lets clients in again.
const AcceptQueries = "SET GLOBAL wsrep_reject_queries = NONE"

// RejectsWords say that a member does so.
func RejectsWords(value string) string {
	return "the Galera member refuses the statements of clients: wsrep_reject_queries is " + value
}

// UnsyncedWords say that a member does not take part, with its state.
func UnsyncedWords(state string) string { return "the Galera member is not synced (" + state + ")" }

// MoreAppliers are the threads to apply with in place of one.
const MoreAppliers = "4"

// Setting is a variable with which a cluster does not work well. Sources: Galera documentation, "MySQL Configuration"; MariaDB documentation,
// "Configuring MariaDB Galera Cluster".
type Setting struct {
	Names    []string                // the first that the server has counts
	Bad      func(value string) bool // the value is wrong
	Want     string                  // what to set; "": no value is right for everybody
	Start    bool                    // it can only be set when the server is started
	Sessions bool                    // sessions that are open keep their own
	Severity fleet.Severity
	What     string // follows "binlog_format is MIXED: "
	Risk     string // what can happen, in a few words
	Means    string // why it matters
	Doubt    string // what it depends on; "": certain
}

// Settings are all of them.
func Settings() []Setting {
	is := func(want string) func(string) bool {
		return func(v string) bool { return strings.EqualFold(v, want) }
	}
	isNot := func(want string) func(string) bool {
		return func(v string) bool { return !strings.EqualFold(v, want) }
	}
	return []Setting{
		{Names: []string{"binlog_format"}, Bad: isNot("ROW"), Want: "ROW", Severity: fleet.SeverityCritical, What: "Galera replicates rows only", Means: "members differ", Risk: "members differ"},
		{Names: []string{"innodb_autoinc_lock_mode"}, Bad: isNot("2"), Want: "2", Start: true, Severity: fleet.SeverityWarning, What: "AUTO_INCREMENT takes a lock of the table", Means: "members wait for each other for ever", Risk: "members hang"},
		{Names: []string{"default_storage_engine"}, Bad: isNot("InnoDB"), Want: "InnoDB", Sessions: true, Severity: fleet.SeverityWarning, What: "new tables are not replicated", Means: "Galera replicates InnoDB only", Risk: "members differ"},
		{Names: []string{"wsrep_osu_method", "wsrep_OSU_method"}, Bad: is("RSU"), Want: "TOI", Severity: fleet.SeverityWarning, What: "changes of tables stay on this member", Means: "members have tables that differ until all were changed", Risk: "members differ"},
		{Names: []string{"wsrep_slave_threads", "wsrep_applier_threads"}, Bad: is("1"), Want: MoreAppliers, Severity: fleet.SeverityInfo, What: "the member applies with one thread", Means: "the whole cluster waits for the slowest member", Risk: "writes of all members pause"},
		{Names: []string{"wsrep_certify_nonPK", "wsrep_certify_nonpk"}, Bad: is("OFF"), Want: "ON", Severity: fleet.SeverityWarning, What: "rows without a primary key are not certified", Means: "two members that write the same row differ", Risk: "members differ"},
		{Names: []string{"wsrep_sync_wait"}, Bad: above(0), Severity: fleet.SeverityInfo, What: "reads wait until all that was written elsewhere is here", Means: "each read waits for the slowest moment of the cluster", Doubt: "it may be needed"},
	}
}

func above(limit float64) func(string) bool {
	return func(v string) bool { x, err := strconv.ParseFloat(v, 64); return err == nil && x > limit }
}
