package advise

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/pattern"
	"github.com/rissodb/risso/internal/serve/advice"
)

// keepsAdvice is what a risso serve must be able to.
const keepsAdvice = "keep advice"

// mostKept is how many findings are asked for.
const mostKept = 10000

// keptFlags are those of what a running risso serve keeps.
type keptFlags struct {
	flags.Running
	kept bool
	also string
}

func (f *keptFlags) bind(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.BoolVar(&f.kept, "kept", false, "what a running risso serve keeps, with since when and what was decided: that of --url, or on this machine")
	fl.StringVar(&f.To, "url", "", "address of risso serve, as in http://risso:8306; it says --kept, too")
	fl.StringVar(&f.TokenFile, "token-file", "", "file with the token (default: the environment variable RISSO_TOKEN)")
	fl.StringVar(&f.also, "also", "", "of what is kept also: decided (accepted, postponed, silenced), gone, or all")
	for _, other := range []string{"dsn", "all", "schema", "table", "defaults-file", "checks"} {
		cmd.MarkFlagsMutuallyExclusive("kept", other)
		cmd.MarkFlagsMutuallyExclusive("url", other)
	}
}

// asked says whether a running risso serve is meant.
func (f *keptFlags) asked() bool { return f.kept || f.To != "" }

// show writes what a running risso serve keeps.
func (f *keptFlags) show(ctx context.Context, s screen.Streams, ids []string, configFile, failOn, output string) error {
	f.ConfigFile = configFile
	if !slices.Contains([]string{"", "decided", "gone", "all"}, f.also) {
		return fault.Usagef("--also %q: decided, gone or all", f.also)
	}
	q := url.Values{"id": ids, "limit": {fmt.Sprint(mostKept)}}
	if f.also != "" {
		q.Set("state", "all")
	}
	var a KeptAnswer
	if err := f.Do(ctx, http.MethodGet, "/api/advice?"+q.Encode(), nil, keepsAdvice, &a); err != nil {
		return err
	}
	a.Findings = slices.DeleteFunc(a.Findings, func(k KeptFinding) bool {
		return k.State == "gone" && f.also == "decided" || k.State != "open" && k.State != "gone" && f.also == "gone"
	})
	var err error
	if output == "json" {
		err = render.JSON(s.Out, a)
	} else {
		_, err = io.WriteString(s.Out, keptText(a, time.Now()))
	}
	if err != nil || failOn == "" {
		return err
	}
	var least fleet.Severity
	_ = least.UnmarshalText([]byte(failOn)) // it was checked
	var open []advise.Finding
	for _, k := range a.Findings {
		if k.State == "open" {
			open = append(open, k.Finding)
		}
	}
	if n := count(open, least); n > 0 {
		return fault.New(fault.Failed, "", fmt.Errorf("%s at least %s", digits.Plural(n, "finding is", "findings are"), failOn))
	}
	return nil
}

// keptText is what is kept, for people.
func keptText(a KeptAnswer, now time.Time) string {
	var b strings.Builder
	for _, k := range a.Findings {
		var one strings.Builder
		screen.Advice(&one, k.Finding, len(a.Servers))
		b.WriteString(strings.TrimSuffix(one.String(), "\n"))
		line := func(head, text string) { fmt.Fprintf(&b, "          %-9s %s\n", head, oneline.Of(text)) }
		if len(a.Servers) == 1 || len(k.On) == 1 {
			p := k.On[0]
			since := screen.ShortTime(p.Since) + ", for " + digits.Age(now.Sub(p.Since).Seconds())
			if p.Unsure {
				since += "; last seen " + screen.ShortTime(p.Seen) + ": it could not be looked for since"
			}
			line("since", since)
		} else {
			line("since", screen.ShortTime(k.Since)+" at the earliest")
		}
		if d := k.Decision; d != nil {
			text := d.Reason + by(d.Who)
			if !d.Until.IsZero() {
				text = "until " + screen.ShortTime(d.Until) + ": " + text
			}
			line(d.Kind, text)
		} else if k.State != "open" {
			line(k.State, "")
		}
		b.WriteString("\n")
	}
	c := a.Counts
	fmt.Fprintf(&b, "%s: %d critical, %s; %d decided, %d gone.\n", digits.Counted(c.Critical+c.Warning+c.Info, "finding"), c.Critical, digits.Counted(c.Warning, "warning"), c.Decided, c.Gone)
	if a.Left > 0 {
		fmt.Fprintf(&b, "%s not listed: name some IDs.\n", digits.Plural(a.Left, "more is", "more are"))
	}
	for _, s := range a.Servers {
		switch {
		case s.Looked.IsZero() && s.Error != "":
			fmt.Fprintf(&b, "%s: nothing is known of it: %s\n", s.Name, oneline.Of(s.Error))
			continue
		case s.Looked.IsZero():
			fmt.Fprintf(&b, "%s: nothing is known of it: it was not looked at yet\n", s.Name)
			continue
		}
		fmt.Fprintf(&b, "%s (%s): %s looked at in %s, %s ago.\n", s.Name, s.Version, digits.Counted(s.Tables, "table"), digits.Seconds(s.Seconds), digits.Age(now.Sub(s.Looked).Seconds()))
		if s.Error != "" {
			fmt.Fprintf(&b, "  the last look failed: %s\n", oneline.Of(s.Error))
		}
		for _, u := range s.Missing {
			fmt.Fprintf(&b, "  not looked at: %s: %s\n", oneline.Of(u.What), oneline.Of(u.Why))
		}
	}
	return b.String()
}

func by(who string) string {
	if who == "" {
		return ""
	}
	return " (" + who + ")"
}

// decider are the commands that decide about what a running risso serve keeps.
type decider struct {
	screen.Streams
	flags.Running
	output string
}

// decision is what is sent.
type decision struct {
	ID      string   `json:"id"`
	Object  string   `json:"object,omitempty"`
	Servers []string `json:"servers,omitempty"`
	For     string   `json:"for,omitempty"`
	Reason  string   `json:"reason,omitempty"`
}

// decisions are the commands accept, postpone, silence and undo.
func decisions(s screen.Streams) []*cobra.Command {
	return []*cobra.Command{
		decide(s, "accept", "Let a finding be as it is: it is told again only if it gets worse", "is accepted", "  risso advise accept schema.no_pk shop.log --reason 'a queue'\n  risso advise accept schema.no_pk shop.log --server db1 --reason 'a queue'"),
		decide(s, "postpone", "Let a finding be for a while: it is told again then, or if it gets worse", "is postponed", "  risso advise postpone schema.autoinc shop.orders.id --for 30d --reason 'next release'"),
		decide(s, "silence", "Tell nobody any more of findings that fit, however bad; names may contain *", "is silenced", "  risso advise silence 'index.*' 'test_*' --reason 'only for tests'\n  risso advise silence schema.no_pk --server 'dev-*' --reason 'development'"),
		decide(s, "undo", "Take back what was accepted, postponed or silenced", "is advice again", "  risso advise undo schema.no_pk shop.log"),
	}
}

func decide(s screen.Streams, verb, short, done, example string) *cobra.Command {
	c := &decider{Streams: s}
	var d decision
	cmd := &cobra.Command{Use: verb + " ID [OBJECT]", Short: short, Args: cobra.RangeArgs(1, 2), Example: example,
		Long: short + ".\n\nA running risso serve keeps what was decided, with who did it: that of --url, or on this machine.\nID and OBJECT are as risso advise --kept has them.",
		RunE: func(cmd *cobra.Command, args []string) error {
			d.ID = args[0]
			if len(args) > 1 {
				d.Object = args[1]
			}
			switch {
			case d.Reason == "" && verb != "undo":
				return fault.Usagef("a decision has a --reason")
			case d.For == "" && verb == "postpone":
				return fault.Usagef("say with --for how long it is postponed: 30d")
			case verb == "silence" && !slices.ContainsFunc(advice.Checks(), func(k advise.Check) bool { return pattern.Stars(d.ID, k.ID) }):
				return fault.New(fault.Usage, "risso advise --checks lists what is looked for", fmt.Errorf("no finding is called %q", d.ID))
			}
			body, err := json.Marshal(d)
			if err != nil {
				return fmt.Errorf("write the decision: %w", err)
			}
			var a DecidedAnswer
			if err := c.Do(cmd.Context(), http.MethodPost, "/api/advice/"+verb, body, keepsAdvice, &a); err != nil {
				return err
			}
			if c.output == "json" {
				return render.JSON(c.Out, a)
			}
			text := strings.TrimSpace(d.ID+" "+d.Object) + " " + done
			if len(a.Servers) > 0 {
				text += " on " + strings.Join(a.Servers, ", ")
			}
			if !a.Until.IsZero() {
				text += " until " + screen.ShortTime(a.Until)
			}
			_, err = fmt.Fprintln(c.Out, text)
			return err
		}}
	c.Bind(cmd)
	fl := cmd.Flags()
	fl.StringArrayVar(&d.Servers, "server", nil, "only on this server: its name; may be repeated (default: all)")
	if verb != "undo" {
		fl.StringVar(&d.Reason, "reason", "", "why")
	}
	if verb == "postpone" || verb == "silence" {
		fl.StringVar(&d.For, "for", "", "how long, such as 30d")
	}
	flags.OutputVar(fl, &c.output, "", "text", "json")
	return cmd
}
