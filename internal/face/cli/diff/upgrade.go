package diff

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/pflag"

	"github.com/rissodb/risso/internal/face/cli/screen"
)

type upgradeFlags struct{ to, slowLog string }

func (f *upgradeFlags) bind(fl *pflag.FlagSet) {
	fl.StringVar(&f.to, "upgrade-to", "", "say what an upgrade to this version would break: mysql-8.0, mysql-8.4, mysql-9.7, mariadb-10.11, mariadb-11")
	fl.StringVar(&f.slowLog, "slow-log", "", "with --upgrade-to: statements whose plans are compared, a slow or general log")
}

func (f *upgradeFlags) check(failOn string) error { return nil }

func (f diffFlags) runUpgrade(ctx context.Context, s screen.Streams, arg string, now time.Time) error {
	return errors.New("not yet")
}
