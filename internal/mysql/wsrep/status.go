// Package wsrep is what a member of a Galera cluster says of itself: its state, its view of the cluster, its options; and which of it is wrong, by
// the limits and in the words that the page, the advice and risso galera share. Only Read asks a server.
package wsrep

import (
	"context"
	"math"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// Values of wsrep_local_state.
const (
	Joining      = 1 // it takes the state of another
	Synced       = 4 // it takes part
	Inconsistent = 5 // the others found that its data differ from theirs
)

// states are the numbers of wsrep_local_state. Source: Galera documentation, "Galera Status Variables".
var states = map[int]string{0: "Undefined", Joining: "Joining", 2: "Donor/Desynced", 3: "Joined", Synced: "Synced", Inconsistent: "Error", 6: "Max"}

// State is a wsrep_local_state in the server's words; "" for a number that none has.
func State(number int) string { return states[number] }

// Undefined is the UUID of a server that was never in a cluster.
const Undefined = "00000000-0000-0000-0000-000000000000"

// Status is what a member says. Numbers that it does not say are -1.
type Status struct {
	Name          string            `json:"name"`           // wsrep_node_name
	Cluster       string            `json:"cluster"`        // wsrep_cluster_name
	Address       string            `json:"address"`        // wsrep_node_incoming_address, as it is set
	ID            string            `json:"id"`             // its UUID in the group, of this start: wsrep_gcomm_uuid
	On            bool              `json:"on"`             // it has a provider, and wsrep_on
	Ready         bool              `json:"ready"`          // it takes statements
	Connected     bool              `json:"connected"`      // to a group
	ClusterStatus string            `json:"cluster_status"` // Primary, non-Primary, Disconnected
	Size          int               `json:"size"`           // members that it sees
	Weight        int               `json:"weight"`         // votes of all members that it sees: wsrep_cluster_weight
	View          int64             `json:"view"`           // wsrep_cluster_conf_id
	ClusterUUID   string            `json:"cluster_uuid"`   // of the history of the component: wsrep_cluster_state_uuid
	StateUUID     string            `json:"state_uuid"`     // of the history of its own data: wsrep_local_state_uuid
	State         int               `json:"state"`          // wsrep_local_state: 4 is synced
	StateComment  string            `json:"state_comment"`  // that in the server's words
	Desynced      int               `json:"desynced"`       // how often it was asked to stay behind: wsrep_desync_count
	Committed     int64             `json:"committed"`      // sequence number of its last transaction
	CachedFrom    int64             `json:"cached_from"`    // the first sequence number in its gcache; -1 too if there is none
	RecvQueue     float64           `json:"recv_queue"`     // write sets that wait to be applied
	PausedNS      float64           `json:"paused_ns"`      // how long flow control paused it since its counters began
	Paused        float64           `json:"paused"`         // that as a share of the time
	PausesSent    float64           `json:"pauses_sent"`    // how often it asked the others to pause
	Pausing       bool              `json:"pausing"`        // it asks them now: wsrep_flow_control_requested
	CertFailures  float64           `json:"cert_failures"`  // its transactions that lost against an earlier one of another member at COMMIT
	BFAborts      float64           `json:"bf_aborts"`      // its transactions that were rolled back for one of another member
	Bytes         float64           `json:"bytes"`          // of write sets, sent and received, since its counters began
	Peers         []string          `json:"peers"`          // wsrep_incoming_addresses: of all members; of an arbitrator ""
	Members       []Peer            `json:"members"`        // of the last primary component that it was in; none if the account may not read them
	Options       map[string]string `json:"options"`        // of the provider, those that say nothing secret
	Variables     map[string]string `json:"variables"`      // wsrep's and those that matter to it, without secrets
	Tables        []string          `json:"tables"`         // without a primary key, or not of InnoDB, as far as the account sees
	ErrorLog      string            `json:"error_log"`      // its file, if it writes one
	Datadir       string            `json:"datadir"`        // its data directory
	Version       string            `json:"version"`        // of the server
	FreeSST       string            `json:"free_sst"`       // the method of a full copy that does not block its donor
}

// Peer is a member as another one knows it.
type Peer struct {
	ID      string `json:"id"`      // its UUID in the group
	Name    string `json:"name"`    // wsrep_node_name
	Address string `json:"address"` // wsrep_incoming_addresses
}

// Primary reports whether the member is in the primary component.
func (s *Status) Primary() bool { return strings.EqualFold(s.ClusterStatus, "Primary") }

// Votes are the member's own: pc.weight.
func (s *Status) Votes() int {
	if n, err := strconv.Atoi(s.Options["pc.weight"]); err == nil {
		return n
	}
	return 1
}

// Option is a number among the provider's options.
func (s *Status) Option(name string) (float64, bool) {
	v, err := strconv.ParseFloat(s.Options[name], 64)
	return v, err == nil
}

// GroupAddresses are the addresses of group communication that wsrep_cluster_address names, and Group the member's own among them: a host, with a
// port where it is not the usual one.
func (s *Status) GroupAddresses() (list []string) {
	text, _, _ := strings.Cut(strings.TrimPrefix(s.Variables["wsrep_cluster_address"], "gcomm://"), "?")
	for a := range strings.SplitSeq(text, ",") {
		if a = groupAddress(a); a != "" {
			list = append(list, a)
		}
	}
	return list
}

// Group is the member's own address of group communication.
func (s *Status) Group() string { return groupAddress(s.Variables["wsrep_node_address"]) }

// groupAddress leaves out the usual port.
func groupAddress(a string) string { return strings.TrimSuffix(strings.TrimSpace(a), ":4567") }

// freeSST is the method of a full copy that lets the donor be written to meanwhile.
func freeSST(s mysql.Server) string {
	if s.MariaDB() {
		return "mariabackup"
	}
	return "xtrabackup-v2"
}

// QueueLimit is at how many waiting write sets the member asks the others to pause. Source: Galera's gcs.cpp, _set_fc_limits.
func (s *Status) QueueLimit() float64 {
	limit, ok := s.Option("gcs.fc_limit")
	if !ok {
		return -1
	}
	if on(s.Options["gcs.fc_single_primary"]) || on(s.Options["gcs.fc_master_slave"]) {
		return limit
	}
	return math.Floor(limit*math.Sqrt(float64(max(s.Size, 1))) + 0.5)
}

// Appliers is the variable that says with how many threads the member applies, and its value.
func (s *Status) Appliers() (name, value string) {
	for _, name := range []string{"wsrep_applier_threads", "wsrep_slave_threads"} {
		if v, ok := s.Variables[name]; ok {
			return name, v
		}
	}
	return "wsrep_slave_threads", ""
}

// on reports whether an option, or a variable, is set.
func on(v string) bool {
	switch strings.ToLower(v) {
	case "yes", "on", "true", "1":
		return true
	}
	return false
}

// plainOptions begin the names of the provider's options that are told: those of sockets name keys and may have passwords.
var plainOptions = []string{"pc.", "gcs.", "gcache.", "evs.", "gmcast.segment", "cert.", "repl."}

// Options reads wsrep_provider_options.
func Options(text string) map[string]string {
	m := map[string]string{}
	for part := range strings.SplitSeq(text, ";") {
		name, value, _ := strings.Cut(part, "=")
		name = strings.TrimSpace(name)
		for _, p := range plainOptions {
			if strings.HasPrefix(name, p) {
				m[name] = strings.TrimSpace(value)
			}
		}
	}
	return m
}

// Size reads a size as the provider's options have them: 128M. Source: Galera's gu_config, which takes K, M, G and T of 1,024.
func Size(text string) (bytes float64, ok bool) {
	unit := 1.0
	if n := len(text); n > 0 {
		if i := strings.IndexByte("KMGT", text[n-1]&^0x20); i >= 0 {
			unit, text = math.Pow(1024, float64(i+1)), text[:n-1]
		}
	}
	v, err := strconv.ParseFloat(text, 64)
	return v * unit, err == nil
}

// shownVariables are the variables of Status besides wsrep's.
var shownVariables = map[string]bool{"innodb_autoinc_lock_mode": true, "binlog_format": true, "default_storage_engine": true, "innodb_flush_log_at_trx_commit": true}

// secretVariables are those of wsrep that may have a password: of Options, those that are plain are told.
var secretVariables = map[string]bool{"wsrep_provider_options": true, "wsrep_sst_auth": true, "wsrep_notify_cmd": true}

// Parse makes a Status of SHOW GLOBAL STATUS and SHOW GLOBAL VARIABLES, whose names are in lower case.
func Parse(status, variables map[string]string) Status {
	number := func(name string) float64 {
		v, err := strconv.ParseFloat(status[name], 64)
		if err != nil {
			return -1
		}
		return v
	}
	whole := func(name string) int64 {
		v, err := strconv.ParseInt(status[name], 10, 64)
		if err != nil { // an empty gcache says 18446744073709551615
			return -1
		}
		return v
	}
	s := Status{
		Name: variables["wsrep_node_name"], Cluster: variables["wsrep_cluster_name"], Address: variables["wsrep_node_incoming_address"], ID: status["wsrep_gcomm_uuid"],
		Ready: on(status["wsrep_ready"]), Connected: on(status["wsrep_connected"]), ClusterStatus: status["wsrep_cluster_status"],
		Size: int(whole("wsrep_cluster_size")), Weight: int(whole("wsrep_cluster_weight")), View: whole("wsrep_cluster_conf_id"),
		ClusterUUID: status["wsrep_cluster_state_uuid"], StateUUID: status["wsrep_local_state_uuid"],
		State: int(whole("wsrep_local_state")), StateComment: status["wsrep_local_state_comment"], Desynced: int(whole("wsrep_desync_count")),
		Committed: whole("wsrep_last_committed"), CachedFrom: whole("wsrep_local_cached_downto"), RecvQueue: number("wsrep_local_recv_queue"),
		PausedNS: number("wsrep_flow_control_paused_ns"), Paused: number("wsrep_flow_control_paused"), PausesSent: number("wsrep_flow_control_sent"),
		Pausing: on(status["wsrep_flow_control_requested"]), CertFailures: number("wsrep_local_cert_failures"), BFAborts: number("wsrep_local_bf_aborts"),
		Bytes: max(number("wsrep_replicated_bytes"), 0) + max(number("wsrep_received_bytes"), 0), Options: Options(variables["wsrep_provider_options"]),
		Variables: map[string]string{}, Datadir: variables["datadir"],
	}
	provider := variables["wsrep_provider"]
	s.On = provider != "" && provider != "none" && !strings.EqualFold(variables["wsrep_on"], "OFF")
	if s.StateComment == "" {
		s.StateComment = State(s.State)
	}
	if peers := status["wsrep_incoming_addresses"]; peers != "" {
		for p := range strings.SplitSeq(peers, ",") {
			s.Peers = append(s.Peers, strings.TrimSpace(p))
		}
	}
	for name, v := range variables {
		if (strings.HasPrefix(name, "wsrep_") || shownVariables[name]) && !secretVariables[name] {
			s.Variables[name] = v
		}
	}
	if address, _, ok := strings.Cut(s.Variables["wsrep_cluster_address"], "?"); ok { // the provider's options may follow
		s.Variables["wsrep_cluster_address"] = address
	}
	return s
}

// Read asks a server.
func Read(ctx context.Context, c *mysql.Conn) (Status, error) {
	pairs := func(statement string) (map[string]string, error) {
		rows, err := c.Maps(ctx, statement)
		if err != nil {
			return nil, err
		}
		m := make(map[string]string, len(rows))
		for _, r := range rows {
			m[strings.ToLower(r["Variable_name"])] = r["Value"]
		}
		return m, nil
	}
	status, err := pairs("SHOW /* risso: this member of the cluster */ GLOBAL STATUS LIKE 'wsrep%'")
	if err != nil {
		return Status{}, err
	}
	variables, err := pairs("SHOW /* risso: this member's settings */ GLOBAL VARIABLES WHERE Variable_name LIKE 'wsrep%' OR Variable_name IN " +
		"('innodb_autoinc_lock_mode', 'binlog_format', 'default_storage_engine', 'innodb_flush_log_at_trx_commit', 'log_error', 'datadir')")
	if err != nil {
		return Status{}, err
	}
	s := Parse(status, variables)
	s.ErrorLog, s.Version, s.FreeSST = variables["log_error"], c.Server.Version, freeSST(c.Server)
	return s, nil
}

// ReadMore asks a server for what an account may be refused: the members of the view, and tables that Galera does not replicate well. It returns
// what it did not learn.
func (s *Status) ReadMore(ctx context.Context, c *mysql.Conn) (unknown []fleet.Trouble) {
	if v := s.Variables["wsrep_reject_queries"]; Rejects(v) {
		return []fleet.Trouble{{What: "the names of members that do not answer, and tables without a primary key", Why: RejectsWords(v), Remedy: AcceptQueries}}
	}
	rows, err := c.Maps(ctx, "SELECT /* risso: the members of the cluster */ node_uuid, node_name, node_incoming_address FROM mysql.wsrep_cluster_members ORDER BY node_name, node_uuid")
	if err != nil {
		unknown = append(unknown, fleet.Trouble{What: "the names of members that do not answer", Why: err.Error(), Remedy: "GRANT SELECT ON mysql.wsrep_cluster_members TO the account"})
	} else {
		for _, r := range rows {
			s.Members = append(s.Members, Peer{strings.ToLower(r["node_uuid"]), r["node_name"], r["node_incoming_address"]})
		}
	}
	if !s.Primary() { // it refuses the statement
		return unknown
	}
	rows, err = c.Maps(ctx, "SELECT /* risso: tables that a cluster does not replicate, or without a primary key */ t.TABLE_SCHEMA AS s, t.TABLE_NAME AS n FROM information_schema.TABLES t "+
		"LEFT JOIN information_schema.STATISTICS k ON k.TABLE_SCHEMA = t.TABLE_SCHEMA AND k.TABLE_NAME = t.TABLE_NAME AND k.INDEX_NAME = 'PRIMARY' AND k.SEQ_IN_INDEX = 1 "+
		"WHERE t.TABLE_TYPE = 'BASE TABLE' AND t.TABLE_SCHEMA NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys') AND (k.INDEX_NAME IS NULL OR t.ENGINE <> 'InnoDB') ORDER BY 1, 2 LIMIT 100")
	if err != nil {
		return append(unknown, fleet.Trouble{What: "tables without a primary key", Why: err.Error()})
	}
	for _, r := range rows {
		s.Tables = append(s.Tables, r["s"]+"."+r["n"])
	}
	return unknown
}
