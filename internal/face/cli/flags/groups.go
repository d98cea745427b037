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
	"github.com/rissodb/risso/internal/home"
	"github.com/rissodb/risso/internal/serve"
	"github.com/rissodb/risso/internal/store/state"
)

// Groups is where groups of servers are kept: the data folder, which risso serve uses too.
type Groups struct {
	Data  string
	Group string
}

// Bind adds --data and, where a command is about one group, --group.
func (f *Groups) Bind(cmd *cobra.Command, named bool) {
	fl := cmd.Flags()
	fl.StringVar(&f.Data, "data", home.Data(), "data folder")
	if named {
		fl.StringVar(&f.Group, "group", "", "the group (default: the only one)")
	}
}

// With opens it for a command.
func (f *Groups) With(ctx context.Context, do func(*keep.Room) error) error {
	if err := os.MkdirAll(f.Data, 0o700); err != nil {
		return serve.FolderFailure(f.Data, fmt.Errorf("data folder: %w", err))
	}
	st, err := state.Open(ctx, filepath.Join(f.Data, "state.db"))
	if err != nil {
		return serve.FolderFailure(f.Data, err)
	}
	defer st.Close()
	return do(&keep.Room{Docs: st, Who: home.Person()})
}

// Secret reads a password from a file, without the end of its line.
func Secret(path string) (string, error) {
	if path == "" {
		return "", errors.New("name the file")
	}
	b, err := os.ReadFile(path)
	return strings.TrimRight(string(b), "\r\n"), err
}
