package failover

import (
	"context"
	"fmt"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/fleet"
)

// absent is what is waited for before a group is failed over.
type absent struct {
	since time.Time      // when somebody could first have been promoted
	kept  failover.Known // what was written down, also before this process ran
	read  bool
}

// knows is all that is known of the primary, and of what the others had.
func (w *watcher) knows() failover.Known {
	k := w.known
	if k.Executed == "" && w.absent.kept.Name == w.primary {
		k = w.absent.kept
	}
	k.Had = failover.Remember(failover.Remember(w.absent.kept.Had, k.Had), w.had)
	return k
}

// awaits reports whether the failover waits for members that do not answer, as they may have what nobody has who does: not for long, and not for what nobody lacks.
func (w *watcher) awaits(ctx context.Context, now time.Time) bool {
	here, away := map[string]string{}, []string(nil)
	for _, m := range w.g.Members {
		if m.Status != group.Secondary && m.Status != group.Spare {
			continue
		}
		if s, ok := w.last[m.Name]; ok && s.kind == "" {
			here[m.Name] = w.had[m.Name].Received
		} else {
			away = append(away, m.Name)
		}
	}
	if len(away) == 0 {
		return w.waiting("")
	}
	if !w.absent.read { // this process may have begun after they fell silent
		kept, err := w.carrier().Known(ctx, w.g)
		if err != nil {
			w.once("what was known of "+w.g.Name, fleet.SeverityWarning, fmt.Sprintf("what was last seen of %s cannot be read: %v", w.g.Name, err))
		}
		w.absent.read, w.absent.kept = err == nil, kept
	}
	names, words := w.knows().Absent(here, away)
	if len(names) == 0 {
		return w.waiting("")
	}
	if w.absent.since.IsZero() {
		w.absent.since = now
	}
	until := w.absent.since.Add(w.d.patience.Absent)
	if !now.Before(until) {
		w.once(fmt.Sprint("absent too long ", w.primary, w.belief.Since), fleet.SeverityCritical, fmt.Sprintf("%s: it is not waited any longer for those that did not come back: %s", w.g.Name, words))
		return w.waiting("")
	}
	words = fmt.Sprintf("%s; it is waited for them until %s", words, until.Format(time.TimeOnly))
	w.once(fmt.Sprint("absent ", w.primary, w.belief.Since), fleet.SeverityCritical, fmt.Sprintf("%s is not failed over yet: %s; risso failover --group %s does not wait", w.g.Name, words, w.g.Name))
	return w.waiting(words)
}

// waiting keeps why it is waited, for who asks what is wrong; "": it is not.
func (w *watcher) waiting(words string) bool {
	if w.state.awaits != words {
		w.state.awaits = words
		w.find()
	}
	return words != ""
}

const writingDown = "write down since when the primary does not answer of "

// silent writes down since when the primary does not answer, and what is known of it, once: a person may fail the group over.
func (w *watcher) silent(ctx context.Context) {
	if w.noted.Equal(w.belief.Since) {
		return
	}
	w.noted = w.belief.Since
	c, name, known, since := w.carrier(), w.g.Name, w.knows(), w.belief.Since
	w.start(ctx, func(ctx context.Context) result {
		return result{err: c.Silent(ctx, name, known, since), what: writingDown + name}
	})
}
