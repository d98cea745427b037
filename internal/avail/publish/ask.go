package publish

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/digits"
)

// Refusal is why nobody is told.
type Refusal struct {
	Reason string
	Group  string
	Epoch  uint64
	Age    time.Duration // of the view
	Stale  bool          // the view is too old: nobody knows
}

// Error is the reason.
func (r *Refusal) Error() string { return r.Reason }

// fresh refuses a view that is too old.
func fresh(v group.View, now time.Time, maxAge time.Duration) error {
	age := ageOf(v, now)
	if age <= maxAge {
		return nil
	}
	why := fmt.Sprintf("where the clients of %s go was last known %s ago, which is too long", v.Group, digits.Span(age))
	if v.Seen.IsZero() {
		why = "where the clients of " + v.Group + " go is not known yet"
	}
	return &Refusal{Reason: why, Group: v.Group, Epoch: v.Epoch, Age: age, Stale: true}
}

// Fresh is nil for a view that is no older than maxAge (0: DefaultMaxAge), else a *Refusal.
func Fresh(v group.View, now time.Time, maxAge time.Duration) error {
	return fresh(v, now, cmp.Or(maxAge, DefaultMaxAge))
}

// PrimaryOf is the server that takes the writes of a group, by a view that is no older than maxAge; else the error is a *Refusal.
func PrimaryOf(v group.View, now time.Time, maxAge time.Duration) (group.Server, error) {
	if err := fresh(v, now, maxAge); err != nil {
		return group.Server{}, err
	}
	if v.Primary == nil {
		why := "no server of " + v.Group + " takes writes now"
		if v.NoPrimary != "" {
			why += ": " + v.NoPrimary
		}
		return group.Server{}, &Refusal{Reason: why, Group: v.Group, Epoch: v.Epoch, Age: ageOf(v, now)}
	}
	return *v.Primary, nil
}

// ReplicasOf are the servers that answer the reads of a group, by name, by a view that is no older than maxAge. With maxLag those are left out that are further behind,
// or of which that is not known. Where none is left the error is a *Refusal.
func ReplicasOf(v group.View, now time.Time, maxAge, maxLag time.Duration) ([]group.Server, error) {
	if err := fresh(v, now, maxAge); err != nil {
		return nil, err
	}
	list := slices.DeleteFunc(slices.Clone(v.Replicas), func(s group.Server) bool { return s.Weight <= 0 || maxLag > 0 && (s.Lag == nil || *s.Lag > maxLag) })
	slices.SortFunc(list, byName)
	if len(list) > 0 {
		return list, nil
	}
	why := "no replica of " + v.Group + " answers reads now"
	if maxLag > 0 && len(v.Replicas) > 0 {
		why = fmt.Sprintf("no replica of %s is known to be at most %s behind", v.Group, digits.Duration(maxLag))
	}
	return nil, &Refusal{Reason: why, Group: v.Group, Epoch: v.Epoch, Age: ageOf(v, now)}
}

// is reports whether a server is the one that is asked for, by its name or address.
func is(s group.Server, asked string) bool {
	return s.Name == asked || strings.EqualFold(s.Address, asked)
}
