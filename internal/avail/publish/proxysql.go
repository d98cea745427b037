package publish

import (
	"cmp"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/fault"
)

// ProxySQLOptions say which host groups of ProxySQL a group has.
type ProxySQLOptions struct {
	Writer, Reader int           // the host groups
	ReadOnly       bool          // let ProxySQL choose the writer by read_only
	MaxLag         time.Duration // how far a replica may be behind by ProxySQL's own monitor; 0: any
	Fallback       bool          // reads go to the primary when no replica answers them
}

// Statement is one for ProxySQL's admin interface, and what it is for.
type Statement struct {
	SQL string `json:"sql"`
	For string `json:"for"`
}

// What ends a change of mysql_servers.
const (
	proxyLoad = "LOAD MYSQL SERVERS TO RUNTIME"
	proxySave = "SAVE MYSQL SERVERS TO DISK"
)

// mostLag is the greatest max_replication_lag, in seconds.
const mostLag = 126144000

// ProxySQL are the statements that bring ProxySQL to a view: the old primary is cut off before the new one gets clients. Columns that Risso has no opinion of,
// such as max_connections and use_ssl, stay as they are.
func ProxySQL(v group.View, members []group.Member, o ProxySQLOptions) ([]Statement, error) {
	switch {
	case o.Writer < 0 || o.Reader < 0:
		return nil, fault.Usagef("host groups %d and %d: they are numbers from 0 on", o.Writer, o.Reader)
	case o.Writer == o.Reader:
		return nil, fault.Usagef("host groups %d and %d: two different ones", o.Writer, o.Reader)
	case o.MaxLag < 0 || o.MaxLag/time.Second > mostLag:
		return nil, fault.Usagef("lag %s: 0 to %d seconds", o.MaxLag, mostLag)
	}
	if err := group.CheckName(v.Group); err != nil {
		return nil, err
	}
	list := slices.Clone(v.Replicas)
	if v.Primary != nil {
		list = append(list, *v.Primary)
	}
	for _, m := range members {
		list = append(list, group.Server{Name: m.Name, Address: m.Address})
	}
	for _, s := range list {
		if err := plainAddress(s.Address); err != nil {
			return nil, err
		}
	}
	if o.ReadOnly {
		return o.byReadOnly(v, members), nil
	}
	return o.explicit(v), nil
}

// place is a server as mysql_servers knows it, as a condition.
func place(address string) (where, host, port string) {
	host, port, _ = net.SplitHostPort(address) // checked
	host = "'" + strings.ReplaceAll(host, "'", "''") + "'"
	return "hostname=" + host + " AND port=" + port, host, port
}

// among is a condition for servers of a host group that are none of some.
func among(hostgroup int, but []group.Server) string {
	where := "hostgroup_id=" + strconv.Itoa(hostgroup)
	for _, s := range but {
		w, _, _ := place(s.Address)
		where += " AND NOT (" + w + ")"
	}
	return where
}

// online are the statements that put a server into a host group.
func (o ProxySQLOptions) online(v group.View, hostgroup int, s group.Server, weight int, lag time.Duration) []Statement {
	where, host, port := place(s.Address)
	role := "writes"
	if hostgroup == o.Reader {
		role = "reads"
	}
	return []Statement{
		{fmt.Sprintf("INSERT OR IGNORE INTO mysql_servers (hostgroup_id, hostname, port) VALUES (%d, %s, %s)", hostgroup, host, port), s.Name + " takes " + role},
		{fmt.Sprintf("UPDATE mysql_servers SET status='ONLINE', weight=%d, max_replication_lag=%d, comment='risso %s epoch %d' WHERE hostgroup_id=%d AND %s",
			weight, int(math.Ceil(lag.Seconds())), v.Group, v.Epoch, hostgroup, where), s.Name + " takes " + role},
	}
}

// explicit are the statements where Risso says who is what.
func (o ProxySQLOptions) explicit(v group.View) []Statement {
	var writers, readers []group.Server
	if v.Primary != nil {
		writers = []group.Server{*v.Primary}
	}
	readers = slices.DeleteFunc(slices.Clone(v.Replicas), func(s group.Server) bool { return s.Weight <= 0 })
	slices.SortFunc(readers, byName)
	if len(readers) == 0 && o.Fallback {
		readers = writers
	}
	list := []Statement{
		{fmt.Sprintf("DELETE FROM mysql_replication_hostgroups WHERE writer_hostgroup IN (%d,%d) OR reader_hostgroup IN (%[1]d,%[2]d)", o.Writer, o.Reader),
			"ProxySQL does not choose the writer by read_only: two writable servers would be two writers"},
		{"UPDATE mysql_servers SET status='OFFLINE_HARD' WHERE " + among(o.Writer, writers), "what is not the primary takes no writes, and its connections end"},
		{"UPDATE mysql_servers SET status='OFFLINE_SOFT' WHERE " + among(o.Reader, readers), "what is no replica that answers reads gets no new ones"},
		{proxyLoad, "the old primary is cut off before the new one takes writes"},
	}
	for _, s := range writers {
		list = append(list, o.online(v, o.Writer, s, 1, 0)...)
	}
	most := 0.0
	for _, s := range readers {
		most = max(most, s.Weight)
	}
	for _, s := range readers {
		lag := o.MaxLag
		if v.Primary != nil && s.Address == v.Primary.Address {
			lag = 0
		}
		list = append(list, o.online(v, o.Reader, s, max(1, int(math.Round(100*s.Weight/cmp.Or(most, 1)))), lag)...)
	}
	return append(list, Statement{proxyLoad, "in force"}, Statement{proxySave, "after a restart too"})
}

// byReadOnly are the statements where ProxySQL's monitor chooses the writer.
func (o ProxySQLOptions) byReadOnly(v group.View, members []group.Member) []Statement {
	list := []Statement{
		{fmt.Sprintf("DELETE FROM mysql_replication_hostgroups WHERE writer_hostgroup IN (%d,%d) OR reader_hostgroup IN (%[1]d,%[2]d)", o.Writer, o.Reader), "what said otherwise"},
		{fmt.Sprintf("INSERT INTO mysql_replication_hostgroups (writer_hostgroup, reader_hostgroup, check_type, comment) VALUES (%d, %d, 'read_only', 'risso %s')", o.Writer, o.Reader, v.Group),
			"ProxySQL's monitor takes each server for a writer that has read_only=OFF: two of them are two writers"},
	}
	for _, m := range members {
		if m.Status == group.Faulty {
			continue
		}
		_, host, port := place(m.Address)
		list = append(list, Statement{fmt.Sprintf("INSERT OR IGNORE INTO mysql_servers (hostgroup_id, hostname, port, comment) VALUES (%d, %s, %s, 'risso %s')", o.Reader, host, port, v.Group), m.Name})
	}
	return append(list, Statement{proxyLoad, "in force"}, Statement{proxySave, "after a restart too"})
}
