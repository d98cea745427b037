package drill

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/sandbox"
)

// nearest finds the server of this machine on which a backup is to be restored: the one that was asked for, else the one
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
		return s, nil, &Error{Hint: "install one, or name another with --servers; risso sandbox servers lists them",
			Err: fmt.Errorf("no server of the kind of %s %s is on this machine", h.Server.Flavour, h.Server.Version)}
	}
	return fits(s, h)
}

// pick takes the nearest: of the same series and not older, else of the next newer one, else the newest of the older ones.
func pick(all []sandbox.Server, h repo.Header) (best sandbox.Server, ok bool) {
	for _, s := range all {
		if !sameFamily(s.Family, h.Server.Flavour) {
			continue
		}
		if !ok || rank(s, h) < rank(best, h) {
			best, ok = s, true
		}
	}
	return best, ok
}

// sameFamily says whether a server understands another's dialect and files. Percona Server and MySQL do each other's.
func sameFamily(f sandbox.Family, flavour string) bool {
	return (f == sandbox.FamilyMariaDB) == (flavour == string(fleet.FlavourMariaDB))
}

// rank orders servers by how far they are from the backup's: lower is nearer.
func rank(s sandbox.Server, h repo.Header) int {
	n, want := number(s.Version), h.Server.Number
	distance := n - want
	if distance < 0 {
		distance = -distance
	}
	switch {
	case n/100 == want/100 && n >= want:
		return distance
	case n/100 == want/100:
		return 1_000 + distance
	case n > want:
		return 1_000_000 + distance
	}
	return 100_000_000 + distance
}

// number reads 10.11.19 as 101119.
func number(version string) int {
	n := 0
	parts := strings.SplitN(version, ".", 3)
	for i := range 3 {
		n *= 100
		if i >= len(parts) {
			continue
		}
		digits := strings.TrimLeft(parts[i], "0123456789")
		p, _ := strconv.Atoi(parts[i][:len(parts[i])-len(digits)]) // digits only; none are 0
		n += p
	}
	return n
}

// fits says whether a server can take a backup, and how it differs from the one that the backup is of.
func fits(s sandbox.Server, h repo.Header) (sandbox.Server, []string, error) {
	notes := []string{}
	n, want := number(s.Version), h.Server.Number
	other := !sameFamily(s.Family, h.Server.Flavour)
	if h.Kind == repo.Physical && (other || n/100 != want/100) {
		return s, nil, &Error{Hint: fmt.Sprintf("install %s %d.%d, or prove a logical backup", strings.ToLower(h.Server.Flavour), want/10000, want/100%100),
			Err: fmt.Errorf("a physical backup of %s %s cannot be started by %s %s", h.Server.Flavour, h.Server.Version, s.Family, s.Version)}
	}
	if other || n/100 != want/100 {
		notes = append(notes, fmt.Sprintf("restored into %s %s, the backup is of %s %s", s.Family, s.Version, h.Server.Flavour, h.Server.Version))
	}
	return s, notes, nil
}
