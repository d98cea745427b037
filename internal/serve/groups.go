package serve

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

	"github.com/rissodb/risso/internal/avail/group/keep"
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

// withMembers adds the members of groups to the servers that are watched. Where there are none at all it is an error.
func withMembers(ctx context.Context, f config.Flags, set *config.Settings, facts *state.Store) error {
	room := &keep.Room{Docs: facts}
	groups, err := room.Groups(ctx)
	if err != nil {
		return err
	}
	for _, g := range groups {
		access, err := room.Access(ctx, g.Name)
		if err != nil {
			return err
		}
		for _, m := range g.Members {
			t, err := access.Target(m.Name)
			if err != nil || slices.ContainsFunc(set.Servers, func(w config.Watched) bool {
				return w.Target.Address() == t.Address() || w.Target.Address() == m.Address
			}) {
				continue
			}
			set.Servers = append(set.Servers, member(set.Servers, g.Name, m.Name, t))
		}
	}
	if len(set.Servers) == 0 && !set.Host {
		_, err = f.Settings()
	}
	return err
}

// member is a member as it is watched: by its name, behind that of the group if another server is called so.
func member(list []config.Watched, group, name string, t mysql.Target) config.Watched {
	if slices.ContainsFunc(list, func(w config.Watched) bool { return w.Instance.ID == fleet.Slug(name) }) {
		name = group + "-" + name
	}
	return config.Watched{Instance: fleet.Instance{ID: fleet.Slug(name), Name: name, Kind: fleet.KindServer, Address: t.Address(), Group: group}, Target: t}
}

// groupFound tells what is wrong with groups: of the server that is the primary, by its address, and of no other.
func (w *watch) groupFound(servers []config.Watched) func(address, group string, findings []fleet.Finding) {
	return func(address, group string, findings []fleet.Finding) {
		for _, s := range servers {
			if s.Target.Address() == address {
				w.board.Note(s.Instance.ID, "group "+group, findings)
			} else if s.Instance.Group == group {
				w.board.Note(s.Instance.ID, "group "+group, nil)
			}
		}
	}
}
