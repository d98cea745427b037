package accounts

import (
	"encoding/csv"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/oneline"
)

// text is a report for people.
func text(a Answer) string {
	var b strings.Builder
	for _, f := range a.Findings {
		fmt.Fprintf(&b, "%-8s  %-20s  %s", f.Severity, f.ID, oneline.Of(f.What))
		if len(a.Servers) > 1 {
			fmt.Fprintf(&b, " (on %s)", strings.Join(f.Servers, ", "))
		}
		fmt.Fprintf(&b, "\n          why   %s; %s\n", oneline.Of(f.Why), oneline.Of(strings.Join(f.Evidence, "; ")))
		for _, l := range [][2]string{{"run", f.Statement}, {"does", f.Effect}, {"undo", f.Undo}, {"or", f.Advice}} {
			if l[1] == "" {
				continue
			}
			if l[0] == "or" && f.Statement == "" {
				l[0] = "do"
			}
			fmt.Fprintf(&b, "          %-5s %s\n", l[0], oneline.Of(l[1]))
		}
	}
	if len(a.Findings) == 0 {
		b.WriteString("Nothing was found.\n")
	}
	for _, s := range a.Servers {
		if s.Error != "" {
			fmt.Fprintf(&b, "%s: nothing is known of it: %s\n", s.Name, oneline.Of(s.Error))
			continue
		}
		fmt.Fprintf(&b, "%s (%s): %s, passwords of %d tried; policy %s.\n", s.Name, s.Version, digits.Counted(len(s.Accounts), "account"), s.Tried, oneline.Of(a.Policy.Name))
		for _, u := range s.Unknown {
			fmt.Fprintf(&b, "  not known: %s: %s\n", oneline.Of(u.What), oneline.Of(u.Why))
			if u.Remedy != "" {
				fmt.Fprintf(&b, "    %s\n", u.Remedy)
			}
		}
	}
	return b.String()
}

// writeCSV writes a line for each account. A cell that a spreadsheet would take for a formula begins with an apostrophe.
func writeCSV(w io.Writer, a Answer) error {
	c := csv.NewWriter(w)
	rows := [][]string{{"made", "server", "version", "policy", "account", "role", "logs in by", "locked", "expired", "password set", "used since start", "findings", "not known"}}
	made := a.Made.Format(time.RFC3339)
	for _, s := range a.Servers {
		unknown := s.Error
		for _, u := range s.Unknown {
			unknown = strings.TrimPrefix(unknown+"; "+u.What+": "+u.Why, "; ")
		}
		if len(s.Accounts) == 0 {
			rows = append(rows, []string{made, s.Name, s.Version, a.Policy.Name, "", "", "", "", "", "", "", "", unknown})
		}
		for _, x := range s.Accounts {
			rows = append(rows, []string{made, s.Name, s.Version, a.Policy.Name, x.Name, yes(x.Role), strings.Join(x.Plugins, " or "), yes(x.Locked), yes(x.Expired), day(x.Changed), x.Used, strings.Join(x.Findings, " "), unknown})
		}
	}
	for _, row := range rows {
		for i, cell := range row {
			if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
				row[i] = "'" + cell
			}
		}
		if err := c.Write(row); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func day(t time.Time) string {
	if t.IsZero() {
		return "unknown"
	}
	return t.Format(time.DateOnly)
}

// page is the report for an auditor; names are escaped by html/template.
var page = template.Must(template.New("accounts").Funcs(template.FuncMap{"day": day, "yes": yes, "join": strings.Join,
	"stamp": func(t time.Time) string { return t.Format("2006-01-02 15:04:05 MST") }, "level": func(s fleet.Severity) string { return s.String() }}).Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Accounts</title>
<style>:root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem}table{border-collapse:collapse;width:100%;margin:1rem 0}
th,td{text-align:left;vertical-align:top;padding:.3rem .6rem;border-bottom:1px solid #8884}code{overflow-wrap:anywhere}.critical{color:#c22;font-weight:600}.warning{color:#a60}
@media(prefers-color-scheme:dark){.critical{color:#f77}.warning{color:#fb5}}</style></head><body>
<h1>Accounts</h1><p>Made {{stamp .Made}} by risso accounts. Policy: {{.Policy.Name}}: passwords change every {{.Policy.MaxAge}} days, at most {{.Policy.Attempts}} wrong passwords in a row,
accounts that nobody used for {{.Policy.Unused}} days are removed; 0 demands nothing.</p>
<h2>Findings</h2>{{if .Findings}}<table><thead><tr><th>How bad</th><th>Server</th><th>Account</th><th>Finding</th><th>What mends it</th></tr></thead><tbody>
{{range .Findings}}<tr><td class="{{level .Severity}}">{{level .Severity}}</td><td>{{join .Servers ", "}}</td><td>{{.Object}}</td><td>{{.What}}. {{.Why}}. <small>{{.ID}}; {{join .Evidence "; "}}</small></td>
<td>{{if .Statement}}<code>{{.Statement}}</code>{{if .Effect}}<br>{{.Effect}}{{end}}{{if .Undo}}<br>Undo: <code>{{.Undo}}</code>{{end}}{{end}}{{if .Advice}}<p>{{.Advice}}</p>{{end}}</td></tr>
{{end}}</tbody></table>{{else}}<p>None.</p>{{end}}
{{range .Servers}}<h2>{{.Name}}</h2>{{if .Error}}<p class="critical">Nothing is known of it: {{.Error}}</p>{{else}}<p>{{.Version}}; {{len .Accounts}} accounts, passwords of {{.Tried}} tried.</p>
{{range .Unknown}}<p class="warning">Not known: {{.What}}: {{.Why}}</p>{{end}}
<table><thead><tr><th>Account</th><th>Logs in by</th><th>Locked</th><th>Expired</th><th>Password set</th><th>Used since start</th><th>Findings</th></tr></thead><tbody>
{{range .Accounts}}<tr><td>{{.Name}}{{if .Role}} (role){{end}}</td><td>{{join .Plugins " or "}}</td><td>{{yes .Locked}}</td><td>{{yes .Expired}}</td><td>{{day .Changed}}</td><td>{{.Used}}</td><td>{{join .Findings ", "}}</td></tr>
{{end}}</tbody></table>{{end}}{{end}}</body></html>
`))
