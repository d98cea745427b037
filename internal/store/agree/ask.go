package agree

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/hashicorp/raft"
)

// Said is what another controller answered.
type Said struct {
	Name string
	Body json.RawMessage
	Err  error // why it did not answer
}

// errNobody answers a question for which nobody is there.
var errNobody = errors.New("nobody answers that here")

// Answer lets f answer what other controllers ask by Ask, from now on.
func (n *Node) Answer(f func(ctx context.Context, question json.RawMessage) (any, error)) {
	n.seen.Store(&f)
}

// answerPeer answers what another controller asks.
func (n *Node) answerPeer(ctx context.Context, question json.RawMessage) (any, error) {
	f := n.seen.Load()
	if f == nil {
		return nil, errNobody
	}
	return (*f)(ctx, question)
}

// Ask asks all other controllers at once, and returns when each has answered, or ctx ends. It changes nothing, and needs no leader.
func (n *Node) Ask(ctx context.Context, question any) ([]Said, error) {
	body, err := json.Marshal(question)
	if err != nil {
		return nil, err
	}
	others := slices.DeleteFunc(slices.Clone(n.servers()), func(s raft.Server) bool { return string(s.ID) == n.Folder.Name })
	list := make([]Said, len(others))
	var all sync.WaitGroup
	for i, s := range others {
		all.Go(func() {
			list[i].Name = string(s.ID)
			list[i].Err = n.client.ask(ctx, string(s.Address), "/ask", body, &list[i].Body)
		})
	}
	all.Wait()
	return list, nil
}
