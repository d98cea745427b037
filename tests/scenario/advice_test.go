package scenario_test

import (
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/serve/advice"
)

// advised is where what is advised about a column stands, once the server was looked at again.
func (r *risso) advised(t *testing.T, id, object string) (stands string) {
	t.Helper()
	before := r.advice(t).Servers[0].Looked
	if status, text := r.act(t, http.MethodPost, "/api/advice/look", ""); status != http.StatusOK && status != http.StatusAccepted {
		t.Fatalf("look: got %d %s", status, text)
	}
	await(t, "a look for advice", func() bool {
		a := r.advice(t)
		for _, f := range a.Findings {
			if f.ID == id && f.Object == object {
				stands = f.State
			}
		}
		return a.Servers[0].Looked.After(before) && a.Looking == nil
	})
	return stands
}

func (r *risso) advice(t *testing.T) (a advice.Answer) {
	t.Helper()
	r.get(t, "/api/advice", url.Values{"state": {"all"}, "limit": {"10000"}}, &a)
	if len(a.Servers) != 1 {
		t.Fatalf("got %d servers, want one", len(a.Servers))
	}
	return a
}

// TestAdvice: what advice finds and is critical rings once; what somebody accepts with a reason does not, and stays accepted after a kill; what
// is postponed comes back when its time is over, over a kill as well.
func TestAdvice(t *testing.T) {
	t.Parallel()
	n := single(t, "mariadb")
	execSQL(t, n, "CREATE DATABASE adv; CREATE TABLE adv.auto (id TINYINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY) ENGINE=InnoDB AUTO_INCREMENT=250; INSERT INTO adv.auto VALUES (NULL); CREATE TABLE adv.later LIKE adv.auto; ALTER TABLE adv.later AUTO_INCREMENT = 250; INSERT INTO adv.later VALUES (NULL)")
	h := newHook(t, "s3cret")
	conf := filepath.Join(tempDir(t), "risso.yaml")
	write(t, conf, fmt.Sprintf(`
alerts:
  receivers:
    - {name: hook, webhook: {url: %q, secret: s3cret}}
advice: {every: off}
servers:
  - {name: db, dsn: %q}
`, h.URL, n.DSN))
	env, data := environment(tempDir(t)), dataDir(t)
	start := func() *risso {
		r := serveEnv(t, env, data, "--no-host", "--config", conf)
		r.awaitTicks(t, "db", 3)
		return r
	}
	const id, object, key = "schema.autoinc", "adv.auto.id", "db/advice.schema.autoinc/adv.auto.id"
	told := func(phase string) (n int) {
		for _, what := range h.told() {
			if what == phase+" "+key {
				n++
			}
		}
		return n
	}
	r := start()
	if got := r.advised(t, id, object); got != "open" {
		t.Fatalf("what was planted is %q, want open", got)
	}
	await(t, "a message of what is critical", func() bool { return told("firing") == 1 })
	do := func(args ...string) {
		t.Helper()
		if out, said, code := runRisso(t, nil, append(append([]string{"advise"}, args...), "--url", r.base)...); code != 0 {
			t.Fatalf("risso advise %s: got %d: %s%s", args, code, out, said)
		}
	}
	do("accept", id, object, "--reason", "it is \"thrown\" away")
	await(t, "the end of what was accepted", func() bool { return told("resolved") == 1 })
	r.kill(t)
	r = start()
	if got := r.advised(t, id, object); got != "accepted" {
		t.Errorf("after a kill it is %q, want accepted", got)
	}
	if i := slices.IndexFunc(r.advice(t).Findings, func(f advice.Kept) bool { return f.ID == id && f.Object == object }); i < 0 || r.advice(t).Findings[i].Decision == nil || r.advice(t).Findings[i].Decision.Reason != "it is \"thrown\" away" {
		t.Errorf("got %+v, want the reason", r.advice(t).Findings)
	}
	if got := h.told(); told("firing") != 1 || len(h.bad) > 0 {
		t.Errorf("it rang again after a kill: %q; bad: %q", got, h.bad)
	}
	const later = "adv.later.id"
	wrong := func() bool { // among what is wrong with the server, and so rings
		return slices.ContainsFunc(r.instance(t, "db").Findings, func(f fleet.Finding) bool { return f.ID == "advice."+id && f.Subject == later })
	}
	await(t, "that what nobody decided about is wrong", wrong)
	do("postpone", id, later, "--for", "30s", "--reason", "next release")
	await(t, "that what is postponed is not", func() bool { return !wrong() })
	r.kill(t)
	r = start()
	await(t, "that what was postponed is wrong again", wrong)
	if got := r.advised(t, id, later); got != "open" {
		t.Errorf("what was postponed is %q, want open", got)
	}
	if told("firing") != 1 {
		t.Errorf("what was accepted rang again: %q", h.told())
	}
}

// TestRetirement: risso serve takes back an index that a command hid, because a class of statements reads more rows, tells it once, and rings;
// the command says why.
func TestRetirement(t *testing.T) {
	t.Parallel()
	n := single(t, "mariadb", "performance_schema=ON")
	execSQL(t, n, "CREATE DATABASE d; CREATE TABLE d.n (d INT PRIMARY KEY); INSERT INTO d.n VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9); CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, a INT, pad CHAR(50), KEY ka (a)) ENGINE=InnoDB; INSERT INTO d.t (a, pad) SELECT x.d*100+y.d*10+z.d, 'x' FROM d.n x, d.n y, d.n z, d.n w; ANALYZE TABLE d.t")
	work := func() {
		t.Helper()
		execSQL(t, n, strings.Repeat("SELECT pad FROM d.t WHERE a = 7;", 25))
	}
	work()
	env, data := environment(tempDir(t)), dataDir(t)
	run := func(args ...string) string {
		t.Helper()
		r := launch(t, env, args...)
		r.code(t)
		return r.out.String() + r.err.String()
	}
	if said := run("index", "retire", "d.t.ka", "--dsn", n.DSN, "--yes"); !strings.Contains(said, "hidden since") {
		t.Fatalf("got %s, want that it is hidden", said)
	}
	work()
	r := serveEnv(t, env, data, "--no-host", "--dsn", n.DSN)
	back := func(e fleet.Event) bool {
		return e.Subject == "advice.index.retire" && strings.Contains(e.Text, "index d.t.ka is being retired: ALTER TABLE `d`.`t` ALTER INDEX `ka` NOT IGNORED; because class ")
	}
	instance := r.advice(t).Servers[0].Instance
	r.awaitEvent(t, instance, fleet.EventFinding, back)
	await(t, "that it is wrong", func() bool {
		return slices.ContainsFunc(r.instance(t, instance).Findings, func(f fleet.Finding) bool { return f.ID == "advice.index.back" && f.Subject == "d.t.ka" })
	})
	r.kill(t)
	r = serveEnv(t, env, data, "--no-host", "--dsn", n.DSN)
	await(t, "that it is wrong, after a kill", func() bool {
		return slices.ContainsFunc(r.instance(t, instance).Findings, func(f fleet.Finding) bool { return f.ID == "advice.index.back" && f.Subject == "d.t.ka" })
	})
	times := 0
	for _, e := range r.events(t, instance, fleet.EventFinding) {
		if back(e) {
			times++
		}
	}
	if said := run("index", "list"); times != 1 || !strings.Contains(said, "in use again: class ") || !strings.Contains(said, "examines 10,000 rows by a call, 10 before") {
		t.Errorf("told %d times, and risso index list says %s; want once, and why", times, said)
	}
}
