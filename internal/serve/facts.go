package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"time"

	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/serve/config"
	"github.com/rissodb/risso/internal/store/agree"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/rules"
)

// facts is the store of facts, and how this process takes part in controllers that share it.
type facts struct {
	*state.Store
	lead agree.Leadership
	node *agree.Node // nil: it is the only controller
}

// openFacts opens the store of facts. The folder of a controller in the data folder makes it one of several.
func openFacts(ctx context.Context, set config.Settings, logger *slog.Logger) (f facts, err error) {
	path := filepath.Join(set.Data, "state.db")
	folder, shared, err := agree.OpenFolder(set.Data)
	if err != nil {
		return f, err
	}
	if !shared {
		if f.Store, err = state.OpenAnyway(ctx, path); err != nil {
			return f, err
		}
		tellDamage(f.Store, set.Data, logger)
		f.lead = agree.Alone{Reign: uint64(max(1, time.Now().UnixMilli()))} //nolint:gosec // it is positive
		if i, marked, err := f.Identity(ctx); err != nil || marked {
			return f, errors.Join(f.Store.Close(), err, missingFolder(i, set.Data))
		}
		return f, nil
	}
	if f.Store, err = agree.Prepare(ctx, path, folder); err != nil {
		return f, err
	}
	tellDamage(f.Store, set.Data, logger)
	f.node, err = agree.Open(ctx, agree.Options{Store: f.Store, Folder: folder, URL: pageOf(folder, set.Listen), Logger: logger})
	if err != nil {
		return f, errors.Join(err, f.Store.Close())
	}
	f.lead = f.node
	return f, nil
}

// tellDamage tells who starts it that it begins without what was in the state: no group is failed over then.
func tellDamage(s *state.Store, data string, logger *slog.Logger) {
	if d := s.Damage(); d != nil {
		logger.Error("the state file was damaged: this begins without what was in it, such as groups, tokens and jobs", "moved to", d.MovedTo, "reason", d.Reason,
			"remedy", "stop this, then risso state restore FILE --data "+fleet.ShellWord(data))
	}
}

// missingFolder says that a state file belongs to controllers, and what made it so is gone.
func missingFolder(i state.Identity, data string) error {
	return fmt.Errorf("the state is shared as that of controller %s, but %s is gone: bring it back, or make the state this Risso's own by risso controller leave", i.Node, filepath.Join(data, agree.FolderName))
}

// pageOf is where other controllers' users reach this one's page; empty: nowhere.
func pageOf(f agree.Folder, listen string) string {
	if f.URL != "" {
		return f.URL
	}
	host, _, err := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); err != nil || host == "" || host == "localhost" || ip != nil && (ip.IsLoopback() || ip.IsUnspecified()) {
		return ""
	}
	return "http://" + listen
}

// run takes part until ctx ends.
func (f facts) run(ctx context.Context) error {
	if f.node == nil {
		return nil
	}
	return f.node.Run(ctx)
}

// Close ends taking part and closes the store.
func (f facts) Close() error {
	if f.node == nil {
		return f.Store.Close()
	}
	return errors.Join(f.node.Close(), f.Store.Close())
}

// controllersLook is between two looks at the other controllers; the first waits until one that just began knows them.
const controllersLook = 5 * time.Second

// lookAtControllers finds out which of the controllers that share the state are lost.
func (w *watch) lookAtControllers(ctx context.Context, f facts) error {
	if f.node == nil {
		return nil
	}
	for delay.For(ctx, controllersLook) == nil {
		o := f.node.Overview(ctx)
		c := rules.Controllers{All: len(o.Members)}
		for _, m := range o.Members {
			if m.Epoch > 0 {
				c.Lead = m.Name
			}
			if why := cmp.Or(m.Error, m.Trouble); why != "" {
				c.Lost = append(c.Lost, m.Name+": "+why)
			}
		}
		w.controllers.Store(&c)
	}
	return nil
}

// inventoryWait is between two tries to note instances.
const inventoryWait = 2 * time.Second

// inventory notes which instances are watched. Controllers that share their state may be without a leader: then it is noted later, as nothing
// that is watched depends on it.
func (w *watch) inventory(ctx context.Context, facts *state.Store, i fleet.Instance) error {
	err := facts.SaveInstance(ctx, i, time.Time{})
	if errors.Is(err, state.ErrNoLeader) || errors.Is(err, state.ErrUnsure) {
		go func() {
			for err != nil && delay.For(ctx, inventoryWait) == nil {
				err = facts.SaveInstance(ctx, i, time.Time{})
			}
		}()
		return nil
	}
	return err
}
