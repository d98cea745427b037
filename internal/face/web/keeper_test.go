package web

import (
	"context"

	"github.com/rissodb/risso/internal/data/jobs"
	"github.com/rissodb/risso/internal/data/verdict"
	"github.com/rissodb/risso/internal/serve/protect"
)

// keeper protects db1, as far as the web face can see.
type keeper struct {
	want    verdict.Want
	running []jobs.Progress
	started []string
	stopped []int64
	by      string // who started or stopped last
}

var _ Protect = (*keeper)(nil)

func (k *keeper) Want(instance string) *verdict.Want {
	if instance != "db1" {
		return nil
	}
	return &k.want
}

func (k *keeper) Plan(string) protect.Plan {
	return protect.Plan{Place: "/backup", Kind: "logical", Retention: "7 daily"}
}

func (k *keeper) Kept(context.Context, string) map[protect.BackupKey]protect.Kept {
	return map[protect.BackupKey]protect.Kept{{Place: "/backup", ID: "b2"}: {Keep: true, Reasons: []string{"the last of 21 November"}}, {Place: "/backup", ID: "b1"}: {}}
}

func (k *keeper) Running() []jobs.Progress { return k.running }

func (k *keeper) Start(job, by string) error {
	k.by = by
	switch job {
	case "db1/backup":
		k.started = append(k.started, job)
		return nil
	case "db1/drill":
		return jobs.ErrRunning
	}
	return jobs.ErrNoJob
}

func (k *keeper) Stop(run int64, by string) error {
	k.by = by
	if run != 7 {
		return jobs.ErrNoRun
	}
	k.stopped = append(k.stopped, run)
	return nil
}
