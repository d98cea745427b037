package publish

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/pattern"
	"github.com/rissodb/risso/internal/store/state"
)

// Moment is when a hook runs.
type Moment string

// The moments. A hook at Before or Fence that fails stops what is under way, unless it is said to be of no account; the others tell what happened.
const (
	BeforeFailover   Moment = "before_failover"   // nothing was changed, and nobody chosen
	Fence            Moment = "fence"             // the old primary has to be kept from writes, as by switching its power off
	AfterPromotion   Moment = "after_promotion"   // the new primary takes writes
	AfterFailover    Moment = "after_failover"    // replicas follow it, clients are told
	BeforeSwitchover Moment = "before_switchover" // as before a failover
	AfterSwitchover  Moment = "after_switchover"
	Failed           Moment = "failed" // a failover or switchover that ended without a new primary
)

// Moments lists them.
func Moments() []Moment {
	return []Moment{BeforeFailover, Fence, AfterPromotion, AfterFailover, BeforeSwitchover, AfterSwitchover, Failed}
}

// Hook is a command that runs at some moments.
type Hook struct {
	Name     string
	At       []Moment
	Groups   []string // patterns with *; none: all groups
	Command  []string // the program and its arguments, as they are: no shell, nothing replaced
	Timeout  time.Duration
	Required bool // where it fails, what is under way stops
	Again    bool // it runs again where nobody knows how its last run for this epoch ended
}

// DefaultHookTimeout is how long a hook may take.
const DefaultHookTimeout = 10 * time.Second

// mostSaid is how much of what a hook writes is kept.
const mostSaid = 16 << 10

// Happening is what hooks are told.
type Happening struct {
	Moment     Moment
	Group      string
	Epoch      uint64 // of the primary that is made
	Old        string // the primary before; empty: there was none
	OldAddress string
	New        string // the next one; empty where there is none
	NewAddress string
	Because    string // why, in words
	Lost       string // transactions that are known to be lost, as GTIDs; empty: none, or not known
	LostKnown  bool   // whether any were lost is known
	Once       string // where it is not the epoch that a hook runs once for
}

// environ is the environment of a hook: what docs/clients.md promises.
func (h Happening) environ() []string {
	lost := "unknown"
	if h.LostKnown {
		lost = cmp.Or(h.Lost, "none")
	}
	list := []string{"RISSO_EVENT=" + string(h.Moment), "RISSO_GROUP=" + h.Group, "RISSO_EPOCH=" + strconv.FormatUint(h.Epoch, 10),
		"RISSO_OLD_PRIMARY=" + h.Old, "RISSO_OLD_PRIMARY_ADDRESS=" + h.OldAddress, "RISSO_NEW_PRIMARY=" + h.New, "RISSO_NEW_PRIMARY_ADDRESS=" + h.NewAddress,
		"RISSO_REASON=" + oneline.Of(h.Because), "RISSO_LOST=" + lost}
	for _, name := range []string{"PATH", "HOME", "LANG", "TZ"} {
		if v, ok := os.LookupEnv(name); ok {
			list = append(list, name+"="+v)
		}
	}
	return list
}

// HookRun is how a hook ran, as it is kept.
type HookRun struct {
	Hook   string    `json:"hook"`
	Moment Moment    `json:"event"`
	Group  string    `json:"group"`
	Epoch  uint64    `json:"epoch"`
	Begun  time.Time `json:"begun"`
	Ended  time.Time `json:"ended,omitzero"`   // zero: it runs, or nobody knows how it ended
	Exit   int       `json:"exit"`             // its exit code; -1: it had none
	Said   string    `json:"said,omitempty"`   // what it wrote, cut
	Cut    bool      `json:"cut,omitempty"`    // it wrote more
	Failed string    `json:"failed,omitempty"` // why it counts as failed
	Before bool      `json:"before,omitempty"` // it ran in an earlier try, and not again
}

// HookResult is how the hooks of one moment ran.
type HookResult struct {
	Runs []HookRun `json:"runs"` // in the order of the configuration
}

// Stop is why what is under way may not go on: a hook that is required failed; nil if it may.
func (r HookResult) Stop(hooks *Hooks) error {
	var list []error
	for _, run := range r.Runs {
		if run.Failed != "" && hooks.required(run.Hook) {
			list = append(list, fmt.Errorf("hook %s: %s", run.Hook, run.Failed))
		}
	}
	return errors.Join(list...)
}

// Proven reports whether at least one hook ran and all of them succeeded: of Fence, that the old primary takes no writes, as far as hooks can tell.
func (r HookResult) Proven() bool {
	return len(r.Runs) > 0 && !slices.ContainsFunc(r.Runs, func(h HookRun) bool { return h.Failed != "" })
}

// Documents is where it is kept which hooks ran.
type Documents interface {
	Document(ctx context.Context, kind, key string) (state.Document, error)
	PutDocument(ctx context.Context, d state.Document) (state.Document, error)
}

// Hooks run commands when something happens to a group.
type Hooks struct {
	List []Hook
	Docs Documents
	Now  func() time.Time
}

// kindHook is the kind of document that says that a hook ran.
const kindHook = "hook"

func (h *Hooks) required(name string) bool {
	return slices.ContainsFunc(h.List, func(k Hook) bool { return k.Name == name && k.Required })
}

// Run runs the hooks of a moment, one after the other, and returns when all have ended. A hook runs once for a group, epoch and moment, whichever process asks and
// however often: where it ran before, that result is given. Nil hooks run none.
func (h *Hooks) Run(ctx context.Context, what Happening) HookResult {
	var out HookResult
	if h == nil {
		return out
	}
	for _, k := range h.List {
		if slices.Contains(k.At, what.Moment) && (len(k.Groups) == 0 || slices.ContainsFunc(k.Groups, func(p string) bool { return pattern.Stars(p, what.Group) })) {
			out.Runs = append(out.Runs, h.once(ctx, k, what))
		}
	}
	return out
}

// once runs a hook unless it ran before.
func (h *Hooks) once(ctx context.Context, k Hook, what Happening) HookRun {
	run := HookRun{Hook: k.Name, Moment: what.Moment, Group: what.Group, Epoch: what.Epoch, Begun: h.Now().UTC(), Exit: -1}
	doc := state.Document{Kind: kindHook, Key: fmt.Sprintf("%s/%s/%s/%s", what.Group, cmp.Or(what.Once, fmt.Sprintf("%020d", what.Epoch)), what.Moment, k.Name)}
	doc, err := h.write(ctx, doc, run)
	if errors.Is(err, state.ErrConflict) {
		var before HookRun
		if doc, err = h.Docs.Document(ctx, kindHook, doc.Key); err == nil {
			err = json.Unmarshal(doc.Body, &before)
		}
		if before.Before = true; err == nil && !before.Ended.IsZero() {
			return before
		}
		if err == nil && !k.Again {
			before.Failed = "it began in an earlier try, and how it ended is not known"
			return before
		}
		if err == nil {
			doc, err = h.write(ctx, doc, run)
		}
	}
	if err != nil { // run without that, and it may run twice
		run.Failed = "it did not run: that it runs cannot be written down: " + oneline.Of(err.Error())
		return run
	}
	k.run(ctx, what, &run)
	run.Ended = h.Now().UTC()
	// What happened is to be written down although ctx has ended.
	keep, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if _, err := h.write(keep, doc, run); err != nil && run.Failed == "" {
		run.Failed = "how it ended cannot be written down: " + oneline.Of(err.Error())
	}
	return run
}

func (h *Hooks) write(ctx context.Context, doc state.Document, run HookRun) (state.Document, error) {
	body, err := json.Marshal(run)
	if err != nil {
		return doc, err
	}
	key := doc
	doc.Body = body
	if doc, err = h.Docs.PutDocument(ctx, doc); err != nil {
		return key, err
	}
	return doc, nil
}

// run runs the command, in a process group of its own that is killed as a whole.
func (k Hook) run(ctx context.Context, what Happening, run *HookRun) {
	timeout := k.Timeout
	if timeout <= 0 {
		timeout = DefaultHookTimeout
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var said bounded
	cmd := exec.CommandContext(limited, k.Command[0], k.Command[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.Env, cmd.Dir = &said, &said, what.environ(), "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // what it started may hold its output open
	err := cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it left behind; mostly nothing
	}
	run.Said, run.Cut = said.text()
	if cmd.ProcessState != nil {
		run.Exit = cmd.ProcessState.ExitCode()
	}
	switch {
	case ctx.Err() != nil:
		run.Failed = "it was ended before it was done: " + oneline.Of(context.Cause(ctx).Error())
	case limited.Err() != nil:
		run.Failed = "it was killed after " + digits.Duration(timeout)
	case errors.Is(err, exec.ErrWaitDelay): // it ended with 0
	case err != nil:
		run.Failed = oneline.Of(err.Error())
	}
}

// bounded keeps the beginning of what is written to it.
type bounded struct {
	mu  sync.Mutex
	b   bytes.Buffer
	cut bool
}

// Write never fails.
func (w *bounded) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if room := mostSaid - w.b.Len(); len(p) > room {
		w.b.Write(p[:room])
		w.cut = true
	} else {
		w.b.Write(p)
	}
	return len(p), nil
}

func (w *bounded) text() (string, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.ToValidUTF8(w.b.String(), "�"), w.cut
}
