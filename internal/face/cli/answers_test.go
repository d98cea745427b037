package cli

import (
	"reflect"

	"github.com/rissodb/risso/internal/audit/accounts"
	"github.com/rissodb/risso/internal/avail/agent"
	"github.com/rissodb/risso/internal/avail/chaos"
	"github.com/rissodb/risso/internal/avail/galera"
	"github.com/rissodb/risso/internal/avail/health"
	"github.com/rissodb/risso/internal/avail/route"
	"github.com/rissodb/risso/internal/byschema"
	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/data/binlog/mirror"
	"github.com/rissodb/risso/internal/data/checksum"
	"github.com/rissodb/risso/internal/data/drill"
	"github.com/rissodb/risso/internal/data/dump"
	"github.com/rissodb/risso/internal/data/physical"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/explain/alter"
	"github.com/rissodb/risso/internal/explain/alter/perform"
	servers "github.com/rissodb/risso/internal/explain/differ"
	"github.com/rissodb/risso/internal/explain/differ/trial"
	"github.com/rissodb/risso/internal/explain/digest/report"
	"github.com/rissodb/risso/internal/explain/plan"
	"github.com/rissodb/risso/internal/explain/size"
	"github.com/rissodb/risso/internal/explain/trace"
	cliaccounts "github.com/rissodb/risso/internal/face/cli/accounts"
	cliadvise "github.com/rissodb/risso/internal/face/cli/advise"
	clialert "github.com/rissodb/risso/internal/face/cli/alert"
	clialter "github.com/rissodb/risso/internal/face/cli/alter"
	cliappliers "github.com/rissodb/risso/internal/face/cli/appliers"
	"github.com/rissodb/risso/internal/face/cli/backup"
	clibench "github.com/rissodb/risso/internal/face/cli/bench"
	clibinlog "github.com/rissodb/risso/internal/face/cli/binlog"
	clichaos "github.com/rissodb/risso/internal/face/cli/chaos"
	"github.com/rissodb/risso/internal/face/cli/check"
	"github.com/rissodb/risso/internal/face/cli/controller"
	clidiff "github.com/rissodb/risso/internal/face/cli/diff"
	"github.com/rissodb/risso/internal/face/cli/doctor"
	"github.com/rissodb/risso/internal/face/cli/events"
	"github.com/rissodb/risso/internal/face/cli/explain"
	"github.com/rissodb/risso/internal/face/cli/failover"
	"github.com/rissodb/risso/internal/face/cli/group"
	"github.com/rissodb/risso/internal/face/cli/gtid"
	cliincident "github.com/rissodb/risso/internal/face/cli/incident"
	cliindex "github.com/rissodb/risso/internal/face/cli/index"
	clilag "github.com/rissodb/risso/internal/face/cli/lag"
	"github.com/rissodb/risso/internal/face/cli/mapsql"
	clipublish "github.com/rissodb/risso/internal/face/cli/publish"
	"github.com/rissodb/risso/internal/face/cli/replica"
	"github.com/rissodb/risso/internal/face/cli/restore"
	"github.com/rissodb/risso/internal/face/cli/sandbox"
	"github.com/rissodb/risso/internal/face/cli/screen"
	clisemisync "github.com/rissodb/risso/internal/face/cli/semisync"
	"github.com/rissodb/risso/internal/face/cli/serve"
	clishard "github.com/rissodb/risso/internal/face/cli/shard"
	"github.com/rissodb/risso/internal/face/cli/statefile"
	clitopology "github.com/rissodb/risso/internal/face/cli/topology"
	"github.com/rissodb/risso/internal/face/cli/watch"
	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/compare"
	"github.com/rissodb/risso/internal/measure/compare/matrix"
	"github.com/rissodb/risso/internal/measure/compare/scale"
	"github.com/rissodb/risso/internal/release"
	"github.com/rissodb/risso/internal/sandbox/datadir"
	"github.com/rissodb/risso/internal/serve/after"
	served "github.com/rissodb/risso/internal/serve/topology"
	"github.com/rissodb/risso/internal/watch/alert"
	"github.com/rissodb/risso/internal/watch/incident"
	"github.com/rissodb/risso/internal/watch/own"
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
		{"advise", "", reflect.TypeFor[cliadvise.Answer]()},
		{"advise prove", "", reflect.TypeFor[cliadvise.ProofAnswer]()},
		{"index retire", "", reflect.TypeFor[cliindex.RetireAnswer]()},
		{"index check", "", reflect.TypeFor[cliindex.CheckAnswer]()},
		{"index list", "", reflect.TypeFor[cliindex.ListAnswer]()},
		{"index back", "", reflect.TypeFor[cliindex.ListAnswer]()},
		{"index drop", "", reflect.TypeFor[cliindex.ListAnswer]()},
		{"advise", "--checks", reflect.TypeFor[cliadvise.ChecksAnswer]()},
		{"lag", "", reflect.TypeFor[clilag.Answer]()},
		{"publish haproxy", "", reflect.TypeFor[clipublish.HAProxyAnswer]()},
		{"publish proxysql", "", reflect.TypeFor[clipublish.ProxySQLAnswer]()},
		{"semisync status", "", reflect.TypeFor[clisemisync.StatusAnswer]()},
		{"semisync on", "", reflect.TypeFor[clisemisync.TurnAnswer]()},
		{"semisync off", "", reflect.TypeFor[clisemisync.TurnAnswer]()},
		{"accounts", "", reflect.TypeFor[accounts.Report]()},
		{"accounts rotate", "", reflect.TypeFor[cliaccounts.RotatedAnswer]()},
		{"advise", "--kept", reflect.TypeFor[cliadvise.KeptAnswer]()},
		{"advise accept", "", reflect.TypeFor[cliadvise.DecidedAnswer]()},
		{"advise postpone", "", reflect.TypeFor[cliadvise.DecidedAnswer]()},
		{"advise silence", "", reflect.TypeFor[cliadvise.DecidedAnswer]()},
		{"advise undo", "", reflect.TypeFor[cliadvise.DecidedAnswer]()},
		{"chaos", "", reflect.TypeFor[chaos.Certificate]()},
		{"chaos", "--dry-run", reflect.TypeFor[clichaos.PlanAnswer]()},
		{"chaos heal", "", reflect.TypeFor[clichaos.HealAnswer]()},
		{"chaos verify", "", reflect.TypeFor[clichaos.VerifyAnswer]()},
		{"check datadir", "", reflect.TypeFor[datadir.Look]()},
		{"check advice", "", reflect.TypeFor[check.Answer]()},
		{"alert ack", "", reflect.TypeFor[clialert.AckAnswer]()},
		{"alert history", "", reflect.TypeFor[clialert.HistoryAnswer]()},
		{"alert list", "", reflect.TypeFor[clialert.ListAnswer]()},
		{"alert replay", "", reflect.TypeFor[alert.Replayed]()},
		{"alert rules check", "", reflect.TypeFor[clialert.CheckedAnswer]()},
		{"alert rules list", "", reflect.TypeFor[own.Now]()},
		{"alert silence", "", reflect.TypeFor[clialert.SilencedAnswer]()},
		{"alert test", "", reflect.TypeFor[clialert.TestedAnswer]()},
		{"alert unsilence", "", reflect.TypeFor[clialert.EndedAnswer]()},
		{"alter plan", "", reflect.TypeFor[alter.Plan]()},
		{"alter run", "", reflect.TypeFor[clialter.RunAnswer]()},
		{"alter status", "", reflect.TypeFor[perform.Status]()},
		{"appliers", "", reflect.TypeFor[cliappliers.Answer]()},
		{"appliers", "--live", reflect.TypeFor[cliappliers.LiveAnswer]()},
		{"backup", "", reflect.TypeFor[backup.Answer]()},
		{"backup", "--dry-run", reflect.TypeFor[dump.Plan]()},
		{"backup", "--physical", reflect.TypeFor[repo.Header]()},
		{"backup", "--physical --dry-run", reflect.TypeFor[physical.Plan]()},
		{"backup accept", "", reflect.TypeFor[backup.AcceptedAnswer]()},
		{"backup copy", "", reflect.TypeFor[backup.CopiedAnswer]()},
		{"backup key", "", reflect.TypeFor[backup.KeyAnswer]()},
		{"backup list", "", reflect.TypeFor[backup.CatalogueAnswer]()},
		{"backup prune", "", reflect.TypeFor[backup.PrunedAnswer]()},
		{"backup show", "", reflect.TypeFor[backup.ShownAnswer]()},
		{"bench check", "", reflect.TypeFor[clibench.Checked]()},
		{"bench cleanup", "", reflect.TypeFor[clibench.Prepared]()},
		{"bench compare", "", reflect.TypeFor[compare.Report]()},
		{"bench compare", "--dry-run", reflect.TypeFor[clibench.ComparisonPlan]()},
		{"bench compare", "--restore", reflect.TypeFor[screen.PutBackAnswer]()},
		{"bench list", "", reflect.TypeFor[[]clibench.WorkloadAnswer]()},
		{"bench matrix", "", reflect.TypeFor[matrix.Report]()},
		{"bench matrix", "--dry-run", reflect.TypeFor[matrix.Plan]()},
		{"bench prepare", "", reflect.TypeFor[clibench.Prepared]()},
		{"bench report", "one file", reflect.TypeFor[bench.Result]()},
		{"bench report", "several files", reflect.TypeFor[[]bench.Result]()},
		{"bench run", "", reflect.TypeFor[bench.Result]()},
		{"bench scale", "", reflect.TypeFor[scale.Report]()},
		{"binlog apply", "", reflect.TypeFor[clibinlog.AppliedAnswer]()},
		{"binlog follow", "what happens, a line each", reflect.TypeFor[mirror.Note]()},
		{"binlog follow", "how far it is, a line each second", reflect.TypeFor[mirror.Status]()},
		{"binlog list", "", reflect.TypeFor[[]clibinlog.ListedLogs]()},
		{"binlog purge", "", reflect.TypeFor[clibinlog.PurgedAnswer]()},
		{"binlog search", "", reflect.TypeFor[binlog.SearchResult]()},
		{"binlog undo", "", reflect.TypeFor[clibinlog.UndoneAnswer]()},
		{"check", "", reflect.TypeFor[check.Answer]()},
		{"checksum", "", reflect.TypeFor[checksum.Result]()},
		{"config check", "", reflect.TypeFor[serve.ConfigAnswer]()},
		{"diff", "", reflect.TypeFor[servers.Report]()},
		{"diff", "three and more servers", reflect.TypeFor[servers.Drift]()},
		{"diff", "--save", reflect.TypeFor[clidiff.SavedAnswer]()},
		{"diff", "--upgrade-to", reflect.TypeFor[trial.Answer]()},
		{"digest", "", reflect.TypeFor[report.ProfileJSON]()},
		{"digest", "--plan-parallel", reflect.TypeFor[byschema.Plan]()},
		{"doctor", "", reflect.TypeFor[doctor.DoctorAnswer]()},
		{"drill", "", reflect.TypeFor[drill.Proof]()},
		{"event", "", reflect.TypeFor[events.MarkAnswer]()},
		{"events", "", reflect.TypeFor[events.ListAnswer]()},
		{"events", "--after", reflect.TypeFor[after.Answer]()},
		{"events", "--findings", reflect.TypeFor[events.FindingsAnswer]()},
		{"explain", "", reflect.TypeFor[plan.Explained]()},
		{"failover", "", reflect.TypeFor[failover.Answer]()},
		{"failover codes", "", reflect.TypeFor[failover.CodesAnswer]()},
		{"failover resume", "", reflect.TypeFor[failover.Answer]()},
		{"receipt", "", reflect.TypeFor[failover.ReceiptsAnswer]()},
		{"receipt apply", "", reflect.TypeFor[failover.ReappliedAnswer]()},
		{"switchover", "", reflect.TypeFor[failover.Answer]()},
		{"group create", "", reflect.TypeFor[group.Answer]()},
		{"group list", "", reflect.TypeFor[group.Answer]()},
		{"group remove", "", reflect.TypeFor[group.Answer]()},
		{"group set-status", "", reflect.TypeFor[group.Answer]()},
		{"group set-access", "", reflect.TypeFor[group.Answer]()},
		{"group set-center", "", reflect.TypeFor[group.Answer]()},
		{"group set-policy", "", reflect.TypeFor[group.Answer]()},
		{"group set-rule", "", reflect.TypeFor[group.Answer]()},
		{"group set-weight", "", reflect.TypeFor[group.Answer]()},
		{"group activate", "", reflect.TypeFor[group.Answer]()},
		{"group add", "", reflect.TypeFor[group.Answer]()},
		{"group deactivate", "", reflect.TypeFor[group.Answer]()},
		{"group health", "", reflect.TypeFor[group.HealthAnswer]()},
		{"group demote", "", reflect.TypeFor[group.Answer]()},
		{"group promote", "", reflect.TypeFor[group.Answer]()},
		{"group prepare", "", reflect.TypeFor[group.PrepareAnswer]()},
		{"group rebuild", "", reflect.TypeFor[group.RebuildAnswer]()},
		{"group rebuilds", "", reflect.TypeFor[group.RebuildsAnswer]()},
		{"group show", "", reflect.TypeFor[group.Answer]()},
		{"shard add", "", reflect.TypeFor[clishard.Answer]()},
		{"shard confirm", "", reflect.TypeFor[clishard.Confirmed]()},
		{"shard define", "", reflect.TypeFor[clishard.Answer]()},
		{"shard list", "", reflect.TypeFor[clishard.Answer]()},
		{"shard lookup", "", reflect.TypeFor[clishard.Found]()},
		{"shard move", "", reflect.TypeFor[clishard.Moved]()},
		{"shard remove", "", reflect.TypeFor[clishard.Answer]()},
		{"shard resume", "", reflect.TypeFor[clishard.Moved]()},
		{"shard split", "", reflect.TypeFor[clishard.Moved]()},
		{"shard undo", "", reflect.TypeFor[clishard.Moved]()},
		{"galera", "", reflect.TypeFor[galera.Report]()},
		{"galera bootstrap", "", reflect.TypeFor[galera.Decision]()},
		{"galera plan", "", reflect.TypeFor[galera.Plan]()},
		{"grants", "", reflect.TypeFor[doctor.GrantsAnswer]()},
		{"gtid count", "", reflect.TypeFor[gtid.SetAnswer]()},
		{"gtid errant", "", reflect.TypeFor[gtid.ErrantAnswer]()},
		{"gtid intersect", "", reflect.TypeFor[gtid.SetAnswer]()},
		{"gtid normalize", "", reflect.TypeFor[gtid.SetAnswer]()},
		{"gtid repair", "", reflect.TypeFor[gtid.RepairAnswer]()},
		{"gtid back", "", reflect.TypeFor[gtid.BackAnswer]()},
		{"gtid subset", "", reflect.TypeFor[gtid.SubsetAnswer]()},
		{"gtid subtract", "", reflect.TypeFor[gtid.SetAnswer]()},
		{"gtid union", "", reflect.TypeFor[gtid.SetAnswer]()},
		{"gtid where", "", reflect.TypeFor[gtid.WhereAnswer]()},
		{"incident list", "", reflect.TypeFor[cliincident.ListAnswer]()},
		{"incident show", "", reflect.TypeFor[incident.Told]()},
		{"agent", "--once", reflect.TypeFor[agent.Survey]()},
		{"health", "--ask", reflect.TypeFor[health.Answer]()},
		{"route status", "", reflect.TypeFor[route.Status]()},
		{"map", "--faults", reflect.TypeFor[mapsql.CheckAnswer]()},
		{"replica attach", "", reflect.TypeFor[replica.Answer]()},
		{"replica back", "", reflect.TypeFor[replica.BackAnswer]()},
		{"replica delay", "", reflect.TypeFor[replica.Answer]()},
		{"replica detach", "", reflect.TypeFor[replica.Answer]()},
		{"replica move", "", reflect.TypeFor[replica.Answer]()},
		{"replica rebuild", "", reflect.TypeFor[replica.RebuildAnswer]()},
		{"replica skip", "", reflect.TypeFor[replica.SkipAnswer]()},
		{"restore", "--into, --sandbox", reflect.TypeFor[restore.Answer]()},
		{"restore", "--datadir --dry-run", reflect.TypeFor[physical.RestorePlan]()},
		{"restore", "--datadir", reflect.TypeFor[physical.Restored]()},
		{"restore", "--sandbox of a physical backup", reflect.TypeFor[restore.FilesAnswer]()},
		{"restore", "--forget", reflect.TypeFor[restore.ForgottenAnswer]()},
		{"sandbox down", "", reflect.TypeFor[sandbox.RemovedAnswer]()},
		{"sandbox exec", "", reflect.TypeFor[sandbox.ResultsAnswer]()},
		{"sandbox kill", "", reflect.TypeFor[sandbox.NodeAnswer]()},
		{"sandbox list", "", reflect.TypeFor[sandbox.SandboxesAnswer]()},
		{"sandbox restart", "", reflect.TypeFor[sandbox.NodeAnswer]()},
		{"sandbox servers", "", reflect.TypeFor[sandbox.ServersAnswer]()},
		{"sandbox start", "", reflect.TypeFor[sandbox.NodeAnswer]()},
		{"sandbox stop", "", reflect.TypeFor[sandbox.NodeAnswer]()},
		{"sandbox up", "", reflect.TypeFor[sandbox.SandboxesAnswer]()},
		{"controller init", "", reflect.TypeFor[controller.Answer]()},
		{"controller invite", "", reflect.TypeFor[controller.Answer]()},
		{"controller join", "", reflect.TypeFor[controller.Answer]()},
		{"controller lead", "", reflect.TypeFor[controller.Answer]()},
		{"controller leave", "", reflect.TypeFor[controller.Answer]()},
		{"controller list", "", reflect.TypeFor[controller.ListAnswer]()},
		{"controller remove", "", reflect.TypeFor[controller.Answer]()},
		{"state backup", "", reflect.TypeFor[statefile.Answer]()},
		{"state restore", "", reflect.TypeFor[statefile.Answer]()},
		{"size", "", reflect.TypeFor[size.Report]()},
		{"topology", "", reflect.TypeFor[clitopology.Found]()},
		{"topology codes", "", reflect.TypeFor[clitopology.CodesAnswer]()},
		{"topology", "--url", reflect.TypeFor[served.Answer]()},
		{"user add", "", reflect.TypeFor[serve.ChangedUser]()},
		{"user list", "", reflect.TypeFor[serve.UsersAnswer]()},
		{"user logout", "", reflect.TypeFor[serve.ChangedUser]()},
		{"user password", "", reflect.TypeFor[serve.ChangedUser]()},
		{"user remove", "", reflect.TypeFor[serve.ChangedUser]()},
		{"user role", "", reflect.TypeFor[serve.ChangedUser]()},
		{"audit actions", "", reflect.TypeFor[serve.ActionsAnswer]()},
		{"token create", "", reflect.TypeFor[serve.MadeToken]()},
		{"token list", "", reflect.TypeFor[serve.TokensAnswer]()},
		{"token off", "", reflect.TypeFor[serve.RevokedAnswer]()},
		{"token revoke", "", reflect.TypeFor[serve.RevokedAnswer]()},
		{"top", "--at", reflect.TypeFor[watch.MomentAnswer]()},
		{"top", "a line each second", reflect.TypeFor[watch.TopAnswer]()},
		{"trace", "CONNECTION", reflect.TypeFor[trace.Report]()},
		{"trace", "no connection", reflect.TypeFor[explain.ConnectionsAnswer]()},
		{"trace", "--dry-run", reflect.TypeFor[explain.StatementsAnswer]()},
		{"trace", "--restore", reflect.TypeFor[screen.PutBackAnswer]()},
		{"verify", "", reflect.TypeFor[backup.VerifiedAnswer]()},
		{"version", "", reflect.TypeFor[release.Build]()},
	}
}
