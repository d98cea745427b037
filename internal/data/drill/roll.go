package drill

import (
	"context"
	"errors"
	"fmt"

	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/data/binlog/mirror"
	"github.com/rissodb/risso/internal/data/places"
)

// Logs say where the mirrored binary logs are that a drill rolls its server forward with.
type Logs struct {
	Place    string // where they are
	Identity string // file of the age identity that opens an encrypted repository; empty: there is none
	Trust    places.LogTrust
}

// roll applies all that is mirrored after the backup's position.
func (r *run) roll(ctx context.Context) error {
	if r.Logs == nil {
		return nil
	}
	place, closePlace, err := places.OpenLogs(ctx, r.Logs.Place, r.Logs.Identity)
	if err != nil {
		return fmt.Errorf("roll forward: %w", err)
	}
	defer closePlace()
	got, err := mirror.Roll(ctx, r.Logs.Trust.Of(place), places.MirrorDir("", r.Logs.Place), r.header, binlog.RollOptions{Into: r.target,
		Tell: func(p binlog.Progress) { r.bytes("roll forward", p.Bytes, p.Total) }})
	switch {
	case errors.Is(err, mirror.ErrNone):
		r.proof.Notes = append(r.proof.Notes, "no binary logs are mirrored: the drill proves the snapshot only (risso binlog follow mirrors them)")
		return nil
	case errors.Is(err, binlog.ErrShort): // as those of a mirror that lags do
		r.proof.Notes = append(r.proof.Notes, fmt.Sprintf("the mirrored binary logs end before the backup: logs %s: %v: nothing is rolled forward, the drill proves the snapshot only", got.Series.Key, err))
		return nil
	case err != nil && got.Series.Key != "":
		return fmt.Errorf("roll forward: logs %s: %w", got.Series.Key, err)
	case err != nil:
		return fmt.Errorf("roll forward: %w", err)
	}
	r.proof.Notes = append(r.proof.Notes, got.Notes...)
	if got.Newer != "" {
		r.proof.Notes = append(r.proof.Notes, fmt.Sprintf("the server restarted its binary logs after this backup (series %s: RESET, or other data): it is rolled forward to the end of series %s; take a new backup", got.Newer, got.Series.Key))
	}
	r.stage("roll forward")
	r.proof.Rolled = &Rolled{Transactions: got.Transactions, GTIDSet: got.GTIDs.String(), Time: got.LastTime}
	return r.unlogged(ctx)
}
