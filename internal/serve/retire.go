package serve

import (
	"context"
	"time"

	"github.com/rissodb/risso/internal/explain/retire"
	"github.com/rissodb/risso/internal/home"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/serve/retiring"
	"github.com/rissodb/risso/internal/store/events"
	"github.com/rissodb/risso/internal/store/state"
)

// retire carries on what risso index retire began, from when servers are on the board. The journal is that of the command.
func (w *watch) retire(ctx context.Context, statements events.Store, facts *state.Store) error {
	select {
	case <-w.begun:
	case <-ctx.Done():
		return nil
	}
	return retiring.New(retiring.Options{Folder: retire.Open(home.State("index")), Servers: w.servers, Traffic: w.trafficOf, Store: statements, Facts: facts, Board: w.board, Logger: w.logger, Now: time.Now}).Run(ctx)
}

// trafficOf is what all sessions to a server share.
func (w *watch) trafficOf(instance string) *mysql.Traffic {
	any, _ := w.traffic.LoadOrStore(instance, new(mysql.Traffic))
	return any.(*mysql.Traffic)
}
