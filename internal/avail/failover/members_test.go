package failover_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/topology"
)

// TestMembersNotNamed: of a server that nobody named it is not said that it does not answer.
func TestMembersNotNamed(t *testing.T) {
	for kind, want := range map[string]string{"not_asked": "db2:3306 is none of the servers that were named", "refused": "db2:3306 does not answer: nothing listens"} {
		top := &topology.Topology{Nodes: []topology.Node{{Name: "db2:3306", Unseen: &topology.Failure{Kind: kind, Text: "nothing listens"}}}}
		_, no := failover.Members(top, time.Now())
		if len(no) == 0 || no[0].Code != "not_seen" || !strings.HasPrefix(no[0].Why, want) {
			t.Errorf("%s: got %+v, want %q", kind, no, want)
		}
	}
}
