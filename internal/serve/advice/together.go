package advice

import (
	"context"
	"slices"
	"time"

	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/explain/advise/gather"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/serve/config"
)

// mostMates is with how many others of its group a server is compared.
const mostMates = 30

// mates are the servers of a group: those of the config file's group, and who replicates from whom. The server itself is the first.
func (r *Room) mates(w config.Watched) []config.Watched {
	connected := together(r.Board.Follows(time.Now()), w.Instance.ID)
	list := []config.Watched{w}
	for _, x := range r.Servers() {
		same := x.Instance.Group != "" && x.Instance.Group == w.Instance.Group
		if x.Instance.ID != w.Instance.ID && (same || slices.Contains(connected, x.Instance.ID)) && len(list) <= mostMates {
			list = append(list, x)
		}
	}
	return list
}

// beside compares a server with the others of its group. unsure are the checks that it could not do, because one of them did not answer.
func (r *Room) beside(ctx context.Context, w config.Watched) (found []advise.Finding, unsure []string, err error) {
	list := r.mates(w)
	if len(list) < 2 {
		return nil, nil, nil
	}
	targets, names, groups := make([]mysql.Target, len(list)), make([]string, len(list)), make([]string, len(list))
	for i, x := range list {
		targets[i], names[i], groups[i] = x.Target, x.Instance.Name, w.Instance.ID // all are of one group
	}
	all, troubles, err := gather.Together(ctx, targets, names, groups, nil)
	if err != nil {
		return nil, nil, err
	}
	for _, t := range troubles {
		for _, c := range advise.TogetherChecks() {
			if len(t) > 0 && !slices.Contains(unsure, c.ID) {
				unsure = append(unsure, c.ID)
			}
		}
	}
	return all[0], unsure, nil
}
