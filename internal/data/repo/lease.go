package repo

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rissodb/risso/internal/delay"
)

// A lease is an object that its holder puts again each minute, and that names the holder's process: on the machine of that process it is
// known at once that it has ended, elsewhere by the age of the lease, by the clock of the place. A backup that runs holds one, and so does
// a prune: they see each other, because each puts its own lease before it looks for the other's.
const (
	leaseBeat = time.Minute
	// LeaseLife is the age from which a lease is taken for that of a killed process.
	LeaseLife = 15 * time.Minute
)

// ErrLost says that a backup stalled for so long that prune took it for killed, and may have removed what it wrote.
var ErrLost = errors.New("the backup was stalled for too long: prune considered it killed")

// leases are those that this process holds.
type leases struct {
	mu   sync.Mutex
	held map[string]*lease
}

// lease is renewed by a goroutine that ends with release, or with the context it was taken with.
type lease struct {
	end  context.CancelFunc
	done chan struct{}

	putting sync.Mutex // held while it is put, so that an older one does not overwrite a newer one

	mu     sync.Mutex
	beaten time.Time
	say    func() []byte // what to put; nil: what was put first
}

// content is what to put next.
func (l *lease) content(first []byte) []byte {
	l.mu.Lock()
	say := l.say
	l.mu.Unlock()
	if say != nil {
		if b := say(); b != nil {
			return b
		}
	}
	return first
}

// age is how long ago the lease was renewed, by this host's clock.
func (l *lease) age() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	// By two clocks: one stops while the machine sleeps, the other may be set back.
	return max(time.Since(l.beaten), time.Now().Round(0).Sub(l.beaten.Round(0)))
}

// hold takes a lease.
func (r *Repo) hold(ctx context.Context, key string, content []byte) (*lease, error) {
	began := time.Now()
	if err := r.putWord(ctx, key, content); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	l := &lease{end: cancel, done: make(chan struct{}), beaten: began}
	go func() {
		defer close(l.done)
		t := time.NewTimer(leaseBeat / 6)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
			}
			t.Reset(leaseBeat)
			_ = r.renew(ctx, key, l, content) // else it ages, as it should
		}
	}()
	r.leases.mu.Lock()
	defer r.leases.mu.Unlock()
	if r.leases.held == nil {
		r.leases.held = map[string]*lease{}
	}
	r.leases.held[key] = l
	return l, nil
}

// putWord puts a small object of which prune only needs the key. If the place is full it is put without content: only a prune makes
// room there. The note of a backup must say what it is about.
func (r *Repo) putWord(ctx context.Context, key string, content []byte) error {
	err := r.store.Put(ctx, key, bytes.NewReader(content))
	if !full(err) || errors.Is(err, syscall.EROFS) || strings.HasPrefix(key, backupPrefix) && strings.HasSuffix(key, "/unfinished") {
		return err
	}
	if empty := r.store.Put(ctx, key, bytes.NewReader(nil)); empty != nil {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return nil
}

// ErrFull says that a place has no room for the few bytes with which a prune says that it is at work.
var ErrFull = errors.New("the place is full")

// renew puts a lease again.
func (r *Repo) renew(ctx context.Context, key string, l *lease, first []byte) error {
	l.putting.Lock()
	defer l.putting.Unlock()
	began := time.Now()
	if err := r.putWord(ctx, key, l.content(first)); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.beaten = began
	return nil
}

// release gives a lease back, if this process holds it, and removes it.
func (r *Repo) release(ctx context.Context, key string) error {
	r.leases.mu.Lock()
	l := r.leases.held[key]
	delete(r.leases.held, key)
	r.leases.mu.Unlock()
	if l != nil {
		l.end()
		<-l.done
	}
	return r.store.Delete(ctx, key)
}

// aged is a store that knows when an object was put, by its own clock.
type aged interface {
	Modified(ctx context.Context, key string) (time.Time, error)
}

// modified is when an object was put. If the place does not say, it is now: then all leases live.
func (r *Repo) modified(ctx context.Context, key string) (time.Time, error) {
	if a, ok := r.store.(aged); ok {
		return a.Modified(ctx, key)
	}
	_, err := r.store.Size(ctx, key)
	return time.Now(), err
}

// Holder is who holds a lease that somebody waits for.
type Holder struct {
	Process *Process  // nil: an older Risso's, which does not name itself
	Put     time.Time // when it was last renewed, by the clock of the place
}

// String names the holder.
func (h Holder) String() string {
	if h.Process == nil {
		return "a prune"
	}
	return fmt.Sprintf("a prune, process %d on %s", h.Process.PID, cmp.Or(h.Process.Host, "another machine"))
}

// pruneNote is what the lease of a prune holds.
type pruneNote struct {
	Process *Process `json:"process,omitempty"`
}

// Begin notes that a backup runs, so that what it writes is not taken for garbage, and that a broken one can be recognized. It waits
// while a prune is at work, and calls waiting (which may be nil) immediately with each that it waits for: meanwhile, hold nothing
// that others need. The note is renewed until Finish or Abandon, or until ctx ends. When Begin fails there is no note.
func (r *Repo) Begin(ctx context.Context, h Header, waiting func(Holder)) error {
	b, err := json.Marshal(beginning{r.shown(h), ownProcess()})
	if err != nil {
		return err
	}
	key := unfinishedKey(h.ID)
	if _, err := r.hold(ctx, key, b); err != nil {
		return fmt.Errorf("record the beginning of a backup: %w", err)
	}
	if err := r.awaitPrune(ctx, key, waiting); err != nil {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		return errors.Join(err, r.release(clean, key))
	}
	return nil
}

// Idle waits while a prune is running, as Begin does, but holds nothing: for callers that have to open something before Begin that others
// need.
func (r *Repo) Idle(ctx context.Context, waiting func(Holder)) error {
	return r.awaitPrune(ctx, "", waiting)
}

// awaitPrune waits until no prune is at work.
func (r *Repo) awaitPrune(ctx context.Context, fresh string, waiting func(Holder)) error {
	told := ""
	for {
		key, holder, err := r.pruning(ctx, fresh)
		if err != nil || key == "" {
			return err
		}
		if waiting != nil && key != told {
			waiting(holder)
		}
		told = key
		if err := delay.For(ctx, time.Second); err != nil {
			return err
		}
	}
}

// beginning is the note of a backup that is not whole.
type beginning struct {
	Header
	Process *Process `json:"process,omitempty"` // that takes it
}

// Tell sets how the note of a running backup says how far it is, each time it is renewed: soon after Begin, then each minute.
// now is called from a goroutine of the repository until Finish or Abandon.
func (r *Repo) Tell(id string, now func() Header) {
	process := ownProcess()
	r.tell(id, func() []byte {
		b, err := json.Marshal(beginning{r.shown(now()), process})
		if err != nil {
			return nil
		}
		return b
	})
}

// tell makes the note of a backup say what say returns from now on; nil: there is no such note.
func (r *Repo) tell(id string, say func() []byte) *lease {
	r.leases.mu.Lock()
	l := r.leases.held[unfinishedKey(id)]
	r.leases.mu.Unlock()
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.say = say
	return l
}

// Note stores what is known so far about a running backup. When it returns prune keeps the backup that this one builds on. What h points at
// may change afterwards.
func (r *Repo) Note(ctx context.Context, h Header) error {
	b, err := json.Marshal(beginning{r.shown(h), ownProcess()})
	if err != nil {
		return err
	}
	l := r.tell(h.ID, func() []byte { return b })
	if l == nil {
		return fmt.Errorf("backup %s was not started", h.ID)
	}
	if err := r.renew(ctx, unfinishedKey(h.ID), l, nil); err != nil {
		return fmt.Errorf("record the progress of the backup: %w", err)
	}
	return nil
}

// dead reports whether a lease is that of a process that has ended: for certain on this machine, else by its age at a time by the
// clock of the place. The other place where this is decided of a backup, Entry.Lives, decides it the same way.
func dead(p *Process, put, now time.Time) bool { return p.gone() || now.Sub(put) >= LeaseLife }

// pruning finds a prune that is at work ("": none is), by its process, or by the age of its lease compared with one that was put just now,
// or by this host's clock if there was none.
func (r *Repo) pruning(ctx context.Context, fresh string) (key string, h Holder, err error) {
	now := time.Now()
	if fresh != "" {
		if now, err = r.modified(ctx, fresh); err != nil {
			return "", h, err
		}
	}
	err = r.prunes(ctx, now, func(k string, holder Holder, dead bool) error {
		if !dead && k != fresh && key == "" {
			key, h = k, holder
		}
		return nil
	})
	return key, h, err
}

// prunes hands over the leases of prunes.
func (r *Repo) prunes(ctx context.Context, now time.Time, each func(key string, h Holder, dead bool) error) error {
	var keys []string
	err := r.store.List(ctx, pruneLockPrefix, func(key string, _ int64) error {
		keys = append(keys, key)
		return nil
	})
	for _, key := range keys {
		if err != nil {
			return err
		}
		var h Holder
		h, err = r.holder(ctx, key)
		if errors.Is(err, fs.ErrNotExist) { // ended just now
			err = nil
			continue
		}
		if err == nil {
			err = each(key, h, dead(h.Process, h.Put, now))
		}
	}
	return err
}

// holder reads the lease of a prune.
func (r *Repo) holder(ctx context.Context, key string) (h Holder, err error) {
	if h.Put, err = r.modified(ctx, key); err != nil {
		return h, err
	}
	rc, err := r.store.Get(ctx, key)
	if err != nil {
		return h, err
	}
	defer rc.Close()
	b, err := io.ReadAll(io.LimitReader(rc, 1<<16))
	if err != nil {
		return h, err
	}
	var note pruneNote
	if json.Unmarshal(b, &note) == nil { // else its age decides
		h.Process = note.Process
	}
	return h, nil
}

// Abandon takes back what Begin noted, and what a failed Finish put next to the manifest. Chunks stay for the next backup, or for prune.
func (r *Repo) Abandon(ctx context.Context, id string) error {
	if _, err := r.store.Size(ctx, manifestKey(id)); errors.Is(err, fs.ErrNotExist) {
		for _, key := range []string{headKey(id), objectsKey(id), signatureKey(id)} {
			if err := r.store.Delete(ctx, key); err != nil {
				return errors.Join(err, r.release(ctx, unfinishedKey(id)))
			}
		}
	}
	return r.release(ctx, unfinishedKey(id))
}

// lost says whether prune took a backup for killed.
func (r *Repo) lost(ctx context.Context, id string) error {
	_, err := r.store.Size(ctx, lostKey(id))
	switch {
	case err == nil:
		return ErrLost
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return err
}
