package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/watch/alert"
)

// stalls measures how long it takes from the first second in which a busy server does nothing until a webhook is told, and until the
// incident is on disk.
func (b *bench) stalls(ctx context.Context, s *section) error {
	t := s.table("8 sessions update rows; then FLUSH TABLES WITH READ LOCK: seconds since then", "server", "webhook told", "of", "incident kept")
	for _, kind := range []string{"mariadb", "mysql-9.7"} {
		if err := b.stallOf(ctx, s, t, kind); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	return nil
}

func (b *bench) stallOf(ctx context.Context, s *section, t *table, kind string) (err error) {
	v, err := b.victims(ctx, kind)
	if err != nil {
		return err
	}
	defer v.down(ctx)
	hear := listen()
	defer hear.Close()
	file := filepath.Join(b.work, "stall-"+kind+".yaml")
	conf := fmt.Sprintf("alerts:\n  receivers:\n    - {name: oncall, webhook: {url: %q}}\nservers:\n  - {name: db, dsn: %q}\n", hear.URL, v.Primary().DSN)
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		return err
	}
	r, err := b.serve(ctx, filepath.Join(b.work, "stall-"+kind), "--no-host", "--config", file)
	if err != nil {
		return err
	}
	defer r.stop()
	lctx, end := context.WithCancel(ctx)
	var load sync.WaitGroup
	defer load.Wait()
	defer end()
	for i := range 8 {
		load.Go(func() {
			for lctx.Err() == nil {
				if statements(lctx, v.primary, fmt.Sprintf("UPDATE night.t SET b = b + 1 WHERE a = %d", i%3+1)) != nil {
					_ = pause(lctx, 10*time.Millisecond)
				}
				_ = pause(lctx, 5*time.Millisecond)
			}
		})
	}
	if err := pause(ctx, 80*time.Second); err != nil { // what is usual is known after a minute
		return err
	}
	lock, err := hold(ctx, v.primary, 0, "", "FLUSH TABLES WITH READ LOCK")
	if err != nil {
		return err
	}
	began := time.Now()
	told, what, kept, err := b.toldOf(ctx, hear, r.url, began)
	if err = errors.Join(err, lock.end(context.WithoutCancel(ctx), "UNLOCK TABLES")); err != nil {
		return err
	}
	t.row(kind, figure(told), what, figure(kept))
	s.Figures[kind+"_webhook"], s.Figures[kind+"_incident"] = told, kept
	s.below("s from the first stalled second of "+kind+" to a webhook", told, 5, "")
	s.below("s from there to the incident on disk", kept, 3, "")
	return nil
}

// toldOf waits for the first message and the first incident since a moment.
func (b *bench) toldOf(ctx context.Context, hear *listener, url string, began time.Time) (told float64, what string, kept float64, err error) {
	for told == 0 || kept == 0 {
		if time.Since(began) > time.Minute {
			return told, what, kept, fmt.Errorf("nobody was told within a minute: webhook after %v s, incident after %v s", told, kept)
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return 0, "", 0, err
		}
		if told == 0 {
			if key, at := hear.first(began); !at.IsZero() {
				told, what = at.Sub(began).Seconds(), key
			}
		}
		if kept == 0 {
			var a struct {
				Incidents []struct{ ID string }
			}
			if err := get(ctx, url+"/api/incidents", &a); err != nil {
				return 0, "", 0, err
			}
			if len(a.Incidents) > 0 {
				kept = time.Since(began).Seconds()
			}
		}
	}
	return told, what, kept, nil
}

// first is the alert that rang first since a moment, and when; zero: none did.
func (l *listener) first(since time.Time) (key string, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for k, list := range l.alerts {
		for _, r := range list {
			if r.at.After(since) && (at.IsZero() || r.at.Before(at)) {
				key, at = k+" ("+string(alert.Firing)+")", r.at
			}
		}
	}
	return key, at
}
