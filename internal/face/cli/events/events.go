// Package events is the commands event and events: marks that people make, and what happened.
package events

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/serve/after"
	"github.com/rissodb/risso/internal/store/state"
)

// MarkAnswer is a mark that was made.
type MarkAnswer struct {
	ID     int64         `json:"id"`     // of its first event
	New    bool          `json:"new"`    // false: there was one with this key already
	Events []fleet.Event `json:"events"` // one for each server, or one for all
}

// ListAnswer lists what happened, by time.
type ListAnswer struct {
	Events []fleet.Event `json:"events"`
}

// FindingsAnswer lists what was wrong, by the time it was told.
type FindingsAnswer struct {
	Findings []state.FindingRecord `json:"findings"`
}

// mark is what is sent to make a mark.
type mark struct {
	Text    string   `json:"text"`
	Kind    string   `json:"kind"`
	Servers []string `json:"servers,omitempty"`
	Key     string   `json:"key"`
}

// tries is how often a mark is sent: it has a key, so that it is made once.
const tries = 3

// NewEvent is the command event.
func NewEvent(s screen.Streams) *cobra.Command {
	var run flags.Running
	var output string
	m := mark{Kind: string(fleet.EventDeploy)}
	note := false
	cmd := &cobra.Command{
		Use:   "event TEXT",
		Short: "Mark a moment: a deployment, or a note",
		Long: `A mark is an event in a running risso serve: it stands in the charts and in the list of
events. It needs a token with the role change, where tokens are required. The same --key with the
same text is one mark, however often it is sent.`,
		Example: `  risso event "deploy 1.4"
  risso event --server 'shop-*' --key "$CI_PIPELINE_ID" "deploy 1.4"
  RISSO_TOKEN=… risso event --url http://risso:8306 --note "cache cleared"`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			m.Text, m.Key = args[0], cmp.Or(m.Key, state.NewMarkKey())
			if note {
				m.Kind = string(fleet.EventNote)
			}
			body, err := json.Marshal(m)
			if err != nil {
				return fmt.Errorf("write the mark: %w", err)
			}
			var a MarkAnswer
			if err := send(cmd.Context(), &run, body, &a); err != nil {
				return err
			}
			if output == "json" {
				return render.JSON(s.Out, a)
			}
			words := "marked"
			if !a.New {
				words = "was marked already"
			}
			_, err = fmt.Fprintf(s.Out, "%s: event %d, %s\n", words, a.ID, screen.Clock(a.Events[0].Time))
			return err
		},
	}
	run.Bind(cmd)
	fl := cmd.Flags()
	fl.StringArrayVar(&m.Servers, "server", nil, "name of a server, may contain * (repeatable; default: all)")
	fl.BoolVar(&note, "note", false, "a note, no deployment")
	fl.StringVar(&m.Key, "key", "", "what the mark is known by when it is sent again, such as a pipeline's number")
	flags.OutputVar(fl, &output, "", "text", "json")
	return cmd
}

// send sends a mark, some times where the answer was lost.
func send(ctx context.Context, run *flags.Running, body []byte, a *MarkAnswer) (err error) {
	for range tries {
		if err = run.Do(ctx, http.MethodPost, "/api/events", body, "take marks", a); err == nil || !flags.Unanswered(err) || ctx.Err() != nil {
			break
		}
	}
	if err == nil && len(a.Events) == 0 {
		err = fault.New(fault.Failed, "", fmt.Errorf("%s made no event of it", run.URL))
	}
	return err
}

// lister is the flags of the command events.
type lister struct {
	screen.Streams
	flags.Running
	output, server, since, until, severity string
	kinds                                  []string
	limit                                  int
	findings                               bool
	after                                  string
	minutes                                int
}

// NewEvents is the command events.
func NewEvents(s screen.Streams) *cobra.Command {
	l := &lister{Streams: s}
	cmd := &cobra.Command{
		Use:   "events",
		Short: "What happened, and what was wrong",
		Long: `The events of a running risso serve, by time: findings that began and ended, restarts,
changed variables, outages, deployments. With --findings, what was wrong: since when, how
long, how bad. With --after, what changed after an event, such as a deployment: throughput,
latency, errors, classes of statements, plans, findings; only what stands out of the noise of
the minutes before and after.`,
		Example: `  risso events --since 12h
  risso events --server db1 --kind restart --kind variable --since 7d
  risso events --findings --since 12h -o json
  risso events --after 812`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("after") {
				return l.changed(cmd.Context())
			}
			q, err := l.query(time.Now())
			if err != nil {
				return err
			}
			if l.findings {
				return l.wrong(cmd.Context(), q)
			}
			return l.happened(cmd.Context(), q)
		},
	}
	l.Bind(cmd)
	fl := cmd.Flags()
	fl.StringVar(&l.server, "server", "", "only those of this server, and of Risso itself")
	fl.StringVar(&l.since, "since", "24h", "only since so long ago")
	fl.StringVar(&l.until, "until", "", "only until so long ago")
	fl.StringSliceVar(&l.kinds, "kind", nil, "only of these kinds: restart, variable, finding, deploy …")
	fl.StringVar(&l.severity, "severity", "", "at least so bad: warning or critical")
	fl.IntVar(&l.limit, "limit", 500, "the newest so many, up to 5000")
	fl.StringVar(&l.after, "after", "", "tell what changed after the event of this number")
	fl.IntVar(&l.minutes, "minutes", 15, "with --after: how many minutes before and after are compared")
	fl.BoolVar(&l.findings, "findings", false, "list what was wrong")
	flags.OutputVar(fl, &l.output, "", "text", "json")
	return cmd
}

// query is what is asked of /api/events and /api/findings.
func (l *lister) query(now time.Time) (url.Values, error) {
	q := url.Values{"limit": {strconv.Itoa(l.limit)}, "to": {strconv.FormatInt(now.Unix(), 10)}}
	for name, text := range map[string]string{"from": l.since, "to": l.until} {
		if text == "" {
			continue
		}
		d, err := digits.ParseAge(text)
		if err != nil {
			return nil, fault.Usagef("%q: write it as 12h or 7d: so long ago", text)
		}
		q.Set(name, strconv.FormatInt(now.Add(-d).Unix(), 10))
	}
	var severity fleet.Severity
	if l.severity != "" {
		if err := severity.UnmarshalText([]byte(l.severity)); err != nil || severity.String() != l.severity {
			return nil, fault.Usagef("--severity %q: info, warning or critical", l.severity)
		}
		q.Set("severity", l.severity)
	}
	if l.server != "" {
		q.Set("instance", fleet.Slug(l.server))
	}
	if l.findings && (len(l.kinds) > 0 || l.severity != "") {
		return nil, fault.Usagef("--findings takes no --kind and no --severity")
	}
	q["kind"] = l.kinds
	return q, nil
}

// changed tells what changed after an event.
func (l *lister) changed(ctx context.Context) error {
	id, err := strconv.ParseInt(l.after, 10, 64)
	if err != nil || id < 1 {
		return fault.Usagef("--after %q: the number of an event, as risso event says it, or risso events -o json", l.after)
	}
	if l.minutes < after.LeastMinutes || l.minutes > after.MostMinutes {
		return fault.Usagef("--minutes %d: %d to %d", l.minutes, after.LeastMinutes, after.MostMinutes)
	}
	var a struct {
		Available *bool  `json:"available"` // only told where it is false
		Because   string `json:"why"`
		after.Answer
	}
	q := url.Values{"id": {strconv.FormatInt(id, 10)}, "minutes": {strconv.Itoa(l.minutes)}}
	if err := l.Do(ctx, http.MethodGet, "/api/events/after?"+q.Encode(), nil, "tell what changed after an event", &a); err != nil {
		return err
	}
	if a.Available != nil && !*a.Available {
		return fault.New(fault.Failed, "", fmt.Errorf("%s: %s", l.URL, a.Because))
	}
	if l.output == "json" {
		return render.JSON(l.Out, a.Answer)
	}
	e := a.Event
	fmt.Fprintf(l.Out, "%s  %s: %s\n", e.Time.Local().Format(time.DateTime), e.Kind, e.Text)
	if !a.Complete {
		fmt.Fprintf(l.Out, "The %d minutes after it are not over yet.\n", l.minutes)
	}
	for _, s := range a.Servers {
		fmt.Fprintf(l.Out, "%s, %d minutes before and %d after seen:\n", s.Name, s.Before.Minutes, s.After.Minutes)
		for _, w := range s.Words {
			fmt.Fprintf(l.Out, "  %s\n", w)
		}
	}
	if len(a.LeftOut) > 0 {
		fmt.Fprintf(l.Out, "Not compared, for there are too many: %s\n", strings.Join(a.LeftOut, ", "))
	}
	return nil
}

func (l *lister) happened(ctx context.Context, q url.Values) error {
	var a ListAnswer
	if err := l.Do(ctx, http.MethodGet, "/api/events?"+q.Encode(), nil, "tell of events", &a); err != nil {
		return err
	}
	if l.output == "json" {
		return render.JSON(l.Out, a)
	}
	return screen.Tabulate(l.Out, func(w io.Writer) {
		for _, e := range a.Events {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", e.Time.Local().Format(time.DateTime), cmp.Or(e.Instance, "Risso"), e.Kind, e.Text)
		}
	})
}

func (l *lister) wrong(ctx context.Context, q url.Values) error {
	var a FindingsAnswer
	if err := l.Do(ctx, http.MethodGet, "/api/findings?"+q.Encode(), nil, "tell of findings", &a); err != nil {
		return err
	}
	for i, j := 0, len(a.Findings)-1; i < j; i, j = i+1, j-1 { // the newest last, as in a log
		a.Findings[i], a.Findings[j] = a.Findings[j], a.Findings[i]
	}
	if l.output == "json" {
		return render.JSON(l.Out, a)
	}
	return screen.Tabulate(l.Out, func(w io.Writer) {
		for _, f := range a.Findings {
			lasted := "holds"
			if !f.Ended.IsZero() {
				lasted = digits.Span(f.Ended.Sub(f.Began()))
			}
			if f.Unseen {
				lasted = "at most " + lasted
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", f.Began().Local().Format(time.DateTime), lasted, f.Worst.Severity, f.Instance, f.Worst.What)
		}
	})
}
