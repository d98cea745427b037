package channels

import (
	"cmp"
	"strconv"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// GoOn is how a channel that an error stopped goes on, as statements, and what to know of them, as the end of a sentence; see mysql.Server.GoOn.
// setting is a global variable of the replica, "" where it is not known.
func GoOn(server mysql.Server, ch fleet.Channel, setting func(name string) string) (remedy, advice string) {
	id, _ := strconv.ParseInt(setting("server_id"), 10, 64) // 0: not known
	threads, _ := strconv.Atoi(setting("slave_parallel_threads"))
	stop := server.GoOn(ch, mysql.ReplicaSettings{GTIDMode: setting("gtid_mode"), ApplyMode: setting(server.ApplyModeVariable()), ServerID: id,
		Threads: threads, Position: setting("gtid_slave_pos")})
	return stop.Statements, stop.Advice
}

// StartDrops is what to know before a channel is started of which a START throws away what it received and did not apply, as the end of a sentence; "": a START throws nothing
// away. See mysql.Server.StartDrops.
func StartDrops(server mysql.Server, ch fleet.Channel) (advice string) {
	if ch.Unapplied == 0 || !server.StartDrops(ch) {
		return ""
	}
	return "; START throws away what it received and did not apply, and fetches it again: make sure that " + cmp.Or(ch.Source, "its source") + " still has it"
}
