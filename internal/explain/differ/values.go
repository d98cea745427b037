package differ

import (
	"math/big"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/mysql/define/alike"
	"github.com/rissodb/risso/internal/mysql/read"
)

// alias are older names of variables and the newer ones. MySQL 8.0.26 renamed replication, 8.0.3 transactions; sources: MySQL manual,
// "Server System Variables", "Replication and Binary Logging Options".
var alias = map[string]string{
	"tx_isolation": "transaction_isolation", "tx_read_only": "transaction_read_only", "log_slave_updates": "log_replica_updates",
	"master_verify_checksum": "source_verify_checksum", "sync_master_info": "sync_source_info", "slave_parallel_threads": "replica_parallel_workers",
	"slave_parallel_workers": "replica_parallel_workers", "init_slave": "init_replica", "rpl_stop_slave_timeout": "rpl_stop_replica_timeout",
	"log_slow_slave_statements": "log_slow_replica_statements", "skip_slave_start": "skip_replica_start",
}

// canonical is a variable's newest name.
func canonical(name string) string {
	if n, ok := alias[name]; ok {
		return n
	}
	if rest, ok := strings.CutPrefix(name, "slave_"); ok {
		return "replica_" + rest
	}
	return name
}

// sets are variables whose value is a set of words, in any order.
var sets = map[string]bool{"sql_mode": true, "optimizer_switch": true, "old_mode": true, "log_slow_filter": true, "log_slow_verbosity": true, "tls_version": true,
	"admin_tls_version": true, "mysqlx_tls_version": true, "binlog_row_value_options": true, "replica_type_conversions": true, "optimizer_trace": true,
	"optimizer_trace_features": true, "myisam_recover_options": true, "aria_recover_options": true, "log_output": true, "innodb_monitor_enable": true,
	"note_verbosity": true, "slave_transaction_retry_errors": true, "replica_transaction_retry_errors": true, "replica_skip_errors": true}

// words are the members of a set.
func words(value string) []string {
	list := strings.FieldsFunc(strings.TrimSpace(value), func(r rune) bool { return r == ',' || r == ' ' })
	slices.Sort(list)
	return slices.Compact(list)
}

// truths are the ways in which servers write a switch.
var truths = map[string]string{"on": "on", "1": "on", "yes": "on", "true": "on", "off": "off", "0": "off", "no": "off", "false": "off"}

// sameValue reports whether two values of a variable mean the same: ON and 1, 10 and 10.000000, 16M and 16777216, words of a set in another
// order, utf8 and utf8mb3, a folder with and without a slash at its end.
func sameValue(name, a, b string) bool {
	if a == b || strings.EqualFold(a, b) {
		return true
	}
	if sets[canonical(name)] {
		return slices.Equal(words(strings.ToUpper(a)), words(strings.ToUpper(b)))
	}
	if x, y := truths[strings.ToLower(a)], truths[strings.ToLower(b)]; x != "" && x == y {
		return true
	}
	if x, ok := amount(a); ok {
		y, ok := amount(b)
		return ok && x.Cmp(y) == 0
	}
	if strings.HasPrefix(a, "/") && strings.TrimRight(a, "/") == strings.TrimRight(b, "/") {
		return true
	}
	return (strings.Contains(name, "char") || strings.Contains(name, "collation")) && alike.CharsetName(a) == alike.CharsetName(b)
}

// amount reads a number, also with K, M, G or T at its end, as option files have it.
func amount(s string) (*big.Rat, bool) {
	factor := int64(1)
	if n := len(s); n > 1 {
		if i := strings.IndexByte("KMGT", s[n-1]&^0x20); i >= 0 && s[n-1] >= '0' {
			factor = 1 << (10 * (i + 1))
			s = s[:n-1]
		}
	}
	if s == "" || strings.Trim(s, "0123456789.-") != "" {
		return nil, false
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		return nil, false
	}
	return r.Mul(r, new(big.Rat).SetInt64(factor)), true
}

// flags says how two sets of words differ: which are only in one, and switches (name=on) that are set otherwise.
func flags(a, b string) (onlyA, onlyB []string) {
	x, y := words(a), words(b)
	has := func(list []string, w string) bool {
		return slices.ContainsFunc(list, func(o string) bool { return strings.EqualFold(o, w) })
	}
	for _, w := range x {
		if !has(y, w) {
			onlyA = append(onlyA, w)
		}
	}
	for _, w := range y {
		if !has(x, w) {
			onlyB = append(onlyB, w)
		}
	}
	return onlyA, onlyB
}

// named reports whether a variable only names a server, its files or its place in a cluster.
func named(name string) bool {
	return read.IdentityVariable(name) || ownNames[name] || strings.HasSuffix(name, "_dir") || strings.HasSuffix(name, "_file") || strings.HasSuffix(name, "_basename") || strings.HasSuffix(name, "_port") || strings.HasSuffix(name, "_socket")
}

// ownNames are names and paths besides those that read.IdentityVariable knows.
var ownNames = map[string]bool{"report_user": true, "wsrep_node_incoming_address": true, "wsrep_sst_receive_address": true, "innodb_data_file_path": false, "innodb_temp_data_file_path": false,
	"server_uid": true, "group_replication_local_address": true, "group_replication_group_seeds": true, "slave_load_tmpdir": true, "mysqlx_bind_address": true, "wsrep_provider": true, "lc_messages_dir": true,
	"version_ssl_library": false, "feedback_server_uid": true, "feedback_url": true, "innodb_version": true, "version": true, "version_comment": true, "version_compile_machine": true, "version_compile_os": true,
	"version_compile_zlib": true, "version_malloc_library": true, "version_source_revision": true, "protocol_version": true, "build_id": true}

// SameValue reports whether two values of a variable mean the same.
func SameValue(name, a, b string) bool { return sameValue(name, a, b) }

// Meaning is why a variable matters, and how much.
func Meaning(name string) (why string, rank Rank) {
	m := meaningOf(name)
	return m.why, m.rank
}

// Canonical is a variable's newest name.
func Canonical(name string) string { return canonical(name) }

// Known reports whether it is known what a variable does.
func Known(name string) bool { _, known := meanings[canonical(name)]; return known }

// WasSet reports whether a variable was set on a server, as far as that is known: 5.7 does not tell, and there a value that is not the
// compiled-in one was set. known is false where nobody knows.
func WasSet(d *Description, name string) (set, known bool) {
	if d.Changed != nil {
		_, set = d.Changed[name]
		return set, true
	}
	value, ok := oldDefaults[name]
	if !ok {
		return false, false
	}
	return !sameValue(name, value, d.Variables[name]), true
}
