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

// stuckAfter is how many seconds commits wait before it is asked why.
const stuckAfter = 3

// CommitsWaitForRoom reports how many commits wait because the server's disk is full. A MariaDB shows that as the state of the thread that writes to the binary log, which others wait
// behind; it lets commits fail where that is not possible. A MySQL waits for somebody who makes room, tries again once a minute, and says so in
// its error log at first and every ten minutes; meanwhile it answers as if all were well. What it said before the oldest of these commits began is about others, which went on: a disk may
// have been full, and be slow now. 0 also where the server does not tell: MySQL before 8.0.22. Sources: MySQL manual, "How MySQL Handles a Full Disk", "The error_log Table"; its
// mysys/errors.cc, and MariaDB's mysys/errors.c, wait_for_free_space.
func CommitsWaitForRoom(ctx context.Context, c *Conn) (int, error) {
	if c.Server.MariaDB() {
		list, err := c.Maps(ctx, "SELECT /* risso: do commits wait for room on the disk? */ STATE AS state FROM information_schema.PROCESSLIST WHERE STATE LIKE 'Waiting for%' AND TIME >= "+strconv.Itoa(stuckAfter))
		waiting, why := 0, 0
		for _, r := range list {
			if WaitsForRoom(r["state"]) {
				why++
			} else if strings.Contains(r["state"], "prior transaction to commit") {
				waiting++
			}
		}
		if why == 0 {
			return 0, err
		}
		return waiting + why, err
	}
	if !c.Server.atLeast(80022) || !c.Server.PerformanceSchema {
		return 0, nil
	}
	rows, err := c.Maps(ctx, "SELECT /* risso: do commits wait? */ COUNT(*) AS waiting, COALESCE(MAX(TIME), 0) AS longest FROM performance_schema.processlist WHERE STATE = 'waiting for handler commit' AND TIME >= "+
		strconv.Itoa(stuckAfter))
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	waiting, _ := strconv.Atoi(rows[0]["waiting"])
	longest, _ := strconv.Atoi(rows[0]["longest"])
	if waiting == 0 {
		return 0, nil
	}
	const diskFull = "'MY-000035'" // EE_DISK_FULL_WITH_RETRY_MSG
	said := strconv.Itoa(min(longest+1, saidEvery))
	text, err := c.Text(ctx, "SELECT /* risso: for room on the disk? */ COUNT(*) FROM performance_schema.error_log WHERE ERROR_CODE = "+diskFull+" AND LOGGED > NOW(6) - INTERVAL "+said+" SECOND")
	if err != nil || text == "0" {
		return 0, err
	}
	return waiting, nil
}

// saidEvery is how often, in seconds, a server says again that its disk is full; a minute more than that.
const saidEvery = 660
