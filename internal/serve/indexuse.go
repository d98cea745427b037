package serve

import (
	"context"
	"log/slog"
	"time"

	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/explain/advise/gather"
	"github.com/rissodb/risso/internal/mysql"
)

// indexUse is the folder, among the data, of how often indexes are used: risso advise reads it.
const indexUse = "index-use"

// useKeeper reads each hour how often the indexes of a server were used, so that it is known across restarts of the server.
type useKeeper struct {
	target  mysql.Target
	traffic *mysql.Traffic // shared with the other sessions to this server
	dir     string
	name    string
	logger  *slog.Logger
	phase   time.Duration // after which it begins
}

const (
	useEvery    = time.Hour
	usePatience = 2 * time.Minute
)

// Run reads until ctx ends.
func (k *useKeeper) Run(ctx context.Context) {
	for wait := 10*time.Second + k.phase; delay.For(ctx, wait) == nil; wait = useEvery {
		one, cancel := context.WithTimeout(ctx, usePatience)
		err := gather.KeepUse(one, k.target, k.traffic, k.dir)
		cancel()
		if err != nil && ctx.Err() == nil {
			k.logger.Warn("how often indexes are used could not be read", "server", k.name, "err", err)
		}
	}
}
