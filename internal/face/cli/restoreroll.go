package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/data/load"
	"github.com/rissodb/risso/internal/mysql"
)

// restoreRoller joins restores and binary logs.
type restoreRoller struct{ f restoreFlags }

// Check reads the logs once and changes nothing.
func (r restoreRoller) Check(ctx context.Context, what load.Roll) error {
	_, err := r.run(ctx, what, true)
	return err
}

// Roll applies them.
func (r restoreRoller) Roll(ctx context.Context, what load.Roll) (load.Rolled, error) {
	res, err := r.run(ctx, what, false)
	if err != nil {
		return load.Rolled{}, err
	}
	out := load.Rolled{Transactions: res.Transactions, LastTime: res.LastTime, GTIDSet: res.GTIDs.String(), Stopped: res.Stopped}
	if !res.LastGTID.IsZero() {
		out.Last = res.LastGTID.String()
	}
	return out, nil
}

func (r restoreRoller) run(ctx context.Context, what load.Roll, plan bool) (binlog.RollResult, error) {
	o := binlog.RollOptions{From: what.Backup.Position, Into: what.Into, Plan: plan, Stop: binlog.Stop{Time: what.Until.Time}}
	if what.Wants != nil {
		o.Only = what.Wants
	}
	if what.Names != nil {
		o.Names = what.Names
	}
	var err error
	for text, before := range map[string]bool{what.Until.GTID: false, what.Until.Before: true} {
		if text == "" {
			continue
		}
		if o.Stop.GTID, err = mysql.ParseGTID(text); err != nil {
			return binlog.RollResult{}, usageError("where to end: %w", err)
		}
		o.Stop.Before = before
	}
	if r.f.logsDSN != "" || r.f.series != "" {
		logs := logFlags{serverFlags: serverFlags{dsn: r.f.logsDSN, configFile: r.f.configFile, defaultsFile: r.f.defaultsFile}, dir: r.f.logsDir, series: r.f.series, identity: r.f.identity}
		if r.f.logsDSN == "" {
			logs.from = r.place()
		}
		files, closeIt, err := logs.files(ctx, nil)
		if err != nil {
			return binlog.RollResult{}, err
		}
		defer closeIt()
		o.Files = files
		return binlog.Roll(ctx, o)
	}
	return r.ofServer(ctx, what, o)
}

func (r restoreRoller) place() string {
	if r.f.logs != "" {
		return r.f.logs
	}
	return r.f.from
}

// ofServer takes the logs that were mirrored of the backup's server. Those of another life of it do not reach its position.
func (r restoreRoller) ofServer(ctx context.Context, what load.Roll, o binlog.RollOptions) (binlog.RollResult, error) {
	place, closePlace, err := openPlace(ctx, r.place(), r.f.identity)
	if err != nil {
		return binlog.RollResult{}, err
	}
	defer closePlace()
	dir := mirrorDir(r.f.logsDir, r.place())
	list, err := seriesOf(ctx, place, dir, what.Backup.Server.Identity)
	if err != nil {
		return binlog.RollResult{}, err
	}
	for i, series := range list {
		o.Files = series.Files(place, dir)
		res, err := binlog.Roll(ctx, o)
		if !errors.Is(err, binlog.ErrGap) || i == len(list)-1 {
			return res, err
		}
	}
	return binlog.RollResult{}, fmt.Errorf("no binary logs of %s are mirrored in %s", what.Backup.Server.Name, placeWords(r.place()))
}
