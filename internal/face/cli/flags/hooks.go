package flags

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/avail/publish"
	"github.com/rissodb/risso/internal/serve/config"
)

// Hooks are those of risso serve: a command that changes the primary of a group runs them, too.
type Hooks struct{ config string }

// Bind adds --config.
func (f *Hooks) Bind(fl *pflag.FlagSet) {
	fl.StringVar(&f.config, "config", "", "config file of risso serve, whose hooks run here, too")
}

// Read reads them; without --config there are none.
func (f *Hooks) Read(r *keep.Room) (*publish.Hooks, error) {
	file, err := config.Read(f.config)
	if err != nil {
		return nil, err
	}
	hooks, err := file.ReadHooks()
	if err != nil {
		return nil, err
	}
	return &publish.Hooks{List: hooks, Docs: r.Docs, Now: time.Now}, nil
}
