package scenario_test

import (
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rissodb/risso/internal/sandbox"
)

// TestNewcomers: a group that is made while risso serve runs is watched without a restart, its members as servers, too.
func TestNewcomers(t *testing.T) {
	t.Parallel()
	q := &squad{T: t, box: up(t, sandbox.Options{Servers: []string{"mariadb"}, Topology: sandbox.TopologyReplication, Replicas: 1}), data: dataDir(t)}
	s := serve(t, q.data, "--host-only", "--no-statements")
	answer := func(want int) func() bool {
		return func() bool {
			status, _, _ := s.request(t, http.MethodGet, "/primary", url.Values{"group": {"late"}}, nil)
			return status == want
		}
	}
	await(t, "there is no such group", answer(http.StatusNotFound))
	args := []string{"group", "create", "late", "--data", q.data}
	for _, n := range q.box.Nodes {
		args = append(args, "--dsn", n.Name+"="+q.dsn(n))
	}
	mustCommand(t, args...)
	await(t, "the primary is told", answer(http.StatusOK))
	for _, n := range q.box.Nodes {
		await(t, n.Name+" is watched", func() bool {
			_, body, _ := s.request(t, http.MethodGet, "/api/fleet", url.Values{}, nil)
			return strings.Contains(string(body), `"name":"`+n.Name+`"`)
		})
	}
	await(t, "its numbers are kept", func() bool {
		_, body, _ := s.request(t, http.MethodGet, "/api/v1/query", url.Values{"query": {`mysql_global_status_threads_running`}}, nil)
		return strings.Count(string(body), `"metric"`) == len(q.box.Nodes)
	})
	q.inRooms(s)
	q.stateGone(s)
}

// inRooms: all rooms look after the newcomers, too.
func (q *squad) inRooms(s *risso) {
	q.Helper()
	if status, body, _ := s.request(q.T, http.MethodPost, "/api/advice/look", url.Values{}, nil); status/100 != 2 {
		q.Errorf("to look for advice: %d, %s", status, body)
	}
	for _, n := range q.box.Nodes {
		for path, args := range map[string]url.Values{"/api/topology": {}, "/api/advice": {"state": {"all"}}} {
			await(q.T, n.Name+" is in "+path, func() bool {
				_, body, _ := s.request(q.T, http.MethodGet, path, args, nil)
				return strings.Contains(string(body), `"`+n.Name+`"`)
			})
		}
		if status, body, _ := s.request(q.T, http.MethodGet, "/api/size", url.Values{"instance": {n.Name}}, nil); status != http.StatusOK {
			q.Errorf("the sizes of %s: %d, %s", n.Name, status, body)
		}
		if status, body, _ := s.request(q.T, http.MethodGet, "/health/"+n.Name+"/", url.Values{}, nil); status == http.StatusNotFound {
			q.Errorf("the health of %s: %d, %s", n.Name, status, body)
		}
	}
}

// stateGone: the file of the state is removed under risso serve; that is told, and what it says brings all of it back.
func (q *squad) stateGone(s *risso) {
	q.Helper()
	for _, end := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(filepath.Join(q.data, "state.db") + end); err != nil {
			q.Fatal(err)
		}
	}
	var self struct {
		Findings []struct{ ID, What, Remedy string }
	}
	remedy := ""
	await(q.T, "the loss of the file is told", func() bool {
		s.get(q.T, "/api/self", nil, &self)
		for _, f := range self.Findings {
			if f.ID == "observer.state" {
				remedy = f.Remedy
			}
		}
		return remedy != ""
	})
	s.stop(q.T, syscall.SIGTERM)
	if out, err := exec.CommandContext(q.Context(), "sh", "-c", remedy).CombinedOutput(); err != nil {
		q.Fatalf("%s: %v, %s", remedy, err, out)
	}
	again := serve(q.T, q.data, "--host-only", "--no-statements")
	await(q.T, "the group is there again", func() bool {
		status, _, _ := again.request(q.T, http.MethodGet, "/primary", url.Values{"group": {"late"}}, nil)
		return status == http.StatusOK
	})
}
