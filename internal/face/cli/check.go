package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/data/drill"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/face/render"
)

// The states of a check, which are its exit codes. Source: Monitoring Plugins Development Guidelines.
const (
	checkOK = iota
	checkWarning
	checkCritical
	checkUnknown
)

var checkWords = [...]string{"OK", "WARNING", "CRITICAL", "UNKNOWN"}

// newCheck is `risso check`.
func newCheck(s Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Checks for Nagios and Icinga: one line, performance data, exit codes 0 to 3",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(newCheckBackup(s))
	return cmd
}

type checkBackupFlags struct {
	fromFlags
	server string
	age    levels
	proven levels
	mirror levels
	wait   time.Duration
}

// levels are two ages: from which a thing is a warning, and from which it is critical. 0: never.
type levels struct{ warning, critical ageLimit }

func newCheckBackup(s Streams) *cobra.Command {
	f := checkBackupFlags{
		age:    levels{ageLimit(26 * time.Hour), ageLimit(50 * time.Hour)},
		proven: levels{ageLimit(8 * 24 * time.Hour), ageLimit(15 * 24 * time.Hour)},
	}
	cmd := &cobra.Command{
		Use:   "backup --from PLACE",
		Short: "Is there a fresh backup that was proven, and are the binary logs mirrored?",
		Long: `Looks at a backup repository and says in one line how old the newest backup is, how
long ago a drill proved one (risso drill), and whether the mirrored binary logs (risso
binlog follow) reach beyond the newest backup without a gap. Performance data stand
behind the bar.

Exit codes: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN (the place cannot be read, wrong use).
Ages are written as 90m, 26h or 8d; 0 switches a level off. Where no logs are mirrored,
nothing is said of them. On a server that writes all the time, --mirror-warning 5m finds
a mirror that stands still; on an idle one it would cry wolf, so it is off by default.`,
		Example: `  risso check backup --from /backups
  risso check backup --from s3://bucket/db1 --warning 7h --critical 13h --proven-critical 35d
  risso check backup --from /backups --server db1 --proven-warning 0 --proven-critical 0`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return checkFailed(s, usageError("unexpected argument %q", args[0]))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return runCheckBackup(cmd.Context(), s, f) },
	}
	// Wrong use is 3 here: 2 would ring somebody out of bed.
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return checkFailed(s, err) })
	fl := cmd.Flags()
	f.fromFlags.bind(cmd)
	fl.StringVar(&f.server, "server", "", "only backups of this server: its name or identity (default: all that lie there, which should be of one)")
	fl.Var(&f.age.warning, "warning", "age of the newest backup from which it is a warning")
	fl.Var(&f.age.critical, "critical", "age of the newest backup from which it is critical")
	fl.Var(&f.proven.warning, "proven-warning", "how long ago a drill may have proven a backup before it is a warning")
	fl.Var(&f.proven.critical, "proven-critical", "the same, critical")
	fl.Var(&f.mirror.warning, "mirror-warning", "age of the newest mirrored event from which it is a warning")
	fl.Var(&f.mirror.critical, "mirror-critical", "the same, critical")
	fl.DurationVar(&f.wait, "timeout", 30*time.Second, "give up after that, as UNKNOWN")
	return cmd
}

// checkFailed is the state UNKNOWN with its reason.
func checkFailed(s Streams, err error) error {
	hint := ""
	var e *exitError
	if errors.As(err, &e) {
		hint = e.hint
	}
	fmt.Fprintln(s.Out, "BACKUP UNKNOWN - "+noBar(oneLine(err.Error(), hint)))
	return &toldError{checkUnknown}
}

// noBar takes the character away behind which performance data begin.
func noBar(text string) string { return strings.ReplaceAll(text, "|", "/") }

func runCheckBackup(ctx context.Context, s Streams, f checkBackupFlags) error {
	ctx, cancel := context.WithTimeoutCause(ctx, f.wait, fmt.Errorf("no answer from the place within %s", f.wait))
	defer cancel()
	facts, err := f.look(ctx)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return checkFailed(s, err)
	}
	state, line := judgeBackups(facts, f.age, f.proven, f.mirror, time.Now())
	fmt.Fprintln(s.Out, line)
	if state == checkOK {
		return nil
	}
	return &toldError{state}
}

// backupFacts are what a check knows.
type backupFacts struct {
	backups []repo.Header // of one server, the oldest first
	proofs  []drill.Proof // of those backups, the oldest first
	mirror  *mirrorFacts  // nil: none
}

// mirrorFacts say how far the mirrored binary logs reach.
type mirrorFacts struct {
	last  time.Time // of the newest event
	gap   string    // what is missing; empty: nothing
	short bool      // the logs end before the newest backup's position
}

// look reads what lies at the place.
func (f checkBackupFlags) look(ctx context.Context) (facts backupFacts, err error) {
	r, done, err := f.open(ctx)
	if err != nil {
		return facts, err
	}
	defer done()
	list, err := r.Backups(ctx)
	if err != nil {
		return facts, err
	}
	known := map[string]bool{}
	for _, h := range list {
		if len(h.Partial) > 0 || f.server != "" && h.Server.Name != f.server && h.Server.Identity != f.server {
			continue
		}
		facts.backups = append(facts.backups, h)
		known[h.ID] = true
	}
	all, err := drill.Proofs(ctx, r, "")
	if err != nil {
		return facts, err
	}
	for _, p := range all {
		if known[p.Backup] {
			facts.proofs = append(facts.proofs, p)
		}
	}
	if n := len(facts.backups); n > 0 {
		facts.mirror, err = mirrored(ctx, f.from, facts.backups[n-1])
	}
	return facts, err
}

// judgeBackups says how good the backups are: pure.
func judgeBackups(f backupFacts, age, proven, mirror levels, now time.Time) (state int, line string) {
	var good, bad []string
	var perf []string
	say := func(s int, format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		if s == checkOK {
			good = append(good, text)
		} else {
			bad = append(bad, text)
		}
		state = max(state, s)
	}
	if len(f.backups) == 0 {
		return checkCritical, "BACKUP CRITICAL - there is no whole backup | backups=0;;;0"
	}
	newest := f.backups[len(f.backups)-1]
	old := now.Sub(newest.Ended)
	say(age.of(old), "newest backup %s old (%s, %s)", inWords(old), newest.Kind, render.Bytes(float64(newest.Bytes)))
	perf = append(perf, age.perf("age", old), fmt.Sprintf("size=%dB;;;0", newest.Bytes), fmt.Sprintf("stored=%dB;;;0", newest.Stored), fmt.Sprintf("backups=%d;;;0", len(f.backups)))
	var lastGood *drill.Proof
	for i := range f.proofs {
		if f.proofs[i].Passed {
			lastGood = &f.proofs[i]
		}
	}
	switch {
	case lastGood != nil:
		ago := now.Sub(lastGood.Ended)
		say(proven.of(ago), "one proven %s ago, restored in %s", inWords(ago), render.Seconds(lastGood.Recovery))
		perf = append(perf, proven.perf("proven", ago), fmt.Sprintf("recovery=%.3fs;;;0", lastGood.Recovery))
	case proven.critical > 0 || proven.warning > 0:
		// A place that is new has had no time for a drill: how long its first backup has been waiting for one counts.
		say(max(checkWarning, proven.of(now.Sub(f.backups[0].Ended))), "none was ever proven (risso drill)")
	}
	if n := len(f.proofs); n > 0 && !f.proofs[n-1].Passed {
		say(checkCritical, "the last drill failed: %s", strings.Join(f.proofs[n-1].Failures, ", "))
	}
	if f.mirror != nil {
		behind := max(0, now.Sub(f.mirror.last))
		say(mirror.of(behind), "newest mirrored event %s old", inWords(behind))
		gap := 0
		if f.mirror.short {
			say(checkCritical, "the mirrored logs end before the newest backup (risso binlog follow)")
		}
		if f.mirror.gap != "" {
			say(checkCritical, "gap in the mirrored logs: %s", f.mirror.gap)
			gap = 1
		}
		perf = append(perf, mirror.perf("mirror", behind), fmt.Sprintf("gap=%d;;;0", gap))
	}
	return state, "BACKUP " + checkWords[state] + " - " + noBar(oneLine(strings.Join(append(bad, good...), ", "), "")) + " | " + strings.Join(perf, " ")
}

// of is the state that an age has.
func (l levels) of(age time.Duration) int {
	switch {
	case l.critical > 0 && age >= time.Duration(l.critical):
		return checkCritical
	case l.warning > 0 && age >= time.Duration(l.warning):
		return checkWarning
	}
	return checkOK
}

// perf is an age as performance data: label=value;warning;critical;minimum.
func (l levels) perf(label string, age time.Duration) string {
	level := func(s ageLimit) string {
		if s == 0 {
			return ""
		}
		return strconv.FormatFloat(time.Duration(s).Seconds(), 'f', -1, 64)
	}
	return fmt.Sprintf("%s=%.0fs;%s;%s;0", label, max(0, age.Seconds()), level(l.warning), level(l.critical))
}

// inWords is an age for a person, in its largest unit or two.
func inWords(d time.Duration) string {
	d = max(0, d)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d d %d h", int(d.Hours())/24, int(d.Hours())%24)
}

// ageLimit is a time that may be written in days.
type ageLimit time.Duration

// String is the ageLimit as it is written.
func (s *ageLimit) String() string {
	d := time.Duration(*s)
	if d >= 48*time.Hour && d%(24*time.Hour) == 0 {
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	}
	text := d.String()
	for _, zero := range []string{"0s", "0m"} { // 26h0m0s is 26h
		if cut, ok := strings.CutSuffix(text, zero); ok && strings.HasSuffix(cut, map[string]string{"0s": "m", "0m": "h"}[zero]) {
			text = cut
		}
	}
	return text
}

// Set reads it.
func (s *ageLimit) Set(text string) error {
	if text == "0" {
		*s = 0
		return nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseFloat(days, 64)
		if err != nil || n < 0 || n > 36500 {
			return errors.New("write it as 90m, 26h or 8d")
		}
		*s = ageLimit(n * 24 * float64(time.Hour))
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return errors.New("write it as 90m, 26h or 8d")
	}
	*s = ageLimit(d)
	return nil
}

// Type is what help calls it.
func (s *ageLimit) Type() string { return "age" }
