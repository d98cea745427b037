package advice

import (
	"context"
	"slices"

	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/explain/advise/gather"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/serve/config"
)

// mostMates is with how many others of its group a server is compared.
const mostMates = 30

// mates are the servers that a server is compared with: first those of the config file's group, and who replicates from whom as far as the board knows it by their
// addresses; then others, which may be of its group as well. The server itself is the first.
func (r *Room) mates(w config.Watched) []config.Watched {
	groups, of := map[string]string{}, map[string]int{}
	for _, i := range r.Board.Instances() {
		groups[i.ID] = i.Group
	}
	for n, x := range r.Servers {
		of[x.Instance.ID] = n
	}
	join := func(a, b string) {
		from, known := of[a]
		to, also := of[b]
		for id, n := range of {
			if known && also && n == from {
				of[id] = to
			}
		}
	}
	for replica, source := range r.Board.Sources() {
		join(replica, source)
	}
	for _, x := range r.Servers {
		if id := x.Instance.ID; groups[id] != "" && groups[id] == groups[w.Instance.ID] {
			join(id, w.Instance.ID)
		}
	}
	list := []config.Watched{w}
	for _, known := range []bool{true, false} {
		for _, x := range r.Servers {
			if x.Instance.ID != w.Instance.ID && (of[x.Instance.ID] == of[w.Instance.ID]) == known && len(list) <= mostMates {
				list = append(list, x)
			}
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
	group := map[string]string{}
	for _, i := range r.Board.Instances() {
		group[i.ID] = i.Group
	}
	targets, names, groups := make([]mysql.Target, len(list)), make([]string, len(list)), make([]string, len(list))
	for i, x := range list {
		targets[i], names[i], groups[i] = x.Target, x.Instance.Name, group[x.Instance.ID]
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
