// Package incidents keeps the moments of watched servers in rings on disk, and copies out of them what is to be kept for good: the time
// around a stall, or around what a critical finding tells of.
package incidents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/ring"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/collect"
	"github.com/rissodb/risso/internal/watch/incident"
	"github.com/rissodb/risso/internal/watch/rules"
	"github.com/rissodb/risso/internal/watch/stall"
)

// What is kept.
const (
	keepMoments = 48 * time.Hour
	mostMoments = 200 << 20 // bytes of one server's moments
	queued      = 4096      // moments that may wait while the disk is slow

	thriftPace = 50e6 / 86400 // bytes a second from which on fewer literals are kept: else 48 hours would have no room
	thriftTime = 3600         // seconds until as many as before are tried again
)

// Options are what a Desk needs.
type Options struct {
	Dir    string // the data folder
	Facts  *state.Store
	Redact bool // leave out literals before anything is kept
	Event  func(fleet.Event)
	Host   func(instance string) map[string]float64 // numbers of a host
	Logger *slog.Logger
}

// Desk keeps moments and incidents. Observe is called by the collectors; the rest by anybody.
type Desk struct {
	opts  Options
	queue chan noted
	lost  atomic.Int64 // moments for which the queue had no room, and that were not told yet
	bad   atomic.Bool  // moments cannot be written, which was told

	mu      sync.RWMutex
	streams map[string]*stream
}

// stream is the moments of one server. What is below the line belongs to the goroutine of its collector, or to that of Run.
type stream struct {
	instance fleet.Instance
	wish     *collect.Wish
	ring     *ring.Ring
	thrift   atomic.Int64 // second until which fewer literals are kept

	asking map[string]bool // the collector's: critical findings that hold, by state.FindingKey

	writer  incident.Writer // Run's
	capture *capture
}

// noted is a moment on its way to the disk, and what is to be done about it.
type noted struct {
	s        *stream
	m        *incident.Moment
	stall    stall.Stall
	asks     *fleet.Finding // a critical finding that is new
	quiet    bool           // nothing critical holds
	severity fleet.Severity // of the stall
	engine   string
	left     time.Time // not zero: there are no more moments, as the server is not watched any more
}

// New makes a desk, and takes up the incidents that were open when Risso ended.
func New(ctx context.Context, o Options) (*Desk, error) {
	d := &Desk{opts: o, queue: make(chan noted, queued), streams: map[string]*stream{}}
	if err := os.MkdirAll(d.folder(), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of incidents: %w", err)
	}
	return d, d.takeUp(ctx)
}

func (d *Desk) folder() string { return filepath.Join(d.opts.Dir, "incidents") }

// openRing opens the moments of an instance.
func (d *Desk) openRing(instance string) (*ring.Ring, error) {
	return ring.Open(ring.Options{Dir: filepath.Join(d.opts.Dir, "moments", instance), Keep: keepMoments, Most: mostMoments, Damage: func(what string) {
		d.opts.Event(fleet.Event{Time: time.Now(), Instance: instance, Kind: fleet.EventStore, Severity: fleet.SeverityWarning, Subject: "moments", Text: "moments: " + what})
	}})
}

// Add begins to keep the moments of a server; wish is where its collector is told what to read.
func (d *Desk) Add(i fleet.Instance, wish *collect.Wish) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.streams[i.ID]; s != nil {
		s.wish, s.instance = wish, i
		return nil
	}
	r, err := d.openRing(i.ID)
	if err != nil {
		return err
	}
	d.streams[i.ID] = &stream{instance: i, wish: wish, ring: r, asking: map[string]bool{}}
	return nil
}

func (d *Desk) stream(id string) *stream {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.streams[id]
}

// Leave ends what is captured of a server that is not watched any more. Its collector has ended before.
func (d *Desk) Leave(id string) {
	s := d.stream(id)
	if s == nil {
		return
	}
	s.asking = map[string]bool{}
	select {
	case d.queue <- noted{s: s, left: time.Now()}:
	default: // the next start ends it
	}
}

// Observe takes what a collector read in a second and what the rules say of it; it does not block. It returns the moment; nil: the instance is no
// server.
func (d *Desk) Observe(v collect.View, verdict rules.Verdict) *incident.Moment {
	s := d.stream(v.Instance.ID)
	if s == nil || v.Unseen {
		return nil
	}
	m := incident.Of(v, d.opts.Host(v.Instance.HostID), incident.Keeping{Redact: d.opts.Redact, Thrift: v.Tick < s.thrift.Load()})
	n := noted{s: s, m: m, engine: v.Engine, stall: verdict.Stall, quiet: true}
	holds := map[string]bool{}
	n.severity = fleet.SeverityWarning
	for _, f := range verdict.Findings {
		if f.ID == "server.stall" {
			n.severity = f.Severity
		}
		if f.Severity < fleet.SeverityCritical || !aboutNow(f.ID) {
			continue
		}
		key := state.FindingKey(f)
		holds[key] = true
		if !f.Last.IsZero() { // it is listed only because it may come back at once
			continue
		}
		if n.quiet = false; !s.asking[key] && n.asks == nil {
			n.asks = &f
		}
	}
	s.asking = holds
	if n.stall.Began || n.asks != nil {
		s.wish.Engine.Store(true)
	}
	select {
	case d.queue <- n:
	default:
		d.lost.Add(1)
	}
	return m
}

// Run writes what was noted until ctx ends and nothing waits.
func (d *Desk) Run(ctx context.Context) error {
	for {
		select {
		case n := <-d.queue:
			d.take(ctx, n)
		case <-ctx.Done():
			return d.end(context.WithoutCancel(ctx))
		}
	}
}

func (d *Desk) end(ctx context.Context) error {
	for {
		select {
		case n := <-d.queue:
			d.take(ctx, n)
			continue
		default:
		}
		break
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.streams {
		if s.capture != nil {
			d.save(ctx, s.capture)
		}
		if err := s.ring.Close(); err != nil {
			d.opts.Logger.Warn("moments were not written whole", "instance", s.instance.ID, "err", err)
		}
	}
	return nil
}

// take writes a moment, and goes on with what is captured.
func (d *Desk) take(ctx context.Context, n noted) {
	if !n.left.IsZero() {
		d.leave(ctx, n)
		return
	}
	err := n.s.ring.Append(n.m.Tick, func(fresh bool) []byte { return n.s.writer.Append(n.m, fresh) })
	if err != nil && !errors.Is(err, ring.ErrOld) && !d.bad.Swap(true) {
		d.opts.Event(fleet.Event{Time: time.Now(), Instance: n.s.instance.ID, Kind: fleet.EventStore, Severity: fleet.SeverityCritical, Subject: "moments", Text: "moments cannot be kept: " + err.Error()})
	}
	if err == nil && d.bad.Swap(false) {
		d.opts.Event(fleet.Event{Time: time.Now(), Instance: n.s.instance.ID, Kind: fleet.EventStore, Subject: "moments", Text: "moments are kept again"})
	}
	if lost := d.lost.Swap(0); lost > 0 {
		d.opts.Event(fleet.Event{Time: time.Now(), Kind: fleet.EventStore, Severity: fleet.SeverityWarning, Subject: "moments", Text: digits.Counted(lost, "moment") + " could not be kept: too many waited for the disk"})
	}
	if n.m.Tick >= n.s.thrift.Load() && n.s.ring.Pace() > thriftPace {
		n.s.thrift.Store(n.m.Tick + thriftTime)
	}
	d.follow(ctx, n)
}

// aboutNow says whether a finding is about what a server does now: what is wrong with its backups, or before it hurts, shows in no moment.
func aboutNow(id string) bool {
	return !strings.HasPrefix(id, "protect.") && !strings.HasPrefix(id, fleet.AdvicePrefix)
}

// rowOf is an incident as a row of the store of facts.
func rowOf(i incident.Incident) (state.IncidentRow, error) {
	body, err := json.Marshal(i)
	return state.IncidentRow{ID: i.ID, Instance: i.Instance, Began: i.Began, Ended: i.Ended, Body: body}, err
}
