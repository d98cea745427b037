package scenario_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// command runs risso to its end, and returns its exit code and all that it wrote.
func command(t *testing.T, args ...string) (code int, said string) {
	t.Helper()
	r := launch(t, nil, args...)
	code = r.code(t)
	return code, r.out.String() + r.err.String()
}

func mustCommand(t *testing.T, args ...string) string {
	t.Helper()
	code, said := command(t, args...)
	if code != 0 {
		t.Fatalf("risso %s: exit code %d: %s", strings.Join(args, " "), code, said)
	}
	return said
}

// controller is a risso serve that shares its state.
type controller struct {
	*risso
	name, data string
	flags      []string // of serve
}

func (c *controller) start(t *testing.T) {
	t.Helper()
	c.risso = serve(t, c.data, append([]string{"--host-only", "--no-statements"}, c.flags...)...)
}

// members are the controllers as one of them knows them.
func (c *controller) members(t *testing.T) (list []struct {
	Name, State, Error string
	Votes              bool
	Epoch              int
}) {
	t.Helper()
	var answer struct {
		Members json.RawMessage `json:"members"`
	}
	code, said := command(t, "controller", "list", "--data", c.data, "-o", "json")
	if code != 0 || json.Unmarshal([]byte(said), &answer) != nil || json.Unmarshal(answer.Members, &list) != nil {
		return nil
	}
	return list
}

// awaitAll waits until so many controllers vote and answer, and returns which one acts.
func (c *controller) awaitAll(t *testing.T, n int) (leader string) {
	t.Helper()
	await(t, fmt.Sprint(n, " controllers that vote"), func() bool {
		votes := 0
		leader = ""
		for _, m := range c.members(t) {
			if m.Votes && m.Error == "" {
				votes++
			}
			if m.Epoch > 0 {
				leader = m.Name
			}
		}
		return votes == n && leader != ""
	})
	return leader
}

// joined makes another controller by an invitation.
func joined(t *testing.T, by *controller, name string) *controller {
	t.Helper()
	c := &controller{name: name, data: dataDir(t), flags: by.flags}
	file := filepath.Join(tempDir(t), "invitation")
	mustCommand(t, "controller", "invite", file, "--data", by.data)
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Fatalf("the invitation can be read by others: %v, %v", st, err)
	}
	mustCommand(t, "controller", "join", file, "--name", name, "--address", sandboxtest.FreeAddress(t), "--data", c.data)
	c.start(t)
	return c
}

var tokenForm = regexp.MustCompile(`risso_\S+`)

// TestControllers: three risso serve share tokens and silences, survive the loss of the one that leads, and begin anew from a backup.
func TestControllers(t *testing.T) {
	t.Parallel()
	first := &controller{name: "c1", data: dataDir(t)}
	act := tokenForm.FindString(mustCommand(t, "token", "create", "before", "--role", "change", "--data", first.data))
	mustCommand(t, "controller", "init", "--name", "c1", "--address", sandboxtest.FreeAddress(t), "--data", first.data)
	if code, said := command(t, "token", "create", "shut", "--data", first.data); code != 1 || !strings.Contains(said, "does not run") {
		t.Errorf("a token without risso serve: exit code %d, %s; want 1 and that none runs", code, said)
	}
	first.start(t)
	first.awaitAll(t, 1)
	if code, said := command(t, "controller", "leave", "--data", first.data); code != 3 {
		t.Errorf("leave while it runs: exit code %d, %s; want 3", code, said)
	}
	all := []*controller{first, joined(t, first, "c2"), joined(t, first, "c3")}
	leader := first.awaitAll(t, 3)

	look := map[string]string{}
	for _, c := range all {
		look[c.name] = tokenForm.FindString(mustCommand(t, "token", "create", "by-"+c.name, "--data", c.data))
	}
	silence := func(c *controller) {
		t.Helper()
		status, body, _ := c.request(t, http.MethodPost, "/api/silences", nil, func(r *http.Request) {
			bearer(act)(r)
			text := `{"server": "` + c.name + `", "for": "2h", "reason": "a test"}`
			r.Header.Set("Content-Type", "application/json")
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
		})
		if status != http.StatusOK {
			t.Errorf("%s: silence: %d %s", c.name, status, body)
		}
	}
	holdAlike := func(list []*controller, silences int) {
		t.Helper()
		for _, c := range list {
			for name, token := range look {
				await(t, name+"'s token at "+c.name, func() bool {
					status, _, _ := c.request(t, http.MethodGet, "/api/fleet", url.Values{}, bearer(token))
					return status == http.StatusOK
				})
			}
			await(t, fmt.Sprint(silences, " silences at ", c.name), func() bool {
				_, body, _ := c.request(t, http.MethodGet, "/api/alerts", url.Values{}, bearer(act))
				return strings.Count(string(body), "a test") == silences
			})
		}
	}
	for _, c := range all {
		silence(c)
	}
	holdAlike(all, 3)

	var left []*controller
	var lost *controller
	for _, c := range all {
		if c.name == leader {
			lost = c
		} else {
			left = append(left, c)
		}
	}
	lost.kill(t)
	silence(left[0])
	look["after"] = tokenForm.FindString(mustCommand(t, "token", "create", "after", "--data", left[1].data))
	mustCommand(t, "token", "revoke", "by-"+leader, "--data", left[0].data)
	delete(look, leader)
	holdAlike(left, 4)
	await(t, "the loss is told", func() bool {
		_, body, _ := left[0].request(t, http.MethodGet, "/api/self", url.Values{}, bearer(act))
		return strings.Contains(string(body), "observer.controller")
	})
	for _, m := range left[0].members(t) {
		if dead := m.State == "unknown"; dead != (m.Error != "") || strings.Contains(m.Error, "no controller leads") || dead && !strings.Contains(m.Error, "does not answer") {
			t.Errorf("one controller is killed, and another leads: of %s is said %s, %q", m.Name, m.State, m.Error)
		}
	}
	lost.start(t)
	left[0].awaitAll(t, 3)
	holdAlike(all, 4)
	mustCommand(t, "controller", "lead", left[1].name, "--data", all[0].data)
	await(t, left[1].name+" leads", func() bool { return left[0].awaitAll(t, 3) == left[1].name })

	backup := filepath.Join(tempDir(t), "state")
	mustCommand(t, "state", "backup", backup, "--data", left[0].data)
	if code, _ := command(t, "state", "restore", backup, "--data", left[0].data); code != 3 {
		t.Errorf("restore while it runs: exit code %d, want 3", code)
	}
	for _, c := range all {
		c.stop(t, syscall.SIGTERM)
	}
	for _, c := range all {
		c.start(t)
	}
	holdAlike(all, 4)

	anew := &controller{name: "d1", data: dataDir(t)}
	mustCommand(t, "state", "restore", backup, "--data", anew.data)
	mustCommand(t, "controller", "init", "--name", "d1", "--address", sandboxtest.FreeAddress(t), "--data", anew.data)
	anew.start(t)
	anew.awaitAll(t, 1)
	second := joined(t, anew, "d2")
	anew.awaitAll(t, 2)
	holdAlike([]*controller{anew, second}, 4)
	if leader := all[0].awaitAll(t, 3); leader == "" {
		t.Error("the first cluster has no leader any more")
	}
}

// bearer adds a token to a request.
func bearer(token string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
}
