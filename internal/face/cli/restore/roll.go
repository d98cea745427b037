package restore

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/data/binlog/mirror"
	"github.com/rissodb/risso/internal/data/load"
	"github.com/rissodb/risso/internal/data/places"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/digits"
	clibinlog "github.com/rissodb/risso/internal/face/cli/binlog"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/mysql"
)

// Roller joins restores and binary logs.
type Roller struct {
	F     Flags
	trust places.LogTrust // of mirrored logs
}

// Check reads the logs once and changes nothing.
func (r Roller) Check(ctx context.Context, what load.Roll) (load.RollPlan, error) {
	res, source, err := r.run(ctx, what, true)
	out := load.RollPlan{Source: source, Transactions: res.Transactions, LastTime: res.LastTime, Stops: res.Stopped, Notes: res.Notes}
	if !res.LastGTID.IsZero() {
		out.Last = res.LastGTID.String()
	}
	out.Logs, out.Bytes = clibinlog.RollLogs(res)
	return out, err
}

// Roll applies them.
func (r Roller) Roll(ctx context.Context, what load.Roll) (load.Rolled, error) {
	res, _, err := r.run(ctx, what, false)
	if err != nil {
		return load.Rolled{}, err
	}
	out := load.Rolled{Transactions: res.Transactions, LastTime: res.LastTime, GTIDSet: res.GTIDs.String(), Stopped: res.Stopped, Notes: res.Notes}
	for _, x := range res.Prepared {
		out.Notes = append(out.Notes, "prepared, and waiting for its end unless that came too: XA "+x)
	}
	if !res.LastGTID.IsZero() {
		out.Last = res.LastGTID.String()
	}
	return out, nil
}

// Forget takes away what the server has noted of them.
func (r Roller) Forget(ctx context.Context, what load.Roll) error {
	return binlog.Forget(ctx, what.Into, what.Backup.Position)
}

// run rolls forward, or with plan finds out what that would be; source says where the logs are.
func (r Roller) run(ctx context.Context, what load.Roll, plan bool) (res binlog.RollResult, source string, err error) {
	o := binlog.RollOptions{From: what.Backup.Position, Into: what.Into, Plan: plan, Leave: true, Stop: binlog.Stop{Time: what.Until.Time}}
	if what.Wants != nil {
		o.Only = what.Wants
	}
	if what.Names != nil {
		o.Names = what.Names
	}
	for text, before := range map[string]bool{what.Until.GTID: false, what.Until.Before: true} {
		if text == "" {
			continue
		}
		if o.Stop.GTID, err = mysql.ParseGTID(text); err != nil {
			return res, "", err
		}
		o.Stop.Before = before
	}
	if r.F.LogsDSN == "" && r.F.series == "" {
		return r.ofServer(ctx, what, o)
	}
	logs := clibinlog.Flags{Server: flags.Server{Dsn: r.F.LogsDSN, ConfigFile: r.F.configFile, DefaultsFile: r.F.defaultsFile}, Dir: r.F.logsDir, Series: r.F.series, Identity: r.F.identity}
	if r.F.LogsDSN == "" {
		logs.From = r.place()
		logs.LogTrust = r.trust
	}
	src, err := logs.Source(ctx, nil)
	if err != nil {
		return res, "", err
	}
	defer src.Close()
	if r.F.LogsDSN == "" {
		source = r.sourceWords(src.Series)
	} else if t, err := logs.Target(); err == nil {
		source = t.String()
	}
	o.Files, o.Lacks = src.Files, src.Series.Lacks()
	if o.Own, err = r.own(ctx, what.Backup, src, logs); err != nil {
		return res, source, err
	}
	if src.Live { // whoever names a series may know better than a clock
		o.Moment = what.Backup.Moment()
	}
	res, err = binlog.Roll(ctx, o)
	return res, source, err
}

// own says whether logs are of the backup's server.
func (r Roller) own(ctx context.Context, backup repo.Header, src clibinlog.Source, logs clibinlog.Flags) (bool, error) {
	if !src.Live {
		return src.Series.Of(backup.Server.Identity), nil
	}
	t, err := logs.Target()
	if err != nil {
		return false, err
	}
	c, err := mysql.Connect(ctx, t, nil)
	if err != nil {
		return false, err
	}
	defer c.Close()
	return c.Server.ID == backup.Server.Identity, nil
}

// sourceWords says where the logs of a series are.
func (r Roller) sourceWords(s mirror.Series) string {
	return "series " + s.Key + " of " + places.Words(r.place())
}

func (r Roller) place() string {
	if r.F.logs != "" {
		return r.F.logs
	}
	return r.F.From
}

// ofServer takes those logs that were mirrored of the backup's server and go on from it.
func (r Roller) ofServer(ctx context.Context, what load.Roll, o binlog.RollOptions) (res binlog.RollResult, source string, err error) {
	place, closePlace, err := places.OpenLogs(ctx, r.place(), r.F.identity)
	if err != nil {
		return res, "", err
	}
	defer closePlace()
	rolled, err := mirror.Roll(ctx, r.trust.Of(place), places.MirrorDir(r.F.logsDir, r.place()), what.Backup, o)
	if errors.Is(err, mirror.ErrNone) {
		return res, "", fmt.Errorf("no binary logs of %s are mirrored in %s", what.Backup.Server.Name, places.Words(r.place()))
	}
	if rolled.Series.Key != "" {
		source = r.sourceWords(rolled.Series)
	}
	return rolled.RollResult, source, err
}

// rollPlanText says what would be read of the binary logs.
func rollPlanText(out io.Writer, p load.RollPlan, some bool) {
	logs := p.Logs
	switch {
	case p.Problem != "":
		fmt.Fprintln(out, "cannot roll forward:", p.Problem)
	case len(logs) == 0:
		fmt.Fprintln(out, "rolls forward by nothing")
	}
	if len(logs) > 0 {
		first, last := logs[0], logs[len(logs)-1]
		verb := "rolls forward"
		if p.Problem != "" {
			verb = "up to the obstacle there is what lies"
		}
		fmt.Fprintf(out, "%s from %s:%d to %s:%d: %s, %s", verb, first.Name, first.From, last.Name, last.To, digits.Counted(p.Transactions, "transaction"), digits.Bytes(p.Bytes))
		if p.Last != "" {
			fmt.Fprintf(out, ", the last %s", p.Last)
		}
		if !p.LastTime.IsZero() {
			fmt.Fprintf(out, " of %s", screen.Clock(p.LastTime))
		}
		if some {
			fmt.Fprint(out, "; those of other tables are left out")
		}
		fmt.Fprintln(out)
	}
	clibinlog.RollLogsText(out, logs)
	if p.Source != "" {
		fmt.Fprintln(out, "the binary logs are those of", p.Source)
	}
	if p.Stops != "" {
		fmt.Fprintln(out, "ends", p.Stops)
	}
	for _, n := range p.Notes {
		fmt.Fprintln(out, "note:", n)
	}
}
