package web

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/publish"
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

// answerShards answers GET /shards?map=NAME, without a token as where the primary of a group is. What is too old is refused as there.
func (s *server) answerShards(w http.ResponseWriter, r *http.Request) {
	fail := func(w http.ResponseWriter, err error) {
		if no, ok := errors.AsType[*publish.Refusal](err); ok {
			no.ServeHTTP(w, r)
			return
		}
		writeError(w, err)
	}
	s.question(s.gate.quick, fail, func(r *http.Request, a *answer) error {
		out, err := s.shards(r)
		if err != nil {
			return err
		}
		return json.NewEncoder(a).Encode(out)
	}).ServeHTTP(w, r)
}

func (s *server) shards(r *http.Request) (any, error) {
	q := r.URL.Query()
	for other := range q {
		if other != "map" && other != "key" {
			return nil, badRequest("?"+other+" means nothing here: map and key do", "")
		}
	}
	name := q.Get("map")
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
	if !m.Restored.IsZero() {
		return nil, failed(http.StatusServiceUnavailable, "map "+m.Name+": "+keep.ErrUnsure.Error(), "risso shard confirm "+m.Name+" looks where they are")
	}
	primary := func(name string) (group.Server, bool) {
		v, ok := s.Views.View(name)
		if !ok || v.Primary == nil || s.Clients.Fresh(v) != nil {
			return group.Server{}, false
		}
		return *v.Primary, true
	}
	if !q.Has("key") {
		if err := s.freshMap(m); err != nil {
			return nil, err
		}
		out := shardMap{*m, map[string]group.Server{}}
		for _, sh := range m.Shards {
			if p, ok := primary(sh.Group); ok {
				out.Primaries[sh.Group] = p
			}
		}
		return out, nil
	}
	key, err := m.Key(q.Get("key"))
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

// freshMap refuses a map of whose groups nothing is known that is fresh: a controller that is cut off does not hear of another epoch either.
func (s *server) freshMap(m *shard.Map) error {
	var old error
	for _, sh := range m.Shards {
		v, ok := s.Views.View(sh.Group)
		if !ok {
			v = group.View{Group: sh.Group}
		}
		err := s.Clients.Fresh(v)
		if err == nil {
			return nil
		}
		if old == nil {
			old = err
		}
	}
	return old
}
