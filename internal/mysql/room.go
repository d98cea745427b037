package mysql

import (
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
