package rules

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	goonTest    = "internal/watch/live/goon_test.go TestReplicationGoesOn"
	statesTest  = "internal/watch/live/states_test.go "
	lockedTest  = "internal/watch/live/locked_test.go "
	keptTest    = "tests/scenario/findings_test.go "
	channelTest = "internal/watch/live/replica_test.go TestChannels"
)

// remediesTried says of each finding which test makes it true on a real server, runs what it says, and sees it end; or, after a dash, why
// there is none.
var remediesTried = map[string]string{
	"server.down":          statesTest + "TestRestarted",
	"server.hung":          statesTest + "TestRestarted",
	"server.restarted":     statesTest + "TestRestarted",
	"server.stall":         lockedTest + "TestStall",
	"conn.saturation":      statesTest + "TestSaturated",
	"conn.aborted":         statesTest + "TestAborted",
	"cert.server":          statesTest + "TestCertificate",
	"clock.skew":           "tests/scenario/clock_test.go TestClockJump",
	"threads.pileup":       "- its remedy only lists what runs",
	"commit.wait":          "- it has no remedy: the disk is slow",
	"commit.semisync":      "- its remedy only shows the counters; internal/watch/live/semisync_test.go TestCommitsWait makes it true",
	"mdl.blocker":          keptTest + "TestBlockersAreKept",
	"lock.global":          keptTest + "TestBlockersAreKept",
	"lock.user":            keptTest + "TestBlockersAreKept",
	"lock.blocker":         keptTest + "TestBlockersAreKept",
	"redo.pressure":        lockedTest + "TestRedoPressure",
	"trx.long":             statesTest + "TestOldTransactions",
	"undo.history":         "- its remedy lists the oldest, and trx.long ends them; tests/scenario/forty_test.go makes it true",
	"bp.starved":           "- a buffer pool that misses 1,000 reads a second wants a disk that a test cannot count on",
	"deadlock.rate":        lockedTest + "TestDeadlocks",
	"repl.stopped":         goonTest,
	"repl.lag":             channelTest,
	"repl.writable":        channelTest,
	"galera.non_primary":   "- its remedy only shows the state",
	"galera.not_synced":    "- as galera.non_primary; its remedy only shows the state",
	"galera.flow_control":  "- as galera.non_primary; tests/scenario/fortyothers_test.go makes a cluster pause",
	"host.throttled":       "- it has no remedy: the quota is set by who runs the container",
	"mem.overcommit":       "- a control group with a limit wants root and a kernel that lends it",
	"observer.blind":       statesTest + "TestBlind",
	"observer.disk":        "- as disk.full",
	"observer.lost":        "- it has no remedy: what is lost is lost",
	"observer.state":       "tests/scenario/newcomers_test.go TestNewcomers",
	"observer.silent":      "- it has no remedy: a collector that hangs is a fault of Risso",
	"observer.controller":  "- it has no remedy but to start it; tests/scenario/controllers_test.go loses one",
	"observer.late":        "- it has no remedy: Risso's machine is too busy",
	"host.cpu":             "- its remedy only lists who uses the processors",
	"host.steal":           "- only a hypervisor makes steal time; it has no remedy here",
	"host.pressure_io":     "- its remedy only lists who uses the disk",
	"host.pressure_memory": "- its remedy only lists who uses memory; to make it true would stop the tests' machine",
	"host.swap":            "- the tests' machine has no swap, and must not",
	"host.oom":             "- its remedy only shows the kernel's log; to make it true would kill other tests",
	"host.io_slow":         "- its remedy only measures the disk",
	"disk.full":            "- its remedy only lists what is large; what to delete is for people to say",
	"disk.trend":           "- as disk.full; filling_test.go has its answers for known numbers, and a real file system that fills rings in internal/serve",
	"disk.readonly":        "- its remedy only shows the kernel's log; a file system that is mounted again is no longer read-only",
}

// fromTopology are findings that package avail/diagnose has; avail/topology/look/diagnose_test.go makes them true and tries what they say.
var fromTopology = []string{"server.no_access", "server.offline", "server.log_closed", "server.no_room", "repl.frozen", "repl.split_brain", "repl.errant_gtid", "repl.purged", "repl.delayed", "repl.config", "repl.filter", "repl.flavour",
	"repl.gtid_modes", "repl.position", "repl.tls", "repl.version", "repl.version_gap"}

// TestRemediesAreTried: each finding of the README stands in the table, and each test of the table is there.
func TestRemediesAreTried(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_.]+)`").FindAllStringSubmatch(string(readme), -1) {
		if slices.Contains(fromTopology, m[1]) {
			continue
		}
		listed[m[1]] = true
		if remediesTried[m[1]] == "" {
			t.Errorf("%s: got neither a test of its remedy nor why there is none, want one", m[1])
		}
	}
	for id, how := range remediesTried {
		if !listed[id] {
			t.Errorf("%s is no finding", id)
		}
		file, name, _ := strings.Cut(how, " ")
		if file == "-" {
			continue
		}
		text, err := os.ReadFile(filepath.Join("..", "..", "..", file))
		if err != nil || !strings.Contains(string(text), "func "+name+"(") {
			t.Errorf("%s: %s has no %s (%v)", id, file, name, err)
		} else if !strings.Contains(string(text), id) && !strings.HasPrefix(file, "tests/") {
			t.Errorf("%s: %s does not speak of it", id, file)
		}
	}
}
