package repo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"
)

// A lease is an object that its holder puts again each minute. Its age, by the clock of the place, tells whether the holder
// lives. A backup that runs holds one, and so does a prune: they see each other, because each puts its own lease before it
// looks for the other's.
const (
	leaseBeat = time.Minute
	// LeaseLife is the age from which a lease is taken for that of a killed process.
	LeaseLife = 15 * time.Minute
)

// ErrLost says that a backup stood still for so long that prune took it for killed, and may have removed what it wrote.
var ErrLost = errors.New("the backup stood still for too long: prune took it for killed")

// leases are those that this process holds.
type leases struct {
	mu   sync.Mutex
	held map[string]*lease
}

// lease is renewed by a goroutine that ends with release, or with the context it was taken with.
type lease struct {
	end  context.CancelFunc
	done chan struct{}

	mu     sync.Mutex
	beaten time.Time
	say    func() []byte // what to put; nil: what was put at first
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
	return time.Since(l.beaten)
}

// hold takes a lease.
func (r *Repo) hold(ctx context.Context, key string, content []byte) (*lease, error) {
	began := time.Now()
	if err := r.store.Put(ctx, key, bytes.NewReader(content)); err != nil {
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
			began := time.Now()
			if r.store.Put(ctx, key, bytes.NewReader(l.content(content))) == nil { // else it ages, and that is what it is for
				l.mu.Lock()
				l.beaten = began
				l.mu.Unlock()
			}
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

// release gives a lease back, if this process holds it, and takes it away.
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

// aged is a store that tells when an object was put, by its own clock.
type aged interface {
	Modified(ctx context.Context, key string) (time.Time, error)
}

// modified is when an object was put. Where the place does not tell, it is now: then all leases live.
func (r *Repo) modified(ctx context.Context, key string) (time.Time, error) {
	if a, ok := r.store.(aged); ok {
		return a.Modified(ctx, key)
	}
	_, err := r.store.Size(ctx, key)
	return time.Now(), err
}

// Begin notes that a backup runs, so that what it writes is not taken for rubbish, and that a broken one can be told. It waits
// while a prune is at work. The note is renewed until Finish or Abandon, or until ctx ends.
func (r *Repo) Begin(ctx context.Context, h Header) error {
	b, err := json.Marshal(beginning{r.shown(h), ownProcess()})
	if err != nil {
		return err
	}
	key := unfinishedKey(h.ID)
	if _, err := r.hold(ctx, key, b); err != nil {
		return fmt.Errorf("note that a backup begins: %w", err)
	}
	for {
		busy, err := r.pruning(ctx, key)
		if err != nil || !busy {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Second):
		}
	}
}

// beginning is the note of a backup that is not whole.
type beginning struct {
	Header
	Process *Process `json:"process,omitempty"` // that takes it
}

// Tell lets the note of a backup that runs say how far it is, each time when it is renewed: soon after Begin, then each minute.
// now is called from a goroutine of the repository until Finish or Abandon.
func (r *Repo) Tell(id string, now func() Header) {
	r.leases.mu.Lock()
	l := r.leases.held[unfinishedKey(id)]
	r.leases.mu.Unlock()
	if l == nil {
		return
	}
	process := ownProcess()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.say = func() []byte {
		b, err := json.Marshal(beginning{r.shown(now()), process})
		if err != nil {
			return nil
		}
		return b
	}
}

// pruning says whether a prune is at work, by the age of its lease beside one that was put just now.
func (r *Repo) pruning(ctx context.Context, fresh string) (busy bool, err error) {
	now, err := r.modified(ctx, fresh)
	if err != nil {
		return false, err
	}
	var keys []string
	err = r.store.List(ctx, pruneLockPrefix, func(key string, _ int64) error {
		keys = append(keys, key)
		return nil
	})
	for _, key := range keys {
		put, err := r.modified(ctx, key)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return false, err
		}
		if now.Sub(put) < LeaseLife {
			return true, nil
		}
	}
	return false, err
}

// Abandon takes back what Begin noted. Chunks stay for the next backup, or for prune.
func (r *Repo) Abandon(ctx context.Context, id string) error {
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
