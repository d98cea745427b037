package page_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/store/state"
)

// TestGroupsInBrowser looks at the page Groups: a real group, whose primary is killed while risso serve fails over, and switched over by a button.
func TestGroupsInBrowser(t *testing.T) {
	needBrowser(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	dir := t.TempDir()
	sb, err := sandbox.Up(ctx, sandbox.Options{Dir: filepath.Join(dir, "sandboxes"), Name: "group", Servers: []string{"mariadb"}, Topology: sandbox.TopologyReplication, Replicas: 2, SemiSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sb.Down(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	})
	data := filepath.Join(dir, "data")
	bin := binary(t, dir, "RISSO_BIN", "1")
	create := []string{"group", "create", "shop", "--data", data, "--semi-sync", "--about", "orders and customers"}
	for i := range sb.Nodes {
		c, err := sb.Nodes[i].TCPConfig()
		if err != nil {
			t.Fatal(err)
		}
		create = append(create, "--dsn", fmt.Sprintf("db%d=%s", i+1, c.FormatDSN()))
	}
	cmd := exec.CommandContext(ctx, bin, create...)
	cmd.Stderr = os.Stderr
	if out, err := cmd.Output(); err != nil {
		t.Fatalf("risso group create: %v\n%s", err, out)
	}
	may, look := groupTokens(ctx, t, data)
	url := serveWith(t, bin, "--data", data, "--failover", "auto", "--no-statements", "--no-host")
	control := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var err error
		what, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/db")
		for i := range sb.Nodes {
			switch {
			case fmt.Sprint(i+1) != name:
			case what == "kill":
				err = sb.Nodes[i].Kill(syscall.SIGKILL)
			case what == "start":
				err = sb.Nodes[i].Start(r.Context())
			}
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}))
	defer control.Close()
	playwright(ctx, t, []string{"groups.spec.ts"}, "RISSO_URL="+url, "RISSO_GROUPS="+control.URL, "RISSO_FAILOVER="+may, "RISSO_LOOK="+look)
	if t.Failed() {
		for _, args := range [][]string{{"group", "show", "shop"}, {"receipt", "--group", "shop"}} {
			out, err := exec.CommandContext(ctx, bin, append(args, "--data", data)...).CombinedOutput()
			t.Logf("risso %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		client := http.Client{Timeout: 5 * time.Second}
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, url+"/api/groups/standing", nil)
		req.Header.Set("Authorization", "Bearer "+may)
		if resp, err := client.Do(req); err != nil {
			t.Logf("standing: %v", err)
		} else {
			text, err := io.ReadAll(resp.Body)
			t.Logf("standing: %v %s", err, text)
			resp.Body.Close()
		}
	}
	audit := exec.CommandContext(ctx, bin, "audit", "actions", "--data", data)
	said, err := audit.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"the switchover of group shop from ", "was done by who may failover", "the change of db3 in group shop (db3 gets reads by the weight 0.5 instead of 1"} {
		if !strings.Contains(string(said), want) {
			t.Errorf("who did what does not say %q:\n%s", want, said)
		}
	}
}

// groupTokens makes one that may fail over and one that may look.
func groupTokens(ctx context.Context, t *testing.T, data string) (may, look string) {
	t.Helper()
	facts, err := state.Open(ctx, filepath.Join(data, "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer facts.Close()
	for role, text := range map[state.Role]*string{state.RoleFailover: &may, state.RoleLook: &look} {
		if _, *text, err = facts.CreateToken(ctx, "who may "+string(role), role); err != nil {
			t.Fatal(err)
		}
	}
	return may, look
}
