package check

import (
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/serve/advice"
)

// TestJudgeAdvice: the worst undecided finding decides; what was not looked at is never OK.
func TestJudgeAdvice(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	server := func(change func(*advice.Server)) advice.Server {
		s := advice.Server{Instance: "a", Name: "a", Looked: now.Add(-9 * time.Hour)}
		if change != nil {
			change(&s)
		}
		return s
	}
	on := []advice.Place{{Instance: "a", Name: "a"}}
	found := func(s fleet.Severity, state string) advice.Kept {
		return advice.Kept{Finding: advise.Finding{ID: "schema.autoinc", Object: "s.t.id", Severity: s, What: "it is | nearly used up", Statement: "ALTER"}, State: state, On: on}
	}
	for _, c := range []struct {
		name   string
		server advice.Server
		found  []advice.Kept
		flags  adviceFlags
		want   string
	}{
		{"nothing", server(nil), nil, adviceFlags{}, "RISSO OK - a: no finding of advice | 'critical'=0;;;0 'warning'=0;;;0 'info'=0;;;0 'age'=32400s;259200;;0\n"},
		{"critical", server(func(s *advice.Server) { s.Critical, s.Warning = 1, 1 }), []advice.Kept{found(fleet.SeverityCritical, "open"), found(fleet.SeverityWarning, "open")}, adviceFlags{}, "RISSO CRITICAL - a: it is / nearly used up; and 1 more finding | 'critical'=1;;;0 'warning'=1"},
		{"accepted", server(nil), []advice.Kept{found(fleet.SeverityCritical, "accepted")}, adviceFlags{}, "RISSO OK - a: no finding of advice |"},
		{"a hint", server(func(s *advice.Server) { s.Info = 1 }), []advice.Kept{found(fleet.SeverityInfo, "open")}, adviceFlags{}, "RISSO OK - a: no finding"},
		{"not listed", server(func(s *advice.Server) { s.Warning = 3 }), nil, adviceFlags{}, "RISSO WARNING - a: 3 warnings"},
		{"old", server(func(s *advice.Server) { s.Looked, s.Error = now.Add(-100*time.Hour), "refused" }), nil, adviceFlags{}, "RISSO UNKNOWN - a: the last look is 4 d old: refused"},
		{"old and bad", server(func(s *advice.Server) { s.Looked, s.Warning = now.Add(-100*time.Hour), 1 }), []advice.Kept{found(fleet.SeverityWarning, "open")}, adviceFlags{}, "RISSO WARNING - a: it is"},
		{"never", server(func(s *advice.Server) { s.Looked = time.Time{} }), nil, adviceFlags{}, "RISSO UNKNOWN - a: nothing is known: it was not looked at yet | 'critical'=0;;;0 'warning'=0;;;0 'info'=0;;;0\n"},
		{"blind", server(func(s *advice.Server) { s.Missing = []fleet.Trouble{{What: "foreign keys"}} }), nil, adviceFlags{}, "RISSO UNKNOWN - a: not looked at: foreign keys"},
		{"blind and allowed", server(func(s *advice.Server) { s.Missing = []fleet.Trouble{{What: "foreign keys"}} }), nil, adviceFlags{blind: true}, "RISSO OK"},
		{"only some", server(nil), nil, adviceFlags{ids: []string{"index.*"}}, "RISSO OK - a: no finding of index.*"},
	} {
		c.flags.maxAge = 72 * time.Hour
		list, err := judgeAdvice(advice.Answer{Servers: []advice.Server{c.server}, Findings: c.found}, c.flags, now)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.ReplaceAll(sum(list, want{names: c.flags.names()}).text(), "\u00a0", " ")
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	if _, err := judgeAdvice(advice.Answer{Servers: []advice.Server{server(nil)}}, adviceFlags{servers: []string{"b*"}}, now); err == nil {
		t.Error("a server that is not watched: want an error")
	}
}
