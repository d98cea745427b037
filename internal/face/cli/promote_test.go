package cli

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestNobodyPromotesWithoutTheRole asks a risso serve to change the primary of a real group with each role, with limits, without a token and from another
// page: only who has the role failover, and for that group, does, and what is written down says who did and who was refused.
func TestNobodyPromotesWithoutTheRole(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	box := sandboxtest.Pair(t, "mariadb")
	db := openNode(t, box.Primary())
	for _, q := range []string{"CREATE USER ops@'%' IDENTIFIED BY 'Secret-1'", "GRANT ALL ON *.* TO ops@'%' WITH GRANT OPTION"} {
		mustExec(t, db, q)
	}
	replica := openNode(t, box.Nodes[1])
	await.Until(t, func() bool {
		var grant string
		err := replica.QueryRow("SHOW GRANTS FOR ops@'%'").Scan(&grant)
		return err == nil && strings.Contains(grant, "ALL PRIVILEGES")
	}, "the account on the replica")
	data := filepath.Join(t.TempDir(), "data")
	dsn := func(name string, port int) string {
		return fmt.Sprintf("%s=ops:Secret-1@tcp(127.0.0.1:%d)/", name, port)
	}
	mustRun(t, "group", "create", "shop", "--data", data, "--dsn", dsn("db1", box.Nodes[0].Port), "--dsn", dsn("db2", box.Nodes[1].Port))
	token := func(name string, more ...string) string {
		t.Helper()
		return strings.TrimSpace(mustRun(t, append([]string{"token", "create", name, "--data", data}, more...)...))
	}
	tokens := map[string]string{
		"nobody":         "",
		"by-look":        token("by-look"),
		"by-change":      token("by-change", "--role", "change"),
		"by-crm":         token("by-crm", "--role", "failover", "--only", "group=crm"),
		"by-one-server":  token("by-one-server", "--role", "failover", "--only", "server=db1"),
		"by-other-pages": token("by-other-pages", "--role", "admin"),
		"by-shop":        token("by-shop", "--role", "failover", "--only", "group=sh*"),
	}
	url, _ := running(t, data)
	ask := func(path, who, body string, header ...string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if tokens[who] != "" {
			r.Header.Set("Authorization", "Bearer "+tokens[who])
		}
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	primary := func() string {
		t.Helper()
		out := mustRun(t, "group", "show", "shop", "--data", data)
		for line := range strings.Lines(out) {
			if f := strings.Fields(line); len(f) > 2 && f[2] == "PRIMARY" {
				return f[0]
			}
		}
		return out
	}
	for _, path := range []string{"/api/groups/switchover", "/api/groups/failover", "/api/groups/member", "/api/groups/policy"} {
		for who, want := range map[string]int{"nobody": 401, "by-look": 403, "by-change": 403, "by-crm": 403, "by-one-server": 403} {
			for _, body := range []string{`{"group":"shop"}`, `{"group":"shop","to":"db2"}`, `{"group":"shop","dry_run":true}`, `{"group":"shop","accept_loss":true,"to":"db2"}`} {
				if code, said := ask(path, who, body); code != want {
					t.Errorf("%s %s by %s: %d %s, want %d", path, body, who, code, said, want)
				}
			}
		}
		if code, said := ask(path, "by-other-pages", `{"group":"shop"}`, "Origin", "https://evil.example"); code != 403 {
			t.Errorf("%s by another page: %d %s", path, code, said)
		}
	}
	if now := primary(); now != "db1" {
		t.Fatalf("the primary is %s, want db1: somebody without the role promoted", now)
	}
	for _, c := range []struct {
		path, body string
		code       int
		says       string
	}{
		{"/api/groups/switchover", `{"group":"shop","dry_run":true}`, 200, `"new":"db2"`},
		{"/api/groups/switchover", `{"group":"shop","dryrun":true}`, 400, "unknown field"},
		{"/api/groups/switchover", `{"group":"shop"} {"dry_run":true}`, 400, ""},
		{"/api/groups/switchover", `{"group":"shop","to":"db9"}`, 409, "db9"},
		{"/api/groups/switchover", `{"group":"shed"}`, 404, "no group shed"},
		{"/api/groups/switchover", `{}`, 400, "names a group"},
		{"/api/groups/member", `{"group":"shop","member":"db2"}`, 400, "what of which member"},
		{"/api/groups/member", `{"group":"shop","member":"db2","status":"DEAD"}`, 400, "is no status"},
		{"/api/groups/member", `{"group":"shop","member":"db2","status":"SPARE","dry_run":true}`, 200, "db2 becomes SPARE instead of SECONDARY"},
		{"/api/groups/member", `{"group":"shop","member":"db1","status":"SPARE"}`, 409, "db1 is the primary"},
		{"/api/groups/member", `{"group":"shop","member":"db2","weight":0.5}`, 200, "by the weight 0.5 instead of 1"},
		{"/api/groups/policy", `{"group":"shop"}`, 400, "what of the policy"},
		{"/api/groups/policy", `{"group":"shop","automatic":false}`, 200, "by hand only"},
		{"/api/groups/switchover", `{"group":"shop"}`, 200, "zero acknowledged transactions lost"},
	} {
		if code, said := ask(c.path, "by-shop", c.body); code != c.code || !strings.Contains(said, c.says) {
			t.Errorf("%s %s: %d %s, want %d and %q", c.path, c.body, code, said, c.code, c.says)
		}
	}
	if now := primary(); now != "db2" {
		t.Errorf("the primary is %s, want db2", now)
	}
	out := mustRun(t, "audit", "actions", "--data", data)
	for _, want := range []string{"the creation of group shop was done by ", "the switchover of group shop from db1 to db2 was done by by-shop", "POST /api/groups/switchover was refused, because it needs the role failover; tried by by-change",
		"by-crm may only change group=crm, and this is about the group shop", "the switchover of group shop failed: ",
		"the change of db2 in group shop (db2 gets reads by the weight 0.5 instead of 1; nothing is changed on the servers) was done by by-shop"} {
		if !strings.Contains(out, want) {
			t.Errorf("nothing says %q:\n%s", want, out)
		}
	}
	if said := mustRun(t, "receipt", "--group", "shop", "--data", data, "-o", "json"); !strings.Contains(said, "db2") {
		t.Errorf("the receipt: %s", said)
	}
}
