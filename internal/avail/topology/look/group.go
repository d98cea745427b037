package look

import (
	"context"
	"net"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/avail/topology"
)

func (r *reader) group(ctx context.Context) error {
	switch {
	case r.vars["wsrep_on"] == "ON" && r.stat["wsrep_cluster_status"] != "":
		r.f.Group = galeraOf(r.vars, r.stat)
		return nil
	case r.vars["group_replication_group_name"] == "":
		return nil
	}
	rows, err := r.c.Maps(ctx, "SELECT /* risso: who is in the group? */ * FROM performance_schema.replication_group_members")
	if err != nil {
		return err
	}
	r.f.Group = groupOf(rows, r.vars, r.stat, r.f.UUID)
	return nil
}

// galeraOf is the cluster as a member of Galera tells of it by its variables and status.
func galeraOf(vars, stat map[string]string) *topology.Group {
	g := &topology.Group{Kind: "galera", Name: stat["wsrep_cluster_state_uuid"], Title: vars["wsrep_cluster_name"], State: stat["wsrep_local_state_comment"],
		Primary: stat["wsrep_cluster_status"] == "Primary", Writer: stat["wsrep_ready"] == "ON"}
	g.Size, _ = strconv.Atoi(stat["wsrep_cluster_size"])
	for a := range strings.SplitSeq(stat["wsrep_incoming_addresses"], ",") {
		if host, _, err := net.SplitHostPort(a); err == nil && host != "" {
			g.Members = append(g.Members, topology.Member{Address: a})
		}
	}
	return g
}

// groupOf is the group as a member of Group Replication lists it in performance_schema.replication_group_members. One that was never started lists a row without
// an ID. MySQL 5.7 has no MEMBER_ROLE: there a status variable names the primary, where there is to be one only. Newer ones leave the role of a member empty that
// is in error. Sources: MySQL manual, "The replication_group_members Table", "Finding the Primary".
func groupOf(rows []map[string]string, vars, stat map[string]string, own string) *topology.Group {
	g := &topology.Group{Kind: "group_replication", Name: vars["group_replication_group_name"], State: "OFFLINE"}
	reachable := 0
	for _, row := range rows {
		if row["MEMBER_ID"] == "" || row["MEMBER_STATE"] == "OFFLINE" {
			continue
		}
		m := topology.Member{UUID: row["MEMBER_ID"], Address: net.JoinHostPort(row["MEMBER_HOST"], row["MEMBER_PORT"]), State: row["MEMBER_STATE"]}
		role, told := row["MEMBER_ROLE"]
		switch {
		case told:
			m.Role = role
		case vars["group_replication_single_primary_mode"] != "ON" || m.UUID == stat["group_replication_primary_member"]:
			m.Role = "PRIMARY"
		default:
			m.Role = "SECONDARY"
		}
		if m.State == "ONLINE" || m.State == "RECOVERING" {
			reachable++
		}
		if m.UUID == own {
			g.State, g.Writer = m.State, m.Role == "PRIMARY" && m.State == "ONLINE"
		}
		g.Members = append(g.Members, m)
	}
	g.Size = len(g.Members)
	g.Primary = g.Size > 0 && g.State != "ERROR" && reachable*2 > g.Size
	return g
}
