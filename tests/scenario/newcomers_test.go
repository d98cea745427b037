package scenario_test

import (
	"net/http"
	"net/url"
	"strings"
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
}
