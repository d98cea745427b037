package alert

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/watch/own"
)

func (c *command) rules() *cobra.Command {
	cmd := &cobra.Command{Use: "rules", Short: "Rules of your own, in Prometheus' rule files",
		Long: `Rule files that the config file names (alerts: rules:) are evaluated by risso serve, with
Prometheus' own code. What fires rings as findings do.`,
		Example: "  risso alert rules check /etc/risso/rules/*.yml\n  risso alert rules list"}
	cmd.AddCommand(c.checkRules(), c.listRules())
	return cmd
}

func (c *command) checkRules() *cobra.Command {
	return &cobra.Command{Use: "check FILE…", Short: "Check rule files, without a running risso serve", Args: cobra.MinimumNArgs(1), Example: "  risso alert rules check /etc/risso/rules/*.yml",
		RunE: func(_ *cobra.Command, args []string) error {
			files, err := own.Read(args)
			var wrong own.Problems
			if errors.As(err, &wrong) {
				return fault.Usagef("%s", strings.Join(wrong, "\n"))
			}
			if err != nil {
				return fault.Usagef("%w", err)
			}
			a := CheckedAnswer{Files: []CheckedFile{}}
			for _, f := range files {
				x := CheckedFile{File: f.Path, Groups: len(f.Groups)}
				for _, g := range f.Groups {
					for _, r := range g.Rules {
						if r.Alert != "" {
							x.Alerting++
						} else {
							x.Recording++
						}
					}
				}
				a.Files = append(a.Files, x)
			}
			if c.output == "json" {
				return render.JSON(c.Out, a)
			}
			for _, f := range a.Files {
				fmt.Fprintf(c.Out, "%s is right: %s in %s\n", f.File, rulesWords(f.Alerting, f.Recording), digits.Counted(f.Groups, "group"))
			}
			return nil
		}}
}

// rulesWords are numbers of rules in words.
func rulesWords(alerting, recording int) string {
	return digits.Counted(alerting, "alerting rule") + ", " + digits.Counted(recording, "recording rule")
}

func (c *command) listRules() *cobra.Command {
	return &cobra.Command{Use: "list", Short: "The rules of a running risso serve, and what they say", Args: cobra.NoArgs, Example: "  risso alert rules list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			var a own.Now
			if err := c.Do(cmd.Context(), http.MethodGet, "/api/rules", nil, rings, &a); err != nil {
				return err
			}
			if c.output == "json" {
				return render.JSON(c.Out, a)
			}
			if a.Error != "" {
				fmt.Fprintln(c.Out, "the newest files are not used:", a.Error)
			}
			if len(a.Groups) == 0 {
				fmt.Fprintln(c.Out, "there are no rules: alerts: rules: in the config file names their files (docs/alerts.md)")
			}
			for _, g := range a.Groups {
				slow := ""
				if g.Slow {
					slow = ", less often than it asks"
				}
				fmt.Fprintf(c.Out, "group %s of %s: every %s, took %s%s\n", g.Name, g.File, digits.Seconds(g.Interval), digits.Seconds(g.Seconds), slow)
				for _, r := range g.Rules {
					c.rule(r)
				}
			}
			return nil
		}}
}

// rule prints a rule, and what it says.
func (c *command) rule(r own.Rule) {
	word := r.State
	if r.Type == "recording" {
		word = "records"
	}
	if r.Error != "" {
		word = "fails"
	}
	fmt.Fprintf(c.Out, "  %s %s: %s\n", word, r.Name, r.Query)
	if r.Error != "" {
		fmt.Fprintln(c.Out, "    "+r.Error)
	}
	for _, a := range r.Alerts {
		text := a.Summary
		if text == "" {
			text = a.Value
		}
		fmt.Fprintf(c.Out, "    %s %s: %s\n", a.State, labelWords(a.Labels), text)
	}
}

// labelWords are the labels of an alert that tell it from others: name=value, by name.
func labelWords(labels map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if name != "alertname" {
			parts = append(parts, name+"="+labels[name])
		}
	}
	return strings.Join(parts, " ")
}
