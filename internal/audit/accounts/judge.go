package accounts

import (
	"cmp"
	"slices"
	"time"

	"github.com/rissodb/risso/internal/fleet"
)

// The states of a Verdict.
const (
	Passed  = "passed"
	Failed  = "failed"
	Unknown = "unknown" // it could not be read, or is not known yet
	Exempt  = "exempt"  // by the policy, for a reason
	None    = "-"       // the rule is not about such an account
)

// Verdict is what holds of one rule for one account.
type Verdict struct {
	Rule  string `json:"rule"`  // its ID
	State string `json:"state"` // passed, failed, unknown, exempt, or - if the rule is not about such an account
	Words string `json:"words"` // what was seen, or why it is not known
}

// Finding is a rule that an account breaks.
type Finding struct {
	ID       string         `json:"id"` // of the rule
	Severity fleet.Severity `json:"severity"`
	Server   string         `json:"server"` // its name
	Object   string         `json:"object"` // user@host
	// What it is, why it matters, and a remedy in words or as a command of Risso.
	fleet.Trouble
	Evidence string `json:"evidence"` // what was seen, with numbers
	// Since is since when what was counted has been counted, or the moment of the reading.
	Since     time.Time `json:"since"`
	Statement string    `json:"statement"` // that mends it; "" if a person has to decide
	Undo      string    `json:"undo"`      // takes it back
	Breaks    string    `json:"breaks"`    // what the statement could break
}

// outcome is what a rule says of an account.
type outcome struct {
	state, words    string
	severity        fleet.Severity // if not that of the rule
	raised          bool
	since           time.Time
	statement, undo string
	breaks, advice  string
	what            string
}

func passed(words string) outcome  { return outcome{state: Passed, words: words} }
func unknown(words string) outcome { return outcome{state: Unknown, words: words} }
func none() outcome                { return outcome{state: None} }
func failed(what, words string) outcome {
	return outcome{state: Failed, what: what, words: words}
}

// as is the outcome with another severity than the rule has.
func (o outcome) as(s fleet.Severity) outcome {
	o.severity, o.raised = s, true
	return o
}

// mend is the outcome with a statement, its undo and what it could break.
func (o outcome) mend(statement, undo, breaks string) outcome {
	o.statement, o.undo, o.breaks = statement, undo, breaks
	return o
}

// by is the outcome with a remedy in words.
func (o outcome) by(advice string) outcome {
	o.advice = advice
	return o
}

// rule is one thing that is held against an account.
type rule struct {
	id       string
	title    string
	matters  string
	severity fleet.Severity
	judge    func(a *Account, p Policy, now time.Time) outcome
}

// RuleKind is a rule as reports name it.
type RuleKind struct {
	ID      string `json:"id"`      // of the rule
	Title   string `json:"title"`   // what an account that passes is like
	Matters string `json:"matters"` // why the rule is there
}

// Rules are all rules, in the order of reports.
func Rules() (list []RuleKind) {
	for _, r := range rules {
		list = append(list, RuleKind{r.id, r.title, r.matters})
	}
	return list
}

// Verdicts are what holds of every rule for an account.
func Verdicts(a *Account, p Policy, now time.Time) []Verdict {
	list := make([]Verdict, 0, len(rules))
	for _, r := range rules {
		o := r.of(a, p, now)
		list = append(list, Verdict{r.id, o.state, o.words})
	}
	return list
}

func (r rule) of(a *Account, p Policy, now time.Time) outcome {
	if a.System {
		return outcome{state: None, words: "made by the server itself"}
	}
	o := r.judge(a, p, now)
	if o.state == Failed {
		if reason := p.exempt(a, r.id); reason != "" {
			return outcome{state: Exempt, words: "exempt: " + reason}
		}
	}
	return o
}

// Judge is what is wrong with accounts, the worst first. It is pure: accounts as they were read, Expand, Try and Compare called before.
func Judge(list []*Account, p Policy, now time.Time) []Finding {
	var out []Finding
	for _, a := range list {
		for _, r := range rules {
			o := r.of(a, p, now)
			if o.state != Failed {
				continue
			}
			f := Finding{ID: r.id, Severity: r.severity, Server: a.On.Name, Object: a.Object(), Trouble: fleet.Trouble{What: o.what, Why: r.matters, Remedy: o.advice}, Evidence: o.words, Since: o.since, Statement: o.statement, Undo: o.undo, Breaks: o.breaks}
			if o.raised {
				f.Severity = o.severity
			}
			if f.Since.IsZero() {
				f.Since = now
			}
			out = append(out, f)
		}
	}
	slices.SortStableFunc(out, func(x, y Finding) int {
		return cmp.Or(cmp.Compare(y.Severity, x.Severity), cmp.Compare(ruleOrder(x.ID), ruleOrder(y.ID)), cmp.Compare(x.Server, y.Server), cmp.Compare(x.Object, y.Object))
	})
	return out
}

func ruleOrder(id string) int {
	return slices.IndexFunc(rules, func(r rule) bool { return r.id == id })
}
