package publish

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/store/state"
)

// hooked are hooks that keep what ran in a real store.
func hooked(t *testing.T, list ...Hook) *Hooks {
	t.Helper()
	facts, err := state.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { facts.Close() })
	return &Hooks{List: list, Docs: facts, Now: time.Now}
}

// TestHooks: what a hook is told, what of it is kept, and when it fails.
func TestHooks(t *testing.T) {
	t.Setenv("RISSO_TOKEN", "s3cret")
	sh := func(name, script string, at ...Moment) Hook {
		return Hook{Name: name, At: at, Command: []string{"/bin/sh", "-c", script, "sh", "$(touch /tmp/never)"}}
	}
	happening := Happening{Moment: AfterFailover, Group: "shop", Epoch: 7, Old: "db1", OldAddress: "10.0.0.1:3306", New: "db2", NewAddress: "10.0.0.2:3306", Because: "it's dead; $(reboot)\nnow", Lost: "0-1-5", LostKnown: true}
	pid := filepath.Join(t.TempDir(), "pid")
	slow := sh("slow", "sleep 1000 & echo $! >"+pid+"; wait", Fence)
	slow.Timeout, slow.Required = 300*time.Millisecond, true
	left := sh("left", "sleep 1000 & echo done", Fence)
	left.Timeout = time.Minute
	others := sh("others", "echo no", AfterFailover)
	others.Groups = []string{"shop-*", "warehouse"}
	h := hooked(t, sh("env", `env | grep -v ^PWD= | sort; echo "$1"`, AfterFailover), others, sh("exit", "echo so; exit 3", Failed), Hook{Name: "gone", At: []Moment{Failed}, Command: []string{"/no/such"}, Required: true},
		sh("long", "yes | head -c 100000; printf '\\377'", BeforeFailover), slow, left)
	got := h.Run(t.Context(), happening)
	if len(got.Runs) != 1 || got.Runs[0].Failed != "" || got.Runs[0].Exit != 0 {
		t.Fatalf("%+v", got)
	}
	for _, want := range []string{"RISSO_EVENT=after_failover\n", "RISSO_GROUP=shop\n", "RISSO_EPOCH=7\n", "RISSO_OLD_PRIMARY=db1\n", "RISSO_OLD_PRIMARY_ADDRESS=10.0.0.1:3306\n", "RISSO_NEW_PRIMARY=db2\n",
		"RISSO_NEW_PRIMARY_ADDRESS=10.0.0.2:3306\n", "RISSO_LOST=0-1-5\n", "RISSO_REASON=it's dead; $(reboot) now\n", "\n$(touch /tmp/never)\n"} {
		if !strings.Contains(got.Runs[0].Said, want) {
			t.Errorf("no %q in %s", want, got.Runs[0].Said)
		}
	}
	if strings.Contains(got.Runs[0].Said, "s3cret") {
		t.Errorf("a hook sees Risso's token: %s", got.Runs[0].Said)
	}
	for lost, known := range map[string]bool{"unknown": false, "none": true} {
		if env := (Happening{LostKnown: known}).environ(); !strings.Contains(strings.Join(env, " "), "RISSO_LOST="+lost) {
			t.Errorf("lost %s: %q", lost, env)
		}
	}
	happening.Moment = Failed
	got = h.Run(t.Context(), happening)
	if len(got.Runs) != 2 || got.Runs[0].Exit != 3 || got.Runs[0].Said != "so\n" || got.Proven() {
		t.Errorf("%+v", got)
	}
	if err := got.Stop(h); err == nil || !strings.Contains(err.Error(), "gone") || strings.Contains(err.Error(), "exit") { // only the one that is required
		t.Errorf("stops: %v", err)
	}
	happening.Moment = BeforeFailover
	if got = h.Run(t.Context(), happening); len(got.Runs[0].Said) != mostSaid || !got.Runs[0].Cut || !got.Proven() {
		t.Errorf("a hook that writes much: %d bytes, %+v", len(got.Runs[0].Said), got.Runs[0].Cut)
	}
	happening.Moment = Fence
	got = h.Run(t.Context(), happening)
	if !strings.Contains(got.Runs[0].Failed, "killed after") || got.Stop(h) == nil || got.Proven() {
		t.Errorf("a hook that hangs: %+v", got.Runs[0])
	}
	text, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	await.Until(t, func() bool {
		state, err := os.ReadFile("/proc/" + strings.TrimSpace(string(text)) + "/stat")
		return err != nil || strings.Contains(string(state), ") Z ")
	}, "what the hook started lives on")
	if got.Runs[1].Failed != "" || got.Runs[1].Said != "done\n" {
		t.Errorf("a hook that leaves something behind: %+v", got.Runs[1])
	}
	if r := (*Hooks)(nil).Run(t.Context(), happening); len(r.Runs) > 0 || r.Proven() || r.Stop(nil) != nil {
		t.Errorf("no hooks: %+v", r)
	}
}

// TestHooksOnce: a hook runs once for an epoch and a moment; where nobody knows how it ended, again only if it says so.
func TestHooksOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ran")
	hook := func(name string) Hook {
		return Hook{Name: name, At: []Moment{Fence, AfterFailover}, Command: []string{"/bin/sh", "-c", "echo " + name + " >>" + file + "; exit 1"}}
	}
	again := hook("again")
	again.Again = true
	h := hooked(t, hook("once"), again)
	ran := func(want string) {
		t.Helper()
		text, _ := os.ReadFile(file)
		if got := strings.Join(strings.Fields(string(text)), " "); got != want {
			t.Errorf("ran: %q, want %q", got, want)
		}
	}
	what := Happening{Moment: Fence, Group: "shop", Epoch: 1}
	first := h.Run(t.Context(), what)
	second := h.Run(t.Context(), what)
	ran("once again")
	if !second.Runs[0].Before || second.Runs[0].Failed != first.Runs[0].Failed || second.Runs[0].Exit != 1 {
		t.Errorf("the second time: %+v", second.Runs[0])
	}
	what.Moment = AfterFailover
	h.Run(t.Context(), what)
	what.Epoch = 2
	h.Run(t.Context(), what)
	ran("once again once again once again")

	// A process that was killed within a hook.
	what.Epoch = 3
	for _, k := range h.List {
		if _, err := h.write(t.Context(), state.Document{Kind: kindHook, Key: fmt.Sprintf("shop/%020d/%s/%s", 3, what.Moment, k.Name)}, HookRun{Hook: k.Name, Begun: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	r := h.Run(t.Context(), what)
	ran("once again once again once again again")
	if !strings.Contains(r.Runs[0].Failed, "not known") || r.Runs[1].Exit != 1 || r.Runs[1].Before {
		t.Errorf("after a kill: %+v", r)
	}
	// What cannot be written down does not run, and one that was ended is kept as such.
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	what.Epoch = 4
	if r := h.Run(ended, what); !strings.Contains(r.Runs[0].Failed, "did not run") {
		t.Errorf("without a journal: %+v", r)
	}
	ran("once again once again once again again")
}
