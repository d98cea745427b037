package scenario_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rissodb/risso/internal/watch/alert"
	"github.com/rissodb/risso/internal/watch/own"
)

// events are the texts of Risso's events.
func (r *risso) eventTexts(t *testing.T) (list []string) {
	t.Helper()
	var a struct{ Events []struct{ Text string } }
	r.get(t, "/api/events", url.Values{"limit": {"500"}}, &a)
	for _, e := range a.Events {
		list = append(list, e.Text)
	}
	return list
}

func (r *risso) said(t *testing.T, words string) bool {
	t.Helper()
	return slices.ContainsFunc(r.eventTexts(t), func(s string) bool { return strings.Contains(s, words) })
}

// TestRules: rules of the user's own ring as findings do, once, also over a kill of Risso; their files, thresholds and receivers are read
// anew while Risso runs, and thresholds are set over the API.
func TestRules(t *testing.T) {
	t.Parallel()
	n := single(t, "mariadb")
	first, second := newHook(t, ""), newHook(t, "")
	dir := tempDir(t)
	conf, rules := filepath.Join(dir, "risso.yaml"), filepath.Join(dir, "own.yml")
	config := func(url, more string) {
		write(t, conf, fmt.Sprintf(`
alerts:
  rules: [%s/*.yml]
  receivers: [{name: hook, webhook: {url: %q}}]
%s
servers: [{name: db, dsn: %q, group: shop}]
`, dir, url, more, n.DSN))
	}
	ruleFile := func(name, limit string) {
		write(t, rules, `
groups:
  - name: g
    rules:
      - {record: 'server:connections', expr: 'mysql_global_status_threads_connected'}
      - alert: `+name+`
        expr: server:connections > `+limit+`
        for: 2s
        labels: {severity: critical}
        annotations: {summary: 'too many connections on {{ $labels.instance }}'}
`)
	}
	config(first.URL, "")
	ruleFile("Connections", "0")
	env, data := environment(tempDir(t)), dataDir(t)
	start := func() *risso { return serveEnv(t, env, data, "--no-host", "--config", conf) }
	r := start()
	await(t, "the rule rings", func() bool { return slices.Contains(first.told(), "firing db/rule.connections") })
	r.kill(t)
	r = start()
	fires := func() bool {
		return slices.ContainsFunc(r.alerts(t).Alerts, func(a alert.Standing) bool {
			return a.Key == "db/rule.connections" && a.Phase == alert.Firing && a.Group == "shop" && a.Gone.IsZero()
		})
	}
	await(t, "it fires after a kill", fires)
	var now own.Now
	await(t, "the rule is evaluated", func() bool {
		r.get(t, "/api/rules", url.Values{}, &now)
		return len(now.Groups) == 1 && now.Groups[0].Rules[1].State == "firing"
	})
	if out, said, _ := runRisso(t, nil, "alert", "rules", "list", "--url", r.base); !strings.Contains(out, "firing Connections: server:connections > 0") {
		t.Errorf("risso alert rules list: got %s%s, want the rule that fires", out, said)
	}

	// A file with a mistake changes nothing; one without is in force.
	write(t, rules, "groups: [{name: g, rules: [{alert: A, expr: 'sum('}]}]\n")
	await(t, "the mistake is said", func() bool { return r.said(t, "the rule files were not used") })
	if !fires() {
		t.Error("the rule of before does not fire any more")
	}
	ruleFile("Connections", "100000")
	await(t, "the end", func() bool { return slices.Contains(first.told(), "resolved db/rule.connections") })

	// Another receiver, and a threshold from the file and one from the API.
	config(second.URL, "  thresholds: [{finding: 'rule.*', group: 'sho*', off: true}]")
	if err := r.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	await(t, "the changes are said", func() bool {
		return r.said(t, "receiver changed: hook") && r.said(t, "threshold new: group sho*, finding rule.*: off")
	})
	ruleFile("Again", "0") // another finding: the same would be told after a lull
	await(t, "the rule is pending", func() bool {
		return slices.ContainsFunc(r.alerts(t).Alerts, func(a alert.Standing) bool { return a.Key == "db/rule.again" && a.Phase == alert.Pending })
	})
	for _, c := range []struct{ method, path, body, words string }{
		{http.MethodPut, "/api/thresholds", `{"finding": "rule.*"}`, "for how long"},
		{http.MethodPut, "/api/thresholds", `{"finding": "rule.*", "fore": "1s"}`, "fore"},
		{http.MethodPut, "/api/thresholds", `{"finding": "rule.*", "for": "soon"}`, "write it as 30s"},
		{http.MethodDelete, "/api/thresholds?id=77", "", "no threshold 77"},
		{http.MethodPut, "/api/thresholds", `{"server": "db", "finding": "rule.*", "for": "0s"}`, `"id":1`},
		{http.MethodPut, "/api/thresholds", `{"server": "db", "finding": "rule.*", "for": "1s"}`, `"id":2`},
		{http.MethodPut, "/api/thresholds", `{"server": "other", "off": true}`, `"id":3`},
		{http.MethodDelete, "/api/thresholds?id=3", "", `"deleted":3`},
		{http.MethodGet, "/api/thresholds", "", `"page":[{"id":2,"server":"db","finding":"rule.*","severity":"warning","for":"1s"`},
	} {
		if _, text := r.act(t, c.method, c.path, c.body); !strings.Contains(text, c.words) {
			t.Errorf("%s %s %s: got %s, want %s", c.method, c.path, c.body, text, c.words)
		}
	}
	await(t, "the other receiver is told", func() bool { return slices.Contains(second.told(), "firing db/rule.again") })
	await(t, "the events of thresholds", func() bool {
		return r.said(t, "set the threshold for server db, finding rule.*: for 1 s (before: for 0 s)") && r.said(t, "deleted the threshold for server other: off")
	})
	if got, want := first.told(), []string{"firing db/rule.connections", "resolved db/rule.connections"}; !slices.Equal(got, want) {
		t.Errorf("the first receiver got %q, want %q", got, want)
	}
	bad := filepath.Join(dir, "bad.txt")
	if err := os.WriteFile(bad, []byte("groups:\n- name: g\n  rules:\n  - alert: A\n    expr: sum(\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, said, code := runRisso(t, nil, "alert", "rules", "check", bad); code != 2 || !strings.Contains(said, bad+":5:11: ") {
		t.Errorf("risso alert rules check: got %d %s%s, want 2 and the place of the mistake", code, out, said)
	}
}
