package check

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/watch/live"
	"github.com/rissodb/risso/internal/watch/rules"
)

// now is when everything is checked here.
var now = time.Date(2026, 11, 24, 3, 0, 0, 0, time.UTC)

// fleetOf are a healthy server, one with findings, one that is down, one without readings, one that was never read, and a host.
func fleetOf() []live.Row {
	row := func(name string, kind fleet.Kind, state rules.State, ago time.Duration, words string, findings ...fleet.Finding) live.Row {
		r := live.Row{Instance: fleet.Instance{ID: name, Name: name, Kind: kind}, State: state, Words: words, Findings: findings, Seen: now.Add(-ago).Unix()}
		if state == rules.StateNew {
			r.Seen = 0
		}
		return r
	}
	finding := func(id, subject string, s fleet.Severity, value float64, what string) fleet.Finding {
		return fleet.Finding{ID: id, Subject: subject, Severity: s, Value: value, Trouble: fleet.Trouble{What: what, Remedy: "KILL 7"}}
	}
	qps, lag := 12.5, 0.0
	well := row("well", fleet.KindServer, rules.StateOK, time.Second, "healthy")
	well.QPS, well.Lag = &qps, &lag
	return []live.Row{
		row("ill", fleet.KindServer, rules.StateCritical, time.Second, "the channel is stopped", finding("repl.stopped", "a='b|", fleet.SeverityCritical, 0, "the channel | is stopped\nfor good"),
			finding("conn.saturation", "", fleet.SeverityWarning, 91.25, "many connections"), finding("x.known", "", fleet.SeverityInfo, 0, "good to know")),
		row("away", fleet.KindServer, rules.StateDown, 2*time.Second, "refuses connections", finding("server.down", "", fleet.SeverityCritical, 0, "refuses connections"), finding("protect.stale", "", fleet.SeverityWarning, 0, "the last backup is old")),
		row("hangs", fleet.KindServer, rules.StateDown, 9*time.Second, "does not answer since 02:59:51"),
		row("unseen", fleet.KindServer, rules.StateOK, time.Minute, "Risso has taken no readings"),
		row("new", fleet.KindServer, rules.StateNew, 0, "waiting for the first answer"),
		well,
		row("unread", fleet.KindServer, rules.StateOK, time.Second, "healthy"),
		row("vm", fleet.KindHost, rules.StateOK, time.Second, "healthy"),
	}
}

// TestJudge: what holds is said as bad as it is, and what cannot be known is never OK.
func TestJudge(t *testing.T) {
	rows := fleetOf()
	rows[6].Role = fleet.RoleUnread
	for _, c := range []struct {
		server, names string
		code          int
		words         string
	}{
		{"well", "", OK, "healthy"},
		{"well", "repl.lag", OK, "no finding of repl.lag"},
		{"well", "freshness", OK, "readings arrive"},
		{"ill", "", Critical, "the channel | is stopped"},
		{"ill", "repl.lag", OK, "no finding"},
		{"ill", "repl.*", Critical, "is stopped"},
		{"ill", "conn.*", Warning, "many connections"},
		{"ill", "x.known", OK, "good to know"},
		{"away", "", Critical, "refuses connections"},
		{"away", "repl.lag", Unknown, "it is not known: refuses connections"},
		{"away", "server.down", Critical, "refuses connections"},
		{"away", "freshness", Critical, "refuses connections"},
		{"away", "protect.stale", Warning, "the last backup is old"},
		{"away", "protect.unproven", OK, "no finding"},
		{"away", "protect.* repl.*", Warning, "the last backup is old"},
		{"well", "protect.*", OK, "no finding"},
		{"vm", "protect.* host.cpu", Unknown, "only a risso serve looks at backups"},
		{"hangs", "", Critical, "does not answer since"},
		{"hangs", "server.down", Critical, "does not answer since"},
		{"hangs", "lock.*", Unknown, "does not answer since"},
		{"unseen", "", Unknown, "the newest reading is 60 s old"},
		{"unseen", "server.down", Unknown, "the newest reading is"},
		{"unseen", "freshness", Unknown, "the newest reading is"},
		{"new", "", Unknown, "there is no reading yet"},
		{"new", "server.down", Unknown, "there is no reading yet"},
		{"unread", "", Unknown, "whether it replicates"},
		{"unread", "repl.lag", Unknown, "whether it replicates"},
		{"unread", "lock.*", OK, "no finding"},
		{"vm", "host.cpu", OK, "no finding"},
		{"vm", "", OK, "healthy"},
	} {
		w := want{all: c.names == "", names: strings.Fields(c.names), servers: []string{c.server}, maxAge: 30 * time.Second, judged: map[string]bool{"away": true, "well": true}}
		list, err := judge(rows, w, now)
		if err != nil || len(list) != 1 {
			t.Errorf("%s %q: got %v, %v, want one service", c.server, c.names, list, err)
			continue
		}
		if a := sum(list, w); a.Code != c.code || a.State != checkWords[c.code] || !strings.Contains(a.Words, c.words) {
			t.Errorf("%s %q: got %d %s, want %d %s", c.server, c.names, a.Code, a.Words, c.code, c.words)
		}
	}
}

// TestJudgeWrong: a check that can mean nothing is an error, which is UNKNOWN.
func TestJudgeWrong(t *testing.T) {
	for _, c := range []struct{ server, name, want string }{
		{"*", "repl.lagg", "there is no finding"}, {"*", "nosuch", "there is no finding"}, {"nobody", "repl.lag", `called "nobody"`}, {"well", "host.cpu", "nothing is watched that can have host.cpu"},
		{"vm", "repl.lag", "nothing is watched that can have"},
	} {
		if got, err := judge(fleetOf(), want{names: []string{c.name}, servers: []string{c.server}, maxAge: time.Second}, now); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s on %s: got %v, %v, want %q", c.name, c.server, got, err, c.want)
		}
	}
	if got, err := judge(nil, want{all: true}, now); err == nil {
		t.Errorf("nothing is watched: got %v, want an error", got)
	}
}

// The syntax that the Monitoring Plugins Development Guidelines give for performance data.
var perfSyntax = regexp.MustCompile(`^('[^'=|]+'=(-?[0-9.]+|U)(s|us|ms|%|B|KB|MB|GB|TB|c)?(;[0-9.:~@-]*){0,4} ?)*$`)

// TestText: one line with one bar and performance data as the guidelines have them, then lines without a bar, in at most 8 kB.
func TestText(t *testing.T) {
	big := fleetOf()
	for i := range 200 {
		r := big[0]
		r.Name = strings.Repeat("n", i)
		r.Findings = append([]fleet.Finding{{ID: "repl.lag", Severity: fleet.SeverityWarning, Value: 1e300, Trouble: fleet.Trouble{What: strings.Repeat("x\u202e|\x1b", 1<<12)}}}, r.Findings...)
		big = append(big, r)
	}
	for name, rows := range map[string][]live.Row{"one": fleetOf()[:1], "all": fleetOf(), "well": fleetOf()[5:6], "many": big} {
		w := want{all: true, maxAge: 30 * time.Second}
		list, err := judge(rows, w, now)
		if err != nil {
			t.Fatal(err)
		}
		text := sum(list, w).text()
		first, rest, _ := strings.Cut(text, "\n")
		words, perf, ok := strings.Cut(first, " | ")
		if !ok || !strings.HasPrefix(words, "RISSO ") || strings.Contains(words+rest, "|") || !perfSyntax.MatchString(perf) || len(text) > 8192 || strings.ContainsAny(text, "\u202e\x1b") {
			t.Errorf("%s: got %d bytes: %s", name, len(text), text)
		}
		switch name {
		case "one":
			for _, want := range []string{
				"RISSO CRITICAL - ill: the channel / is stopped for good | 'age'=1s;30;;0 'findings'=3;;;0 'conn.saturation'=91.25%;;;0\n",
				"[CRITICAL] ill repl.stopped a='b/: the channel / is stopped for good\nnext: KILL 7\n[WARNING] ill conn.saturation: many connections\nnext: KILL 7\n[info] ill x.known: good to know\n",
			} {
				if !strings.Contains(text, want) {
					t.Errorf("got %s, want %s in it", text, want)
				}
			}
		case "all":
			if want := "RISSO CRITICAL - 3 critical, 2 unknown of 8: ill: the channel"; !strings.HasPrefix(text, want) || !strings.Contains(perf, "'well questions_per_second'=12.5;;;0") || !strings.Contains(rest, "[UNKNOWN] new: ") {
				t.Errorf("got %s, want it to begin with %s, the numbers of well, and a line of new", text, want)
			}
		case "well":
			if want := "RISSO OK - well: healthy | 'age'=1s;30;;0 'findings'=0;;;0 'questions_per_second'=12.5;;;0 'lag'=0s;;;0\n"; text != want {
				t.Errorf("got %s, want %s", text, want)
			}
		case "many":
			if !strings.Contains(rest, "left out here: ") {
				t.Errorf("got %s, want it to say what is left out", rest)
			}
		}
	}
}
