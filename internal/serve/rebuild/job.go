// Package rebuild brings a replica the data of another server: over the network, by CLONE, or from a backup that was proven. Where they come from, and how, is decided
// here; package repoint does the rest. A member of a group that has transactions of its own is rebuilt by it, too, once those are kept.
package rebuild

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/avail/repoint"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/data/dump"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
)

// Line shows how far something is that takes long.
type Line interface {
	// Stage says how much of a stage is done, of how much; 0: that is not known. It may be called from several goroutines, and often.
	Stage(stage, unit string, done, total int64)
	Clear()
}

// Job is a replica that gets all of its data anew.
type Job struct {
	Repointer  *repoint.Repointer
	Question   repoint.RebuildQuestion
	From       string // the server whose data it gets, FromClone, FromClone=SERVER or FromBackup; "": a fit one is found. Choose says which it became
	Repository Repository
	Threads    int
	Find       func(name string) (int, error) // a node of the topology
	Say        func(string)                   // is told what a person should know
	Password   string                         // of the account by which it replicates, for CLONE, where the run that knew it was killed; "": it is asked for
	Because    string                         // why the data come from there
	Donor      *topology.Node                 // nil: they come from a backup
	Planned    dump.Plan                      // what the donor has

	clones bool
	copier *copier
}

// clock is a time for people.
func clock(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

// Choose finds where the data come from, and how they come. The caller calls done, if there is no error.
func (j *Job) Choose(ctx context.Context) (f repoint.Filler, done func(), err error) {
	t, nothing := j.Question.Topology, func() {}
	why := "it was asked for"
	if left := j.Question.Left; j.From == "" && left != nil && (t.Find(left.From) >= 0 || left.From == FromBackup || strings.HasPrefix(left.From, FromClone+"=")) {
		j.From, why = left.From, "the earlier run took it"
	}
	named, clones := strings.CutPrefix(j.From, FromClone)
	if clones = clones && (named == "" || strings.HasPrefix(named, "=")); clones {
		j.From = strings.TrimPrefix(named, "=")
	}
	j.clones = clones
	v := repoint.JudgeRebuild(j.Question)
	n := &t.Nodes[j.Question.Replica]
	c := &copier{name: n.Name, node: j.TargetOf(n), threads: j.Threads, logs: n.Log.On, say: j.Repointer.Say, line: silent{}}
	c.dir, j.copier = folder(j.Repointer.Dir, c.name), c
	switch {
	case v.From < 0:
		return nil, nil, repoint.Refused("rebuild "+c.name, v.Refused)
	case j.From == FromBackup:
		c.source = j.TargetOf(&t.Nodes[v.From])
		r, done, err := j.restorer(ctx, c, v)
		if err == nil && v.Channel.GTID {
			if err = beyondSource(ctx, c.source, *j.Question.Copy); err != nil {
				done()
			}
		}
		return r, done, err
	case j.Repository.Place != "" || j.Repository.Backup != "":
		return nil, nil, fault.Usagef("--repository and --backup are for --from backup")
	case j.From == "":
		j.Question.Donor, why = repoint.ChooseDonor(j.Question)
	default:
		if j.Question.Donor, err = j.Find(j.From); err != nil {
			return nil, nil, err
		}
	}
	j.Donor = &t.Nodes[j.Question.Donor]
	j.From, j.Because = j.Donor.Name, why
	c.from, c.donor, c.source = j.From, j.TargetOf(j.Donor), j.TargetOf(&t.Nodes[v.From])
	if clones {
		j.From = FromClone + "=" + j.From
		if refused := repoint.JudgeRebuild(j.Question).Refused; len(refused) > 0 {
			return nil, nil, repoint.Refused("rebuild "+c.name, refused)
		}
		k, err := j.cloner(ctx, c, v)
		return k, nothing, err
	}
	if left := j.Question.Left; left != nil && left.Copy != nil && left.From == j.From {
		j.takeUp(ctx, c, left)
	}
	return c, nothing, nil
}

// Clones reports whether the replica is filled by CLONE.
func (j *Job) Clones() bool { return j.clones }

// Folder is where a copy lies meanwhile.
func (j *Job) Folder() string { return j.copier.dir }

// DonorTarget is how the donor is asked.
func (j *Job) DonorTarget() mysql.Target { return j.copier.donor }

// Watch says who is shown how far it is, and what reading has to pass.
func (j *Job) Watch(line Line, gate dump.Gate) {
	j.copier.line, j.copier.gate = line, gate
}

// silent shows nothing.
type silent struct{}

func (silent) Stage(string, string, int64, int64) {}
func (silent) Clear()                             {}

// takeUp takes the copy of an earlier run, unless it is gone, or the source's logs do not lead on from it any more.
func (j *Job) takeUp(ctx context.Context, f *copier, left *repoint.Rebuilding) {
	anew := func(why string) {
		j.Repointer.Say("the copy of the earlier run is not used: " + why)
		left.Copy, j.Question.Copy = nil, nil
	}
	_, done, err := f.open(ctx)
	if err != nil {
		anew(err.Error())
		return
	}
	done()
	j.Question.Copy = left.Copy
	for _, r := range repoint.JudgeRebuild(j.Question).Refused {
		if r.Code == "purged" {
			anew(r.Why)
		}
	}
}

// TargetOf is how a node is asked, if it was seen.
func (j *Job) TargetOf(n *topology.Node) mysql.Target {
	if len(n.Addresses) == 0 {
		return mysql.Target{}
	}
	return j.Repointer.Target(n.Addresses[0])
}

// Room looks at what there is to copy, and refuses a folder that cannot hold it.
func (j *Job) Room(ctx context.Context) error {
	var err error
	if j.Planned, err = dump.MakePlan(ctx, dump.Options{Target: j.copier.donor, Name: j.copier.from, Threads: j.Threads}); err != nil {
		return fmt.Errorf("%s: %w", j.copier.from, err)
	}
	if j.clones {
		return nil
	}
	var st unix.Statfs_t
	at := j.Repointer.Dir
	for err = unix.Statfs(at, &st); errors.Is(err, os.ErrNotExist) && filepath.Dir(at) != at; err = unix.Statfs(at, &st) {
		at = filepath.Dir(at) // it is made when it is needed
	}
	if err != nil {
		return fmt.Errorf("look at %s: %w", at, err)
	}
	if free := int64(st.Bavail) * st.Bsize; free < j.Planned.Bytes {
		return fault.New(fault.Failed, "give another folder with --state", fmt.Errorf("%s has room for %s, and a copy of %s may need %s", j.Repointer.Dir, digits.Bytes(free), j.copier.from, digits.Bytes(j.Planned.Bytes)))
	}
	return nil
}
