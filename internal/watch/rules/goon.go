package rules

import (
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// goOn is how a channel that an error stopped goes on, as statements, and what to know of them, as the end of a sentence.
func goOn(s *Snapshot, ch fleet.Channel) (remedy, advice string) {
	server := s.server()
	id, _ := s.value(variablePrefix + "server_id")
	stop := server.GoOn(ch, mysql.ReplicaSettings{GTIDMode: s.text("gtid_mode"), ApplyMode: s.text(server.ApplyModeVariable()), ServerID: int64(id)})
	return stop.Statements, stop.Advice
}
