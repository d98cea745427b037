package places

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/data/binlog/mirror"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/home"
	"github.com/rissodb/risso/internal/store/blob"
	"github.com/rissodb/risso/internal/store/state"
)

// MirrorDir is the folder of logs that are being written: the given one, or the place itself, or one of Risso's own.
func MirrorDir(dir, place string) string {
	if dir != "" {
		return dir
	}
	if rest, ok := strings.CutPrefix(place, "file://"); ok {
		place = rest
	}
	if !strings.Contains(place, "://") {
		return place
	}
	clean := strings.Map(func(r rune) rune {
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.", r) {
			return r
		}
		return '_'
	}, Words(place))
	return filepath.Join(home.State("mirror"), clean)
}

// OpenLogs opens a place for mirrored logs, and the repository there, if there is one.
func OpenLogs(ctx context.Context, place, identity string) (mirror.Place, func(), error) {
	var p mirror.Place
	if err := blob.Check(place); err != nil {
		return p, nil, err
	}
	keys, err := Keys(nil, identity)
	if err != nil {
		return p, nil, err
	}
	store, err := blob.Open(ctx, place, blob.Options{})
	if err != nil {
		return p, nil, err
	}
	p.Store, p.Name = repo.On(store), ID(place)
	if p.Repo, err = repo.OpenWith(ctx, p.Store, keys); err != nil && !errors.Is(err, repo.ErrNoRepository) {
		store.Close()
		return p, nil, Failure(ctx, place, err)
	}
	return p, func() { store.Close() }, nil
}

// seriesOf are the mirrored logs of a server, the newest life of it first.
func seriesOf(ctx context.Context, place mirror.Place, dir, identity string) ([]mirror.Series, error) {
	all, err := mirror.List(ctx, place, dir)
	return mirror.Of(all, identity), err
}

// Mirrored looks how far the mirrored logs of a backup's server reach that count by a policy, nil if there are none; short: they end
// before the backup's position; doubt: what is there and does not count, and why.
func Mirrored(ctx context.Context, at, identity string, newest repo.Header, policy repo.Policy) (m *state.Mirror, short bool, doubt string, err error) {
	place, closePlace, err := OpenLogs(ctx, at, identity)
	if err != nil {
		return nil, false, "", err
	}
	defer closePlace()
	place.Policy = policy
	dir := MirrorDir("", at)
	list, err := seriesOf(ctx, place, dir, newest.Server.Identity)
	if err != nil {
		return nil, false, "", err
	}
	var s mirror.Series
	for i := 0; i < len(list) && len(s.Logs) == 0; i++ { // one that a stranger put there hides none
		var why string
		if s, why, err = list[i].Counted(ctx, place, dir); err != nil {
			return nil, false, "", err
		}
		doubt = cmp.Or(doubt, why)
	}
	logs := s.Logs
	if len(logs) == 0 {
		return nil, false, doubt, nil
	}
	m = &state.Mirror{Place: at, Last: logs[len(logs)-1].Last}
	m.First, m.Gap = Unbroken(s)
	if m.First.IsZero() {
		m.First = lockedFirst(logs[len(logs)-1], newest)
	}
	short = newest.Position.File != ""
	for _, l := range logs {
		order := binlog.CompareNames(l.Name, newest.Position.File)
		if order > 0 || order == 0 && l.Size >= newest.Position.Offset {
			short = false
		}
	}
	return m, short, doubt, nil
}

// lockedFirst is when a log begins at the latest that cannot be read here: it is encrypted, being written, and no identity is given. Logs
// before it are missing, or there are none. If the backup's position is in it, it begins before the backup.
func lockedFirst(l mirror.Log, newest repo.Header) time.Time {
	if l.Name == newest.Position.File {
		return newest.Began
	}
	return l.Last
}

// Unbroken finds where the run of logs that ends now begins, and what is missing before it.
func Unbroken(s mirror.Series) (first time.Time, gap string) {
	first = s.Logs[0].First
	gaps := s.Gaps()
	if len(gaps) == 0 {
		return first, ""
	}
	last := gaps[len(gaps)-1]
	for i := range s.Logs {
		if s.Logs[i].Name == last.Before {
			first = s.Logs[i].First
		}
	}
	return first, last.String()
}
