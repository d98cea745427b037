package alert

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/pattern"
)

// Match picks alerts. What is left empty fits all; names may contain *.
type Match struct {
	Server   string         `json:"server,omitempty"`   // name of the server or host
	Group    string         `json:"group,omitempty"`    // its group
	Finding  string         `json:"finding,omitempty"`  // ID of the finding, such as "lock.*"
	Subject  string         `json:"subject,omitempty"`  // such as a channel or a disk
	Severity fleet.Severity `json:"severity,omitempty"` // at least so bad
}

// Fits says whether an alert is meant.
func (m Match) Fits(a *Alert) bool {
	return fits(m.Server, a.Server) && fits(m.Group, a.Group) && fits(m.Finding, a.Finding) && fits(m.Subject, a.Subject) && a.Severity >= m.Severity
}

// FitsServer says whether alerts of a server, or a host, are meant.
func (m Match) FitsServer(name, group string) bool {
	return fits(m.Server, name) && fits(m.Group, group)
}

func fits(p, name string) bool { return p == "" || pattern.Stars(p, name) }

// Threshold says when findings ring.
type Threshold struct {
	Match
	Off   bool           // they never do
	For   *time.Duration // how long one must hold; nil: as a threshold before this one says
	Above *float64       // its value must be larger; a finding without a value rings nevertheless
}

// Hours are hours of the week that come again.
type Hours struct {
	Days     []time.Weekday // on which they begin; none: each day
	From, To time.Duration  // since midnight; To before From: until the next day
	Zone     *time.Location // nil: UTC
}

// Contain says whether a moment is within the hours.
func (h Hours) Contain(at time.Time) bool {
	at = at.In(cmp.Or(h.Zone, time.UTC))
	clock := time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute + time.Duration(at.Second())*time.Second
	on := func(day time.Weekday) bool { return len(h.Days) == 0 || slices.Contains(h.Days, day) }
	if h.From < h.To {
		return clock >= h.From && clock < h.To && on(at.Weekday())
	}
	return clock >= h.From && on(at.Weekday()) || clock < h.To && on((at.Weekday()+6)%7)
}

// Route says who is told.
type Route struct {
	Match
	To    []string // names of receivers; none: nobody
	Quiet []Hours  // in which alerts below Loud wait
	Loud  fleet.Severity
	On    bool // the routes after this one are asked as well
}

// quiet is quietHours in them, else empty.
func (r *Route) quiet(now time.Time) string {
	if slices.ContainsFunc(r.Quiet, func(h Hours) bool { return h.Contain(now) }) {
		return quietHours
	}
	return ""
}

// Silence holds alerts back for a while: because somebody works on a server, or knows of what is wrong.
type Silence struct {
	ID     int64     `json:"id"`
	Match  Match     `json:"match"`
	Begin  time.Time `json:"begin"` // nothing is held back before
	End    time.Time `json:"end"`   // and nothing from then on
	Reason string    `json:"reason"`
	By     string    `json:"by,omitempty"` // who made it
	Ended  time.Time `json:"ended,omitzero"`
}

// Holds says whether a silence holds an alert back.
func (s Silence) Holds(a *Alert, now time.Time) bool {
	return !now.Before(s.Begin) && now.Before(s.End) && (s.Ended.IsZero() || now.Before(s.Ended)) && s.Match.Fits(a)
}

// Maintenance are hours in which nothing that fits rings, each week.
type Maintenance struct {
	Match
	Hours
	Reason string
}

// Policy is what the user wants to hear, and where.
type Policy struct {
	Receivers   []string    // all that there are
	Thresholds  []Threshold // after the defaults; of those that fit, a later one wins
	Routes      []Route     // the first that fits decides; if none does, all receivers are told
	Maintenance []Maintenance
	Repeat      time.Duration // after which what still fires is told again; 0: 4 hours
	Page        string        // URL of the page, for links; empty: none
}

// repeat is the default of Policy.Repeat.
const repeat = 4 * time.Hour

func seconds(n float64) *time.Duration { d := time.Duration(n * float64(time.Second)); return &d }

// defaults are thresholds that everybody has: what is critical rings at once, what is a warning when it lasts, and what is only worth
// knowing never.
var defaults = []Threshold{
	{Match: Match{}, Off: true},
	{Match: Match{Severity: fleet.SeverityWarning}, For: seconds(120)},
	{Match: Match{Severity: fleet.SeverityWarning, Finding: "host.*"}, For: seconds(600)},
	{Match: Match{Severity: fleet.SeverityWarning, Finding: "disk.*"}, For: seconds(60)},
	{Match: Match{Severity: fleet.SeverityWarning, Finding: "observer.*"}, For: seconds(600)},
	{Match: Match{Severity: fleet.SeverityWarning, Finding: "bp.starved"}, For: seconds(600)},
	{Match: Match{Severity: fleet.SeverityWarning, Finding: "deadlock.rate"}, For: seconds(300)},
	{Match: Match{Severity: fleet.SeverityWarning, Finding: "repl.stopped"}, For: seconds(300)},
	{Match: Match{Severity: fleet.SeverityWarning, Finding: "lock.*"}, For: seconds(30)},
	{Match: Match{Severity: fleet.SeverityWarning, Finding: "lock.global"}, For: seconds(10)}, // all that write wait
	{Match: Match{Severity: fleet.SeverityWarning, Finding: "mdl.blocker"}, For: seconds(30)},
	{Match: Match{Severity: fleet.SeverityWarning, Finding: "server.stall"}, For: seconds(30)},
	{Match: Match{Severity: fleet.SeverityWarning, Finding: "trx.long"}, For: seconds(0)},
	{Match: Match{Severity: fleet.SeverityWarning, Finding: "server.restarted"}, For: seconds(0)},
	{Match: Match{Severity: fleet.SeverityWarning, Finding: "protect.*"}, For: seconds(0)},
	{Match: Match{Severity: fleet.SeverityWarning, Finding: "cert.*"}, For: seconds(0)},
	{Match: Match{Severity: fleet.SeverityWarning, Finding: "rule.*"}, For: seconds(0)}, // it has waited as long as the rule says
	{Match: Match{Severity: fleet.SeverityCritical}, For: seconds(0)},
	{Match: Match{Severity: fleet.SeverityCritical, Finding: "server.stall"}, For: seconds(3)}, // it is told in its second second, and short ones pass
}

// hold is how long a finding must hold before it rings; false: it never does.
func (p *Policy) hold(a *Alert) (time.Duration, bool) {
	var t Threshold
	for _, list := range [2][]Threshold{defaults, p.Thresholds} {
		for _, x := range list {
			if !x.Fits(a) {
				continue
			}
			t.Off = x.Off
			t.For, t.Above = cmp.Or(x.For, t.For), cmp.Or(x.Above, t.Above)
		}
	}
	if t.Off || t.Above != nil && a.Value != 0 && a.Value <= *t.Above {
		return 0, false
	}
	if t.For == nil {
		return 0, true
	}
	return *t.For, true
}

// receivers are those that an alert is for, each with why it is not told at present; "": it is.
func (p *Policy) receivers(a *Alert, now time.Time) map[string]string {
	out := map[string]string{}
	routed := false
	for _, r := range p.Routes {
		if !r.Fits(a) {
			continue
		}
		routed = true
		held := ""
		if a.Severity < r.Loud {
			held = r.quiet(now)
		}
		for _, to := range r.To {
			if was, ok := out[to]; !ok || was != "" {
				out[to] = held
			}
		}
		if !r.On {
			break
		}
	}
	if !routed {
		for _, to := range p.Receivers {
			out[to] = ""
		}
	}
	return out
}

// held says why nobody is told of an alert now; "": nothing holds it back.
func (p *Policy) held(a *Alert, silences []Silence, now time.Time) string {
	for _, s := range silences {
		if s.Holds(a, now) {
			return strings.TrimSuffix("silenced until "+s.End.In(now.Location()).Format("15:04, Jan 2")+": "+s.Reason, ": ")
		}
	}
	for _, m := range p.Maintenance {
		if m.Fits(a) && m.Contain(now) {
			return strings.TrimSuffix("maintenance: "+m.Reason, ": ")
		}
	}
	return ""
}

// Defaults are the thresholds that everybody has, in the order in which they count.
func Defaults() []Threshold { return slices.Clone(defaults) }

// Words are what a match picks, for people.
func (m Match) Words() string {
	var parts []string
	for _, p := range [][2]string{{"server", m.Server}, {"group", m.Group}, {"finding", m.Finding}, {"subject", m.Subject}} {
		if p[1] != "" {
			parts = append(parts, p[0]+" "+p[1])
		}
	}
	if m.Severity > fleet.SeverityWarning {
		parts = append(parts, m.Severity.String())
	}
	if len(parts) == 0 {
		return "all findings"
	}
	return strings.Join(parts, ", ")
}

// Words are what a threshold asks for, for people.
func (t Threshold) Words() string {
	var parts []string
	if t.Off {
		parts = append(parts, "off")
	}
	if t.For != nil {
		parts = append(parts, "for "+digits.Span(*t.For))
	}
	if t.Above != nil {
		parts = append(parts, "above "+digits.Number(*t.Above))
	}
	return strings.Join(parts, ", ")
}
