package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/data/drill"
	"github.com/rissodb/risso/internal/data/places"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/data/verdict"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/serve/config"
	"github.com/rissodb/risso/internal/serve/protect"
	"github.com/rissodb/risso/internal/store/state"
)

type checkBackupFlags struct {
	flags.Source
	places.Trust
	config string
	server string
	age    levels
	proven levels
	mirror levels
	wait   time.Duration
}

// levels are two ages: from which a thing is a warning, and from which it is critical. The zero value: as usual.
type levels struct{ warning, critical ageLimit }

func (l levels) limits() verdict.Limits {
	return verdict.Limits{Late: time.Duration(l.warning), Lost: time.Duration(l.critical)}
}

func newCheckBackup(s screen.Streams) *cobra.Command {
	var f checkBackupFlags
	cmd := &cobra.Command{
		Use:   "backup {--from PLACE | --config FILE --server NAME}",
		Short: "Check that a recent, proven backup exists and that binary logs are mirrored",
		Long: `Looks at a backup repository and says in one line what the page Protect of risso serve
says: how old the last backup is, whether and when a drill proved one (risso drill), and
whether the mirrored binary logs (risso binlog follow) reach beyond it without a gap. The
verdict is the same as on the page. Performance data follow the vertical bar.

With --config the place, the schedules and max_age come from the protect block of the
file that risso serve reads; a backup is then late if the one that was due is missing.
With --from alone the last backup is a warning after 26h and critical after 52h, the last
proof a warning after 30d.

Exit codes: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN (the place cannot be read, wrong use).
Ages are written as 90m, 26h or 8d; 0 switches a level off. If no logs are mirrored,
nothing is said about them, unless the config file asks for a mirror. On a server that is
always writing, --mirror-warning 5m detects a mirror that has stopped; on an idle one it
would raise false alarms, so it is off by default.

` + flags.CountsHelp + `

An encrypted repository can be checked without --identity, and a monitoring host should have
none. The log being written is then judged by when it last grew, not by its contents; the
range of moments that can be restored may be reported as shorter than it is, never as longer.`,
		Example: `  risso check backup --from /backups/db1
  risso check backup --config /etc/risso.yaml --server shop
  risso check backup --from s3://bucket/db1 --warning 7h --critical 13h --proven-critical 35d
  risso check backup --from /backups/db1 --server db1 --proven-warning 0 --proven-critical 0`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return checkFailed(s, fault.Usagef("unexpected argument %q", args[0]))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return runCheckBackup(cmd.Context(), s, f) },
	}
	// Wrong use is 3 here: 2 would ring somebody out of bed.
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return checkFailed(s, err) })
	fl := cmd.Flags()
	f.Source.Bind(cmd)
	flags.BindTrust(&f.Trust, cmd)
	fl.StringVar(&f.config, "config", "", "config file of risso serve (YAML), whose protect block says where backups are and how often they are due")
	fl.StringVar(&f.server, "server", "", "only backups of this server: its name or identity (default: all backups there, which should be of one server)")
	fl.Var(&f.age.warning, "warning", "age of the last backup that is a warning (default 26h)")
	fl.Var(&f.age.critical, "critical", "age of the last backup that is critical (default twice --warning)")
	fl.Var(&f.proven.warning, "proven-warning", "age of the last proof by a drill that is a warning (default 30d)")
	fl.Var(&f.proven.critical, "proven-critical", "as above, but critical (default never)")
	fl.Var(&f.mirror.warning, "mirror-warning", "age of the newest mirrored event that is a warning (default never)")
	fl.Var(&f.mirror.critical, "mirror-critical", "as above, but critical (default never)")
	flags.DurationVar(fl, &f.wait, "timeout", 30*time.Second, "give up after this time, as UNKNOWN")
	return cmd
}

func checkFailed(s screen.Streams, err error) error { return failed(s, "BACKUP", err) }

func runCheckBackup(ctx context.Context, s screen.Streams, f checkBackupFlags) error {
	ctx, cancel := context.WithTimeoutCause(ctx, f.wait, fmt.Errorf("no answer from the place within %s", f.wait))
	defer cancel()
	want, names, err := f.want()
	if err != nil {
		return checkFailed(s, err)
	}
	facts, err := f.look(ctx, names)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return checkFailed(s, err)
	}
	state, line := judgeBackups(facts, want, time.Now())
	fmt.Fprintln(s.Out, line)
	if state == OK {
		return nil
	}
	return &fault.Told{Code: state}
}

// want is what the backups are measured by, and the names of the server that they are to be of: none, then all are.
func (f *checkBackupFlags) want() (w verdict.Want, names []string, err error) {
	if f.server != "" {
		names = []string{f.server}
	}
	if f.config != "" {
		p, s, err := protectBlock(f.config, f.server)
		if err != nil {
			return w, nil, err
		}
		w = p.Want(time.Time{})
		f.From, f.Identity = cmp.Or(f.From, p.Place), cmp.Or(f.Identity, p.IdentityFile)
		f.Keys, f.AllowUnsigned = slices.Concat(f.Keys, p.Trust), f.AllowUnsigned || p.Unsigned
		if s.Name != "" {
			names = append(names, s.Name)
		}
		if t, err := mysql.ParseTarget(s.DSN); s.DSN != "" && err == nil {
			names = append(names, t.Address())
		}
	}
	w.Place = f.From
	for _, l := range []struct {
		flag levels
		into *verdict.Limits
	}{{f.age, &w.Age}, {f.proven, &w.Proof}, {f.mirror, &w.Behind}} {
		given := l.flag.limits()
		if given.Late > 0 {
			l.into.Late = given.Late
		}
		if given.Lost > 0 {
			l.into.Lost = given.Lost
		}
	}
	// A server that writes nothing has no new events, and from here that looks like a mirror that stopped.
	for _, d := range []*time.Duration{&w.Behind.Late, &w.Behind.Lost} {
		if *d == 0 {
			*d = verdict.Never
		}
	}
	return w, names, nil
}

// protectBlock finds the protect block of a server in a config file; of the only one without a name.
func protectBlock(file, name string) (*config.Protection, config.Server, error) {
	c, err := config.Read(file)
	if err != nil {
		return nil, config.Server{}, err
	}
	var found []config.Server
	for _, s := range c.Servers {
		if s.Protect != nil && (name == "" || s.Name == name) {
			found = append(found, s)
		}
	}
	switch {
	case len(found) == 0 && name != "":
		return nil, config.Server{}, fault.Usagef("the config file protects no server called %q", name)
	case len(found) == 0:
		return nil, config.Server{}, fault.Usagef("the config file protects no server")
	case len(found) > 1:
		return nil, config.Server{}, fault.Usagef("the config file protects %d servers: name one with --server", len(found))
	}
	p, err := found[0].Protect.Check()
	if err != nil {
		return nil, config.Server{}, fault.Usagef("protect: %w", err)
	}
	return p, found[0], nil
}

// backupFacts are what a check knows: what the verdict is made of, and how many backups there are.
type backupFacts struct {
	verdict.Facts
	backups int
	newest  verdict.Uncounted
	doubt   string // why the newest proof counts for nothing
	strange string // which mirrored logs count for nothing, and why
}

// look reads what is at the place, as risso serve does for its catalogue.
func (f checkBackupFlags) look(ctx context.Context, names []string) (facts backupFacts, err error) {
	if f.Source.Policy, err = f.Trust.Policy(f.From, nil); err != nil {
		return facts, err
	}
	r, done, err := f.Open(ctx)
	if err != nil {
		return facts, err
	}
	defer done()
	list, err := r.Catalogue(ctx)
	if err != nil {
		return facts, err
	}
	strangers, err := r.Strangers(ctx, list)
	if err != nil {
		return facts, err
	}
	now := time.Now()
	const instance = "checked" // everything checked is of one server
	var backups []state.Backup
	var newest repo.Header
	known := map[string]bool{}
	headless, err := r.Headless(ctx)
	if err != nil {
		return facts, err
	}
	counted, uncounted := protect.Counted(list, headless, strangers, func(h repo.Header) bool {
		return len(names) == 0 || slices.Contains(names, h.Server.Name) || slices.Contains(names, h.Server.Identity)
	})
	facts.newest = uncounted
	for _, e := range slices.Backward(counted) { // the newest first
		h := e.Header
		if len(backups) == 0 || fleet.Ahead(newest.Began, now) && !fleet.Ahead(h.Began, now) {
			newest = h
		}
		backups = append(backups, protect.Catalogued(h, f.From, instance))
		facts.First = h.Ended
		known[h.ID] = true
	}
	facts.backups = len(backups)
	proofs, err := drill.Proofs(ctx, r, "")
	if err != nil {
		return facts, err
	}
	drills, doubt, err := protect.Drills(proofs, f.From, instance, known)
	if err != nil {
		return facts, err
	}
	slices.Reverse(drills)
	facts.doubt = doubt
	var mirrors []state.Mirror
	if len(backups) > 0 {
		m, short, strange, err := places.Mirrored(ctx, f.From, f.Identity, newest, f.Source.Policy)
		if err != nil {
			return facts, err
		}
		facts.strange = strange
		if m != nil {
			m.Instance, facts.Short = instance, short
			mirrors = append(mirrors, *m)
		}
	}
	facts.Mirrors = mirrors
	if lines := state.Protect(backups, drills, mirrors, nil, nil, now); len(lines) > 0 {
		facts.Protection = lines[0]
	}
	return facts, nil
}

// judgeBackups says how good the backups are, in the words of the page: pure.
func judgeBackups(f backupFacts, want verdict.Want, now time.Time) (code int, line string) {
	want.Newest, want.Doubt, want.Strange = f.newest, f.doubt, f.strange
	want.Mirror = want.Mirror || len(f.Mirrors) > 0
	v := verdict.Judge(f.Facts, &want, now)
	words := v.Words
	for _, more := range v.Findings[min(1, len(v.Findings)):] {
		words += "; " + more.What
	}
	code = map[verdict.State]int{verdict.OK: OK, verdict.Warning: Warning, verdict.Critical: Critical}[v.State]
	return code, "BACKUP " + checkWords[code] + " - " + noBar(fault.Line(words, "")) + " | " + strings.Join(perfData(f, want, now), " ")
}

// perfData are the numbers after the bar.
func perfData(f backupFacts, want verdict.Want, now time.Time) []string {
	perf := []string{}
	b := f.LastBackup
	if b != nil {
		perf = append(perf, perfAge("age", now.Sub(b.Began), want.AgeLimits(b.Began.In(now.Location()))), fmt.Sprintf("size=%dB;;;0", b.Bytes), fmt.Sprintf("stored=%dB;;;0", b.Stored))
	}
	perf = append(perf, fmt.Sprintf("backups=%d;;;0", f.backups))
	if f.LastProven != nil {
		perf = append(perf, perfAge("proven", now.Sub(f.ProvenAt), want.ProofLimits(f.ProvenAt.In(now.Location()))))
		if f.Recovery > 0 { // else it is not known: it is encrypted, and there is no identity
			perf = append(perf, fmt.Sprintf("recovery=%.3fs;;;0", f.Recovery))
		}
	}
	for _, m := range f.Mirrors {
		gap := 0
		if m.Gap != "" {
			gap = 1
		}
		perf = append(perf, perfAge("mirror", now.Sub(m.Last), want.BehindLimits()), fmt.Sprintf("gap=%d;;;0", gap))
	}
	return perf
}

// perfAge is an age as performance data: label=value;warning;critical;minimum.
func perfAge(label string, age time.Duration, l verdict.Limits) string {
	level := func(d time.Duration) string {
		if d >= verdict.Never {
			return ""
		}
		return strconv.FormatFloat(d.Seconds(), 'f', -1, 64)
	}
	return fmt.Sprintf("%s=%.0fs;%s;%s;0", label, max(0, age.Seconds()), level(l.Late), level(l.Lost))
}

// ageLimit is a length of time from which a level holds; 0 is as usual, verdict.Never is off.
type ageLimit time.Duration

// String is the ageLimit as it is written.
func (s *ageLimit) String() string {
	d := time.Duration(*s)
	switch {
	case d == 0:
		return "" // as usual
	case d == verdict.Never:
		return "0"
	}
	return digits.Duration(d)
}

// Set reads it.
func (s *ageLimit) Set(text string) error {
	if text == "0" { // the level is switched off
		*s = ageLimit(verdict.Never)
		return nil
	}
	d, err := digits.ParseDuration(text)
	if err == nil && d == 0 {
		err = errors.New("a length of time such as 90m, 26h or 8d, or 0 for never")
	}
	if err == nil {
		*s = ageLimit(d)
	}
	return err
}

// Type is what help calls it.
func (s *ageLimit) Type() string { return "age" }
