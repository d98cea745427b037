package cli

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/publish"
	"github.com/rissodb/risso/internal/face/render"
)

// TestTokenRole: where a token is required, the command that makes one gives it the least role that is enough.
func TestTokenRole(t *testing.T) {
	standIn := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer standIn.Close()
	for role, args := range map[string][]string{
		"look":   {"publish", "haproxy", "--group", "shop", "--url", standIn.URL},
		"change": {"event", "deploy 1.4", "--url", standIn.URL},
		"admin":  {"audit", "actions", "--url", standIn.URL},
	} {
		if code, _, says := call(t, args...); code != 1 || !strings.Contains(says, "--role "+role+" there") {
			t.Errorf("%q: %d, %s; want the role %s", args, code, says, role)
		}
	}
}

// TestPublish: both commands write what risso serve knows. It is a stand-in here: the answer of /api/clients.
func TestPublish(t *testing.T) {
	now := time.Now()
	later := false
	known := publish.Known{
		View:    group.View{Group: "shop", Epoch: 7, Seen: now, Since: now, Primary: &group.Server{Name: "db2", Address: "10.0.0.2:3306"}},
		Members: []group.Member{{Name: "db1", Address: "10.0.0.1:3306", Status: group.Faulty, Weight: 1}, {Name: "db2", Address: "10.0.0.2:3306", Status: group.Primary, Weight: 1}},
	}
	standIn := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RequestURI() != "/api/clients?group=shop" {
			http.NotFound(w, r)
			return
		}
		_ = render.JSON(w, known)
		if known.View.Epoch < 9 && later {
			known.View.Epoch++
		}
	}))
	defer standIn.Close()
	config := mustRun(t, "publish", "haproxy", "--group", "shop", "--url", standIn.URL, "--max-lag", "5s", "--reads-from-primary")
	for _, want := range []string{"server db1 10.0.0.1:3306 check", "server risso1 " + standIn.Listener.Addr().String(), "max_lag=5000ms", "use_backend shop_primary"} {
		if !strings.Contains(config, want) {
			t.Errorf("no %q in\n%s", want, config)
		}
	}
	if alone := mustRun(t, "publish", "haproxy", "--group", "shop", "--controller", standIn.Listener.Addr().String()); !strings.Contains(alone, "server db1 10.0.0.1:3306 check") {
		t.Errorf("of a controller, without --url:\n%s", alone)
	}
	if haproxy, err := exec.LookPath("haproxy"); err == nil {
		path := filepath.Join(t.TempDir(), "haproxy.cfg")
		if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(haproxy, "-c", "-f", path).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
	sql := mustRun(t, "publish", "proxysql", "--group", "shop", "--url", standIn.URL)
	for _, want := range []string{"status='OFFLINE_HARD' WHERE hostgroup_id=10 AND NOT (hostname='10.0.0.2' AND port=3306);", "comment='risso shop epoch 7'", "SAVE MYSQL SERVERS TO DISK;"} {
		if !strings.Contains(sql, want) {
			t.Errorf("no %q in\n%s", want, sql)
		}
	}
	later = true // a hook asks before risso serve knows
	if sql := mustRun(t, "publish", "proxysql", "--group", "shop", "--url", standIn.URL, "--epoch", "9"); !strings.Contains(sql, "epoch 9'") {
		t.Errorf("not of epoch 9: %s", sql)
	}
	known.View.Seen = now.Add(-time.Minute)
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"proxysql", "--group", "shop", "--url", standIn.URL}, 1, "which is too long"},
		{[]string{"proxysql", "--group", "other", "--url", standIn.URL}, 1, "does not know groups"},
		{[]string{"proxysql", "--group", "shop", "--member", "a=b:1"}, 2, "--by-read-only"},
		{[]string{"proxysql", "--group", "shop", "--member", "a=b:1", "--by-read-only", "--writer-hostgroup", "20"}, 2, "two different ones"},
		{[]string{"proxysql", "--group", "shop", "--member", "a=b:1", "--by-read-only", "--writer-hostgroup", "-1"}, 2, "they are numbers from 0 on"},
		{[]string{"haproxy", "--member", "a=b:1"}, 2, "--group"},
		{[]string{"haproxy", "--group", "g", "--member", "a"}, 2, "db1=10.0.0.1:3306"},
		{[]string{"haproxy", "--group", "g", "--member", "a=b:1", "--agents", "1", "--controller", "x:1"}, 2, "either"},
		{[]string{"haproxy", "--group", "g", "--member", "a=b:1", "--every", "1ms"}, 2, "at least 50ms"},
		{[]string{"haproxy", "--group", "g", "--member", "a=b:1", "--url", "https://risso"}, 2, "--controller"},
	} {
		code, out, said := call(t, append([]string{"publish"}, c.args...)...)
		if code != c.code || !strings.Contains(said, c.says) {
			t.Errorf("%q: %d %s %s, want %d with %q", c.args, code, out, said, c.code, c.says)
		}
	}
}
