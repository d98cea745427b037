package serve

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/host"
	"github.com/rissodb/risso/internal/serve/config"
	"github.com/rissodb/risso/internal/watch/collect"
	"github.com/rissodb/risso/internal/watch/live"
)

// discard is a sink and recorder that keeps nothing.
type discard struct{}

func (discard) Append(int64, []fleet.Metric, []float64, bool) error { return nil }
func (discard) Event(fleet.Event)                                   {}
func (discard) Variables(string, time.Time, map[string]string)      {}

// Glance begins to watch servers, and this host if it is wanted, on a board that shows the present; nothing is kept. The collectors end with ctx.
func Glance(ctx context.Context, group *collect.Group, servers []config.Watched, withHost bool) (*live.Board, error) {
	board := live.New(func() live.Self { return live.Self{} })
	o := collect.Options{Sink: discard{}, Recorder: discard{}, Observer: board, Logger: slog.New(slog.DiscardHandler)}
	hostID := ""
	if withHost {
		var err error
		if hostID, err = glanceAtHost(ctx, group, board, o); err != nil {
			return nil, err
		}
	}
	look(ctx, group, board, servers, o, hostID, 0)
	return board, nil
}

// glanceAtHost begins to watch this host, and returns its ID.
func glanceAtHost(ctx context.Context, group *collect.Group, board *live.Board, o collect.Options) (string, error) {
	h, err := host.New(host.Options{})
	if err != nil {
		return "", fmt.Errorf("watch this host: %w", err)
	}
	id := h.Identity()
	instance := fleet.Instance{ID: id.ID(), Name: id.Hostname, Kind: fleet.KindHost, Version: id.OS}
	board.Add(instance)
	group.Go(ctx, ending{collect.NewHost(h, instance, o), h})
	return instance.ID, nil
}

// BriefHold is how long a rule must hold to be found by GlanceBriefly: at two looks, a second apart.
const BriefHold = 900 * time.Millisecond

// GlanceBriefly is Glance for those who wait a second and a half: servers are looked at right away, and what holds at two looks is told. This host is looked
// at too if one of them runs on it.
func GlanceBriefly(ctx context.Context, group *collect.Group, servers []config.Watched) (*live.Board, error) {
	board := live.New(func() live.Self { return live.Self{} })
	board.Hold(BriefHold)
	const soon = 20 * time.Millisecond // until the collector waits for its first look
	now := time.Now().Add(soon)
	o := collect.Options{Sink: discard{}, Recorder: discard{}, Observer: board, Logger: slog.New(slog.DiscardHandler)}
	o.Phase = now.Sub(now.Truncate(time.Second))
	hostID := ""
	if slices.ContainsFunc(servers, func(w config.Watched) bool { return w.Target.Local() }) {
		var err error
		if hostID, err = glanceAtHost(ctx, group, board, o); err != nil {
			return nil, err
		}
	}
	look(ctx, group, board, servers, o, hostID, o.Phase)
	return board, nil
}

// look begins to watch servers, from a part of the second on.
func look(ctx context.Context, group *collect.Group, board *live.Board, servers []config.Watched, o collect.Options, hostID string, from time.Duration) {
	for i, srv := range servers {
		o.Phase = (from + PhaseOf(i)) % time.Second
		if srv.Target.Local() {
			srv.Instance.HostID = hostID
		}
		board.Add(srv.Instance)
		group.Go(ctx, collect.NewServer(srv.Target, srv.Instance, o))
	}
}

// ending closes the host when its collector has ended.
type ending struct {
	run interface{ Run(context.Context) }
	c   io.Closer
}

// Run runs the collector.
func (e ending) Run(ctx context.Context) {
	defer e.c.Close()
	e.run.Run(ctx)
}
