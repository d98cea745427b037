package sandbox

import (
	"context"
	"fmt"

	"github.com/rissodb/risso/internal/avail/galera"
	"github.com/rissodb/risso/internal/avail/galera/ask"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/sandbox"
)

// cluster is a Galera cluster of a sandbox.
type cluster struct{ *sandbox.Sandbox }

// back says how a node comes back, as risso galera bootstrap decides it: by the positions of all nodes if it is the first, so that nothing is lost that was
// committed.
func (c cluster) back(ctx context.Context, n *sandbox.Node, alone bool) (args []string, founds bool, err error) {
	own, err := position(ctx, n)
	if err != nil {
		return nil, false, err
	}
	if !alone {
		return startAt(own.Position), false, nil
	}
	list := []galera.Node{own} // the first of those that are equally far is chosen
	for _, o := range c.Nodes {
		if o == n {
			continue
		}
		other, err := position(ctx, o)
		if err != nil {
			return nil, false, err
		}
		list = append(list, other)
	}
	d := galera.Decide(list, galera.Known{Nodes: len(list)})
	switch {
	case d.Choice == n.Name:
		return startAt(d.Position), true, nil
	case d.Choice != "":
		return nil, false, fault.New(fault.Failed, fmt.Sprintf("start node %s first: it has all changes", d.Choice), fmt.Errorf("no member of the cluster runs, and node %s may lack changes of node %s", n.Name, d.Choice))
	}
	r := d.Refused[0]
	return nil, false, fault.New(fault.Failed, r.Remedy, fmt.Errorf("no member of the cluster runs, and which node has all changes is not certain: %s: %s", r.What, r.Why))
}

func startAt(p galera.Position) []string {
	if !p.Known() {
		return nil
	}
	return []string{"--wsrep-start-position=" + p.String()}
}

// position is where a node that is stopped is; one that crashed is asked by --wsrep-recover.
func position(ctx context.Context, n *sandbox.Node) (galera.Node, error) {
	argument := n.Name + "=" + n.Datadir
	at, err := ask.Datadir(argument, []string{n.ErrorLog})
	if err != nil || at.Position.Known() || at.Recovered.UUID != "" {
		return at, err
	}
	if err := n.Recover(ctx); err != nil {
		return at, err
	}
	return ask.Datadir(argument, []string{n.ErrorLog})
}
