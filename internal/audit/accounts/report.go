package accounts

import (
	"encoding/csv"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/oneline"
)

// Report is what was found out about the accounts of one or several servers, at one moment.
type Report struct {
	Made     time.Time      `json:"made"`           // when
	By       string         `json:"by"`             // who ran it: user and machine
	Risso    string         `json:"risso"`          // its version
	Policy   Policy         `json:"policy"`         // that it was held against
	Rules    []RuleKind     `json:"rules"`          // all of them
	Servers  []ServerReport `json:"servers"`        // in the order given
	Accounts []Judged       `json:"accounts"`       // all that could be read
	Findings []Finding      `json:"findings"`       // the worst first
	Budget   float64        `json:"budget_seconds"` // for the test of passwords
	Words    int            `json:"words"`          // that each password was tested against, apart from the variants of names
}

// ServerReport is one server of a report.
type ServerReport struct {
	*Server
	Account string  `json:"read_as"` // user and address, without a password
	Error   string  `json:"error"`   // why nothing could be read of it
	Seconds float64 `json:"seconds"` // that reading took
}

// Judged is an account with what holds of each rule.
type Judged struct {
	Server string `json:"server"` // its name
	*Account
	Verdicts []Verdict `json:"verdicts"` // of all rules
}

// Counts are how many verdicts have each state.
func (r Report) Counts() map[string]int {
	n := map[string]int{}
	for _, a := range r.Accounts {
		for _, v := range a.Verdicts {
			n[v.State]++
		}
	}
	return n
}

// Incomplete says what the report does not know, a line each.
func (r Report) Incomplete() (list []string) {
	for _, s := range r.Servers {
		if s.Error != "" {
			list = append(list, fmt.Sprintf("%s could not be read: %s", s.Name, s.Error))
		}
		for _, u := range s.Unread {
			line := fmt.Sprintf("%s: not read: %s: %s", s.Name, u.What, u.Why)
			if u.Remedy != "" {
				line += " → " + u.Remedy
			}
			list = append(list, line)
		}
	}
	unfinished := 0
	for _, a := range r.Accounts {
		if a.Guess.State == GuessUnfinished {
			unfinished++
		}
	}
	if unfinished > 0 {
		list = append(list, fmt.Sprintf("passwords of %s were not tested to the end within %s: --budget", digits.Counted(unfinished, "account"), digits.Seconds(r.Budget)))
	}
	return list
}

// WriteText writes findings, a line each with its remedy, and what is not known.
func (r Report) WriteText(w io.Writer) error {
	several := len(r.Servers) > 1
	var b strings.Builder
	for _, f := range r.Findings {
		object := f.Object
		if several {
			object = f.Server + " " + object
		}
		fmt.Fprintf(&b, "%-8s  %s  %s %s: %s\n", f.Severity, f.ID, oneline.Of(object), f.What, oneline.Of(f.Evidence))
		if f.Statement != "" {
			fmt.Fprintf(&b, "          → %s;  undo: %s;  breaks: %s\n", oneline.Of(f.Statement), oneline.Of(f.Undo), oneline.Of(f.Breaks))
		}
		if f.Remedy != "" {
			fmt.Fprintf(&b, "          → %s\n", oneline.Of(f.Remedy))
		}
	}
	n := r.Counts()
	judged := 0
	for _, a := range r.Accounts {
		if !a.System {
			judged++
		}
	}
	fmt.Fprintf(&b, "%s on %s: %s; %d rules passed, %d not known, %d exempt (policy %s)\n", digits.Counted(judged, "account"), digits.Counted(len(r.Servers), "server"),
		digits.Counted(len(r.Findings), "finding"), n[Passed], n[Unknown], n[Exempt], oneline.Of(r.Policy.Name))
	for _, line := range r.Incomplete() {
		fmt.Fprintf(&b, "not known: %s\n", oneline.Of(line))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteCSV writes a line for each account and rule, with what a statement would mend. No cell is a formula for a spreadsheet.
func (r Report) WriteCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	rows := [][]string{{"made", "by", "policy", "server", "version", "user", "host", "plugin", "locked", "password_changed", "rule", "title", "state", "seen", "severity", "statement", "undo"}}
	made := r.Made.UTC().Format(time.RFC3339)
	for _, s := range r.Servers {
		if s.Error != "" {
			rows = append(rows, []string{made, r.By, r.Policy.Name, s.Name, "", "", "", "", "", "", "", "", Unknown, s.Error, "", "", ""})
			continue
		}
		for _, u := range s.Unread {
			rows = append(rows, []string{made, r.By, r.Policy.Name, s.Name, s.Version, "", "", "", "", "", "", "", Unknown, "not read: " + u.What + ": " + u.Why, "", u.Remedy, ""})
		}
	}
	by := r.byRule()
	for _, a := range r.Accounts {
		changed := ""
		if a.Changed != nil {
			changed = a.Changed.Format(time.RFC3339)
		}
		for i, v := range a.Verdicts {
			f := by[[3]string{a.Server, a.Object(), v.Rule}]
			severity := ""
			if v.State == Failed {
				severity = f.Severity.String()
			}
			rows = append(rows, []string{made, r.By, r.Policy.Name, a.Server, a.On.Version, a.User, a.Host, a.plugins(), fmt.Sprint(a.Locked), changed, v.Rule, r.Rules[i].Title, v.State, v.Words, severity, f.Statement, f.Undo})
		}
	}
	for _, row := range rows {
		for i, cell := range row {
			row[i] = harmless(cell)
		}
	}
	if err := c.WriteAll(rows); err != nil {
		return fmt.Errorf("write CSV: %w", err)
	}
	return nil
}

func (r Report) byRule() map[[3]string]Finding {
	by := map[[3]string]Finding{}
	for _, f := range r.Findings {
		by[[3]string{f.Server, f.Object, f.ID}] = f
	}
	return by
}

// harmless is a cell that no spreadsheet takes for a formula. Source: OWASP, "CSV Injection".
func harmless(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@\t\r\n＝＋－＠", []rune(cell)[0]) {
		return "'" + cell
	}
	return cell
}
