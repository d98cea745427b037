package agree

import (
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// assents is a transport that knows when others last took this controller for their leader: when they were asked, not when their answers were read.
// Raft's own VerifyLeader counts an answer that is read after the call, also to a question from before it. A process that stood still with an answer on
// its way is told so that it leads, though the others have elected another one meanwhile.
type assents struct {
	*raft.NetworkTransport

	mu   sync.Mutex
	term uint64
	at   map[raft.ServerID]time.Time // when who assented in that term was asked
}

// AppendEntries asks another controller. Heartbeats take this way, and none is sent while another one is under way.
func (a *assents) AppendEntries(id raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	asked := time.Now()
	err := a.NetworkTransport.AppendEntries(id, target, args, resp)
	if err == nil && resp.Success && resp.Term == args.Term {
		a.note(id, args.Term, asked)
	}
	return err
}

func (a *assents) note(id raft.ServerID, term uint64, asked time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if term < a.term {
		return
	}
	if term > a.term || a.at == nil {
		a.term, a.at = term, map[raft.ServerID]time.Time{}
	}
	if asked.After(a.at[id]) {
		a.at[id] = asked
	}
}

// since is the last moment at which more than half of those that vote, counting this controller itself, took it for the leader of a term; zero: they never did.
func (a *assents) since(self raft.ServerID, term uint64, servers []raft.Server) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []time.Time
	for _, s := range servers {
		switch {
		case s.Suffrage != raft.Voter:
		case s.ID == self:
			list = append(list, time.Now())
		case term == a.term:
			list = append(list, a.at[s.ID])
		default:
			list = append(list, time.Time{})
		}
	}
	if len(list) == 0 {
		return time.Time{}
	}
	slices.SortFunc(list, func(a, b time.Time) int { return b.Compare(a) })
	return list[len(list)/2]
}
