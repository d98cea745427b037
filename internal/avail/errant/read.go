// Package errant finds transactions that only a replica has, says where they come from and what they changed, which server's logs have a transaction,
// and plans how a replica gets rid of errant ones. Judge, Locate and Plan are pure; Read asks a server, and Carry changes some.
package errant

import (
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// Reading is what a server told of the transactions that it has had.
type Reading struct {
	Name     string                `json:"name"`     // as the user calls it
	Identity string                `json:"identity"` // of the server that answered
	Executed string                `json:"executed"` // gtid_executed, gtid_binlog_state
	Position string                `json:"-"`        // MariaDB: gtid_slave_pos
	Purged   mysql.GTIDSet         `json:"-"`        // MySQL: what its logs do not have any more
	Owned    mysql.GTIDSet         `json:"-"`        // MySQL: in the binary log perhaps, and not committed yet
	Received mysql.GTIDSet         `json:"-"`        // MySQL: in relay logs, all channels together
	Channels []read.ReplicaChannel `json:"-"`
	Replicas int                   `json:"-"` // sessions that read its binary log; -1: it does not tell
	Gone     string                `json:"-"` // MariaDB: where its oldest binary log begins, as a position; only AskGone reads it
	Groups   []string              `json:"-"` // MySQL: UUIDs that it numbers transactions by as a member of a group
	SemiSync read.SemiSync         `json:"-"`
	UUID     string                `json:"uuid,omitempty"`
	ServerID uint32                `json:"server_id"`
	Off      bool                  `json:"-"` // it does not use GTIDs
	Strict   bool                  `json:"-"` // MariaDB: gtid_strict_mode
	Logs     bool                  `json:"-"` // it writes a binary log, and into it what it applies as a replica
	ReadOnly bool                  `json:"-"`
	Server   mysql.Server          `json:"-"`
}

// Read asks a server.
func Read(ctx context.Context, name string, c *mysql.Conn) (Reading, error) {
	r := Reading{Name: name, Server: c.Server, Identity: identity(c.Server), Replicas: -1}
	rows, err := c.Maps(ctx, c.Server.LineageQuery())
	if err != nil || len(rows) == 0 {
		return r, fmt.Errorf("%s: ask which transactions it has: %w", name, err)
	}
	plain := func(column string) string { return strings.ReplaceAll(rows[0][column], "\n", "") }
	on := func(column string) bool {
		return rows[0][column] == "1" || strings.HasPrefix(strings.ToUpper(rows[0][column]), "ON")
	}
	r.Executed, r.Position, r.UUID = plain("executed"), plain("position"), plain("uuid")
	r.Off, r.Strict, r.Logs, r.ReadOnly = !on("mode"), on("strict"), on("log_updates") && on("log_bin"), on("read_only")
	if _, err := fmt.Sscan(rows[0]["server_id"], &r.ServerID); err != nil {
		return r, fmt.Errorf("%s: read its server_id: %w", name, err)
	}
	if r.Purged, err = mysql.ParseGTIDSet(plain("purged")); err == nil {
		r.Owned, err = mysql.ParseOwned(plain("owned"))
	}
	if err != nil {
		return r, fmt.Errorf("%s: %w", name, err)
	}
	if r.Channels, err = read.ReplicaChannels(ctx, c); err != nil {
		return r, fmt.Errorf("%s: ask what it replicates from: %w", name, err)
	}
	for _, ch := range r.Channels {
		if set, err := mysql.ParseGTIDSet(ch.Received); err == nil && !set.ByDomain() {
			r.Received = r.Received.Union(set)
		}
	}
	if r.SemiSync, err = read.SemiSyncNow(ctx, c); err != nil {
		return r, fmt.Errorf("%s: ask about semi-synchronous replication: %w", name, err)
	}
	if r.Replicas, err = readers(ctx, c); err != nil {
		return r, fmt.Errorf("%s: ask how many replicate from it: %w", name, err)
	}
	err = c.Query(ctx, "SHOW /* risso: does a group number its transactions? */ GLOBAL VARIABLES LIKE 'group_replication_%'", func(row []sqldriver.Value) error {
		if name := mysql.Text(row[0]); name == "group_replication_group_name" || name == "group_replication_view_change_uuid" {
			r.Groups = append(r.Groups, mysql.Text(row[1]))
		}
		return nil
	})
	if err != nil {
		return r, fmt.Errorf("%s: ask whether it is in a group: %w", name, err)
	}
	return r, nil
}

// readers counts the sessions that read a server's binary log; -1: it does not tell.
func readers(ctx context.Context, c *mysql.Conn) (n int, err error) {
	list, err := c.Maps(ctx, "SHOW /* risso: who replicates from here? */ PROCESSLIST")
	if err != nil {
		return -1, nil //nolint:nilerr // a plan that needs the number says that it is not known
	}
	for _, row := range list {
		if strings.HasPrefix(row["Command"], "Binlog Dump") {
			n++
		}
	}
	// Without PROCESS the list has the account's own sessions only, and no error. MariaDB counts its replicas all the same, but no other readers.
	err = c.Query(ctx, "SHOW /* risso: how many replicate from here? */ GLOBAL STATUS LIKE 'Slaves_connected'", func(row []sqldriver.Value) error {
		more, err := strconv.Atoi(mysql.Text(row[1]))
		n = max(n, more)
		return err
	})
	if err != nil || n > 0 {
		return n, err
	}
	rights, err := c.Rights(ctx)
	if err == nil && !rights.Have("", "", "PROCESS") {
		n = -1
	}
	return n, err
}

// AskGone reads what a server's binary logs no longer have: a replica that stops can go on only from there on. MySQL tells it with all else.
func (r *Reading) AskGone(ctx context.Context, c *mysql.Conn) (err error) {
	if c.Server.ByDomain() {
		if r.Gone, err = mysql.GoneGTIDs(ctx, c); err != nil {
			return fmt.Errorf("%s: ask where its oldest binary log begins: %w", r.Name, err)
		}
	}
	return nil
}

// identity is by which a server is known again. Of a MariaDB's domain and server_id another cluster may have the same.
func identity(s mysql.Server) string {
	if s.ByDomain() {
		return fmt.Sprintf("%s at %s:%d%s", s.ID, s.Hostname, s.Port, s.DataDir)
	}
	return s.ID
}

// Follows reports whether it replicates from another server, as far as its channels tell.
func (r *Reading) Follows(o *Reading) bool {
	for _, ch := range r.Channels {
		switch {
		case o.UUID != "" && ch.SourceUUID != "":
			if strings.EqualFold(ch.SourceUUID, o.UUID) {
				return true
			}
		case ch.SourceID == fmt.Sprint(o.ServerID):
			return true
		}
	}
	return false
}

// from is a test for where transactions come from.
type from func(uuid string, server uint32) bool

// own holds for transactions that were committed on the server itself.
func (r *Reading) own(uuid string, server uint32) bool {
	if uuid != "" {
		return strings.EqualFold(uuid, r.UUID) || slices.ContainsFunc(r.Groups, func(g string) bool { return strings.EqualFold(uuid, g) })
	}
	return server == r.ServerID
}

// ofSource holds for transactions that one of its sources committed first.
func (r *Reading) ofSource(uuid string, server uint32) bool {
	for _, ch := range r.Channels {
		if uuid != "" && strings.EqualFold(ch.SourceUUID, uuid) || uuid == "" && ch.SourceID == fmt.Sprint(server) {
			return true
		}
	}
	return false
}
