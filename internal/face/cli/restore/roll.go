package restore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/data/binlog/mirror"
	"github.com/rissodb/risso/internal/data/load"
	"github.com/rissodb/risso/internal/data/places"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/digits"
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
	p, source, done, err := r.plan(ctx, what)
	defer done()
	out := load.RollPlan{Source: source}
	if p == nil {
		return out, err
	}
	res := p.Result
	out.Transactions, out.Last, out.LastTime, out.Stops, out.Notes, out.Steps = res.Transactions, res.LastGTID.String(), res.LastTime, res.Stopped, res.Notes, p.Steps()
	for _, s := range res.Stretches {
		if s.Transactions > 0 {
			out.Logs = append(out.Logs, load.RollLog{Name: s.File, From: s.From, To: s.To, Transactions: s.Transactions})
			out.Bytes += s.Bytes()
		}
	}
	return out, err
}

// Roll applies them.
func (r Roller) Roll(ctx context.Context, what load.Roll) (load.Rolled, error) {
	p, _, done, err := r.plan(ctx, what)
	defer done()
	if err != nil {
		return load.Rolled{}, err
	}
	res, err := p.Execute(ctx, change.Log{})
	if err != nil {
		return load.Rolled{}, err
	}
	out := load.Rolled{Transactions: res.Transactions, Last: res.LastGTID.String(), LastTime: res.LastTime, GTIDSet: res.GTIDs.String(), Stopped: res.Stopped, Notes: res.Notes}
	for _, x := range res.Prepared {
		out.Notes = append(out.Notes, "prepared, and waiting for its end unless that came too: XA "+x)
	}
	return out, nil
}

// Forget removes what the server has noted of them.
func (r Roller) Forget(ctx context.Context, what load.Roll) error {
	return binlog.Forget(ctx, what.Into, what.Backup.Position)
}

// plan finds out what rolling forward will do, and where the logs are. done closes what is open for it.
func (r Roller) plan(ctx context.Context, what load.Roll) (p *binlog.Plan, source string, done func(), err error) {
	o := binlog.RollOptions{From: what.Backup.Position, Into: what.Into, Leave: true, Stop: what.Until}
	if what.Wants != nil {
		o.Only = what.Wants
	}
	if what.Names != nil {
		o.Names = what.Names
	}
	if r.F.Logs.Dsn == "" && r.F.Logs.Series == "" {
		return r.ofServer(ctx, what, o)
	}
	logs := r.F.Logs
	logs.ConfigFile, logs.DefaultsFile, logs.Identity = r.F.configFile, r.F.defaultsFile, r.F.identity
	if logs.Dsn == "" {
		logs.From, logs.LogTrust = r.place(), r.trust
	}
	src, err := logs.Source(ctx, nil)
	if err != nil {
		return nil, "", func() {}, err
	}
	if logs.Dsn == "" {
		source = r.sourceWords(src.Series)
	} else if t, err := logs.Target(); err == nil {
		source = t.String()
	}
	o.Files, o.Lacks = src.Files, src.Series.Lacks()
	if o.Own, err = r.own(ctx, what.Backup, src, logs); err != nil {
		return nil, source, src.Close, err
	}
	if src.Live { // the user who names a series may know better than a clock
		o.Moment = what.Backup.Moment()
	}
	p, err = binlog.PlanRoll(ctx, o)
	return p, source, src.Close, err
}

// own reports whether logs are of the backup's server.
func (r Roller) own(ctx context.Context, backup repo.Header, src flags.LogSource, logs flags.Logs) (bool, error) {
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
	return cmp.Or(r.F.Logs.From, r.F.From)
}

// ofServer takes those logs that were mirrored of the backup's server and go on from it.
func (r Roller) ofServer(ctx context.Context, what load.Roll, o binlog.RollOptions) (p *binlog.Plan, source string, done func(), err error) {
	place, done, err := places.OpenLogs(ctx, r.place(), r.F.identity)
	if err != nil {
		return nil, "", func() {}, err
	}
	plan, err := mirror.PlanRoll(ctx, r.trust.Of(place), places.MirrorDir(r.F.Logs.Dir, r.place()), what.Backup, o)
	if errors.Is(err, mirror.ErrNone) {
		return nil, "", done, fmt.Errorf("no binary logs of %s are mirrored in %s", what.Backup.Server.Name, places.Words(r.place()))
	}
	if plan.Series.Key != "" {
		source = r.sourceWords(plan.Series)
	}
	return plan.Plan, source, done, err
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
	screen.Steps(out, p.Steps)
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
