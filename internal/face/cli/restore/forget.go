package restore

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/rissodb/risso/internal/data/load"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
)

// forgetTakes are the flags that go with --forget.
var forgetTakes = map[string]bool{"forget": true, "into": true, "config": true, "defaults-file": true, "output": true, "dry-run": true}

// runForget takes the journal of a restore that was cut off away.
func runForget(ctx context.Context, s screen.Streams, f Flags, fl *pflag.FlagSet) error {
	var other string
	fl.Visit(func(g *pflag.Flag) {
		if !forgetTakes[g.Name] {
			other = g.Name
		}
	})
	switch {
	case other != "":
		return fault.Usagef("--forget and --%s: it restores nothing", other)
	case f.into == "":
		return fault.Usagef("--forget: say of which server: --into DSN")
	}
	into, err := (flags.Server{Dsn: f.into, ConfigFile: f.configFile, DefaultsFile: f.defaultsFile}).Target()
	if err != nil {
		return err
	}
	got, err := load.Forget(ctx, into, f.dryRun)
	if lent, ok := errors.AsType[*load.LentError](err); ok {
		return fault.New(fault.Failed, lent.Remedy()+"; then --forget again", fmt.Errorf("the journal stays: %w", err))
	}
	if err != nil {
		return Failure(ctx, err, false, nil)
	}
	if f.output == "json" {
		return render.JSON(s.Out, ForgottenAnswer{got, f.dryRun})
	}
	if !got.Found {
		fmt.Fprintf(s.Out, "No restore into %s was cut off.\n", into)
		return nil
	}
	fmt.Fprintf(s.Out, "A restore of backup %s, begun %s, was interrupted; %s complete.\n", got.Backup, got.Began, digits.Plural(got.Tables, "table is", "tables are"))
	for _, t := range got.Partly {
		fmt.Fprintln(s.Out, "Not finished:", t)
	}
	if got.Rolling {
		fmt.Fprintln(s.Out, "It was at the binary logs: the tables are as at some moment after the backup.")
	}
	for _, l := range got.Schemas {
		fmt.Fprintf(s.Out, "It had changed the default collation of schema %s for a while; given back by: %s\n", mysql.Quote(l.Schema), l.Statement())
	}
	if f.dryRun {
		screen.Steps(s.Out, got.Steps)
		fmt.Fprintln(s.Out, "Nothing was changed.")
	} else {
		fmt.Fprintln(s.Out, "Its journal has been removed. Tables stay as they are; what was to follow (foreign keys, views, triggers, users) may be missing.")
	}
	return nil
}
