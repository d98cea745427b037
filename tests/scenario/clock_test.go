package scenario_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/lack"
)

// TestClockJump: a jump of a server's clock is reported; it is neither a restart nor a reset, and no second is lost.
func TestClockJump(t *testing.T) {
	t.Parallel()
	libs, err := filepath.Glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
	if err != nil || len(libs) == 0 {
		lack.Of(t, "libfaketime is not installed: run script/setup")
	}
	n := single(t, "mariadb")
	if err := n.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	shift := filepath.Join(tempDir(t), "shift")
	write(t, shift, "+0")
	cmd := exec.Command(n.Program.Binary, "--defaults-file="+filepath.Join(filepath.Dir(n.Datadir), "my.cnf"), "--datadir="+n.Datadir)
	cmd.Env = append(environment(tempDir(t)), "LD_PRELOAD="+libs[0], "FAKETIME_TIMESTAMP_FILE="+shift, "FAKETIME_NO_CACHE=1", "DONT_FAKE_MONOTONIC=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	await(t, "the server answers", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := n.Query(ctx, "SELECT 1")
		return err == nil
	})
	r := serve(t, dataDir(t), "--no-host", "--dsn", "db="+n.DSN)
	begin := r.awaitTicks(t, "db", 3)
	for i, c := range []struct{ to, want string }{{"+3600", "60 min ahead"}, {"+1800", "30 min back"}} {
		write(t, shift, c.to)
		await(t, "a clock event", func() bool { return len(r.events(t, "db", fleet.EventClock)) > i })
		list := r.events(t, "db", fleet.EventClock)
		if len(list) != i+1 {
			t.Fatalf("%d jumps are told, there were %d: %+v", len(list), i+1, list)
		}
		if !slices.ContainsFunc(list, func(e fleet.Event) bool { return strings.Contains(e.Text, c.want) }) {
			t.Errorf("got %+v, want an event that says %q", list, c.want)
		}
		await(t, "a finding about the clock", func() bool {
			return slices.ContainsFunc(r.instance(t, "db").Findings, func(f fleet.Finding) bool {
				return f.ID == "clock.skew" && strings.Contains(f.What, []string{"60", "30"}[i]+" min ahead of that of Risso's machine")
			})
		})
		r.awaitTicks(t, "db", 2)
	}
	end := r.awaitTicks(t, "db", 1)
	if m := missing(r.raw(t, of(questions, "db"), begin, end), begin, end); len(m) > 0 {
		t.Errorf("the seconds %v are missing, want none", m)
	}
	noEvent(t, r, "db", fleet.EventRestart, fleet.EventReset, fleet.EventDown, fleet.EventVersion)
	checkRates(t, r, "db", begin, end, 200)
	write(t, shift, "+0")
	await(t, "the clock is right again", func() bool {
		return !slices.ContainsFunc(r.instance(t, "db").Findings, func(f fleet.Finding) bool { return f.ID == "clock.skew" })
	})
}
