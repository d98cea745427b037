package health

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/mysql"
)

// Desk answers about several servers by their names. A server is looked at from the first question about it until nobody has asked for idle.
type Desk struct {
	find func(server string) (Asked, bool)
	tell func(server string, err error)

	mu      sync.Mutex
	running context.Context // nil: Run has not begun, or has ended
	probers map[string]*asked
	ended   sync.WaitGroup
}

// asked is a prober, and when somebody last wanted to know.
type asked struct {
	*Prober
	last time.Time
	stop context.CancelFunc
}

const (
	idle      = 5 * time.Minute
	firstLook = 2 * time.Second // how long the first question about a server waits for its look
)

// Asked is a server that may be asked about.
type Asked struct {
	Target  mysql.Target
	Traffic *mysql.Traffic // of the other sessions of this process to it; nil: there are none
}

// NewDesk makes a desk, which finds servers by their names; Run lets it answer.
func NewDesk(find func(server string) (Asked, bool), tell func(server string, err error)) *Desk {
	return &Desk{find: find, tell: tell, probers: map[string]*asked{}}
}

// Run lets the desk answer until ctx ends.
func (d *Desk) Run(ctx context.Context) error {
	d.mu.Lock()
	d.running = ctx
	d.mu.Unlock()
	for delay.For(ctx, idle/10) == nil {
		d.sweep(time.Now())
	}
	d.mu.Lock()
	d.running = nil
	d.mu.Unlock()
	d.ended.Wait()
	return nil
}

func (d *Desk) sweep(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, a := range d.probers {
		if now.Sub(a.last) > idle {
			a.stop()
			delete(d.probers, name)
		}
	}
}

// prober is the one that looks at a server; nil: there is no such server, or the desk does not run.
func (d *Desk) prober(name string, now time.Time) *Prober {
	d.mu.Lock()
	defer d.mu.Unlock()
	target, there := d.find(name)
	if !there || d.running == nil {
		return nil
	}
	a := d.probers[name]
	if a == nil {
		ctx, stop := context.WithCancel(d.running)
		a = &asked{Prober: NewProber(target.Target, DefaultEvery, DefaultMaxAge, func(err error) { d.tell(name, err) }), stop: stop}
		a.Prober.traffic = target.Traffic
		d.probers[name] = a
		d.ended.Go(func() { a.Run(ctx) })
	}
	a.last = now
	return a.Prober
}

// Under answers requests below a path, such as /health/: of NAME/QUESTION, where no question is /.
func (d *Desk) Under(prefix string) http.Handler {
	return Handler(Question{}, func(r *http.Request) (*Prober, string) {
		segment, question, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), prefix), "/")
		name, err := url.PathUnescape(segment)
		if err != nil {
			return nil, ""
		}
		p := d.prober(name, time.Now())
		if p == nil {
			return nil, ""
		}
		wait, cancel := context.WithTimeout(r.Context(), firstLook)
		defer cancel()
		select {
		case <-p.Looked():
		case <-wait.Done():
		}
		return p, "/" + question + "?" + r.URL.RawQuery
	})
}
