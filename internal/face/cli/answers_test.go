package cli

import (
	"reflect"

	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/data/binlog/mirror"
	"github.com/rissodb/risso/internal/data/checksum"
	"github.com/rissodb/risso/internal/data/drill"
	"github.com/rissodb/risso/internal/data/dump"
	"github.com/rissodb/risso/internal/data/physical"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/explain/digest/parallel"
	"github.com/rissodb/risso/internal/explain/digest/report"
	"github.com/rissodb/risso/internal/explain/plan"
	"github.com/rissodb/risso/internal/explain/trace"
	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/compare"
	"github.com/rissodb/risso/internal/measure/compare/matrix"
	"github.com/rissodb/risso/internal/measure/compare/scale"
)

// answer is what a command writes with -o json.
type answer struct {
	command string
	when    string // with which flags it is this; "": without those of its other answers
	of      reflect.Type
}

// answers are the JSON forms of all commands. A command that is not in here has none: TestJSONPage.
func answers() []answer {
	return []answer{
		{"backup", "", reflect.TypeFor[backupAnswer]()},
		{"backup", "--dry-run", reflect.TypeFor[dump.Plan]()},
		{"backup", "--physical", reflect.TypeFor[repo.Header]()},
		{"backup", "--physical --dry-run", reflect.TypeFor[physical.Plan]()},
		{"backup accept", "", reflect.TypeFor[acceptedAnswer]()},
		{"backup copy", "", reflect.TypeFor[copiedAnswer]()},
		{"backup key", "", reflect.TypeFor[keyAnswer]()},
		{"backup list", "", reflect.TypeFor[catalogueAnswer]()},
		{"backup prune", "", reflect.TypeFor[prunedAnswer]()},
		{"backup show", "", reflect.TypeFor[shownAnswer]()},
		{"bench check", "", reflect.TypeFor[checked]()},
		{"bench cleanup", "", reflect.TypeFor[prepared]()},
		{"bench compare", "", reflect.TypeFor[compare.Report]()},
		{"bench compare", "--dry-run", reflect.TypeFor[comparisonPlan]()},
		{"bench compare", "--restore", reflect.TypeFor[restoredAnswer]()},
		{"bench list", "", reflect.TypeFor[[]workloadAnswer]()},
		{"bench matrix", "", reflect.TypeFor[matrix.Report]()},
		{"bench matrix", "--dry-run", reflect.TypeFor[matrix.Plan]()},
		{"bench prepare", "", reflect.TypeFor[prepared]()},
		{"bench report", "one file", reflect.TypeFor[bench.Result]()},
		{"bench report", "several files", reflect.TypeFor[[]bench.Result]()},
		{"bench run", "", reflect.TypeFor[bench.Result]()},
		{"bench scale", "", reflect.TypeFor[scale.Report]()},
		{"binlog apply", "", reflect.TypeFor[binlog.RollResult]()},
		{"binlog follow", "what happens, a line each", reflect.TypeFor[mirror.Note]()},
		{"binlog follow", "how far it is, a line each second", reflect.TypeFor[mirror.Status]()},
		{"binlog list", "", reflect.TypeFor[[]listedLogs]()},
		{"binlog purge", "", reflect.TypeFor[purgedAnswer]()},
		{"binlog search", "", reflect.TypeFor[binlog.SearchResult]()},
		{"binlog undo", "", reflect.TypeFor[undoneAnswer]()},
		{"checksum", "", reflect.TypeFor[checksum.Result]()},
		{"config check", "", reflect.TypeFor[configAnswer]()},
		{"digest", "", reflect.TypeFor[report.ProfileJSON]()},
		{"digest", "--plan-parallel", reflect.TypeFor[parallel.Plan]()},
		{"doctor", "", reflect.TypeFor[doctorAnswer]()},
		{"drill", "", reflect.TypeFor[drill.Proof]()},
		{"explain", "", reflect.TypeFor[plan.Explained]()},
		{"grants", "", reflect.TypeFor[grantsAnswer]()},
		{"restore", "--into, --sandbox", reflect.TypeFor[restoreJSON]()},
		{"restore", "--datadir", reflect.TypeFor[physical.Restored]()},
		{"restore", "--sandbox of a physical backup", reflect.TypeFor[filesAnswer]()},
		{"restore", "--forget", reflect.TypeFor[forgottenAnswer]()},
		{"sandbox down", "", reflect.TypeFor[removedAnswer]()},
		{"sandbox exec", "", reflect.TypeFor[resultsAnswer]()},
		{"sandbox list", "", reflect.TypeFor[sandboxesAnswer]()},
		{"sandbox servers", "", reflect.TypeFor[serversAnswer]()},
		{"sandbox up", "", reflect.TypeFor[sandboxesAnswer]()},
		{"token create", "", reflect.TypeFor[madeToken]()},
		{"token list", "", reflect.TypeFor[tokensAnswer]()},
		{"token off", "", reflect.TypeFor[revokedAnswer]()},
		{"token revoke", "", reflect.TypeFor[revokedAnswer]()},
		{"top", "a line each second", reflect.TypeFor[topAnswer]()},
		{"trace", "CONNECTION", reflect.TypeFor[trace.Report]()},
		{"trace", "no connection", reflect.TypeFor[connectionsAnswer]()},
		{"trace", "--dry-run", reflect.TypeFor[statementsAnswer]()},
		{"trace", "--restore", reflect.TypeFor[restoredAnswer]()},
		{"verify", "", reflect.TypeFor[verifiedAnswer]()},
		{"version", "", reflect.TypeFor[build]()},
	}
}
