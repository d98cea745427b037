package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/rissodb/risso/internal/sandbox"
)

// loaded is what a restore cost once.
type loaded struct {
	wall, client, server float64 // seconds; client and server of processor time
	memory               float64 // bytes
}

// restore compares putting the same tables back into a second server, round by round. Neither writes the target's binary log, which
// is myloader's default. Risso reads all rows back and compares them; myloader does not.
func (b *bench) restore(ctx context.Context, s *section) error {
	settings := []string{"innodb_buffer_pool_size=1G", "innodb_flush_log_at_trx_commit=0", "sync_binlog=0", "local_infile=1"}
	up := func(name string) (*sandbox.Sandbox, error) {
		return sandbox.Up(ctx, sandbox.Options{Dir: filepath.Join(b.work, name), Servers: []string{b.server}, Settings: settings})
	}
	from, err := up("from")
	if err != nil {
		return err
	}
	defer down(ctx, from)
	into, err := up("into")
	if err != nil {
		return err
	}
	defer down(ctx, into)
	say("restore: making %d MB of mixed tables", b.megabytes)
	if _, err := mixedTables(ctx, from.Primary(), b.megabytes); err != nil {
		return err
	}
	source, target := from.Primary().Socket, into.Primary().Socket
	place, folder := filepath.Join(b.work, "place"), filepath.Join(b.work, "mydumper")
	var raw float64
	if _, err := b.dumpOnce(ctx, dumper{"risso", func(string) *exec.Cmd {
		return exec.CommandContext(ctx, b.risso, "backup", "--dsn", "root@unix("+source+")/", "--to", place, "--schema", "mix", "--threads", "2", "--output", "json")
	}}, from.Primary().PID, &raw); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, "mydumper", "-u", "root", "-S", source, "-B", "mix", "-t", "2", "-r", "100000", "-o", folder).CombinedOutput(); err != nil {
		return fmt.Errorf("mydumper: %w: %.300s", err, out)
	}
	tools := []struct {
		name string
		args []string
	}{
		{"risso", []string{b.risso, "restore", "--from", place, "--into", "root@unix(" + target + ")/", "--threads", "2", "--no-binlog", "--output", "json"}},
		{"myloader", []string{"myloader", "-u", "root", "-S", target, "-d", folder, "-t", "2"}},
	}
	got := map[string][]loaded{}
	for round := range b.rounds {
		for i := range tools {
			t := tools[(i+round)%len(tools)]
			say("restore: round %d, %s", round+1, t.name)
			if _, err := into.Primary().Query(ctx, "DROP DATABASE IF EXISTS mix"); err != nil {
				return err
			}
			l, err := loadOnce(ctx, t.args, into.Primary().PID)
			if err != nil {
				return fmt.Errorf("%s: %w", t.name, err)
			}
			got[t.name] = append(got[t.name], l)
		}
	}
	pick := func(name string, f func(loaded) float64) float64 {
		var v []float64
		for _, l := range got[name] {
			v = append(v, f(l))
		}
		return median(v)
	}
	speed := func(l loaded) float64 { return raw / 1e6 / l.wall }
	perCPU := func(l loaded) float64 { return raw / 1e6 / (l.client + l.server) }
	t := s.table(fmt.Sprintf("%s MB of rows, %s, 2 sessions, medians of %d rounds in turns", figure(raw/1e6), b.server, b.rounds),
		"tool", "MB/s", "MB per processor second, server's included", "server, s", "client, s", "memory, MB")
	for _, tool := range tools {
		n := tool.name
		t.row(n, figure(pick(n, speed)), figure(pick(n, perCPU)), figure(pick(n, func(l loaded) float64 { return l.server })), figure(pick(n, func(l loaded) float64 { return l.client })),
			figure(pick(n, func(l loaded) float64 { return l.memory / 1e6 })))
		s.Figures[n+"_mb_per_s"], s.Figures[n+"_mb_per_cpu_s"] = pick(n, speed), pick(n, perCPU)
	}
	s.atLeast("restored, MB/s as a ratio to myloader's", pick("risso", speed)/pick("myloader", speed), 1.5, "")
	s.below("memory", pick("risso", func(l loaded) float64 { return l.memory / 1e6 }), 200, " MB")
	s.note("MB per processor second, as a ratio to myloader's: %.2f. Risso's time has the comparison of all rows with the backup in it. Neither writes the target's binary log, as myloader does by default.", pick("risso", perCPU)/pick("myloader", perCPU))
	return nil
}

// loadOnce runs a restore.
func loadOnce(ctx context.Context, args []string, pid int) (l loaded, err error) {
	before, err := cpuTime(pid)
	if err != nil {
		return l, err
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	var trouble strings.Builder
	cmd.Stderr = &trouble
	start := time.Now()
	if err := cmd.Run(); err != nil {
		return l, errors.Join(err, fmt.Errorf("%.300s", trouble.String()))
	}
	l.wall = time.Since(start).Seconds()
	after, err := cpuTime(pid)
	if err != nil {
		return l, err
	}
	l.server, l.client = (after - before).Seconds(), (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		l.memory = float64(u.Maxrss) * 1024
	}
	return l, nil
}
