package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/serve/alerts"
	"github.com/rissodb/risso/internal/store/series"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/alert"
	"github.com/rissodb/risso/internal/watch/own"
)

const (
	alertServers = 200
	alertMetrics = 1200
	alertRules   = 40
)

// rules measures a second of 40 rules over 200 servers, and a look at what is wrong there.
func (b *bench) rules(ctx context.Context, s *section) error {
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	store, err := series.Open(series.Options{Dir: filepath.Join(b.work, "series"), Logger: quiet, OnEvent: func(fleet.Event) {}})
	if err != nil {
		return err
	}
	defer store.Close()
	writers, err := alertWriters(store)
	if err != nil {
		return err
	}
	file := filepath.Join(b.work, "rules.yml")
	if err := os.WriteFile(file, []byte(ruleText()), 0o600); err != nil {
		return err
	}
	recent := series.NewRecent(store)
	r := own.New(own.Options{Source: recent, Update: recent.Update, Samples: 3e6, Time: time.Minute, Logger: quiet, Event: func(fleet.Event) {},
		Writer: func() (own.Writer, error) { return store.Writer(series.Recorded) },
		Found:  func(time.Time, []own.Firing) {}, Keep: func([]state.RuleAlert, []string) {}})
	defer r.Close()
	if _, err := r.Replace([]string{file}); err != nil {
		return err
	}
	warm, measured := 320, 120
	if b.quick {
		warm, measured = 70, 20
	}
	row := make([]float64, alertMetrics)
	var took []float64
	for second, at := 0, time.Now().Truncate(time.Minute); second < warm+measured; second, at = second+1, at.Add(time.Second) {
		for i, w := range writers {
			for m := range row {
				row[m] = float64(second*(m%50) + i)
			}
			if err := w.Append(at.Unix(), row, false); err != nil {
				return err
			}
		}
		if second < warm-20 { // the first seconds read from disk what is kept in memory then
			continue
		}
		before := processorTime()
		r.Tick(ctx, at)
		if second >= warm {
			took = append(took, (processorTime()-before)*1000)
		}
	}
	s.Figures["rules_median_ms"], s.Figures["rules_p95_ms"] = median(took), quantile(took, 0.95)
	s.note("%d rules over %d servers with %d metrics each, half of them a rate over 1 or 5 minutes: %.0f ms of processor time a second in the median, 95 %% under %.0f", alertRules, alertServers, alertMetrics,
		s.Figures["rules_median_ms"], s.Figures["rules_p95_ms"])
	s.below("processor time of a second of 40 rules over 200 servers", s.Figures["rules_median_ms"], 100, " ms")
	return b.looks(ctx, s)
}

func alertWriters(store *series.Store) ([]*series.Writer, error) {
	var out []*series.Writer
	for i := range alertServers {
		w, err := store.Writer(fmt.Sprintf("db%03d", i))
		if err != nil {
			return nil, err
		}
		for m := range alertMetrics {
			w.Define(series.Desc{Name: fmt.Sprintf("mysql_global_status_number_%d", m)})
		}
		out = append(out, w)
	}
	return out, nil
}

// ruleText is a file of 40 rules: a quarter each records a rate, compares two metrics, a rate, a metric.
func ruleText() string {
	var text strings.Builder
	text.WriteString("groups:\n- name: g\n  rules:\n")
	for i := range alertRules {
		metric := fmt.Sprint("mysql_global_status_number_", i*7)
		switch i % 4 {
		case 0:
			fmt.Fprintf(&text, "  - {record: 'x:%d', expr: 'rate(%s[1m])'}\n", i, metric)
		case 1:
			fmt.Fprintf(&text, "  - {alert: 'A%d', expr: '%s / %s1 > 0.8', for: 1m}\n", i, metric, metric)
		case 2:
			fmt.Fprintf(&text, "  - {alert: 'A%d', expr: 'rate(%s[5m]) > 100', for: 1m}\n", i, metric)
		default:
			fmt.Fprintf(&text, "  - {alert: 'A%d', expr: '%s > 1e9', for: 1m}\n", i, metric)
		}
	}
	return text.String()
}

// looks measures a look at five findings on each server, when nothing changes.
func (b *bench) looks(ctx context.Context, s *section) error {
	facts, err := state.Open(ctx, filepath.Join(b.work, "looks.db"))
	if err != nil {
		return err
	}
	defer facts.Close()
	desk, err := alerts.New(ctx, alerts.Options{Facts: facts, Policy: alert.Policy{}, Instances: func() []fleet.Instance { return nil },
		Because: func() func(state.FindingRecord) (alert.Cause, bool) { return nil }, Event: func(fleet.Event) {}, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		return err
	}
	now := time.Now()
	for i := range alertServers {
		look := state.Look{Instance: fmt.Sprintf("db%03d", i), At: now}
		for f := range 5 {
			look.Findings = append(look.Findings, madeFinding(f, now))
		}
		if err := facts.KeepFindings(ctx, look); err != nil {
			return err
		}
	}
	var took []float64
	for second := range 30 {
		before := processorTime()
		if err := desk.Look(ctx, now.Add(time.Duration(second)*time.Second)); err != nil {
			return err
		}
		took = append(took, (processorTime()-before)*1000)
	}
	s.Figures["look_first_ms"], s.Figures["look_median_ms"] = took[0], median(took[1:])
	s.note("1,000 findings that hold on %d servers, and ring: a look takes %.0f ms of processor time in the median, the first, which writes them, %.0f", alertServers, s.Figures["look_median_ms"], took[0])
	s.below("processor time of a look at 1,000 findings", s.Figures["look_median_ms"], 100, " ms")
	return nil
}

func madeFinding(n int, since time.Time) fleet.Finding {
	return fleet.Finding{ID: fmt.Sprint("made.", n), Severity: fleet.SeverityCritical, Since: since, Value: float64(n), Chart: "throughput",
		Trouble: fleet.Trouble{What: "the replica is 12 s behind since 10:00:00: the applier waits for row locks", Remedy: "SHOW PROCESSLIST"}}
}

// findingDays fills a store with a year of findings, and asks for days of it.
func (b *bench) findingDays(ctx context.Context, s *section) error {
	days := 365
	if b.quick {
		days = 30
	}
	facts, err := state.Open(ctx, filepath.Join(b.work, "days.db"))
	if err != nil {
		return err
	}
	defer facts.Close()
	begin, rnd := time.Now().AddDate(0, 0, -days).Truncate(24*time.Hour), rand.New(rand.NewPCG(1, 1))
	for i := range alertServers {
		for day := range days {
			at := begin.AddDate(0, 0, day).Add(time.Duration(rnd.IntN(86000)) * time.Second)
			look := state.Look{Instance: fmt.Sprintf("db%03d", i), At: at} // what held is over then, but for one that lasts
			for f := range 3 {
				look.Findings = append(look.Findings, madeFinding(f+3*(day%2), at))
			}
			if err := facts.KeepFindings(ctx, look); err != nil {
				return err
			}
		}
	}
	var took, elapsed []float64
	found := 0
	for range 50 {
		from := begin.AddDate(0, 0, rnd.IntN(days-1))
		began, before := time.Now(), processorTime()
		list, err := facts.Findings(ctx, state.FindingQuery{From: from, To: from.Add(24 * time.Hour), Limit: 1000})
		if err != nil {
			return err
		}
		took, elapsed, found = append(took, (processorTime()-before)*1000), append(elapsed, time.Since(began).Seconds()*1000), found+len(list)
	}
	s.Figures["day_median_ms"], s.Figures["day_most_ms"] = median(took), quantile(took, 1)
	s.note("%d findings of %d days: one day with %d findings takes %.0f ms of processor time in the median, %.0f at the most of 50; %.0f ms pass in the median",
		days*3*alertServers, days, found/50, s.Figures["day_median_ms"], s.Figures["day_most_ms"], median(elapsed))
	s.below("processor time of any day of a year of findings, median", s.Figures["day_median_ms"], 50, " ms")
	return nil
}
