package check

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/pattern"
	"github.com/rissodb/risso/internal/serve/advice"
	"github.com/rissodb/risso/internal/watch/live"
)

type adviceFlags struct {
	flags.Running
	ids     []string
	servers []string
	maxAge  time.Duration
	wait    time.Duration
	blind   bool
	output  string
}

// adviceMost is how many findings are asked for: the worst, of which the first few are told.
const adviceMost = 1000

func newCheckAdvice(s screen.Streams) *cobra.Command {
	var f adviceFlags
	cmd := &cobra.Command{
		Use:   "advice [ID...]",
		Short: "Check that advice has found nothing that nobody decided about",
		Long: `Asks a running risso serve, the one on this machine or that of --url, what its looks at
servers found (risso advise --kept). The worst finding that nobody accepted, postponed or
silenced decides. ID limits it to some: schema.no_pk, or a pattern such as 'index.*'.

Exit codes: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN. Hints are OK. A server whose last whole look is
older than --max-age, or of which the last look could not read something while it found nothing, is
UNKNOWN: what was not looked at is never OK. With --allow-blind the latter is OK. Of several states
the worst counts: CRITICAL, then WARNING, then UNKNOWN.`,
		Example: `  risso check advice
  risso check advice 'schema.*' --server 'shop-*' --url http://risso:8306 --token-file /etc/risso/token`,
		Args: func(_ *cobra.Command, args []string) error {
			f.ids = args
			for _, id := range args {
				if !slices.ContainsFunc(advise.Checks(), func(c advise.Check) bool { return pattern.Stars(id, c.ID) }) {
					return failed(s, "ADVICE", fault.New(fault.Usage, "risso advise --checks lists what is looked for", fmt.Errorf("no finding is called %q", id)))
				}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return runCheckAdvice(cmd.Context(), s, f) },
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return failed(s, "ADVICE", err) })
	fl := cmd.Flags()
	f.BindTo(fl)
	fl.StringArrayVar(&f.servers, "server", nil, "only this server: its name, or a pattern; may be repeated")
	flags.DurationVar(fl, &f.maxAge, "max-age", 3*24*time.Hour, "how old the last look may be")
	fl.BoolVar(&f.blind, "allow-blind", false, "that something could not be read is no reason to be UNKNOWN")
	flags.DurationVar(fl, &f.wait, "timeout", 30*time.Second, "give up after this time, as UNKNOWN")
	flags.OutputVar(fl, &f.output, "", "text", "json")
	return cmd
}

func runCheckAdvice(ctx context.Context, s screen.Streams, f adviceFlags) error {
	ctx, cancel := context.WithTimeoutCause(ctx, f.wait, fmt.Errorf("no answer within %s", f.wait))
	defer cancel()
	var a advice.Answer
	q := url.Values{"id": f.ids, "limit": {strconv.Itoa(adviceMost)}}
	err := f.Do(ctx, http.MethodGet, "/api/advice?"+q.Encode(), nil, "keep advice", &a)
	var list []Service
	if err == nil {
		list, err = judgeAdvice(a, f, time.Now())
	}
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return failed(s, "ADVICE", err)
	}
	return sum(list, want{names: f.names()}).write(s, f.output)
}

// names are how what is checked is called.
func (f adviceFlags) names() []string {
	if len(f.ids) == 0 {
		return []string{"advice"}
	}
	return f.ids
}

// judgeAdvice says how servers are, the worst first: pure.
func judgeAdvice(a advice.Answer, f adviceFlags, now time.Time) ([]Service, error) {
	is := func(s advice.Server, name string) bool {
		return named(live.Row{Instance: fleet.Instance{ID: s.Instance, Name: s.Name}}, name)
	}
	for _, name := range f.servers {
		if !slices.ContainsFunc(a.Servers, func(s advice.Server) bool { return is(s, name) }) {
			return nil, fmt.Errorf("no server is watched that is called %q", name)
		}
	}
	var list []Service
	for _, s := range a.Servers {
		if len(f.servers) == 0 || slices.ContainsFunc(f.servers, func(name string) bool { return is(s, name) }) {
			list = append(list, f.server(s, a.Findings, now))
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no server is watched")
	}
	slices.SortStableFunc(list, func(a, b Service) int { return badness(b.Code) - badness(a.Code) })
	return list, nil
}

// server judges one.
func (f adviceFlags) server(s advice.Server, found []advice.Kept, now time.Time) Service {
	out := Service{Server: s.Name, Findings: []fleet.Finding{}, Age: -1}
	for _, k := range found {
		i := slices.IndexFunc(k.On, func(p advice.Place) bool { return p.Instance == s.Instance })
		if i < 0 || k.State != "open" {
			continue
		}
		remedy := k.Statement
		if remedy == "" {
			remedy = k.Advice
		}
		out.Findings = append(out.Findings, fleet.Finding{ID: k.ID, Subject: k.Object, Severity: k.Severity, Since: k.On[i].Since, Trouble: fleet.Trouble{What: k.What, Why: k.Why, Remedy: remedy}})
		if codeOf(k.Severity) != OK {
			out.be(codeOf(k.Severity), k.What)
		}
	}
	switch { // what is not among the findings that were told counts as well
	case s.Critical > 0:
		out.be(Critical, digits.Counted(s.Critical, "critical finding"))
	case s.Warning > 0:
		out.be(Warning, digits.Counted(s.Warning, "warning"))
	}
	if !s.Looked.IsZero() {
		out.Age = max(0, now.Sub(s.Looked).Seconds())
	}
	why := ""
	switch {
	case s.Looked.IsZero() && s.Error != "":
		why = "nothing is known: " + s.Error
	case s.Looked.IsZero():
		why = "nothing is known: it was not looked at yet"
	case out.Age > f.maxAge.Seconds():
		why = "the last look is " + digits.Age(out.Age) + " old"
		if s.Error != "" {
			why += ": " + s.Error
		}
	case len(s.Missing) > 0 && !f.blind:
		var what []string
		for _, m := range s.Missing {
			what = append(what, m.What)
		}
		why = "not looked at: " + strings.Join(what, ", ")
	}
	if why != "" {
		out.be(Unknown, why)
	}
	if out.Words == "" {
		out.Words = "no finding of " + strings.Join(f.names(), ", ")
	}
	out.State = checkWords[out.Code]
	out.perf = []perf{{label: "critical", value: float64(s.Critical)}, {label: "warning", value: float64(s.Warning)}, {label: "info", value: float64(s.Info)}}
	if out.Age >= 0 {
		out.perf = append(out.perf, perf{label: "age", value: out.Age, unit: "s", warn: strconv.FormatFloat(f.maxAge.Seconds(), 'f', -1, 64)})
	}
	return out
}
