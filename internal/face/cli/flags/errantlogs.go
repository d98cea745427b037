package flags

import (
	"context"

	"github.com/rissodb/risso/internal/avail/errant"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/serve/lost"
)

// ErrantLogs are the binary logs of a server, as package errant wants them.
type ErrantLogs struct{ Server mysql.Target }

// Find is errant.Logs.
func (s ErrantLogs) Find(ctx context.Context, among mysql.GTIDSet, wanted func(mysql.GTID) bool, most int) (errant.Seen, error) {
	seen, err := lost.OfServer(s.Server.Address(), s.Server).Find(ctx, among, wanted, most)
	return seen, LogFailure(err)
}
