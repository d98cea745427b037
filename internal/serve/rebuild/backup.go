package rebuild

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/repoint"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/data/binlog/mirror"
	"github.com/rissodb/risso/internal/data/places"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// FromBackup is what From is for a backup of a repository.
const FromBackup = "backup"

// Repository is where a backup comes from.
type Repository struct {
	Place    string
	Backup   string // its ID; "": the newest that a drill has proven
	Identity string // file with the age identity that opens it
	places.Trust
}

// restorer fills a replica with a backup, and rolls it forward by mirrored binary logs where those of its source no longer lead on from it.
type restorer struct {
	*copier
	f      Repository
	repo   *repo.Repo
	header repo.Header
	rolls  *mirror.Plan // nil: the source's binary logs lead on
	rolled mysql.GTIDSet
}

// Fetches is a step of a plan.
func (r *restorer) Fetches() change.Step {
	return change.Step{What: "read", Where: "backup " + r.header.ID + " in " + places.Words(r.f.Place), Why: "nothing is copied before"}
}

// Fetch has nothing to fetch.
func (r *restorer) Fetch(context.Context) (repoint.Copy, error) { return r.copied(), nil }

// copied is the backup as a copy; rolled forward if it has to be.
func (r *restorer) copied() repoint.Copy {
	c := copyOf(r.header, "backup "+r.header.ID+" of "+r.header.Server.Name)
	if r.rolls != nil {
		c.GTIDs = r.rolls.Result.GTIDs.String()
		c.Words += ", rolled forward"
	}
	return c
}

// Checks are steps of a plan.
func (r *restorer) Checks(copied func() *repoint.Copy) change.Plan {
	return change.Plan{{What: "check", Where: "that " + r.name + " takes the backup", Why: "nothing is loaded yet", Do: func(ctx context.Context) error { return r.check(ctx, r.repo, *copied()) }}}
}

// Fills are steps of a plan. How many there are does not depend on what is known only now: a run that goes on counts them.
func (r *restorer) Fills(copied func() *repoint.Copy) change.Plan {
	roll := change.Step{What: "roll forward", Where: r.name, Why: "by nothing: the binary logs of its source lead on from the backup"}
	if p := r.rolls; p != nil {
		roll.Why = digits.Counted(p.Result.Transactions, "transaction") + " of the logs that are mirrored there; the source has purged the first of them"
	}
	roll.Do = r.roll
	return change.Plan{
		{What: "drop", Where: "all schemas of " + r.name, Why: "from here on there is no way back but another copy", Do: func(ctx context.Context) error { return r.clear(ctx, r.repo, r.header.ID) }},
		{What: "load", Where: "the backup into " + r.name + ", not through its binary log", Why: "each table is read back and compared", Do: func(ctx context.Context) error { return r.load(ctx, r.repo, *copied(), false) }},
		roll,
		{What: "set", Where: "the GTIDs of " + r.name, Why: "they are those of what it has; its binary log begins anew", Do: func(ctx context.Context) error { return r.position(ctx, *copied()) }},
	}
}

// roll applies the mirrored logs to their end. What an earlier run applied is not applied again.
func (r *restorer) roll(ctx context.Context) error {
	if r.rolls == nil {
		return nil
	}
	res, err := r.rolls.Execute(ctx, change.Log{})
	if err != nil {
		return fmt.Errorf("roll %s forward: %w", r.name, err)
	}
	for _, note := range res.Notes {
		r.say(note)
	}
	r.rolled = res.GTIDs
	return nil
}

// position lets the server say that it has what it has.
func (r *restorer) position(ctx context.Context, copied repoint.Copy) error {
	if r.rolls != nil {
		if err := binlog.Forget(ctx, r.node, r.header.Position); err != nil {
			return err
		}
	}
	if copied.GTIDs == "" {
		return nil
	}
	conn, err := mysql.Connect(ctx, r.node, nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	statements := conn.Server.SetGTIDs(copied.GTIDs)
	if conn.Server.GTIDsByDomain() && !r.copier.logs { // it has no log to begin anew
		statements = statements[1:]
	}
	for _, s := range statements {
		if err := conn.Exec(ctx, s); err != nil {
			return fmt.Errorf("%s on %s: %w", s, r.name, err)
		}
	}
	return r.begin(ctx, copied)
}

// Remove has nothing to remove.
func (r *restorer) Remove() error { return nil }

// restorer chooses the backup, and finds out how it goes on.
func (j *Job) restorer(ctx context.Context, f *copier, v repoint.RebuildVerdict) (*restorer, func(), error) {
	if j.Repository.Place == "" {
		return nil, nil, fault.Usagef("--from backup: say in which repository: --repository PLACE")
	}
	said := j.Say
	policy, err := j.Repository.Policy(j.Repository.Place, said)
	if err != nil {
		return nil, nil, err
	}
	r := &restorer{copier: f, f: j.Repository}
	var done func()
	if r.repo, done, err = j.open(ctx, policy); err != nil {
		return nil, nil, err
	}
	fail := func(err error) (*restorer, func(), error) { done(); return nil, nil, err }
	if left := j.Question.Left; j.Repository.Backup == "" && left != nil && left.Copy != nil && left.From == FromBackup {
		j.Repository.Backup, j.Because = left.Copy.ID, "the earlier run took it"
	}
	if err := j.pick(ctx, r, v); err != nil {
		return fail(err)
	}
	one := r.copied()
	j.Question.Copy = &one
	if !slices.ContainsFunc(repoint.JudgeRebuild(j.Question).Refused, func(x repoint.Refusal) bool { return x.Code == "purged" }) {
		return r, done, nil
	}
	trust, err := j.Repository.LogPolicy(j.Repository.Place, said)
	if err != nil {
		return fail(err)
	}
	place, closeLogs, err := places.OpenLogs(ctx, j.Repository.Place, j.Repository.Identity)
	if err != nil {
		return fail(err)
	}
	all := func() { closeLogs(); done() }
	p, err := mirror.PlanRoll(ctx, trust.Of(place), places.MirrorDir("", j.Repository.Place), r.header, binlog.RollOptions{Into: r.node, Leave: true})
	if err != nil && !errors.Is(err, mirror.ErrNone) {
		all()
		return nil, nil, fmt.Errorf("backup %s is older than the binary logs of the source, and cannot be rolled forward: %w", r.header.ID, err)
	}
	if err == nil {
		r.rolls, one = &p, repoint.Copy{}
		one = r.copied()
		j.Question.Copy = &one
	}
	return r, all, nil // if it is refused, PrepareRebuild says so
}

// open opens the repository.
func (j *Job) open(ctx context.Context, policy repo.Policy) (*repo.Repo, func(), error) {
	keys, err := places.Keys(nil, j.Repository.Identity)
	if err != nil {
		return nil, nil, err
	}
	keys.Policy = policy
	return places.Open(ctx, j.Repository.Place, keys)
}

// pick finds the newest backup that a drill has proven; or the one that was named, proven or not.
func (j *Job) pick(ctx context.Context, r *restorer, v repoint.RebuildVerdict) error {
	list, err := r.repo.Backups(ctx)
	if err != nil {
		return err
	}
	proven := map[string]time.Time{}
	err = r.repo.Proofs(ctx, "", func(p repo.Proof) error {
		if delete(proven, p.Backup); p.Doubt == nil && p.Passed() {
			proven[p.Backup] = p.Time
		}
		return nil
	})
	if err != nil {
		return err
	}
	ids, err := j.identities(ctx, v)
	if err != nil {
		return err
	}
	unproven := 0
	h, ok := repo.Newest(list, time.Now(), func(h repo.Header) bool {
		_, is := proven[h.ID]
		fits := h.Kind == repo.Logical && len(h.Partial) == 0 && slices.Contains(ids, h.Server.Identity) && (h.Position.GTIDSet != "" || !v.Channel.GTID)
		if j.Repository.Backup != "" {
			return h.ID == j.Repository.Backup && fits
		}
		if fits && !is {
			unproven++
		}
		return fits && is
	})
	switch {
	case !ok && j.Repository.Backup != "":
		return fault.New(fault.Failed, "risso backup list shows them", fmt.Errorf("backup %s is not there, or is no whole logical backup of %s or its replicas", j.Repository.Backup, j.Question.Topology.Nodes[v.From].Name))
	case !ok && unproven > 0:
		return fault.New(fault.Failed, "risso drill --from "+fleet.ShellWord(j.Repository.Place)+" proves the newest; --backup ID takes one all the same",
			fmt.Errorf("in %s %s, and none was proven by restoring it", places.Words(j.Repository.Place), digits.Plural(unproven, "backup fits", "backups fit")))
	case !ok:
		return fault.New(fault.Failed, "--from with a server's name copies that", fmt.Errorf("%s has no whole logical backup of %s or its replicas", places.Words(j.Repository.Place), j.Question.Topology.Nodes[v.From].Name))
	}
	at, is := proven[h.ID]
	switch {
	case j.Because != "":
	case is:
		j.Because = "the newest that was proven by restoring it, at " + clock(at)
	default:
		j.Because = "it was asked for; no drill has proven it"
	}
	r.header = h
	return nil
}

// identities are those of the source and, by GTID, of what replicates from it: a backup of each of them will do.
func (j *Job) identities(ctx context.Context, v repoint.RebuildVerdict) (ids []string, err error) {
	t := j.Question.Topology
	nodes := []*topology.Node{&t.Nodes[v.From]}
	for _, l := range t.Replicas(v.From) {
		if n := &t.Nodes[l.Replica]; v.Channel.GTID && n.Seen && l.Replica != j.Question.Replica {
			nodes = append(nodes, n)
		}
	}
	for i, n := range nodes {
		conn, err := mysql.Connect(ctx, j.TargetOf(n), nil)
		if err != nil && i == 0 {
			return nil, err
		} else if err == nil {
			ids = append(ids, conn.Server.ID)
			conn.Close()
		}
	}
	return ids, nil
}

// beyondSource refuses a backup with transactions that the source has not: it is of another history, or of a replica with some of its own.
func beyondSource(ctx context.Context, source mysql.Target, copied repoint.Copy) error {
	conn, err := mysql.Connect(ctx, source, nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	have, err := mysql.LoggedGTIDs(ctx, conn)
	if err != nil {
		return err
	}
	theirs, err := mysql.ParseGTIDSet(copied.GTIDs)
	if err != nil {
		return err
	}
	if extra := theirs.Subtract(have); !extra.Empty() {
		return fmt.Errorf("%s has transactions that the source has not: %s", copied.Words, strings.TrimSpace(extra.String()))
	}
	return nil
}
