package drill

import (
	"context"
	"fmt"
	"strings"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/sandbox"
)

// nearest finds the server of this machine on which to restore a backup: the one that was asked for, else the one
// of the same flavour whose version is nearest. Notes say how it differs from the backup's own.
func nearest(ctx context.Context, spec string, h repo.Header) (sandbox.Server, []string, error) {
	if spec != "" {
		s, err := sandbox.Find(ctx, spec)
		if err != nil {
			return s, nil, err
		}
		return fits(s, h)
	}
	all, _, err := sandbox.Servers(ctx)
	if err != nil {
		return sandbox.Server{}, nil, err
	}
	s, ok := pick(all, h)
	if !ok {
		return s, nil, unknown(fmt.Errorf("no server like %s is installed on this machine", h.Server),
			"install one, or name another with --servers; risso sandbox servers lists them")
	}
	return fits(s, h)
}

// pick takes the nearest: of the same series and not older, else of the next newer one, else the newest of the older ones.
func pick(all []sandbox.Server, h repo.Header) (best sandbox.Server, ok bool) {
	for _, s := range all {
		if !s.Kind().SameKind(h.Server.Server) {
			continue
		}
		if !ok || rank(s, h) < rank(best, h) {
			best, ok = s, true
		}
	}
	return best, ok
}

// rank orders servers by how far they are from the backup's: lower is nearer.
func rank(s sandbox.Server, h repo.Header) fleet.Version {
	n, want := s.Kind().Number, h.Server.Number
	distance := n - want
	if distance < 0 {
		distance = -distance
	}
	switch {
	case n.SameSeries(want) && n >= want:
		return distance
	case n.SameSeries(want):
		return 1_000 + distance
	case n > want:
		return 1_000_000 + distance
	}
	return 100_000_000 + distance
}

// fits says whether a server can take a backup, and how it differs from the one that the backup is of.
func fits(s sandbox.Server, h repo.Header) (sandbox.Server, []string, error) {
	notes := []string{}
	n, want := s.Kind().Number, h.Server.Number
	other := !s.Kind().SameKind(h.Server.Server)
	if h.Kind == repo.Physical && (other || !n.SameSeries(want)) {
		return s, nil, unknown(fmt.Errorf("a physical backup of %s %s cannot be started by %s %s", h.Server.Flavour, h.Server.Version, s.Family, s.Version),
			fmt.Sprintf("install %s %s, or prove a logical backup", strings.ToLower(string(h.Server.Flavour)), want.Series()))
	}
	if other || !n.SameSeries(want) {
		notes = append(notes, fmt.Sprintf("restored into %s %s, but the backup is from %s %s", s.Family, s.Version, h.Server.Flavour, h.Server.Version))
	}
	return s, notes, nil
}
