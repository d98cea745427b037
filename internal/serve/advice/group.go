package advice

import (
	"slices"
	"time"

	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/explain/advise/gather"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/serve/config"
)

// everywhere leaves of the indexes that nothing uses on a server those that nothing uses on the others of its group either, as their hourly
// counters tell: what a primary never reads, a report on a replica may. Of one that does not answer nothing is known, and that is said.
func (r *Room) everywhere(w config.Watched, found []advise.Finding) []advise.Finding {
	if r.Uses == "" {
		return found
	}
	group := together(r.Board.Follows(time.Now()), w.Instance.ID)
	var seen []advise.Seen
	for _, o := range r.Servers() {
		seat := r.Board.Seat(o.Instance.ID)
		switch {
		case o.Instance.ID == w.Instance.ID || seat == r.Board.Seat(w.Instance.ID) && seat != fleet.Seat{}:
		case seat == fleet.Seat{} && o.Instance.Group == w.Instance.Group: // it never answered, and may be a replica
			seen = append(seen, advise.Seen{Server: o.Instance.Name})
		case slices.Contains(group, o.Instance.ID):
			seen = append(seen, gather.KeptSeen(r.Uses, seat.Place(), o.Instance.Name, time.Now()))
		}
	}
	if len(seen) == 0 {
		return found
	}
	return advise.UnusedEverywhere(seen, [][]advise.Finding{found})[0]
}

// together are the instances that replicate from each other, directly or not, with this one.
func together(follows map[string][]string, id string) []string {
	list := []string{id}
	for grown := true; grown; {
		grown = false
		for replica, sources := range follows {
			for _, source := range sources {
				for _, pair := range [][2]string{{replica, source}, {source, replica}} {
					if slices.Contains(list, pair[0]) && !slices.Contains(list, pair[1]) {
						list, grown = append(list, pair[1]), true
					}
				}
			}
		}
	}
	return list
}
