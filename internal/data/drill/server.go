package drill

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rissodb/risso/internal/data/repo"
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
	s, err := sandbox.Nearest(ctx, h.Server.Server, nil)
	if errors.Is(err, sandbox.ErrNoServer) {
		return s, nil, unknown(fmt.Errorf("no server like %s is installed on this machine", h.Server),
			"install one, or name another with --servers; risso sandbox servers lists them")
	} else if err != nil {
		return s, nil, err
	}
	return fits(s, h)
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
