package web

import (
	"context"
	"errors"
	"net/http"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/shard"
	"github.com/rissodb/risso/internal/avail/shard/keep"
)

// Shards is who knows maps of shards.
type Shards interface {
	Map(ctx context.Context, name string) (*shard.Map, error)
	Maps(ctx context.Context) ([]shard.Map, error)
}

// shardAt is where the rows of a key are: GET /shards?map=NAME&key=KEY.
type shardAt struct {
	Map     string `json:"map"`
	Epoch   uint64 `json:"epoch"`
	Key     string `json:"key"`
	Shard   string `json:"shard"`
	Group   string `json:"group"`
	Server  string `json:"server"`
	Address string `json:"address"`
}

// shardMap is a map, for clients that look keys up by themselves: GET /shards?map=NAME. A group that has no primary now is not among the primaries.
type shardMap struct {
	shard.Map
	Primaries map[string]group.Server `json:"primaries"`
}

// shards is GET /shards?map=NAME, without a token as where the primary of a group is.
func (s *server) shards(r *http.Request) (any, error) {
	name := r.URL.Query().Get("map")
	if name == "" {
		all, err := s.Shards.Maps(r.Context())
		if err != nil {
			return nil, err
		}
		if len(all) != 1 {
			return nil, badRequest("which map of shards is not said", "add ?map=NAME")
		}
		name = all[0].Name
	}
	m, err := s.Shards.Map(r.Context(), name)
	if errors.Is(err, keep.ErrNone) {
		return nil, failed(http.StatusNotFound, "there is no map of shards of that name", "risso shard list lists them")
	} else if err != nil {
		return nil, err
	}
	primary := func(name string) (group.Server, bool) {
		v, ok := s.Views.View(name)
		if !ok || v.Primary == nil || s.Clients.Fresh(v) != nil {
			return group.Server{}, false
		}
		return *v.Primary, true
	}
	if !r.URL.Query().Has("key") {
		out := shardMap{*m, map[string]group.Server{}}
		for _, sh := range m.Shards {
			if p, ok := primary(sh.Group); ok {
				out.Primaries[sh.Group] = p
			}
		}
		return out, nil
	}
	key, err := m.Key(r.URL.Query().Get("key"))
	if err != nil {
		return nil, badRequest(err.Error(), "")
	}
	sh, err := m.Lookup(key)
	if err != nil {
		return nil, failed(http.StatusNotFound, err.Error(), "risso shard add gives it one")
	}
	p, ok := primary(sh.Group)
	if !ok {
		return nil, failed(http.StatusServiceUnavailable, "group "+sh.Group+" of shard "+sh.Name+" has no primary now", "ask again")
	}
	return shardAt{m.Name, m.Epoch, key, sh.Name, sh.Group, p.Name, p.Address}, nil
}
