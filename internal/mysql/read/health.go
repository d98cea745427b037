package read

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"strings"

	driver "github.com/go-sql-driver/mysql"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/mysql/wsrep"
)

// Health is what a load balancer wants to know of a server.
type Health struct {
	ReadOnly bool          // read_only or super_read_only is on
	Offline  bool          // offline_mode is on: ordinary accounts are turned away
	Galera   *GaleraHealth // nil: no node of a Galera cluster
	Group    *GroupHealth  // nil: no member of Group Replication
	GroupErr error         // why it is not known whether it is a member
}

// GaleraHealth is the state of a node. Source: Galera documentation, "Galera Status Variables".
type GaleraHealth struct {
	State     int    // wsrep_local_state: 1 joining, 2 donor, 3 joined, 4 synced; 0: it has none
	Primary   bool   // wsrep_cluster_status is Primary
	Ready     bool   // wsrep_ready
	On        bool   // wsrep_on: what it writes is replicated
	Rejects   bool   // wsrep_reject_queries: clients are refused, though wsrep_ready is on
	Desired   string // pxc_maint_mode of Percona XtraDB Cluster, such as DISABLED or MAINTENANCE; "" elsewhere
	Explained string // wsrep_local_state_comment
}

// GroupHealth is the state of a member, as it sees itself and the others.
type GroupHealth struct {
	State     string // MEMBER_STATE, such as ONLINE
	Primary   bool   // it takes writes
	Members   int
	Reachable int // of these, with itself
}

// HealthReader reads the health of one server again and again, over one connection.
type HealthReader struct {
	conn  *mysql.Conn
	query string   // reads the variables that this server has
	names []string // of these, in order
}

// healthVariables are those that tell something, on the servers that have them.
var healthVariables = []string{"read_only", "super_read_only", "offline_mode", "wsrep_on", "wsrep_provider", "wsrep_reject_queries", "pxc_maint_mode", "group_replication_single_primary_mode", "group_replication_group_name"}

// NewHealthReader learns what the server can tell.
func NewHealthReader(ctx context.Context, c *mysql.Conn) (*HealthReader, error) {
	r := &HealthReader{conn: c}
	statement := "SHOW GLOBAL VARIABLES WHERE /* risso: is it fit for clients? */ Variable_name IN ('" + strings.Join(healthVariables, "', '") + "')"
	if err := c.Query(ctx, statement, func(row []sqldriver.Value) error {
		r.names = append(r.names, mysql.Text(row[0]))
		return nil
	}); err != nil {
		return nil, fmt.Errorf("ask which variables there are: %w", err)
	}
	if len(r.names) == 0 {
		return nil, errors.New("the server shows none of its variables")
	}
	r.query = "SELECT /* risso: is it fit for clients? */ @@GLOBAL." + strings.Join(r.names, ", @@GLOBAL.")
	return r, nil
}

// Read reads it now. What the account may not see is an error in Health, by itself no failure.
func (r *HealthReader) Read(ctx context.Context) (h Health, err error) {
	v := map[string]string{}
	err = r.conn.Query(ctx, r.query, func(row []sqldriver.Value) error {
		for i, value := range row {
			v[r.names[i]] = mysql.Text(value)
		}
		return nil
	})
	if me, ok := errors.AsType[*driver.MySQLError](err); ok && me.Number == errno.UnknownCommand { // a node of Galera that is not ready refuses even this
		return Health{Galera: &GaleraHealth{On: true}}, nil
	}
	if err != nil {
		return h, fmt.Errorf("ask for its variables: %w", err)
	}
	on := func(name string) bool { return v[name] != "" && v[name] != "0" && !strings.EqualFold(v[name], "OFF") }
	h.ReadOnly = on("read_only") || on("super_read_only")
	h.Offline = on("offline_mode")
	if p := v["wsrep_provider"]; p != "" && p != "none" {
		if h.Galera, err = r.galera(ctx); err != nil {
			return h, err
		}
		h.Galera.On, h.Galera.Desired = on("wsrep_on"), v["pxc_maint_mode"]
		h.Galera.Rejects = wsrep.Rejects(v["wsrep_reject_queries"])
	}
	if _, ok := v["group_replication_single_primary_mode"]; ok {
		h.Group, h.GroupErr = r.group(ctx, v["group_replication_group_name"] != "")
		if broken(h.GroupErr) {
			return h, h.GroupErr
		}
	}
	return h, nil
}

// broken reports an error that is not the server's own answer: nothing more can be asked.
func broken(err error) bool {
	_, answered := errors.AsType[*driver.MySQLError](err)
	return err != nil && !answered
}

func (r *HealthReader) galera(ctx context.Context) (*GaleraHealth, error) {
	g := new(GaleraHealth)
	err := r.conn.Query(ctx, "SHOW GLOBAL STATUS LIKE 'wsrep\\_%' /* risso: how is this node? */", func(row []sqldriver.Value) error {
		switch value := mysql.Text(row[1]); strings.ToLower(mysql.Text(row[0])) {
		case "wsrep_local_state":
			if len(value) == 1 && value[0] >= '1' && value[0] <= '4' {
				g.State = int(value[0] - '0')
			}
		case "wsrep_local_state_comment":
			g.Explained = value
		case "wsrep_cluster_status":
			g.Primary = strings.EqualFold(value, "Primary")
		case "wsrep_ready":
			g.Ready = strings.EqualFold(value, "ON")
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("ask how the node is: %w", err)
	}
	return g, nil
}

// group reads the member's view; meant: it is configured to be a member. MySQL 5.7 has no MEMBER_ROLE: there a status variable names the primary, or none if all are.
func (r *HealthReader) group(ctx context.Context, meant bool) (*GroupHealth, error) {
	rows, err := r.conn.Maps(ctx, `SELECT /* risso: how is this member of the group? */ m.*, MEMBER_ID = @@GLOBAL.server_uuid AS me
FROM performance_schema.replication_group_members AS m`)
	if err != nil {
		return nil, fmt.Errorf("ask how the group is: %w", err)
	}
	g, roles := memberOf(rows, meant)
	if g == nil {
		return nil, nil
	}
	if roles || g.State == "OFFLINE" {
		return g, nil
	}
	primary, err := r.conn.Maps(ctx, `SHOW GLOBAL STATUS LIKE 'group\_replication\_primary\_member' /* risso: who is the primary? */`)
	if err != nil {
		return nil, fmt.Errorf("ask for the group's primary: %w", err)
	}
	for _, row := range primary {
		g.Primary = row["Value"] == "" || row["Value"] == r.conn.Server.ID
	}
	return g, nil
}

// memberOf makes the member's own state of its view of the group; roles: the view names the primary. A server that is meant to be a member and did not join since
// it was started has no ID in its view on MySQL 5.7 and early 8.0.
func memberOf(rows []map[string]string, meant bool) (g *GroupHealth, roles bool) {
	members, reachable := 0, 0
	for _, row := range rows {
		if row["MEMBER_ID"] == "" { // the plugin is there, and does nothing
			continue
		}
		members++
		if row["MEMBER_STATE"] != "UNREACHABLE" {
			reachable++
		}
		if row["me"] != "1" {
			continue
		}
		role, known := row["MEMBER_ROLE"]
		roles = known
		g = &GroupHealth{State: row["MEMBER_STATE"], Primary: role == "PRIMARY"}
	}
	if g == nil && meant {
		g = &GroupHealth{State: "OFFLINE"}
	}
	if g != nil {
		g.Members, g.Reachable = members, reachable
	}
	return g, roles
}

// OuterChannels are the channels by which a server replicates from others: those of Group Replication itself are left out.
func OuterChannels(ctx context.Context, c *mysql.Conn) ([]ReplicaChannel, error) {
	all, err := ReplicaChannels(ctx, c)
	if err != nil {
		return nil, err
	}
	var out []ReplicaChannel
	for _, ch := range all {
		if ch.Name != "group_replication_applier" && ch.Name != "group_replication_recovery" {
			out = append(out, ch)
		}
	}
	return out, beats(ctx, c, out)
}

// beats adds how often each source said that it lives, and how often it does, where a MySQL shows it to the account; a MariaDB told it with the channels.
func beats(ctx context.Context, c *mysql.Conn, list []ReplicaChannel) error {
	if len(list) == 0 || !c.Server.PerformanceSchema || !c.Server.AtLeast(50700, fleet.Never) {
		return nil
	}
	_, err := allowed(ctx, c, "heartbeats of the source", "", `SELECT /* risso: does the source say that it lives? */ CHANNEL_NAME, COUNT_RECEIVED_HEARTBEATS, HEARTBEAT_INTERVAL
FROM performance_schema.replication_connection_status JOIN performance_schema.replication_connection_configuration USING (CHANNEL_NAME)`, func(row []sqldriver.Value) error {
		for i := range list {
			if list[i].Name == mysql.Text(row[0]) {
				n, _ := number(row[1])
				list[i].Beats = int64(n)
				list[i].BeatEvery, _ = number(row[2])
			}
		}
		return nil
	})
	return err
}
