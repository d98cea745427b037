// Package alert is the command alert: what rings, what rang, and what is to be quiet.
package alert

import (
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
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/watch/alert"
)

// command is what all commands below alert have.
type command struct {
	screen.Streams
	flags.Running
	output string
}

// rings is what a risso serve must be able to.
const rings = "know of alerts"

// New is the command alert.
func New(s screen.Streams) *cobra.Command {
	c := &command{Streams: s}
	cmd := &cobra.Command{
		Use:   "alert",
		Short: "What rings and rang; acknowledge, silence, test receivers",
		Long: `Alerts are findings that last: what is critical rings at once, a warning when it has
held for some minutes. A running risso serve decides that, keeps what follows, and tells
the receivers of its config file (see docs/alerts.md). These commands ask it.`,
		Example: `  risso alert list
  risso alert history --since 24h
  risso alert ack db1/repl.stopped
  risso alert silence --server 'shop-*' --for 2h --reason 'upgrade to 9.7'
  risso alert test oncall
  risso alert replay 'lock.*' --since 7d --for 10s
  risso alert rules check /etc/risso/rules/*.yml`,
	}
	c.Bind(cmd)
	flags.OutputVar(cmd.PersistentFlags(), &c.output, "", "text", "json")
	cmd.AddCommand(c.list(), c.history(), c.ack(), c.silence(), c.unsilence(), c.test(), c.replay(), c.rules())
	return cmd
}

func (c *command) list() *cobra.Command {
	return &cobra.Command{Use: "list", Short: "What fires and what is pending, silences, receivers", Args: cobra.NoArgs, Example: "  risso alert list\n  risso alert list -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			var a ListAnswer
			if err := c.Do(cmd.Context(), http.MethodGet, "/api/alerts", nil, rings, &a); err != nil {
				return err
			}
			if c.output == "json" {
				return render.JSON(c.Out, a)
			}
			return c.text(a)
		}}
}

func (c *command) text(a ListAnswer) error {
	if len(a.Alerts) == 0 {
		fmt.Fprintln(c.Out, "nothing rings")
	}
	for _, x := range a.Alerts {
		fmt.Fprintln(c.Out, line(&x))
	}
	for _, s := range a.Silences {
		fmt.Fprintf(c.Out, "silence %d until %s: %s: %s%s\n", s.ID, screen.ShortTime(s.End), s.Match.Words(), s.Reason, by(s.By))
	}
	for _, r := range a.Receivers {
		state := "takes messages"
		switch {
		case r.Failing != "":
			state = fmt.Sprintf("fails, %s: %s", digits.Plural(r.Waiting, "message waits", "messages wait"), r.Failing)
		case r.Waiting > 0:
			state = "has not taken " + digits.Counted(r.Waiting, "message") + " yet"
		case len(r.Messages) == 0:
			state = "was never told anything: try risso alert test " + r.Name
		}
		fmt.Fprintf(c.Out, "receiver %s %s\n", r.Name, state)
	}
	if len(a.Receivers) == 0 {
		fmt.Fprintln(c.Out, "nobody is told: there are no receivers in the config file (docs/alerts.md)")
	}
	return nil
}

func by(who string) string {
	if who == "" {
		return ""
	}
	return " (" + who + ")"
}

// line is an alert in one line.
func line(a *alert.Standing) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s %s: %s", a.Phase, a.Severity, a.Key, screen.ShortTime(a.Began), a.Says())
	if !a.Ended.IsZero() {
		fmt.Fprintf(&b, "; lasted %s", digits.Span(a.Ended.Sub(a.Began)))
	}
	if a.Times > 1 {
		fmt.Fprintf(&b, "; came %s", digits.Counted(a.Times, "time"))
	}
	if a.Held != "" {
		b.WriteString("; nobody is told: " + a.Held)
	}
	if !a.Acked.IsZero() {
		b.WriteString("; " + a.By + " knows")
	}
	switch {
	case len(a.Affected) > 0 && a.Common != "":
		fmt.Fprintf(&b, "; it is told for %s as well", strings.Join(a.Affected, ", "))
	case len(a.Affected) > 0:
		fmt.Fprintf(&b, "; it explains what is wrong on %s", strings.Join(a.Affected, ", "))
	}
	return b.String()
}

func (c *command) history() *cobra.Command {
	var since, until string
	cmd := &cobra.Command{Use: "history", Short: "What rang, the newest first", Args: cobra.NoArgs, Example: "  risso alert history --since 12h",
		RunE: func(cmd *cobra.Command, _ []string) error {
			q := url.Values{}
			now := time.Now()
			for name, text := range map[string]string{"from": since, "to": until} {
				if text == "" {
					continue
				}
				d, err := digits.ParseAge(text)
				if err != nil {
					return fault.Usagef("%q: write it as 12h or 7d: so long ago", text)
				}
				q.Set(name, strconv.FormatInt(now.Add(-d).Unix(), 10))
			}
			var a HistoryAnswer
			if err := c.Do(cmd.Context(), http.MethodGet, "/api/alerts/history?"+q.Encode(), nil, rings, &a); err != nil {
				return err
			}
			if c.output == "json" {
				return render.JSON(c.Out, a)
			}
			for _, x := range a.Alerts {
				fmt.Fprintln(c.Out, line(&x))
			}
			return nil
		}}
	cmd.Flags().StringVar(&since, "since", "24h", "only what held since so long ago")
	cmd.Flags().StringVar(&until, "until", "", "only what rang before so long ago")
	return cmd
}

// done does something, and prints the answer where JSON is asked for; else says what was done.
func (c *command) done(ctx context.Context, method, path string, body []byte, out any, words func(io.Writer)) error {
	if err := c.Do(ctx, method, path, body, rings, out); err != nil {
		return err
	}
	if c.output == "json" {
		return render.JSON(c.Out, out)
	}
	words(c.Out)
	return nil
}

func (c *command) ack() *cobra.Command {
	return &cobra.Command{Use: "ack KEY", Short: "Say that somebody knows of an alert: it is not told again until it gets worse", Args: cobra.ExactArgs(1), Example: "  risso alert ack db1/repl.stopped",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.done(cmd.Context(), http.MethodPost, "/api/alerts/ack?key="+url.QueryEscape(args[0]), nil, &AckAnswer{},
				func(w io.Writer) { fmt.Fprintln(w, args[0], "is acknowledged") })
		}}
}

// wanted is what is sent to make a silence.
type wanted struct {
	Server   string `json:"server,omitempty"`
	Group    string `json:"group,omitempty"`
	Finding  string `json:"finding,omitempty"`
	Subject  string `json:"subject,omitempty"`
	Severity string `json:"severity,omitempty"`
	For      string `json:"for"`
	Reason   string `json:"reason"`
}

func (c *command) silence() *cobra.Command {
	var w wanted
	cmd := &cobra.Command{Use: "silence", Short: "Hold alerts back for a while", Args: cobra.NoArgs,
		Long:    "Alerts that fit are not told as long as the silence lasts; those that still fire then are. Names may contain *.\nThe end of what was told before is told nevertheless.",
		Example: "  risso alert silence --server 'shop-*' --for 2h --reason 'upgrade to 9.7'\n  risso alert unsilence 3",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if w.For == "" || w.Reason == "" {
				return fault.Usagef("a silence needs --for and --reason")
			}
			body, err := json.Marshal(w)
			if err != nil {
				return fmt.Errorf("write the silence: %w", err)
			}
			if w.Server+w.Group+w.Finding+w.Subject+w.Severity == "" {
				return fault.Usagef("a silence names what is silent: --server '*' for all that rings")
			}
			var s SilencedAnswer
			return c.done(cmd.Context(), http.MethodPost, "/api/silences", body, &s, func(w io.Writer) {
				fmt.Fprintf(w, "silence %d until %s: %s\n", s.ID, screen.ShortTime(s.End), s.Match.Words())
				if len(s.Servers) == 0 {
					fmt.Fprintln(w, "no server fits that now")
				} else {
					fmt.Fprintf(w, "it is about %s now: %s\n", digits.Plural(len(s.Servers), "server", "servers"), oneline.Cut(strings.Join(s.Servers, ", "), 200))
				}
			})
		}}
	fl := cmd.Flags()
	fl.StringVar(&w.Server, "server", "", "name of the server or host")
	fl.StringVar(&w.Group, "group", "", "its group, as the config file says")
	fl.StringVar(&w.Finding, "finding", "", "the finding, such as repl.*")
	fl.StringVar(&w.Subject, "subject", "", "what the finding is about, such as a channel or a disk")
	fl.StringVar(&w.Severity, "severity", "", "at least so bad: warning or critical")
	fl.StringVar(&w.For, "for", "", "how long: 30m, 2h")
	fl.StringVar(&w.Reason, "reason", "", "why")
	return cmd
}

func (c *command) unsilence() *cobra.Command {
	return &cobra.Command{Use: "unsilence NUMBER", Short: "End a silence", Args: cobra.ExactArgs(1), Example: "  risso alert unsilence 3",
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil {
				return fault.Usagef("%q is no number of a silence: risso alert list shows them", args[0])
			}
			return c.done(cmd.Context(), http.MethodDelete, fmt.Sprintf("/api/silences?id=%d", n), nil, &EndedAnswer{},
				func(w io.Writer) { fmt.Fprintf(w, "silence %d is ended\n", n) })
		}}
}

func (c *command) test() *cobra.Command {
	return &cobra.Command{Use: "test RECEIVER", Short: "Send a receiver a message that says that it is a test", Args: cobra.ExactArgs(1), Example: "  risso alert test oncall",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.done(cmd.Context(), http.MethodPost, "/api/receivers/test?name="+url.QueryEscape(args[0]), nil, &TestedAnswer{},
				func(w io.Writer) { fmt.Fprintln(w, args[0], "took the message") })
		}}
}

func (c *command) replay() *cobra.Command {
	var since, server, hold, above string
	cmd := &cobra.Command{Use: "replay FINDING", Short: "How often findings of the past would have rung", Args: cobra.ExactArgs(1),
		Long: `What was found and kept is judged once more: how many alerts would have rung, in how many
messages, with the thresholds of the config file, or with those given here.`,
		Example: "  risso alert replay 'lock.*' --since 7d\n  risso alert replay repl.lag --server 'report-*' --for 30m",
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := digits.ParseAge(since)
			if err != nil {
				return fault.Usagef("--since %q: write it as 12h or 7d: so long ago", since)
			}
			q := url.Values{"finding": {args[0]}, "server": {server}, "for": {hold}, "above": {above}, "from": {strconv.FormatInt(time.Now().Add(-d).Unix(), 10)}}
			var r alert.Replayed
			return c.done(cmd.Context(), http.MethodGet, "/api/alerts/replay?"+q.Encode(), nil, &r, func(w io.Writer) {
				fmt.Fprintf(w, "%s since %s: %s would have rung, in %s\n", digits.Counted(r.Findings, "finding"), screen.ShortTime(r.From), digits.Counted(r.Rang, "alert"), digits.Counted(r.Messages, "message"))
				for _, a := range r.Alerts {
					fmt.Fprintf(w, "%s %s %s: %s\n", screen.ShortTime(a.Rang), a.Severity, a.Key, a.What)
				}
			})
		}}
	fl := cmd.Flags()
	fl.StringVar(&since, "since", "7d", "only what held since so long ago")
	fl.StringVar(&server, "server", "", "name of the server or host; may contain *")
	fl.StringVar(&hold, "for", "", "how long a finding must hold before it rings: 30s, 10m")
	fl.StringVar(&above, "above", "", "its value must be larger")
	return cmd
}
