package flags

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/home"
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/serve"
	"github.com/rissodb/risso/internal/store/state"
)

// Groups is where groups of servers are kept: the data folder, which risso serve uses too.
type Groups struct {
	Data  string
	Group string
	Makes bool // the command makes the data folder

	facts *state.Store  // while With runs
	call  func() string // the command, by which actions are known
}

// Bind adds --data and, where a command is about one group, --group.
func (f *Groups) Bind(cmd *cobra.Command, named bool) {
	f.call = cmd.CommandPath
	fl := cmd.Flags()
	fl.StringVar(&f.Data, "data", home.Data(), "data folder")
	if named {
		fl.StringVar(&f.Group, "group", "", "the group (default: the only one)")
	}
}

// With opens it for a command.
func (f *Groups) With(ctx context.Context, do func(*keep.Room) error) error {
	if !f.Makes && !home.Exists(f.Data) {
		return fault.New(fault.Failed, "name the folder of risso serve by --data; risso group create and risso serve make one", fmt.Errorf("there is no data folder %s", oneline.Of(f.Data)))
	}
	if err := os.MkdirAll(f.Data, 0o700); err != nil {
		return serve.FolderFailure(f.Data, fmt.Errorf("data folder: %w", err))
	}
	st, err := state.Open(ctx, filepath.Join(f.Data, "state.db"))
	if err != nil {
		return serve.FolderFailure(f.Data, err)
	}
	defer st.Close()
	f.facts = st
	return do(&keep.Room{Docs: st, Who: home.Person()})
}

// Shared reports whether several controllers share what is kept. It is for use within With.
func (f *Groups) Shared(ctx context.Context) (bool, error) {
	_, shared, err := f.facts.Identity(ctx)
	return shared, err
}

// Did writes down that a command changed a group, or tried to, and who gave it; what names the change, as in "the removal of group shop". It is for use within With, and returns err, or else why it could not be
// written down.
func (f *Groups) Did(ctx context.Context, group, what string, err error) error {
	return Noted(ctx, f.facts, f.call(), "group "+group, what, err)
}

// DidTo is Did for something else than a group, as in "map orders".
func (f *Groups) DidTo(ctx context.Context, subject, what string, err error) error {
	return Noted(ctx, f.facts, f.call(), subject, what, err)
}

// Noted writes down what a command did, or failed to do. It returns err, or else why it could not be written down.
func Noted(ctx context.Context, facts *state.Store, call, subject, what string, err error) error {
	outcome, text := state.ActionDone, what+" was done"
	if err != nil {
		outcome, text = state.ActionFailed, what+" failed: "+oneline.Of(err.Error())+"; asked for"
	}
	// A command that was interrupted says so, too.
	_, noted := facts.AddAction(context.WithoutCancel(ctx), state.ActionBy(Person(call), outcome, fleet.Event{Subject: subject, Text: text}))
	if err == nil && noted != nil {
		err = fmt.Errorf("it was done, and could not be written down: %w", noted)
	}
	return err
}

// Secret reads a password from a file, without the end of its line.
func Secret(path string) (string, error) {
	if path == "" {
		return "", errors.New("name the file")
	}
	b, err := os.ReadFile(path)
	return strings.TrimRight(string(b), "\r\n"), err
}
