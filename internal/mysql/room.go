package mysql

import (
	"context"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/fleet"
)

// WaitsForRoom reports whether the state of a thread says that it waits for room on a disk. A MySQL 5.7 does not say so: its thread that receives is then in
// "Queueing master event to the relay log". Sources: MySQL's mysys/my_error.cc; MariaDB's mysys/errors.c, "Waiting for someone to free space"; older servers.
func WaitsForRoom(state string) bool {
	low := strings.ToLower(state)
	return strings.Contains(low, "waiting for disk space") || strings.Contains(low, "waiting for someone to free space") || strings.Contains(low, "waiting for someone to clean disk")
}

// HidesStatusForRoom reports whether a server that waits for room for its relay log does not answer how its replication stands.
func (s Server) HidesStatusForRoom() bool { return !s.AtLeast(80000, fleet.Never) }

// TellsDisks reports whether a server may tell how much room its disks have: MariaDB, if its plug-in disks is loaded. Source: MariaDB documentation, "Disks Plugin".
func (s Server) TellsDisks() bool { return s.MariaDB() }

// DiskFree is how many bytes are free where a directory lies, as the server tells; false: it does not.
func DiskFree(ctx context.Context, c *Conn, dir string) (free uint64, ok bool, err error) {
	rows, err := c.Maps(ctx, "SELECT /* risso: how much room is there? */ Path AS p, Available AS a FROM information_schema.DISKS")
	if err != nil {
		return 0, false, err
	}
	longest := -1
	for _, r := range rows {
		p := strings.TrimSuffix(r["p"], "/")
		if kib, err := strconv.ParseUint(r["a"], 10, 64); err == nil && len(p) > longest && strings.HasPrefix(strings.TrimSuffix(dir, "/")+"/", p+"/") {
			longest, free = len(p), kib<<10
		}
	}
	return free, longest >= 0, nil
}
