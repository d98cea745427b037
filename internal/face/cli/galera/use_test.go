package galera

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/avail/galera"
	"github.com/rissodb/risso/internal/fault"
)

func TestWrongUse(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"plan", fault.Usage, "--nodes or --dcs"}, {"plan --nodes 5 --dcs 2,2", fault.Usage, "4 nodes together, and there are 5"}, {"plan --nodes 0x --dcs 1", fault.Usage, "0x"}, {"plan --dcs 1 --weights 300", fault.Usage, "0 to 255"},
		{"plan --nodes 5 more", fault.Usage, "unexpected argument"}, {"--look 2h --dsn x@tcp(127.0.0.1:1)/", fault.Usage, "--look"},
		{"bootstrap", fault.Usage, "no node"}, {"bootstrap --nodes -1", fault.Usage, "0 and more"}, {"bootstrap --position node1", fault.Usage, "NAME=UUID:SEQNO"}, {"bootstrap --position node1=x:1", fault.Usage, "NAME=UUID:SEQNO"},
		{"bootstrap --datadir DIR/nosuch", fault.Failed, "no such file"}, {"bootstrap --datadir DIR/file", fault.Failed, "is no folder"}, {"bootstrap --datadir DIR", fault.Failed, "has no grastate.dat"},
		{"bootstrap --datadir a=DIR --error-log b=x", fault.Failed, "has no grastate.dat"}, {"bootstrap --error-log b=x", fault.Usage, "no --datadir has that name"}, {"bootstrap --error-log x", fault.Usage, "NAME=FILE"},
	} {
		_, err := run(t, strings.Fields(strings.ReplaceAll(c.args, "DIR", dir))...)
		if code := fault.Code(err); err == nil || code != c.code && !strings.Contains(c.args, "0x") || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v (%d); want %q (%d)", c.args, err, fault.Code(err), c.says, c.code)
		}
	}
}

// TestPlanText: the figures of practice, as they are printed.
func TestPlanText(t *testing.T) {
	for args, want := range map[string][]string{
		"plan --nodes 3":                   {"3 members: a majority is 2 votes; any 1 may crash at once", "any 2 lost at once: stops, whichever they are", "1 member left after orderly shutdowns: a majority is 1 of 1 vote"},
		"plan --nodes 4":                   {"any 1 may crash at once", "any 2 may crash at once"},
		"plan --nodes 5 --dcs 2,2,1":       {"any 2 may crash at once, and 3 one after the other", "any one data centre may be lost", "dc1 lost: goes on, 3 of 5 votes", "dc1 cut off from dc2, dc3: dc2, dc3 goes on (2 and 3 votes)"},
		"plan --dcs 2,2":                   {"the loss of either data centre stops it", "dc1 lost: stops: 2 of 4 votes are no majority", "neither side goes on", "better: an arbitrator (garbd) in a third data centre, and any one data centre may be lost"},
		"plan --dcs 2,2 --arbitrators 1":   {"any one data centre may be lost", "dc1, dc2 lost: stops: 1 of 5 votes"},
		"plan --nodes 2 --arbitrators 3":   {"5 members: a majority is 3 votes; any 1 may crash at once", "any 2 lost at once: goes on for 9 of 10 sets"},
		"plan --dcs 2,2 --weights 2,2,1,1": {"4 members with 6 votes: a majority is 4 votes", "the loss of dc1 stops it; it may lose dc2", "dc1 cut off from dc2: dc1 goes on (4 and 2 votes)"},
		"plan --nodes 2 --weights 1,0":     {"node1 lost: stops: 0 of 1 vote", "node2 lost: goes on, 1 of 1 vote"},
	} {
		out, err := run(t, strings.Fields(args)...)
		for _, w := range want {
			if err != nil || !strings.Contains(out, w) {
				t.Errorf("%s: got %v and\n%s\nwant %q", args, err, out, w)
			}
		}
		var p galera.Plan
		if out, err = run(t, append(strings.Fields(args), "-o", "json")...); err != nil || json.Unmarshal([]byte(out), &p) != nil || p.Needed != p.Votes/2+1 || len(p.Single) != len(p.Voters) {
			t.Errorf("%s as JSON: got %v and %s", args, err, out)
		}
	}
}
