package diff

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/explain/differ/describe"
	"github.com/rissodb/risso/internal/explain/differ/trial"
	"github.com/rissodb/risso/internal/explain/differ/upgrade"
	"github.com/rissodb/risso/internal/explain/digest"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/sqltext"
)

type upgradeFlags struct{ to, slowLog string }

func (f *upgradeFlags) bind(fl *pflag.FlagSet) {
	fl.StringVar(&f.to, "upgrade-to", "", "say what an upgrade to this version would break: mysql-8.0, mysql-8.4, mysql-9.7, mariadb-10.11, mariadb-11")
	fl.StringVar(&f.slowLog, "slow-log", "", "with --upgrade-to: statements whose plans are compared, a slow or general log")
}

func (f *upgradeFlags) check(failOn string) error {
	if f.to != "" && failOn != "" && !slices.Contains(upgrade.Severities(), upgrade.Severity(failOn)) {
		return fault.Usagef("--fail-on %q: error, warning or note", failOn)
	}
	return nil
}

// mostStatements is how many classes of a log are tried, those first that cost most.
const mostStatements = 200

func (f diffFlags) runUpgrade(ctx context.Context, s screen.Streams, arg string, now time.Time) error {
	if len(f.schemas) == 0 {
		f.schemas = []string{"*"}
	}
	d, err := f.describe(ctx, s, arg, now)
	if err != nil {
		return fmt.Errorf("%s: %w", f.shownName(arg), err)
	}
	o := trial.Options{To: f.to, Now: now}
	facts := upgrade.Facts{NotAsked: []fleet.Trouble{{What: "rows, orphaned tables", Why: "a saved description does not have them", Remedy: "give the server itself"}}}
	if st, err := os.Stat(arg); err != nil || !st.Mode().IsRegular() {
		f.Dsn = arg
		target, err := f.Target()
		if err != nil {
			return err
		}
		if facts, err = describe.Facts(ctx, target, d); err != nil {
			return err
		}
		o.Live = &target
	}
	if f.slowLog != "" {
		if o.Statements, err = f.statements(ctx); err != nil {
			return err
		}
	}
	progress := screen.NewProgress(s.Err)
	o.Progress = func(text string) { progress.Show(func(float64) string { return text }) }
	a, err := trial.Run(ctx, d, facts, o)
	progress.End()
	if err != nil {
		return err
	}
	if f.output == "json" {
		err = render.JSON(s.Out, a)
	} else {
		err = f.upgradeText(s.Out, a)
	}
	if err != nil {
		return err
	}
	n := 0
	for _, p := range a.Problems {
		if slices.Index(upgrade.Severities(), p.Severity) <= slices.Index(upgrade.Severities(), upgrade.Severity(f.failOn)) {
			n++
		}
	}
	for _, p := range a.Plans {
		if p.Error != "" { // a statement that is refused is an error, the worst there is
			n++
		}
	}
	return f.verdict(n)
}

// statements are the dearest classes of a log, each by the statement that took longest.
func (f diffFlags) statements(ctx context.Context) (list []trial.Statement, err error) {
	src, err := digest.File(f.slowLog)
	if err != nil {
		return nil, err
	}
	p, err := digest.Run(ctx, digest.Options{Limit: mostStatements}, src)
	if err != nil {
		return nil, err
	}
	for _, c := range p.Classes {
		if len(c.Samples) > 0 {
			list = append(list, trial.Statement{Class: c.Fingerprint, SQL: c.Samples[0].Query, Database: c.Samples[0].DB, Calls: c.Calls})
		}
	}
	if len(list) == 0 {
		return nil, fault.New(fault.Failed, "", errors.New(f.slowLog+" has no statement"))
	}
	return list, nil
}

// upgradeText writes what an upgrade breaks, for people.
func (f diffFlags) upgradeText(w io.Writer, a *trial.Answer) error {
	fmt.Fprintf(w, "%s: from %s to %s\n", sqltext.Printable(a.Server), a.From, a.To)
	if a.Tried {
		fmt.Fprintf(w, "tried on a throw-away server with %s, %s and %s\n", digits.Counted(a.Loaded.Settings, "setting"), digits.Counted(a.Loaded.Tables, "table"), digits.Plural(a.Loaded.Objects, "view or program", "views and programs"))
	} else {
		fmt.Fprintln(w, "not tried: no such server is installed here; all of this is by rules")
	}
	hidden := 0
	titles := map[upgrade.Severity]string{upgrade.Error: "Refused", upgrade.Warning: "Other results, or failures", upgrade.Note: "Still works; to know"}
	for _, sev := range upgrade.Severities() {
		first := true
		for _, p := range a.Problems {
			if p.Severity != sev {
				continue
			}
			if !f.all && p.ID == "default.changed" && sev == upgrade.Note {
				hidden++
				continue
			}
			if first {
				fmt.Fprintf(w, "\n%s:\n", titles[sev])
				first = false
			}
			problemText(w, p)
		}
	}
	if hidden > 0 {
		fmt.Fprintf(w, "\n%s of speed and size changed (--all lists them)\n", digits.Plural(hidden, "default", "defaults"))
	}
	if len(a.Problems) == 0 {
		fmt.Fprintln(w, "\nnothing found that breaks or changes")
	}
	for i, p := range a.Plans {
		if i == 0 {
			fmt.Fprintln(w, "\nStatements with another plan:")
		}
		planText(w, p)
	}
	if a.Compared > 0 {
		fmt.Fprintf(w, "\n%s compared, %d with another plan or refused\n", digits.Counted(a.Compared, "statement"), len(a.Plans))
	}
	for i, u := range a.Unknown {
		if i == 0 {
			fmt.Fprintln(w, "\nStatements whose plans could not be compared:")
		}
		fmt.Fprintf(w, "  %s (%s)\n    %s\n", short(u.SQL), digits.Counted(u.Calls, "call"), sentence(u.Why))
	}
	for i, t := range a.NotTried {
		if i == 0 {
			fmt.Fprintln(w, "\nNot tried; it may break, too:")
		}
		fmt.Fprintf(w, "  %s\n", sqltext.Printable(strings.TrimPrefix(troubleWords("", t), ", ")))
	}
	return nil
}

func problemText(w io.Writer, p upgrade.Problem) {
	mark := "seen"
	if !p.Tried {
		mark = "by rule"
	}
	fmt.Fprintf(w, "  %s: %s  [%s, %s]\n    %s\n", sqltext.Printable(p.Object), sentence(p.What), p.ID, mark, p.Why)
	if p.Said != "" {
		fmt.Fprintf(w, "    the server says: %s\n", sentence(p.Said))
	}
	if p.Remedy != "" {
		fmt.Fprintf(w, "    %s\n", oneline.Of(p.Remedy))
	}
	for _, s := range p.Statements {
		fmt.Fprintf(w, "      %s;\n", sqltext.Printable(s))
	}
}

// sentence is a text with names and values in it, as one line.
func sentence(s string) string { return oneline.Cut(oneline.Of(s), 3*mostValue) }

func planText(w io.Writer, p trial.PlanChange) {
	fmt.Fprintf(w, "  %s (%s)\n", short(p.SQL), digits.Counted(p.Calls, "call"))
	if p.Error != "" {
		fmt.Fprintf(w, "    refused: %s\n", sentence(p.Error))
		return
	}
	for i := range max(len(p.Before), len(p.After)) {
		x, y := "", ""
		if i < len(p.Before) {
			x = p.Before[i]
		}
		if i < len(p.After) {
			y = p.After[i]
		}
		const half = 70
		fmt.Fprintf(w, "    %-*s | %s\n", half, cut(x, half), cut(y, half))
	}
}

func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
