package check

import (
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/audit/accounts"
	"github.com/rissodb/risso/internal/fleet"
)

// TestJudgeAccounts: the worst counts, what could not be read is never OK, and nothing in a name begins performance data.
func TestJudgeAccounts(t *testing.T) {
	on := &accounts.Server{Name: "db1"}
	read := accounts.Judged{Server: "db1", Account: &accounts.Account{On: on, Known: true}}
	blind := accounts.Judged{Server: "db1", Account: &accounts.Account{On: on}}
	found := func(id string, s fleet.Severity) accounts.Finding {
		return accounts.Finding{ID: id, Severity: s, Server: "db1", Object: "a|b@%", Trouble: fleet.Trouble{What: "is wrong"}}
	}
	ok := accounts.ServerReport{Server: on}
	unread := accounts.ServerReport{Server: &accounts.Server{Name: "db1", Unread: []fleet.Trouble{{What: "accounts", Why: "denied"}}}}
	down := accounts.ServerReport{Server: &accounts.Server{Name: "db2"}, Error: "refused"}
	for _, c := range []struct {
		r      accounts.Report
		ignore []string
		want   int
	}{
		{accounts.Report{Servers: []accounts.ServerReport{ok}, Accounts: []accounts.Judged{read}}, nil, OK},
		{accounts.Report{Servers: []accounts.ServerReport{ok}, Accounts: []accounts.Judged{read}, Findings: []accounts.Finding{found("sec.super", fleet.SeverityInfo)}}, nil, OK},
		{accounts.Report{Servers: []accounts.ServerReport{ok}, Accounts: []accounts.Judged{read}, Findings: []accounts.Finding{found("sec.host", fleet.SeverityWarning)}}, nil, Warning},
		{accounts.Report{Servers: []accounts.ServerReport{ok}, Accounts: []accounts.Judged{read}, Findings: []accounts.Finding{found("sec.host", fleet.SeverityWarning)}}, []string{"sec.host"}, OK},
		{accounts.Report{Servers: []accounts.ServerReport{ok, down}, Accounts: []accounts.Judged{read}, Findings: []accounts.Finding{found("sec.no_password", fleet.SeverityCritical)}}, nil, Critical},
		{accounts.Report{Servers: []accounts.ServerReport{ok, down}, Accounts: []accounts.Judged{read}}, nil, Unknown},
		{accounts.Report{Servers: []accounts.ServerReport{unread}, Accounts: []accounts.Judged{blind}}, nil, Unknown},
	} {
		got, text := judgeAccounts(c.r, c.ignore)
		first, _, _ := strings.Cut(text, "\n")
		if got != c.want || strings.Count(first, "|") != 1 || !strings.HasPrefix(text, "ACCOUNTS "+checkWords[c.want]+" - ") {
			t.Errorf("got %d: %s, want %d and one bar", got, text, c.want)
		}
	}
}
