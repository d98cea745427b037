package scenario_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"syscall"
	"testing"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/store/state"
)

// TestNoMembers: members of groups that are not read each second are failed over all the same, and what is wrong with a group is told of the host.
func TestNoMembers(t *testing.T) {
	t.Parallel()
	q := newSquad(t, sandbox.Options{Servers: []string{"mariadb"}})
	if code, said := command(t, "serve", "--data", q.data, "--no-members", "--no-host"); code != 2 {
		t.Fatalf("findings of groups without a place: exit code %d: %s", code, said)
	}
	s := serve(t, q.data, "--failover", "auto", "--host-only", "--no-members")
	q.mustWrite(3)
	_, first := q.members()
	await(t, "clients are told of the primary", func() bool { return s.told(t) == first.Name })
	if err := first.Kill(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await(t, "it is failed over", func() bool { _, p := q.members(); return p != first && q.open(p) && s.told(t) == p.Name })
	_, second := q.members()

	var a struct{ Instances []fleet.Instance }
	s.get(t, "/api/fleet", nil, &a)
	if len(a.Instances) != 1 || a.Instances[0].Kind != fleet.KindHost {
		t.Fatalf("watched are %+v", a.Instances)
	}
	host := a.Instances[0].ID
	for _, n := range q.others(second) {
		if n != first {
			if err := n.Kill(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	f := s.awaitFinding(t, host, "failover.unready", func(f state.FindingRecord) bool { return f.Ended.IsZero() })
	if f.First.Subject != "g" {
		t.Errorf("it is about %q", f.First.Subject)
	}
	for _, n := range q.others(second) {
		<-n.Ended()
		if err := n.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s.awaitFinding(t, host, "failover.unready", func(f state.FindingRecord) bool { return !f.Ended.IsZero() })
	q.complete(q.box.Nodes...)
}

// told is of which server clients are told that it is the primary; "": of none.
func (r *risso) told(t *testing.T) string {
	t.Helper()
	status, b, _ := r.request(t, http.MethodGet, "/primary", url.Values{"group": {"g"}}, nil)
	var a struct{ Server string }
	if status != http.StatusOK || json.Unmarshal(b, &a) != nil {
		return ""
	}
	return a.Server
}
