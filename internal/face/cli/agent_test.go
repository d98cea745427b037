package cli

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// agentSaid is what a command that goes on has written.
type agentSaid struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *agentSaid) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *agentSaid) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

var agentReady = regexp.MustCompile(`ready on (http://\S+),`)

// TestAgentEnds: an agent answers, and when it is told to end it leaves its server as it is; what it would work with is said with what is wrong, and nothing when all is well.
func TestAgentEnds(t *testing.T) {
	n := sandboxtest.Up(t, "mysql-9.7")
	controller := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(group.View{Group: r.URL.Query().Get("group"), Epoch: 3, Primary: &group.Server{Name: "db1", Address: "db1:3306"}})
	}))
	defer controller.Close()
	args := []string{"agent", "--group", "g", "--member", "db1", "--dsn", n.DSN, "--server", controller.URL + "," + controller.URL, "--state", t.TempDir(), "--listen", "127.0.0.1:0"}
	code, out, errs := call(t, append(args, "--once")...)
	for _, want := range []string{controller.URL + ": this server is the primary of epoch 3", "after a restart it takes writes", "SET PERSIST_ONLY super_read_only = ON", "semi-synchronous replication is off", "waits 6.06 s before it promotes another server, where the group has --agent-ttl 3s"} {
		if code != fault.Failed || !strings.Contains(out, want) {
			t.Errorf("got %d %s%s; want %q", code, out, errs, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var told agentSaid
	ended := make(chan int, 1)
	go func() { ended <- Main(ctx, args, screen.Streams{In: strings.NewReader(""), Out: &told, Err: &told}) }()
	var at []string
	await.Until(t, func() bool { at = agentReady.FindStringSubmatch(told.String()); return at != nil }, "an agent that is ready: %s", &told)
	await.Until(t, func() bool {
		resp, err := http.Get(at[1] + "/primary")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}, "a confirmed primary: %s", &told)
	cancel()
	if code := <-ended; code != fault.OK {
		t.Errorf("got %d %s", code, told.String())
	}
	if _, err := n.Query(t.Context(), "CREATE TABLE test.open (id INT)"); err != nil {
		t.Errorf("the server was not left as it was: %v", err)
	}
	for _, wrong := range [][]string{{"--group", ""}, {"--fence", "always"}, {"--ttl", "10ms"}, {"--server", "risso1"}, {"--server", "http://a:b@risso1:8306"}, {"-o", "json"}} {
		if code, _, _ := call(t, append(args[:len(args):len(args)], wrong...)...); code != fault.Usage {
			t.Errorf("%s: got %d, want wrong use", wrong, code)
		}
	}
}
