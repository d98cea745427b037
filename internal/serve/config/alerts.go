package config

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/watch/alert"
	"github.com/rissodb/risso/internal/watch/alert/tell"
	"github.com/rissodb/risso/internal/watch/rules"
)

// alertsConfig says what rings, and who is told. docs/alerts.md shows it.
type alertsConfig struct {
	Page        string              `yaml:"page,omitempty"`   // URL of the page as people reach it, for links
	Repeat      string              `yaml:"repeat,omitempty"` // after which what still fires is told again, such as 4h
	Rules       []string            `yaml:"rules,omitempty"`  // Prometheus' rule files; names may contain *
	Receivers   []tell.Config       `yaml:"receivers,omitempty"`
	Thresholds  []thresholdConfig   `yaml:"thresholds,omitempty"`
	Routes      []routeConfig       `yaml:"routes,omitempty"`
	Maintenance []maintenanceConfig `yaml:"maintenance,omitempty"`
}

// matchConfig picks alerts; names may contain *.
type matchConfig struct {
	Server   string `yaml:"server,omitempty"`
	Group    string `yaml:"group,omitempty"`
	Finding  string `yaml:"finding,omitempty"`
	Subject  string `yaml:"subject,omitempty"`
	Severity string `yaml:"severity,omitempty"` // warning or critical: at least so bad
}

type thresholdConfig struct {
	matchConfig `yaml:",inline"`
	Off         bool     `yaml:"off,omitempty"`
	For         string   `yaml:"for,omitempty"`
	Above       *float64 `yaml:"above,omitempty"`
}

type routeConfig struct {
	matchConfig `yaml:",inline"`
	To          []string `yaml:"to"`
	Quiet       []string `yaml:"quiet,omitempty"` // such as "mon-fri 22:00-07:00 Europe/Berlin"
	Loud        string   `yaml:"loud,omitempty"`  // what rings in quiet hours nevertheless; critical
	On          bool     `yaml:"continue,omitempty"`
}

type maintenanceConfig struct {
	matchConfig `yaml:",inline"`
	Hours       string `yaml:"hours"`
	Note        string `yaml:"reason,omitempty"`
}

// Alerts are what rings, and the receivers that are told.
type Alerts struct {
	Policy    alert.Policy
	Receivers []tell.Config
	Rules     []string // patterns of names of rule files
}

func (m matchConfig) check(least fleet.Severity) (alert.Match, error) {
	out := alert.Match{Server: m.Server, Group: m.Group, Finding: m.Finding, Subject: m.Subject, Severity: least}
	if err := rules.CheckName(m.Finding); err != nil {
		return out, fmt.Errorf("finding: %w", err)
	}
	if m.Severity == "" {
		return out, nil
	}
	s, err := severity(m.Severity)
	out.Severity = s
	return out, err
}

func severity(word string) (fleet.Severity, error) {
	for _, s := range []fleet.Severity{fleet.SeverityInfo, fleet.SeverityWarning, fleet.SeverityCritical} {
		if s.String() == word {
			return s, nil
		}
	}
	return 0, fmt.Errorf("severity: %q: it is info, warning or critical", word)
}

// CheckAlerts reads what rings, and who is told. Errors name the field.
func (c File) CheckAlerts() (Alerts, error) {
	a, err := c.Alerts.check()
	if err != nil {
		return a, fault.Usagef("alerts of the config file: %w", err)
	}
	return a, nil
}

// WithoutAlerts is the file without what it says of alerts.
func (c File) WithoutAlerts() File {
	c.Alerts = alertsConfig{}
	return c
}

// check reads the block. Errors name the field.
func (c alertsConfig) check() (Alerts, error) {
	a := Alerts{Receivers: c.Receivers, Rules: c.Rules}
	p := &a.Policy
	if u, err := url.Parse(c.Page); c.Page != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		return a, fmt.Errorf("page: write it as https://risso.example.com")
	}
	p.Page = strings.TrimRight(c.Page, "/")
	if c.Repeat != "" {
		d, err := digits.ParseDuration(c.Repeat)
		if err != nil || d <= 0 {
			return a, fmt.Errorf("repeat: %q: write it as 4h", c.Repeat)
		}
		p.Repeat = d
	}
	for i, r := range c.Receivers {
		if err := r.Check(); err != nil {
			return a, fmt.Errorf("receiver %d: %w", i+1, err)
		}
		if slices.Contains(p.Receivers, r.Name) {
			return a, fmt.Errorf("receiver %d: there are two called %q", i+1, r.Name)
		}
		p.Receivers = append(p.Receivers, r.Name)
	}
	for i, t := range c.Thresholds {
		out, err := t.check()
		if err != nil {
			return a, fmt.Errorf("threshold %d: %w", i+1, err)
		}
		p.Thresholds = append(p.Thresholds, out)
	}
	for i, r := range c.Routes {
		out, err := r.check(p.Receivers)
		if err != nil {
			return a, fmt.Errorf("route %d: %w", i+1, err)
		}
		p.Routes = append(p.Routes, out)
	}
	for i, m := range c.Maintenance {
		match, err := m.matchConfig.check(fleet.SeverityInfo)
		var hours alert.Hours
		if err == nil {
			hours, err = ParseHours(m.Hours)
		}
		if err != nil {
			return a, fmt.Errorf("maintenance %d: %w", i+1, err)
		}
		p.Maintenance = append(p.Maintenance, alert.Maintenance{Match: match, Hours: hours, Reason: m.Note})
	}
	return a, nil
}

func (t thresholdConfig) check() (out alert.Threshold, err error) {
	if out.Match, err = t.matchConfig.check(fleet.SeverityWarning); err != nil {
		return out, err
	}
	if !t.Off && t.For == "" && t.Above == nil {
		return out, errors.New("it changes nothing: give for, above or off")
	}
	if t.Above != nil && !(*t.Above >= 0) {
		return out, errors.New("above: no value of a finding is negative")
	}
	out.Off, out.Above = t.Off, t.Above
	if t.For != "" {
		d, err := digits.ParseDuration(t.For)
		if err != nil || d < 0 {
			return out, fmt.Errorf("for: %q: write it as 30s or 10m", t.For)
		}
		out.For = &d
	}
	return out, nil
}

func (r routeConfig) check(receivers []string) (out alert.Route, err error) {
	if out.Match, err = r.matchConfig.check(fleet.SeverityInfo); err != nil {
		return out, err
	}
	if r.To == nil {
		return out, errors.New("to is missing: it lists who is told; to: [] tells nobody")
	}
	for _, to := range r.To {
		if !slices.Contains(receivers, to) {
			return out, fmt.Errorf("to: there is no receiver %q", to)
		}
	}
	out.To, out.On, out.Loud = r.To, r.On, fleet.SeverityCritical
	if r.Loud != "" {
		if out.Loud, err = severity(r.Loud); err != nil {
			return out, fmt.Errorf("loud: %w", err)
		}
	}
	for _, q := range r.Quiet {
		h, err := ParseHours(q)
		if err != nil {
			return out, fmt.Errorf("quiet: %w", err)
		}
		out.Quiet = append(out.Quiet, h)
	}
	return out, nil
}

var weekdays = [...]string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// ParseHours reads hours of the week: "22:00-07:00", "mon-fri 22:00-07:00", "sat,sun 00:00-24:00 Europe/Berlin". Days are those on which the
// hours begin; without a zone they are those of this machine.
func ParseHours(text string) (h alert.Hours, err error) {
	bad := fmt.Errorf("%q: write hours as 22:00-07:00 or mon-fri 22:00-07:00 Europe/Berlin", text)
	h.Zone = time.Local
	words := strings.Fields(text)
	if len(words) > 0 && !strings.Contains(words[0], ":") {
		if h.Days, err = parseDays(words[0]); err != nil {
			return h, errors.Join(bad, err)
		}
		words = words[1:]
	}
	if len(words) == 0 || len(words) > 2 {
		return h, bad
	}
	from, to, ok := strings.Cut(words[0], "-")
	if !ok {
		return h, bad
	}
	if h.From, err = parseClock(from); err != nil {
		return h, bad
	}
	if h.To, err = parseClock(to); err != nil || h.From == h.To || h.From == 24*time.Hour {
		return h, bad
	}
	if len(words) == 2 {
		if h.Zone, err = time.LoadLocation(words[1]); err != nil {
			return h, fmt.Errorf("%q: there is no time zone %s", text, words[1])
		}
	}
	return h, nil
}

func parseDays(text string) (days []time.Weekday, err error) {
	for _, part := range strings.Split(strings.ToLower(text), ",") {
		from, to, ok := strings.Cut(part, "-")
		if !ok {
			to = from
		}
		a, b := slices.Index(weekdays[:], from), slices.Index(weekdays[:], to)
		if a < 0 || b < 0 {
			return nil, fmt.Errorf("days are sun, mon, tue, wed, thu, fri and sat, not %q", part)
		}
		for d := a; ; d = (d + 1) % 7 {
			days = append(days, time.Weekday(d))
			if d == b {
				break
			}
		}
	}
	return days, nil
}

func parseClock(text string) (time.Duration, error) {
	if text == "24:00" {
		return 24 * time.Hour, nil
	}
	t, err := time.Parse("15:04", text)
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute, err
}
