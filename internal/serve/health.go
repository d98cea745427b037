package serve

import (
	"log/slog"

	"github.com/rissodb/risso/internal/avail/health"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/serve/config"
)

// newHealth makes what answers load balancers about the servers that are watched; off: about none, as if there were none.
func newHealth(servers []config.Watched, off bool, traffic func(instance string) *mysql.Traffic, logger *slog.Logger) *health.Desk {
	targets := map[string]health.Asked{}
	if off {
		servers = nil
	}
	for _, s := range servers {
		targets[s.Instance.Name] = health.Asked{Target: s.Target, Traffic: traffic(s.Instance.ID)}
	}
	return health.NewDesk(targets, func(server string, err error) {
		if err != nil {
			logger.Warn("load balancers are told that a server is not available", "server", server, "err", err)
			return
		}
		logger.Info("a server answers again", "server", server)
	})
}
