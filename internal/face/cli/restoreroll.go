package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/data/binlog/mirror"
	"github.com/rissodb/risso/internal/data/load"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/mysql"
)

// restoreRoller joins restores and binary logs.
type restoreRoller struct {
	f     restoreFlags
	trust logTrust // of mirrored logs
}

// Check reads the logs once and changes nothing.
func (r restoreRoller) Check(ctx context.Context, what load.Roll) (load.RollPlan, error) {
	res, source, err := r.run(ctx, what, true)
	out := load.RollPlan{Source: source, Transactions: res.Transactions, LastTime: res.LastTime, Stops: res.Stopped, Notes: res.Notes}
	if !res.LastGTID.IsZero() {
		out.Last = res.LastGTID.String()
	}
	out.Logs, out.Bytes = rollLogs(res)
	return out, err
}

// rollLogs are the stretches of logs that are applied, and their bytes.
func rollLogs(res binlog.RollResult) (logs []load.RollLog, bytes int64) {
	for _, s := range res.Stretches {
		if s.Transactions > 0 {
			logs = append(logs, load.RollLog{Name: s.File, From: s.From, To: s.To, Transactions: s.Transactions})
			bytes += s.Bytes()
		}
	}
	return logs, bytes
}

// Roll applies them.
func (r restoreRoller) Roll(ctx context.Context, what load.Roll) (load.Rolled, error) {
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
func (r restoreRoller) Forget(ctx context.Context, what load.Roll) error {
	return binlog.Forget(ctx, what.Into, what.Backup.Position)
}

// run rolls forward, or with plan finds out what that would be; source says where the logs are.
func (r restoreRoller) run(ctx context.Context, what load.Roll, plan bool) (res binlog.RollResult, source string, err error) {
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
	if r.f.logsDSN == "" && r.f.series == "" {
		return r.ofServer(ctx, what, o)
	}
	logs := logFlags{serverFlags: serverFlags{dsn: r.f.logsDSN, configFile: r.f.configFile, defaultsFile: r.f.defaultsFile}, dir: r.f.logsDir, series: r.f.series, identity: r.f.identity}
	if r.f.logsDSN == "" {
		logs.from = r.place()
		logs.trust = r.trust
	}
	src, err := logs.source(ctx, nil)
	if err != nil {
		return res, "", err
	}
	defer src.close()
	if r.f.logsDSN == "" {
		source = r.sourceWords(src.series)
	} else if t, err := logs.target(); err == nil {
		source = t.String()
	}
	o.Files, o.Lacks = src.files, src.series.Lacks()
	if o.Own, err = r.own(ctx, what.Backup, src, logs); err != nil {
		return res, source, err
	}
	if src.live { // whoever names a series may know better than a clock
		o.Moment = what.Backup.Moment()
	}
	res, err = binlog.Roll(ctx, o)
	return res, source, err
}

// own says whether logs are of the backup's server.
func (r restoreRoller) own(ctx context.Context, backup repo.Header, src logSource, logs logFlags) (bool, error) {
	if !src.live {
		return src.series.Of(backup.Server.Identity), nil
	}
	t, err := logs.target()
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
func (r restoreRoller) sourceWords(s mirror.Series) string {
	return "series " + s.Key + " of " + placeWords(r.place())
}

func (r restoreRoller) place() string {
	if r.f.logs != "" {
		return r.f.logs
	}
	return r.f.from
}

// ofServer takes those logs that were mirrored of the backup's server and go on from it.
func (r restoreRoller) ofServer(ctx context.Context, what load.Roll, o binlog.RollOptions) (res binlog.RollResult, source string, err error) {
	place, closePlace, err := openPlace(ctx, r.place(), r.f.identity)
	if err != nil {
		return res, "", err
	}
	defer closePlace()
	rolled, err := mirror.Roll(ctx, r.trust.of(place), mirrorDir(r.f.logsDir, r.place()), what.Backup, o)
	if errors.Is(err, mirror.ErrNone) {
		return res, "", fmt.Errorf("no binary logs of %s are mirrored in %s", what.Backup.Server.Name, placeWords(r.place()))
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
		fmt.Fprintf(out, "%s from %s:%d to %s:%d: %s, %s", verb, first.Name, first.From, last.Name, last.To, digits.Counted(p.Transactions, "transaction"), render.Bytes(float64(p.Bytes)))
		if p.Last != "" {
			fmt.Fprintf(out, ", the last %s", p.Last)
		}
		if !p.LastTime.IsZero() {
			fmt.Fprintf(out, " of %s", clock(p.LastTime))
		}
		if some {
			fmt.Fprint(out, "; those of other tables are left out")
		}
		fmt.Fprintln(out)
	}
	rollLogsText(out, logs)
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

// rollLogsText lists logs, the first of them.
func rollLogsText(out io.Writer, logs []load.RollLog) {
	const most = 20 // lines
	for i, l := range logs {
		if i == most-1 && len(logs) > most {
			fmt.Fprintf(out, "  and %d more\n", len(logs)-i)
			return
		}
		fmt.Fprintf(out, "  %s from %d to %d: %s, %s\n", l.Name, l.From, l.To, digits.Counted(l.Transactions, "transaction"), render.Bytes(float64(l.To-l.From)))
	}
}
