package serve

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"time"

	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/home"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/serve/config"
	"github.com/rissodb/risso/internal/store/state"
)

// settled are the settings. That they name no server is no failure where a group may.
func settled(f config.Flags) (config.Settings, error) {
	set, err := f.Settings()
	if errors.Is(err, config.ErrNoServer) && home.Exists(filepath.Join(set.Data, stateFile)) {
		return set, nil
	}
	return set, err
}

// stateFile has the facts, in the data folder.
const stateFile = "state.db"

// withMembers adds the members of groups to the servers that are watched, and reports whether there are groups. Where there are no servers at all it is an error.
func withMembers(ctx context.Context, f config.Flags, set *config.Settings, facts *state.Store) (grouped bool, err error) {
	more, groups, err := unwatched(ctx, &keep.Room{Docs: facts}, set.Servers)
	if err != nil {
		return false, err
	}
	if set.NoMembers {
		more = nil
	}
	if set.Servers = append(set.Servers, more...); len(set.Servers) == 0 && !set.Host {
		_, err = f.Settings()
	}
	return groups > 0, err
}

// unwatched are the members of groups that are not among the servers, and how many groups there are.
func unwatched(ctx context.Context, room *keep.Room, servers []config.Watched) (more []config.Watched, groups int, err error) {
	list, err := room.Groups(ctx)
	if err != nil {
		return nil, 0, err
	}
	all := slices.Clone(servers)
	for _, g := range list {
		var access keep.Access
		for _, m := range g.Members {
			if watches(all, m.Address) {
				continue
			}
			if access.Members == nil {
				if access, err = room.Access(ctx, g.Name); err != nil {
					return nil, 0, err
				}
			}
			if t, err := access.Target(m.Name); err == nil && !watches(all, t.Address()) {
				s := member(all, g.Name, m.Name, t)
				all, more = append(all, s), append(more, s)
			}
		}
	}
	return more, len(list), nil
}

// left are the servers that are watched as members of groups, and are none any more.
func left(ctx context.Context, room *keep.Room, servers []config.Watched) (gone []config.Watched, err error) {
	list, err := room.Groups(ctx)
	if err != nil {
		return nil, err
	}
	is := map[string]bool{}
	for _, g := range list {
		for _, m := range g.Members {
			is[m.Address] = true
		}
	}
	none := func(s config.Watched) bool { return s.Joined && !is[s.Target.Address()] }
	if !slices.ContainsFunc(servers, none) {
		return nil, nil
	}
	for _, g := range list { // Risso may reach one by another address than the members do
		access, err := room.Access(ctx, g.Name)
		if err != nil {
			return nil, err
		}
		for _, m := range g.Members {
			if t, err := access.Target(m.Name); err == nil {
				is[t.Address()] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(servers), func(s config.Watched) bool { return !none(s) }), nil
}

// leave ends watching a server, and what was found of it.
func (w *watch) leave(s config.Watched) {
	id := s.Instance.ID
	w.listed.Lock()
	w.list = slices.DeleteFunc(slices.Clone(w.list), func(o config.Watched) bool { return o.Instance.ID == id })
	w.listed.Unlock()
	if end, ok := w.ends.LoadAndDelete(id); ok {
		end.(func())()
	}
	w.board.Remove(id)
	w.keepers.Delete(id)
	w.moments.Leave(id)
	delete(w.held, id)
	delete(w.turned, id)
	w.Event(fleet.Event{Time: time.Now(), Instance: id, Kind: fleet.EventObserver, Text: s.Instance.Name + " is watched no more: it has left its group " + s.Instance.Group})
	w.enqueue(func(ctx context.Context, facts *state.Store) error {
		open, err := facts.Findings(ctx, state.FindingQuery{Instances: []string{id}, Open: true, Limit: 1000})
		if err != nil {
			return err
		}
		look := state.Look{Instance: id, At: time.Now(), Unseen: map[string]bool{}}
		for _, r := range open {
			look.Unseen[state.FindingKey(r.First)] = true
		}
		return w.keepFindings(ctx, facts, look)
	})
}

func watches(list []config.Watched, address string) bool {
	return slices.ContainsFunc(list, func(w config.Watched) bool { return w.Target.Address() == address })
}

// newcomersLook is how often groups are looked at for members that are not watched yet.
const newcomersLook = time.Second

// newcomers begins to watch servers that join groups, by whichever controller, while risso serve runs, and ends to watch those that leave theirs.
type newcomers struct {
	w     *watch
	room  *keep.Room
	begin func(ctx context.Context, s config.Watched, i int) error
}

func (w *watch) newcomers(facts *state.Store, begin func(ctx context.Context, s config.Watched, i int) error) newcomers {
	return newcomers{w, &keep.Room{Docs: facts}, begin}
}

// Run looks until ctx ends.
func (n newcomers) Run(ctx context.Context) {
	for delay.For(ctx, newcomersLook) == nil {
		gone, err := left(ctx, n.room, n.w.servers())
		if err != nil {
			continue
		}
		for _, s := range gone {
			n.w.leave(s)
		}
		servers := n.w.servers()
		more, _, err := unwatched(ctx, n.room, servers)
		if err != nil {
			continue // a group was removed meanwhile, or who watches groups says so
		}
		for i, s := range more {
			if err := n.begin(ctx, s, len(servers)+i); err != nil {
				n.w.logger.Warn("a member of a group cannot be watched before the next start", "server", s.Instance.Name, "group", s.Instance.Group, "err", err)
			}
		}
		n.w.watchAlso(more)
	}
}

// servers are those that are watched.
func (w *watch) servers() []config.Watched {
	w.listed.Lock()
	defer w.listed.Unlock()
	return w.list
}

// watchAlso adds servers to those that are watched.
func (w *watch) watchAlso(more []config.Watched) {
	w.listed.Lock()
	defer w.listed.Unlock()
	w.list = append(slices.Clone(w.list), more...)
}

// member is a member as it is watched: by its name, behind that of the group if another server is called so.
func member(list []config.Watched, group, name string, t mysql.Target) config.Watched {
	if slices.ContainsFunc(list, func(w config.Watched) bool { return w.Instance.ID == fleet.Slug(name) }) {
		name = group + "-" + name
	}
	return config.Watched{Instance: fleet.Instance{ID: fleet.Slug(name), Name: name, Kind: fleet.KindServer, Address: t.Address(), Group: group}, Target: t, Joined: true}
}

// groupFound tells what is wrong with groups: of the server that is the primary, by its address, and of no other. Where that is not watched, or by another address, of another member, or else of
// this host.
func (w *watch) groupFound(address, group string, findings []fleet.Finding) {
	list := w.servers()
	at := slices.IndexFunc(list, func(s config.Watched) bool { return s.Target.Address() == address })
	if at < 0 && address != "" {
		at = slices.IndexFunc(list, func(s config.Watched) bool { return s.Joined && s.Instance.Group == group })
	}
	for i, s := range list {
		if i != at {
			w.board.Note(s.Instance.ID, "group "+group, nil)
		}
	}
	host := w.hostID.Load()
	switch {
	case at >= 0:
		w.board.Note(list[at].Instance.ID, "group "+group, findings)
	case host != nil && address != "":
		w.board.Note(*host, "group "+group, findings)
		return
	}
	if host != nil {
		w.board.Note(*host, "group "+group, nil)
	}
}
