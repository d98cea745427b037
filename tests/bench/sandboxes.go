package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/rissodb/risso/internal/sandbox"
)

// sandboxes times risso sandbox up from the shell's point of view.
func (b *bench) sandboxes(ctx context.Context, s *section) error {
	runs := 5
	if b.quick {
		runs = 3
	}
	cache, err := sandbox.DefaultCacheDir()
	if err != nil {
		return err
	}
	t := s.table(fmt.Sprintf("risso sandbox up, a primary and two replicas, in seconds; %d runs after the first", runs), "server", "first time, empty cache", "median", "least", "most", "runs")
	for _, server := range []string{"mariadb", "mysql-9.7"} {
		// Templates are made from scratch in an empty cache; servers that script/setup put into the real one are found there.
		env := append(os.Environ(), "XDG_CACHE_HOME="+filepath.Join(b.work, "cache-"+server), "RISSO_SANDBOX_DIR="+filepath.Join(b.work, "sandboxes"),
			"RISSO_SERVERS="+filepath.Join(cache, "servers"))
		var times []float64
		for i := range runs + 1 {
			d, err := b.upAndDown(ctx, env, server, "bench-"+strconv.Itoa(i))
			if err != nil {
				return err
			}
			times = append(times, d.Seconds())
		}
		first, rest := times[0], times[1:]
		text := ""
		for _, v := range rest {
			text += figure(v) + " "
		}
		t.row(server, figure(first), figure(median(rest)), figure(quantile(rest, 0)), figure(quantile(rest, 1)), text)
		s.Figures[server+"_first"], s.Figures[server+"_median"] = first, median(rest)
		s.below("s until "+server+" replicates, median", median(rest), 4, "")
	}
	return nil
}

func (b *bench) upAndDown(ctx context.Context, env []string, server, name string) (d time.Duration, err error) {
	say("sandbox: %s", server)
	call := func(ctx context.Context, args ...string) error {
		cmd := exec.CommandContext(ctx, b.risso, args...)
		cmd.Env = env
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it takes down what it has started
		cmd.WaitDelay = 30 * time.Second
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("risso %v: %w: %.500s", args, err, out)
		}
		return nil
	}
	began := time.Now()
	if err := call(ctx, "sandbox", "up", name, "--servers", server, "--topology", "replication", "--replicas", "2", "--output", "json"); err != nil {
		return 0, err
	}
	d = time.Since(began)
	dctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return d, errors.Join(ctx.Err(), call(dctx, "sandbox", "down", name))
}
