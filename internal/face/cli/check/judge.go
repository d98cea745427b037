package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/pattern"
	"github.com/rissodb/risso/internal/watch/live"
	"github.com/rissodb/risso/internal/watch/rules"
)

// freshness is the name of the check that looks whether readings arrive.
const freshness = "freshness"

// want is what is checked, and of what.
type want struct {
	names   []string // findings, patterns, freshness
	all     bool
	servers []string // names or patterns; none: all
	maxAge  time.Duration

	judged map[string]bool // IDs of the servers of which it is known how they are protected; set if that was asked for by name
}

// protectPrefix begins the findings about backups.
const protectPrefix = "protect."

// protection says whether findings about backups are asked for by name.
func (w want) protection() bool {
	return slices.ContainsFunc(w.names, func(name string) bool { return strings.HasPrefix(name, protectPrefix) })
}

// check says what is wrong with what a user wants.
func (w *want) check() error {
	switch {
	case w.all && len(w.names) > 0:
		return fault.Usagef("either --all or names: see risso check --help")
	case !w.all && len(w.names) == 0:
		return fault.Usagef("no check is named: see risso check --help")
	case slices.ContainsFunc(w.names, func(name string) bool { return strings.HasPrefix(name, fleet.AdvicePrefix) }):
		return fault.New(fault.Usage, "risso check advice 'schema.*'", fmt.Errorf("findings of advice have a check of their own"))
	case w.maxAge <= 0:
		return fault.Usagef("--max-age must be more than 0")
	}
	return nil
}

// Service is the state of one server or host.
type Service struct {
	Server   string          `json:"server"` // its name
	State    string          `json:"state"`  // OK, WARNING, CRITICAL or UNKNOWN
	Code     int             `json:"code"`   // 0 to 3
	Words    string          `json:"words"`  // one sentence
	Age      float64         `json:"age"`    // of the newest reading, in seconds; -1: there is none
	Findings []fleet.Finding `json:"findings"`

	perf []perf
}

// judge says how those are that are meant, the worst first: pure.
func judge(rows []live.Row, w want, now time.Time) ([]Service, error) {
	kinds, err := w.kinds(rows)
	if err != nil {
		return nil, err
	}
	for _, name := range w.servers {
		if !slices.ContainsFunc(rows, func(r live.Row) bool { return named(r, name) }) {
			return nil, fmt.Errorf("nothing is watched that is called %q", name)
		}
	}
	var list []Service
	for _, r := range rows {
		if len(w.servers) > 0 && !slices.ContainsFunc(w.servers, func(name string) bool { return named(r, name) }) {
			continue
		}
		if kinds == nil || slices.ContainsFunc(kinds, func(k rules.Known) bool { return k.Of == "" || k.Of == r.Kind }) {
			list = append(list, w.service(r, now))
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("nothing is watched that can have %s", strings.Join(w.names, ", "))
	}
	slices.SortStableFunc(list, func(a, b Service) int { return cmp.Compare(badness(b.Code), badness(a.Code)) })
	return list, nil
}

func named(r live.Row, name string) bool { return r.ID == name || pattern.Stars(name, r.Name) }

// kinds are those that the names mean; nil: everybody is meant. A name that means nothing is a typing error, and must not be OK.
func (w want) kinds(rows []live.Row) ([]rules.Known, error) {
	if w.all {
		return nil, nil
	}
	var kinds []rules.Known
	for _, name := range w.names {
		list := rules.Meant(name)
		switch {
		case name == freshness:
			list = []rules.Known{{ID: name}}
		case len(list) > 0:
		case slices.ContainsFunc(rows, func(r live.Row) bool {
			return slices.ContainsFunc(r.Findings, func(f fleet.Finding) bool { return pattern.Stars(name, f.ID) })
		}):
			list = []rules.Known{{ID: name}} // a newer risso serve knows it
		default:
			return nil, fault.Usagef("there is no finding %q, and nothing called backup or %s: docs/check.md lists them", name, freshness)
		}
		kinds = append(kinds, list...)
	}
	return kinds, nil
}

// badness orders states: of several the worst counts. Source: max_state_alt() of the Monitoring Plugins.
func badness(code int) int { return [...]int{OK: 0, Warning: 2, Critical: 3, Unknown: 1}[code] }

// meant says whether a finding is asked for.
func (w want) meant(id string) bool {
	return w.all || slices.ContainsFunc(w.names, func(name string) bool { return pattern.Stars(name, id) })
}

// service judges one row.
func (w want) service(r live.Row, now time.Time) Service {
	s := Service{Server: r.Name, Findings: []fleet.Finding{}, Age: -1}
	if r.Seen > 0 {
		s.Age = max(0, now.Sub(time.Unix(r.Seen, 0)).Seconds())
	}
	found := r.Findings
	down := r.State == rules.StateDown
	if down && !slices.ContainsFunc(found, func(f fleet.Finding) bool { return f.ID == "server.down" || f.ID == "server.hung" }) { // it has not answered for a few seconds
		found = append([]fleet.Finding{{ID: "server.down", Severity: fleet.SeverityCritical, Since: time.Unix(r.Since, 0), Trouble: fleet.Trouble{What: r.Words}}}, found...)
	}
	for _, f := range found {
		if w.meant(f.ID) || f.ID == "server.hung" && w.meant("server.down") {
			s.Findings = append(s.Findings, f)
			s.be(codeOf(f.Severity), f.What)
		}
	}
	if why, code := w.blind(r, s.Age, down); why != "" {
		s.be(code, why)
	}
	if s.Words == "" {
		s.Words = w.well(r)
	}
	s.State = checkWords[s.Code]
	s.perf = perfOf(r, s, w.maxAge)
	return s
}

// be notes a state with its words; the worst counts, and of two that are as bad the first.
func (s *Service) be(code int, words string) {
	if s.Words == "" || badness(code) > badness(s.Code) {
		s.Words = words
		s.Code = code
	}
}

func codeOf(s fleet.Severity) int {
	switch s {
	case fleet.SeverityCritical:
		return Critical
	case fleet.SeverityWarning:
		return Warning
	}
	return OK
}

// blind says why something that is asked for cannot be known; "": it is known.
func (w want) blind(r live.Row, age float64, down bool) (why string, code int) {
	fresh := w.all || slices.Contains(w.names, freshness)
	switch {
	case down && (fresh || !w.meant("server.down")):
		if fresh {
			return r.Words, Critical
		}
		if !slices.ContainsFunc(w.names, func(name string) bool { return !strings.HasPrefix(name, protectPrefix) }) && w.judged[r.ID] {
			return "", OK // backups are looked at elsewhere
		}
		return "it is not known: " + r.Words, Unknown
	case down:
		return "", OK
	case w.protection() && !w.judged[r.ID]:
		return "it is not known how it is protected: only a risso serve looks at backups", Unknown
	case age < 0:
		return "there is no reading yet", Unknown
	case age > w.maxAge.Seconds():
		return "the newest reading is " + digits.Age(age) + " old", Unknown
	case r.Role == fleet.RoleUnread && slices.ContainsFunc(rules.Meant("repl.*"), func(k rules.Known) bool { return w.meant(k.ID) }):
		return "it is not known whether it replicates: the account may not read that", Unknown
	}
	return "", OK
}

// well are the words for one of which nothing is wrong.
func (w want) well(r live.Row) string {
	switch {
	case w.all:
		return r.Words
	case len(w.names) == 1 && w.names[0] == freshness:
		return "readings arrive"
	}
	return "no finding of " + strings.Join(w.names, ", ")
}

// Answer is what a check found.
type Answer struct {
	State    string    `json:"state"`    // OK, WARNING, CRITICAL or UNKNOWN
	Code     int       `json:"code"`     // 0 to 3; it is the exit code
	Words    string    `json:"words"`    // one sentence
	Services []Service `json:"services"` // the worst first
}

// sum is the answer for all services, of which there is at least one, the worst first.
func sum(list []Service, w want) Answer {
	a := Answer{State: list[0].State, Code: list[0].Code, Words: list[0].Server + ": " + list[0].Words, Services: list}
	if len(list) == 1 {
		if n := len(list[0].Findings) - 1; n > 0 && !w.all {
			a.Words += "; and " + digits.Counted(n, "more finding")
		}
		return a
	}
	n := map[int]int{}
	for _, s := range list {
		n[s.Code]++
	}
	if a.Code == OK {
		a.Words = fmt.Sprintf("nothing is wrong on %d servers and hosts", len(list))
		if !w.all {
			a.Words = fmt.Sprintf("%s on %d servers and hosts", w.well(live.Row{}), len(list))
		}
		return a
	}
	var parts []string
	for _, code := range []int{Critical, Warning, Unknown} {
		if n[code] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[code], strings.ToLower(checkWords[code])))
		}
	}
	a.Words = fmt.Sprintf("%s of %d: %s", strings.Join(parts, ", "), len(list), a.Words)
	return a
}
