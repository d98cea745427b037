package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/alert"
)

// truth is a trouble that there was.
type truth struct {
	trouble
	server       string
	began, ended time.Time
}

// rang is what a receiver was told of an alert.
type rang struct {
	at, over time.Time // when it was told of its begin and its end
	times    int       // of its begin
}

// listener is a receiver of webhooks that notes what it is told.
type listener struct {
	*httptest.Server
	mu       sync.Mutex
	alerts   map[string][]*rang // by key
	messages int
}

func listen() *listener {
	l := &listener{alerts: map[string][]*rang{}}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m alert.Message
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(body, &m)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		l.note(m, time.Now())
	}))
	return l
}

func (l *listener) note(m alert.Message, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.messages++
	for _, a := range m.Alerts {
		list := l.alerts[a.Key]
		open := len(list) > 0 && list[len(list)-1].over.IsZero()
		switch {
		case a.Phase == alert.Resolved && open:
			list[len(list)-1].over = now
		case a.Phase == alert.Firing && !open:
			l.alerts[a.Key] = append(list, &rang{at: now, times: 1})
		}
	}
}

// told is the first time since a moment that one of these alerts rang.
func (l *listener) told(server string, findings []string, from, to time.Time) *rang {
	l.mu.Lock()
	defer l.mu.Unlock()
	var first *rang
	for key, list := range l.alerts {
		instance, rest, _ := strings.Cut(key, "/")
		finding, _, _ := strings.Cut(rest, "/")
		if instance != server || !slices.Contains(findings, finding) {
			continue
		}
		for _, r := range list {
			if r.at.After(from) && r.at.Before(to) && (first == nil || r.at.Before(first.at)) {
				first = r
			}
		}
	}
	return first
}

// night makes trouble on a pair of each kind, kills Risso in between, and shows what was known of it in the morning.
func (b *bench) night(ctx context.Context, s *section) error {
	hear := listen()
	defer hear.Close()
	kinds := []string{"mariadb", "mysql-9.7"}
	var pairs []*victims
	conf := fmt.Sprintf("alerts:\n  receivers:\n    - {name: oncall, webhook: {url: %q}}\nservers:\n", hear.URL)
	for _, kind := range kinds {
		v, err := b.victims(ctx, kind)
		if err != nil {
			return err
		}
		defer v.down(ctx)
		pairs = append(pairs, v)
		for i, n := range v.Nodes {
			conf += fmt.Sprintf("  - {name: %s, dsn: %q}\n", v.name(i == 1), n.DSN)
		}
	}
	file, data := filepath.Join(b.work, "night.yaml"), filepath.Join(b.work, "night")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		return err
	}
	r, err := b.serve(ctx, data, "--config", file)
	if err != nil {
		return err
	}
	defer func() { r.stop() }()
	if err := pause(ctx, b.calm()); err != nil {
		return err
	}
	began := time.Now()
	truths, err := b.spend(ctx, pairs, func() error {
		say("night: kill -9 of risso")
		if err := r.cmd.Process.Signal(syscall.SIGKILL); err != nil {
			return err
		}
		<-r.done
		again, err := b.serve(ctx, data, "--config", file)
		if err == nil {
			r = again
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := pause(ctx, 75*time.Second); err != nil { // until what rang is over
		return err
	}
	var known struct{ Findings []state.FindingRecord }
	if err := get(ctx, fmt.Sprintf("%s/api/findings?from=%d", r.url, began.Unix()), &known); err != nil {
		return err
	}
	if b.keep != "" { // for a look at the page of the morning
		say("night: the page is at %s until Ctrl-C or 30 minutes", r.url)
		_ = pause(ctx, 30*time.Minute)
	}
	s.morning(truths, known.Findings, hear)
	return nil
}

// calm is how long nothing goes wrong, so that Risso learns what is usual.
func (b *bench) calm() time.Duration {
	if b.quick {
		return 15 * time.Second
	}
	return 75 * time.Second
}

// victims starts a pair with a load on it.
func (b *bench) victims(ctx context.Context, kind string) (*victims, error) {
	sb, err := sandbox.Up(ctx, sandbox.Options{Name: "night-" + kind, Dir: filepath.Join(b.work, "sb"), Servers: []string{kind}, Topology: sandbox.TopologyReplication, Replicas: 1,
		Settings: []string{"lock_wait_timeout=600", "innodb_lock_wait_timeout=600"}})
	if err != nil {
		return nil, err
	}
	v := &victims{Sandbox: sb, kind: kind}
	if v.primary, err = sb.Primary().DB(); err == nil {
		v.replica, err = sb.Nodes[1].DB()
	}
	if err == nil {
		err = statements(ctx, v.primary, "CREATE DATABASE night", "CREATE TABLE night.t (a INT PRIMARY KEY, b INT)", "INSERT INTO night.t VALUES (1, 1), (2, 2), (3, 3)")
	}
	if err != nil {
		v.down(ctx)
		return nil, err
	}
	return v, nil
}

func (v *victims) down(ctx context.Context) {
	for _, db := range []interface{ Close() error }{v.primary, v.replica} {
		if db != nil {
			_ = db.Close() // its server ends
		}
	}
	for _, n := range v.Nodes {
		_ = n.Kill(syscall.SIGCONT) // one that hangs cannot end
	}
	down(ctx, v.Sandbox)
}

// name is what Risso calls a server of the pair.
func (v *victims) name(replica bool) string {
	if replica {
		return v.kind + "-replica"
	}
	return v.kind + "-primary"
}

// spend makes all troubles on all pairs; kill ends Risso and starts it again, while the third of them lasts.
func (b *bench) spend(ctx context.Context, pairs []*victims, kill func() error) ([]truth, error) {
	var mu sync.Mutex
	var all []truth
	for i, t := range troubles() {
		if b.quick && t.lasts > time.Minute {
			continue
		}
		g, gctx := errgroup.WithContext(ctx)
		for _, v := range pairs {
			g.Go(func() error {
				had, err := v.suffer(gctx, t)
				mu.Lock()
				defer mu.Unlock()
				all = append(all, had)
				return err
			})
		}
		if i == 2 {
			g.Go(func() error { return errors.Join(pause(gctx, 15*time.Second), kill()) })
		}
		if err := g.Wait(); err != nil {
			return nil, err
		}
		if err := pause(ctx, 25*time.Second); err != nil { // until the rules let go
			return nil, err
		}
	}
	slices.SortStableFunc(all, func(a, b truth) int { return cmp.Or(strings.Compare(a.server, b.server), a.began.Compare(b.began)) })
	return all, nil
}

// suffer makes one trouble on a pair.
func (v *victims) suffer(ctx context.Context, t trouble) (truth, error) {
	had := truth{trouble: t, server: v.name(t.replica), began: time.Now()}
	say("night: %s: %s", had.server, t.name)
	end, err := t.make(ctx, v)
	if err != nil {
		return had, fmt.Errorf("%s: %s: %w", had.server, t.name, err)
	}
	waited := pause(ctx, t.lasts)
	ectx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if err := end(ectx); err != nil {
		return had, fmt.Errorf("end of %s: %s: %w", had.server, t.name, err)
	}
	had.ended = time.Now()
	return had, waited
}

// before and after a trouble a finding of it may begin and end.
const (
	early = 3 * time.Second
	late  = 20 * time.Second
)

// morning compares what there was with what is known.
func (s *section) morning(truths []truth, known []state.FindingRecord, hear *listener) {
	t := s.table("planned trouble, and what Risso knew of it in the morning", "server", "trouble", "began", "lasted", "kept as", "began", "ended", "rang after", "in words")
	kept, told, due := 0, 0, 0
	explained := map[int64]bool{}
	for _, h := range truths {
		row := []string{h.server, h.name, h.began.Format(time.TimeOnly), seconds(h.ended.Sub(h.began)), "NOT KEPT", "", "", "", ""}
		for _, f := range known {
			if f.Instance != fleet.Slug(h.server) || f.Began().Before(h.began.Add(-early)) || f.Began().After(h.ended.Add(late)) {
				continue
			}
			explained[f.ID] = true
			if slices.Contains(h.as, f.First.ID) && row[4] == "NOT KEPT" {
				kept++
				row[4], row[5], row[8] = f.First.ID, signed(f.Began().Sub(h.began)), oneline.Cut(f.Worst.What, 160)
				row[6] = "holds"
				if !f.Ended.IsZero() {
					row[6] = signed(f.Ended.Sub(h.ended))
				}
			}
		}
		ring := hear.told(fleet.Slug(h.server), h.as, h.began, h.ended.Add(late))
		switch {
		case ring != nil:
			row[7] = seconds(ring.at.Sub(h.began))
		case h.rings:
			row[7] = "NEVER"
		default:
			row[7] = "-"
		}
		if h.rings {
			due++
			if ring != nil {
				told++
			}
		}
		t.row(row...)
	}
	rest := s.table("kept beside them, and not explained by a planned trouble of the same server at the same time", "server", "kept as", "began", "in words")
	for _, f := range known {
		if !explained[f.ID] {
			rest.row(f.Instance, f.First.ID, f.Began().Format(time.TimeOnly), oneline.Cut(f.Worst.What, 160))
		}
	}
	s.note("%d messages were sent", hear.messages)
	s.atLeast("% of planned troubles that are kept", 100*float64(kept)/float64(max(len(truths), 1)), 100, " %")
	s.atLeast("% of those worth it that rang", 100*float64(told)/float64(max(due, 1)), 100, " %")
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
func signed(d time.Duration) string  { return fmt.Sprintf("%+.1f s", d.Seconds()) }
