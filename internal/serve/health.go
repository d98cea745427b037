package serve

import (
	"log/slog"

	"github.com/rissodb/risso/internal/avail/health"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/serve/config"
)

// newHealth makes what answers load balancers about the servers that are watched; off: about none, as if there were none.
func newHealth(servers func() []config.Watched, off bool, traffic func(instance string) *mysql.Traffic, logger *slog.Logger) *health.Desk {
	find := func(name string) (health.Asked, bool) {
		for _, s := range servers() {
			if s.Instance.Name == name && !off {
				return health.Asked{Target: s.Target, Traffic: traffic(s.Instance.ID)}, true
			}
		}
		return health.Asked{}, false
	}
	return health.NewDesk(find, func(server string, err error) {
		if err != nil {
			logger.Warn("load balancers are told that a server is not available", "server", server, "err", err)
			return
		}
		logger.Info("a server answers again", "server", server)
	})
}
